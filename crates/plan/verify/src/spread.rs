//! What is sent to everybody, and to addresses that nobody has: each VLAN's active topology must be a tree.
//!
//! ```text
//!   s0 ── s1        a cycle: a broadcast never ends          s0 ── s1    s2 ── s3
//!    └─ s2 ┘                                                 two pieces: half the hosts miss it
//! ```
//! Where the active links are a forest and nothing leaks, a broadcast reaches exactly the member hosts of its sender's
//! piece, once each (see the head of `view.rs`), so counting them per piece judges all senders at once. VLANs that are
//! no forest are walked sender by sender, within a budget.
//!
//! Frames for addresses that nobody has meet no entry anywhere and spread in the same way, unless a switch has an entry
//! for the broadcast address, or a port blocks broadcasts, which keeps those out of ways that they still take:
//! ```text
//!   s0 ── s1
//!    └─ s2 ┘   s2 has an entry that takes broadcasts out of the cycle: only frames for unknown addresses go round
//! ```
//! An entry narrows where a frame goes and never widens it. So what an unknown address misses, broadcasts miss as
//! well, but its frames can loop, or reach a host twice, where broadcasts do not: they are walked on their own.
//!
//! What ports do not let out (`PortIntent::blocked`) spreads no further. A plan that drops broadcasts owes them to nobody.
//!
//! Cost: O(links + hosts) a VLAN, near enough.

use std::collections::{BTreeSet, VecDeque};

use fabric::{ChannelId, FindingKind, FloodKind, FloodSet, HostId, LinkId, PortId, Severity, SwitchId, VlanId};

use crate::{
    demand::Demand,
    findings::{Findings, counted, listed},
    receiver::Receiver,
    state::{FabricState, Hop},
    unicast::{Dependencies, Traffic},
    view::{View, ends},
    walk::{Budget, Copies, Decision, Disposition, Step, Walk, walk_frame},
};

/// Judges one VLAN's active topology, and every broadcast in it.
pub(crate) fn judge(
    state: &FabricState<'_>,
    view: &View,
    demand: &Demand<'_>,
    budget: &mut Budget,
    traffic: &mut Traffic,
    findings: &mut Findings,
) {
    let (mut pieces, closing) = view.pieces(state);
    let piece: Vec<SwitchId> = state.topology.switch_ids().map(|switch| pieces.of(switch)).collect();
    if let Some(&link) = closing.first() {
        findings.fatal(FindingKind::NotATree, || {
            let around = cycle_through(state, view, link).into_iter().map(|link| state.topology.link_label(link));
            (format!("VLAN {}", view.vlan), format!("its links close a cycle: {}", listed(around)))
        });
    }
    judge_connection(state, view, demand, &piece, findings);
    let senders = demand.broadcasters(view.vlan);
    let is_forest = closing.is_empty() && view.leaks.is_empty() && view.one_way.is_empty();
    if is_forest && (drops_broadcasts(state) || !narrows_broadcasts(state, view)) {
        judge_forest(state, view, senders, &piece, findings);
        if state.plan.policy.flow_control.lanes().is_some() {
            let switches = |hosts: &[HostId]| hosts.iter().map(|host| state.topology.switch_of(*host)).collect();
            let lane = state.lane(view.vlan);
            note_dependencies(state, view, &switches(senders), FloodSet::ALL, traffic.spread_lane(lane));
            if let Some(anybody) = demand.senders_of_unknown(view.vlan) {
                let unknown = FloodSet::NONE.with(FloodKind::UnknownUnicast);
                note_dependencies(state, view, &switches(anybody), unknown, traffic.unknown_lane(lane));
            }
        }
    } else {
        traffic.spread_is_whole = false;
        if !drops_broadcasts(state) {
            walk_broadcasts(state, view, senders, budget, findings);
        }
    }
}

/// Whether the plan has its switches drop broadcasts. `hygiene.rs` judges whether they do.
fn drops_broadcasts(state: &FabricState<'_>) -> bool {
    state.plan.policy.flood.blocked().contains(FloodKind::Broadcast)
}

/// Whether an entry, or a port that does not let them out, keeps broadcasts of a VLAN out of a way that it has.
fn narrows_broadcasts(state: &FabricState<'_>, view: &View) -> bool {
    let has_entry = |switch| state.lookup(switch, view.vlan, Receiver::Everybody).is_some();
    let mut ports = (0..state.topology.ports().len()).map(PortId::new);
    state.topology.switch_ids().any(has_entry) || ports.any(|port| blocks_broadcasts(state, view.vlan, port))
}

