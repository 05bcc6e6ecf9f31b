//! Two-level Clos networks: every leaf is cabled once to every spine.
//!
//! The folded form of Clos's three stages (Bell System Technical Journal, 1953), as \[Eicker\] built it of 22 leaves and
//! 24 spines and \[Otsuka\] Fig. 6(b) of four and four. With as many hosts as spines on each leaf the network is
//! rearrangeably non-blocking.
//!
//! ```text
//! clos 3x2       spine0      spine1
//!              ╱   │   ╲   ╱   │   ╲
//!          leaf0  leaf1  leaf2   (each to both), 2 hosts a leaf
//! ```

use super::{Counts, draft::Draft};

/// The numbers of switches and links, and of switches that take hosts.
pub(super) fn counts(leaves: usize, spines: usize) -> Counts {
    let (leaves, spines) = (leaves as u128, spines as u128);
    Counts { switches: leaves + spines, links: leaves.saturating_mul(spines), rim: leaves }
}

/// Wires the network, `hosts` at every leaf: leaves first.
pub(super) fn draft(leaves: usize, spines: usize, hosts: usize) -> Draft {
    let mut draft = Draft::default();
    let leaves: Vec<usize> = (0..leaves).map(|leaf| draft.add_switch(format!("leaf{leaf}"), hosts)).collect();
    let spines: Vec<usize> = (0..spines).map(|spine| draft.add_switch(format!("spine{spine}"), 0)).collect();
    for (l, leaf) in leaves.iter().enumerate() {
        for (s, spine) in spines.iter().enumerate() {
            draft.add_link((*leaf, s), (*spine, l));
        }
    }
    draft
}
