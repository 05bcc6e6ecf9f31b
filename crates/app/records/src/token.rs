//! Names that nobody else chooses.

use std::fmt::Write as _;

use rustix::rand::{GetRandomFlags, getrandom};

/// Random bytes of a name: two equal ones are not to be expected.
const RANDOM_LEN: usize = 16;

/// A name that no other process has chosen or will choose, as hexadecimal digits.
pub(crate) fn unique_token() -> String {
    let mut random = [0; RANDOM_LEN];
    let mut filled = 0;
    while filled < RANDOM_LEN {
        // Linux gives as few bytes at once without failing; only a signal before it has started interrupts it.
        filled += getrandom(&mut random[filled..], GetRandomFlags::empty()).unwrap_or(0);
    }
    random.iter().fold(String::new(), |mut text, byte| {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}
