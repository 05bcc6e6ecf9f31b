//! What is wrong with a text, where, and what would be right.
//!
//! A parser never stops at the first mistake: it collects [`Diagnostic`]s, and a person repairs the file in one go.
//!
//! ```text
//! rack.yaml:6:5: error: unknown switch sw22
//!   6 |   - sw22:g1 -- sw1:g1
//!     |     ^^^^
//! help: did you mean sw2?
//! ```

use std::{cell::Cell, fmt};

use serde::Serialize;

use crate::Fault;

/// Most errors, and most warnings, that are kept; more are only counted.
pub const DIAGNOSTICS_MAX: usize = 200;
/// Largest text that a parser accepts, in bytes; a million cables take a third of it.
pub const TEXT_BYTES_MAX: usize = 128 << 20;
/// Longest excerpt of a source line that is shown, in characters.
const EXCERPT_CHARS_MAX: usize = 100;
/// Longest offending text that is kept, in characters.
const TEXT_CHARS_MAX: usize = 60;
/// Most excerpts that are cut out of one text; diagnostics beyond it are only counted anyway.
const EXCERPTS_MAX: usize = 2 * DIAGNOSTICS_MAX;

/// How bad a diagnostic is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum DiagnosticSeverity {
    /// The text describes no topology.
    Error,
    /// A topology was read, but perhaps not the one that was meant.
    Warning,
}

/// One mistake in a text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Diagnostic {
    /// How bad it is.
    pub severity: DiagnosticSeverity,
    /// The file's name, as the caller gave it.
    pub file: String,
    /// The line, counted from 1.
    pub line: usize,
    /// The column, in characters counted from 1.
    pub column: usize,
    /// The offending text; empty where something is missing.
    pub text: String,
    /// One sentence that says what is wrong.
    pub message: String,
    /// What would be right, where that can be said.
    pub help: Option<String>,
    /// The part of the line that is shown, and how far into it the offending text begins, in characters.
    #[serde(skip)]
    excerpt: (String, usize),
}

impl Diagnostic {
    /// The same diagnostic with this advice.
    pub(crate) fn with_help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }
}

/// The mistakes of one or more texts, in order of file and line once [`Diagnostics::sort`]ed.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Diagnostics {
    list: Vec<Diagnostic>,
    errors: usize,
    warnings: usize,
}

impl Diagnostics {
    /// None so far.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds one. Beyond [`DIAGNOSTICS_MAX`] of its severity it is only counted.
    pub fn push(&mut self, diagnostic: Diagnostic) {
        let count = match diagnostic.severity {
            DiagnosticSeverity::Error => &mut self.errors,
            DiagnosticSeverity::Warning => &mut self.warnings,
        };
        *count += 1;
        if *count <= DIAGNOSTICS_MAX {
            self.list.push(diagnostic);
        }
    }

    /// Adds those of another list.
    pub(crate) fn append(&mut self, other: Self) {
        let (errors, warnings) = (self.errors + other.errors, self.warnings + other.warnings);
        other.list.into_iter().for_each(|diagnostic| self.push(diagnostic));
        (self.errors, self.warnings) = (errors, warnings);
    }

    /// The diagnostics that were kept.
    pub fn items(&self) -> &[Diagnostic] {
        &self.list
    }

    /// How many errors there are, those included that were not kept.
    pub fn errors(&self) -> usize {
        self.errors
    }

    /// How many warnings there are, those included that were not kept.
    pub fn warnings(&self) -> usize {
        self.warnings
    }

    /// Whether there is neither error nor warning.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Whether further errors would only be counted, so that work on their wording is wasted.
    pub(crate) fn is_full(&self) -> bool {
        self.errors >= DIAGNOSTICS_MAX
    }

    /// How many were counted but not kept.
    pub fn omitted(&self) -> usize {
        self.errors + self.warnings - self.list.len()
    }

    /// Orders by file (in order of first mention), line and column.
    pub fn sort(&mut self) {
        let mut files: Vec<String> = Vec::new();
        for diagnostic in &self.list {
            if !files.contains(&diagnostic.file) {
                files.push(diagnostic.file.clone());
            }
        }
        self.list.sort_by_key(|diagnostic| {
            (files.iter().position(|file| *file == diagnostic.file), diagnostic.line, diagnostic.column)
        });
    }

    /// Plain data for machines: `{"diagnostics": [{severity, file, line, column, text, message, help}…], "omitted": n}`.
    pub fn to_json(&self) -> serde_json::Value {
        serde_json::json!({ "diagnostics": self.list, "omitted": self.omitted() })
    }

