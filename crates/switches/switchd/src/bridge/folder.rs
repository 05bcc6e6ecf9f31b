//! The folder that outlives the program: what is saved, and how often it has started.
//!
//! The folder may be an unprivileged user's while root opens it, so nothing in it is trusted to be what its name says: files
//! are opened without following links, and only ones with a single name are read. A file is replaced as a whole: a draft is
//! written, synced and renamed, and the folder synced, so that a power loss leaves the old file or the new one.

use std::{
    ffi::OsStr,
    fs::{self, File},
    io::{self, Read as _, Write as _},
    os::{
        fd::AsRawFd as _,
        unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _},
    },
    path::{Path, PathBuf},
};

/// Longest file that is read, in bytes: some ten times what 16,384 entries take.
const FILE_LEN_MAX: u64 = 32 << 20;

/// 2025-01-01, in seconds since 1970: where counting by the clock begins, so that it fits 31 bits until 2093.
const CLOCK_EPOCH_UNIX_S: u64 = 1_735_689_600;

/// A folder that is open.
#[derive(Debug)]
pub(super) struct Folder {
    opened: File,
    shown: PathBuf,
}

impl Folder {
    /// Opens a folder, and makes it, for its owner alone, if it is not there. Its parents are made as usual. A link is
    /// followed only where nobody else can have put it, as systemd does for a service with a user of its own.
    ///
    /// # Errors
    /// If it cannot be made, or is a link that somebody else may have put there.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        fs::create_dir_all(parent)?;
        match fs::DirBuilder::new().mode(0o700).create(path) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
        let holder = File::options().read(true).custom_flags(libc::O_DIRECTORY).open(parent)?;
        let follow = if is_ours_alone(&holder.metadata()?) { 0 } else { libc::O_NOFOLLOW };
        let inside = match path.file_name() {
            Some(name) => inside(&holder, name),
            None => path.to_owned(),
        };
        let opened = File::options().read(true).custom_flags(libc::O_DIRECTORY | follow).open(inside)?;
        Ok(Self { opened, shown: path.to_owned() })
    }

    /// Gives a folder of root's to a user, with the files in it.
    ///
    /// # Errors
    /// As [`linux_net::privileges::give`].
    pub(super) fn give(&self, user: &str) -> io::Result<()> {
        linux_net::privileges::give(&self.opened, &self.shown, user)
    }

    /// The path of a file in it, for people.
    pub(super) fn shown(&self, name: &str) -> String {
        self.shown.join(name).display().to_string()
    }

    /// What is in a file; none if there is no such file.
    ///
    /// # Errors
    /// If it is no plain file of one name, too long, or no text.
    pub(super) fn read(&self, name: &str) -> io::Result<Option<String>> {
        let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK;
        let file = match File::options().read(true).custom_flags(flags).open(self.at(name)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) if error.raw_os_error() == Some(libc::ELOOP) => {
                return Err(io::Error::other("is a symbolic link, which is not followed here; remove it"));
            }
            file => file?,
        };
        let metadata = file.metadata()?;
        if !metadata.is_file() || metadata.nlink() != 1 {
            return Err(io::Error::other("is no plain file with one name; remove it"));
        }
        let mut text = String::new();
        file.take(FILE_LEN_MAX + 1).read_to_string(&mut text)?;
        if text.len() as u64 > FILE_LEN_MAX {
            return Err(io::Error::other(format!("has more than {FILE_LEN_MAX} bytes; remove it")));
        }
        Ok(Some(text))
    }

    /// Replaces a file, or makes it.
    ///
    /// # Errors
    /// Those of the system; the file is then as it was.
    pub(super) fn replace(&self, name: &str, text: &str) -> io::Result<()> {
        let draft = self.at(&format!("{name}.new"));
        // A draft that a crash left, or somebody's link.
        match fs::remove_file(&draft) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let written = (|| {
            let mut file = File::options().write(true).create_new(true).mode(0o600).open(&draft)?;
            file.write_all(text.as_bytes())?;
            file.sync_all()?;
            fs::rename(&draft, self.at(name))?;
            self.opened.sync_all()
        })();
        written.inspect_err(|_| drop(fs::remove_file(&draft)))
    }

    fn at(&self, name: &str) -> PathBuf {
        inside(&self.opened, name.as_ref())
    }
}

/// A path that leads through a folder that is open, whatever is at the folder's own path by now.
fn inside(folder: &File, name: &OsStr) -> PathBuf {
    Path::new("/proc/self/fd").join(folder.as_raw_fd().to_string()).join(name)
}

