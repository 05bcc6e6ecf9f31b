//! Learned addresses, and the ports that only some VLANs' bridges have.
//!
//! A Cisco switch's BRIDGE-MIB speaks of VLAN 1; of VLAN 7 it speaks to `community@7`, or in SNMPv3's context `vlan-7`. So its
//! ports are those of all contexts together, and what one context refuses is left out.

use std::collections::BTreeMap;

use fabric::{Mac, VlanId};

use super::{
    faults::vlan_id,
    ports::{PortTable, Reader},
};
use bridge_mib::{
    FdbStatus,
    further::VTP_VLAN_STATE,
    index::{FdbRow, MacRow, Two},
    objects::{bridge, q_bridge},
};
use snmp::{Link, SessionError, Value};

/// Most VLANs whose contexts are read.
const CONTEXTS_MAX: usize = 256;
/// VLANs that Cisco keeps for token ring and FDDI: they have no bridge.
const RESERVED: std::ops::RangeInclusive<u16> = 1002..=1005;

impl<L: Link> Reader<'_, L> {
    /// The VLANs of which the switch speaks in contexts of their own; none of most switches.
    ///
    /// # Errors
    /// [`SessionError`].
    pub(super) fn contexts(&mut self) -> Result<Vec<VlanId>, SessionError> {
        const OPERATIONAL: i32 = 1;
        let rows = self.optional::<Two>(&VTP_VLAN_STATE)?.into_iter();
        let vlans =
            rows.filter(|(_, state)| state.int() == Some(OPERATIONAL)).filter_map(|(Two(_, vlan), _)| vlan_id(vlan));
        Ok(vlans.filter(|vlan| *vlan != VlanId::MIN && !RESERVED.contains(&vlan.get())).take(CONTEXTS_MAX).collect())
    }

    /// Asks the bridge of each VLAN; one that does not answer, or refuses, ends it: the switch has no contexts then.
    fn in_contexts<T>(
        &mut self,
        contexts: &[VlanId],
        mut ask: impl FnMut(&mut Self) -> Result<T, SessionError>,
    ) -> Vec<T> {
        let mut answers = Vec::new();
        for vlan in contexts {
            self.session.set_context(Some(*vlan));
            let answer = ask(self);
            self.session.set_context(None);
            match answer {
                Ok(answer) => answers.push(answer),
                Err(_) => break,
            }
        }
        answers
    }

    /// The switch's ports, those of VLANs with a bridge of their own included.
    ///
    /// # Errors
    /// [`SessionError`].
    pub(super) fn ports_in(&mut self, contexts: &[VlanId]) -> Result<PortTable, SessionError> {
        let mut ports = self.bridge_ports()?;
        for more in self.in_contexts(contexts, Self::bridge_ports) {
            for (port, interface) in more {
                ports.entry(port).or_insert(interface);
            }
        }
        self.named(&ports)
    }

    /// Learned addresses, by VLAN where the switch tells so, else by the bridge's own table, or those of its VLANs.
    ///
    /// # Errors
    /// [`SessionError`].
    pub(super) fn learned(
        &mut self,
        table: &PortTable,
        contexts: &[VlanId],
    ) -> Result<Vec<(Mac, usize)>, SessionError> {
        let place = |value: &Value| table.by_bridge(value.unsigned()?);
        let is_learned = |status: Option<&Value>| status.and_then(Value::int) == Some(FdbStatus::Learned.code());
        let statuses: BTreeMap<FdbRow, Value> = self.optional(&q_bridge::TP_FDB_STATUS)?.into_iter().collect();
        let mut learned: Vec<(Mac, usize)> = (self.optional::<FdbRow>(&q_bridge::TP_FDB_PORT)?.into_iter())
            .filter(|(row, _)| is_learned(statuses.get(row)))
            .filter_map(|(row, value)| Some((row.mac, place(&value)?)))
            .collect();
        if learned.is_empty() {
            let of_bridge = |reader: &mut Self| -> Result<Vec<(Mac, Value)>, SessionError> {
                let statuses: BTreeMap<MacRow, Value> = reader.optional(&bridge::TP_FDB_STATUS)?.into_iter().collect();
                let rows = reader.optional::<MacRow>(&bridge::TP_FDB_PORT)?.into_iter();
                Ok(rows.filter(|(row, _)| is_learned(statuses.get(row))).map(|(row, value)| (row.0, value)).collect())
            };
            let mut rows = of_bridge(self)?;
            rows.extend(self.in_contexts(contexts, of_bridge).into_iter().flatten());
            learned = rows.into_iter().filter_map(|(mac, value)| Some((mac, place(&value)?))).collect();
        }
        learned.sort_unstable();
        learned.dedup();
        Ok(learned)
    }
}
