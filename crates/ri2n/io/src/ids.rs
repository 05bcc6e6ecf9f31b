//! Tables by identifier. Identifiers are drawn at random, by this end, so no peer can choose them to collide, and one
//! multiplication spreads them as well as a hash function that guards against that.

use std::{
    collections::{HashMap, HashSet},
    hash::{BuildHasherDefault, Hasher},
};

pub(crate) type IdMap<V> = HashMap<u32, V, BuildHasherDefault<IdHasher>>;
pub(crate) type IdSet = HashSet<u32, BuildHasherDefault<IdHasher>>;

/// Hashes one number of 32 bits.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct IdHasher(u64);

impl Hasher for IdHasher {
    fn write_u32(&mut self, id: u32) {
        // Fibonacci hashing (D. Knuth, The Art of Computer Programming, vol. 3, 6.4).
        self.0 = u64::from(id).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        }
    }

    fn finish(&self) -> u64 {
        // Tables use the lowest bits, of which the product has the fewest of the number in.
        self.0.rotate_left(32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_in_a_row_are_spread() {
        let mut places = IdSet::default();
        for id in 0..1024_u32 {
            let mut hasher = IdHasher::default();
            hasher.write_u32(id);
            places.insert((hasher.finish() & 0xfff) as u32);
        }
        assert!(places.len() > 800, "{}", places.len());
    }
}
