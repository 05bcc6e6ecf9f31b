//! Loads of links, in the words of the network that they are of.

use fabric::{
    ChannelId, EngineName, FdbMode, FlowControl, Plan, Policy, Tagging, Traffic, format::table::amount, format_rate,
};

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

/// The first of the most loaded links, in its direction; none if nothing crosses any link.
pub(super) fn most_loaded(plan: &Plan) -> Option<String> {
    let time = planner::channel_times(plan);
    let longest = plan.topology.channel_ids().fold(None, |best: Option<ChannelId>, channel| {
        let is_longer = best.is_none_or(|best| time[channel.index()] > time[best.index()]);
        if is_longer { Some(channel) } else { best }
    });
    longest.filter(|channel| time[channel.index()] > 0.0).map(|channel| plan.topology.channel_label(channel))
}

/// What each pair of hosts has if all send to all at once and share their links evenly, beside the same on a single spanning
/// tree, in words; none for a traffic matrix, or without pairs.
pub(super) fn all_to_all(plan: &Plan) -> Option<String> {
    let topology = &plan.topology;
    let peers = topology.hosts().len().checked_sub(1).filter(|peers| *peers > 0)?;
    if plan.policy.traffic != Traffic::AllToAll {
        return None;
    }
    let slowest = topology.hosts().iter().map(|host| host.rate_bps).min()?;
    let hosts_bps = slowest as f64 / peers as f64;
    let on_links = |plan: &Plan| topology.rate_max_bps() as f64 / plan.summary.max_channel_time;
    let bps = hosts_bps.min(on_links(plan));
    let limit = if bps < hosts_bps { "the most loaded link" } else { "the hosts' links" };
    let mut words = format!("{} for each pair, limited by {limit}", rate_words(bps));
    let one_tree = Policy {
        engine: EngineName::Tree,
        tagging: Tagging::SourceDestination,
        flow_control: FlowControl::None,
        fdb: FdbMode::Learned,
        ..Policy::default()
    };
    if let Ok(tree) = planner::plan(topology, &one_tree, None) {
        let factor = bps / hosts_bps.min(on_links(&tree));
        words.push_str(&format!("; {factor:.2}× spanning tree"));
    }
    Some(words)
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
        Traffic::AllToAll => "host pairs".to_owned(),
        Traffic::Matrix(matrix) => format!("a demand of {}", amount(matrix.total())),
    };
    let one_rate = plan.topology.links().iter().all(|link| link.rate_bps == fastest);
    if one_rate { what } else { format!("{what}, as if on a {} link,", format_rate(fastest)) }
}
