//! What a terminal's bytes come to look like: lines, with what was rubbed out or written over gone.
//!
//! ```text
//!   "vlan 2\r\n --More-- " "\r          \r" "vlan 3\r\n"  ─▶  "vlan 2", "vlan 3"
//! ```

/// Longest line that is kept, in characters; what follows is left out.
const LINE_LEN_MAX: usize = 65_536;

/// A screen without height or width.
#[derive(Debug, Default)]
pub(super) struct Screen {
    lines: Vec<String>,
    line: Vec<char>,
    at: usize,
    escape: Escape,
}

/// How far into a control sequence the bytes are (ECMA-48, 5.4).
#[derive(Debug, Default)]
enum Escape {
    #[default]
    No,
    Begun,
    /// Parameters of a control sequence.
    Control(String),
    /// A text for the window's title, up to the bell.
    Title,
}

impl Screen {
    /// Takes bytes in.
    pub(super) fn take(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            match std::mem::take(&mut self.escape) {
                Escape::No => self.plain(byte),
                Escape::Begun if byte == b'[' => self.escape = Escape::Control(String::new()),
                Escape::Begun if byte == b']' => self.escape = Escape::Title,
                Escape::Begun => {}
                Escape::Control(parameters) if (0x40..=0x7e).contains(&byte) => self.control(&parameters, byte),
                Escape::Control(mut parameters) => {
                    if parameters.len() < 32 {
                        parameters.push(char::from(byte));
                    }
                    self.escape = Escape::Control(parameters);
                }
                Escape::Title if byte == 0x07 => {}
                Escape::Title if byte == 0x1b => self.escape = Escape::Begun,
                Escape::Title => self.escape = Escape::Title,
            }
        }
    }

    fn plain(&mut self, byte: u8) {
        match byte {
            b'\n' => {
                self.lines.push(self.line());
                self.clear_line();
            }
            b'\r' => self.at = 0,
            0x08 => self.at = self.at.saturating_sub(1),
            b'\t' => self.put(' '),
            0x1b => self.escape = Escape::Begun,
            0x20..=0x7e => self.put(char::from(byte)),
            0x80.. => self.put(char::REPLACEMENT_CHARACTER),
            _ => {}
        }
    }

    fn put(&mut self, letter: char) {
        if self.at >= LINE_LEN_MAX {
            return;
        }
        while self.line.len() < self.at {
            self.line.push(' ');
        }
        match self.line.get_mut(self.at) {
            Some(there) => *there = letter,
            None => self.line.push(letter),
        }
        self.at += 1;
    }

    fn control(&mut self, parameters: &str, last: u8) {
        let count = parameters.parse::<usize>().unwrap_or(1).clamp(1, LINE_LEN_MAX);
        match last {
            b'D' => self.at = self.at.saturating_sub(count),
            b'C' => self.at = (self.at + count).min(LINE_LEN_MAX),
            b'G' => self.at = count - 1,
            b'K' if parameters == "2" => self.line.clear(),
            b'K' if parameters != "1" => self.line.truncate(self.at),
            b'P' => {
                let end = (self.at + count).min(self.line.len());
                self.line.drain(self.at.min(end)..end);
            }
            _ => {}
        }
    }

    /// The line that is not ended yet.
    pub(super) fn line(&self) -> String {
        self.line.iter().collect::<String>().trim_end().to_owned()
    }

    /// How many lines have ended.
    pub(super) fn count(&self) -> usize {
        self.lines.len()
    }

    /// Forgets the line that is not ended yet.
    pub(super) fn clear_line(&mut self) {
        self.line.clear();
        self.at = 0;
    }

    /// The lines that have ended; the screen is empty afterwards.
    pub(super) fn wipe(&mut self) -> Vec<String> {
        self.clear_line();
        std::mem::take(&mut self.lines)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(bytes: &str, lines: &[&str], last: &str) {
        let mut screen = Screen::default();
        // However the bytes are cut.
        bytes.bytes().for_each(|byte| screen.take(&[byte]));
        assert_eq!(screen.line(), last, "{bytes:?}");
        assert_eq!(screen.wipe(), lines, "{bytes:?}");
    }

    #[test]
    fn what_was_rubbed_out_is_gone() {
        check("vlan 2\r\nsw#", &["vlan 2"], "sw#");
        check("a\r\n--More--\r        \rb\r\n", &["a", "b"], "");
        check("--More--\x08\x08\x08\x08\x08\x08\x08\x08        \x08\x08\x08\x08\x08\x08\x08\x08b\r\n", &["b"], "");
        check("  ---- More ----\x1b[16D                \x1b[16Db\r\n", &["b"], "");
        check("\x1b]0;title\x07\x1b[1;32m[a@b]\x1b[m > ", &[], "[a@b] >");
        check("wrong\x1b[2K\rright", &[], "right");
        check("x\u{e9}", &[], "x\u{fffd}\u{fffd}");
    }

    #[test]
    fn no_line_grows_without_end() {
        let mut screen = Screen::default();
        screen.take(b"\x1b[99999999999Cx\x1b[5Dy");
        screen.take(&[b'z'; 10]);
        assert_eq!(screen.line().len(), LINE_LEN_MAX);
    }
}
