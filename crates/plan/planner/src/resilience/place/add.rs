//! Adding trees: what no tree of the plan can carry has one made for it.

use std::{collections::BTreeMap, rc::Rc};

use fabric::{ChannelId, Failure, LinkId, SwitchId, Tree, VlanId, graph::TopologicalOrder};

use super::{Cut, Placer, choose::Offer};
use crate::{
    fan::Direction,
    replan::{Cycles, Flow, Mender, unit},
    resilience::{both, grow, journal::NumberingJournal, survives, unit::Rooted},
};

impl Placer<'_> {
    /// A new tree for a cut unit, if its most loaded channel is worth it; its routes are admitted.
    pub(super) fn addition(
        &mut self,
        failure: Failure,
        cut: &Cut,
        worth: f64,
        mut journal: Option<&mut NumberingJournal>,
    ) -> Option<Offer> {
        let (unit, own) = (cut.unit, self.units[cut.unit].tree);
        if self.trees.len() - self.own >= self.additions_max {
            return None;
        }
        let topology = self.request.topology;
        let lanes = self.request.rank.map_or(1, <[_]>::len);
        let former: Vec<(Tree, u8, VlanId)> = (self.request.former.iter())
            .filter(|(tree, lane, vlan)| {
                survives(topology, tree.links(), failure)
                    && usize::from(*lane) < lanes
                    && !self.vlan.contains(&Some(*vlan))
            })
            .cloned()
            .collect();
        for (tree, lane, vlan) in former {
            if let Some(offer) = self.try_tree(cut, (tree, lane, Some(vlan)), worth, journal.as_deref_mut()) {
                return Some(offer);
            }
        }
        let lane = self.lane[own];
        let directions: Vec<Direction> = cut.streams.iter().map(|stream| stream.direction).collect();
        let root = self.units[unit].root;
        let avoid = self.not_avoided_yet(unit);
        let mut sharers: Vec<SwitchId> = (self.users(failure).into_iter())
            .map(|other| &self.units[other])
            .filter(|other| other.tree == own)
            .map(|other| other.root)
            .collect();
        sharers.dedup();
        // One tree for all who share theirs, else one for this unit alone.
        let own_links = self.trees[own].links().to_vec();
        let by_pair = self.units[unit].by_pair;
        let mut core = if by_pair { Vec::new() } else { grow::core(topology, &own_links, &sharers) };
        if !survives(topology, &core, failure) {
            let mended = self.mended(failure, own, journal.as_deref_mut());
            core = mended.map_or_else(Vec::new, |tree| grow::core(topology, tree.links(), &sharers));
        }
        let cores = if core.is_empty() { vec![core] } else { vec![core, Vec::new()] };
        for core in cores {
            let order = journal.as_deref_mut().map(|journal| journal.lane(lane));
            let Some(tree) = self.grown(root, &core, &directions, failure, &avoid, order) else { continue };
            if let Some(offer) = self.try_tree(cut, (tree, lane, None), worth, journal.as_deref_mut()) {
                return Some(offer);
            }
        }
        let tree = self.mended(failure, own, journal.as_deref_mut())?;
        self.try_tree(cut, (tree, lane, None), worth, journal)
    }

    fn try_tree(
        &mut self,
        cut: &Cut,
        (tree, lane, vlan): (Tree, u8, Option<VlanId>),
        worth: f64,
        journal: Option<&mut NumberingJournal>,
    ) -> Option<Offer> {
        let rooted = Rooted::new(self.request.topology, &tree, self.units[cut.unit].root);
        let trace = Rc::new(rooted.trace(self.request.topology, &cut.streams));
        let offer = self.offer(self.trees.len(), trace);
        if offer.peak > worth {
            return None;
        }
        let number = self.add(tree, lane, vlan)?;
        if self.admit(cut, &offer, journal) {
            self.made[self.units[cut.unit].tree].push(number);
            return Some(offer);
        }
        self.forget(number);
        None
    }

    pub(super) fn add(&mut self, tree: Tree, lane: u8, vlan: Option<VlanId>) -> Option<usize> {
        if self.trees.len() - self.own >= self.request.extras_max {
            return None;
        }
        self.trees.push(tree);
        self.lane.push(lane);
        self.vlan.push(vlan);
        self.rooted.push(BTreeMap::new());
        self.traces.push(BTreeMap::new());
        Some(self.trees.len() - 1)
    }

    /// `avoid[link]`: links of a unit's tree that none of the trees that it moves to does without.
    fn not_avoided_yet(&self, unit: usize) -> Vec<bool> {
        let own = self.units[unit].tree;
        let mut avoid = vec![false; self.using.len()];
        for &link in self.trees[own].links() {
            let others = self.known[unit].iter().chain(&self.made[own]);
            avoid[link.index()] = others.into_iter().all(|&tree| self.trees[tree].contains(link));
        }
        avoid
    }

    fn grown(
        &mut self,
        root: SwitchId,
        core: &[LinkId],
        directions: &[Direction],
        failure: Failure,
        avoid: &[bool],
        order: Option<&mut TopologicalOrder>,
    ) -> Option<Tree> {
        let topology = self.request.topology;
        let busy: Vec<f64> = self.load.iter().zip(&self.per_unit).map(|(load, per_unit)| load * per_unit).collect();
        let peak = busy.iter().copied().fold(1.0, f64::max);
        let busy: Vec<f64> = busy.into_iter().map(|busy| busy / peak).collect();
        let wish = grow::Wish { topology, root, core, directions, failure, avoid, busy: &busy };
        Tree::new(topology, grow::grow(&wish, order)?).ok()
    }

    /// A tree for everybody that a failure leaves whole. A new one does without links that the others all have as well.
    pub(super) fn common_without(&mut self, failure: Failure) -> Option<usize> {
        let free = |tree: &&usize| self.survives(**tree, failure);
        if let Some(&tree) = self.common.iter().find(free) {
            return Some(tree);
        }
        let all_have = |link: LinkId| self.common.iter().all(|tree| self.trees[*tree].contains(link));
        let avoid: Vec<bool> =
            self.request.topology.link_ids().map(|link| !self.common.is_empty() && all_have(link)).collect();
        let root = self.units.iter().map(|unit| unit.root).find(|root| !failure.takes(self.request.topology, *root))?;
        let tree = self.grown(root, &[], &[Direction::Outward], failure, &avoid, None)?;
        let tree = self.add(tree, 0, None)?;
        self.common.push(tree);
        Some(tree)
    }

    /// A tree that a failure leaves whole, mended for all units that share it, or else for as many as can be. A switch that
    /// fails keeps one link of the tree, and so is a leaf; switches of a group that fails may hang from each other.
    fn mended(&mut self, failure: Failure, own: usize, journal: Option<&mut NumberingJournal>) -> Option<Tree> {
        let journal = journal?;
        let topology = self.request.topology;
        let tree = self.trees[own].links();
        let mut dead = failure.links(topology);
        let users = self.users(failure);
        let sharers = || users.iter().map(|other| &self.units[*other]).filter(|unit| unit.tree == own);
        let kept: Vec<LinkId> = match failure {
            Failure::Link(_) => Vec::new(),
            Failure::Switch(_) => {
                dead.iter().copied().filter(|link| tree.binary_search(link).is_ok()).take(1).collect()
            }
            Failure::Group(_) => {
                // What leads from a switch that is left to those that fail.
                let rooted = Rooted::new(topology, &self.trees[own], sharers().next()?.root);
                let failing = topology.switch_ids().filter(|switch| failure.takes(topology, *switch));
                failing.filter_map(|switch| rooted.inward[switch.index()]).map(ChannelId::link).collect()
            }
        };
        dead.retain(|link| !kept.contains(link));
        let (lost, left): (Vec<LinkId>, Vec<LinkId>) = tree.iter().copied().partition(|link| dead.contains(link));
        let scale = unit(self.request.traffic);
        let flows: Vec<Flow> = sharers().flat_map(|unit| unit.flows(&unit.streams, scale)).collect();
        let ends = lost.into_iter().flat_map(both).map(|channel: ChannelId| topology.tail(channel));
        let mut stubs: Vec<SwitchId> = ends.collect();
        stubs.sort_unstable();
        stubs.dedup();
        let orders = vec![journal.lane(self.lane[own]).clone()];
        let mut mender = Mender::new(topology, Cycles::Forbidden, orders);
        mender.do_without(&dead);
        let links = mender.mend(0, &left, &stubs, &flows).or_else(|| mender.regrow(0, &left, &flows))?;
        Tree::new(topology, links).ok()
    }
}
