//! Pictures: charts and fabrics as SVG, and as PNG made of that.
//!
//! ```text
//!   Chart ──┐
//!   Fabric ─┴─▶ Picture: lines, boxes, text ──▶ SVG ──▶ PNG, with a font that is part of the program
//! ```
//! Nothing here does I/O: pictures are bytes.
#![forbid(unsafe_code)]

mod chart;
mod heat;
mod layout;
mod picture;
mod png;

pub use chart::{Chart, Kind, Series};
pub use heat::{Heat, draw_fabric};
pub use picture::Picture;
pub use png::PngError;
