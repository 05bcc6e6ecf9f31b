//! The simulator: what a plan's switches do with traffic, frame by frame or as shared rates.
//!
//! ```text
//!   plan.devices ──▶ tables ──┬─▶ packet   every frame: queues, PAUSE, TCP, deadlock
//!   workload ─────────────────┴─▶ flow     no frames: max-min fair rates, to a million flows
//! ```
//!
//! The device state that switches hold is what is executed, never the plan's trees or its certificate, so a run is
//! another judge of the plan. Runs are functions of plan, workload and configuration alone: the same input and seed give
//! the same numbers, however many of them run side by side.
#![forbid(unsafe_code)]

pub mod flow;
pub mod hand;
pub mod packet;
pub mod pattern;
pub mod pcap;
mod tables;
mod wheel;
pub mod workload;
