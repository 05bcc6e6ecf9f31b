//! What a switch has learned in a few VLANs: quick enough to ask several times a second.
//!
//! ```text
//!   GETBULK  dot1qTpFdbPort.7, dot1qTpFdbStatus.7   20 rows at once, as long as they are of filtering database 7
//! ```
//! Rows of static entries say who manages them and are left out.

use std::collections::{BTreeMap, BTreeSet};

use fabric::{Mac, VlanId};

use super::{Device, faults::fault};
use bridge_mib::{FdbStatus, index::FdbRow, objects::q_bridge};
use snmp::{Column, Link, Value};
use switch_model::{Entries, Slot, driver::Fault};

/// Rows that one request is about: their ports and statuses fit into one frame of Ethernet.
const ROWS_AT_ONCE: i32 = 20;
/// Most requests for one VLAN.
const REQUESTS_MAX: usize = 1_000;

/// What one request brought.
struct Answer {
    /// Rows that are learned, and at which port.
    learned: Vec<(FdbRow, Slot)>,
    /// The last row, learned or not; none behind the table's end.
    last: Option<FdbRow>,
}

impl<L: Link> Device<L> {
    /// The addresses that the switch has learned in some VLANs, and at which of the ports that it was connected for. The whole
    /// state must have been read before. Cost: 1 request for every 20 rows of these VLANs, static ones included.
    ///
    /// # Errors
    /// [`Fault`]; refused by a switch whose table does not end.
    pub fn learned_in(&mut self, vlans: &BTreeSet<VlanId>) -> Result<Entries, Fault> {
        self.session.begin();
        let mut learned = Entries::new();
        for &vlan in vlans {
            let fdb = self.databases.get(&vlan).copied().unwrap_or_else(|| u32::from(vlan.get()));
            let mut behind = FdbRow { fdb, mac: Mac::new([0; 6]) };
            let mut requests = 0;
            loop {
                let Answer { learned: rows, last } = self.rows_behind(behind)?;
                let own = rows.into_iter().filter(|(row, _)| row.fdb == fdb);
                learned.extend(own.map(|(row, slot)| ((vlan, row.mac), slot)));
                match last {
                    Some(last) if last.fdb == fdb && last > behind => behind = last,
                    _ => break,
                }
                requests += 1;
                if requests == REQUESTS_MAX {
                    return Err(Fault::Refused(format!("the forwarding table of VLAN {vlan} does not end")));
                }
            }
        }
        Ok(learned)
    }

    /// The rows behind one.
    fn rows_behind(&mut self, row: FdbRow) -> Result<Answer, Fault> {
        let columns = [&q_bridge::TP_FDB_PORT, &q_bridge::TP_FDB_STATUS];
        let from = columns.map(|column| column.row(&row));
        let bindings = match self.bulk.repetitions() {
            // It does not answer GETBULK.
            1 => self.session.get_next(&from),
            rows => self.session.get_bulk(&from, rows.min(ROWS_AT_ONCE)),
        }
        .map_err(fault)?;
        let column = |column: &Column| -> BTreeMap<FdbRow, Value> {
            let rows = bindings.iter().filter(|(_, value)| !value.is_exception());
            rows.filter_map(|(oid, value)| Some((column.index_of::<FdbRow>(oid)?, value.clone()))).collect()
        };
        let (ports, statuses) = (column(columns[0]), column(columns[1]));
        // An answer may end in the middle of a row.
        let last = ports.keys().rfind(|row| statuses.contains_key(row)).copied();
        let is_learned = |row: &FdbRow| statuses.get(row).and_then(Value::int) == Some(FdbStatus::Learned.code());
        let slot = |port: &Value| {
            let port = port.unsigned()?;
            self.ports.iter().position(|known| known.bridge.0 == port).map(Slot::new)
        };
        let rows = ports.iter().filter(|(row, _)| is_learned(row)).filter_map(|(row, port)| Some((*row, slot(port)?)));
        Ok(Answer { learned: rows.collect(), last })
    }
}
