//! Choosing: the tree that what is cut moves to.

use std::{collections::BTreeSet, rc::Rc};

use fabric::{ChannelId, Failure, SwitchId, graph::BreadthFirst};

use super::{Beyond, Cut, Placer};
use crate::resilience::{journal::NumberingJournal, unit::Trace};

/// Trees of others that are looked at for one unit.
pub(super) const OTHERS_MAX: usize = 24;
/// Trees of others, the least busy ones, that are tried with a new numbering.
const RENUMBERING_TRIES_MAX: usize = 6;
/// How much lower the most loaded channel of a unit's way must be for a tree to be added that could be done without.
const ADDITION_GAIN: f64 = 0.8;

/// A tree that a unit could move to.
pub(super) struct Offer {
    pub(super) tree: usize,
    pub(super) peak: f64,
    pub(super) trace: Rc<Trace>,
}

impl Placer<'_> {
    /// The tree that a cut unit moves to: its load is added, and its routes are admitted.
    pub(super) fn choose(
        &mut self,
        failure: Failure,
        cut: &Cut,
        mut journal: Option<&mut NumberingJournal>,
    ) -> Option<usize> {
        let unit = cut.unit;
        let mine = self.units[unit].tree;
        let own: BTreeSet<usize> = self.known[unit].iter().chain(&self.made[mine]).copied().collect();
        let mut offers = self.offers(failure, cut, own.iter().copied());
        if let Some(at) = self.best_within(cut, &offers, self.limit, journal.as_deref_mut()) {
            return Some(self.take(offers.swap_remove(at)));
        }
        let others: Vec<usize> = self.others(unit).into_iter().filter(|tree| !own.contains(tree)).collect();
        let mut more = self.offers(failure, cut, others.into_iter());
        if let Some(at) = self.best_within(cut, &more, self.limit, journal.as_deref_mut()) {
            return Some(self.take(more.swap_remove(at)));
        }
        if self.beyond == Beyond::Refused {
            return None;
        }
        offers.append(&mut more);
        offers.sort_by(|one, other| one.peak.total_cmp(&other.peak).then(one.tree.cmp(&other.tree)));
        let mark = journal.as_ref().map(|journal| journal.mark());
        let last_resort = self.best_within(cut, &offers, f64::INFINITY, journal.as_deref_mut());
        if let (Some(mark), Some(journal)) = (mark, journal.as_deref_mut()) {
            journal.back_to(mark);
        }
        let worth = match last_resort {
            Some(at) => ADDITION_GAIN * offers[at].peak,
            None => f64::INFINITY,
        };
        let addition = if worth > 0.0 { self.addition(failure, cut, worth, journal.as_deref_mut()) } else { None };
        if let Some(offer) = addition {
            return Some(self.take(offer));
        }
        let at = last_resort?;
        let admitted = self.admit(cut, &offers[at], journal);
        assert!(admitted, "what was admitted before and taken back is admitted again");
        Some(self.take(offers.swap_remove(at)))
    }

    pub(super) fn take(&mut self, offer: Offer) -> usize {
        offer.trace.crossed.iter().for_each(|(channel, amount)| self.load[channel.index()] += amount);
        offer.tree
    }

    /// What trees would mean for a cut unit; those that the failure cuts as well are left out.
    pub(super) fn offers(&mut self, failure: Failure, cut: &Cut, trees: impl Iterator<Item = usize>) -> Vec<Offer> {
        let mut offers: Vec<Offer> = Vec::new();
        for tree in trees {
            if self.survives(tree, failure) {
                let trace = self.trace(cut, tree);
                offers.push(self.offer(tree, trace));
            }
        }
        offers.sort_by(|one, other| one.peak.total_cmp(&other.peak).then(one.tree.cmp(&other.tree)));
        offers
    }

    pub(super) fn offer(&self, tree: usize, trace: Rc<Trace>) -> Offer {
        let busy = |&(channel, amount): &(ChannelId, f64)| {
            (self.load[channel.index()] + amount) * self.per_unit[channel.index()]
        };
        let peak = trace.crossed.iter().map(busy).fold(0.0, f64::max);
        Offer { tree, peak, trace }
    }

    /// The first of sorted offers that is within a limit and whose routes are admitted: those that respect the order first.
    fn best_within(
        &self,
        cut: &Cut,
        offers: &[Offer],
        limit: f64,
        journal: Option<&mut NumberingJournal>,
    ) -> Option<usize> {
        let within = offers.iter().take_while(|offer| offer.peak <= limit).count();
        let Some(journal) = journal else { return (within > 0).then_some(0) };
        let climbs = |offer: &Offer, journal: &mut NumberingJournal| {
            let whole = !self.units[cut.unit].by_pair && journal.holds_whole(cut.unit, offer.tree);
            let order = journal.lane(self.lane[offer.tree]);
            whole || offer.trace.dependencies.iter().all(|dependency| order.respects(*dependency))
        };
        let climbing = (0..within).find(|&at| climbs(&offers[at], journal));
        let at = climbing.into_iter().chain(0..within.min(RENUMBERING_TRIES_MAX));
        at.into_iter().find(|&at| self.admit(cut, &offers[at], Some(journal)))
    }

    pub(super) fn admit(&self, cut: &Cut, offer: &Offer, journal: Option<&mut NumberingJournal>) -> bool {
        let Some(journal) = journal else { return true };
        let by_pair = self.units[cut.unit].by_pair;
        if !by_pair && journal.holds_whole(cut.unit, offer.tree) {
            return true;
        }
        let admitted = journal.admit(self.lane[offer.tree], &offer.trace.dependencies);
        if admitted && !by_pair {
            journal.note_whole(cut.unit, offer.tree);
        }
        admitted
    }

    /// Trees of others that a unit may try: added ones, the latest first, and those of near switches.
    fn others(&mut self, unit: usize) -> Vec<usize> {
        let root = self.units[unit].root;
        let near = self.near(root);
        let added = (self.own..self.trees.len()).rev().take(OTHERS_MAX / 2);
        self.common
            .iter()
            .copied()
            .chain(added)
            .chain(near.iter().copied())
            .take(OTHERS_MAX + self.common.len())
            .collect()
    }

    fn near(&mut self, root: SwitchId) -> Rc<Vec<usize>> {
        if let Some(known) = &self.near[root.index()] {
            return known.clone();
        }
        let topology = self.request.topology;
        let mut of_switch: Vec<Vec<usize>> = vec![Vec::new(); topology.switches().len()];
        for unit in &self.units {
            of_switch[unit.root.index()].push(unit.tree);
        }
        let mut search = BreadthFirst::from(topology.switches().len(), [root]);
        let mut trees = Vec::new();
        while let Some(at) = search.next() {
            for &tree in &of_switch[at.index()] {
                if !trees.contains(&tree) {
                    trees.push(tree);
                }
            }
            if trees.len() >= OTHERS_MAX {
                break;
            }
            for (channel, head) in topology.neighbours(at) {
                search.reach(at, channel, head);
            }
        }
        let near = Rc::new(trees);
        self.near[root.index()] = Some(near.clone());
        near
    }
}
