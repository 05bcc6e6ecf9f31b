//! Text formats: the only modules that know `serde`.

pub mod containerlab;
pub mod counters;
pub mod diagnostic;
pub mod dot;
pub mod exchange;
pub mod graphml;
pub mod ibnetdiscover;
pub mod lldp;
pub mod model;
pub mod native;
pub mod netbox;
pub mod plan;
pub mod report;
pub mod table;
pub mod traffic;

mod bonding;
mod cabling;
mod csv;
mod import_options;
mod json;
mod node;
mod yaml;
