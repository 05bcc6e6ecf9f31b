//! A plan's device state, compiled for speed: who may enter and leave by a port in a VLAN, and where frames go.
//!
//! Nothing here looks at the plan's trees or certificate. What a port does with a tag, which VLANs it belongs to, and
//! what the static table says is all that a switch knows, and all that the simulator executes.
//!
//! ```text
//!   (switch, VLAN, destination) ──▶ port      dense while that fits, else a search among the VLAN's runs
//!                               └─▶ no entry: out of every other port of the VLAN
//! ```
//! Cost: O(1) a lookup while `switches · VLANs · hosts` stays below [`DENSE_CELLS_MAX`], O(log runs) beyond.

use fabric::{
    Admin, FdbRun, FloodKind, FloodSet, FlowControlMode, HostId, HostTagging, Plan, PortId, PortRole, StormLimit,
    VlanId,
};

use crate::spread::vlans_of;

/// Most cells of the dense table, of two bytes each.
pub(crate) const DENSE_CELLS_MAX: usize = 1 << 26;

/// No port, no VLAN, no neighbour.
pub(crate) const NONE: u32 = u32::MAX;
/// No VLAN tag on the cable.
pub(crate) const UNTAGGED: u16 = u16::MAX;
const MISS: u16 = u16::MAX;
/// A cell's bits for the port, counted from its switch's first; above them, how the frame leaves it.
const PORT_BITS: u32 = 14;
const PORT_MASK: u16 = (1 << PORT_BITS) - 1;

/// How a frame leaves a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Leave {
    /// The port is not in the VLAN.
    Not,
    /// With its tag.
    Tagged,
    /// Without one.
    Untagged,
}

impl Leave {
    #[inline]
    const fn bits(self) -> u16 {
        match self {
            Self::Not => 0,
            Self::Tagged => 1,
            Self::Untagged => 2,
        }
    }

    #[inline]
    const fn of_bits(bits: u16) -> Self {
        match bits {
            0 => Self::Not,
            1 => Self::Tagged,
            _ => Self::Untagged,
        }
    }
}

/// The compiled state of all switches, and what hosts put on the cable.
pub(crate) struct Tables {
    /// VLANs in use, ascending; an index into it stands for the VLAN everywhere else.
    pub(crate) vlans: Vec<VlanId>,
    /// `lane[vlan]`: the class in which the VLAN's frames travel.
    pub(crate) lane: Vec<u8>,
    /// `first_port[switch]`, and the number of ports behind the last.
    first_port: Vec<u32>,
    /// `pvid[port]`: the VLAN index of untagged frames, or [`UNTAGGED`] where there is none.
    pvid: Vec<u16>,
    /// `untagged_in[port]`: the same, and [`UNTAGGED`] also where the port is down or not in that VLAN.
    untagged_in: Vec<u16>,
    up: Vec<bool>,
    /// Bit sets over VLAN indices, `words` words a port.
    tagged: Vec<u64>,
    untagged: Vec<u64>,
    /// VLANs of which a port takes tagged frames: it is up, and in them either way.
    taken: Vec<u64>,
    words: usize,
    hosts: usize,
    dense: Vec<u16>,
    runs: Vec<Vec<FdbRun>>,
    /// Whether each port has flow control.
    pub(crate) flow_control: Vec<bool>,
    /// `blocked[port]`: floods that do not leave by it.
    blocked: Vec<FloodSet>,
    /// `untagged_class[port]`: the priority class of untagged frames that enter.
    pub(crate) untagged_class: Vec<u8>,
    /// `storm_limit[port]`: the most floods of a kind that it admits, in percent of its rate; 0 where there is no limit.
    pub(crate) storm_limit: Vec<u8>,
    /// `by_host`: hosts tag their own frames.
    by_host: bool,
}

impl Tables {
    /// Compiles the device state of a plan.
    pub(crate) fn compile(plan: &Plan) -> Self {
        Self::compile_within(plan, DENSE_CELLS_MAX)
    }

