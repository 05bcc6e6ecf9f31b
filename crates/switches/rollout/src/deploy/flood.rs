//! A storm's signature: a law of conservation that broadcasts keep in a fabric without loops, and break in one with a loop.
//!
//! ```text
//!   h ──▶ s1 ──▶ s2 ──▶ s3        1 received from outside, 2 between switches:       2 ≤ (3 switches − 1) · 1
//!   h ──▶ s1 ══▶ s2 ══▶ s3 ═╗     1 received from outside, 148,000 a second between switches
//!          ╚════════════════╝
//! ```
//! Without a loop a broadcast enters each switch at most once, and one of these times from outside. So of the switches that
//! count, the frames received on ports between them are at most (switches − 1) times those received on all their other
//! ports, ports toward switches that do not count among these.
//!
//! Counters are not read at one moment, and switches bring them up to date at a pace of their own: every few milliseconds
//! or seconds. So readings are joined to windows that last until each switch with hosts has shown a change; of other switches
//! only those count that have shown one in the window before. What a reading lags behind is then no longer than its window,
//! and what is counted between switches in one window was received from outside in that window, the one before or the one
//! after. The law is held against these three; broken in two windows running, it is a storm. Frames that switches send themselves
//! (LLDP, BPDUs: multicast, a few a second) are allowed for by [`OWN_FRAMES_MAX`].
//!
//! Where spanning tree takes part, a port that it blocks counts what it receives and passes nothing on. A broadcast then crosses
//! each cable at most once, so the bound is the number of cables instead of (switches − 1).
//!
//! Source: the law is counting; ifHCInBroadcastPkts and ifHCInMulticastPkts, RFC 2863.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use fabric::SwitchId;

use switch_model::{
    Slot,
    observe::Count,
    sight::{End, Sight},
};

/// Frames of switches' own that a port may receive in a window.
pub const OWN_FRAMES_MAX: u64 = 64;
/// How long a window lasts at most: no switch takes longer to bring its counters up to date.
pub const WINDOW_MAX: Duration = Duration::from_secs(10);
/// Most ports that a storm is reported with.
pub const SURGES_MAX: usize = 6;

/// A port that received much.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Surge {
    /// Broadcast and multicast frames received.
    pub frames: u64,
    /// The port.
    pub at: End,
}

/// What floods are judged by.
#[derive(Clone, Debug, Default)]
pub struct Floods {
    /// Ports whose cables lead to switches, and to which.
    between: BTreeMap<End, SwitchId>,
    law: Law,
    /// Switches that have shown a change.
    counting: BTreeSet<SwitchId>,
    /// The last reading, `last[switch]`.
    last: Option<Vec<Option<Sight>>>,
    /// The window that is not over: when it began, what was received, and which switches have shown a change.
    current: Window,
    began: Duration,
    changed: BTreeSet<SwitchId>,
    /// Which did in the window before: what these show now is not older than that.
    prompt: BTreeSet<SwitchId>,
    /// Windows that are over, the newest last: the last four.
    windows: Vec<Window>,
    over: usize,
}

/// What was received in a window.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Window {
    between: u64,
    outside: u64,
    /// By port between switches.
    ports: BTreeMap<End, u64>,
}

/// What a reading says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Weather<T = Surge> {
    /// Nothing floods.
    Calm,
    /// Something may: more readings tell.
    Doubtful,
    /// A storm, and where it shows most, descending.
    Storm(Vec<T>),
}

/// What keeps a broadcast from multiplying.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Law {
    /// Open ports close no loop: a broadcast enters each switch at most once.
    #[default]
    NoLoop,
    /// Spanning tree blocks ports, some of which receive what they do not pass on: a broadcast crosses each cable at most once.
    SpanningTree,
}

impl Floods {
    /// `between` are the ports whose cables lead to other switches, and to which.
    pub fn new(between: BTreeMap<End, SwitchId>) -> Self {
        Self { between, ..Self::default() }
    }

