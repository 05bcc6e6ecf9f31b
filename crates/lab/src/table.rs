//! The tables of one switch: a device's intent in the shape in which both back ends and the twin use it.
//!
//! Ports are numbered by their position in the intent. A port that is shut or has no cable is a member of nothing here:
//! no frame enters by it, and none that leaves by it arrives.
//!
//! ```text
//! intent   g1: pvid 2, untagged 2-3      table   ports  0: pvid 2, up
//!          g2: tagged 2-3                        vlans  2: tagged {1} untagged {0}   3: tagged {1} untagged {0}
//!          (v2, 02:…:01) → g1                    fdb    (2, 02:…:01) → 0
//! ```

use std::collections::BTreeMap;

use fabric::{Admin, Attachment, DeviceIntent, FloodSet, Mac, PortRole, Topology, VlanId};

use crate::LabError;

/// Most VLANs of a managed switch.
pub(crate) const VLANS_MAX: usize = 512;
/// Most static entries of a managed switch.
pub(crate) const STATICS_MAX: usize = 16_384;

/// Most ports of one switch; `PORTS_MAX` in `bpf/switch_consts.h`.
pub const PORTS_MAX: usize = 256;

/// Most members of one LAG; `LAG_MEMBERS_MAX` in `bpf/lag.h`.
pub(crate) const LAG_MEMBERS_MAX: usize = 64;

/// Port `k` of a switch is the device with this index plus `k`; `PORT_IFINDEX_BASE` in `bpf/switch_consts.h`.
pub const PORT_IFINDEX_BASE: u32 = 16;

/// How long a learned address holds, where nobody has said otherwise (IEEE 802.1Q-2022, table 8-8).
pub const AGEING_S: u32 = 300;

/// The tables of one switch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SwitchTable {
    /// `ports[port]`.
    pub ports: Vec<PortEntry>,
    /// Who is a member of what.
    pub vlans: BTreeMap<VlanId, Members>,
    /// Static entries toward ports; of contradictory ones the last counts.
    pub fdb: BTreeMap<(VlanId, Mac), u16>,
    /// Learned addresses, which count where there is no static entry; none yet where an intent has just been read.
    pub learned: BTreeMap<(VlanId, Mac), u16>,
    /// Which members of LAGs carry frames; none yet where an intent has just been read.
    pub active: ActiveMembers,
}

/// One port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortEntry {
    /// The VLAN of untagged frames that enter.
    pub pvid: Option<VlanId>,
    /// In service, or not.
    pub service: Service,
    /// What spanning tree lets it do.
    pub relay: Relay,
    /// Whether senders are learned.
    pub learning: Learning,
    /// Floods that do not leave by it.
    pub blocked_floods: FloodSet,
    /// Its part in a LAG of the data plane's own.
    pub part: LagPart,
}

/// The part that a port has in a LAG.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LagPart {
    /// None, or the LAG is made of the kernel's bond, of which the data plane knows nothing.
    None,
    /// It is the LAG, which has no device of its own.
    Lag,
    /// It is a member of the LAG that is this port.
    Member(u16),
}

/// The members of LAGs that carry frames.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct ActiveMembers {
    /// Members by which frames come in.
    pub collecting: PortSet,
    /// By LAG: the members by which frames leave, in port order.
    pub distributing: BTreeMap<u16, Vec<u16>>,
}

/// What spanning tree lets a port do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Relay {
    /// Everything; so it is where there is no spanning tree.
    Forward,
    /// Nothing.
    Block,
}

/// Whether a port notes who sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Learning {
    /// It does, and forgets after a while.
    For {
        /// How long.
        ageing_s: u32,
    },
    /// It does not.
    Off,
}

/// Whether a port carries frames at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Service {
    /// Cabled and not shut.
    Up,
    /// Shut, or without a cable.
    Down,
}

/// The members of one VLAN; a port that an intent lists both ways is untagged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Members {
    /// Ports that send its frames with a tag.
    pub tagged: PortSet,
    /// Ports that send its frames without one.
    pub untagged: PortSet,
}

/// A set of ports of one switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct PortSet {
    words: [u64; PORTS_MAX / 64],
}

