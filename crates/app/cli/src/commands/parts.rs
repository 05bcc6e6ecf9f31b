//! Switches, links and groups as people name them.

use std::collections::BTreeSet;

use anyhow::Result;
use fabric::{LinkId, SwitchId, Topology};

use crate::failure::bad_input;

/// The switches and links that an option names, by themselves or as members of a group.
///
/// # Errors
/// A name that nothing has, or several links.
pub(super) fn parts_named(
    topology: &Topology,
    option: &str,
    names: &[String],
) -> Result<(BTreeSet<SwitchId>, BTreeSet<LinkId>)> {
    let (mut switches, mut links) = (BTreeSet::new(), BTreeSet::new());
    for name in names.iter().map(|name| name.trim()) {
        if let Some(switch) = topology.find_switch(name) {
            switches.insert(switch);
            continue;
        }
        if let Some(group) = topology.find_group(name) {
            switches.extend(&topology.group(group).switches);
            links.extend(&topology.group(group).links);
            continue;
        }
        match links_named(topology, name)[..] {
            [link] => {
                links.insert(link);
            }
            [] => {
                return Err(bad_input(format!(
                    "{option} {name}: no switch or link has this name; write a switch as sw1, a link as one of its ends, sw1:p1"
                )));
            }
            ref several => {
                let labels: Vec<String> = several.iter().map(|link| topology.link_label(*link)).collect();
                return Err(bad_input(format!("{option} {name}: there are several such links: {}", labels.join(", "))));
            }
        }
    }
    Ok((switches, links))
}

/// All links that a name may mean: `sw1:p1 -- sw2:p1`, one end of it, or `sw1--sw2`.
fn links_named(topology: &Topology, name: &str) -> Vec<LinkId> {
    let squeezed: String = name.split_whitespace().collect();
    let names = |link: LinkId| {
        let ends = [topology.link(link).a, topology.link(link).b];
        let [a, b] = ends.map(|port| topology.port_label(port));
        let [s, t] = ends.map(|port| topology.switch(topology.port(port).switch).name.clone());
        [format!("{a}--{b}"), format!("{b}--{a}"), format!("{s}--{t}"), format!("{t}--{s}"), a, b]
    };
    topology.link_ids().filter(|link| names(*link).contains(&squeezed)).collect()
}
