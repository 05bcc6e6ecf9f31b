//! What `simulate` says of path sets: how frames are spread, and how many pairs that puts on each channel.

use anyhow::Result;
use fabric::Plan;
use sim::{flow::FlowLevel, pattern::Pair, spread::Spread};

use crate::failure::bad_input;

/// `loads[resource]`: the most pairs that share it at one time. Phases follow each other.
pub(super) fn loads_at_once(level: &FlowLevel<'_>, spread: Spread, pairs: &[Pair]) -> Result<Vec<f64>> {
    let mut most = vec![0.0; level.resources()];
    for phase in pairs.chunk_by(|one, other| one.phase == other.phase) {
        let loads = even_loads(level, spread, phase)?;
        most.iter_mut().zip(loads).for_each(|(most, load): (&mut f64, f64)| *most = load.max(*most));
    }
    Ok(most)
}

/// `loads[resource]`: the pairs that share it. Where frames of a pair take several paths, each counts for its even part.
pub(super) fn even_loads(level: &FlowLevel<'_>, spread: Spread, pairs: &[Pair]) -> Result<Vec<f64>> {
    let loads = match spread {
        Spread::One | Spread::Flow => level.loads(pairs).map(whole),
        Spread::Ideal | Spread::Flowlet | Spread::Packet | Spread::Coupled => level.even_loads(pairs),
    };
    loads.map_err(|error| bad_input(error.to_string()))
}

/// The flow level of a spread, or that of the assigned VLANs if the spread is about frames.
pub(super) fn level_of(plan: &Plan, spread: Spread) -> Result<FlowLevel<'_>> {
    if !spread.is_of_rates() {
        return Ok(FlowLevel::new(plan));
    }
    FlowLevel::with_spread(plan, spread).map_err(|error| bad_input(error.to_string()))
}

/// How frames are spread, where the plan leaves a choice; begins with a comma.
pub(super) fn spread_said(plan: &Plan, spread: Spread) -> String {
    match &plan.summary.paths {
        Some(paths) => format!(", spread {spread} (up to {} paths a pair)", paths.paths_max),
        None => String::new(),
    }
}

/// A number of pairs, of which some may be parts.
pub(super) fn count_said(count: f64) -> String {
    if count.fract() == 0.0 { format!("{count:.0}") } else { format!("{count:.2}") }
}

/// The same for JSON: a whole number where it is one.
pub(super) fn count_json(count: f64) -> serde_json::Value {
    if count.fract() == 0.0 { serde_json::json!(count as u64) } else { serde_json::json!(count) }
}

fn whole(loads: Vec<u32>) -> Vec<f64> {
    loads.into_iter().map(f64::from).collect()
}
