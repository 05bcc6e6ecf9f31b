//! VLANs of a switch by SNMP, and the one whose name is the deployment tag.
//!
//! ```text
//!   dot1qVlanStaticTable   which VLANs there are; dot1qVlanCurrentTable may be missing
//!   the tag's VLAN         where it is; else the plan's choice; else the highest that the switch takes and nothing uses
//! ```

use fabric::VlanId;

use super::{Device, faults::fault};
use bridge_mib::{
    PortList, RowStatus,
    index::{CurrentVlan, VlanIndex},
    objects::q_bridge,
};
use snmp::{
    Link, SessionError, Value,
    wire::{Binding, ErrorStatus},
};
use switch_model::{SwitchConfig, driver::Fault, mark::Mark};

impl<L: Link> Device<L> {
    /// Leaves the mark, and takes away those of earlier deployments in other VLANs.
    pub(super) fn leave_mark(&mut self, mark: Mark, before: &SwitchConfig, after: &SwitchConfig) -> Result<(), Fault> {
        let vlan = self.tag_vlan(before, after)?;
        if self.mark_vlans.contains(&vlan) {
            let name = q_bridge::VLAN_STATIC_NAME.row(&VlanIndex(vlan));
            self.set(vec![(name, Value::Octets(mark.to_string().into_bytes()))])?;
        } else {
            self.make_vlan(vlan, mark.to_string(), &PortList::new(), &PortList::new())?;
            self.mark_vlans.insert(vlan);
        }
        let old: Vec<VlanId> = self.mark_vlans.iter().copied().filter(|other| *other != vlan).collect();
        for vlan in old {
            self.remove_vlan(vlan)?;
            self.mark_vlans.remove(&vlan);
        }
        Ok(())
    }

    /// The VLAN for the tag: one that bears a tag already, else the one that the plan chose, else the highest; none that
    /// carries data before or after, that somebody else uses, or that the switch does not take.
    fn tag_vlan(&self, before: &SwitchConfig, after: &SwitchConfig) -> Result<VlanId, Fault> {
        let carries = |vlan: &VlanId| {
            [before, after].iter().any(|config| config.vlans.contains(*vlan) || config.memberships().contains(*vlan))
        };
        let free = |vlan: &VlanId| {
            let foreign = self.static_vlans.contains(vlan) && !self.mark_vlans.contains(vlan);
            *vlan <= self.vlan_max && !foreign && !carries(vlan)
        };
        let highest = (2..=TAG_VLAN_MAX).rev().filter_map(|id| VlanId::new(id).ok());
        let there = self.mark_vlans.iter().rev().copied();
        there.chain([self.mark_vlan]).chain(highest).find(free).ok_or_else(|| {
            Fault::Refused(format!(
                "it has no VLAN left for the deployment tag: all up to {} are in use",
                self.vlan_max
            ))
        })
    }

    pub(super) fn put_vlan(&mut self, vlan: VlanId, egress: &PortList, untagged: &PortList) -> Result<(), Fault> {
        if vlan == VlanId::MIN || self.static_vlans.contains(&vlan) {
            let lists = self.lists(vlan, egress, untagged);
            return self.set(lists);
        }
        self.make_vlan(vlan, format!("espalier{vlan}"), egress, untagged)
    }

    /// Learns which filtering databases the switch gave VLANs that were made since it was last asked.
    pub(super) fn learn_databases(&mut self) -> Result<(), Fault> {
        if self.unasked.is_empty() || self.rehearsal.is_some() {
            return Ok(());
        }
        for (CurrentVlan { vlan, .. }, value) in self.walk(&q_bridge::VLAN_FDB_ID)? {
            if let Some(database) = value.unsigned().filter(|_| self.unasked.contains(&vlan)) {
                self.databases.insert(vlan, database);
            }
        }
        self.unasked.clear();
        Ok(())
    }

    fn lists(&self, vlan: VlanId, egress: &PortList, untagged: &PortList) -> Vec<Binding> {
        let index = VlanIndex(vlan);
        let octets = |list: &PortList| Value::Octets(list.encode(self.list_len));
        vec![
            (q_bridge::VLAN_STATIC_EGRESS_PORTS.row(&index), octets(egress)),
            (q_bridge::VLAN_STATIC_UNTAGGED_PORTS.row(&index), octets(untagged)),
        ]
    }

    /// Makes a VLAN at once, or, where a switch refuses that, the bare row first and its ports afterwards.
    fn make_vlan(&mut self, vlan: VlanId, name: String, egress: &PortList, untagged: &PortList) -> Result<(), Fault> {
        let index = VlanIndex(vlan);
        let status = |status: RowStatus| (q_bridge::VLAN_STATIC_ROW_STATUS.row(&index), Value::Integer(status.code()));
        let name = (q_bridge::VLAN_STATIC_NAME.row(&index), Value::Octets(name.into_bytes()));
        let mut whole = vec![name.clone()];
        whole.extend(self.lists(vlan, egress, untagged));
        let mut later = whole.clone();
        whole.push(status(RowStatus::CreateAndGo));
        match self.try_set(whole)? {
            Ok(()) => {}
            Err(SessionError::Refused { status: ErrorStatus::ResourceUnavailable, .. }) => {
                return Err(Fault::Refused(format!("VLAN {vlan}: its VLAN table is full")));
            }
            Err(error @ (SessionError::Silent { .. } | SessionError::Stopped)) => return Err(fault(error)),
            Err(_) => {
                self.set(vec![status(RowStatus::CreateAndGo)])?;
                later.rotate_left(1);
                self.set(later)?;
            }
        }
        self.static_vlans.insert(vlan);
        self.unasked.insert(vlan);
        Ok(())
    }

    pub(super) fn remove_vlan(&mut self, vlan: VlanId) -> Result<(), Fault> {
        let row = q_bridge::VLAN_STATIC_ROW_STATUS.row(&VlanIndex(vlan));
        self.databases.remove(&vlan);
        self.set(vec![(row, Value::Integer(RowStatus::Destroy.code()))])?;
        self.static_vlans.remove(&vlan);
        Ok(())
    }
}

/// The highest VLAN that a tag is left in: above it switches keep some for themselves.
const TAG_VLAN_MAX: u16 = 4093;
