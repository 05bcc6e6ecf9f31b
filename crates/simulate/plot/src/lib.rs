//! Pictures: charts and fabrics as SVG, and as PNG by the same shapes.
//!
//! ```text
//!   Chart ──┐
//!   Fabric ─┴─▶ Picture: lines, boxes, text ──┬─▶ SVG, for people and papers
//!                                             └─▶ PNG, its letters drawn as strokes: no font is needed
//! ```
//! Nothing here does I/O: pictures are bytes.
#![forbid(unsafe_code)]

mod chart;
mod heat;
mod layout;
mod letters;
mod picture;

pub use chart::{Chart, Kind, Series};
pub use heat::{Heat, draw_fabric};
pub use picture::{Picture, PngError};
