//! `tagger` and its verbs.

use std::path::PathBuf;

use ::tagger::Spread;
use clap::{Args, Subcommand};

use super::numbers::short;

/// Let this host tag its own frames: one flat network for programs, every cable for frames.
#[derive(Args)]
#[command(after_help = "Examples:\n  espalier tagger config plan.json -o tagger.conf\n  \
    espalier tagger attach eth1 --config tagger.conf && espalier tagger status eth1\n  \
    espalier tagger run eth1 --config tagger.conf\n\n\
    The configuration is one text for all hosts:\n  mode source-destination\n  \
    02:00:00:00:00:01 2 8 sw1    # address, VLAN, priority, switch")]
pub(crate) struct Tagger {
    #[command(subcommand)]
    pub(crate) command: TaggerCommand,
}

#[derive(Subcommand)]
pub(crate) enum TaggerCommand {
    /// Write the configuration that all hosts of a plan share.
    #[command(after_help = "Example: espalier tagger config plan.json -o tagger.conf")]
    Config {
        /// A plan whose hosts tag.
        plan: PathBuf,
        /// How frames are spread over the VLANs of a pair: first, port, flow, flowlet, flowlet=500us, placed.
        #[arg(long, default_value = "first", value_name = "HOW", value_parser = spread)]
        spread: Spread,
        /// Frames leave in the class that their DSCP asks for, 0 to 5, instead of all in class 0.
        #[arg(long)]
        dscp: bool,
        /// Where to write; standard output unless given.
        #[arg(short, long, value_name = "FILE", default_value = "-")]
        output: PathBuf,
    },
    /// Tag what a device sends, and untag what it receives, from now on. Again replaces the table, and nothing is lost.
    #[command(after_help = "Example: espalier tagger attach eth1 --config tagger.conf")]
    Attach {
        /// The network device: a NIC, a bond, a VLAN or a veth.
        device: String,
        #[command(flatten)]
        source: TaggerSource,
        /// Destinations to make room for; twice those of the table unless given.
        #[arg(long, value_name = "N", value_parser = short(1..=16_777_216))]
        room: Option<u32>,
        /// Milliseconds after which TCP sends again at the earliest on the device's subnets; 0 leaves them to Linux.
        #[arg(long, value_name = "MS", value_parser = short(0..=200))]
        rto_min: Option<u32>,
    },
    /// Take the programs off a device, and the routes that --rto-min set; other tc programs stay.
    #[command(after_help = "Example: espalier tagger detach eth1")]
    Detach {
        /// The network device.
        device: String,
    },
    /// Show the table in force and what was counted, by destination and by VLAN.
    #[command(after_help = "Example: espalier tagger status eth1 --json")]
    Status {
        /// The network device.
        device: String,
    },
    /// Attach, watch the paths to other switches, and leave those that are dead or lossy until they heal.
    #[command(after_help = "Examples:\n  espalier tagger run eth1 --config tagger.conf\n  \
        espalier --controller https://controller.example.org:7434 --token-file token tagger run eth1 --plan plan.json\n\n\
        Ends on SIGINT or SIGTERM; the device goes on tagging.")]
    Run {
        /// The network device.
        device: String,
        #[command(flatten)]
        source: TaggerSource,
        /// Destinations to make room for; twice those of the table unless given.
        #[arg(long, value_name = "N", value_parser = short(1..=16_777_216))]
        room: Option<u32>,
        /// Most probes of a second.
        #[arg(long, default_value_t = 2000, value_name = "N", value_parser = short(1..=1_000_000))]
        probes: u32,
        /// Shortest silence that makes a path sick, in milliseconds; less than five probes is none.
        #[arg(long, default_value_t = 10, value_name = "MS", value_parser = short(1..=10_000))]
        silence: u32,
        /// Milliseconds after which TCP sends again at the earliest on the device's subnets; 0 leaves them to Linux.
        #[arg(long, default_value_t = 10, value_name = "MS", value_parser = short(0..=200))]
        rto_min: u32,
        /// With --controller: seconds between heartbeats, which tell it of failing paths and of bytes sent by destination. A path that
        /// begins to fail is told of within a second.
        #[arg(long, default_value_t = 10, value_name = "S", value_parser = short(1..=3600))]
        heartbeat: u32,
    },
}

/// Where a host's table comes from.
#[derive(Args)]
pub(crate) struct TaggerSource {
    /// The configuration that all hosts share.
    #[arg(long, value_name = "FILE", required_unless_present = "plan", conflicts_with = "plan")]
    pub(crate) config: Option<PathBuf>,
    /// A plan whose hosts tag.
    #[arg(long, value_name = "PLAN")]
    pub(crate) plan: Option<PathBuf>,
    /// With --plan: how frames are spread over the VLANs of a pair: first, port, flow, flowlet, flowlet=500us, placed.
    #[arg(long, default_value = "first", value_name = "HOW", conflicts_with = "config", value_parser = spread)]
    pub(crate) spread: Spread,
    /// With --plan: frames leave in the class that their DSCP asks for, 0 to 5, instead of all in class 0.
    #[arg(long, conflicts_with = "config")]
    pub(crate) dscp: bool,
}

pub(super) fn spread(text: &str) -> Result<Spread, String> {
    text.parse()
}
