//! Virtual machines: they appear behind ports where addresses are learned, move between them and vanish.

use std::collections::BTreeMap;

use fabric::{Mac, PortId, Topology, rng::Rng};

use crate::fabric::VirtualFabric;

/// How many there are at most.
const GUESTS_MAX: usize = 9;
/// How often each sends something.
const SPEAKS_MS: u64 = 20_000;

/// Virtual machines, and where they are.
pub(crate) struct Guests {
    /// Ports of hypervisors, and how many addresses each may learn.
    ports: BTreeMap<PortId, usize>,
    /// Where each is, and when it sent last.
    at: BTreeMap<Mac, (PortId, u64)>,
}

impl Guests {
    pub(crate) fn new(topology: &Topology) -> Self {
        let port = |host| {
            let host = topology.host(host);
            (host.port, host.learned_max.unwrap_or(0))
        };
        Self { ports: topology.learning_hosts().map(port).collect(), at: BTreeMap::new() }
    }

    /// Whether there are hypervisors.
    pub(crate) fn have_hosts(&self) -> bool {
        !self.ports.is_empty()
    }

    /// Addresses that a virtual machine may have.
    pub(crate) fn addresses() -> impl Iterator<Item = Mac> {
        (0..GUESTS_MAX as u8).map(|number| Mac::new([2, 0, 0, 0, 0x0a, number]))
    }

    /// Where each virtual machine is.
    pub(crate) fn places(&self) -> impl Iterator<Item = (Mac, PortId)> + '_ {
        self.at.iter().map(|(mac, (port, _))| (*mac, *port))
    }

    /// Ports of hypervisors, and how many addresses each may learn.
    pub(crate) fn caps(&self) -> impl Iterator<Item = (PortId, usize)> + '_ {
        self.ports.iter().map(|(port, cap)| (*port, *cap))
    }

    /// One of them appears, moves or vanishes; which of it, and where it is now.
    pub(crate) fn turn(&mut self, fabric: &mut VirtualFabric, rng: &mut Rng) -> (&'static str, Mac, Option<PortId>) {
        let mac = Self::addresses().nth(rng.below(GUESTS_MAX)).expect("one of them");
        let port = self.ports.keys().nth(rng.below(self.ports.len())).copied().expect("a hypervisor");
        let what = match self.at.get(&mac) {
            Some((at, _)) if rng.below(3) == 0 || *at == port => "virtual machines that vanished",
            Some(_) => "virtual machines that moved",
            None => "virtual machines that appeared",
        };
        if what == "virtual machines that vanished" {
            self.at.remove(&mac);
            return (what, mac, None);
        }
        // It announces itself.
        fabric.send(port, mac);
        self.at.insert(mac, (port, fabric.now_ms));
        (what, mac, Some(port))
    }

    /// Those that have not sent for a while do.
    pub(crate) fn speak(&mut self, fabric: &mut VirtualFabric) {
        let now_ms = fabric.now_ms;
        for (mac, (port, sent_ms)) in self.at.iter_mut().filter(|(_, (_, sent_ms))| now_ms >= sent_ms + SPEAKS_MS) {
            fabric.send(*port, *mac);
            *sent_ms = now_ms;
        }
    }
}
