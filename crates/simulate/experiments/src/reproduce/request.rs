//! What to reproduce, and how.

use std::path::Path;

use super::Figure;

/// A figure, and how to reproduce it.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// The figure.
    pub figure: Figure,
    /// Where its traffic runs.
    pub testbed: Testbed<'a>,
    /// How NAS benchmarks are replayed, in the figures that have them.
    pub replay: Replay<'a>,
}

/// Where a figure's traffic runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Testbed<'a> {
    /// In simulated time.
    Simulator,
    /// On network namespaces of this machine; the caller has the right to build labs ([`lab::rootless::acquire`]).
    Lab(LabSettings<'a>),
}

/// How labs are built, one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LabSettings<'a> {
    /// Their name, by which [`take_down`](super::take_down) finds what is under way.
    pub name: &'a str,
    /// Rate of a host's cable, in bits a second.
    pub rate_bps: u64,
}

/// How traces of NAS benchmarks are replayed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Replay<'a> {
    /// A folder with `cg.B`, `mg.B` and `lu.B`, each a folder of SimGrid's complete traces, a file a rank. Without it the
    /// folded traces that come with this crate are replayed.
    pub traces: Option<&'a Path>,
    /// Nanoseconds that a flop of the traces takes.
    pub ns_per_flop: f64,
}
