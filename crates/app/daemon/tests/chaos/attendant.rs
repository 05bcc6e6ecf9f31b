//! Has hosts switch over and entries of bonds turn in virtual time: what `controller::stand_by` does with threads, done step by step.

use std::time::Duration;

use controller::{DesiredState, Report, StandbyEvent, Tracker, agreement};
use drivers::snmp::Glance;
use espalierd::{manager::Manager, work::DRAIN};
use fabric::{Plan, SwitchId};
use rollout::{
    bonds::{BondNotice, Bonds, bond_addresses},
    standby::Standby,
};
use switch_model::{Entries, driver::Fault, edit::Edit};

use crate::{daemon::AGAIN_MS, entries, world::World};

/// After so much time and so many looks entries lead to the port from which a bond sends.
const FOLLOWED_MS: u64 = 30_000;
const FOLLOWED_LOOKS: usize = 6;

/// Has hosts switch over.
pub(crate) struct Attendant<'a> {
    plan: &'a Plan,
    standing: Option<Standing<'a>>,
    /// When to begin again.
    again_ms: u64,
    /// The state of the fabric in which it could not begin.
    failed_at: Option<u64>,
}

/// What is known while switches hold the plan.
struct Standing<'a> {
    tracker: Tracker<'a>,
    /// `held[switch]`: entries of bonds; none of a switch that is to be read again.
    held: Vec<Option<Entries>>,
    /// `booted_ms[switch]`: when it had started as its entries were read.
    booted_ms: Vec<u64>,
    /// `desired[switch]`.
    desired: Vec<DesiredState>,
    started_ms: u64,
    /// Since when all switches answer and no bond has done what only its frames tell, and how often switches have been looked at since.
    known_ms: u64,
    looks: usize,
    /// Whether a switch failed at the last look.
    failed: bool,
}

impl<'a> Attendant<'a> {
    pub(crate) fn new(plan: &'a Plan) -> Self {
        Self { plan, standing: None, again_ms: 0, failed_at: None }
    }

    /// Whether there is more to see of bonds, however little happens.
    pub(crate) fn watches(&self, world: &World) -> bool {
        self.standing.as_ref().is_some_and(|standing| !standing.failed && !standing.has_followed(world))
    }

    /// Looks at every switch, in any order, and has it hold what was wanted last.
    pub(crate) fn step(&mut self, world: &mut World, manager: &Manager) {
        if self.standing.is_none() {
            if world.now_ms() < self.again_ms || self.failed_at == Some(world.fabric.version) {
                return;
            }
            self.again_ms = world.now_ms() + AGAIN_MS;
            self.standing = begin(world, manager, self.plan);
            self.failed_at = Some(world.fabric.version).filter(|_| self.standing.is_none());
        }
        let Some(standing) = &mut self.standing else { return };
        if !standing.step(world, manager, self.plan) {
            self.standing = None;
            self.again_ms = world.now_ms() + AGAIN_MS;
        }
    }
}

fn begin<'a>(world: &mut World, manager: &Manager, plan: &'a Plan) -> Option<Standing<'a>> {
    let topology = &plan.topology;
    let readings: Result<Vec<_>, Fault> =
        topology.switch_ids().map(|switch| world.fabric.read(topology, switch)).collect();
    let mut standby = Standby::new(plan, manager.config().watch.hold_down(), DRAIN).ok()?;
    standby.remember(&manager.past_failures(Some(plan)).ok()?);
    match agreement(plan, readings.ok()?) {
        Ok((mark, entries)) => {
            let tracker = Tracker::new(plan, mark, standby, Bonds::held(plan, &entries));
            let held = entries.into_iter().map(|entries| Some(bonds_of(plan, entries))).collect();
            let desired = vec![DesiredState::default(); topology.switches().len()];
            let booted_ms = topology.switch_ids().map(|switch| world.fabric.booted_ms(topology, switch)).collect();
            let now_ms = world.now_ms();
            let (started_ms, known_ms) = (now_ms, now_ms);
            Some(Standing { tracker, held, booted_ms, desired, started_ms, known_ms, looks: 0, failed: false })
        }
        Err(why) => {
            world.say(|| format!("standby cannot begin: {why:?}"));
            None
        }
    }
}

fn bonds_of(plan: &Plan, mut entries: Entries) -> Entries {
    let of_bonds = bond_addresses(&plan.topology);
    entries.retain(|(_, mac), _| of_bonds.contains(mac));
    entries
}

