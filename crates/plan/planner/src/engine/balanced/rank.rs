//! Ranks: the places of channels in an order.

/// The ranks that put channels in the order of `key`.
pub(super) fn ranks_by_key(key: &[f64]) -> Vec<u32> {
    let mut sorted: Vec<u32> = (0..key.len() as u32).collect();
    sorted.sort_by(|&a, &b| key[a as usize].total_cmp(&key[b as usize]));
    let mut rank = vec![0; key.len()];
    for (number, channel) in sorted.into_iter().enumerate() {
        rank[channel as usize] = number as u32;
    }
    rank
}
