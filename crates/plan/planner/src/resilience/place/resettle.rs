//! Settling everybody anew, where what a failure cuts finds no place beside all the rest.
//!
//! The fabric is drained before hosts move, so only the routes of afterwards have to respect one numbering. Routes that were
//! found together leave little room for others. So the trees that the failure leaves whole are kept at first all, then fewer and
//! fewer: whoever used one that is kept stays there, then what is cut moves to kept ones, then the others stay where they
//! are if they still respect it, and move if they do not. A single tree takes everybody. Hosts of a switch that fails
//! count and move like others: it may come back.
//!
//! ```text
//!   kept   A B C D E F    h7 finds no place
//!          A B C D        h7, h9 find none
//!          A B C          h7 ▶ B, h9 ▶ A; h5 stays on E, h6 leaves F for C
//! ```

use std::cmp::Reverse;

use fabric::Failure;

use super::{Cut, Placed, Placer, choose::OTHERS_MAX};
use crate::resilience::{journal::NumberingJournal, orders};

/// Part of the trees that are kept the next time.
const KEPT: (usize, usize) = (3, 4);
/// How often it is tried to move onto the same trees, what found no place being placed first the next time.
const ATTEMPTS_MAX: usize = 8;

impl Placer<'_> {
    /// What moves after a failure where others than those that are cut may have to, and the numbering that it respects; none if
    /// there is no tree that the failure leaves whole and none can be added.
    pub(super) fn resettle(&mut self, failure: Failure, cuts: &[Cut]) -> Option<(Placed, NumberingJournal)> {
        let mut kept = self.kept_longest_first(failure);
        if kept.is_empty() {
            kept.push(self.common_without(failure)?);
        }
        let others = self.not_cut(cuts);
        let mut count = kept.len();
        let mut best: Option<(Placed, NumberingJournal)> = None;
        while count > 0 && best.is_none() {
            for kept in kept.chunks_exact(count) {
                let settled = self.settle_on_kept(failure, cuts, &others, kept);
                let better = |settled: &(Placed, NumberingJournal)| {
                    best.as_ref().is_none_or(|best| settled.0.peak < best.0.peak)
                };
                best = settled.filter(better).or(best);
            }
            count = (count * KEPT.0 / KEPT.1).min(count - 1);
        }
        best
    }

    /// Trees that a failure leaves whole: those that most units could use first.
    fn kept_longest_first(&mut self, failure: Failure) -> Vec<usize> {
        let mut users = vec![0_usize; self.trees.len()];
        self.units.iter().for_each(|unit| users[unit.tree] += 1);
        let mut trees: Vec<usize> = (0..self.trees.len()).filter(|tree| self.survives(*tree, failure)).collect();
        trees.sort_by_key(|tree| (Reverse(users[*tree]), *tree));
        trees.truncate(OTHERS_MAX);
        trees
    }

    /// Moves what is cut onto trees that are kept, and what does not respect the order where it is; none if some find no place.
    fn settle_on_kept(
        &mut self,
        failure: Failure,
        cuts: &[Cut],
        others: &[Cut],
        kept: &[usize],
    ) -> Option<(Placed, NumberingJournal)> {
        let mut journal = NumberingJournal::new(orders(self.request));
        self.load.fill(0.0);
        let (stay, may_move): (Vec<&Cut>, Vec<&Cut>) =
            others.iter().partition(|rest| kept.contains(&self.units[rest.unit].tree));
        for rest in stay {
            let stays = self.stays(rest, &mut journal);
            assert!(stays, "what respects the plan's numbering respects it with less beside it");
        }
        let (mark, load) = (journal.mark(), self.load.clone());
        let cuts = cuts.iter().map(|cut| (cut, false));
        let mut waiting: Vec<(&Cut, bool)> =
            cuts.chain(may_move.into_iter().map(|rest| (rest, kept.len() > 1))).collect();
        for _ in 0..ATTEMPTS_MAX {
            match self.move_onto_kept(failure, &waiting, kept, &mut journal) {
                Ok(placed) => return Some((placed, journal)),
                Err(None | Some(0)) => return None,
                // What found no place comes first the next time.
                Err(Some(stuck)) => waiting[..=stuck].rotate_right(1),
            }
            journal.back_to(mark);
            self.load.copy_from_slice(&load);
        }
        None
    }

    /// Moves what waits, in this order; else the position of what found no place, if a unit found none.
    fn move_onto_kept(
        &mut self,
        failure: Failure,
        waiting: &[(&Cut, bool)],
        kept: &[usize],
        journal: &mut NumberingJournal,
    ) -> Result<Placed, Option<usize>> {
        let (mut chosen, mut moves) = (Vec::new(), Vec::new());
        for (at, &(cut, may_stay)) in waiting.iter().enumerate() {
            if may_stay && self.stays(cut, journal) {
                continue;
            }
            let mut offers = self.offers(failure, cut, kept.iter().copied());
            let tree = (0..offers.len()).find(|at| self.admit(cut, &offers[*at], Some(journal))).ok_or(Some(at))?;
            let tree = self.take(offers.swap_remove(tree));
            chosen.push((cut.unit, tree));
            moves.push(self.change(cut, tree));
        }
        self.placed(failure, chosen, moves).ok_or(None)
    }

    /// Leaves a unit where it is, if it respects the channel order there.
    fn stays(&mut self, rest: &Cut, journal: &mut NumberingJournal) -> bool {
        let own = self.units[rest.unit].tree;
        let trace = self.trace(rest, own);
        let offer = self.offer(own, trace);
        let stays = self.admit(rest, &offer, Some(journal));
        if stays {
            self.take(offer);
        }
        stays
    }

    /// What is not cut, unit by unit.
    fn not_cut(&self, cuts: &[Cut]) -> Vec<Cut> {
        let mut cut_of: Vec<Option<&Cut>> = vec![None; self.units.len()];
        cuts.iter().for_each(|cut| cut_of[cut.unit] = Some(cut));
        let rest = |unit: usize| {
            let (topology, traffic) = (self.request.topology, self.request.traffic);
            let streams = match cut_of[unit] {
                None => self.units[unit].streams.clone(),
                Some(_) if !self.units[unit].by_pair => return None,
                Some(cut) => vec![self.units[unit].without(topology, traffic, &cut.streams[0])],
            };
            Some(Cut { unit, streams })
        };
        (0..self.units.len()).filter_map(rest).collect()
    }
}
