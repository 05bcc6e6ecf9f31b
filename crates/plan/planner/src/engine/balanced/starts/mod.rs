//! Starts: where searches begin, a file each.
//!
//! Each file opens with what its start exploits, where it wins and what it costs; the figures are those of
//! `docs/benchmarks/ablation.md`: load without the start over load with it. A start makes routes and nothing else: what competes,
//! and for how long, is decided in `contest.rs` (a tree for each source) and `pack/sequence.rs` (shared trees), by the numbers in
//! `schedule.rs`.
//!
//! ```text
//!   a tree for each source      structured · updown · annealed · images             (seed: engines' routes as a state)
//!   shared trees                split · spread · clusters · ordered_clusters · remainder
//! ```

pub(super) mod annealed;
pub(super) mod clusters;
pub(super) mod images;
pub(super) mod ordered_clusters;
pub(super) mod remainder;
pub(super) mod seed;
pub(super) mod split;
pub(super) mod spread;
pub(super) mod structured;
pub(super) mod updown;
