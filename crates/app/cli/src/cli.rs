//! The words of the command line.

pub(crate) mod numbers;
mod outputs;
mod reproduce;
mod sweep;

use std::path::PathBuf;

use clap::{
    Args, Parser, Subcommand, ValueEnum, builder::PossibleValue, builder::PossibleValuesParser,
    builder::TypedValueParser,
};
use fabric::{
    EngineName, FdbMode, Flood, FlowControl, Resilience, StormLimit, Subnet, Tagging, VlanId, VlanSet, parse_rate,
};
use tagger::Spread;

use numbers::{count, port, real, short, whole};

pub(crate) use numbers::{accept_negative, refuse_negative};
pub(crate) use outputs::{PcapAt, SimulateOutputs};
pub(crate) use reproduce::{Place, REPRODUCTIONS, Reproduce};
pub(crate) use sweep::{Sweep, SweepVerb};

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
    #[command(subcommand)]
    pub(crate) command: Command,
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
    Show(Show),
    Export(Export),
    Render(Render),
    Serve(Serve),
    Lab(Lab),
    Simulate(Box<Simulate>),
    Sweep(Sweep),
    Tagger(Tagger),
    Switchd(Switchd),
    Reproduce(Reproduce),
    Demo(Demo),
    Completions(Completions),
    Man(Man),
}

/// Models of switches beside the built-in ones.
#[derive(Args)]
pub(crate) struct OwnModels {
    /// Folder of model files, as `enrol` writes them; `models` beside the topology unless given.
    #[arg(long, value_name = "DIR")]
    pub(crate) models: Option<PathBuf>,
}

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
    espalier import --from lldp sw1.json sw2.json --expect cables.dot\n  \
    espalier import today.ibnet --expect yesterday.ibnet\n\n\
    Every difference between the files, one-sided sightings included, is reported with file and line.")]
