//! Labs that exist: finding them, using them, taking them down.
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
    process::{Command, ExitStatus},
    thread,
    time::{Duration, Instant},
};

use nix::{
    errno::Errno,
    fcntl::{Flock, FlockArg},
    sys::signal::{Signal, kill},
    unistd::{AccessFlags, Pid, access},
};
use serde::Deserialize;

use crate::{
    LabError, Status, backlog, ebpf,
    error::{Context, NoProgram},
    layout::{LAYOUT_VERSION, Layout},
    name::{check_lab_name, namespace_prefix},
    netns, rootless, status,
    tool::{Batch, Place, run_batch},
};

const LABS: &str = "/run/espalier/lab";

/// How long programs in a lab have to end by themselves when it is taken down.
const FAREWELL: Duration = Duration::from_millis(500);

/// A lab that is up.
#[derive(Clone, Debug)]
pub struct Lab {
    layout: Layout,
}

impl Lab {
    /// Finds a lab, also one that another process built.
    ///
    /// # Errors
    /// [`LabError::NoSuchLab`], [`LabError::Unfinished`], or [`LabError::State`] if another version wrote its state.
    pub fn open(name: &str) -> Result<Self, LabError> {
        check_lab_name(name)?;
        Directory::of(name).read().map(|layout| Self { layout })
    }

    /// The layout, which another process changes when it moves plugs or breaks cables.
    pub(crate) fn take(&mut self, changed: Changing) {
        self.layout = changed.layout;
    }

    /// Where everything is.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// The text of the plan, if its builder kept one.
    ///
    /// # Errors
    /// [`LabError::Io`].
    pub fn plan_text(&self) -> Result<Option<String>, LabError> {
        match fs::read_to_string(Directory::of(&self.layout.name).plan()) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            text => text.map(Some).context("open", &self.layout.name, "read plan"),
        }
    }

    /// A command that will run inside a host, or as `mgmt` where a managed lab's switches are managed from, with `/sys` and `/etc/netns` as `ip netns exec` arranges them.
    ///
    /// # Errors
    /// [`LabError::NoSuchHost`].
    pub fn command(&self, host: &str, program: &str, args: &[String]) -> Result<Command, LabError> {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", self.layout.place(host)?, program]).args(args);
        Ok(command)
    }

    /// Runs a program inside a host to its end, with this process's input and output.
    ///
    /// # Errors
    /// [`LabError::NoSuchHost`], [`LabError::NoProgram`], or [`LabError::Io`] if nothing could be started.
    pub fn exec(&self, host: &str, program: &str, args: &[String]) -> Result<ExitStatus, LabError> {
        self.layout.place(host)?;
        find_program(program).map_err(|why| LabError::NoProgram { program: program.to_owned(), why })?;
        self.command(host, program, args)?.status().context("exec", host, "start ip netns exec")
    }

    /// Ports, counters and drops of every switch.
    ///
    /// # Errors
    /// Any [`LabError`] of the back end.
    pub fn status(&self) -> Result<Status, LabError> {
        // Another process may have moved plugs since.
        status::read(&Self::open(&self.layout.name)?.layout)
    }

    /// Takes the lab down.
    ///
    /// # Errors
    /// As [`down`].
    pub fn down(self) -> Result<(), LabError> {
        down(&self.layout.name)
    }
}

/// Whether a program can be run, by its path or by its name in PATH, as execvp(3) looks for it.
fn find_program(program: &str) -> Result<(), NoProgram> {
    let path = std::env::var_os("PATH").unwrap_or_else(|| "/usr/bin:/bin".into());
    let places: Vec<PathBuf> = match program.contains('/') {
        true => vec![PathBuf::from(program)],
        false => std::env::split_paths(&path).map(|place| place.join(program)).collect(),
    };
    let mut why = NoProgram::Missing;
    for place in places {
        match fs::metadata(&place) {
            Ok(metadata) if metadata.is_file() && access(&place, AccessFlags::X_OK).is_ok() => return Ok(()),
            Ok(_) => why = NoProgram::NotExecutable,
            Err(_) => {}
        }
    }
    Err(why)
}

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

/// Removes everything of a lab by its name alone, whatever state it is in: programs that run in it, namespaces with
/// their devices, pinned maps, state. Taking down what is not there is fine.
///
/// # Errors
/// [`LabError::BadName`], or what the kernel refused; calling again goes on from there.
pub fn down(name: &str) -> Result<(), LabError> {
    check_lab_name(name)?;
    let namespaces = netns::list(&namespace_prefix(name)).context("down", name, "list namespaces")?;
    end_inhabitants(&namespaces);
    let script: String = namespaces.iter().map(|namespace| format!("netns delete {namespace}\n")).collect();
    run_batch(
        &Batch { tool: "ip", namespace: None, script },
        Place { operation: "down", device: name, step: "delete namespaces" },
    )?;
    ebpf::unpin(name)?;
    Directory::of(name).remove()?;
    rootless::release_unused()
}

/// A namespace lives as long as a process in it does, so programs that were started in a lab must end with it.
fn end_inhabitants(namespaces: &[String]) {
    if namespaces.is_empty() {
        return;
    }
    let signal = |signal| {
        let pids = netns::inhabitants(namespaces);
        for &pid in &pids {
            // Whoever has gone by now needs no signal.
            let _ = kill(Pid::from_raw(pid), signal);
        }
        !pids.is_empty()
    };
    if signal(Signal::SIGTERM) {
        let since = Instant::now();
        while since.elapsed() < FAREWELL && !netns::inhabitants(namespaces).is_empty() {
            thread::sleep(Duration::from_millis(20));
        }
        signal(Signal::SIGKILL);
    }
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

/// A lab's state directory.
pub(crate) struct Directory {
    name: String,
    path: PathBuf,
}

impl Directory {
    fn of(name: &str) -> Self {
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
    fn read(&self) -> Result<Layout, LabError> {
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

    fn remove(&self) -> Result<(), LabError> {
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

    fn plan(&self) -> PathBuf {
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
