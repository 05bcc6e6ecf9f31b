//! `--disjoint`: what a plan says of the paths between machines with several ports.

use anyhow::Result;
use fabric::{Plan, PlanePairs};
use serde_json::{Value, json};

use super::say;
use crate::count::{abridged, counted};

/// Switches of a plane named to a person.
const SWITCHES_SHOWN_MAX: usize = 8;

/// What is apart, for a person.
pub(super) fn print(plan: &Plan) -> Result<()> {
    let Some(PlanePairs { all, disjoint, example }) = pairs(plan) else { return Ok(()) };
    let machine = |id| &plan.topology.machine(id).name;
    let of = if disjoint == all { format!("all {all}") } else { format!("{disjoint} of {all}") };
    let but = example.map_or(String::new(), |(a, b)| format!("; not {} and {}, for example", machine(a), machine(b)));
    say!("disjoint         {of} pairs of machines have paths without a common switch or cable{but}");
    for (number, switches) in by_plane(plan).iter().enumerate() {
        let (count, names) = (counted(switches.len(), "switch"), abridged(switches, ", ", SWITCHES_SHOWN_MAX));
        say!("                 plane {number}: {count}, {names}");
    }
    Ok(())
}

/// What is apart, as an object; none unless it was asked for.
pub(super) fn json(plan: &Plan) -> Option<Value> {
    let PlanePairs { all, disjoint, .. } = pairs(plan)?;
    Some(json!({ "pairs": all, "pairs_disjoint": disjoint, "planes": by_plane(plan) }))
}

fn pairs(plan: &Plan) -> Option<PlanePairs> {
    let parts = plan.policy.planes.parts(&plan.topology, &plan.policy.drain.links);
    (!parts.is_empty()).then(|| parts.pairs(&plan.topology))
}

/// The switches of each plane, by name.
fn by_plane(plan: &Plan) -> Vec<Vec<String>> {
    let planes = &plan.policy.planes;
    let of = |plane: usize| {
        let switches = plan.topology.switch_ids().filter(move |switch| usize::from(planes.of(*switch)) == plane);
        switches.map(|switch| plan.topology.switch(switch).name.clone()).collect()
    };
    (0..planes.count()).map(of).collect()
}
