//! The digest of a plan file: SHA-256 in hexadecimal digits.

use std::{fmt::Write as _, io};

use sha2::{Digest, Sha256};

/// Bytes as lowercase hexadecimal digits.
pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").expect("writing to a string");
        text
    })
}

/// A writer that keeps nothing but the digest.
pub(super) struct Hashing(pub(super) Sha256);

impl io::Write for Hashing {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
