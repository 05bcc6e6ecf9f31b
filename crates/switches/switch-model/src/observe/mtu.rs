//! Ports that do not pass the largest packets that a plan's hosts send.
//!
//! ```text
//!   plan: packets of 9000 bytes, frames of 9022 with Ethernet's header, the VLAN tag and the check sequence
//!   sw1:p3 says ifMtu 1500  ▶  it drops them
//! ```
//! A switch says the largest packet (RFC 2863, ifMtu) or, against the standard, the largest frame. What is at least the packet
//! counts as enough, so a port that counts frames and is too small by 22 bytes or fewer goes unnoticed.

use fabric::{DeviceIntent, PortId, PortRole, Topology};

/// Bytes of a frame beside its packet: addresses and type, a VLAN tag, the check sequence.
const FRAME_BYTES: u32 = 14 + 4 + 4;

/// A port whose MTU is too small.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SmallMtu {
    /// Which port.
    pub port: PortId,
    /// What the switch says of it, in bytes.
    pub found_bytes: u16,
    /// The largest packet that it has to pass, in bytes.
    pub needed_bytes: u16,
}

/// The ports of a switch that carry data and whose MTU is too small, in its order. `found[slot]`: what the switch says; none
/// where it does not.
pub fn small_mtus(wanted: &DeviceIntent, found: &[Option<u16>]) -> Vec<SmallMtu> {
    let ports = wanted.ports.iter().zip(found).filter(|(port, _)| port.role != PortRole::Unused);
    let small = |needed_bytes: u16, found: Option<u16>| found.filter(|found| *found < needed_bytes);
    ports
        .filter_map(|(port, found)| {
            let (port, needed_bytes) = (port.port, port.mtu_bytes);
            small(needed_bytes, *found).map(|found_bytes| SmallMtu { port, found_bytes, needed_bytes })
        })
        .collect()
}

impl SmallMtu {
    /// What is wrong, in a sentence.
    pub fn sentence(&self, topology: &Topology) -> String {
        let Self { port, found_bytes, needed_bytes } = self;
        let frame_bytes = u32::from(*needed_bytes) + FRAME_BYTES;
        format!(
            "{} has an MTU of {found_bytes} bytes; the plan needs {needed_bytes} (frames of {frame_bytes} bytes with the VLAN tag)",
            topology.port_label(*port)
        )
    }
}

/// How a person mends it.
pub const SMALL_MTU_WAY_OUT: &str =
    "raise it by the switch's own commands, which espalier does not do, or plan with a smaller --mtu";

#[cfg(test)]
mod tests {
    use fabric::{LinkId, PortIntent, SwitchId};

    use super::*;

    #[test]
    fn a_port_is_too_small_one_byte_below_what_the_plan_needs() {
        let port = |index: usize, role| PortIntent { role, mtu_bytes: 9000, ..PortIntent::unused(PortId::new(index)) };
        let link = PortRole::Link(LinkId::new(0));
        let ports = vec![port(0, link), port(1, link), port(2, PortRole::Unused), port(3, link), port(4, link)];
        let wanted = DeviceIntent { ports, ..DeviceIntent::blank(SwitchId::new(0)) };
        let small = small_mtus(&wanted, &[Some(9000), Some(8999), Some(1500), None, Some(9216)]);
        assert_eq!(small, [SmallMtu { port: PortId::new(1), found_bytes: 8999, needed_bytes: 9000 }]);
    }
}
