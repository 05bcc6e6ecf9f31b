//! What is wrong with a text that describes a program, and where.

use std::fmt;

/// Most mistakes that are kept; more are counted.
pub const MISTAKES_MAX: usize = 20;
/// Longest word of a text that a mistake quotes, in characters.
const QUOTED_CHARS_MAX: usize = 40;

/// One mistake.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistake {
    /// The file's name, as the caller gave it.
    pub file: String,
    /// The line, counted from 1.
    pub line: usize,
    /// What is wrong, and the way out.
    pub message: String,
}

/// The mistakes of a text, in order; never none.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Mistakes {
    list: Vec<Mistake>,
    count: usize,
}

impl Mistakes {
    /// Those that were kept.
    pub fn items(&self) -> &[Mistake] {
        &self.list
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.count == 0
    }

    pub(super) fn is_full(&self) -> bool {
        self.count >= MISTAKES_MAX
    }

    pub(crate) fn push(&mut self, file: &str, line: usize, message: impl Into<String>) {
        self.count += 1;
        if self.list.len() < MISTAKES_MAX {
            self.list.push(Mistake { file: file.to_owned(), line, message: message.into() });
        }
    }
}

/// A word of the text as a mistake shows it.
pub(crate) fn quoted(word: &str) -> String {
    let short: String = word.chars().take(QUOTED_CHARS_MAX).collect();
    format!("{short:?}")
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.file, self.line, self.message)
    }
}

impl fmt::Display for Mistakes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, mistake) in self.list.iter().enumerate() {
            if index > 0 {
                writeln!(f)?;
            }
            write!(f, "{mistake}")?;
        }
        match self.count - self.list.len() {
            0 => Ok(()),
            more => write!(f, "\n… and {more} more"),
        }
    }
}

impl std::error::Error for Mistakes {}
