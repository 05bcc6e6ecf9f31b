//! `espalier plan --suggest-cables N`: which further cables between free ports lower the maximum load most.

use std::{
    process::ExitCode,
    time::{Duration, Instant},
};

use anyhow::Result;
use fabric::{
    Plan, Policy, SwitchId, Topology,
    format::{
        report::load_json,
        table::{Table, amount},
    },
    format_rate,
};
use planner::{CableEnd, CableSearch, CableStep, FreePorts, SuggestedCable, SuggestedCables};
use serde_json::{Value, json};

use super::{Output, loads::load_words, patience::Patience, processors::processors, say};
use crate::count::abridged;

/// Switches named in one line; the rest are counted.
const NAMES_MAX: usize = 8;
/// What part of the time that is left may go into ranking candidates.
const RANKING_PART: u32 = 4;

pub(super) fn run(topology: &Topology, policy: &Policy, wanted: usize, output: Output) -> Result<ExitCode> {
    let (found, now) = search(topology, policy, wanted)?;
    let free = FreePorts::of(topology);
    match output {
        Output::Json => say!("{}", json(topology, &found, &free)),
        Output::Person => print(topology, &found, &free, &now)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Drives a search to its end, its time limit or Ctrl-C. Returns the plan of the cabling as it is as well.
fn search(topology: &Topology, policy: &Policy, wanted: usize) -> Result<(SuggestedCables, Plan)> {
    let mut patience = Patience::new(topology, policy)?;
    let end = policy.time_limit.map(|limit| Instant::now() + limit);
    let left = || end.map(|end| end.saturating_duration_since(Instant::now()));
    let mut search = CableSearch::new(topology, policy, wanted, processors());
    let mut now = None;
    let mut ranking_ends: Option<Option<Instant>> = None;
    loop {
        let (plans, taken) = (search.plans_left_max().max(1) as u32, search.taken());
        let next = match search.poll_step() {
            CableStep::Plan(next) => next.clone(),
            CableStep::Ranked => {
                patience.working(format!("{}: ranking candidates", nth(taken)));
                let ends = || left().map(|left| Instant::now() + left / RANKING_PART);
                let until = *ranking_ends.get_or_insert_with(ends);
                if patience.is_interrupted() {
                    search.stop();
                } else if until.is_some_and(|until| Instant::now() >= until) {
                    search.stop_ranking();
                }
                continue;
            }
            CableStep::Done => break,
        };
        ranking_ends = None;
        if now.is_some() && (patience.is_interrupted() || left() == Some(Duration::ZERO)) {
            search.stop();
            continue;
        }
        let subject = if now.is_none() { "without further cables: ".to_owned() } else { format!("{}: ", nth(taken)) };
        patience.restart(&next, policy, left().map(|left| left / plans), subject);
        let plan = planner::plan_with(&next, policy, None, &mut patience);
        if let (None, Ok(plan)) = (&now, &plan) {
            now = Some(plan.clone());
        }
        search.handle_plan(plan)?;
    }
    patience.finish();
    Ok((search.finish(), now.expect("the cabling was planned before any cable was tried")))
}

fn nth(taken: usize) -> String {
    format!("cable {}", taken + 1)
}

fn print(topology: &Topology, found: &SuggestedCables, free: &FreePorts, now: &Plan) -> Result<()> {
    let fabric::Summary { load_bound, load_gap, max_channel_time, .. } = now.summary;
    let load = load_words(now, max_channel_time);
    say!("max load         {load}; no routing can do better than {load_bound:.1} ({load_gap:.2}×)");
    if !found.cables.is_empty() {
        say!("each cable       {}, the rate of the fastest link", format_rate(found.rate_bps));
        let mut table = Table::new(["cable", "bound before", "after", "max load before", "after"]);
        for SuggestedCable { a, b, before, after } in &found.cables {
            let label = format!("{} -- {}", topology.port_label(*a), topology.port_label(*b));
            let bounds = [before, after].map(|figures| format!("{:.1}", figures.load_bound));
            let loads = [before, after].map(|figures| amount(figures.max_channel_time));
            table.row(std::iter::once(label).chain(bounds).chain(loads));
        }
        say!("{table}");
    }
    if let Some(words) = end_words(found) {
        say!("no more          {words}");
    }
    print_without_ports(topology, free)
}

/// Why there are not as many cables as were asked for; none if there are.
fn end_words(found: &SuggestedCables) -> Option<String> {
    let further = if found.cables.is_empty() { "no single cable" } else { "no further cable" };
    Some(match &found.end {
        CableEnd::Complete => return None,
        CableEnd::NoPorts => "there are no two switches with a free port left".to_owned(),
        CableEnd::NoGain { pairs, proven: true, .. } => format!(
            "{further} lowers the max load, which is proven: the bound stays as it is with a cable between {} with free ports",
            if *pairs == 1 { "the one pair of switches".to_owned() } else { format!("the {pairs} pairs of switches") }
        ),
        CableEnd::NoGain { pairs, planned, refused, .. } => {
            let refused = refused.as_ref().map_or_else(String::new, |(count, error)| {
                format!("; {count} could not be planned, the first because {error}")
            });
            format!(
                "{further} was found that lowers the max load: {planned} of {pairs} possible ones were planned{refused}"
            )
        }
        CableEnd::Stopped => "the search was stopped before it was complete".to_owned(),
    })
}

/// Switches that get no cable, and why.
fn print_without_ports(topology: &Topology, free: &FreePorts) -> Result<()> {
    if !free.full.is_empty() {
        say!("no free port     {}", names(topology, &free.full));
    }
    if !free.unknown.is_empty() {
        say!("ports unknown    {}", names(topology, &free.unknown));
        say!(
            "                 their models list no ports, so they get no cable: name those without a cable in the topology,"
        );
        say!("                 as in ports: [swp1, swp2] under the switch, or give it a model with listed ports");
    }
    Ok(())
}

fn names(topology: &Topology, switches: &[SwitchId]) -> String {
    let names: Vec<&str> = switches.iter().map(|switch| topology.switch(*switch).name.as_str()).collect();
    abridged(&names, ", ", NAMES_MAX)
}

fn json(topology: &Topology, found: &SuggestedCables, free: &FreePorts) -> Value {
    let figures = |figures: &planner::LoadFigures| {
        json!({
            "load_bound": figures.load_bound, "max_channel_load": load_json(figures.max_channel_load),
            "max_channel_time": load_json(figures.max_channel_time),
        })
    };
    let cables: Vec<Value> = (found.cables.iter())
        .map(|SuggestedCable { a, b, before, after }| {
            json!({
                "a": topology.port_label(*a), "b": topology.port_label(*b), "rate_bps": found.rate_bps,
                "before": figures(before), "after": figures(after),
            })
        })
        .collect();
    let mut end = match &found.end {
        CableEnd::Complete => json!({ "reason": "complete" }),
        CableEnd::NoPorts => json!({ "reason": "no-free-ports" }),
        CableEnd::NoGain { pairs, planned, refused, proven } => json!({
            "reason": "no-gain", "pairs": pairs, "planned": planned, "proven": proven,
            "refused": refused.as_ref().map_or(0, |(count, _)| *count),
        }),
        CableEnd::Stopped => json!({ "reason": "stopped" }),
    };
    if let Some(words) = end_words(found) {
        end["message"] = words.into();
    }
    let all = |switches: &[SwitchId]| -> Vec<String> {
        switches.iter().map(|switch| topology.switch(*switch).name.clone()).collect()
    };
    json!({
        "now": found.now.as_ref().map(figures), "suggested_cables": cables, "end": end,
        "no_free_port": all(&free.full), "ports_unknown": all(&free.unknown),
    })
}
