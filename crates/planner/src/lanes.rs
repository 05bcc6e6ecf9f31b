//! Lanes: which lossless class each tree's frames travel in, and the proof that no class can deadlock.
//!
//! PAUSE stops a whole port, so all VLANs share one channel dependency graph. Priority flow control stops one class,
//! so each class has a graph of its own, and trees whose dependencies together close a cycle can be kept apart:
//! each tree goes to the first lane that stays acyclic with it, as LASH does with paths (Skeie, Lysne and Theiss,
//! "Layered shortest path (LASH) routing in irregular system area networks", 2002).

use fabric::{EngineName, FlowControl, Policy, Topology};

use crate::{
    PlanError,
    dependency::Dependencies,
    fan::{Fan, for_each_fan},
    frames::{self, Frames},
    routing::Routing,
};

/// Trees placed on lanes.
#[derive(Clone, Debug)]
pub(crate) struct Lanes {
    /// Lanes used.
    pub(crate) count: usize,
    /// `lane[tree]`.
    pub(crate) lane: Vec<u8>,
    /// `rank[lane][channel]`: increases along every route; none if the routes have a cycle, which only a fabric
    /// without flow control allows.
    pub(crate) rank: Option<Vec<Vec<u32>>>,
}

/// Places the trees of a routing on the lanes of the policy, so that no frame can deadlock, or else at least none to a host of
/// the plan. Cost: O(trees · lanes · dependencies) at worst.
///
/// # Errors
/// [`PlanError::Deadlock`] if the lanes do not suffice for frames to hosts of the plan.
pub(crate) fn place(
    topology: &Topology,
    policy: &Policy,
    engine: EngineName,
    routing: &Routing,
) -> Result<Lanes, PlanError> {
    let one_lane = |rank| Lanes { count: 1, lane: vec![0; routing.trees.len()], rank };
    let several = |waits: &Waits, frames| match policy.flow_control {
        FlowControl::None | FlowControl::Pause => None,
        FlowControl::Pfc(_) if routing.lane.is_some() => keep(topology, policy, routing, frames),
        FlowControl::Pfc(lanes) => first_fit(topology, lanes, &waits.by_tree),
    };
    let unicast = Waits::of(topology, policy, routing);
    let mut all = unicast.clone();
    all.add_floods(topology, policy, routing);
    if let Ok(rank) = all.together.rank() {
        return Ok(one_lane(Some(vec![rank])));
    }
    if let Some(lanes) = several(&all, Frames::All) {
        return Ok(lanes);
    }
    match unicast.together.rank() {
        Ok(rank) => Ok(one_lane(Some(vec![rank]))),
        Err(_) if policy.flow_control == FlowControl::None => Ok(one_lane(None)),
        Err(cycle) => several(&unicast, Frames::Unicast).ok_or_else(|| PlanError::Deadlock {
            engine,
            tagging: policy.tagging,
            flow_control: policy.flow_control,
            cycle: cycle.into_iter().map(|channel| topology.channel_label(channel)).collect(),
            way_out: String::new(),
        }),
    }
}

/// What frames wait for, in all trees together and, where trees can be told apart by their lanes, in each.
#[derive(Clone)]
struct Waits {
    together: Dependencies,
    by_tree: Vec<Dependencies>,
}

impl Waits {
    /// Of frames to hosts of the plan.
    fn of(topology: &Topology, policy: &Policy, routing: &Routing) -> Self {
        let apart = matches!(policy.flow_control, FlowControl::Pfc(_)) && routing.lane.is_none();
        let by_tree = if apart { vec![Dependencies::none(topology); routing.trees.len()] } else { Vec::new() };
        let mut waits = Self { together: Dependencies::none(topology), by_tree };
        let mut used = Vec::new();
        for_each_fan(topology, routing, |fan| waits.add(topology, routing, fan, &mut used));
        waits
    }

    fn add_floods(&mut self, topology: &Topology, policy: &Policy, routing: &Routing) {
        let mut used = Vec::new();
        let add = |fan: &Fan<'_>| self.add(topology, routing, fan, &mut used);
        frames::for_each_flood(topology, &routing.assignment, policy.fdb, add);
    }

    fn add(&mut self, topology: &Topology, routing: &Routing, fan: &Fan<'_>, used: &mut Vec<bool>) {
        self.together.add_fan(topology, routing, fan, used);
        if let Some(own) = self.by_tree.get_mut(fan.tree) {
            own.add_fan(topology, routing, fan, used);
        }
    }
}

/// Proves the lanes that an engine has chosen, numbered without gaps; none if a lane has a cycle.
fn keep(topology: &Topology, policy: &Policy, routing: &Routing, frames: Frames) -> Option<Lanes> {
    let lane = routing.lane.as_ref()?;
    let mut used = lane.clone();
    used.sort_unstable();
    used.dedup();
    let number = |lane: u8| used.partition_point(|&other| other < lane) as u8;
    let lane: Vec<u8> = lane.iter().map(|&lane| number(lane)).collect();
    let by_lane = frames::dependencies(topology, routing, (&lane, used.len()), frames, policy.fdb);
    let rank: Option<Vec<Vec<u32>>> = by_lane.iter().map(|lane| lane.rank().ok()).collect();
    Some(Lanes { count: used.len(), lane, rank: Some(rank?) })
}

fn first_fit(topology: &Topology, lanes_max: u8, by_tree: &[Dependencies]) -> Option<Lanes> {
    let mut lanes: Vec<(Dependencies, Vec<u32>)> = Vec::new();
    let mut lane = Vec::with_capacity(by_tree.len());
    for tree in by_tree {
        let placed = lanes.iter_mut().position(|(dependencies, rank)| {
            let mut grown = dependencies.clone();
            grown.add_all(tree);
            let fits = grown.rank();
            let acyclic = fits.is_ok();
            if let Ok(found) = fits {
                (*dependencies, *rank) = (grown, found);
            }
            acyclic
        });
        let number = match placed {
            Some(number) => number,
            None if lanes.len() < usize::from(lanes_max) => {
                let mut alone = Dependencies::none(topology);
                alone.add_all(tree);
                let rank = alone.rank().ok()?;
                lanes.push((alone, rank));
                lanes.len() - 1
            }
            None => return None,
        };
        lane.push(number as u8);
    }
    Some(Lanes { count: lanes.len(), lane, rank: Some(lanes.into_iter().map(|(_, rank)| rank).collect()) })
}
