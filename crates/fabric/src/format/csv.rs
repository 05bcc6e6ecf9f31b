//! Comma-separated lines, each field with its place.
//!
//! ```text
//!   # what h0 sends        a comment
//!   "h0", h1 , 12.5        three fields: h0, h1, 12.5
//! ```
//! A field is what stands between two commas, less blanks and one pair of quotes around it; commas between quotes divide
//! nothing. A name with quotes in it cannot be written. Empty lines, lines that begin with `#` and a byte order mark are
//! skipped.

use super::diagnostic::{Source, TextPosition};

/// One field.
#[derive(Clone, Copy)]
pub(super) struct Field<'a> {
    /// Its text without blanks and quotes.
    pub(super) text: &'a str,
    /// Where the text begins, in bytes.
    start: usize,
}

impl<'a> Field<'a> {
    pub(super) fn site<'s>(&self, source: &'s Source<'a>) -> TextPosition<'s> {
        source.at(source.place(self.start, self.start + self.text.len()))
    }

    /// The line that it stands in.
    pub(super) fn line(&self, source: &Source<'a>) -> usize {
        source.place(self.start, self.start).line
    }
}

/// The fields of each line that has any.
pub(super) fn records<'a>(text: &'a str) -> impl Iterator<Item = Vec<Field<'a>>> {
    let body = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut at = text.len() - body.len();
    body.split_inclusive(['\n', '\r']).filter_map(move |line| {
        let start = at;
        at += line.len();
        let blank = line.trim_start().is_empty() || line.trim_start().starts_with('#');
        (!blank).then(|| fields(line, start))
    })
}

fn fields(line: &str, start: usize) -> Vec<Field<'_>> {
    let mut at = start;
    let mut quoted = false;
    line.split(|c: char| {
        quoted ^= c == '"';
        c == ',' && !quoted
    })
    .map(|piece| {
        let begin = at;
        at += piece.len() + 1;
        let text = piece.trim();
        let unquoted = text.strip_prefix('"').and_then(|text| text.strip_suffix('"')).unwrap_or(text);
        let offset = unquoted.as_ptr() as usize - piece.as_ptr() as usize;
        Field { text: unquoted, start: begin + offset }
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commas_between_quotes_divide_nothing() {
        let found: Vec<Vec<&str>> = records("\"sw:Unit 1, Port 2\",h1\n\"a")
            .map(|record| record.iter().map(|field| field.text).collect())
            .collect();
        assert_eq!(found, [vec!["sw:Unit 1, Port 2", "h1"], vec!["\"a"]]);
    }

    #[test]
    fn fields_know_their_places() {
        let text = "\u{feff}# é\r\n\r\n\"h0\", h1 ,12.5\r\n ,x\n,\r";
        let source = Source::new("f.csv", text);
        let found: Vec<Vec<_>> = records(text)
            .map(|record| {
                let place = |field: &Field<'_>| {
                    let place = field.site(&source).place;
                    (field.text.to_owned(), place.line, place.column)
                };
                record.iter().map(place).collect()
            })
            .collect();
        let field = |text: &str, line, column| (text.to_owned(), line, column);
        assert_eq!(
            found,
            [
                vec![field("h0", 3, 2), field("h1", 3, 7), field("12.5", 3, 11)],
                vec![field("", 4, 1), field("x", 4, 3)],
                vec![field("", 5, 1), field("", 5, 2)],
            ]
        );
    }
}
