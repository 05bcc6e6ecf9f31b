//! Addresses that are learned at ports: read where switches have learned them, entered everywhere.
//!
//! ```text
//!   every interval: read the tables of all switches ─▶ Addresses ─▶ remembered ─▶ entries that are to hold, for every switch
//! ```
//! The plan is judged once, with every port at its bound: whatever addresses come and go, the entries are some of those.

mod order;

use std::{
    collections::{BTreeMap, BTreeSet},
    thread,
    time::{Duration, Instant},
};

use cancel::Cancel;
use drivers::{credentials::Keyring, snmp::Glance};
use fabric::{Finding, HostId, Mac, Plan, Severity, SwitchId, VlanId};
use rollout::addresses::{AddressNotice, Addresses, LearnedRow, NothingToLearn, with_most};
use switch_model::{
    driver::{Driver as _, Fault},
    mark::Mark,
};

use crate::{
    CancellationToken, ConnectOptions, Error, Fabric,
    held::{Attended, Changing, Disagreement, MOMENT, agree, start},
    parallel::at_once,
};

pub use self::order::{AddressOrder, AddressStep, note_edits};

/// Most rounds of one that does not follow: what is removed in one is learned anew in the next, or not.
const ROUNDS_MAX: usize = 10;

/// What is to be kept.
pub struct AddressesRequest<'a> {
    /// The plan, which the switches hold.
    pub plan: &'a Plan,
    /// Where addresses were when they were remembered last.
    pub known: &'a BTreeMap<Mac, HostId>,
    /// How often tables are read.
    pub interval: Duration,
    /// How long an address may be missing from the table of its switch before its entries go.
    pub age: Duration,
    /// Whether it goes on until it is asked to stop.
    pub mode: AddressesMode,
}

/// How long addresses are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AddressesMode {
    /// Until what switches have learned is entered everywhere.
    Once,
    /// Until it is asked to stop.
    Follow,
}

/// Is told where each address is, and puts that where the next run finds it.
pub type Remember<'a> = dyn FnMut(&BTreeMap<Mac, HostId>) -> Result<(), Error> + 'a;

/// Something that happens meanwhile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AddressesEvent {
    /// A switch does not answer at the start, and is waited for.
    Waits(SwitchId, Fault),
    /// The switches hold the plan.
    Ready {
        /// How many ports learn addresses.
        ports: usize,
        /// How many addresses are known already.
        known: usize,
        /// Ordered pairs of ports between which a move is seen only when the switch at the first has forgotten the address.
        late: usize,
    },
    /// A switch fails at what it is asked.
    Fault(SwitchId, Fault),
    /// It answers again.
    Answers(SwitchId),
    /// An address.
    Notice(AddressNotice),
    /// Every switch that answers holds the entries for this number of addresses.
    Holds(usize),
}

/// How it ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AddressesResult {
    /// The plan has no addresses to learn.
    Nothing(NothingToLearn),
    /// With as many addresses as ports may have, the plan would not be fit.
    Unfit(Finding),
    /// It was asked to stop while it waited for switches at the start.
    Interrupted,
    /// The switches do not hold the plan, and why.
    Disagreement(Disagreement),
    /// A switch was set up by another deployment.
    Superseded(SwitchId, Mark),
    /// A switch bears no deployment tag any more.
    Untagged(SwitchId),
    /// It is done, or was asked to stop, with this number of addresses known; switches that lack some of their entries.
    Left(usize, BTreeSet<SwitchId>),
}

