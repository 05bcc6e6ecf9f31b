//! The state directories of labs: claiming a name, reading and changing a layout under its lock.
//!
//! ```text
//! /run/espalier/lab/NAME/layout.json   where everything is
//!                        plan          the plan's own text, if the builder had it
//!                        finished      there once the lab is whole
//!                        lock          held by whoever changes the layout, or must not see it change
//! ```

use std::{
    fs::{self, File},
    io::{self, Write as _},
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
};

use nix::{
    errno::Errno,
    fcntl::{Flock, FlockArg},
};
use serde::Deserialize;

use crate::{
    LabError, backlog,
    error::Context,
    layout::{LAYOUT_VERSION, Layout},
    name::{check_lab_name, namespace_prefix},
    netns,
};

const LABS: &str = "/run/espalier/lab";

/// The names of all labs, finished or not, sorted.
///
/// # Errors
/// [`LabError::Io`] if the state directory cannot be read.
pub fn list() -> Result<Vec<String>, LabError> {
    let entries = match fs::read_dir(LABS) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.context("list", LABS, "read state")?,
    };
    let mut names: Vec<String> = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok()).collect();
    names.sort_unstable();
    Ok(names)
}

/// The layout of a lab that nobody else reads or changes while this lives.
pub(crate) struct Changing {
    pub(crate) layout: Layout,
    _lock: Flock<File>,
}

impl Changing {
    /// Waits until nobody else reads or changes the layout of a lab, and reads it.
    ///
    /// # Errors
    /// As [`Lab::open`].
    pub(crate) fn begin(name: &str) -> Result<Self, LabError> {
        check_lab_name(name)?;
        let directory = Directory::of(name);
        // A lab that is not there has no lock, and says so best itself.
        directory.read()?;
        let lock = directory.lock(FlockArg::LockExclusive)?;
        Ok(Self { layout: directory.read()?, _lock: lock })
    }

    /// Writes the layout as it is now.
    ///
    /// # Errors
    /// [`LabError::Io`]; the file is then as it was.
    pub(crate) fn keep(&self) -> Result<(), LabError> {
        Directory::of(&self.layout.name).write_layout("change", &self.layout)
    }
}

/// The layout of a lab as its agents know it: read again when it has changed.
pub(crate) struct Current {
    directory: Directory,
    /// The file that was read, and its inode. Every change makes another file, and as long as this one is open none gets its
    /// inode.
    read: Option<(File, u64)>,
}

impl Current {
    /// The layout of a lab as it will be read first.
    pub(crate) fn of(name: &str) -> Self {
        Self { directory: Directory::of(name), read: None }
    }

    /// Keeps everybody from changing the layout while what is returned lives; none if the lab is just going down.
    pub(crate) fn hold(&self) -> Option<Flock<File>> {
        self.directory.lock(FlockArg::LockShared).ok()
    }

    /// The layout, if it has changed since the last call.
    pub(crate) fn changed(&mut self) -> Option<Layout> {
        let path = self.directory.layout();
        let known = self.read.as_ref().map(|(_, inode)| *inode);
        if known.is_some() && known == fs::metadata(&path).ok().map(|metadata| metadata.ino()) {
            return None;
        }
        let file = File::open(&path).ok()?;
        let inode = file.metadata().ok()?.ino();
        let layout = self.directory.read().ok()?;
        // A layout that came after the file was opened is read twice, and none is missed.
        self.read = Some((file, inode));
        Some(layout)
    }
}

/// A further file of a lab's state.
pub(crate) fn state_file(lab: &str, name: &str) -> PathBuf {
    Path::new(LABS).join(lab).join(name)
}

/// A lab's state directory.
pub(crate) struct Directory {
    name: String,
    path: PathBuf,
}

impl Directory {
    pub(crate) fn of(name: &str) -> Self {
        Self { name: name.to_owned(), path: Path::new(LABS).join(name) }
    }

