//! Credentials from a file that nobody else can read or has written.

use std::{fs, io::Read as _, os::unix::fs::MetadataExt as _, path::Path};

use drivers::credentials::{Keyring, parse_keyring};

use crate::{Error, error::OnFile as _};

/// Most bytes of a file of credentials.
const CREDENTIALS_LEN_MAX: u64 = 16 << 20;

/// Reads the credentials, from a file that nobody else can read or has written. The file is opened once, so what is judged is
/// what is read. `env` says what an environment variable holds, for passwords that the file leaves to one.
///
/// # Errors
/// [`Error::Request`], naming the file and the command that mends it; [`Error::File`].
pub fn read_keyring(path: &Path, env: &dyn Fn(&str) -> Option<String>) -> Result<Keyring, Error> {
    let way_out = "write one with a [default] table of user, auth-password and privacy-password; see docs/switches.md";
    let file =
        fs::File::open(path).map_err(|error| Error::Request(format!("{}: {error}; {way_out}", path.display())))?;
    let metadata = file.metadata().on(path)?;
    is_private(metadata.uid(), metadata.mode(), rustix::process::geteuid().as_raw())
        .map_err(|why| Error::Request(format!("{0}: {why} {0}", path.display())))?;
    let mut text = String::new();
    file.take(CREDENTIALS_LEN_MAX).read_to_string(&mut text).on(path)?;
    parse_keyring(&text, env).map_err(|error| Error::Request(format!("{}: {error}", path.display())))
}

/// Whether a file of this owner and mode holds what only user `us` has written and can read; if not, why, and the command that
/// mends it, less the file's name. Root's files are trusted: root can do anything anyway.
fn is_private(owner: u32, mode: u32, us: u32) -> Result<(), String> {
    if owner != us && owner != 0 {
        return Err(format!(
            "these credentials belong to user {owner}, who can change them and decide where you log in; chown {us}"
        ));
    }
    if mode & 0o077 != 0 {
        return Err("others can read these credentials; chmod 600".to_owned());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_are_of_their_owner_alone() {
        for (owner, mode, us) in
            [(1000, 0o100_600, 1000), (1000, 0o100_400, 1000), (0, 0o100_600, 1000), (0, 0o100_700, 0)]
        {
            assert_eq!(is_private(owner, mode, us), Ok(()), "{owner} {mode:o} {us}");
        }
        for mode in [0o100_640, 0o100_604, 0o100_620, 0o100_610, 0o100_666] {
            assert!(is_private(1000, mode, 1000).is_err_and(|why| why.ends_with("chmod 600")), "{mode:o}");
        }
        for (owner, us) in [(1001, 1000), (65_534, 0), (1000, 0)] {
            assert!(is_private(owner, 0o100_600, us).is_err_and(|why| why.ends_with(&format!("chown {us}"))));
        }
    }

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
                assert!(refused.contains("belong to user 65534"), "{refused}");
            }
            Err(error) => eprintln!("SKIPPED: a file of another user: {error}; run the tests as root"),
        }
        fs::remove_file(&path).expect("ours");
    }
}