    /// `value` with these as warnings if there is no error, else these.
    pub(crate) fn into_result<T>(mut self, value: Option<T>) -> Result<(T, Self), Self> {
        self.sort();
        match value {
            Some(value) if self.errors == 0 => Ok((value, self)),
            _ => Err(self),
        }
    }
}

impl fmt::Display for DiagnosticSeverity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Error => "error",
            Self::Warning => "warning",
        })
    }
}

impl fmt::Display for Diagnostic {
    /// The message, the source line with the offending text marked, and the help.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { severity, file, line, column, message, .. } = self;
        writeln!(f, "{file}:{line}:{column}: {severity}: {message}")?;
        let (excerpt, offset) = &self.excerpt;
        if !excerpt.is_empty() {
            let number = line.to_string();
            // Tabs are repeated, so that the mark stands under its text whatever their width.
            let pad: String = excerpt.chars().take(*offset).map(|c| if c == '\t' { '\t' } else { ' ' }).collect();
            let room = excerpt.chars().count().saturating_sub(*offset);
            let mark = "^".repeat(self.text.chars().count().min(room).max(1));
            writeln!(f, "  {number} | {excerpt}")?;
            writeln!(f, "  {:width$} | {pad}{mark}", "", width = number.len())?;
        }
        match &self.help {
            Some(help) => writeln!(f, "help: {help}"),
            None => Ok(()),
        }
    }
}

impl fmt::Display for Diagnostics {
    /// Each diagnostic as a compiler would print it, a blank line between two, and how many more there are.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, diagnostic) in self.list.iter().enumerate() {
            if index > 0 {
                writeln!(f)?;
            }
            write!(f, "{diagnostic}")?;
        }
        match self.omitted() {
            0 => Ok(()),
            more => writeln!(f, "\n… and {more} more"),
        }
    }
}

impl std::error::Error for Diagnostics {}

/// Where something stands: line and column counted from 1, the width in characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct TextSpan {
    pub line: usize,
    pub column: usize,
    pub width: usize,
}

impl TextSpan {
    /// The very beginning of a text.
    pub(crate) const START: Self = Self { line: 1, column: 1, width: 0 };
}

/// A text and its name.
pub(crate) struct Source<'a> {
    file: &'a str,
    text: &'a str,
    /// Where each line begins, in bytes.
    starts: Vec<usize>,
    /// The last place that was asked for, in bytes, and its column: counting goes on from there, for a text may be
    /// one line of megabytes.
    last: Cell<(usize, usize)>,
    /// How many excerpts have been cut out; see `EXCERPTS_MAX`.
    excerpts: Cell<usize>,
}

impl<'a> Source<'a> {
    pub(crate) fn new(file: &'a str, text: &'a str) -> Self {
        // A lone carriage return ends a line as well, as YAML has it.
        let bytes = text.as_bytes();
        let ends_line = |at: usize| bytes[at] == b'\n' || (bytes[at] == b'\r' && bytes.get(at + 1) != Some(&b'\n'));
        let starts = std::iter::once(0).chain((0..bytes.len()).filter(|at| ends_line(*at)).map(|at| at + 1)).collect();
        Self { file, text, starts, last: Cell::new((0, 1)), excerpts: Cell::new(0) }
    }

    pub(crate) fn file(&self) -> &'a str {
        self.file
    }

    pub(crate) fn text(&self) -> &'a str {
        self.text
    }

    /// A line without its end, counted from 1; empty beyond the text.
    pub(crate) fn line(&self, number: usize) -> &'a str {
        let Some(&start) = number.checked_sub(1).and_then(|index| self.starts.get(index)) else { return "" };
        let end = self.starts.get(number).map_or(self.text.len(), |next| next - 1);
        self.text[start..end].trim_end_matches('\r')
    }

    /// The place of `text[start..end]`, in bytes; what lies beyond the first line's end is not marked.
    pub(crate) fn place(&self, start: usize, end: usize) -> TextSpan {
        let line = self.starts.partition_point(|&at| at <= start);
        let first = self.starts[line - 1];
        let count = |from: usize, to: usize| {
            self.text.get(from..to.min(self.text.len())).map_or(0, |piece| piece.chars().count())
        };
        let (at, column) = self.last.get();
        let column = if (first..=start).contains(&at) { column + count(at, start) } else { count(first, start) + 1 };
        self.last.set((start, column));
        let end = end.min(first + self.line(line).len()).max(start);
        TextSpan { line, column, width: count(start, end) }
    }

    pub(crate) fn at(&'a self, place: TextSpan) -> TextPosition<'a> {
        TextPosition { source: self, place }
    }

    /// Refuses a text beyond [`TEXT_BYTES_MAX`].
    pub(crate) fn check_size(&'a self, diagnostics: &mut Diagnostics) -> bool {
        let fits = self.text.len() <= TEXT_BYTES_MAX;
        if !fits {
            let site = self.at(TextSpan::START);
            let message = format!("{} bytes are more than the {TEXT_BYTES_MAX} that are read", self.text.len());
            diagnostics.push(site.error(message).with_help("no fabric needs so long a file; is it the right one?"));
        }
        fits
    }
}

