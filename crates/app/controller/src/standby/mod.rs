//! When a cable dies, hosts switch over as the plan stored; when the active port of a bond does, or the bond sends from another one,
//! entries for its addresses turn there.
//!
//! ```text
//!   whoever is free: look, set what differs, look ─▶ Report ─▶ Standby ─▶ PVIDs that are to hold, for every switch
//!                                                          └─▶ Bonds ───▶ entries that are to hold
//! ```
//! Each switch is looked at at its own pace, some of them at a time: one that is silent holds one place. Here are the threads;
//! what follows from what they see is in `tracker`.

mod tracker;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Arc, Mutex, PoisonError,
        mpsc::{self, RecvTimeoutError},
    },
    thread,
    time::{Duration, Instant},
};

use cancel::Cancel;
use drivers::{credentials::Keyring, snmp::Glance};
use fabric::{HostId, LinkId, Plan, SwitchId};
use rollout::{
    bonds::{BondNotice, Bonds, bond_addresses},
    standby::{ActiveVlans, HoldDown, PastFailures, Prepared, Pvid, Standby, StandbyNotice, Unprepared},
};
use switch_model::{
    Entries,
    driver::{Driver as _, Fault},
    mark::Mark,
};

use crate::{
    CancellationToken, ConnectOptions, Error, Fabric,
    held::{Attended, Changing, Disagreement, MOMENT, agree, start},
    rounds::Rounds,
};

use self::tracker::is_same_deployment;

pub use self::tracker::{DesiredState, Report, Tracker, counted_ports};

/// How `standby` behaves.
#[derive(Clone, Copy, Debug)]
pub struct StandbyRequest<'a> {
    /// The plan, which must store answers to failures.
    pub plan: &'a Plan,
    /// How often each switch is looked at.
    pub interval: Duration,
    /// How long a link must be up again before hosts return to the plan's VLANs.
    pub hold: HoldDown,
    /// What is remembered of links from before.
    pub past: &'a BTreeMap<LinkId, PastFailures>,
    /// How long frames may still be under way after their senders have been stopped.
    pub drain: Duration,
    /// Switches that may have news, such as those that sent a trap: they are looked at without waiting for the interval.
    pub hints: Option<&'a Mutex<mpsc::Receiver<SwitchId>>>,
    /// What becomes of entries that are there for a change of bonds alone, once it is asked to stop.
    pub at_end: AtEnd,
}

/// What a standby that ends does with entries that it keeps for a change of bonds alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AtEnd {
    /// It removes them.
    Remove,
    /// It leaves them to the next standby, or to the next deployment.
    Keep,
}

/// Something that happens while standing by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StandbyEvent {
    /// A switch does not answer at the start, and is waited for.
    Waits(SwitchId, Fault),
    /// Standing by for the failure of so many links and switches.
    Ready {
        /// How many.
        prepared: Prepared,
        /// How many failover bonds.
        bonds: usize,
    },
    /// A switch fails at what it is asked.
    Fault(SwitchId, Fault),
    /// It answers again.
    Answers(SwitchId),
    /// A link has failed so often in a row, which is to be remembered for the next standby. Nobody is told.
    Failure(LinkId, u32),
    /// A link or the hosts' switch-over.
    Notice(StandbyNotice),
    /// A failover bond.
    Bond(BondNotice),
}

/// How standing by ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StandbyResult {
    /// The plan gives it nothing to do.
    Unprepared(Unprepared),
    /// It was asked to stop while it waited for switches at the start.
    Interrupted,
    /// The switches do not hold the plan, and why.
    Disagreement(Disagreement),
    /// A switch was set up by another deployment.
    Superseded(SwitchId, Mark),
    /// A switch bears no deployment tag any more.
    Untagged(SwitchId),
    /// The port of a host holds what no switch-over of the plan has: this PVID, if any.
    Foreign(HostId, Pvid),
    /// It was asked to stop, in this state.
    Left(ActiveVlans),
}