    /// Takes a name; making a directory is atomic, so only one process gets it.
    ///
    /// # Errors
    /// [`LabError::NameInUse`] also for namespaces of the name that no state belongs to.
    pub(crate) fn claim(name: &str) -> Result<Self, LabError> {
        let directory = Self::of(name);
        // Another lab's end may take the directory of all labs away between the two steps.
        let claim = || fs::create_dir_all(LABS).and_then(|()| fs::create_dir(&directory.path));
        let claimed =
            claim().or_else(|error| if error.kind() == io::ErrorKind::NotFound { claim() } else { Err(error) });
        match claimed {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                return Err(LabError::NameInUse { name: name.to_owned() });
            }
            made => made.context("up", name, "make state directory")?,
        }
        let stray = netns::list(&namespace_prefix(name)).context("up", name, "list namespaces")?;
        if stray.is_empty() {
            return Ok(directory);
        }
        directory.remove()?;
        Err(LabError::NameInUse { name: name.to_owned() })
    }

    /// The layout of a finished lab.
    pub(crate) fn read(&self) -> Result<Layout, LabError> {
        let name = self.name.as_str();
        let text = match fs::read(self.layout()) {
            Err(error) if error.kind() == io::ErrorKind::NotFound && !self.path.exists() => {
                return Err(LabError::NoSuchLab { name: name.to_owned(), known: list()? });
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(LabError::Unfinished { name: name.to_owned() });
            }
            text => text.context("open", name, "read layout")?,
        };
        if !self.finished().exists() {
            return Err(LabError::Unfinished { name: name.to_owned() });
        }
        let state_error = |source| LabError::State { name: name.to_owned(), path: self.layout(), source };
        // Layouts of other versions have other fields, and the version is what to say of them.
        let Version { version } = serde_json::from_slice(&text).map_err(state_error)?;
        if version != LAYOUT_VERSION {
            return Err(state_error(serde::de::Error::custom(format!("format version {version}"))));
        }
        serde_json::from_slice(&text).map_err(state_error)
    }

    fn lock(&self, how: FlockArg) -> Result<Flock<File>, LabError> {
        let path = self.path.join("lock");
        let file = File::options().create(true).truncate(false).write(true).open(path);
        let file = file.context("open", &self.name, "lock")?;
        Flock::lock(file, how).map_err(|(_, errno)| errno).context("open", &self.name, "lock")
    }

    pub(crate) fn write(&self, layout: &Layout, plan_text: Option<&str>) -> Result<(), LabError> {
        self.write_layout("up", layout)?;
        plan_text.map_or(Ok(()), |text| fs::write(self.plan(), text)).context("up", &self.name, "write plan")
    }

    /// Puts a layout in the place of the one that is there, at once: a reader finds either.
    fn write_layout(&self, operation: &'static str, layout: &Layout) -> Result<(), LabError> {
        let text = serde_json::to_vec_pretty(layout).map_err(|source| LabError::State {
            name: self.name.clone(),
            path: self.layout(),
            source,
        })?;
        let draft = self.path.join("layout.json.new");
        fs::write(&draft, text)
            .and_then(|()| fs::rename(&draft, self.layout()))
            .inspect_err(|_| drop(fs::remove_file(&draft)))
            .context(operation, &self.name, "write layout")
    }

    pub(crate) fn finish(&self) -> Result<(), LabError> {
        File::create(self.finished()).and_then(|mut file| file.flush()).context("up", &self.name, "write finished mark")
    }

    pub(crate) fn remove(&self) -> Result<(), LabError> {
        match fs::remove_dir_all(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            removed => removed.context("down", &self.name, "remove state")?,
        }
        // These go with the last lab; while another is up they are not empty and stay.
        if remove_empty(Path::new(LABS)).context("down", &self.name, "remove state")? == Removed::Yes {
            backlog::restore().context("down", &self.name, "restore netdev_max_backlog")?;
            remove_empty(Path::new("/run/espalier")).context("down", &self.name, "remove state")?;
        }
        Ok(())
    }

    fn layout(&self) -> PathBuf {
        self.path.join("layout.json")
    }

    pub(crate) fn plan(&self) -> PathBuf {
        self.path.join("plan")
    }

    fn finished(&self) -> PathBuf {
        self.path.join("finished")
    }
}

/// What every layout begins with.
#[derive(Deserialize)]
struct Version {
    version: u32,
}

#[derive(PartialEq, Eq)]
enum Removed {
    Yes,
    No,
}

/// Removes a directory unless something is in it.
fn remove_empty(path: &Path) -> io::Result<Removed> {
    match fs::remove_dir(path) {
        Ok(()) => Ok(Removed::Yes),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Removed::Yes),
        Err(error) if error.raw_os_error() == Some(Errno::ENOTEMPTY as i32) => Ok(Removed::No),
        Err(error) => Err(error),
    }
}
