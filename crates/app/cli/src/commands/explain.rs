//! `plan --explain`: how the routes of a plan were found, and which links keep them from being better.

use std::time::Duration;

use anyhow::Result;
use fabric::{Plan, Policy, format::table::amount, format_rate};
use planner::{Achieved, Ending, SearchEvent};
use serde_json::{Value, json};

use super::{
    loads::{demand_unit, most_loaded},
    say,
};
use crate::count::counted;

/// Most loaded links that are named to a person; the rest are counted.
const BINDING_SHOWN_MAX: usize = 8;

/// What ended a search before it was known to be the best.
#[derive(Clone, Copy)]
pub(super) enum Limit {
    /// The number of steps that goes with the size of the request.
    Steps,
    /// `--time-limit`.
    Time(Duration),
    /// Ctrl-C.
    Interrupt,
}

/// Prints the search log and the links that bind.
pub(super) fn print(plan: &Plan, log: &[SearchEvent], limit: Limit) -> Result<()> {
    say!("search           loads are {} on the most loaded link", demand_unit(plan));
    for event in log {
        say!("{}", words(plan, event, limit));
    }
    let binding = most_loaded(plan);
    for (place, channel) in binding.iter().take(BINDING_SHOWN_MAX).enumerate() {
        let label = plan.topology.channel_label(*channel);
        let rate = format_rate(plan.topology.link(channel.link()).rate_bps);
        say!("{:<16} {label} ({rate})", if place == 0 { "binding links" } else { "" });
    }
    if binding.len() > BINDING_SHOWN_MAX {
        let more = binding.len() - BINDING_SHOWN_MAX;
        say!("                 and {more} more, as loaded as these");
    }
    Ok(())
}

/// The log and the links that bind, for programs.
pub(super) fn json(plan: &Plan, log: &[SearchEvent]) -> Value {
    let binding: Vec<_> = most_loaded(plan).into_iter().map(|channel| plan.topology.channel_label(channel)).collect();
    json!({ "search": log.iter().map(event_json).collect::<Vec<_>>(), "binding_links": binding })
}

fn words(plan: &Plan, event: &SearchEvent, limit: Limit) -> String {
    match event {
        SearchEvent::Bound(load) => format!("  no routing can have a load below {}", amount(*load)),
        SearchEvent::Request { policy, is_rival: false } => format!("  request: {}", request_words(policy)),
        SearchEvent::Request { policy, is_rival: true } => {
            format!("  stricter request, whose routes this one allows: {}", request_words(policy))
        }
        SearchEvent::Engine { engine, outcome: Ok(achieved) } => {
            let Achieved { load, hops, trees } = *achieved;
            let hosts = plan.topology.hosts().len();
            let hops = hops as f64 / (hosts * (hosts - 1)).max(1) as f64;
            format!("    {engine:<10} load {}, {hops:.2} hops, {}", amount(load), counted(trees, "VLAN"))
        }
        SearchEvent::Engine { engine, outcome: Err(reason) } => format!("    {engine:<10} none: {reason}"),
        SearchEvent::Start { start, load } => format!("      start      {start}: load {}", amount(*load)),
        SearchEvent::Round { round, runners } => {
            let each: Vec<_> = runners.iter().map(|(start, load)| format!("{start} {}", amount(*load))).collect();
            format!("      round {:<4} {}", round + 1, each.join(", "))
        }
        SearchEvent::SharedTrees { trees, start, load } => {
            format!("      {:<10} {start}: load {}", counted(*trees, "tree"), amount(*load))
        }
        SearchEvent::Ended(Ending::Optimal) => "      end        no routing can do better".to_owned(),
        SearchEvent::Ended(Ending::Spent) => match limit {
            Limit::Steps => "      end        its steps are spent; --time-limit searches longer".to_owned(),
            Limit::Time(limit) => format!("      end        the time limit of {} s is over", limit.as_secs_f64()),
            Limit::Interrupt => "      end        interrupted".to_owned(),
        },
        SearchEvent::Mended(load) => format!("  the previous plan's routes, mended: load {}", amount(*load)),
        SearchEvent::Unchanged => "  the previous plan answers this request; it is kept as it is".to_owned(),
    }
}

fn request_words(policy: &Policy) -> String {
    let cap = policy.vlans_max.map_or(String::new(), |most| format!(", {} at most", counted(most, "VLAN")));
    format!("{} tagging, flow control {}{cap}", policy.tagging, policy.flow_control)
}

fn event_json(event: &SearchEvent) -> Value {
    match event {
        SearchEvent::Bound(load) => json!({ "event": "bound", "load": load }),
        SearchEvent::Request { policy, is_rival } => json!({
            "event": "request", "tagging": policy.tagging.to_string(), "flow_control": policy.flow_control.to_string(),
            "max_vlans": policy.vlans_max, "stricter": is_rival,
        }),
        SearchEvent::Engine { engine, outcome: Ok(Achieved { load, hops, trees }) } => json!({
            "event": "engine", "engine": engine.word(), "load": load, "hops_total": hops, "vlans": trees,
        }),
        SearchEvent::Engine { engine, outcome: Err(reason) } => {
            json!({ "event": "engine", "engine": engine.word(), "refused": reason })
        }
        SearchEvent::Start { start, load } => json!({ "event": "start", "start": start.to_string(), "load": load }),
        SearchEvent::Round { round, runners } => {
            let each = runners.iter().map(|(start, load)| json!({ "start": start.to_string(), "load": load }));
            json!({ "event": "round", "round": round + 1, "runners": each.collect::<Vec<_>>() })
        }
        SearchEvent::SharedTrees { trees, start, load } => {
            json!({ "event": "shared_trees", "trees": trees, "start": start.to_string(), "load": load })
        }
        SearchEvent::Ended(ending) => json!({ "event": "end", "optimal": *ending == Ending::Optimal }),
        SearchEvent::Mended(load) => json!({ "event": "mended", "load": load }),
        SearchEvent::Unchanged => json!({ "event": "unchanged" }),
    }
}
