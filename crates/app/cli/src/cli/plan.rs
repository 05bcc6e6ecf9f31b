//! Plans, made and looked at: `plan`, `check`, `show`, `export` and `render`.

use std::path::PathBuf;

use clap::Args;
use fabric::{
    EngineName, FdbMode, Flood, FlowControl, PATHS_MAX, Rails, Resilience, StormLimit, Subnet, Tagging, VlanId,
    VlanSet, Weights,
};

use super::{
    models::OwnModels,
    numbers::{count, port, real, short, whole},
    values::{choices, patterns},
};

/// Plan a topology, check the plan, and print what it achieves.
#[derive(Args)]
#[command(after_help = "Examples:\n  espalier plan torus.yaml -o plan.json\n  \
    espalier plan cluster.yaml --engine clos --max-vlans 64 --fdb minimal -o plan.json\n  \
    espalier generate mesh 8x8 | espalier plan - --json\n  \
    espalier plan cluster.yaml --traffic matrix.csv -o plan.json\n  \
    espalier plan cluster.yaml --pareto\n  \
    espalier plan cluster.yaml --explain\n  \
    espalier plan cluster.yaml --previous plan.json --drain spine1 -o drained.json\n  \
    espalier plan cluster.yaml --suggest-cables 2 --time-limit 60\n  \
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
    /// Who chooses a frame's VLAN, and by what [default: switch; with --paths source].
    #[arg(long, value_parser = choices(Tagging::ALL, Tagging::word, Tagging::about))]
    pub(crate) tagging: Option<Tagging>,
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
    /// much to all. `espalier traffic` estimates it from counters. Given several times, or beside `all-to-all`, the most loaded
    /// link by any of them counts.
    #[arg(long, value_name = "FILE")]
    pub(crate) traffic: Vec<PathBuf>,
    /// Whether all-to-all traffic crosses rails, where machines have a port on each of several rails.
    #[arg(long, default_value = "across", conflicts_with = "traffic", value_parser = choices(Rails::ALL, Rails::word, Rails::about))]
    pub(crate) rails: Rails,
    /// By what hosts are weighted in all-to-all traffic: a pair adds the product of its weights to the load.
    #[arg(long, default_value = "stated", conflicts_with = "traffic", value_parser = choices(Weights::ALL, Weights::word, Weights::about))]
    pub(crate) weights: Weights,
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
    /// What may fail before frames are lost for longer than hosts take to switch over. 1 stores, for every link, which hosts or
    /// pairs move to which VLAN of the plan when it fails; switch stores the same for every switch as well, for hosts on the other
    /// switches; group stores it for every named group of the topology as well, for hosts outside it when all its members fail
    /// together.
    #[arg(long, default_value = "0", value_name = "0|1|switch|group|two-links", value_parser = choices(Resilience::ALL, Resilience::word, Resilience::about))]
    pub(crate) resilience: Resilience,
    /// Keep this switch or link, or all members of this group, free of frames, such as before maintenance, though it stays plugged
    /// in; may be repeated. A link is written as one of its ends, sw1:p1. No frame passes through a drained switch; one that has hosts keeps its links to one
    /// neighbour for them. With --previous, the change from the running plan is hitless.
    #[arg(long, value_name = "SWITCH|LINK|GROUP")]
    pub(crate) drain: Vec<String>,
    /// Give the ports of each machine disjoint paths: between two machines, the paths of different ports share no switch and no cable,
    /// as far as the cabling allows. The planner divides the switches into planes; traffic between hosts of one plane stays in it.
    /// `export --to host-setup` writes the links by plane for RI2N.
    #[arg(long)]
    pub(crate) disjoint: bool,
    /// Longest path of unicast frames between two hosts, in links between switches [default: no limit]. Switch-overs that --resilience
    /// stores may take longer paths. --max-hops 2 on a leaf-spine fabric allows leaf, spine, leaf.
    #[arg(long, value_name = "HOPS", value_parser = short(0..=u32::MAX))]
    pub(crate) max_hops: Option<u32>,
    /// Most VLANs that hosts may spread a pair's frames over, 1 to 8. All of a pair's paths differ, and all paths together are
    /// proven free of deadlock. All-to-all is planned for one VLAN a pair; permutations gain. Example: --paths 8 --flow-control none.
    /// Hosts spread with `espalier tagger run --spread flowlet`.
    #[arg(long, default_value_t = 1, value_name = "K", value_parser = short(1..=PATHS_MAX))]
    pub(crate) paths: u32,
    /// Search for better routes for so many seconds, or until Ctrl-C, which keeps the best so far. Without it, a number
    /// of steps that depends on the size alone, so that the same input gives the same plan.
    #[arg(long, value_name = "SECONDS", value_parser = real(0.0..=1e9))]
    pub(crate) time_limit: Option<f64>,
    /// The plan that the fabric runs now: what still stands of it is kept, and what changes is printed.
    #[arg(long, value_name = "PLAN")]
    pub(crate) previous: Option<PathBuf>,
    /// Keep the channel order that proves the previous plan free of deadlock, so that the change from that plan is proven too. Unless
    /// given, routes for other traffic may need another order, and most of these changes are not proven.
    #[arg(long, requires = "previous")]
    pub(crate) keep_order: bool,
    /// Where to write the plan.
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Instead of one plan, print what fewer VLANs and static entries would cost: the best plan for caps of 1, 2, 4, … VLANs
    /// and for none. A time limit holds for each; Ctrl-C prints what there is so far.
    #[arg(long, conflicts_with_all = ["output", "previous"])]
    pub(crate) pareto: bool,
    /// Instead of one plan, print which cables, up to N, to plug into free ports to lower the maximum load most. A switch has the
    /// free ports that its model lists or the topology names. A time limit holds for the whole search; Ctrl-C prints what
    /// there is so far.
    #[arg(long, value_name = "N", value_parser = count(1..=64), conflicts_with_all = ["output", "previous", "pareto", "explain", "drain"])]
    pub(crate) suggest_cables: Option<usize>,
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
    /// For what switches said: the file of `espalier addresses`; plan.addresses.json beside plan.json by default.
    #[arg(long, value_name = "FILE", requires = "observed")]
    pub(crate) addresses: Option<PathBuf>,
    /// For a rendered difference: the plan that the switches run before it.
    #[arg(long, value_name = "OLD", requires = "rendered")]
    pub(crate) since: Option<PathBuf>,
    /// Most threads that judge link failures at the same time; one for each processor by default.
    #[arg(long, value_name = "N", value_parser = count(1..=4096))]
    pub(crate) threads: Option<usize>,
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
    /// All paths of a pair: each VLAN, and the links between switches that it takes.
    #[arg(long, num_args = 2, value_names = ["FROM", "TO"])]
    pub(crate) paths: Option<Vec<String>>,
    /// One VLAN: its tree, and who sends in it.
    #[arg(long, value_name = "VLAN")]
    pub(crate) vlan: Option<fabric::VlanId>,
    /// One switch: its ports and tables.
    #[arg(long, value_name = "SWITCH")]
    pub(crate) switch: Option<String>,
    /// A failure of a link, of a switch after --resilience switch, of a named group after --resilience group, or of two links after --resilience two-links: who switches over to which VLAN, and what that does to the
    /// load. Of other parts, or several at once, with commas between: how many pairs of hosts lose their path.
    #[arg(long, value_name = "PARTS", value_delimiter = ',')]
    pub(crate) failure: Option<Vec<String>>,
    /// Every switch and every named group that may fail: how many pairs of hosts lose their path, the worst first.
    #[arg(long)]
    pub(crate) failures: bool,
    /// What changes since an older plan, and the order of steps that takes a live fabric there.
    #[arg(long, value_name = "OLD")]
    pub(crate) since: Option<PathBuf>,
}

