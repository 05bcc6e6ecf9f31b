//! Places what a failure cuts: unit by unit on trees that it leaves whole, the least loaded that respects the order first.

mod add;
mod beside;
mod choose;
mod resettle;

use std::{collections::BTreeMap, rc::Rc};

use fabric::{Failure, HostId, LinkId, Proof, SwitchId, Tree, VlanId, graph::TopologicalOrder};

use self::beside::On;
use super::{
    ExtraTreePolicy, LOAD_FACTOR, Move, Protection, ProtectionRequest, TooFewTrees, broadcast_tree,
    group::{self, Copier, Copies},
    journal::NumberingJournal,
    must_climb, orders, survives,
    unit::{Rooted, Stream, Trace, Unit},
};
use crate::{
    measure::Measure,
    replan::{Cycles, unit},
};

/// How many links are protected together, at least.
const GROUP_LINKS_MIN: usize = 4;
/// How often a failure is tried on a numbering, what found no place being placed first the next time.
const ATTEMPTS_MAX: usize = 3;
/// How many trees may be added for units, for each switch with hosts.
const ADDITIONS_PER_SWITCH_MAX: usize = 8;
/// How many more, however few there are.
const ADDITIONS_MORE_MAX: usize = 16;
/// What share of the trees that may be added is for units; the others are left for everybody.
const ADDITIONS_SHARE: (usize, usize) = (3, 4);

/// Everything that is known while failure after failure is prepared for.
pub(super) struct Placer<'a> {
    request: &'a ProtectionRequest<'a>,
    units: Vec<Unit>,
    /// The plan's own trees, then the added ones.
    trees: Vec<Tree>,
    lane: Vec<u8>,
    /// The VLANs that added trees had.
    vlan: Vec<Option<VlanId>>,
    own: usize,
    /// `using[link]`: units whose tree uses it.
    using: Vec<Vec<usize>>,
    /// `known[unit]`: trees that it moves to after some failure.
    known: Vec<Vec<usize>>,
    /// `made[tree]`: trees that were added for units of this one.
    made: Vec<Vec<usize>>,
    /// Trees that were added for everybody.
    common: Vec<usize>,
    /// `near[switch]`: the plan's own trees, those of near switches first; filled as needed.
    near: Vec<Option<Rc<Vec<usize>>>>,
    /// `traces[tree]`, by unit: what it crosses as a whole.
    traces: Vec<BTreeMap<usize, Rc<Trace>>>,
    /// `rooted[tree]`, by root.
    rooted: Vec<BTreeMap<SwitchId, Rc<Rooted>>>,
    /// `base[channel]`: demand while all links are up; `load[channel]`: while one is being protected.
    base: Vec<f64>,
    load: Vec<f64>,
    /// `per_unit[channel]`: how long it takes to carry one unit of demand, in relation to the fastest link.
    per_unit: Vec<f64>,
    limit: f64,
    /// What becomes of units for which no tree is within the limit.
    beyond: Beyond,
    additions_max: usize,
    time_max: f64,
    /// What respects the plan's own certificate.
    first: Option<NumberingJournal>,
    /// The plan's own routes alone.
    plain: Option<NumberingJournal>,
    further: Vec<Further>,
    /// By link's failure: the further numbering of its group.
    group: BTreeMap<Failure, usize>,
}

/// A further numbering.
struct Further {
    journal: NumberingJournal,
    /// Whether other switch-overs may share it.
    shared: bool,
}

/// A unit, or by pair a part of one, that a failure cuts.
struct Cut {
    unit: usize,
    streams: Vec<Stream>,
}

/// What moves after a failure, not yet held on to.
struct Placed {
    moves: Vec<Move>,
    /// Units, and the trees that they move to.
    chosen: Vec<(usize, usize)>,
    /// How long the most loaded channel takes then, in demand on the fastest link.
    peak: f64,
}

/// Whether units may move to where the most loaded channel is beyond the limit, or have a tree added.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Beyond {
    Allowed,
    Refused,
}

/// The state of a placer before anything is placed.
pub(super) struct Bookmark {
    first: Option<usize>,
    trees: usize,
}

