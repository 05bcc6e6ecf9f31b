//! Start: what is left of a tree for every source when trees are given up.
//!
//! Exploits: the search with a tree for each source. Where its trees are alike, or the cap is close to the number of sources, giving
//! up the trees that are missed least leaves the others as good as they were, orders included.
//! Wins: torus 4x4 with eight trees, 1.25, where eight trees are half of a perfect plan; torus 5x5 with flow control and eight
//! trees, 1.06. Few trees for many sources leave too little of it.
//! Costs: a merge of trees for each number of trees at which it is tried: powers of two, and all on small networks.
//!
//! ```text
//!   a: T1  b: T2  c: T3  d: T4   ─ cap of 2 ─▶   a, c: T1   b, d: T2
//! ```

use fabric::{FlowControl, Traffic};

use crate::{
    cap::{self, Rules},
    confined::Confined,
    engine::balanced::{
        converter::Converter,
        improve::{Candidate, is_better},
        senders::Share,
    },
    merge::merge,
    routing::Routing,
};

/// The best of what routes leave on no more than so many of their trees, if that can be.
pub(in crate::engine::balanced) fn remainder(
    converter: &Converter<'_>,
    routings: &[Routing],
    trees: usize,
) -> Option<Share> {
    let net = converter.net;
    let better = |one: Share, other: Share| if is_better(other.quality(net), one.quality(net)) { other } else { one };
    routings.iter().filter_map(|routing| fitted(converter, routing, trees)).reduce(better)
}

fn fitted(converter: &Converter<'_>, routing: &Routing, trees: usize) -> Option<Share> {
    if routing.trees.len() <= trees {
        return converter.whole(routing);
    }
    let rules = match converter.policy.flow_control {
        FlowControl::None => Rules::Any,
        FlowControl::Pause | FlowControl::Pfc(_) => Rules::Increasing,
    };
    let fitted = cap::fit(converter.topology, &Traffic::AllToAll, routing, trees, (rules, &Confined::default()))?;
    converter.whole(&merge(converter.topology, fitted))
}
