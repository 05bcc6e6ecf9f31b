//! Step 3 of \[Otsuka\] 4.3: trees that are the same become one.
//!
//! Two different spanning trees together always close a cycle, so only identical ones can share a VLAN. Dead ends,
//! branches that end at switches without hosts, are cut off first: they would carry nothing but copies of broadcasts.

use std::collections::BTreeMap;

use fabric::{LinkId, Topology, Tree};

use crate::routing::Routing;

/// Drops duplicates and trees that nothing uses; the rest keep the order of their first use. Trees that an engine has
/// placed on different lanes stay apart.
pub(crate) fn merge(topology: &Topology, routing: Routing) -> Routing {
    let mut kept: BTreeMap<(Tree, u8), usize> = BTreeMap::new();
    let mut trees = Vec::new();
    let mut lanes = Vec::new();
    let mut renamed = vec![None; routing.trees.len()];
    let lane_of = |old: usize| routing.lane.as_ref().map_or(0, |lane| lane[old]);
    let assignment = routing.assignment.map(|old| {
        *renamed[old].get_or_insert_with(|| {
            let tree = without_dead_ends(topology, &routing.trees[old]);
            *kept.entry((tree, lane_of(old))).or_insert_with_key(|(tree, lane)| {
                trees.push(tree.clone());
                lanes.push(*lane);
                trees.len() - 1
            })
        })
    });
    let lane = routing.lane.is_some().then_some(lanes);
    Routing { trees, assignment, lane, numbering: routing.numbering }
}

/// A tree less its branches on which nobody lives.
pub(crate) fn without_dead_ends(topology: &Topology, tree: &Tree) -> Tree {
    let ends = |link: LinkId| {
        let fabric::Link { a, b, .. } = *topology.link(link);
        [topology.port(a).switch, topology.port(b).switch]
    };
    let mut degree = vec![0; topology.switches().len()];
    tree.links().iter().flat_map(|&link| ends(link)).for_each(|switch| degree[switch.index()] += 1);
    let mut links = tree.links().to_vec();
    loop {
        let before = links.len();
        links.retain(|&link| {
            let dead = ends(link).iter().any(|end| degree[end.index()] == 1 && topology.hosts_of(*end).is_empty());
            if dead {
                ends(link).iter().for_each(|end| degree[end.index()] -= 1);
            }
            !dead
        });
        if links.len() == before {
            return Tree::new(topology, links).expect("a tree without a leaf is a tree");
        }
    }
}