impl<'a> Placer<'a> {
    pub(super) fn new(request: &'a ProtectionRequest<'a>) -> Self {
        let topology = request.topology;
        let units = Unit::all(topology, request.traffic, request.routing);
        let trees = request.routing.trees.clone();
        let mut using = vec![Vec::new(); topology.links().len()];
        for (number, unit) in units.iter().enumerate() {
            trees[unit.tree].links().iter().for_each(|link| using[link.index()].push(number));
        }
        let per_unit: Vec<f64> = topology.channel_ids().map(|channel| topology.slowness(channel)).collect();
        let Measure { load: base, time_max: peak, .. } = Measure::of(topology, request.traffic, request.routing);
        let senders = topology.switch_ids().filter(|switch| !topology.hosts_of(*switch).is_empty()).count();
        let (limit, additions_max) = match request.extra_trees {
            ExtraTreePolicy::Balanced => {
                let share = request.extras_max / ADDITIONS_SHARE.1 * ADDITIONS_SHARE.0;
                (LOAD_FACTOR * peak, share.min(ADDITIONS_PER_SWITCH_MAX * senders + ADDITIONS_MORE_MAX))
            }
            ExtraTreePolicy::Sparing => (f64::INFINITY, 0),
        };
        let mut placer = Self {
            request,
            known: vec![Vec::new(); units.len()],
            made: vec![Vec::new(); trees.len()],
            near: vec![None; topology.switches().len()],
            lane: request.lane.to_vec(),
            vlan: vec![None; trees.len()],
            own: trees.len(),
            traces: vec![BTreeMap::new(); trees.len()],
            rooted: vec![BTreeMap::new(); trees.len()],
            common: Vec::new(),
            units,
            trees,
            using,
            load: base.clone(),
            base,
            per_unit,
            limit,
            beyond: Beyond::Allowed,
            additions_max,
            time_max: 0.0,
            first: None,
            plain: None,
            further: Vec::new(),
            group: BTreeMap::new(),
        };
        if must_climb(request) {
            let mut journal = NumberingJournal::new(orders(request));
            for unit in 0..placer.units.len() {
                let streams = placer.units[unit].streams.clone();
                let own = placer.units[unit].tree;
                let trace = placer.rooted(unit, own).trace(topology, &streams);
                let climbs = journal.admit(placer.lane[own], &trace.dependencies);
                assert!(climbs, "the plan's own routes respect its certificate");
            }
            placer.plain = Some(journal.clone());
            placer.first = Some(journal);
        }
        placer
    }

    /// Copies of the plan's trees without whole groups of links, as many groups as there may be trees for. By pair only
    /// some receivers of a sender move, and trees of others serve.
    pub(super) fn prepare(&mut self, links: &[LinkId]) {
        let request = self.request;
        let by_pair = self.units.iter().any(|unit| unit.by_pair);
        let count = (self.additions_max / self.own.max(1)).min(links.len().div_ceil(GROUP_LINKS_MIN));
        if by_pair || count == 0 {
            return;
        }
        let channels = request.topology.channel_count();
        let lanes = request.lane.iter().max().map_or(1, |lane| usize::from(*lane) + 1);
        let (cycles, orders) = if must_climb(request) {
            (Cycles::Forbidden, orders(request))
        } else {
            (Cycles::Allowed, vec![TopologicalOrder::by_number(&vec![0; channels]); lanes])
        };
        let own = (&request.routing.trees[..], request.lane);
        let Some(copier) = Copier::new(request.topology, own, (&self.units, unit(request.traffic)), cycles, orders)
        else {
            return;
        };
        for group in group::groups(request.topology, links, count) {
            let Copies { trees, orders } = copier.copies(&group);
            let mut journal = NumberingJournal::new(orders);
            for (own, tree) in trees {
                let known = |(former, lane, vlan): &(Tree, u8, VlanId)| {
                    *former == tree && *lane == self.lane[own] && !self.vlan.contains(&Some(*vlan))
                };
                let vlan = request.former.iter().find(|former| known(former)).map(|(.., vlan)| *vlan);
                let Some(number) = self.add(tree, self.lane[own], vlan) else { return };
                self.made[own].push(number);
                let users = (0..self.units.len()).filter(|unit| self.units[*unit].tree == own);
                users.for_each(|unit| journal.note_whole(unit, number));
            }
            if must_climb(request) {
                let at = self.keep(Further { journal, shared: false });
                self.group.extend(group.iter().map(|link| (Failure::Link(*link), at)));
            }
        }
        self.additions_max += self.trees.len() - self.own;
        self.additions_max = self.additions_max.min(request.extras_max / ADDITIONS_SHARE.1 * ADDITIONS_SHARE.0);
    }

