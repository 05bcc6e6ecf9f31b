//! `--drain`: which switches and links are named, and what a plan says of them.

use std::collections::BTreeSet;

use anyhow::Result;
use fabric::{Attachment, ChannelId, Drain, LinkId, Plan, SwitchId, Topology};
use serde_json::{Value, json};

use super::{failure::links_named, say};
use crate::{
    count::{abridged, counted},
    failure::bad_input,
};

/// Links named in one line; the rest are counted.
const LINKS_SHOWN_MAX: usize = 6;

/// What is drained if these switches and links are.
pub(super) fn drain(topology: &Topology, names: &[String]) -> Result<Drain> {
    let (mut switches, mut links) = (BTreeSet::new(), BTreeSet::new());
    for name in names {
        if let Some(switch) = topology.find_switch(name) {
            switches.insert(switch);
            continue;
        }
        match links_named(topology, name)[..] {
            [link] => {
                links.insert(link);
            }
            [] => {
                return Err(bad_input(format!(
                    "--drain {name}: no switch or link has this name; write a switch as sw1, a link as one of its ends, sw1:p1"
                )));
            }
            ref several => {
                let labels: Vec<String> = several.iter().map(|link| topology.link_label(*link)).collect();
                return Err(bad_input(format!("--drain {name}: there are several such links: {}", labels.join(", "))));
            }
        }
    }
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
