//! Management over the data ports: a VLAN of its own whose cables form a tree that begins at the controller's port.
//!
//! ```text
//!   controller ── s0:ctl   s0 ══ s1 ══ s2      in VLAN 4000: s0-s1, s1-s2, s0-s3
//!                           ║          ║       the cable s2-s3 carries data alone
//!                          s3 ═════════╝
//! ```
//! VLAN 1 travels without a tag, as switches have it when they come out of their boxes; any other one with a tag.

use crate::{Admin, DeviceIntent, InBand, LinkId, PortId, PortIntent, SwitchId, Topology, graph::breadth_first};

impl InBand {
    /// Puts a port into the VLAN, and into service: a cable of the tree, or the controller's port.
    pub fn join(&self, port: &mut PortIntent) {
        port.admin = Admin::Up;
        if self.is_tagged() && port.port != self.controller {
            port.tagged.insert(self.vlan);
        } else {
            port.untagged.insert(self.vlan);
            port.pvid = Some(self.vlan);
        }
    }

    /// The links of which both ends are members, ascending. `devices[switch]`. Cost: O(links · ports of a switch).
    pub fn links(&self, topology: &Topology, devices: &[DeviceIntent]) -> Vec<LinkId> {
        let member = |port: PortId| {
            let switch: SwitchId = topology.port(port).switch;
            let device = devices.get(switch.index());
            device.is_some_and(|device| device.ports.iter().any(|own| own.port == port && own.is_member(self.vlan)))
        };
        let carried = |link: &LinkId| {
            let link = topology.link(*link);
            member(link.a) && member(link.b)
        };
        topology.link_ids().filter(carried).collect()
    }

    /// The switches from the controller outward along these links, each with the link that leads to it: none for the
    /// first. Switches that the links do not reach are left out. Cost: O(links · switches).
    pub fn outward(&self, topology: &Topology, links: &[LinkId]) -> Vec<(SwitchId, Option<LinkId>)> {
        let root = topology.port(self.controller).switch;
        let ends = |link: LinkId| [topology.link(link).a, topology.link(link).b].map(|port| topology.port(port).switch);
        let found = breadth_first(topology.switches().len(), [root], |switch| {
            links.iter().flat_map(move |&link| {
                let [a, b] = ends(link);
                [(a, b), (b, a)].into_iter().filter(move |(one, _)| *one == switch).map(move |(_, other)| (link, other))
            })
        });
        found.order.iter().map(|switch| (*switch, found.inward[switch.index()])).collect()
    }
}
