//! What a switch is, and what it holds before anything is written.

use std::collections::{BTreeMap, BTreeSet};

use fabric::{Mac, VlanId};

use super::{EnrolError, session::ProbeSession};
use bridge_mib::{
    BridgePort, IfStatus, ListForm, PortList, StaticStatus,
    index::{FdbId, IfIndex, StaticRow, VlanIndex},
    objects::{bridge, dcbx, ether_like, if_mib, q_bridge, system},
};
use drivers::snmp::{PortKind, PortTable, VlanMib};
use snmp::{Column, Link, SessionError, Value};
use switch_model::driver::Fault;

/// Classes of priority flow control that the standard has.
const PFC_CLASSES_MAX: u8 = 8;

/// Most learned addresses that are believed: no switch has room for more.
const LEARNED_MAX: u64 = 10_000_000;

/// What a switch says that it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// sysDescr.
    pub description: String,
    /// sysObjectID, as dotted numbers.
    pub object_id: Option<String>,
    /// sysName.
    pub name: String,
    /// The bridge's own address.
    pub address: Option<Mac>,
    /// Its ports, by bridge port.
    pub ports: Vec<PortFact>,
    /// How many VLANs it says it has room for.
    pub vlans_stated: Option<u32>,
    /// The highest VLAN id that it says it takes.
    pub vlan_id_max: Option<u32>,
    /// How many classes with priority flow control it says it has, at the port that has fewest.
    pub pfc_classes: Option<u8>,
    /// How many addresses it has learned.
    pub learned: u32,
    /// How often it had no room for one, since it started.
    pub learned_discards: u32,
}

/// What a switch says of a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortFact {
    /// ifName, or else ifDescr, or else its number.
    pub name: String,
    /// The number of the bridge port.
    pub bridge: u32,
    /// ifIndex.
    pub interface: u32,
    /// Whether it has a link.
    pub running: bool,
    /// What it is for.
    pub kind: PortKind,
}

/// What a switch holds, as far as a probe might change it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Holding {
    pub(super) names: BTreeMap<VlanId, String>,
    /// Members and untagged members.
    pub(super) vlans: BTreeMap<VlanId, (PortList, PortList)>,
    /// By bridge port.
    pub(super) pvids: BTreeMap<u32, u32>,
    pub(super) statics: BTreeMap<StaticRow, PortList>,
    /// By ifIndex.
    pub(super) pause: BTreeMap<u32, i32>,
}

pub(super) fn identify<L: Link>(session: &mut ProbeSession<L>) -> Result<Identity, EnrolError> {
    let scalars = [
        system::DESCR,
        system::OBJECT_ID,
        system::NAME,
        bridge::BRIDGE_ADDRESS,
        q_bridge::MAX_SUPPORTED_VLANS,
        q_bridge::MAX_VLAN_ID,
        bridge::TP_LEARNED_ENTRY_DISCARDS,
    ];
    let values = session.get(&scalars.map(|scalar| scalar.instance()))?;
    let table = session.reader().ports()?;
    if table.ports.is_empty() {
        return Err(EnrolError::NoBridge);
    }
    refuse_what_is_not_written(session, &table)?;
    let states: BTreeMap<IfIndex, Value> = session.optional(&if_mib::OPER_STATUS)?.into_iter().collect();
    let ports = table.ports.iter().map(|port| {
        // What is not known to be without a link may have one.
        let idle = [IfStatus::Down, IfStatus::NotPresent, IfStatus::LowerLayerDown].map(|status| status.code());
        let state = states.get(&IfIndex(port.interface)).and_then(Value::int);
        PortFact {
            name: port.name.clone(),
            bridge: port.bridge.0,
            interface: port.interface,
            running: !state.is_some_and(|state| idle.contains(&state)),
            kind: port.kind,
        }
    });
    let ports: Vec<PortFact> = ports.collect();
    let caps: BTreeMap<IfIndex, Value> = session.optional(&dcbx::LOC_PFC_CAP)?.into_iter().collect();
    let cap_of = |port: &PortFact| caps.get(&IfIndex(port.interface)).and_then(Value::unsigned).unwrap_or(0);
    let classes = ports.iter().map(cap_of).min().filter(|_| !caps.is_empty());
    let counts = session.optional::<FdbId>(&q_bridge::FDB_DYNAMIC_COUNT)?;
    Ok(Identity {
        description: text(&values[0]),
        object_id: match &values[1] {
            Value::Oid(oid) => Some(oid.to_string()),
            _ => None,
        },
        name: text(&values[2]),
        address: values[3].octets().and_then(|octets| Some(Mac::new(octets.try_into().ok()?))),
        ports,
        vlans_stated: values[4].unsigned().filter(|vlans| *vlans > 0),
        vlan_id_max: values[5].unsigned().filter(|id| *id > 1),
        pfc_classes: classes.map(|classes| classes.min(u32::from(PFC_CLASSES_MAX)) as u8),
        learned: counts.iter().filter_map(|(_, value)| value.count()).fold(0, u64::saturating_add).min(LEARNED_MAX)
            as u32,
        learned_discards: values[6].count().map_or(0, |count| u32::try_from(count).unwrap_or(u32::MAX)),
    })
}

