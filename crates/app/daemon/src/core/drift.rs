//! When a difference from the plan is put back: once. One that returns is somebody's will, and is left alone.

use std::collections::BTreeMap;

/// A switch that differs again within this time of having been put back is left alone.
pub const RETURN_WITHIN_S: u64 = 3600;
/// For how long a difference must last before it is put back: whoever changes several things is not interrupted.
pub const SETTLE_S: u64 = 10;

/// What to do about switches that differ.
#[derive(Clone, Debug, Default)]
pub struct DriftGuard {
    /// Since when each differs.
    since_s: BTreeMap<String, u64>,
    /// When each was put back last.
    put_back_s: BTreeMap<String, u64>,
}

/// What to do about one switch that differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DriftAction {
    /// Wait whether more changes.
    Wait,
    /// Put it back.
    PutBack,
    /// Leave it: it was put back before, and somebody changed it again.
    Leave,
}

impl DriftGuard {
    /// Takes which switches differ now, and says what to do about each.
    pub fn see(&mut self, now_s: u64, differing: &[String]) -> BTreeMap<String, DriftAction> {
        self.since_s.retain(|switch, _| differing.contains(switch));
        let differing = differing.iter().map(|switch| {
            let since_s = *self.since_s.entry(switch.clone()).or_insert(now_s);
            let action = match self.put_back_s.get(switch) {
                Some(put_back_s) if since_s < put_back_s + RETURN_WITHIN_S => DriftAction::Leave,
                _ if now_s < since_s + SETTLE_S => DriftAction::Wait,
                _ => DriftAction::PutBack,
            };
            (switch.clone(), action)
        });
        differing.collect()
    }

    /// Takes that a switch is put back now.
    pub fn put_back(&mut self, now_s: u64, switch: &str) {
        self.put_back_s.insert(switch.to_owned(), now_s);
        self.since_s.remove(switch);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_is_put_back_once() {
        let mut guard = DriftGuard::default();
        let s1 = ["s1".to_owned()];
        let at = |guard: &mut DriftGuard, now_s| guard.see(now_s, &s1)["s1"];
        assert_eq!(at(&mut guard, 100), DriftAction::Wait);
        assert_eq!(at(&mut guard, 109), DriftAction::Wait);
        assert_eq!(at(&mut guard, 110), DriftAction::PutBack);
        guard.put_back(110, "s1");
        assert!(guard.see(120, &[]).is_empty());
        // It returns.
        assert_eq!(at(&mut guard, 500), DriftAction::Leave);
        assert_eq!(at(&mut guard, 500 + 2 * RETURN_WITHIN_S), DriftAction::Leave);
        // Once it was as planned and an hour has gone by, it is put back again.
        assert!(guard.see(8000, &[]).is_empty());
        assert_eq!(at(&mut guard, 8001), DriftAction::Wait);
        assert_eq!(at(&mut guard, 8011), DriftAction::PutBack);
    }
}
