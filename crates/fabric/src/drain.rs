//! Drained links and switches: cabling that stays plugged in and carries no frames, as before maintenance.
//!
//! ```text
//!   s0 ─── s1 ─── h     s1 is drained: it keeps its links to one neighbour, s0, for its own hosts,
//!   │       ╎           and the others carry nothing, so that no frame passes through it
//!   s2 ╌╌╌╌╌┘
//! ```

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    Attachment, ChannelId, Group, Host, HostId, InBand, Link, LinkId, Port, PortId, StandbyEdge, SwitchId, Topology,
    graph::breadth_first, topology::DraftSwitch,
};

/// What carries no frames though it is plugged in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Drain {
    /// Links that carry no frames at all; those of drained switches are among them, but for the links to one neighbour where
    /// the switch has hosts or is managed over its data ports.
    pub links: BTreeSet<LinkId>,
    /// Switches through which no frame passes on its way between two others.
    pub switches: BTreeSet<SwitchId>,
}

/// The part of a topology that carries frames. Hosts, machines and groups keep their numbers; a group may have no member left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InService {
    /// The switches that frames can reach, with the links that carry them. Ports of drained links have nothing plugged in.
    pub topology: Topology,
    /// `switch[s]`: the number in the whole topology.
    pub switch: Vec<SwitchId>,
    /// `port[p]`: the number in the whole topology.
    pub port: Vec<PortId>,
    /// `link[l]`: the number in the whole topology.
    pub link: Vec<LinkId>,
}

/// Who can no longer be reached without some links.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CutOff {
    /// Hosts that cannot reach those of the largest part, ascending.
    pub hosts: Vec<HostId>,
    /// Switches that the controller cannot reach, where they are managed over their data ports; ascending.
    pub switches: Vec<SwitchId>,
}

impl Drain {
    /// Whether nothing is drained.
    pub fn is_empty(&self) -> bool {
        self.links.is_empty() && self.switches.is_empty()
    }
}

impl InService {
    /// The part of a topology that carries frames if some links do not: without these links, and without the switches that
    /// nobody needs to reach then. Cost: O(switches + ports + links + hosts).
    ///
    /// # Errors
    /// [`CutOff`] if hosts could not reach each other, or the controller a switch.
    pub fn of(topology: &Topology, drained: &BTreeSet<LinkId>) -> Result<Self, CutOff> {
        let reached = reached(topology, drained)?;
        let mut switches = Vec::new();
        let (mut switch, mut port, mut port_now) = (Vec::new(), Vec::new(), BTreeMap::new());
        for id in topology.switch_ids().filter(|id| reached[id.index()]) {
            let crate::Switch { name, model, mgmt, guid, identity, .. } = topology.switch(id).clone();
            switches.push(DraftSwitch { name, model, mgmt, guid, identity });
            for old in topology.port_ids(id) {
                port_now.insert(old, PortId::new(port.len()));
                port.push(old);
            }
            switch.push(id);
        }
        let stays =
            |link: &LinkId| !drained.contains(link) && reached[topology.tail(ChannelId::forward(*link)).index()];
        let link: Vec<LinkId> = topology.link_ids().filter(stays).collect();
        let now = |port: PortId| port_now[&port];
        let links = link.iter().map(|id| {
            let Link { a, b, rate_bps } = *topology.link(*id);
            Link { a: now(a), b: now(b), rate_bps }
        });
        let links: Vec<Link> = links.collect();
        let mut switch_now = vec![SwitchId::new(0); topology.switches().len()];
        switch.iter().enumerate().for_each(|(new, old)| switch_now[old.index()] = SwitchId::new(new));
        let mut ports: Vec<Port> = (port.iter())
            .map(|old| {
                let Port { switch, name, attachment } = topology.port(*old).clone();
                let attachment = match attachment {
                    Attachment::Link(_) => Attachment::Nothing,
                    Attachment::Member(lag) => Attachment::Member(now(lag)),
                    other => other,
                };
                Port { switch: switch_now[switch.index()], name, attachment }
            })
            .collect();
        for (number, Link { a, b, .. }) in links.iter().enumerate() {
            ports[a.index()].attachment = Attachment::Link(LinkId::new(number));
            ports[b.index()].attachment = Attachment::Link(LinkId::new(number));
        }
        let hosts = topology.hosts().iter().map(|host| Host { port: now(host.port), ..host.clone() }).collect();
        let machines = topology.machines().iter().map(|machine| machine.name.clone()).collect();
        let in_band = topology.in_band().map(|in_band| InBand { controller: now(in_band.controller), ..in_band });
        let return_ports = topology.return_ports().iter().filter_map(|port| port_now.get(port).copied()).collect();
        let standby_edges = topology.standby_edges().iter().filter_map(|edge| {
            let port = *port_now.get(&edge.port)?;
            Some(StandbyEdge { port, ..edge.clone() })
        });
        let standby_edges = standby_edges.collect();
        let groups = topology.groups().iter().map(|Group { name, switches, links }| Group {
            name: name.clone(),
            switches: switches.iter().filter_map(|id| switch.binary_search(id).ok().map(SwitchId::new)).collect(),
            links: links.iter().filter_map(|id| link.binary_search(id).ok().map(LinkId::new)).collect(),
        });
        let groups = groups.collect();
        let topology = Topology::assemble(switches, ports, links, hosts, machines, standby_edges, in_band);
        let topology = topology.with_groups(groups).with_return_ports(return_ports);
        Ok(Self { topology, switch, port, link })
    }
}

