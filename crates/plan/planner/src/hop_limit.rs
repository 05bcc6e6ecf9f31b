//! A limit on hops: no path between two hosts crosses more links between switches.
//!
//! A tree that is grown from a root by anything but the number of links needs to know how deep each switch may lie, or a cheap
//! detour near the root leaves too few links for what lies beyond. The *ceiling* of a switch is the limit, less one for each link of
//! a shortest path that goes on from there to hosts. A switch at or below its ceiling leaves every switch next to it on a shortest
//! path within its own, so that no tree that keeps to ceilings ends in a dead end.
//!
//! ```text
//!   limit 3    [r]──[a]──[b]──[c]      ceilings: c 3, b 2, a 1, e 3, d 2
//!               └──[d]──[e]─┘          entered from e, b would lie at 3, above its ceiling, and c beyond the limit
//! ```

use fabric::{SwitchId, Topology, Traffic, Tree, graph::Node};

use crate::{measure::Measure, routing::Routing};

/// The most links between switches on any path between two hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct HopLimit {
    pub(crate) hops_max: u32,
}

impl HopLimit {
    /// `serves[switch]`: whether every host of a tree is near enough to hosts there. Cost: O(switches + links).
    pub(crate) fn serves(self, topology: &Topology, tree: &Tree) -> Vec<bool> {
        let count = topology.switches().len();
        let lived_in = |switch: &SwitchId| !topology.hosts_of(*switch).is_empty();
        let depths = |root: SwitchId| {
            let rooted = tree.rooted_at(topology, root);
            let mut depth = vec![u32::MAX; count];
            for &switch in &rooted.order {
                depth[switch.index()] =
                    rooted.inward[switch.index()].map_or(0, |channel| depth[topology.tail(channel).index()] + 1);
            }
            let farthest = rooted.order.into_iter().filter(lived_in).max_by_key(|switch| depth[switch.index()]);
            (depth, farthest.unwrap_or(root))
        };
        let Some(first) = topology.switch_ids().find(lived_in) else { return vec![true; count] };
        // Of all hosts, those at one of the two ends of a longest path are the farthest from any switch.
        let (near, far) = depths(depths(first).1);
        let (other, _) = depths(far);
        near.iter().zip(&other).map(|(one, other)| one.max(other) <= &self.hops_max).collect()
    }

    /// Whether no path of a routing is longer.
    pub(crate) fn holds(self, topology: &Topology, routing: &Routing) -> bool {
        longest(topology, routing) <= self.hops_max
    }

    /// `ceiling[switch]`: how deep a switch may lie in a tree, given switches in the order of their distance from the root, each
    /// with its `distance`, and the switches `next` to each. Cost: O(switches + links).
    pub(crate) fn ceilings<N: Node, I: Iterator<Item = N>>(
        self,
        order: &[N],
        distance: &[u32],
        lived_in: impl Fn(N) -> bool,
        next: impl Fn(N) -> I,
    ) -> Vec<u32> {
        let mut ceiling = vec![u32::MAX; distance.len()];
        for &switch in order.iter().rev() {
            let at = switch.index();
            let own = if lived_in(switch) { self.hops_max } else { u32::MAX };
            let beyond = next(switch).filter(|next| distance[next.index()] == distance[at].saturating_add(1));
            let beyond = beyond.map(|next| ceiling[next.index()]).filter(|ceiling| *ceiling != u32::MAX);
            ceiling[at] = beyond.map(|ceiling| ceiling.saturating_sub(1)).fold(own, u32::min);
        }
        ceiling
    }
}

/// Links between switches on the longest path of a routing.
pub(crate) fn longest(topology: &Topology, routing: &Routing) -> u32 {
    Measure::of(topology, &Traffic::AllToAll, routing).hops_max as u32
}
