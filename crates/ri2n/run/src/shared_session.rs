//! The file by which programs join a broker that serves more than one command.
//!
//! It holds what programs are told by their environment ([`ri2n_session::BROKER_VARIABLE`]). Whoever can read it can join, and programs that
//! have joined trust each other: only its owner, unless a group is named. Its broker keeps it locked for as long as it lives, so a file that one
//! left behind is told from one in use.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Read, Seek, Write},
    os::{
        fd::AsFd,
        unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt},
    },
    path::{Path, PathBuf},
};

use nix::{
    errno::Errno,
    fcntl::{Flock, FlockArg},
    unistd::{Group, fchown},
};

use ri2n_io::{Descriptors, SavedDescriptor};

use crate::broker::Session;

/// Why a session cannot be served or joined.
#[derive(Debug, thiserror::Error)]
pub enum SharedSessionError {
    /// Another broker serves it.
    #[error("{}: another broker serves this session: choose another name, or end that broker (`ri2n status` names its process)", .0.display())]
    Served(PathBuf),
    /// None does.
    #[error(
        "no broker serves the session {name}: start one by `ri2n broker --session {name}` (looked for {})",
        listed(places)
    )]
    NotServed {
        /// As it was asked for.
        name: String,
        /// Where its file was looked for.
        places: Vec<PathBuf>,
    },
    /// There is no such group.
    #[error("{0}: no such group")]
    NoGroup(String),
    /// The file cannot be used.
    #[error("{}: {source}", path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

fn listed(places: &[PathBuf]) -> String {
    places.iter().map(|place| place.display().to_string()).collect::<Vec<_>>().join(" and ")
}

/// The file of a session that this process serves. Dropping it removes the file.
#[derive(Debug)]
pub struct SharedSession {
    path: PathBuf,
    file: Flock<File>,
}

/// Where a broker puts the file of a session: at a path, if the name is one, else in this directory.
pub fn place(name: &str, directory: &Path) -> PathBuf {
    if name.contains('/') { PathBuf::from(name) } else { directory.join(format!("{name}.session")) }
}

/// Where the file of a machine's session is, whose broker is the service `ri2n-broker@NAME`.
fn machine_place(name: &str) -> PathBuf {
    PathBuf::from(format!("/run/ri2n-broker-{name}/session"))
}

impl SharedSession {
    /// Takes a session for this process. Members of `group` may join it too.
    ///
    /// # Errors
    /// If another serves it, or the file cannot be made.
    pub fn claim(path: &Path, group: Option<&str>) -> Result<Self, SharedSessionError> {
        let failed = |source| SharedSessionError::File { path: path.to_owned(), source };
        let group = match group {
            None => None,
            Some(name) => {
                let found = Group::from_name(name).map_err(|error| failed(error.into()))?;
                Some(found.ok_or_else(|| SharedSessionError::NoGroup(name.to_owned()))?)
            }
        };
        if let Some(directory) = path.parent().filter(|directory| !directory.as_os_str().is_empty()) {
            // Members of the group must get to the file; what else is there has rights of its own.
            let mode = if group.is_some() { 0o711 } else { 0o700 };
            fs::DirBuilder::new().recursive(true).mode(mode).create(directory).map_err(failed)?;
        }
        let mut options = OpenOptions::new();
        let options = options.read(true).write(true).create(true).truncate(false).mode(0o600);
        let file = options.custom_flags(libc::O_NOFOLLOW).open(path).map_err(failed)?;
        let file = Flock::lock(file, FlockArg::LockExclusiveNonblock).map_err(|(_, errno)| match errno {
            Errno::EWOULDBLOCK => SharedSessionError::Served(path.to_owned()),
            other => failed(other.into()),
        })?;
        let claimed = Self { path: path.to_owned(), file };
        claimed.file.set_len(0).map_err(failed)?;
        if let Some(group) = &group {
            fchown(claimed.file.as_fd(), None, Some(group.gid)).map_err(|error| failed(error.into()))?;
        }
        let mode = if group.is_some() { 0o640 } else { 0o600 };
        claimed.file.set_permissions(fs::Permissions::from_mode(mode)).map_err(failed)?;
        Ok(claimed)
    }

    /// Saves the locked file for a handover.
    ///
    /// # Errors
    /// If the file is not open.
    pub(crate) fn save(&self, descriptors: &mut Descriptors) -> io::Result<SavedDescriptor> {
        descriptors.keep(self.file.as_fd())
    }

    /// Resumes a saved session.
    ///
    /// # Errors
    /// If its file is not open, or no longer locked.
    pub fn resume(path: &Path, saved: SavedDescriptor) -> Result<Self, SharedSessionError> {
        let failed = |source| SharedSessionError::File { path: path.to_owned(), source };
        let file = File::from(saved.take().map_err(failed)?);
        // flock(2) locks belong to the open file description, which execve(2) keeps.
        let locked = Flock::lock(file, FlockArg::LockExclusiveNonblock);
        let file = locked.map_err(|(_, errno)| failed(errno.into()))?;
        Ok(Self { path: path.to_owned(), file })
    }

    /// Lets programs join from now on.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn open(&mut self, session: &Session) -> io::Result<()> {
        self.file.rewind()?;
        self.file.set_len(0)?;
        self.file.write_all(format!("{}\n", session.variable).as_bytes())
    }
}

impl Drop for SharedSession {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

/// Finds the broker of a session: this user's, whose runtime directory is named, or the machine's.
///
/// # Errors
/// If nobody serves it, or its file may not be read.
pub fn join(name: &str, directory: &Path) -> Result<Session, SharedSessionError> {
    let mut places = vec![place(name, directory)];
    if !name.contains('/') {
        places.push(machine_place(name));
    }
    for path in &places {
        let failed = |source| SharedSessionError::File { path: path.clone(), source };
        let file = match File::open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => return Err(failed(error)),
        };
        // One that could be locked has been left behind.
        let Err((mut file, Errno::EWOULDBLOCK)) = Flock::lock(file, FlockArg::LockSharedNonblock) else { continue };
        let mut text = String::new();
        file.read_to_string(&mut text).map_err(failed)?;
        // Without its end the broker is not ready yet.
        if let Some(variable) = text.strip_suffix('\n') {
            return Ok(Session { variable: variable.to_owned() });
        }
    }
    Err(SharedSessionError::NotServed { name: name.to_owned(), places })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_is_joined_while_it_is_served() {
        let directory = std::env::temp_dir().join(format!("ri2n-shared-session-{}", std::process::id()));
        let path = place("cluster", &directory);
        assert!(matches!(join("cluster", &directory), Err(SharedSessionError::NotServed { .. })));
        let mut served = SharedSession::claim(&path, None).unwrap();
        assert!(matches!(SharedSession::claim(&path, None), Err(SharedSessionError::Served(_))));
        assert!(join("cluster", &directory).is_err(), "it is not ready");
        let session = Session { variable: "name,0123".into() };
        served.open(&session).unwrap();
        assert_eq!(join("cluster", &directory).unwrap(), session);
        assert_eq!(join(path.to_str().unwrap(), &directory).unwrap(), session, "by its path");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        drop(served);
        assert!(!path.exists());
        // As a broker leaves it that is killed.
        fs::write(&path, "name,4567\n").unwrap();
        assert!(join("cluster", &directory).is_err());
        drop(SharedSession::claim(&path, None).unwrap());
        let error = SharedSession::claim(&path, Some("no-such-group")).unwrap_err();
        assert!(error.to_string().contains("no-such-group"));
        fs::remove_dir_all(&directory).unwrap();
    }
}