impl SwitchTable {
    /// Reads an intent.
    ///
    /// # Errors
    /// [`LabError::TooLarge`] beyond [`PORTS_MAX`] ports; [`LabError::Unsupported`] for a static entry with a group
    /// address or toward a port of another switch.
    pub fn new(topology: &Topology, intent: &DeviceIntent) -> Result<Self, LabError> {
        let switch = &topology.switch(intent.switch).name;
        if intent.ports.len() > PORTS_MAX {
            return Err(LabError::TooLarge { what: "ports of one switch", got: intent.ports.len(), limit: PORTS_MAX });
        }
        let learning = match intent.learning {
            fabric::Learning::On => Learning::For { ageing_s: AGEING_S },
            fabric::Learning::Off => Learning::Off,
        };
        let (mut ports, mut vlans) = (Vec::with_capacity(intent.ports.len()), BTreeMap::<VlanId, Members>::new());
        let mut number_of = BTreeMap::new();
        for (number, port) in (0_u16..).zip(&intent.ports) {
            number_of.insert(port.port, number);
            let service = match (port.admin, port.role) {
                (Admin::Down, _) | (_, PortRole::Unused | PortRole::Member) => Service::Down,
                (Admin::Up, PortRole::Host(_) | PortRole::Link(_) | PortRole::Controller | PortRole::Return) => {
                    Service::Up
                }
            };
            let (relay, blocked_floods, part) = (Relay::Forward, port.blocked, LagPart::None);
            ports.push(PortEntry { pvid: port.pvid, service, relay, learning, blocked_floods, part });
            for vlan in port.untagged.iter().chain(port.tagged.iter()) {
                let members = vlans.entry(vlan).or_default();
                match service {
                    Service::Down => {}
                    Service::Up if port.untagged.contains(vlan) => members.untagged.insert(number),
                    Service::Up => members.tagged.insert(number),
                }
            }
        }
        let mut fdb = BTreeMap::new();
        for entry in intent.fdb_entries(topology) {
            if entry.mac.is_multicast() {
                return Err(LabError::Unsupported(format!(
                    "switch {switch}: a static entry for the group address {} (VLAN {}); the lab floods group frames",
                    entry.mac, entry.vlan
                )));
            }
            let number = number_of.get(&entry.port).ok_or_else(|| {
                LabError::Unsupported(format!(
                    "switch {switch}: the static entry for {} in VLAN {} names {}, a port of another switch",
                    entry.mac,
                    entry.vlan,
                    topology.port_label(entry.port)
                ))
            })?;
            fdb.insert((entry.vlan, entry.mac), *number);
        }
        Ok(Self { ports, vlans, fdb, learned: BTreeMap::new(), active: ActiveMembers::default() })
    }

    /// The same tables for a data plane that makes LAGs itself: LAGs and members are known as such, and a member is in
    /// service unless it or its LAG is shut. `intent` is the one that the tables were read from.
    #[must_use]
    pub(crate) fn with_lags(mut self, topology: &Topology, intent: &DeviceIntent) -> Self {
        for (number, port) in intent.ports.iter().enumerate() {
            if topology.port(port.port).lag().is_some() {
                self.ports[number].part = LagPart::Lag;
            }
            let Attachment::Member(lag) = topology.port(port.port).attachment else { continue };
            let Some(at) = intent.ports.iter().position(|port| port.port == lag) else { continue };
            let service = if port.admin == Admin::Up { self.ports[at].service } else { Service::Down };
            (self.ports[number].part, self.ports[number].service) = (LagPart::Member(at as u16), service);
        }
        self
    }

    /// The members of a LAG, ascending; none of another port. Cost: O(ports).
    pub(crate) fn members_of(&self, lag: u16) -> impl Iterator<Item = u16> + '_ {
        (0_u16..).zip(&self.ports).filter(move |(_, port)| port.part == LagPart::Member(lag)).map(|(number, _)| number)
    }
}

