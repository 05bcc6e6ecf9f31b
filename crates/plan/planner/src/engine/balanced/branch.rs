//! Local search in one shared tree: reattach a branch elsewhere, if that makes the whole cheaper.
//!
//! A branch is a switch and what is below it. Frames between the branch and the rest cross the channels on the way
//! between its old and its new place in the other direction, or for the first time, or no more; all other channels keep
//! their load. So it suffices to know, for each switch on that way, what the branch exchanges with whatever lies below
//! the switch. Rooting the tree at another switch first makes other branches of the same tree.
//!
//! The moves of `search.rs`, with a tree for each source, look alike but share no loop with these: there load flows one way, so
//! a channel's price depends on the switch below it alone and weights are summed up along the path once for all candidates,
//! whereas a branch here changes every channel of the way by another amount in both directions.
//!
//! ```text
//!        [r]             branch b moves from u to w: between b and what is below
//!       ╱   ╲            a, frames went up to u and no further; now they
//!     [a]   [w]          come down r▶a, a▶u instead
//!      │      ╲
//!     [u]      [b]'
//!      │
//!     [b]
//! ```

use fabric::rng::Rng;

use super::{
    bent_order::Turn,
    net::{NONE, Net},
    price::Prices,
    schedule::{PRICES, SHARED},
    shared_trees::SharedTrees,
};

/// Pairs from a branch and to it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Flow {
    pub(super) out: u64,
    pub(super) into: u64,
}

/// How a switch lies to the branch in question.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// On the way from the branch to the root.
    Above,
    /// Elsewhere.
    Beside,
}

/// The pairs of a tree.
pub(super) trait Demand {
    /// Turns to the branch at a switch, and says what it exchanges with the rest of the tree.
    fn turn_to(&mut self, net: &Net, inward: &[u32], switch: usize) -> Flow;

    /// What the branch exchanges with all that lies at or below a switch, the branch itself left out.
    fn below(&self, switch: usize, place: Place) -> Flow;

    /// Lists the turns that may change if the branch moves, as often as they are used; `way` holds the switches between
    /// its old and new places, both included.
    fn turns(&mut self, net: &Net, inward: &[u32], switch: usize, way: &[u32], turns: &mut Vec<Turn>);

    /// The branch has moved from below one switch to below another.
    fn moved(&mut self, net: &Net, inward: &[u32], switch: usize, from: usize, to: usize);
}

/// Tables kept between sweeps.
pub(super) struct Scratch {
    stamp: Vec<u32>,
    now: u32,
    switches: Vec<u32>,
    moves: Vec<(f64, u32)>,
    way: Vec<u32>,
    old: Vec<Turn>,
    new: Vec<Turn>,
}

impl Scratch {
    pub(super) fn new(net: &Net) -> Self {
        Self {
            stamp: vec![0; net.switches],
            now: 0,
            switches: (0..net.switches as u32).collect(),
            moves: Vec::new(),
            way: Vec::new(),
            old: Vec::new(),
            new: Vec::new(),
        }
    }
}

/// Tries every branch of a tree once; returns visits to channels.
pub(super) fn sweep(
    net: &Net,
    trees: &mut SharedTrees,
    tree: usize,
    demand: &mut dyn Demand,
    prices: &mut Prices,
    scratch: &mut Scratch,
    rng: &mut Rng,
) -> usize {
    let crowded = |channel: &u32| {
        let weight = |channel: u32| prices.weight[channel as usize];
        *channel != NONE && weight(*channel).max(weight(net.reverse(*channel))) > PRICES.negligible
    };
    if !trees.tree(tree).iter().any(crowded) {
        return net.switches / 4;
    }
    let mut switches = std::mem::take(&mut scratch.switches);
    rng.shuffle(&mut switches);
    let mut sweep = Sweep { net, demand, prices, scratch, visits: net.switches / 4 };
    for &switch in &switches {
        let switch = switch as usize;
        let current = trees.tree(tree)[switch];
        if current == NONE {
            continue;
        }
        let branch = Branch { switch, total: sweep.demand.turn_to(net, trees.tree(tree), switch) };
        sweep.visits += 4;
        if branch.total == Flow::default() {
            continue;
        }
        sweep.find_moves(trees.tree(tree), branch);
        for at in 0..sweep.scratch.moves.len().min(SHARED.tries) {
            let channel = sweep.scratch.moves[at].1;
            if sweep.attempt(trees, tree, branch, channel) {
                break;
            }
        }
    }
    let visits = sweep.visits;
    scratch.switches = switches;
    visits
}

/// A branch of a tree, and what it exchanges with the rest.
#[derive(Clone, Copy)]
struct Branch {
    switch: usize,
    total: Flow,
}

/// One sweep over the branches of a tree.
struct Sweep<'a> {
    net: &'a Net,
    demand: &'a mut dyn Demand,
    prices: &'a mut Prices,
    scratch: &'a mut Scratch,
    /// Visits to channels so far.
    visits: usize,
}

