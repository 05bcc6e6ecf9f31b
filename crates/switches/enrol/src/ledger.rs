//! The ledger: all that a probe may touch, and how it was before. It is kept before the first write, so that whatever
//! happens somebody else can clean up.

use std::collections::BTreeMap;

use fabric::{Mac, VlanId, VlanSet};

use super::survey::Holding;
use bridge_mib::{PortList, index::StaticRow};

/// All that a probe may touch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ledger {
    /// Drawn anew by every probe: names its VLANs and its addresses.
    pub nonce: u32,
    /// Whether VLANs bear the names that they are given.
    pub names: Names,
    /// VLANs that it may make; none of them was there.
    pub vlans: VlanSet,
    /// Bridge ports that it puts into them.
    pub ports: Vec<u32>,
    /// The PVID that each of these ports had.
    pub pvids: BTreeMap<u32, u32>,
    /// The PAUSE mode that each had, by ifIndex.
    pub pause: BTreeMap<u32, i32>,
    /// Of every VLAN that was there: which of these ports were members, and untagged members.
    pub members: BTreeMap<VlanId, (PortList, PortList)>,
    /// Octets of the PortLists that the switch itself writes.
    pub list_len: usize,
}

/// Whether a switch keeps VLANs' names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Names {
    /// Nobody has looked yet.
    Unknown,
    /// It does, so that VLANs of other names are somebody else's.
    Kept,
    /// It does not.
    Dropped,
}

impl Names {
    /// Every answer.
    pub const ALL: [Self; 3] = [Self::Unknown, Self::Kept, Self::Dropped];

    /// The word for it.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Unknown => "unknown",
            Self::Kept => "kept",
            Self::Dropped => "dropped",
        }
    }
}

impl Ledger {
    pub(super) fn new(
        nonce: u32,
        vlans: VlanSet,
        ports: &[super::PortFact],
        before: &Holding,
        list_len: usize,
    ) -> Self {
        let numbers: Vec<u32> = ports.iter().map(|port| port.bridge).collect();
        let own = |list: &PortList| restrict(list, &numbers);
        let of = |port: &u32| Some((*port, *before.pvids.get(port)?));
        let pause = ports.iter().filter_map(|port| Some((port.interface, *before.pause.get(&port.interface)?)));
        Self {
            nonce,
            names: Names::Unknown,
            vlans,
            pvids: numbers.iter().filter_map(of).collect(),
            pause: pause.collect(),
            members: before.vlans.iter().map(|(vlan, (all, untagged))| (*vlan, (own(all), own(untagged)))).collect(),
            ports: numbers,
            list_len,
        }
    }

    /// What its VLANs are called.
    pub fn name(&self) -> String {
        format!("espalier-probe-{:08x}", self.nonce)
    }

    /// One of its addresses: locally administered, and of nobody else.
    ///
    /// # Panics
    /// From 65,536 on.
    pub(super) fn mac(&self, number: usize) -> Mac {
        let [_, a, b, c] = self.nonce.to_be_bytes();
        let [high, low] = u16::try_from(number).expect("addresses are bounded").to_be_bytes();
        Mac::new([MAC_FIRST, a, b, c, high, low])
    }

    /// Whether an entry is for one of its addresses.
    pub(super) fn owns(&self, row: &StaticRow) -> bool {
        self.mac(0).octets()[..4] == row.mac.octets()[..4]
    }
}

/// The local bit, and one more that few use.
const MAC_FIRST: u8 = 0x06;

/// Those of a list's ports that are among `ports`.
pub(super) fn restrict(list: &PortList, ports: &[u32]) -> PortList {
    PortList::of(list.iter().filter(|port| ports.contains(port))).unwrap_or_default()
}
