//! Virtual time, and everything that happens in it without the controller's doing.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use espalierd::manager::Manager;
use fabric::{LinkId, SwitchId, rng::Rng};

use crate::{
    fabric::{Midway, VirtualFabric},
    flaky::{FlakyRecords, Mood},
    people::People,
};

/// A day.
pub(crate) const DAY_MS: u64 = 24 * 3600 * 1000;
/// When virtual time begins, in seconds since 1970-01-01.
const EPOCH_S: u64 = 1_800_000_000;

/// Something that happens.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Happening {
    Cut(LinkId),
    Mended(LinkId),
    Off(SwitchId),
    On(SwitchId),
    Unreachable(SwitchId),
    Reachable(SwitchId),
    /// Somebody changes a switch by hand.
    Interference(SwitchId),
    Store(Mood),
    /// The machine's clock is set, by so many seconds.
    Clock(i64),
    /// The daemon is killed, for so long.
    Killed(u64),
    /// It is asked to end, for so long.
    Stopped(u64),
    /// A person does something.
    Person,
}

/// The daemon is no more, until then.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Died {
    pub(crate) until_ms: u64,
}

/// Everything but the controller.
pub(crate) struct World {
    pub(crate) fabric: VirtualFabric,
    pub(crate) records: FlakyRecords,
    pub(crate) rng: Rng,
    pub(crate) people: People,
    script: BTreeMap<(u64, u64), Happening>,
    scripted: u64,
    wall_s: Arc<AtomicU64>,
    clock_skew_s: i64,
    /// When something happened last.
    pub(crate) disturbed_ms: u64,
    /// For how long the daemon will be gone that was asked to end.
    stopped_for_ms: Option<u64>,
    pub(crate) counts: BTreeMap<&'static str, u64>,
    verbose: bool,
    /// The day is over, and nothing bad happens any more.
    is_healed: bool,
}

impl World {
    pub(crate) fn new(fabric: VirtualFabric, people: People, rng: Rng, verbose: bool) -> Self {
        let mut world = Self {
            fabric,
            records: FlakyRecords::default(),
            rng,
            people,
            script: BTreeMap::new(),
            scripted: 0,
            wall_s: Arc::new(AtomicU64::new(EPOCH_S)),
            clock_skew_s: 0,
            disturbed_ms: 0,
            stopped_for_ms: None,
            counts: BTreeMap::new(),
            verbose,
            is_healed: false,
        };
        // The first plan is on the switches before anything else happens.
        let first_ms = 600_000;
        for _ in 0..world.rng.below(40) + 10 {
            let at_ms = first_ms + world.rng.below((DAY_MS - first_ms) as usize) as u64;
            world.plan_trouble(at_ms);
        }
        for _ in 0..world.rng.below(25) {
            let at_ms = first_ms + world.rng.below((DAY_MS - first_ms) as usize) as u64;
            world.put(at_ms, Happening::Person);
        }
        world
    }

    /// The machine's clock, for the daemon.
    pub(crate) fn clock(&self) -> Box<dyn Fn() -> u64 + Send + Sync> {
        let wall_s = Arc::clone(&self.wall_s);
        Box::new(move || wall_s.load(Ordering::SeqCst))
    }

    pub(crate) fn now_ms(&self) -> u64 {
        self.fabric.now_ms
    }

    pub(crate) fn say(&self, what: impl FnOnce() -> String) {
        if self.verbose {
            let s = self.now_ms() / 1000;
            eprintln!("{:02}:{:02}:{:02}.{:03} {}", s / 3600, s / 60 % 60, s % 60, self.now_ms() % 1000, what());
        }
    }

    pub(crate) fn count(&mut self, what: &'static str) {
        *self.counts.entry(what).or_default() += 1;
    }

    fn put(&mut self, at_ms: u64, what: Happening) {
        self.scripted += 1;
        self.script.insert((at_ms, self.scripted), what);
    }

    /// Has trouble begin at a moment, and end at a later one.
    fn plan_trouble(&mut self, at_ms: u64) {
        let link = LinkId::new(self.rng.below(self.fabric.topology.links().len()));
        let switch = SwitchId::new(self.rng.below(self.fabric.switches.len()));
        // Some last for seconds, some for hours.
        let lasts_ms = [2_000, 20_000, 200_000, 7_200_000][self.rng.below(4)] + self.rng.below(5_000) as u64;
        let end_ms = at_ms + lasts_ms;
        match self.rng.below(16) {
            0..=3 => {
                self.put(at_ms, Happening::Cut(link));
                self.put(end_ms, Happening::Mended(link));
            }
            4..=5 => {
                self.put(at_ms, Happening::Off(switch));
                self.put(end_ms, Happening::On(switch));
            }
            6..=7 => {
                self.put(at_ms, Happening::Unreachable(switch));
                self.put(end_ms, Happening::Reachable(switch));
            }
            8..=9 => self.put(at_ms, Happening::Interference(switch)),
            10..=11 => {
                let mood = [Mood::Full, Mood::Unreachable, Mood::Silent][self.rng.below(3)];
                self.put(at_ms, Happening::Store(mood));
                self.put(end_ms.min(at_ms + 300_000), Happening::Store(Mood::Works));
            }
            12 => {
                let by_s = [-7200, -30, 30, 7200][self.rng.below(4)];
                self.put(at_ms, Happening::Clock(by_s));
            }
            13..=14 => self.put(at_ms, Happening::Killed(lasts_ms.min(60_000))),
            _ => self.put(at_ms, Happening::Stopped(lasts_ms.min(60_000))),
        }
    }

