//! A change under traffic begins where switches are: a bond may have failed over, and entries of learned addresses may be on their way.
//!
//! ```text
//!   held before ─ entries as the plan before has them, with the bonds' ports that are active ─▶ the steps, with the same ports active
//! ```
//! Entries of these addresses alone are brought there by a stage of its own. Whatever mixture of them switches hold meanwhile, no frame
//! goes round: see `rollout::bonds` and `rollout::addresses`.

use std::collections::{BTreeMap, BTreeSet};

use fabric::{HostId, Mac, Plan, SwitchId, Topology};
use rollout::{
    bonds::{bond_entries, take_bonds},
    deploy::{LiveStage, Way},
};
use switch_model::{Entries, SwitchConfig, align};

use super::{DeployRequest, HostsState, Route};
use crate::{Error, held::Changing};

impl Route {
    /// Whether the way begins with entries that change while the plan before runs, so that [`Self::begun_from`] is of use.
    pub fn begins_with_changing_entries(request: &DeployRequest<'_>) -> bool {
        request.since.is_some_and(|old| !Changing::of(&old.topology).is_empty())
    }

    /// The same way from what switches held before, `before[switch]`: entries of bonds that have failed over, and of addresses that
    /// ports have learned, may be others than the plan before has. A bond that has failed over stays so, also one that did after the
    /// change was interrupted: `interrupted[switch]` is what switches hold then.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn begun_from(
        self,
        request: &DeployRequest<'_>,
        before: &[Option<SwitchConfig>],
        interrupted: Option<&[Option<SwitchConfig>]>,
    ) -> Result<Self, Error> {
        let Some(old) = request.since.filter(|_| Self::begins_with_changing_entries(request)) else { return Ok(self) };
        let active = active_ports(old, &self.topology, before);
        let active = match interrupted {
            Some(now) => moved_since([old, request.plan], active, &self.topology, now),
            None => active,
        };
        let topology = following(&old.topology, &active, &request.plan.topology);
        let (from, to) = (Plan { topology: active, ..old.clone() }, Plan { topology, ..request.plan.clone() });
        let mut route = Self::new(&DeployRequest { plan: &to, since: Some(&from), ..request.clone() })?;
        route.plan = route.plan.proven_as(request.plan);
        if let [first, .., last] = &mut route.hosts[..] {
            (*first, *last) = (HostsState::plan(old), HostsState::plan(request.plan));
        }
        let Way::Live { start, stages } = &mut route.way else { return Ok(route) };
        let changing = Changing::of(&old.topology);
        let mut restored = BTreeMap::new();
        for ((switch, start), before) in route.topology.switch_ids().zip(start).zip(before) {
            let (Some(start), Some(before)) = (start, before) else { continue };
            let wanted = start.clone();
            take_entries(&mut start.entries, before, start.ports.len(), &|mac| changing.includes(mac));
            if *start != wanted {
                restored.insert(switch, wanted);
            }
        }
        if !restored.is_empty() {
            stages.insert(0, LiveStage::Switches(restored));
        }
        Ok(route)
    }
}

/// The plan's cabling with the ports of bonds active that switches of another cabling were found to use, `found[switch]`.
fn active_ports(plan: &Plan, topology: &Topology, found: &[Option<SwitchConfig>]) -> Topology {
    take_bonds(plan, &mut as_of(plan, topology, found))
}

/// What switches of another cabling were found to hold, `found[switch]`, by the switches and ports of a plan.
fn as_of(plan: &Plan, topology: &Topology, found: &[Option<SwitchConfig>]) -> Vec<Option<SwitchConfig>> {
    let held = |switch: SwitchId| {
        let twin = topology.find_switch(&plan.topology.switch(switch).name)?;
        let names: Vec<String> =
            plan.topology.port_ids(switch).map(|port| plan.topology.port(port).name.clone()).collect();
        Some(align(found.get(twin.index())?.as_ref()?, &names))
    };
    plan.topology.switch_ids().map(held).collect()
}

/// The cabling of the first plan with each bond's port active that most entries lead to of what switches hold between two plans, by the one
/// plan or by the other; where they do not tell, the port that is active in `active`.
fn moved_since(plans: [&Plan; 2], active: Topology, topology: &Topology, now: &[Option<SwitchConfig>]) -> Topology {
    let held = plans.map(|plan| as_of(plan, topology, now));
    let old = &plans[0].topology;
    let mut moved = active;
    for planned in old.host_ids().filter(|host| old.standby_ports(*host).next().is_some()) {
        let addresses: BTreeSet<Mac> = old.host(planned).all_macs().collect();
        let agreeing = |port: HostId| -> usize {
            let by_plan = plans.iter().zip(&held).filter_map(|(plan, held)| {
                let port = plan.topology.find_host(&old.host(port).name)?;
                let cabling = if plan.topology.host(port).standby {
                    plan.topology.with_active(port)
                } else {
                    plan.topology.clone()
                };
                let of = |(switch, held): (SwitchId, &Option<SwitchConfig>)| {
                    let Some(held) = held else { return 0 };
                    let own = bond_entries(plan, &cabling, switch);
                    let own = own.iter().filter(|((_, mac), _)| addresses.contains(mac));
                    own.filter(|(key, slot)| held.entries.get(key) == Some(slot)).count()
                };
                Some(plan.topology.switch_ids().zip(held).map(of).sum::<usize>())
            });
            by_plan.sum()
        };
        let current = moved.active_port(planned);
        let ports = std::iter::once(planned).chain(old.standby_ports(planned));
        let most = ports.max_by_key(|port| (agreeing(*port), *port == current)).expect("the planned one at least");
        if most != current {
            moved = moved.with_active(most);
        }
    }
    moved
}

/// The cabling of the next plan, in which bonds that have failed over, from `planned` to `active`, use the same ports. A bond for which
/// it plans another port than before uses that.
fn following(planned: &Topology, active: &Topology, next: &Topology) -> Topology {
    let mut next = next.clone();
    for host in planned.host_ids().filter(|host| !planned.host(*host).standby) {
        let used = active.active_port(host);
        let names = [host, used].map(|host| next.find_host(&planned.host(host).name));
        if let ([Some(before), Some(after)], true) = (names, used != host) {
            let is_planned = !next.host(before).standby && next.host(after).standby;
            next = if is_planned { next.with_active(after) } else { next };
        }
    }
    next
}

/// Replaces entries of changing addresses by those that were found at the first `ports` ports.
fn take_entries(entries: &mut Entries, found: &SwitchConfig, ports: usize, changes: &dyn Fn(Mac) -> bool) {
    entries.retain(|(_, mac), _| !changes(*mac));
    let own = found.entries.iter().filter(|((_, mac), slot)| changes(*mac) && slot.index() < ports);
    entries.extend(own.map(|(key, slot)| (*key, *slot)));
}
