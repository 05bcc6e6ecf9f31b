//! Where searches start: routes that other engines know, and an order that always works.
//!
//! A structured fabric has structured routes: dimension order on lattices, levels on fat trees, up*/down* anywhere. Their
//! trees are taken over as they are, with the numbering of channels that proves them free of deadlock, and searched on from
//! there; so the outcome is never worse than theirs. A 4-ring is also two paths of two, and with that reading a torus
//! of 4-rings is a hypercube, on which dimension order needs no cuts (e-cube: Sullivan and Bashkow, 1977).
//!
//! ```text
//!   order from a root r:   b▶a  c▶a  a▶r │ r▶a  a▶b  a▶c     up channels, farthest first; then down channels,
//!                                                            nearest first: rises along every up*/down* route
//! ```

use fabric::{
    Assignment, EngineName, FlowControl, HostId, Policy, SwitchId, Topology,
    graph::{BreadthFirst, breadth_first},
};

use crate::{
    Start,
    candidate::attainable,
    engine::{clos, dor, updown},
    lanes,
    measure::Measure,
    merge::merge,
    routing::Routing,
};

use super::{
    forest::{Forest, Source},
    net::{NONE, Net},
    rank::ranks_by_key,
    share::Sharing,
    state::SearchState,
};

/// Routes of an engine, and the same as a state to search on from.
pub(super) struct Seed {
    pub(super) start: Start,
    pub(super) sources: Vec<Source>,
    pub(super) state: SearchState,
    pub(super) routing: Routing,
}

/// Which engines to ask.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Ask {
    /// Those that need structure, which are quick.
    Structured,
    /// Up*/down*.
    Updown,
}

/// The routes of the engines that apply, best first, as far as they obey the flow control.
pub(super) fn seeds(topology: &Topology, policy: &Policy, net: &Net, sharing: &Sharing<'_>, ask: Ask) -> Vec<Seed> {
    let routings = routings(topology, policy, ask);
    let mut seeds: Vec<Seed> = routings.into_iter().filter_map(|of| seed(topology, policy, net, sharing, of)).collect();
    seeds.sort_by(|a, b| {
        let (a, b) = (a.state.quality(net), b.state.quality(net));
        a.0.total_cmp(&b.0).then(a.1.cmp(&b.1))
    });
    seeds
}

/// The routes of the engines that apply, and where they are from.
pub(super) fn routings(topology: &Topology, policy: &Policy, ask: Ask) -> Vec<(Start, Routing)> {
    let found = match ask {
        Ask::Structured => vec![
            (Start::DimensionOrder, dor::route(topology, policy).unwrap_or_default()),
            (Start::DimensionOrderOnSquares, dor::route_on_squares(topology, policy).unwrap_or_default()),
            (Start::Clos, clos::route(topology, policy).unwrap_or_default()),
        ],
        Ask::Updown => vec![(Start::Updown, vec![updown::route(topology, policy)])],
    };
    let each =
        found.into_iter().flat_map(|(start, routings)| routings.into_iter().map(move |routing| (start, routing)));
    each.map(|(start, routing)| (start, merge(topology, routing))).collect()
}

/// Routes by pair of the engines that apply, if there are some that take no more than so many trees and that no routing can
/// be better than.
pub(super) fn perfect_by_pair(topology: &Topology, policy: &Policy, trees: usize, bound: f64) -> Option<Routing> {
    let by_pair = |routing: &Routing| matches!(routing.assignment, Assignment::Pair { .. });
    let perfect = |routing: &Routing| {
        let time = Measure::of(topology, &policy.traffic, routing).time_max;
        time <= attainable(topology, &policy.traffic, bound)
    };
    let routings = dor::route(topology, policy).unwrap_or_default().into_iter().filter(by_pair);
    let mut routings = routings.map(|routing| merge(topology, routing));
    routings.find(|routing| routing.trees.len() <= trees && perfect(routing))
}

fn seed(
    topology: &Topology,
    policy: &Policy,
    net: &Net,
    sharing: &Sharing<'_>,
    (start, routing): (Start, Routing),
) -> Option<Seed> {
    let Assignment::Source(choice) = &routing.assignment else { return None };
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

/// An order in which every source reaches every switch: up*/down* from the switch nearest to the middle.
pub(super) fn updown_order(net: &Net) -> Vec<u32> {
    let farthest = |from| *search(net, from).order.last().unwrap_or(&0);
    let one = farthest(0);
    let (there, back) = (search(net, one), search(net, farthest(one)));
    let root = (0..net.switches)
        .min_by_key(|&switch| {
            (there.distance(switch).max(back.distance(switch)), std::cmp::Reverse(net.from(switch).len()), switch)
        })
        .unwrap_or(0);
    let mut height = vec![0.0; net.switches];
    for (place, switch) in search(net, root).order.into_iter().enumerate() {
        height[switch] = place as f64;
    }
    let key: Vec<f64> = (0..net.channels as u32)
        .map(|channel| {
            let (tail, head) = (height[net.tail(channel)], height[net.head(channel)]);
            if head < tail { -tail - 1.0 } else { tail + 1.0 }
        })
        .collect();
    ranks_by_key(&key)
}

/// Switches by their distance from one.
fn search(net: &Net, from: usize) -> BreadthFirst<usize, u32> {
    breadth_first(net.switches, [from], |switch| net.neighbours(switch))
}