    /// Has trouble begin now, once in so many times.
    pub(crate) fn perhaps_trouble(&mut self, one_in: usize) {
        if !self.is_healed && self.rng.below(one_in) == 0 {
            self.plan_trouble(self.now_ms());
        }
    }

    /// What is to happen in the middle of the next write, if anything.
    pub(crate) fn midway(&mut self) -> Option<(usize, Midway)> {
        if self.is_healed || self.rng.below(150) > 0 {
            return None;
        }
        let how = [Midway::Restarts, Midway::Refuses, Midway::WriterDies, Midway::AnswerLost][self.rng.below(4)];
        Some((self.rng.below(40), how))
    }

    /// Lets time pass while the daemon runs.
    ///
    /// # Errors
    /// [`Died`], if the daemon is killed, or has ended as it was asked to.
    pub(crate) fn pass(&mut self, manager: &Manager, until_ms: u64) -> Result<(), Died> {
        while let Some(happening) = self.due(until_ms) {
            self.say(|| format!("{happening:?}"));
            match happening {
                Happening::Killed(for_ms) => return Err(Died { until_ms: self.now_ms() + for_ms }),
                Happening::Stopped(for_ms) => {
                    manager.stop();
                    self.stopped_for_ms = Some(for_ms);
                }
                Happening::Person => {
                    let told = self.people.act(manager, &mut self.rng);
                    self.say(|| told);
                }
                other => self.happen(other),
            }
        }
        self.set_time(until_ms);
        Ok(())
    }

    /// The daemon has ended as it was asked to.
    pub(crate) fn ended(&mut self) -> Died {
        Died { until_ms: self.now_ms() + self.stopped_for_ms.take().unwrap_or(1_000) }
    }

    /// Lets time pass while there is no daemon.
    pub(crate) fn pass_without_daemon(&mut self, until_ms: u64) {
        self.stopped_for_ms = None;
        while let Some(happening) = self.due(until_ms) {
            self.say(|| format!("{happening:?}, no daemon"));
            self.happen(happening);
        }
        self.set_time(until_ms);
    }

    fn due(&mut self, until_ms: u64) -> Option<Happening> {
        let entry = self.script.first_entry().filter(|entry| entry.key().0 <= until_ms)?;
        let ((at_ms, _), happening) = entry.remove_entry();
        self.set_time(at_ms.max(self.now_ms()));
        self.disturbed_ms = self.now_ms();
        Some(happening)
    }

    fn set_time(&mut self, now_ms: u64) {
        self.fabric.now_ms = self.fabric.now_ms.max(now_ms);
        let wall_s = EPOCH_S.saturating_add(self.now_ms() / 1000).saturating_add_signed(self.clock_skew_s);
        self.wall_s.store(wall_s, Ordering::SeqCst);
    }

    fn happen(&mut self, happening: Happening) {
        let fabric = &mut self.fabric;
        let what = match happening {
            Happening::Cut(link) => {
                fabric.set_cut(link, true);
                "cables cut"
            }
            Happening::Mended(link) => {
                fabric.set_cut(link, false);
                "cables mended"
            }
            Happening::Off(switch) => {
                fabric.turn_off(switch);
                "switches off"
            }
            Happening::On(switch) => {
                fabric.turn_on(switch);
                crate::loops::none(fabric, "after a switch was turned on");
                "switches on"
            }
            Happening::Unreachable(switch) => {
                fabric.set_reachable(switch, false);
                "switches unreachable"
            }
            Happening::Reachable(switch) => {
                fabric.set_reachable(switch, true);
                "switches reachable"
            }
            Happening::Interference(switch) => {
                fabric.interfere(switch, &mut self.rng);
                "changes by hand"
            }
            Happening::Store(mood) => {
                self.records.set(mood);
                "store faults and ends"
            }
            Happening::Clock(by_s) => {
                self.clock_skew_s += by_s;
                "clock jumps"
            }
            // Nobody is there to be killed or asked.
            Happening::Killed(_) | Happening::Stopped(_) | Happening::Person => return,
        };
        self.count(what);
    }

    /// Ends all trouble, for good.
    pub(crate) fn heal(&mut self) {
        self.is_healed = true;
        self.script.clear();
        self.records.set(Mood::Works);
        for link in self.fabric.topology.link_ids().collect::<Vec<_>>() {
            self.fabric.set_cut(link, false);
        }
        for switch in self.fabric.topology.switch_ids().collect::<Vec<_>>() {
            self.fabric.set_reachable(switch, true);
            self.fabric.turn_on(switch);
        }
        self.disturbed_ms = self.now_ms();
    }
}
