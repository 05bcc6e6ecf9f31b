//! JSON texts as trees with places (RFC 8259), several documents a text if need be.
//!
//! `serde_json` judges the syntax and decodes strings. Its values forget where they stood; whoever has to say which of forty
//! neighbours is wrong must not. Its raw values are pieces of the text, and so have a place:
//!
//! ```text
//! text ▶ documents, raw ▶ a map's keys and values, a list's items, raw ▶ … ▶ strings, numbers, true, false, null
//! ```
//! Numbers stay as they were written. Cost: O(bytes × depth), and the depth is bounded.

use std::{fmt, rc::Rc};

use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, Visitor},
};
use serde_json::value::RawValue;

use crate::format::{
    diagnostic::{Diagnostic, Source},
    node::{DEPTH_MAX, Node, Style, Value},
};

/// Reads the documents of a text, one after the other.
///
/// # Errors
/// The first violation of JSON's syntax, or a value that is nested too deep.
pub(crate) fn parse_json<'a>(source: &'a Source<'a>) -> Result<Vec<Rc<Node>>, Box<Diagnostic>> {
    let documents = serde_json::Deserializer::from_str(source.text()).into_iter::<&RawValue>();
    documents.map(|raw| node(source, raw.map_err(|error| syntax_error(source, 0, &error))?, 0)).collect()
}

type Parsed<T> = Result<T, Box<Diagnostic>>;

fn node(source: &Source<'_>, raw: &RawValue, depth: usize) -> Parsed<Rc<Node>> {
    let piece = raw.get();
    let start = offset(source, piece);
    if depth == DEPTH_MAX {
        let message = format!("values are nested more than {DEPTH_MAX} deep");
        return Err(Box::new(source.at(source.place(start, start + 1)).error(message)));
    }
    let value = match piece.as_bytes().first() {
        Some(b'{') => {
            let Entries(entries) = decode(source, piece)?;
            let mut nodes = Vec::with_capacity(entries.len());
            for (key, value) in entries {
                nodes.push((node(source, key, depth + 1)?, node(source, value, depth + 1)?));
            }
            Value::Map(nodes)
        }
        Some(b'[') => {
            let items: Vec<&RawValue> = decode(source, piece)?;
            Value::List(items.into_iter().map(|item| node(source, item, depth + 1)).collect::<Parsed<_>>()?)
        }
        Some(b'"') => Value::Scalar { text: decode(source, piece)?, style: Style::Quoted },
        _ => Value::Scalar { text: piece.to_owned(), style: Style::Plain },
    };
    let end = if matches!(value, Value::Scalar { .. }) { start + piece.len() } else { start + 1 };
    Ok(Rc::new(Node { place: source.place(start, end), value }))
}

/// The keys and values of a map, in the order of the text, repeated keys too.
struct Entries<'a>(Vec<(&'a RawValue, &'a RawValue)>);

impl<'de> Deserialize<'de> for Entries<'de> {
    fn deserialize<D: Deserializer<'de>>(reader: D) -> Result<Self, D::Error> {
        struct Pairs;
        impl<'de> Visitor<'de> for Pairs {
            type Value = Entries<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a map")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Entries<'de>, A::Error> {
                let mut entries = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    entries.push(entry);
                }
                Ok(Entries(entries))
            }
        }
        reader.deserialize_map(Pairs)
    }
}

/// Where a piece of the text begins in it, in bytes.
fn offset(source: &Source<'_>, piece: &str) -> usize {
    piece.as_ptr() as usize - source.text().as_ptr() as usize
}

fn decode<'a, T: Deserialize<'a>>(source: &Source<'_>, piece: &'a str) -> Parsed<T> {
    serde_json::from_str(piece).map_err(|error| syntax_error(source, offset(source, piece), &error))
}

/// What is wrong with the piece of the text that begins at `start`.
fn syntax_error(source: &Source<'_>, start: usize, error: &serde_json::Error) -> Box<Diagnostic> {
    let text = source.text();
    let lines_before: usize = text[start..].split_inclusive('\n').take(error.line().max(1) - 1).map(str::len).sum();
    let at = (start + lines_before + error.column().max(1) - 1).min(text.len());
    let at = (0..=at).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    let said = error.to_string();
    let message = said.rsplit_once(" at line ").map_or(said.as_str(), |(message, _)| message);
    Box::new(source.at(source.place(at, at + 1)).error(format!("not JSON: {message}")))
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
    fn numbers_and_repeated_keys_stay_as_they_are() {
        let source = Source::new("f", r#"{"a": 1, "b": 0.10e+01, "a": 18446744073709551617}"#);
        let documents = parse_json(&source).expect("valid");
        let entries: Vec<_> = documents[0].entries().iter().map(|(key, value)| (key.key(), value.text())).collect();
        let expect = [(Some("a"), Some("1")), (Some("b"), Some("0.10e+01")), (Some("a"), Some("18446744073709551617"))];
        assert_eq!(entries, expect);
        let columns: Vec<_> =
            documents[0].entries().iter().map(|(key, value)| [key, value].map(|node| node.place.column)).collect();
        assert_eq!(columns, [[2, 7], [10, 15], [25, 30]]);
    }

    #[test]
    fn depth_is_bounded() {
        let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        let (deepest, deeper, hopeless) = (nested(DEPTH_MAX), nested(DEPTH_MAX + 1), nested(100_000));
        assert!(parse_json(&Source::new("f", &deepest)).is_ok());
        for text in [deeper, hopeless] {
            let wrong = parse_json(&Source::new("f", &text)).expect_err("too deep");
            assert_eq!((wrong.line, wrong.column), (1, DEPTH_MAX + 1));
            assert!(wrong.message.contains("nested more than"), "{}", wrong.message);
        }
    }

    #[test]
    fn broken_texts_are_refused_where_they_break() {
        for (text, at, message) in [
            ("{", (1, 1), "EOF while parsing an object"),
            ("[1 2]", (1, 4), "expected `,` or `]`"),
            ("{} {\"a\" 1}", (1, 9), "expected `:`"),
            ("[\"\\x\"]", (1, 4), "invalid escape"),
            ("[1,\n \"\\u12\"]", (2, 8), "invalid escape"),
            ("\"a\nb\"", (1, 2), "control character"),
            ("[\"é\", \"\\ud83d\"]", (1, 14), "unexpected end of hex escape"),
            ("{\"a\": nul}", (1, 10), "expected ident"),
            ("[01]", (1, 3), "invalid number"),
            ("[1,]", (1, 4), "expected value"),
            ("&", (1, 1), "expected value"),
        ] {
            let wrong = parse_json(&Source::new("f", text)).expect_err("broken");
            assert_eq!((wrong.line, wrong.column), at, "{text}: {}", wrong.message);
            assert!(
                wrong.message.starts_with("not JSON: ") && wrong.message.contains(message),
                "{text}: {}",
                wrong.message
            );
            assert!(!wrong.message.contains("at line"), "{}", wrong.message);
        }
    }
}
