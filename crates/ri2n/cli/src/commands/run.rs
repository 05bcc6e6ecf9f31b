//! `ri2n run`: an unmodified program over RI2N; and the broker that it starts.

use std::{process::ExitCode, time::Duration};

use anyhow::{Context, Result};
use clap::{Args, ValueEnum};
use nix::unistd::Pid;
use ri2n_io::Fallback;
use ri2n_run::{
    broker::{self, Catch, Earlier, Session, Settings, Successor},
    launch::{self, LaunchError},
    ledger::{Entry, Ledger},
    networks::{Networks, Prefix},
    shared_session::{self, SharedSession},
    signals,
};

use crate::connecting::{Connecting, PASSPHRASE_VARIABLE};

/// Exit codes as a shell gives them.
const NOT_FOUND: u8 = 127;
const NOT_EXECUTABLE: u8 = 126;
/// The setting of Open MPI that says how its daemons are started on other nodes.
const MPI_AGENT_VARIABLE: &str = "OMPI_MCA_orte_launch_agent";

/// Run an unmodified program: its TCP connections use RI2N wherever the peer speaks it, and plain TCP elsewhere.
///
/// The program becomes this very process, so signals, terminal and exit code are its own. Everything that it starts is
/// included. Peers without RI2N are reached, and reach it, by plain TCP.
#[derive(Args, Debug)]
#[command(
    after_help = "Example: ri2n run -- iperf3 -s\n         ri2n run --network 10.1.0.0/16 -- mpirun -np 4 ./solver"
)]
pub(crate) struct Run {
    #[command(flatten)]
    options: Options,
    /// How its connections are caught; chosen by looking at the program unless given.
    #[arg(long, value_name = "HOW")]
    catch: Option<CatchBy>,
    /// Join the broker of this session, started by `ri2n broker --session NAME`, instead of starting one. Its settings apply.
    #[arg(long, value_name = "NAME", conflicts_with_all = ["Connecting", "network", "patience_ms", "catch"])]
    session: Option<String>,
    /// The program and its arguments.
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true, value_name = "PROGRAM")]
    program: Vec<String>,
}

/// Where and how RI2N is tried; the same for `run` and `proxy`.
#[derive(Args, Debug, Clone)]
pub(crate) struct Options {
    #[command(flatten)]
    connecting: Connecting,
    /// Try RI2N in this network, such as 10.1.0.0/16; may be repeated. All networks that this machine is in unless given.
    #[arg(long, value_name = "NETWORK")]
    network: Vec<Prefix>,
    /// How long a peer of which nothing is known may be silent before plain TCP is used, ms.
    #[arg(long, value_name = "MS", default_value = "300")]
    patience_ms: u64,
}

/// How a program's connections are caught.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum CatchBy {
    /// By a library that is loaded before the C library.
    Preload,
    /// By eBPF in a control group (root), for static programs and those of Go.
    Redirect,
}

/// Serve all programs that join by `ri2n run --session NAME`: one broker for a service, a job, a user or a machine.
///
/// The broker runs until it receives SIGTERM or SIGINT; its streams end with it. On SIGUSR2 it becomes the program that is installed by
/// then, with the settings of then, and its streams go on. Programs of one session trust each other. Only programs of the same user can
/// join, unless --group names a group.
#[derive(Args, Debug)]
#[command(after_help = "Example: ri2n broker --session cluster &\n         ri2n run --session cluster -- iperf3 -s")]
pub(crate) struct Broker {
    #[command(flatten)]
    options: Options,
    /// The session's name, whose file is in the runtime directory, or the path of a file.
    #[arg(long, value_name = "NAME", required_unless_present_any = ["process", "reads_handover"])]
    session: Option<String>,
    /// Also let members of this group join.
    #[arg(long, value_name = "GROUP", requires = "session")]
    group: Option<String>,
    /// The process that it serves (`ri2n run` starts such a broker).
    #[arg(long, hide = true, conflicts_with = "session", requires = "catch")]
    process: Option<i32>,
    /// How that process's connections are caught.
    #[arg(long, hide = true, conflicts_with = "session")]
    catch: Option<CatchBy>,
    /// Say by the exit code whether this program goes on with the streams of one that writes them in this form.
    #[arg(long, hide = true, value_name = "FORM")]
    reads_handover: Option<u32>,
}

