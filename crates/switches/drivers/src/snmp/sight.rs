//! What a switch's ports hear and count at one moment, in as few requests as will do; and ports shut at once.
//!
//! ```text
//!   GET  lldpStatsRemTablesLastChangeTime, of each port: ifOperStatus, broadcasts and multicasts received
//!   lldpRemTable   only if that time has moved, or is not to be trusted
//!   GETBULK  dot1qTpFdbPort, dot1qTpFdbStatus   only if asked for
//! ```
//! An agent whose neighbours change without that time is asked for the table every time.

use std::collections::BTreeMap;

use super::{
    Device,
    faults::fault,
    memory::{ChangeTime, FdbPosition},
    ports::Reader,
    station::station_ports,
};
use bridge_mib::{
    FdbStatus, IfStatus,
    index::FdbRow,
    objects::{if_mib, lldp, q_bridge, system},
};
use snmp::{Column, Link, Value, wire::Binding};
use switch_model::{
    Slot,
    driver::Fault,
    observe::Count,
    sight::{Learned, Sight},
    station::{LldpNeighbour, Station},
};

/// Rows of the forwarding table that one request is about: their ports and statuses fit into one frame of Ethernet.
const ROWS_AT_ONCE: i32 = 20;
/// Most requests for them with each look.
const TABLE_REQUESTS: usize = 3;
/// Ports that go out of service with one SET.
const SHUT_AT_ONCE: usize = 32;

impl<L: Link> Device<L> {
    /// Looks at the ports that it was connected for.
    pub(super) fn see(&mut self) -> Result<Sight, Fault> {
        let columns = [&if_mib::OPER_STATUS, &if_mib::HC_IN_BROADCAST_PKTS, &if_mib::HC_IN_MULTICAST_PKTS];
        let mut objects = vec![lldp::STATS_REM_TABLES_LAST_CHANGE_TIME.instance(), system::UP_TIME.instance()];
        objects.extend(self.ports.iter().flat_map(|port| columns.map(|column| column.row(&port.interface))));
        let values = self.get_some(&objects)?;
        // What changed just now may change once more at the same time.
        let is_past = |time: &u64| *time > 0 && values[1].count().is_some_and(|now| now > *time + 1);
        let changed = values[0].count().filter(is_past);
        let mut sight = Sight::default();
        for values in values[2..].chunks_exact(columns.len()) {
            sight.running.push(values[0].int() == Some(IfStatus::Up.code()));
            sight.flooded.push(match (count(&values[1]), count(&values[2])) {
                (Count::Wide(broadcast), Count::Wide(multicast)) => Count::Wide(broadcast + multicast),
                (broadcast, _) => broadcast,
            });
        }
        if sight.flooded.iter().all(|count| *count == Count::Absent) {
            sight.flooded.clear();
        }
        let same = changed.is_some() && changed == self.sight.changed;
        if !same || self.sight.time != ChangeTime::Tells {
            let known = self.sight.local.is_some();
            let heard = self.hear()?;
            if heard != self.sight.heard && known {
                self.sight.time = match same {
                    true => ChangeTime::Lies,
                    false if self.sight.time == ChangeTime::Lies => ChangeTime::Lies,
                    false => ChangeTime::Tells,
                };
            }
            (self.sight.heard, self.sight.changed) = (heard, changed);
        }
        sight.heard.clone_from(&self.sight.heard);
        Ok(sight)
    }

    /// Reads who is heard, at ports that it was connected for.
    fn hear(&mut self) -> Result<Vec<LldpNeighbour>, Fault> {
        let mut reader = Reader { session: &mut self.session, bulk: &mut self.bulk };
        let table = &self.sight.table;
        if self.sight.local.is_none() {
            self.sight.local = Some(reader.local_ports(table, &mut station_ports(table)).map_err(fault)?);
        }
        let mut station = Station::default();
        if let Some(local) = &self.sight.local {
            reader.neighbours(table, local, &mut station).map_err(fault)?;
        }
        // Members of LAGs need be no bridge ports, so the interface tells them apart.
        let slot = |place: usize| {
            let at = &table.ports[place];
            self.ports.iter().position(|port| (port.bridge, port.interface.0) == (at.bridge, at.interface))
        };
        let heard = station.heard.into_iter();
        Ok(heard.filter_map(|heard| Some(LldpNeighbour { port: slot(heard.port)?, ..heard })).collect())
    }

