//! The command line.

use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
};

use api_client::{Endpoint, RemoteOptions, SOCKET};
use clap::{Args, Parser, Subcommand};

/// The controller of an Espalier fabric: watches switches, acts as its ladder says, proposes the rest.
#[derive(Parser)]
#[command(
    name = "espalierd",
    version,
    after_help = "Examples:\n  espalierd run --config /etc/espalierd/espalierd.toml\n  \
    espalierd propose plan.json --reason 'first plan'\n  espalierd approve 1\n  espalierd status\n  \
    espalierd status --controller https://controller.example.org:7434 --token-file token --ca ca.pem\n\n\
    Exit codes: 0 fine, 1 something needs a person or the daemon refuses, 2 usage or bad input."
)]
pub(crate) struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// Commands: some run without a daemon, the others ask one.
#[derive(Subcommand)]
pub(crate) enum Command {
    /// Run the daemon in the foreground.
    #[command(
        after_help = "Example:\n  espalierd run --config espalierd.toml\n\nSIGHUP reads the configuration again; a bad one is refused and the old one stays.\nSIGTERM and SIGINT end it: switches keep what they hold."
    )]
    Run(ConfigFile),
    /// Check a configuration and the files that it names.
    #[command(after_help = "Example:\n  espalierd check-config --config /etc/espalierd/espalierd.toml")]
    CheckConfig(ConfigFile),
    /// Put a backup in place of the store, while no daemon runs.
    #[command(after_help = "Example:\n  systemctl stop espalierd && espalierd restore backup.sqlite")]
    Restore {
        /// The backup.
        #[arg(value_name = "FILE")]
        file: PathBuf,
        #[command(flatten)]
        config: ConfigFile,
    },
    /// Show whether the fabric is as planned, with open events and proposals.
    #[command(after_help = "Examples:\n  espalierd status\n  espalierd status --json")]
    Status(Ask),
    /// Show events, newest last.
    #[command(after_help = "Examples:\n  espalierd events\n  espalierd events --follow --json")]
    Events {
        /// Show changes of events as they happen, until interrupted.
        #[arg(short, long)]
        follow: bool,
        #[command(flatten)]
        ask: Ask,
    },
    /// Propose a plan.
    #[command(after_help = "Example:\n  espalierd propose plan.json --reason 'rack 7 added'")]
    Propose {
        /// The plan, as espalier plan writes it.
        #[arg(value_name = "PLAN")]
        plan: PathBuf,
        /// What for.
        #[arg(long, default_value = "")]
        reason: String,
        #[command(flatten)]
        ask: Ask,
    },
    /// Show proposals.
    #[command(after_help = "Example:\n  espalierd proposals --all")]
    Proposals {
        /// Those that are not open any more as well.
        #[arg(long)]
        all: bool,
        #[command(flatten)]
        ask: Ask,
    },
    /// Approve a proposal; once enough people have, it is deployed.
    #[command(after_help = "Example:\n  espalierd approve 3")]
    Approve(Numbered),
    /// Withdraw a proposal.
    #[command(after_help = "Example:\n  espalierd withdraw 3")]
    Withdraw(Numbered),
    /// Show every target that there was.
    #[command(after_help = "Example:\n  espalierd targets")]
    Targets(Ask),
    /// Propose the plan of an earlier target.
    #[command(after_help = "Example:\n  espalierd rollback 4 && espalierd proposals")]
    Rollback(Numbered),
    /// Deploy a target once more that failed.
    #[command(after_help = "Example:\n  espalierd retry")]
    Retry(Ask),
    /// Put a switch back to the plan, whoever changed it.
    #[command(after_help = "Example:\n  espalierd put-back sw3")]
    PutBack {
        /// The switch.
        #[arg(value_name = "SWITCH")]
        switch: String,
        #[command(flatten)]
        ask: Ask,
    },
    /// Set or remove a maintenance mark: nothing is done about its subject meanwhile.
    #[command(
        after_help = "Examples:\n  espalierd maintain sw3 --reason 'new fan' --minutes 30 --drain\n  espalierd maintain 'sw1:p1 -- sw2:p1' --reason 'bad cable'\n  espalierd maintain --end 2"
    )]
    Maintain {
        /// A switch, link, group or host, or `fabric` for everything.
        #[arg(value_name = "SUBJECT", required_unless_present = "end")]
        subject: Option<String>,
        /// Why.
        #[arg(long, default_value = "")]
        reason: String,
        /// How long; until it is removed unless given.
        #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=5_256_000))]
        minutes: Option<u64>,
        /// Propose a plan without the subject.
        #[arg(long)]
        drain: bool,
        /// Remove this mark.
        #[arg(long, value_name = "ID", conflicts_with_all = ["subject", "minutes", "drain"])]
        end: Option<u64>,
        #[command(flatten)]
        ask: Ask,
    },
    /// Show loads of links over the last day: of all links, the most loaded first, or of one.
    #[command(after_help = "Examples:\n  espalierd history --hours 1\n  espalierd history 'sw1:p1 -- sw2:p1' --json")]
    History {
        /// The link, as status names it.
        #[arg(value_name = "LINK")]
        link: Option<String>,
        /// How far back; at most 24.
        #[arg(long, value_name = "HOURS", default_value_t = 24.0)]
        hours: f64,
        #[command(flatten)]
        ask: Ask,
    },
    /// Show notifications that are pending or could not be delivered, oldest first.
    #[command(
        after_help = "Examples:\n  espalierd deliveries\n  espalierd deliveries --retry 7\n  espalierd deliveries --drop 7"
    )]
    Deliveries {
        /// Deliver this one again at once.
        #[arg(long, value_name = "ID", conflicts_with = "forget")]
        retry: Option<u64>,
        /// Discard this one.
        #[arg(long = "drop", value_name = "ID")]
        forget: Option<u64>,
        #[command(flatten)]
        ask: Ask,
    },
    /// Show who did what, newest last.
    #[command(after_help = "Example:\n  espalierd audit")]
    Audit(Ask),
    /// Copy the whole store to a file, while the daemon runs.
    #[command(after_help = "Example:\n  espalierd backup espalierd-$(date +%F).sqlite")]
    Backup {
        /// Where to.
        #[arg(value_name = "FILE")]
        file: PathBuf,
        #[command(flatten)]
        ask: Ask,
    },
    /// Try the controller on model switches that answer SNMP on loopback addresses, or on switches of the lab. Leaves nothing behind.
    #[command(
        after_help = "Examples:\n  espalierd demo\n  espalier generate dragonfly a=4,h=2 -o dragonfly.yaml && espalierd demo dragonfly.yaml\n  \
        sudo espalierd demo --lab\n\n\
        Commands are read from standard input: cut LINK, lose LINK, mend LINK, off SWITCH, on SWITCH, quit. Model switches need no root and forward no frames; \
        those of the lab do."
    )]
    Demo {
        /// Topology file [default: a torus of 16 switches].
        #[arg(value_name = "TOPOLOGY")]
        topology: Option<PathBuf>,
        /// Plan file to deploy first, instead of a plan made for TOPOLOGY.
        #[arg(long, value_name = "PLAN", conflicts_with = "topology")]
        plan: Option<PathBuf>,
        /// Managed switches and hosts in network namespaces, on real kernels, instead of models. Needs root and the program espalier; has no page.
        #[arg(long)]
        lab: bool,
        /// Address and port of the page.
        #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:7433")]
        page: SocketAddr,
        /// Seconds between polls of the switches.
        #[arg(long, value_name = "SECONDS", default_value_t = 2.0)]
        counters: f64,
    },
    /// Print the OpenAPI document of the API.
    #[command(after_help = "Example:\n  espalierd openapi > openapi.json")]
    Openapi,
    /// Write manual pages to a folder.
    #[command(after_help = "Example:\n  espalierd man /usr/local/share/man/man1")]
    Man {
        /// The folder.
        #[arg(value_name = "DIRECTORY")]
        directory: PathBuf,
    },
    /// Print a completion script for a shell.
    #[command(after_help = "Example:\n  espalierd completions bash > /etc/bash_completion.d/espalierd")]
    Completions {
        /// The shell.
        #[arg(value_name = "SHELL")]
        shell: clap_complete::Shell,
    },
}

