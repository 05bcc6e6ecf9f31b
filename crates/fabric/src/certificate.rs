//! What proves a plan: that no frames wait for each other for ever, and that no routing loads channels less.

/// A numbering of channels, one a lane, that increases along every route of that lane. Such a numbering exists if and
/// only if the channel dependency graph has no cycle, and then no deadlock is possible (Dally and Seitz, 1987).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Certificate {
    /// `rank[lane][channel]`.
    pub rank: Vec<Vec<u32>>,
}

/// Channel lengths that certify a lower bound on how long the most loaded channel takes.
///
/// For any lengths `l ≥ 0` that are not all zero, every routing has a channel that takes at least
/// `Σ demand(s, d) · distance(s, d) / Σ l(c) / slowness(c)`, the sum over ordered pairs of hosts and the distances measured
/// in `l`: demand times length is what the routes must cover, and a channel that is `slowness` times slower than the
/// fastest holds so much less of it in the same time.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Bound {
    /// `lengths[channel]`.
    pub lengths: Vec<u32>,
}