    fn compile_within(plan: &Plan, cells_max: usize) -> Self {
        let topology = &plan.topology;
        let (ports, hosts) = (topology.ports().len(), topology.hosts().len());
        let mut vlans: Vec<VlanId> = plan
            .devices
            .iter()
            .flat_map(|device| {
                let members = device.vlans();
                let pvids: Vec<VlanId> = device.ports.iter().filter_map(|port| port.pvid).collect();
                members.iter().chain(pvids).collect::<Vec<_>>()
            })
            .collect();
        vlans.sort_unstable();
        vlans.dedup();
        let index = |vlan: VlanId| vlans.binary_search(&vlan).map_or(UNTAGGED, |at| at as u16);
        let words = vlans.len().div_ceil(64).max(1);
        let (mut tagged, mut untagged) = (vec![0; ports * words], vec![0; ports * words]);
        let (mut pvid, mut up, mut flow_control) = (vec![UNTAGGED; ports], vec![false; ports], vec![false; ports]);
        let mut blocked = vec![FloodSet::NONE; ports];
        let (mut untagged_class, mut storm_limit) = (vec![0; ports], vec![0; ports]);
        let switches = topology.switches().len();
        let dense_cells = switches * vlans.len() * hosts;
        let ports_max = topology.switch_ids().map(|switch| topology.switch_ports(switch).len()).max().unwrap_or(0);
        let is_dense = dense_cells <= cells_max && ports_max <= usize::from(PORT_MASK);
        let mut dense = if is_dense { vec![MISS; dense_cells] } else { Vec::new() };
        let mut runs = vec![Vec::new(); if dense.is_empty() { switches } else { 0 }];
        for device in &plan.devices {
            for port in &device.ports {
                let at = port.port.index();
                pvid[at] = port.pvid.map_or(UNTAGGED, index);
                up[at] = port.admin == Admin::Up && port.role != PortRole::Unused;
                flow_control[at] = port.flow_control != FlowControlMode::Off;
                blocked[at] = port.blocked;
                untagged_class[at] = port.untagged_class;
                storm_limit[at] = port.storm_limit.map_or(0, StormLimit::percent);
                for (set, bits) in [(&port.tagged, &mut tagged), (&port.untagged, &mut untagged)] {
                    for vlan in set.iter() {
                        let vlan = usize::from(index(vlan));
                        bits[at * words + vlan / 64] |= 1 << (vlan % 64);
                    }
                }
            }
            let leaves = |port: usize, vlan: u16| {
                leave_by(&up, &tagged, &untagged, port, port * words + usize::from(vlan) / 64, 1 << (vlan % 64))
            };
            let first = topology.switch_ports(device.switch).start;
            if dense.is_empty() {
                let own = &mut runs[device.switch.index()];
                own.extend(device.fdb.iter().copied());
                own.sort_unstable();
            } else {
                for run in &device.fdb {
                    let vlan = index(run.vlan);
                    if vlan != UNTAGGED {
                        let row = (device.switch.index() * vlans.len() + usize::from(vlan)) * hosts;
                        let port = run.port.index();
                        let cell = leaves(port, vlan).bits() << PORT_BITS | (port - first) as u16;
                        dense[row + run.first.index()..=row + run.last.index()].fill(cell);
                    }
                }
            }
        }
        // A tag carries its class through the fabric, so the first switch that states it tells all.
        let class = |vlan| plan.devices.iter().find_map(|device| device.class_of(vlan)).unwrap_or(0);
        let lane = vlans.iter().map(|vlan| class(*vlan) as u8).collect();
        let untagged_in = (0..ports).map(|port| {
            let vlan = pvid[port];
            let word = port * words + usize::from(vlan) / 64;
            let is_member =
                vlan != UNTAGGED && leave_by(&up, &tagged, &untagged, port, word, 1 << (vlan % 64)) != Leave::Not;
            if is_member { vlan } else { UNTAGGED }
        });
        let untagged_in = untagged_in.collect();
        let taken = (0..ports * words).map(|word| if up[word / words] { tagged[word] | untagged[word] } else { 0 });
        let taken = taken.collect();
        let by_host = topology.host_ids().next().is_some_and(|host| {
            // All hosts of a plan tag alike.
            plan.host_intent(host).tagging == HostTagging::ByHost
        });
        Self {
            lane,
            first_port: (topology.switch_ids().map(|switch| topology.switch_ports(switch).start as u32))
                .chain([ports as u32])
                .collect(),
            vlans,
            pvid,
            untagged_in,
            up,
            tagged,
            untagged,
            taken,
            words,
            hosts,
            dense,
            runs,
            flow_control,
            blocked,
            untagged_class,
            storm_limit,
            by_host,
        }
    }

