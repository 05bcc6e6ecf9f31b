//! How far one direction is, and who may move it; nobody ever waits for anybody.
//!
//! ```text
//!  position 59 bits | parity | watched | broker's turn | closed | open
//!
//!  program   look ─ system calls ─ move on, if the word is still the same; otherwise nothing has happened
//!  broker    take the turn ─ read or write the pair ─ end it, at a new position, or where a program is by then
//! ```
//!
//! Positions only grow, so a word that is the same says that no byte has moved meanwhile. A program that moves on in a broker's turn
//! may leave a word that the next turn begins with; the end of a turn in which one has done so changes the parity. A program that is killed, stopped
//! or leaves a signal's handler by `longjmp` in the middle has not moved; a broker that dies in its turn leaves one that never
//! ends, in which programs do without.

use std::sync::atomic::{
    AtomicU32, AtomicU64,
    Ordering::{AcqRel, Acquire, Relaxed, Release, SeqCst},
    fence,
};

/// How often a broker tries to take its turn at one time: programs may be moving on again and again.
pub(crate) const TRIES_MAX: u32 = 1000;

const OPEN: u64 = 1;
const CLOSED: u64 = 2;
const TURN: u64 = 4;
const WATCHED: u64 = 8;
const PARITY: u64 = 16;
const FLAG_BITS: u32 = 5;
const FLAGS: u64 = (1 << FLAG_BITS) - 1;

/// The word. Zero: neither side counts bytes yet.
#[repr(transparent)]
pub(crate) struct Place(AtomicU64);

/// What the word was at one time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Moment(u64);

impl Moment {
    pub(crate) fn position(self) -> u64 {
        self.0 >> FLAG_BITS
    }

    /// Whether programs may move on from here.
    pub(crate) fn is_free(self) -> bool {
        self.0 & (OPEN | CLOSED | TURN) == OPEN
    }

    pub(crate) fn is_turn(self) -> bool {
        self.0 & (CLOSED | TURN) == TURN
    }

    pub(crate) fn is_watched(self) -> bool {
        self.0 & WATCHED != 0
    }
}

impl Place {
    /// What it is now: after all that was seen before, and before all that is seen later.
    pub(crate) fn look(&self) -> Moment {
        fence(SeqCst);
        Moment(self.0.load(Acquire))
    }

    /// Broker: begins to count, once.
    pub(crate) fn open(&self, position: u64) {
        // It may have been closed before.
        let _ = self.0.compare_exchange(0, position << FLAG_BITS | OPEN, Release, Relaxed);
    }

    /// Broker: programs move no more.
    pub(crate) fn close(&self) {
        self.0.fetch_or(CLOSED, AcqRel);
    }

    /// Program: moves on by so many bytes, if all is as it was.
    pub(crate) fn advance(&self, then: Moment, count: usize) -> bool {
        then.is_free() && self.change(then, then.0.wrapping_add((count as u64) << FLAG_BITS))
    }

    /// Program: moves on to a position though the broker has its turn, if all is as it was: what the turn is for is done.
    pub(crate) fn move_in_turn(&self, then: Moment, position: u64) -> bool {
        then.is_turn() && self.change(then, position << FLAG_BITS | then.0 & FLAGS)
    }

    /// Broker: looks into the ring no more, if all is as it was.
    pub(crate) fn rest(&self, then: Moment) -> bool {
        self.change(then, then.0 & !WATCHED)
    }

    /// Broker: takes its turn, if all is as it was. Nobody else takes turns.
    pub(crate) fn take_turn(&self, then: Moment) -> Option<Turn<'_>> {
        let is_taken = self.change(then, then.0 | TURN);
        // Whoever sees what the turn does to the pair sees the turn.
        fence(SeqCst);
        let position = then.position();
        is_taken.then(|| Turn { place: self, began: position, position, is_watched: then.is_watched() })
    }

    fn change(&self, then: Moment, to: u64) -> bool {
        self.0.compare_exchange(then.0, to, SeqCst, Relaxed).is_ok()
    }
}

/// A broker's turn, until it is dropped.
#[must_use]
pub(crate) struct Turn<'a> {
    place: &'a Place,
    began: u64,
    pub(crate) position: u64,
    pub(crate) is_watched: bool,
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let watched = if self.is_watched { WATCHED } else { 0 };
        // Closing does not wait for the end of a turn, nor does a program that has got what the turn was for.
        let _ = self.place.0.fetch_update(SeqCst, Relaxed, |word| {
            let position = word >> FLAG_BITS;
            let parity = word & PARITY ^ if position == self.began { 0 } else { PARITY };
            Some(self.position.max(position) << FLAG_BITS | parity | watched | word & (OPEN | CLOSED))
        });
    }
}

/// Memory that one thread of all programs uses at a time, while the others do without. One that leaves in the middle, by
/// `longjmp` or by its death, leaves it taken for good.
#[repr(transparent)]
pub(crate) struct Claim(AtomicU32);

impl Claim {
    pub(crate) fn take(&self) -> Option<Claimed<'_>> {
        (self.0.swap(1, Acquire) == 0).then(|| Claimed(self))
    }
}

/// Gives the memory back when it is dropped.
#[must_use]
pub(crate) struct Claimed<'a>(&'a Claim);

impl Drop for Claimed<'_> {
    fn drop(&mut self) {
        self.0.0.store(0, Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(position: u64) -> Place {
        let place = Place(AtomicU64::new(0));
        assert!(!place.look().is_free());
        place.open(position);
        place
    }

    #[test]
    fn programs_move_between_turns_only() {
        let place = place(7);
        let then = place.look();
        let mut turn = place.take_turn(then).unwrap();
        assert!(!place.advance(then, 1) && !place.advance(place.look(), 1));
        turn.position += 3;
        drop(turn);
        assert!(!place.advance(then, 1), "something has moved");
        assert!(place.advance(place.look(), 5));
        assert_eq!(place.look().position(), 15);
        // A turn in which nothing moves changes nothing.
        let then = place.look();
        drop(place.take_turn(then));
        assert!(place.advance(then, 1));
        assert!(place.take_turn(then).is_none());
    }

    #[test]
    fn programs_may_be_ahead_of_a_turn() {
        let place = place(7);
        assert!(!place.move_in_turn(place.look(), 9), "it is nobody's turn");
        let mut turn = place.take_turn(place.look()).unwrap();
        turn.position += 3;
        let then = place.look();
        assert!(then.is_turn() && place.move_in_turn(then, 15));
        assert!(!place.move_in_turn(then, 16), "something has moved");
        let then = place.look();
        drop(turn);
        assert!(place.look().is_free() && place.look().position() == 15);
        let _turn = place.take_turn(place.look()).unwrap();
        assert_eq!((place.look().position(), place.look().is_turn()), (15, true));
        assert!(!place.move_in_turn(then, 16), "it is another turn");
    }

    #[test]
    fn what_is_closed_stays_closed() {
        let place = place(7);
        let turn = place.take_turn(place.look()).unwrap();
        place.close();
        drop(turn);
        place.open(9);
        assert!(!place.look().is_free() && place.look().position() == 7);
        assert!(!place.advance(place.look(), 1));
    }

    #[test]
    fn one_claims_at_a_time() {
        let claim = Claim(AtomicU32::new(0));
        let claimed = claim.take().unwrap();
        assert!(claim.take().is_none());
        assert!(claim.take().is_none(), "who does without changes nothing");
        drop(claimed);
        std::mem::forget(claim.take().unwrap());
        assert!(claim.take().is_none(), "who leaves in the middle keeps it");
    }
}
