//! Random numbers that differ from run to run: nonces of deployments, first request identifiers.

use std::time::{SystemTime, UNIX_EPOCH};

/// A number that differs from run to run: the time, hashed with a random key.
pub fn fresh_number() -> u64 {
    use std::hash::{BuildHasher as _, Hasher as _};
    let nanos = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_nanos() as u64);
    let mut hasher = std::hash::RandomState::new().build_hasher();
    hasher.write_u64(nanos);
    hasher.finish()
}