/// The words by which a program is asked for its `reads_handover`.
const READS_HANDOVER: &[&str] = &["broker", "--reads-handover"];

pub(crate) fn run(args: &Run) -> Result<ExitCode> {
    let (program, arguments) = args.program.split_first().context("no program is named")?;
    // Whoever joins is caught by the library: a control group belongs to the broker that made it.
    let catch = if args.session.is_some() { Some(Catch::Preload) } else { args.catch.map(Catch::from) };
    let launch = match launch::prepare(program, catch) {
        Ok(launch) => launch,
        Err(error) => {
            let code = if matches!(error, LaunchError::NotFound(_)) { NOT_FOUND } else { NOT_EXECUTABLE };
            eprintln!("ri2n: {error}");
            return Ok(ExitCode::from(code));
        }
    };
    if launch.catch == Catch::Preload {
        launch::find_library()?;
    }
    let session = match &args.session {
        Some(name) => shared_session::join(name, &ri2n_status::directory())?,
        None => args.start_broker(launch.catch)?,
    };
    let agent = args.mpi_agent()?;
    let error = launch::become_program(&launch, program, arguments, &session, &[(MPI_AGENT_VARIABLE, agent)]);
    eprintln!("ri2n: {error}");
    Ok(ExitCode::from(NOT_EXECUTABLE))
}

pub(crate) fn broker(args: &Broker) -> Result<ExitCode> {
    if let Some(form) = args.reads_handover {
        return Ok(if form == broker::FORMAT { ExitCode::SUCCESS } else { ExitCode::FAILURE });
    }
    let settings = args.options.settings()?;
    match (&args.session, args.process.zip(args.catch)) {
        (Some(name), _) => serve_session(name, args.group.as_deref(), settings)?,
        (None, Some((process, catch))) => {
            launch::detach().context("leave the caller")?;
            signals::hold()?;
            // One without a status still serves.
            let _status = serve_status(&format!("ri2n run, process {process}"), &settings);
            broker::serve(settings, (Pid::from_raw(process), catch.into()), launch::tell)?;
        }
        // The command line has been checked for that.
        (None, None) => {}
    }
    Ok(ExitCode::SUCCESS)
}

fn serve_session(name: &str, group: Option<&str>, settings: Settings) -> Result<()> {
    signals::hold()?;
    let path = shared_session::place(name, &ri2n_status::directory());
    let mut earlier = Earlier::read().context("go on with the earlier program's streams")?;
    let session = match earlier.as_mut().and_then(Earlier::take_session) {
        Some(saved) => SharedSession::resume(&path, saved)?,
        None => SharedSession::claim(&path, group)?,
    };
    let successor = Successor { program: launch::own_path()?, reads: READS_HANDOVER, session };
    let _status = serve_status(&format!("ri2n broker, session {name}"), &settings);
    let is_first = earlier.is_none();
    broker::serve_session(settings, successor, earlier, || {
        if is_first {
            eprintln!("ri2n: programs join by `ri2n run --session {name} -- PROGRAM` ({})", path.display());
        }
        // Only systemd listens, if it has started this.
        let _ = sd_notify::notify(&[sd_notify::NotifyState::Ready]);
    })?;
    Ok(())
}

/// Lets `ri2n status` find this process; says so if it cannot.
pub(crate) fn serve_status(program: &str, settings: &Settings) -> Option<ri2n_status::Serving> {
    let (ledger, required) = (settings.ledger.clone(), settings.protocol.fallback() == Fallback::Never);
    serve_status_with(program, move || plain(&ledger, required))
}