/// Refuses a switch whose VLANs can be read at best.
fn refuse_what_is_not_written<L: Link>(session: &mut ProbeSession<L>, table: &PortTable) -> Result<(), EnrolError> {
    let unwritable = |fault: Fault| EnrolError::Unwritable(fault.to_string());
    let tables = session.reader().vlans(&table.numbers()).map_err(unwritable)?;
    match (tables.mib, tables.form) {
        (VlanMib::QBridge, ListForm::Bits) => Ok(()),
        (VlanMib::Ieee, _) => Err(EnrolError::Unwritable("its VLANs stand in IEEE8021-Q-BRIDGE-MIB alone".to_owned())),
        (VlanMib::QBridge, ListForm::Decimals) => {
            Err(EnrolError::Unwritable("its lists of ports (PortList) are decimal numbers".to_owned()))
        }
    }
}

pub(super) fn hold<L: Link>(session: &mut ProbeSession<L>) -> Result<Holding, SessionError> {
    let mut holding = Holding::default();
    for (VlanIndex(vlan), name) in session.optional(&q_bridge::VLAN_STATIC_NAME)? {
        holding.names.insert(vlan, text(&name));
    }
    for (VlanIndex(vlan), value) in session.walk(&q_bridge::VLAN_STATIC_EGRESS_PORTS)? {
        holding.vlans.insert(vlan, (list(&q_bridge::VLAN_STATIC_EGRESS_PORTS, &value)?, PortList::new()));
    }
    for (VlanIndex(vlan), value) in session.walk(&q_bridge::VLAN_STATIC_UNTAGGED_PORTS)? {
        if let Some((_, untagged)) = holding.vlans.get_mut(&vlan) {
            *untagged = list(&q_bridge::VLAN_STATIC_UNTAGGED_PORTS, &value)?;
        }
    }
    for (BridgePort(port), value) in session.walk(&q_bridge::PVID)? {
        holding.pvids.extend(value.unsigned().map(|pvid| (port, pvid)));
    }
    let alive: BTreeSet<StaticRow> = (session.optional::<StaticRow>(&q_bridge::STATIC_UNICAST_STATUS)?.into_iter())
        .filter(|(_, value)| value.int() != Some(StaticStatus::Invalid.code()))
        .map(|(row, _)| row)
        .collect();
    for (row, value) in session.optional(&q_bridge::STATIC_UNICAST_ALLOWED_TO_GO_TO)? {
        if alive.contains(&row) {
            holding.statics.insert(row, list(&q_bridge::STATIC_UNICAST_ALLOWED_TO_GO_TO, &value)?);
        }
    }
    for (IfIndex(index), value) in session.optional(&ether_like::PAUSE_ADMIN_MODE)? {
        holding.pause.extend(value.int().map(|mode| (index, mode)));
    }
    Ok(holding)
}

/// A list of ports. What is none is no empty one: whoever cleans up would write it back.
fn list(column: &Column, value: &Value) -> Result<PortList, SessionError> {
    let list = value.octets().and_then(|octets| PortList::decode(octets).ok());
    list.ok_or_else(|| SessionError::Nonsense(format!("{} is no list of ports", column.name)))
}

pub(super) fn text(value: &Value) -> String {
    let octets = value.octets().unwrap_or_default();
    String::from_utf8_lossy(octets).trim_end_matches('\0').trim().to_owned()
}