/// `reached[switch]`: the part with the most hosts, or that of the controller.
fn reached(topology: &Topology, drained: &BTreeSet<LinkId>) -> Result<Vec<bool>, CutOff> {
    let switches = topology.switches().len();
    let part_of = |start: SwitchId| {
        let found = breadth_first(switches, [start], |switch| {
            topology.neighbours(switch).filter(|(channel, _)| !drained.contains(&channel.link()))
        });
        let mut part = vec![false; switches];
        found.order.iter().for_each(|switch| part[switch.index()] = true);
        part
    };
    let hosts_in = |part: &[bool]| topology.host_ids().filter(|host| part[topology.switch_of(*host).index()]).count();
    let main = match topology.in_band() {
        Some(in_band) => part_of(topology.port(in_band.controller).switch),
        None => {
            let mut best = vec![false; switches];
            let mut seen = vec![false; switches];
            for switch in topology.switch_ids() {
                if !seen[switch.index()] {
                    let part = part_of(switch);
                    seen.iter_mut().zip(&part).for_each(|(seen, part)| *seen |= part);
                    if hosts_in(&part) > hosts_in(&best) || !best.contains(&true) {
                        best = part;
                    }
                }
            }
            best
        }
    };
    let hosts: Vec<HostId> = topology.host_ids().filter(|host| !main[topology.switch_of(*host).index()]).collect();
    let managed = topology.in_band().is_some();
    let switches: Vec<SwitchId> = topology.switch_ids().filter(|switch| managed && !main[switch.index()]).collect();
    if hosts.is_empty() && switches.is_empty() { Ok(main) } else { Err(CutOff { hosts, switches }) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        TopologyBuilder,
        generate::{Kind, Options, generate},
        rng::Rng,
    };

    fn torus() -> Topology {
        let kind = Kind::parse("torus", &["3x3".to_owned()]).expect("a valid size");
        generate(&kind, &Options::default()).expect("a sane size")
    }

    /// What is in service is what a builder makes of the cabling less the links, under the same names.
    #[test]
    fn less_links_it_is_the_cabling_without_them() {
        let torus = torus();
        let mut rng = Rng::new(4);
        for _ in 0..20 {
            let drained: BTreeSet<LinkId> = (0..2).map(|_| LinkId::new(rng.below(torus.links().len()))).collect();
            let part = InService::of(&torus, &drained).expect("a torus survives two links");
            let mut builder = TopologyBuilder::of(&torus);
            builder.remove_links(&drained);
            assert_eq!(part.topology, builder.finish().expect("connected"));
            for (new, old) in part.topology.link_ids().zip(&part.link) {
                assert_eq!(part.topology.link_label(new), torus.link_label(*old));
            }
        }
    }

    #[test]
    fn a_switch_that_nobody_needs_is_left_out_and_others_are_named() {
        // A torus with hosts at its first two switches alone.
        let mut builder = TopologyBuilder::new();
        let ids: Vec<SwitchId> =
            (0..4).map(|n| builder.add_switch(&format!("s{n}"), Default::default()).expect("fresh")).collect();
        for (number, (a, b)) in [(0, 1), (1, 2), (2, 3), (3, 0)].into_iter().enumerate() {
            let [a, b] = [a, b].map(|end| builder.add_port(ids[end], &format!("p{number}")).expect("fresh"));
            builder.add_link(a, b, 1).expect("free ports");
        }
        for number in [1, 0] {
            let port = builder.add_port(ids[number], "h").expect("fresh");
            builder
                .add_host(&format!("h{number}"), crate::Mac::local(number as u32 + 1), port, 1, None)
                .expect("fresh");
        }
        let ring = builder.finish().expect("connected");
        let links = |numbers: &[usize]| numbers.iter().map(|number| LinkId::new(*number)).collect::<BTreeSet<_>>();
        let part = InService::of(&ring, &links(&[1, 2])).expect("s2 has no hosts");
        assert_eq!(part.switch, [0, 1, 3].map(SwitchId::new));
        assert_eq!((part.link, part.topology.links().len()), ([0, 3].map(LinkId::new).to_vec(), 2));
        assert_eq!(part.topology.hosts().len(), 2);
        let cut = InService::of(&ring, &links(&[0, 1])).expect_err("s0 and s1 are apart");
        assert_eq!((cut.hosts.len(), cut.switches.len()), (1, 0));
        let mut builder = TopologyBuilder::of(&ring);
        let controller = builder.add_port(ids[0], "ctl").expect("fresh");
        builder.set_in_band(InBand { vlan: crate::VlanId::MIN, controller }).expect("a free port");
        let managed = builder.finish().expect("connected");
        let cut = InService::of(&managed, &links(&[1, 2])).expect_err("s2 is managed over these links");
        assert_eq!((cut.hosts, cut.switches), (vec![], vec![SwitchId::new(2)]));
    }
}
