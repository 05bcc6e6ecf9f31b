//! Trees that avoid a link, or have a switch as a leaf, grown for units of one tree along a numbering that may still give way.
//!
//! From the root outward, or from what ties several roots together, the cheapest channel is taken whose turn respects
//! the channel order, or can be made to by a new order without closing a cycle. Links of the unit's own tree that no
//! other of its trees avoids yet cost extra: the more of them the new tree does without, the more failures it serves.
//! Busy channels cost more than idle ones.
//!
//! ```text
//!   [r]─[a]─[b]      the unit's tree is r-a-b, r-c-d. Link r-a fails: a is reached over c, d and b,
//!    │       │       so that r-a and a-b ... only a-b is used the other way round; r-c stays, since nothing
//!   [c]─────[d]      else leads out of r
//! ```
//! Where that strands a switch, a second attempt lets frames arrive as early in the numbering as they can, which reaches
//! all that can be reached (the earliest arrival in a temporal graph; B. Bui Xuan, A. Ferreira and A. Jarry, 2003).

use std::{cmp::Reverse, collections::BinaryHeap};

use fabric::{ChannelId, Failure, LinkId, SwitchId, Topology, graph::TopologicalOrder};

use super::unit::dependency;
use crate::{dependency::Dependency, fan::Direction};

/// How many hops a channel may cost more than another if it is the most loaded and the other idle.
const LOAD_WEIGHT: f64 = 8.0;
/// How many hops a way may be longer to do without a link that should be avoided.
const AVOID_WEIGHT: f64 = 8.0;

/// How many hops a way may be longer to do without a turn that nobody takes yet: it constrains the numbering for all that
/// come later.
const NEW_TURN_WEIGHT: f64 = 0.5;
/// The same for a turn that does not respect the channel order as the numbering is.
const RENUMBERING_WEIGHT: f64 = 3.0;

/// What a tree is to be like.
pub(super) struct Wish<'a> {
    pub(super) topology: &'a Topology,
    /// A switch from which frames spread, or toward which they go.
    pub(super) root: SwitchId,
    /// Links that tie it to others of the kind; they stay.
    pub(super) core: &'a [LinkId],
    pub(super) directions: &'a [Direction],
    /// What must not be passed.
    pub(super) failure: Failure,
    /// `avoid[link]`: whether the tree had better do without it.
    pub(super) avoid: &'a [bool],
    /// `busy[channel]`: how busy it is, in relation to the most loaded.
    pub(super) busy: &'a [f64],
}

