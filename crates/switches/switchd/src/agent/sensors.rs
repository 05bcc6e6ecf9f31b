//! What a data plane says of itself: everything that managers read and nobody writes.

use std::collections::BTreeMap;

use fabric::Mac;

use crate::lacp::PortState;
use bridge_mib::{
    IfStatus, LldpChassisSubtype, LldpPortSubtype, PauseMode, StpState,
    index::{FdbRow, Neighbour, PortVlan},
};

/// A switch at one moment. Times are in hundredths of a second of sysUpTime.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Sensors {
    /// `ports[bridge port - 1]`.
    pub ports: Vec<PortSensor>,
    /// Learned addresses and where they are.
    pub learned: BTreeMap<FdbRow, u32>,
    /// Frames received and sent, by port and VLAN.
    pub vlan_frames: BTreeMap<PortVlan, [u64; 2]>,
    /// Who is at the other ends.
    pub neighbours: Neighbours,
    /// Spanning tree.
    pub stp: StpSensor,
}

/// A port at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortSensor {
    /// Whether it works.
    pub oper: IfStatus,
    /// Since when.
    pub changed_cs: u32,
    /// Capacity.
    pub speed_bps: u64,
    /// Largest packet.
    pub mtu_bytes: u32,
    /// What has passed.
    pub counters: Counters,
    /// What the port does about PAUSE; none where that follows from what is configured.
    pub pause: Option<PauseMode>,
    /// Spanning tree.
    pub stp: StpPortSensor,
    /// LACP, where the port is a member of a LAG.
    pub lacp: LacpSensor,
}

/// LACP on a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct LacpSensor {
    /// What the port says of itself.
    pub actor: PortState,
    /// What its partner last said.
    pub partner: PortState,
}

/// What has passed a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Counters {
    /// Octets received.
    pub in_octets: u64,
    /// Unicast frames received.
    pub in_unicast: u64,
    /// Multicast frames received.
    pub in_multicast: u64,
    /// Broadcast frames received.
    pub in_broadcast: u64,
    /// Good frames received and dropped.
    pub in_discards: u64,
    /// Bad frames received.
    pub in_errors: u64,
    /// Octets sent.
    pub out_octets: u64,
    /// Frames sent, of whatever kind.
    pub out_frames: u64,
    /// Frames that found the queue full.
    pub out_discards: u64,
    /// Frames that could not be sent.
    pub out_errors: u64,
    /// PAUSE frames received.
    pub in_pause: u64,
    /// PAUSE frames sent.
    pub out_pause: u64,
}

/// Spanning tree on a bridge.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct StpSensor {
    /// The root's identifier.
    pub root: [u8; 8],
    /// Cost of the way to it.
    pub root_cost: u32,
    /// Port toward it, 0 at the root.
    pub root_port: u32,
    /// In force.
    pub max_age_cs: u32,
    /// In force.
    pub hello_cs: u32,
    /// In force.
    pub forward_delay_cs: u32,
    /// How often the tree has changed.
    pub changes: u32,
    /// When it last did.
    pub changed_cs: u32,
}

/// Spanning tree on a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StpPortSensor {
    /// What it does.
    pub state: StpState,
    /// What it adds to a way.
    pub cost: u32,
    /// The root as the segment knows it.
    pub designated_root: [u8; 8],
    /// The segment's cost to the root.
    pub designated_cost: u32,
    /// The segment's designated bridge.
    pub designated_bridge: [u8; 8],
    /// That bridge's port.
    pub designated_port: [u8; 2],
    /// How often the port began to forward.
    pub forward_transitions: u32,
}

/// Who is at the other ends, as they say by LLDP.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Neighbours {
    /// By time of the last change, local port and number.
    pub rows: BTreeMap<Neighbour, NeighbourInfo>,
    /// When one came, changed or went.
    pub changed_cs: u32,
    /// How many came.
    pub inserts: u32,
    /// How many went.
    pub deletes: u32,
    /// How many found no room.
    pub drops: u32,
    /// How many fell silent.
    pub ageouts: u32,
}

/// What a neighbour says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NeighbourInfo {
    /// How the chassis is named.
    pub chassis_subtype: LldpChassisSubtype,
    /// Its name.
    pub chassis_id: Vec<u8>,
    /// How the port is named.
    pub port_subtype: LldpPortSubtype,
    /// Its name.
    pub port_id: Vec<u8>,
    /// The port in words.
    pub port_description: Vec<u8>,
    /// sysName.
    pub system_name: Vec<u8>,
    /// sysDescr.
    pub system_description: Vec<u8>,
    /// What it can be, as bits from the least significant.
    pub capabilities: u16,
    /// What it is.
    pub capabilities_enabled: u16,
}

impl Default for PortSensor {
    fn default() -> Self {
        Self {
            oper: IfStatus::Up,
            changed_cs: 0,
            speed_bps: 1_000_000_000,
            mtu_bytes: 1500,
            counters: Counters::default(),
            pause: None,
            stp: StpPortSensor {
                state: StpState::Disabled,
                cost: 0,
                designated_root: [0; 8],
                designated_cost: 0,
                designated_bridge: [0; 8],
                designated_port: [0; 2],
                forward_transitions: 0,
            },
            lacp: LacpSensor::default(),
        }
    }
}

impl Sensors {
    /// A switch on which nothing has happened yet.
    pub fn still(ports: usize) -> Self {
        Self { ports: vec![PortSensor::default(); ports], ..Self::default() }
    }
}

impl Counters {
    /// All frames received.
    pub fn in_frames(&self) -> u64 {
        self.in_unicast + self.in_multicast + self.in_broadcast
    }
}

/// The identifier of a bridge in spanning tree: priority, then address.
pub fn bridge_id(priority: u16, address: Mac) -> [u8; 8] {
    let ([p0, p1], [a, b, c, d, e, f]) = (priority.to_be_bytes(), address.octets());
    [p0, p1, a, b, c, d, e, f]
}
