//! Trees for further paths: a nearly shortest one outward from every switch with hosts, and one toward it, in each lane.
//!
//! ```text
//!   outward from a: a▶b, a▶c, b▶d         toward a: b▶a, c▶a, d▶c▶a        ties are broken at random (the seed of the policy)
//! ```
//! A tree joins what it reaches in the order of channels; what it does not reach has other trees. Of cables that join the same two
//! switches it takes the one that the fewest trees so far have, and where there are many, each switch has more trees.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BinaryHeap},
};

use fabric::{ChannelId, LinkId, PATHS_MAX, SwitchId, Topology, Tree, graph::Length, rng::Rng};

use crate::{confined::Confined, fan::Direction};

use super::order::ChannelOrder;

/// How much more than another a hop may cost, at random: less than a hop, so that trees are shortest where the order lets them.
const JITTER: f64 = 0.9;

/// The trees with their lanes, in random order, so that any number of the first is spread over the fabric.
/// Cost: O(lanes · switches · links · log links).
pub(super) fn grow(topology: &Topology, order: &ChannelOrder, confined: &Confined, rng: &mut Rng) -> Vec<(Tree, u8)> {
    let roots = topology.switch_ids().filter(|switch| !topology.hosts_of(*switch).is_empty());
    let mut starts: Vec<(SwitchId, u8, Direction)> = roots
        .flat_map(|root| (0..order.lanes()).map(move |lane| (root, lane)))
        .flat_map(|(root, lane)| [Direction::Outward, Direction::Inward].map(|direction| (root, lane, direction)))
        .collect();
    // Two trees of each of two neighbours take a cable between them.
    let rounds = most_parallel(topology).div_ceil(2);
    starts = std::iter::repeat_n(starts, rounds).flatten().collect();
    rng.shuffle(&mut starts);
    let mut trees = Vec::with_capacity(starts.len());
    let mut users = vec![0; topology.links().len()];
    for (root, lane, direction) in starts {
        let links = grown(topology, order, confined, (root, lane, direction), (&users, rng));
        links.iter().for_each(|link| users[link.index()] += 1);
        let tree = Tree::new(topology, links).expect("it grew from its root, to switches that it had not reached");
        if !trees.contains(&(tree.clone(), lane)) && !tree.links().is_empty() {
            trees.push((tree, lane));
        }
    }
    trees
}

/// A channel that may come next, by its distance, then at random.
type NextChannel = Reverse<(Length, u64, ChannelId)>;

/// The most cables that join the same two switches, as far as a pair can use them.
fn most_parallel(topology: &Topology) -> usize {
    let mut parallel: BTreeMap<[SwitchId; 2], usize> = BTreeMap::new();
    for link in topology.links() {
        let mut ends = [link.a, link.b].map(|port| topology.port(port).switch);
        ends.sort_unstable();
        *parallel.entry(ends).or_default() += 1;
    }
    parallel.into_values().max().unwrap_or(0).min(PATHS_MAX as usize)
}

/// The links of one tree. `users[link]`: how many trees have it already.
fn grown(
    topology: &Topology,
    order: &ChannelOrder,
    confined: &Confined,
    (root, lane, direction): (SwitchId, u8, Direction),
    (users, rng): (&[usize], &mut Rng),
) -> Vec<LinkId> {
    let mut reached = vec![false; topology.switches().len()];
    reached[root.index()] = true;
    // Channels in the direction of frames.
    let mut heap: BinaryHeap<NextChannel> = BinaryHeap::new();
    let mut links = Vec::new();
    let mut at = Some((root, None::<ChannelId>, 0.0));
    loop {
        if let Some((switch, nearer, distance)) = at {
            let mut found: Vec<(SwitchId, NextChannel)> = Vec::new();
            for (outward, next) in topology.neighbours(switch) {
                let channel = match direction {
                    Direction::Outward => outward,
                    Direction::Inward => outward.reverse(),
                };
                let follows = match direction {
                    Direction::Outward => order.allows(lane, nearer, channel),
                    Direction::Inward => nearer.is_none_or(|nearer| order.allows(lane, Some(channel), nearer)),
                };
                if !reached[next.index()] && follows && confined.allows(root.index(), switch.index(), next.index()) {
                    let cost = 1.0 + JITTER * rng.unit_f64();
                    found.push((next, Reverse((Length(distance + cost), rng.next_u64(), channel))));
                }
            }
            // Of parallel cables one, so that the next tree takes another.
            found.sort_by_key(|(next, Reverse((.., channel)))| (*next, users[channel.link().index()]));
            found.dedup_by_key(|(next, _)| *next);
            heap.extend(found.into_iter().map(|(_, entry)| entry));
        }
        let Some(Reverse((Length(distance), _, channel))) = heap.pop() else { return links };
        let switch = match direction {
            Direction::Outward => topology.head(channel),
            Direction::Inward => topology.tail(channel),
        };
        at = (!std::mem::replace(&mut reached[switch.index()], true)).then(|| {
            links.push(channel.link());
            (switch, Some(channel), distance)
        });
    }
}
