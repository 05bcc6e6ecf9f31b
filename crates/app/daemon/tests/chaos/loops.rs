//! Whether a broadcast would go round, by an idea of what frames do that is not the judge's.

use std::collections::{BTreeMap, BTreeSet};

use fabric::{SpanningTree, SwitchId};

use crate::{
    fabric::VirtualFabric,
    frames::{self, Place, next},
};

/// Looks for a way on which a broadcast would go round. Switches that all run spanning tree break it.
///
/// # Panics
/// If there is one.
pub(crate) fn none(fabric: &VirtualFabric, when: &str) {
    let at = |place: &Place| fabric.topology.port(place.0).switch;
    let breaks = |place: &Place| fabric.switches[at(place).index()].running.spanning_tree == SpanningTree::On;
    let mut is_done: BTreeMap<Place, bool> = BTreeMap::new();
    for vlan in fabric.vlans() {
        for switch in fabric.topology.switch_ids() {
            for start in next(fabric, switch, None, vlan) {
                if is_done.contains_key(&start) {
                    continue;
                }
                is_done.insert(start, false);
                let mut stack = vec![(start, next(fabric, at(&start), Some(start.0), start.1))];
                while let Some((place, rest)) = stack.last_mut() {
                    let Some(onward) = rest.pop() else {
                        is_done.insert(*place, true);
                        stack.pop();
                        continue;
                    };
                    match is_done.get(&onward) {
                        Some(true) => {}
                        Some(false) => {
                            let from = stack.iter().position(|(place, _)| *place == onward).expect("on the stack");
                            let cycle: Vec<Place> = stack[from..].iter().map(|(place, _)| *place).collect();
                            let named =
                                |(port, vlan): &Place| format!("{} in {vlan}", fabric.topology.port_label(*port));
                            assert!(
                                cycle.iter().all(breaks),
                                "{when}: a loop: {}",
                                cycle.iter().map(named).collect::<Vec<_>>().join(", ")
                            );
                        }
                        None => {
                            is_done.insert(onward, false);
                            stack.push((onward, next(fabric, at(&onward), Some(onward.0), onward.1)));
                        }
                    }
                }
            }
        }
    }
    once(fabric, when);
}

/// Checks that a broadcast of any host comes to no switch twice.
///
/// # Panics
/// If it does.
fn once(fabric: &VirtualFabric, when: &str) {
    let topology = &fabric.topology;
    let mut done = BTreeSet::new();
    for host in topology.hosts() {
        // Hosts of one switch send alike in one VLAN.
        if !done.insert((topology.port(host.port).switch, frames::broadcast_vlan(fabric, host.port))) {
            continue;
        }
        let Some(way) = frames::flood(fabric, host.port) else { continue };
        let name = |switch: SwitchId| &topology.switch(switch).name;
        assert!(way.twice.is_none(), "{when}: a broadcast of {} comes to {:?} twice", host.name, way.twice.map(name));
    }
}