/// Stands by for the failure of any link, until `token` asks to stop or the switches are no longer those of the plan.
///
/// # Errors
/// [`Error::Request`], if a switch has no management address.
pub fn stand_by(
    request: &StandbyRequest<'_>,
    (keyring, options): (&Keyring, &ConnectOptions),
    token: &CancellationToken,
    events: &mut (dyn FnMut(StandbyEvent) + '_),
) -> Result<StandbyResult, Error> {
    let plan = request.plan;
    let mut standby = match Standby::new(plan, request.hold, request.drain) {
        Ok(standby) => standby,
        Err(why) => return Ok(StandbyResult::Unprepared(why)),
    };
    standby.remember(request.past);
    let fabric = Fabric::of(plan, keyring, options, Cancel::default())?;
    let mut waits = |switch, fault| events(StandbyEvent::Waits(switch, fault));
    let Some(found) = start(plan, &fabric, token, &mut waits) else { return Ok(StandbyResult::Interrupted) };
    let (mark, mut devices) = match agree(plan, found) {
        Ok(agreed) => agreed,
        Err(why) => return Ok(StandbyResult::Disagreement(why)),
    };
    let changing = Changing::of(&plan.topology);
    devices.iter_mut().for_each(|device| device.entries.retain(|(_, mac), _| changing.is_of_bond(*mac)));
    let held: Vec<Entries> = devices.iter().map(|device| device.entries.clone()).collect();
    let bonds = Bonds::held(plan, &held);
    let (interval, hints, at_end) = (request.interval, request.hints, request.at_end);
    let started = Instant::now();
    let watch = Watch { plan, fabric: &fabric, mark, started, interval, hints, at_end };
    let mut tracker = Tracker::new(plan, mark, standby, bonds);
    Ok(watch.attend(&mut tracker, devices, token, events))
}

/// How long switches have, when a standby ends, to drop the entries that it kept for a change of bonds.
const LEAVING_MAX: Duration = Duration::from_secs(5);

/// Has switches looked at that may have news.
fn follow(hints: &Mutex<mpsc::Receiver<SwitchId>>, rounds: &Rounds<DesiredState>, over: &CancellationToken) {
    let hints = hints.lock().unwrap_or_else(PoisonError::into_inner);
    while !over.is_cancelled() {
        match hints.recv_timeout(MOMENT) {
            Ok(switch) => rounds.hasten(switch.index(), Instant::now()),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
        }
    }
}

struct Watch<'a> {
    plan: &'a Plan,
    fabric: &'a Fabric<'a>,
    mark: Mark,
    started: Instant,
    interval: Duration,
    hints: Option<&'a Mutex<mpsc::Receiver<SwitchId>>>,
    at_end: AtEnd,
}

