//! Lines of comma-separated values, as RFC 4180 has them.

/// The fields of a line, as RFC 4180 has them.
pub fn fields(line: &str) -> Vec<String> {
    let (mut fields, mut field, mut is_quoted) = (Vec::new(), String::new(), false);
    let mut letters = line.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '"' if is_quoted && letters.peek() == Some(&'"') => {
                letters.next();
                field.push('"');
            }
            '"' => is_quoted = !is_quoted,
            ',' if !is_quoted => fields.push(std::mem::take(&mut field)),
            _ => field.push(letter),
        }
    }
    fields.push(field);
    fields
}

/// A field as RFC 4180 wants it, on one line.
pub(super) fn quoted(text: &str) -> String {
    let text = text.replace(['\n', '\r'], " ");
    if text.contains([',', '"']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_come_back_as_they_were_written() {
        assert_eq!(fields("a,\"b, \"\"c\"\"\",,d"), ["a", "b, \"c\"", "", "d"]);
        assert_eq!(fields(""), [""]);
    }

    #[test]
    fn a_line_that_is_quoted_has_the_same_fields() {
        let texts = ["a", "b, c", "\"d\"", "", "e\"f,g"];
        let line = texts.map(quoted).join(",");
        assert_eq!(fields(&line), texts);
        assert_eq!(quoted("two\nlines"), "two lines");
    }
}
