//! Dragonflies: fully cabled groups of routers, and cables between every two groups.
//!
//! A group has `a` routers, each with `p` hosts, a cable to every other router of the group, and `h` global ports
//! (Kim, Dally, Scott and Abts, ISCA 2008). The largest dragonfly has `a·h + 1` groups and one cable between every two.
//! Global ports are numbered `0 … a·h − 1` in a group, `h` a router, and laid out by the *absolute* arrangement: port `k`
//! of group `g` leads to group `k` if `k < g` and to group `k + 1` otherwise. With fewer groups the numbering starts
//! again as often as ports last, so that every two groups have equally many cables, and the ports left over are empty.
//!
//! ```text
//! a=2,h=1: three groups         g0-r0 ── g0-r1
//! group 0: port 0→1, 1→2          │         │
//! group 1: port 0→0, 1→2   g1-r0 ─╯         ╰─ g2-r0
//! group 2: port 0→0, 1→1     │                   │
//!                          g1-r1 ──────────── g2-r1
//! ```

use super::{Counts, draft::Draft};

/// The numbers of switches and links, and of switches that take hosts.
pub(super) fn counts(a: usize, h: usize, groups: usize) -> Counts {
    let (a, h, groups) = (a as u128, h as u128, groups as u128);
    let rounds = a.saturating_mul(h) / (groups - 1);
    let local = groups.saturating_mul(a.saturating_mul(a - 1) / 2);
    let global = (groups.saturating_mul(groups - 1) / 2).saturating_mul(rounds);
    let switches = a.saturating_mul(groups);
    Counts { switches, links: local.saturating_add(global), rim: switches }
}

/// Wires the dragonfly, `hosts` at every router, group by group.
pub(super) fn draft(a: usize, h: usize, groups: usize, hosts: usize) -> Draft {
    let mut draft = Draft::default();
    for router in 0..a * groups {
        draft.add_switch(format!("g{}-r{}", router / a, router % a), hosts);
    }
    for group in 0..groups {
        for x in 0..a {
            for y in x + 1..a {
                draft.add_link((group * a + x, y - 1), (group * a + y, x));
            }
        }
    }
    let global = |group: usize, port: usize| (group * a + port / h, a - 1 + port % h);
    for round in 0..a * h / (groups - 1) {
        let first = round * (groups - 1);
        for lower in 0..groups {
            for upper in lower + 1..groups {
                draft.add_link(global(lower, first + upper - 1), global(upper, first + lower));
            }
        }
    }
    draft
}