/// A tree that reaches every switch with hosts, as its links; none if both attempts strand some.
/// The numbering stays as it is but for the order of channels that do not depend on each other.
pub(super) fn grow(wish: &Wish<'_>, mut order: Option<&mut TopologicalOrder>) -> Option<Vec<LinkId>> {
    [Attempt::Cheapest, Attempt::Earliest].into_iter().find_map(|attempt| {
        if attempt == Attempt::Earliest && order.is_none() {
            return None;
        }
        let mut added = Vec::new();
        let entered = spread(wish, attempt, order.as_deref_mut(), &mut added);
        if let Some(order) = order.as_deref_mut() {
            order.withdraw(&added);
        }
        let reached = |switch: SwitchId| entered[switch.index()].is_some();
        let lived_in = |switch: &SwitchId| !wish.topology.hosts_of(*switch).is_empty();
        let links = entered.iter().flatten().flatten().map(|channel| channel.link());
        wish.topology.switch_ids().filter(lived_in).all(reached).then(|| trimmed(wish.topology, links.collect()))
    })
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Attempt {
    Cheapest,
    Earliest,
}

/// By which channels each switch is entered; none where no frame comes.
fn spread(
    wish: &Wish<'_>,
    attempt: Attempt,
    mut order: Option<&mut TopologicalOrder>,
    added: &mut Vec<Dependency>,
) -> Vec<Option<Vec<ChannelId>>> {
    let topology = wish.topology;
    let mut entered: Vec<Option<Vec<ChannelId>>> = vec![None; topology.switches().len()];
    entered[wish.root.index()] = Some(Vec::new());
    for channel in wish.core.iter().flat_map(|&link| [ChannelId::forward(link), ChannelId::backward(link)]) {
        entered[topology.head(channel).index()].get_or_insert_default().push(channel);
    }
    // Costs of a whole way, as integers so that ties break alike everywhere.
    let mut queue: BinaryHeap<Reverse<(u64, ChannelId)>> = BinaryHeap::new();
    let mut reached: Vec<(SwitchId, u64)> =
        topology.switch_ids().filter(|at| entered[at.index()].is_some()).map(|at| (at, 0)).collect();
    loop {
        for (at, so_far) in reached.drain(..) {
            for &next in topology.channels_from(at) {
                if !wish.failure.blocks(topology, next) && entered[topology.head(next).index()].is_none() {
                    let before = entered[at.index()].as_deref().unwrap_or_default();
                    queue.push(Reverse((cost(wish, attempt, so_far, before, next, order.as_deref()), next)));
                }
            }
        }
        let Some(Reverse((so_far, channel))) = queue.pop() else { return entered };
        let (tail, head) = (topology.tail(channel), topology.head(channel));
        if entered[head.index()].is_some() {
            continue;
        }
        if let (Some(before), Some(order)) = (&entered[tail.index()], order.as_deref_mut()) {
            let turns: Vec<Dependency> = turns(wish, before, channel).collect();
            if attempt == Attempt::Earliest && !turns.iter().all(|turn| order.respects(*turn)) {
                continue;
            }
            match order.insert_all(&turns) {
                Some(new) => added.extend(new),
                None => continue,
            }
        }
        entered[head.index()] = Some(vec![channel]);
        reached.push((head, so_far));
    }
}

/// What a way costs that goes on through a channel, after those by which its tail is entered.
fn cost(
    wish: &Wish<'_>,
    attempt: Attempt,
    so_far: u64,
    before: &[ChannelId],
    channel: ChannelId,
    order: Option<&TopologicalOrder>,
) -> u64 {
    if let (Attempt::Earliest, Some(order)) = (attempt, order) {
        return u64::from(match wish.directions[0] {
            Direction::Outward => order.rank()[channel.index()],
            Direction::Inward => u32::MAX - order.rank()[channel.reverse().index()],
        });
    }
    let avoid = if wish.avoid[channel.link().index()] { AVOID_WEIGHT } else { 0.0 };
    let turn = |turn: Dependency| match order {
        Some(order) if order.contains(turn) => 0.0,
        Some(order) if order.respects(turn) => NEW_TURN_WEIGHT,
        Some(_) => RENUMBERING_WEIGHT,
        None => 0.0,
    };
    let turns: f64 = turns(wish, before, channel).map(turn).sum();
    let busy = wish.busy[channel.index()];
    so_far + ((1.0 + LOAD_WEIGHT * busy * busy + avoid + turns) * 1024.0) as u64
}

/// The dependencies of frames that go on through a channel.
fn turns(wish: &Wish<'_>, before: &[ChannelId], channel: ChannelId) -> impl Iterator<Item = Dependency> {
    let directions = wish.directions;
    before
        .iter()
        .flat_map(move |&before| directions.iter().map(move |direction| dependency(before, channel, *direction)))
}

/// Links of a tree that tie some of its switches together, ascending.
pub(super) fn core(topology: &Topology, links: &[LinkId], roots: &[SwitchId]) -> Vec<LinkId> {
    prune(topology, links.to_vec(), |switch| !roots.contains(&switch))
}

/// The links of a tree less branches on which nobody lives, ascending.
fn trimmed(topology: &Topology, links: Vec<LinkId>) -> Vec<LinkId> {
    prune(topology, links, |switch| topology.hosts_of(switch).is_empty())
}

/// A tree less branches all of whose switches can be done without.
fn prune(topology: &Topology, mut links: Vec<LinkId>, idle: impl Fn(SwitchId) -> bool) -> Vec<LinkId> {
    links.sort_unstable();
    links.dedup();
    let ends = |link: LinkId| [ChannelId::forward(link), ChannelId::backward(link)].map(|end| topology.tail(end));
    let mut beside: Vec<Vec<LinkId>> = vec![Vec::new(); topology.switches().len()];
    links.iter().for_each(|&link| ends(link).into_iter().for_each(|end| beside[end.index()].push(link)));
    let bare = |switch: SwitchId, beside: &[Vec<LinkId>]| beside[switch.index()].len() == 1 && idle(switch);
    let mut waiting: Vec<SwitchId> = topology.switch_ids().filter(|switch| bare(*switch, &beside)).collect();
    while let Some(at) = waiting.pop() {
        let Some(link) = beside[at.index()].pop() else { continue };
        let [a, b] = ends(link);
        let other = if a == at { b } else { a };
        beside[other.index()].retain(|known| *known != link);
        if bare(other, &beside) {
            waiting.push(other);
        }
    }
    let mut left: Vec<LinkId> = beside.into_iter().flatten().collect();
    left.sort_unstable();
    left.dedup();
    left
}