    /// Units whose tree a failure cuts, and by pair hosts whose broadcasts it cuts: more than zero if it matters.
    pub(super) fn affected(&self, failure: Failure) -> Vec<usize> {
        let broadcasts = self.cut_broadcasts(failure).into_iter().map(HostId::index);
        self.users(failure).into_iter().chain(broadcasts).collect()
    }

    /// Units of hosts that are left, in trees that a failure cuts, ascending.
    pub(super) fn users(&self, failure: Failure) -> Vec<usize> {
        let links = failure.links(self.request.topology);
        let mut users: Vec<usize> = links.iter().flat_map(|link| self.using[link.index()].iter().copied()).collect();
        users.sort_unstable();
        users.dedup();
        let mut survives: BTreeMap<usize, bool> = BTreeMap::new();
        users.retain(|unit| {
            let Unit { root, tree, .. } = self.units[*unit];
            let is_left = !failure.takes(self.request.topology, root);
            is_left && !*survives.entry(tree).or_insert_with(|| self.survives(tree, failure))
        });
        users
    }

    /// Whether frames between hosts that are left still get through a tree after a failure.
    pub(super) fn survives(&self, tree: usize, failure: Failure) -> bool {
        survives(self.request.topology, self.trees[tree].links(), failure)
    }

    /// Where to come back to with [`back_to`](Self::back_to), before anything is placed.
    pub(super) fn bookmark(&self) -> Bookmark {
        Bookmark { first: self.first.as_ref().map(NumberingJournal::mark), trees: self.trees.len() }
    }

    /// Forgets everything that was placed since nothing was.
    pub(super) fn back_to(&mut self, Bookmark { first, trees }: Bookmark) {
        if let (Some(journal), Some(mark)) = (&mut self.first, first) {
            journal.back_to(mark);
        }
        self.forget(trees);
        self.known.iter_mut().for_each(Vec::clear);
        self.time_max = 0.0;
    }

    /// Makes ready for a failure with the plan's own trees, if they carry what is cut within the limit; none, and
    /// nothing has changed, if not. Sparing plans come to that later.
    pub(super) fn place_on_what_is_there(&mut self, failure: Failure) -> Option<(Vec<Move>, Proof)> {
        if self.request.extra_trees == ExtraTreePolicy::Sparing {
            return None;
        }
        let cuts = self.cuts(failure);
        let additions_max = std::mem::take(&mut self.additions_max);
        self.beyond = Beyond::Refused;
        let placed = if must_climb(self.request) {
            let placed = self.attempt_on(On::First, failure, &cuts);
            placed.map(|(placed, journal, _)| self.settle_on(On::First, placed, journal))
        } else {
            let placed = self.attempt(failure, &cuts, None);
            placed.map(|placed| (self.settle(placed), Proof::Unneeded))
        };
        self.beyond = Beyond::Allowed;
        self.additions_max = additions_max;
        placed
    }

    /// Makes ready for a failure: what moves, and why nothing can wait for ever.
    pub(super) fn place(&mut self, failure: Failure) -> Result<(Vec<Move>, Proof), TooFewTrees> {
        let cuts = self.cuts(failure);
        if !must_climb(self.request) {
            let placed = match self.attempt(failure, &cuts, None) {
                Some(placed) => placed,
                None => {
                    self.common_without(failure).ok_or(TooFewTrees)?;
                    self.attempt(failure, &cuts, None).ok_or(TooFewTrees)?
                }
            };
            return Ok((self.settle(placed), Proof::Unneeded));
        }
        if let Some(placed) = self.place_beside_all(failure, &cuts) {
            return Ok(placed);
        }
        let (placed, journal) = self.resettle(failure, &cuts).ok_or(TooFewTrees)?;
        let moves = self.settle(placed);
        Ok((moves, Proof::Drained(self.keep(Further { journal, shared: false }))))
    }

    /// Holds on to what was placed.
    fn settle(&mut self, placed: Placed) -> Vec<Move> {
        let Placed { moves, chosen, peak } = placed;
        for (unit, tree) in chosen {
            if !self.known[unit].contains(&tree) {
                self.known[unit].push(tree);
            }
        }
        self.time_max = self.time_max.max(peak);
        moves
    }

    /// Counts a failure after which nothing moves: the load stays what it is while all links are up.
    pub(super) fn note_nothing_moves(&mut self) {
        self.time_max = self.time_max.max(time_max(&self.base, &self.per_unit));
    }

