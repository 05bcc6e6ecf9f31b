//! Experiments on simulated fabrics, as functions: sweeps over topologies, plans and traffic.
//!
//! Requests are typed and so are results; the caller words them for people. Nothing here prints, handles signals or keeps
//! state in the process: progress comes as events, and a caller that wants to stop says so when it is asked.
#![forbid(unsafe_code)]

mod error;
pub mod sweep;

pub use error::Error;
