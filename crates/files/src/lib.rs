//! Files read up to a limit, and written as a whole or not at all.
//!
//! ```text
//!   write ─▶ NAME.partial-PID ─ sync ─ rename ─▶ NAME        what fails before the rename leaves the old file
//! ```
#![forbid(unsafe_code)]

use std::{
    fs,
    io::{self, Read as _, Write},
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    string::FromUtf8Error,
};

use thiserror::Error;

/// Most bytes that are read of a file: far beyond any cabling or plan.
pub const FILE_BYTES_MAX: u64 = 4 << 30;
/// Most files that are read of a folder.
const FILES_MAX: usize = 65_536;

/// Why a file cannot be read; the message names it.
#[derive(Debug, Error)]
pub enum ReadError {
    /// The system refuses.
    #[error("{}: {why}", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// The system's error.
        why: io::Error,
    },
    /// It is not UTF-8.
    #[error("{}: not a text file: {why}", path.display())]
    NotText {
        /// The file.
        path: PathBuf,
        /// Where it is not.
        why: FromUtf8Error,
    },
    /// Others can read or have written what is to be secret.
    #[error("{0}: {why} {0}", path.display())]
    NotPrivate {
        /// The file.
        path: PathBuf,
        /// Why, and the command that mends it, less the file's name.
        why: String,
    },
}