impl Watch<'_> {
    fn attend(
        &self,
        tracker: &mut Tracker<'_>,
        devices: Vec<Attended>,
        token: &CancellationToken,
        events: &mut (dyn FnMut(StandbyEvent) + '_),
    ) -> StandbyResult {
        thread::scope(|scope| {
            let (reports, inbox) = mpsc::channel();
            let devices: Vec<Mutex<Option<Attended>>> =
                devices.into_iter().map(|device| Mutex::new(Some(device))).collect();
            let rounds = Arc::new(Rounds::new(devices.len(), self.interval, Instant::now()));
            let devices = Arc::new(devices);
            for _ in 0..devices.len().min(self.fabric.parallel().max(1)) {
                let (reports, rounds, devices) = (reports.clone(), Arc::clone(&rounds), Arc::clone(&devices));
                scope.spawn(move || self.mind(&devices, &rounds, &reports));
            }
            drop(reports);
            let over = CancellationToken::default();
            if let Some(hints) = self.hints {
                let (rounds, over) = (Arc::clone(&rounds), over.clone());
                scope.spawn(move || follow(hints, &rounds, &over));
            }
            let led = self.lead(tracker, &rounds, &inbox, token, events);
            over.cancel();
            rounds.end();
            led
        })
    }

    /// Looks at whichever switch is due, again and again, and has it hold what was ordered last.
    fn mind(&self, devices: &[Mutex<Option<Attended>>], rounds: &Rounds<DesiredState>, reports: &mpsc::Sender<Report>) {
        while let Some((at, order)) = rounds.next() {
            let switch = SwitchId::new(at);
            let mut device = devices[at].lock().unwrap_or_else(PoisonError::into_inner);
            let seen = self.tend(switch, &mut device, order.as_ref());
            let seen_at = self.started.elapsed();
            match seen {
                // It may have restarted with other numbers for its ports, or with the entries that it had saved.
                Err(Fault::Refused(_)) => *device = None,
                Err(Fault::Silent) if self.plan.topology.has_standby_ports() => *device = None,
                _ => {}
            }
            drop(device);
            let turn = order.as_ref().map_or(0, |order| order.turn);
            rounds.done(at, order.map_or(0, |order| order.turn), |order| order.turn);
            if reports.send(Report { switch, turn, at: seen_at, seen }).is_err() {
                return;
            }
        }
    }

    fn tend(
        &self,
        switch: SwitchId,
        attended: &mut Option<Attended>,
        order: Option<&DesiredState>,
    ) -> Result<Glance, Fault> {
        let mut own = match attended {
            Some(own) => own,
            None => attended.insert(self.attend_again(switch)?),
        };
        let counted = counted_ports(&self.plan.topology, switch);
        let seen = own.device.glance(&counted)?;
        if own.has_restarted() {
            own = attended.insert(self.attend_again(switch)?);
        }
        let Attended { device, entries, .. } = own;
        let Some(order) = order.filter(|_| seen.mark.is_some_and(|mark| is_same_deployment(mark, self.mark))) else {
            return Ok(seen);
        };
        let edits = order.edits(&seen, entries);
        if edits.is_empty() {
            return Ok(seen);
        }
        if let Err(fault) = device.edit(seen.mark.unwrap_or(self.mark), &edits) {
            // Some may have been carried out: the next look reads what the switch holds.
            *attended = None;
            return Err(fault);
        }
        entries.clone_from(&order.entries);
        device.glance(&counted)
    }

    /// Connects to a switch again, which may have other entries by now.
    fn attend_again(&self, switch: SwitchId) -> Result<Attended, Fault> {
        let mut device = self.fabric.connect_by_snmp(switch)?;
        let of_bonds = bond_addresses(&self.plan.topology);
        if of_bonds.is_empty() {
            return Ok(Attended::new(device, Entries::new()));
        }
        let mut entries = device.read()?.config.entries;
        entries.retain(|(_, mac), _| of_bonds.contains(mac));
        Ok(Attended::new(device, entries))
    }

    /// Tells switches what to hold, by what they report, until somebody ends it.
    fn lead(
        &self,
        tracker: &mut Tracker<'_>,
        rounds: &Rounds<DesiredState>,
        inbox: &mpsc::Receiver<Report>,
        token: &CancellationToken,
        events: &mut (dyn FnMut(StandbyEvent) + '_),
    ) -> StandbyResult {
        let topology = &self.plan.topology;
        let order = |switch: SwitchId, state: DesiredState| rounds.order(switch.index(), state, Instant::now());
        while !token.is_cancelled() {
            let first = match inbox.recv_timeout(MOMENT) {
                Ok(report) => report,
                Err(RecvTimeoutError::Timeout) => continue,
                Err(RecvTimeoutError::Disconnected) => break,
            };
            let reports = std::iter::once(first).chain(inbox.try_iter());
            let mut told = Vec::new();
            let taken = tracker.take(self.started.elapsed(), reports, &mut |event| told.push(event));
            // Switches first: whoever is told may write to a disk.
            if let Ok(true) = taken {
                topology.switch_ids().for_each(|switch| order(switch, tracker.desired(switch)));
            }
            told.into_iter().for_each(&mut *events);
            if let Err(end) = taken {
                return end;
            }
        }
        if let Some(last) = Some(self.at_end).filter(|at_end| *at_end == AtEnd::Remove).and_then(|_| tracker.leave()) {
            let turn = last.first().map_or(0, |state| state.turn);
            topology.switch_ids().zip(last).for_each(|(switch, state)| order(switch, state));
            self.wait_for(turn, inbox);
        }
        StandbyResult::Left(tracker.standby().active())
    }

    /// Waits until every switch has carried out what it was ordered last, or has failed to.
    fn wait_for(&self, turn: u64, inbox: &mpsc::Receiver<Report>) {
        let until = Instant::now() + LEAVING_MAX;
        let mut left: BTreeSet<SwitchId> = self.plan.topology.switch_ids().collect();
        while !left.is_empty() {
            match inbox.recv_timeout(until.saturating_duration_since(Instant::now())) {
                Ok(report) if report.turn == turn => drop(left.remove(&report.switch)),
                Ok(_) => {}
                Err(_) => return,
            }
        }
    }
}
