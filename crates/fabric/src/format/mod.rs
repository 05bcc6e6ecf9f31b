//! Text formats: the only modules that know `serde`.

pub mod model;
pub mod plan;
pub mod report;