pub(crate) struct Import {
    /// The files; several only for lldp, one a device.
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// Their format; told from the content unless given.
    #[arg(long, value_name = "FORMAT")]
    pub(crate) from: Option<String>,
    /// Which nodes are hosts, where a format does not say: name patterns such as 'node*'.
    #[arg(long, value_name = "PATTERN")]
    pub(crate) hosts: Vec<String>,
    /// For lldp: own ports whose neighbours are no part of the fabric, such as 'eth0' for management.
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

/// Plan a topology, check the plan, and print what it achieves.
#[derive(Args)]
#[command(after_help = "Examples:\n  espalier plan torus.yaml -o plan.json\n  \
    espalier plan cluster.yaml --engine clos --max-vlans 64 --fdb minimal -o plan.json\n  \
    espalier generate mesh 8x8 | espalier plan - --json\n  \
    espalier plan cluster.yaml --traffic matrix.csv -o plan.json\n  \
    espalier plan cluster.yaml --pareto\n  \
    espalier plan cluster.yaml --explain\n  \
    espalier plan cluster.yaml --flood drop -o plan.json\n  \
    espalier plan cluster.yaml --storm-control 1 -o plan.json\n  \
    espalier plan cluster.yaml --tagging source-destination --fdb learned -o plan.json\n  \
    espalier plan cluster.yaml --resilience 1 -o plan.json && espalier show plan.json --failure 'sw1:p1 -- sw2:p1'\n\n\
    The plan is written only if the independent judge finds nothing fatal, unless --force is given.")]
pub(crate) struct Plan {
    /// The topology, in any format that import reads; - is standard input.
    #[arg(value_name = "TOPOLOGY")]
    pub(crate) topology: PathBuf,
    /// The topology's format; told from the content unless given.
    #[arg(long, value_name = "FORMAT")]
    pub(crate) from: Option<String>,
    #[command(flatten)]
    pub(crate) own: OwnModels,
    /// How routes are found.
    #[arg(long, default_value = "auto", value_parser = choices(EngineName::ALL, EngineName::word, EngineName::about))]
    pub(crate) engine: EngineName,
    /// Who chooses a frame's VLAN, and by what.
    #[arg(long, default_value = "switch", value_parser = choices(Tagging::ALL, Tagging::word, Tagging::about))]
    pub(crate) tagging: Tagging,
    /// Which flow control the switches run: none, pause, or pfc=N with N lossless classes.
    #[arg(long, default_value = "pause", value_name = "none|pause|pfc=N")]
    pub(crate) flow_control: FlowControl,
    /// Which static entries switches hold.
    #[arg(long, default_value = "minimal", value_parser = choices(FdbMode::ALL, FdbMode::word, FdbMode::about))]
    pub(crate) fdb: FdbMode,
    /// What switches do with frames for which they have no entry. What is dropped needs no proof against deadlock.
    #[arg(long, default_value = "forward", value_parser = choices(Flood::ALL, Flood::word, Flood::about))]
    pub(crate) flood: Flood,
    /// Storm control: the most broadcasts, multicasts and unknown unicasts that each host's port admits, each in percent of the
    /// port's rate; no limit unless given. It bounds what a faulty host can do, and is no part of the proof against deadlock.
    #[arg(long, value_name = "PERCENT")]
    pub(crate) storm_control: Option<StormLimit>,
    /// Most VLANs to use. What that costs is printed: it takes as long again to plan without the cap, or a quarter of the
    /// time limit. The same goes for switches whose static tables are too small for good routes.
    #[arg(long, value_name = "N", value_parser = count(1..=4094))]
    pub(crate) max_vlans: Option<usize>,
    /// VLAN ids to draw from.
    #[arg(long, default_value = "2-4094", allow_hyphen_values = true, value_name = "FIRST-LAST")]
    pub(crate) vlans: VlanSet,
    /// VLAN ids to leave alone.
    #[arg(long, default_value = "1002-1005", allow_hyphen_values = true, value_name = "LIST")]
    pub(crate) reserved_vlans: VlanSet,
    /// Leave alone the VLANs that switches use already: a folder that `observe` wrote.
    #[arg(long, value_name = "DIR")]
    pub(crate) avoid_vlans_of: Option<PathBuf>,
    /// Subnet for hosts that state no address.
    #[arg(long, default_value_t = Subnet::default(), value_name = "NETWORK/BITS")]
    pub(crate) subnet: Subnet,
    /// Largest IP packet on hosts, in bytes.
    #[arg(long, default_value_t = 1500, value_parser = port(576..=9216), value_name = "BYTES")]
    pub(crate) mtu: u16,
    /// What hosts send to each other, as lines of source,destination,demand or a square table; unless given, all send as
    /// much to all. `espalier traffic` estimates it from counters.
    #[arg(long, value_name = "FILE")]
    pub(crate) traffic: Option<PathBuf>,
    /// Seed of every random choice.
    #[arg(long, default_value_t = 1, value_parser = whole(0..=u64::MAX))]
    pub(crate) seed: u64,
    /// Manage the switches over their data ports, in this VLAN; 1 travels without a tag, as switches leave the factory. The
    /// topology's section management: says the same.
    #[arg(long, value_name = "VLAN", requires = "controller")]
    pub(crate) management_vlan: Option<VlanId>,
    /// With --management-vlan: the port that the controller is plugged into, which carries nothing else.
    #[arg(long, value_name = "SWITCH:PORT", requires = "management_vlan")]
    pub(crate) controller: Option<String>,
    /// How many links may fail before frames are lost for longer than hosts take to switch over: 1 stores, for every
    /// link, which hosts or pairs move to which VLAN of the plan when it fails.
    #[arg(long, default_value = "0", value_name = "0|1", value_parser = choices(Resilience::ALL, Resilience::word, Resilience::about))]
    pub(crate) resilience: Resilience,
    /// Search for better routes for so many seconds, or until Ctrl-C, which keeps the best so far. Without it, a number
    /// of steps that depends on the size alone, so that the same input gives the same plan.
    #[arg(long, value_name = "SECONDS", value_parser = real(0.0..=1e9))]
    pub(crate) time_limit: Option<f64>,
    /// The plan that the fabric runs now: what still stands of it is kept, and what changes is printed.
    #[arg(long, value_name = "PLAN")]
    pub(crate) previous: Option<PathBuf>,
    /// Where to write the plan.
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Instead of one plan, print what fewer VLANs and static entries would cost: the best plan for caps of 1, 2, 4, … VLANs
    /// and for none. A time limit holds for each; Ctrl-C prints what there is so far.
    #[arg(long, conflicts_with_all = ["output", "previous"])]
    pub(crate) pareto: bool,
    /// Print how the routes were found: what each engine and each start of the search achieved, what every round brought, why
    /// the search ended, and which links are the most loaded.
    #[arg(long, conflicts_with = "pareto")]
    pub(crate) explain: bool,
    /// Write the plan even if the judge finds it unfit to deploy.
    #[arg(long)]
    pub(crate) force: bool,
}

/// Judge a plan: walk every frame through what the switches would hold.
#[derive(Args)]
#[command(after_help = "Examples:\n  espalier check plan.json\n  \
    espalier check plan.json --rendered switches\n  \
    espalier check new.json --rendered difference --since old.json\n\n\
    The judge knows nothing of how the plan was made. Exit code 1 means that it found something fatal.")]
pub(crate) struct Check {
    /// The plan.
    #[arg(value_name = "PLAN")]
    pub(crate) plan: PathBuf,
    /// Judge a plan file that was changed after it was written.
    #[arg(long)]
    pub(crate) ignore_digest: bool,
    /// Judge what rendered files tell the switches, instead of what the plan asks of them.
    #[arg(long, value_name = "DIR")]
    pub(crate) rendered: Option<PathBuf>,
    /// Judge what switches said of themselves, as `observe` wrote it down, instead of what the plan asks of them.
    #[arg(long, value_name = "DIR", conflicts_with = "rendered")]
    pub(crate) observed: Option<PathBuf>,
    /// For a rendered difference: the plan that the switches run before it.
    #[arg(long, value_name = "OLD", requires = "rendered")]
    pub(crate) since: Option<PathBuf>,
    /// Most threads that judge link failures at the same time; one for each processor by default.
    #[arg(long, value_name = "N", value_parser = count(1..=4096))]
    pub(crate) threads: Option<usize>,
}

/// How to reach switches.
#[derive(Args, Clone)]
pub(crate) struct Reach {
    /// SNMP and SSH credentials (TOML, mode 0600).
    #[arg(long, value_name = "FILE", default_value = "credentials.toml")]
    pub(crate) credentials: PathBuf,
    /// UDP port of SNMP.
    #[arg(long, value_name = "PORT", default_value_t = 161, value_parser = port(1..=65_535))]
    pub(crate) port: u16,
    /// Seconds to wait for an answer; readings are repeated sooner.
    #[arg(long, value_name = "S", default_value_t = 1.5, value_parser = real(0.01..=600.0))]
    pub(crate) timeout: f64,
    /// Timeouts without an answer after which a switch counts as unreachable.
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = short(1..=1000))]
    pub(crate) attempts: u32,
    /// Most switches polled at the same time.
    #[arg(long, value_name = "N", default_value_t = 32, value_parser = count(1..=4096))]
    pub(crate) parallel: usize,
}

