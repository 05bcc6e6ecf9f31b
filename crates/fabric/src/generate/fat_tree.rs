//! Fat trees: the (p, q, r) family of \[Otsuka\] Fig. 6(a), and the three-level k-ary one.
//!
//! **(p, q, r)**: `q^r` hosts under `r` levels of switches above the leaves. Every leaf has `p` hosts and `p` links up;
//! every switch above has `q` links down and, below the top, `p` links up. Level `l` therefore has `q^(r−l)·p^(l−1)`
//! switches and there are `q^r/p` leaves, so `p` must divide `q`. A block of level `l` joins `q` blocks of the level
//! below, the top joins `q/p`; the `j`-th switch of a block is cabled to the `(j mod p^(l−1))`-th of each block below,
//! and at the top, where blocks are fewer, each switch does the work of `p` consecutive ones.
//!
//! ```text
//! (2,4,2)          t0                    t1             2 top switches, 4 links down
//!            ┌────┬─┴──┬────┐       (the same four)
//!          l1-0  l1-1  l1-2  l1-3                       4 middle switches, 4 down and 2 up
//!          └ leaf0…3 ┘ └ leaf4…7 ┘                      8 leaves, each to both of its group
//! ```
//!
//! **k-ary** (Al-Fares et al., SIGCOMM 2008): `k` pods of `k/2` leaves and `k/2` aggregation switches, fully cabled
//! inside the pod, and `(k/2)²` core switches; the `i`-th aggregation switch of every pod is cabled to cores
//! `i·k/2 … (i+1)·k/2 − 1`. Every switch has `k` ports.

use super::{Counts, draft::Draft};

/// The numbers of switches and links of (p, q, r), and of switches that take hosts.
pub(super) fn counts(p: usize, q: usize, r: u32) -> Counts {
    let (p, q) = (p as u128, q as u128);
    let leaves = q.saturating_pow(r) / p;
    let mut switches = leaves;
    let mut links: u128 = 0;
    for level in 1..=r {
        let of_level = q.saturating_pow(r - level).saturating_mul(p.saturating_pow(level - 1));
        switches = switches.saturating_add(of_level);
        links = links.saturating_add(of_level.saturating_mul(q));
    }
    Counts { switches, links, rim: leaves }
}

/// Wires (p, q, r), `hosts` at every leaf: leaves first, the top last.
pub(super) fn draft(p: usize, q: usize, r: u32, hosts: usize) -> Draft {
    let mut draft = Draft::default();
    let leaves = q.pow(r) / p;
    let mut below: Vec<usize> = (0..leaves).map(|leaf| draft.add_switch(format!("leaf{leaf}"), hosts)).collect();
    // Switches of one block of the level below.
    let mut below_width = 1;
    for level in 1..=r {
        let is_top = level == r;
        let count = q.pow(r - level) * p.pow(level - 1);
        let name = |index| if is_top { format!("t{index}") } else { format!("l{level}-{index}") };
        let switches: Vec<usize> = (0..count).map(|index| draft.add_switch(name(index), 0)).collect();
        let (fanout, merged) = if is_top { (q / p, p) } else { (q, 1) };
        let width = below_width * p / merged;
        for (index, &switch) in switches.iter().enumerate() {
            let (block, j) = (index / width, index % width);
            for child in 0..fanout {
                for part in 0..merged {
                    let i = (j * merged + part) % below_width;
                    let lower = below[(block * fanout + child) * below_width + i];
                    draft.add_link((lower, AFTER_DOWN), (switch, child * merged + part));
                }
            }
        }
        (below, below_width) = (switches, width);
    }
    draft
}

/// The slot of links up: after every link down.
const AFTER_DOWN: usize = usize::MAX;

/// The numbers of switches and links of the k-ary fat tree, and of switches that take hosts.
pub(super) fn kary_counts(k: usize) -> Counts {
    let half = k as u128 / 2;
    let leaves = (k as u128).saturating_mul(half);
    let cores = half.saturating_mul(half);
    Counts {
        switches: leaves.saturating_mul(2).saturating_add(cores),
        links: leaves.saturating_mul(half).saturating_mul(2),
        rim: leaves,
    }
}

/// Wires the k-ary fat tree, `hosts` at every leaf: leaves pod by pod, then aggregation switches, then cores.
pub(super) fn kary_draft(k: usize, hosts: usize) -> Draft {
    let half = k / 2;
    let mut draft = Draft::default();
    let pods = |draft: &mut Draft, prefix: &str, hosts| -> Vec<usize> {
        (0..k * half)
            .map(|index| draft.add_switch(format!("{prefix}{}-{}", index / half, index % half), hosts))
            .collect()
    };
    let leaves = pods(&mut draft, "leaf", hosts);
    let aggregation = pods(&mut draft, "agg", 0);
    let cores: Vec<usize> = (0..half * half).map(|core| draft.add_switch(format!("core{core}"), 0)).collect();
    for pod in 0..k {
        for a in 0..half {
            let upper = aggregation[pod * half + a];
            for (l, leaf) in leaves[pod * half..(pod + 1) * half].iter().enumerate() {
                draft.add_link((*leaf, a), (upper, l));
            }
            for (c, core) in cores[a * half..(a + 1) * half].iter().enumerate() {
                draft.add_link((upper, half + c), (*core, pod));
            }
        }
    }
    draft
}
