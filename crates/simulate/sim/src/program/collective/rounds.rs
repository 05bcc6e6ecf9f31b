//! The rounds themselves. Ranks below are counted from the root where there is one.

use super::{Algorithm, Collective, Operation};

/// What a rank sends and waits for before it goes on.
pub type Round = Vec<Exchange>;

/// One message of a round, as one rank sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exchange {
    /// It sends.
    Send {
        /// To whom.
        to: u32,
        /// How much.
        bytes: u64,
    },
    /// It waits.
    Receive {
        /// For whom.
        from: u32,
    },
}

pub(super) fn of(operation: &Operation, rank: u32, ranks: u32) -> Vec<Round> {
    let Operation { collective, algorithm, bytes, root } = *operation;
    let me = RankPosition { rank, ranks };
    let rooted = RankPosition { rank: me.minus(root), ranks };
    let from_root = |rounds: Vec<Round>| -> Vec<Round> {
        rounds.into_iter().map(|round| round.into_iter().map(|one| one.shifted(root, ranks)).collect()).collect()
    };
    match (collective, algorithm) {
        (Collective::AllToAll | Collective::AllGather, Algorithm::Linear) => vec![me.everybody(bytes)],
        (Collective::AllToAll, Algorithm::Pairwise) => me.pairwise(bytes),
        (Collective::AllToAll, Algorithm::Ring) => me.shifts(bytes),
        (Collective::AllToAll, Algorithm::Bruck) => me.bruck_all_to_all(bytes),
        (Collective::AllGather, Algorithm::Ring) => me.ring(|_| bytes, 0),
        (Collective::AllGather, Algorithm::RecursiveDoubling) => {
            me.distances().map(|distance| me.swap(rank ^ distance, u64::from(distance) * bytes)).collect()
        }
        (Collective::AllGather, Algorithm::Bruck) => me.bruck_all_gather(bytes),
        (Collective::AllReduce, Algorithm::RecursiveDoubling) => me.folded(bytes, |place| {
            place.distances().map(|distance| place.swap(place.rank ^ distance, bytes)).collect()
        }),
        (Collective::AllReduce, Algorithm::Ring) => {
            let block = |block| share(bytes, block, ranks);
            let mut rounds = me.ring(block, 0);
            rounds.extend(me.ring(block, 1));
            rounds
        }
        (Collective::AllReduce, Algorithm::Rabenseifner) => me.folded(bytes, |place| place.halve_and_double(bytes)),
        (Collective::AllReduce, Algorithm::Binomial) => {
            let mut rounds = me.binomial(Flow::In, |_| bytes);
            rounds.extend(me.binomial(Flow::Out, |_| bytes));
            rounds
        }
        (Collective::Broadcast, Algorithm::Linear) => from_root(rooted.star(Flow::Out, bytes)),
        (Collective::Broadcast, Algorithm::Binomial) => from_root(rooted.binomial(Flow::Out, |_| bytes)),
        (Collective::Broadcast, Algorithm::Chain) => from_root(rooted.chain(bytes)),
        (Collective::Broadcast, Algorithm::ScatterRing) => {
            let block = |block| share(bytes, block, ranks);
            let blocks = |range: std::ops::Range<u32>| range.map(block).sum();
            let mut rounds = rooted.binomial(Flow::Out, blocks);
            rounds.extend(rooted.ring(block, 0));
            from_root(rounds)
        }
        (Collective::Reduce | Collective::Gather, Algorithm::Linear) => from_root(rooted.star(Flow::In, bytes)),
        (Collective::Scatter, Algorithm::Linear) => from_root(rooted.star(Flow::Out, bytes)),
        (Collective::Reduce, Algorithm::Binomial) => from_root(rooted.binomial(Flow::In, |_| bytes)),
        (Collective::Gather, Algorithm::Binomial) => {
            from_root(rooted.binomial(Flow::In, |range| range.len() as u64 * bytes))
        }
        (Collective::Scatter, Algorithm::Binomial) => {
            from_root(rooted.binomial(Flow::Out, |range| range.len() as u64 * bytes))
        }
        (Collective::ReduceScatter, Algorithm::Pairwise) => me.pairwise(bytes),
        (Collective::ReduceScatter, Algorithm::Ring) => me.ring(|_| bytes, 0),
        (Collective::ReduceScatter, Algorithm::RecursiveHalving) => {
            let distances: Vec<u32> = me.distances().collect();
            distances.iter().rev().map(|distance| me.swap(rank ^ distance, u64::from(*distance) * bytes)).collect()
        }
        (Collective::Barrier, Algorithm::Dissemination) => me
            .distances()
            .map(|distance| vec![send(me.plus(distance), 0), Exchange::Receive { from: me.minus(distance) }])
            .collect(),
        (Collective::Barrier, Algorithm::RecursiveDoubling) => {
            me.distances().map(|distance| me.swap(rank ^ distance, 0)).collect()
        }
        (Collective::Barrier, Algorithm::Binomial) => {
            let mut rounds = me.binomial(Flow::In, |_| 0);
            rounds.extend(me.binomial(Flow::Out, |_| 0));
            rounds
        }
        _ => panic!("{collective} by {algorithm} was not resolved"),
    }
}

