//! Sweeps: combinations of topologies, plans and traffic, each a row.
//!
//! ```text
//!   description ─▶ points ─┬─ shard 1 ─▶ DIR/rows/<digest>.csv ─┐
//!                          └─ shard 2 ─▶ DIR/rows/<digest>.csv ─┴─ merge ─▶ table ─▶ chart
//! ```
//!
//! A row is a function of its point alone, and its file is named by a digest of the point. So it does not matter who
//! makes it, when, or how often it was tried; a file that is there is a row that is done.

mod chart;
mod csv;
mod description;
mod folder;
mod merge;
mod point;
mod rows;
mod run;
mod shard;

pub use self::{
    chart::{ChartRequest, Filter, chart},
    csv::fields,
    description::Sweep,
    merge::{Merged, merge},
    run::{Event, Ran, Request, run},
    shard::Shard,
};