/// Enters addresses that switches have learned at the ports of a plan that learn them. `remember` is told where addresses are before
/// that is entered anywhere.
///
/// # Errors
/// [`Error::Request`], if a switch has no management address; what `remember` returns.
pub fn keep_addresses(
    request: &AddressesRequest<'_>,
    (keyring, options): (&Keyring, &ConnectOptions),
    token: &CancellationToken,
    remember: &mut Remember<'_>,
    events: &mut (dyn FnMut(AddressesEvent) + '_),
) -> Result<AddressesResult, Error> {
    let plan = request.plan;
    let mut addresses = match Addresses::new(plan, request.known, request.age) {
        Ok(addresses) => addresses,
        Err(why) => return Ok(AddressesResult::Nothing(why)),
    };
    let report = verify::check(&with_most(plan));
    if let Some(finding) = report.findings().iter().find(|finding| finding.severity == Severity::Fatal) {
        return Ok(AddressesResult::Unfit(finding.clone()));
    }
    let fabric = Fabric::of(plan, keyring, options, Cancel::default())?;
    let mut waits = |switch, fault| events(AddressesEvent::Waits(switch, fault));
    let Some(found) = start(plan, &fabric, token, &mut waits) else { return Ok(AddressesResult::Interrupted) };
    let (mark, mut devices) = match agree(plan, found) {
        Ok(agreed) => agreed,
        Err(why) => return Ok(AddressesResult::Disagreement(why)),
    };
    let changing = Changing::of(&plan.topology);
    devices.iter_mut().for_each(|device| device.entries.retain(|(_, mac), _| changing.is_learned(*mac)));
    let ports: Vec<HostId> = addresses.places().ports().collect();
    let pairs = ports.iter().flat_map(|from| ports.iter().map(move |to| (*from, *to))).filter(|(from, to)| from != to);
    let late = pairs.filter(|(from, to)| !addresses.places().is_seen_at_once(*from, *to)).count();
    events(AddressesEvent::Ready { ports: ports.len(), known: addresses.known().len(), late });
    let keeper = Keeper { plan, fabric: &fabric, mark, changing, vlans: addresses.places().vlans().clone() };
    keeper.keep(request, &mut addresses, devices.into_iter().map(Some).collect(), token, remember, events)
}

struct Keeper<'a> {
    plan: &'a Plan,
    fabric: &'a Fabric<'a>,
    mark: Mark,
    changing: Changing,
    vlans: BTreeSet<VlanId>,
}

