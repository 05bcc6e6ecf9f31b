//! Groups of links that are protected together: the plan mended as if all of a group had failed.
//!
//! Links that share no switch are put into one group. Each tree that uses some of them gets a copy that does without all
//! of them, mended as planning again would (`replan/mend.rs`), and one numbering is respected by the plan's own routes
//! and by those of the copies. When one of the links fails, whoever is cut moves to the copy of its own tree: little is
//! busier than after planning again, and a copy serves as many failures as its tree has links in the group.
//!
//! ```text
//!   group 1   links 0, 7, 20     tree A uses 0 and 20: copy A₁ has neither      link 0 fails: users of A ▶ A₁
//!   group 2   links 1, 9, 15     tree A uses 9:        copy A₂ does without it  link 20 fails: users of A ▶ A₁
//! ```

use std::collections::BTreeSet;

use fabric::{
    ChannelId, LinkId, SwitchId, Topology, Tree,
    graph::{TopologicalOrder, breadth_first},
};

use super::unit::Unit;
use crate::replan::{Cycles, Flow, Mender};

/// In how many orders the trees of a group are mended, those that found no way coming first the next time.
const ROUNDS_MAX: usize = 3;

/// What a group's links need.
pub(super) struct Copies {
    /// Own trees, and what their users move to.
    pub(super) trees: Vec<(usize, Tree)>,
    /// The lanes' numberings, which all routes of the plan and of the copies respect.
    pub(super) orders: Vec<TopologicalOrder>,
}

/// Puts links into at most `count` groups of nearly the same size. Those that no group can do without as well, since hosts
/// would be cut off, are left out. Cost: O(links · (count + switches + links)).
pub(super) fn groups(topology: &Topology, links: &[LinkId], count: usize) -> Vec<Vec<LinkId>> {
    let mut groups: Vec<Vec<LinkId>> = vec![Vec::new(); count];
    let mut touched: Vec<BTreeSet<SwitchId>> = vec![BTreeSet::new(); count];
    for &link in links {
        let ends = [ChannelId::forward(link), ChannelId::backward(link)].map(|channel| topology.tail(channel));
        let mut order: Vec<usize> = (0..count).collect();
        let near = |at: usize| ends.iter().filter(|end| touched[at].contains(end)).count();
        order.sort_by_key(|&at| (near(at), groups[at].len(), at));
        let found = order.into_iter().find(|&at| {
            let without: Vec<LinkId> = groups[at].iter().copied().chain([link]).collect();
            is_connected(topology, &without)
        });
        if let Some(at) = found {
            groups[at].push(link);
            touched[at].extend(ends);
        }
    }
    groups.iter_mut().for_each(|group| group.sort_unstable());
    groups.retain(|group| !group.is_empty());
    groups
}

/// Whether all hosts reach each other without some links.
fn is_connected(topology: &Topology, without: &[LinkId]) -> bool {
    let lived_in = |switch: &SwitchId| !topology.hosts_of(*switch).is_empty();
    let Some(start) = topology.switch_ids().find(lived_in) else { return true };
    let found = breadth_first(topology.switches().len(), [start], |switch| {
        topology.neighbours(switch).filter(|(channel, _)| !without.contains(&channel.link()))
    });
    topology.switch_ids().filter(lived_in).all(|switch| found.has_reached(switch))
}

/// The plan's own trees and who uses them, ready to be mended for one group after the other.
pub(super) struct Copier<'a> {
    topology: &'a Topology,
    trees: &'a [Tree],
    lane: &'a [u8],
    /// `flows[tree]`.
    flows: Vec<Vec<Flow>>,
    mender: Mender<'a>,
}

impl<'a> Copier<'a> {
    /// Units are weighed in so much demand each. None if the plan's own routes do not respect the numberings.
    pub(super) fn new(
        topology: &'a Topology,
        (trees, lane): (&'a [Tree], &'a [u8]),
        (units, unit): (&[Unit], f64),
        cycles: Cycles,
        orders: Vec<TopologicalOrder>,
    ) -> Option<Self> {
        let mut flows: Vec<Vec<Flow>> = vec![Vec::new(); trees.len()];
        units.iter().for_each(|one| flows[one.tree].extend(one.flows(&one.streams, unit)));
        let mut mender = Mender::new(topology, cycles, orders);
        for ((tree, lane), flows) in trees.iter().zip(lane).zip(&flows) {
            mender.take(*lane, tree.links(), flows)?;
        }
        Some(Self { topology, trees, lane, flows, mender })
    }

    /// Mends what uses links of a group; trees for which no way was found have no copy.
    pub(super) fn copies(&self, group: &[LinkId]) -> Copies {
        let mut using: Vec<usize> =
            (0..self.trees.len()).filter(|tree| group.iter().any(|link| self.trees[*tree].contains(*link))).collect();
        let mut best: Option<(usize, Copies)> = None;
        for _ in 0..ROUNDS_MAX {
            let mut mender = self.mender.clone();
            mender.do_without(group);
            let tried: Vec<(usize, Option<Tree>)> =
                using.iter().map(|&tree| (tree, self.copy(&mut mender, tree, group))).collect();
            let stuck = tried.iter().filter(|(_, copy)| copy.is_none()).count();
            if best.as_ref().is_some_and(|(least, _)| *least <= stuck) {
                break;
            }
            using.sort_by_key(|tree| tried.iter().any(|(other, copy)| other == tree && copy.is_some()));
            let trees = tried.into_iter().filter_map(|(tree, copy)| Some((tree, copy?))).collect();
            best = Some((stuck, Copies { trees, orders: mender.orders }));
            if stuck == 0 {
                break;
            }
        }
        best.map_or_else(|| Copies { trees: Vec::new(), orders: self.mender.orders.clone() }, |(_, copies)| copies)
    }

    fn copy(&self, mender: &mut Mender<'_>, tree: usize, group: &[LinkId]) -> Option<Tree> {
        let (lost, left): (Vec<LinkId>, Vec<LinkId>) =
            self.trees[tree].links().iter().partition(|link| group.binary_search(link).is_ok());
        let ends = lost.iter().flat_map(|link| [ChannelId::forward(*link), ChannelId::backward(*link)]);
        let mut stubs: Vec<SwitchId> = ends.map(|channel| self.topology.tail(channel)).collect();
        stubs.sort_unstable();
        stubs.dedup();
        let (lane, flows) = (self.lane[tree], &self.flows[tree]);
        let links = mender.mend(lane, &left, &stubs, flows).or_else(|| mender.regrow(lane, &left, flows))?;
        Tree::new(self.topology, links).ok()
    }
}
