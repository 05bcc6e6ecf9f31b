//! A store in a folder: a file for each record, and a lock that one deployment at a time holds.

use std::{
    fs,
    io::{self, Write as _},
    net::IpAddr,
    path::{Path, PathBuf},
    thread,
    time::{Duration, Instant},
};

use enrol::kept::{KeptLedger, parse_ledger, write_ledger};
use rollout::{
    deploy::Journal,
    journal::{parse_journal, write_journal},
};
use rustix::{
    fs::{FlockOperation, flock},
    io::Errno,
};
use switch_model::mark::Mark;

use super::Store;
use crate::{Error, error::OnFile as _};

const JOURNAL: &str = "journal.json";
const GENERATION: &str = "generation";
const CLAIMS: &str = "claims";
const LEDGER_PREFIX: &str = "enrol-";

/// How long a lock is awaited: a program that is just being started may hold what its parent has given up, until it runs.
const LOCK_PATIENCE: Duration = Duration::from_millis(200);
const LOCK_LOOK: Duration = Duration::from_millis(5);

fn lock_soon(file: &fs::File) -> Result<(), Errno> {
    let until = Instant::now() + LOCK_PATIENCE;
    loop {
        match flock(file, FlockOperation::NonBlockingLockExclusive) {
            Err(Errno::WOULDBLOCK) if Instant::now() < until => thread::sleep(LOCK_LOOK),
            result => return result,
        }
    }
}

/// A folder that holds lock, journal, claims, generation and ledgers.
#[derive(Debug)]
pub struct FolderStore {
    folder: PathBuf,
    /// Held until this is dropped or the program ends, however it does.
    _lock: Option<fs::File>,
}

impl FolderStore {
    /// Opens the store for a deployment and takes its lock. Creates the folder if it is missing.
    ///
    /// # Errors
    /// [`Error::Request`], if another process deploys from here; [`Error::File`].
    pub fn open(folder: &Path) -> Result<Self, Error> {
        fs::create_dir_all(folder).on(folder)?;
        let path = folder.join("lock");
        // The file stays: whoever removed it might remove the next one's.
        let mut lock = fs::File::options().read(true).write(true).create(true).truncate(false).open(&path).on(&path)?;
        match lock_soon(&lock) {
            Ok(()) => {}
            Err(Errno::WOULDBLOCK) => {
                let owner = fs::read_to_string(&path).unwrap_or_default();
                return Err(Error::Request(format!(
                    "a deployment is under way from here (process {}); wait for it, or use another --state",
                    owner.trim()
                )));
            }
            Err(error) => return Err(std::io::Error::from(error)).on(&path),
        }
        lock.set_len(0).and_then(|()| write!(lock, "{}", std::process::id())).on(&path)?;
        Ok(Self { folder: folder.to_owned(), _lock: Some(lock) })
    }

    /// Opens the store without the lock, for requests that do not deploy. The first write creates the folder.
    pub fn shared(folder: &Path) -> Self {
        Self { folder: folder.to_owned(), _lock: None }
    }

    /// Replaces a file atomically: after a crash it has either the old content or the new.
    fn put(&self, name: &str, text: &str) -> Result<(), Error> {
        let (path, draft) = (self.folder.join(name), self.folder.join(format!("{name}.new")));
        let written = (|| {
            let mut file = fs::File::create(&draft)?;
            file.write_all(text.as_bytes())?;
            file.sync_all()?;
            fs::rename(&draft, &path)?;
            self.sync()
        })();
        written.on(&path)
    }

    /// Syncs the folder, so that files created and removed survive a crash.
    fn sync(&self) -> std::io::Result<()> {
        fs::File::open(&self.folder)?.sync_all()
    }

    /// The text of a file, if it is there.
    fn get(&self, path: &Path) -> Result<Option<String>, Error> {
        match fs::read_to_string(path) {
            Ok(text) => Ok(Some(text)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error).on(path),
        }
    }

    /// Removes a file, if it is there, on the disk as well: after a crash nothing of it is there.
    fn remove(&self, path: &Path) -> Result<(), Error> {
        match fs::remove_file(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            result => result.and_then(|()| self.sync()).on(path),
        }
    }

    fn ledger_name(address: IpAddr) -> String {
        format!("{LEDGER_PREFIX}{}.json", address.to_string().replace(':', "_"))
    }
}

