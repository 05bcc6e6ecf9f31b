//! Planning afresh: an engine's routes with as many trees as limits and failures let there be.
//!
//! ```text
//!   routes ─▶ protected ─▶ numbered ─▶ assembled ─▶ within the limits? ─▶ plan
//!      ▲                                                   │ no
//!      └───────────── fewer trees (`fitting`) ◀────────────┘
//! ```
//! Where no number of trees that is tried fits, the plan with the fewest trees of all is what is left.

use std::net::IpAddr;

use fabric::{EngineName, Plan, Policy, Relation, Resilience, Topology, Tree, VlanId};

use crate::{
    PlanError, SearchEvent, StepLimit, VlanLimit, Watch,
    assemble::{Backup, Parts, addresses, assemble},
    bound,
    candidate::{self, Candidate},
    contest,
    demand::Demand,
    engine,
    fitting::Fitting,
    lanes::Lanes,
    number, replan,
    resilience::{self, ExtraTreePolicy, Protection, ProtectionRequest},
    routing::Routing,
    watch::{Shortened, tables_are_tight},
};

/// What part of the VLANs, and one more, is left for failures where time decides how long trees are searched for.
const RESERVED_PART: usize = 8;

/// Plans without regard to former routes; trees that are the same again keep their VLAN ids.
pub(crate) fn plan_afresh(
    topology: &Topology,
    policy: &Policy,
    previous: Option<&Plan>,
    watch: &mut dyn Watch,
) -> Result<Plan, PlanError> {
    let addresses = addresses(topology, policy, None)?;
    let bound = bound::bound(topology, &Demand::new(topology, &policy.traffic), watch.threads());
    watch.happened(&SearchEvent::Bound(bound.load));
    let find = |policy: &Policy, is_trial, watch: &mut dyn Watch| match is_trial {
        true => candidate::of_request(topology, policy, bound.load, watch),
        false => contest::contest(topology, policy, bound.load, watch),
    };
    match plan_anew(topology, policy, previous, (&addresses, &bound), &find, watch) {
        Err(refused) if policy.resilience != Resilience::None => {
            sparing_plan(topology, policy, previous, addresses, bound, refused, watch.threads())
        }
        result => result,
    }
}

/// Plans without regard to former routes, but within the channel orders that prove the previous plan free of deadlock,
/// `rank[lane][channel]`: frames of both plans together are free of it as well.
///
/// # Errors
/// Why there is no such plan.
pub(crate) fn plan_within(
    topology: &Topology,
    policy: &Policy,
    (previous, rank): (&Plan, &[Vec<u32>]),
    watch: &mut dyn Watch,
) -> Result<Plan, PlanError> {
    let addresses = addresses(topology, policy, None)?;
    let bound = bound::bound(topology, &Demand::new(topology, &policy.traffic), watch.threads());
    let find = |policy: &Policy, _, watch: &mut dyn Watch| candidate::within(topology, policy, rank, bound.load, watch);
    plan_anew(topology, policy, Some(previous), (&addresses, &bound), &find, watch)
}

/// How routes for a request are found; `is_trial` says whether they only show whether so many trees fit.
type Find<'a> = &'a dyn Fn(&Policy, bool, &mut dyn Watch) -> Result<Candidate, PlanError>;

