//! What limits cost: how much busier a plan is for a cap on VLANs, or for switches whose tables are small.

use std::time::Duration;

use anyhow::Result;
use fabric::{EngineName, Plan, Policy, Topology, TopologyBuilder, format::report::load_json};
use planner::StepLimit;
use serde_json::{Value, json};

use super::{loads::max_load, patience::Patience};

/// Part of a time limit that goes into what a limit costs.
const SHARE: u32 = 4;

/// A limit that may cost something.
#[derive(Clone, Copy, PartialEq, Eq)]
enum What {
    /// `--max-vlans`.
    Cap,
    /// The static entries that switches hold.
    Tables,
}

/// A request without one of its limits.
pub(super) struct Limit {
    what: What,
    topology: Topology,
    policy: Policy,
}

/// What a limit costs: a plan without it that is better.
pub(super) struct Price {
    what: What,
    free: Plan,
}

/// The limits that may make a plan worse.
pub(super) fn limits(topology: &Topology, policy: &Policy) -> Result<Vec<Limit>> {
    let mut limits = Vec::new();
    // More trees than switches with hosts are of no use.
    let sources = topology.switch_ids().filter(|switch| !topology.hosts_of(*switch).is_empty()).count();
    if policy.vlans_max.is_some_and(|most| most < sources) {
        let policy = Policy { vlans_max: None, ..policy.clone() };
        limits.push(Limit { what: What::Cap, topology: topology.clone(), policy });
    }
    let gives_up_trees = matches!(policy.engine, EngineName::Auto | EngineName::Balanced);
    if gives_up_trees && planner::tables_are_tight(topology, policy) {
        let most = topology.hosts().len().saturating_mul(topology.switches().len());
        let mut builder = TopologyBuilder::of(topology);
        builder.change_models(|model| model.static_entries_max = model.static_entries_max.max(most));
        let unlimited = builder.finish().map_err(|faults| anyhow::anyhow!("{}", faults[0]))?;
        let probe = planner::plan_with(&unlimited, policy, None, &mut StepLimit::probe());
        let overflows = |plan: &Plan| {
            topology
                .switches()
                .iter()
                .zip(&plan.devices)
                .any(|(s, device)| device.fdb_room(&plan.topology) > s.model.static_entries_max)
        };
        if probe.is_ok_and(|plan| overflows(&plan)) {
            limits.push(Limit { what: What::Tables, topology: unlimited, policy: policy.clone() });
        }
    }
    Ok(limits)
}

/// What is left of the time limit for the plan itself.
pub(super) fn time_limit(policy: &Policy, limits: &[Limit]) -> Option<Duration> {
    policy.time_limit.map(|limit| limit - limits.len() as u32 * (limit / SHARE))
}

/// Plans without each limit, and keeps those that gain from it.
pub(super) fn prices(limits: Vec<Limit>, plan: &Plan, patience: &mut Patience) -> Vec<Price> {
    let mut prices = Vec::new();
    for Limit { what, topology, policy } in limits {
        if patience.is_interrupted() || plan.summary.load_gap <= 1.0 {
            break;
        }
        let subject = match what {
            What::Cap => "without the cap: ",
            What::Tables => "with larger tables: ",
        };
        patience.restart(&topology, &policy, policy.time_limit.map(|limit| limit / SHARE), subject.to_owned());
        let free = planner::plan_with(&topology, &policy, None, patience).ok();
        let gains = |free: &Plan| free.summary.vlans > plan.summary.vlans && factor(plan, free) > 1.0;
        prices.extend(free.filter(gains).map(|free| Price { what, free }));
    }
    prices
}

/// How many times as busy a plan's busiest channel is as another one's.
fn factor(plan: &Plan, other: &Plan) -> f64 {
    plan.summary.max_channel_time / other.summary.max_channel_time
}

impl Price {
    /// What `plan --json` calls it.
    pub(super) fn key(&self) -> &'static str {
        match self.what {
            What::Cap => "uncapped",
            What::Tables => "larger_tables",
        }
    }

    /// What a plan without the limit would have.
    pub(super) fn json(&self) -> Value {
        let summary = &self.free.summary;
        json!({
            "vlans": summary.vlans, "max_channel_load": load_json(summary.max_channel_load),
            "max_channel_time": load_json(summary.max_channel_time), "load_gap": summary.load_gap,
            "fdb_entries_max": summary.fdb_entries_max,
        })
    }

    /// The same as a line of the summary.
    pub(super) fn words(&self, plan: &Plan) -> String {
        let (vlans, free, factor) = (self.free.summary.vlans, max_load(&self.free), factor(plan, &self.free));
        match self.what {
            What::Cap => {
                format!("price of the cap {factor:.2}× the max load: {vlans} VLANs would have {free}")
            }
            What::Tables => format!(
                "price of tables  {factor:.2}× the max load: {vlans} VLANs, with {} entries on one switch, would have {free}",
                self.free.summary.fdb_entries_max
            ),
        }
    }
}
