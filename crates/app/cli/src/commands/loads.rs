//! Loads of links, in the words of the network that they are of.

use std::iter;

use fabric::{ChannelId, Plan, Traffic, format::table::amount, format_rate};

/// The maximum channel load of a plan, in words.
pub(super) fn max_load(plan: &Plan) -> String {
    load_words(plan, plan.summary.max_channel_time)
}

/// A maximum channel load, given as demand on the fastest link, in words.
pub(super) fn load_words(plan: &Plan, max_channel_time: f64) -> String {
    let time = amount(max_channel_time);
    let load = match &plan.policy.traffic {
        _ if !plan.policy.further_traffic.is_empty() => {
            format!("{time} by the worst of {} traffic matrices", kinds(plan))
        }
        Traffic::AllToAll if time == "1" => format!("1 {}", pairs(plan).trim_end_matches('s')),
        Traffic::AllToAll => format!("{time} {}", pairs(plan)),
        Traffic::Matrix(matrix) => format!("{time} of a demand of {}", amount(matrix.total())),
    };
    let fastest = plan.topology.rate_max_bps();
    let one_rate = plan.topology.links().iter().all(|link| link.rate_bps == fastest);
    if one_rate { load } else { format!("as long as {load} on a {} link", format_rate(fastest)) }
}

/// How many kinds of traffic a plan is for.
fn kinds(plan: &Plan) -> usize {
    1 + plan.policy.further_traffic.len()
}

/// The maximum load of each kind of traffic, in words; none where there is only one. Matrices are numbered as they were named.
pub(super) fn load_of_each(plan: &Plan) -> Option<String> {
    if plan.policy.further_traffic.is_empty() {
        return None;
    }
    let mut matrices = 1..;
    let first = (plan.policy.traffic == Traffic::AllToAll).then(|| "all-to-all".to_owned());
    let numbered = iter::repeat_with(|| format!("matrix {}", matrices.next().unwrap_or_default()));
    let names = first.into_iter().chain(numbered);
    let loads = names.zip(planner::times_by_traffic(plan)).map(|(name, time)| format!("{name} {}", amount(time)));
    Some(loads.collect::<Vec<_>>().join(", "))
}

/// What all-to-all traffic consists of.
fn pairs(plan: &Plan) -> &'static str {
    if plan.policy.host_weights(&plan.topology).is_some() { "weighted host pairs" } else { "host pairs" }
}

/// Links whose time differs from the longest by no more than this part are as loaded as the most loaded one.
const NEAR: f64 = 1e-9;

/// The most loaded links, each in its direction; none if nothing crosses any link.
pub(super) fn most_loaded(plan: &Plan) -> Vec<ChannelId> {
    let time = planner::channel_times(plan);
    let longest = time.iter().copied().fold(0.0, f64::max);
    let is_one = |channel: &ChannelId| longest > 0.0 && time[channel.index()] >= longest * (1.0 - NEAR);
    plan.topology.channel_ids().filter(is_one).collect()
}

/// The rate of each pair of hosts if all-to-all runs at once and pairs share links evenly, beside the same on a single spanning tree,
/// in words; none for a plan by a traffic matrix or weights, or without pairs.
pub(super) fn all_to_all(plan: &Plan) -> Option<String> {
    let topology = &plan.topology;
    let policy = &plan.policy;
    let weighed = !policy.further_traffic.is_empty() || policy.host_weights(topology).is_some();
    if policy.traffic != Traffic::AllToAll || weighed {
        return None;
    }
    let demand = plan.policy.demand(topology).ok()?;
    let peers = match &*demand {
        Traffic::AllToAll => topology.hosts().len() - 1,
        Traffic::Matrix(matrix) => topology.host_ids().map(|host| matrix.sent_by(host).len()).max().unwrap_or(0),
    };
    if peers == 0 {
        return None;
    }
    let slowest = topology.hosts().iter().map(|host| host.rate_bps).min()?;
    let hosts_bps = slowest as f64 / peers as f64;
    let on_links = |time: f64| hosts_bps.min(topology.rate_max_bps() as f64 / time);
    let bps = on_links(plan.summary.max_channel_time);
    let limit = if bps < hosts_bps { "the most loaded link" } else { "the hosts' links" };
    let factor = bps / on_links(planner::spanning_tree_time(topology, &demand));
    Some(format!("{} for each pair, limited by {limit}; {factor:.2}× spanning tree", rate_words(bps)))
}

/// A rate as people say it.
fn rate_words(bps: f64) -> String {
    match bps {
        _ if bps >= 1e9 => format!("{:.2} Gbit/s", bps / 1e9),
        _ if bps >= 1e6 => format!("{:.1} Mbit/s", bps / 1e6),
        _ => format!("{:.1} kbit/s", bps / 1e3),
    }
}

/// What a maximum channel load of a plan counts, in words.
pub(super) fn demand_unit(plan: &Plan) -> String {
    let fastest = plan.topology.rate_max_bps();
    let what = match &plan.policy.traffic {
        _ if !plan.policy.further_traffic.is_empty() => {
            format!("units of the worst of {} traffic matrices", kinds(plan))
        }
        Traffic::AllToAll => pairs(plan).to_owned(),
        Traffic::Matrix(matrix) => format!("units of a total demand of {}", amount(matrix.total())),
    };
    let one_rate = plan.topology.links().iter().all(|link| link.rate_bps == fastest);
    if one_rate { what } else { format!("{what}, as if on a {} link,", format_rate(fastest)) }
}
