//! The MTU of ports, which a deployment does not set: what the plan needs, and which ports have less.

use fabric::{ETHERNET_MTU_BYTES, Plan};
use switch_model::observe::{SMALL_MTU_WAY_OUT, SmallMtu, small_mtus};

use super::super::controller::{self, Connected, Reached};
use crate::count::counted;

/// Ports that are named; the rest are counted.
const NAMED_MAX: usize = 20;

/// `mtus[switch][slot]`: what switches say, by their command line what was read of them last.
pub(super) fn ask(devices: &mut [Connected], parallel: usize) -> Vec<Vec<Option<u16>>> {
    controller::each_device(devices, parallel, |_, device| match device {
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

/// That no MTU is set where hosts send jumbo frames, and which ports have less than the plan needs.
pub(super) fn lines(plan: &Plan, small: &[SmallMtu], mtus: &[Vec<Option<u16>>]) -> Vec<String> {
    let needed = plan.policy.port_mtu_bytes();
    let mut lines = Vec::new();
    if needed > ETHERNET_MTU_BYTES {
        let told = match mtus.iter().flatten().flatten().count() {
            0 => "no switch tells its ports' MTU".to_owned(),
            told => format!("{} told theirs, {} less", counted(told, "port"), small.len()),
        };
        lines.push(format!(
            "MTU: deploy does not set it; every port with a cable needs {needed} bytes or more before hosts send jumbo frames; {told}"
        ));
    }
    lines.extend(small.iter().take(NAMED_MAX).map(|port| format!("  warning: {}", port.sentence(&plan.topology))));
    if small.len() > NAMED_MAX {
        lines.push(format!("  and {}", counted(small.len() - NAMED_MAX, "further port")));
    }
    if !small.is_empty() {
        lines.push(format!("  {SMALL_MTU_WAY_OUT}"));
    }
    lines
}
