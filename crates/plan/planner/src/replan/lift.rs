//! Lifting: one channel moves in the order, where no route from a sender to some switch respects the order any more.
//!
//! A cable that dies may have been the only way by which routes from a sender respect the order. Then either the
//! channel that would lead on is put right behind the one by which frames arrive, or that one right before it. Trees
//! that are whole but do not respect the order any more must be grown anew, so of all such changes the one that the
//! fewest trees suffer from is made, and only if each of them can be grown.
//!
//! ```text
//!   0 ac   1 cd   2 sb   3 bc   4 ce      s reaches c by bc, but cd comes too early: no way to d.
//!   0 ac   2 sb   3 bc   1 cd   4 ce      cd behind bc: a still reaches d by ac, cd, and now s does as well.
//! ```
//! Source: the annealing of numberings in `engine/balanced` makes the same moves, blindly.

use std::collections::HashMap;

use fabric::{ChannelId, LinkId, SwitchId, graph::TopologicalOrder};

use super::{
    Remains,
    mend::{Flow, Mender},
};
use crate::fan::Direction;

/// Channels that may change their places for one sender.
const MOVES_MAX: usize = 6;

/// Moves that are tried at a time.
const TRIES_MAX: usize = 256;

/// A channel that gets another place.
#[derive(Clone, Copy)]
struct Move {
    channel: ChannelId,
    /// Its place is right behind this one's, or right before it.
    beside: ChannelId,
    behind: bool,
}

/// Changes numberings so that trees that found no way can be grown; none if no change is known that helps and of which no
/// more than `sufferers_max` trees suffer, which it lowers by those that do. `links` are those of the trees that found a
/// way.
/// Cost: O(flows · switches), and O(channels) for each of a bounded number of moves and each tree that it touches.
pub(super) fn lift(
    mender: &mut Mender<'_>,
    trees: &[Remains],
    links: &[Option<Vec<LinkId>>],
    flows: &[Vec<Flow>],
    stuck: &[usize],
    sufferers_max: &mut usize,
) -> Option<Vec<TopologicalOrder>> {
    let mut lanes: Vec<Lane> = (0..mender.orders.len()).map(|lane| Lane::new(mender, lane)).collect();
    let mut is_lifted = false;
    for &number in stuck {
        let Some(root) = only_sender(&flows[number]) else { continue };
        let at = usize::from(trees[number].lane);
        let (mut lane, mut left) = (lanes[at].clone(), *sufferers_max);
        // It may be that others have changed the numbering since: then it is enough to grow it first.
        let helps = lane.reaches_all(mender, root)
            || (0..MOVES_MAX).any(|_| {
                let alike = |(tree, _): &(usize, &Remains)| trees[*tree].lane == trees[number].lane;
                let others =
                    trees.iter().enumerate().filter(alike).filter_map(|(tree, _)| Some((tree, links[tree].as_ref()?)));
                lane.lift(mender, root, others, flows, &mut left) && lane.reaches_all(mender, root)
            });
        if helps {
            (lanes[at], *sufferers_max) = (lane, left);
            is_lifted = true;
        }
    }
    is_lifted.then(|| lanes.iter().map(|lane| TopologicalOrder::by_number(&lane.place)).collect())
}

/// The switch from which all of a tree's frames are sent.
fn only_sender(flows: &[Flow]) -> Option<SwitchId> {
    let first = flows.first()?.root;
    flows.iter().all(|flow| flow.root == first && flow.direction == Direction::Outward).then_some(first)
}

/// A lane's channels in their order.
#[derive(Clone)]
struct Lane {
    climbing: Vec<ChannelId>,
    /// `place[channel]`.
    place: Vec<u32>,
}

impl Lane {
    fn new(mender: &Mender<'_>, lane: usize) -> Self {
        let place = mender.orders[lane].rank().to_vec();
        let mut climbing: Vec<ChannelId> = mender.topology.channel_ids().collect();
        climbing.sort_unstable_by_key(|channel| place[channel.index()]);
        Self { climbing, place }
    }

    fn moved(&self, Move { channel, beside, behind }: Move) -> Self {
        let mut climbing = Vec::with_capacity(self.climbing.len());
        for &at in self.climbing.iter().filter(|at| **at != channel) {
            match (at == beside, behind) {
                (true, true) => climbing.extend([at, channel]),
                (true, false) => climbing.extend([channel, at]),
                (false, _) => climbing.push(at),
            }
        }
        let mut place = self.place.clone();
        (0_u32..).zip(&climbing).for_each(|(number, channel)| place[channel.index()] = number);
        Self { climbing, place }
    }

