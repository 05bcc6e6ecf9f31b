//! Planning again: what a previous plan is worth to a request that may have changed.
//!
//! ```text
//!   same topology, same policy  ─▶ the previous plan, byte for byte
//!   same kind of request        ─▶ its routes, mended (`replan`)
//!        … and an input changed that the mending does not weigh: new routes within the previous plan's channel order compete,
//!          and then a fresh plan
//!   another request             ─▶ a fresh plan
//! ```
//! Each replaces the one before only if its most loaded link takes less time by more than [`REPLAN_LOAD_FACTOR`]: a change of
//! entries on running switches is a cost as well. While a fabric changes to routes within the previous channel order, frames of both
//! plans together are free of deadlock; to routes of a fresh plan they may not be.

use std::collections::BTreeSet;

use fabric::{Certificate, ChannelId, EngineName, LinkId, Plan, Policy, Relation, Resilience, Topology, Traffic};

use crate::{
    OrderRule, PlanError, REPLAN_LOAD_FACTOR, SearchEvent, Watch,
    afresh::{plan_afresh, plan_within, protect, with_extras},
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
    watch::Shortened,
};

/// What part of the steps goes to routes within the order of the previous plan; a search without it gets the rest.
const WITHIN_ORDER_PART: u64 = 3;

/// Plans a topology for which there is a plan already.
pub(crate) fn plan(
    topology: &Topology,
    policy: &Policy,
    (previous, order): (&Plan, OrderRule),
    watch: &mut dyn Watch,
) -> Result<Plan, PlanError> {
    if let Some(plan) = unchanged(topology, policy, previous, watch) {
        return Ok(plan);
    }
    match order {
        OrderRule::Free => plan_freely(topology, policy, previous, watch),
        OrderRule::Kept => plan_within_order(topology, policy, previous, watch),
    }
}

fn plan_freely(
    topology: &Topology,
    policy: &Policy,
    previous: &Plan,
    watch: &mut dyn Watch,
) -> Result<Plan, PlanError> {
    let Some(kept) = best_mended(topology, policy, previous, watch) else {
        return plan_afresh(topology, policy, Some(previous), watch);
    };
    if !competes(topology, policy, previous) {
        return Ok(kept);
    }
    let order = carried_order(topology, policy, previous).ok();
    let within = order.and_then(|order| {
        let mut part = Shortened::first_part(&mut *watch, WITHIN_ORDER_PART);
        anew_within(topology, policy, (previous, &order), &mut part).ok()
    });
    let kept = within.filter(|within| is_better_anew(&kept, within)).unwrap_or(kept);
    let fresh = plan_afresh(topology, policy, Some(previous), watch);
    Ok(fresh.ok().filter(|fresh| is_better_anew(&kept, fresh)).unwrap_or(kept))
}

fn plan_within_order(
    topology: &Topology,
    policy: &Policy,
    previous: &Plan,
    watch: &mut dyn Watch,
) -> Result<Plan, PlanError> {
    let order = carried_order(topology, policy, previous)?;
    let kept = best_mended(topology, policy, previous, watch);
    let kept = kept.filter(|kept| keeps(kept, &order, proven_frames(previous)));
    if let Some(kept) = kept.as_ref().filter(|_| !competes(topology, policy, previous)) {
        return Ok(proven_by(order, kept.clone()));
    }
    let within = anew_within(topology, policy, (previous, &order), watch);
    let plan = match kept {
        Some(kept) => within.ok().filter(|within| is_better_anew(&kept, within)).unwrap_or(kept),
        None => within?,
    };
    Ok(proven_by(order, plan))
}

/// A plan that keeps an order, with this order as its proof, so that further paths and later plans keep it too. What hosts do
/// after failures is proven by the plan's own.
fn proven_by(order: Vec<Vec<u32>>, plan: Plan) -> Plan {
    match plan.failover {
        None => Plan { certificate: Some(Certificate { rank: order }), ..plan },
        Some(_) => plan,
    }
}

/// The previous plan's routes, mended; none if they cannot be.
fn best_mended(topology: &Topology, policy: &Policy, previous: &Plan, watch: &mut dyn Watch) -> Option<Plan> {
    let again = |second| mended(topology, policy, previous, second, watch.threads());
    let kept = again(SecondPass::Ease).or_else(|| again(SecondPass::None))?;
    watch.happened(&SearchEvent::Mended(kept.summary.max_channel_time));
    Some(kept)
}

