//! What a switch says of itself and its neighbours: BRIDGE-MIB's ports, LLDP-MIB's tables, learned addresses.
//!
//! `lldpLocPortNum` is the number of a bridge port on some switches and an ifIndex on others, so a port is first looked for
//! by what LLDP calls it, then by either number.

use std::collections::BTreeMap;

use fabric::Mac;

use super::{BulkSize, Link, PORTS_MAX, Session, SessionError, walk};
use crate::{
    discover::{Heard, LldpId, Station, StationPort},
    mib::{
        BridgePort, Column, RowIndex, Value,
        index::{FdbRow, IfIndex, MacRow, Neighbour},
        objects::{bridge, if_mib, lldp, q_bridge, system},
    },
    text::told,
};

/// Reads what a switch says. `name` is what it is called here; its sysName, if that is none.
///
/// # Errors
/// [`SessionError`].
pub fn read_station<L: Link>(session: &mut Session<L>, name: Option<&str>) -> Result<Station, SessionError> {
    let (mut station, interfaces) = read_neighbours(session, name)?;
    station.learned = Reader { session, bulk: BulkSize::default() }.learned(&interfaces)?;
    Ok(station)
}

/// Reads the same but for learned addresses, which are many and tell nothing of cables; also the numbers of the station's
/// ports, in its order.
///
/// # Errors
/// [`SessionError`].
pub(super) fn read_neighbours<L: Link>(
    session: &mut Session<L>,
    name: Option<&str>,
) -> Result<(Station, Vec<(BridgePort, u32)>), SessionError> {
    let mut reader = Reader { session, bulk: BulkSize::default() };
    let scalars = [system::NAME, lldp::LOC_CHASSIS_ID_SUBTYPE, lldp::LOC_CHASSIS_ID, bridge::BRIDGE_ADDRESS];
    let values = reader.session.get(&scalars.map(|scalar| scalar.instance()))?;
    let system = values[0].octets().map(told).unwrap_or_default();
    let chassis = match (values[1].int(), values[2].octets()) {
        (Some(subtype), Some(octets)) => Some(LldpId { subtype, octets: octets.to_vec() }),
        _ => None,
    };
    let interfaces: Vec<(BridgePort, u32)> = (reader.walk::<BridgePort>(&bridge::PORT_IF_INDEX)?.into_iter())
        .filter_map(|(port, value)| Some((port, value.unsigned()?)))
        .collect();
    if interfaces.len() > PORTS_MAX {
        return Err(SessionError::Nonsense(format!("it says that it has {} ports", interfaces.len())));
    }
    let names = reader.texts(&if_mib::NAME)?;
    let descriptions = reader.texts(&if_mib::DESCR)?;
    let aliases = reader.texts(&if_mib::ALIAS)?;
    let addresses: BTreeMap<u32, Mac> = (reader.walk::<IfIndex>(&if_mib::PHYS_ADDRESS)?.into_iter())
        .filter_map(|(index, value)| Some((index.0, Mac::new(value.octets()?.try_into().ok()?))))
        .collect();
    let mut ports: Vec<StationPort> = (interfaces.iter())
        .map(|(port, index)| {
            let label = |texts: &BTreeMap<u32, String>| texts.get(index).filter(|text| !text.is_empty()).cloned();
            StationPort {
                name: label(&names).or_else(|| label(&descriptions)).unwrap_or_else(|| port.0.to_string()),
                id: None,
                labels: [label(&descriptions), label(&aliases)].into_iter().flatten().collect(),
                mac: addresses.get(index).copied(),
            }
        })
        .collect();
    let local = reader.local_ports(&interfaces, &mut ports)?;
    let heard = reader.neighbours(&local)?;
    let name = name.map_or_else(|| system.clone(), str::to_owned);
    Ok((Station { name, chassis, system, ports, heard, learned: Vec::new() }, interfaces))
}

struct Reader<'a, L> {
    session: &'a mut Session<L>,
    bulk: BulkSize,
}

