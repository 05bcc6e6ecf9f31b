//! Candidates: an engine's routes, made fit for a policy, placed on lanes and measured.
//!
//! ```text
//!   engine ─▶ routes, best first ─▶ within the limits? ─▶ lanes free of cycles? ─▶ candidate
//!                    ▲                     │ no                   │ no
//!                    └──────────── the next routes ◀──────────────┘
//! ```

use fabric::{EngineName, FlowControl, Policy, Topology, Traffic};

use crate::{
    Achieved, PlanError, SearchEvent, StepLimit, Watch, broadcast,
    cap::{self, Rules},
    confined::Confined,
    engine, hop_limit,
    lanes::{self, Lanes},
    measure::Measure,
    merge, number,
    routing::{Routing, Unsuitable},
    watch::Shortened,
};

/// A plan within this factor of the bound is good enough to search for a better one only briefly, unless a time limit
/// says how long.
const NEAR: f64 = 2.0;
/// How briefly, in steps.
const NEAR_STEPS: u64 = 256;
/// The routes of the policy's engine, or of the best one if any will do.
///
/// # Errors
/// Why there are none; where any engine will do, the refusal that the smallest relaxation would lift.
pub(crate) fn of_request(
    topology: &Topology,
    policy: &Policy,
    bound: f64,
    watch: &mut dyn Watch,
) -> Result<Candidate, PlanError> {
    match policy.engine {
        EngineName::Auto => best_candidate(topology, policy, bound, watch),
        engine => candidate(topology, policy, engine, bound, watch),
    }
}

/// An engine's routes, made fit for the policy and measured.
pub(crate) struct Candidate {
    pub(crate) engine: EngineName,
    pub(crate) routing: Routing,
    pub(crate) lanes: Lanes,
    pub(crate) measure: Measure,
}

impl Candidate {
    /// Routes on their lanes, broadcasts included as far as trees can be found that carry them, and measured.
    pub(crate) fn placed(
        topology: &Topology,
        policy: &Policy,
        engine: EngineName,
        routing: Routing,
        lanes: Lanes,
    ) -> Self {
        let measure = Measure::of(topology, &policy.traffic, &routing);
        let covered = broadcast::cover(topology, policy, &routing, &lanes);
        let (routing, lanes) = covered.unwrap_or((routing, lanes));
        Self { engine, routing, lanes, measure }
    }

    /// Whether the bound proves that no routing loads the most loaded channel less.
    pub(crate) fn is_perfect(&self, topology: &Topology, policy: &Policy, bound: f64) -> bool {
        self.measure.time_max <= attainable(topology, &policy.traffic, bound)
    }
}

/// Routes within given orders of channels, `rank[lane][channel]`, made fit for the policy and measured.
///
/// # Errors
/// Why there are none.
pub(crate) fn within(
    topology: &Topology,
    policy: &Policy,
    rank: &[Vec<u32>],
    bound: f64,
    watch: &mut dyn Watch,
) -> Result<Candidate, PlanError> {
    let engine = EngineName::Balanced;
    fit(topology, policy, engine, engine::route_within(topology, policy, rank, bound, watch))
}

/// Runs one engine, judges its routes by the policy, and tells the watch what came of it.
fn candidate(
    topology: &Topology,
    policy: &Policy,
    engine: EngineName,
    bound: f64,
    watch: &mut dyn Watch,
) -> Result<Candidate, PlanError> {
    let found = judged(topology, policy, engine, bound, watch);
    let outcome = match &found {
        Ok(found) => Ok(Achieved {
            load: found.measure.time_max,
            hops: found.measure.hops_total,
            trees: found.routing.trees.len(),
        }),
        Err(PlanError::Unsuitable { reason, .. }) => Err(reason.to_string()),
        Err(refused) => Err(refused.to_string()),
    };
    watch.happened(&SearchEvent::Engine { engine, outcome });
    found
}

/// Runs one engine and judges its routes by the policy.
fn judged(
    topology: &Topology,
    policy: &Policy,
    engine: EngineName,
    bound: f64,
    watch: &mut dyn Watch,
) -> Result<Candidate, PlanError> {
    fit(topology, policy, engine, engine::route(topology, policy, engine, bound, watch)?)
}

