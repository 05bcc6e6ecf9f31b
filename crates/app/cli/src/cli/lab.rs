//! `lab` and its verbs.

use std::path::PathBuf;

use ::tagger::Spread;
use clap::{Args, Subcommand, ValueEnum};
use fabric::parse_rate;

use super::{
    models::OwnModels,
    numbers::{short, whole},
    tagger::spread,
};

/// Run a plan as a fabric of network namespaces with real programs.
#[derive(Args)]
#[command(after_help = "Example:\n  espalier lab up plan.json && espalier lab measure all-to-all && espalier lab down")]
pub(crate) struct Lab {
    /// Name of the lab; several can run at once.
    #[arg(long, global = true, default_value = "lab")]
    pub(crate) name: String,
    #[command(subcommand)]
    pub(crate) command: LabCommand,
}

#[derive(Subcommand)]
pub(crate) enum LabCommand {
    /// Build the fabric of a plan.
    #[command(after_help = "Examples:\n  espalier lab up plan.json --rate 100mbit\n  \
        espalier lab up --factory torus.yaml && espalier lab exec mgmt -- snmpwalk -v2c -c public 198.18.0.1 1.3.6.1.2.1.17")]
    Up {
        /// The plan; with --factory, a topology will do.
        plan: PathBuf,
        #[command(flatten)]
        own: OwnModels,
        /// Rate of the fastest host cable; all others keep their proportion.
        #[arg(long, value_parser = parse_rate, allow_hyphen_values = true, default_value = "100mbit")]
        rate: u64,
        /// Most bytes that wait for one direction of a cable.
        #[arg(long, value_name = "BYTES", default_value_t = 4 << 20, value_parser = short(1600..=u32::MAX))]
        queue: u32,
        /// What plays the switches.
        #[arg(long, default_value = "auto")]
        backend: BackendChoice,
        /// Give every switch an SNMP agent on a management network, where its data plane can be read and changed.
        #[arg(long)]
        managed: bool,
        /// Nothing but cables: managed switches as they leave the factory, with spanning tree on.
        #[arg(long)]
        factory: bool,
        /// How hosts that tag spread frames over the VLANs of a pair: first, port, flow, flowlet, flowlet=500us, placed.
        #[arg(long, default_value = "first", value_name = "HOW", value_parser = spread)]
        spread: Spread,
    },
    /// Serve the management of a lab's switches; `lab up --managed` starts it.
    #[command(hide = true)]
    Agents,
    /// Speak LACP for a lab's LAGs; `lab up` starts it.
    #[command(hide = true)]
    Lacp,
    /// Take a lab down and leave nothing behind, whatever state it is in.
    #[command(after_help = "Examples:\n  espalier lab down\n  espalier lab down night")]
    Down {
        /// The lab; without it, the one of --name.
        lab: Option<String>,
    },
    /// List the labs that exist.
    #[command(after_help = "Example: espalier lab list")]
    List,
    /// Show ports, load, floods and drops since the lab came up.
    #[command(after_help = "Example: espalier lab status")]
    Status,
    /// Run a program on a host, or where managed switches are managed from.
    #[command(after_help = "Examples:\n  espalier lab exec h0 -- ping -c 3 10.0.0.6\n  \
        espalier lab exec mgmt -- snmpget -v2c -c public 198.18.0.1 1.3.6.1.2.1.1.5.0")]
    Exec {
        /// The host, or mgmt.
        host: String,
        /// The program and its arguments.
        #[arg(trailing_var_arg = true, required = true, allow_hyphen_values = true)]
        program: Vec<String>,
    },
    /// Break a cable.
    #[command(after_help = "Example: espalier lab fail 's0-0:p1 -- s0-1:p2' --silent")]
    Fail {
        /// The cable, as `switch:port -- switch:port`, or one end of it.
        link: String,
        /// Frames vanish although the link stays up.
        #[arg(long)]
        silent: bool,
        /// So many per cent of its frames vanish, by chance; the link stays up.
        #[arg(long, value_name = "PERCENT", conflicts_with = "silent", allow_hyphen_values = true, value_parser = loss_ppm)]
        loss: Option<u32>,
    },
    /// Mend a cable.
    #[command(after_help = "Example: espalier lab heal 's0-0:p1 -- s0-1:p2'")]
    Heal {
        /// The cable, as `switch:port -- switch:port`, or one end of it.
        link: String,
    },
    /// Exchange the plugs in two switch ports; where one port is empty, the plug moves there. Switches see the links go down
    /// and come up; the same command again takes it back.
    #[command(after_help = "Examples:\n  espalier lab plug s0-0:p1 s0-0:p2\n  espalier lab plug s0-0:p4 s1-2:p9")]
    Plug {
        /// A port, as `switch:port`.
        port: String,
        /// The other port.
        other: String,
    },
    /// Check that every pair answers, and that ARP, DHCP, neighbour discovery and multicast reach everybody once.
    #[command(after_help = "Example: espalier lab ping")]
    Ping,
    /// Send real traffic between hosts and compare it with the plan's prediction.
    #[command(after_help = "Examples:\n  espalier lab measure all-to-all\n  \
        espalier lab measure pair h0 h5 --bytes 10000000\n  espalier lab measure pair h0 h5 --iperf3")]
    Measure(Measure),
}

/// Per cent as parts per million.
fn loss_ppm(text: &str) -> Result<u32, String> {
    let percent = text.trim_end_matches('%').parse::<f64>().ok().filter(|percent| *percent > 0.0 && *percent <= 100.0);
    percent.map(|percent| (percent * 1e4).round() as u32).ok_or_else(|| "write per cent above 0, up to 100".to_owned())
}

/// What to send in a lab.
#[derive(Args)]
pub(crate) struct Measure {
    /// all-to-all, bit-reversal, transpose, bisection, or pair.
    pub(crate) pattern: String,
    /// For pair: the sender and the receiver.
    #[arg(value_name = "HOST")]
    pub(crate) hosts: Vec<String>,
    /// Bytes that each pair transfers.
    #[arg(long, default_value_t = 1_000_000, value_name = "N", value_parser = whole(1..=u64::MAX))]
    pub(crate) bytes: u64,
    /// Datagrams instead of TCP: what the fabric cannot carry is lost.
    #[arg(long)]
    pub(crate) udp: bool,
    /// Every transfer takes what it can get, instead of keeping together.
    #[arg(long)]
    pub(crate) free: bool,
    /// For pair: let iperf3 measure, for five seconds.
    #[arg(long)]
    pub(crate) iperf3: bool,
}

/// What plays the switches of a lab.
#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum BackendChoice {
    /// The kernel's VLAN-aware bridge where there is one, else eBPF.
    Auto,
    /// The kernel's VLAN-aware bridge.
    Bridge,
    /// A tc eBPF switch.
    Ebpf,
}
