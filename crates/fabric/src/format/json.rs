//! JSON texts as trees with places (RFC 8259), several documents a text if need be.
//!
//! `serde_json` forgets where a value stood; whoever has to say which of forty neighbours is wrong must not. Recursive
//! descent over bytes, bounded in depth:
//!
//! ```text
//! value := '{' (string ':' value) … '}' | '[' value … ']' | string | word
//! ```

use std::rc::Rc;

use crate::format::{
    diagnostic::{Diagnostic, Source},
    node::{DEPTH_MAX, Node, Style, Value},
};

/// Reads the documents of a text, one after the other.
///
/// # Errors
/// The first violation of JSON's syntax.
pub(crate) fn parse_json<'a>(source: &'a Source<'a>) -> Result<Vec<Rc<Node>>, Box<Diagnostic>> {
    let mut reader = Reader { source, bytes: source.text().as_bytes(), at: 0 };
    let mut documents = Vec::new();
    reader.skip_blanks();
    while reader.at < reader.bytes.len() {
        documents.push(reader.value(0)?);
        reader.skip_blanks();
    }
    Ok(documents)
}

struct Reader<'a> {
    source: &'a Source<'a>,
    bytes: &'a [u8],
    at: usize,
}

type Parsed<T> = Result<T, Box<Diagnostic>>;

impl Reader<'_> {
    fn value(&mut self, depth: usize) -> Parsed<Rc<Node>> {
        if depth == DEPTH_MAX {
            return Err(self.wrong(&format!("values are nested more than {DEPTH_MAX} deep")));
        }
        let start = self.at;
        let value = match self.bytes.get(self.at) {
            Some(b'{') => self.map(depth)?,
            Some(b'[') => self.list(depth)?,
            Some(b'"') => Value::Scalar { text: self.string()?, style: Style::Quoted },
            Some(byte) if byte.is_ascii_alphanumeric() || *byte == b'-' => self.word(),
            Some(_) => return Err(self.wrong("not JSON: expected a value")),
            None => return Err(self.wrong("not JSON: the text ends where a value should begin")),
        };
        let end = if matches!(value, Value::Scalar { .. }) { self.at } else { start + 1 };
        Ok(Rc::new(Node { place: self.source.place(start, end), value }))
    }

    fn map(&mut self, depth: usize) -> Parsed<Value> {
        let mut entries = Vec::new();
        self.at += 1;
        self.skip_blanks();
        while !self.take(b'}') {
            if !entries.is_empty() {
                self.expect(b',', "not JSON: expected , or }")?;
                self.skip_blanks();
            }
            let start = self.at;
            let text = self.string()?;
            let place = self.source.place(start, self.at);
            self.skip_blanks();
            self.expect(b':', "not JSON: expected : after a key")?;
            self.skip_blanks();
            let key = Node { place, value: Value::Scalar { text, style: Style::Quoted } };
            entries.push((Rc::new(key), self.value(depth + 1)?));
            self.skip_blanks();
        }
        Ok(Value::Map(entries))
    }

    fn list(&mut self, depth: usize) -> Parsed<Value> {
        let mut items = Vec::new();
        self.at += 1;
        self.skip_blanks();
        while !self.take(b']') {
            if !items.is_empty() {
                self.expect(b',', "not JSON: expected , or ]")?;
                self.skip_blanks();
            }
            items.push(self.value(depth + 1)?);
            self.skip_blanks();
        }
        Ok(Value::List(items))
    }

    fn string(&mut self) -> Parsed<String> {
        self.expect(b'"', "not JSON: expected a \"")?;
        let mut text = String::new();
        loop {
            let rest = &self.source.text()[self.at..];
            let stop = rest.find(['"', '\\', '\n']).ok_or_else(|| self.wrong("not JSON: this string never ends"))?;
            text.push_str(&rest[..stop]);
            self.at += stop;
            match self.bytes[self.at] {
                b'"' => {
                    self.at += 1;
                    return Ok(text);
                }
                b'\\' => text.push(self.escape()?),
                _ => return Err(self.wrong("not JSON: a string ends on its line")),
            }
        }
    }

    fn escape(&mut self) -> Parsed<char> {
        let simple = match self.bytes.get(self.at + 1) {
            Some(b'n') => '\n',
            Some(b't') => '\t',
            Some(b'r') => '\r',
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(byte @ (b'"' | b'\\' | b'/')) => char::from(*byte),
            Some(b'u') => {
                let unit = self.code_unit()?;
                // A high surrogate and the low one after it stand for one character.
                if !(0xd800..0xdc00).contains(&unit) || !self.bytes[self.at..].starts_with(b"\\u") {
                    return Ok(char::from_u32(unit).unwrap_or(char::REPLACEMENT_CHARACTER));
                }
                let low = self.code_unit()?;
                let pair = 0x1_0000 + ((unit - 0xd800) << 10) + (low & 0x3ff);
                return Ok(char::from_u32(pair).unwrap_or(char::REPLACEMENT_CHARACTER));
            }
            _ => return Err(self.wrong("not JSON: unknown escape")),
        };
        self.at += 2;
        Ok(simple)
    }

    /// Reads an escape of four hexadecimal digits.
    fn code_unit(&mut self) -> Parsed<u32> {
        let digits = self.bytes.get(self.at + 2..self.at + 6).and_then(|digits| std::str::from_utf8(digits).ok());
        let unit = digits
            .filter(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()))
            .and_then(|digits| u32::from_str_radix(digits, 16).ok())
            .ok_or_else(|| self.wrong("not JSON: \\u takes four hexadecimal digits"))?;
        self.at += 6;
        Ok(unit)
    }

    /// Takes a number, `true`, `false` or `null`; which one it is matters to no format here.
    fn word(&mut self) -> Value {
        let rest = &self.bytes[self.at..];
        let length = rest.iter().take_while(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(byte)).count();
        let text = String::from_utf8_lossy(&rest[..length]).into_owned();
        self.at += length;
        Value::Scalar { text, style: Style::Plain }
    }

    fn take(&mut self, byte: u8) -> bool {
        let found = self.bytes.get(self.at) == Some(&byte);
        self.at += usize::from(found);
        found
    }

    fn expect(&mut self, byte: u8, message: &str) -> Parsed<()> {
        if self.take(byte) { Ok(()) } else { Err(self.wrong(message)) }
    }

    fn skip_blanks(&mut self) {
        let blanks = self.bytes[self.at..].iter().take_while(|byte| b" \t\r\n".contains(byte)).count();
        self.at += blanks;
    }

    fn wrong(&self, message: &str) -> Box<Diagnostic> {
        Box::new(self.source.at(self.source.place(self.at, self.at + 1)).error(message))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_know_where_they_stand() {
        let source = Source::new("f", "{\"a\": [1,\n  \"\\u00e9\\ud83d\\ude00\\n\"]} null");
        let documents = parse_json(&source).expect("valid");
        assert_eq!(documents.len(), 2);
        let items = documents[0].get("a").expect("a key").items();
        assert_eq!(items[1].text(), Some("é😀\n"));
        assert_eq!((items[1].place.line, items[1].place.column), (2, 3));
    }

    #[test]
    fn broken_texts_are_refused() {
        for text in ["{", "[1 2]", "{\"a\" 1}", "\"\\x\"", "\"\\u12\"", "\"a\nb\"", "[1,]", "&", &"[".repeat(99)] {
            assert!(parse_json(&Source::new("f", text)).is_err(), "{text}");
        }
    }
}
