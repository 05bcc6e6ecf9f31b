//! Switches taken out, as those that died: what is left of a topology, and of what a planner was asked for.
//!
//! ```text
//!   h0 ─ s0 ─── s1 ─ h1      without s1:   h0 ─ s0 ╴     the port toward s1 is there, with nothing plugged in;
//!         └─ s2 ─┘                               └─ s2 ╴  h1 is gone with its switch
//! ```

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    Attachment, ChannelId, Drain, Fault, HostId, InBand, Models, Planes, Policy, Relation, SwitchId, SwitchSpec,
    Topology, TopologyBuilder, Traffic, TrafficMatrix,
};

impl Topology {
    /// The topology without some switches, and without what is plugged into them. Cost: O(n log n) in ports, links and hosts.
    ///
    /// # Errors
    /// As [`TopologyBuilder::finish`]: the rest may fall apart. A controller at one of the switches is no controller any more.
    pub fn without_switches(&self, gone: &BTreeSet<SwitchId>) -> Result<Self, Vec<Fault>> {
        let one = |fault: Fault| vec![fault];
        let mut builder = TopologyBuilder::with_models(Models::of(self));
        let leads_away = |attachment: Attachment| match attachment {
            Attachment::Link(link) => {
                [ChannelId::forward(link), ChannelId::backward(link)].iter().any(|end| gone.contains(&self.tail(*end)))
            }
            _ => false,
        };
        let mut ports = vec![None; self.ports().len()];
        let mut switches = vec![None; self.switches().len()];
        let mut links = vec![None; self.links().len()];
        for id in self.switch_ids().filter(|id| !gone.contains(id)) {
            let switch = self.switch(id);
            let spec = SwitchSpec { model: Some(switch.model.name.clone()), mgmt: switch.mgmt };
            let left = builder.add_switch(&switch.name, spec).map_err(one)?;
            switches[id.index()] = Some(left);
            builder.set_switch_identity(left, switch.identity.clone()).map_err(one)?;
            switch.guid.map_or(Ok(()), |guid| builder.set_switch_guid(left, guid)).map_err(one)?;
            for port in self.port_ids(id) {
                // A LAG whose cables are all out is none: its members are ports again.
                let Some(known) =
                    Some(self.port(port)).filter(|port| port.lag().is_none() || !leads_away(port.attachment))
                else {
                    continue;
                };
                ports[port.index()] = Some(builder.add_port(left, &known.name).map_err(one)?);
            }
        }
        for (port, known) in ports.iter().zip(self.ports()) {
            let Attachment::Member(lag) = known.attachment else { continue };
            if let (Some(port), Some(lag)) = (*port, ports[lag.index()]) {
                builder.add_to_lag(lag, port).map_err(one)?;
            }
        }
        for (id, link) in self.link_ids().zip(self.links()) {
            if let (Some(a), Some(b)) = (ports[link.a.index()], ports[link.b.index()]) {
                if !leads_away(self.port(link.a).attachment) {
                    links[id.index()] = Some(builder.add_link(a, b, link.rate_bps).map_err(one)?);
                }
            }
        }
        builder.add_hosts_of(self, |_, host| ports[host.port.index()]).map_err(one)?;
        builder.add_standby_edges_of(self, |edge| ports[edge.port.index()]).map_err(one)?;
        builder.add_groups_of(self, |id| switches[id.index()], |id| links[id.index()]).map_err(one)?;
        if let Some(in_band) = self.in_band() {
            if let Some(controller) = ports[in_band.controller.index()] {
                builder.set_in_band(InBand { controller, ..in_band }).map_err(one)?;
            }
            for port in self.return_ports().iter().filter_map(|port| ports[port.index()]) {
                builder.add_return_port(port).map_err(one)?;
            }
        }
        builder.finish()
    }
}

