//! Open MPI on all hosts of a lab: one rank a host, its daemons in the hosts' namespaces.

use std::{
    fs::{self, File},
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result};
use indicatif::ProgressBar;
use lab::Lab;

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
}

impl<'a> Ranks<'a> {
    /// Does something with ranks on all hosts; their folder is there meanwhile, and gone afterwards.
    ///
    /// # Errors
    /// If files cannot be written, or what is done fails.
    pub(super) fn with<T>(lab: &'a Lab, work: impl FnOnce(&Self) -> Result<T>) -> Result<T> {
        let folder = folder(&lab.layout().name);
        fs::create_dir_all(&folder).with_context(|| format!("create {}", folder.display()))?;
        let ranks = Self { lab, folder };
        let done = ranks.write_agent().and_then(|()| work(&ranks));
        fs::remove_dir_all(&ranks.folder).with_context(|| format!("remove {}", ranks.folder.display()))?;
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
    pub(super) fn start(&self, program: &[&str]) -> Result<Run> {
        let layout = self.lab.layout();
        let first = &layout.hosts[0];
        let hosts: Vec<String> = layout.hosts.iter().map(|host| host.address.to_string()).collect();
        let addresses = format!("{}/{}", first.address, first.prefix_bits);
        let (folder, agent) = (self.folder.display().to_string(), self.agent().display().to_string());
        // Processes outnumber processors: who waits gives way.
        let settings = [
            ("plm_rsh_agent", agent.as_str()),
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
        let mut command = self.lab.command(&first.name, "mpirun", &words)?;
        // What it keeps for itself goes with the rest.
        command.env("TMPDIR", &self.folder);
        command.stdin(Stdio::null()).stdout(self.create(PRINTED)?).stderr(self.create(COMPLAINTS)?);
        Ok(Run { child: command.spawn().context("start mpirun")?, folder: self.folder.clone() })
    }

    fn create(&self, name: &str) -> Result<File> {
        let path = self.folder.join(name);
        File::create(&path).with_context(|| format!("create {}", path.display()))
    }

    fn agent(&self) -> PathBuf {
        self.folder.join("agent")
    }

    /// What the program that ran last has printed so far.
    pub(super) fn printed(&self) -> String {
        fs::read_to_string(self.folder.join(PRINTED)).unwrap_or_default()
    }

    /// Writes what Open MPI takes for ssh: a program that enters the namespace of a host's address.
    ///
    /// The hosts share one name, and daemons that begin at once in one folder of that name take it from each other: one start in
    /// twelve waited for ever. So each has a folder of its own.
    fn write_agent(&self) -> Result<()> {
        let mut script = "#!/bin/sh\nwhile [ \"${1#-}\" != \"$1\" ]; do shift; done\ncase $1 in\n".to_owned();
        for host in &self.lab.layout().hosts {
            script.push_str(&format!("{}) place={} ;;\n", host.address, host.namespace));
        }
        script.push_str(&format!(
            "*) exit 1 ;;\nesac\nshift\nexport TMPDIR='{}'/\"$place\"\nmkdir -p \"$TMPDIR\"\n\
             exec ip netns exec \"$place\" setsid /bin/sh -c \"$*\"\n",
            self.folder.display()
        ));
        let path = self.agent();
        fs::write(&path, script).with_context(|| format!("write {}", path.display()))?;
        fs::set_permissions(&path, fs::Permissions::from_mode(0o700))
            .with_context(|| format!("change {}", path.display()))
    }
}

/// How far a run is.
pub(super) enum Stage {
    At(String),
    /// It has written all that is wanted.
    Enough,
}

/// A program that runs on all hosts; ended when it is dropped.
pub(super) struct Run {
    child: Child,
    folder: PathBuf,
}

impl Run {
    /// Waits until what it has written is enough, showing how far it is, and ends it.
    ///
    /// # Errors
    /// If it ends before, or takes longer than `longest`.
    pub(super) fn until(mut self, title: &str, longest: Duration, stage: impl Fn() -> Stage) -> Result<()> {
        let begun = Instant::now();
        let bar = ProgressBar::new_spinner();
        loop {
            let is_over = self.child.try_wait().context("wait for mpirun")?.is_some();
            let at = match stage() {
                Stage::Enough => break,
                Stage::At(at) => at,
            };
            anyhow::ensure!(!is_over, "mpirun ended early: {}", self.complaints());
            anyhow::ensure!(begun.elapsed() < longest, "it takes more than {} s; it was at: {at}", longest.as_secs());
            bar.set_message(format!("{title}, {} s: {at}", begun.elapsed().as_secs()));
            bar.tick();
            thread::sleep(LOOK);
        }
        bar.finish_and_clear();
        self.stop()
    }

    /// The first lines of what it complained of.
    fn complaints(&self) -> String {
        let said = fs::read_to_string(self.folder.join(COMPLAINTS)).unwrap_or_default();
        said.lines().take(5).collect::<Vec<_>>().join("; ")
    }

    /// Ends mpirun, which ends what it has started.
    fn stop(&mut self) -> Result<()> {
        let begun = Instant::now();
        // Twice, as Ctrl-C would: the second time it does not wait for others.
        while self.child.try_wait().context("wait for mpirun")?.is_none() {
            if begun.elapsed() > GRACE {
                self.child.kill().context("end mpirun")?;
                break;
            }
            let ended = Command::new("kill").arg(self.child.id().to_string()).stderr(Stdio::null()).status();
            ended.context("start kill")?;
            thread::sleep(Duration::from_secs(1));
        }
        self.child.wait().context("wait for mpirun")?;
        Ok(())
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        if let Err(error) = self.stop() {
            eprintln!("espalier: mpirun is left: {error:#}");
        }
    }
}