    pub(super) fn finish(self, moves: Vec<(Failure, Vec<Move>, Proof)>, dividing: &[Failure]) -> Protection {
        let (own, mut moves) = (self.own, moves);
        let mut tree_used = vec![false; self.trees.len()];
        moves.iter().flat_map(|(_, moves, _)| moves).for_each(|change| tree_used[change.tree()] = true);
        let mut numbering_used = vec![false; self.further.len()];
        moves.iter().filter_map(|(.., proof)| numbering(*proof)).for_each(|at| numbering_used[at] = true);
        let (trees, numberings) = (renumbered(own, &tree_used), renumbered(0, &numbering_used));
        for (_, moves, proof) in &mut moves {
            moves.iter_mut().for_each(|change| *change.tree_mut() = trees[change.tree()]);
            *proof = match *proof {
                Proof::Numbering(at) => Proof::Numbering(numberings[at]),
                Proof::Drained(at) => Proof::Drained(numberings[at]),
                proof => proof,
            };
        }
        let added = self.trees.into_iter().zip(self.lane).zip(self.vlan).zip(tree_used).skip(own);
        let ranks = |journal: NumberingJournal| journal.into_ranks().expect("what was admitted respects the order");
        Protection {
            extras: added.filter(|(_, used)| *used).map(|(((tree, lane), vlan), _)| (tree, lane, vlan)).collect(),
            moves,
            rank: self.first.map(ranks),
            numberings: (self.further.into_iter().zip(numbering_used))
                .filter(|(_, used)| *used)
                .map(|(further, _)| ranks(further.journal))
                .collect(),
            time_max: self.time_max,
            links_dividing: dividing.iter().filter(|failure| matches!(failure, Failure::Link(_))).count(),
            switches_dividing: dividing.iter().filter(|failure| matches!(failure, Failure::Switch(_))).count(),
            groups_dividing: dividing.iter().filter(|failure| matches!(failure, Failure::Group(_))).count(),
        }
    }

    fn keep(&mut self, further: Further) -> usize {
        self.further.push(further);
        self.further.len() - 1
    }

    fn cuts(&mut self, failure: Failure) -> Vec<Cut> {
        let users = self.users(failure);
        let cut = |unit: usize| {
            let rooted = self.rooted(unit, self.units[unit].tree);
            let streams = self.units[unit].beyond(self.request.topology, self.request.traffic, &rooted, failure)?;
            Some(Cut { unit, streams })
        };
        users.into_iter().filter_map(cut).collect()
    }

    fn cut_broadcasts(&self, failure: Failure) -> Vec<HostId> {
        let topology = self.request.topology;
        let is_cut = |host: &HostId| {
            let tree = broadcast_tree(&self.request.routing.assignment, *host);
            tree.is_some_and(|tree| !self.survives(tree, failure))
                && !failure.takes(topology, topology.switch_of(*host))
        };
        topology.host_ids().filter(is_cut).collect()
    }

    fn rooted(&mut self, unit: usize, tree: usize) -> Rc<Rooted> {
        let root = self.units[unit].root;
        let known = self.rooted[tree].entry(root);
        known.or_insert_with(|| Rc::new(Rooted::new(self.request.topology, &self.trees[tree], root))).clone()
    }

    /// What is cut, or left of a unit, crosses in a tree.
    fn trace(&mut self, cut: &Cut, tree: usize) -> Rc<Trace> {
        let rooted = self.rooted(cut.unit, tree);
        let trace = || Rc::new(rooted.trace(self.request.topology, &cut.streams));
        if self.units[cut.unit].by_pair {
            trace()
        } else {
            self.traces[tree].entry(cut.unit).or_insert_with(trace).clone()
        }
    }

    /// Moves everything that is cut; none, and nothing has changed, if some of it finds no place.
    fn attempt(
        &mut self,
        failure: Failure,
        cuts: &[Cut],
        mut journal: Option<&mut NumberingJournal>,
    ) -> Option<Placed> {
        let (mark, trees) = (journal.as_ref().map(|journal| journal.mark()), self.trees.len());
        let mut waiting: Vec<&Cut> = cuts.iter().collect();
        for _ in 0..ATTEMPTS_MAX {
            let stuck = match self.move_all(failure, &waiting, journal.as_deref_mut()) {
                Ok(placed) => return Some(placed),
                Err(stuck) => stuck,
            };
            self.forget(trees);
            if let (Some(journal), Some(mark)) = (journal.as_deref_mut(), mark) {
                journal.back_to(mark);
            }
            // What found no place comes first the next time.
            let stuck = stuck?;
            if stuck == 0 {
                return None;
            }
            waiting[..=stuck].rotate_right(1);
        }
        None
    }

