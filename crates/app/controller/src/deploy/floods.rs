//! Plans that drop or limit floods, and switches that cannot be configured to.

use fabric::{Flood, Plan, Topology};

use crate::{
    Error,
    reached::{Connected, Reached},
};

/// Refuses a plan that drops or limits floods if a switch is configured over SNMP, which has no object for it.
/// `devices[switch]` are those of `topology`.
pub(super) fn refuse_untold(plan: &Plan, topology: &Topology, devices: &[Connected]) -> Result<(), Error> {
    let by_snmp = |device: &Connected| matches!(device, Ok(Reached::Snmp(_)));
    match topology.switches().iter().zip(devices).find(|(_, device)| by_snmp(device)) {
        Some((switch, _)) if plan.policy.flood != Flood::Forward => Err(Error::Request(format!(
            "switch {}: the plan drops floods (--flood {}), and SNMP has no object for that; give the switch's credentials \
             ssh, load what espalier render writes, or plan with --flood forward",
            switch.name, plan.policy.flood
        ))),
        Some((switch, _)) if plan.policy.storm_limit.is_some() => Err(Error::Request(format!(
            "switch {}: the plan has storm control (--storm-control), and SNMP has no object for that; give the switch's \
             credentials ssh, load what espalier render writes, or plan without --storm-control",
            switch.name
        ))),
        _ => Ok(()),
    }
}