/// Whether nobody but root and this program's user can change what is in a folder.
fn is_ours_alone(folder: &fs::Metadata) -> bool {
    let of_others = libc::S_IWGRP | libc::S_IWOTH;
    [0, nix::unistd::geteuid().as_raw()].contains(&folder.uid()) && folder.mode() & of_others == 0
}

/// How often an engine has started, this start included, from what was stored at the one before and the clock.
///
/// Managers refuse an engine whose count went back (RFC 3414, 2.2.2 and 3.2), so the count is never less than the seconds since
/// the beginning of 2025: programs start less often than once a second, so that number is beyond every count that a lost or
/// corrupt file may have held. Where the clock is wrong as well the count begins with 1.
pub(super) fn next_boots(stored: Option<i32>, unix_s: u64) -> i32 {
    let by_clock = i32::try_from(unix_s.saturating_sub(CLOCK_EPOCH_UNIX_S)).unwrap_or(i32::MAX);
    stored.filter(|count| *count >= 0).unwrap_or(0).saturating_add(1).max(by_clock)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    const NOW: u64 = CLOCK_EPOCH_UNIX_S + 50_000_000;

    #[test]
    fn starts_are_counted_and_never_back() {
        for (stored, unix_s, expected) in [
            (None, NOW, 50_000_000),
            (Some(7), NOW, 50_000_000),
            (Some(49_999_999), NOW, 50_000_000),
            (Some(50_000_000), NOW, 50_000_001),
            // Without a clock.
            (None, 0, 1),
            (Some(50_000_000), 0, 50_000_001),
            (Some(-4), 0, 1),
            (Some(i32::MAX), NOW, i32::MAX),
            (None, u64::MAX, i32::MAX),
        ] {
            assert_eq!(next_boots(stored, unix_s), expected, "{stored:?} at {unix_s}");
        }
        // A program that starts every second, and loses its file at any moment.
        let mut last = 0;
        for second in 0..1000 {
            let stored = (second % 7 != 3).then_some(last);
            let boots = next_boots(stored, NOW + second);
            assert!(boots > last, "{second}");
            last = boots;
        }
    }

    #[test]
    fn nothing_is_written_or_read_through_a_link() {
        let place = std::env::temp_dir().join(format!("espalier-folder-{}", std::process::id()));
        let folder = Folder::open(&place.join("state")).expect("room");
        let secret = place.join("secret");
        fs::write(&secret, "untouched").expect("room");
        assert_eq!(folder.read("br0.boots").expect("no file is fine"), None);
        folder.replace("br0.boots", "1\n").expect("room");
        folder.replace("br0.boots", "2\n").expect("room");
        assert_eq!(folder.read("br0.boots").expect("a file").as_deref(), Some("2\n"));
        for name in ["br0.boots", "br0.boots.new"] {
            let link = place.join("state").join(name);
            let _ = fs::remove_file(&link);
            std::os::unix::fs::symlink(&secret, &link).expect("room");
        }
        let refused = folder.read("br0.boots").expect_err("a link");
        assert!(refused.to_string().contains("symbolic link"), "{refused}");
        folder.replace("br0.boots", "3\n").expect("the link is replaced, not what it leads to");
        assert_eq!(fs::read_to_string(&secret).expect("it is there"), "untouched");
        assert_eq!(folder.read("br0.boots").expect("a file").as_deref(), Some("3\n"));
        fs::hard_link(&secret, place.join("state/br0.json")).expect("room");
        assert!(folder.read("br0.json").is_err(), "a second name of something else");
        // The folder is moved away and a link put there: what was opened counts.
        fs::rename(place.join("state"), place.join("elsewhere")).expect("own");
        std::os::unix::fs::symlink("/", place.join("state")).expect("room");
        fs::set_permissions(&place, fs::Permissions::from_mode(0o777)).expect("own");
        assert!(Folder::open(&place.join("state")).is_err(), "anybody may have put the link there");
        fs::set_permissions(&place, fs::Permissions::from_mode(0o755)).expect("own");
        assert!(Folder::open(&place.join("state")).is_ok(), "nobody else can have");
        folder.replace("br0.boots", "4\n").expect("it is open");
        assert_eq!(fs::read_to_string(place.join("elsewhere/br0.boots")).expect("there"), "4\n");
        fs::remove_dir_all(&place).expect("own");
    }
}
