//! A change under traffic begins where switches are: a bond may have failed over, and entries of learned addresses may be on their way.
//!
//! ```text
//!   found ─ entries as the plan before has them, with the bonds' ports that are active ─▶ the steps, with the same ports active
//! ```
//! Entries of these addresses alone are brought there by a stage of its own. Whatever mixture of them switches hold meanwhile, no frame
//! goes round: see `rollout::bonds` and `rollout::addresses`.

use std::collections::BTreeMap;

use fabric::{Mac, Plan, SwitchId, Topology};
use rollout::{
    bonds::take_bonds,
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

    /// The same way from what switches were found to hold, `found[switch]`: entries of bonds that have failed over, and of addresses
    /// that ports have learned, may be others than the plan before has. A bond that has failed over stays so.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn begun_from(self, request: &DeployRequest<'_>, found: &[Option<SwitchConfig>]) -> Result<Self, Error> {
        let Some(old) = request.since.filter(|_| Self::begins_with_changing_entries(request)) else { return Ok(self) };
        let active = active_ports(old, &self.topology, found);
        let topology = following(&old.topology, &active, &request.plan.topology);
        let (before, after) = (Plan { topology: active, ..old.clone() }, Plan { topology, ..request.plan.clone() });
        let mut route = Self::new(&DeployRequest { plan: &after, since: Some(&before), ..request.clone() })?;
        route.plan = route.plan.proven_as(request.plan);
        if let [first, .., last] = &mut route.hosts[..] {
            (*first, *last) = (HostsState::plan(old), HostsState::plan(request.plan));
        }
        let Way::Live { start, stages } = &mut route.way else { return Ok(route) };
        let changing = Changing::of(&old.topology);
        let mut restored = BTreeMap::new();
        for ((switch, start), found) in route.topology.switch_ids().zip(start).zip(found) {
            let (Some(start), Some(found)) = (start, found) else { continue };
            let wanted = start.clone();
            take_entries(&mut start.entries, found, start.ports.len(), &|mac| changing.includes(mac));
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
    let held = |switch: SwitchId| {
        let twin = topology.find_switch(&plan.topology.switch(switch).name)?;
        let names: Vec<String> =
            plan.topology.port_ids(switch).map(|port| plan.topology.port(port).name.clone()).collect();
        Some(align(found.get(twin.index())?.as_ref()?, &names))
    };
    let mut held: Vec<Option<SwitchConfig>> = plan.topology.switch_ids().map(held).collect();
    take_bonds(plan, &mut held)
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
