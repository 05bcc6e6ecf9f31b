//! Enters learned addresses in virtual time: what `controller::keep_addresses` does with threads, done step by step.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use controller::{AddressOrder, AddressStep, AddressesEvent, agreement, note_edits};
use espalierd::{core::ladder::Reaction, manager::Manager};
use fabric::{HostId, Mac, Plan, SwitchId, VlanId};
use rollout::addresses::{Addresses, LearnedRow};
use switch_model::{Entries, driver::Fault, mark::Mark};

use crate::{daemon::AGAIN_MS, entries, world::World};

/// Between two rounds while something happens, while something has happened lately, and at other times.
pub(crate) const ROUND_MS: u64 = 5_000;
const CALM_ROUND_MS: u64 = 60_000;
const QUIET_ROUND_MS: u64 = 1_800_000;
/// For how long something has just happened, and has happened lately.
const JUST_NOW_MS: u64 = 30_000;
const LATELY_MS: u64 = 100_000;

/// Enters addresses that ports learn.
pub(crate) struct Keeper<'a> {
    plan: &'a Plan,
    following: Option<Following>,
    /// The state of the fabric in which it could not begin.
    failed_at: Option<u64>,
    pub(crate) due_ms: u64,
}

/// What is known while switches hold the plan.
struct Following {
    addresses: Addresses,
    mark: Mark,
    /// `held[switch]`: entries of learned addresses; none of a switch that is to be read again.
    held: Vec<Option<Entries>>,
    /// `booted_ms[switch]`: when it had started as its entries were read.
    booted_ms: Vec<u64>,
    began_ms: u64,
}

/// What came of a round.
enum Round {
    /// There is more to do.
    Goes,
    /// All switches hold what they are to.
    Settled,
}

impl<'a> Keeper<'a> {
    /// None where there is nothing to learn.
    pub(crate) fn new(world: &World, manager: &Manager, plan: &'a Plan) -> Option<Self> {
        let learns = plan.topology.learning_hosts().next().is_some();
        let acts = manager.config().ladder.addresses == Reaction::Act;
        (learns && acts).then(|| Self { plan, following: None, failed_at: None, due_ms: world.now_ms() })
    }

    pub(crate) fn step(&mut self, world: &mut World, manager: &Manager) {
        if world.now_ms() < self.due_ms {
            return;
        }
        world.guests.speak(&mut world.fabric);
        if self.following.is_none() && self.failed_at != Some(world.fabric.version) {
            self.following = begin(world, manager, self.plan);
        }
        self.failed_at = Some(world.fabric.version).filter(|_| self.following.is_none());
        let Some(following) = &mut self.following else {
            self.due_ms = world.now_ms() + AGAIN_MS;
            return;
        };
        let since_ms = world.now_ms() - world.disturbed_ms.min(world.now_ms());
        self.due_ms = world.now_ms()
            + match following.round(world, manager, self.plan) {
                None => {
                    self.following = None;
                    AGAIN_MS
                }
                Some(Round::Settled) if since_ms >= LATELY_MS => QUIET_ROUND_MS,
                Some(_) if since_ms >= JUST_NOW_MS => CALM_ROUND_MS,
                Some(_) => ROUND_MS,
            };
    }
}

/// Begins once every switch answers and holds the plan.
fn begin(world: &mut World, manager: &Manager, plan: &Plan) -> Option<Following> {
    let known = manager.archive().addresses(plan).ok()?;
    let age = Duration::from_secs_f64(manager.config().watch.address_age);
    let addresses = Addresses::new(plan, &known, age).ok()?;
    let readings: Result<Vec<_>, Fault> =
        plan.topology.switch_ids().map(|switch| world.fabric.read(&plan.topology, switch)).collect();
    match agreement(plan, readings.ok()?) {
        Ok((mark, entries)) => {
            let held = entries.into_iter().map(|entries| Some(learned_of(plan, entries))).collect();
            let booted_ms = plan.topology.switch_ids().map(|switch| world.fabric.booted_ms(&plan.topology, switch));
            Some(Following { addresses, mark, held, booted_ms: booted_ms.collect(), began_ms: world.now_ms() })
        }
        Err(why) => {
            world.say(|| format!("addresses are not kept: {why:?}"));
            None
        }
    }
}

/// Those entries that are of no host of the plan.
fn learned_of(plan: &Plan, mut entries: Entries) -> Entries {
    let owners = plan.topology.all_owners();
    entries.retain(|(_, mac), _| !owners.contains_key(mac));
    entries
}

