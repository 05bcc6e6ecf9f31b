//! What makes a topology and what is known of its traffic: `generate`, `import` and `traffic`.

use std::path::PathBuf;

use clap::Args;
use fabric::parse_rate;

use super::{
    models::OwnModels,
    numbers::{count, whole},
};

/// Write a topology of a well-known kind.
#[derive(Args)]
#[command(after_help = generate_help())]
pub(crate) struct Generate {
    /// The kind of network; see the list below.
    #[arg(value_name = "KIND")]
    pub(crate) kind: String,
    /// Its sizes, in the field's notation.
    #[arg(value_name = "SIZE", allow_negative_numbers = true)]
    pub(crate) sizes: Vec<String>,
    /// Hosts on each switch that has any.
    #[arg(long, value_name = "N", value_parser = count(0..=4096))]
    pub(crate) hosts_per_switch: Option<usize>,
    /// Ports of each machine, each on a rail of its own: N consecutive switches with hosts serve the same machines. One port, and
    /// no rails, unless given.
    #[arg(long, value_name = "N", value_parser = count(1..=255))]
    pub(crate) nics: Option<usize>,
    /// Rate of the cables between switches, such as 10gbit.
    #[arg(long, value_parser = parse_rate, allow_hyphen_values = true, default_value = "1gbit", value_name = "RATE")]
    pub(crate) rate: u64,
    /// Rate of the hosts' cables; the same unless given.
    #[arg(long, value_parser = parse_rate, allow_hyphen_values = true, value_name = "RATE")]
    pub(crate) host_rate: Option<u64>,
    /// Model of every switch, which also names the ports.
    #[arg(long)]
    pub(crate) model: Option<String>,
    #[command(flatten)]
    pub(crate) own: OwnModels,
    /// Permute names, ports and order, so that the structure must be found from the cables.
    #[arg(long, value_name = "SEED", value_parser = whole(0..=u64::MAX))]
    pub(crate) shuffle: Option<u64>,
    /// Where to write; standard output unless given.
    #[arg(short, long, value_name = "FILE", default_value = "-")]
    pub(crate) output: PathBuf,
}

/// Turn what another tool says about the cabling into a topology.
#[derive(Args)]
#[command(after_help = "Examples:\n  espalier import cables.dot -o topology.yaml\n  \
    espalier import --from lldp sw1.json sw2.json sw3.json -o topology.yaml\n  \
    espalier import devices.json interfaces.json -o topology.yaml\n  \
    espalier import --from lldp sw1.json sw2.json --expect cables.dot\n  \
    espalier import today.ibnet --expect yesterday.ibnet\n\n\
    Every difference between the files, one-sided sightings included, is reported with file and line.")]
pub(crate) struct Import {
    /// The files; several only for lldp, one a device, and for netbox, as its REST API answers.
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// Their format; told from the content unless given.
    #[arg(long, value_name = "FORMAT")]
    pub(crate) from: Option<String>,
    /// Which nodes are hosts, where a format does not say: name patterns such as 'node*'.
    #[arg(long, value_name = "PATTERN")]
    pub(crate) hosts: Vec<String>,
    /// For netbox: which roles are switches', by name or slug: patterns such as 'tor*'; roles with switch, leaf or spine in them
    /// unless given.
    #[arg(long, value_name = "PATTERN")]
    pub(crate) switch_role: Vec<String>,
    /// For lldp and netbox: own ports whose neighbours are no part of the fabric, such as 'eth0' for management.
    #[arg(long, value_name = "PATTERN")]
    pub(crate) ignore_ports: Vec<String>,
    /// Say how the cabling differs from this one, in any format: what is gone, new, moved or swapped, each with its
    /// remedy. Exit code 1 means that it does.
    #[arg(long, value_name = "CABLING")]
    pub(crate) expect: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) own: OwnModels,
    /// Where to write; standard output unless given.
    #[arg(short, long, value_name = "FILE", default_value = "-")]
    pub(crate) output: PathBuf,
}

/// Estimate who sends what to whom from byte counters: a traffic matrix for `plan --traffic`.
#[derive(Args)]
#[command(after_help = "Counters are lines of switch,port,rx_bytes,tx_bytes as switches count them, or of \
    host,sent_bytes,received_bytes. The matrix is that of the gravity model, fitted to both sums of every host.\n\n\
    Examples:\n  espalier traffic cluster.yaml before.csv after.csv -o matrix.csv\n  \
    espalier traffic cluster.yaml totals.csv | espalier plan cluster.yaml --traffic - -o plan.json")]
pub(crate) struct Traffic {
    /// The topology, in any format that import reads; - is standard input.
    #[arg(value_name = "TOPOLOGY")]
    pub(crate) topology: PathBuf,
    /// Counters; totals if there is one file.
    #[arg(value_name = "COUNTERS")]
    pub(crate) counters: PathBuf,
    /// The same counters read later: what was sent in between counts.
    #[arg(value_name = "LATER")]
    pub(crate) later: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) own: OwnModels,
    /// Where to write; standard output unless given.
    #[arg(short, long, value_name = "FILE", default_value = "-")]
    pub(crate) output: PathBuf,
}

fn generate_help() -> String {
    let mut help = "Kinds:\n".to_owned();
    for family in fabric::generate::Family::ALL {
        let fabric::generate::Family { word, sizes, about, .. } = family;
        help.push_str(&format!("  {word:<15} {sizes:<20} {about}\n"));
    }
    help.push_str("\nExamples:\n");
    for family in fabric::generate::Family::ALL {
        help.push_str(&format!("  espalier generate {}\n", family.example));
    }
    help
}
