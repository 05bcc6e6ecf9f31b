//! Rivals: stricter requests, whose routes the request allows as well.
//!
//! A search with more freedom has more to choose from and may end up worse. So routes that were searched for under more
//! constraints compete: what PAUSE allows is allowed without flow control, a choice by sender is a choice by pair, and
//! routes that were made without regard to a cap may keep it.
//!
//! ```text
//!   none ≤ pfc=8 ≤ pfc=4 ≤ pfc=2 ≤ pause        in time on the most loaded link,
//!   pair ≤ source, destination                  since each request contains all to its right
//! ```
//! A stricter request is searched exactly as if it had been made, so on networks where all of them are, less freedom never
//! helps. On large networks, where a search takes long, and under a time limit there are none.

use fabric::{FlowControl, Policy, Tagging, Topology};

/// Most channels times switches of a network whose requests have rivals.
pub(crate) const SIZE_MAX: usize = 1 << 12;

/// Requests whose routes the policy allows, or may allow, the nearest first.
pub(crate) fn rivals(topology: &Topology, policy: &Policy) -> Vec<Policy> {
    if policy.time_limit.is_some() || topology.channel_count() * topology.switches().len() > SIZE_MAX {
        return Vec::new();
    }
    let narrower: &[FlowControl] = match policy.flow_control {
        FlowControl::None => &[FlowControl::Pfc(8), FlowControl::Pfc(4), FlowControl::Pfc(2), FlowControl::Pause],
        FlowControl::Pfc(5..) => &[FlowControl::Pfc(4), FlowControl::Pfc(2), FlowControl::Pause],
        FlowControl::Pfc(3..) => &[FlowControl::Pfc(2), FlowControl::Pause],
        FlowControl::Pfc(_) => &[FlowControl::Pause],
        FlowControl::Pause => &[],
    };
    let other_taggings: &[Tagging] = match policy.tagging {
        Tagging::Pair => &[Tagging::Source, Tagging::Destination],
        _ => &[],
    };
    // Hosts of a switch may have a tree each only where there is one for every host; but many of those may be the same.
    let sources = topology.switch_ids().filter(|switch| !topology.hosts_of(*switch).is_empty()).count();
    let near = policy.vlans_max.filter(|cap| (sources..topology.hosts().len()).contains(cap));
    let uncapped = near.map(|_| Policy { vlans_max: None, ..policy.clone() });
    let by_flow_control = narrower.iter().map(|&flow_control| Policy { flow_control, ..policy.clone() });
    let by_tagging = other_taggings.iter().map(|&tagging| Policy { tagging, ..policy.clone() });
    uncapped.into_iter().chain(by_flow_control).chain(by_tagging).collect()
}
