//! Pieces of a plan file as it is written: lists with a line an item, and fields of an object.

use std::{
    fmt::{self, Write as _},
    io,
};

/// Writes a list with a line an item.
pub(super) fn write_list(
    out: &mut impl io::Write,
    open: &str,
    items: impl Iterator<Item = String>,
    close: &str,
) -> io::Result<()> {
    out.write_all(open.as_bytes())?;
    let mut separator = "\n";
    for item in items {
        let line = format!("{separator}{item}");
        out.write_all(line.as_bytes())?;
        separator = ",\n";
    }
    if separator != "\n" {
        out.write_all(b"\n")?;
    }
    out.write_all(close.as_bytes())
}

/// Appends a field, after a comma unless it is the first; `value` is JSON already.
pub(super) fn push_field(text: &mut String, name: &str, value: impl fmt::Display) {
    let comma = if text.is_empty() { "" } else { "," };
    write!(text, "{comma}{}:{value}", Quoted(name)).expect("writing to a string");
}

/// Values with commas between.
pub(super) fn commas(values: &[impl fmt::Display]) -> String {
    let mut text = String::new();
    for value in values {
        let comma = if text.is_empty() { "" } else { "," };
        write!(text, "{comma}{value}").expect("writing to a string");
    }
    text
}

/// A text as JSON. The names of a topology hold nothing that JSON would have to escape.
pub(super) struct Quoted<T>(pub(super) T);

impl<T: fmt::Display> fmt::Display for Quoted<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{}\"", self.0)
    }
}
