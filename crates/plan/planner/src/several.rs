//! Routes for several kinds of traffic at once: the greatest load that any of them puts on a link is to be low.
//!
//! Engines know one matrix. They get the sum of all, each with a weight, and what counts is what every matrix by itself loads then;
//! matrices that load less than the worst lose weight, and the engines try again (multiplicative weights: Arora, Hazan and
//! Kale, 2012). The best of the plans is kept. No routing has a lower load than the bound of any single matrix, so the greatest of
//! their bounds is one of the plan.
//!
//! ```text
//!   day     ─ weight 1.00 ─┐                             ┌─ day     loads 14
//!                          ├─ sum ─ engines ─▶ routes ─┤                       worst: 14; night counts less in the next sum
//!   night   ─ weight 1.00 ─┘                             └─ night   loads  9
//! ```
//! Cost: [`SUMS`] plans. A plan that follows another one is made from one sum: weights are the loads on the plan that stands.

use std::borrow::Cow;

use fabric::{FailoverSummary, Plan, Policy, Topology, Traffic, TrafficMatrix};

use crate::{
    OrderRule, PlanError, StepLimit, Watch, again,
    bound::{self, LoadBound},
    demand::Demand,
    exponential::exp,
    is_for_same_traffic,
    measure::Measure,
    plan_data,
    routing::Routing,
    watch::{SUMS, Shortened},
};

/// A matrix that loads no link keeps e⁻⁴ of its weight from one round to the next.
const STEEPNESS: f64 = 4.0;
/// A load this near to the bound is at the bound.
const ATTAINED: f64 = 1.0 + 1e-9;

/// Plans for all traffic of a policy, which has further traffic.
pub(crate) fn plan(
    topology: &Topology,
    policy: &Policy,
    (previous, order): (Option<&Plan>, OrderRule),
    watch: &mut dyn Watch,
) -> Result<Plan, PlanError> {
    if let Some(plan) = previous.and_then(|previous| again::unchanged(topology, policy, previous, watch)) {
        return Ok(plan);
    }
    let demands = demands(topology, policy)?;
    let bounds = demands.iter().map(|traffic| bound::bound(topology, &Demand::new(topology, traffic), watch.threads()));
    let bound = bounds.max_by(|a, b| a.load.total_cmp(&b.load)).expect("a policy has traffic");
    let mut weights =
        previous.map_or_else(|| vec![1.0; demands.len()], |previous| weights_after(previous, demands.len()));
    let rounds = if previous.is_some() { 1 } else { SUMS };
    let mut best: Option<(f64, Plan)> = None;
    for round in 1..=rounds {
        let traffic = sum(topology, &demands, &weights)?;
        let asked = Policy { traffic: traffic.clone(), further_traffic: Vec::new(), ..policy.clone() };
        let before = previous.map(|previous| as_before(topology, policy, previous, traffic));
        // The last round may use all steps that are left.
        let steps = if round < rounds { StepLimit::for_one(topology, &asked) } else { StepLimit::new(u64::MAX) };
        let plan = plan_data(topology, &asked, (before.as_ref(), order), &mut Shortened::new(&mut *watch, steps))?;
        let times = times(topology, &demands, &Routing::of_plan(&plan));
        let worst = longest(&times);
        if best.as_ref().is_none_or(|(least, _)| worst < *least) {
            best = Some((worst, plan));
        }
        if worst <= bound.load * ATTAINED || watch.expired() {
            break;
        }
        for (weight, time) in weights.iter_mut().zip(&times) {
            *weight *= share_kept(*time, worst);
        }
    }
    let (_, plan) = best.expect("there is at least one round");
    Ok(for_all(plan, policy, &demands, bound))
}

/// `times[kind]`: how long each traffic of a plan's policy keeps its most loaded link busy, in demand on the fastest link: all-to-all
/// or the first matrix, then the others. Cost: as [`channel_times`](crate::channel_times), for each.
pub fn times_by_traffic(plan: &Plan) -> Vec<f64> {
    let demands = plan.policy.demands(&plan.topology).unwrap_or_default();
    times(&plan.topology, &demands, &Routing::of_plan(plan))
}

