//! Static entries by SNMP, many to a SET.
//!
//! ```text
//!   16 rows ─ refused, or silence to the first ─▶ 8 ─▶ 4 ─▶ 2 ─▶ 1      a SET is made whole or not at all (RFC 3416, 4.2.5)
//! ```
//! What a switch does not take is halved until it does, and stays so for the session; a single row that it refuses is its
//! answer. Twelve thousand entries one by one are as many journeys to the switch and back.

use fabric::{Mac, VlanId};

use super::{
    Device,
    batch::Proof,
    faults::{fault, nonsense},
};
use bridge_mib::{PortList, StaticStatus, index::StaticRow, objects::q_bridge};
use snmp::{
    Link, SessionError, Value,
    wire::{Binding, ErrorStatus},
};
use switch_model::{driver::Fault, edit::Edit};

impl<L: Link> Device<L> {
    /// Carries edits out in order; entries that follow each other go many at a time.
    pub(super) fn carry_out_all(&mut self, edits: &[Edit]) -> Result<(), Fault> {
        let is_entry = |edit: &Edit| matches!(edit, Edit::SetEntry(..) | Edit::UnsetEntry(..));
        for some in edits.chunk_by(|a, b| is_entry(a) && is_entry(b)) {
            match some {
                [edit] if !is_entry(edit) => self.carry_out(edit)?,
                entries => self.write_entries(entries)?,
            }
        }
        Ok(())
    }

    /// Writes static entries.
    pub(super) fn write_entries(&mut self, mut entries: &[Edit]) -> Result<(), Fault> {
        self.learn_databases()?;
        while !entries.is_empty() {
            let count = self.batch.size.min(entries.len());
            let mut bindings = Vec::new();
            for entry in &entries[..count] {
                bindings.extend(self.entry_bindings(entry)?);
            }
            let what = bindings.first().map(|(oid, _)| oid.to_string()).unwrap_or_default();
            let refusal = match self.try_set(bindings) {
                Ok(Ok(())) => {
                    if count > 1 {
                        self.batch.proof = Proof::Taken;
                    }
                    entries = &entries[count..];
                    continue;
                }
                Ok(Err(error)) => error,
                // It may choke on many; one that is gone does on one as well.
                Err(Fault::Silent) if count > 1 && self.batch.proof == Proof::None => {
                    self.batch.size = 1;
                    continue;
                }
                Err(other) => return Err(other),
            };
            match refusal {
                SessionError::Refused { .. } if count > 1 => self.batch.size = count / 2,
                SessionError::Silent { .. } if count > 1 && self.batch.proof == Proof::None => self.batch.size = 1,
                SessionError::Refused { status: ErrorStatus::ResourceUnavailable, .. } => {
                    return Err(Fault::Refused(format!("{what}: the table is full")));
                }
                error => return Err(fault(error)),
            }
        }
        Ok(())
    }

    fn entry_bindings(&self, edit: &Edit) -> Result<Vec<Binding>, Fault> {
        let status = |row: &StaticRow, status: StaticStatus| {
            (q_bridge::STATIC_UNICAST_STATUS.row(row), Value::Integer(status.code()))
        };
        Ok(match edit {
            Edit::SetEntry(vlan, mac, slot) => {
                let row = self.entry_row(*vlan, *mac);
                let list = PortList::of([self.ports[slot.index()].bridge.0]).map_err(nonsense)?;
                let goes_to = q_bridge::STATIC_UNICAST_ALLOWED_TO_GO_TO.row(&row);
                vec![(goes_to, Value::Octets(list.encode(self.list_len))), status(&row, StaticStatus::Permanent)]
            }
            Edit::UnsetEntry(vlan, mac) => vec![status(&self.entry_row(*vlan, *mac), StaticStatus::Invalid)],
            _ => Vec::new(),
        })
    }

    fn entry_row(&self, vlan: VlanId, mac: Mac) -> StaticRow {
        let fdb = self.databases.get(&vlan).copied().unwrap_or_else(|| u32::from(vlan.get()));
        StaticRow { fdb, mac, receive_port: 0 }
    }
}
