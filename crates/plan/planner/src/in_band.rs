//! The management VLAN's tree: the nearest way from the controller to every switch, kept from plan to plan.
//!
//! ```text
//!   before   s0-s1  s1-s2  s0-s3        a shortest tree from s0
//!   now      the cable s1-s2 is gone: s0-s1 and s0-s3 stay, s3-s2 joins them
//! ```
//! A switch can be told of another way only over the one that it has, so no cable of the tree is given up while it is there.
//!
//! Where full buffers wait, frames of the tree wait with those of data, in the class of lane 0. The tree then takes cables
//! by which what goes out, and comes back, closes no ring with data; others only where none of these leads to a switch, and
//! the judge says so.

use fabric::{
    Attachment, ChannelId, InBand, LinkId, Plan, PortRole, Relation, SwitchId, Topology,
    graph::{BreadthFirst, TopologicalOrder, breadth_first},
};

use crate::{
    dependency::Dependency,
    frames::{self, Flooding},
    routing::Routing,
};

/// Adds the management VLAN to what switches are to hold: the cables of its tree, the controller's port, and return ports.
pub(crate) fn overlay(topology: &Topology, in_band: InBand, previous: Option<&Plan>, plan: &mut Plan) {
    let links = tree(topology, in_band, previous, plan);
    for device in &mut plan.devices {
        for port in &mut device.ports {
            let carries = match topology.port(port.port).attachment {
                Attachment::Link(link) => links.binary_search(&link).is_ok(),
                Attachment::Host(_) | Attachment::Member(_) => false,
                Attachment::Nothing => {
                    port.role = topology.role_without_cable(port.port);
                    port.role != PortRole::Unused
                }
            };
            if carries {
                in_band.join(port);
            }
        }
        device.classes = plan.policy.classes_of(&plan.trees, &device.vlans());
    }
}

/// The links of the tree, ascending: those of the previous plan that are still there, then those that close no ring with
/// the plan's data, then the nearest.
fn tree(topology: &Topology, in_band: InBand, previous: Option<&Plan>, plan: &Plan) -> Vec<LinkId> {
    let kept = previous.map_or_else(Vec::new, |previous| kept(topology, in_band, previous));
    let root = topology.port(in_band.controller).switch;
    let climbing = order_of_data(topology, plan).map_or_else(Vec::new, |order| climbing(topology, root, order));
    let mut part: Vec<usize> = (0..topology.switches().len()).collect();
    let mut links: Vec<LinkId> = Vec::new();
    for link in kept.into_iter().chain(climbing).chain(nearest(topology, root)) {
        let ends = [topology.link(link).a, topology.link(link).b];
        let [a, b] = ends.map(|port| part[topology.port(port).switch.index()]);
        if a != b {
            part.iter_mut().filter(|part| **part == a).for_each(|part| *part = b);
            links.push(link);
        }
    }
    links.sort_unstable();
    links
}

/// Links of the previous plan's tree that are still there, and those at its return ports, if it managed switches in the same VLAN.
fn kept(topology: &Topology, in_band: InBand, previous: &Plan) -> Vec<LinkId> {
    let Some(before) = previous.topology.in_band().filter(|before| before.vlan == in_band.vlan) else {
        return Vec::new();
    };
    let relation = Relation::between(&previous.topology, topology);
    let links = before.links(&previous.topology, &previous.devices);
    let still_there = links.iter().filter_map(|link| Some(relation.channel[ChannelId::forward(*link).index()]?.link()));
    let returned = previous.topology.return_ports().iter().filter_map(|port| {
        match topology.port(relation.port[port.index()]?).attachment {
            Attachment::Link(link) => Some(link),
            _ => None,
        }
    });
    still_there.chain(returned).collect()
}

/// What frames of data wait for in lane 0; none where nothing waits.
fn order_of_data(topology: &Topology, plan: &Plan) -> Option<TopologicalOrder> {
    plan.policy.flow_control.lanes()?;
    let rank = &plan.certificate.as_ref()?.rank;
    let position = |vlan| plan.trees.binary_search_by_key(&vlan, |tree| tree.vlan).expect("every VLAN has its tree");
    let trees = plan.trees.iter().map(|tree| tree.tree.clone()).collect();
    let routing = Routing { trees, assignment: plan.assignment.map(position), numbering: None, lane: None };
    let lane: Vec<u8> = plan.trees.iter().map(|tree| tree.lane).collect();
    let mut order = TopologicalOrder::by_number(rank.first()?);
    let frames = frames::certified(plan)?;
    let flooding = Flooding::of(&plan.policy);
    let lanes = frames::dependencies(topology, &routing, (&lane, rank.len()), frames, flooding);
    let number = |channel: ChannelId| channel.index() as u32;
    let data: Vec<Dependency> = lanes.first()?.iter().map(|(from, to)| (number(from), number(to))).collect();
    order.insert_all(&data).map(|_| order)
}

/// The links by which a search in breadth from `root` first reaches switches without closing a ring, out or back; those
/// that it does not reach so are left out.
fn climbing(topology: &Topology, root: SwitchId, mut order: TopologicalOrder) -> Vec<LinkId> {
    let mut search = BreadthFirst::from(topology.switches().len(), [root]);
    let mut links = Vec::new();
    while let Some(at) = search.next() {
        let inward: Option<ChannelId> = search.inward[at.index()];
        for (channel, next) in topology.neighbours(at) {
            let climbs = |inward| admits_both(&mut order, inward, channel);
            if !search.has_reached(next) && inward.is_none_or(climbs) && search.reach(at, channel, next) {
                links.push(channel.link());
            }
        }
    }
    links
}

/// Lets frames go from one channel to the next, and back, unless that closes a ring.
fn admits_both(order: &mut TopologicalOrder, inward: ChannelId, onward: ChannelId) -> bool {
    let number = |channel: ChannelId| channel.index() as u32;
    let both = [(number(inward), number(onward)), (number(onward.reverse()), number(inward.reverse()))];
    order.insert_all(&both).is_some()
}

/// The links by which a search in breadth from `root` first reaches each switch.
fn nearest(topology: &Topology, root: SwitchId) -> Vec<LinkId> {
    let found = breadth_first(topology.switches().len(), [root], |switch| topology.neighbours(switch));
    found.order.iter().filter_map(|switch| found.inward[switch.index()]).map(ChannelId::link).collect()
}
