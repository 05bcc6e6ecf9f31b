//! Planning again: what a previous plan is worth to a request that may have changed.
//!
//! ```text
//!   same topology, same policy  ─▶ the previous plan, byte for byte
//!   same kind of request        ─▶ its routes, mended (`replan`)
//!        … and an input changed that the mending does not weigh: a fresh plan competes
//!   another request             ─▶ a fresh plan
//! ```
//! A fresh plan replaces mended routes only if its most loaded link takes less time by more than
//! [`REPLAN_LOAD_FACTOR`]: a change of entries on running switches is a cost as well.

use std::collections::BTreeSet;

use fabric::{ChannelId, LinkId, Plan, Policy, Relation, Resilience, Topology, Traffic};

use crate::{
    PlanError, REPLAN_LOAD_FACTOR, SearchEvent, Watch,
    afresh::{plan_afresh, protect, with_extras},
    assemble::{Backup, Parts, addresses, assemble},
    bound,
    confined::Confined,
    demand::Demand,
    dependency::Dependencies,
    frames::{self, Flooding, Frames},
    lanes::{self, Lanes},
    measure::Measure,
    number,
    replan::{self, Replanned, SecondPass, Standing},
    resilience::ExtraTreePolicy,
    routing::Routing,
};

/// Plans a topology for which there is a plan already.
pub(crate) fn plan(
    topology: &Topology,
    policy: &Policy,
    previous: &Plan,
    watch: &mut dyn Watch,
) -> Result<Plan, PlanError> {
    if let Some(plan) = unchanged(topology, policy, previous, watch) {
        return Ok(plan);
    }
    let again = |second| mended(topology, policy, previous, second, watch.threads());
    let Some(kept) = again(SecondPass::Ease).or_else(|| again(SecondPass::None)) else {
        return plan_afresh(topology, policy, Some(previous), watch);
    };
    watch.happened(&SearchEvent::Mended(kept.summary.max_channel_time));
    if !competes(topology, policy, previous) {
        return Ok(kept);
    }
    let fresh = plan_afresh(topology, policy, Some(previous), watch);
    Ok(fresh.ok().filter(|fresh| is_better_anew(&kept, fresh)).unwrap_or(kept))
}

/// Whether a plan that keeps much of a previous one costs so much load that a fresh plan is worth its changes: its most
/// loaded link takes more than [`REPLAN_LOAD_FACTOR`] times as long.
pub fn is_better_anew(kept: &Plan, fresh: &Plan) -> bool {
    kept.summary.max_channel_time > fresh.summary.max_channel_time * REPLAN_LOAD_FACTOR
}

/// A fresh plan for what a plan answers, if its most loaded link takes so much less time that it is worth more changes than
/// the plan made; none as well where the engine that was asked for by name needs a structure that is gone.
pub fn better_anew(kept: &Plan, watch: &mut dyn Watch) -> Option<Plan> {
    let fresh = crate::plan_with(&kept.topology, &kept.policy, None, watch).ok()?;
    is_better_anew(kept, &fresh).then_some(fresh)
}

/// The previous plan, if it answers this very request and its routes respect its certificate.
pub(crate) fn unchanged(topology: &Topology, policy: &Policy, previous: &Plan, watch: &mut dyn Watch) -> Option<Plan> {
    let same = *policy == previous.policy && *topology == previous.topology;
    let plan = (same && respects_certificate(previous)).then(|| previous.clone())?;
    watch.happened(&SearchEvent::Unchanged);
    Some(plan)
}

/// Whether every route increases in the numbering that proves the plan free of deadlock; without a numbering, whether
/// none is needed. Cost: O(routes' dependencies).
fn respects_certificate(plan: &Plan) -> bool {
    let Some(certificate) = &plan.certificate else { return plan.policy.flow_control.lanes().is_none() };
    let lane: Vec<u8> = plan.trees.iter().map(|tree| tree.lane).collect();
    let routing = Routing::of_plan(plan);
    let count = certificate.rank.len();
    if lane.iter().any(|lane| usize::from(*lane) >= count) {
        return false;
    }
    let flooding = Flooding::of(&plan.policy);
    let waits = frames::dependencies(&plan.topology, &routing, (&lane, count), Frames::Unicast, flooding);
    let increases = |(waits, rank): (&Dependencies, &Vec<u32>)| {
        waits.iter().all(|(from, to)| rank[from.index()] < rank[to.index()])
    };
    waits.iter().zip(&certificate.rank).all(increases)
}

