//! The planner: a pure, deterministic function from topology and policy to a complete plan.
//!
//! ```text
//! Topology ─ engine ─▶ Routing ─ merge ─▶ fewer trees ─ lanes ─▶ certificate ─ number ─▶ VLANs ─ intents ─▶ Plan
//! ```
//!
//! An *engine* finds, for every host, the tree along which its frames spread. Everything after that is the same for
//! all engines: identical trees become one (\[Otsuka\] 4.3), trees are placed on lanes and proven free of cycles,
//! measured, numbered, and turned into the complete desired state of every port.
#![forbid(unsafe_code)]

mod advice;
mod afresh;
mod again;
mod assemble;
mod bound;
mod broadcast;
mod cables;
mod candidate;
mod cap;
mod confined;
mod contest;
mod demand;
mod dependency;
mod drain;
mod engine;
mod error;
mod exponential;
mod fan;
mod fitting;
mod frames;
mod hop_limit;
mod host_set;
mod in_band;
mod intents;
mod lanes;
mod lattice;
mod measure;
mod merge;
mod number;
mod part;
mod paths;
mod planes;
mod replan;
mod request;
mod resilience;
mod rivals;
mod routing;
mod search_log;
mod several;
mod threads;
mod watch;

pub use again::{better_anew, is_better_anew};
pub use cables::{CableEnd, CableSearch, CableStep, FreePorts, LoadFigures, SuggestedCable, SuggestedCables};
pub use drain::drain;
pub use error::{PlanError, VlanLimit};
pub use frames::{Uncovered, uncovered};
pub use measure::channel_times;
pub use part::SearchPart;
pub use planes::planes;
pub use replan::REPLAN_LOAD_FACTOR;
pub use search_log::{Achieved, Ending, SearchEvent, SharedStart, Start};
pub use several::times_by_traffic;
pub use watch::{StepLimit, Watch, tables_are_tight};

use std::borrow::Cow;

use fabric::{GROUPS_MAX, Host, Plan, Policy, Topology, Traffic};

use crate::{
    afresh::plan_afresh,
    engine::spanning_tree,
    measure::Measure,
    request::{check_hops, check_learned, check_request},
};

/// Plans a topology.
///
/// Engines that can go on improving take a number of steps that depends on the size of the topology alone; [`plan_with`]
/// lets them go on.
///
/// With a `previous` plan for the same request, its trees, VLANs and choices stay as far as the cabling lets them, and
/// what broke is mended with few changes; switches, ports and hosts are matched by name. Where that is impossible the
/// topology is planned anew, and trees that are the same again keep their VLAN ids.
/// Cost: dominated by the engine; at least O(VLANs · (switches + links)).
///
/// # Errors
/// [`PlanError`], naming the limit that binds, and relaxations that were tried and work.
pub fn plan(topology: &Topology, policy: &Policy, previous: Option<&Plan>) -> Result<Plan, PlanError> {
    plan_with(topology, policy, previous, &mut StepLimit::by_request(topology, policy))
}

/// Plans a topology; engines that can go on improving do so until the watch says stop. That is how
/// [`Policy::time_limit`] or an interrupt reaches them: the planner itself reads no clock. The best plan so far is
/// returned.
///
/// Two plans from the same topology, policy, previous plan and number of steps are the same bytes.
///
/// # Errors
/// As [`plan`].
pub fn plan_with(
    topology: &Topology,
    policy: &Policy,
    previous: Option<&Plan>,
    watch: &mut dyn Watch,
) -> Result<Plan, PlanError> {
    attempt(topology, policy, (previous, OrderRule::Free), watch)
        .map_err(|refused| advice::with_way_out(topology, policy, refused))
}

/// Plans a topology within the channel order that proves `previous` free of deadlock: while a fabric changes from one plan to the
/// other, frames of both together are free of it as well. Cost: as [`plan_with`] of [`EngineName::Balanced`](fabric::EngineName).
///
/// # Errors
/// [`PlanError::OtherOrder`] if the order allows no plan, or does not apply: nothing waits, or there are new cables. Otherwise as
/// [`plan_with`].
pub fn plan_within_order(
    topology: &Topology,
    policy: &Policy,
    previous: &Plan,
    watch: &mut dyn Watch,
) -> Result<Plan, PlanError> {
    attempt(topology, policy, (Some(previous), OrderRule::Kept), watch)
}

/// Which order of channels the routes of a plan keep to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OrderRule {
    /// Any.
    Free,
    /// That of the previous plan.
    Kept,
}

/// Plans a topology; a refusal names no way out.
fn attempt(
    topology: &Topology,
    policy: &Policy,
    (previous, order): (Option<&Plan>, OrderRule),
    watch: &mut dyn Watch,
) -> Result<Plan, PlanError> {
    check_request(topology, policy)?;
    check_learned(policy, previous)?;
    let topology = &with_protected_groups(topology, policy)?;
    if policy.drain.is_empty() {
        attempt_whole(topology, policy, (previous, order), watch)
    } else {
        drain::plan(topology, policy, (previous, order), watch)
    }
}