/// Whether a port is a member of a VLAN and does not let its broadcasts out.
fn blocks_broadcasts(state: &FabricState<'_>, vlan: VlanId, port: PortId) -> bool {
    let is_member = state.port_up(port).is_some_and(|intent| intent.is_member(vlan));
    is_member && !state.lets_out(port, FloodKind::Broadcast)
}

/// Judges what more hosts would send to everybody in a VLAN that is a forest.
pub(crate) fn judge_more(state: &FabricState<'_>, view: &View, senders: &[HostId], findings: &mut Findings) {
    let (mut pieces, _) = view.pieces(state);
    let piece: Vec<SwitchId> = state.topology.switch_ids().map(|switch| pieces.of(switch)).collect();
    judge_forest(state, view, senders, &piece, findings);
}

/// Links in several pieces: whatever the VLAN is for, some of its switches cannot reach others.
fn judge_connection(
    state: &FabricState<'_>,
    view: &View,
    demand: &Demand<'_>,
    piece: &[SwitchId],
    findings: &mut Findings,
) {
    let piece_of = |link: LinkId| piece[ends(state, link).0.index()];
    let Some(&first) = view.active.first() else { return };
    let Some(&other) = view.active.iter().find(|link| piece_of(**link) != piece_of(first)) else { return };
    let severity = if demand.is_sent_in(view.vlan) { Severity::Fatal } else { Severity::Warning };
    findings.add(severity, FindingKind::NotATree, || {
        let (one, other) = (state.topology.link_label(first), state.topology.link_label(other));
        (format!("VLAN {}", view.vlan), format!("its links fall into pieces: nothing ties {one} to {other}"))
    });
}

fn judge_forest(state: &FabricState<'_>, view: &View, senders: &[HostId], piece: &[SwitchId], findings: &mut Findings) {
    if drops_broadcasts(state) {
        return;
    }
    let piece_of = |host: HostId| piece[state.topology.switch_of(host).index()];
    let hears = |host: HostId| view.hop[state.topology.host(host).port.index()] == Hop::Host(host);
    let mut hearers = vec![0_usize; piece.len()];
    for host in state.topology.host_ids().filter(|host| hears(*host)) {
        hearers[piece_of(host).index()] += 1;
    }
    for &source in senders {
        let reached = hearers[piece_of(source).index()] - usize::from(hears(source));
        let missed = state.topology.hosts().len() - 1 - reached;
        if missed > 0 {
            findings.fatal(FindingKind::MissedBroadcast, || {
                let deaf = state
                    .topology
                    .host_ids()
                    .filter(|host| *host != source && !(hears(*host) && piece_of(*host) == piece_of(source)));
                missed_broadcast(state, view, source, deaf, missed)
            });
        }
    }
}

/// Notes which channels follow each other when frames of some kinds spread from these switches, in a VLAN that is a forest.
pub(crate) fn note_dependencies(
    state: &FabricState<'_>,
    view: &View,
    origins: &BTreeSet<SwitchId>,
    kinds: FloodSet,
    dependencies: &mut Dependencies,
) {
    for &origin in origins {
        let passes = |port: PortId| kinds.iter().any(|kind| state.lets_out(port, kind));
        walk_forest(state, view, origin, passes, |inward, onward| {
            dependencies.insert(inward.index() as u32, onward.index() as u32);
        });
    }
}

/// Every two channels that follow each other on the way from a switch to all others, by ports that pass, in a VLAN that is a
/// forest.
pub(crate) fn walk_forest(
    state: &FabricState<'_>,
    view: &View,
    origin: SwitchId,
    may_pass: impl Fn(PortId) -> bool,
    mut follow: impl FnMut(ChannelId, ChannelId),
) {
    let topology = state.topology;
    let mut stack: Vec<(SwitchId, Option<ChannelId>)> = vec![(origin, None)];
    while let Some((at, inward)) = stack.pop() {
        for &channel in topology.channels_from(at) {
            let port = topology.tail_port(channel);
            let passes = matches!(view.hop[port.index()], Hop::Switch { .. }) && may_pass(port);
            if !passes || inward.is_some_and(|inward| inward.link() == channel.link()) {
                continue;
            }
            if let Some(inward) = inward {
                follow(inward, channel);
            }
            stack.push((topology.head(channel), Some(channel)));
        }
    }
}

