//! `--drain`: which switches and links are named, and what a plan says of them.

use anyhow::Result;
use fabric::{Attachment, ChannelId, Drain, LinkId, Plan, SwitchId, Topology};
use serde_json::{Value, json};

use super::{parts::parts_named, say};
use crate::count::{abridged, counted};

/// Links named in one line; the rest are counted.
const LINKS_SHOWN_MAX: usize = 6;

/// What is drained if these switches and links are.
pub(super) fn drain(topology: &Topology, names: &[String]) -> Result<Drain> {
    let (switches, links) = parts_named(topology, "--drain", names)?;
    Ok(planner::drain(topology, &switches, &links)?)
}

/// What is drained, for a person.
pub(super) fn print(plan: &Plan) -> Result<()> {
    let (topology, drain) = (&plan.topology, &plan.policy.drain);
    let mut label = "drained";
    for &switch in &drain.switches {
        let name = &topology.switch(switch).name;
        let kept = kept(topology, drain, switch);
        let hosts = topology.hosts_of(switch).len();
        let keeps = match &kept[..] {
            [] => "its links carry no frames".to_owned(),
            _ if hosts == 0 => format!("it keeps {} for its management", labels(topology, &kept)),
            _ => format!("it keeps {} for its {}", labels(topology, &kept), counted(hosts, "host")),
        };
        say!("{label:<16} switch {name}: no frame passes through it; {keeps}");
        label = "";
    }
    let links = links_alone(topology, drain);
    if !links.is_empty() {
        let carry = if links.len() == 1 { "carries" } else { "carry" };
        say!("{label:<16} {} {carry} no frames: {}", counted(links.len(), "link"), labels(topology, &links));
    }
    Ok(())
}

/// What is drained, as an object; none if nothing is.
pub(super) fn json(plan: &Plan) -> Option<Value> {
    let (topology, drain) = (&plan.topology, &plan.policy.drain);
    let switches: Vec<&str> = drain.switches.iter().map(|switch| topology.switch(*switch).name.as_str()).collect();
    let links: Vec<String> = drain.links.iter().map(|link| topology.link_label(*link)).collect();
    (!drain.is_empty()).then(|| json!({ "switches": switches, "links": links }))
}

/// The links that a drained switch keeps.
fn kept(topology: &Topology, drain: &Drain, switch: SwitchId) -> Vec<LinkId> {
    let attached = topology.port_ids(switch).filter_map(|port| match topology.port(port).attachment {
        Attachment::Link(link) => Some(link),
        Attachment::Host(_) | Attachment::Nothing | Attachment::Member(_) => None,
    });
    attached.filter(|link| !drain.links.contains(link)).collect()
}

/// Drained links neither of whose ends is a drained switch.
fn links_alone(topology: &Topology, drain: &Drain) -> Vec<LinkId> {
    let alone = |link: &&LinkId| {
        let channel = ChannelId::forward(**link);
        [topology.tail(channel), topology.head(channel)].iter().all(|switch| !drain.switches.contains(switch))
    };
    drain.links.iter().filter(alone).copied().collect()
}

fn labels(topology: &Topology, links: &[LinkId]) -> String {
    let labels: Vec<String> = links.iter().map(|link| topology.link_label(*link)).collect();
    abridged(&labels, ", ", LINKS_SHOWN_MAX)
}
