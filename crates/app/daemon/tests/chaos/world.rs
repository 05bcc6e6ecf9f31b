//! Virtual time, and everything that happens in it without the controller's doing.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use espalierd::manager::Manager;
use fabric::{LinkId, PortId, SwitchId, rng::Rng};
use rollout::addresses::AddressNotice;

use crate::{
    fabric::VirtualFabric,
    flaky::{FlakyRecords, Mood},
    guests::Guests,
    hosts::ProgramEnd,
    managed::Midway,
    people::People,
    traffic::{self, Demand},
};

/// A day.
pub(crate) const DAY_MS: u64 = 24 * 3600 * 1000;
/// For how long hosts send much.
const BUSY_MS: u64 = 5_400_000;
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
    /// The cable of a host, by the port of its switch.
    EdgeCut(PortId),
    EdgeMended(PortId),
    /// A virtual machine appears, moves or vanishes.
    Guest,
    /// Somebody has a failover bond use another of its ports.
    BondMoved,
    /// Hosts begin or cease to send much.
    Busy(bool),
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
    pub(crate) guests: Guests,
    /// What hosts send much of.
    pub(crate) demands: Vec<Demand>,
    /// The state of the fabric in which a standby had nothing to do last, and in which learned addresses were entered last.
    pub(crate) stood_by_at: Option<u64>,
    pub(crate) kept_at: Option<u64>,
    /// The newest proposal for the traffic.
    newest_for_traffic: u64,
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
            guests: Guests::new(&fabric.topology),
            demands: Vec::new(),
            stood_by_at: None,
            kept_at: None,
            newest_for_traffic: 0,
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
        if world.guests.have_hosts() {
            world.plan_guests(first_ms);
        }
        if !world.fabric.bonds.is_empty() {
            for _ in 0..world.rng.below(8) {
                let at_ms = first_ms + world.rng.below((DAY_MS - first_ms) as usize) as u64;
                world.put(at_ms, Happening::BondMoved);
            }
        }
        if world.rng.below(6) == 0 {
            let begins_ms = first_ms + world.rng.below((DAY_MS - first_ms) as usize) as u64;
            world.put(begins_ms, Happening::Busy(true));
            world.put(begins_ms + BUSY_MS, Happening::Busy(false));
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

    pub(crate) fn count_proposals_for_traffic(&mut self, newest: u64) {
        if newest > self.newest_for_traffic {
            self.newest_for_traffic = newest;
            self.count("proposals for the traffic");
        }
    }

    pub(crate) fn count_address(&mut self, notice: &AddressNotice) {
        self.count(match notice {
            AddressNotice::Appears(..) => "learned addresses entered",
            AddressNotice::Moves { .. } => "learned addresses moved",
            AddressNotice::Gone(..) => "learned addresses gone",
            AddressNotice::Full(..) => "learned addresses beyond a cap",
            AddressNotice::Duplicate(..) => "learned addresses that moved too often",
            AddressNotice::Twice(..) => "learned addresses heard twice",
            AddressNotice::Planned(..) => "addresses of the plan heard elsewhere",
        });
    }

    fn put(&mut self, at_ms: u64, what: Happening) {
        self.scripted += 1;
        self.script.insert((at_ms, self.scripted), what);
    }

    /// Has virtual machines come, move and go at any time, now and then many of them within a minute.
    fn plan_guests(&mut self, first_ms: u64) {
        for _ in 0..3 + self.rng.below(8) {
            let mut at_ms = first_ms + self.rng.below((DAY_MS - first_ms) as usize) as u64;
            let turns = if self.rng.below(4) == 0 { 6 } else { 1 };
            for _ in 0..turns {
                self.put(at_ms, Happening::Guest);
                at_ms += self.rng.below(20_000) as u64;
            }
        }
    }

    /// Has trouble begin at a moment, and end at a later one.
    fn plan_trouble(&mut self, at_ms: u64) {
        let link = LinkId::new(self.rng.below(self.fabric.topology.links().len()));
        let switch = SwitchId::new(self.rng.below(self.fabric.switches.len()));
        // Some last for seconds, some for hours.
        let lasts_ms = [2_000, 20_000, 200_000, 7_200_000][self.rng.below(4)] + self.rng.below(5_000) as u64;
        let end_ms = at_ms + lasts_ms;
        match self.rng.below(19) {
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
            16..=18 => {
                let edges: Vec<PortId> = self.fabric.topology.host_cables().map(|(port, ..)| port).collect();
                let port = edges[self.rng.below(edges.len())];
                self.put(at_ms, Happening::EdgeCut(port));
                self.put(end_ms, Happening::EdgeMended(port));
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

    /// After how many of the hosts the program that hands tables out ends before its time, and how, if it does.
    pub(crate) fn program_end(&mut self, hosts: usize) -> Option<(usize, ProgramEnd)> {
        if self.is_healed || hosts == 0 || self.rng.below(2) > 0 {
            return None;
        }
        let how = [ProgramEnd::Fails, ProgramEnd::Killed][self.rng.below(2)];
        Some((self.rng.below(hosts), how))
    }

    /// Lets time pass while the daemon runs.
    ///
    /// # Errors
    /// [`Died`], if the daemon is killed, or has ended as it was asked to.
    pub(crate) fn pass(&mut self, manager: &Manager, until_ms: u64) -> Result<(), Died> {
        while self.pass_until_something(manager, until_ms)? {}
        Ok(())
    }

    /// Lets time pass while the daemon runs, until something happens; whether it does.
    ///
    /// # Errors
    /// As [`Self::pass`].
    pub(crate) fn pass_until_something(&mut self, manager: &Manager, until_ms: u64) -> Result<bool, Died> {
        let Some(happening) = self.due(until_ms) else {
            self.set_time(until_ms);
            return Ok(false);
        };
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
        Ok(true)
    }

    /// The daemon has ended as it was asked to.
    pub(crate) fn ended(&mut self) -> Died {
        Died { until_ms: self.now_ms() + self.stopped_for_ms.take().unwrap_or(1_000) }
    }

    /// Lets time pass while there is no daemon.
    pub(crate) fn pass_without_daemon(&mut self, until_ms: u64) {
        self.stopped_for_ms = None;
        self.fabric.kept.clear();
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
        fabric.kept.clear();
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
            Happening::EdgeCut(port) => {
                fabric.set_edge_cut(port, true);
                let lag = fabric.topology.logical_port(port);
                if lag != port && fabric.carries(lag) {
                    *self.counts.entry("LAGs with a part of their cables").or_default() += 1;
                }
                "cables of hosts cut"
            }
            Happening::EdgeMended(port) => {
                fabric.set_edge_cut(port, false);
                "cables of hosts mended"
            }
            Happening::Guest => {
                let (what, mac, port) = self.guests.turn(fabric, &mut self.rng);
                self.say(|| format!("{mac}: {what}, {:?}", port.map(|port| self.fabric.topology.port_label(port))));
                what
            }
            Happening::BondMoved => {
                if !fabric.move_bond(&mut self.rng) {
                    return;
                }
                "bonds moved by hand"
            }
            Happening::Busy(is_busy) => {
                self.demands = if is_busy { traffic::busy(&fabric.topology, &mut self.rng) } else { Vec::new() };
                "changes of traffic"
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
        let edges: Vec<PortId> = self.fabric.topology.host_cables().map(|(port, ..)| port).collect();
        edges.into_iter().for_each(|port| self.fabric.set_edge_cut(port, false));
        for switch in self.fabric.topology.switch_ids().collect::<Vec<_>>() {
            self.fabric.set_reachable(switch, true);
            self.fabric.turn_on(switch);
        }
        self.disturbed_ms = self.now_ms();
    }
}
