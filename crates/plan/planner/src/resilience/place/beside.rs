//! Moves only what is cut, and finds the numbering that its routes and all that stay respect.

use fabric::{Failure, Proof};

use super::{Cut, Further, Placed, Placer};
use crate::resilience::{Move, journal::NumberingJournal};

/// Further numberings, the latest, that are tried before there is a new one.
const NUMBERINGS_TRIED_MAX: usize = 2;
/// How many further numberings there may be before none is added only to carry less on the most loaded channel.
const NUMBERINGS_FOR_LOAD_MAX: usize = 64;

/// Which numbering a failure's moves must respect.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum On {
    /// The plan's own.
    First,
    /// The further one of this position.
    Further(usize),
    /// A new one, for others to share or for this failure alone.
    New { shared: bool },
}

impl Placer<'_> {
    /// Moves what is cut while everything else stays, on the numbering that leaves the most loaded channel within the limit:
    /// the plan's own, else one of the latest further ones, else a new one. Where none does, on the one that comes
    /// nearest.
    pub(super) fn place_beside_all(&mut self, failure: Failure, cuts: &[Cut]) -> Option<(Vec<Move>, Proof)> {
        let skipped = self.further.len().saturating_sub(NUMBERINGS_TRIED_MAX);
        let shared = (skipped..self.further.len()).filter(|at| self.further[*at].shared).map(On::Further);
        let group = self.group.get(&failure).map(|at| On::Further(*at));
        let mut ways: Vec<On> = group.into_iter().chain([On::First]).chain(shared).collect();
        ways.push(On::New { shared: true });
        // Hosts of a group that comes back switch by switch may send to each other through its members, so none is left out.
        if !matches!(failure, Failure::Group(_)) {
            ways.push(On::New { shared: false });
        }
        let mut best: Option<(f64, On)> = None;
        for on in ways {
            let for_load_alone = best.is_some() && matches!(on, On::New { .. });
            if for_load_alone && (on == On::New { shared: false } || self.further.len() >= NUMBERINGS_FOR_LOAD_MAX) {
                continue;
            }
            let trees = self.trees.len();
            let Some((placed, journal, mark)) = self.attempt_on(on, failure, cuts) else { continue };
            if placed.peak <= self.limit {
                return Some(self.settle_on(on, placed, journal));
            }
            if best.is_none_or(|(least, _)| placed.peak < least) {
                best = Some((placed.peak, on));
            }
            self.forget(trees);
            self.put_back(on, journal, mark);
        }
        let (_, on) = best?;
        let (placed, journal, _) = self.attempt_on(on, failure, cuts)?;
        Some(self.settle_on(on, placed, journal))
    }

    /// Tries to move what is cut on a numbering, whose journal comes along with where it was before.
    pub(super) fn attempt_on(
        &mut self,
        on: On,
        failure: Failure,
        cuts: &[Cut],
    ) -> Option<(Placed, NumberingJournal, usize)> {
        let nothing = || NumberingJournal::new(Vec::new());
        let mut journal = match on {
            On::First => self.first.take().expect("a journal of the plan's own routes"),
            On::Further(at) => std::mem::replace(&mut self.further[at].journal, nothing()),
            On::New { shared } => {
                let mut journal = self.plain.clone().expect("a journal of the plan's own routes");
                if !shared {
                    journal.leave_out(&failure.links(self.request.topology));
                }
                journal
            }
        };
        let mark = journal.mark();
        match self.attempt(failure, cuts, Some(&mut journal)) {
            Some(placed) => Some((placed, journal, mark)),
            None => {
                self.put_back(on, journal, mark);
                None
            }
        }
    }

    fn put_back(&mut self, on: On, mut journal: NumberingJournal, mark: usize) {
        journal.back_to(mark);
        match on {
            On::First => self.first = Some(journal),
            On::Further(at) => self.further[at].journal = journal,
            On::New { .. } => {}
        }
    }

    pub(super) fn settle_on(&mut self, on: On, placed: Placed, journal: NumberingJournal) -> (Vec<Move>, Proof) {
        let moves = self.settle(placed);
        let proof = match on {
            On::First => {
                self.first = Some(journal);
                Proof::Certificate
            }
            On::Further(at) => {
                self.further[at].journal = journal;
                Proof::Numbering(at)
            }
            On::New { shared } => Proof::Numbering(self.keep(Further { journal, shared })),
        };
        (moves, proof)
    }
}
