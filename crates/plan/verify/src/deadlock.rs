//! Deadlock: no cycle of channels may exist in which each waits for the next.
//!
//! A frame that fills a channel waits for the channel that it takes next. Where flow control makes switches wait
//! instead of drop, a cycle of such dependencies can stop for good; it cannot if, lane by lane, the channels can be
//! numbered so that every route respects the channel order (Dally and Seitz, 1987; \[Otsuka\] 4.2 for Ethernet).
//! ```text
//!   s0 ─▶ s1     routes s0→s2, s1→s3, s2→s0, s3→s1 all clockwise:
//!    ▲     │     each channel waits for the next one round, for ever
//!   s3 ◀─ s2
//! ```
//! The plan's numbering is held against every dependency that unicast frames were seen to make. What all other frames on the
//! wire add (`wire.rs`) must close no cycle with it either, or the plan is not called proven. Whether or not the numbering
//! stands, channels that lie on no cycle are peeled away (A. B. Kahn, 1962), and among the rest breadth-first
//! searches find a shortest cycle, within a budget.

use std::collections::VecDeque;

use fabric::{ChannelId, FindingKind, FloodKind, Severity};

use crate::{
    demand::Coverage,
    findings::{Findings, counted, listed},
    state::FabricState,
    unicast::{Dependencies, Traffic},
    wire::{Deadlock, FrameKind, kinds_words},
};

/// Most dependencies that the search for a shortest cycle follows; after that the shortest one so far will do.
const SEARCH_STEPS_MAX: usize = 20_000_000;

/// Kinds that spread through a VLAN.
const FLOODS: [FrameKind; 3] = [FrameKind::Broadcast, FrameKind::Multicast, FrameKind::UnknownUnicast];

/// The same to a switch.
const FLOOD_KINDS: [FloodKind; 3] = [FloodKind::Broadcast, FloodKind::Multicast, FloodKind::UnknownUnicast];

/// Whether the plan carries a certificate, and that certificate holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Proof {
    Valid,
    Absent,
    Broken,
}

/// Judges every lane, and the plan's certificate.
pub(crate) fn judge(state: &FabricState<'_>, traffic: &Traffic, findings: &mut Findings) -> (Proof, Deadlock) {
    let must_hold = state.plan.policy.flow_control.lanes().is_some();
    let cycles: Vec<Option<Vec<ChannelId>>> = traffic.lanes.iter().map(shortest_cycle).collect();
    for (lane, cycle) in cycles.iter().enumerate() {
        let Some(cycle) = cycle else { continue };
        let severity = if must_hold { Severity::Fatal } else { Severity::Note };
        findings.add(severity, FindingKind::DependencyCycle, || {
            let channels = cycle.iter().map(|channel| state.topology.channel_label(*channel));
            let length = counted(cycle.len(), "channel");
            (format!("lane {lane}"), format!("{length} wait for each other in a cycle: {}", listed(channels)))
        });
    }
    let unicast_blocks = cycles.iter().any(Option::is_some);
    let mut open = match must_hold && !unicast_blocks {
        true => judge_others(state, traffic, findings),
        false => Vec::new(),
    };
    let proof = judge_certificate(state, traffic, findings);
    if !must_hold {
        return (proof, Deadlock::NothingWaits);
    }
    // Frames that nobody could follow are not covered.
    if unicast_blocks || proof != Proof::Valid || traffic.coverage == Coverage::Partial {
        open = kinds(state);
    } else if !traffic.spread_is_whole {
        open.extend(kinds(state).into_iter().filter(|kind| FLOODS.contains(kind)));
    }
    open.sort_unstable();
    open.dedup();
    let covered = kinds(state).into_iter().filter(|kind| !open.contains(kind)).collect();
    (proof, Deadlock::Waits { covered, open })
}

/// The kinds of frames that the plan's fabric has on its cables while all links are up, ascending.
fn kinds(state: &FabricState<'_>) -> Vec<FrameKind> {
    use FrameKind as K;
    let mut kinds = vec![K::Unicast];
    kinds
        .extend(FLOODS.into_iter().zip(FLOOD_KINDS).filter(|(_, kind)| !state.is_dropped(*kind)).map(|(kind, _)| kind));
    kinds.extend(state.topology.in_band().map(|_| K::Management));
    kinds
}