/// Octets of block `block` of a vector that is cut into `blocks`.
fn share(bytes: u64, block: u32, blocks: u32) -> u64 {
    let (blocks, block) = (u64::from(blocks), u64::from(block));
    bytes / blocks + u64::from(block < bytes % blocks)
}

fn send(to: u32, bytes: u64) -> Exchange {
    Exchange::Send { to, bytes }
}

impl Exchange {
    /// The same among ranks that are counted from `root`.
    fn shifted(self, root: u32, ranks: u32) -> Self {
        let shift = |rank: u32| (rank + root) % ranks;
        match self {
            Self::Send { to, bytes } => Self::Send { to: shift(to), bytes },
            Self::Receive { from } => Self::Receive { from: shift(from) },
        }
    }
}

/// Whether a tree carries from the root, or to it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Flow {
    Out,
    In,
}

/// A rank among others.
#[derive(Clone, Copy)]
struct RankPosition {
    rank: u32,
    ranks: u32,
}

impl RankPosition {
    fn plus(self, distance: u32) -> u32 {
        (self.rank + distance) % self.ranks
    }

    fn minus(self, distance: u32) -> u32 {
        (self.rank + self.ranks - distance % self.ranks) % self.ranks
    }

    /// 1, 2, 4, … below the number of ranks.
    fn distances(self) -> impl Iterator<Item = u32> {
        (0..32).map(|bit| 1_u32 << bit).take_while(move |distance| *distance < self.ranks)
    }

    fn swap(self, partner: u32, bytes: u64) -> Round {
        vec![send(partner, bytes), Exchange::Receive { from: partner }]
    }

    fn everybody(self, bytes: u64) -> Round {
        let receives = (1..self.ranks).map(|k| Exchange::Receive { from: self.minus(k) });
        receives.chain((1..self.ranks).map(|k| send(self.plus(k), bytes))).collect()
    }

    fn shifts(self, bytes: u64) -> Vec<Round> {
        (1..self.ranks).map(|k| vec![send(self.plus(k), bytes), Exchange::Receive { from: self.minus(k) }]).collect()
    }

    fn pairwise(self, bytes: u64) -> Vec<Round> {
        if self.ranks.is_power_of_two() {
            (1..self.ranks).map(|k| self.swap(self.rank ^ k, bytes)).collect()
        } else {
            self.shifts(bytes)
        }
    }

    /// Blocks that have still to go a distance with this bit go that far at once.
    fn bruck_all_to_all(self, bytes: u64) -> Vec<Round> {
        let blocks = |distance: u32| (1..self.ranks).filter(|block| block & distance != 0).count() as u64;
        self.distances()
            .map(|distance| {
                vec![
                    send(self.plus(distance), blocks(distance) * bytes),
                    Exchange::Receive { from: self.minus(distance) },
                ]
            })
            .collect()
    }

    fn bruck_all_gather(self, bytes: u64) -> Vec<Round> {
        self.distances()
            .map(|distance| {
                let blocks = u64::from(distance.min(self.ranks - distance));
                vec![send(self.minus(distance), blocks * bytes), Exchange::Receive { from: self.plus(distance) }]
            })
            .collect()
    }

    /// To the next, from the one before; in round `k` block `rank + first - k` goes on.
    fn ring(self, block: impl Fn(u32) -> u64, first: u32) -> Vec<Round> {
        let next = Self { rank: self.plus(first), ..self };
        (1..self.ranks)
            .map(|k| vec![send(self.plus(1), block(next.minus(k - 1))), Exchange::Receive { from: self.minus(1) }])
            .collect()
    }

