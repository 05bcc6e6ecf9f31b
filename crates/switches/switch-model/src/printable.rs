//! What switches say, made safe to print.

/// Text of a switch's as a person may be shown it: without the zero bytes that some agents end it with, and with nothing in it
/// that moves a cursor or begins a line.
pub fn told(octets: &[u8]) -> String {
    plain(String::from_utf8_lossy(octets).trim_end_matches('\0'))
}

/// The same of text that was put together with what a switch says.
pub fn plain(text: &str) -> String {
    text.chars().map(|letter| if letter.is_control() { char::REPLACEMENT_CHARACTER } else { letter }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_switch_says_cannot_paint_the_screen() {
        assert_eq!(told(b"g1\0\0"), "g1");
        assert_eq!(told("sw\u{e9} 7".as_bytes()), "sw\u{e9} 7");
        let said = told(b"\x1b[2J\rall is well\n\xc2\x9bH\xff");
        assert!(said.contains("all is well") && !said.contains(char::is_control), "{said:?}");
    }
}
