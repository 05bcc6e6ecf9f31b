//! A program on the hosts of a plan: who runs where, and how its messages travel.
//!
//! Both levels carry a job out. Messages of one pair of hosts travel one after the other, as over one connection; a
//! process's messages for its own host's processes go through memory.

use std::collections::BTreeMap;

use fabric::{HostId, Topology};
use thiserror::Error;

use crate::{
    program::{
        Program,
        executor::{Costs, Ran},
    },
    workload::{Fault, Flow, TcpVariant, Transport, Workload},
};

/// A program, where it runs and how it sends.
#[derive(Clone, Debug)]
pub struct Job {
    pub(crate) program: Program,
    pub(crate) hosts: Vec<HostId>,
    pub(crate) costs: Costs,
    pub(crate) memory: Memory,
    /// One flow without end for each connection, and what breaks.
    pub(crate) workload: Workload,
    /// `connections[(source, destination)]`: the flow.
    pub(crate) connections: BTreeMap<(HostId, HostId), u32>,
}

/// How messages travel.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Messaging {
    /// How they are sent. Datagrams that are lost stay lost, and whoever waits for them waits for ever.
    pub transport: Transport,
    /// Payload of a full frame.
    pub payload_bytes: u32,
    /// What messages cost beside the network.
    pub costs: Costs,
    /// Between processes of one host.
    pub memory: Memory,
}

impl Default for Messaging {
    /// TCP in full frames, and messages that cost nothing beside it.
    fn default() -> Self {
        Self {
            transport: Transport::Tcp(TcpVariant::Reno),
            payload_bytes: 1448,
            costs: Costs::default(),
            memory: Memory::default(),
        }
    }
}

/// Messages between processes of one host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Memory {
    /// What each takes.
    pub latency_ps: u64,
    /// And what each of its octets takes.
    pub ps_per_byte: u64,
}

/// Why a program cannot run on a plan's hosts.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum JobError {
    /// A rank has no host, or a host no rank that was meant to have.
    #[error("{ranks} ranks and places for {places}: name a host for each rank")]
    Places {
        /// Ranks of the program.
        ranks: usize,
        /// Hosts that were named.
        places: usize,
    },
    /// The plan has no such host.
    #[error("host {0} of the placement is not in the plan")]
    NoSuchHost(usize),
}

impl Default for Memory {
    /// A microsecond and 8 Gbit/s.
    fn default() -> Self {
        Self { latency_ps: 1_000_000, ps_per_byte: 1000 }
    }
}

/// Ranks on hosts in order, so many on each; as many hosts as it takes, from the first again if there are too few.
pub fn in_order(topology: &Topology, ranks: usize, ranks_per_host: usize) -> Vec<HostId> {
    let hosts = topology.hosts().len();
    (0..ranks).map(|rank| HostId::new(rank / ranks_per_host.max(1) % hosts)).collect()
}

impl Job {
    /// Places rank `r` of a program on `hosts[r]`.
    ///
    /// # Errors
    /// If ranks and places do not match.
    pub fn new(
        topology: &Topology,
        program: Program,
        hosts: Vec<HostId>,
        messaging: Messaging,
        faults: Vec<Fault>,
    ) -> Result<Self, JobError> {
        if hosts.len() != program.ranks() {
            return Err(JobError::Places { ranks: program.ranks(), places: hosts.len() });
        }
        if let Some(strange) = hosts.iter().find(|host| host.index() >= topology.hosts().len()) {
            return Err(JobError::NoSuchHost(strange.index()));
        }
        let Messaging { transport, payload_bytes, costs, memory } = messaging;
        let mut connections = BTreeMap::new();
        for (from, to) in program.pairs() {
            let (from, to) = (hosts[from as usize], hosts[to as usize]);
            if from != to {
                // A long message is answered before it travels.
                connections.insert((from, to), 0);
                connections.insert((to, from), 0);
            }
        }
        let mut flows = Vec::with_capacity(connections.len());
        for ((source, destination), index) in &mut connections {
            *index = flows.len() as u32;
            flows.push(Flow { transport, payload_bytes, ..Flow::flood(*source, *destination) });
        }
        let workload = Workload { flows, faults };
        Ok(Self { program, hosts, costs, memory, workload, connections })
    }

    /// The program.
    pub fn program(&self) -> &Program {
        &self.program
    }

    /// Its connections as flows without end, in the order in which outcomes tell of them.
    pub fn workload(&self) -> &Workload {
        &self.workload
    }

    /// The flow that carries messages between two ranks; none within a host.
    pub(crate) fn connection(&self, from: u32, to: u32) -> Option<u32> {
        let (from, to) = (self.hosts[from as usize], self.hosts[to as usize]);
        self.connections.get(&(from, to)).copied()
    }
}

impl Memory {
    pub(crate) fn time_ps(&self, bytes: u64) -> u64 {
        self.latency_ps + bytes * self.ps_per_byte
    }
}

/// What became of a job.
#[derive(Clone, Debug, PartialEq)]
pub struct JobOutcome {
    /// How its program ran.
    pub ran: Ran,
    /// Whether simulated time was over before the program was.
    pub cut_short: bool,
}
