//! Verbs that talk to switches, or are one: `discover` to `standby`, `serve` and `switchd`.

use std::path::PathBuf;

use clap::Args;

use super::{
    models::OwnModels,
    numbers::{count, port, real, short, whole},
};

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
    espalier discover 192.0.2.1 192.0.2.2 --expect cables.yaml\n  \
    espalier --controller https://controller.example.org:7434 --token-file token discover\n\n\
    A cable counts when both of its ends report it. Exit code 1 means doubts, or a difference from what is expected.")]
pub(crate) struct Discover {
    /// Management addresses of the switches; those of --expect if none are given, or of the plan with --controller.
    #[arg(value_name = "ADDRESS")]
    pub(crate) addresses: Vec<std::net::IpAddr>,
    #[command(flatten)]
    pub(crate) reach: Reach,
    /// Compare with these cables.
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
    espalier deploy new.json --since old.json --hosts-program ./give-tables\n  \
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
    /// Where hosts tag: the program that hands them their tables, between two steps with --since, else once the switches hold the
    /// plan. It is run as PROGRAM --config FILE or PROGRAM --plan FILE, and ends with exit code 0 once every host holds that.
    #[arg(long, value_name = "PROGRAM", conflicts_with = "undo")]
    pub(crate) hosts_program: Option<PathBuf>,
    /// The record of `espalier addresses`, whose entries are written too; plan.addresses.json beside OLD by default, or beside the
    /// plan without --since. The deployed plan gets a copy beside it.
    #[arg(long, value_name = "FILE", conflicts_with = "undo")]
    pub(crate) addresses: Option<PathBuf>,
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
    /// Use a cable that LLDP does not confirm: sw1:p1--sw2:p2, one end of it, or all. Without this, it stays
    /// administratively down.
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
    espalier observe plan.json --parallel 4 -o seen\n  \
    espalier --controller /run/espalierd/espalierd.sock observe -o seen\n\n\
    The folder changes when all switches have been asked; Ctrl-C leaves it as it was. Exit code 1 means that a switch does \
    not answer; what an earlier run wrote of it goes."
)]
pub(crate) struct Observe {
    /// The plan that the switches should hold; the controller's with --controller.
    #[arg(value_name = "PLAN")]
    pub(crate) plan: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) reach: Reach,
    /// Where to write, a file a switch.
    #[arg(short, long, value_name = "DIR")]
    pub(crate) output: PathBuf,
}

/// Show what is wrong with the fabric of a plan, what follows from it and what to do, and the load of every link.
#[derive(Args)]
#[command(after_help = "Examples:\n  espalier status plan.json --credentials admin.toml\n  \
    espalier status plan.json --interval 10 --json\n  \
    espalier --controller https://controller.example.org:7434 --token-file token status\n\n\
    Every cause is named once, with what follows from it and what to do. Loads are what passed between two readings, in the \
    direction that the cable is written and back. Exit code 1 means that a person is needed, or that it has to be asked again.")]
pub(crate) struct Status {
    /// The plan that the switches should hold; the controller's with --controller.
    #[arg(value_name = "PLAN")]
    pub(crate) plan: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) reach: Reach,
    /// How long counters are watched, in seconds.
    #[arg(long, value_name = "S", default_value_t = 1.0, value_parser = real(0.25..=3600.0))]
    pub(crate) interval: f64,
    /// The file of `espalier addresses`; plan.addresses.json beside plan.json by default, the controller's with --controller.
    #[arg(long, value_name = "FILE")]
    pub(crate) addresses: Option<PathBuf>,
}

/// Show the status again and again, until Ctrl-C.
#[derive(Args)]
#[command(after_help = "Example: espalier watch plan.json --interval 5")]
pub(crate) struct Watch {
    #[command(flatten)]
    pub(crate) status: Status,
    /// How old what switches hold may get before it is read again although nothing says that it has changed, in seconds.
    /// Counters, states of ports and indicators of change are read every interval. With --controller, `watch.tables` in its configuration decides instead.
    #[arg(long, value_name = "S", default_value_t = 300.0, value_parser = real(0.0..=86_400.0))]
    pub(crate) full_every: f64,
    /// End after so many times.
    #[arg(long, value_name = "N", value_parser = whole(0..=u64::MAX))]
    pub(crate) times: Option<u64>,
}

/// Stand by for a cable to fail, and then switch hosts over to the VLANs that the plan stored for that; turn the entries of a failover
/// bond to the port that it uses.
#[derive(Args)]
#[command(after_help = "Examples:\n  espalier standby plan.json --credentials admin.toml\n  \
    espalier standby plan.json --interval 0.2 --hold 60 --json\n\n\
    The plan is one of `plan --resilience 1`, or `--resilience switch`, or one with failover bonds, that `deploy` has put on the switches. Only PVIDs of \
    hosts' ports and entries for the addresses of bonds are written, and nothing is saved. Ctrl-C leaves the switches as they are; the next standby takes that up. Where somebody deploys \
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
    /// How long a cable must carry again before hosts go back, in seconds; twice as long after each failure in a row beyond the
    /// third, up to 600.
    #[arg(long, value_name = "S", default_value_t = 10.0, value_parser = real(0.0..=86_400.0))]
    pub(crate) hold: f64,
    /// How long frames may be on their way, in seconds: for so long hosts are stopped where a switch-over asks for it.
    #[arg(long, value_name = "S", default_value_t = 0.5, value_parser = real(0.05..=60.0))]
    pub(crate) drain: f64,
}

/// Enter addresses that switches have learned at hypervisors' ports on every switch, so that virtual machines come, move and go.
#[derive(Args)]
#[command(after_help = "Examples:\n  espalier addresses plan.json --credentials admin.toml\n  \
    espalier addresses plan.json --follow --interval 0.2 --json\n\n\
    The ports are those with `addresses: learned` in the topology, and the plan is the one that `deploy` has put on the switches. Only static \
    entries of learned addresses are written, and nothing is saved on the switches; the file beside the plan has the addresses, and the \
    next run, `status` and `check --observed` read it. Exit code 1 means that some switch lacks entries, or holds another plan.")]
pub(crate) struct Addresses {
    /// The plan that the switches hold.
    #[arg(value_name = "PLAN")]
    pub(crate) plan: PathBuf,
    #[command(flatten)]
    pub(crate) reach: Reach,
    /// Go on until Ctrl-C; otherwise it ends once every switch has the entries.
    #[arg(long)]
    pub(crate) follow: bool,
    /// How often the switches' tables are read, in seconds.
    #[arg(long, value_name = "S", default_value_t = 1.0, value_parser = real(0.05..=60.0))]
    pub(crate) interval: f64,
    /// How long an address may be missing from the table of its port's switch before its entries are removed, in seconds; it is missing
    /// once that switch has aged it out.
    #[arg(long, value_name = "S", default_value_t = 60.0, value_parser = real(0.0..=86_400.0))]
    pub(crate) age: f64,
    /// The file with the addresses that are known; plan.addresses.json beside plan.json by default.
    #[arg(long, value_name = "FILE")]
    pub(crate) state: Option<PathBuf>,
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