/// Where the configuration is.
#[derive(Args)]
pub(crate) struct ConfigFile {
    /// Configuration (TOML).
    #[arg(long = "config", value_name = "FILE", default_value = "/etc/espalierd/espalierd.toml")]
    pub(crate) path: PathBuf,
}

/// Whom to ask, and how to print.
#[derive(Args)]
pub(crate) struct Ask {
    /// Socket of the daemon on this machine [default: /run/espalierd/espalierd.sock].
    #[arg(long, value_name = "PATH", conflicts_with_all = ["controller", "token_file", "ca"])]
    socket: Option<PathBuf>,
    /// URL of the daemon, such as https://controller.example.org:7434, instead of a socket [env: ESPALIER_CONTROLLER].
    #[arg(long, value_name = "URL")]
    controller: Option<String>,
    /// File of the token to show to --controller, mode 0600 [env: ESPALIER_TOKEN_FILE].
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// CA certificates that the daemon's is signed by (PEM) [env: ESPALIER_CA] [default: the system's].
    #[arg(long, value_name = "FILE")]
    ca: Option<PathBuf>,
    /// Print JSON for machines instead of text for people.
    #[arg(long)]
    pub(crate) json: bool,
}

impl Ask {
    /// Where the daemon's API is.
    ///
    /// # Errors
    /// A message that names the option or the file, and the way out.
    pub(crate) fn endpoint(&self) -> Result<Endpoint, String> {
        let remote = RemoteOptions {
            controller: self.controller.clone(),
            token_file: self.token_file.clone(),
            ca: self.ca.clone(),
        };
        match &self.socket {
            Some(socket) => Ok(Endpoint::Socket(socket.clone())),
            None => Endpoint::new(Path::new(SOCKET), &remote.or_environment(&|name| std::env::var(name).ok())?),
        }
    }
}

/// Something that has a number.
#[derive(Args)]
pub(crate) struct Numbered {
    /// Its number.
    #[arg(value_name = "N")]
    pub(crate) number: u64,
    /// Whom to ask.
    #[command(flatten)]
    pub(crate) ask: Ask,
}