/// Write the cabling of a plan or topology in another tool's format, InfiniBand's forwarding tables, or what hosts must set.
#[derive(Args)]
#[command(after_help = "Formats of a plan or a topology:\n  \
      native          Espalier's own\n  \
      dot             Graphviz\n  \
      graphml         GraphML\n  \
      containerlab    a containerlab topology\n  \
      netbox          a folder with files for NetBox's bulk import\n  \
      ibsim           a fabric for InfiniBand's simulator\n  \
      booksim         routers and nodes of BookSim's anynet\n  \
      htsim           a pattern as a connection matrix\n  \
      htsim-topology  leaves and spines for htsim\n\
    Formats of a plan:\n  \
      ansible         a folder with inventory, playbook and the switches' configurations\n  \
      host-setup      a folder with what Linux needs on machines with several ports: a script, files for systemd-networkd, \
                      environment variables\n  \
      svg             a picture, .svg or .png: what all-to-all asks of each link, or with --vlan one tree\n  \
      simgrid         a platform with the plan's routes, on which smpirun runs MPI programs\n  \
      opensm          forwarding tables for opensm -R file,no_fallback -U FILE, of a plan tagged by destination\n\n\
    Examples:\n  espalier export plan.json --to dot -o fabric.dot\n  \
    espalier export plan.json --to host-setup -o hosts && cat hosts/gpu1/setup.sh\n  \
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
    #[arg(long, default_value = "all-to-all", value_parser = patterns(sim::pattern::Pattern::ALL), value_name = "PATTERN")]
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
    /// For netbox: the name of the site that the devices are at.
    #[arg(long, value_name = "NAME", default_value = "fabric")]
    pub(crate) site: String,
    /// For host-setup: this machine alone; all with several ports unless given.
    #[arg(long, value_name = "MACHINE")]
    pub(crate) host: Option<String>,
    /// Where to write: a file, standard output unless given; for ansible, host-setup and netbox a folder.
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
