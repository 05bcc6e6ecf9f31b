//! Start: up*/down* routes, and an order that always works.
//!
//! Exploits: connectivity alone. Channels that lead toward a root come before those that lead away from it, and every switch
//! reaches all others over the root at least. Trees grown within the order of the switch in the middle are the first valid
//! plan where nothing has structure; the routes of engine `updown` are balanced from there.
//! Wins: in no row of the ablation by 1 % in the end, since annealed orders overtake it; without it there is no plan until an
//! order is annealed, and none at all where that comes to nothing.
//! Costs: a breadth-first search for the order; for the routes of the engine, trees for all sources, which on large networks
//! wait until an order was annealed.
//!
//! ```text
//!   order from a root r:   b▶a  c▶a  a▶r │ r▶a  a▶b  a▶c     up channels, farthest first; then down channels,
//!                                                            nearest first: rises along every up*/down* route
//! ```

use fabric::{
    Policy, Topology,
    graph::{BreadthFirst, breadth_first},
};

use crate::{
    Start,
    engine::{
        balanced::{net::Net, rank::ranks_by_key},
        updown,
    },
    routing::Routing,
};

/// The routes of engine `updown`.
pub(in crate::engine::balanced) fn routings(topology: &Topology, policy: &Policy) -> Vec<(Start, Routing)> {
    vec![(Start::Updown, updown::route(topology, policy))]
}

/// Orders in which every switch reaches all others, one for each lane; where trees are images of a few, ring cuts.
pub(in crate::engine::balanced) fn valid_orders(net: &Net, lanes: usize) -> Vec<Vec<u32>> {
    match &net.symmetry {
        _ if lanes == 0 => Vec::new(),
        Some(symmetry) => symmetry.cut_orders(lanes),
        None => vec![order(net); lanes],
    }
}

/// An order in which every source reaches every switch: up*/down* from the switch nearest to the middle.
fn order(net: &Net) -> Vec<u32> {
    let farthest = |from| *distances(net, from).order.last().unwrap_or(&0);
    let one = farthest(0);
    let (there, back) = (distances(net, one), distances(net, farthest(one)));
    let root = (0..net.switches)
        .min_by_key(|&switch| {
            (there.distance(switch).max(back.distance(switch)), std::cmp::Reverse(net.from(switch).len()), switch)
        })
        .unwrap_or(0);
    let mut height = vec![0.0; net.switches];
    for (place, switch) in distances(net, root).order.into_iter().enumerate() {
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
fn distances(net: &Net, from: usize) -> BreadthFirst<usize, u32> {
    breadth_first(net.switches, [from], |switch| net.neighbours(switch))
}
