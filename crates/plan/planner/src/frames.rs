//! Frames: everything that hosts may have on the wire, and in which tree it goes where.
//!
//! What waits for what is asked in many places (lanes, planning again, protection against failures, management); what
//! there is to ask about is said here alone.
//!
//! ```text
//!   unicast    to a host of the plan       along the tree that the assignment names       a fan to or from its owner
//!   floods     broadcast, multicast, and   along the sender's own tree for everybody, to  an outward fan to all hosts
//!              to addresses of no host     every host
//! ```
//! *Unknown unicast.* A host sends to an address that its table does not list as it sends broadcasts, so the flood of
//! the one is the flood of the other. With static tables frames to a host of the plan never flood: every switch that they
//! can reach has an entry, which stays when the host is unplugged, and the frames end at its port. A host that leaves the
//! plan is forgotten by other hosts before switches forget it (`transition`). Where switches learn, an entry ages, and
//! whatever is sent in a tree may flood through it, so every sender in a tree counts as one that floods it.
//!
//! *Where switches drop floods* ([`fabric::Flood`]) they are on no cable between switches, and nothing waits for them. Dropping
//! unknown unicast alone changes nothing: broadcasts take the same trees.
//!
//! *Where one sender's tree serves all that it sends*, by switch and by source, floods take no channel after another that
//! unicast frames do not.

use std::collections::BTreeSet;

use fabric::{Assignment, FdbMode, Flood, HostId, Plan, Policy, SwitchId, Topology};

use crate::{
    dependency::Dependencies,
    fan::{Direction, Fan, for_each_fan},
    host_set::HostSet,
    routing::Routing,
};

/// Which frames are meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Frames {
    /// Those to hosts of the plan.
    Unicast,
    /// Those and all that is flooded.
    All,
}

/// What switches do with frames for which they have no entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flooding {
    /// They drop them all.
    Dropped,
    /// They flood what hosts send to everybody; what else they flood takes the same trees.
    Broadcasts,
    /// They learn, and flood whatever is sent.
    Everything,
}

impl Flooding {
    /// What a policy asks of them.
    pub(crate) fn of(policy: &Policy) -> Self {
        match (policy.flood, policy.fdb) {
            (Flood::DropAll, _) => Self::Dropped,
            (Flood::Forward | Flood::Edge | Flood::Drop, FdbMode::Learned) => Self::Everything,
            (Flood::Forward | Flood::Edge | Flood::Drop, FdbMode::Full | FdbMode::Minimal) => Self::Broadcasts,
        }
    }
}

/// Visits what is flooded otherwise than unicast frames go: a fan for each tree and each switch from which it is, ascending.
pub(crate) fn for_each_flood(
    topology: &Topology,
    assignment: &Assignment<usize>,
    flooding: Flooding,
    mut visit: impl FnMut(&Fan<'_>),
) {
    if matches!(assignment, Assignment::Source(_)) {
        return;
    }
    let all = HostSet::all(topology.hosts().len());
    for (tree, root) in floods(topology, assignment, flooding) {
        let owners = topology.hosts_of(root);
        visit(&Fan { tree, root, direction: Direction::Outward, owners, peers: &all });
    }
}

/// Trees and the switches from which frames may flood through them, ascending. Cost: O(hosts · log hosts), and where switches
/// learn O(trees · switches + pairs).
pub(crate) fn floods(
    topology: &Topology,
    assignment: &Assignment<usize>,
    flooding: Flooding,
) -> BTreeSet<(usize, SwitchId)> {
    if flooding == Flooding::Dropped {
        return BTreeSet::new();
    }
    let spread = topology.host_ids().map(|host| (assignment.broadcast(host), topology.switch_of(host)));
    let mut floods: BTreeSet<(usize, SwitchId)> = spread.collect();
    if flooding == Flooding::Everything {
        let others = |host: HostId| topology.host_ids().filter(move |other| *other != host);
        let sends = |host| others(host).map(move |to| (assignment.unicast(host, to), topology.switch_of(host)));
        floods.extend(topology.host_ids().flat_map(sends));
    }
    floods
}

/// What frames wait for, by lane; `lane[tree]` is less than `count`.
pub(crate) fn dependencies(
    topology: &Topology,
    routing: &Routing,
    (lane, count): (&[u8], usize),
    frames: Frames,
    flooding: Flooding,
) -> Vec<Dependencies> {
    let mut dependencies = vec![Dependencies::none(topology); count];
    let mut used = Vec::new();
    let mut add = |fan: &Fan<'_>| dependencies[usize::from(lane[fan.tree])].add_fan(topology, routing, fan, &mut used);
    for_each_fan(topology, routing, &mut add);
    if frames == Frames::All {
        for_each_flood(topology, &routing.assignment, flooding, &mut add);
    }
    dependencies
}

/// Whether every dependency of all frames increases in the numbering of its lane.
pub(crate) fn climb(
    topology: &Topology,
    routing: &Routing,
    lane: &[u8],
    rank: &[Vec<u32>],
    flooding: Flooding,
) -> bool {
    let dependencies = dependencies(topology, routing, (lane, rank.len()), Frames::All, flooding);
    dependencies
        .iter()
        .zip(rank)
        .all(|(dependencies, rank)| dependencies.iter().all(|(from, to)| rank[from.index()] < rank[to.index()]))
}

/// Which frames a plan's certificate is about; none if it has none.
pub(crate) fn certified(plan: &Plan) -> Option<Frames> {
    let certificate = plan.certificate.as_ref()?;
    let position = |vlan| plan.trees.binary_search_by_key(&vlan, |tree| tree.vlan).expect("every VLAN has its tree");
    let routing = Routing {
        trees: plan.trees.iter().map(|tree| tree.tree.clone()).collect(),
        assignment: plan.assignment.map(position),
        numbering: None,
        lane: None,
    };
    let lane: Vec<u8> = plan.trees.iter().map(|tree| tree.lane).collect();
    let all = climb(&plan.topology, &routing, &lane, &certificate.rank, Flooding::of(&plan.policy));
    Some(if all { Frames::All } else { Frames::Unicast })
}

/// Frames that a plan does not prove free of deadlock, though full buffers wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Uncovered {
    /// Broadcasts, multicasts, and frames to addresses of no host.
    Floods,
    /// The same after hosts have switched over.
    FloodsAfterFailure,
}

impl Uncovered {
    /// What they are, in words.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Floods => "broadcast, multicast and unknown unicast",
            Self::FloodsAfterFailure => "broadcast, multicast and unknown unicast after a link failure",
        }
    }
}

/// What a plan's proof leaves out, ascending; nothing where no buffers wait. Cost: O(VLANs · switches · switches with hosts).
pub fn uncovered(plan: &Plan) -> Vec<Uncovered> {
    if plan.policy.flow_control.lanes().is_none() {
        return Vec::new();
    }
    let mut uncovered = Vec::new();
    if certified(plan) != Some(Frames::All) {
        uncovered.push(Uncovered::Floods);
    }
    // By source what is flooded goes where unicast frames go, whatever is moved.
    let floods = Flooding::of(&plan.policy) != Flooding::Dropped;
    if floods && plan.failover.is_some() && !matches!(plan.assignment, Assignment::Source(_)) {
        uncovered.push(Uncovered::FloodsAfterFailure);
    }
    uncovered
}
