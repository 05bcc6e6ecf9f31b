//! Rows by their index: what stands behind a column's identifier, as a type for every table.
//!
//! ```text
//! dot1qStaticUnicastStatus . 5 . 2.0.0.0.0.7 . 0      FDB 5, 02:00:00:00:00:07, from any port
//! ```
//!
use fabric::{Mac, VlanId};

use snmp::RowIndex;

const ANY: (u32, u32) = (0, u32::MAX);
const OCTET: (u32, u32) = (0, 255);
const VID: (u32, u32) = (1, 4094);
/// dot1dBasePort: 1 to 65,535 by RFC 4188, from 0 or beyond on some switches.
const PORT: (u32, u32) = ANY;

/// A port of a bridge, as BRIDGE-MIB numbers it: from 1, but on some switches from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct BridgePort(pub u32);

/// A port by the number that IF-MIB gives it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct IfIndex(pub u32);

/// lldpLocPortNum: a bridge port on some switches, an ifIndex on others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LldpPort(pub u32);

/// dot1qVlanIndex.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct VlanIndex(pub VlanId);

/// A VLAN as it is in force: when it last changed, and which it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CurrentVlan {
    /// dot1qVlanTimeMark.
    pub time_mark: u32,
    /// dot1qVlanIndex.
    pub vlan: VlanId,
}

/// A filtering database.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FdbId(pub u32);

/// A row of dot1qTpFdbTable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FdbRow {
    /// dot1qFdbId.
    pub fdb: u32,
    /// dot1qTpFdbAddress.
    pub mac: Mac,
}

/// A row of dot1qStaticUnicastTable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct StaticRow {
    /// dot1qFdbId.
    pub fdb: u32,
    /// dot1qStaticUnicastAddress.
    pub mac: Mac,
    /// dot1qStaticUnicastReceivePort; 0 is any.
    pub receive_port: u32,
}

/// A row of dot1dTpFdbTable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct MacRow(pub Mac);

/// A row of dot1qPortVlanStatisticsTable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PortVlan {
    /// dot1dBasePort.
    pub port: u32,
    /// dot1qVlanIndex.
    pub vlan: VlanId,
}

/// A row of lldpRemTable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Neighbour {
    /// lldpRemTimeMark.
    pub time_mark: u32,
    /// lldpRemLocalPortNum.
    pub local_port: u32,
    /// lldpRemIndex.
    pub index: u32,
}

/// A row of lldpV2RemTable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct NeighbourV2 {
    /// lldpV2RemTimeMark.
    pub time_mark: u32,
    /// lldpV2RemLocalIfIndex.
    pub interface: u32,
    /// lldpV2RemLocalDestMACAddress: a row of the table of destination addresses.
    pub destination: u32,
    /// lldpV2RemIndex.
    pub index: u32,
}

/// A VLAN of a bridge component (IEEE8021-Q-BRIDGE-MIB).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ComponentVlan {
    /// ieee8021QBridgeVlanStaticComponentId.
    pub component: u32,
    /// ieee8021QBridgeVlanStaticVlanIndex.
    pub vlan: VlanId,
}

/// A port of a bridge component (IEEE8021-BRIDGE-MIB).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ComponentPort {
    /// ieee8021BridgeBasePortComponentId.
    pub component: u32,
    /// ieee8021BridgeBasePort.
    pub port: u32,
}

/// A row of ifStackTable, or of a table of VLANs by domain: two numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Two(pub u32, pub u32);

macro_rules! single {
    ($name:ident, $range:expr) => {
        impl RowIndex for $name {
            const RANGES: &'static [(u32, u32)] = &[$range];

            fn components(&self) -> Vec<u32> {
                vec![self.0]
            }

            fn of(components: &[u32]) -> Self {
                Self(components[0])
            }
        }
    };
}

single!(BridgePort, PORT);
single!(IfIndex, ANY);
single!(LldpPort, ANY);
single!(FdbId, ANY);

impl RowIndex for VlanIndex {
    const RANGES: &'static [(u32, u32)] = &[VID];

    fn components(&self) -> Vec<u32> {
        vec![u32::from(self.0.get())]
    }

    fn of(components: &[u32]) -> Self {
        Self(vlan(components[0]))
    }
}

impl RowIndex for CurrentVlan {
    const RANGES: &'static [(u32, u32)] = &[ANY, VID];

    fn components(&self) -> Vec<u32> {
        vec![self.time_mark, u32::from(self.vlan.get())]
    }

    fn of(components: &[u32]) -> Self {
        Self { time_mark: components[0], vlan: vlan(components[1]) }
    }
}

impl RowIndex for FdbRow {
    const RANGES: &'static [(u32, u32)] = &[ANY, OCTET, OCTET, OCTET, OCTET, OCTET, OCTET];

    fn components(&self) -> Vec<u32> {
        std::iter::once(self.fdb).chain(octets(self.mac)).collect()
    }

    fn of(components: &[u32]) -> Self {
        Self { fdb: components[0], mac: mac(&components[1..]) }
    }
}

impl RowIndex for StaticRow {
    const RANGES: &'static [(u32, u32)] = &[ANY, OCTET, OCTET, OCTET, OCTET, OCTET, OCTET, ANY];

    fn components(&self) -> Vec<u32> {
        std::iter::once(self.fdb).chain(octets(self.mac)).chain([self.receive_port]).collect()
    }

    fn of(components: &[u32]) -> Self {
        Self { fdb: components[0], mac: mac(&components[1..7]), receive_port: components[7] }
    }
}

