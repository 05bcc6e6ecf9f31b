//! Management over the data ports: a VLAN of its own whose cables form a tree that begins at the controller's port.
//!
//! ```text
//!   controller ── s0:ctl   s0 ══ s1 ══ s2      in VLAN 4000: s0-s1, s1-s2, s0-s3
//!                           ║          ║       the cable s2-s3 carries data alone
//!                          s3 ═════════╝
//! ```
//! A switch that is left out comes back by a *return port*, which is up for this VLAN alone: the near end of its cable in the tree.
//! VLAN 1 travels without a tag, as switches have it when they come out of their boxes; any other one with a tag.

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    Admin, Attachment, DeviceIntent, InBand, LinkId, Plan, PortId, PortIntent, PortRole, Relation, SwitchId, Topology,
    graph::breadth_first,
};

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

impl Topology {
    /// What a port without a cable of the topology is for: nothing, the controller, or the return of a switch. Cost: O(log return
    /// ports).
    pub fn role_without_cable(&self, port: PortId) -> PortRole {
        if self.in_band().is_some_and(|in_band| in_band.controller == port) {
            PortRole::Controller
        } else if self.return_ports().binary_search(&port).is_ok() {
            PortRole::Return
        } else {
            PortRole::Unused
        }
    }
}

/// Ports of the plan `base` by which switches that are `gone` can come back, while switches hold the plan `held`: the near ends of
/// the tree's links toward them (of the tree of `base` for switches that `held` does not have), and return ports of `held`.
/// Ascending; no port of a LAG is one, since a single cable does not replace a LAG.
///
/// A switch that comes back has its old configuration, so its end of the link carries management too, and the tree with it is a tree
/// again. Where management is untagged, a new switch may come instead, with VLAN 1 on every port: of several switches that are
/// `gone` and cabled to each other only the first has a port. Cost: O(links · switches).
pub fn return_ports(base: &Plan, held: &Plan, gone: &BTreeSet<SwitchId>) -> Vec<PortId> {
    let topology = &base.topology;
    let Some(in_band) = topology.in_band() else { return Vec::new() };
    let relation = Relation::between(&held.topology, topology);
    let of_held = near_ends(held).chain(held.topology.return_ports().iter().copied());
    let candidates = of_held.filter_map(|port| relation.port[port.index()]).chain(near_ends(base));
    let far = |port: PortId| {
        let Attachment::Link(link) = topology.port(port).attachment else { return None };
        let link = topology.link(link);
        Some(topology.port(if link.a == port { link.b } else { link.a }).switch)
    };
    let mut toward: BTreeMap<SwitchId, PortId> = BTreeMap::new();
    for port in candidates.filter(|port| topology.port(*port).lag().is_none()) {
        if let Some(far) = far(port).filter(|far| gone.contains(far) && !gone.contains(&topology.port(port).switch)) {
            toward.entry(far).or_insert(port);
        }
    }
    if !in_band.is_tagged() {
        let mut beside: BTreeSet<SwitchId> = BTreeSet::new();
        toward.retain(|switch, _| {
            let is_first = !beside.contains(switch);
            let onward = |from| topology.neighbours(from).filter(|(_, next)| gone.contains(next));
            beside.extend(breadth_first(topology.switches().len(), [*switch], onward).order);
            is_first
        });
    }
    let mut ports: Vec<PortId> = toward.into_values().collect();
    ports.sort_unstable();
    ports
}

/// The ends of the tree's links that are nearer to the controller.
fn near_ends(plan: &Plan) -> impl Iterator<Item = PortId> {
    let topology = &plan.topology;
    let outward = topology.in_band().map_or_else(Vec::new, |in_band| {
        let links = in_band.links(topology, &plan.devices);
        in_band.outward(topology, &links)
    });
    outward.into_iter().filter_map(move |(switch, link)| {
        let link = topology.link(link?);
        [link.a, link.b].into_iter().find(|end| topology.port(*end).switch != switch)
    })
}
