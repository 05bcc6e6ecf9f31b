//! The folder that holds a deployment's lock, journal and generation.

use std::{
    fs,
    io::Write as _,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};
use rollout::{
    deploy::Journal,
    journal::{parse_journal, write_journal},
};
use rustix::{
    fs::{FlockOperation, flock},
    io::Errno,
};
use switch_model::mark::Mark;

use crate::failure::bad_input;

/// The folder that holds lock, journal and generation.
pub(super) struct State {
    folder: PathBuf,
    /// Held until the program ends, however it does.
    _lock: fs::File,
}

impl State {
    pub(super) fn open(folder: &Path) -> Result<Self> {
        fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
        let path = folder.join("lock");
        let shown = || path.display().to_string();
        // The file stays: whoever removed it might remove the next one's.
        let mut lock =
            fs::File::options().read(true).write(true).create(true).truncate(false).open(&path).with_context(shown)?;
        match flock(&lock, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(Errno::WOULDBLOCK) => {
                let owner = fs::read_to_string(&path).unwrap_or_default();
                return Err(bad_input(format!(
                    "a deployment is under way from here (process {}); wait for it, or use another --state",
                    owner.trim()
                )));
            }
            Err(error) => return Err(std::io::Error::from(error)).with_context(shown),
        }
        lock.set_len(0).and_then(|()| write!(lock, "{}", std::process::id())).with_context(shown)?;
        Ok(Self { folder: folder.to_owned(), _lock: lock })
    }

    /// Puts a file where a crash leaves either the old one or the new one.
    fn put(&self, name: &str, text: &str) -> Result<()> {
        let (path, draft) = (self.folder.join(name), self.folder.join(format!("{name}.new")));
        let written = (|| {
            let mut file = fs::File::create(&draft)?;
            file.write_all(text.as_bytes())?;
            file.sync_all()?;
            fs::rename(&draft, &path)?;
            self.sync()
        })();
        written.with_context(|| path.display().to_string())
    }

    /// Has the disk know which files there are.
    fn sync(&self) -> std::io::Result<()> {
        fs::File::open(&self.folder)?.sync_all()
    }

    pub(super) fn journal(&self) -> Result<Option<Journal>> {
        let path = self.folder.join("journal.json");
        match fs::read_to_string(&path) {
            Ok(text) => {
                parse_journal(&text).map(Some).map_err(|error| bad_input(format!("{}: {error}", path.display())))
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error).with_context(|| path.display().to_string()),
        }
    }

    pub(super) fn generation(&self) -> Result<Option<u32>> {
        let path = self.folder.join("generation");
        match fs::read_to_string(&path) {
            Ok(text) => match text.trim().parse() {
                Ok(generation) => Ok(Some(generation)),
                Err(_) => Err(bad_input(format!("{}: {:?} is no generation", path.display(), text.trim()))),
            },
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error).with_context(|| path.display().to_string()),
        }
    }

    pub(super) fn record(&self, journal: &Journal) -> Result<()> {
        self.put("journal.json", &write_journal(journal))
    }

    /// Marks that deployments from here were about to leave, and then died or were stopped.
    pub(super) fn claims(&self) -> Result<Vec<Mark>> {
        let path = self.folder.join("claims");
        match fs::read_to_string(&path) {
            // A last line that is cut off is of a mark that was never left.
            Ok(text) => Ok(text.lines().filter_map(|line| line.parse().ok()).collect()),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
            Err(error) => Err(error).with_context(|| path.display().to_string()),
        }
    }

    /// Remembers a mark that is about to be left, on the disk.
    pub(super) fn note(&self, mark: Mark) -> Result<()> {
        let path = self.folder.join("claims");
        if self.claims()?.contains(&mark) {
            return Ok(());
        }
        let open = fs::File::options().create(true).append(true).open(&path);
        let mut file = open.with_context(|| path.display().to_string())?;
        file.write_all(format!("\n{mark}\n").as_bytes()).with_context(|| path.display().to_string())?;
        file.sync_all().and_then(|()| self.sync()).with_context(|| path.display().to_string())
    }

    /// Remembers the generation of a mark as our own, and with it those that went before.
    pub(super) fn know(&self, mark: Option<Mark>) -> Result<()> {
        let Some(Mark { generation, .. }) = mark else { return Ok(()) };
        self.put("generation", &format!("{generation}\n"))?;
        let claims = self.folder.join("claims");
        match fs::remove_file(&claims) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(error).with_context(|| claims.display().to_string())
            }
            _ => Ok(()),
        }
    }

    /// Forgets the journal, on the disk as well: after a crash nothing of it is there to be taken back.
    pub(super) fn finish(&self) -> Result<()> {
        match fs::remove_file(self.folder.join("journal.json")) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
            result => result.context("remove the journal")?,
        }
        self.sync().with_context(|| self.folder.display().to_string())
    }

    /// Puts the journal aside, where nobody looks for it; its new name.
    pub(super) fn set_aside(&self) -> Result<PathBuf> {
        let aside = self.folder.join("journal-set-aside.json");
        let moved = fs::rename(self.folder.join("journal.json"), &aside).and_then(|()| self.sync());
        moved.with_context(|| aside.display().to_string())?;
        Ok(aside)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_deployment_at_a_time_and_a_dead_one_blocks_nobody() {
        let folder = std::env::temp_dir().join(format!("espalier-lock-{}", std::process::id()));
        let first = State::open(&folder).expect("free");
        let refused = State::open(&folder).map(drop).expect_err("taken").to_string();
        assert!(refused.contains(&format!("process {}", std::process::id())), "{refused}");
        drop(first);
        // One that died left its number, which some other process has by now, or nothing yet.
        for left in [std::process::id().to_string(), String::new()] {
            fs::write(folder.join("lock"), left).expect("a file");
            drop(State::open(&folder).expect("nobody holds it"));
        }
        fs::remove_dir_all(&folder).expect("a folder");
    }
}
