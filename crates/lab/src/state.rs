//! Labs that exist: finding them, using them, taking them down.
//!
//! ```text
//! /run/espalier/lab/NAME/layout.json   where everything is
//!                        plan          the plan's own text, if the builder had it
//!                        finished      there once the lab is whole
//! ```

use std::{
    fs::{self, File},
    io::{self, Write as _},
    path::{Path, PathBuf},
    process::{Command, ExitStatus},
    thread,
    time::{Duration, Instant},
};

use nix::{
    errno::Errno,
    sys::signal::{Signal, kill},
    unistd::Pid,
};

use crate::{
    LabError, Status, backlog,
    build::shaper,
    ebpf,
    error::Context,
    layout::{CableEnd, LAYOUT_VERSION, Layout},
    loss,
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

/// How a cable fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FailMode {
    /// Both ends see the link go down.
    Down,
    /// Frames vanish, and neither end notices.
    Silent,
    /// Some frames vanish, by chance.
    Lossy {
        /// How many of a million.
        loss_ppm: u32,
    },
}

impl Lab {
    /// Finds a lab, also one that another process built.
    ///
    /// # Errors
    /// [`LabError::NoSuchLab`], [`LabError::Unfinished`], or [`LabError::State`] if another version wrote its state.
    pub fn open(name: &str) -> Result<Self, LabError> {
        check_lab_name(name)?;
        let directory = Directory::of(name);
        let text = match fs::read(directory.layout()) {
            Err(error) if error.kind() == io::ErrorKind::NotFound && !directory.path.exists() => {
                return Err(LabError::NoSuchLab { name: name.to_owned(), known: list()? });
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(LabError::Unfinished { name: name.to_owned() });
            }
            text => text.context("open", name, "read layout")?,
        };
        if !directory.finished().exists() {
            return Err(LabError::Unfinished { name: name.to_owned() });
        }
        let state_error = |source| LabError::State { path: directory.layout(), source };
        let layout: Layout = serde_json::from_slice(&text).map_err(state_error)?;
        if layout.version != LAYOUT_VERSION {
            return Err(state_error(serde::de::Error::custom(format!("format version {}", layout.version))));
        }
        Ok(Self { layout })
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
    /// [`LabError::NoSuchHost`], or [`LabError::Io`] if nothing could be started. A program that cannot be found ends
    /// with status 255.
    pub fn exec(&self, host: &str, program: &str, args: &[String]) -> Result<ExitStatus, LabError> {
        self.command(host, program, args)?.status().context("exec", host, "start ip netns exec")
    }

    /// Ports, counters and drops of every switch.
    ///
    /// # Errors
    /// Any [`LabError`] of the back end.
    pub fn status(&self) -> Result<Status, LabError> {
        status::read(&self.layout)
    }

    /// Cuts a cable, named by a host, a port or both ends.
    ///
    /// # Errors
    /// [`LabError::NoSuchCable`], or the tool's refusal.
    pub fn fail(&self, cable: &str, mode: FailMode) -> Result<(), LabError> {
        let cable = self.layout.cable(cable)?;
        for end in [&cable.a, &cable.b] {
            let device = &end.device;
            match mode {
                FailMode::Down => self.at(end, "ip", format!("link set dev {device} down\n"), "cut cable")?,
                FailMode::Silent => {
                    self.at(end, "tc", format!("qdisc replace dev {device} root blackhole\n"), "cut cable")?
                }
                FailMode::Lossy { loss_ppm } => {
                    netns::within(&end.namespace, || loss::begin(end.ifindex, loss_ppm))
                        .context("cable", &end.label, "enter namespace")?
                        .context("cable", &end.label, "lose frames")?;
                }
            }
        }
        Ok(())
    }

    /// Mends a cable, however it failed.
    ///
    /// # Errors
    /// As [`Lab::fail`].
    pub fn heal(&self, cable: &str) -> Result<(), LabError> {
        let cable = self.layout.cable(cable)?;
        let mtu_bytes = self.layout.hosts.iter().map(|host| host.mtu_bytes).max().unwrap_or(1500);
        for end in [&cable.a, &cable.b] {
            netns::within(&end.namespace, || loss::end(end.ifindex))
                .context("cable", &end.label, "enter namespace")?
                .context("cable", &end.label, "mend cable")?;
            let shaper = shaper(&self.layout, &end.device, cable.rate_bps, mtu_bytes);
            self.at(end, "tc", shaper, "mend cable")?;
            self.at(end, "ip", format!("link set dev {} up\n", end.device), "mend cable")?;
        }
        Ok(())
    }

    /// Takes the lab down.
    ///
    /// # Errors
    /// As [`down`].
    pub fn down(self) -> Result<(), LabError> {
        down(&self.layout.name)
    }

    fn at(&self, end: &CableEnd, tool: &'static str, script: String, step: &'static str) -> Result<(), LabError> {
        let place = Place { operation: "cable", device: &end.label, step };
        run_batch(&Batch { tool, namespace: Some(&end.namespace), script }, place)
    }
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
    if list()?.is_empty() {
        rootless::release();
    }
    Ok(())
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

    pub(crate) fn write(&self, layout: &Layout, plan_text: Option<&str>) -> Result<(), LabError> {
        let text =
            serde_json::to_vec_pretty(layout).map_err(|source| LabError::State { path: self.layout(), source })?;
        fs::write(self.layout(), text).context("up", &self.name, "write layout")?;
        plan_text.map_or(Ok(()), |text| fs::write(self.plan(), text)).context("up", &self.name, "write plan")
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
