//! The schedule: every number that governs the search, in one table.
//!
//! A number is here if another value would still give valid plans. Bounds of tables, sentinels and identities stay where they
//! are used. *Sharpness* is the exponent of the price of a channel at the load aimed at, without unit: prices of sharpness 3
//! shorten paths, prices of sharpness 100 see little but the most loaded channels. *Visits* count channels looked at, the unit
//! of work; 2¹⁸ of them are a step (`work.rs`).
//!
//! ```text
//!   SLICES, PORTFOLIO     which starts go on, and for how long      ─┐
//!   ANNEALING             channel orders from nothing               ─┤  a tree for each source
//!   REATTACHING, BENDING  moves of trees, and of orders             ─┘
//!   SHARED, PAIRS         sweeps over shared trees                  ─┐
//!   TREE_COUNTS           which numbers of trees get what           ─┤  shared trees
//!   CLUSTERS, SHAPING     trees for neighbouring senders            ─┘
//!   PRICES, GROWING       what all of them have in common
//! ```

/// What makes a load count as far above what it is compared with, the least possible or the best so far: so many times as much.
pub(super) const FAR: f64 = 2.0;

/// How long each start is searched on from.
pub(super) struct Slices {
    /// Visits of the first slice, for each channel and source.
    pub(super) visits_each: u64,
    /// Visits of the first slice at least.
    pub(super) visits_min: u64,
    /// Rounds after which slices are twice as long.
    pub(super) doubling_rounds: u32,
    /// A slice beside an order that was annealed in a hurry is shorter by this power of two.
    pub(super) hurried_shift: u32,
    /// Slices of the search for trees that are images of a few.
    pub(super) images: u64,
    /// Work so far for each unit of work spent on annealing, from which on more annealing is due.
    pub(super) annealing_rarity: u64,
}

pub(super) const SLICES: Slices = Slices {
    visits_each: 60,
    visits_min: 4_000_000,
    doubling_rounds: 2,
    hurried_shift: 3,
    images: 60,
    annealing_rarity: 4,
};

/// Which starts go on. Ratios are of loads of the most loaded channel.
pub(super) struct Portfolio {
    /// Most starts that go on to the next round.
    pub(super) runners_max: usize,
    /// Starts with this many times the best one's load are dropped.
    pub(super) lead: f64,
    /// Switches of a torus from which on trees that are images of a few compete.
    pub(super) images_switches_min: usize,
    /// Most channels times sources for which up*/down* routes are searched on from before any order is annealed.
    pub(super) updown_first_max: usize,
    /// A start with more than one tree a switch competes if its load is less than this share of the best one's.
    pub(super) more_trees: f64,
    /// Routes with fewer trees win with up to this many times the least load.
    pub(super) fewer_trees: f64,
}

pub(super) const PORTFOLIO: Portfolio = Portfolio {
    runners_max: 3,
    lead: 1.5,
    images_switches_min: 600,
    updown_first_max: 1 << 20,
    more_trees: 0.6,
    fewer_trees: 1.01,
};

/// How one channel order is annealed (`anneal.rs`).
#[derive(Clone, Copy)]
pub(super) struct AnnealingSchedule {
    /// Rounds in which the penalty rises.
    pub(super) rounds: usize,
    /// Rounds more, until nothing breaks the order.
    pub(super) extra_max: usize,
    /// Share of the rounds that are taken as done already, so that an order that is good is reheated only a little.
    pub(super) done: f64,
    /// Penalty for a fall at first, in average hops; at last it is [`AnnealingTerms::penalty_last`].
    pub(super) penalty: f64,
    /// Share of the wanted turns that lasts from round to round.
    pub(super) memory: f32,
    /// How much more a fall counts for the order than other turns, at last. Too much mends falls at any price.
    pub(super) urgency: f32,
    /// Sweeps: one more than the falls that a path may have.
    pub(super) sweeps: usize,
    /// Most batches of a lane that are swept in a round, at first and once the penalty is high; the next round takes others.
    pub(super) batches_max: [usize; 2],
}

