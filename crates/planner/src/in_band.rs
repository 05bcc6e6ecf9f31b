//! The management VLAN's tree: the nearest way from the controller to every switch, kept from plan to plan.
//!
//! ```text
//!   before   s0-s1  s1-s2  s0-s3        a shortest tree from s0
//!   now      the cable s1-s2 is gone: s0-s1 and s0-s3 stay, s3-s2 joins them
//! ```
//! A switch can be told of another way only over the one that it has, so no cable of the tree is given up while it is there.

use std::collections::VecDeque;

use fabric::{Attachment, ChannelId, DeviceIntent, InBand, LinkId, Plan, PortRole, SwitchId, Topology};

use crate::relation::Relation;

/// Adds the management VLAN to what switches are to hold: the cables of its tree, and the controller's port.
pub(crate) fn overlay(topology: &Topology, in_band: InBand, previous: Option<&Plan>, devices: &mut [DeviceIntent]) {
    let links = tree(topology, in_band, previous);
    for device in devices {
        for port in &mut device.ports {
            let carries = match topology.port(port.port).attachment {
                Attachment::Link(link) => links.binary_search(&link).is_ok(),
                Attachment::Host(_) => false,
                Attachment::Nothing => port.port == in_band.controller,
            };
            if port.port == in_band.controller {
                port.role = PortRole::Controller;
            }
            if carries {
                in_band.join(port);
            }
        }
    }
}

/// The links of the tree, ascending: those of the previous plan that are still there, then the nearest.
fn tree(topology: &Topology, in_band: InBand, previous: Option<&Plan>) -> Vec<LinkId> {
    let kept = previous.map_or_else(Vec::new, |previous| kept(topology, in_band, previous));
    let mut part: Vec<usize> = (0..topology.switches().len()).collect();
    let mut links: Vec<LinkId> = Vec::new();
    for link in kept.into_iter().chain(nearest(topology, topology.port(in_band.controller).switch)) {
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

/// Links of the previous plan's tree that are still there, if it managed the same switches in the same VLAN.
fn kept(topology: &Topology, in_band: InBand, previous: &Plan) -> Vec<LinkId> {
    let Some(before) = previous.topology.in_band().filter(|before| before.vlan == in_band.vlan) else {
        return Vec::new();
    };
    let relation = Relation::between(&previous.topology, topology);
    let links = before.links(&previous.topology, &previous.devices);
    links.iter().filter_map(|link| Some(relation.channel[ChannelId::forward(*link).index()]?.link())).collect()
}

/// The links by which a search in breadth from `root` first reaches each switch.
fn nearest(topology: &Topology, root: SwitchId) -> Vec<LinkId> {
    let mut reached = vec![false; topology.switches().len()];
    reached[root.index()] = true;
    let mut queue = VecDeque::from([root]);
    let mut links = Vec::new();
    while let Some(at) = queue.pop_front() {
        for &channel in topology.channels_from(at) {
            let next = topology.head(channel);
            if !std::mem::replace(&mut reached[next.index()], true) {
                links.push(channel.link());
                queue.push_back(next);
            }
        }
    }
    links
}
