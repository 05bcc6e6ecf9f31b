//! The MTU of ports, which a deployment does not set: what the plan needs, and which ports have less.

use fabric::Plan;
use switch_model::observe::{SmallMtu, small_mtus};

use crate::reached::{Connected, Reached, each_device};

/// `mtus[switch][slot]`: what switches say, by their command line what was read of them last.
pub(super) fn ask(devices: &mut [Connected], parallel: usize) -> Vec<Vec<Option<u16>>> {
    each_device(devices, parallel, |_, device| match device {
        Reached::Snmp(device) => device.mtus(),
        Reached::CommandLine(device) => {
            Ok(device.held().map(|held| held.ports.iter().map(|port| port.mtu_bytes).collect()).unwrap_or_default())
        }
    })
}

/// Ports whose MTU is smaller than the plan needs, in its order.
pub(super) fn small(plan: &Plan, mtus: &[Vec<Option<u16>>]) -> Vec<SmallMtu> {
    plan.devices.iter().zip(mtus).flat_map(|(device, found)| small_mtus(device, found)).collect()
}
