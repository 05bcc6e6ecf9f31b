//! What a standby wants to know of a switch, and the little that it writes: quick enough to ask several times a second.

use std::ops::Range;

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
use snmp::{Column, Link, Oid, SessionError, Value};
use switch_model::{
    Slot,
    driver::Fault,
    edit::Edit,
    mark::Mark,
    observe::{Count, Received},
};

/// Octets of a port's states and of a counter in an answer, and of all that one question is about, so that the answer fits into one
/// frame: 16 ports, of which 4 are counted.
const STATES_OCTETS: usize = 60;
const COUNTER_OCTETS: usize = 36;
const ANSWER_OCTETS_MAX: usize = 1250;
/// Objects of a port's states.
const STATES: usize = 3;
/// Counters of received frames, unicast and broadcast: of 64 bits, and where a switch has no such, of 32.
static RECEIVED: [[&Column; 2]; 2] =
    [[&if_mib::HC_IN_UCAST_PKTS, &if_mib::IN_UCAST_PKTS], [&if_mib::HC_IN_BROADCAST_PKTS, &if_mib::IN_BROADCAST_PKTS]];

/// A switch at a glance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Glance {
    /// Who set it up last.
    pub mark: Option<Mark>,
    /// sysUpTime in hundredths of a second.
    pub up_cs: u32,
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
    /// Frames that it has received, if that was asked.
    pub received: Received,
}

impl<L: Link> Device<L> {
    /// Looks at the switch: its mark, three objects a port, and of the ports that are `counted`, in ascending order, what they have
    /// received. Cost: 1 request, and 1 for some 16 ports.
    ///
    /// # Errors
    /// [`Fault`]; counters that the switch does not have are no fault.
    pub fn glance(&mut self, counted: &[Slot]) -> Result<Glance, Fault> {
        let mark = self.mark()?;
        let mut ports = Vec::with_capacity(self.ports.len());
        while ports.len() < self.ports.len() {
            let first = ports.len();
            let mut octets = 0;
            let fits = |slot: &usize| {
                let counters = if counted.contains(&Slot::new(*slot)) { RECEIVED.len() } else { 0 };
                octets += STATES_OCTETS + counters * COUNTER_OCTETS;
                octets <= ANSWER_OCTETS_MAX
            };
            let past = first + (first..self.ports.len()).take_while(fits).count();
            let own: Vec<Slot> = counted.iter().copied().filter(|slot| (first..past).contains(&slot.index())).collect();
            ports.extend(self.glance_at(first..past, &own)?);
        }
        Ok(Glance { mark, up_cs: self.up_cs, ports })
    }

    /// Looks at some ports in one request, of which some are counted.
    fn glance_at(&mut self, slots: Range<usize>, counted: &[Slot]) -> Result<Vec<PortGlance>, Fault> {
        let states: Vec<Oid> = (self.ports[slots.clone()].iter())
            .flat_map(|port| {
                [
                    if_mib::OPER_STATUS.row(&port.interface),
                    q_bridge::PVID.row(&port.bridge),
                    q_bridge::PORT_ACCEPTABLE_FRAME_TYPES.row(&port.bridge),
                ]
            })
            .collect();
        let counters: Vec<(Slot, usize, Oid)> = (counted.iter())
            .flat_map(|slot| (0..RECEIVED.len()).map(move |kind| (*slot, kind)))
            .filter_map(|(slot, kind)| {
                let width = self.widths.get(&slot).map_or(0, |widths| widths[kind]);
                let column = RECEIVED[kind].get(width)?;
                Some((slot, kind, column.row(&self.ports[slot.index()].interface)))
            })
            .collect();
        let asked: Vec<Oid> = counters.iter().map(|(.., object)| object.clone()).collect();
        let mut values = match self.session.get(&[&states[..], &asked].concat()) {
            // A switch that takes offence at a counter that it does not have says its states all the same.
            Err(SessionError::Refused { .. }) if !asked.is_empty() => {
                let mut values = self.session.get(&states).map_err(fault)?;
                values.extend(self.get_some(&asked)?);
                values
            }
            values => values.map_err(fault)?,
        };
        let counts = values.split_off(states.len());
        let mut ports: Vec<PortGlance> = values.chunks(STATES).map(port_glance).collect();
        for ((slot, kind, _), value) in counters.into_iter().zip(counts) {
            let count = match value {
                Value::Counter64(count) => Count::Wide(count),
                Value::Counter32(count) => Count::Narrow(count),
                _ => {
                    self.widths.entry(slot).or_default()[kind] += 1;
                    continue;
                }
            };
            let received = &mut ports[slot.index() - slots.start].received;
            *[&mut received.unicast, &mut received.broadcast][kind] = count;
        }
        Ok(ports)
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
        if self.mark()? != Some(mark) {
            return Err(Fault::Fenced);
        }
        self.carry_out_all(edits)
    }
}

fn port_glance(states: &[Value]) -> PortGlance {
    let tagged_only = states[2].int() == Some(AcceptableFrames::OnlyTagged.code());
    PortGlance {
        running: states[0].int() == Some(IfStatus::Up.code()),
        pvid: Value::unsigned(&states[1]).and_then(vlan_id).filter(|_| !tagged_only),
        received: Received::default(),
    }
}
