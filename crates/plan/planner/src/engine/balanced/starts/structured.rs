//! Start: the routes of a fabric with structure.
//!
//! Exploits: dimension order on lattices and levels on Clos networks, as the engines `dor` and `clos` know them. A 4-ring is also
//! two paths of two, and with that reading a torus of 4-rings is a hypercube, on which dimension order needs no cuts (e-cube:
//! Sullivan and Bashkow, 1977).
//! Wins: torus 4x4 with flow control, 1.12; torus 5x5, 1.06 to 1.07; fat trees and meshes, where no routing is better and the
//! search is over at once. Elsewhere it does not apply.
//! Costs: milliseconds; the first valid plan on these fabrics.
//!
//! ```text
//!   [a]──x──[b]        a to d: first along x, then along y
//!    y       y
//!   [c]──x──[d]
//! ```

use fabric::{Assignment, Policy, Topology};

use crate::{
    Start,
    candidate::attainable,
    engine::{clos, dor},
    measure::Measure,
    merge::merge,
    routing::Routing,
};

/// The routes of the engines that apply.
pub(in crate::engine::balanced) fn routings(topology: &Topology, policy: &Policy) -> Vec<(Start, Routing)> {
    let found = [
        (Start::DimensionOrder, dor::route(topology, policy).unwrap_or_default()),
        (Start::DimensionOrderOnSquares, dor::route_on_squares(topology, policy).unwrap_or_default()),
        (Start::Clos, clos::route(topology, policy).unwrap_or_default()),
    ];
    let each = |(start, routings): (Start, Vec<Routing>)| routings.into_iter().map(move |routing| (start, routing));
    found.into_iter().flat_map(each).collect()
}

/// Routes by pair of the engines that apply, if there are some that take no more than so many trees and that no routing can
/// be better than.
pub(in crate::engine::balanced) fn perfect_by_pair(
    topology: &Topology,
    policy: &Policy,
    trees: usize,
    bound: f64,
) -> Option<Routing> {
    let by_pair = |routing: &Routing| matches!(routing.assignment, Assignment::Pair { .. });
    let perfect = |routing: &Routing| {
        let time = Measure::of(topology, &policy.traffic, routing).time_max;
        time <= attainable(topology, &policy.traffic, bound)
    };
    let routings = dor::route(topology, policy).unwrap_or_default().into_iter().filter(by_pair);
    let mut routings = routings.map(|routing| merge(topology, routing));
    routings.find(|routing| routing.trees.len() <= trees && perfect(routing))
}