impl Following {
    /// Reads tables and enters what follows; none if the switches are not those of the plan any more.
    fn round(&mut self, world: &mut World, manager: &Manager, plan: &Plan) -> Option<Round> {
        let topology = &plan.topology;
        let mut tables = Vec::new();
        for switch in topology.switch_ids() {
            match self.look(world, plan, switch) {
                Ok((Some(mark), rows))
                    if (mark.generation, mark.digest) == (self.mark.generation, self.mark.digest) =>
                {
                    let glance = world.fabric.glance(topology, switch).expect("it has answered");
                    let pvids: Vec<Option<VlanId>> = glance.ports.iter().map(|port| port.pvid).collect();
                    self.addresses.handle_pvids(switch, &pvids);
                    tables.push(Some(rows));
                }
                Ok(_) => return None,
                Err(_) => {
                    self.held[switch.index()] = None;
                    tables.push(None);
                }
            }
        }
        let now = Duration::from_millis(world.now_ms() - self.began_ms);
        let changed = self.addresses.handle_tables(now, &tables);
        let known = self.addresses.known();
        if changed && manager.archive().keep_addresses(plan, &known).is_err() {
            // As `controller::keep_addresses` ends when nothing can be remembered.
            world.count("learned addresses that could not be remembered");
            return None;
        }
        while let Some(notice) = self.addresses.poll_notice() {
            world.say(|| format!("{notice:?}"));
            world.count_address(&notice);
            for words in AddressesEvent::Notice(notice).words(plan) {
                // What is not kept is told all the same.
                let _ = manager.heard("addresses", &words);
            }
        }
        let order = |switch: SwitchId| AddressOrder::of(&self.addresses, switch);
        let orders: Vec<AddressOrder> = topology.switch_ids().map(order).collect();
        let removes = orders.iter().any(|order| !order.stale.is_empty());
        let mut behind = BTreeSet::new();
        for step in AddressStep::ALL {
            for (switch, order) in topology.switch_ids().zip(&orders) {
                let Some(held) = &mut self.held[switch.index()] else {
                    behind.insert(switch);
                    continue;
                };
                let edits = order.edits(step, held);
                if edits.is_empty() {
                    continue;
                }
                match world.fabric.edit(topology, switch, &edits) {
                    Ok(()) => {
                        note_edits(&edits, held);
                        world.count("changes of learned entries");
                    }
                    Err(_) => {
                        self.held[switch.index()] = None;
                        behind.insert(switch);
                    }
                }
            }
        }
        for (switch, order) in topology.switch_ids().zip(&orders).filter(|(switch, _)| !behind.contains(switch)) {
            self.addresses.handle_removed(now, switch, &order.stale);
        }
        let is_settled = behind.is_empty() && !removes && !self.addresses.is_searching();
        if is_settled {
            check(world, plan, &known);
            world.kept_at = Some(world.fabric.version).filter(|_| !changed);
        }
        Some(if is_settled && !changed { Round::Settled } else { Round::Goes })
    }

    fn look(&mut self, world: &World, plan: &Plan, switch: SwitchId) -> Result<(Option<Mark>, Vec<LearnedRow>), Fault> {
        let reading = world.fabric.read(&plan.topology, switch)?;
        let (held, known_ms) = (&mut self.held[switch.index()], &mut self.booted_ms[switch.index()]);
        let booted_ms = world.fabric.booted_ms(&plan.topology, switch);
        if held.is_none() {
            (*held, *known_ms) = (Some(learned_of(plan, reading.config.entries)), booted_ms);
        }
        if *known_ms != booted_ms {
            return Err(Fault::Fenced);
        }
        let rows = world.fabric.learned_in(&plan.topology, switch, self.addresses.places().vlans())?;
        Ok((reading.mark, rows))
    }
}

/// Checks that entries of learned addresses lead to where each is known, and nowhere else.
fn check(world: &mut World, plan: &Plan, known: &BTreeMap<Mac, HostId>) {
    if known.is_empty() || entries::is_by_hand(&world.fabric) {
        return;
    }
    for (mac, host) in known {
        let name = &plan.topology.host(*host).name;
        let own = world.fabric.topology.find_host(name).expect("plans name hosts of the fabric");
        entries::lead_to(
            &world.fabric,
            *mac,
            world.fabric.topology.host(own).port,
            "after learned addresses were entered",
        );
    }
    world.count("learned addresses seen where they are");
}