/// `times[kind]`: how long each traffic keeps its most loaded link busy over some routes.
fn times(topology: &Topology, demands: &[Cow<'_, Traffic>], routing: &Routing) -> Vec<f64> {
    demands.iter().map(|traffic| Measure::of(topology, traffic, routing).time_max).collect()
}

fn longest(times: &[f64]) -> f64 {
    times.iter().copied().fold(0.0, f64::max)
}

/// The share of its weight that a matrix keeps if it takes this time where the worst takes that.
fn share_kept(time: f64, worst: f64) -> f64 {
    exp(STEEPNESS * (time / worst - 1.0))
}

fn demands<'a>(topology: &Topology, policy: &'a Policy) -> Result<Vec<Cow<'a, Traffic>>, PlanError> {
    policy.demands(topology).map_err(|error| PlanError::TooManyPairs(error.to_string()))
}

/// Weights by the loads of a previous plan, if it is for as many kinds of traffic; else all alike.
fn weights_after(previous: &Plan, kinds: usize) -> Vec<f64> {
    let times = times_by_traffic(previous);
    let worst = longest(&times);
    if times.len() != kinds || worst == 0.0 {
        return vec![1.0; kinds];
    }
    times.iter().map(|time| share_kept(*time, worst)).collect()
}

/// The previous plan as a plan for one matrix: the sum, if it was requested for the same traffic; else the first of its own.
fn as_before(topology: &Topology, policy: &Policy, previous: &Plan, sum: Traffic) -> Plan {
    let before = &previous.policy;
    let first = || before.demand(&previous.topology).map_or_else(|_| before.traffic.clone(), Cow::into_owned);
    let traffic = if is_for_same_traffic(topology, policy, previous) { sum } else { first() };
    Plan { policy: Policy { traffic, further_traffic: Vec::new(), ..before.clone() }, ..previous.clone() }
}

/// All demands, each times its weight.
fn sum(topology: &Topology, demands: &[Cow<'_, Traffic>], weights: &[f64]) -> Result<Traffic, PlanError> {
    let parts: Vec<(f64, &Traffic)> = weights.iter().copied().zip(demands.iter().map(|traffic| &**traffic)).collect();
    TrafficMatrix::weighted_sum(topology.hosts().len(), &parts)
        .map(Traffic::Matrix)
        .map_err(|error| PlanError::TooManyPairs(error.to_string()))
}

/// A plan that was made for a sum as one for all that is in it: its loads are the greatest of any, and so is its bound.
fn for_all(mut plan: Plan, policy: &Policy, demands: &[Cow<'_, Traffic>], bound: LoadBound) -> Plan {
    plan.policy = policy.clone();
    let (topology, routing) = (&plan.topology, Routing::of_plan(&plan));
    let summary = &mut plan.summary;
    (summary.max_channel_load, summary.max_channel_time) = (0.0, 0.0);
    for traffic in demands {
        let measure = Measure::of(topology, traffic, &routing);
        summary.max_channel_load = summary.max_channel_load.max(measure.load_max());
        summary.max_channel_time = summary.max_channel_time.max(measure.time_max);
    }
    (summary.load_bound, plan.bound) = (bound.load, bound.certificate);
    summary.load_gap = if bound.load > 0.0 { summary.max_channel_time / bound.load } else { 1.0 };
    if let Some(failover) = &mut plan.failover {
        let overs = &failover.switch_overs;
        let routings = overs.iter().map(|over| Routing::of_trees(&plan.trees, &over.apply(&plan.assignment)));
        let after = routings.map(|routing| longest(&times(topology, demands, &routing)));
        // What is covered without a switch-over carries no frames between others, so its failure changes no load.
        let FailoverSummary { links_covered, switches, groups, .. } = failover.summary;
        let parts = [switches, groups].into_iter().flatten().map(|coverage| coverage.covered);
        let covered = links_covered + parts.sum::<usize>();
        let unchanged = if covered > overs.len() { summary.max_channel_time } else { 0.0 };
        failover.summary.max_channel_time = after.fold(unchanged, f64::max);
    }
    plan
}