impl Store for FolderStore {
    fn journal(&self) -> Result<Option<Journal>, Error> {
        let path = self.folder.join(JOURNAL);
        let Some(text) = self.get(&path)? else { return Ok(None) };
        parse_journal(&text).map(Some).map_err(|error| Error::Request(format!("{}: {error}", path.display())))
    }

    fn record(&self, journal: &Journal) -> Result<(), Error> {
        self.put(JOURNAL, &write_journal(journal))
    }

    fn finish(&self) -> Result<(), Error> {
        self.remove(&self.folder.join(JOURNAL))
    }

    fn set_aside(&self) -> Result<String, Error> {
        let aside = self.folder.join("journal-set-aside.json");
        fs::rename(self.folder.join(JOURNAL), &aside).and_then(|()| self.sync()).on(&aside)?;
        Ok(aside.display().to_string())
    }

    fn generation(&self) -> Result<Option<u32>, Error> {
        let path = self.folder.join(GENERATION);
        let Some(text) = self.get(&path)? else { return Ok(None) };
        let parsed = text.trim().parse().map(Some);
        parsed.map_err(|_| Error::Request(format!("{}: {:?} is no generation", path.display(), text.trim())))
    }

    fn claims(&self) -> Result<Vec<Mark>, Error> {
        let text = self.get(&self.folder.join(CLAIMS))?.unwrap_or_default();
        // A last line that is cut off is of a tag that was never left.
        Ok(text.lines().filter_map(|line| line.parse().ok()).collect())
    }

    fn claim(&self, mark: Mark) -> Result<(), Error> {
        let path = self.folder.join(CLAIMS);
        if self.claims()?.contains(&mark) {
            return Ok(());
        }
        let mut file = fs::File::options().create(true).append(true).open(&path).on(&path)?;
        let written = file.write_all(format!("\n{mark}\n").as_bytes()).and_then(|()| file.sync_all());
        written.and_then(|()| self.sync()).on(&path)
    }

    fn settle(&self, generation: u32) -> Result<(), Error> {
        self.put(GENERATION, &format!("{generation}\n"))?;
        self.remove(&self.folder.join(CLAIMS))
    }

    fn ledgers(&self) -> Result<Vec<KeptLedger>, Error> {
        let entries = match fs::read_dir(&self.folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries.on(&self.folder)?,
        };
        let mut paths: Vec<PathBuf> =
            entries.map(|entry| entry.map(|entry| entry.path())).collect::<io::Result<_>>().on(&self.folder)?;
        paths.retain(|path| {
            let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
            name.starts_with(LEDGER_PREFIX) && name.ends_with(".json")
        });
        let mut ledgers = Vec::new();
        for path in paths {
            let Some(text) = self.get(&path)? else { continue };
            let ledger = parse_ledger(&text).map_err(|error| Error::Request(format!("{}: {error}", path.display())))?;
            ledgers.push(ledger);
        }
        ledgers.sort_by_key(|ledger| ledger.address.ip());
        Ok(ledgers)
    }

    fn keep_ledger(&self, ledger: &KeptLedger) -> Result<(), Error> {
        fs::create_dir_all(&self.folder).on(&self.folder)?;
        self.put(&Self::ledger_name(ledger.address.ip()), &write_ledger(ledger))
    }

    fn forget_ledger(&self, address: IpAddr) -> Result<(), Error> {
        self.remove(&self.folder.join(Self::ledger_name(address)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_deployment_at_a_time_and_a_dead_one_blocks_nobody() {
        let folder = std::env::temp_dir().join(format!("espalier-lock-{}", std::process::id()));
        let first = FolderStore::open(&folder).expect("free");
        let refused = FolderStore::open(&folder).map(drop).expect_err("taken").to_string();
        assert!(refused.contains(&format!("process {}", std::process::id())), "{refused}");
        drop(first);
        // One that died left its number, which some other process has by now, or nothing yet.
        for left in [std::process::id().to_string(), String::new()] {
            fs::write(folder.join("lock"), left).expect("a file");
            drop(FolderStore::open(&folder).expect("nobody holds it"));
        }
        fs::remove_dir_all(&folder).expect("a folder");
    }
}