/// The first of an engine's routes that the policy allows; of each, those are tried first that all ports of a failover bond can
/// have.
fn fit(
    topology: &Topology,
    policy: &Policy,
    engine: EngineName,
    routes: impl IntoIterator<Item = Routing>,
) -> Result<Candidate, PlanError> {
    let reason = Unsuitable::new("it offers no routes");
    let mut refused = PlanError::Unsuitable { engine, reason, way_out: String::new() };
    let confined = Confined::by(topology, policy);
    let ways = routes.into_iter().flat_map(|routing| {
        let routing = fewer_trees(topology, policy, engine, merge::merge(topology, routing));
        let routing = routing.tagged(topology, policy.tagging);
        let alike = routing.with_bonds_alike(topology, policy.tagging);
        alike.into_iter().chain([routing]).map(|routing| merge::merge(topology, routing))
    });
    for routing in ways {
        if !confined.holds(topology, &routing) {
            let error = strays(topology, policy, engine, &routing);
            refused = match refused {
                PlanError::TooManyHops { .. } => refused.nearer(error),
                _ => error,
            };
            continue;
        }
        let finished = number::check_limits(topology, policy, engine, &routing)
            .and_then(|()| lanes::place(topology, policy, engine, &routing))
            .map(|lanes| Candidate::placed(topology, policy, engine, routing, lanes));
        match finished {
            Ok(candidate) => return Ok(candidate),
            Err(error) => refused = error,
        }
    }
    Err(refused)
}

/// Why routes are not those that a request confines them to.
fn strays(topology: &Topology, policy: &Policy, engine: EngineName, routing: &Routing) -> PlanError {
    let (hops, way_out) = (hop_limit::longest(topology, routing), String::new());
    match policy.hops_max {
        Some(limit) if hops > limit => PlanError::TooManyHops { engine, limit, hops, way_out },
        _ => PlanError::LeavesPlanes { engine, way_out },
    }
}

/// Gives up trees where there are more than VLANs; an engine asked for by name keeps its own, and says what it needs. So
/// does any other where `balanced` shares trees: it starts from the others' as well, and is no worse for a larger cap, which
/// what others have left may be.
fn fewer_trees(topology: &Topology, policy: &Policy, engine: EngineName, routing: Routing) -> Routing {
    let capacity = number::capacity(topology, policy);
    let gives_up = match policy.engine {
        EngineName::Balanced => true,
        EngineName::Auto => engine == EngineName::Balanced || !engine::shares_trees(topology, policy),
        _ => false,
    };
    if !gives_up || routing.trees.len() <= capacity {
        return routing;
    }
    let rules = match policy.flow_control {
        FlowControl::None => Rules::Any,
        FlowControl::Pause | FlowControl::Pfc(_) => Rules::Increasing,
    };
    let limits = (rules, &Confined::by(topology, policy));
    cap::fit(topology, &policy.traffic, &routing, capacity, limits).unwrap_or(routing)
}

/// Runs every engine that applies and keeps the best by measured quality: the lowest peak of channel use, then the
/// fewest hops, then the fewest VLANs.
fn best_candidate(
    topology: &Topology,
    policy: &Policy,
    bound: f64,
    watch: &mut dyn Watch,
) -> Result<Candidate, PlanError> {
    let mut best: Option<Candidate> = None;
    let mut refused: Option<PlanError> = None;
    for engine in [EngineName::Dor, EngineName::Clos, EngineName::Updown, EngineName::Tree, EngineName::Balanced] {
        if engine == EngineName::Balanced && best.as_ref().is_some_and(|best| best.is_perfect(topology, policy, bound))
        {
            break;
        }
        let near = best.as_ref().is_some_and(|best| best.measure.time_max <= NEAR * bound);
        // Whether a small cap lets others come near must not decide on how long the search takes.
        let found = if near && policy.time_limit.is_none() && !engine::shares_trees(topology, policy) {
            let mut watch = Shortened::new(watch, StepLimit::new(NEAR_STEPS));
            candidate(topology, policy, engine, bound, &mut watch)
        } else {
            candidate(topology, policy, engine, bound, watch)
        };
        match found {
            Ok(found) => {
                let quality = |c: &Candidate| (c.measure.time_max, c.measure.hops_total, c.routing.trees.len());
                if best.as_ref().is_none_or(|best| quality(&found) < quality(best)) {
                    best = Some(found);
                }
            }
            Err(PlanError::Unsuitable { .. }) => {}
            Err(error) => {
                refused = Some(match refused {
                    Some(other) => other.nearer(error),
                    None => error,
                });
            }
        }
    }
    best.ok_or_else(|| refused.unwrap_or(PlanError::NoHosts))
}

/// The least time of the most loaded channel that a bound leaves possible. Where every pair sends one unit and all links have
/// one rate, it is a whole number.
pub(crate) fn attainable(topology: &Topology, traffic: &Traffic, bound: f64) -> f64 {
    let same_rates = topology.links().iter().all(|link| link.rate_bps == topology.rate_max_bps());
    if same_rates && *traffic == Traffic::AllToAll { (bound - 1e-6).ceil() } else { bound * (1.0 + 1e-9) }
}
