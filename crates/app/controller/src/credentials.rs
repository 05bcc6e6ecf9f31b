//! Credentials from a file that nobody else can read or has written.

use std::path::Path;

use drivers::credentials::{Keyring, parse_keyring};
use files::{ReadError, read_private, text_of};

use crate::Error;

/// Reads the credentials, from a file that nobody else can read or has written. `env` says what an environment variable holds, for
/// passwords that the file leaves to one.
///
/// # Errors
/// [`Error::Request`], naming the file and the command that mends it.
pub fn read_keyring(path: &Path, env: &dyn Fn(&str) -> Option<String>) -> Result<Keyring, Error> {
    let way_out = "write one with a [default] table of user, auth-password and privacy-password; see docs/switches.md";
    let read = read_private(path, "these credentials").and_then(|bytes| text_of(path, bytes));
    let text = read.map_err(|error| match error {
        ReadError::Io { .. } => Error::Request(format!("{error}; {way_out}")),
        error => Error::Request(error.to_string()),
    })?;
    parse_keyring(&text, env).map_err(|error| Error::Request(format!("{}: {error}", path.display())))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// What the way out says is enough; where the owner can be changed, another's file is refused.
    #[test]
    fn a_file_of_credentials_is_judged_as_it_is_opened() {
        let path = std::env::temp_dir().join(format!("espalier-credentials-{}.toml", std::process::id()));
        let set_mode = |mode: u32| {
            use std::os::unix::fs::PermissionsExt as _;
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).expect("its mode");
        };
        fs::write(&path, "[default]\ncommunity = \"private\"\n").expect("a file");
        set_mode(0o644);
        let refused = read_keyring(&path, &|_| None).expect_err("others can read it").to_string();
        assert!(refused.ends_with(&format!("chmod 600 {}", path.display())), "{refused}");
        set_mode(0o600);
        assert!(read_keyring(&path, &|_| None).is_ok());
        match std::os::unix::fs::chown(&path, Some(65_534), None) {
            Ok(()) => {
                let refused = read_keyring(&path, &|_| None).expect_err("it is another user's").to_string();
                assert!(refused.contains("user 65534 owns these credentials"), "{refused}");
            }
            Err(error) => eprintln!("SKIPPED: a file of another user: {error}; run the tests as root"),
        }
        fs::remove_file(&path).expect("ours");
    }
}
