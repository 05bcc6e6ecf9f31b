//! What the controller decides by, without clock, switches or store.

pub mod approve;
pub mod deliveries;
pub mod drift;
pub mod events;
pub mod failing_paths;
pub mod heartbeats;
pub mod hysteresis;
pub mod ladder;
pub mod parts;
pub mod propose;
pub mod retention;
pub mod standing;
pub mod traffic;
