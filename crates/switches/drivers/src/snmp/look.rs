//! Whom a switch hears, beside what it is set to.

use std::collections::BTreeMap;

use super::{Device, faults::fault, read_identity, read_station, station::read_neighbours};
use fabric::Admin;
use snmp::Link;

use bridge_mib::{BridgePort, IfStatus, objects::if_mib};
use snmp::Oid;
use switch_model::{
    Slot,
    driver::Fault,
    edit::Edit,
    sight::{PortState, SurveyReply},
    station::Station,
};

/// Ports that one question is about, so that the answer fits into one frame.
const PORTS_AT_ONCE: usize = 24;

impl<L: Link> Device<L> {
    /// Reads what the switch says of itself and its neighbours; ports have the names that it was connected with.
    ///
    /// # Errors
    /// [`Fault`].
    pub fn station(&mut self, name: &str) -> Result<Station, Fault> {
        read_station(&mut self.session, Some(name), &self.names).map_err(fault)
    }

    /// Reads who the switch is, whom it hears, and which of the ports that it was connected with are up. Those ports bear the
    /// names that they were connected by. Tables of learned addresses are not read.
    ///
    /// # Errors
    /// [`Fault`].
    pub fn survey(&mut self, name: &str) -> Result<SurveyReply, Fault> {
        let identity = read_identity(&mut self.session).map_err(fault)?;
        let (mut station, table) = read_neighbours(&mut self.session, Some(name)).map_err(fault)?;
        // Members of LAGs need be no bridge ports, so the interface tells them apart.
        let numbered = self.ports.iter().enumerate();
        let slots: BTreeMap<(BridgePort, u32), usize> =
            numbered.map(|(slot, port)| ((port.bridge, port.interface.0), slot)).collect();
        let found = self.port_states()?;
        let mut states = vec![PortState::Unknown; station.ports.len()];
        for (at, port) in table.ports.iter().enumerate() {
            let Some(&slot) = slots.get(&(port.bridge, port.interface)) else { continue };
            states[at] = found[slot];
            let said = std::mem::replace(&mut station.ports[at].name, self.names[slot].clone());
            if said != self.names[slot] {
                station.ports[at].labels.push(said);
            }
        }
        Ok(SurveyReply { identity, station, states })
    }

    /// `states[slot]`: which of the ports that it was connected with are up.
    ///
    /// # Errors
    /// [`Fault`].
    pub fn port_states(&mut self) -> Result<Vec<PortState>, Fault> {
        let mut states = Vec::with_capacity(self.ports.len());
        for some in self.ports.chunks(PORTS_AT_ONCE) {
            let objects: Vec<Oid> = (some.iter())
                .flat_map(|port| [if_mib::ADMIN_STATUS.row(&port.interface), if_mib::OPER_STATUS.row(&port.interface)])
                .collect();
            let values = self.session.get(&objects).map_err(fault)?;
            states.extend(values.chunks(2).map(|values| match (values[0].int(), values[1].int()) {
                (Some(admin), _) if admin != IfStatus::Up.code() => PortState::Shut,
                (_, Some(oper)) if oper == IfStatus::Up.code() => PortState::Up,
                // Down, not present, and a lower layer that is down; the others do not say.
                (_, Some(2 | 6 | 7)) => PortState::Down,
                _ => PortState::Unknown,
            }));
        }
        Ok(states)
    }

    /// Sets a port's ifAdminStatus and nothing else, if nobody else has written since this was asked for.
    ///
    /// # Errors
    /// [`Fault`].
    pub fn set_admin_status(&mut self, slot: Slot, admin: Admin) -> Result<(), Fault> {
        self.fence()?;
        self.carry_out(&match admin {
            Admin::Up => Edit::Open(slot),
            Admin::Down => Edit::Shut(slot),
        })
    }
}