/// Find the cables of real switches: a topology from what they say of their neighbours.
#[derive(Args)]
#[command(after_help = "Examples:\n  espalier discover 192.0.2.1 192.0.2.2 192.0.2.3 -o cables.yaml\n  \
    espalier discover 192.0.2.1 192.0.2.2 --expect cables.yaml\n\n\
    A cable counts when both of its ends report it. Exit code 1 means doubts, or a difference from what is expected.")]
pub(crate) struct Discover {
    /// Management addresses of the switches.
    #[arg(value_name = "ADDRESS", required_unless_present = "expect")]
    pub(crate) addresses: Vec<std::net::IpAddr>,
    #[command(flatten)]
    pub(crate) reach: Reach,
    /// Compare with these cables, and ask its switches if no addresses are given.
    #[arg(long, value_name = "TOPOLOGY")]
    pub(crate) expect: Option<PathBuf>,
    /// Model of every switch that is found.
    #[arg(long)]
    pub(crate) model: Option<String>,
    #[command(flatten)]
    pub(crate) own: OwnModels,
    /// Where to write the topology; standard output unless given or comparing.
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

/// Find out what switches really can do, by writing and reading back, and describe them as models.
#[derive(Args)]
#[command(after_help = "Examples:\n  espalier enrol 192.0.2.1 --credentials admin.toml --dry-run\n  \
    espalier enrol 192.0.2.1 192.0.2.2 --at g23 --at g24 -o models\n  espalier enrol --clean\n\n\
    VLANs that are not there, and addresses that nobody has, are made at two ports without a link, or at those that --at \
    names, and removed again, whatever happens. What a probe could not remove is named, and --clean finishes it. Nothing is \
    saved, so a restart clears everything too. Topologies beside the folder of models can name what is found.")]
pub(crate) struct Enrol {
    /// Management addresses of the switches.
    #[arg(value_name = "ADDRESS", required_unless_present = "clean")]
    pub(crate) addresses: Vec<std::net::IpAddr>,
    #[command(flatten)]
    pub(crate) reach: Reach,
    /// Port to probe, by name; twice for two. The last two without a link unless given.
    #[arg(long = "at", value_name = "PORT")]
    pub(crate) ports: Vec<String>,
    /// Static entries beyond which no more are made.
    #[arg(long, value_name = "N", default_value_t = 2048, value_parser = count(4..=60_000))]
    pub(crate) max_entries: usize,
    /// VLANs beyond which no more are made.
    #[arg(long, value_name = "N", default_value_t = 130, value_parser = count(4..=4094))]
    pub(crate) max_vlans: usize,
    /// What the model is to be called; as it is known already, or after what the switch says, unless given.
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// The model whose language, ways to save and other facts that cannot be probed hold; found by sysObjectID unless given.
    #[arg(long, value_name = "MODEL")]
    pub(crate) base: Option<String>,
    #[command(flatten)]
    pub(crate) own: OwnModels,
    /// Print every SET that would be sent, and send none.
    #[arg(long, conflicts_with = "clean")]
    pub(crate) dry_run: bool,
    /// Remove what interrupted enrolments left: of these switches, or of all that the state folder knows.
    #[arg(long)]
    pub(crate) clean: bool,
    /// Where ledgers are kept while switches are probed.
    #[arg(long, value_name = "DIR", default_value = ".espalier")]
    pub(crate) state: PathBuf,
    /// Folder to write models to.
    #[arg(short, long, value_name = "DIR", default_value = "models")]
    pub(crate) output: PathBuf,
}

/// Put a plan on its switches, all of them or none.
#[derive(Args, Clone)]
#[command(after_help = "Examples:\n  espalier deploy plan.json --credentials admin.toml\n  \
    espalier deploy plan.json --dry-run\n  espalier deploy plan.json --resume\n  \
    espalier deploy new.json --since old.json\n  \
    espalier deploy plan.json --trust-cabling sw1:p1--sw2:p2 --replaced sw3\n  \
    espalier deploy plan.json --around-unconfirmed less.json\n\n\
    Before anything is written, deploy reads from every switch who it is and whom it hears by LLDP. Where a switch is not the \
    plan's, or a cable is plugged into another port, nothing is written; cables that LLDP does not confirm stay down. \
    Ports are down while switches differ, and come up only when every switch has been read back and judged. Whatever fails, \
    every switch gets back what it held. Ctrl-C turns back as well.")]
pub(crate) struct Deploy {
    /// The plan; its switches need management addresses.
    #[arg(value_name = "PLAN")]
    pub(crate) plan: PathBuf,
    #[command(flatten)]
    pub(crate) reach: Reach,
    /// Where journal and generation are kept.
    #[arg(long, value_name = "DIR", default_value = ".espalier")]
    pub(crate) state: PathBuf,
    /// Hitless change from OLD; every switch must hold OLD.
    #[arg(long, value_name = "OLD", conflicts_with = "undo")]
    pub(crate) since: Option<PathBuf>,
    /// Print every SET that would be sent, and send none.
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Go on where an interrupted deployment stopped.
    #[arg(long, conflicts_with = "undo")]
    pub(crate) resume: bool,
    /// Take an interrupted deployment back.
    #[arg(long)]
    pub(crate) undo: bool,
    /// Go ahead although somebody else has deployed since, or an interrupted deployment was left here.
    #[arg(long, conflicts_with = "since")]
    pub(crate) take_over: bool,
    /// Use a cable that LLDP does not confirm: sw1:p1--sw2:p2, one end of it, or all. Without this, it stays administratively down.
    #[arg(long, value_name = "LINK")]
    pub(crate) trust_cabling: Vec<String>,
    /// Confirm cables without LLDP by their link state: each is taken down at one end for up to 5 s; the other end must follow,
    /// and no other port. Traffic over them stops meanwhile.
    #[arg(long, conflicts_with_all = ["dry_run", "undo"])]
    pub(crate) confirm_by_link_state: bool,
    /// Plan around cables that nothing confirms, as plan --previous does, write that plan to FILE, and deploy it.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["since", "resume", "undo", "dry_run"])]
    pub(crate) around_unconfirmed: Option<PathBuf>,
    /// A switch that was replaced: it may have another identity than id: in the topology.
    #[arg(long, value_name = "SWITCH")]
    pub(crate) replaced: Vec<String>,
    /// Where switches are managed over their data ports: how long one that has been changed may be cut off, before it takes
    /// the change back by itself and everything is rolled back. Spanning tree alone takes up to 50.
    #[arg(long, value_name = "SECONDS", default_value_t = 90.0, value_parser = real(2.0..=3600.0))]
    pub(crate) deadline: f64,
    /// How long a cable that was seen before may take to be seen again by LLDP once its ports are open: longer than switches
    /// take to announce themselves, which is 30 s by default. The deployment goes on as soon as all are seen.
    #[arg(long, value_name = "SECONDS", default_value_t = 40.0, value_parser = real(0.0..=3600.0))]
    pub(crate) cable_wait: f64,
}

/// Write down what switches hold.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  espalier observe plan.json -o seen && espalier check plan.json --observed seen\n  \
    espalier observe plan.json --parallel 4 -o seen\n\n\
    The folder changes when all switches have been asked; Ctrl-C leaves it as it was. Exit code 1 means that a switch does \
    not answer; what an earlier run wrote of it goes."
)]
pub(crate) struct Observe {
    /// The plan that the switches should hold.
    #[arg(value_name = "PLAN")]
    pub(crate) plan: PathBuf,
    #[command(flatten)]
    pub(crate) reach: Reach,
    /// Where to write, a file a switch.
    #[arg(short, long, value_name = "DIR")]
    pub(crate) output: PathBuf,
}

