//! LLDP's tables: whose numbers are whose ports, and who is heard there.
//!
//! ```text
//!   lldpRemLocalPortNum ─▶ lldpLocPortTable: a name of a port
//!                      └─▶ or a bridge port, or an ifIndex: as what the switch's other numbers are
//! ```
//! A number that may be two ports is none: both are named.

use std::collections::BTreeMap;

use super::{
    PORTS_MAX,
    ports::{PortTable, Reader},
};
use bridge_mib::{
    further::lldp_v2,
    index::{IfIndex, LldpPort, Neighbour, NeighbourV2},
    objects::lldp,
};
use snmp::{Column, Link, RowIndex, SessionError, Value};
use switch_model::{
    printable::told,
    station::{Capabilities, LldpId, LldpNeighbour, Station, StationPort, Unplaced, Where},
};

/// What the numbers of a switch's LLDP are.
#[derive(Clone, Debug, Default)]
pub(super) struct LocalPorts {
    /// Positions of ports, by the number.
    places: BTreeMap<u32, usize>,
    /// Names of those that are no bridge ports.
    names: BTreeMap<u32, String>,
    /// How many numbers are the bridge port, and how many the ifIndex, of the port that their name tells.
    as_bridge: usize,
    as_interface: usize,
}

/// Neighbours that are kept of those at no known port: more say nothing more.
const UNPLACED_MAX: usize = 1024;
/// Longest description of a neighbour's port.
const DESCRIPTION_CHARS_MAX: usize = 256;

impl LocalPorts {
    fn place(&self, table: &PortTable, number: u32) -> Result<usize, Where> {
        if let Some(place) = self.places.get(&number) {
            return Ok(*place);
        }
        if let Some(name) = self.names.get(&number) {
            return Err(Where::Interface(name.clone()));
        }
        let (by_bridge, by_interface) = (table.by_bridge(number), table.by_interface(number));
        let interface = || table.interfaces.get(&number).map_or_else(|| number.to_string(), Clone::clone);
        match (by_bridge, by_interface) {
            (Some(one), Some(other)) if one == other => Ok(one),
            (Some(one), _) if self.as_bridge > self.as_interface => Ok(one),
            (_, Some(other)) if self.as_interface > self.as_bridge => Ok(other),
            (Some(one), Some(other)) => Err(Where::Either(one, other)),
            // The number of an interface that is no bridge port may be meant all the same.
            (Some(one), None) if table.interfaces.contains_key(&number) && self.as_interface > 0 => {
                Err(Where::Interface(table.ports[one].name.clone()))
            }
            (Some(one), None) => Ok(one),
            (None, Some(other)) => Ok(other),
            (None, None) => Err(Where::Interface(interface())),
        }
    }
}

/// A neighbour's columns, whichever MIB they stand in.
struct Columns {
    chassis: [Column; 2],
    port: [Column; 2],
    description: Column,
    system: Column,
    capabilities: Column,
}

const V1: Columns = Columns {
    chassis: [lldp::REM_CHASSIS_ID_SUBTYPE, lldp::REM_CHASSIS_ID],
    port: [lldp::REM_PORT_ID_SUBTYPE, lldp::REM_PORT_ID],
    description: lldp::REM_PORT_DESC,
    system: lldp::REM_SYS_NAME,
    capabilities: lldp::REM_SYS_CAP_ENABLED,
};

const V2: Columns = Columns {
    chassis: [lldp_v2::REM_CHASSIS_ID_SUBTYPE, lldp_v2::REM_CHASSIS_ID],
    port: [lldp_v2::REM_PORT_ID_SUBTYPE, lldp_v2::REM_PORT_ID],
    description: lldp_v2::REM_PORT_DESC,
    system: lldp_v2::REM_SYS_NAME,
    capabilities: lldp_v2::REM_SYS_CAP_ENABLED,
};