impl RowIndex for MacRow {
    const RANGES: &'static [(u32, u32)] = &[OCTET, OCTET, OCTET, OCTET, OCTET, OCTET];

    fn components(&self) -> Vec<u32> {
        octets(self.0).collect()
    }

    fn of(components: &[u32]) -> Self {
        Self(mac(components))
    }
}

impl RowIndex for PortVlan {
    const RANGES: &'static [(u32, u32)] = &[PORT, VID];

    fn components(&self) -> Vec<u32> {
        vec![self.port, u32::from(self.vlan.get())]
    }

    fn of(components: &[u32]) -> Self {
        Self { port: components[0], vlan: vlan(components[1]) }
    }
}

impl RowIndex for Neighbour {
    const RANGES: &'static [(u32, u32)] = &[ANY, ANY, ANY];

    fn components(&self) -> Vec<u32> {
        vec![self.time_mark, self.local_port, self.index]
    }

    fn of(components: &[u32]) -> Self {
        Self { time_mark: components[0], local_port: components[1], index: components[2] }
    }
}

impl RowIndex for NeighbourV2 {
    const RANGES: &'static [(u32, u32)] = &[ANY, ANY, ANY, ANY];

    fn components(&self) -> Vec<u32> {
        vec![self.time_mark, self.interface, self.destination, self.index]
    }

    fn of(components: &[u32]) -> Self {
        let [time_mark, interface, destination, index] = [0, 1, 2, 3].map(|at| components[at]);
        Self { time_mark, interface, destination, index }
    }
}

impl RowIndex for ComponentVlan {
    const RANGES: &'static [(u32, u32)] = &[ANY, VID];

    fn components(&self) -> Vec<u32> {
        vec![self.component, u32::from(self.vlan.get())]
    }

    fn of(components: &[u32]) -> Self {
        Self { component: components[0], vlan: vlan(components[1]) }
    }
}

impl RowIndex for ComponentPort {
    const RANGES: &'static [(u32, u32)] = &[ANY, ANY];

    fn components(&self) -> Vec<u32> {
        vec![self.component, self.port]
    }

    fn of(components: &[u32]) -> Self {
        Self { component: components[0], port: components[1] }
    }
}

impl RowIndex for Two {
    const RANGES: &'static [(u32, u32)] = &[ANY, ANY];

    fn components(&self) -> Vec<u32> {
        vec![self.0, self.1]
    }

    fn of(components: &[u32]) -> Self {
        Self(components[0], components[1])
    }
}

fn vlan(component: u32) -> VlanId {
    u16::try_from(component).ok().and_then(|id| VlanId::new(id).ok()).expect("the range is that of VLAN ids")
}

fn mac(components: &[u32]) -> Mac {
    Mac::new(std::array::from_fn(|octet| components[octet] as u8))
}

fn octets(mac: Mac) -> impl Iterator<Item = u32> {
    mac.octets().into_iter().map(u32::from)
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeSet, ops::Bound};

    use proptest::prelude::*;

    use super::*;

    /// Every index decodes to itself, and `after` finds what brute force finds.
    fn judge<I: RowIndex + std::fmt::Debug>(rows: &[Vec<u32>], asked: &[u32]) -> Result<(), TestCaseError> {
        let rows: BTreeSet<I> = rows.iter().filter_map(|parts| I::decode(parts)).collect();
        for row in &rows {
            prop_assert_eq!(I::decode(&row.components()), Some(*row));
        }
        let found = I::after(asked).and_then(|bound| rows.range((bound, Bound::Unbounded)).next().copied());
        let expected = rows.iter().find(|row| row.components().as_slice() > asked).copied();
        prop_assert_eq!(found, expected);
        Ok(())
    }

    /// Few distinct numbers, so that prefixes meet, and the bounds of every range.
    fn part() -> impl Strategy<Value = u32> {
        prop_oneof![0_u32..3, 254_u32..257, 4093_u32..4096, 65_534_u32..65_537, Just(u32::MAX)]
    }

    fn parts(len: usize) -> impl Strategy<Value = Vec<u32>> {
        prop::collection::vec(part(), len)
    }

    proptest! {
        #[test]
        fn walks_find_the_next_row(
            one in prop::collection::vec(parts(1), 0..12),
            two in prop::collection::vec(parts(2), 0..12),
            three in prop::collection::vec(parts(3), 0..12),
            six in prop::collection::vec(parts(6), 0..12),
            seven in prop::collection::vec(parts(7), 0..12),
            eight in prop::collection::vec(parts(8), 0..12),
            asked in prop::collection::vec(part(), 0..11),
        ) {
            judge::<BridgePort>(&one, &asked)?;
            judge::<IfIndex>(&one, &asked)?;
            judge::<FdbId>(&one, &asked)?;
            judge::<VlanIndex>(&one, &asked)?;
            judge::<CurrentVlan>(&two, &asked)?;
            judge::<PortVlan>(&two, &asked)?;
            judge::<Neighbour>(&three, &asked)?;
            judge::<MacRow>(&six, &asked)?;
            judge::<FdbRow>(&seven, &asked)?;
            judge::<StaticRow>(&eight, &asked)?;
        }
    }

    #[test]
    fn an_index_out_of_range_is_none() {
        assert_eq!(VlanIndex::decode(&[0]), None);
        assert_eq!(VlanIndex::decode(&[4095]), None);
        assert_eq!(VlanIndex::decode(&[1, 1]), None);
        assert_eq!(FdbRow::decode(&[1, 2, 0, 0, 0, 0, 256]), None);
        assert_eq!(FdbRow::decode(&[]), None);
    }
}