/// The topology with all groups that the policy protects.
fn with_protected_groups<'a>(topology: &'a Topology, policy: &Policy) -> Result<Cow<'a, Topology>, PlanError> {
    if !policy.resilience.protects_link_pairs() {
        return Ok(Cow::Borrowed(topology));
    }
    let links = topology.links().len();
    let refused = |_| PlanError::TooManyLinkPairs { links, pairs: links * (links - 1) / 2, most: GROUPS_MAX };
    topology.with_link_pairs().map(Cow::Owned).map_err(refused)
}

/// Plans a topology of which nothing is drained.
fn attempt_whole(
    topology: &Topology,
    policy: &Policy,
    (previous, order): (Option<&Plan>, OrderRule),
    watch: &mut dyn Watch,
) -> Result<Plan, PlanError> {
    check_hops(topology, policy)?;
    let Some(in_band) = topology.in_band() else { return paths::plan(topology, policy, (previous, order), watch) };
    let mut policy = policy.clone();
    policy.vlans.reserved.insert(in_band.vlan);
    let mut plan = paths::plan(topology, &policy, (previous, order), watch)?;
    in_band::overlay(topology, in_band, previous, &mut plan);
    Ok(plan)
}

/// Plans by [`Policy::demands`]: engines know all-to-all between all hosts, and matrices, one at a time.
fn plan_between_machines(
    topology: &Topology,
    policy: &Policy,
    (previous, order): (Option<&Plan>, OrderRule),
    watch: &mut dyn Watch,
) -> Result<Plan, PlanError> {
    if !policy.further_traffic.is_empty() {
        return several::plan(topology, policy, (previous, order), watch);
    }
    let traffic = match policy.demand(topology).map_err(|error| PlanError::TooManyPairs(error.to_string()))? {
        Cow::Borrowed(_) => return plan_data(topology, policy, (previous, order), watch),
        Cow::Owned(traffic) => traffic,
    };
    // Requests are the same if their policies are. Their matrices differ as soon as a host comes or goes.
    let previous = previous.map(|previous| {
        let before = &previous.policy;
        let same = is_for_same_traffic(topology, policy, previous);
        let then = if same { Ok(Cow::Borrowed(&traffic)) } else { before.demand(&previous.topology) };
        let policy =
            Policy { traffic: then.map_or_else(|_| before.traffic.clone(), Cow::into_owned), ..before.clone() };
        Plan { policy, ..previous.clone() }
    });
    let asked = Policy { traffic, ..policy.clone() };
    let plan = plan_data(topology, &asked, (previous.as_ref(), order), watch)?;
    Ok(Plan { policy: policy.clone(), ..plan })
}

/// Whether a previous plan was requested for the same traffic, and its hosts that are still there have the same weights.
fn is_for_same_traffic(topology: &Topology, policy: &Policy, previous: &Plan) -> bool {
    let before = &previous.policy;
    let same = (&policy.traffic, &policy.further_traffic, policy.rails, policy.weights)
        == (&before.traffic, &before.further_traffic, before.rails, before.weights);
    let now = |host: &Host| topology.find_host(&host.name).map(|id| topology.host(id).weight);
    let weighted_alike = previous.topology.hosts().iter().all(|host| now(host).is_none_or(|now| now == host.weight));
    same && weighted_alike
}

/// `position[switch][dimension]` of every switch if the links make a lattice of them all, found as the engine `dor` finds it;
/// none otherwise.
pub fn lattice_positions(topology: &Topology) -> Option<Vec<Vec<usize>>> {
    let lattice = lattice::Lattice::recognise(topology, lattice::Squares::Rings).ok()?;
    let mut positions = vec![Vec::new(); topology.switches().len()];
    for (node, position) in lattice.nodes.iter().zip(lattice.position) {
        positions[node.index()] = position;
    }
    positions.iter().all(|position| !position.is_empty()).then_some(positions)
}

/// How long traffic keeps the most loaded link of a single spanning tree busy, in demand on the fastest link: the tree of engine
/// `tree`. Cost: O(switches · links), and for a matrix O(demands) more.
pub fn spanning_tree_time(topology: &Topology, traffic: &Traffic) -> f64 {
    Measure::of(topology, traffic, &spanning_tree(topology)).time_max
}

/// Plans what carries data, which is all there is where switches have ports for their management.
fn plan_data(
    topology: &Topology,
    policy: &Policy,
    (previous, order): (Option<&Plan>, OrderRule),
    watch: &mut dyn Watch,
) -> Result<Plan, PlanError> {
    match previous {
        Some(previous) => again::plan(topology, policy, (previous, order), watch),
        None => plan_afresh(topology, policy, None, watch),
    }
}
