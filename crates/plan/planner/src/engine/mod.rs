//! Routing engines, chosen by name, one file each.

mod balanced;
mod clos;
mod dor;
mod ring_lanes;
mod tree;
mod updown;

pub(crate) use self::{
    balanced::{Grower, route_within, shares_trees},
    tree::route as spanning_tree,
};

use fabric::{EngineName, Policy, Topology};

use crate::{PlanError, Watch, routing::Routing};

/// The routes of an engine, best first: later ones give up some quality to satisfy more policies.
///
/// # Errors
/// [`PlanError::Unsuitable`] if the topology does not have the structure that the engine needs.
pub(crate) fn route(
    topology: &Topology,
    policy: &Policy,
    engine: EngineName,
    bound: f64,
    watch: &mut dyn Watch,
) -> Result<Vec<Routing>, PlanError> {
    let routes = match engine {
        EngineName::Tree => Ok(vec![tree::route(topology)]),
        EngineName::Dor => dor::route(topology, policy),
        EngineName::Clos => clos::route(topology, policy),
        EngineName::Balanced => Ok(balanced::route(topology, policy, bound, watch)),
        EngineName::Updown | EngineName::Auto => Ok(vec![updown::route(topology, policy)]),
    };
    routes.map_err(|reason| PlanError::Unsuitable { engine, reason, way_out: String::new() })
}
