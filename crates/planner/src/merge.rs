//! Step 3 of [Otsuka] 4.3: trees that are the same become one.
//!
//! Two different spanning trees together always close a cycle, so only identical ones can share a VLAN.

use std::collections::BTreeMap;

use fabric::Tree;

use crate::routing::Routing;

/// Drops duplicates and trees that nothing uses; the rest keep the order of their first use.
pub(crate) fn merge(routing: Routing) -> Routing {
    let mut kept: BTreeMap<Tree, usize> = BTreeMap::new();
    let mut trees = Vec::new();
    let mut renamed = vec![None; routing.trees.len()];
    let assignment = routing.assignment.map(|old| {
        *renamed[old].get_or_insert_with(|| {
            *kept.entry(routing.trees[old].clone()).or_insert_with_key(|tree| {
                trees.push(tree.clone());
                trees.len() - 1
            })
        })
    });
    Routing { trees, assignment }
}
