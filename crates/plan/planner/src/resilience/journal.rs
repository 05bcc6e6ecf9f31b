//! Books: what has been admitted to a numbering, lane by lane, and how to take back the latest.

use std::collections::BTreeSet;

use fabric::{LinkId, graph::TopologicalOrder};

use super::both;
use crate::dependency::Dependency;

/// Numberings of the lanes that some switch-overs share, and what respects them.
#[derive(Clone)]
pub(super) struct NumberingJournal {
    orders: Vec<TopologicalOrder>,
    /// Units that are admitted as a whole, each in a tree.
    whole: BTreeSet<(usize, usize)>,
    log: Vec<JournalEntry>,
}

#[derive(Clone)]
enum JournalEntry {
    Dependencies(u8, Vec<Dependency>),
    Whole(usize, usize),
}

impl NumberingJournal {
    pub(super) fn new(orders: Vec<TopologicalOrder>) -> Self {
        Self { orders, whole: BTreeSet::new(), log: Vec::new() }
    }

    pub(super) fn lane(&mut self, lane: u8) -> &mut TopologicalOrder {
        &mut self.orders[usize::from(lane)]
    }

    /// How much has been admitted so far: to come back to.
    pub(super) fn mark(&self) -> usize {
        self.log.len()
    }

    /// Takes back everything that was admitted since.
    pub(super) fn back_to(&mut self, mark: usize) {
        while self.log.len() > mark {
            match self.log.pop() {
                Some(JournalEntry::Dependencies(lane, added)) => self.orders[usize::from(lane)].withdraw(&added),
                Some(JournalEntry::Whole(unit, tree)) => {
                    self.whole.remove(&(unit, tree));
                }
                None => {}
            }
        }
    }

    pub(super) fn holds_whole(&self, unit: usize, tree: usize) -> bool {
        self.whole.contains(&(unit, tree))
    }

    /// Admits dependencies; false, and nothing changes, if they close a cycle.
    pub(super) fn admit(&mut self, lane: u8, dependencies: &[Dependency]) -> bool {
        let added = self.orders[usize::from(lane)].insert_all(dependencies);
        let admitted = added.is_some();
        self.log.extend(added.map(|added| JournalEntry::Dependencies(lane, added)));
        admitted
    }

    /// Notes that a unit is admitted as a whole in a tree.
    pub(super) fn note_whole(&mut self, unit: usize, tree: usize) {
        if self.whole.insert((unit, tree)) {
            self.log.push(JournalEntry::Whole(unit, tree));
        }
    }

    /// Leaves links out: their channels carry nothing.
    pub(super) fn leave_out(&mut self, links: &[LinkId]) {
        for order in &mut self.orders {
            links.iter().copied().flat_map(both).for_each(|channel| order.isolate(channel.index() as u32));
        }
    }

    /// `rank[lane][channel]`.
    pub(super) fn into_ranks(self) -> Option<Vec<Vec<u32>>> {
        self.orders.into_iter().map(TopologicalOrder::into_rank).collect()
    }
}
