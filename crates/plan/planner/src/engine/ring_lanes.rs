//! Two lanes on a torus of two equal odd rings, chosen by pair: minimal routes that load every channel alike.
//!
//! Dimension order on odd rings has one shortest way for every pair and loads all channels alike, so no routing is better;
//! but frames that pass every node of a ring close a cycle. So on each lane every ring has, for each direction, a node that
//! nobody passes: a pair whose route would pass it in either of its rings takes the other lane. That works if no pair would
//! pass such a node of the first lane in one of its rings and such a node of the second lane in the other. With rings of
//! 2r + 1, and node n of line n as the origin, these do:
//!
//! ```text
//!                    first lane, up  down      second lane, up   down
//!   first ring of line y          y  y+r+1               y+r      y
//!   last ring of line x           x  x+r+1               x+r      x
//! ```
//!
//! Why: a route passes at most r − 1 nodes of a ring, in a row. Two nodes of one ring that are r or r + 1 apart are never
//! passed together. A route that goes up in line y and passes its node y there turns at one of x = y+1 … y+r−1, so line x is
//! entered at y = x−1 … x−(r−1); going up it passes nodes x−(r−2) … x+r−2, which leave out x+r, and going down
//! x−2 … x−(2r−2), which leave out x. The other combinations are the same with signs and lanes changed.
//! Where the sender's lane has to serve all its pairs there is no such choice; see `dor.rs`.

use std::sync::Arc;

use fabric::{Assignment, FlowControl, HostId, HostRun, Policy, Tagging, Topology};

use crate::{
    lattice::{Lattice, Shape},
    routing::Routing,
};

/// Whether pairs may choose lanes here, and it is of use.
pub(super) fn applies(policy: &Policy, lattice: &Lattice) -> bool {
    let odd_rings = match lattice.dimensions[..] {
        [one, other] => one == other && one.shape == Shape::Ring && one.size % 2 == 1,
        _ => false,
    };
    odd_rings && policy.tagging == Tagging::Pair && matches!(policy.flow_control, FlowControl::Pfc(2..))
}

/// Minimal routes by source in the order `first`, then the other dimension, with every tree on two lanes.
pub(super) fn by_pair(topology: &Topology, lattice: &Lattice, first: usize, by_source: &Routing) -> Option<Routing> {
    let Assignment::Source(tree) = &by_source.assignment else { return None };
    let mut node = vec![0; topology.switches().len()];
    lattice.nodes.iter().enumerate().for_each(|(number, switch)| node[switch.index()] = number);
    let at = |host: HostId| &lattice.position[node[topology.switch_of(host).index()]];
    let size = lattice.dimensions[first].size;
    let lane = |from: HostId, to: HostId| {
        let (from, to) = (at(from), at(to));
        let (line, turn) = (from[1 - first], to[first]);
        let along = |dimension: usize, line: usize| {
            passes(size, from[dimension], to[dimension], [line, (line + size / 2 + 1) % size])
        };
        usize::from(along(first, line) || along(1 - first, turn))
    };
    let unicast = (topology.host_ids())
        .map(|from| {
            let mut runs: Vec<HostRun<usize>> = Vec::new();
            for to in topology.host_ids() {
                let choice = 2 * tree[from.index()] + lane(from, to);
                match runs.last_mut() {
                    Some(run) if run.choice == choice => run.last = to,
                    _ => runs.push(HostRun { first: to, last: to, choice }),
                }
            }
            Arc::new(runs)
        })
        .collect();
    let broadcast = tree.iter().map(|tree| 2 * tree).collect();
    let count = by_source.trees.len();
    Some(Routing {
        trees: by_source.trees.iter().flat_map(|tree| [tree.clone(), tree.clone()]).collect(),
        assignment: Assignment::Pair { unicast, broadcast },
        numbering: None,
        lane: Some((0..2 * count).map(|number| (number % 2) as u8).collect()),
    })
}

/// Whether the shortest way around an odd ring passes a node that it must not, `[ascending, descending]`.
fn passes(size: usize, from: usize, to: usize, forbidden: [usize; 2]) -> bool {
    let ahead = (to + size - from) % size;
    let (way, steps) = if ahead <= size / 2 {
        ((forbidden[0] + size - from) % size, ahead)
    } else {
        ((from + size - forbidden[1]) % size, size - ahead)
    };
    way > 0 && way < steps
}