/// Show what is wrong with the fabric of a plan, what follows from it and what to do, and the load of every link.
#[derive(Args)]
#[command(after_help = "Examples:\n  espalier status plan.json --credentials admin.toml\n  \
    espalier status plan.json --interval 10 --json\n\n\
    Every cause is named once, with what follows from it and what to do. Loads are what passed between two readings, in the \
    direction that the cable is written and back. Exit code 1 means that a person is needed, or that it has to be asked again.")]
pub(crate) struct Status {
    /// The plan that the switches should hold.
    #[arg(value_name = "PLAN")]
    pub(crate) plan: PathBuf,
    #[command(flatten)]
    pub(crate) reach: Reach,
    /// How long counters are watched, in seconds.
    #[arg(long, value_name = "S", default_value_t = 1.0, value_parser = real(0.25..=3600.0))]
    pub(crate) interval: f64,
}

/// Show the status again and again, until Ctrl-C.
#[derive(Args)]
#[command(after_help = "Example: espalier watch plan.json --interval 5")]
pub(crate) struct Watch {
    #[command(flatten)]
    pub(crate) status: Status,
    /// How old what switches hold may get before it is read again although nothing says that it has changed, in seconds.
    /// Counters, states of ports and indicators of change are read every interval.
    #[arg(long, value_name = "S", default_value_t = 300.0, value_parser = real(0.0..=86_400.0))]
    pub(crate) full_every: f64,
    /// End after so many times.
    #[arg(long, value_name = "N", value_parser = whole(0..=u64::MAX))]
    pub(crate) times: Option<u64>,
}