    /// Reads some learned addresses, at ports that it was connected for: up to [`ROWS_AT_ONCE`] rows with each of
    /// [`TABLE_REQUESTS`] requests, behind those that were read last time, and from the start again behind the last row. None
    /// where the table cannot be read.
    pub(super) fn some_learned(&mut self) -> Result<Option<Vec<Learned>>, Fault> {
        let mut found = Vec::new();
        for _ in 0..TABLE_REQUESTS {
            let row = match self.sight.learned {
                FdbPosition::Nowhere => return Ok(None),
                FdbPosition::Start => None,
                FdbPosition::After(row) => Some(row),
            };
            let columns = [&q_bridge::TP_FDB_PORT, &q_bridge::TP_FDB_STATUS];
            let from = columns.map(|column| row.map_or_else(|| column.root(), |row| column.row(&row)));
            let asked = match self.bulk.repetitions() {
                // It does not answer GETBULK.
                1 => self.session.get_next(&from),
                rows => self.session.get_bulk(&from, rows.min(ROWS_AT_ONCE)),
            };
            let bindings = match asked {
                Ok(bindings) => bindings,
                Err(snmp::SessionError::Refused { .. }) => {
                    self.sight.learned = FdbPosition::Nowhere;
                    return Ok(None);
                }
                Err(error) => return Err(fault(error)),
            };
            let column = |column: &Column| -> BTreeMap<FdbRow, Value> {
                let rows = bindings.iter().filter(|(_, value)| !value.is_exception());
                rows.filter_map(|(oid, value)| Some((column.index_of::<FdbRow>(oid)?, value.clone()))).collect()
            };
            let (ports, statuses) = (column(columns[0]), column(columns[1]));
            let last = ports.keys().next_back().copied().filter(|last| row.is_none_or(|row| row < *last));
            for (row, port) in ports {
                let status = statuses.get(&row).and_then(Value::int);
                let slot = port.unsigned().and_then(|port| self.ports.iter().position(|known| known.bridge.0 == port));
                if let (Some(slot), true) = (slot, status == Some(FdbStatus::Learned.code())) {
                    found.push(Learned { database: row.fdb, mac: row.mac, at: Slot::new(slot) });
                }
            }
            self.sight.learned = last.map_or(FdbPosition::Start, FdbPosition::After);
            if last.is_none() {
                break;
            }
        }
        Ok(Some(found))
    }

    /// Takes ports out of service, many with each SET, without the lock: whoever else writes comes second.
    pub(super) fn shut_at_once(&mut self, ports: &[Slot]) -> Result<(), Fault> {
        let mut size = SHUT_AT_ONCE;
        let mut rest = ports;
        while !rest.is_empty() {
            let (some, others) = rest.split_at(size.min(rest.len()));
            let row = |slot: &Slot| if_mib::ADMIN_STATUS.row(&self.ports[slot.index()].interface);
            let down = |slot: &Slot| (row(slot), Value::Integer(IfStatus::Down.code()));
            let bindings: Vec<Binding> = some.iter().map(down).collect();
            match self.session.set_urgently(bindings) {
                Ok(()) => rest = others,
                Err(snmp::SessionError::Refused { .. }) if some.len() > 1 => size = some.len() / 2,
                Err(error) => return Err(fault(error)),
            }
        }
        Ok(())
    }
}

fn count(value: &Value) -> Count {
    match value {
        Value::Counter64(count) => Count::Wide(*count),
        Value::Counter32(count) => Count::Narrow(*count),
        _ => Count::Absent,
    }
}
