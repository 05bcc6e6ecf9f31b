//! Words of a GOAL schedule, with their lines.

use crate::program::text::Mistakes;

/// A word, or one of `{ } :`, and its line.
pub(super) type Token<'a> = (&'a str, usize);

/// The words of a schedule, without its comments.
pub(super) fn tokens<'a>(file: &str, text: &'a str, mistakes: &mut Mistakes) -> Vec<Token<'a>> {
    let mut tokens = Vec::new();
    let (mut open, mut opened) = (false, 0);
    for (number, mut line) in (1..).zip(text.lines()) {
        while !line.is_empty() {
            if open {
                match line.find("*/") {
                    Some(end) => (open, line) = (false, &line[end + 2..]),
                    None => break,
                }
                continue;
            }
            line = line.trim_start();
            if line.is_empty() || line.starts_with('#') || line.starts_with("//") {
                break;
            }
            if let Some(rest) = line.strip_prefix("/*") {
                (open, opened, line) = (true, number, rest);
                continue;
            }
            let is_end = |c: char| c.is_whitespace() || matches!(c, '{' | '}' | ':' | '#');
            let length = match line.find(is_end) {
                Some(0) => 1,
                Some(end) => end,
                None => line.len(),
            };
            let length = line[..length].find("//").unwrap_or(length);
            let length = line[..length].find("/*").unwrap_or(length);
            tokens.push((&line[..length], number));
            line = &line[length..];
        }
    }
    if open {
        mistakes.push(file, opened, "the comment that begins here does not end; close it with */");
    }
    tokens
}
