//! Settings of RI2N: which ports of other machines are reached from which of ours, so that no two links meet in a switch.
//!
//! Where a plan has path sets, how many links a pair of addresses has is set. Where a plan has planes ([`fabric::Planes`]), a link joins ports of one plane. Without planes RI2N chooses by itself, and no
//! file is made.

use std::fmt::Write;

use fabric::{HostId, MachineId, Plan};

/// The links from one machine to every other that it meets in two planes at least, by that machine's name; none without planes.
pub(crate) fn peers(plan: &Plan, machine: MachineId) -> Vec<Peer<'_>> {
    let topology = &plan.topology;
    let parts = plan.policy.planes.parts(topology, &plan.policy.drain.links);
    if parts.is_empty() {
        return Vec::new();
    }
    let address = |host: HostId| plan.host_intent(host).address;
    let others = topology.machine_ids().filter(|other| *other != machine);
    let peers = others.map(|other| {
        let links = parts.links(topology, machine, other);
        let links = links.into_iter().map(|(own, theirs)| (address(own).to_string(), address(theirs).to_string()));
        Peer { name: &topology.machine(other).name, links: links.collect() }
    });
    peers.filter(|peer| peer.links.len() > 1).collect()
}

/// Another machine and the links to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Peer<'a> {
    name: &'a str,
    /// Our address and theirs.
    links: Vec<(String, String)>,
}

/// The settings file; `origin` says where it is from.
pub(crate) fn settings(origin: &str, peers: &[Peer<'_>], paths: usize) -> String {
    let planes =
        if peers.is_empty() { "" } else { ": each link joins ports of one plane, and no two have a switch in common" };
    let mut text = format!(
        "# {origin}.\n\
         # For ri2n --config, or RI2N_CONFIG{planes}.\n\
         # What this file does not set is as without it; a passphrase goes above the first peer.\n"
    );
    if paths > 1 {
        writeln!(text, "\n# Hosts tag with espalier tagger run --spread port.\npaths = {paths}")
            .expect("writing to a string");
    }
    for Peer { name, links } in peers {
        let links = links.iter().map(|(local, remote)| format!("{{local = \"{local}\", remote = \"{remote}\"}}"));
        let links = links.collect::<Vec<_>>().join(", ");
        write!(text, "\n# {name}\n[[peer]]\nlinks = [{links}]\n").expect("writing to a string");
    }
    text
}
