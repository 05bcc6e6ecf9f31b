//! The VLANs of a switch by SNMP: from Q-BRIDGE-MIB, or from IEEE8021-Q-BRIDGE-MIB where that is what there is.

use std::collections::{BTreeMap, BTreeSet};

use fabric::VlanId;

use super::faults::vlan_id;
use super::ports::Reader;
use bridge_mib::{
    AcceptableFrames, BridgePort, ListForm, PortList,
    further::ieee,
    index::{ComponentPort, ComponentVlan, VlanIndex},
    objects::q_bridge,
};
use snmp::{Column, Link, SessionError, Value};
use switch_model::driver::Fault;

/// From which MIB VLANs were read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VlanMib {
    /// Q-BRIDGE-MIB (RFC 4363): read and written.
    QBridge,
    /// IEEE8021-Q-BRIDGE-MIB: read.
    Ieee,
}

/// What the tables of VLANs hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VlanTables {
    /// The tables that it has.
    pub mib: VlanMib,
    /// How it writes lists of ports.
    pub form: ListForm,
    /// Every VLAN that has a row, with its name, empty if it has none.
    pub(crate) names: BTreeMap<VlanId, Vec<u8>>,
    /// Members, and those of them whose frames leave without a tag.
    pub(crate) members: BTreeMap<VlanId, (PortList, PortList)>,
    pub(crate) pvids: BTreeMap<BridgePort, VlanId>,
    /// Ports that take tagged frames alone.
    pub(crate) tagged_only: BTreeSet<BridgePort>,
    /// Ports of which it is known whether they filter.
    pub(crate) filters: BTreeMap<BridgePort, Value>,
}

/// What every refusal of lists and tables ends with.
pub(crate) const WAY_OUT: &str =
    "use its command line (ssh-user in its credentials), or leave this switch to its vendor's own MIB";

impl<L: Link> Reader<'_, L> {
    /// Reads the tables of a switch that has these bridge ports.
    ///
    /// # Errors
    /// [`Fault::Refused`] where there is no table of VLANs, or lists that are no PortLists of its ports.
    pub fn vlans(&mut self, ports: &BTreeSet<u32>) -> Result<VlanTables, Fault> {
        let fault = super::faults::fault;
        let by_vlan = |rows: Vec<(VlanIndex, Value)>| rows.into_iter().map(|(row, value)| (row.0, value)).collect();
        let mut raw = Raw {
            names: by_vlan(self.optional(&q_bridge::VLAN_STATIC_NAME).map_err(fault)?),
            egress: by_vlan(self.optional(&q_bridge::VLAN_STATIC_EGRESS_PORTS).map_err(fault)?),
            untagged: by_vlan(self.optional(&q_bridge::VLAN_STATIC_UNTAGGED_PORTS).map_err(fault)?),
        };
        if !raw.is_empty() {
            let pvids = self.optional::<BridgePort>(&q_bridge::PVID).map_err(fault)?;
            let frames = self.optional::<BridgePort>(&q_bridge::PORT_ACCEPTABLE_FRAME_TYPES).map_err(fault)?;
            let filters = self.optional::<BridgePort>(&q_bridge::PORT_INGRESS_FILTERING).map_err(fault)?;
            let tagged = AcceptableFrames::OnlyTagged.code();
            return raw.tables(VlanMib::QBridge, ports, [pvids, frames, filters], tagged);
        }
        raw = Raw {
            names: by_component(self.optional(&ieee::VLAN_STATIC_NAME).map_err(fault)?)?,
            egress: by_component(self.optional(&ieee::VLAN_STATIC_EGRESS_PORTS).map_err(fault)?)?,
            untagged: by_component(self.optional(&ieee::VLAN_STATIC_UNTAGGED_PORTS).map_err(fault)?)?,
        };
        if raw.is_empty() {
            return Err(Fault::Refused(format!(
                "it has no Q-BRIDGE table of VLANs (dot1qVlanStaticTable is empty or missing, which is not the same as a switch without \
                 VLANs); {WAY_OUT}"
            )));
        }
        let pvids = self.component_ports(&ieee::PVID).map_err(fault)?;
        let frames = self.component_ports(&ieee::PORT_ACCEPTABLE_FRAME_TYPES).map_err(fault)?;
        let filters = self.component_ports(&ieee::PORT_INGRESS_FILTERING).map_err(fault)?;
        raw.tables(VlanMib::Ieee, ports, [pvids, frames, filters], IEEE_ONLY_TAGGED)
    }

    fn component_ports(&mut self, column: &Column) -> Result<Vec<(BridgePort, Value)>, SessionError> {
        let rows = self.optional::<ComponentPort>(column)?;
        Ok(rows.into_iter().map(|(row, value)| (BridgePort(row.port), value)).collect())
    }
}