impl Sweep<'_> {
    /// Lists the moves of a branch that pay, cheapest first.
    fn find_moves(&mut self, inward: &[u32], Branch { switch, total }: Branch) {
        let Self { net, demand, prices, scratch, visits } = self;
        let net = *net;
        let Scratch { stamp, now, moves, .. } = &mut **scratch;
        moves.clear();
        let current = inward[switch];
        let parent = net.tail(current);
        *now += 1;
        // All ancestors, so that the way from a new place ends where it meets the old one.
        let mut at = parent;
        stamp[at] = *now;
        while inward[at] != NONE {
            at = net.tail(inward[at]);
            stamp[at] = *now;
            *visits += 1;
        }
        let (out, into) = (total.out as f64, total.into as f64);
        let saving = prices.change(net, net.reverse(current), -out) + prices.change(net, current, -into);
        'candidates: for channel in net.into(switch) {
            let to = net.tail(channel);
            if channel == current || to == switch {
                continue;
            }
            let mut change = saving + prices.change(net, net.reverse(channel), out) + prices.change(net, channel, into);
            let mut at = to;
            *visits += 1;
            while stamp[at] != *now {
                if at == switch {
                    continue 'candidates;
                }
                let channel = inward[at];
                let Flow { out: there, into: thence } = demand.below(at, Place::Beside);
                let (there, thence) = (there as f64, thence as f64);
                change += prices.change(net, net.reverse(channel), out - there - thence);
                change += prices.change(net, channel, into - thence - there);
                at = net.tail(channel);
                *visits += 1;
            }
            let meeting = at;
            at = parent;
            while at != meeting {
                let channel = inward[at];
                let Flow { out: there, into: thence } = demand.below(at, Place::Above);
                let (there, thence) = (there as f64, thence as f64);
                change += prices.change(net, net.reverse(channel), thence - (out - there));
                change += prices.change(net, channel, there - (into - thence));
                at = net.tail(channel);
                *visits += 1;
            }
            if change < -1e-9 {
                moves.push((change, channel));
            }
        }
        moves.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    }

    /// Moves a branch, unless an order forbids it.
    fn attempt(&mut self, trees: &mut SharedTrees, tree: usize, branch: Branch, channel: u32) -> bool {
        let Branch { switch, total } = branch;
        let Self { net, demand, prices, scratch, visits } = self;
        let net = *net;
        let Scratch { stamp, now, way, old, new, .. } = &mut **scratch;
        let current = trees.tree(tree)[switch];
        let (from, to) = (net.tail(current), net.tail(channel));
        // The way: up from the new place to where it meets the old one, then the ancestors of the old place up to there.
        way.clear();
        let mut at = to;
        while stamp[at] != *now {
            way.push(at as u32);
            at = net.tail(trees.tree(tree)[at]);
        }
        let meeting = at;
        let beside = way.len();
        at = from;
        while at != meeting {
            way.push(at as u32);
            at = net.tail(trees.tree(tree)[at]);
        }
        way.push(meeting as u32);
        if trees.orders.is_some() {
            old.clear();
            new.clear();
            demand.turns(net, trees.tree(tree), switch, way, old);
        }
        let flows: Vec<(u32, Flow, bool)> = (way.iter().take(way.len() - 1).enumerate())
            .map(|(place, &at)| {
                let above = place >= beside;
                let flow = demand.below(at as usize, if above { Place::Above } else { Place::Beside });
                (trees.tree(tree)[at as usize], flow, above)
            })
            .collect();
        trees.tree_mut(tree)[switch] = channel;
        demand.moved(net, trees.tree(tree), switch, from, to);
        if trees.orders.is_some() {
            demand.turns(net, trees.tree(tree), switch, way, new);
            let lane = trees.lane[tree];
            let orders = trees.orders.as_mut().expect("there are orders");
            if !orders.exchange(net, lane, (old, new), SHARED.reach, visits) {
                trees.tree_mut(tree)[switch] = current;
                demand.moved(net, trees.tree(tree), switch, to, from);
                return false;
            }
        }
        let mut carry = |channel: u32, less: u64, more: u64| {
            let load = &mut trees.load[channel as usize];
            *load = *load + more - less;
            prices.update(net, &trees.load, channel as usize);
        };
        carry(net.reverse(current), total.out, 0);
        carry(current, total.into, 0);
        carry(net.reverse(channel), 0, total.out);
        carry(channel, 0, total.into);
        for (channel, Flow { out, into }, above) in flows {
            let (up, down) = if above {
                ((total.out - out, into), (total.into - into, out))
            } else {
                ((into, total.out - out), (out, total.into - into))
            };
            carry(net.reverse(channel), up.0, up.1);
            carry(channel, down.0, down.1);
        }
        *visits += 2 * way.len() + 4;
        true
    }
}
