//! The API over HTTP: what the daemon knows, as JSON, and what it can be asked for.
//!
//! Handlers say who may ask, hand the request to the manager on a thread that may block, and word what it refuses.

pub mod callers;
mod heartbeats;
pub mod metrics;
mod page;
pub mod routes;
pub mod serve;
pub mod shared;
pub mod standby;
mod switches;
pub mod tls;
