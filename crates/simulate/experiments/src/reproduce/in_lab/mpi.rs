//! Open MPI on all hosts of a lab: one rank a host, its daemons in the hosts' namespaces.

use std::{
    fs::{self, File},
    io,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use lab::Lab;

use super::super::{Event, event::Events};
use crate::error::MpiError;

const MPIRUN: &str = "mpirun";
/// How long mpirun may take to end what it has started.
const GRACE: Duration = Duration::from_secs(10);
/// Between two looks at what a program has written.
const LOOK: Duration = Duration::from_millis(200);
/// Files of what a run printed and complained of.
const PRINTED: &str = "printed";
const COMPLAINTS: &str = "complaints";

/// The first of some programs that is not installed.
pub(super) fn missing(programs: &[&'static str]) -> Option<&'static str> {
    programs.iter().copied().find(|program| {
        let found = Command::new("sh").args(["-c", &format!("command -v {program}")]).stdout(Stdio::null()).status();
        !found.is_ok_and(|status| status.success())
    })
}

/// Where the files of a lab's runs are, for as long as they last.
pub(super) fn folder(lab: &str) -> PathBuf {
    std::env::temp_dir().join(format!("espalier-{lab}"))
}

/// What runs on a lab's hosts, and the folder that all of it writes to.
pub(super) struct Ranks<'a> {
    lab: &'a Lab,
    folder: PathBuf,
    events: Events<'a>,
}

impl<'a> Ranks<'a> {
    /// Does something with ranks on all hosts; their folder is there meanwhile, and gone afterwards.
    ///
    /// # Errors
    /// If files cannot be written, or what is done fails.
    pub(super) fn with<T>(
        lab: &'a Lab,
        events: Events<'a>,
        work: impl FnOnce(&Self) -> Result<T, MpiError>,
    ) -> Result<T, MpiError> {
        let folder = folder(&lab.layout().name);
        fs::create_dir_all(&folder).on("create", &folder)?;
        let ranks = Self { lab, folder, events };
        let done = ranks.write_remote_shell().and_then(|()| work(&ranks));
        fs::remove_dir_all(&ranks.folder).on("remove", &ranks.folder)?;
        done
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// As many as there are hosts.
    pub(super) fn count(&self) -> usize {
        self.lab.layout().hosts.len()
    }

    /// Starts a program on every host, in the folder; what it prints goes to the file `printed` there.
    ///
    /// # Errors
    /// If mpirun cannot be started.
    pub(super) fn start(&self, program: &[&str]) -> Result<Run<'a>, MpiError> {
        let layout = self.lab.layout();
        let first = &layout.hosts[0];
        let hosts: Vec<String> = layout.hosts.iter().map(|host| host.address.to_string()).collect();
        let addresses = format!("{}/{}", first.address, first.prefix_bits);
        let (folder, shell) = (self.folder.display().to_string(), self.remote_shell().display().to_string());
        // Processes outnumber processors: who waits gives way.
        let settings = [
            ("plm_rsh_agent", shell.as_str()),
            ("plm_rsh_no_tree_spawn", "1"),
            ("pml", "ob1"),
            ("btl", "tcp,self"),
            ("oob_tcp_if_include", &addresses),
            ("btl_tcp_if_include", &addresses),
            ("mpi_yield_when_idle", "1"),
        ];
        let mut words = vec!["--allow-run-as-root", "--wdir", &folder];
        words.extend(settings.iter().flat_map(|(name, value)| ["--mca", name, value]));
        let (count, hosts) = (hosts.len().to_string(), hosts.join(","));
        words.extend(["-np", &count, "--host", &hosts]);
        words.extend(program);
        let words: Vec<String> = words.into_iter().map(str::to_owned).collect();
        let mut command = self.lab.command(&first.name, MPIRUN, &words)?;
        // What it keeps for itself goes with the rest.
        command.env("TMPDIR", &self.folder);
        command.stdin(Stdio::null()).stdout(self.create(PRINTED)?).stderr(self.create(COMPLAINTS)?);
        let child = command.spawn().when("start", MPIRUN)?;
        Ok(Run { child, folder: self.folder.clone(), events: self.events })
    }

    fn create(&self, name: &str) -> Result<File, MpiError> {
        let path = self.folder.join(name);
        File::create(&path).on("create", &path)
    }

    fn remote_shell(&self) -> PathBuf {
        self.folder.join("remote-shell")
    }

    /// What the program that ran last has printed so far.
    pub(super) fn printed(&self) -> String {
        fs::read_to_string(self.folder.join(PRINTED)).unwrap_or_default()
    }

    /// Writes the program that Open MPI runs instead of ssh, with a host's address and a command: it runs the command in the
    /// namespace of that host.
    ///
    /// Every host has a TMPDIR of its own: Open MPI's daemons name their folder after the machine, which all hosts share, and
    /// daemons that start at the same time in one folder can wait for each other without end.
    fn write_remote_shell(&self) -> Result<(), MpiError> {
        let mut script = "#!/bin/sh\nwhile [ \"${1#-}\" != \"$1\" ]; do shift; done\ncase $1 in\n".to_owned();
        for host in &self.lab.layout().hosts {
            script.push_str(&format!("{}) place={} ;;\n", host.address, host.namespace));
        }
        script.push_str(&format!(
            "*) exit 1 ;;\nesac\nshift\nexport TMPDIR='{}'/\"$place\"\nmkdir -p \"$TMPDIR\"\n\
             exec ip netns exec \"$place\" setsid /bin/sh -c \"$*\"\n",
            self.folder.display()
        ));
        let path = self.remote_shell();
        fs::write(&path, script).on("write", &path)?;
        fs::set_permissions(&path, fs::Permissions::from_mode(0o700)).on("change", &path)
    }
}

/// How far a run is.
pub(super) enum Stage {
    At(String),
    /// It has written all that is wanted.
    Enough,
}

/// A program that runs on all hosts; ended when it is dropped.
pub(super) struct Run<'a> {
    child: Child,
    folder: PathBuf,
    events: Events<'a>,
}

impl Run<'_> {
    /// Waits until what it has written is enough, telling how far it is, and ends it.
    ///
    /// # Errors
    /// If it ends before, or takes longer than `longest`.
    pub(super) fn until(mut self, title: &str, longest: Duration, stage: impl Fn() -> Stage) -> Result<(), MpiError> {
        let waited = self.wait(title, longest, stage);
        (self.events)(Event::Ended);
        let stopped = self.stop();
        if let Err(error) = &stopped {
            (self.events)(Event::MpirunLeft(error));
        }
        waited.and(stopped)
    }

    fn wait(&mut self, title: &str, longest: Duration, stage: impl Fn() -> Stage) -> Result<(), MpiError> {
        let begun = Instant::now();
        loop {
            let is_over = self.child.try_wait().when("wait for", MPIRUN)?.is_some();
            let at = match stage() {
                Stage::Enough => return Ok(()),
                Stage::At(at) => at,
            };
            if is_over {
                return Err(MpiError::EndedEarly(self.complaints()));
            }
            let elapsed = begun.elapsed();
            if elapsed >= longest {
                return Err(MpiError::TooLong { limit_s: longest.as_secs(), stage: at });
            }
            (self.events)(Event::Running { title, elapsed, stage: &at });
            thread::sleep(LOOK);
        }
    }

    /// The first lines of what it complained of.
    fn complaints(&self) -> String {
        let said = fs::read_to_string(self.folder.join(COMPLAINTS)).unwrap_or_default();
        said.lines().take(5).collect::<Vec<_>>().join("; ")
    }

    /// Ends mpirun, which ends what it has started.
    fn stop(&mut self) -> Result<(), MpiError> {
        let begun = Instant::now();
        // Twice, as Ctrl-C would: the second time it does not wait for others.
        while self.child.try_wait().when("wait for", MPIRUN)?.is_none() {
            if begun.elapsed() > GRACE {
                self.child.kill().when("end", MPIRUN)?;
                break;
            }
            let ended = Command::new("kill").arg(self.child.id().to_string()).stderr(Stdio::null()).status();
            ended.when("start", "kill")?;
            thread::sleep(Duration::from_secs(1));
        }
        self.child.wait().when("wait for", MPIRUN)?;
        Ok(())
    }
}

impl Drop for Run<'_> {
    fn drop(&mut self) {
        // `until` has told of a failure already.
        let _ = self.stop();
    }
}

/// Says of an I/O error what was to be done with which file.
pub(super) trait OnPath<T> {
    fn on(self, step: &'static str, path: &Path) -> Result<T, MpiError>;
}

impl<T> OnPath<T> for io::Result<T> {
    fn on(self, step: &'static str, path: &Path) -> Result<T, MpiError> {
        self.map_err(|source| MpiError::File { step, path: path.to_owned(), source })
    }
}

/// Says of an I/O error what was to be done with which program.
pub(super) trait OnProcess<T> {
    fn when(self, step: &'static str, program: &'static str) -> Result<T, MpiError>;
}

impl<T> OnProcess<T> for io::Result<T> {
    fn when(self, step: &'static str, program: &'static str) -> Result<T, MpiError> {
        self.map_err(|source| MpiError::Process { step, program, source })
    }
}
