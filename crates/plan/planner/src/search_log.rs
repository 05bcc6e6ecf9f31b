//! What a search does, as events: what it was asked for, what each engine and each start brought, and why it ended.
//!
//! ```text
//!   Request ─▶ Engine … ─▶ Start … ─▶ Round … ─▶ Ended ─▶ Engine(balanced) ─▶ Request (a rival's) …
//! ```
//! A [`Watch`](crate::Watch) is told of them in the order in which they happen. Plans do not depend on who listens.

use std::fmt;

use fabric::{EngineName, Policy};

/// One step of a search. Loads are times of the most loaded link: ordered pairs of hosts, or demand of the matrix, as if on
/// the fastest link.
#[derive(Clone, Debug, PartialEq)]
pub enum SearchEvent {
    /// No routing at all can have a lower load than this.
    Bound(f64),
    /// Routes for this request are searched: the caller's own, or a stricter one whose routes it allows.
    Request {
        /// The request.
        policy: Box<Policy>,
        /// Whether it is not the caller's own.
        is_rival: bool,
    },
    /// An engine's routes, or why it has none.
    Engine {
        /// The engine.
        engine: EngineName,
        /// What its routes achieve, or why there are none.
        outcome: Result<Achieved, String>,
    },
    /// Engine `balanced` goes on from routes of this kind.
    Start {
        /// How they were made.
        start: Start,
        /// Their load.
        load: f64,
    },
    /// A round of engine `balanced` is over.
    Round {
        /// Rounds before it.
        round: usize,
        /// What is searched on from after it, best first, with the best load of each.
        runners: Vec<(Start, f64)>,
    },
    /// The best routes that engine `balanced` has with this many trees that senders share: for powers of two, and for the last.
    SharedTrees {
        /// Most trees of these routes.
        trees: usize,
        /// What the routes come from.
        start: SharedStart,
        /// Their load.
        load: f64,
    },
    /// Engine `balanced` ends its search.
    Ended(Ending),
    /// Routes of the previous plan were mended, with this load.
    Mended(f64),
    /// The previous plan answers this very request.
    Unchanged,
}

/// What routes achieve.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Achieved {
    /// The time of the most loaded link.
    pub load: f64,
    /// Links between switches, summed over ordered pairs of hosts.
    pub hops: u64,
    /// VLANs.
    pub trees: usize,
}

/// Where engine `balanced` starts from, with a tree for each source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// Dimension order on a lattice.
    DimensionOrder,
    /// Dimension order with 4-rings taken as two dimensions of two.
    DimensionOrderOnSquares,
    /// The levels of a Clos network.
    Clos,
    /// Up*/down* routes.
    Updown,
    /// Trees grown one after the other, within an up*/down* channel order where there is flow control.
    Grown,
    /// Trees grown one after the other, within the channel order of the previous plan, which stays.
    KeptOrder,
    /// Trees of a torus that are images of each other.
    Images,
    /// Trees within an annealed channel order.
    Annealed,
    /// Trees within the best channel order so far, reheated and annealed again.
    Reheated,
}

/// Where routes of shared trees come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SharedStart {
    /// One tree.
    Single,
    /// The tree of the most loaded link split, and all moved.
    Split,
    /// Trees made anew for this number: spread over the network, for clusters, or what is left of a tree for each source.
    Afresh,
    /// A channel order annealed for clusters of senders.
    Ordered,
}

/// Why a search ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// No routing can do better.
    Optimal,
    /// Its steps or its time were spent, or it was interrupted.
    Spent,
}

impl fmt::Display for Start {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::DimensionOrder => "dimension order",
            Self::DimensionOrderOnSquares => "dimension order, 4-rings as squares",
            Self::Clos => "Clos levels",
            Self::Updown => "up*/down*",
            Self::Grown => "trees grown one by one",
            Self::KeptOrder => "channel order of the previous plan",
            Self::Images => "trees as images of a few",
            Self::Annealed => "annealed channel order",
            Self::Reheated => "reheated channel order",
        })
    }
}

impl fmt::Display for SharedStart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Single => "one tree for all",
            Self::Split => "tree of the most loaded link split",
            Self::Afresh => "trees made anew",
            Self::Ordered => "channel order annealed for clusters",
        })
    }
}
