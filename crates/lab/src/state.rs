//! Labs that exist: finding them, using them, taking them down.

use std::{
    fs, io,
    path::PathBuf,
    process::{Command, ExitStatus},
    thread,
    time::{Duration, Instant},
};

use nix::{
    sys::signal::{Signal, kill},
    unistd::{AccessFlags, Pid, access},
};

use crate::{
    LabError, Status,
    directory::{Changing, Directory},
    ebpf,
    error::{Context, NoProgram},
    layout::Layout,
    name::{check_lab_name, namespace_prefix},
    netns, rootless, status,
    tool::{Batch, BatchOrigin, run_batch},
};

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

    /// A command that will run inside a host, or as `mgmt` where a managed lab's switches are managed from, with `/sys`
    /// and `/etc/netns` as `ip netns exec` arranges them.
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
        BatchOrigin { operation: "down", device: name, step: "delete namespaces" },
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