/// Orders for short paths; callers set the rounds.
const SHORT_PATHS: AnnealingSchedule = AnnealingSchedule {
    rounds: 200,
    extra_max: 100,
    done: 0.0,
    penalty: 0.2,
    memory: 0.9,
    urgency: 100.0,
    sweeps: 2,
    batches_max: [32, usize::MAX],
};

/// Channel orders from nothing.
pub(super) struct AnnealingTerms {
    /// The first order where nothing else is good: found soon.
    pub(super) hurried: AnnealingSchedule,
    /// The order after it.
    pub(super) second: AnnealingSchedule,
    /// Later orders, in turn.
    pub(super) later: [AnnealingSchedule; 2],
    /// Orders for long paths: these need more falls at first, and time to lose them.
    pub(super) long_paths: AnnealingSchedule,
    /// Orders for clusters: few origins take few rounds.
    pub(super) clusters: AnnealingSchedule,
    /// Average hops from which on paths count as long.
    pub(super) long_hops: f64,
    /// Most orders annealed at a time, of which only that with the best trees joins.
    pub(super) tries_max: u64,
    /// Share of the rounds that count as done for the best order so far, which is reheated.
    pub(super) done_best: f64,
    /// The same for an order that is merely valid.
    pub(super) done_valid: f64,
    /// Most sources for which a random order becomes valid soon enough.
    pub(super) random_sources_max: usize,
    /// What the penalty rises to, in average hops.
    pub(super) penalty_last: f64,
    /// From this share of the rounds on the penalty counts as high.
    pub(super) detailed: f64,
    /// Sharpness of prices at first and at last.
    pub(super) sharpness: [f64; 2],
    /// In extra rounds: how much faster urgency rises each round, as an exponent.
    pub(super) extra_urgency: f64,
    /// In extra rounds: share of the wanted turns that lasts, and share of the used turns that are added.
    pub(super) extra_memory: f32,
    /// See `extra_memory`.
    pub(super) extra_fresh: f32,
    /// Sweeps over all channels in which an order is sifted after each round.
    pub(super) siftings: usize,
    /// Least share of a batch's averaged load that a new round contributes.
    pub(super) averaging_min: f64,
    /// How often trees within a new order are rebuilt before orders are compared.
    pub(super) rebuilds: usize,
}

pub(super) const ANNEALING: AnnealingTerms = AnnealingTerms {
    hurried: AnnealingSchedule { rounds: 30, extra_max: 60, batches_max: [8, 32], ..SHORT_PATHS },
    second: SHORT_PATHS,
    later: [
        AnnealingSchedule { rounds: 400, extra_max: 200, memory: 0.95, ..SHORT_PATHS },
        AnnealingSchedule { rounds: 400, extra_max: 200, ..SHORT_PATHS },
    ],
    long_paths: AnnealingSchedule {
        rounds: 250,
        extra_max: 375,
        penalty: 0.05,
        memory: 0.5,
        urgency: 300.0,
        sweeps: 3,
        ..SHORT_PATHS
    },
    clusters: AnnealingSchedule { rounds: 120, extra_max: 120, ..SHORT_PATHS },
    long_hops: 5.0,
    tries_max: 4,
    done_best: 0.6,
    done_valid: 0.3,
    random_sources_max: 1024,
    penalty_last: 20.0,
    detailed: 0.8,
    sharpness: [6.0, 26.0],
    extra_urgency: 0.1,
    extra_memory: 0.97,
    extra_fresh: 0.3,
    siftings: 3,
    averaging_min: 0.15,
    rebuilds: 2,
};

/// How long and how sharply subtrees are reattached.
#[derive(Clone, Copy)]
pub(super) struct Effort {
    /// How much the most loaded channels count more than others.
    pub(super) sharpness: f64,
    /// The load aimed at, as a share of the most loaded channel's.
    pub(super) ambition: f64,
    /// Most sweeps over all trees.
    pub(super) sweeps: usize,
}

