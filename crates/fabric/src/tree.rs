//! Trees: what one VLAN's active topology must be.

use thiserror::Error;

use crate::{
    ChannelId, LinkId, SwitchId, Topology, VlanId,
    graph::{UnionFind, breadth_first},
};

/// An acyclic, connected set of links. A tree without links covers one switch.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Tree {
    /// Ascending.
    links: Vec<LinkId>,
}

/// One VLAN's active topology.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VlanTree {
    /// The VLAN.
    pub vlan: VlanId,
    /// The lane that its frames travel in, from 0.
    pub lane: u8,
    /// Its links.
    pub tree: Tree,
}

/// Why a set of links is no tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum TreeError {
    /// The link closes a cycle.
    #[error("link {0:?} closes a cycle")]
    Cycle(LinkId),
    /// The links fall into several pieces.
    #[error("the links are not connected")]
    Disconnected,
}

impl Tree {
    /// Validates a set of links; duplicates count once. Cost: O(k log k) in the number of links.
    ///
    /// # Errors
    /// [`TreeError`] if they close a cycle or are not connected.
    pub fn new(topology: &Topology, links: impl IntoIterator<Item = LinkId>) -> Result<Self, TreeError> {
        let mut links: Vec<LinkId> = links.into_iter().collect();
        links.sort_unstable();
        links.dedup();
        let mut pieces = UnionFind::new(topology.switches().len());
        let mut is_covered = vec![false; topology.switches().len()];
        let mut covered = 0;
        for &link in &links {
            let channel = ChannelId::forward(link);
            let ends = [topology.tail(channel).index(), topology.head(channel).index()];
            if !pieces.join(ends[0], ends[1]) {
                return Err(TreeError::Cycle(link));
            }
            covered += ends.into_iter().filter(|&end| !std::mem::replace(&mut is_covered[end], true)).count();
        }
        // A forest has as many links as it covers switches, less one for each of its pieces.
        if covered > links.len() + 1 {
            return Err(TreeError::Disconnected);
        }
        Ok(Self { links })
    }

    /// The links, ascending.
    pub fn links(&self) -> &[LinkId] {
        &self.links
    }

    /// Whether a link is in the tree. Cost: O(log k).
    pub fn contains(&self, link: LinkId) -> bool {
        self.links.binary_search(&link).is_ok()
    }

    /// Hangs the tree up at `root`. Cost: O(switches + links + ports of covered switches).
    pub fn rooted_at(&self, topology: &Topology, root: SwitchId) -> RootedTree {
        let mut within = vec![false; topology.links().len()];
        self.links.iter().for_each(|link| within[link.index()] = true);
        let found = breadth_first(topology.switches().len(), [root], |switch| {
            // Most channels lead out of the tree, so where they lead is not looked up before that is known.
            let inside = topology.channels_from(switch).iter().filter(|channel| within[channel.link().index()]);
            inside.map(|&channel| (channel, topology.head(channel)))
        });
        RootedTree { root, order: found.order, inward: found.inward }
    }
}

/// Whether links close no cycle; duplicates count once.
///
/// A VLAN whose old and new links together close no cycle can go from the old ones to the new ones switch by switch: in
/// any order of switches its links are a forest after each change. Cost: O(k log k + switches) for k links.
pub fn is_forest(topology: &Topology, links: impl IntoIterator<Item = LinkId>) -> bool {
    let mut links: Vec<LinkId> = links.into_iter().collect();
    links.sort_unstable();
    links.dedup();
    let mut pieces = UnionFind::new(topology.switches().len());
    links
        .into_iter()
        .map(ChannelId::forward)
        .all(|channel| pieces.join(topology.tail(channel).index(), topology.head(channel).index()))
}

/// A tree seen from one switch: how frames spread from there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RootedTree {
    /// The switch that the tree hangs from.
    pub root: SwitchId,
    /// Covered switches in breadth-first order, the root first.
    pub order: Vec<SwitchId>,
    /// By switch: the channel through which frames from the root enter it; none for the root and uncovered switches.
    pub inward: Vec<Option<ChannelId>>,
}

impl RootedTree {
    /// Whether the tree covers a switch.
    pub fn covers(&self, switch: SwitchId) -> bool {
        switch == self.root || self.inward[switch.index()].is_some()
    }

    /// The channels from the root to `switch`, in order; empty for the root and for switches that are not covered.
    pub fn path_to(&self, topology: &Topology, switch: SwitchId) -> Vec<ChannelId> {
        let mut path = Vec::new();
        let mut at = switch;
        while let Some(channel) = self.inward[at.index()] {
            path.push(channel);
            at = topology.tail(channel);
        }
        path.reverse();
        path
    }
}
