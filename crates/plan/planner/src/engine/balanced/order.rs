//! A numbering of channels, and how to bend it to the turns that trees want.
//!
//! A turn is legal if the rank rises. Given how much each turn is wanted, *sifting* takes one channel after the other out of
//! the order and puts it back into the gap where the turns that fall, weighted, are least; only the channels before and
//! after it in some turn matter for that (Rudell, "Dynamic variable ordering for ordered binary decision diagrams",
//! 1993, names the method; the linear ordering problem is the one solved).
//!
//! ```text
//!   wanted: a▶c 5, c▶d 3, b▶c 1        order d a c b: c▶d and b▶c fall, 4 in all
//!                                      sift d: a c d b, 1 falls; sift b: b a c d, none
//! ```

use fabric::rng::Rng;

use super::net::Net;

/// Tables kept between sweeps.
#[derive(Default)]
pub(super) struct Sifter {
    place: Vec<f64>,
    channels: Vec<u32>,
    events: Vec<(f64, f64)>,
    sorted: Vec<u32>,
}

/// How much to sift.
#[derive(Clone, Copy)]
pub(super) struct Sifting {
    /// Sweeps at most; a sweep that moves nothing is the last.
    pub(super) sweeps: usize,
    /// Share of all channels that each sifts.
    pub(super) share: f64,
}

impl Sifter {
    /// Sifts channels by `wanted[turn]`. Returns channel visits.
    pub(super) fn sift(
        &mut self,
        net: &Net,
        rank: &mut [u32],
        wanted: &[f32],
        Sifting { sweeps, share }: Sifting,
        rng: &mut Rng,
    ) -> usize {
        let mut visits = 0;
        self.channels.clear();
        let first = |channel: &u32| net.twins_by_lane(*channel).iter().all(|twin| channel <= twin);
        self.channels.extend((0..net.channels as u32).filter(first));
        self.place.clear();
        self.place.extend(rank.iter().map(|&rank| f64::from(rank)));
        let movable = self.channels.len();
        let count = ((share * movable as f64) as usize).clamp(1, movable.max(1));
        for _ in 0..sweeps {
            rng.shuffle(&mut self.channels);
            let mut moved = 0;
            for at in 0..count.min(self.channels.len()) {
                let channel = self.channels[at];
                moved += usize::from(self.sift_one(net, channel, wanted, rng));
                visits += net.into(net.tail(channel)).len() + net.from(net.head(channel)).len();
            }
            if moved == 0 {
                break;
            }
        }
        self.sorted.clear();
        self.sorted.extend(0..net.channels as u32);
        let place = &self.place;
        self.sorted.sort_unstable_by(|&a, &b| place[a as usize].total_cmp(&place[b as usize]).then(a.cmp(&b)));
        for (number, &channel) in self.sorted.iter().enumerate() {
            rank[channel as usize] = number as u32;
        }
        visits
    }

    fn sift_one(&mut self, net: &Net, channel: u32, wanted: &[f32], rng: &mut Rng) -> bool {
        let (tail, head) = (net.tail(channel), net.head(channel));
        let here = self.place[channel as usize];
        self.events.clear();
        // Before everything all turns into the channel fall; passing one's first channel mends it, passing the second
        // channel of a turn out of it breaks that one.
        let mut cost = 0.0;
        let mut current = 0.0;
        for before in net.into(tail) {
            let weight = f64::from(wanted[net.turn(before, channel)]);
            if weight > 0.0 && net.tail(before) != head {
                cost += weight;
                let place = self.place[before as usize];
                current += if place > here { weight } else { 0.0 };
                self.events.push((place, -weight));
            }
        }
        for &after in net.from(head) {
            let weight = f64::from(wanted[net.turn(channel, after)]);
            if weight > 0.0 && net.head(after) != tail {
                let place = self.place[after as usize];
                current += if place < here { weight } else { 0.0 };
                self.events.push((place, weight));
            }
        }
        if self.events.is_empty() || current <= 1e-6 {
            return false;
        }
        self.events.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
        let (mut least, mut gap) = (cost, 0);
        for (at, &(_, change)) in self.events.iter().enumerate() {
            cost += change;
            if cost < least - 1e-9 {
                (least, gap) = (cost, at + 1);
            }
        }
        if least >= current - 1e-6 {
            return false;
        }
        let beyond = 0.02 * net.channels as f64;
        let low = if gap > 0 { self.events[gap - 1].0 } else { self.events[0].0 - beyond };
        let high = self.events.get(gap).map_or(low + beyond, |event| event.0);
        let place = low + (high - low) * (0.02 + 0.96 * rng.unit_f64());
        net.twins_by_lane(channel).iter().for_each(|twin| self.place[*twin as usize] = place);
        true
    }
}

#[cfg(test)]
mod tests {
    use fabric::generate::{Kind, Options, generate};

    use super::*;

    /// What falls, counted from nothing.
    fn falling(net: &Net, rank: &[u32], wanted: &[f32]) -> f64 {
        let turns = (0..net.channels as u32)
            .flat_map(|channel| net.from(net.head(channel)).iter().map(move |after| (channel, *after)));
        let falls = turns.filter(|&(a, c)| net.head(c) != net.tail(a) && rank[a as usize] > rank[c as usize]);
        falls.map(|(a, c)| f64::from(wanted[net.turn(a, c)])).sum()
    }

    /// Each sift lowers what falls in all by what it was said to, so none ever raises it; ranks stay a permutation.
    #[test]
    fn sifting_never_lets_more_fall() {
        let mut lowered = 0;
        for (kind, size) in [("torus", "3x4"), ("hyperx", "4x3"), ("random-regular", "n=14,d=4,seed=3")] {
            let words: Vec<String> = size.split(',').map(str::to_owned).collect();
            let kind = Kind::parse(kind, &words).expect("a size");
            let net = Net::new(&generate(&kind, &Options::default()).expect("sane"), 1.0);
            for seed in 0..30 {
                let mut rng = Rng::new(seed);
                let mut rank: Vec<u32> = (0..net.channels as u32).collect();
                rng.shuffle(&mut rank);
                let wanted: Vec<f32> =
                    (0..net.turns).map(|_| if rng.below(3) == 0 { rng.unit_f64() as f32 } else { 0.0 }).collect();
                let mut sifter = Sifter::default();
                let mut before = falling(&net, &rank, &wanted);
                for step in 0..6 {
                    let share = if step % 2 == 0 { 1.0 } else { 0.2 };
                    sifter.sift(&net, &mut rank, &wanted, Sifting { sweeps: 1, share }, &mut rng);
                    let after = falling(&net, &rank, &wanted);
                    assert!(
                        after <= before + 1e-6,
                        "{kind:?}, seed {seed}, step {step}: {before} before, {after} after"
                    );
                    lowered += usize::from(after < before - 1e-6);
                    before = after;
                }
                let mut sorted = rank.clone();
                sorted.sort_unstable();
                assert!(
                    sorted.iter().enumerate().all(|(at, rank)| at == *rank as usize),
                    "seed {seed}: no permutation"
                );
            }
        }
        assert!(lowered > 100, "{lowered}");
    }
}
