//! Routing engines, chosen by name, one file each.

mod clos;
mod dor;
mod tree;
mod updown;

use fabric::{EngineName, Policy, Topology};

use crate::{PlanError, routing::Routing};

/// The routes of an engine, best first: later ones give up some quality to satisfy more policies.
///
/// # Errors
/// [`PlanError::Unsuitable`] if the topology does not have the structure that the engine needs.
pub(crate) fn route(topology: &Topology, policy: &Policy, engine: EngineName) -> Result<Vec<Routing>, PlanError> {
    let routes = match engine {
        EngineName::Tree => Ok(vec![tree::route(topology)]),
        EngineName::Dor => dor::route(topology, policy),
        EngineName::Clos => clos::route(topology, policy),
        EngineName::Updown | EngineName::Auto => Ok(vec![updown::route(topology, policy)]),
    };
    routes.map_err(|reason| PlanError::Unsuitable { engine, reason })
}
