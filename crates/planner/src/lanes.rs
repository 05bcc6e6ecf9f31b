//! Lanes: which lossless class each tree's frames travel in, and the proof that no class can deadlock.
//!
//! PAUSE stops a whole port, so all VLANs share one channel dependency graph. Priority flow control stops one class,
//! so each class has a graph of its own, and trees whose dependencies together close a cycle can be kept apart:
//! each tree goes to the first lane that stays acyclic with it, as LASH does with paths (Skeie, Lysne and Theiss,
//! "Layered shortest path (LASH) routing in irregular system area networks", 2002).

use fabric::{EngineName, FlowControl, Policy, Topology};

use crate::{PlanError, dependency::Dependencies, fan::for_each_fan, routing::Routing};

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

/// Places the trees of a routing on the lanes of the policy. Cost: O(trees · lanes · dependencies) at worst.
///
/// # Errors
/// [`PlanError::Deadlock`] if the lanes do not suffice.
pub(crate) fn place(
    topology: &Topology,
    policy: &Policy,
    engine: EngineName,
    routing: &Routing,
) -> Result<Lanes, PlanError> {
    let mut together = Dependencies::none(topology);
    let apart = matches!(policy.flow_control, FlowControl::Pfc(_)) && routing.lane.is_none();
    let mut by_tree = if apart { vec![Dependencies::none(topology); routing.trees.len()] } else { Vec::new() };
    let mut used = Vec::new();
    for_each_fan(topology, routing, |fan| {
        together.add_fan(topology, routing, fan, &mut used);
        if apart {
            by_tree[fan.tree].add_fan(topology, routing, fan, &mut used);
        }
    });
    let one_lane = |rank| Lanes { count: 1, lane: vec![0; routing.trees.len()], rank };
    let cycle = match together.rank() {
        Ok(rank) => return Ok(one_lane(Some(vec![rank]))),
        Err(cycle) => cycle,
    };
    match policy.flow_control {
        FlowControl::None => return Ok(one_lane(None)),
        FlowControl::Pause => {}
        FlowControl::Pfc(_) if routing.lane.is_some() => {
            if let Some(kept) = keep(topology, routing) {
                return Ok(kept);
            }
        }
        FlowControl::Pfc(lanes) => {
            if let Some(placed) = first_fit(topology, lanes, &by_tree) {
                return Ok(placed);
            }
        }
    }
    Err(PlanError::Deadlock {
        engine,
        tagging: policy.tagging,
        flow_control: policy.flow_control,
        cycle: cycle.into_iter().map(|channel| topology.channel_label(channel)).collect(),
    })
}

/// Proves the lanes that an engine has chosen, numbered without gaps; none if a lane has a cycle.
fn keep(topology: &Topology, routing: &Routing) -> Option<Lanes> {
    let lane = routing.lane.as_ref()?;
    let mut used = lane.clone();
    used.sort_unstable();
    used.dedup();
    let number = |lane: u8| used.partition_point(|&other| other < lane) as u8;
    let lane: Vec<u8> = lane.iter().map(|&lane| number(lane)).collect();
    let rank: Option<Vec<Vec<u32>>> =
        dependencies(topology, routing, &lane, used.len()).iter().map(|lane| lane.rank().ok()).collect();
    Some(Lanes { count: used.len(), lane, rank: Some(rank?) })
}

/// What frames wait for, by lane; `lane[tree]` is less than `count`.
pub(crate) fn dependencies(topology: &Topology, routing: &Routing, lane: &[u8], count: usize) -> Vec<Dependencies> {
    let mut dependencies = vec![Dependencies::none(topology); count];
    let mut used = Vec::new();
    for_each_fan(topology, routing, |fan| {
        dependencies[usize::from(lane[fan.tree])].add_fan(topology, routing, fan, &mut used);
    });
    dependencies
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