/// Stand by for a cable to fail, and then switch hosts over to the VLANs that the plan stored for that.
#[derive(Args)]
#[command(after_help = "Examples:\n  espalier standby plan.json --credentials admin.toml\n  \
    espalier standby plan.json --interval 0.2 --hold 60 --json\n\n\
    The plan is one of `plan --resilience 1` that `deploy` has put on the switches. Only PVIDs of hosts' ports are written, \
    and nothing is saved. Ctrl-C leaves the switches as they are; the next standby takes that up. Where somebody deploys \
    meanwhile, it ends with exit code 1.")]
pub(crate) struct Standby {
    /// The plan that the switches hold.
    #[arg(value_name = "PLAN")]
    pub(crate) plan: PathBuf,
    #[command(flatten)]
    pub(crate) reach: Reach,
    /// How often each switch is looked at, in seconds.
    #[arg(long, value_name = "S", default_value_t = 0.5, value_parser = real(0.05..=60.0))]
    pub(crate) interval: f64,
    /// How long a cable must carry again before hosts go back, in seconds.
    #[arg(long, value_name = "S", default_value_t = 10.0, value_parser = real(0.0..=86_400.0))]
    pub(crate) hold: f64,
    /// How long frames may be on their way, in seconds: for so long hosts are stopped where a switch-over asks for it.
    #[arg(long, value_name = "S", default_value_t = 0.5, value_parser = real(0.05..=60.0))]
    pub(crate) drain: f64,
}

/// Explain a plan to a person.
#[derive(Args)]
#[command(after_help = "Examples:\n  espalier show plan.json\n  espalier show plan.json --route h0 h5\n  \
    espalier show plan.json --vlan 7\n  espalier show plan.json --failure sw1:p1\n  \
    espalier show new.json --since old.json")]
pub(crate) struct Show {
    /// The plan.
    #[arg(value_name = "PLAN")]
    pub(crate) plan: PathBuf,
    #[command(flatten)]
    pub(crate) subject: Subject,
}

