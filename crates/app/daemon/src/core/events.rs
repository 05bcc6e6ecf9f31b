//! The event log: conditions that are seen become events that last until they are gone for good.
//!
//! ```text
//!   seen ─▶ open ─ not seen for the hold-down ─▶ cleared ─ seen again within FLAP_WINDOW ─▶ open again, times + 1
//! ```
//! The hold-down is nothing at first and doubles with each return, so that what flaps is one event that stays open. Pure: the
//! time is an argument.

use std::collections::{BTreeMap, BTreeSet};

use crate::documents::{Event, Severity};

/// A condition that returns within this time of being gone is the same event.
pub const FLAP_WINDOW_S: u64 = 600;
/// The hold-down after the first return.
pub const HOLD_MIN_S: u64 = 10;
/// The longest hold-down.
pub const HOLD_MAX_S: u64 = 600;
/// Cleared events that are remembered; older ones are forgotten.
pub const CLEARED_MAX: usize = 1000;

/// Something that is seen now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Condition {
    /// What kind of cause.
    pub kind: String,
    /// What it is about.
    pub subject: String,
    /// How much it concerns a person.
    pub severity: Severity,
    /// What is wrong, in a sentence.
    pub message: String,
    /// What follows from it.
    pub consequences: Vec<String>,
    /// What to do.
    pub remedy: Option<String>,
    /// Why maintenance keeps it from being acted on.
    pub maintenance: Option<String>,
}

/// How an event changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EventChange {
    /// It is new, or returned.
    Opened(Event),
    /// Its consequences, its remedy or its severity changed.
    Changed(Event),
    /// The same, and it is more severe than it has been.
    Worsened(Event),
    /// It is gone for good.
    Cleared(Event),
    /// It was cleared long ago, and is forgotten.
    Forgotten(Event),
}

impl EventChange {
    /// The event as it is now.
    pub fn event(&self) -> &Event {
        match self {
            Self::Opened(event)
            | Self::Changed(event)
            | Self::Worsened(event)
            | Self::Cleared(event)
            | Self::Forgotten(event) => event,
        }
    }

    /// One word for machines.
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Opened(_) => "opened",
            Self::Changed(_) | Self::Worsened(_) => "changed",
            Self::Cleared(_) => "cleared",
            Self::Forgotten(_) => "forgotten",
        }
    }
}

/// Events by number, and which of them last.
#[derive(Clone, Debug, Default)]
pub struct EventLog {
    events: BTreeMap<u64, Event>,
    /// The newest event of each kind and subject.
    newest: BTreeMap<(String, String), u64>,
}

impl EventLog {
    /// A log that goes on from these events.
    pub fn from_events(events: impl IntoIterator<Item = Event>) -> Self {
        let events: BTreeMap<u64, Event> = events.into_iter().map(|event| (event.id, event)).collect();
        let newest = events.values().map(|event| ((event.kind.clone(), event.subject.clone()), event.id)).collect();
        Self { events, newest }
    }

    /// All events, oldest first.
    pub fn events(&self) -> impl DoubleEndedIterator<Item = &Event> {
        self.events.values()
    }

    /// Those that last, most severe first.
    pub fn open(&self) -> Vec<&Event> {
        let mut open: Vec<&Event> = self.events.values().filter(|event| event.cleared_s.is_none()).collect();
        open.sort_by_key(|event| std::cmp::Reverse(event.severity));
        open
    }

    /// Takes everything of some kinds that is seen now, at `now_s`. What is open of these kinds and not seen is cleared, at once or
    /// after its hold-down. Cost: O((seen + events) · log events).
    pub fn see(&mut self, now_s: u64, seen: Vec<Condition>, is_of_kinds: impl Fn(&str) -> bool) -> Vec<EventChange> {
        let mut changes = Vec::new();
        let mut present = BTreeSet::new();
        for condition in seen {
            let (id, change) = self.take(now_s, condition);
            present.insert(id);
            changes.extend(change);
        }
        for event in self.events.values_mut() {
            let is_absent = event.cleared_s.is_none() && !present.contains(&event.id) && is_of_kinds(&event.kind);
            if is_absent && now_s >= event.last_s + hold_s(event.times) {
                event.cleared_s = Some(now_s);
                changes.push(EventChange::Cleared(event.clone()));
            } else if is_absent && event.gone_s.is_none() {
                (event.gone_s, event.severity) = (Some(now_s), Severity::Note);
                changes.push(EventChange::Changed(event.clone()));
            }
        }
        changes.extend(self.forget());
        changes
    }

