//! What a standby wants to know of a switch, and the little that it writes: quick enough to ask several times a second.

use fabric::VlanId;

use super::{
    Device,
    faults::{fault, vlan_id},
};
use bridge_mib::{
    AcceptableFrames, IfStatus,
    index::VlanIndex,
    objects::{if_mib, q_bridge, system},
};
use snmp::{Link, Oid, Value};
use switch_model::{driver::Fault, edit::Edit, mark::Mark};

/// Ports that one question is about, so that the answer fits into one frame.
const PORTS_AT_ONCE: usize = 16;

/// A switch at a glance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Glance {
    /// Who set it up last.
    pub mark: Option<Mark>,
    /// `ports[slot]`.
    pub ports: Vec<PortGlance>,
}

/// A port at a glance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortGlance {
    /// Whether the cable carries.
    pub running: bool,
    /// The VLAN of untagged frames that enter; none drops them.
    pub pvid: Option<VlanId>,
}

impl<L: Link> Device<L> {
    /// Looks at the switch: three objects a port, and its mark.
    ///
    /// # Errors
    /// [`Fault`].
    pub fn glance(&mut self) -> Result<Glance, Fault> {
        let mark = self.mark()?;
        let mut ports = Vec::with_capacity(self.ports.len());
        for some in self.ports.chunks(PORTS_AT_ONCE) {
            let objects: Vec<Oid> = (some.iter())
                .flat_map(|port| {
                    [
                        if_mib::OPER_STATUS.row(&port.interface),
                        q_bridge::PVID.row(&port.bridge),
                        q_bridge::PORT_ACCEPTABLE_FRAME_TYPES.row(&port.bridge),
                    ]
                })
                .collect();
            let values = self.session.get(&objects).map_err(fault)?;
            ports.extend(values.chunks(3).map(|values| {
                let tagged_only = values[2].int() == Some(AcceptableFrames::OnlyTagged.code());
                PortGlance {
                    running: values[0].int() == Some(IfStatus::Up.code()),
                    pvid: Value::unsigned(&values[1]).and_then(vlan_id).filter(|_| !tagged_only),
                }
            }));
        }
        Ok(Glance { mark, ports })
    }

    /// Who set the switch up last; notes whether it has started anew, see [`Self::starts`].
    ///
    /// # Errors
    /// [`Fault`].
    pub fn mark(&mut self) -> Result<Option<Mark>, Fault> {
        let name = q_bridge::VLAN_STATIC_NAME.row(&VlanIndex(self.known_tag_vlan()));
        let values = self.session.get(&[name, system::UP_TIME.instance()]).map_err(fault)?;
        if let Some(up_cs) = values[1].count() {
            self.note_up(up_cs as u32);
        }
        let text = values[0].octets().map(String::from_utf8_lossy);
        Ok(text.and_then(|text| text.trim_end_matches('\0').parse().ok()))
    }

    /// The VLAN whose name is the tag: where the last whole reading found it, else where it would be left.
    pub(super) fn known_tag_vlan(&self) -> VlanId {
        self.mark_vlans.iter().next_back().copied().unwrap_or(self.mark_vlan)
    }

    /// Carries out a few edits, if the switch bears this mark still.
    ///
    /// # Errors
    /// [`Fault`]; fenced if somebody else has set the switch up since.
    pub fn edit(&mut self, mark: Mark, edits: &[Edit]) -> Result<(), Fault> {
        self.fence()?;
        if self.glance()?.mark != Some(mark) {
            return Err(Fault::Fenced);
        }
        self.carry_out_all(edits)
    }
}