/// Plans with as many trees as limits and failures let there be.
fn plan_anew(
    topology: &Topology,
    policy: &Policy,
    previous: Option<&Plan>,
    (addresses, bound): (&[IpAddr], &bound::LoadBound),
    find: Find<'_>,
    watch: &mut dyn Watch,
) -> Result<Plan, PlanError> {
    let threads = watch.threads();
    let searches = matches!(policy.engine, EngineName::Auto | EngineName::Balanced);
    let hurry = searches && policy.time_limit.is_some() && policy.resilience != Resilience::None;
    let trees_max = if hurry && engine::shares_trees(topology, policy) {
        // Sharing takes all the time there is, and how many more trees failures take shows only afterwards.
        let capacity = number::capacity(topology, policy);
        Some(capacity.saturating_sub(1 + capacity / RESERVED_PART).max(1))
    } else {
        policy.vlans_max
    };
    let mut fitting = Fitting::new(trees_max, tables_are_tight(topology, policy));
    let mut best = None;
    loop {
        let capped = Policy { vlans_max: fitting.cap(), ..policy.clone() };
        let mut shortened;
        let watch: &mut dyn Watch = match fitting.steps(|| StepLimit::for_one(topology, policy)) {
            Some(steps) => {
                shortened = Shortened::new(watch, steps);
                &mut shortened
            }
            None => watch,
        };
        let Candidate { engine, routing, lanes, measure } = find(&capped, fitting.is_trial(), watch)?;
        let own = routing.trees.len();
        let former = match previous {
            Some(previous) => {
                replan::former_extras(topology, previous, &Relation::between(&previous.topology, topology))
            }
            None => Vec::new(),
        };
        let finish = |extra_trees| -> Result<Plan, PlanError> {
            let protection = protect(topology, policy, engine, &routing, &lanes, former.clone(), extra_trees)?;
            let (routing, lane) = with_extras(routing.clone(), &lanes.lane, protection.as_ref());
            let (trees, assignment, vlan) = number::number(topology, policy, routing, &lane, previous)?;
            let backup = protection.map(|protection| Backup { protection, vlan });
            let (addresses, bound, measure) = (addresses.to_vec(), bound.clone(), measure.clone());
            let Lanes { count: lanes, rank, .. } = lanes.clone();
            let parts = Parts { engine, trees, assignment, addresses, measure, lanes, rank, bound, backup, threads };
            assemble(topology, policy, parts, None)
        };
        let finished = match finish(ExtraTreePolicy::Balanced) {
            Err(PlanError::TooManyStaticEntries { .. }) if policy.resilience != Resilience::None => {
                finish(ExtraTreePolicy::Sparing)
            }
            finished => finished,
        };
        let gives_up_trees = searches && own > 1;
        match finished {
            Err(PlanError::TooManyStaticEntries { need, limit, .. }) if gives_up_trees => {
                fitting.is_too_much(own, own * limit / need);
            }
            Err(PlanError::TooManyVlansForResilience { need, limit, .. }) if gives_up_trees => {
                fitting.is_too_much(own, limit.count().saturating_sub(need - own));
            }
            Ok(plan) => {
                let time_max = plan.summary.max_channel_time;
                if fitting.keeps() && best.as_ref().is_none_or(|best: &Plan| time_max <= best.summary.max_channel_time)
                {
                    best = Some(plan);
                }
                if fitting.fits(time_max) {
                    return Ok(best.expect("it was just found, or a better one was"));
                }
            }
            Err(error) => return best.ok_or(error),
        }
    }
}

