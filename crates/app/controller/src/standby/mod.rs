//! When a cable dies, hosts switch over as the plan stored; when the active port of a bond does, entries for its addresses turn to
//! another of its ports.
//!
//! ```text
//!   whoever is free: look, set what differs, look ─▶ Report ─▶ Standby ─▶ PVIDs that are to hold, for every switch
//!                                                          └─▶ Bonds ───▶ entries that are to hold
//! ```
//! Each switch is looked at at its own pace, some of them at a time: one that is silent holds one place.

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
    bonds::{BondNotice, Bonds, bond_addresses, bond_entries, port_health},
    standby::{ActiveVlans, LinkHealth, Pvid, Standby, StandbyNotice, Unprepared, link_health},
};
use switch_model::{
    Entries, Slot,
    driver::{Driver as _, Fault},
    edit::Edit,
    mark::Mark,
};

use crate::{
    CancellationToken, ConnectOptions, Error, Fabric,
    held::{Attended, Changing, Disagreement, MOMENT, agree, start},
    rounds::Rounds,
};

/// How `standby` behaves.
#[derive(Clone, Copy, Debug)]
pub struct StandbyRequest<'a> {
    /// The plan, which must store answers to failures.
    pub plan: &'a Plan,
    /// How often each switch is looked at.
    pub interval: Duration,
    /// How long a link must be up again before hosts return to the plan's VLANs.
    pub hold: Duration,
    /// How long frames may still be under way after their senders have been stopped.
    pub drain: Duration,
    /// Switches that may have news, such as those that sent a trap: they are looked at without waiting for the interval.
    pub hints: Option<&'a Mutex<mpsc::Receiver<SwitchId>>>,
}

/// Something that happens while standing by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StandbyEvent {
    /// A switch does not answer at the start, and is waited for.
    Waits(SwitchId, Fault),
    /// Standing by for the failure of so many links; for some of them hosts that move are stopped for a moment.
    Ready {
        /// How many links.
        links: usize,
        /// For how many of them hosts are stopped.
        stopped: usize,
        /// How many failover bonds.
        bonds: usize,
    },
    /// A switch fails at what it is asked.
    Fault(SwitchId, Fault),
    /// It answers again.
    Answers(SwitchId),
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
    let fabric = Fabric::of(plan, keyring, options, Cancel::default())?;
    let mut waits = |switch, fault| events(StandbyEvent::Waits(switch, fault));
    let Some(found) = start(plan, &fabric, token, &mut waits) else { return Ok(StandbyResult::Interrupted) };
    let mut bonds = Bonds::new(plan);
    let (mark, mut devices) = match agree(found) {
        Ok(agreed) => agreed,
        Err(why) => return Ok(StandbyResult::Disagreement(why)),
    };
    let changing = Changing::of(&plan.topology);
    devices.iter_mut().for_each(|device| device.entries.retain(|(_, mac), _| changing.is_of_bond(*mac)));
    let (links, stopped) = standby.prepared();
    events(StandbyEvent::Ready { links, stopped, bonds: bonds.len() });
    let watch = Watch { plan, fabric: &fabric, mark, interval: request.interval, hints: request.hints };
    Ok(watch.attend((&mut standby, &mut bonds), devices, token, events))
}

/// How long switches have, when a standby ends, to drop the entries that it kept for a change of bonds.
const LEAVING_MAX: Duration = Duration::from_secs(5);

/// What a switch is to hold, and when that was said.
#[derive(Clone, Default)]
struct DesiredState {
    turn: u64,
    pvids: Vec<(Slot, Pvid)>,
    /// For the addresses of bonds; there are to be no others.
    entries: Arc<Entries>,
}

/// What became of an order.
struct Report {
    switch: SwitchId,
    turn: u64,
    seen: Result<Glance, Fault>,
}

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
    interval: Duration,
    hints: Option<&'a Mutex<mpsc::Receiver<SwitchId>>>,
}

