//! Text formats: the only modules that know `serde`.

pub mod model;
pub mod diagnostic;
pub mod native;

mod json;
mod node;
mod yaml;