/// The same for a process whose connections are all RI2N, or that counts others itself.
pub(crate) fn serve_status_with(
    program: &str,
    plain: impl Fn() -> ri2n_status::Plain + Send + 'static,
) -> Option<ri2n_status::Serving> {
    let directory = ri2n_status::directory();
    ri2n_status::serve(&directory, program, plain)
        .inspect_err(|error| eprintln!("ri2n: no status in {}: {error}", directory.display()))
        .ok()
}

fn plain(ledger: &Ledger, required: bool) -> ri2n_status::Plain {
    let peer = |entry: Entry| ri2n_status::PlainPeer {
        peer: entry.peer.to_string(),
        why: entry.why.word().to_owned(),
        explanation: entry.why.to_string(),
        plain: entry.plain,
        refused: entry.refused,
    };
    let port = |(port, clients)| ri2n_status::PlainPort { port, clients };
    ri2n_status::Plain {
        required,
        peers: ledger.entries().into_iter().map(peer).collect(),
        ports: ledger.clients().into_iter().map(port).collect(),
    }
}

impl Run {
    fn start_broker(&self, catch: Catch) -> Result<Session> {
        // A mistake in the settings is told here, once.
        self.options.settings()?;
        let catch = if catch == Catch::Preload { "preload" } else { "redirect" };
        let mut broker =
            ["broker", "--process", &std::process::id().to_string(), "--catch", catch].map(str::to_owned).to_vec();
        broker.extend(self.options.arguments());
        Ok(launch::start_broker(&broker, &self.options.environment())?)
    }

    /// How Open MPI starts its daemons on other nodes: under RI2N too.
    fn mpi_agent(&self) -> Result<String> {
        let own = launch::own_path()?.display().to_string();
        let settings = match &self.session {
            Some(name) => vec!["--session".to_owned(), name.clone()],
            None => self.options.arguments(),
        };
        Ok([vec![own, "run".to_owned()], settings, vec!["--".to_owned(), "orted".to_owned()]].concat().join(" "))
    }
}

impl Options {
    pub(crate) fn settings(&self) -> Result<Settings> {
        let protocol = self.connecting.config()?;
        let networks =
            if self.network.is_empty() { Networks::Attached } else { Networks::Listed(self.network.clone()) };
        Ok(Settings { protocol, networks, patience: Duration::from_millis(self.patience_ms), ..Settings::default() })
    }

    /// What the broker must know that command lines should not tell.
    fn environment(&self) -> Vec<(&'static str, String)> {
        self.connecting.passphrase.iter().map(|phrase| (PASSPHRASE_VARIABLE, phrase.clone())).collect()
    }

    /// The same as words of a command line; the passphrase goes by the environment, where other users do not see it.
    fn arguments(&self) -> Vec<String> {
        let config = self.connecting.config.iter();
        let config = config.flat_map(|file| ["--config".to_owned(), file.display().to_string()]);
        let links = self.connecting.links.iter().flat_map(|link| ["--links".to_owned(), link.to_string()]);
        let networks = self.network.iter().flat_map(|network| ["--network".to_owned(), network.to_string()]);
        let require = self.connecting.require.iter().map(|require| format!("--require={require}"));
        let encrypt = self.connecting.encrypt.then(|| "--encrypt".to_owned());
        let paths = self.connecting.paths.iter().flat_map(|paths| ["--paths".to_owned(), paths.to_string()]);
        let patience = ["--patience-ms".to_owned(), self.patience_ms.to_string()];
        config.chain(links).chain(networks).chain(require).chain(encrypt).chain(paths).chain(patience).collect()
    }
}

impl From<CatchBy> for Catch {
    fn from(by: CatchBy) -> Self {
        match by {
            CatchBy::Preload => Self::Preload,
            CatchBy::Redirect => Self::Redirect,
        }
    }
}