#[derive(Args)]
#[group(multiple = false)]
pub(crate) struct Subject {
    /// One host: its port, VLAN, address, and the way to every other host.
    #[arg(long, value_name = "HOST")]
    pub(crate) host: Option<String>,
    /// One route, step by step, as the switches would carry it.
    #[arg(long, num_args = 2, value_names = ["FROM", "TO"])]
    pub(crate) route: Option<Vec<String>>,
    /// One VLAN: its tree, and who sends in it.
    #[arg(long, value_name = "VLAN")]
    pub(crate) vlan: Option<fabric::VlanId>,
    /// One switch: its ports and tables.
    #[arg(long, value_name = "SWITCH")]
    pub(crate) switch: Option<String>,
    /// One link's failure: who switches over to which VLAN, and what that does to the load.
    #[arg(long, value_name = "LINK")]
    pub(crate) failure: Option<String>,
    /// What changes since an older plan, and the order of steps that takes a live fabric there.
    #[arg(long, value_name = "OLD")]
    pub(crate) since: Option<PathBuf>,
}

/// Write the cabling of a plan or topology in another tool's format, or InfiniBand's forwarding tables.
#[derive(Args)]
#[command(after_help = "Formats of a plan or a topology:\n  \
      native          Espalier's own\n  \
      dot             Graphviz\n  \
      graphml         GraphML\n  \
      containerlab    a containerlab topology\n  \
      ibsim           a fabric for InfiniBand's simulator\n  \
      booksim         routers and nodes of BookSim's anynet\n  \
      htsim           a pattern as a connection matrix\n  \
      htsim-topology  leaves and spines for htsim\n\
    Formats of a plan:\n  \
      ansible         a folder with inventory, playbook and the switches' configurations\n  \
      svg             a picture, .svg or .png: what all-to-all asks of each link, or with --vlan one tree\n  \
      simgrid         a platform with the plan's routes, on which smpirun runs MPI programs\n  \
      opensm          forwarding tables for opensm -R file,no_fallback -U FILE, of a plan tagged by destination\n\n\
    Examples:\n  espalier export plan.json --to dot -o fabric.dot\n  \
    espalier export torus.yaml --to booksim -o torus.anynet\n  \
    espalier export clos.yaml --to htsim --pattern permutation --bytes 2000000 -o permutation.cm\n  \
    espalier plan ib.yaml --tagging destination -o ib.json && espalier export ib.json --to opensm -o tables.lfts")]
pub(crate) struct Export {
    /// A plan or a topology.
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// The format to write.
    #[arg(long, value_name = "FORMAT")]
    pub(crate) to: String,
    #[command(flatten)]
    pub(crate) own: OwnModels,
    /// For htsim: who sends to whom.
    #[arg(long, default_value = "all-to-all", value_parser = words(sim::pattern::Pattern::ALL, sim::pattern::Pattern::word), value_name = "PATTERN")]
    pub(crate) pattern: sim::pattern::Pattern,
    /// For htsim: bytes that each pair sends.
    #[arg(long, default_value_t = 1_000_000, value_name = "N", value_parser = whole(1..=u64::MAX))]
    pub(crate) bytes: u64,
    /// For htsim: seed of a random pattern.
    #[arg(long, default_value_t = 1, value_parser = whole(0..=u64::MAX))]
    pub(crate) seed: u64,
    /// For svg: draw the tree of this VLAN alone.
    #[arg(long, value_name = "VLAN")]
    pub(crate) vlan: Option<VlanId>,
    /// Where to write: a file, standard output unless given; for ansible a folder.
    #[arg(short, long, value_name = "FILE", default_value = "-")]
    pub(crate) output: PathBuf,
}

/// Write what each switch must be told, in its own language.
#[derive(Args)]
#[command(after_help = render_help())]
pub(crate) struct Render {
    /// The plan.
    #[arg(value_name = "PLAN")]
    pub(crate) plan: PathBuf,
    /// The language: auto is what each switch's model speaks.
    #[arg(long, default_value = "auto", value_name = "NAME|auto")]
    pub(crate) target: String,
    /// One switch only.
    #[arg(long, value_name = "SWITCH")]
    pub(crate) switch: Option<String>,
    /// The plan that the switches run now: write what changes, in phases.
    #[arg(long, value_name = "OLD")]
    pub(crate) since: Option<PathBuf>,
    /// The folder to write to.
    #[arg(short, long, value_name = "DIR")]
    pub(crate) output: PathBuf,
}

