//! Loads of links, in the words of the network that they are of.

use fabric::{Plan, Traffic, format_rate};

use crate::table::amount;

/// The maximum channel load of a plan, in words.
pub(super) fn max_load(plan: &Plan) -> String {
    load_words(plan, plan.summary.max_channel_time)
}

/// A maximum channel load, given as demand on the fastest link, in words.
pub(super) fn load_words(plan: &Plan, max_channel_time: f64) -> String {
    let time = amount(max_channel_time);
    let load = match &plan.policy.traffic {
        Traffic::AllToAll if time == "1" => "1 host pair".to_owned(),
        Traffic::AllToAll => format!("{time} host pairs"),
        Traffic::Matrix(matrix) => format!("{time} of a demand of {}", amount(matrix.total())),
    };
    let fastest = plan.topology.rate_max_bps();
    let one_rate = plan.topology.links().iter().all(|link| link.rate_bps == fastest);
    if one_rate { load } else { format!("as long as {load} on a {} link", format_rate(fastest)) }
}

/// What a maximum channel load of a plan counts, in words.
pub(super) fn demand_unit(plan: &Plan) -> String {
    let fastest = plan.topology.rate_max_bps();
    let what = match &plan.policy.traffic {
        Traffic::AllToAll => "host pairs".to_owned(),
        Traffic::Matrix(matrix) => format!("a demand of {}", amount(matrix.total())),
    };
    let one_rate = plan.topology.links().iter().all(|link| link.rate_bps == fastest);
    if one_rate { what } else { format!("{what}, as if on a {} link,", format_rate(fastest)) }
}