    /// Takes a reading of all switches, `sights[switch]`, whose answers all came between the reading before and `now`.
    pub fn handle_reading(&mut self, now: Duration, sights: &[Option<Sight>]) -> Weather {
        let Some(last) = self.last.replace(sights.to_vec()) else {
            self.began = now;
            return Weather::Calm;
        };
        let counts = |sight: &Option<Sight>| sight.as_ref().is_some_and(|sight| !sight.flooded.is_empty());
        let watched: BTreeSet<SwitchId> = (sights.iter().zip(&last).enumerate())
            .filter(|(_, (now, before))| counts(now) && counts(before))
            .map(|(index, _)| SwitchId::new(index))
            .collect();
        let mut hosting: BTreeSet<SwitchId> = BTreeSet::new();
        for &switch in &watched {
            let [before, after] = [&last[..], sights].map(|all| all[switch.index()].clone().unwrap_or_default());
            for (slot, (before, after)) in before.flooded.iter().zip(&after.flooded).enumerate() {
                let at = (switch, Slot::new(slot));
                let inside = self.between.get(&at).is_some_and(|far| watched.contains(far));
                // A counter that was set back says nothing.
                let Some(frames) = after.since(*before) else { continue };
                if frames > 0 {
                    self.changed.insert(switch);
                    self.counting.insert(switch);
                }
                if inside {
                    if self.prompt.contains(&switch) {
                        self.current.between += frames;
                        *self.current.ports.entry(at).or_default() += frames;
                    }
                } else {
                    self.current.outside += frames;
                    if *after != Count::Absent && sights_running(sights, at) {
                        hosting.insert(switch);
                    }
                }
            }
        }
        let allowed = OWN_FRAMES_MAX * self.between.len() as u64;
        let times = match self.law {
            Law::NoLoop => watched.len().saturating_sub(1) as u64,
            Law::SpanningTree => self.cables(&watched),
        };
        let over = hosting.is_subset(&self.changed) && !self.changed.is_empty();
        let late = now.saturating_sub(self.began) >= WINDOW_MAX;
        if over || late {
            self.windows.push(std::mem::take(&mut self.current));
            self.over += 1;
            let changed = std::mem::take(&mut self.changed);
            self.prompt = if late { watched } else { changed };
            self.began = now;
            if self.windows.len() > 4 {
                self.windows.remove(0);
            }
        }
        // Judged are those with a window on either side; of four the second and the third.
        let breaks = |three: &[Window]| {
            three[1].between > times * three.iter().map(|window| window.outside).sum::<u64>() + allowed
        };
        if self.windows.len() == 4 && self.windows.windows(3).all(breaks) {
            return Weather::Storm(self.surges());
        }
        let newest = &self.windows[self.windows.len().saturating_sub(2)..];
        let (between, outside) = newest
            .iter()
            .chain([&self.current])
            .fold((0, 0), |(between, outside), window| (between + window.between, outside + window.outside));
        if between > times * outside + allowed { Weather::Doubtful } else { Weather::Calm }
    }

    /// Whether there is a reading that the next one is compared with.
    pub fn compares(&self) -> bool {
        self.last.is_some()
    }

    /// Whether a switch has ever shown that it counts.
    pub fn is_counting(&self, switch: SwitchId) -> bool {
        self.counting.contains(&switch)
    }

    /// Cables between these switches.
    fn cables(&self, watched: &BTreeSet<SwitchId>) -> u64 {
        let ends = self.between.iter().filter(|((near, _), far)| watched.contains(near) && watched.contains(far));
        ends.count().div_ceil(2) as u64
    }

    /// Forgets what was received so far: the next reading is the first, and from then on this law is to hold.
    pub fn forget(&mut self, law: Law) {
        (self.last, self.current, self.law) = (None, Window::default(), law);
        self.windows.clear();
        self.changed.clear();
    }

    /// How many windows are over: in each, every switch with hosts has shown that it counts, or had ample time to.
    pub fn windows(&self) -> usize {
        self.over
    }

    fn surges(&self) -> Vec<Surge> {
        let mut frames: BTreeMap<End, u64> = BTreeMap::new();
        for (at, count) in self.windows[1..].iter().flat_map(|window| &window.ports) {
            *frames.entry(*at).or_default() += count;
        }
        let mut surges: Vec<Surge> = frames.into_iter().map(|(at, frames)| Surge { frames, at }).collect();
        surges.sort_unstable_by_key(|surge| (std::cmp::Reverse(surge.frames), surge.at));
        surges.truncate(SURGES_MAX);
        surges
    }
}

fn sights_running(sights: &[Option<Sight>], (switch, slot): End) -> bool {
    let sight = sights[switch.index()].as_ref();
    // One that does not say whether its ports run may have hosts at any.
    sight.is_some_and(|sight| sight.running.get(slot.index()).copied().unwrap_or(true))
}

#[cfg(test)]
mod tests {
    use fabric::rng::Rng;

    use super::*;

    /// A fabric that floods one VLAN over `links`; a host at every switch, behind port 0.
    struct Fabric {
        links: Vec<(End, End)>,
        ports: Vec<usize>,
        /// Frames counted by each port, and what the switch's counters said when it last brought them up to date.
        counted: Vec<Vec<u64>>,
        shown: Vec<Vec<u64>>,
        /// How often each does, in steps.
        pace: Vec<usize>,
        /// Frames on their way: the port that they come in by.
        moving: Vec<End>,
    }

    /// Most frames that move at once: cables carry no more.
    const MOVING_MAX: usize = 400;

    impl Fabric {
        fn new(rng: &mut Rng, switches: usize, extra: usize) -> Self {
            let mut ports = vec![1; switches];
            let mut links = Vec::new();
            let mut join = |ports: &mut Vec<usize>, a: usize, b: usize| {
                let mut port = |at: usize| {
                    ports[at] += 1;
                    (SwitchId::new(at), Slot::new(ports[at] - 1))
                };
                links.push((port(a), port(b)));
            };
            for at in 1..switches {
                join(&mut ports, rng.below(at), at);
            }
            for _ in 0..extra {
                let a = rng.below(switches);
                let b = (a + 1 + rng.below(switches - 1)) % switches;
                join(&mut ports, a, b);
            }
            let counted: Vec<Vec<u64>> = ports.iter().map(|count| vec![0; *count]).collect();
            let pace = (0..switches).map(|_| 1 + rng.below(60)).collect();
            Self { links, shown: counted.clone(), counted, ports, pace, moving: Vec::new() }
        }

