//! Small fabrics to live in, and plans for each.

use std::{
    fmt::Write as _,
    sync::{Arc, OnceLock},
};

use fabric::{FlowControl, Plan, Policy, Resilience, Tagging, Topology, format::native::parse_native};

/// A fabric, and plans that people propose for it.
pub(crate) struct Shape {
    pub(crate) topology: Topology,
    pub(crate) plans: Arc<Vec<Plan>>,
    pub(crate) tags: Tags,
}

/// Who tags frames.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tags {
    Switches,
    Hosts,
}

/// Pairs of switches that are joined, beginning with a ring.
const CABLINGS: [&[(usize, usize)]; 3] = [
    &[(0, 1), (1, 2), (2, 3), (3, 0)],
    &[(0, 1), (1, 2), (2, 3), (3, 0), (0, 2)],
    &[(0, 1), (1, 2), (2, 3), (3, 4), (4, 0), (1, 3), (0, 2)],
];

/// Most VLANs that a pair of hosts is spread over.
const PATHS_MAX: u32 = 2;

/// What hosts are.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Rim {
    /// A host with one port at each switch.
    Plain,
    /// Two failover bonds, one of them with its ports the other way round, and a LAG.
    Bonds,
    /// Hypervisors, behind whose ports addresses are learned.
    Guests,
    /// Some of both.
    Mixed,
}

/// How switches are managed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Management {
    /// By ports of their own.
    Apart,
    /// Over the data ports, in VLAN 1, by a controller at the first switch.
    InBand,
}

use Management::{Apart, InBand};

/// Which cabling has which kind of rim, who tags, and how switches are managed.
const SHAPES: [(usize, Rim, Tags, Management); 16] = [
    (0, Rim::Plain, Tags::Switches, Apart),
    (1, Rim::Plain, Tags::Switches, Apart),
    (2, Rim::Plain, Tags::Switches, Apart),
    (0, Rim::Bonds, Tags::Switches, Apart),
    (1, Rim::Bonds, Tags::Switches, Apart),
    (0, Rim::Guests, Tags::Switches, Apart),
    (2, Rim::Guests, Tags::Switches, Apart),
    (0, Rim::Mixed, Tags::Switches, Apart),
    (1, Rim::Mixed, Tags::Switches, Apart),
    (1, Rim::Plain, Tags::Hosts, Apart),
    (2, Rim::Plain, Tags::Hosts, Apart),
    (0, Rim::Plain, Tags::Hosts, Apart),
    (1, Rim::Bonds, Tags::Hosts, Apart),
    (1, Rim::Plain, Tags::Switches, InBand),
    (2, Rim::Plain, Tags::Switches, InBand),
    (0, Rim::Mixed, Tags::Switches, InBand),
];

/// Small fabrics with hosts of every kind.
pub(crate) fn shapes() -> &'static [Shape] {
    static MADE: OnceLock<Vec<Shape>> = OnceLock::new();
    MADE.get_or_init(|| {
        SHAPES
            .iter()
            .map(|(cabling, rim, tags, management)| shape(CABLINGS[*cabling], *rim, *tags, *management))
            .collect()
    })
}

fn shape(links: &[(usize, usize)], rim: Rim, tags: Tags, management: Management) -> Shape {
    let mut text = text(links, rim);
    if management == InBand {
        text.push_str("management: {vlan: 1, controller: \"s0:controller\"}\n");
    }
    let topology = parse_native("chaos.yaml", &text).expect("a sound topology");
    let mut plans: Vec<Plan> = Vec::new();
    for policy in policies(tags, rim) {
        // A switch is told of another way for management only over the one that it has.
        let previous = plans.first().filter(|_| management == InBand);
        plans.push(planner::plan(&topology, &policy, previous).expect("a plan"));
    }
    Shape { topology, plans: Arc::new(plans), tags }
}

fn policies(tags: Tags, rim: Rim) -> [Policy; 3] {
    match (tags, rim) {
        (Tags::Switches, _) => [
            Policy { resilience: Resilience::OneLink, ..Policy::default() },
            Policy::default(),
            Policy { resilience: Resilience::OneLink, seed: 7, ..Policy::default() },
        ],
        // All ports of a bond have the VLANs of its active one, which not every order of channels allows.
        (Tags::Hosts, Rim::Bonds) => [Tagging::Source, Tagging::Pair, Tagging::Destination].map(|tagging| Policy {
            tagging,
            flow_control: FlowControl::None,
            ..Policy::default()
        }),
        (Tags::Hosts, _) => [
            Policy { tagging: Tagging::Source, ..Policy::default() },
            Policy { tagging: Tagging::Pair, ..Policy::default() },
            Policy { tagging: Tagging::Pair, paths_max: PATHS_MAX, ..Policy::default() },
        ],
    }
}

fn text(links: &[(usize, usize)], rim: Rim) -> String {
    let count = 1 + links.iter().map(|(a, b)| *a.max(b)).max().expect("links");
    let mut used = vec![0; count];
    let mut port = |at: usize| {
        used[at] += 1;
        format!("s{at}:p{}", used[at])
    };
    let mut text = String::from("switches:\n");
    (0..count).for_each(|at| _ = writeln!(text, "  s{at}: {{}}"));
    text.push_str("links:\n");
    links.iter().for_each(|(a, b)| _ = writeln!(text, "  - {} -- {} @ 1gbit", port(*a), port(*b)));
    text.push_str("hosts:\n");
    for at in 0..count {
        let learns = match rim {
            Rim::Guests if at > 0 => format!(", addresses: learned, addresses-max: {at}"),
            Rim::Mixed if at % 2 == 1 => ", addresses: learned, addresses-max: 2".to_owned(),
            _ => String::new(),
        };
        _ = writeln!(text, "  h{at}: {{mac: \"02:00:00:00:00:0{at}\", port: \"{}\"{learns}}}", port(at));
    }
    let bonds: &[(usize, usize)] = match rim {
        Rim::Plain | Rim::Guests => return text,
        Rim::Bonds => &[(0, 1), (3, 2)],
        Rim::Mixed => &[(2, 3)],
    };
    text.push_str("machines:\n");
    for (number, (first, second)) in bonds.iter().enumerate() {
        let nics = format!("{{eth0: {{port: \"{}\"}}, eth1: {{port: \"{}\"}}}}", port(*first), port(*second));
        _ = writeln!(text, "  b{number}: {{bond: failover, mac: \"02:00:00:00:01:0{number}\", nics: {nics}}}");
    }
    let nics = format!("{{eth0: {{port: \"{}\"}}, eth1: {{port: \"{}\"}}}}", port(1), port(1));
    _ = writeln!(text, "  l0: {{bond: lacp, mac: \"02:00:00:00:02:00\", nics: {nics}}}");
    text
}
