//! Pictures of a plan: what all-to-all asks of each channel, or one VLAN's tree.

use anyhow::Result;
use fabric::{Plan, Topology, VlanId};
use plot::{Heat, Picture, draw_fabric};
use sim::{flow::FlowLevel, pattern::Pattern};

use crate::failure::bad_input;

/// The fabric, each direction of each link by the host pairs that cross it in all-to-all, beside the most loaded.
///
/// # Errors
/// Bad input, if the plan does not lead everywhere.
pub(super) fn load_picture(plan: &Plan) -> Result<Picture> {
    let topology = &plan.topology;
    let level = FlowLevel::new(plan);
    let pairs = Pattern::AllToAll.pairs_of(plan, 0).map_err(|error| bad_input(error.to_string()))?;
    let loads = level.loads(&pairs).map_err(|error| bad_input(error.to_string()))?;
    let channels = &loads[..topology.channel_count()];
    let most = channels.iter().copied().max().unwrap_or(0);
    let (used, links) = (links_used(channels), topology.links().len());
    Ok(draw_fabric(
        topology,
        planner::lattice_positions(topology).as_deref(),
        &Heat {
            title: format!("{used} of {links} links used, max load {most} pairs"),
            of: "of the most loaded link",
            channels: channels.iter().map(|load| f64::from(*load) / f64::from(most.max(1))).collect(),
            hosts: vec![0.0; topology.hosts().len()],
        },
    ))
}

/// Links of which some direction carries anything; channel `2 i` and `2 i + 1` are link `i`'s.
fn links_used(channels: &[u32]) -> usize {
    channels.chunks(2).filter(|link| link.iter().any(|load| *load > 0)).count()
}

/// The fabric with the links of one VLAN's tree.
///
/// # Errors
/// Bad input, if the plan has no such VLAN.
pub(super) fn tree_picture(plan: &Plan, vlan: VlanId) -> Result<Picture> {
    let Some(tree) = plan.trees.iter().find(|tree| tree.vlan == vlan) else {
        let known: Vec<String> = plan.trees.iter().map(|tree| tree.vlan.to_string()).collect();
        return Err(bad_input(format!("the plan has no VLAN {vlan}; it has {}", known.join(", "))));
    };
    let topology: &Topology = &plan.topology;
    let mut channels = vec![0.0; topology.channel_count()];
    for link in tree.tree.links() {
        for channel in [2 * link.index(), 2 * link.index() + 1] {
            channels[channel] = 1.0;
        }
    }
    Ok(draw_fabric(
        topology,
        planner::lattice_positions(topology).as_deref(),
        &Heat {
            title: format!("VLAN {vlan}: {} of {} links", tree.tree.links().len(), topology.links().len()),
            of: "used by the tree, or not",
            channels,
            hosts: vec![0.0; topology.hosts().len()],
        },
    ))
}