impl Effort {
    const fn once(sharpness: f64) -> Self {
        Self { sharpness, ambition: 0.98, sweeps: 1 }
    }
}

/// Moves of subtrees, with a tree for each source.
pub(super) struct Reattaching {
    /// The sweeps of a cycle, from soft prices to sharp ones.
    pub(super) cycle: [Effort; 3],
    /// How a cycle is finished that may be the best.
    pub(super) finest: Effort,
    /// Finished so is a cycle whose 40-norm is below this many times the best one's.
    pub(super) finest_norm: f64,
}

pub(super) const REATTACHING: Reattaching = Reattaching {
    cycle: [Effort::once(20.0), Effort::once(50.0), Effort::once(100.0)],
    finest: Effort { sharpness: 1000.0, ambition: 0.99, sweeps: 2 },
    finest_norm: 1.002,
};

/// Trees and order in alternation (`alternate.rs`). A pair of numbers is a range, from which each cycle takes a random value
/// (geometrically).
pub(super) struct Bending {
    /// How much worse, by the 40-norm, a kept cycle may end than it began.
    pub(super) tolerance: f64,
    /// One in so many rejected cycles goes on from the best state instead of the last that was kept.
    pub(super) restart: usize,
    /// Most sources whose wishes are asked in a cycle.
    pub(super) asked_max: usize,
    /// Share of the wanted turns that lasts to the next cycle.
    pub(super) memory: f32,
    /// Most that a pair's gain counts, in average hops.
    pub(super) gain_max: f64,
    /// Sharpness of the prices by which turns are wanted.
    pub(super) sharpness: [f64; 2],
    /// What a turn against the order costs then, in average hops.
    pub(super) penalty: [f64; 2],
    /// How much more turns in use count than wanted ones.
    pub(super) steadiness: [f64; 2],
    /// Share of the channels sifted, relative to what rollbacks leave.
    pub(super) share: [f64; 2],
    /// From this share of the channels on, a cycle sifts once or twice instead of once.
    pub(super) sifted_twice_share: f64,
    /// What a rollback leaves of the share of channels sifted.
    pub(super) rollback: f64,
    /// What a cycle without one makes of it.
    pub(super) advance: f64,
    /// Share of the cycles in which all trees are rebuilt.
    pub(super) rebuilds: f64,
    /// Sharpness of rebuilding: the least, and how much more at most.
    pub(super) rebuilding: [f64; 2],
}

pub(super) const BENDING: Bending = Bending {
    tolerance: 0.01,
    restart: 10,
    asked_max: 128,
    memory: 0.5,
    gain_max: 20.0,
    sharpness: [8.0, 40.0],
    penalty: [0.2, 4.0],
    steadiness: [1.0, 30.0],
    share: [1.0, 1.0 / 30.0],
    sifted_twice_share: 0.9,
    rollback: 0.75,
    advance: 1.15,
    rebuilds: 0.3,
    rebuilding: [10.0, 30.0],
};

/// What the moves of all demands have in common.
pub(super) struct PriceTerms {
    /// What a pair costs on every channel beside its price, where each source has a tree: settles ties for the shorter path.
    pub(super) hop: f64,
    /// The same in shared trees, in shares of the price at the load aimed at: there hops must count, since senders gather.
    pub(super) hop_shared: f64,
    /// Channels that weigh less than this share of one at the load aimed at are left alone.
    pub(super) negligible: f64,
    /// The floor under prices of whole paths, in shares of the price of the most loaded channel.
    pub(super) floor: f64,
    /// The same while the first trees of all are grown, which nothing has balanced yet.
    pub(super) floor_first: f64,
    /// The same for clusters.
    pub(super) floor_clusters: f64,
}

pub(super) const PRICES: PriceTerms =
    PriceTerms { hop: 1e-7, hop_shared: 1e-4, negligible: 1e-3, floor: 0.02, floor_first: 0.07, floor_clusters: 0.05 };

