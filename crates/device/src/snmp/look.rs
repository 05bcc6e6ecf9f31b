//! What a switch carries and whom it hears, beside what it is set to.

use std::collections::BTreeMap;

use super::{Device, Link, SessionError, device::fault, read_identity, read_station, station::read_neighbours};
use fabric::Admin;

use crate::{
    Slot,
    deploy::{Edit, Fault},
    discover::Station,
    mib::{
        Column, IfStatus, Oid, Value,
        index::IfIndex,
        objects::{ether_like, if_mib, system},
    },
    observe::{Count, PortCounts, Snapshot},
    survey::{PortState, SurveyReply},
};

/// Ports that one question is about, so that the answer fits into one frame.
const PORTS_AT_ONCE: usize = 24;

impl<L: Link> Device<L> {
    /// Reads the counters of the ports that it was connected with, 64 bits wide where the switch has them.
    ///
    /// # Errors
    /// [`Fault`]; columns that the switch does not have are no fault.
    pub fn counters(&mut self) -> Result<Snapshot, Fault> {
        let up = self.session.get(&[system::UP_TIME.instance()]).map_err(fault)?;
        let oper = self.optional(&if_mib::OPER_STATUS)?;
        let (high, low) = (self.optional(&if_mib::HIGH_SPEED)?, self.optional(&if_mib::SPEED)?);
        let discontinuity = self.optional(&if_mib::COUNTER_DISCONTINUITY_TIME)?;
        let octets = [
            self.count(&if_mib::HC_IN_OCTETS, &if_mib::IN_OCTETS)?,
            self.count(&if_mib::HC_OUT_OCTETS, &if_mib::OUT_OCTETS)?,
        ];
        let errors = [self.optional(&if_mib::IN_ERRORS)?, self.optional(&if_mib::OUT_ERRORS)?];
        let discards = [self.optional(&if_mib::IN_DISCARDS)?, self.optional(&if_mib::OUT_DISCARDS)?];
        let pause = [
            self.count(&ether_like::HC_IN_PAUSE_FRAMES, &ether_like::IN_PAUSE_FRAMES)?,
            self.count(&ether_like::HC_OUT_PAUSE_FRAMES, &ether_like::OUT_PAUSE_FRAMES)?,
        ];
        let ports = self.ports.iter().map(|port| {
            let index = port.interface;
            let of = |columns: &[BTreeMap<IfIndex, Value>; 2]| {
                [0, 1].map(|way| columns[way].get(&index).map_or(Count::Absent, counted))
            };
            let running = oper.get(&index)?.int() == Some(IfStatus::Up.code());
            // Gauges say 4,294,967,295 for whatever is faster; the other one is in Mbit/s.
            let mbps = high.get(&index).and_then(Value::unsigned).filter(|mbps| *mbps > 0);
            let plain = || low.get(&index).and_then(Value::unsigned).map(u64::from);
            Some(PortCounts {
                running,
                speed_bps: mbps.map(|mbps| u64::from(mbps) * 1_000_000).or_else(plain).unwrap_or(0),
                discontinuity_cs: discontinuity.get(&index).and_then(Value::count).unwrap_or(0) as u32,
                octets: of(&octets),
                errors: of(&errors),
                discards: of(&discards),
                pause: of(&pause),
            })
        });
        Ok(Snapshot { up_cs: up[0].count().unwrap_or(0) as u32, ports: ports.collect() })
    }

    /// Reads what the switch says of itself and its neighbours.
    ///
    /// # Errors
    /// [`Fault`].
    pub fn station(&mut self, name: &str) -> Result<Station, Fault> {
        read_station(&mut self.session, Some(name)).map_err(fault)
    }

    /// Reads who the switch is, whom it hears, and which of the ports that it was connected with are up. Those ports bear the
    /// names that they were connected by. Tables of learned addresses are not read.
    ///
    /// # Errors
    /// [`Fault`].
    pub fn survey(&mut self, name: &str) -> Result<SurveyReply, Fault> {
        let identity = read_identity(&mut self.session).map_err(fault)?;
        let (mut station, numbers) = read_neighbours(&mut self.session, Some(name)).map_err(fault)?;
        let slots: BTreeMap<u32, usize> =
            self.ports.iter().enumerate().map(|(slot, port)| (port.bridge.0, slot)).collect();
        let found = self.port_states()?;
        let mut states = vec![PortState::Unknown; station.ports.len()];
        for (at, (bridge, _)) in numbers.iter().enumerate() {
            let Some(&slot) = slots.get(&bridge.0) else { continue };
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

    /// A column by ifIndex; nothing if the switch does not have it.
    fn optional(&mut self, column: &Column) -> Result<BTreeMap<IfIndex, Value>, Fault> {
        match super::walk::<L, IfIndex>(&mut self.session, &mut self.bulk, column) {
            Ok(rows) => Ok(rows.into_iter().collect()),
            Err(SessionError::Refused { .. }) => Ok(BTreeMap::new()),
            Err(error) => Err(fault(error)),
        }
    }

    /// The wide column, and the narrow one for ports that the wide one leaves out.
    fn count(&mut self, wide: &Column, narrow: &Column) -> Result<BTreeMap<IfIndex, Value>, Fault> {
        let mut rows = self.optional(wide)?;
        if self.ports.iter().any(|port| !rows.contains_key(&port.interface)) {
            for (index, value) in self.optional(narrow)? {
                rows.entry(index).or_insert(value);
            }
        }
        Ok(rows)
    }
}

fn counted(value: &Value) -> Count {
    match value {
        Value::Counter64(count) => Count::Wide(*count),
        Value::Counter32(count) => Count::Narrow(*count),
        _ => Count::Absent,
    }
}