impl Keeper<'_> {
    fn keep(
        &self,
        request: &AddressesRequest<'_>,
        addresses: &mut Addresses,
        mut devices: Vec<Option<Attended>>,
        token: &CancellationToken,
        remember: &mut Remember<'_>,
        events: &mut (dyn FnMut(AddressesEvent) + '_),
    ) -> Result<AddressesResult, Error> {
        let switches: Vec<SwitchId> = self.plan.topology.switch_ids().collect();
        let began = Instant::now();
        let mut faults: BTreeMap<SwitchId, Fault> = BTreeMap::new();
        let (mut behind, mut rounds, mut told) = (BTreeSet::new(), 0, None);
        let mut marks = vec![self.mark; switches.len()];
        while !token.is_cancelled() {
            let due = Instant::now() + request.interval;
            let read = |(switch, device): (SwitchId, &mut Option<Attended>)| {
                let seen = self.look(switch, device);
                if seen.is_err() {
                    *device = None;
                }
                seen
            };
            let work: Vec<_> = switches.iter().copied().zip(&mut devices).collect();
            let mut tables = Vec::with_capacity(switches.len());
            for (switch, seen) in switches.iter().zip(at_once(work, self.fabric.parallel(), read)) {
                let (glance, rows) = match seen {
                    Ok(seen) => seen,
                    Err(fault) => {
                        tell_fault(*switch, fault, &mut faults, events);
                        tables.push(None);
                        continue;
                    }
                };
                match glance.mark {
                    Some(mark) if self.is_ours(mark) => marks[switch.index()] = mark,
                    Some(mark) => return Ok(AddressesResult::Superseded(*switch, mark)),
                    None => return Ok(AddressesResult::Untagged(*switch)),
                }
                if faults.remove(switch).is_some() {
                    events(AddressesEvent::Answers(*switch));
                }
                let pvids: Vec<Option<VlanId>> = glance.ports.iter().map(|port| port.pvid).collect();
                addresses.handle_pvids(*switch, &pvids);
                tables.push(Some(rows));
            }
            let changed = addresses.handle_tables(began.elapsed(), &tables);
            if changed {
                remember(&addresses.known())?;
            }
            while let Some(notice) = addresses.poll_notice() {
                events(AddressesEvent::Notice(notice));
            }
            let orders: Vec<AddressOrder> =
                switches.iter().map(|switch| AddressOrder::of(addresses, *switch)).collect();
            let removes = orders.iter().any(|order| !order.stale.is_empty());
            behind.clear();
            for step in AddressStep::ALL {
                let work: Vec<_> = devices.iter_mut().zip(&marks).zip(&orders).collect();
                let carried = at_once(work, self.fabric.parallel(), |((device, mark), order)| {
                    self.carry_out(device, *mark, step, order)
                });
                for (switch, done) in switches.iter().zip(carried) {
                    match done {
                        Ok(true) => {}
                        Ok(false) => _ = behind.insert(*switch),
                        Err(fault) => {
                            behind.insert(*switch);
                            tell_fault(*switch, fault, &mut faults, events);
                        }
                    }
                }
            }
            for (switch, order) in switches.iter().zip(&orders).filter(|(switch, _)| !behind.contains(switch)) {
                addresses.handle_removed(began.elapsed(), *switch, &order.stale);
            }
            let known = addresses.known();
            if behind.is_empty() && told.as_ref() != Some(&known) {
                events(AddressesEvent::Holds(known.len()));
                told = Some(known);
            }
            rounds += 1;
            let is_settled = rounds > 1 && !changed && !removes && !addresses.is_searching() && behind.is_empty();
            if request.mode == AddressesMode::Once && (is_settled || rounds == ROUNDS_MAX) {
                break;
            }
            while Instant::now() < due && !token.is_cancelled() {
                thread::sleep(MOMENT.min(due.saturating_duration_since(Instant::now())));
            }
        }
        Ok(AddressesResult::Left(addresses.known().len(), behind))
    }

    /// Reads what a switch has learned, and looks at it.
    fn look(&self, switch: SwitchId, attended: &mut Option<Attended>) -> Result<(Glance, Vec<LearnedRow>), Fault> {
        let own = match attended {
            Some(own) => own,
            None => attended.insert(self.attend_again(switch)?),
        };
        let learned = own.device.learned_in(&self.vlans)?;
        let glance = own.device.glance(&[])?;
        if own.has_restarted() {
            // Its entries are to be read again.
            return Err(Fault::Fenced);
        }
        let rows = learned.into_iter().map(|((vlan, mac), at)| LearnedRow { vlan, mac, at });
        Ok((glance, rows.collect()))
    }

    fn attend_again(&self, switch: SwitchId) -> Result<Attended, Fault> {
        let mut device = self.fabric.connect_by_snmp(switch)?;
        let mut entries = device.read()?.config.entries;
        entries.retain(|(_, mac), _| self.changing.is_learned(*mac));
        Ok(Attended::new(device, entries))
    }

    /// Takes a step toward what a switch is to hold and to forget; says whether it did. One that did not answer before is left alone.
    fn carry_out(
        &self,
        attended: &mut Option<Attended>,
        mark: Mark,
        step: AddressStep,
        order: &AddressOrder,
    ) -> Result<bool, Fault> {
        let Some(Attended { device, entries, .. }) = attended else { return Ok(false) };
        let edits = order.edits(step, entries);
        if edits.is_empty() {
            return Ok(true);
        }
        if let Err(fault) = device.edit(mark, &edits) {
            // Some may have been carried out: the next look reads what the switch holds.
            *attended = None;
            return Err(fault);
        }
        note_edits(&edits, entries);
        Ok(true)
    }

    /// Whether a switch still has the deployment tag. Nonces differ where a deployment was resumed.
    fn is_ours(&self, mark: Mark) -> bool {
        (mark.generation, mark.digest) == (self.mark.generation, self.mark.digest)
    }
}

fn tell_fault(
    switch: SwitchId,
    fault: Fault,
    faults: &mut BTreeMap<SwitchId, Fault>,
    events: &mut (dyn FnMut(AddressesEvent) + '_),
) {
    if faults.get(&switch) != Some(&fault) {
        events(AddressesEvent::Fault(switch, fault.clone()));
    }
    faults.insert(switch, fault);
}