    /// The tag that a host puts on a frame, and the VLAN in which the frame will travel; none if the plan has none.
    pub(crate) fn host_tag(&self, plan: &Plan, source: HostId, destination: Option<HostId>) -> (u16, u16) {
        if self.by_host {
            let vlan = match destination {
                Some(destination) => plan.assignment.unicast(source, destination),
                None => plan.assignment.broadcast(source),
            };
            let index = self.vlans.binary_search(&vlan).map_or(UNTAGGED, |at| at as u16);
            (index, index)
        } else {
            (UNTAGGED, self.pvid[plan.topology.host(source).port.index()])
        }
    }

    /// The tags of frames of a pair in each VLAN of its path set, ascending; the assigned one's alone where hosts do not tag.
    pub(crate) fn path_tags(&self, plan: &Plan, source: HostId, destination: HostId) -> Vec<u16> {
        if !self.by_host {
            return vec![UNTAGGED];
        }
        let index = |vlan: VlanId| self.vlans.binary_search(&vlan).map_or(UNTAGGED, |at| at as u16);
        vlans_of(plan, source, destination).into_iter().map(index).collect()
    }

    /// The ports of a switch.
    pub(crate) fn ports_of(&self, switch: u32) -> std::ops::Range<u32> {
        self.first_port[switch as usize]..self.first_port[switch as usize + 1]
    }

    /// The VLAN that a frame is in once it has entered by a port with this tag; none if the port drops it.
    #[inline(always)]
    pub(crate) fn enter(&self, port: u32, tag: u16) -> Option<u16> {
        if tag == UNTAGGED {
            let vlan = self.untagged_in[port as usize];
            return (vlan != UNTAGGED).then_some(vlan);
        }
        let word = self.taken[port as usize * self.words + usize::from(tag) / 64];
        (word >> (tag % 64) & 1 == 1).then_some(tag)
    }

    /// How a frame of a VLAN leaves by a port.
    #[inline]
    pub(crate) fn leave(&self, port: u32, vlan: u16) -> Leave {
        let word = port as usize * self.words + usize::from(vlan) / 64;
        leave_by(&self.up, &self.tagged, &self.untagged, port as usize, word, 1 << (vlan % 64))
    }

    /// Whether frames of a kind for which the switch has no entry leave by a port.
    #[inline]
    pub(crate) fn lets_out(&self, port: u32, kind: FloodKind) -> bool {
        !self.blocked[port as usize].contains(kind)
    }

    /// The port that the static table names, and how a frame of the VLAN leaves it.
    #[inline(always)]
    pub(crate) fn onward(&self, switch: u32, vlan: u16, destination: u32) -> Option<(u32, Leave)> {
        if !self.dense.is_empty() {
            let row = (switch as usize * self.vlans.len() + usize::from(vlan)) * self.hosts;
            let cell = self.dense[row + destination as usize];
            let port = || self.first_port[switch as usize] + u32::from(cell & PORT_MASK);
            return (cell != MISS).then(|| (port(), Leave::of_bits(cell >> PORT_BITS)));
        }
        let (runs, name) = (&self.runs[switch as usize], self.vlans[usize::from(vlan)]);
        let destination = HostId::new(destination as usize);
        let at = runs.partition_point(|run| (run.vlan, run.first) <= (name, destination));
        let run = runs[..at].last()?;
        let port = run.port.index() as u32;
        (run.vlan == name && run.last >= destination).then(|| (port, self.leave(port, vlan)))
    }

    /// The VLAN's name.
    pub(crate) fn vlan(&self, index: u16) -> VlanId {
        self.vlans[usize::from(index)]
    }
}

