//! `ri2n run`: an unmodified program over RI2N; and the broker that it starts.

use std::{process::ExitCode, time::Duration};

use anyhow::{Context, Result};
use clap::{Args, ValueEnum};
use nix::unistd::Pid;
use ri2n_io::Fallback;
use ri2n_run::{
    broker::{self, Catch, Settings},
    launch::{self, LaunchError},
    ledger::{Entry, Ledger},
    networks::{Networks, Prefix},
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

/// The broker of a session (started by `run`).
#[derive(Args, Debug)]
pub(crate) struct Broker {
    #[command(flatten)]
    options: Options,
    /// The process that it serves.
    #[arg(long)]
    process: i32,
    /// How connections are caught.
    #[arg(long)]
    catch: CatchBy,
}

pub(crate) fn run(args: &Run) -> Result<ExitCode> {
    let (program, arguments) = args.program.split_first().context("no program is named")?;
    let launch = match launch::prepare(program, args.catch.map(Catch::from)) {
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
    // A mistake in the settings is told here, once.
    args.options.settings()?;
    let mut broker = vec!["broker".to_owned(), "--process".to_owned(), std::process::id().to_string()];
    broker
        .extend(["--catch".to_owned(), if launch.catch == Catch::Preload { "preload" } else { "redirect" }.to_owned()]);
    broker.extend(args.options.arguments());
    let session = launch::start_broker(&broker, &args.options.environment())?;
    let agent = args.mpi_agent()?;
    let error = launch::become_program(&launch, program, arguments, &session, &[(MPI_AGENT_VARIABLE, agent)]);
    eprintln!("ri2n: {error}");
    Ok(ExitCode::from(NOT_EXECUTABLE))
}

pub(crate) fn broker(args: &Broker) -> Result<ExitCode> {
    let settings = args.options.settings()?;
    launch::detach().context("leave the caller")?;
    signals::hold()?;
    // One without a status still serves.
    let _status = serve_status(&format!("ri2n run, process {}", args.process), &settings);
    broker::serve(settings, Pid::from_raw(args.process), args.catch.into(), launch::tell)?;
    Ok(ExitCode::SUCCESS)
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
    /// How Open MPI starts its daemons on other nodes: under RI2N too.
    fn mpi_agent(&self) -> Result<String> {
        let own = launch::own_path()?.display().to_string();
        Ok([vec![own, "run".to_owned()], self.options.arguments(), vec!["--".to_owned(), "orted".to_owned()]]
            .concat()
            .join(" "))
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
