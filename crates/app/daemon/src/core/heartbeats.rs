//! Heartbeats of hosts: which of their paths fail, and what they send to whom.
//!
//! ```text
//!   beat ─▶ fresh ─ nothing for MISSED intervals ─▶ ceased ─ nothing for FORGOTTEN_S ─▶ forgotten
//! ```
//! Pure: the time is an argument.

use std::collections::BTreeMap;

use fabric::{Mac, VlanId, VlanSet};

/// Intervals without a heartbeat after which what a host said does not count any more.
pub const MISSED: u64 = 3;
/// Seconds without a heartbeat after which a host is forgotten.
pub const FORGOTTEN_S: u64 = 86_400;

/// How frames get lost on a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Loss {
    /// Some are lost.
    Some,
    /// All are lost.
    All,
}

/// What tests a host's paths.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Source {
    /// The tagger's probes.
    #[default]
    Tagger,
    /// Connections of RI2N.
    Ri2n,
}

/// What a host says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Beat {
    /// The address of its port.
    pub host: Mac,
    /// What tests its paths.
    pub source: Source,
    /// Seconds until the next heartbeat.
    pub every_s: u64,
    /// The VLANs whose paths it tests.
    pub vlans: VlanSet,
    /// The paths that fail: the VLAN, and a host on the switch that the path leads to.
    pub failing: BTreeMap<(VlanId, Mac), Loss>,
    /// Further paths that it tests, in the plan's VLANs: toward whom, and how they fail, if they do.
    pub tested: BTreeMap<Mac, Option<Loss>>,
    /// Bytes that it has sent by destination, counted from a moment of its own.
    pub sent: BTreeMap<Mac, u64>,
}

/// What hosts said last.
#[derive(Clone, Debug, Default)]
pub struct Heartbeats {
    hosts: BTreeMap<(Mac, Source), Heard>,
}

#[derive(Clone, Debug)]
struct Heard {
    at_s: u64,
    beat: Beat,
    /// Bits by destination since they were taken last.
    bits: BTreeMap<Mac, f64>,
    /// Seconds in which they were sent.
    seconds: f64,
}

/// What a host sent over some time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SentBits {
    /// Seconds in which its counters were known.
    pub seconds: f64,
    /// Bits by destination.
    pub bits: BTreeMap<Mac, f64>,
}

impl Heartbeats {
    /// Takes a heartbeat.
    pub fn take(&mut self, now_s: u64, beat: Beat) {
        let (mut bits, mut seconds) = (BTreeMap::new(), 0.0);
        let key = (beat.host, beat.source);
        if let Some(before) = self.hosts.remove(&key) {
            (bits, seconds) = (before.bits, before.seconds);
            seconds += now_s.saturating_sub(before.at_s) as f64;
            for (to, bytes) in &beat.sent {
                // Counters that went back have begun anew.
                let base = before.beat.sent.get(to).copied().filter(|base| base <= bytes).unwrap_or(0);
                *bits.entry(*to).or_insert(0.0) += 8.0 * (bytes - base) as f64;
            }
        }
        self.hosts.insert(key, Heard { at_s: now_s, beat, bits, seconds });
    }

    /// Hosts' last heartbeats, as far as they count.
    pub fn fresh(&self, now_s: u64) -> impl Iterator<Item = &Beat> {
        self.hosts.values().filter(move |heard| heard.is_fresh(now_s)).map(|heard| &heard.beat)
    }

    /// Hosts whose heartbeats of one source have ceased, and when they came last.
    pub fn ceased(&self, now_s: u64) -> impl Iterator<Item = (Mac, Source, u64)> {
        let ceased = self.hosts.iter().filter(move |(_, heard)| !heard.is_fresh(now_s));
        ceased.map(|((host, source), heard)| (*host, *source, heard.at_s))
    }

    /// Forgets hosts that said nothing for a day, and those that are not known any more.
    pub fn forget(&mut self, now_s: u64, is_known: impl Fn(Mac) -> bool) {
        self.hosts.retain(|(host, _), heard| now_s < heard.at_s + FORGOTTEN_S && is_known(*host));
    }

    /// What hosts sent since this was asked last.
    pub fn take_sent(&mut self) -> BTreeMap<Mac, SentBits> {
        let taken = |((host, _), heard): (&(Mac, Source), &mut Heard)| {
            let bits = std::mem::take(&mut heard.bits);
            (*host, SentBits { seconds: std::mem::take(&mut heard.seconds), bits })
        };
        // Only taggers count what is sent.
        self.hosts.iter_mut().filter(|((_, source), _)| *source == Source::Tagger).map(taken).collect()
    }
}

impl Heard {
    fn is_fresh(&self, now_s: u64) -> bool {
        now_s <= self.at_s + MISSED * self.beat.every_s
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn beat(host: u32, sent: &[(u32, u64)]) -> Beat {
        Beat {
            host: Mac::local(host),
            source: Source::Tagger,
            every_s: 10,
            vlans: VlanSet::new(),
            failing: BTreeMap::new(),
            tested: BTreeMap::new(),
            sent: sent.iter().map(|(to, bytes)| (Mac::local(*to), *bytes)).collect(),
        }
    }

    #[test]
    fn a_host_that_misses_three_heartbeats_has_ceased_and_is_forgotten_after_a_day() {
        let mut heartbeats = Heartbeats::default();
        heartbeats.take(100, beat(1, &[]));
        for (now_s, fresh, ceased) in [(100, 1, 0), (130, 1, 0), (131, 0, 1), (86_499, 0, 1), (86_500, 0, 0)] {
            heartbeats.forget(now_s, |_| true);
            assert_eq!((heartbeats.fresh(now_s).count(), heartbeats.ceased(now_s).count()), (fresh, ceased), "{now_s}");
        }
        heartbeats.take(100, beat(1, &[]));
        heartbeats.forget(101, |host| host != Mac::local(1));
        assert_eq!(heartbeats.fresh(101).count(), 0);
    }

    #[test]
    fn heartbeats_of_two_sources_stand_beside_each_other() {
        let mut heartbeats = Heartbeats::default();
        heartbeats.take(100, beat(1, &[(2, 1000)]));
        heartbeats.take(125, Beat { source: Source::Ri2n, ..beat(1, &[]) });
        assert_eq!(heartbeats.fresh(126).count(), 2);
        assert_eq!(heartbeats.ceased(140).collect::<Vec<_>>(), [(Mac::local(1), Source::Tagger, 100)]);
        heartbeats.take(150, beat(1, &[(2, 2000)]));
        assert_eq!(heartbeats.take_sent()[&Mac::local(1)].bits, BTreeMap::from([(Mac::local(2), 8000.0)]));
    }

    #[test]
    fn counters_become_bits_from_the_second_heartbeat_on_and_may_begin_anew() {
        let mut heartbeats = Heartbeats::default();
        let sent = |heartbeats: &mut Heartbeats| heartbeats.take_sent().remove(&Mac::local(1)).expect("it is known");
        heartbeats.take(100, beat(1, &[(2, 1000)]));
        assert_eq!(sent(&mut heartbeats), SentBits::default());
        heartbeats.take(110, beat(1, &[(2, 1500), (3, 10)]));
        heartbeats.take(120, beat(1, &[(2, 100), (3, 10)]));
        let found = sent(&mut heartbeats);
        assert_eq!(found.seconds, 20.0);
        assert_eq!(found.bits, BTreeMap::from([(Mac::local(2), 8.0 * 600.0), (Mac::local(3), 80.0)]));
        assert_eq!(sent(&mut heartbeats), SentBits::default());
    }
}