        fn step(&mut self, time: usize, rng: &mut Rng, speaks: bool) {
            if speaks {
                for _ in 0..1 + rng.below(3) {
                    self.moving.push((SwitchId::new(rng.below(self.ports.len())), Slot::new(0)));
                }
            }
            for (switch, slot) in std::mem::take(&mut self.moving) {
                self.counted[switch.index()][slot.index()] += 1;
                for (a, b) in &self.links {
                    for (near, far) in [(a, b), (b, a)] {
                        if near.0 == switch && near.1 != slot && self.moving.len() < MOVING_MAX {
                            self.moving.push(*far);
                        }
                    }
                }
            }
            for (at, pace) in self.pace.iter().enumerate() {
                if time % pace == 0 {
                    self.shown[at].clone_from(&self.counted[at]);
                }
            }
        }

        fn sight(&self, at: usize) -> Sight {
            let flooded = self.shown[at].iter().map(|count| Count::Wide(*count)).collect();
            Sight { flooded, running: vec![true; self.ports[at]], ..Sight::default() }
        }

        fn floods(&self) -> Floods {
            Floods::new(self.links.iter().flat_map(|(a, b)| [(*a, b.0), (*b, a.0)]).collect())
        }
    }

    /// Reads a fabric for so many rounds, each switch at a moment of its own; the round in which a storm was seen.
    fn watch(seed: u64, switches: usize, extra: usize, blind: usize, rounds: usize) -> Option<usize> {
        let mut rng = Rng::new(seed);
        let mut fabric = Fabric::new(&mut rng, switches, extra);
        let mut floods = fabric.floods();
        let mut time = 0;
        for round in 0..rounds {
            let mut order: Vec<usize> = (0..switches).collect();
            rng.shuffle(&mut order);
            let mut sights: Vec<Option<Sight>> = vec![None; switches];
            for at in order {
                for _ in 0..rng.below(4) {
                    time += 1;
                    let speaks = round > 0 && rng.below(4) == 0;
                    fabric.step(time, &mut rng, speaks);
                }
                sights[at] = (at >= blind).then(|| fabric.sight(at));
            }
            if let Weather::Storm(surges) = floods.handle_reading(Duration::from_millis(time as u64), &sights) {
                assert!(!surges.is_empty() && surges.iter().all(|surge| surge.frames > 0));
                return Some(round);
            }
        }
        None
    }

    #[test]
    fn no_tree_is_ever_taken_for_a_storm_however_old_its_counters_are() {
        for seed in 0..300 {
            let (switches, blind) = (2 + seed as usize % 9, seed as usize % 2);
            assert_eq!(watch(seed, switches, 0, blind, 60), None, "seed {seed}");
        }
    }

    #[test]
    fn every_loop_is_a_storm_within_bounded_readings() {
        let mut slowest = 0;
        for seed in 0..300 {
            let found = watch(seed, 3 + seed as usize % 8, 1 + seed as usize % 3, 0, 300);
            slowest = slowest.max(found.unwrap_or_else(|| panic!("seed {seed}: no storm is seen")));
        }
        assert!(slowest < 120, "{slowest}");
    }

    #[test]
    fn one_window_alone_is_no_storm() {
        let end = |switch: usize, slot: usize| (SwitchId::new(switch), Slot::new(slot));
        let mut floods = Floods::new([(end(0, 1), SwitchId::new(1)), (end(1, 1), SwitchId::new(0))].into());
        let mut counts = [[0_u64; 2]; 2];
        let mut read = |floods: &mut Floods, add: [[u64; 2]; 2], now: u64| {
            for (sum, add) in counts.iter_mut().flatten().zip(add.into_iter().flatten()) {
                *sum += add;
            }
            let sights: Vec<Option<Sight>> = (counts.iter())
                .map(|counts| {
                    let flooded = counts.iter().map(|count| Count::Wide(*count)).collect();
                    Some(Sight { flooded, running: vec![true; 2], ..Sight::default() })
                })
                .collect();
            floods.handle_reading(Duration::from_millis(now), &sights)
        };
        let (calm, surge) = ([[1, 1], [1, 1]], [[0, 100_000], [0, 100_000]]);
        for now in 0..3 {
            assert_eq!(read(&mut floods, calm, now), Weather::Calm);
        }
        assert_eq!(read(&mut floods, surge, 3), Weather::Doubtful);
        assert!(!matches!(read(&mut floods, calm, 4), Weather::Storm(_)));
        assert!(!matches!(read(&mut floods, calm, 5), Weather::Storm(_)));
        assert!(!matches!(read(&mut floods, surge, 6), Weather::Storm(_)));
        assert!(!matches!(read(&mut floods, surge, 7), Weather::Storm(_)));
        let storm = read(&mut floods, surge, 8);
        assert!(matches!(&storm, Weather::Storm(surges) if surges[0].frames >= 200_000), "{storm:?}");
    }
}