/// Holds the plan's numbering against what unicast frames wait for.
fn judge_certificate(state: &FabricState<'_>, traffic: &Traffic, findings: &mut Findings) -> Proof {
    let must_hold = state.plan.policy.flow_control.lanes().is_some();
    let channels = state.topology.channel_count();
    let Some(certificate) = &state.plan.certificate else {
        let severity = if must_hold { Severity::Fatal } else { Severity::Note };
        findings.add(severity, FindingKind::BadCertificate, || {
            ("certificate".to_owned(), "the plan carries no proof that it cannot deadlock".to_owned())
        });
        return Proof::Absent;
    };
    let mut proof = Proof::Valid;
    let lanes = traffic.lanes.len().max(certificate.rank.len());
    for lane in 0..lanes {
        let subject = || format!("lane {lane}");
        let rank = certificate.rank.get(lane);
        if rank.is_none_or(|rank| rank.len() != channels) {
            proof = Proof::Broken;
            findings.fatal(FindingKind::BadCertificate, || {
                let has = rank.map_or(0, Vec::len);
                (subject(), format!("the certificate numbers {has} of {}", counted(channels, "channel")))
            });
            continue;
        }
        let (Some(rank), Some(dependencies)) = (rank, traffic.lanes.get(lane)) else { continue };
        for (from, next) in dependencies.next.iter().enumerate() {
            for &to in next.iter().filter(|to| rank[from] >= rank[**to as usize]) {
                proof = Proof::Broken;
                findings.fatal(FindingKind::BadCertificate, || {
                    let (one, other) = (ChannelId::new(from), ChannelId::new(to as usize));
                    let (a, b) = (state.topology.channel_label(one), state.topology.channel_label(other));
                    let (low, high) = (rank[from], rank[to as usize]);
                    (subject(), format!("frames go from {a}, numbered {low}, to {b}, numbered {high}: not upward"))
                });
            }
        }
    }
    proof
}

/// The kinds of frames that close a cycle of channel dependencies together with unicast and the kinds before them, which do
/// not. Unicast alone has none in these lanes.
fn judge_others(state: &FabricState<'_>, traffic: &Traffic, findings: &mut Findings) -> Vec<FrameKind> {
    let mut together = traffic.lanes.clone();
    let mut open = Vec::new();
    for Beyond { kinds, lanes, severity } in beyond_unicast(state, traffic) {
        let mut closes = false;
        for (lane, more) in lanes.iter().enumerate() {
            if together.len() <= lane {
                together.resize(lane + 1, Dependencies::none(state.topology.channel_count()));
            }
            let mut both = together[lane].clone();
            both.extend(more);
            let Some(cycle) = shortest_cycle(&both) else {
                together[lane] = both;
                continue;
            };
            closes = true;
            findings.add(severity, FindingKind::DependencyCycle, || {
                let channels = listed(cycle.iter().map(|channel| state.topology.channel_label(*channel)));
                let length = counted(cycle.len(), "channel");
                let around = format!("{length} wait for each other in a cycle: {channels}");
                match state.topology.in_band().filter(|_| severity == Severity::Warning) {
                    Some(in_band) => {
                        let message = format!(
                            "frames of data cannot block, but with those of management {around}; give management a \
                             network of its own, or plan with --flow-control none"
                        );
                        (format!("management VLAN {}", in_band.vlan), message)
                    }
                    None => {
                        let kinds = kinds_words(&kinds);
                        (format!("lane {lane}"), format!("unicast frames cannot block, but with {kinds} {around}"))
                    }
                }
            });
        }
        if closes {
            open.extend(kinds);
        }
    }
    open
}

/// The kinds of floods that no switch sends on, ascending.
pub(crate) fn dropped(state: &FabricState<'_>) -> Vec<FrameKind> {
    let on_wire = kinds(state);
    FLOODS.into_iter().filter(|kind| !on_wire.contains(kind)).collect()
}

/// Kinds of frames that are judged together, and what they wait for: `lanes[lane]`.
struct Beyond<'a> {
    kinds: Vec<FrameKind>,
    lanes: &'a [Dependencies],
    severity: Severity,
}

