//! Lanes: which lossless class each tree's frames travel in, and the proof that no class can deadlock.
//!
//! PAUSE stops a whole port, so all VLANs share one channel dependency graph. Priority flow control stops one class,
//! so each class has a graph of its own, and trees whose dependencies together close a cycle can be kept apart:
//! each tree goes to the first lane that stays acyclic with it, as LASH does with paths (Skeie, Lysne and Theiss,
//! "Layered shortest path (LASH) routing in irregular system area networks", 2002).

use std::collections::BTreeSet;

use fabric::{ChannelId, EngineName, FlowControl, Policy, Topology};

use crate::{
    PlanError,
    dependency::{self, Dependencies},
    fan::{Fan, for_each_fan},
    frames::{self, Flooding, Frames},
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
    let several = |frames| match policy.flow_control {
        FlowControl::None | FlowControl::Pause => None,
        FlowControl::Pfc(_) if routing.lane.is_some() => keep(topology, policy, routing, frames),
        FlowControl::Pfc(lanes) => first_fit(topology, lanes, &by_tree(topology, policy, routing, frames)),
    };
    let (mut together, mut used) = (Dependencies::none(topology), Vec::new());
    for_each_fan(topology, routing, |fan| together.add_fan(topology, routing, fan, &mut used));
    let unicast = together.rank();
    frames::for_each_flood(topology, &routing.assignment, Flooding::of(policy), |fan| {
        together.add_fan(topology, routing, fan, &mut used);
    });
    if let Ok(rank) = together.rank() {
        return Ok(one_lane(Some(vec![rank])));
    }
    if let Some(lanes) = several(Frames::All) {
        return Ok(lanes);
    }
    match unicast {
        Ok(rank) => Ok(one_lane(Some(vec![rank]))),
        Err(_) if policy.flow_control == FlowControl::None => Ok(one_lane(None)),
        Err(cycle) => several(Frames::Unicast).ok_or_else(|| PlanError::Deadlock {
            engine,
            tagging: policy.tagging,
            flow_control: policy.flow_control,
            cycle: cycle.into_iter().map(|channel| topology.channel_label(channel)).collect(),
            way_out: String::new(),
        }),
    }
}

/// What frames wait for in each tree.
fn by_tree(
    topology: &Topology,
    policy: &Policy,
    routing: &Routing,
    frames: Frames,
) -> Vec<BTreeSet<(ChannelId, ChannelId)>> {
    let (mut by_tree, mut used) = (vec![BTreeSet::new(); routing.trees.len()], Vec::new());
    let mut add = |fan: &Fan<'_>| {
        let own = &mut by_tree[fan.tree];
        dependency::for_each_of(topology, routing, fan, &mut used, |from, to| {
            own.insert((from, to));
        });
    };
    for_each_fan(topology, routing, &mut add);
    if frames == Frames::All {
        frames::for_each_flood(topology, &routing.assignment, Flooding::of(policy), add);
    }
    by_tree
}

/// Proves the lanes that an engine has chosen, numbered without gaps; none if a lane has a cycle.
fn keep(topology: &Topology, policy: &Policy, routing: &Routing, frames: Frames) -> Option<Lanes> {
    let lane = routing.lane.as_ref()?;
    let mut used = lane.clone();
    used.sort_unstable();
    used.dedup();
    let number = |lane: u8| used.partition_point(|&other| other < lane) as u8;
    let lane: Vec<u8> = lane.iter().map(|&lane| number(lane)).collect();
    let by_lane = frames::dependencies(topology, routing, (&lane, used.len()), frames, Flooding::of(policy));
    let rank: Option<Vec<Vec<u32>>> = by_lane.iter().map(|lane| lane.rank().ok()).collect();
    Some(Lanes { count: used.len(), lane, rank: Some(rank?) })
}

fn first_fit(topology: &Topology, lanes_max: u8, by_tree: &[BTreeSet<(ChannelId, ChannelId)>]) -> Option<Lanes> {
    let mut lanes: Vec<(Dependencies, Vec<u32>)> = Vec::new();
    let mut lane = Vec::with_capacity(by_tree.len());
    for tree in by_tree {
        let placed = lanes.iter_mut().position(|(dependencies, rank)| {
            let grown = dependencies.rank_with(tree);
            let acyclic = grown.is_some();
            grown.into_iter().for_each(|grown| *rank = grown);
            acyclic
        });
        let number = match placed {
            Some(number) => number,
            None if lanes.len() < usize::from(lanes_max) => {
                let mut alone = Dependencies::none(topology);
                let rank = alone.rank_with(tree)?;
                lanes.push((alone, rank));
                lanes.len() - 1
            }
            None => return None,
        };
        lane.push(number as u8);
    }
    Some(Lanes { count: lanes.len(), lane, rank: Some(lanes.into_iter().map(|(_, rank)| rank).collect()) })
}
