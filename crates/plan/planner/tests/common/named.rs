//! Cablings by name that lose and gain hosts, cables and switches; ports stay in their places.

use fabric::{Demand, InBand, Mac, Topology, TopologyBuilder, Traffic, TrafficMatrix, VlanId};

/// A switch and a port of it.
pub(crate) type End = (String, String);

/// A cabling by names.
#[derive(Clone, Debug)]
pub(crate) struct Named {
    pub(crate) switches: Vec<String>,
    pub(crate) ports: Vec<End>,
    /// LAGs, each with a member.
    pub(crate) lags: Vec<(End, End)>,
    pub(crate) links: Vec<(End, End, u64)>,
    pub(crate) hosts: Vec<(String, Mac, End)>,
    /// Edge ports on standby.
    pub(crate) standby_edges: Vec<(String, End)>,
}

impl Named {
    pub(crate) fn of(topology: &Topology) -> Self {
        let end = |port: fabric::PortId| {
            let port = topology.port(port);
            (topology.switch(port.switch).name.clone(), port.name.clone())
        };
        Self {
            switches: topology.switches().iter().map(|switch| switch.name.clone()).collect(),
            ports: topology.switch_ids().flat_map(|switch| topology.port_ids(switch)).map(end).collect(),
            lags: (0..topology.ports().len())
                .map(fabric::PortId::new)
                .filter(|port| topology.logical_port(*port) != *port)
                .map(|port| (end(topology.logical_port(port)), end(port)))
                .collect(),
            links: topology.links().iter().map(|link| (end(link.a), end(link.b), link.rate_bps)).collect(),
            hosts: topology.hosts().iter().map(|host| (host.name.clone(), host.mac, end(host.port))).collect(),
            standby_edges: topology.standby_edges().iter().map(|edge| (edge.name.clone(), end(edge.port))).collect(),
        }
    }

    /// Its topology, managed from its first switch in VLAN 100 if `managed`; none if it is in parts.
    pub(crate) fn topology(&self, managed: bool) -> Option<Topology> {
        let mut builder = TopologyBuilder::new();
        for name in &self.switches {
            builder.add_switch(name, Default::default()).expect("a fresh name");
        }
        for (switch, port) in self.ports.iter().filter(|(switch, _)| self.switches.contains(switch)) {
            let switch = builder.switch(switch).expect("it is there");
            builder.add_port(switch, port).expect("a fresh port");
        }
        let port = |builder: &mut TopologyBuilder, (switch, port): &End| {
            let switch = builder.switch(switch).expect("it is there");
            builder.add_port(switch, port).expect("a port")
        };
        for (lag, member) in self.lags.iter().filter(|(lag, _)| self.switches.contains(&lag.0)) {
            let (lag, member) = (port(&mut builder, lag), port(&mut builder, member));
            builder.add_to_lag(lag, member).expect("a free port");
        }
        for (a, b, rate_bps) in &self.links {
            let (a, b) = (port(&mut builder, a), port(&mut builder, b));
            builder.add_link(a, b, *rate_bps).expect("free ports");
        }
        for (name, mac, end) in &self.hosts {
            // A gigabit a cable.
            let cables = self.lags.iter().filter(|(lag, _)| lag == end).count().max(1) as u64;
            let (end, rate_bps) = (port(&mut builder, end), cables * 1_000_000_000);
            // Ports of one address are a failover bond, of which the first that is left is active; a port of none is an uplink.
            let bond =
                name.split_once('/').filter(|_| self.hosts.iter().filter(|(_, other, _)| other == mac).count() > 1);
            let is_first = self.hosts.iter().find(|(_, other, _)| other == mac).is_some_and(|first| first.0 == *name);
            let added = match bond {
                _ if mac.is_zero() => builder.add_edge(name, end, rate_bps, None),
                Some(_) if !is_first => builder.add_standby(name, end, rate_bps),
                _ => builder.add_host(name, *mac, end, rate_bps, None),
            };
            added.expect("a free port");
            if let Some((machine, _)) = bond.filter(|_| is_first) {
                builder.join_machine(machine).expect("the first port of a bond");
            }
        }
        for (name, end) in self.standby_edges.iter().filter(|(_, end)| self.switches.contains(&end.0)) {
            let end = port(&mut builder, end);
            builder.add_standby_edge(name, end, 1_000_000_000).expect("a free port");
        }
        if managed {
            let controller = port(&mut builder, &(self.switches[0].clone(), "ctl".to_owned()));
            let vlan = VlanId::new(100).expect("in range");
            builder.set_in_band(InBand { vlan, controller }).expect("a free port");
        }
        builder.finish().ok().filter(|topology| topology.hosts().len() > 1)
    }

    /// Less a switch and all that is plugged into it.
    pub(crate) fn without_switch(&self, at: usize) -> Self {
        let mut less = self.clone();
        let gone = less.switches.remove(at);
        less.links.retain(|(a, b, _)| a.0 != gone && b.0 != gone);
        less.hosts.retain(|(.., end)| end.0 != gone);
        less
    }
}

/// What hosts send to each other by their addresses: as much between two whoever else there is.
pub(crate) fn matrix_by_address(topology: &Topology) -> Traffic {
    let number = |host| topology.host(host).mac.octets().iter().fold(0, |sum, octet| 31 * sum + u64::from(*octet));
    let mut demands = Vec::new();
    for source in topology.host_ids() {
        for destination in topology.host_ids().filter(|destination| *destination != source) {
            let mixed = 7 * number(source) + 13 * number(destination);
            if mixed % 4 == 0 {
                demands.push(Demand { source, destination, amount: (1 + mixed % 9) as f64 });
            }
        }
    }
    Traffic::Matrix(TrafficMatrix::new(topology.hosts().len(), demands).expect("sane demands"))
}
