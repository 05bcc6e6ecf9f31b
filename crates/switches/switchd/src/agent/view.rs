//! The configuration and the sensors as a MIB: the value of an instance, and the instance behind another.
//!
//! Objects are kept in the order of their identifiers. A table knows its rows: the next one is a look-up in an ordered
//! map, so a walk costs O(log rows) an instance, however large the table.

use std::{collections::BTreeMap, ops::Bound};

use fabric::VlanId;

use super::{
    config::{Config, Facts, Learning, PortConfig, PortFacts, PortKind},
    responder::EngineClock,
    sensors::{PortSensor, Sensors, bridge_id},
};
use crate::lacp::PortState;
use bridge_mib::{
    BridgePort, Enabled, FdbStatus, IfStatus, LldpChassisSubtype, LldpPortSubtype, PauseMode, PortList, RowStatus,
    StpState, Truth, VlanStatus,
    index::{CurrentVlan, FdbId, FdbRow, IfIndex, Neighbour, PortVlan, StaticRow, Two, VlanIndex},
    objects,
};
use snmp::{Column, Oid, RowIndex, Scalar, Value};

/// Objects in the order in which they are walked.
pub(super) struct Catalogue {
    entries: Vec<Entry>,
}

#[derive(Clone, Copy)]
struct Entry {
    oid: &'static [u32],
    object: Object,
}

/// What an identifier leads to.
#[derive(Clone, Copy)]
pub(super) enum Object {
    /// An object of which there is one.
    Scalar(&'static Scalar),
    /// A column of a table.
    Column(&'static Column, MibTable),
}

/// Tables, by what their rows are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MibTable {
    /// Interfaces, by ifIndex.
    Interface,
    /// Interfaces that lie over others; none on a switch without LAGs.
    Stack,
    /// Bridge ports.
    Port,
    /// Filtering databases.
    Fdb,
    /// Entries of filtering databases.
    FdbEntry,
    /// Static entries.
    Static,
    /// VLANs in force.
    Current,
    /// VLANs as configured.
    Vlan,
    /// Ports and VLANs.
    PortVlan,
    /// Ports as LLDP numbers them.
    LocalPort,
    /// Neighbours.
    Remote,
    /// What the switch is made of: its chassis alone.
    Entity,
}

/// Everything that a MIB's values follow from.
pub(super) struct View<'a> {
    pub(super) facts: &'a Facts,
    pub(super) config: &'a Config,
    pub(super) sensors: &'a Sensors,
    pub(super) engine_id: &'a [u8],
    pub(super) clock: EngineClock,
    pub(super) up_cs: u32,
    pub(super) saved: &'a Config,
    pub(super) deletes: u32,
    pub(super) serial: i32,
    /// Seconds until the switch goes back by itself; 0 if it does not.
    pub(super) guard_s: u32,
    pub(super) room: usize,
}

/// Bits of dot1dDeviceCapabilities: static entries, independent learning, shared learning, hybrid, configurable PVID.
const CAPABLE_STATIC: u8 = 0x20;
const CAPABLE_IVL: u8 = 0x10;
const CAPABLE_SVL: u8 = 0x08;
const CAPABLE_PVID: u8 = 0x02;
/// Bits of dot1dPortCapabilities: tagging, acceptable frame types, ingress filtering.
const PORT_CAPABLE: u8 = 0xe0;
/// ethernetCsmacd.
const IF_TYPE_ETHERNET: i32 = 6;
/// ieee8023adLag.
const IF_TYPE_LAG: i32 = 161;
/// Where the chassis stands in entPhysicalTable, and its class.
const CHASSIS_INDEX: u32 = 1;
const ENTITY_CLASS_CHASSIS: i32 = 3;
/// Layers 1 and 2.
const SERVICES: i32 = 3;
/// LLDP's bit for a bridge, as the most significant bits of an octet string.
const LLDP_BRIDGE: u8 = 0x20;
const LLDP_INTERVAL_S: i32 = 1;
const LLDP_HOLD: i32 = 4;

