//! What is shown of things that come and go: each once it has lasted, and until it has been gone for a while.
//!
//! ```text
//!   seen ─ for RISE ─▶ shown ─ not seen for FALL ─▶ gone
//! ```
//! Pure: the time is an argument.

use std::collections::BTreeMap;

/// Things by name, seen and shown.
#[derive(Clone, Debug)]
pub struct Hysteresis<T> {
    seen: BTreeMap<String, Seen<T>>,
}

#[derive(Clone, Debug)]
struct Seen<T> {
    since_s: u64,
    last_s: u64,
    is_shown: bool,
    thing: T,
}

impl<T> Default for Hysteresis<T> {
    fn default() -> Self {
        Self { seen: BTreeMap::new() }
    }
}

impl<T: Clone> Hysteresis<T> {
    /// Takes what is seen now, and returns what is shown: what has been seen for `rise_s`, until it has not been seen for `fall_s`. What is
    /// not shown yet and not seen begins anew.
    pub fn see(&mut self, now_s: u64, now: BTreeMap<String, T>, (rise_s, fall_s): (u64, u64)) -> Vec<T> {
        self.seen.retain(|name, seen| now.contains_key(name) || seen.is_shown && now_s < seen.last_s + fall_s);
        for (name, thing) in now {
            let seen = Seen { since_s: now_s, last_s: now_s, is_shown: false, thing: thing.clone() };
            let seen = self.seen.entry(name).or_insert(seen);
            (seen.last_s, seen.thing) = (now_s, thing);
            seen.is_shown |= now_s >= seen.since_s + rise_s;
        }
        self.seen.values().filter(|seen| seen.is_shown).map(|seen| seen.thing.clone()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lasts_is_shown_until_it_is_gone_for_a_while() {
        let mut things = Hysteresis::default();
        let a = || BTreeMap::from([("a".to_owned(), 1)]);
        for (now_s, now, shown) in [
            (0, a(), vec![]),
            (19, a(), vec![]),
            (20, a(), vec![1]),
            (21, BTreeMap::new(), vec![1]),
            (49, BTreeMap::new(), vec![1]),
            (50, BTreeMap::new(), vec![]),
            // A moment of it is not enough, however often.
            (60, a(), vec![]),
            (70, BTreeMap::new(), vec![]),
            (80, a(), vec![]),
            (99, a(), vec![]),
            (100, a(), vec![1]),
        ] {
            assert_eq!(things.see(now_s, now, (20, 30)), shown, "at {now_s} s");
        }
    }
}