    fn star(self, flow: Flow, bytes: u64) -> Vec<Round> {
        let others = 1..self.ranks;
        vec![match (self.rank, flow) {
            (0, Flow::Out) => others.map(|to| send(to, bytes)).collect(),
            (0, Flow::In) => others.map(|from| Exchange::Receive { from }).collect(),
            (_, Flow::Out) => vec![Exchange::Receive { from: 0 }],
            (_, Flow::In) => vec![send(0, bytes)],
        }]
    }

    fn chain(self, bytes: u64) -> Vec<Round> {
        let mut rounds = Vec::new();
        if self.rank > 0 {
            rounds.push(vec![Exchange::Receive { from: self.rank - 1 }]);
        }
        if self.rank + 1 < self.ranks {
            rounds.push(vec![send(self.rank + 1, bytes)]);
        }
        rounds
    }

    /// A binomial tree with its root at 0. The child at distance `d` stands for the ranks of `child .. child + d`, and
    /// `bytes` says what these have or want. Messages of one rank go one after the other, the largest branch first out
    /// of the root, last into it.
    fn binomial(self, flow: Flow, bytes: impl Fn(std::ops::Range<u32>) -> u64) -> Vec<Round> {
        let own = if self.rank == 0 { self.ranks.next_power_of_two() } else { self.rank & self.rank.wrapping_neg() };
        let branch = |rank: u32, distance: u32| rank..(rank + distance).min(self.ranks);
        let mut rounds: Vec<Round> = self
            .distances()
            .filter(|distance| *distance < own && self.rank + distance < self.ranks)
            .map(|distance| {
                let child = self.rank + distance;
                match flow {
                    Flow::Out => vec![send(child, bytes(branch(child, distance)))],
                    Flow::In => vec![Exchange::Receive { from: child }],
                }
            })
            .collect();
        if self.rank > 0 {
            let parent = self.rank - own;
            rounds.push(match flow {
                Flow::Out => vec![Exchange::Receive { from: parent }],
                Flow::In => vec![send(parent, bytes(branch(self.rank, own)))],
            });
        }
        if flow == Flow::Out {
            rounds.reverse();
        }
        rounds
    }

    /// Where there is no power of two of ranks, the first few even ones hand theirs to a neighbour before, and get the
    /// result after.
    fn folded(self, bytes: u64, core: impl Fn(Self) -> Vec<Round>) -> Vec<Round> {
        let power = 1 << self.ranks.ilog2();
        let extra = self.ranks - power;
        let Self { rank, .. } = self;
        if rank < 2 * extra && rank % 2 == 0 {
            return vec![vec![send(rank + 1, bytes)], vec![Exchange::Receive { from: rank + 1 }]];
        }
        let inner = if rank < 2 * extra { rank / 2 } else { rank - extra };
        let outer = |inner: u32| if inner < extra { 2 * inner + 1 } else { inner + extra };
        let mut rounds = Vec::new();
        if rank < 2 * extra {
            rounds.push(vec![Exchange::Receive { from: rank - 1 }]);
        }
        for mut round in core(Self { rank: inner, ranks: power }) {
            for exchange in &mut round {
                match exchange {
                    Exchange::Send { to, .. } => *to = outer(*to),
                    Exchange::Receive { from } => *from = outer(*from),
                }
            }
            rounds.push(round);
        }
        if rank < 2 * extra {
            rounds.push(vec![send(rank - 1, bytes)]);
        }
        rounds
    }

    /// Among a power of two: partners halve what each keeps, then double it again.
    fn halve_and_double(self, bytes: u64) -> Vec<Round> {
        let (mut from, mut until) = (0, bytes);
        let mut rounds = Vec::new();
        let mut back = Vec::new();
        for distance in self.distances().collect::<Vec<_>>().into_iter().rev() {
            let middle = from + (until - from) / 2;
            let (kept, given) = if self.rank & distance == 0 {
                ((from, middle), (middle, until))
            } else {
                ((middle, until), (from, middle))
            };
            let partner = self.rank ^ distance;
            rounds.push(self.swap(partner, given.1 - given.0));
            back.push(self.swap(partner, kept.1 - kept.0));
            (from, until) = kept;
        }
        rounds.extend(back.into_iter().rev());
        rounds
    }
}
