//! The simulator: what a plan's switches do with traffic, frame by frame or as shared rates.
//!
//! ```text
//!   plan.devices ──▶ tables ──┬─▶ packet   every frame: queues, PAUSE, TCP, deadlock
//!   workload ─────────────────┴─▶ flow     no frames: max-min fair rates, to a million flows
//! ```
//!
//! A workload is flows by a pattern, or a [`job`]: a program of sends, receives and computations on the plan's hosts, which
//! both levels carry out ([`packet::Simulation::of_job`], [`flow_job::run_job`]).
//!
//! The device state that switches hold is what is executed, never the plan's trees or its certificate, so a run is
//! another judge of the plan. Runs are functions of plan, workload and configuration alone: the same input and seed give
//! the same numbers, however many of them run side by side.
#![forbid(unsafe_code)]

pub mod fault;
pub mod flow;
pub mod flow_job;
pub mod hand;
pub mod job;
mod lag;
mod live;
pub mod packet;
pub mod pattern;
pub mod pcap;
pub mod program;
pub mod random;
pub mod spread;
mod tables;
mod wheel;
pub mod workload;
