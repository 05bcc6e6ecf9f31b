//! The seeded generator behind every random choice: same seed, same numbers, on every machine and for ever.
//!
//! The generator is xoshiro256** with its state filled by SplitMix64 (Blackman and Vigna, "Scrambled linear
//! pseudorandom number generators", 2021; both algorithms are in the public domain). It is fast and even, and no secret
//! may depend on it.
//!
//! ```text
//! seed ──SplitMix64──▶ s0 s1 s2 s3 ──┬─▶ rotl(s1·5, 7)·9   the next number
//!                          ▲─────────┘   shift, xor, rotate
//! ```

/// A seeded stream of numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rng {
    state: [u64; 4],
}

impl Rng {
    /// The stream that belongs to `seed`; nearby seeds give unrelated streams.
    pub fn new(seed: u64) -> Self {
        let mut counter = seed;
        let state = std::array::from_fn(|_| {
            counter = counter.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mixed = (counter ^ (counter >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            mixed ^ (mixed >> 31)
        });
        Self { state }
    }

    /// The next 64 bits.
    pub fn next_u64(&mut self) -> u64 {
        let [a, b, c, d] = &mut self.state;
        let number = b.wrapping_mul(5).rotate_left(7).wrapping_mul(9);
        let shifted = *b << 17;
        *c ^= *a;
        *d ^= *b;
        *b ^= *c;
        *a ^= *d;
        *c ^= shifted;
        *d = d.rotate_left(45);
        number
    }

    /// A number of `0..bound`, each equally likely (Lemire, "Fast random integer generation in an interval", 2019).
    ///
    /// # Panics
    /// If `bound` is 0.
    pub fn below(&mut self, bound: usize) -> usize {
        assert!(bound > 0, "no number is below 0");
        let bound = bound as u64;
        let mut product = u128::from(self.next_u64()) * u128::from(bound);
        if (product as u64) < bound {
            // Products whose low half falls below this are one too many for some results, and drawn again.
            let surplus = bound.wrapping_neg() % bound;
            while (product as u64) < surplus {
                product = u128::from(self.next_u64()) * u128::from(bound);
            }
        }
        (product >> 64) as usize
    }

    /// A number of `[0, 1)`, a multiple of 2⁻⁵³.
    pub fn unit_f64(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Puts `items` in an order of which each is equally likely (Fisher and Yates).
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last + 1));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_streams_are_those_of_the_published_algorithms() {
        // SplitMix64 from 0 begins e220a8397b1dcdaf, 6e789e6aa1b965f4, 06c45d188009454f, f88bb8a8724c81ec.
        let mut rng = Rng::new(0);
        assert_eq!(
            rng.state,
            [0xe220_a839_7b1d_cdaf, 0x6e78_9e6a_a1b9_65f4, 0x06c4_5d18_8009_454f, 0xf88b_b8a8_724c_81ec]
        );
        // xoshiro256** from the state 1, 2, 3, 4 begins 11520, 0, 1509978240, 1215971899390074240.
        rng.state = [1, 2, 3, 4];
        let first: Vec<u64> = (0..4).map(|_| rng.next_u64()).collect();
        assert_eq!(first, [11520, 0, 1_509_978_240, 1_215_971_899_390_074_240]);
    }

    #[test]
    fn numbers_below_a_bound_are_even() {
        let mut rng = Rng::new(7);
        let mut counts = [0_u32; 6];
        for _ in 0..60_000 {
            counts[rng.below(6)] += 1;
        }
        assert!(counts.iter().all(|count| (9_500..10_500).contains(count)), "{counts:?}");
        assert_eq!(rng.below(1), 0);
    }

    #[test]
    fn unit_numbers_fill_the_unit_interval() {
        let mut rng = Rng::new(3);
        let numbers: Vec<f64> = (0..10_000).map(|_| rng.unit_f64()).collect();
        assert!(numbers.iter().all(|number| (0.0..1.0).contains(number)));
        let mean = numbers.iter().sum::<f64>() / 10_000.0;
        assert!((0.48..0.52).contains(&mean), "{mean}");
    }

    #[test]
    fn a_shuffle_is_a_permutation_and_differs_by_seed() {
        let shuffled = |seed| {
            let mut items: Vec<usize> = (0..100).collect();
            Rng::new(seed).shuffle(&mut items);
            items
        };
        let mut sorted = shuffled(1);
        sorted.sort_unstable();
        assert_eq!(sorted, (0..100).collect::<Vec<_>>());
        assert_eq!(shuffled(1), shuffled(1));
        assert_ne!(shuffled(1), shuffled(2));
    }
}