/// A plan made anew that keeps an order of channels, `rank[lane][channel]`.
fn anew_within(
    topology: &Topology,
    policy: &Policy,
    (previous, order): (&Plan, &[Vec<u32>]),
    watch: &mut dyn Watch,
) -> Result<Plan, PlanError> {
    let refused = |why: String| PlanError::OtherOrder { reason: format!("no routes keep the order: {why}") };
    if !matches!(policy.engine, EngineName::Auto | EngineName::Balanced) {
        return Err(refused(format!("--engine {} has routes of its own", policy.engine)));
    }
    let plan = plan_within(topology, policy, (previous, order), watch).map_err(|why| refused(why.to_string()))?;
    match keeps(&plan, order, proven_frames(previous)) {
        true => Ok(plan),
        false => Err(refused("broadcasts need other trees".to_owned())),
    }
}

/// The channel order that proves a previous plan free of deadlock, `rank[lane][channel]`, on the cabling that there is now.
fn carried_order(topology: &Topology, policy: &Policy, previous: &Plan) -> Result<Vec<Vec<u32>>, PlanError> {
    let refused = |reason: &str| Err(PlanError::OtherOrder { reason: reason.to_owned() });
    if policy.flow_control.lanes().is_none() {
        return refused("without flow control, frames do not wait for each other, and there is no order to keep");
    }
    let proof = previous.certificate.as_ref().filter(|_| policy.flow_control == previous.policy.flow_control);
    let Some(certificate) = proof else { return refused("the previous plan is for another flow control") };
    let relation = Relation::between(&previous.topology, topology);
    let carried = |rank: &Vec<u32>| {
        let mut now = vec![None; topology.channel_count()];
        let twins = relation.channel.iter().zip(rank).filter_map(|(twin, rank)| Some(((*twin)?, rank)));
        twins.for_each(|(twin, rank)| now[twin.index()] = Some(*rank));
        now.into_iter().collect::<Option<Vec<u32>>>()
    };
    match certificate.rank.iter().map(carried).collect() {
        Some(order) => Ok(order),
        None => refused("there are cables that the order of the previous plan does not have"),
    }
}

/// The frames that a plan proves free of deadlock.
fn proven_frames(plan: &Plan) -> Frames {
    frames::certified(plan).unwrap_or(Frames::Unicast)
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
    match &plan.certificate {
        Some(certificate) => keeps(plan, &certificate.rank, Frames::Unicast),
        None => plan.policy.flow_control.lanes().is_none(),
    }
}

/// Whether the ways of a plan's frames increase in an order of channels, `rank[lane][channel]`. Cost: O(routes' dependencies).
fn keeps(plan: &Plan, order: &[Vec<u32>], frames: Frames) -> bool {
    let lane: Vec<u8> = plan.trees.iter().map(|tree| tree.lane).collect();
    let routing = Routing::of_plan(plan);
    if lane.iter().any(|lane| usize::from(*lane) >= order.len()) {
        return false;
    }
    let flooding = Flooding::of(&plan.policy);
    let waits = frames::dependencies(&plan.topology, &routing, (&lane, order.len()), frames, flooding);
    let increases = |(waits, rank): (&Dependencies, &Vec<u32>)| {
        waits.iter().all(|(from, to)| rank[from.index()] < rank[to.index()])
    };
    waits.iter().zip(order).all(increases)
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

/// Routes that all ports of a failover bond can have, where nothing waits and all trees stay in use; none if that is what they are.
fn bonds_alike(topology: &Topology, policy: &Policy, routing: &Routing) -> Option<Routing> {
    let is_free = policy.flow_control.lanes().is_none();
    let alike = routing.with_bonds_alike(topology, policy.tagging).filter(|_| is_free)?;
    let mut used = BTreeSet::new();
    alike.assignment.map(|tree| used.insert(tree));
    (used.len() == alike.trees.len()).then_some(alike)
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
    let (routing, rank) = match bonds_alike(topology, policy, &routing) {
        Some(alike) => (alike, None),
        None => (routing, rank),
    };
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
