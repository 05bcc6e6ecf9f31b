//! How deep switches lie in a tree, where a limit on hops says how deep they may.
//!
//! ```text
//!   [r]──[a]──[b]──[c]      depth of b 2; height of a 2, if hosts are at c
//! ```

use fabric::graph::breadth_first;

use super::net::{NONE, Net};
use crate::hop_limit::HopLimit;

/// `ceiling[switch]`: how deep a switch may lie in a tree from `root`. Cost: O(channels).
pub(super) fn ceilings(net: &Net, root: usize, limit: HopLimit) -> Vec<u32> {
    let allowed = |switch: usize| net.neighbours(switch).filter(move |(channel, _)| net.allows(root, *channel));
    let found = breadth_first(net.switches, [root], allowed);
    let distance: Vec<u32> = (0..net.switches).map(|switch| found.distance(switch).unwrap_or(u32::MAX)).collect();
    limit.ceilings(
        &found.order,
        &distance,
        |switch| net.hosts[switch] > 0,
        |switch| allowed(switch).map(|(_, head)| head),
    )
}

/// Links from the root to a switch that the tree covers. Cost: O(depth).
pub(super) fn depth(net: &Net, root: usize, inward: &[u32], mut switch: usize) -> u32 {
    let mut depth = 0;
    while switch != root {
        switch = net.tail(inward[switch]);
        depth += 1;
    }
    depth
}

/// Links from a switch to the farthest one with hosts below it. Cost: O(channels of the switches below).
pub(super) fn height(net: &Net, inward: &[u32], switch: usize) -> u32 {
    let mut height = 0;
    let mut pending = vec![(switch, 0)];
    while let Some((switch, depth)) = pending.pop() {
        if net.hosts[switch] > 0 {
            height = height.max(depth);
        }
        pending.extend(
            net.neighbours(switch)
                .filter(|(channel, head)| inward[*head] == *channel)
                .map(|(_, head)| (head, depth + 1)),
        );
    }
    height
}

/// Whether some switch with hosts lies deeper in a tree that covers all of them than paths may be long. Cost: O(switches · depth).
pub(super) fn is_too_deep(net: &Net, root: usize, inward: &[u32]) -> bool {
    let Some(limit) = net.confined.hops() else { return false };
    (0..net.switches)
        .filter(|switch| net.hosts[*switch] > 0 && inward[*switch] != NONE)
        .any(|switch| depth(net, root, inward, switch) > limit.hops_max)
}