/// How a frame leaves a port whose bit for the VLAN stands in a word of the sets.
#[inline]
fn leave_by(up: &[bool], tagged: &[u64], untagged: &[u64], port: usize, word: usize, bit: u64) -> Leave {
    if !up[port] {
        Leave::Not
    } else if untagged[word] & bit != 0 {
        Leave::Untagged
    } else if tagged[word] & bit != 0 {
        Leave::Tagged
    } else {
        Leave::Not
    }
}

/// The route of a frame that its sender gives this tag, as device state alone makes it: the ports that it leaves by, the
/// host's own first as none. `None` if it would be dropped, flooded or sent round for ever.
pub(crate) fn route(
    plan: &Plan,
    tables: &Tables,
    (source, destination): (HostId, HostId),
    mut tag: u16,
) -> Option<Vec<PortId>> {
    let topology = &plan.topology;
    let mut port = topology.host(source).port.index() as u32;
    let mut ports = Vec::new();
    for _ in 0..=topology.switches().len() {
        let vlan = tables.enter(port, tag)?;
        let switch = topology.port(PortId::new(port as usize)).switch.index() as u32;
        let (exit, leave) = tables.onward(switch, vlan, destination.index() as u32)?;
        tag = match leave {
            _ if exit == port => return None,
            Leave::Not => return None,
            Leave::Tagged => vlan,
            Leave::Untagged => UNTAGGED,
        };
        let exit = PortId::new(exit as usize);
        ports.push(exit);
        match topology.port(exit).attachment {
            fabric::Attachment::Host(host) => return (host == destination).then_some(ports),
            fabric::Attachment::Nothing | fabric::Attachment::Member(_) => return None,
            fabric::Attachment::Link(link) => {
                let link = topology.link(link);
                port = (if link.a == exit { link.b } else { link.a }).index() as u32;
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use fabric::{
        Policy, Tagging,
        generate::{Kind, Options, generate},
    };

    use super::*;

    #[test]
    fn dense_cells_and_runs_say_the_same_and_what_the_ports_say() {
        for tagging in [Tagging::Switch, Tagging::Pair] {
            let kind = Kind::parse("torus", &["3x4".to_owned()]).expect("a kind");
            let topology = generate(&kind, &Options::default()).expect("a topology");
            let policy = Policy { tagging, ..Policy::default() };
            let plan = planner::plan(&topology, &policy, None).expect("a plan");
            let switch_of = |port: u32| plan.topology.port(PortId::new(port as usize)).switch.index();
            let (dense, sparse) = (Tables::compile(&plan), Tables::compile_within(&plan, 0));
            assert!(!dense.dense.is_empty() && sparse.dense.is_empty());
            let mut known = 0;
            for (switch, vlan, host) in (0..12).flat_map(|switch| {
                let vlans = 0..dense.vlans.len() as u16;
                vlans.flat_map(move |vlan| (0..12).map(move |host| (switch, vlan, host)))
            }) {
                let onward = dense.onward(switch, vlan, host);
                assert_eq!(onward, sparse.onward(switch, vlan, host));
                if let Some((port, leave)) = onward {
                    known += 1;
                    assert_eq!((leave, switch_of(port)), (dense.leave(port, vlan), switch as usize));
                }
            }
            assert!(known > 100, "{known} entries");
            for port in 0..plan.topology.ports().len() as u32 {
                let by_pvid = dense.enter(port, UNTAGGED);
                let device = &plan.devices[switch_of(port)];
                let intent = device.ports.iter().find(|intent| intent.port.index() as u32 == port).expect("a port");
                let member =
                    intent.pvid.filter(|vlan| intent.tagged.contains(*vlan) || intent.untagged.contains(*vlan));
                assert_eq!(by_pvid.map(|vlan| dense.vlan(vlan)), member.filter(|_| intent.admin == Admin::Up));
                for vlan in 0..dense.vlans.len() as u16 {
                    let leaves = dense.leave(port, vlan) != Leave::Not;
                    assert_eq!(dense.enter(port, vlan), leaves.then_some(vlan));
                }
            }
        }
    }
}