impl SwitchTable {
    /// The same tables, of ports that forget what they learn after so many seconds.
    #[must_use]
    pub(crate) fn forgetting_after(mut self, ageing_s: u32) -> Self {
        for port in self.ports.iter_mut().filter(|port| port.learning != Learning::Off) {
            port.learning = Learning::For { ageing_s };
        }
        self
    }

    /// The same ports as they leave the factory: one VLAN for all that have a cable, learning, and not one that spanning
    /// tree has opened yet. LAGs are configured, and are in that VLAN in place of their members.
    #[must_use]
    pub fn factory(planned: &Self) -> Self {
        let port = |planned: &PortEntry| PortEntry {
            pvid: Some(VlanId::MIN),
            service: Service::Up,
            relay: Relay::Block,
            learning: Learning::For { ageing_s: AGEING_S },
            blocked_floods: FloodSet::NONE,
            part: planned.part,
        };
        let mut all = Members::default();
        let numbered = (0_u16..).zip(&planned.ports).filter(|(_, port)| !matches!(port.part, LagPart::Member(_)));
        numbered.for_each(|(number, _)| all.untagged.insert(number));
        Self {
            ports: planned.ports.iter().map(port).collect(),
            vlans: [(VlanId::MIN, all)].into(),
            fdb: BTreeMap::new(),
            learned: BTreeMap::new(),
            active: ActiveMembers::default(),
        }
    }
}

impl SwitchTable {
    /// Adds a port, behind those that people know, by which the switch itself takes part in the management VLAN.
    ///
    /// # Errors
    /// [`LabError::TooLarge`] where no port is left for it.
    pub(crate) fn with_own_port(mut self, vlan: VlanId) -> Result<Self, LabError> {
        let number = self.ports.len();
        if number >= PORTS_MAX {
            return Err(LabError::TooLarge {
                what: "ports of a switch and its own",
                got: number + 1,
                limit: PORTS_MAX,
            });
        }
        self.ports.push(PortEntry::own(vlan));
        self.vlans.entry(vlan).or_default().untagged.insert(number as u16);
        Ok(self)
    }
}

impl PortEntry {
    /// The port by which a switch itself takes part in the management VLAN.
    pub(crate) fn own(vlan: VlanId) -> Self {
        let learning = Learning::For { ageing_s: AGEING_S };
        Self {
            pvid: Some(vlan),
            service: Service::Up,
            relay: Relay::Forward,
            learning,
            blocked_floods: FloodSet::NONE,
            part: LagPart::None,
        }
    }

    /// Whether frames may leave by it.
    pub fn is_open(&self) -> bool {
        self.service == Service::Up && self.relay == Relay::Forward
    }
}

impl Members {
    /// Whether a port is a member, tagged or not.
    pub fn contains(&self, port: u16) -> bool {
        self.tagged.contains(port) || self.untagged.contains(port)
    }

    /// The members, ascending.
    pub fn iter(&self) -> impl Iterator<Item = u16> + use<> {
        let set = *self;
        (0..PORTS_MAX as u16).filter(move |port| set.contains(*port))
    }
}

impl PortSet {
    /// Adds a port.
    ///
    /// # Panics
    /// Unless `port` is below [`PORTS_MAX`].
    pub fn insert(&mut self, port: u16) {
        self.words[usize::from(port) / 64] |= 1 << (port % 64);
    }

    /// Whether a port is in the set.
    pub fn contains(&self, port: u16) -> bool {
        self.words.get(usize::from(port) / 64).is_some_and(|word| word >> (port % 64) & 1 == 1)
    }

    /// Bit `port % 64` of word `port / 64`, as the eBPF switch wants it.
    pub fn words(&self) -> [u64; PORTS_MAX / 64] {
        self.words
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn port_sets_hold_their_bounds() {
        let mut set = PortSet::default();
        set.insert(0);
        set.insert(PORTS_MAX as u16 - 1);
        assert!(set.contains(0) && set.contains(255) && !set.contains(64) && !set.contains(256) && !set.contains(999));
        assert_eq!(set.words(), [1, 0, 0, 1 << 63]);
        let members = Members { tagged: set, ..Members::default() };
        assert_eq!(members.iter().collect::<Vec<_>>(), [0, 255]);
    }
}