/// admitTagged of ieee8021QBridgePortAcceptableFrameTypes.
const IEEE_ONLY_TAGGED: i32 = 3;

/// Columns as they came.
struct Raw {
    names: BTreeMap<VlanId, Value>,
    egress: BTreeMap<VlanId, Value>,
    untagged: BTreeMap<VlanId, Value>,
}

fn by_component(rows: Vec<(ComponentVlan, Value)>) -> Result<BTreeMap<VlanId, Value>, Fault> {
    let mut components: BTreeSet<u32> = rows.iter().map(|(row, _)| row.component).collect();
    components.pop_first();
    match components.pop_first() {
        None => Ok(rows.into_iter().map(|(row, value)| (row.vlan, value)).collect()),
        Some(other) => Err(Fault::Refused(format!(
            "it has several bridges in one (component {other} of IEEE8021-Q-BRIDGE-MIB), and a VLAN for each of them; {WAY_OUT}"
        ))),
    }
}

impl Raw {
    fn is_empty(&self) -> bool {
        self.names.is_empty() && self.egress.is_empty() && self.untagged.is_empty()
    }

    fn tables(
        self,
        mib: VlanMib,
        ports: &BTreeSet<u32>,
        [pvids, frames, filters]: [Vec<(BridgePort, Value)>; 3],
        only_tagged: i32,
    ) -> Result<VlanTables, Fault> {
        let columns = [&q_bridge::VLAN_STATIC_EGRESS_PORTS, &q_bridge::VLAN_STATIC_UNTAGGED_PORTS];
        let mut lists: Vec<&[u8]> = Vec::new();
        for (column, rows) in columns.into_iter().zip([&self.egress, &self.untagged]) {
            for value in rows.values() {
                lists.push(value.octets().ok_or_else(|| no_list(column))?);
            }
        }
        let form = ListForm::of(&lists, ports).map_err(|odd| {
            Fault::Refused(format!(
                "its lists of ports (PortList of dot1qVlanStaticTable) {odd}; it has {} bridge ports. They are not read, so that no \
                 member is invented; {WAY_OUT}",
                ports.len()
            ))
        })?;
        let decode = |value: &Value| {
            form.decode(value.octets().unwrap_or_default()).map_err(|error| Fault::Refused(error.to_string()))
        };
        let mut members: BTreeMap<VlanId, (PortList, PortList)> = BTreeMap::new();
        for (vlan, value) in &self.egress {
            members.insert(*vlan, (decode(value)?, PortList::new()));
        }
        for (vlan, value) in &self.untagged {
            members.entry(*vlan).or_default().1 = decode(value)?;
        }
        let mut names: BTreeMap<VlanId, Vec<u8>> = members.keys().map(|vlan| (*vlan, Vec::new())).collect();
        names.extend(self.names.iter().map(|(vlan, name)| (*vlan, name.octets().unwrap_or_default().to_vec())));
        let tagged = frames.into_iter().filter(|(_, value)| value.int() == Some(only_tagged));
        Ok(VlanTables {
            mib,
            form,
            names,
            members,
            pvids: pvids
                .into_iter()
                .filter_map(|(port, value)| Some((port, value.unsigned().and_then(vlan_id)?)))
                .collect(),
            tagged_only: tagged.map(|(port, _)| port).collect(),
            filters: filters.into_iter().collect(),
        })
    }
}

fn no_list(column: &Column) -> Fault {
    Fault::Refused(format!("{} is no list of ports (PortList); {WAY_OUT}", column.name))
}
