//! What engines hand over: trees, and which of them each frame takes.

use std::{collections::BTreeMap, fmt, sync::Arc};

use fabric::{Assignment, HostId, HostRun, Plan, Tagging, Topology, Tree, VlanId, VlanTree};

/// An engine's routes.
#[derive(Clone, Debug)]
pub(crate) struct Routing {
    /// The trees; several may be the same.
    pub(crate) trees: Vec<Tree>,
    /// Which tree a frame takes, by position in `trees`.
    pub(crate) assignment: Assignment<usize>,
    /// `numbering[channel]`, if the engine has one: every route by source increases in it, and so may others.
    pub(crate) numbering: Option<Vec<u32>>,
    /// `lane[tree]`, if the engine has placed its trees; each lane is then free of cycles where trees spread from the hosts
    /// that use them.
    pub(crate) lane: Option<Vec<u8>>,
}

/// Why an engine does not apply to a topology.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unsuitable(String);

impl Unsuitable {
    pub(crate) fn new(reason: impl Into<String>) -> Self {
        Self(reason.into())
    }
}

impl fmt::Display for Unsuitable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Routing {
    /// Routes by source: `choice[host]` is a position in `trees`.
    pub(crate) fn by_source(trees: Vec<Tree>, choice: Vec<usize>) -> Self {
        Self { trees, assignment: Assignment::Source(choice), lane: None, numbering: None }
    }

    /// A plan's routes.
    pub(crate) fn of_plan(plan: &Plan) -> Self {
        Self::of_trees(&plan.trees, &plan.assignment)
    }

    /// The routes that choices make of trees, which are sorted by VLAN.
    pub(crate) fn of_trees(trees: &[VlanTree], assignment: &Assignment<VlanId>) -> Self {
        let position = |vlan| trees.partition_point(|tree| tree.vlan < vlan);
        let own = trees.iter().map(|tree| tree.tree.clone()).collect();
        Self { trees: own, assignment: assignment.map(position), lane: None, numbering: None }
    }

    /// The same trees for another tagging mode.
    ///
    /// A tree serves its host in both directions: what spreads from it along the tree also gathers toward it. So trees
    /// by source are trees by destination, with every load reversed. With priorities, lower-numbered hosts come first,
    /// as in \[Miura\] 4. Routes that an engine has already made for pairs stay as they are.
    pub(crate) fn tagged(self, topology: &Topology, tagging: Tagging) -> Self {
        let Assignment::Source(choice) = &self.assignment else { return self };
        let choice = choice.clone();
        let assignment = match tagging {
            Tagging::Switch | Tagging::Source => Assignment::Source(choice),
            Tagging::Destination => Assignment::Destination { broadcast: choice.clone(), choice },
            Tagging::SourceDestination => {
                let count = topology.hosts().len() as u32;
                let priority = (0..count).map(|host| count - host).collect();
                Assignment::Priority { broadcast: choice.clone(), choice, priority }
            }
            Tagging::Pair => by_pair_of_source(topology, choice),
        };
        Self { assignment, ..self }
    }

    /// The same, with the choices of each failover bond's active port for its other ports too; none if that is what they have, or if
    /// switches tag. Hosts tag by address, and a bond has one set of addresses at all its ports.
    pub(crate) fn with_bonds_alike(&self, topology: &Topology, tagging: Tagging) -> Option<Self> {
        if tagging == Tagging::Switch || !topology.has_standby_ports() {
            return None;
        }
        let active: Vec<HostId> = topology.host_ids().map(|host| topology.active_port(host)).collect();
        let alike = |choice: &[usize]| active.iter().map(|host| choice[host.index()]).collect();
        let assignment = match &self.assignment {
            Assignment::Source(choice) => Assignment::Source(alike(choice)),
            Assignment::Destination { choice, broadcast } => {
                Assignment::Destination { choice: alike(choice), broadcast: alike(broadcast) }
            }
            Assignment::Priority { choice, priority, broadcast } => Assignment::Priority {
                choice: alike(choice),
                priority: active.iter().map(|host| priority[host.index()]).collect(),
                broadcast: alike(broadcast),
            },
            Assignment::Pair { unicast, broadcast } => {
                Assignment::Pair { unicast: by_active_port(unicast, &active), broadcast: alike(broadcast) }
            }
        };
        (assignment != self.assignment).then(|| Self { assignment, ..self.clone() })
    }

    /// The same routes, frame by frame, written as choices by pair if `tagging` is by pair.
    pub(crate) fn for_pairs(self, tagging: Tagging, topology: &Topology) -> Self {
        let assignment = match (tagging, self.assignment) {
            (Tagging::Pair, Assignment::Source(choice)) => by_pair_of_source(topology, choice),
            (Tagging::Pair, Assignment::Destination { choice, broadcast }) => {
                by_pair_of_destination(&choice, broadcast)
            }
            (_, assignment) => assignment,
        };
        Self { assignment, ..self }
    }
}

/// Rows of choices by pair in which every port of a failover bond stands for its active one; those that were shared still are.
fn by_active_port<T>(unicast: &[Arc<Vec<HostRun<T>>>], active: &[HostId]) -> Vec<Arc<Vec<HostRun<T>>>>
where
    T: Copy + PartialEq,
{
    let mut shared: BTreeMap<*const Vec<HostRun<T>>, Arc<Vec<HostRun<T>>>> = BTreeMap::new();
    let mut row = |of: &Arc<Vec<HostRun<T>>>| {
        let alike = || {
            let mut runs: Vec<HostRun<T>> = Vec::new();
            for (host, active) in active.iter().enumerate() {
                let choice = of[of.partition_point(|run| run.last < *active)].choice;
                let host = HostId::new(host);
                match runs.last_mut() {
                    Some(run) if run.choice == choice => run.last = host,
                    _ => runs.push(HostRun { first: host, last: host, choice }),
                }
            }
            Arc::new(runs)
        };
        Arc::clone(shared.entry(Arc::as_ptr(of)).or_insert_with(alike))
    };
    active.iter().map(|active| row(&unicast[active.index()])).collect()
}

/// Choices by pair that depend on the sender alone.
fn by_pair_of_source(topology: &Topology, choice: Vec<usize>) -> Assignment<usize> {
    let (first, last) = (HostId::new(0), HostId::new(topology.hosts().len() - 1));
    let mut rows = BTreeMap::new();
    let mut row = |&choice: &usize| {
        let row = || Arc::new(vec![HostRun { first, last, choice }]);
        Arc::clone(rows.entry(choice).or_insert_with(row))
    };
    Assignment::Pair { unicast: choice.iter().map(&mut row).collect(), broadcast: choice }
}

/// Choices by pair that depend on the receiver alone.
fn by_pair_of_destination(choice: &[usize], broadcast: Vec<usize>) -> Assignment<usize> {
    let mut row: Vec<HostRun<usize>> = Vec::new();
    for (host, &choice) in choice.iter().enumerate() {
        match row.last_mut() {
            Some(run) if run.choice == choice => run.last = HostId::new(host),
            _ => row.push(HostRun { first: HostId::new(host), last: HostId::new(host), choice }),
        }
    }
    let row = Arc::new(row);
    Assignment::Pair { unicast: vec![row; choice.len()], broadcast }
}
