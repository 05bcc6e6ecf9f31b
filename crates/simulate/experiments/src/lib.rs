//! Experiments on simulated fabrics and in the lab, as functions: sweeps over topologies, plans and traffic, and the papers'
//! tables and figures.
//!
//! Requests are typed and so are results; the caller words them for people. Nothing here prints, handles signals or
//! keeps state in the process: progress comes as events. A caller stops a sweep by its answer when it is asked whether
//! to go on, and a reproduction in the lab by taking the lab down.
#![forbid(unsafe_code)]

mod error;
pub mod reproduce;
pub mod sweep;

pub use error::{Error, MpiError, SimulationError, Unavailable};