/// What entering a switch through a channel of high rank costs beside the path.
#[derive(Clone, Copy)]
pub(super) enum Lateness {
    /// So much for the highest rank, less in proportion for others.
    Costs(f32),
    /// It alone decides.
    Decides,
}

/// How trees are grown.
pub(super) struct Growing {
    /// Sharpness while the first trees of all are grown.
    pub(super) sharpness: f64,
    /// Sharpness at which trees are grown again: those that the order has broken, and all within an order that is new.
    pub(super) sharpness_again: f64,
    /// Prices are made anew for each of so many trees, then whenever a part as large of those before has been added.
    pub(super) repricing: usize,
    /// Ways to grow a tree within an order, until one reaches every switch.
    pub(super) attempts: [Lateness; 7],
    /// The same for trees of clusters, which have more places to begin.
    pub(super) attempts_clusters: [Lateness; 4],
    /// By how much the prices of channels differ at random while trees spread over the network are grown.
    pub(super) spread_noise: f32,
}

pub(super) const GROWING: Growing = Growing {
    sharpness: 8.0,
    sharpness_again: 20.0,
    repricing: 8,
    attempts: [
        Lateness::Costs(0.0),
        Lateness::Costs(0.3),
        Lateness::Costs(1.0),
        Lateness::Costs(3.0),
        Lateness::Costs(10.0),
        Lateness::Costs(30.0),
        Lateness::Decides,
    ],
    attempts_clusters: [Lateness::Costs(0.0), Lateness::Costs(1.0), Lateness::Costs(10.0), Lateness::Decides],
    spread_noise: 0.1,
};

/// How sharply, and how freely, one sweep over shared trees moves branches and demands.
#[derive(Clone, Copy)]
pub(super) struct SweepTerms {
    pub(super) sharpness: f64,
    /// Most senders of a tree, in multiples of the average. With no room to spare all trees have as many senders.
    pub(super) room: f64,
}

/// The sweeps of a cycle over trees that senders share.
pub(super) struct SharedCycle {
    /// One sweep each.
    pub(super) sharpness: [f64; 9],
    /// See [`SweepTerms::room`].
    pub(super) room: f64,
}

/// Improvement of shared trees.
pub(super) struct Shared {
    /// Cycles in turn; only the first where little is to be done. Soft prices shorten paths and gather senders about the middle of
    /// their tree; sharp ones flatten the most loaded channels.
    pub(super) cycles: [SharedCycle; 2],
    /// The load aimed at, as a share of the most loaded channel's.
    pub(super) ambition: f64,
    /// How many of the cheapest moves of a branch, and of the cheapest trees of a sender, are tried.
    pub(super) tries: usize,
    /// Most channels on either side of a turn that change places in the order for it; searching further seldom pays.
    pub(super) reach: usize,
    /// Sharpness while the halves of a split tree bend apart.
    pub(super) parting: [f64; 3],
    /// Part of all steps that one improvement may take on the way to more trees where paths must rise, as a divisor.
    pub(super) brief_part: u64,
    /// Visits that such an improvement may make in any case.
    pub(super) brief_min: u64,
    /// Part of the steps of a request to be spent on a tree for every source first, as a divisor: any trees, and trees within
    /// orders, which are used whatever the number of trees.
    pub(super) before: [u64; 2],
}

pub(super) const SHARED: Shared = Shared {
    cycles: [
        SharedCycle { sharpness: [2.0, 3.0, 5.0, 8.0, 12.0, 20.0, 30.0, 50.0, 100.0], room: 1.0 },
        SharedCycle { sharpness: [6.0, 6.0, 9.0, 12.0, 18.0, 25.0, 40.0, 60.0, 100.0], room: 1.25 },
    ],
    ambition: 0.97,
    tries: 3,
    reach: 32,
    parting: [6.0, 15.0, 40.0],
    brief_part: 16,
    brief_min: 1 << 26,
    before: [16, 4],
};