impl Catalogue {
    /// Every object that the agent has.
    pub(super) fn new() -> Self {
        let scalars = objects::scalars().filter(|scalar| !scalar.oid.starts_with(&[1, 3, 6, 1, 6, 3, 12]));
        let scalars = scalars.filter(|scalar| !scalar.oid.starts_with(&[1, 3, 6, 1, 6, 3, 15]));
        let scalars = scalars.map(|scalar| Entry { oid: scalar.oid, object: Object::Scalar(scalar) });
        let columns = objects::columns()
            .filter_map(|column| Some(Entry { oid: column.oid, object: Object::Column(column, table_of(column)?) }));
        let mut entries: Vec<Entry> = scalars.chain(columns).collect();
        entries.sort_by_key(|entry| entry.oid);
        Self { entries }
    }

    /// The object that an instance belongs to, and what follows its identifier.
    pub(super) fn find<'a>(&self, instance: &'a Oid) -> Option<(Object, &'a [u32])> {
        let at = self.entries.partition_point(|entry| entry.oid <= instance.parts());
        let entry = self.entries[..at].last()?;
        instance.strip_prefix(entry.oid).map(|rest| (entry.object, rest))
    }

    /// The instance behind `asked`, and its value.
    pub(super) fn next(&self, view: &View<'_>, asked: &Oid) -> Option<(Oid, Value)> {
        let at = self.entries.partition_point(|entry| entry.oid <= asked.parts());
        let first = at.saturating_sub(1);
        self.entries[first..].iter().find_map(|entry| {
            let behind: Option<&[u32]> = match asked.strip_prefix(entry.oid) {
                Some(rest) => Some(rest),
                None if entry.oid > asked.parts() => None,
                None => return None,
            };
            view.next_in(entry.object, behind)
        })
    }
}

fn table_of(column: &Column) -> Option<MibTable> {
    let name = column.name;
    let starts = |prefix: &str| name.starts_with(prefix);
    let table = match name {
        // The planes below count what they send, but not of which kind it was.
        "ifHCOutMulticastPkts" | "ifHCOutBroadcastPkts" => return None,
        "dot1dTpFdbAddress" | "dot1dTpFdbPort" | "dot1dTpFdbStatus" => return None,
        "dot1qFdbDynamicCount" => MibTable::Fdb,
        "dot1qTpFdbPort" | "dot1qTpFdbStatus" => MibTable::FdbEntry,
        "dot1qVlanFdbId" | "dot1qVlanStatus" | "dot1qVlanCreationTime" => MibTable::Current,
        "ifStackStatus" => MibTable::Stack,
        _ if starts("if") || starts("dot3") || starts("lldpXdot1dcbx") => MibTable::Interface,
        _ if starts("dot1qStaticUnicast") => MibTable::Static,
        _ if starts("dot1qVlanCurrent") => MibTable::Current,
        _ if starts("dot1qVlan") => MibTable::Vlan,
        _ if starts("dot1qTpVlan") => MibTable::PortVlan,
        _ if starts("lldpLoc") || starts("lldpPortConfig") => MibTable::LocalPort,
        _ if starts("lldpRem") => MibTable::Remote,
        _ if starts("entPhysical") => MibTable::Entity,
        _ => MibTable::Port,
    };
    Some(table)
}

