//! What planes and a limit on hops forbid trees: a frame between two hosts of one part of a plane never leaves it, and no path
//! between two hosts is longer than the limit.
//!
//! ```text
//!   part 0:  [a]──[b]──[c]        tree of a: a▶b, b▶c, b▶e, e▶d        c is not entered from f
//!             │    │    │         the same tree serves b and c: within part 0 it hangs together
//!   part 1:  [d]──[e]──[f]        it does not serve d: part 1 falls into {d, e} and {f}, which is left out
//! ```

use std::collections::{BTreeMap, BTreeSet};

use fabric::{Assignment, Link, Policy, SwitchId, Topology, Tree, graph::UnionFind};

use crate::{hop_limit::HopLimit, routing::Routing};

/// The part of each switch, no parts where trees may take any way; and how long paths may be.
#[derive(Clone, Debug, Default)]
pub(crate) struct Confined {
    part: Vec<u32>,
    hops: Option<HopLimit>,
}

impl Confined {
    /// What a request forbids.
    pub(crate) fn by(topology: &Topology, policy: &Policy) -> Self {
        let part = policy.planes.parts(topology, &policy.drain.links).by_switch().to_vec();
        Self { part, hops: policy.hops_max.map(|hops_max| HopLimit { hops_max }) }
    }

    /// Whether nothing is forbidden.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.part.is_empty() && self.hops.is_none()
    }

    /// Whether trees keep to planes.
    pub(crate) fn has_planes(&self) -> bool {
        !self.part.is_empty()
    }

    /// How long paths may be.
    #[inline]
    pub(crate) fn hops(&self) -> Option<HopLimit> {
        self.hops
    }

    /// Whether a tree from `root` may go from one switch on to another: it does not come back into the part that it is from.
    #[inline]
    pub(crate) fn allows(&self, root: usize, from: usize, to: usize) -> bool {
        self.part.is_empty() || self.part[to] != self.part[root] || self.part[from] == self.part[to]
    }

    /// The part of a switch.
    pub(crate) fn part(&self, switch: SwitchId) -> u32 {
        self.part[switch.index()]
    }

    /// `fits[part]`: whether a tree joins all hosts of the part without leaving it. Cost: O(switches).
    fn fits(&self, topology: &Topology, tree: &Tree) -> Vec<bool> {
        let mut joined = UnionFind::new(self.part.len());
        for &link in tree.links() {
            let Link { a, b, .. } = *topology.link(link);
            let [a, b] = [a, b].map(|port| topology.port(port).switch.index());
            if self.part[a] == self.part[b] {
                joined.join(a, b);
            }
        }
        let parts = self.part.iter().max().map_or(0, |most| *most as usize + 1);
        let (mut first, mut fits) = (vec![None; parts], vec![true; parts]);
        for switch in topology.switch_ids().filter(|switch| !topology.hosts_of(*switch).is_empty()) {
            let (part, group) = (self.part[switch.index()] as usize, joined.find(switch.index()));
            fits[part] &= *first[part].get_or_insert(group) == group;
        }
        fits
    }

    /// `serves[switch]`: whether hosts there may send along a tree.
    pub(crate) fn serves(&self, topology: &Topology, tree: &Tree) -> Vec<bool> {
        let mut serves = match &self.hops {
            Some(hops) => hops.serves(topology, tree),
            None => vec![true; topology.switches().len()],
        };
        if self.has_planes() {
            let fits = self.fits(topology, tree);
            serves.iter_mut().zip(&self.part).for_each(|(serves, part)| *serves &= fits[*part as usize]);
        }
        serves
    }

    /// Whether routes keep to their parts, and are no longer than the limit. Cost: O(trees · switches), and O(hosts² · path) more
    /// where pairs choose.
    pub(crate) fn holds(&self, topology: &Topology, routing: &Routing) -> bool {
        let keeps_hops = self.hops.is_none_or(|hops| hops.holds(topology, routing));
        keeps_hops && (!self.has_planes() || self.keeps_to_parts(topology, routing))
    }

    /// Whether routes keep to their parts.
    fn keeps_to_parts(&self, topology: &Topology, routing: &Routing) -> bool {
        let part = |host| self.part(topology.switch_of(host));
        let mut used: BTreeSet<(usize, u32)> = BTreeSet::new();
        if let Assignment::Source(choice) = &routing.assignment {
            used.extend(topology.host_ids().map(|host| (choice[host.index()], part(host))));
        } else {
            let mut members = BTreeMap::<u32, Vec<_>>::new();
            topology.host_ids().for_each(|host| members.entry(part(host)).or_default().push(host));
            for (part, hosts) in members {
                let pairs = hosts.iter().flat_map(|from| hosts.iter().map(move |to| (*from, *to)));
                let trees =
                    pairs.filter(|(from, to)| from != to).map(|(from, to)| routing.assignment.unicast(from, to));
                used.extend(trees.map(|tree| (tree, part)));
            }
        }
        let mut used = used.into_iter().peekable();
        while let Some(&(tree, _)) = used.peek() {
            let fits = self.fits(topology, &routing.trees[tree]);
            while let Some((_, part)) = used.next_if(|(other, _)| *other == tree) {
                if !fits[part as usize] {
                    return false;
                }
            }
        }
        true
    }
}