fn missed_broadcast(
    state: &FabricState<'_>,
    view: &View,
    source: HostId,
    deaf: impl Iterator<Item = HostId>,
    missed: usize,
) -> (String, String) {
    let names = listed(deaf.map(|host| state.host_name(host)));
    let message = format!("its broadcasts in VLAN {} miss {}: {names}", view.vlan, counted(missed, "host"));
    (state.host_name(source).to_owned(), message)
}

/// Walks every sender's broadcast, and what it sends to unknown addresses where that spreads in another way.
fn walk_broadcasts(
    state: &FabricState<'_>,
    view: &View,
    senders: &[HostId],
    budget: &mut Budget,
    findings: &mut Findings,
) {
    let mut narrowed: Vec<HostId> = Vec::new();
    for &source in senders {
        if budget.is_spent() {
            return;
        }
        let walk = walk_frame(state, source, Receiver::Everybody);
        budget.spend(&walk);
        if !judge_copies(state, view, &walk, "a broadcast", findings) {
            return;
        }
        let deaf: Vec<HostId> =
            state.topology.host_ids().filter(|host| *host != source && copies(&walk, *host) == 0).collect();
        if !deaf.is_empty() {
            let missed = deaf.len();
            findings.fatal(FindingKind::MissedBroadcast, || {
                missed_broadcast(state, view, source, deaf.into_iter(), missed)
            });
        }
        let narrows = |step: &Step| {
            let switch = state.topology.port(step.ingress).switch;
            step.decision == Decision::Entry
                || state.topology.port_ids(switch).any(|port| blocks_broadcasts(state, step.vlan, port))
        };
        if walk.steps.iter().any(narrows) {
            narrowed.push(source);
        }
    }
    for source in narrowed {
        if budget.is_spent() {
            return;
        }
        let walk = walk_frame(state, source, Receiver::Nobody);
        budget.spend(&walk);
        if !judge_copies(state, view, &walk, "a frame for an unknown address", findings) {
            return;
        }
    }
}

/// Judges whether a frame ends, and how often hosts get it; false if it does not end.
fn judge_copies(state: &FabricState<'_>, view: &View, walk: &Walk, what: &str, findings: &mut Findings) -> bool {
    let sender = state.host_name(walk.source);
    if matches!(walk.disposition, Disposition::Looped { .. } | Disposition::Abandoned) {
        findings.fatal(FindingKind::BroadcastLoop, || {
            (format!("VLAN {}", view.vlan), format!("{what} of {sender} {}", walk.outcome(state.topology)))
        });
        return false;
    }
    for host in state.topology.host_ids() {
        let (count, wanted) = (copies(walk, host), Copies::from(host != walk.source));
        if count > wanted {
            findings.fatal(FindingKind::DuplicateDelivery, || {
                let name = state.host_name(host);
                let message = format!("{what} in VLAN {} reaches {name} {count} times, not {wanted}", view.vlan);
                (sender.to_owned(), message)
            });
        }
    }
    true
}

/// How many copies of a walked frame a host gets.
fn copies(walk: &Walk, host: HostId) -> Copies {
    walk.deliveries.get(&host).copied().unwrap_or(0)
}

/// The shortest cycle of active links through `closing`, which is its first.
fn cycle_through(state: &FabricState<'_>, view: &View, closing: LinkId) -> Vec<LinkId> {
    let mut beside: Vec<Vec<(SwitchId, LinkId)>> = vec![Vec::new(); state.topology.switches().len()];
    for &link in view.active.iter().filter(|link| **link != closing) {
        let (a, b) = ends(state, link);
        beside[a.index()].push((b, link));
        beside[b.index()].push((a, link));
    }
    let (start, goal) = ends(state, closing);
    let mut from: Vec<Option<(SwitchId, LinkId)>> = vec![None; beside.len()];
    let mut queue = VecDeque::from([start]);
    while let Some(at) = queue.pop_front() {
        for &(next, link) in &beside[at.index()] {
            if next != start && from[next.index()].is_none() {
                from[next.index()] = Some((at, link));
                queue.push_back(next);
            }
        }
    }
    let mut around = vec![closing];
    let mut at = goal;
    while let Some((before, link)) = from[at.index()] {
        around.push(link);
        at = before;
    }
    around
}
