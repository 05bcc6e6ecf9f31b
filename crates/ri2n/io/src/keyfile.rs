//! Files of keys: one a line, the first for connections that are opened, all for those that are accepted.

use ri2n::{KEYS_MAX, Key, Keys};
use std::{
    fs::File,
    io::{self, Read},
    os::unix::fs::MetadataExt,
    path::Path,
};

/// Bits of a file's mode that let others than its owner in.
const OTHERS: u32 = 0o077;

/// Reads a file of keys.
///
/// # Errors
/// If it cannot be read, if others than its owner can read it, or if a line is no key.
pub(crate) fn read(path: &Path) -> Result<Keys, String> {
    let named = |what: String| format!("keys: {}: {what}", path.display());
    let mut text = String::new();
    let open = || -> io::Result<u32> {
        let mut file = File::open(path)?;
        file.read_to_string(&mut text)?;
        Ok(file.metadata()?.mode())
    };
    let mode = { open }().map_err(|error| named(error.to_string()))?;
    if mode & OTHERS != 0 {
        return Err(named(format!("others than its owner may use it (mode {:04o}); chmod 600 it", mode & 0o7777)));
    }
    parse(&text).map_err(named)
}

fn parse(text: &str) -> Result<Keys, String> {
    let is_blank = |line: &str| line.is_empty() || line.starts_with('#');
    let lines = text.lines().map(str::trim).enumerate().filter(|(_, line)| !is_blank(line));
    let keys: Vec<Key> = lines
        .map(|(at, line)| match line.strip_prefix("passphrase ") {
            Some(phrase) => Ok(Key::from_passphrase(phrase.trim())),
            None => key_bytes(line).map(Key::new).ok_or_else(|| {
                format!("line {}: 64 hexadecimal digits, or `passphrase` and a passphrase, are wanted", at + 1)
            }),
        })
        .collect::<Result<_, _>>()?;
    match keys.len() {
        0 => Err("no key".to_owned()),
        1..=KEYS_MAX => Ok(keys.into_iter().collect()),
        count => Err(format!("{count} keys; {KEYS_MAX} is the most")),
    }
}

/// The bytes of 64 hexadecimal digits.
pub(crate) fn key_bytes(digits: &str) -> Option<[u8; 32]> {
    let mut bytes = [0; 32];
    if digits.len() != 64 || !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return None;
    }
    for (at, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&digits[2 * at..2 * at + 2], 16).ok()?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{fs, os::unix::fs::PermissionsExt};

    #[test]
    fn the_first_key_is_used_and_all_are_accepted() {
        let digits = "0f".repeat(32);
        let keys = parse(&format!("# the newest first\n\n{digits}\n  passphrase four words of it \n")).unwrap();
        let expected = [Key::new([15; 32]), Key::from_passphrase("four words of it")];
        assert!(keys.iter().eq(&expected) && keys.first() == expected.first());
        for (wrong, says) in [
            ("", "no key"),
            ("# nothing\n", "no key"),
            ("\n\nzz", "line 3"),
            (&"0+".repeat(32), "line 1"),
            (&format!("{digits}\n").repeat(KEYS_MAX + 1), "17 keys"),
        ] {
            let message = parse(wrong).unwrap_err();
            assert!(message.contains(says), "{wrong}: {message}");
        }
    }

    #[test]
    fn a_file_that_others_can_read_is_refused() {
        let path = std::env::temp_dir().join(format!("ri2n-keys-{}", std::process::id()));
        fs::write(&path, "0f".repeat(32)).unwrap();
        let mut answers = Vec::new();
        for mode in [0o600, 0o400, 0o640, 0o604, 0o660] {
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            answers.push(read(&path).map(|keys| keys.iter().count()).map_err(|error| error.contains("chmod 600")));
        }
        fs::remove_file(&path).unwrap();
        assert_eq!(answers, [Ok(1), Ok(1), Err(true), Err(true), Err(true)]);
        assert!(read(&path).unwrap_err().contains("ri2n-keys-"));
    }
}