/// Whether the request changed in something that decides how good routes can be, but that mending them does not weigh:
/// traffic, link rates, VLANs, the engine, the seed, the limit on hops, or the time to search.
fn competes(topology: &Topology, policy: &Policy, previous: &Plan) -> bool {
    let before = &previous.policy;
    let other_request = (&policy.traffic, &policy.vlans, policy.vlans_max)
        != (&before.traffic, &before.vlans, before.vlans_max)
        || (policy.engine, policy.seed, policy.hops_max) != (before.engine, before.seed, before.hops_max)
        || policy.time_limit.is_some_and(|limit| before.time_limit != Some(limit));
    let old = &previous.topology;
    let relation = Relation::between(old, topology);
    let rate = |topology: &Topology, channel: ChannelId| topology.link(channel.link()).rate_bps;
    // Nothing uses links that come back into service as long as all trees are kept.
    let comes_back = |link: &LinkId| relation.channel[ChannelId::forward(*link).index()].is_some();
    other_request
        || before.drain.links.iter().any(comes_back)
        || (old.channel_ids().zip(&relation.channel))
            .any(|(channel, now)| now.is_some_and(|now| rate(old, channel) != rate(topology, now)))
}

/// Fits the previous plan to the topology; none if it was for another request, or does not fit within the limits.
pub(crate) fn mended(
    topology: &Topology,
    policy: &Policy,
    previous: &Plan,
    second: SecondPass,
    threads: usize,
) -> Option<Plan> {
    let relation = Relation::between(&previous.topology, topology);
    let Replanned { engine, routing, vlan, lane, rank } =
        replan::replan(topology, policy, previous, &relation, second, threads)?;
    if !Confined::by(topology, policy).holds(topology, &routing) {
        return None;
    }
    number::check_limits(topology, policy, engine, &routing).ok()?;
    let measure = Measure::by_threads(topology, &policy.traffic, &routing, threads);
    // Where cycles are allowed, what was noted on the way may have closed one that the routes themselves do not have.
    let rank = rank.or_else(|| lanes::place(topology, policy, engine, &routing).ok()?.rank);
    let lanes = Lanes { count: rank.as_ref().map_or(1, Vec::len), lane, rank };
    let former = replan::former_extras(topology, previous, &relation);
    let protection = protect(topology, policy, engine, &routing, &lanes, former, ExtraTreePolicy::Balanced).ok()?;
    let (routing, lane) = with_extras(routing, &lanes.lane, protection.as_ref());
    let mut vlan = vlan;
    vlan.extend(protection.iter().flat_map(|protection| &protection.extras).map(|(.., vlan)| *vlan));
    let (trees, assignment, vlan) = number::number_with(policy, routing, &lane, vlan, previous)?;
    let backup = protection.map(|protection| Backup { protection, vlan });
    let rank = lanes.rank;
    let addresses = addresses(topology, policy, Some((previous, &relation))).ok()?;
    let demand = Demand::new(topology, &policy.traffic);
    let carried = replan::carried_bound(topology, previous, &relation);
    let bound = match carried.filter(|_| [&policy.traffic, &previous.policy.traffic] == [&Traffic::AllToAll; 2]) {
        // Where the fastest link is gone, less of what is carried over is left than one pair needs.
        Some((load, certificate)) => bound::LoadBound { load: load.max(demand.single_max()), certificate },
        None => bound::bound(topology, &demand, 1),
    };
    let lanes = trees.iter().map(|tree| tree.lane).collect::<BTreeSet<u8>>().len();
    let standing = Standing::of(topology, previous, &relation, &trees, &assignment);
    let standing = Some(standing).filter(|_| policy.resilience == Resilience::None);
    let parts = Parts { engine, trees, assignment, addresses, measure, lanes, rank, bound, backup, threads };
    assemble(topology, policy, parts, standing).ok()
}