    /// `arrival[switch]`: the lowest channel by which frames from a switch get there within the channel order.
    fn arrivals(&self, mender: &Mender<'_>, root: SwitchId) -> Vec<Option<ChannelId>> {
        let mut arrival = vec![None; mender.hosts.len()];
        for &channel in self.climbing.iter().filter(|channel| mender.may_use(**channel)) {
            let (tail, head) = (mender.topology.tail(channel), mender.topology.head(channel));
            let leads_on = tail == root || arrival[tail.index()].is_some();
            if leads_on && head != root && arrival[head.index()].is_none() {
                arrival[head.index()] = Some(channel);
            }
        }
        arrival
    }

    /// Switches with hosts that frames from a switch reach within the channel order, besides itself.
    fn reached(&self, mender: &Mender<'_>, root: SwitchId) -> usize {
        let arrivals = self.arrivals(mender, root);
        arrivals.iter().zip(&mender.hosts).filter(|(arrival, hosts)| arrival.is_some() && **hosts > 0).count()
    }

    fn reaches_all(&self, mender: &Mender<'_>, root: SwitchId) -> bool {
        let lived_in = mender.hosts.iter().filter(|hosts| **hosts > 0).count();
        self.reached(mender, root) + usize::from(mender.hosts[root.index()] > 0) == lived_in
    }

    /// Moves one channel so that frames from a switch reach more; false if none is found that other trees can bear.
    fn lift<'t>(
        &mut self,
        mender: &mut Mender<'_>,
        root: SwitchId,
        others: impl Iterator<Item = (usize, &'t Vec<LinkId>)>,
        flows: &[Vec<Flow>],
        sufferers_max: &mut usize,
    ) -> bool {
        let moves = self.moves(mender, root);
        let sufferers = self.sufferers(mender, &moves, others, flows);
        let before = self.reached(mender, root);
        let mut best: Option<(f64, usize, Self)> = None;
        let mut least_first: Vec<(&Move, &Vec<usize>)> = moves.iter().zip(&sufferers).collect();
        least_first.retain(|(_, sufferers)| sufferers.len() <= *sufferers_max);
        least_first.sort_by_key(|(_, sufferers)| sufferers.len());
        for (&at, sufferers) in least_first.into_iter().take(TRIES_MAX) {
            let moved = self.moved(at);
            let more = moved.reached(mender, root).saturating_sub(before);
            let worth = more as f64 / (sufferers.len() + 1) as f64;
            let can_be_grown =
                |tree: &usize| only_sender(&flows[*tree]).is_some_and(|sender| moved.reaches_all(mender, sender));
            if more > 0 && best.as_ref().is_none_or(|(most, ..)| worth > *most) && sufferers.iter().all(can_be_grown) {
                best = Some((worth, sufferers.len(), moved));
            }
        }
        let Some((_, sufferers, moved)) = best else { return false };
        *sufferers_max -= sufferers;
        *self = moved;
        true
    }

    /// Moves after which frames from a switch reach at least one more switch within the channel order.
    fn moves(&self, mender: &Mender<'_>, root: SwitchId) -> Vec<Move> {
        let arrivals = self.arrivals(mender, root);
        let mut moves = Vec::new();
        for &channel in &self.climbing {
            let (tail, head) = (mender.topology.tail(channel), mender.topology.head(channel));
            let Some(arrival) = arrivals[tail.index()].filter(|_| head != root && arrivals[head.index()].is_none())
            else {
                continue;
            };
            moves.push(Move { channel, beside: arrival, behind: true });
            let before = arrivals[mender.topology.tail(arrival).index()];
            if before.is_none_or(|before| self.place[before.index()] < self.place[channel.index()]) {
                moves.push(Move { channel: arrival, beside: channel, behind: false });
            }
        }
        moves
    }

    /// `sufferers[move]`: trees that do not respect the channel order after it.
    fn sufferers<'t>(
        &self,
        mender: &mut Mender<'_>,
        moves: &[Move],
        others: impl Iterator<Item = (usize, &'t Vec<LinkId>)>,
        flows: &[Vec<Flow>],
    ) -> Vec<Vec<usize>> {
        let mut moving: HashMap<u32, Vec<usize>> = HashMap::new();
        moves.iter().enumerate().for_each(|(at, by)| moving.entry(by.channel.index() as u32).or_default().push(at));
        let mut sufferers: Vec<Vec<usize>> = vec![Vec::new(); moves.len()];
        for (tree, links) in others {
            for &(from, to) in mender.dependencies_of(links, &flows[tree]) {
                let places = [self.place[from as usize], self.place[to as usize]];
                // A turn onto a channel that moves down past its predecessor, or off one that moves up past its successor,
                // respects the order no more.
                for (end, behind, other) in [(from, true, places[1]), (to, false, places[0])] {
                    for &at in moving.get(&end).into_iter().flatten().filter(|at| moves[**at].behind == behind) {
                        let limit = self.place[moves[at].beside.index()];
                        let is_passed = if behind { other <= limit } else { other >= limit };
                        if is_passed && sufferers[at].last() != Some(&tree) {
                            sufferers[at].push(tree);
                        }
                    }
                }
            }
        }
        sufferers
    }
}