impl Standing<'_> {
    /// Whether it goes on.
    fn step(&mut self, world: &mut World, manager: &Manager, plan: &Plan) -> bool {
        let mut order: Vec<SwitchId> = plan.topology.switch_ids().collect();
        world.rng.shuffle(&mut order);
        let (mut wrote, mut changed, mut failed) = (false, false, false);
        for switch in order {
            let desired = self.desired[switch.index()].clone();
            let edits = |glance: &Glance, held: &Entries| match desired.turn {
                0 => Vec::new(),
                _ => desired.edits(glance, held),
            };
            let tended = self.tend(world, plan, switch, &edits);
            let seen = match tended {
                Ok((glance, edits)) => {
                    wrote |= !edits.is_empty();
                    count(world, &edits);
                    if let (Some(held), true) = (&mut self.held[switch.index()], desired.turn > 0) {
                        held.clone_from(&desired.entries);
                    }
                    Ok(glance)
                }
                Err(fault) => {
                    (self.held[switch.index()], failed) = (None, true);
                    Err(fault)
                }
            };
            let now = Duration::from_millis(world.now_ms() - self.started_ms);
            let report = Report { switch, turn: desired.turn, at: now, seen };
            let mut told = Vec::new();
            let taken = self.tracker.take(now, [report], &mut |event| told.push(event));
            told.iter().for_each(|event| tell(world, manager, plan, event));
            match taken {
                Ok(false) => {}
                Ok(true) => {
                    changed = true;
                    self.desired = plan.topology.switch_ids().map(|switch| self.tracker.desired(switch)).collect();
                }
                Err(end) => {
                    world.say(|| format!("standby ends: {end:?}"));
                    return false;
                }
            }
        }
        self.note_look(world, failed);
        if !wrote && !changed && !failed && self.has_followed(world) {
            check(world);
            world.stood_by_at = Some(world.fabric.version);
        }
        true
    }

    fn note_look(&mut self, world: &World, failed: bool) {
        let unforeseen_ms = world.fabric.bonds.unforeseen_ms;
        if failed {
            (self.known_ms, self.looks) = (world.now_ms(), 0);
        } else if unforeseen_ms > self.known_ms {
            (self.known_ms, self.looks) = (unforeseen_ms, 1);
        } else {
            self.looks += 1;
        }
        self.failed = failed;
    }

    /// Whether entries are to lead to the ports that bonds use.
    fn has_followed(&self, world: &World) -> bool {
        let since_ms = world.now_ms() - self.known_ms.max(world.fabric.bonds.unforeseen_ms);
        world.fabric.bonds.is_empty() || (since_ms >= FOLLOWED_MS && self.looks >= FOLLOWED_LOOKS)
    }

    /// Brings a switch to what it is to hold; what it shows then, and what was written.
    fn tend(
        &mut self,
        world: &mut World,
        plan: &Plan,
        switch: SwitchId,
        edits: &dyn Fn(&Glance, &Entries) -> Vec<Edit>,
    ) -> Result<(Glance, Vec<Edit>), Fault> {
        let topology = &plan.topology;
        let glance = world.fabric.glance(topology, switch)?;
        let booted_ms = world.fabric.booted_ms(topology, switch);
        let is_known = std::mem::replace(&mut self.booted_ms[switch.index()], booted_ms) == booted_ms;
        let held = match &mut self.held[switch.index()] {
            Some(held) if is_known => held,
            held => held.insert(bonds_of(plan, world.fabric.read(topology, switch)?.config.entries)),
        };
        let edits = edits(&glance, held);
        if edits.is_empty() {
            return Ok((glance, edits));
        }
        world.fabric.edit(topology, switch, &edits)?;
        Ok((world.fabric.glance(topology, switch)?, edits))
    }
}

fn count(world: &mut World, edits: &[Edit]) {
    let is_pvid = |edit: &Edit| matches!(edit, Edit::SetPvid(..));
    if edits.iter().any(is_pvid) {
        world.count("PVIDs written by standby");
    }
    if !edits.iter().all(is_pvid) {
        world.count("entries of bonds written by standby");
    }
}

fn tell(world: &mut World, manager: &Manager, plan: &Plan, event: &StandbyEvent) {
    let kept = match event {
        StandbyEvent::Notice(notice) => manager.noticed(plan, notice).is_ok(),
        StandbyEvent::Failure(link, in_a_row) => manager.link_failed(plan, *link, *in_a_row).is_ok(),
        StandbyEvent::Bond(BondNotice::Moves { .. }) => {
            world.count("bonds that changed to another port");
            true
        }
        StandbyEvent::Bond(BondNotice::Sends { .. }) => {
            world.count("bonds seen to send from another port");
            true
        }
        _ => true,
    };
    if !kept {
        world.count("standby notices that were not kept");
    }
    world.say(|| format!("{event:?}"));
}

/// Checks that entries of each bond lead to the port that the bond uses, and nowhere else.
fn check(world: &mut World) {
    let fabric = &world.fabric;
    if fabric.bonds.is_empty() || entries::is_by_hand(fabric) {
        return;
    }
    for (host, port) in fabric.bonds.used() {
        // Without a port it is nowhere, and behind a switch that is cut off it is out of reach.
        let Some(port) = port.filter(|port| fabric.has_links(fabric.topology.port(*port).switch)) else { continue };
        entries::lead_to(fabric, fabric.topology.host(host).mac, port, "after entries of bonds were turned");
    }
    world.count("bonds seen where they are");
}
