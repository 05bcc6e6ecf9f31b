//! Routes of other engines as states to search on from.
//!
//! Their trees are taken over as they are, with the numbering of channels that proves them free of deadlock; so the outcome is
//! never worse than theirs.
//!
//! ```text
//!   routing by source, lanes, numbering ─▶ sources, a tree and a lane for each, an order for each lane
//! ```

use fabric::{Assignment, EngineName, FlowControl, HostId, Policy, SwitchId, Topology};

use super::{structured, updown};
use crate::{
    Start,
    engine::balanced::{
        forest::{Forest, Source},
        improve::Candidate,
        net::{NONE, Net},
        share::Sharing,
        state::SearchState,
    },
    lanes,
    merge::merge,
    routing::Routing,
};

/// Routes of an engine, and the same as a state to search on from.
pub(in crate::engine::balanced) struct Seed {
    pub(in crate::engine::balanced) start: Start,
    pub(in crate::engine::balanced) sources: Vec<Source>,
    pub(in crate::engine::balanced) state: SearchState,
    pub(in crate::engine::balanced) routing: Routing,
}

/// Which engines to ask.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(in crate::engine::balanced) enum Ask {
    /// Those that need structure, which are quick.
    Structured,
    /// Up*/down*.
    Updown,
}

/// The routes of the engines that apply, best first, as far as they obey the flow control.
pub(in crate::engine::balanced) fn seeds(
    topology: &Topology,
    policy: &Policy,
    net: &Net,
    sharing: &Sharing<'_>,
    ask: Ask,
) -> Vec<Seed> {
    let routings = routings(topology, policy, ask);
    let mut seeds: Vec<Seed> = routings.into_iter().filter_map(|of| seed(topology, policy, net, sharing, of)).collect();
    seeds.sort_by(|a, b| {
        let (a, b) = (a.state.quality(net), b.state.quality(net));
        a.0.total_cmp(&b.0).then(a.1.cmp(&b.1))
    });
    seeds
}

/// The routes of the engines that apply, and where they are from.
pub(in crate::engine::balanced) fn routings(topology: &Topology, policy: &Policy, ask: Ask) -> Vec<(Start, Routing)> {
    let found = match ask {
        Ask::Structured => structured::routings(topology, policy),
        Ask::Updown => updown::routings(topology, policy),
    };
    found.into_iter().map(|(start, routing)| (start, merge(topology, routing))).collect()
}

fn seed(
    topology: &Topology,
    policy: &Policy,
    net: &Net,
    sharing: &Sharing<'_>,
    (start, routing): (Start, Routing),
) -> Option<Seed> {
    let Assignment::Source(choice) = &routing.assignment else { return None };
    if !net.confined.holds(topology, &routing) {
        return None;
    }
    let lanes = lanes::place(topology, policy, EngineName::Balanced, &routing).ok()?;
    let rank = match policy.flow_control {
        FlowControl::None => Vec::new(),
        FlowControl::Pause | FlowControl::Pfc(_) => lanes.rank?.iter().map(|rank| net.by_number(rank)).collect(),
    };
    let mut sources: Vec<Source> = Vec::new();
    let mut lane = Vec::new();
    let mut trees = Vec::new();
    for switch in topology.switch_ids() {
        let mut own: Vec<(usize, HostId)> =
            topology.hosts_of(switch).iter().map(|host| (choice[host.index()], *host)).collect();
        own.sort_unstable();
        for group in own.chunk_by(|a, b| a.0 == b.0) {
            sources.push(sharing.source(switch, group.iter().map(|(_, host)| *host).collect()));
            lane.push(lanes.lane[group[0].0]);
            trees.push(group[0].0);
        }
    }
    let mut forest = Forest::bare(net, sources.len());
    for (number, (source, &tree)) in sources.iter().zip(&trees).enumerate() {
        let rooted = routing.trees[tree].rooted_at(topology, SwitchId::new(source.root));
        let inward = forest.tree_mut(number).0;
        for (entry, channel) in inward.iter_mut().zip(&rooted.inward) {
            *entry = channel.map_or(NONE, |channel| net.number(channel));
        }
        forest.lay(net, number, source);
    }
    Some(Seed { start, sources, state: SearchState { forest, lane, rank }, routing })
}