/// Serve rendered files to switches that load their configuration at boot, by TFTP and HTTP.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  espalier render plan.json -o switches && espalier serve switches --listen 192.0.2.250\n  \
    espalier serve switches --listen 127.0.0.1 --tftp-port 6969 --http-port 8080\n\n\
    Only the files that rendered.json lists can be read, and nothing can be written. Ctrl-C ends it."
)]
pub(crate) struct Serve {
    /// The folder that `render` wrote.
    #[arg(value_name = "DIR")]
    pub(crate) folder: PathBuf,
    /// Address to listen on: that of the management network.
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) listen: std::net::IpAddr,
    /// UDP port of TFTP; 0 leaves it out.
    #[arg(long, value_name = "PORT", default_value_t = 69, value_parser = port(0..=65_535))]
    pub(crate) tftp_port: u16,
    /// TCP port of HTTP; 0 leaves it out.
    #[arg(long, value_name = "PORT", default_value_t = 80, value_parser = port(0..=65_535))]
    pub(crate) http_port: u16,
}

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
        /// How hosts that tag spread frames over the VLANs of a pair: first, flow, flowlet, flowlet=500us.
        #[arg(long, default_value = "first", value_name = "HOW", value_parser = spread)]
        spread: Spread,
    },
    /// Serve the management of a lab's switches; `lab up --managed` starts it.
    #[command(hide = true)]
    Agents,
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
        /// How frames are spread over the VLANs of a pair: first, flow, flowlet, flowlet=500us.
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
    #[command(after_help = "Example: espalier tagger run eth1 --config tagger.conf\n\n\
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
    /// With --plan: how frames are spread over the VLANs of a pair: first, flow, flowlet, flowlet=500us.
    #[arg(long, default_value = "first", value_name = "HOW", conflicts_with = "config", value_parser = spread)]
    pub(crate) spread: Spread,
    /// With --plan: frames leave in the class that their DSCP asks for, 0 to 5, instead of all in class 0.
    #[arg(long, conflicts_with = "config")]
    pub(crate) dscp: bool,
}

fn spread(text: &str) -> Result<Spread, String> {
    text.parse()
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

/// Simulate a plan's switches under a traffic pattern: where it chokes, and how far that is from the best there could be.
#[derive(Args)]
#[command(after_help = "Examples:\n  espalier simulate plan.json --pattern all-to-all\n  \
    espalier simulate plan.json --pattern transpose --transport cubic --bytes 10000000 --csv flows.csv\n  \
    espalier simulate plan.json --pattern all-to-all-phased --level flow --bytes 1000000\n  \
    espalier simulate plan.json --pattern incast --heat-map fabric.svg --plot received.png --series queues.csv\n  \
    espalier simulate plan.json --duration-ms 5 --pcap s0-0:p1=port.pcap\n  \
    espalier simulate plan.json --collective allreduce:ring --bytes 1000000 --transport reno\n  \
    espalier simulate plan.json --trace is.B/ --transport cubic --fault '1s link sw1:g23 down'\n\n\
    What runs is the switches' planned state; the exit code is 1 if the fabric deadlocks. Ctrl-C ends \
    the simulated time of a pattern there and keeps what there is (exit code 130).")]
pub(crate) struct Simulate {
    /// The plan.
    #[arg(value_name = "PLAN")]
    pub(crate) plan: PathBuf,
    /// Who sends to whom.
    #[arg(long, default_value = "all-to-all", value_parser = words(sim::pattern::Pattern::WITH_FLOODS, sim::pattern::Pattern::word), value_name = "PATTERN")]
    pub(crate) pattern: sim::pattern::Pattern,
    /// Every frame, or only rates.
    #[arg(long, value_enum, default_value = "packet")]
    pub(crate) level: SimulationLevel,
    /// How hosts send, at the packet level; udp unless given.
    #[arg(long, value_enum)]
    pub(crate) transport: Option<TransportChoice>,
    /// Bytes that each pair sends; as many as fit into the time unless given (1,000,000 at the flow level).
    #[arg(long, value_name = "N", value_parser = whole(1..=u64::MAX))]
    pub(crate) bytes: Option<u64>,
    /// Simulated time, in milliseconds; with sizes, the most. 100 unless given, an hour for programs.
    #[arg(long, value_name = "MS", value_parser = real(1e-9..=1e10))]
    pub(crate) duration_ms: Option<f64>,
    /// Where PAUSE or priority flow control is on, at the packet level; as planned unless given.
    #[arg(long, value_enum)]
    pub(crate) flow_control: Option<FlowControlChoice>,
    /// Send PAUSE again before it runs out.
    #[arg(long)]
    pub(crate) refresh_pause: bool,
    /// Switches send a frame on before they have all of it.
    #[arg(long)]
    pub(crate) cut_through: bool,
    /// Seed of everything random; 1 unless given.
    #[arg(long, value_parser = whole(0..=u64::MAX))]
    pub(crate) seed: Option<u64>,
    #[command(flatten)]
    pub(crate) workload: crate::workload_args::WorkloadArgs,
    #[command(flatten)]
    pub(crate) fabric: crate::workload_args::FabricArgs,
    #[command(flatten)]
    pub(crate) outputs: SimulateOutputs,
}

/// How closely a simulation looks.
#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum SimulationLevel {
    /// Every frame through every queue.
    Packet,
    /// Max-min fair rates.
    Flow,
}