impl<L: Link> Reader<'_, L> {
    fn walk<I: RowIndex>(&mut self, column: &Column) -> Result<Vec<(I, Value)>, SessionError> {
        walk(self.session, &mut self.bulk, column)
    }

    fn texts(&mut self, column: &Column) -> Result<BTreeMap<u32, String>, SessionError> {
        let rows = self.walk::<IfIndex>(column)?;
        Ok(rows.into_iter().filter_map(|(index, value)| Some((index.0, told(value.octets()?)))).collect())
    }

    /// The position of the port behind each of LLDP's numbers, whose names the ports are given.
    fn local_ports(
        &mut self,
        interfaces: &[(BridgePort, u32)],
        ports: &mut [StationPort],
    ) -> Result<BTreeMap<u32, usize>, SessionError> {
        let subtypes: BTreeMap<BridgePort, Value> = self.walk(&lldp::LOC_PORT_ID_SUBTYPE)?.into_iter().collect();
        let described: BTreeMap<BridgePort, Value> = self.walk(&lldp::LOC_PORT_DESC)?.into_iter().collect();
        let mut local = BTreeMap::new();
        let rows = self.walk::<BridgePort>(&lldp::LOC_PORT_ID)?;
        if rows.len() > PORTS_MAX {
            return Err(SessionError::Nonsense(format!("LLDP says that it has {} ports", rows.len())));
        }
        for (number, value) in rows {
            let (Some(octets), Some(subtype)) = (value.octets(), subtypes.get(&number).and_then(Value::int)) else {
                continue;
            };
            let description = described.get(&number).and_then(Value::octets).map(told).unwrap_or_default();
            let called = |wanted: &str| {
                let fits = |port: &StationPort| port.name == wanted || port.labels.iter().any(|label| label == wanted);
                ports.iter().position(fits).filter(|_| !wanted.is_empty())
            };
            let numbered = |fits: &dyn Fn(&(BridgePort, u32)) -> bool| interfaces.iter().position(fits);
            let at = called(&told(octets))
                .or_else(|| called(&description))
                .or_else(|| numbered(&|(port, _)| port.0 == number.0))
                .or_else(|| numbered(&|(_, index)| *index == number.0));
            if let Some(at) = at {
                ports[at].id = Some(LldpId { subtype, octets: octets.to_vec() });
                local.insert(number.0, at);
            }
        }
        Ok(local)
    }

    fn neighbours(&mut self, local: &BTreeMap<u32, usize>) -> Result<Vec<Heard>, SessionError> {
        let chassis: BTreeMap<Neighbour, Value> = self.walk(&lldp::REM_CHASSIS_ID)?.into_iter().collect();
        let chassis_subtypes: BTreeMap<Neighbour, Value> =
            self.walk(&lldp::REM_CHASSIS_ID_SUBTYPE)?.into_iter().collect();
        let port_subtypes: BTreeMap<Neighbour, Value> = self.walk(&lldp::REM_PORT_ID_SUBTYPE)?.into_iter().collect();
        let descriptions: BTreeMap<Neighbour, Value> = self.walk(&lldp::REM_PORT_DESC)?.into_iter().collect();
        let systems: BTreeMap<Neighbour, Value> = self.walk(&lldp::REM_SYS_NAME)?.into_iter().collect();
        let mut heard = Vec::new();
        for (row, value) in self.walk::<Neighbour>(&lldp::REM_PORT_ID)? {
            let id = |subtype: Option<&Value>, name: Option<&Value>| {
                Some(LldpId { subtype: subtype?.int()?, octets: name?.octets()?.to_vec() })
            };
            let words =
                |of: &BTreeMap<Neighbour, Value>| of.get(&row).and_then(Value::octets).map(told).unwrap_or_default();
            let (Some(&port), Some(chassis), Some(id)) = (
                local.get(&row.local_port),
                id(chassis_subtypes.get(&row), chassis.get(&row)),
                id(port_subtypes.get(&row), Some(&value)),
            ) else {
                continue;
            };
            heard.push(Heard { port, chassis, id, description: words(&descriptions), system: words(&systems) });
        }
        Ok(heard)
    }

    /// Learned addresses, by VLAN where the switch tells so, else by the bridge's own table.
    fn learned(&mut self, interfaces: &[(BridgePort, u32)]) -> Result<Vec<(Mac, usize)>, SessionError> {
        const LEARNED: i32 = 3;
        let places: BTreeMap<u32, usize> =
            interfaces.iter().enumerate().map(|(place, (port, _))| (port.0, place)).collect();
        let place = |value: &Value| places.get(&value.unsigned()?).copied();
        let statuses: BTreeMap<FdbRow, Value> = self.walk(&q_bridge::TP_FDB_STATUS)?.into_iter().collect();
        let mut learned: Vec<(Mac, usize)> = (self.walk::<FdbRow>(&q_bridge::TP_FDB_PORT)?.into_iter())
            .filter(|(row, _)| statuses.get(row).and_then(Value::int) == Some(LEARNED))
            .filter_map(|(row, value)| Some((row.mac, place(&value)?)))
            .collect();
        if learned.is_empty() {
            let statuses: BTreeMap<MacRow, Value> = self.walk(&bridge::TP_FDB_STATUS)?.into_iter().collect();
            learned = (self.walk::<MacRow>(&bridge::TP_FDB_PORT)?.into_iter())
                .filter(|(row, _)| statuses.get(row).and_then(Value::int) == Some(LEARNED))
                .filter_map(|(row, value)| Some((row.0, place(&value)?)))
                .collect();
        }
        learned.sort_unstable();
        learned.dedup();
        Ok(learned)
    }
}