/// The plan with the fewest trees of an engine, and of further ones only those that failures take: what is left where
/// no better one fits.
///
/// Neither the cap on VLANs nor the steps that are left have a say in how it is made, only in whether it is taken. So
/// the number that is named as enough is that of the very plan that a cap of so many lets through.
///
/// # Errors
/// How many VLANs it takes, if they are too many; `refused`, if the engine has no such plan.
fn sparing_plan(
    topology: &Topology,
    policy: &Policy,
    previous: Option<&Plan>,
    addresses: Vec<IpAddr>,
    bound: bound::LoadBound,
    refused: PlanError,
    threads: usize,
) -> Result<Plan, PlanError> {
    let Ok(Candidate { engine, routing, lanes, measure }) = fewest_trees(topology, policy, bound.load) else {
        return Err(refused);
    };
    let Ok(protection) = resilience::protect(&ProtectionRequest {
        topology,
        flow_control: policy.flow_control,
        resilience: policy.resilience,
        traffic: &policy.traffic,
        routing: &routing,
        lane: &lanes.lane,
        rank: lanes.rank.as_deref(),
        former: Vec::new(),
        extras_max: usize::MAX,
        extra_trees: ExtraTreePolicy::Sparing,
    }) else {
        return Err(refused);
    };
    let (own, extras) = (routing.trees.len(), protection.extras.len());
    if extras > 0 && own + extras > number::capacity(topology, policy) {
        return Err(number::too_many_for_resilience(topology, policy, engine, own, extras));
    }
    number::check_limits(topology, policy, engine, &routing)?;
    let (routing, lane) = with_extras(routing, &lanes.lane, Some(&protection));
    let (trees, assignment, vlan) = number::number(topology, policy, routing, &lane, previous)?;
    let backup = Some(Backup { protection, vlan });
    let Lanes { count: lanes, rank, .. } = lanes;
    let parts = Parts { engine, trees, assignment, addresses, measure, lanes, rank, bound, backup, threads };
    assemble(topology, policy, parts, None)
}

/// The routes of the policy's engine under the lowest cap that it can keep, after a few steps.
fn fewest_trees(topology: &Topology, policy: &Policy, bound: f64) -> Result<Candidate, PlanError> {
    let mut capped = Policy { vlans_max: Some(1), ..policy.clone() };
    loop {
        let mut watch = StepLimit::probe();
        match candidate::of_request(topology, &capped, bound, &mut watch) {
            Err(PlanError::TooManyVlans { need, limit: VlanLimit::Policy(cap), .. }) if need > cap => {
                capped.vlans_max = Some(need);
            }
            found => return found,
        }
    }
}

/// Makes routes ready for any link to fail, if the policy asks for it.
pub(crate) fn protect(
    topology: &Topology,
    policy: &Policy,
    engine: EngineName,
    routing: &Routing,
    lanes: &Lanes,
    former: Vec<(Tree, u8, VlanId)>,
    extra_trees: ExtraTreePolicy,
) -> Result<Option<Protection>, PlanError> {
    if policy.resilience == Resilience::None {
        return Ok(None);
    }
    let own = routing.trees.len();
    let former: Vec<_> = former.into_iter().filter(|(.., vlan)| policy.vlans.contains(*vlan)).collect();
    let request = |extra_trees, extras_max| {
        let (lane, rank, former) = (&lanes.lane[..], lanes.rank.as_deref(), former.clone());
        let (flow_control, traffic) = (policy.flow_control, &policy.traffic);
        resilience::protect(&ProtectionRequest {
            topology,
            flow_control,
            resilience: policy.resilience,
            traffic,
            routing,
            lane,
            rank,
            former,
            extras_max,
            extra_trees,
        })
    };
    let extras_max = number::capacity(topology, policy).saturating_sub(own);
    if extra_trees == ExtraTreePolicy::Balanced {
        if let Ok(protection) = request(extra_trees, extras_max) {
            return Ok(Some(protection));
        }
    }
    // However few there may be, it is made in the same way, so that it fits wherever its number does.
    match request(ExtraTreePolicy::Sparing, usize::MAX) {
        Ok(protection) if protection.extras.len() <= extras_max => Ok(Some(protection)),
        protection => {
            let extras = protection.map_or(0, |protection| protection.extras.len());
            Err(number::too_many_for_resilience(topology, policy, engine, own, extras))
        }
    }
}

/// The trees of a routing and those that are added for failures, with their lanes.
pub(crate) fn with_extras(mut routing: Routing, lane: &[u8], protection: Option<&Protection>) -> (Routing, Vec<u8>) {
    let mut lane = lane.to_vec();
    for (tree, of, _) in protection.into_iter().flat_map(|protection| &protection.extras) {
        routing.trees.push(tree.clone());
        lane.push(*of);
    }
    (routing, lane)
}