/// A place in a text, from which diagnostics are made.
#[derive(Clone, Copy)]
pub(crate) struct TextPosition<'a> {
    pub source: &'a Source<'a>,
    pub place: TextSpan,
}

impl TextPosition<'_> {
    pub(crate) fn error(&self, message: impl Into<String>) -> Diagnostic {
        self.diagnostic(DiagnosticSeverity::Error, message.into())
    }

    pub(crate) fn warning(&self, message: impl Into<String>) -> Diagnostic {
        self.diagnostic(DiagnosticSeverity::Warning, message.into())
    }

    /// An error in a fault's own words.
    pub(crate) fn fault(&self, fault: &Fault) -> Diagnostic {
        Diagnostic { help: fault.help(), ..self.error(fault.to_string()) }
    }

    /// The site of `width` characters that begin `offset` characters further on.
    pub(crate) fn within(&self, offset: usize, width: usize) -> Self {
        Self { place: TextSpan { column: self.place.column + offset, width, ..self.place }, ..*self }
    }

    fn diagnostic(&self, severity: DiagnosticSeverity, message: String) -> Diagnostic {
        let TextSpan { line, column, width } = self.place;
        let made = self.source.excerpts.get();
        self.source.excerpts.set(made + 1);
        let content = if made < EXCERPTS_MAX { self.source.line(line) } else { "" };
        let before = column.saturating_sub(1);
        // Of a long line, such as a whole JSON text, only the neighbourhood is shown.
        let long = content.chars().nth(EXCERPT_CHARS_MAX).is_some();
        let skipped = if long { before.saturating_sub(EXCERPT_CHARS_MAX / 2) } else { 0 };
        let excerpt: String = content.chars().skip(skipped).take(EXCERPT_CHARS_MAX).collect();
        let excerpt = excerpt.trim_end().replace(|c: char| c.is_control() && c != '\t', "\u{fffd}");
        let text: String = content.chars().skip(before).take(width.min(TEXT_CHARS_MAX)).collect();
        let file = self.source.file.to_owned();
        Diagnostic { severity, file, line, column, text, message, help: None, excerpt: (excerpt, before - skipped) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_offending_text_is_marked() {
        let source = Source::new("rack.yaml", "switches:\n\t- é sw22\r\n");
        let at = source.text().find("sw22").expect("it is there");
        let diagnostic =
            source.at(source.place(at, at + 4)).error("unknown switch sw22").with_help("did you mean sw2?");
        assert_eq!((diagnostic.line, diagnostic.column, diagnostic.text.as_str()), (2, 6, "sw22"));
        let expected =
            "rack.yaml:2:6: error: unknown switch sw22\n  2 | \t- é sw22\n    | \t    ^^^^\nhelp: did you mean sw2?\n";
        assert_eq!(diagnostic.to_string(), expected);
    }

    #[test]
    fn a_flood_of_errors_is_counted_and_hides_no_warning() {
        let source = Source::new("f", "x");
        let mut diagnostics = Diagnostics::new();
        for _ in 0..DIAGNOSTICS_MAX + 7 {
            diagnostics.push(source.at(TextSpan::START).error("wrong"));
        }
        diagnostics.push(source.at(TextSpan::START).warning("odd"));
        assert_eq!(diagnostics.items().len(), DIAGNOSTICS_MAX + 1);
        assert!(diagnostics.to_string().ends_with("… and 7 more\n"));
        assert_eq!(diagnostics.to_json()["omitted"], 7);
        assert_eq!(diagnostics.to_json()["diagnostics"][0]["severity"], "error");
    }

    #[test]
    fn a_long_line_is_shown_around_the_mistake() {
        let text = format!("{}bad{}", "a".repeat(5000), "b".repeat(5000));
        let source = Source::new("f", &text);
        let shown = source.at(source.place(5000, 5003)).error("wrong").to_string();
        assert!(shown.lines().all(|line| line.chars().count() < 130), "{shown}");
        assert!(shown.contains("abad"), "{shown}");
    }
}
