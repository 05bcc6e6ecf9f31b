//! Deliveries: notifications of events, each tried until its receiver accepts it.
//!
//! ```text
//!   event ─▶ delivery ─ accepted ─▶ removed
//!              ▲  └─ refused ─ waits 5 s, 5 min, … ───┐
//!              └───────────────────────────────────────┘ ─ all tries used up, or the receiver is gone ─▶ failed, for a person to see
//! ```
//! Pure: the time is an argument.

use crate::{
    core::events::EventChange,
    documents::{Delivery, Severity},
};

/// Waits between tries, in seconds. Source: Standard Webhooks, "Deliverability and reliability".
pub const WAITS_S: [u64; 9] = [5, 300, 1800, 7200, 18_000, 36_000, 50_400, 72_000, 86_400];

/// Whether a receiver that is notified of events of `least` and worse is notified of a change.
pub fn is_notified(change: &EventChange, least: Severity) -> bool {
    let event = change.event();
    let is_over_at_once = event.cleared_s.is_some_and(|cleared_s| cleared_s == event.last_s);
    match change {
        EventChange::Opened(_) | EventChange::Worsened(_) => event.severity >= least,
        // A receiver that was notified of an event is notified of its end, but for events that were over when they were recorded.
        EventChange::Cleared(_) => event.worst >= least && !is_over_at_once,
        EventChange::Changed(_) | EventChange::Forgotten(_) => false,
    }
}

/// A delivery after a try that failed at `now_s`; `jitter`, 0 to 1, spreads what failed together.
pub fn after_failure(delivery: Delivery, now_s: u64, why: String, is_hopeless: bool, jitter: f64) -> Delivery {
    let tries = delivery.tries + 1;
    let wait_s = WAITS_S.get(delivery.tries as usize).copied().filter(|_| !is_hopeless);
    // Up to half as long again.
    let next_s = wait_s.map(|wait_s| now_s + wait_s + (wait_s as f64 * jitter / 2.0) as u64);
    Delivery { tries, next_s, failure: Some(why), ..delivery }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn delivery() -> Delivery {
        Delivery {
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
    fn a_delivery_is_tried_for_days_and_then_has_failed() {
        let (mut delivery, mut now_s) = (delivery(), 100);
        let mut waits = Vec::new();
        while let Some(next_s) = delivery.next_s {
            waits.push(next_s - now_s);
            now_s = next_s;
            delivery = after_failure(delivery, now_s, "503".to_owned(), false, 0.0);
        }
        assert_eq!(waits[1..], WAITS_S);
        assert_eq!((delivery.tries, delivery.failure.as_deref()), (10, Some("503")));
    }

    #[test]
    fn jitter_spreads_and_a_receiver_that_is_gone_is_not_tried_again() {
        let late = after_failure(delivery(), 100, String::new(), false, 1.0);
        assert_eq!(late.next_s, Some(107));
        assert_eq!(after_failure(delivery(), 100, "410".to_owned(), true, 0.0).next_s, None);
    }
}