impl View<'_> {
    /// The value of an instance, named by its object and what follows.
    pub(super) fn value(&self, object: Object, rest: &[u32]) -> Option<Value> {
        match object {
            Object::Scalar(scalar) => (rest == [0]).then(|| self.scalar(scalar)).flatten(),
            Object::Column(column, table) => self.cell(column, table, rest),
        }
    }

    fn next_in(&self, object: Object, behind: Option<&[u32]>) -> Option<(Oid, Value)> {
        match object {
            Object::Scalar(scalar) => {
                let first = behind.is_none_or(<[u32]>::is_empty);
                first.then(|| Some((scalar.instance(), self.scalar(scalar)?))).flatten()
            }
            Object::Column(column, table) => {
                let mut after: Vec<u32> = behind.unwrap_or_default().to_vec();
                loop {
                    let row = self.next_row(table, &after)?;
                    if let Some(value) = self.cell(column, table, &row) {
                        return Some((Oid::new(&[column.oid, &row].concat()), value));
                    }
                    after = row;
                }
            }
        }
    }

    /// The index of the row behind.
    fn next_row(&self, table: MibTable, after: &[u32]) -> Option<Vec<u32>> {
        let ports = self.facts.ports.len() as u32;
        match table {
            MibTable::Port | MibTable::LocalPort => {
                let next = first::<BridgePort>(after)?.0.max(1);
                (next <= ports).then(|| vec![next])
            }
            MibTable::Interface => {
                let least = first::<IfIndex>(after)?.0;
                self.facts.ports.iter().map(|port| port.if_index).find(|index| *index >= least).map(|index| vec![index])
            }
            MibTable::Stack => {
                let bound = Two::after(after)?;
                let behind = |row: &Two| match bound {
                    Bound::Included(least) => *row >= least,
                    Bound::Excluded(passed) => *row > passed,
                    Bound::Unbounded => true,
                };
                self.stack().filter(behind).min().map(|row| row.components())
            }
            MibTable::Fdb => {
                let least = first::<FdbId>(after)?.0;
                let of = |vlan: VlanId| self.facts.limits.fdb_of(vlan);
                self.config.active_vlans().map(|(vlan, _)| of(vlan)).find(|fdb| *fdb >= least).map(|fdb| vec![fdb])
            }
            MibTable::FdbEntry => {
                let bound = FdbRow::after(after)?;
                let learned = self.sensors.learned.range((bound, Bound::Unbounded)).next().map(|(row, _)| *row);
                let lowest = |row: FdbRow, receive_port| StaticRow { fdb: row.fdb, mac: row.mac, receive_port };
                let bound = match bound {
                    Bound::Included(row) => Bound::Included(lowest(row, 0)),
                    Bound::Excluded(row) => Bound::Excluded(lowest(row, u32::MAX)),
                    Bound::Unbounded => Bound::Unbounded,
                };
                let fixed = self.config.statics.range((bound, Bound::Unbounded)).next();
                let fixed = fixed.map(|(row, _)| FdbRow { fdb: row.fdb, mac: row.mac });
                learned.into_iter().chain(fixed).min().map(|row| row.components())
            }
            MibTable::Static => next_key(&self.config.statics, after),
            MibTable::Vlan => next_key(&self.config.vlans, after),
            MibTable::Current => {
                let bound = CurrentVlan::after(after)?;
                let rows = self.config.active_vlans().map(|(vlan, _)| CurrentVlan { time_mark: 0, vlan });
                rows.into_iter()
                    .find(|row| match bound {
                        Bound::Included(least) => *row >= least,
                        Bound::Excluded(passed) => *row > passed,
                        Bound::Unbounded => true,
                    })
                    .map(|row| row.components())
            }
            MibTable::PortVlan => next_key(&self.sensors.vlan_frames, after),
            MibTable::Remote => next_key(&self.sensors.neighbours.rows, after),
            MibTable::Entity => (after < &[CHASSIS_INDEX][..]).then(|| vec![CHASSIS_INDEX]),
        }
    }

    fn scalar(&self, scalar: &Scalar) -> Option<Value> {
        let (stp, neighbours) = (&self.sensors.stp, &self.sensors.neighbours);
        let number = |number: u32| Value::Integer(i32::try_from(number).unwrap_or(i32::MAX));
        let value = match scalar.name {
            "sysDescr" | "lldpLocSysDesc" => Value::Octets(self.facts.description.as_bytes().to_vec()),
            "sysObjectID" => Value::Oid(Oid::new(objects::own::PRODUCT.oid)),
            "sysUpTime" => Value::TimeTicks(self.up_cs),
            "sysContact" => Value::Octets(self.config.contact.clone()),
            "sysName" | "lldpLocSysName" => Value::Octets(self.config.name.clone()),
            "sysLocation" => Value::Octets(self.config.location.clone()),
            "sysServices" => Value::Integer(SERVICES),
            "snmpSetSerialNo" => Value::Integer(self.serial),
            "ifNumber" => number(self.facts.ports.len() as u32),
            "dot1dBaseNumPorts" => {
                let ports = 1..=self.facts.ports.len() as u32;
                number(ports.filter(|port| !self.facts.is_member(*port)).count() as u32)
            }
            "dot1dBaseBridgeAddress" | "lldpLocChassisId" => Value::Octets(self.facts.address.octets().to_vec()),
            "dot1dBaseType" => Value::Integer(2),
            "dot1dStpProtocolSpecification" => Value::Integer(3),
            "dot1dStpPriority" => Value::Integer(i32::from(self.config.stp_priority)),
            "dot1dStpTimeSinceTopologyChange" => Value::TimeTicks(self.up_cs.saturating_sub(stp.changed_cs)),
            "dot1dStpTopChanges" => Value::Counter32(stp.changes),
            "dot1dStpDesignatedRoot" => Value::Octets(stp.root.to_vec()),
            "dot1dStpRootCost" => number(stp.root_cost),
            "dot1dStpRootPort" => number(stp.root_port),
            "dot1dStpMaxAge" => number(stp.max_age_cs),
            "dot1dStpHelloTime" => number(stp.hello_cs),
            "dot1dStpHoldTime" => Value::Integer(100),
            "dot1dStpForwardDelay" => number(stp.forward_delay_cs),
            "dot1dTpLearnedEntryDiscards" => Value::Counter32(0),
            "dot1dTpAgingTime" => number(self.config.ageing_s),
            "dot1dDeviceCapabilities" => {
                let learning = match self.facts.limits.learning {
                    Learning::Independent => CAPABLE_IVL,
                    Learning::Shared => CAPABLE_SVL,
                };
                Value::Octets(vec![CAPABLE_STATIC | CAPABLE_PVID | learning])
            }
            "dot1dTrafficClassesEnabled" | "dot1dGmrpStatus" | "dot1qGvrpStatus" => Value::Integer(2),
            "dot1qVlanVersionNumber" => Value::Integer(1),
            "dot1qMaxVlanId" => Value::Integer(i32::from(VlanId::MAX.get())),
            "dot1qMaxSupportedVlans" => Value::Gauge32(self.facts.limits.vlans_max.min(4094) as u32),
            "dot1qNumVlans" => Value::Gauge32(self.config.active_vlans().count() as u32),
            "dot1qVlanNumDeletes" => Value::Counter32(self.deletes),
            "dot1qNextFreeLocalVlanIndex" => Value::Integer(0),
            "dot1qConstraintTypeDefault" => Value::Integer(match self.facts.limits.learning {
                Learning::Independent => 1,
                Learning::Shared => 2,
            }),
            "lldpMessageTxInterval" => Value::Integer(LLDP_INTERVAL_S),
            "lldpMessageTxHoldMultiplier" => Value::Integer(LLDP_HOLD),
            "lldpStatsRemTablesLastChangeTime" => Value::TimeTicks(neighbours.changed_cs),
            "lldpStatsRemTablesInserts" => Value::Gauge32(neighbours.inserts),
            "lldpStatsRemTablesDeletes" => Value::Gauge32(neighbours.deletes),
            "lldpStatsRemTablesDrops" => Value::Gauge32(neighbours.drops),
            "lldpStatsRemTablesAgeouts" => Value::Gauge32(neighbours.ageouts),
            "lldpLocChassisIdSubtype" => Value::Integer(LldpChassisSubtype::Mac.code()),
            "lldpLocSysCapSupported" | "lldpLocSysCapEnabled" => Value::Octets(vec![LLDP_BRIDGE, 0]),
            "snmpEngineID" => Value::Octets(self.engine_id.to_vec()),
            "snmpEngineBoots" => Value::Integer(self.clock.boots),
            "snmpEngineTime" => Value::Integer(self.clock.time_s),
            "snmpEngineMaxMessageSize" => number(self.room as u32),
            "espalierAction" => Value::Integer(0),
            "espalierGuard" => number(self.guard_s),
            "espalierSaved" => {
                let saved = if self.config == self.saved { Truth::True } else { Truth::False };
                Value::Integer(saved.code())
            }
            _ => return None,
        };
        Some(value)
    }

    /// The value in a column of a row; none if there is no such row, or the row has none.
    fn cell(&self, column: &Column, table: MibTable, row: &[u32]) -> Option<Value> {
        let name = column.name;
        match table {
            MibTable::Interface => {
                let index = IfIndex::decode(row)?;
                let at = self.facts.ports.binary_search_by_key(&index.0, |port| port.if_index).ok()?;
                self.interface(name, at)
            }
            MibTable::Stack => {
                let row = Two::decode(row)?;
                self.stack().any(|known| known == row).then(|| Value::Integer(RowStatus::Active.code()))
            }
            MibTable::Port => self.port(name, self.at(row)?),
            MibTable::LocalPort => {
                let at = self.at(row)?;
                let port = Some(&self.facts.ports[at]).filter(|port| port.kind != PortKind::Lag)?;
                Some(match name {
                    "lldpPortConfigAdminStatus" => Value::Integer(self.config.ports[at].lldp.code()),
                    "lldpLocPortIdSubtype" => Value::Integer(LldpPortSubtype::Name.code()),
                    _ => Value::Octets(port.name.as_bytes().to_vec()),
                })
            }
            MibTable::Fdb => {
                let fdb = FdbId::decode(row)?;
                let mut vlans = self.config.active_vlans();
                vlans.find(|(vlan, _)| self.facts.limits.fdb_of(*vlan) == fdb.0)?;
                let count = self.sensors.learned.keys().filter(|row| row.fdb == fdb.0).count();
                Some(Value::Counter32(count as u32))
            }
            MibTable::FdbEntry => {
                let row = FdbRow::decode(row)?;
                let fixed = StaticRow { fdb: row.fdb, mac: row.mac, receive_port: 0 };
                let (port, status) = match (self.config.exit(&fixed), self.sensors.learned.get(&row)) {
                    (Some(port), _) => (port, FdbStatus::Mgmt),
                    (None, learned) => (*learned?, FdbStatus::Learned),
                };
                Some(Value::Integer(if name == "dot1qTpFdbPort" { port as i32 } else { status.code() }))
            }
            MibTable::Static => {
                let entry = self.config.statics.get(&StaticRow::decode(row)?)?;
                Some(match name {
                    "dot1qStaticUnicastAllowedToGoTo" => self.ports(&entry.ports),
                    _ => Value::Integer(entry.status.code()),
                })
            }
            MibTable::Current => {
                let row = CurrentVlan::decode(row)?;
                let vlan = self.config.vlans.get(&VlanIndex(row.vlan)).filter(|_| self.config.is_active(row.vlan))?;
                // A time filter: whoever asks for what has changed since later gets nothing.
                if row.time_mark > vlan.created_cs {
                    return None;
                }
                Some(match name {
                    "dot1qVlanFdbId" => Value::Gauge32(self.facts.limits.fdb_of(row.vlan)),
                    "dot1qVlanCurrentEgressPorts" => self.ports(&vlan.egress),
                    "dot1qVlanCurrentUntaggedPorts" => self.ports(&vlan.untagged),
                    "dot1qVlanStatus" => Value::Integer(VlanStatus::Permanent.code()),
                    _ => Value::TimeTicks(vlan.created_cs),
                })
            }
            MibTable::Vlan => {
                let vlan = self.config.vlans.get(&VlanIndex::decode(row)?)?;
                Some(match name {
                    "dot1qVlanStaticName" => Value::Octets(vlan.name.clone()),
                    "dot1qVlanStaticEgressPorts" => self.ports(&vlan.egress),
                    "dot1qVlanForbiddenEgressPorts" => self.ports(&vlan.forbidden),
                    "dot1qVlanStaticUntaggedPorts" => self.ports(&vlan.untagged),
                    _ => Value::Integer(vlan.status.code()),
                })
            }
            MibTable::PortVlan => {
                let [received, sent] = self.sensors.vlan_frames.get(&PortVlan::decode(row)?)?;
                Some(Value::Counter32(if name == "dot1qTpVlanPortInFrames" { *received } else { *sent } as u32))
            }
            MibTable::Remote => self.remote(name, &Neighbour::decode(row)?),
            MibTable::Entity => (row == [CHASSIS_INDEX]).then(|| self.chassis(name)),
        }
    }

    fn chassis(&self, name: &str) -> Value {
        match name {
            "entPhysicalClass" => Value::Integer(ENTITY_CLASS_CHASSIS),
            "entPhysicalDescr" => Value::Octets(self.facts.description.as_bytes().to_vec()),
            "entPhysicalSerialNum" => {
                let digits = self.facts.address.octets().map(|octet| format!("{octet:02X}")).concat();
                Value::Octets(format!("ESP{digits}").into_bytes())
            }
            _ => Value::Octets(b"chassis".to_vec()),
        }
    }

    fn interface(&self, name: &str, at: usize) -> Option<Value> {
        let (facts, config, sensor) =
            (self.facts.ports.get(at)?, self.config.ports.get(at)?, self.sensors.ports.get(at)?);
        let octets = Value::Octets;
        let is_lag = facts.kind == PortKind::Lag;
        let bits = |state: PortState| octets(vec![state.octet().reverse_bits()]);
        Some(match (name, facts.kind) {
            // PAUSE is the members'.
            _ if is_lag && name.starts_with("dot3") => return None,
            ("dot3adAggPortAttachedAggID", PortKind::Member { lag }) => {
                let attached = sensor.lacp.actor.has(PortState::SYNCHRONIZATION);
                let lag = (lag as usize).checked_sub(1).and_then(|at| self.facts.ports.get(at)).filter(|_| attached);
                Value::Integer(lag.map_or(0, |lag| lag.if_index as i32))
            }
            ("dot3adAggPortActorOperState", PortKind::Member { .. }) => bits(sensor.lacp.actor),
            ("dot3adAggPortPartnerOperState", PortKind::Member { .. }) => bits(sensor.lacp.partner),
            ("ifType", PortKind::Lag) => Value::Integer(IF_TYPE_LAG),
            ("ifConnectorPresent", PortKind::Lag) => Value::Integer(Truth::False.code()),
            (name, _) => self.plain_interface(name, facts, config, sensor)?,
        })
    }

    fn plain_interface(
        &self,
        name: &str,
        facts: &PortFacts,
        config: &PortConfig,
        sensor: &PortSensor,
    ) -> Option<Value> {
        let (counters, octets) = (&sensor.counters, Value::Octets);
        Some(match name {
            "lldpXdot1dcbxLocPFCCap" => match self.facts.limits.pfc_classes {
                0 => return None,
                classes => Value::Gauge32(u32::from(classes)),
            },
            "ifIndex" => Value::Integer(facts.if_index as i32),
            "ifDescr" | "ifName" => octets(facts.name.as_bytes().to_vec()),
            "ifType" => Value::Integer(IF_TYPE_ETHERNET),
            "ifMtu" => Value::Integer(sensor.mtu_bytes as i32),
            "ifSpeed" => Value::Gauge32(u32::try_from(sensor.speed_bps).unwrap_or(u32::MAX)),
            "ifPhysAddress" => octets(facts.mac.octets().to_vec()),
            "ifAdminStatus" => Value::Integer(config.admin.code()),
            "ifOperStatus" => {
                let oper = if config.admin == IfStatus::Down { IfStatus::Down } else { sensor.oper };
                Value::Integer(oper.code())
            }
            "ifLastChange" => Value::TimeTicks(sensor.changed_cs),
            "ifInOctets" => Value::Counter32(counters.in_octets as u32),
            "ifInUcastPkts" => Value::Counter32(counters.in_unicast as u32),
            "ifInDiscards" => Value::Counter32(counters.in_discards as u32),
            "ifInErrors" => Value::Counter32(counters.in_errors as u32),
            "ifOutOctets" => Value::Counter32(counters.out_octets as u32),
            "ifOutUcastPkts" => Value::Counter32(counters.out_frames as u32),
            "ifOutDiscards" => Value::Counter32(counters.out_discards as u32),
            "ifOutErrors" => Value::Counter32(counters.out_errors as u32),
            "ifInBroadcastPkts" => Value::Counter32(counters.in_broadcast as u32),
            "ifHCInOctets" => Value::Counter64(counters.in_octets),
            "ifHCInUcastPkts" => Value::Counter64(counters.in_unicast),
            "ifHCInMulticastPkts" => Value::Counter64(counters.in_multicast),
            "ifHCInBroadcastPkts" => Value::Counter64(counters.in_broadcast),
            "ifHCOutOctets" => Value::Counter64(counters.out_octets),
            "ifHCOutUcastPkts" => Value::Counter64(counters.out_frames),
            "ifHighSpeed" => Value::Gauge32(u32::try_from(sensor.speed_bps.div_ceil(1_000_000)).unwrap_or(u32::MAX)),
            "ifPromiscuousMode" | "ifConnectorPresent" => Value::Integer(Truth::True.code()),
            "ifAlias" => octets(config.alias.clone()),
            "ifCounterDiscontinuityTime" => Value::TimeTicks(0),
            "dot3PauseAdminMode" => Value::Integer(config.pause.code()),
            "dot3PauseOperMode" => {
                let works = sensor.oper == IfStatus::Up && config.admin == IfStatus::Up;
                let mode = sensor.pause.unwrap_or(config.pause);
                Value::Integer(if works { mode } else { PauseMode::Off }.code())
            }
            "dot3InPauseFrames" => Value::Counter32(counters.in_pause as u32),
            "dot3OutPauseFrames" => Value::Counter32(counters.out_pause as u32),
            "dot3HCInPauseFrames" => Value::Counter64(counters.in_pause),
            "dot3HCOutPauseFrames" => Value::Counter64(counters.out_pause),
            _ => return None,
        })
    }

    /// Rows of ifStackTable: what lies over each interface, and under it; 0 is nothing.
    fn stack(&self) -> impl Iterator<Item = Two> + '_ {
        let ports = &self.facts.ports;
        let some = ports.iter().any(|port| port.kind == PortKind::Lag);
        ports.iter().filter(move |_| some).flat_map(move |port| {
            let above = match port.kind {
                PortKind::Member { lag } => ports.get(lag as usize - 1).map_or(0, |lag| lag.if_index),
                PortKind::Own | PortKind::Lag => 0,
            };
            let lowest = port.kind != PortKind::Lag;
            [Some(Two(above, port.if_index)), lowest.then_some(Two(port.if_index, 0))].into_iter().flatten()
        })
    }

    /// A member of a LAG is no bridge port.
    fn port(&self, name: &str, at: usize) -> Option<Value> {
        let facts = self.facts.ports.get(at).filter(|port| !matches!(port.kind, PortKind::Member { .. }))?;
        let (config, sensor) = (self.config.ports.get(at)?, self.sensors.ports.get(at)?);
        let (counters, stp) = (&sensor.counters, &sensor.stp);
        let own = bridge_id(self.config.stp_priority, self.facts.address);
        let governed = config.stp == Enabled::Yes;
        Some(match name {
            "dot1dBasePort" | "dot1dStpPort" | "dot1dTpPort" => Value::Integer(at as i32 + 1),
            "dot1dBasePortIfIndex" => Value::Integer(facts.if_index as i32),
            "dot1dBasePortCircuit" => Value::Oid(Oid::new(&[0, 0])),
            "dot1dBasePortDelayExceededDiscards" | "dot1dBasePortMtuExceededDiscards" => Value::Counter32(0),
            "dot1dStpPortPriority" => Value::Integer(i32::from(config.stp_priority)),
            "dot1dStpPortState" => {
                let state = if governed { stp.state } else { StpState::Disabled };
                Value::Integer(state.code())
            }
            "dot1dStpPortEnable" => Value::Integer(config.stp.code()),
            "dot1dStpPortPathCost" => Value::Integer(config.stp_cost.unwrap_or(stp.cost).max(1) as i32),
            "dot1dStpPortDesignatedRoot" => Value::Octets(if governed { stp.designated_root } else { own }.to_vec()),
            "dot1dStpPortDesignatedCost" => Value::Integer(stp.designated_cost as i32),
            "dot1dStpPortDesignatedBridge" => {
                Value::Octets(if governed { stp.designated_bridge } else { own }.to_vec())
            }
            "dot1dStpPortDesignatedPort" => Value::Octets(stp.designated_port.to_vec()),
            "dot1dStpPortForwardTransitions" => Value::Counter32(stp.forward_transitions),
            "dot1dTpPortMaxInfo" => Value::Integer(sensor.mtu_bytes as i32),
            "dot1dTpPortInFrames" => Value::Counter32(counters.in_frames() as u32),
            "dot1dTpPortOutFrames" => Value::Counter32(counters.out_frames as u32),
            "dot1dTpPortInDiscards" => Value::Counter32(counters.in_discards as u32),
            "dot1dPortCapabilities" => Value::Octets(vec![PORT_CAPABLE]),
            "dot1qPvid" => Value::Gauge32(u32::from(config.pvid.get())),
            "dot1qPortAcceptableFrameTypes" => Value::Integer(config.frames.code()),
            "dot1qPortIngressFiltering" => Value::Integer(Truth::True.code()),
            "dot1qPortGvrpStatus" => Value::Integer(Enabled::No.code()),
            _ => return None,
        })
    }

    fn remote(&self, name: &str, row: &Neighbour) -> Option<Value> {
        let info = self.sensors.neighbours.rows.get(row)?;
        // LLDP counts bits from the least significant, BITS from the most significant.
        let bits = |word: u16| Value::Octets(word.reverse_bits().to_be_bytes().to_vec());
        Some(match name {
            "lldpRemChassisIdSubtype" => Value::Integer(info.chassis_subtype.code()),
            "lldpRemChassisId" => Value::Octets(info.chassis_id.clone()),
            "lldpRemPortIdSubtype" => Value::Integer(info.port_subtype.code()),
            "lldpRemPortId" => Value::Octets(info.port_id.clone()),
            "lldpRemPortDesc" => Value::Octets(info.port_description.clone()),
            "lldpRemSysName" => Value::Octets(info.system_name.clone()),
            "lldpRemSysDesc" => Value::Octets(info.system_description.clone()),
            "lldpRemSysCapSupported" => bits(info.capabilities),
            "lldpRemSysCapEnabled" => bits(info.capabilities_enabled),
            _ => return None,
        })
    }

    fn at(&self, row: &[u32]) -> Option<usize> {
        let at = (BridgePort::decode(row)?.0 as usize).checked_sub(1)?;
        (at < self.facts.ports.len()).then_some(at)
    }

    fn ports(&self, list: &PortList) -> Value {
        Value::Octets(list.encode(PortList::octets_for(self.facts.ports.len())))
    }
}

/// The least index that may come after.
fn first<I: RowIndex + Successor>(after: &[u32]) -> Option<I> {
    match I::after(after)? {
        Bound::Included(index) => Some(index),
        Bound::Excluded(index) => index.successor(),
        Bound::Unbounded => None,
    }
}

/// Indices of one number have a next one.
trait Successor: Sized {
    fn successor(self) -> Option<Self>;
}

impl Successor for BridgePort {
    fn successor(self) -> Option<Self> {
        self.0.checked_add(1).map(Self)
    }
}

impl Successor for IfIndex {
    fn successor(self) -> Option<Self> {
        self.0.checked_add(1).map(Self)
    }
}

impl Successor for FdbId {
    fn successor(self) -> Option<Self> {
        self.0.checked_add(1).map(Self)
    }
}

fn next_key<I: RowIndex, T>(rows: &BTreeMap<I, T>, after: &[u32]) -> Option<Vec<u32>> {
    let bound = I::after(after)?;
    rows.range((bound, Bound::Unbounded)).next().map(|(row, _)| row.components())
}
