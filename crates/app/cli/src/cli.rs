//! The words of the command line.

mod heartbeats;
mod lab;
mod models;
pub(crate) mod numbers;
mod outputs;
mod plan;
mod reproduce;
mod simulate;
mod sweep;
mod switches;
mod tagger;
mod topology;
mod values;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
use fabric::parse_rate;

use numbers::whole;

pub(crate) use heartbeats::Heartbeats;
pub(crate) use lab::{BackendChoice, Lab, LabCommand, Measure};
pub(crate) use models::OwnModels;
pub(crate) use numbers::{accept_negative, refuse_negative};
pub(crate) use outputs::{PcapAt, SimulateOutputs};
pub(crate) use plan::{Check, Export, Plan, Render, Show, Subject};
pub(crate) use reproduce::{Figures, Place, Reproduce};
pub(crate) use simulate::{FlowControlChoice, Simulate, SimulationLevel, TransportChoice};
pub(crate) use sweep::{Sweep, SweepVerb};
pub(crate) use switches::{Addresses, Deploy, Discover, Enrol, Observe, Reach, Serve, Standby, Status, Switchd, Watch};
pub(crate) use tagger::{Tagger, TaggerCommand, TaggerSource};
pub(crate) use topology::{Generate, Import, Traffic};

/// Turns Ethernet switches cabled with loops into one multipath, deadlock-free, self-checking network.
///
/// Every VLAN is a spanning tree, the set of them uses every cable, and hosts need not know.
#[derive(Parser)]
#[command(
    name = "espalier",
    version,
    propagate_version = true,
    after_help = "Example: espalier generate torus 4x4 -o torus.yaml && espalier plan torus.yaml -o plan.json"
)]
pub(crate) struct Cli {
    /// Print one JSON object for machines instead of text for people.
    #[arg(long, global = true)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) controller: Controller,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// An espalierd to ask instead of the switches.
#[derive(Args, Clone)]
pub(crate) struct Controller {
    /// Ask this espalierd instead of the switches (deploy, status, watch, observe, discover), or send it heartbeats (tagger run, heartbeats):
    /// https://HOST:PORT, http://127.0.0.1:PORT or the path of its socket.
    #[arg(long = "controller", value_name = "URL")]
    pub(crate) url: Option<String>,
    /// File of the token to show to --controller, mode 0600 [env: ESPALIER_TOKEN_FILE].
    #[arg(long, value_name = "FILE", requires = "url")]
    pub(crate) token_file: Option<PathBuf>,
    /// CA certificates that the controller's is signed by (PEM) [env: ESPALIER_CA] [default: the system's].
    #[arg(long, value_name = "FILE", requires = "url")]
    pub(crate) ca: Option<PathBuf>,
}

#[derive(Subcommand)]
pub(crate) enum Command {
    Generate(Generate),
    Import(Import),
    Traffic(Traffic),
    Plan(Plan),
    Check(Check),
    Discover(Discover),
    Enrol(Enrol),
    Deploy(Deploy),
    Observe(Observe),
    Status(Status),
    Watch(Watch),
    Standby(Standby),
    Addresses(Addresses),
    Show(Show),
    Export(Export),
    Render(Render),
    Serve(Serve),
    Lab(Lab),
    Simulate(Box<Simulate>),
    Sweep(Sweep),
    Tagger(Tagger),
    Heartbeats(Heartbeats),
    Switchd(Switchd),
    Reproduce(Reproduce),
    Demo(Demo),
    Completions(Completions),
    Man(Man),
}

impl Command {
    /// Whether the verb takes --controller.
    pub(crate) fn asks_controllers(&self) -> bool {
        matches!(
            self,
            Self::Deploy(_)
                | Self::Status(_)
                | Self::Watch(_)
                | Self::Observe(_)
                | Self::Discover(_)
                | Self::Heartbeats(_)
                | Self::Tagger(Tagger { command: TaggerCommand::Run { .. } })
        )
    }
}

/// See a torus of sixteen switches outrun its own spanning tree, on real kernels with real TCP.
#[derive(Args)]
#[command(after_help = "Example: espalier demo")]
pub(crate) struct Demo {
    /// Rate of every cable.
    #[arg(long, value_parser = parse_rate, allow_hyphen_values = true, default_value = "50mbit")]
    pub(crate) rate: u64,
    /// Bytes that each pair of hosts transfers.
    #[arg(long, default_value_t = 1_000_000, value_name = "N", value_parser = whole(1..=u64::MAX))]
    pub(crate) bytes: u64,
}

/// Print a shell's completion script.
#[derive(Args)]
#[command(after_help = "Example: espalier completions bash > /etc/bash_completion.d/espalier")]
pub(crate) struct Completions {
    /// The shell.
    pub(crate) shell: clap_complete::Shell,
}

/// Write a manual page for every command.
#[derive(Args)]
#[command(after_help = "Example: espalier man /usr/local/share/man/man1")]
pub(crate) struct Man {
    /// The folder to write to.
    pub(crate) directory: PathBuf,
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn no_two_options_of_a_verb_have_the_same_name() {
        Cli::command().debug_assert();
    }

    #[test]
    fn every_pattern_that_help_names_is_taken() {
        let parse = |text: &str| match Cli::try_parse_from(["espalier", "simulate", "plan.json", "--pattern", text]) {
            Ok(Cli { command: Command::Simulate(simulate), .. }) => Some(simulate.pattern),
            _ => None,
        };
        for pattern in sim::pattern::Pattern::WITH_FLOODS {
            assert_eq!(parse(pattern.word()), Some(*pattern));
        }
        assert_eq!(parse("shift=5"), Some(sim::pattern::Pattern::Shift(5)));
        for wrong in ["shift", "shift=", "shift=0", "shift=N", "shift=-1", "shift=5x", "shuffle"] {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
    }
}
