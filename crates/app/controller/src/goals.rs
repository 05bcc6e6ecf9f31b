//! What a plan asks of each switch, and VLANs that it leaves free.

use fabric::{Plan, Topology, VlanId, VlanSet};
use switch_model::SwitchConfig;

/// What the plan asks of each switch.
pub(crate) fn goals(plan: &Plan) -> Vec<SwitchConfig> {
    goals_while(plan, &plan.topology)
}

/// What the plan asks of each switch while the ports of bonds that are active in `topology` are.
pub(crate) fn goals_while(plan: &Plan, topology: &Topology) -> Vec<SwitchConfig> {
    plan.devices.iter().map(|intent| SwitchConfig::of_intent(topology, intent)).collect()
}

/// The highest VLAN id that is left free, below those that switches keep for themselves.
pub(crate) fn free_vlan(used: &VlanSet) -> VlanId {
    let free = (2..=4093).rev().filter_map(|id| VlanId::new(id).ok()).find(|vlan| !used.contains(*vlan));
    free.unwrap_or(VlanId::MAX)
}

/// Every VLAN that these states know, VLAN 1 only if a port is to be in it.
pub(crate) fn vlans_of<'a>(configs: impl IntoIterator<Item = &'a SwitchConfig>) -> VlanSet {
    let known = |config: &SwitchConfig| config.vlans.iter().chain(config.memberships().iter()).collect::<Vec<_>>();
    configs.into_iter().flat_map(known).collect()
}

/// The VLAN that carries the deployment tag when no switch has one yet; an existing tag is found in any VLAN.
pub(crate) fn mark_vlan(plan: &Plan) -> VlanId {
    let management = plan.topology.in_band().map(|in_band| in_band.vlan);
    free_vlan(&plan.trees.iter().map(|tree| tree.vlan).chain(management).collect())
}