/// Improvement of trees that pairs choose.
pub(super) struct ByPair {
    /// The sweeps of a cycle: with those at odd places, pairs take only turns that the order allows already.
    pub(super) sharpness: [f64; 6],
    /// A pair moves for a price below this share of its own.
    pub(super) gain: f32,
}

pub(super) const PAIRS: ByPair = ByPair { sharpness: [3.0, 6.0, 12.0, 20.0, 40.0, 80.0], gain: 0.9999 };

/// Which numbers of shared trees get which starts, and how much improvement.
pub(super) struct TreeCounts {
    /// So many trees are few: all are improved at powers of two only, and by all cycles instead of the first.
    pub(super) few: usize,
    /// With more than a few trees, all are improved whenever this part of the last power of two has been added, as a divisor.
    pub(super) growth: usize,
    /// Fewest clusters without an order; fewer are too wide.
    pub(super) clusters_min: usize,
    /// Fewest clusters with an order of their own.
    pub(super) ordered_min: usize,
    /// How often such orders are annealed if they come to nothing; after each number of trees at which all did, once less.
    pub(super) ordered_tries: usize,
    /// The same in a row, where time counts, until one is better.
    pub(super) ordered_tries_in_time: usize,
    /// Routes made afresh are improved with at most this many times the load of the best ones.
    pub(super) promising: f64,
    /// Where sharing alone loads some channel so many times as much as the bound, trees of an annealed order are so good that
    /// little is improved between numbers with other starts.
    pub(super) scarce: f64,
    /// Where sharing alone loads no channel more than this part of the bound, order is not what is scarce.
    pub(super) plenty: f64,
    /// With fewer channels a switch on average that no cluster takes, clusters wall each other in.
    pub(super) open_min: f64,
}

pub(super) const TREE_COUNTS: TreeCounts = TreeCounts {
    few: 16,
    growth: 4,
    clusters_min: 32,
    ordered_min: 8,
    ordered_tries: 2,
    ordered_tries_in_time: 3,
    promising: 1.3,
    scarce: 1.5,
    plenty: 0.5,
    open_min: 3.0,
};

/// Trees for clusters of senders.
pub(super) struct Clusters {
    /// Sharpness while trees are grown, and grown again.
    pub(super) sharpness: [f64; 6],
    /// How many of these rounds there are without any order.
    pub(super) rounds_free: usize,
    /// The same before there is an order, to find out where paths should begin.
    pub(super) rounds_unordered: usize,
    /// How often switches are offered to other clusters.
    pub(super) trades: usize,
    /// How often a tree is grown with other biases, at first and again, until its stems carry hardly more than they must.
    pub(super) balancings: [usize; 2],
    /// Hardly more: so many times the least possible load.
    pub(super) balanced: f64,
    /// How much smaller the changes of biases become each time.
    pub(super) balancing_decay: f64,
    /// Trees within the order are worth going on with at this many times the load of the best routes.
    pub(super) promising: f64,
}

pub(super) const CLUSTERS: Clusters = Clusters {
    sharpness: [4.0, 8.0, 12.0, 16.0, 20.0, 30.0],
    rounds_free: 4,
    rounds_unordered: 3,
    trades: 12,
    balancings: [10, 4],
    balanced: 1.05,
    balancing_decay: 0.3,
    promising: 4.0,
};

/// Annealing of the shape of clusters.
pub(super) struct Shaping {
    /// Most moves tried for each switch.
    pub(super) moves: usize,
    /// Temperatures, in squares of what the best stem costs: first, last.
    pub(super) heat: [f64; 2],
    /// What a switch costs without a channel for others, and with but one.
    pub(super) blocked: f64,
    /// See `blocked`.
    pub(super) narrow: f64,
    /// Part of all steps that shaping may take, as a divisor.
    pub(super) part: u64,
}

pub(super) const SHAPING: Shaping = Shaping { moves: 200, heat: [1.0, 0.02], blocked: 8.0, narrow: 0.3, part: 32 };