impl Policy {
    /// The same for another topology: what it says of links, switches and hosts is said of those that are the same there, and
    /// forgotten of the others.
    ///
    /// # Panics
    /// If a matrix is not for the hosts of `old`.
    #[must_use]
    pub fn for_topology(&self, old: &Topology, new: &Topology) -> Self {
        let relation = Relation::between(old, new);
        let switch: BTreeMap<SwitchId, SwitchId> =
            new.switch_ids().filter_map(|id| Some((relation.switch_from[id.index()]?, id))).collect();
        let host: BTreeMap<HostId, HostId> =
            new.host_ids().filter_map(|id| Some((relation.host_from[id.index()]?, id))).collect();
        let matrix = |matrix: &TrafficMatrix| {
            let receivers = |source: HostId| {
                let sent = relation.host_from[source.index()].map_or(&[][..], |before| matrix.sent_by(before));
                let mut row: Vec<(HostId, f64)> =
                    sent.iter().filter_map(|(to, amount)| Some((*host.get(to)?, *amount))).collect();
                row.sort_unstable_by_key(|(to, _)| *to);
                row.into_iter()
            };
            TrafficMatrix::of_rows(new.hosts().len(), receivers).expect("no more demands than before")
        };
        let links = self.drain.links.iter().filter_map(|link| relation.channel[ChannelId::forward(*link).index()]);
        let drain = Drain {
            links: links.map(ChannelId::link).collect(),
            switches: self.drain.switches.iter().filter_map(|id| switch.get(id).copied()).collect(),
        };
        let planes = self.planes.by_switch();
        let plane = |id: SwitchId| {
            relation.switch_from[id.index()].and_then(|before| planes.get(before.index()).copied()).unwrap_or(0)
        };
        Self {
            traffic: match &self.traffic {
                Traffic::AllToAll => Traffic::AllToAll,
                Traffic::Matrix(known) => Traffic::Matrix(matrix(known)),
            },
            further_traffic: self.further_traffic.iter().map(matrix).collect(),
            drain,
            planes: if planes.is_empty() {
                Planes::default()
            } else {
                Planes::new(new.switch_ids().map(plane).collect())
            },
            ..self.clone()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        Demand, LinkId, Mac,
        generate::{Kind, Options, generate},
    };

    fn torus() -> Topology {
        let kind = Kind::parse("torus", &["3x3".to_owned()]).expect("a valid size");
        generate(&kind, &Options::default()).expect("a sane size")
    }

    #[test]
    fn what_is_left_keeps_its_names_cables_and_addresses() {
        let torus = torus();
        for gone in torus.switch_ids() {
            let left = torus.without_switches(&[gone].into()).expect("a torus survives a switch");
            assert_eq!((left.switches().len(), left.links().len(), left.hosts().len()), (8, 18 - 4, 8));
            let relation = Relation::between(&left, &torus);
            // Every port is still there, and every cable the same one.
            for port in (0..left.ports().len()).map(crate::PortId::new) {
                let twin = relation.port[port.index()].expect("the port was there");
                let toward = |id: LinkId| [torus.link(id).a, torus.link(id).b].map(|end| torus.port(end).switch);
                let was_cut =
                    matches!(torus.port(twin).attachment, Attachment::Link(link) if toward(link).contains(&gone));
                assert_eq!(left.port(port).attachment == Attachment::Nothing, was_cut);
                assert!(was_cut || relation.is_same_cable(&left, &torus, port));
            }
            assert_eq!(left.without_switches(&BTreeSet::new()), Ok(left));
        }
    }

    #[test]
    fn a_rest_that_falls_apart_is_refused() {
        let mut builder = TopologyBuilder::new();
        let [a, b, c] = ["a", "b", "c"].map(|name| builder.add_switch(name, SwitchSpec::default()).expect("a name"));
        let mut port = |switch, name| builder.add_port(switch, name).expect("a port");
        let ends = [port(a, "1"), port(b, "1"), port(b, "2"), port(c, "1")];
        builder.add_link(ends[0], ends[1], 1_000_000_000).expect("a cable");
        builder.add_link(ends[2], ends[3], 1_000_000_000).expect("a cable");
        let chain = builder.finish().expect("a chain");
        let refused = |gone: &[SwitchId]| chain.without_switches(&gone.iter().copied().collect()).expect_err("no rest");
        assert!(matches!(refused(&[b])[..], [Fault::Unreachable { .. }]));
        assert!(chain.without_switches(&[c].into()).is_ok());
        assert!(matches!(refused(&[a, b, c])[..], [Fault::Empty]));
    }

    #[test]
    fn members_of_a_lag_toward_what_is_gone_are_ports_again() {
        let mut builder = TopologyBuilder::new();
        let [a, b] = ["a", "b"].map(|name| builder.add_switch(name, SwitchSpec::default()).expect("a name"));
        let lags = [a, b].map(|switch| {
            let lag = builder.add_lag(switch, None).expect("a LAG");
            for name in ["1", "2"] {
                let member = builder.add_port(switch, name).expect("a port");
                builder.add_to_lag(lag, member).expect("a member");
            }
            lag
        });
        builder.add_link(lags[0], lags[1], 2_000_000_000).expect("a cable");
        let host = builder.add_port(a, "3").expect("a port");
        builder.add_host("h", Mac::local(1), host, 1_000_000_000, None).expect("a host");
        let pair = builder.finish().expect("a pair");
        let left = pair.without_switches(&[b].into()).expect("one switch");
        let names: Vec<(&str, Attachment)> =
            left.ports().iter().map(|port| (port.name.as_str(), port.attachment)).collect();
        assert_eq!(
            names,
            [("1", Attachment::Nothing), ("2", Attachment::Nothing), ("3", Attachment::Host(HostId::new(0)))]
        );
    }

    #[test]
    fn a_policy_follows_what_it_names() {
        let torus = torus();
        let gone = torus.find_switch("s0-1").expect("a switch");
        let left = torus.without_switches(&[gone].into()).expect("the rest");
        let label = |topology: &Topology, link: &LinkId| topology.link_label(*link);
        let count = torus.hosts().len();
        let demands = torus.host_ids().map(|source| Demand {
            source,
            destination: HostId::new((source.index() + 1) % count),
            amount: 1.0 + source.index() as f64,
        });
        let matrix = TrafficMatrix::new(count, demands.collect::<Vec<_>>()).expect("a matrix");
        let policy = Policy {
            traffic: Traffic::Matrix(matrix.clone()),
            drain: Drain { links: torus.link_ids().collect(), switches: torus.switch_ids().collect() },
            planes: Planes::new(torus.switch_ids().map(|id| id.index() as u8).collect()),
            ..Policy::default()
        };
        let moved = policy.for_topology(&torus, &left);
        let names: BTreeSet<String> = torus.link_ids().map(|link| label(&torus, &link)).collect();
        assert!(moved.drain.links.iter().all(|link| names.contains(&label(&left, link))));
        assert_eq!((moved.drain.links.len(), moved.drain.switches.len()), (14, 8));
        for id in left.switch_ids() {
            let before = torus.find_switch(&left.switch(id).name).expect("it was there");
            assert_eq!(moved.planes.by_switch()[id.index()], before.index() as u8);
        }
        let Traffic::Matrix(kept) = &moved.traffic else { panic!("a matrix") };
        let of = |topology: &Topology, matrix: &TrafficMatrix| -> BTreeSet<(String, String, u64)> {
            let name = |host| topology.host(host).name.clone();
            matrix
                .demands()
                .map(|demand| (name(demand.source), name(demand.destination), demand.amount as u64))
                .collect()
        };
        let dead = torus.hosts_of(gone).iter().map(|host| torus.host(*host).name.clone()).next().expect("a host");
        let mut expected = of(&torus, &matrix);
        expected.retain(|(from, to, _)| *from != dead && *to != dead);
        assert_eq!(of(&left, kept), expected);
        // And back: what was known of the rest is known again.
        assert_eq!(moved.for_topology(&left, &torus).drain.links.len(), 14);
    }
}