/// How simulated hosts send.
#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum TransportChoice {
    /// Datagrams, as fast as the cable takes them.
    Udp,
    /// TCP with Reno's window.
    Reno,
    /// TCP with CUBIC's window.
    Cubic,
    /// In order or again, as RoCE.
    GoBackN,
}

/// Where simulated flow control is on.
#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum FlowControlChoice {
    /// Where the plan has it.
    AsPlanned,
    /// Nowhere.
    None,
    /// On every cable.
    All,
    /// On hosts' cables.
    Hosts,
    /// On cables between switches.
    Switches,
}

/// Make a Linux bridge a managed switch: Q-BRIDGE-MIB and its kin over SNMP, and LLDP on its ports.
#[derive(Args)]
#[command(after_help = "Examples:\n  espalier switchd --config /etc/espalier/switchd.toml\n  \
    espalier switchd --config switchd.toml --check\n  \
    snmpwalk -v3 -u admin -l authPriv -a SHA-256 -A ... -x AES -X ... 192.0.2.1 1.3.6.1.2.1.17\n\n\
    The configuration names the bridge and who may ask; passwords are in files of their own:\n  bridge = \"br0\"\n  \
    [[users]]\n  name = \"admin\"\n  auth-password-file = \"/etc/espalier/admin.auth\"\n  \
    privacy-password-file = \"/etc/espalier/admin.privacy\"\n  rights = \"write\"\n\n\
    Ends on SIGINT or SIGTERM; the bridge goes on as it is.")]
pub(crate) struct Switchd {
    /// The configuration.
    #[arg(long, value_name = "FILE", default_value = "/etc/espalier/switchd.toml")]
    pub(crate) config: PathBuf,
    /// Read the configuration, say what is wrong with it, and end.
    #[arg(long)]
    pub(crate) check: bool,
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

fn render_help() -> String {
    let mut help = String::from(
        "Examples:\n  espalier render plan.json -o switches && espalier check plan.json --rendered switches\n  \
         espalier render plan.json --target linux-bridge -o switches\n  \
         espalier render new.json --since old.json -o difference\n\n\
         A difference comes in phases: finish one on every switch before any begins the next.\n\nTargets:\n",
    );
    for target in dialects::Target::ALL {
        let hosts = if target.has_hybrid_ports() { "" } else { ", hosts must tag" };
        help.push_str(&format!("  {:<13} driver {}{hosts}\n", target.name(), target.basis().word()));
    }
    help
}

/// A parser for values that are written as one of a few words, each with its line in the help.
fn choices<T>(
    all: &'static [T],
    word: fn(T) -> &'static str,
    about: fn(T) -> &'static str,
) -> impl TypedValueParser<Value = T>
where
    T: Copy + Send + Sync + 'static,
{
    let named = move |name: String| *all.iter().find(|value| word(**value) == name).expect("it is a possible value");
    PossibleValuesParser::new(all.iter().map(|value| PossibleValue::new(word(*value)).help(about(*value)))).map(named)
}

/// A parser for values that are written as one of a few words.
fn words<T>(all: &'static [T], word: fn(T) -> &'static str) -> impl TypedValueParser<Value = T>
where
    T: Copy + Send + Sync + 'static,
{
    let named = move |name: String| *all.iter().find(|value| word(**value) == name).expect("it is a possible value");
    PossibleValuesParser::new(all.iter().map(|value| word(*value))).map(named)
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
        for pattern in sim::pattern::Pattern::WITH_FLOODS {
            let line = ["espalier", "simulate", "plan.json", "--pattern", pattern.word()];
            let Ok(Cli { command: Command::Simulate(simulate), .. }) = Cli::try_parse_from(line) else {
                panic!("{pattern} is refused");
            };
            assert_eq!(simulate.pattern, *pattern);
        }
    }
}