/// Why a file cannot be written.
#[derive(Debug, Error)]
pub enum WriteError {
    /// A device or pipe does not open.
    #[error("open {}", path.display())]
    Open {
        /// Which.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// Writing fails.
    #[error("write {}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
}

/// Reads a file, at most [`FILE_BYTES_MAX`] bytes of it.
///
/// # Errors
/// If it cannot be read.
pub fn read(path: &Path) -> Result<Vec<u8>, ReadError> {
    let mut bytes = Vec::new();
    let read = fs::File::open(path).and_then(|file| file.take(FILE_BYTES_MAX).read_to_end(&mut bytes));
    read.map_err(|why| ReadError::Io { path: path.to_owned(), why })?;
    Ok(bytes)
}

/// Reads a secret, from a file that nobody else can read or has written; `what` names it in messages. The file is opened once, so
/// what is judged is what is read. At most [`FILE_BYTES_MAX`] bytes.
///
/// # Errors
/// If it cannot be read, or others can read or change it.
pub fn read_private(path: &Path, what: &str) -> Result<Vec<u8>, ReadError> {
    let io = |why| ReadError::Io { path: path.to_owned(), why };
    let file = fs::File::open(path).map_err(io)?;
    let metadata = file.metadata().map_err(io)?;
    is_private(what, (metadata.uid(), metadata.mode()), rustix::process::geteuid().as_raw())
        .map_err(|why| ReadError::NotPrivate { path: path.to_owned(), why })?;
    let mut bytes = Vec::new();
    file.take(FILE_BYTES_MAX).read_to_end(&mut bytes).map_err(io)?;
    Ok(bytes)
}

/// Whether a file of this owner and mode holds what only user `us` has written and can read; if not, why, and the command that
/// mends it, less the file's name. Root's files are trusted: root can do anything anyway.
fn is_private(what: &str, (owner, mode): (u32, u32), us: u32) -> Result<(), String> {
    if owner != us && owner != 0 {
        return Err(format!("user {owner} owns {what} and can change what is read; chown {us}"));
    }
    if mode & 0o077 != 0 {
        return Err(format!("others can read {what}; chmod 600"));
    }
    Ok(())
}

/// The content of a file as text.
///
/// # Errors
/// If it is not UTF-8.
pub fn text_of(path: &Path, bytes: Vec<u8>) -> Result<String, ReadError> {
    String::from_utf8(bytes).map_err(|why| ReadError::NotText { path: path.to_owned(), why })
}

/// Reads a text file.
///
/// # Errors
/// If it cannot be read or is not UTF-8.
pub fn read_text(path: &Path) -> Result<String, ReadError> {
    text_of(path, read(path)?)
}

/// Reads all text files of a folder: path and text of each, ordered by path. Folders within it are left out.
///
/// # Errors
/// If the folder or one of its files cannot be read, or a file is not UTF-8.
pub fn read_folder(folder: &Path) -> Result<Vec<(String, String)>, ReadError> {
    let mut paths = fs::read_dir(folder)
        .and_then(|entries| entries.take(FILES_MAX).map(|entry| Ok(entry?.path())).collect::<io::Result<Vec<_>>>())
        .map_err(|why| ReadError::Io { path: folder.to_owned(), why })?;
    paths.retain(|path| path.is_file());
    paths.sort();
    paths.iter().map(|path| Ok((path.display().to_string(), read_text(path)?))).collect()
}

/// Writes a file as a whole: under another name first, and then into place, so that an interrupted run or a full disk
/// leaves the old file. Devices and pipes are written to directly.
///
/// # Errors
/// If the file cannot be written.
pub fn write(path: &Path, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<(), WriteError> {
    let failed = |source| WriteError::Write { path: path.to_owned(), source };
    // Devices and pipes cannot be replaced.
    if fs::metadata(path).is_ok_and(|meta| !meta.is_file()) {
        let mut file = fs::OpenOptions::new()
            .write(true)
            .open(path)
            .map_err(|source| WriteError::Open { path: path.to_owned(), source })?;
        return write(&mut file).map_err(failed);
    }
    let partial = partial(path);
    let written = (|| {
        let mut file = io::BufWriter::new(fs::File::create(&partial)?);
        write(&mut file)?;
        file.into_inner().map_err(io::IntoInnerError::into_error)?.sync_all()?;
        fs::rename(&partial, path)
    })();
    if written.is_err() {
        // The write already failed; a leftover that cannot be removed either adds nothing to say.
        let _ = fs::remove_file(&partial);
    }
    written.map_err(failed)
}

/// The name under which this process writes a file before it is whole.
pub fn partial(path: &Path) -> PathBuf {
    let mut partial = path.as_os_str().to_owned();
    partial.push(format!(".partial-{}", std::process::id()));
    PathBuf::from(partial)
}

#[cfg(test)]
mod tests {
    use std::error::Error as _;

    use super::*;

    /// A folder of its own for a test, removed with it.
    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            let path = std::env::temp_dir().join(format!("espalier-files-{name}-{}", std::process::id()));
            fs::create_dir_all(&path).expect("a folder");
            Self(path)
        }

        fn names(&self) -> Vec<String> {
            let entries = fs::read_dir(&self.0).expect("a folder").flatten();
            entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn a_write_that_fails_leaves_the_old_file_and_nothing_else() {
        let folder = Folder::new("whole");
        let path = folder.0.join("kept");
        write(&path, |out| out.write_all(b"old")).expect("it is written");
        let failed = write(&path, |out| {
            out.write_all(b"half of the new")?;
            Err(io::Error::other("no space"))
        });
        let error = failed.expect_err("it fails");
        let cause = error.source().expect("the system's error").to_string();
        assert_eq!((error.to_string(), cause.as_str()), (format!("write {}", path.display()), "no space"));
        assert_eq!((fs::read_to_string(&path).expect("a file").as_str(), folder.names().len()), ("old", 1));
        write(&path, |out| out.write_all(b"new")).expect("it is written");
        assert_eq!((read_text(&path).expect("a text").as_str(), folder.names().len()), ("new", 1));
    }

    #[test]
    fn a_secret_is_of_its_owner_alone() {
        for (owner, mode, us) in
            [(1000, 0o100_600, 1000), (1000, 0o100_400, 1000), (0, 0o100_600, 1000), (0, 0o100_700, 0)]
        {
            assert_eq!(is_private("it", (owner, mode), us), Ok(()), "{owner} {mode:o} {us}");
        }
        for mode in [0o100_640, 0o100_604, 0o100_620, 0o100_610, 0o100_666] {
            let refused = is_private("it", (1000, mode), 1000);
            assert_eq!(refused, Err("others can read it; chmod 600".to_owned()), "{mode:o}");
        }
        for (owner, us) in [(1001, 1000), (65_534, 0), (1000, 0)] {
            let refused = is_private("it", (owner, 0o100_600), us);
            assert!(refused.is_err_and(|why| why.ends_with(&format!("chown {us}"))));
        }
    }

    #[test]
    fn texts_of_a_folder_come_by_name_and_a_fault_names_its_file() {
        let folder = Folder::new("texts");
        for name in ["b", "a", "c"] {
            fs::write(folder.0.join(name), name).expect("a file");
        }
        fs::create_dir(folder.0.join("inner")).expect("a folder");
        let texts: Vec<String> = read_folder(&folder.0).expect("texts").into_iter().map(|(_, text)| text).collect();
        assert_eq!(texts, ["a", "b", "c"]);
        fs::write(folder.0.join("b"), [0xff]).expect("a file");
        let error = read_folder(&folder.0).expect_err("no text").to_string();
        assert!(error.starts_with(&format!("{}: not a text file: ", folder.0.join("b").display())), "{error}");
        assert!(read(&folder.0.join("d")).expect_err("no file").to_string().contains("/d: No such file"));
    }
}