impl<L: Link> Reader<'_, L> {
    /// What LLDP's numbers of ports mean; the ports get the names that LLDP gives them.
    ///
    /// # Errors
    /// [`SessionError`].
    pub(super) fn local_ports(
        &mut self,
        table: &PortTable,
        ports: &mut [StationPort],
    ) -> Result<LocalPorts, SessionError> {
        let subtypes: BTreeMap<LldpPort, Value> = self.optional(&lldp::LOC_PORT_ID_SUBTYPE)?.into_iter().collect();
        let described: BTreeMap<LldpPort, Value> = self.optional(&lldp::LOC_PORT_DESC)?.into_iter().collect();
        let rows = self.optional::<LldpPort>(&lldp::LOC_PORT_ID)?;
        if rows.len() > PORTS_MAX {
            return Err(SessionError::Nonsense(format!("LLDP says that it has {} ports", rows.len())));
        }
        let ids: BTreeMap<LldpPort, Value> = rows.into_iter().collect();
        let mut local = LocalPorts::default();
        let words = |number: &LldpPort| {
            let text = |rows: &BTreeMap<LldpPort, Value>| rows.get(number).and_then(Value::octets).map(told);
            [text(&ids).unwrap_or_default().trim().to_owned(), text(&described).unwrap_or_default().trim().to_owned()]
        };
        let numbers: Vec<LldpPort> = ids.keys().chain(described.keys()).copied().collect();
        for number in numbers {
            let said = words(&number);
            let called = |wanted: &String| {
                let fits = |port: &&StationPort| port.name == *wanted || port.labels.contains(wanted);
                (!wanted.is_empty()).then(|| ports.iter().position(|port| fits(&port))).flatten()
            };
            if let Some(at) = said.iter().find_map(called) {
                local.places.insert(number.0, at);
                local.as_bridge += usize::from(table.ports[at].bridge.0 == number.0);
                local.as_interface += usize::from(table.ports[at].interface == number.0);
            } else if let Some(name) = table.interfaces.get(&number.0).filter(|name| said.contains(name)) {
                // A port that is no bridge port: routed, for management, or a member of a LAG.
                local.names.insert(number.0, name.clone());
                local.as_interface += 1;
            }
        }
        for (number, value) in &ids {
            let place = local.places.get(&number.0).copied().or_else(|| local.place(table, number.0).ok());
            let Some(at) = place else { continue };
            local.places.insert(number.0, at);
            if let (Some(octets), Some(subtype)) = (value.octets(), subtypes.get(number).and_then(Value::int)) {
                ports[at].id = Some(LldpId { subtype, octets: octets.to_vec() });
            }
        }
        if ids.is_empty() {
            self.local_ports_v2(table, ports)?;
        }
        Ok(local)
    }

    /// The names that LLDP-V2-MIB gives ports, by ifIndex.
    fn local_ports_v2(&mut self, table: &PortTable, ports: &mut [StationPort]) -> Result<(), SessionError> {
        let subtypes: BTreeMap<IfIndex, Value> = self.optional(&lldp_v2::LOC_PORT_ID_SUBTYPE)?.into_iter().collect();
        for (index, value) in self.optional::<IfIndex>(&lldp_v2::LOC_PORT_ID)? {
            let subtype = subtypes.get(&index).and_then(Value::int);
            if let (Some(at), Some(octets), Some(subtype)) = (table.by_interface(index.0), value.octets(), subtype) {
                ports[at].id = Some(LldpId { subtype, octets: octets.to_vec() });
            }
        }
        Ok(())
    }

    /// Who is heard, put down in the station.
    ///
    /// # Errors
    /// [`SessionError`].
    pub(super) fn neighbours(
        &mut self,
        table: &PortTable,
        local: &LocalPorts,
        station: &mut Station,
    ) -> Result<(), SessionError> {
        let place = |row: &Neighbour| local.place(table, row.local_port);
        if self.heard(&V1, place, station)? == 0 {
            let by_interface = |row: &NeighbourV2| {
                let name =
                    || table.interfaces.get(&row.interface).cloned().unwrap_or_else(|| row.interface.to_string());
                table.by_interface(row.interface).ok_or_else(|| Where::Interface(name()))
            };
            self.heard(&V2, by_interface, station)?;
        }
        // Rows whose index has one number alone: there are neighbours, but nothing tells at which port.
        for (_, value) in self.optional::<LldpPort>(&lldp::REM_SYS_NAME)? {
            let neighbour = value.octets().map(told).unwrap_or_default();
            if station.unplaced.len() < UNPLACED_MAX {
                station.unplaced.push(Unplaced { at: Where::Nowhere, neighbour, port: String::new() });
            }
        }
        Ok(())
    }

    /// How many neighbours these columns tell of, each put down in the station.
    fn heard<I: RowIndex>(
        &mut self,
        columns: &Columns,
        place: impl Fn(&I) -> Result<usize, Where>,
        station: &mut Station,
    ) -> Result<usize, SessionError> {
        let rows = self.optional::<I>(&columns.port[1])?;
        if rows.is_empty() {
            return Ok(0);
        }
        let mut column = |column: &Column| -> Result<BTreeMap<I, Value>, SessionError> {
            Ok(self.optional::<I>(column)?.into_iter().collect())
        };
        let chassis = [column(&columns.chassis[0])?, column(&columns.chassis[1])?];
        let port_kinds = column(&columns.port[0])?;
        let (descriptions, systems) = (column(&columns.description)?, column(&columns.system)?);
        let capabilities = column(&columns.capabilities)?;
        let count = rows.len();
        for (row, value) in rows {
            let id = |subtype: Option<&Value>, name: Option<&Value>| {
                Some(LldpId { subtype: subtype?.int()?, octets: name?.octets()?.to_vec() })
            };
            let words = |of: &BTreeMap<I, Value>| {
                let text = of.get(&row).and_then(Value::octets).map(told).unwrap_or_default();
                text.trim().chars().take(DESCRIPTION_CHARS_MAX).collect::<String>()
            };
            let (chassis, id) =
                (id(chassis[0].get(&row), chassis[1].get(&row)), id(port_kinds.get(&row), Some(&value)));
            let (description, system) = (words(&descriptions), words(&systems));
            let bits = capabilities.get(&row).and_then(Value::octets).unwrap_or_default();
            let capabilities = Capabilities::of(bits);
            match (place(&row), chassis, id) {
                (Ok(port), Some(chassis), Some(id)) => {
                    station.heard.push(LldpNeighbour { port, chassis, id, description, system, capabilities });
                }
                (found, chassis, id) if station.unplaced.len() < UNPLACED_MAX => {
                    let told = |id: Option<LldpId>| id.map(|id| id.text()).unwrap_or_default();
                    let neighbour = if system.is_empty() { told(chassis) } else { system };
                    let at = found.map_or_else(|at| at, Where::Unnamed);
                    station.unplaced.push(Unplaced { at, neighbour, port: told(id) });
                }
                _ => {}
            }
        }
        Ok(count)
    }
}
