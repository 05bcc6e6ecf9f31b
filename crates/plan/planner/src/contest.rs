//! The contest of a request's own routes with those of its rivals.
//!
//! ```text
//!   pair, none ──▶ 12.0        own routes
//!   pair, pfc=8 ─▶ 11.0        allowed as well, and better: these are taken
//! ```
//! A rival is searched exactly as if it had been requested.

use fabric::{Policy, Topology};

use crate::{
    PlanError, SearchEvent, SearchPart, StepLimit, Watch,
    candidate::{Candidate, of_request},
    lanes, number,
    rivals::rivals,
    watch::Shortened,
};

/// By how much better a rival must be, against rounding.
const NOTHING: f64 = 1e-9;

/// The best of the request's own routes and those of its rivals.
///
/// # Errors
/// As [`of_request`] for the request itself, if no rival has routes either.
pub(crate) fn contest(
    topology: &Topology,
    policy: &Policy,
    bound: f64,
    watch: &mut dyn Watch,
) -> Result<Candidate, PlanError> {
    let rivals = rivals(topology, policy);
    if rivals.is_empty() || watch.left_out() == Some(SearchPart::Rivals) {
        watch.happened(&SearchEvent::Request { policy: Box::new(policy.clone()), is_rival: false });
        return of_request(topology, policy, bound, watch);
    }
    let run = |request: &Policy, watch: &mut dyn Watch| {
        let is_rival = request != policy;
        watch.happened(&SearchEvent::Request { policy: Box::new(request.clone()), is_rival });
        let policy = request;
        let steps = StepLimit::for_one(topology, policy);
        of_request(topology, policy, bound, &mut Shortened::new(watch, steps))
    };
    let mut best = run(policy, watch);
    for rival in &rivals {
        if watch.steps_left() == 0 || best.as_ref().is_ok_and(|best| best.is_perfect(topology, policy, bound)) {
            break;
        }
        let Some(found) = run(rival, watch).ok().and_then(|found| allowed(topology, policy, found)) else { continue };
        let is_better = |best: &Candidate| found.measure.time_max < best.measure.time_max * (1.0 - NOTHING);
        if best.as_ref().map_or(true, is_better) {
            best = Ok(found);
        }
    }
    best
}

/// A rival's routes as routes for the policy, if it allows them.
fn allowed(topology: &Topology, policy: &Policy, rival: Candidate) -> Option<Candidate> {
    let Candidate { engine, routing, .. } = rival;
    let routing = routing.for_pairs(policy.tagging, topology);
    number::check_limits(topology, policy, engine, &routing).ok()?;
    let lanes = lanes::place(topology, policy, engine, &routing).ok()?;
    Some(Candidate::placed(topology, policy, engine, routing, lanes))
}
