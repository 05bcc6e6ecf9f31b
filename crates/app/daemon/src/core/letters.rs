//! Letters: what is told of events to the world outside, tried until it is taken.
//!
//! ```text
//!   event ─▶ letter ─ taken ─▶ gone
//!              ▲  └─ not taken ─ waits 5 s, 5 min, … ─┐
//!              └───────────────────────────────────────┘ ─ all tries used up, or the receiver is gone ─▶ dead, for a person to see
//! ```
//! Pure: the time is an argument.

use crate::{
    core::events::EventChange,
    documents::{Letter, Severity},
};

/// Waits between tries, in seconds. Source: Standard Webhooks, "Deliverability and reliability".
pub const WAITS_S: [u64; 9] = [5, 300, 1800, 7200, 18_000, 36_000, 50_400, 72_000, 86_400];

/// Whether a change of an event is told to whoever hears of events of `least` and worse.
pub fn is_told(change: &EventChange, least: Severity) -> bool {
    let event = change.event();
    let is_over_at_once = event.cleared_s.is_some_and(|cleared_s| cleared_s == event.last_s);
    match change {
        EventChange::Opened(_) | EventChange::Worsened(_) => event.severity >= least,
        // Whoever heard that it began hears that it is gone, and nobody hears twice of what was over when it was told.
        EventChange::Cleared(_) => event.worst >= least && !is_over_at_once,
        EventChange::Changed(_) | EventChange::Forgotten(_) => false,
    }
}

/// A letter after a try that failed at `now_s`; `luck`, 0 to 1, spreads what failed together.
pub fn after_failure(letter: Letter, now_s: u64, why: String, is_hopeless: bool, luck: f64) -> Letter {
    let tries = letter.tries + 1;
    let wait_s = WAITS_S.get(letter.tries as usize).copied().filter(|_| !is_hopeless);
    // Up to half as long again.
    let next_s = wait_s.map(|wait_s| now_s + wait_s + (wait_s as f64 * luck / 2.0) as u64);
    Letter { tries, next_s, failure: Some(why), ..letter }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn letter() -> Letter {
        Letter {
            id: 1,
            to: "pager".to_owned(),
            body: "{}".to_owned(),
            at_s: 100,
            tries: 0,
            next_s: Some(100),
            failure: None,
        }
    }

    #[test]
    fn a_letter_is_tried_for_days_and_then_is_dead() {
        let (mut letter, mut now_s) = (letter(), 100);
        let mut waits = Vec::new();
        while let Some(next_s) = letter.next_s {
            waits.push(next_s - now_s);
            now_s = next_s;
            letter = after_failure(letter, now_s, "503".to_owned(), false, 0.0);
        }
        assert_eq!(waits[1..], WAITS_S);
        assert_eq!((letter.tries, letter.failure.as_deref()), (10, Some("503")));
    }

    #[test]
    fn luck_spreads_and_a_receiver_that_is_gone_is_not_tried_again() {
        let late = after_failure(letter(), 100, String::new(), false, 1.0);
        assert_eq!(late.next_s, Some(107));
        assert_eq!(after_failure(letter(), 100, "410".to_owned(), true, 0.0).next_s, None);
    }
}