    /// Moves what waits, in this order; else the position of what found no place, if a unit found none.
    fn move_all(
        &mut self,
        failure: Failure,
        waiting: &[&Cut],
        mut journal: Option<&mut NumberingJournal>,
    ) -> Result<Placed, Option<usize>> {
        self.load.copy_from_slice(&self.base);
        waiting.iter().for_each(|cut| self.lift(cut));
        let mut chosen: Vec<(usize, usize)> = Vec::with_capacity(waiting.len());
        let mut moves = Vec::with_capacity(waiting.len());
        for (at, &cut) in waiting.iter().enumerate() {
            let tree = self.choose(failure, cut, journal.as_deref_mut()).ok_or(Some(at))?;
            chosen.push((cut.unit, tree));
            moves.push(self.change(cut, tree));
        }
        self.placed(failure, chosen, moves).ok_or(None)
    }

    /// What has been moved, with the broadcasts that go along and what the most loaded channel carries then.
    fn placed(&mut self, failure: Failure, chosen: Vec<(usize, usize)>, mut moves: Vec<Move>) -> Option<Placed> {
        let to = chosen.iter().map(|&(unit, tree)| (self.units[unit].owners[0], tree)).collect();
        moves.extend(self.move_broadcasts(failure, &self.cut_broadcasts(failure), &to)?);
        Some(Placed { moves, chosen, peak: time_max(&self.load, &self.per_unit) })
    }

    /// Takes what is cut away from where it was.
    fn lift(&mut self, cut: &Cut) {
        let trace = self.trace(cut, self.units[cut.unit].tree);
        trace.crossed.iter().for_each(|(channel, amount)| self.load[channel.index()] -= amount);
    }

    /// Forgets trees that were added in vain.
    fn forget(&mut self, trees: usize) {
        self.trees.truncate(trees);
        self.lane.truncate(trees);
        self.vlan.truncate(trees);
        self.made.iter_mut().for_each(|made| made.retain(|tree| *tree < trees));
        self.rooted.truncate(trees);
        self.traces.truncate(trees);
        self.common.retain(|tree| *tree < trees);
    }

    fn change(&self, cut: &Cut, tree: usize) -> Move {
        let unit = &self.units[cut.unit];
        let (root, streams) = (unit.root, &cut.streams);
        if unit.by_pair {
            return Move::Receivers { source: unit.owners[0], root, receivers: (*streams[0].peers).clone(), tree };
        }
        let streams = streams.iter().map(|stream| (stream.direction, (*stream.peers).clone())).collect();
        Move::Owners { owners: unit.owners.clone(), root, streams, tree }
    }

    /// By pair, what hosts send to everybody goes where the rest goes, or into any tree that the failure leaves whole.
    fn move_broadcasts(
        &mut self,
        failure: Failure,
        hosts: &[HostId],
        chosen: &BTreeMap<HostId, usize>,
    ) -> Option<Vec<Move>> {
        let mut moves = Vec::with_capacity(hosts.len());
        for &source in hosts {
            let free = |tree: &usize| self.survives(*tree, failure);
            let any = || (0..self.trees.len()).map(|turn| (turn + source.index()) % self.trees.len()).find(free);
            let tree = match chosen.get(&source).copied().or_else(any) {
                Some(tree) => tree,
                None => self.common_without(failure)?,
            };
            moves.push(Move::Broadcast { source, tree });
        }
        Some(moves)
    }
}

/// How long the most loaded channel takes.
fn time_max(load: &[f64], per_unit: &[f64]) -> f64 {
    load.iter().zip(per_unit).map(|(load, per_unit)| load * per_unit).fold(0.0, f64::max)
}

/// The position that each of those that are used has among them, those before `kept` being used in any case.
fn renumbered(kept: usize, used: &[bool]) -> Vec<usize> {
    let mut next = 0;
    let number = |(at, used): (usize, &bool)| {
        let mine = next;
        next += usize::from(*used || at < kept);
        mine
    };
    used.iter().enumerate().map(number).collect()
}

/// The further numbering that a proof names.
fn numbering(proof: Proof) -> Option<usize> {
    match proof {
        Proof::Numbering(at) | Proof::Drained(at) => Some(at),
        Proof::Unneeded | Proof::Certificate => None,
    }
}
