//! Plain trees: what spanning tree makes of any network, and the baseline that multipath is measured against.
//!
//! `depth` levels of switches, the root alone on the first, and `fanout` switches under every switch that is not a leaf.
//! A leaf has `fanout` hosts unless told otherwise, so that `fanout^depth` hosts hang from the tree.
//!
//! ```text
//! fanout=2,depth=3      root
//!                      ╱    ╲
//!                   t0        t1
//!                  ╱  ╲      ╱  ╲
//!              t0-0  t0-1  t1-0  t1-1     2 hosts each
//! ```

use super::{Counts, draft::Draft};

/// The numbers of switches and links, and of switches that take hosts.
pub(super) fn counts(fanout: usize, depth: u32) -> Counts {
    let level = |level: u32| (fanout as u128).saturating_pow(level);
    let switches = (0..depth).fold(0, |sum: u128, at| sum.saturating_add(level(at)));
    Counts { switches, links: switches - 1, rim: level(depth - 1) }
}

/// Wires the tree, `hosts` at every leaf: level by level from the root.
pub(super) fn draft(fanout: usize, depth: u32, hosts: usize) -> Draft {
    let mut draft = Draft::default();
    let hosts_at = |level: u32| if level + 1 == depth { hosts } else { 0 };
    let root = draft.add_switch("root".to_owned(), hosts_at(0));
    let mut above = vec![(root, "t".to_owned())];
    for level in 1..depth {
        let dash = if level == 1 { "" } else { "-" };
        let mut below = Vec::with_capacity(above.len() * fanout);
        for (parent, path) in &above {
            for child in 0..fanout {
                let path = format!("{path}{dash}{child}");
                let switch = draft.add_switch(path.clone(), hosts_at(level));
                // The link up is a switch's first port.
                draft.add_link((*parent, 1 + child), (switch, 0));
                below.push((switch, path));
            }
        }
        above = below;
    }
    draft
}
