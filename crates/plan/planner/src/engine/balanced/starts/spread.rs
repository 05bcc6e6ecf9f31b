//! Start: trees from switches spread over the network.
//!
//! Exploits: distance. Trees of least hops from roots that are as far from each other as can be differ as much as trees can, so
//! that moves of branches and of senders, or pairs, have something to choose from.
//! Wins: without flow control, where any trees will do: random-regular n=20,d=4 and torus 6x6 less 3,1 with eight trees, 1.06
//! and 1.11; random-regular n=64,d=6 with 32, 1.34; all trees by pair come from it there. With flow control it gives only the
//! single tree that all begins with.
//! Costs: a tree grown for each root, then a cycle of improvement; tried for powers of two and a few numbers more.
//!
//! ```text
//!   roots of three trees on a ring of six:   [1]──o──[3]──o──[2]──o──┐
//!                                             └───────────────────────┘
//! ```

use fabric::rng::Rng;

use crate::engine::balanced::{
    build::{Builder, Rule},
    net::{NONE, Net},
    schedule::GROWING,
    senders::{Share, Unit},
    shared_trees::SharedTrees,
    work::Work,
};

/// Few trees grown for all senders from switches spread over the network, each against the load of those before.
pub(in crate::engine::balanced) fn spread(
    net: &Net,
    mut units: Vec<Unit>,
    trees: usize,
    rng: &mut Rng,
    work: &mut Work<'_>,
) -> Share {
    let mut shared = SharedTrees::new(net, None);
    let mut builder = Builder::new(net);
    let mut inward = vec![NONE; net.switches];
    let mut grown = vec![false; net.switches];
    let uniform: Vec<f32> = (0..net.channels).map(|channel| net.slowness_of(channel) as f32).collect();
    // Farthest-point sampling.
    let mut nearest = vec![u32::MAX; net.switches];
    let mut roots = Vec::new();
    let mut next = rng.below(net.switches);
    for _ in 0..trees {
        roots.push(next);
        let mut queue = vec![next];
        nearest[next] = 0;
        let mut at = 0;
        while let Some(&switch) = queue.get(at) {
            at += 1;
            for &channel in net.from(switch) {
                let head = net.head(channel);
                if nearest[head] > nearest[switch] + 1 {
                    nearest[head] = nearest[switch] + 1;
                    queue.push(head);
                }
            }
        }
        grown[next] = true;
        let far = nearest.iter().copied().max().unwrap_or(0);
        let choices: Vec<usize> = (0..net.switches).filter(|&s| nearest[s] == far && !grown[s]).collect();
        next = if choices.is_empty() { rng.below(net.switches) } else { choices[rng.below(choices.len())] };
    }
    for &root in &roots {
        let price: Vec<f32> =
            uniform.iter().map(|price| price * (1.0 + GROWING.spread_noise * rng.unit_f64() as f32)).collect();
        builder.grow(net, root, &price, Rule::Free, &mut inward);
        shared.push(root, &inward, 0);
        work.spend(5 * net.channels);
    }
    for (number, unit) in units.iter_mut().enumerate() {
        unit.tree = number % trees;
    }
    let mut share = Share { trees: shared, units };
    share.settle(net);
    share
}