/// What may be on the wire besides unicast (`wire.rs`), in the order in which it is added.
fn beyond_unicast<'a>(state: &FabricState<'_>, traffic: &'a Traffic) -> Vec<Beyond<'a>> {
    use FrameKind as K;
    let on_wire = kinds(state);
    let beyond = |kinds: &[K], lanes, severity| {
        let kinds = kinds.iter().copied().filter(|kind| on_wire.contains(kind)).collect();
        Beyond { kinds, lanes, severity }
    };
    let floods = if traffic.unknown_lanes.is_empty() { &FLOODS[..] } else { &[K::Broadcast, K::Multicast] };
    vec![
        beyond(&[K::Management], traffic.management.as_slice(), Severity::Warning),
        beyond(floods, &traffic.spread_lanes, Severity::Note),
        beyond(&[K::UnknownUnicast], &traffic.unknown_lanes, Severity::Note),
        beyond(&[K::Management], traffic.agents.as_slice(), Severity::Note),
    ]
}

/// A shortest cycle of dependencies, from its lowest channel on.
fn shortest_cycle(dependencies: &Dependencies) -> Option<Vec<ChannelId>> {
    let next = &dependencies.next;
    let on_cycle = peel(next);
    let mut best: Option<Vec<u32>> = None;
    let mut steps = 0;
    let mut before = vec![u32::MAX; next.len()];
    for start in (0..next.len()).filter(|&channel| on_cycle[channel]) {
        // Two channels are the least that a cycle can have: a switch never sends a frame back where it came from.
        if steps > SEARCH_STEPS_MAX || best.as_ref().is_some_and(|cycle| cycle.len() <= 2) {
            break;
        }
        before.fill(u32::MAX);
        let mut queue = VecDeque::from([start]);
        let closing = 'search: loop {
            let Some(at) = queue.pop_front() else { break None };
            for &to in next[at].iter().filter(|to| on_cycle[**to as usize]) {
                steps += 1;
                if to as usize == start {
                    break 'search Some(at);
                }
                if before[to as usize] == u32::MAX {
                    before[to as usize] = at as u32;
                    queue.push_back(to as usize);
                }
            }
        };
        let Some(mut at) = closing else { continue };
        let mut cycle = vec![at as u32];
        while at != start {
            at = before[at] as usize;
            cycle.push(at as u32);
        }
        cycle.reverse();
        if best.as_ref().is_none_or(|best| cycle.len() < best.len()) {
            best = Some(cycle);
        }
    }
    best.map(|cycle| cycle.into_iter().map(|channel| ChannelId::new(channel as usize)).collect())
}

/// Which channels are left after those without a dependency before them, and those without one after, are taken away
/// again and again: all that lie on cycles, or between two.
fn peel(next: &[Vec<u32>]) -> Vec<bool> {
    let mut previous: Vec<Vec<u32>> = vec![Vec::new(); next.len()];
    for (from, following) in next.iter().enumerate() {
        following.iter().for_each(|&to| previous[to as usize].push(from as u32));
    }
    let mut left = vec![true; next.len()];
    for (ahead, behind) in [(next, previous.as_slice()), (previous.as_slice(), next)] {
        let mut waiting: Vec<usize> =
            behind.iter().map(|before| before.iter().filter(|&&at| left[at as usize]).count()).collect();
        let mut free: Vec<usize> = (0..next.len()).filter(|&at| left[at] && waiting[at] == 0).collect();
        while let Some(at) = free.pop() {
            left[at] = false;
            for &to in ahead[at].iter().filter(|to| left[**to as usize]) {
                waiting[to as usize] -= 1;
                if waiting[to as usize] == 0 {
                    free.push(to as usize);
                }
            }
        }
    }
    left
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cycle(next: &[&[u32]]) -> Option<Vec<usize>> {
        let dependencies = Dependencies { next: next.iter().map(|to| to.to_vec()).collect() };
        shortest_cycle(&dependencies).map(|cycle| cycle.into_iter().map(ChannelId::index).collect())
    }

    #[test]
    fn the_shortest_of_several_cycles_is_found() {
        assert_eq!(cycle(&[&[1], &[2], &[0, 3], &[4], &[3]]), Some(vec![3, 4]));
        assert_eq!(cycle(&[&[1], &[2], &[3], &[0, 1]]), Some(vec![1, 2, 3]));
    }

    #[test]
    fn what_only_converges_is_no_cycle() {
        assert_eq!(cycle(&[&[1, 2], &[3], &[3], &[]]), None);
        assert_eq!(cycle(&[]), None);
    }
}