impl Watch<'_> {
    fn attend(
        &self,
        deciders: (&mut Standby, &mut Bonds),
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
            let led = self.lead(deciders, &rounds, &inbox, token, events);
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
            match seen {
                // It may have restarted with other numbers for its ports, or with the entries that it had saved.
                Err(Fault::Refused(_)) => *device = None,
                Err(Fault::Silent) if self.plan.topology.has_standby_ports() => *device = None,
                _ => {}
            }
            drop(device);
            let turn = order.as_ref().map_or(0, |order| order.turn);
            rounds.done(at, order.map_or(0, |order| order.turn), |order| order.turn);
            if reports.send(Report { switch, turn, seen }).is_err() {
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
        let Attended { device, entries } = match attended {
            Some(attended) => attended,
            None => attended.insert(self.attend_again(switch)?),
        };
        let seen = device.glance()?;
        let Some(order) = order.filter(|_| seen.mark.is_some_and(|mark| self.is_ours(mark))) else { return Ok(seen) };
        let differs = |(slot, pvid): &&(Slot, Pvid)| seen.ports[slot.index()].pvid != *pvid;
        let pvids = order.pvids.iter().filter(differs).map(|(slot, pvid)| Edit::SetPvid(*slot, *pvid));
        let gone = entries.keys().filter(|entry| !order.entries.contains_key(entry));
        let gone = gone.map(|(vlan, mac)| Edit::UnsetEntry(*vlan, *mac));
        let turned = order.entries.iter().filter(|(entry, slot)| entries.get(entry) != Some(slot));
        let turned = turned.map(|((vlan, mac), slot)| Edit::SetEntry(*vlan, *mac, *slot));
        let edits: Vec<Edit> = turned.chain(gone).chain(pvids).collect();
        if edits.is_empty() {
            return Ok(seen);
        }
        if let Err(fault) = device.edit(seen.mark.unwrap_or(self.mark), &edits) {
            // Some may have been carried out: the next look reads what the switch holds.
            *attended = None;
            return Err(fault);
        }
        entries.clone_from(&order.entries);
        device.glance()
    }

    /// Connects to a switch again, which may have other entries by now.
    fn attend_again(&self, switch: SwitchId) -> Result<Attended, Fault> {
        let mut device = self.fabric.connect_by_snmp(switch)?;
        let of_bonds = bond_addresses(&self.plan.topology);
        if of_bonds.is_empty() {
            return Ok(Attended { device, entries: Entries::new() });
        }
        let mut entries = device.read()?.config.entries;
        entries.retain(|(_, mac), _| of_bonds.contains(mac));
        Ok(Attended { device, entries })
    }

    /// Whether a switch still has the deployment tag. Nonces differ where a deployment was resumed.
    fn is_ours(&self, mark: Mark) -> bool {
        (mark.generation, mark.digest) == (self.mark.generation, self.mark.digest)
    }

    fn host_ports(&self, switch: SwitchId) -> impl Iterator<Item = (HostId, Slot)> + '_ {
        let topology = &self.plan.topology;
        let first = topology.switch_ports(switch).start;
        topology.hosts_of(switch).iter().map(move |host| (*host, Slot::new(topology.host(*host).port.index() - first)))
    }

    /// Tells switches what to hold, by what they report, until somebody ends it.
    fn lead(
        &self,
        (standby, bonds): (&mut Standby, &mut Bonds),
        rounds: &Rounds<DesiredState>,
        inbox: &mpsc::Receiver<Report>,
        token: &CancellationToken,
        events: &mut (dyn FnMut(StandbyEvent) + '_),
    ) -> StandbyResult {
        let topology = &self.plan.topology;
        let started = Instant::now();
        let mut seen: Vec<Option<Glance>> = vec![None; topology.switches().len()];
        let mut turns = vec![0; topology.switches().len()];
        let mut faults: BTreeMap<SwitchId, Fault> = BTreeMap::new();
        let mut silent = BTreeSet::new();
        let (mut turn, mut told, mut is_up) = (0, None, false);
        while !token.is_cancelled() {
            let mut reports = match inbox.recv_timeout(MOMENT) {
                Ok(report) => vec![report],
                Err(RecvTimeoutError::Timeout) => continue,
                Err(RecvTimeoutError::Disconnected) => break,
            };
            reports.extend(inbox.try_iter());
            for Report { switch, turn, seen: answer } in reports {
                match answer {
                    Ok(glance) => {
                        match glance.mark {
                            Some(mark) if self.is_ours(mark) => {}
                            Some(mark) => return StandbyResult::Superseded(switch, mark),
                            None => return StandbyResult::Untagged(switch),
                        }
                        if faults.remove(&switch).is_some() {
                            events(StandbyEvent::Answers(switch));
                        }
                        silent.remove(&switch);
                        (seen[switch.index()], turns[switch.index()]) = (Some(glance), turn);
                    }
                    Err(fault) => {
                        if faults.get(&switch) != Some(&fault) {
                            events(StandbyEvent::Fault(switch, fault.clone()));
                        }
                        if fault == Fault::Silent {
                            seen[switch.index()] = None;
                            silent.insert(switch);
                        }
                        faults.insert(switch, fault);
                    }
                }
            }
            let running: Vec<Option<Vec<bool>>> = (seen.iter())
                .map(|glance| Some(glance.as_ref()?.ports.iter().map(|port| port.running).collect()))
                .collect();
            let links = link_health(topology, &running);
            if !is_up {
                // Everybody has answered at the start; what they said of their hosts' ports is to be known of all at once.
                let Some(found) = self.found(&seen) else { continue };
                let down = |(_, health): &(LinkId, &LinkHealth)| **health == LinkHealth::Down;
                let dead = topology.link_ids().zip(&links).filter(down).map(|(link, _)| link).collect();
                if let Err(host) = standby.take_up(&found, &dead) {
                    return StandbyResult::Foreign(host, found[host.index()]);
                }
                is_up = true;
            }
            let now = started.elapsed();
            standby.handle_links(now, &links, &silent);
            let turned = bonds.handle_ports(&port_health(topology, &running, &links));
            let behind: BTreeSet<SwitchId> = (topology.switch_ids())
                .filter(|switch| {
                    turns[switch.index()] != turn
                        || told != Some(standby.active())
                        || self.lags(standby, *switch, &seen)
                })
                .collect();
            standby.handle_held(now, &behind, &silent);
            while let Some(notice) = standby.poll_notice() {
                events(StandbyEvent::Notice(notice));
            }
            while let Some(notice) = bonds.poll_notice() {
                events(StandbyEvent::Bond(notice));
            }
            if told != Some(standby.active()) || turned {
                (told, turn) = (Some(standby.active()), turn + 1);
                self.order(rounds, turn, standby, |switch| bonds.entries(self.plan, switch));
            }
        }
        if is_up && !bonds.is_empty() {
            self.order(rounds, turn + 1, standby, |switch| bond_entries(self.plan, bonds.topology(), switch));
            self.wait_for(turn + 1, inbox);
        }
        StandbyResult::Left(standby.active())
    }

    /// Orders every switch to hold the standby's PVIDs and these entries.
    fn order(
        &self,
        rounds: &Rounds<DesiredState>,
        turn: u64,
        standby: &Standby,
        entries: impl Fn(SwitchId) -> Entries,
    ) {
        for switch in self.plan.topology.switch_ids() {
            let pvids = self.host_ports(switch).map(|(host, slot)| (slot, standby.pvid(host))).collect();
            let order = DesiredState { turn, pvids, entries: Arc::new(entries(switch)) };
            rounds.order(switch.index(), order, Instant::now());
        }
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

    /// `found[host]`: what its port has; none before every switch has been seen.
    fn found(&self, seen: &[Option<Glance>]) -> Option<Vec<Pvid>> {
        let topology = &self.plan.topology;
        let of = |host: HostId| {
            let switch = topology.switch_of(host);
            let slot = topology.host(host).port.index() - topology.switch_ports(switch).start;
            Some(seen[switch.index()].as_ref()?.ports[slot].pvid)
        };
        topology.host_ids().map(of).collect()
    }

    /// Whether a switch holds a state other than the one wanted, or its state is unknown.
    fn lags(&self, standby: &Standby, switch: SwitchId, seen: &[Option<Glance>]) -> bool {
        let Some(glance) = &seen[switch.index()] else { return true };
        self.host_ports(switch).any(|(host, slot)| glance.ports[slot.index()].pvid != standby.pvid(host))
    }
}