    /// Takes something that happened and is over.
    pub fn tell(&mut self, now_s: u64, condition: Condition) -> Vec<EventChange> {
        let (id, change) = self.take(now_s, condition);
        let mut changes: Vec<EventChange> = change.into_iter().collect();
        if let Some(event) = self.events.get_mut(&id) {
            event.cleared_s = Some(now_s);
            changes.push(EventChange::Cleared(event.clone()));
        }
        changes.extend(self.forget());
        changes
    }

    /// The event of a condition, and how that changed.
    fn take(&mut self, now_s: u64, condition: Condition) -> (u64, Option<EventChange>) {
        let key = (condition.kind.clone(), condition.subject.clone());
        if let Some(event) = self.newest.get(&key).and_then(|id| self.events.get_mut(id)) {
            let returns = event.cleared_s.is_some_and(|cleared_s| now_s < cleared_s + FLAP_WINDOW_S);
            let returns = returns || event.gone_s.is_some() && event.cleared_s.is_none();
            if event.cleared_s.is_none() || returns {
                // How long it has lasted is part of many a sentence, and no change.
                let is_other = event.consequences != condition.consequences
                    || event.remedy != condition.remedy
                    || event.severity != condition.severity
                    || event.maintenance != condition.maintenance;
                event.last_s = now_s;
                (event.gone_s, event.cleared_s) = (None, None);
                event.times += u32::from(returns);
                let worsens = condition.severity > event.worst;
                event.worst = if returns { condition.severity } else { event.worst.max(condition.severity) };
                let Condition { severity, message, consequences, remedy, maintenance, .. } = condition;
                (event.severity, event.message, event.consequences) = (severity, message, consequences);
                (event.remedy, event.maintenance) = (remedy, maintenance);
                let change = match (returns, is_other) {
                    (true, _) => Some(EventChange::Opened(event.clone())),
                    (false, true) if worsens => Some(EventChange::Worsened(event.clone())),
                    (false, true) => Some(EventChange::Changed(event.clone())),
                    (false, false) => None,
                };
                return (event.id, change);
            }
        }
        let id = self.events.last_key_value().map_or(0, |(id, _)| *id) + 1;
        let Condition { kind, subject, severity, message, consequences, remedy, maintenance } = condition;
        let event = Event {
            id,
            kind,
            subject,
            severity,
            worst: severity,
            message,
            consequences,
            remedy,
            first_s: now_s,
            last_s: now_s,
            gone_s: None,
            cleared_s: None,
            times: 1,
            maintenance,
        };
        self.newest.insert(key, id);
        self.events.insert(id, event.clone());
        (id, Some(EventChange::Opened(event)))
    }

    fn forget(&mut self) -> Vec<EventChange> {
        let cleared: Vec<u64> =
            self.events.values().filter(|event| event.cleared_s.is_some()).map(|event| event.id).collect();
        let too_many = cleared.len().saturating_sub(CLEARED_MAX);
        let newest = self.events.last_key_value().map(|(id, _)| *id);
        let mut forgotten = Vec::new();
        // The newest stays whatever it is: numbers go on from it.
        for id in cleared.into_iter().take(too_many).filter(|id| Some(*id) != newest) {
            if let Some(event) = self.events.remove(&id) {
                let key = (event.kind.clone(), event.subject.clone());
                if self.newest.get(&key) == Some(&id) {
                    self.newest.remove(&key);
                }
                forgotten.push(EventChange::Forgotten(event));
            }
        }
        forgotten
    }
}

