//! What a switch says of itself and its neighbours: BRIDGE-MIB's ports, LLDP's tables, learned addresses.

use super::{
    neighbours::LocalPorts,
    ports::{PortEntry, PortTable, Reader},
};
use bridge_mib::{
    further::lldp_v2,
    objects::{bridge, lldp, system},
};
use snmp::{BulkSize, Link, Scalar, Session, SessionError, Value};
use switch_model::{
    printable::told,
    station::{LldpId, Station, StationPort},
};

/// Reads what a switch says. `name` is what it is called here; its sysName, if that is none. Ports that `names` mean are called
/// so; the others by what the switch calls them.
///
/// # Errors
/// [`SessionError`].
pub fn read_station<L: Link>(
    session: &mut Session<L>,
    name: Option<&str>,
    names: &[String],
) -> Result<Station, SessionError> {
    let mut bulk = BulkSize::default();
    let mut reader = Reader { session, bulk: &mut bulk };
    let contexts = reader.contexts()?;
    let (mut station, table) = reader.neighbours_of(name, &contexts)?;
    station.learned = reader.learned(&table, &contexts)?;
    for name in names {
        if let Ok(at) = table.find(name) {
            let own = std::mem::replace(&mut station.ports[at].name, name.clone());
            if own != *name {
                station.ports[at].labels.push(own);
            }
        }
    }
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
) -> Result<(Station, PortTable), SessionError> {
    let mut bulk = BulkSize::default();
    let mut reader = Reader { session, bulk: &mut bulk };
    let contexts = reader.contexts()?;
    reader.neighbours_of(name, &contexts)
}

impl<L: Link> Reader<'_, L> {
    fn neighbours_of(
        &mut self,
        name: Option<&str>,
        contexts: &[fabric::VlanId],
    ) -> Result<(Station, PortTable), SessionError> {
        let of_v1 = [lldp::LOC_CHASSIS_ID_SUBTYPE, lldp::LOC_CHASSIS_ID];
        let scalars: Vec<Scalar> = [system::NAME, bridge::BRIDGE_ADDRESS].into_iter().chain(of_v1).collect();
        let objects: Vec<_> = scalars.iter().map(Scalar::instance).collect();
        let values = self.session.get(&objects)?;
        let system = values[0].octets().map(told).unwrap_or_default();
        let mut chassis = chassis_of(&values[2..]);
        if chassis.is_none() {
            let of_v2 = [lldp_v2::LOC_CHASSIS_ID_SUBTYPE, lldp_v2::LOC_CHASSIS_ID];
            chassis = chassis_of(&self.session.get(&of_v2.map(|scalar| scalar.instance()))?);
        }
        let table = self.ports_in(contexts)?;
        let ports = station_ports(&table);
        let address = values[1].octets().and_then(|octets| Some(fabric::Mac::new(octets.try_into().ok()?)));
        let address = address.filter(|mac| !mac.is_zero() && !mac.is_multicast());
        let name = name.map_or_else(|| system.clone(), str::to_owned);
        let mut station = Station { name, chassis, system, address, ports, ..Station::default() };
        let local: LocalPorts = self.local_ports(&table, &mut station.ports)?;
        self.neighbours(&table, &local, &mut station)?;
        Ok((station, table))
    }
}

/// The ports of a table, in its order, without the names that LLDP gives them.
pub(super) fn station_ports(table: &PortTable) -> Vec<StationPort> {
    let port = |port: &PortEntry| {
        let further = port.said.iter().filter(|label| !label.is_empty() && **label != port.name);
        let lag = table.lags.get(&port.interface).and_then(|lag| table.by_interface(*lag));
        StationPort { name: port.name.clone(), id: None, labels: further.cloned().collect(), mac: port.mac, lag }
    };
    table.ports.iter().map(port).collect()
}

fn chassis_of(values: &[Value]) -> Option<LldpId> {
    let (subtype, octets) = (values[0].int()?, values[1].octets()?);
    Some(LldpId { subtype, octets: octets.to_vec() })
}
