//! LAGs at the packet level: a queue, a transmitter and PAUSE for each cable.
//!
//! ```text
//!   ports   ▕ switches' ports, LAGs and members among them ▏ hosts' own ▏ cables of hosts that have a LAG ▏
//! ```
//! VLANs and static entries name the LAG, whose own queue stays empty. A frame that leaves by it waits at the member that its
//! flow takes, and one that comes in by a member has come by the LAG. What members did is added up for the LAG at the end.

use std::ops::Range;

use fabric::{HostId, PortId, Topology};

use super::{
    Network,
    frame::{Frame, Payload},
    outcome::PortOutcome,
    port::Port,
};
use crate::{
    lag::{FlowHash, numbers},
    tables::NONE,
    workload::Workload,
};

/// Which ports are members of which; empty where there is no LAG.
pub(super) struct Lags {
    hash: FlowHash,
    /// `number[flow]`: which it is of the flows between its two hosts in its phase.
    number: Vec<u32>,
    /// `members[range[port]]`; an empty range for ports that are no LAG.
    range: Vec<Range<u32>>,
    members: Vec<u32>,
    /// `logical[port]`: the LAG that it is a member of, else itself.
    logical: Vec<u32>,
}

impl Lags {
    /// The LAGs of a topology, and those of its hosts: behind the ports of switches and hosts there is one for each cable of a
    /// host's LAG.
    pub(super) fn of(topology: &Topology, workload: &Workload) -> Self {
        let hash = FlowHash::of(topology);
        if !topology.has_lags() {
            return Self { hash, number: Vec::new(), range: Vec::new(), members: Vec::new(), logical: Vec::new() };
        }
        let own = topology.ports().len() + topology.hosts().len();
        let (mut range, mut members, mut logical) = (vec![0..0; own], Vec::new(), (0..own as u32).collect::<Vec<_>>());
        for lag in (0..topology.ports().len()).map(PortId::new).filter(|port| topology.port(*port).lag().is_some()) {
            let start = members.len() as u32;
            members.extend(topology.members(lag).map(|member| member.index() as u32));
            range[lag.index()] = start..members.len() as u32;
            topology.members(lag).for_each(|member| logical[member.index()] = lag.index() as u32);
        }
        for (host, port) in topology.host_ids().map(|id| (id.index(), topology.host(id).port)) {
            if topology.port(port).lag().is_some() {
                let (nic, start) = ((topology.ports().len() + host) as u32, members.len() as u32);
                for _ in topology.members(port) {
                    members.push(logical.len() as u32);
                    logical.push(nic);
                }
                range[nic as usize] = start..members.len() as u32;
            }
        }
        range.resize(logical.len(), 0..0);
        let keys = workload.flows.iter().map(|flow| (flow.phase, flow.source, flow.destination));
        Self { hash, number: numbers(keys), range, members, logical }
    }

    /// Further flows, which are subflows of one: on real cables they would have ports of their own.
    pub(super) fn add_subflows(&mut self, origin: usize, count: u32) {
        if let Some(number) = self.number.get(origin).copied() {
            self.number.extend((1..=count).map(|at| number + at));
        }
    }

    /// The members of a LAG, in order; none of any other port.
    pub(super) fn members(&self, port: u32) -> &[u32] {
        let range = self.range.get(port as usize).cloned().unwrap_or_default();
        &self.members[range.start as usize..range.end as usize]
    }

    /// The ports whose cables a port stands for: its members where it is a LAG, else itself.
    pub(super) fn cabled(&self, port: u32) -> Vec<u32> {
        match self.members(port) {
            [] => vec![port],
            members => members.to_vec(),
        }
    }

    /// The LAG that a port is a member of, else the port itself.
    #[inline(always)]
    pub(super) fn logical(&self, port: u32) -> u32 {
        if self.logical.is_empty() { port } else { self.logical[port as usize] }
    }

    /// How many ports there are for the cables of hosts with a LAG.
    pub(super) fn extra_ports(&self, own: usize) -> Range<usize> {
        own..self.logical.len().max(own)
    }

    /// The port whose queue a frame joins in order to leave by a port.
    #[inline(always)]
    pub(super) fn exit(&self, port: u32, frame: &Frame) -> u32 {
        if self.range.is_empty() || self.range[port as usize].is_empty() { port } else { self.member(port, frame) }
    }

    fn member(&self, port: u32, frame: &Frame) -> u32 {
        let host = |host: u32| HostId::new(host as usize);
        let destination = (frame.destination != NONE).then(|| host(frame.destination));
        // Requests for addresses, and answers, have no ports.
        let number = match frame.kind {
            Payload::Data | Payload::Ack | Payload::MarkedAck => self.number[frame.flow as usize],
            Payload::ArpRequest | Payload::ArpReply => 0,
        };
        self.by_flow(port, (host(frame.source), destination), number)
    }

    /// The port of a host whose queue the data frames of a flow join.
    pub(super) fn nic(&self, nic: u32, flow: u32, (from, to): (HostId, Option<HostId>)) -> u32 {
        if self.members(nic).is_empty() { nic } else { self.by_flow(nic, (from, to), self.number[flow as usize]) }
    }

    fn by_flow(&self, port: u32, ends: (HostId, Option<HostId>), number: u32) -> u32 {
        let members = self.members(port);
        members[self.hash.member(ends, number, members.len() as u32) as usize]
    }
}

impl Network<'_> {
    /// Joins the cables of LAGs: member to member, in order.
    pub(super) fn cable_members(&mut self, own: usize) {
        for port in 0..own as u32 {
            let (members, far) = (self.lags.members(port).to_vec(), self.ports[port as usize].peer);
            if members.is_empty() || far == NONE {
                continue;
            }
            let far = self.lags.members(far).to_vec();
            for (member, peer) in members.iter().zip(far) {
                let lag = &self.ports[port as usize];
                let (ps_per_byte, flight_ps) = (lag.ps_per_byte * members.len() as u64, lag.flight_ps);
                let (switch, flow_control) = (lag.switch, lag.flow_control);
                let state = &mut self.ports[*member as usize];
                (state.peer, state.ps_per_byte, state.flight_ps) = (peer, ps_per_byte, flight_ps);
                (state.switch, state.flow_control) = (switch, flow_control);
            }
        }
    }

    /// Adds up what the members of each LAG did; ports of cables of hosts go.
    pub(super) fn add_up_members(&mut self, own: usize) {
        for port in 0..own {
            let members = self.lags.members(port as u32);
            if members.is_empty() {
                continue;
            }
            let of_members: Vec<PortOutcome> =
                members.iter().map(|member| self.ports[*member as usize].outcome).collect();
            let sum = &mut self.ports[port].outcome;
            for member in of_members {
                sum.frames += member.frames;
                sum.wire_bytes += member.wire_bytes;
                sum.dropped += member.dropped;
                sum.queue_bytes_max = sum.queue_bytes_max.max(member.queue_bytes_max);
                sum.pauses += member.pauses;
                sum.paused_ps += member.paused_ps;
            }
        }
        self.ports.truncate(own);
    }

    /// A figure of each port of switches and hosts; that of a LAG is the sum of its members'.
    pub(super) fn by_port<T: Copy + std::iter::Sum>(&self, of: impl Fn(&Port) -> T) -> Vec<T> {
        let own = self.switch_ports + self.plan.topology.hosts().len();
        (self.ports.iter().take(own).enumerate())
            .map(|(port, state)| match self.lags.members(port as u32) {
                [] => of(state),
                members => members.iter().map(|member| of(&self.ports[*member as usize])).sum(),
            })
            .collect()
    }
}