/// For how long a condition that came so often must be gone.
fn hold_s(times: u32) -> u64 {
    match times {
        0 | 1 => 0,
        times => HOLD_MIN_S.saturating_mul(1 << (times - 2).min(20)).min(HOLD_MAX_S),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn condition(kind: &str, subject: &str) -> Condition {
        Condition {
            kind: kind.to_owned(),
            subject: subject.to_owned(),
            severity: Severity::Critical,
            message: format!("{subject}: {kind}"),
            consequences: Vec::new(),
            remedy: None,
            maintenance: None,
        }
    }

    fn words(changes: &[EventChange]) -> Vec<(&'static str, u64)> {
        changes.iter().map(|change| (change.word(), change.event().id)).collect()
    }

    #[test]
    fn an_event_lasts_as_long_as_its_condition() {
        let mut log = EventLog::default();
        let down = || vec![condition("cable-down", "a -- b")];
        assert_eq!(words(&log.see(100, down(), |_| true)), [("opened", 1)]);
        assert_eq!(words(&log.see(130, down(), |_| true)), []);
        let older = Condition { message: "for 30 s".to_owned(), ..condition("cable-down", "a -- b") };
        assert_eq!(words(&log.see(150, vec![older], |_| true)), []);
        assert_eq!(log.open()[0].message, "for 30 s");
        let worse = Condition { consequences: vec!["worse".to_owned()], ..condition("cable-down", "a -- b") };
        assert_eq!(words(&log.see(160, vec![worse], |_| true)), [("changed", 1)]);
        assert_eq!(log.open()[0].first_s, 100);
        assert_eq!(words(&log.see(190, Vec::new(), |kind| kind == "other")), []);
        assert_eq!(words(&log.see(190, Vec::new(), |_| true)), [("cleared", 1)]);
        assert!(log.open().is_empty());
        // Long after, it is another event.
        assert_eq!(words(&log.see(190 + FLAP_WINDOW_S, down(), |_| true)), [("opened", 2)]);
    }

    #[test]
    fn what_flaps_is_one_event_with_a_growing_hold_down() {
        let mut log = EventLog::default();
        let down = || vec![condition("cable-down", "a -- b")];
        let mut now_s = 0;
        let mut holds = Vec::new();
        for times in 1..=9 {
            log.see(now_s, down(), |_| true);
            assert_eq!(log.open()[0].times, times);
            let seen_s = now_s;
            while !log.see(now_s, Vec::new(), |_| true).iter().any(|change| change.word() == "cleared") {
                // It is no alarm while it is not seen.
                assert_eq!(log.open()[0].severity, Severity::Note);
                now_s += 1;
            }
            holds.push(now_s - seen_s);
            now_s += 1;
        }
        assert_eq!(holds, [0, 10, 20, 40, 80, 160, 320, 600, 600]);
        assert_eq!(log.events().count(), 1);
    }

    #[test]
    fn a_return_within_the_hold_down_counts_as_one() {
        let mut log = EventLog::default();
        let down = || vec![condition("cable-down", "a -- b")];
        for (now_s, seen, expected) in [
            (0, down(), ("opened", 1)),
            (1, Vec::new(), ("cleared", 1)),
            (2, down(), ("opened", 2)),
            (3, Vec::new(), ("changed", 2)),
            (4, down(), ("opened", 3)),
            (5, Vec::new(), ("changed", 3)),
            (24, Vec::new(), ("cleared", 3)),
        ] {
            let changes = log.see(now_s, seen, |_| true);
            let found: Vec<_> = changes.iter().map(|change| (change.word(), change.event().times)).collect();
            assert_eq!(found, [expected], "at {now_s} s");
        }
    }

    #[test]
    fn only_so_many_cleared_events_are_remembered() {
        let mut log = EventLog::default();
        let mut forgotten = 0;
        for number in 0..CLEARED_MAX as u64 + 50 {
            let changes = log.tell(number, condition("told", &number.to_string()));
            forgotten += changes.iter().filter(|change| change.word() == "forgotten").count();
        }
        assert_eq!((log.events().count(), forgotten), (CLEARED_MAX, 50));
    }

    proptest! {
        /// Applying the changes to a map gives the log's events; what is seen is open; numbers never go back.
        #[test]
        fn changes_are_all_there_is_to_know(
            looks in prop::collection::vec((1_u64..400, prop::collection::btree_set(0_u8..4, 0..4)), 1..60),
            restart in 0_usize..60,
        ) {
            let (mut log, mut kept) = (EventLog::default(), BTreeMap::new());
            let (mut now_s, mut newest) = (0, 0);
            for (at, (pause_s, seen)) in looks.into_iter().enumerate() {
                now_s += pause_s;
                let conditions = seen.iter().map(|number| condition("kind", &number.to_string())).collect();
                for change in log.see(now_s, conditions, |_| true) {
                    let event = change.event().clone();
                    prop_assert!(event.id <= newest + 1, "numbers are consecutive");
                    newest = newest.max(event.id);
                    match change {
                        EventChange::Forgotten(_) => kept.remove(&event.id),
                        _ => kept.insert(event.id, event),
                    };
                }
                for number in seen {
                    prop_assert!(log.open().iter().any(|event| event.subject == number.to_string()));
                }
                // What was kept is enough to go on, but for when an event that lasts was seen last.
                let lasting = |event: &Event| Event { last_s: event.cleared_s.unwrap_or(0), ..event.clone() };
                prop_assert_eq!(
                    log.events().map(lasting).collect::<Vec<_>>(),
                    kept.values().map(lasting).collect::<Vec<_>>()
                );
                if at == restart {
                    log = EventLog::from_events(log.events().cloned().collect::<Vec<_>>());
                }
            }
        }
    }
}
