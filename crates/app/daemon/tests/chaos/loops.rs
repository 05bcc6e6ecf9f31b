//! Whether a broadcast would go round, by an idea of what frames do that is not the judge's.

use std::collections::BTreeMap;

use fabric::{PortId, SpanningTree, SwitchId, VlanId};

use crate::fabric::VirtualFabric;

/// How a frame came to a switch: by which port, in which VLAN.
type Place = (PortId, VlanId);

/// Where a frame of a VLAN that is at a switch goes next.
fn next(fabric: &VirtualFabric, switch: SwitchId, entered: Option<PortId>, vlan: VlanId) -> Vec<Place> {
    let onward = |port: PortId| {
        let far = fabric.far(port).filter(|_| entered != Some(port) && fabric.carries(port))?;
        let (own, other) = (fabric.running(port), fabric.running(far));
        let arrives = if own.tagged.contains(vlan) {
            Some(vlan)
        } else if own.untagged.contains(vlan) {
            other.pvid
        } else {
            None
        };
        arrives.filter(|vlan| other.is_member(*vlan)).map(|vlan| (far, vlan))
    };
    fabric.topology.port_ids(switch).filter_map(onward).collect()
}

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
}
