//! Placing what a failed link cuts: unit by unit on trees that avoid it, the least busy that climbs first.

use std::{
    collections::{BTreeMap, BTreeSet},
    rc::Rc,
};

use fabric::{HostId, LinkId, Proof, SwitchId, Traffic, Tree, VlanId};

use super::{
    LOAD_FACTOR, Move, Protection, Request, Thrift, TooFewTrees,
    book::Book,
    both, broadcast_tree,
    group::{self, Copier, Copies},
    grow, must_climb, orders,
    unit::{Hung, Stream, Trace, Unit},
};
use crate::{
    fan::Direction,
    measure::Measure,
    replan::{Cycles, Flow, Mender, Order},
};

/// Trees of others that are looked at for one unit.
const OTHERS_MAX: usize = 24;
/// Trees of others, the least busy ones, that are tried with a new numbering.
const RENUMBERING_TRIES_MAX: usize = 6;
/// Further numberings, the latest, that are tried before there is a new one.
const NUMBERINGS_TRIED_MAX: usize = 2;
/// How many further numberings there may be before none is added only to carry less on the busiest channel.
const NUMBERINGS_FOR_LOAD_MAX: usize = 64;
/// How many links are made ready for together, at least.
const GROUP_LINKS_MIN: usize = 4;
/// How often a failure is tried on a numbering, what found no place being placed first the next time.
const ATTEMPTS_MAX: usize = 3;
/// The same where everybody may have to move.
const RESETTLING_ATTEMPTS_MAX: usize = 12;
/// How many trees may be added for units, for each switch with hosts.
const ADDITIONS_PER_SWITCH_MAX: usize = 8;
/// How many more, however few there are.
const ADDITIONS_MORE_MAX: usize = 16;
/// What share of the trees that may be added is for units; the others are left for everybody.
const ADDITIONS_SHARE: (usize, usize) = (3, 4);
/// How much lower the busiest channel of a unit's way must be for a tree to be added that could be done without.
const ADDITION_GAIN: f64 = 0.8;

/// Everything that is known while link after link is made ready for.
pub(super) struct Placer<'a> {
    request: &'a Request<'a>,
    units: Vec<Unit>,
    /// The plan's own trees, then the added ones.
    trees: Vec<Tree>,
    lane: Vec<u8>,
    /// The VLANs that added trees had.
    vlan: Vec<Option<VlanId>>,
    own: usize,
    /// `using[link]`: units whose tree uses it.
    using: Vec<Vec<usize>>,
    /// `known[unit]`: trees that it moves to when some link fails.
    known: Vec<Vec<usize>>,
    /// `made[tree]`: trees that were added for units of this one.
    made: Vec<Vec<usize>>,
    /// Trees that were added for everybody.
    common: Vec<usize>,
    /// `near[switch]`: the plan's own trees, those of near switches first; filled as needed.
    near: Vec<Option<Rc<Vec<usize>>>>,
    /// `hung[tree]`, by root.
    hung: Vec<BTreeMap<SwitchId, Rc<Hung>>>,
    /// `base[channel]`: ordered pairs while all links are up; `load[channel]`: while one is being made ready for.
    base: Vec<u64>,
    load: Vec<u64>,
    /// `per_pair[channel]`: how long it takes to carry one bit, in relation to the fastest link.
    per_pair: Vec<f64>,
    limit: f64,
    /// What becomes of units for which no tree is within the limit.
    beyond: Beyond,
    additions_max: usize,
    load_max: u64,
    /// What climbs the plan's own certificate.
    first: Option<Book>,
    /// The plan's own routes alone.
    plain: Option<Book>,
    further: Vec<Further>,
    /// By link: the further numbering of its group.
    group: BTreeMap<LinkId, usize>,
}

/// A further numbering.
struct Further {
    book: Book,
    /// Whether other switch-overs may share it.
    shared: bool,
}

/// A unit, or by pair a part of one, that a link's failure cuts.
struct Cut {
    unit: usize,
    streams: Vec<Stream>,
}

/// Which numbering a failure's moves are to climb.
#[derive(Clone, Copy, PartialEq, Eq)]
enum On {
    /// The plan's own.
    First,
    /// The further one of this position.
    Further(usize),
    /// A new one, for others to share or for this failure alone.
    New { shared: bool },
}

/// What moves when a link fails, not yet held on to.
struct Placed {
    moves: Vec<Move>,
    /// Units, and the trees that they move to.
    chosen: Vec<(usize, usize)>,
    /// How long the busiest channel takes then, in pairs on the fastest link.
    peak: f64,
    /// Ordered pairs over the channel that most cross.
    load: u64,
}

/// What becomes of units that a failure does not cut.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Others {
    /// They stay, and the book knows them.
    Stay,
    /// They stay if they climb beside those that were cut, and move as well if they do not.
    Resettled,
}

/// Whether units may move to where the busiest channel is beyond the limit, or have a tree added.
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

/// What has become of a unit's own tree, or of the part of it that waits for a place.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Own {
    /// The dead link is on the way.
    Cut,
    /// It can go on, if it climbs beside the others.
    Whole,
}

/// A tree that a unit could move to.
struct Offer {
    tree: usize,
    peak: f64,
    trace: Trace,
}

impl<'a> Placer<'a> {
    pub(super) fn new(request: &'a Request<'a>) -> Self {
        let topology = request.topology;
        let units = Unit::all(topology, request.routing);
        let trees = request.routing.trees.clone();
        let mut using = vec![Vec::new(); topology.links().len()];
        for (number, unit) in units.iter().enumerate() {
            trees[unit.tree].links().iter().for_each(|link| using[link.index()].push(number));
        }
        let rates = topology.links().iter().map(|link| link.rate_bps);
        let fastest = rates.max().unwrap_or(1) as f64;
        let rate = |channel: fabric::ChannelId| topology.link(channel.link()).rate_bps as f64;
        let per_pair: Vec<f64> = topology.channel_ids().map(|channel| fastest / rate(channel)).collect();
        let load = Measure::of(topology, &Traffic::AllToAll, request.routing).load;
        let base: Vec<u64> = load.into_iter().map(|pairs| pairs.round() as u64).collect();
        let peak = base.iter().zip(&per_pair).map(|(load, per)| *load as f64 * per).fold(0.0, f64::max);
        let senders = topology.switch_ids().filter(|switch| !topology.hosts_of(*switch).is_empty()).count();
        let (limit, additions_max) = match request.thrift {
            Thrift::Balanced => {
                let share = request.extras_max / ADDITIONS_SHARE.1 * ADDITIONS_SHARE.0;
                (LOAD_FACTOR * peak, share.min(ADDITIONS_PER_SWITCH_MAX * senders + ADDITIONS_MORE_MAX))
            }
            Thrift::Sparing => (f64::INFINITY, 0),
        };
        let mut placer = Self {
            request,
            known: vec![Vec::new(); units.len()],
            made: vec![Vec::new(); trees.len()],
            near: vec![None; topology.switches().len()],
            lane: request.lane.to_vec(),
            vlan: vec![None; trees.len()],
            own: trees.len(),
            hung: vec![BTreeMap::new(); trees.len()],
            common: Vec::new(),
            units,
            trees,
            using,
            load: base.clone(),
            base,
            per_pair,
            limit,
            beyond: Beyond::Allowed,
            additions_max,
            load_max: 0,
            first: None,
            plain: None,
            further: Vec::new(),
            group: BTreeMap::new(),
        };
        if must_climb(request) {
            let mut book = Book::new(orders(request));
            for unit in 0..placer.units.len() {
                let streams = placer.units[unit].streams.clone();
                let own = placer.units[unit].tree;
                let trace = placer.hung(unit, own).trace(topology, &streams);
                let climbs = book.admit(placer.lane[own], &trace.dependencies);
                assert!(climbs, "the plan's own routes climb its certificate");
            }
            placer.plain = Some(book.clone());
            placer.first = Some(book);
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
            (Cycles::Allowed, vec![Order::new(&vec![0; channels]); lanes])
        };
        let own = (&request.routing.trees[..], request.lane);
        let Some(copier) = Copier::new(request.topology, own, &self.units, cycles, orders) else { return };
        for group in group::groups(request.topology, links, count) {
            let Copies { trees, orders } = copier.copies(&group);
            let mut book = Book::new(orders);
            for (own, tree) in trees {
                let known = |(former, lane, vlan): &(Tree, u8, VlanId)| {
                    *former == tree && *lane == self.lane[own] && !self.vlan.contains(&Some(*vlan))
                };
                let vlan = request.former.iter().find(|former| known(former)).map(|(.., vlan)| *vlan);
                let Some(number) = self.add(tree, self.lane[own], vlan) else { return };
                self.made[own].push(number);
                let users = (0..self.units.len()).filter(|unit| self.units[*unit].tree == own);
                users.for_each(|unit| book.note_whole(unit, number));
            }
            if must_climb(request) {
                let at = self.keep(Further { book, shared: false });
                self.group.extend(group.iter().map(|link| (*link, at)));
            }
        }
        self.additions_max += self.trees.len() - self.own;
        self.additions_max = self.additions_max.min(request.extras_max / ADDITIONS_SHARE.1 * ADDITIONS_SHARE.0);
    }

    /// Units whose tree uses a link, and by pair hosts whose broadcasts do: more than zero if its failure matters.
    pub(super) fn affected(&self, link: LinkId) -> Vec<usize> {
        let broadcasts = self.cut_broadcasts(link).into_iter().map(HostId::index);
        self.using[link.index()].iter().copied().chain(broadcasts).collect()
    }

    /// Where to come back to with [`back_to`](Self::back_to), before anything is placed.
    pub(super) fn bookmark(&self) -> Bookmark {
        Bookmark { first: self.first.as_ref().map(Book::mark), trees: self.trees.len() }
    }

    /// Forgets everything that was placed since nothing was.
    pub(super) fn back_to(&mut self, Bookmark { first, trees }: Bookmark) {
        if let (Some(book), Some(mark)) = (&mut self.first, first) {
            book.back_to(mark);
        }
        self.forget(trees);
        self.known.iter_mut().for_each(Vec::clear);
        self.load_max = 0;
    }

    /// Makes ready for a link's failure with the plan's own trees, if they carry what is cut within the limit; none, and
    /// nothing has changed, if not. Sparing plans come to that later.
    pub(super) fn place_on_what_is_there(&mut self, link: LinkId) -> Option<(Vec<Move>, Proof)> {
        if self.request.thrift == Thrift::Sparing {
            return None;
        }
        let cuts = self.cuts(link);
        let additions_max = std::mem::take(&mut self.additions_max);
        self.beyond = Beyond::Refused;
        let placed = if must_climb(self.request) {
            let placed = self.attempt_on(On::First, link, &cuts);
            placed.map(|(placed, book, _)| self.settle_on(On::First, placed, book))
        } else {
            let placed = self.attempt(link, &cuts, None, Others::Stay);
            placed.map(|placed| (self.settle(placed), Proof::Unneeded))
        };
        self.beyond = Beyond::Allowed;
        self.additions_max = additions_max;
        placed
    }

    /// Makes ready for a link's failure: what moves, and why nothing can wait for ever.
    pub(super) fn place(&mut self, link: LinkId) -> Result<(Vec<Move>, Proof), TooFewTrees> {
        let cuts = self.cuts(link);
        if !must_climb(self.request) {
            let placed = match self.attempt(link, &cuts, None, Others::Stay) {
                Some(placed) => placed,
                None => {
                    self.common_without(link).ok_or(TooFewTrees)?;
                    self.attempt(link, &cuts, None, Others::Stay).ok_or(TooFewTrees)?
                }
            };
            return Ok((self.settle(placed), Proof::Unneeded));
        }
        if let Some(placed) = self.place_beside_all(link, &cuts) {
            return Ok(placed);
        }
        let additions_max = self.additions_max;
        let mut book = Book::new(Vec::new());
        let mut placed = None;
        for additions_max in [additions_max, 0] {
            if placed.is_none() {
                book = Book::new(orders(self.request));
                self.additions_max = additions_max;
                placed = self.attempt(link, &cuts, Some(&mut book), Others::Resettled);
            }
        }
        self.additions_max = additions_max;
        let moves = match placed {
            Some(placed) => self.settle(placed),
            None => {
                book = Book::new(orders(self.request));
                self.everybody(link, &mut book).ok_or(TooFewTrees)?
            }
        };
        Ok((moves, Proof::Drained(self.keep(Further { book, shared: false }))))
    }

    /// Moves what is cut while everything else stays, on the numbering that leaves the busiest channel within the limit:
    /// the plan's own, else one of the latest further ones, else a new one. Where none does, on the one that comes
    /// nearest.
    fn place_beside_all(&mut self, link: LinkId, cuts: &[Cut]) -> Option<(Vec<Move>, Proof)> {
        let skipped = self.further.len().saturating_sub(NUMBERINGS_TRIED_MAX);
        let shared = (skipped..self.further.len()).filter(|at| self.further[*at].shared).map(On::Further);
        let group = self.group.get(&link).map(|at| On::Further(*at));
        let mut ways: Vec<On> = group.into_iter().chain([On::First]).chain(shared).collect();
        ways.extend([On::New { shared: true }, On::New { shared: false }]);
        let mut best: Option<(f64, On)> = None;
        for on in ways {
            let for_load_alone = best.is_some() && matches!(on, On::New { .. });
            if for_load_alone && (on == On::New { shared: false } || self.further.len() >= NUMBERINGS_FOR_LOAD_MAX) {
                continue;
            }
            let trees = self.trees.len();
            let Some((placed, book, mark)) = self.attempt_on(on, link, cuts) else { continue };
            if placed.peak <= self.limit {
                return Some(self.settle_on(on, placed, book));
            }
            if best.is_none_or(|(least, _)| placed.peak < least) {
                best = Some((placed.peak, on));
            }
            self.forget(trees);
            self.put_back(on, book, mark);
        }
        let (_, on) = best?;
        let (placed, book, _) = self.attempt_on(on, link, cuts)?;
        Some(self.settle_on(on, placed, book))
    }

    /// Tries to move what is cut on a numbering, whose book comes along with where it was before.
    fn attempt_on(&mut self, on: On, link: LinkId, cuts: &[Cut]) -> Option<(Placed, Book, usize)> {
        let nothing = || Book::new(Vec::new());
        let mut book = match on {
            On::First => self.first.take().expect("a book of the plan's own routes"),
            On::Further(at) => std::mem::replace(&mut self.further[at].book, nothing()),
            On::New { shared } => {
                let mut book = self.plain.clone().expect("a book of the plan's own routes");
                if !shared {
                    book.leave_out(link);
                }
                book
            }
        };
        let mark = book.mark();
        match self.attempt(link, cuts, Some(&mut book), Others::Stay) {
            Some(placed) => Some((placed, book, mark)),
            None => {
                self.put_back(on, book, mark);
                None
            }
        }
    }

    fn put_back(&mut self, on: On, mut book: Book, mark: usize) {
        book.back_to(mark);
        match on {
            On::First => self.first = Some(book),
            On::Further(at) => self.further[at].book = book,
            On::New { .. } => {}
        }
    }

    fn settle_on(&mut self, on: On, placed: Placed, book: Book) -> (Vec<Move>, Proof) {
        let moves = self.settle(placed);
        let proof = match on {
            On::First => {
                self.first = Some(book);
                Proof::Certificate
            }
            On::Further(at) => {
                self.further[at].book = book;
                Proof::Numbering(at)
            }
            On::New { shared } => Proof::Numbering(self.keep(Further { book, shared })),
        };
        (moves, proof)
    }

    /// Holds on to what was placed.
    fn settle(&mut self, placed: Placed) -> Vec<Move> {
        let Placed { moves, chosen, load, .. } = placed;
        for (unit, tree) in chosen {
            if !self.known[unit].contains(&tree) {
                self.known[unit].push(tree);
            }
        }
        self.load_max = self.load_max.max(load);
        moves
    }

    pub(super) fn finish(self, moves: Vec<(LinkId, Vec<Move>, Proof)>, links_dividing: usize) -> Protection {
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
        let ranks = |book: Book| book.into_ranks().expect("what was admitted climbs");
        Protection {
            extras: added.filter(|(_, used)| *used).map(|(((tree, lane), vlan), _)| (tree, lane, vlan)).collect(),
            moves,
            rank: self.first.map(ranks),
            numberings: (self.further.into_iter().zip(numbering_used))
                .filter(|(_, used)| *used)
                .map(|(further, _)| ranks(further.book))
                .collect(),
            load_max: self.load_max,
            links_dividing,
        }
    }

    fn keep(&mut self, further: Further) -> usize {
        self.further.push(further);
        self.further.len() - 1
    }

    fn cuts(&mut self, link: LinkId) -> Vec<Cut> {
        let using = self.using[link.index()].clone();
        let cut = |unit: usize| {
            let hung = self.hung(unit, self.units[unit].tree);
            let streams = self.units[unit].beyond(self.request.topology, &hung, link)?;
            Some(Cut { unit, streams })
        };
        using.into_iter().filter_map(cut).collect()
    }

    fn cut_broadcasts(&self, link: LinkId) -> Vec<HostId> {
        let uses = |host: &HostId| {
            let tree = broadcast_tree(&self.request.routing.assignment, *host);
            tree.is_some_and(|tree| self.trees[tree].contains(link))
        };
        self.request.topology.host_ids().filter(uses).collect()
    }

    fn hung(&mut self, unit: usize, tree: usize) -> Rc<Hung> {
        let root = self.units[unit].root;
        let known = self.hung[tree].entry(root);
        known.or_insert_with(|| Rc::new(Hung::new(self.request.topology, &self.trees[tree], root))).clone()
    }

    /// Moves everything that is cut; none, and nothing has changed, if some of it finds no place.
    fn attempt(&mut self, link: LinkId, cuts: &[Cut], mut book: Option<&mut Book>, others: Others) -> Option<Placed> {
        let (mark, trees) = (book.as_ref().map(|book| book.mark()), self.trees.len());
        let mut waiting: Vec<(&Cut, Own)> = cuts.iter().map(|cut| (cut, Own::Cut)).collect();
        let resettled = if others == Others::Resettled { self.not_cut(cuts) } else { Vec::new() };
        waiting.extend(resettled.iter().map(|cut| (cut, Own::Whole)));
        let attempts_max = if others == Others::Resettled { RESETTLING_ATTEMPTS_MAX } else { ATTEMPTS_MAX };
        for _ in 0..attempts_max {
            let stuck = match self.move_all(link, &waiting, book.as_deref_mut()) {
                Ok(placed) => return Some(placed),
                Err(stuck) => stuck,
            };
            self.forget(trees);
            if let (Some(book), Some(mark)) = (book.as_deref_mut(), mark) {
                book.back_to(mark);
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
        link: LinkId,
        waiting: &[(&Cut, Own)],
        mut book: Option<&mut Book>,
    ) -> Result<Placed, Option<usize>> {
        self.load.copy_from_slice(&self.base);
        waiting.iter().filter(|(_, own)| *own == Own::Cut).for_each(|(cut, _)| self.lift(cut));
        let mut placed: Vec<(usize, usize)> = Vec::with_capacity(waiting.len());
        let mut moves = Vec::with_capacity(waiting.len());
        for (at, &(cut, own)) in waiting.iter().enumerate() {
            if let (Own::Whole, Some(book)) = (own, book.as_deref_mut()) {
                let own = self.units[cut.unit].tree;
                let trace = self.hung(cut.unit, own).trace(self.request.topology, &cut.streams);
                if book.admit(self.lane[own], &trace.dependencies) {
                    continue;
                }
                self.lift(cut);
            }
            let tree = self.choose(link, cut, book.as_deref_mut()).ok_or(Some(at))?;
            placed.push((cut.unit, tree));
            moves.push(self.change(cut, tree));
        }
        let chosen = placed.iter().map(|&(unit, tree)| (self.units[unit].owners[0], tree)).collect();
        moves.extend(self.move_broadcasts(link, &self.cut_broadcasts(link), &chosen).ok_or(None)?);
        let peak = self.load.iter().zip(&self.per_pair).map(|(load, per)| *load as f64 * per).fold(0.0, f64::max);
        Ok(Placed { moves, chosen: placed, peak, load: self.load.iter().copied().max().unwrap_or(0) })
    }

    /// Takes what is cut away from where it was.
    fn lift(&mut self, cut: &Cut) {
        let trace = self.hung(cut.unit, self.units[cut.unit].tree).trace(self.request.topology, &cut.streams);
        trace.crossed.iter().for_each(|(channel, pairs)| self.load[channel.index()] -= pairs);
    }

    /// What is not cut, unit by unit.
    fn not_cut(&self, cuts: &[Cut]) -> Vec<Cut> {
        let moved: BTreeMap<usize, &Cut> = cuts.iter().map(|cut| (cut.unit, cut)).collect();
        let rest = |unit: usize| {
            let streams = &self.units[unit].streams;
            let streams = match moved.get(&unit) {
                None => streams.clone(),
                Some(_) if !self.units[unit].by_pair => return None,
                Some(cut) => vec![streams[0].without(self.request.topology, &cut.streams[0])],
            };
            Some(Cut { unit, streams })
        };
        (0..self.units.len()).filter_map(rest).collect()
    }

    /// Forgets trees that were added in vain.
    fn forget(&mut self, trees: usize) {
        self.trees.truncate(trees);
        self.lane.truncate(trees);
        self.vlan.truncate(trees);
        self.made.iter_mut().for_each(|made| made.retain(|tree| *tree < trees));
        self.hung.truncate(trees);
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

    /// By pair, what hosts send to everybody goes where the rest goes, or into any tree without the link.
    fn move_broadcasts(
        &mut self,
        link: LinkId,
        hosts: &[HostId],
        chosen: &BTreeMap<HostId, usize>,
    ) -> Option<Vec<Move>> {
        let mut moves = Vec::with_capacity(hosts.len());
        for &source in hosts {
            let free = |tree: &usize| !self.trees[*tree].contains(link);
            let any = || (0..self.trees.len()).map(|turn| (turn + source.index()) % self.trees.len()).find(free);
            let tree = match chosen.get(&source).copied().or_else(any) {
                Some(tree) => tree,
                None => self.common_without(link)?,
            };
            moves.push(Move::Broadcast { source, tree });
        }
        Some(moves)
    }

    /// The tree that a cut unit moves to: its load is added, and its routes are admitted.
    fn choose(&mut self, link: LinkId, cut: &Cut, mut book: Option<&mut Book>) -> Option<usize> {
        let unit = cut.unit;
        let mine = self.units[unit].tree;
        let own: BTreeSet<usize> = self.known[unit].iter().chain(&self.made[mine]).copied().collect();
        let mut offers = self.offers(link, cut, own.iter().copied());
        if let Some(at) = self.best_within(cut, &offers, self.limit, book.as_deref_mut()) {
            return Some(self.take(offers.swap_remove(at)));
        }
        let others: Vec<usize> = self.others(unit).into_iter().filter(|tree| !own.contains(tree)).collect();
        let mut more = self.offers(link, cut, others.into_iter());
        if let Some(at) = self.best_within(cut, &more, self.limit, book.as_deref_mut()) {
            return Some(self.take(more.swap_remove(at)));
        }
        if self.beyond == Beyond::Refused {
            return None;
        }
        offers.append(&mut more);
        offers.sort_by(|one, other| one.peak.total_cmp(&other.peak).then(one.tree.cmp(&other.tree)));
        let mark = book.as_ref().map(|book| book.mark());
        let last_resort = self.best_within(cut, &offers, f64::INFINITY, book.as_deref_mut());
        if let (Some(mark), Some(book)) = (mark, book.as_deref_mut()) {
            book.back_to(mark);
        }
        let worth = match last_resort {
            Some(at) => ADDITION_GAIN * offers[at].peak,
            None => f64::INFINITY,
        };
        let addition = if worth > 0.0 { self.addition(link, cut, worth, book.as_deref_mut()) } else { None };
        if let Some(offer) = addition {
            return Some(self.take(offer));
        }
        let at = last_resort?;
        let admitted = self.admit(cut, &offers[at], book);
        assert!(admitted, "what was admitted before and taken back is admitted again");
        Some(self.take(offers.swap_remove(at)))
    }

    fn take(&mut self, offer: Offer) -> usize {
        offer.trace.crossed.iter().for_each(|(channel, pairs)| self.load[channel.index()] += pairs);
        offer.tree
    }

    /// What trees would mean for a cut unit; those with the link are left out.
    fn offers(&mut self, link: LinkId, cut: &Cut, trees: impl Iterator<Item = usize>) -> Vec<Offer> {
        let mut offers: Vec<Offer> = Vec::new();
        for tree in trees {
            if !self.trees[tree].contains(link) {
                let trace = self.hung(cut.unit, tree).trace(self.request.topology, &cut.streams);
                offers.push(self.offer(tree, trace));
            }
        }
        offers.sort_by(|one, other| one.peak.total_cmp(&other.peak).then(one.tree.cmp(&other.tree)));
        offers
    }

    fn offer(&self, tree: usize, trace: Trace) -> Offer {
        let busy = |&(channel, pairs): &(fabric::ChannelId, u64)| {
            (self.load[channel.index()] + pairs) as f64 * self.per_pair[channel.index()]
        };
        let peak = trace.crossed.iter().map(busy).fold(0.0, f64::max);
        Offer { tree, peak, trace }
    }

    /// The first of sorted offers that is within a limit and whose routes are admitted: those that climb first.
    fn best_within(&self, cut: &Cut, offers: &[Offer], limit: f64, book: Option<&mut Book>) -> Option<usize> {
        let within = offers.iter().take_while(|offer| offer.peak <= limit).count();
        let Some(book) = book else { return (within > 0).then_some(0) };
        let climbs = |offer: &Offer, book: &mut Book| {
            let whole = !self.units[cut.unit].by_pair && book.holds_whole(cut.unit, offer.tree);
            let order = book.lane(self.lane[offer.tree]);
            whole || offer.trace.dependencies.iter().all(|dependency| order.climbs(*dependency))
        };
        let climbing = (0..within).find(|&at| climbs(&offers[at], book));
        let at = climbing.into_iter().chain(0..within.min(RENUMBERING_TRIES_MAX));
        at.into_iter().find(|&at| self.admit(cut, &offers[at], Some(book)))
    }

    fn admit(&self, cut: &Cut, offer: &Offer, book: Option<&mut Book>) -> bool {
        let Some(book) = book else { return true };
        let by_pair = self.units[cut.unit].by_pair;
        if !by_pair && book.holds_whole(cut.unit, offer.tree) {
            return true;
        }
        let admitted = book.admit(self.lane[offer.tree], &offer.trace.dependencies);
        if admitted && !by_pair {
            book.note_whole(cut.unit, offer.tree);
        }
        admitted
    }

    /// Trees of others that a unit may try: added ones, the latest first, and those of near switches.
    fn others(&mut self, unit: usize) -> Vec<usize> {
        let root = self.units[unit].root;
        let near = self.near(root);
        let added = (self.own..self.trees.len()).rev().take(OTHERS_MAX / 2);
        self.common
            .iter()
            .copied()
            .chain(added)
            .chain(near.iter().copied())
            .take(OTHERS_MAX + self.common.len())
            .collect()
    }

    fn near(&mut self, root: SwitchId) -> Rc<Vec<usize>> {
        if let Some(known) = &self.near[root.index()] {
            return known.clone();
        }
        let topology = self.request.topology;
        let mut of_switch: Vec<Vec<usize>> = vec![Vec::new(); topology.switches().len()];
        for unit in &self.units {
            of_switch[unit.root.index()].push(unit.tree);
        }
        let mut seen = vec![false; topology.switches().len()];
        seen[root.index()] = true;
        let (mut queue, mut trees, mut next) = (vec![root], Vec::new(), 0);
        while let Some(&at) = queue.get(next) {
            next += 1;
            for &tree in &of_switch[at.index()] {
                if !trees.contains(&tree) {
                    trees.push(tree);
                }
            }
            if trees.len() >= OTHERS_MAX {
                break;
            }
            for &channel in topology.channels_from(at) {
                let head = topology.head(channel);
                if !std::mem::replace(&mut seen[head.index()], true) {
                    queue.push(head);
                }
            }
        }
        let near = Rc::new(trees);
        self.near[root.index()] = Some(near.clone());
        near
    }

    /// A new tree for a cut unit, if its busiest channel is worth it; its routes are admitted.
    fn addition(&mut self, link: LinkId, cut: &Cut, worth: f64, mut book: Option<&mut Book>) -> Option<Offer> {
        let (unit, own) = (cut.unit, self.units[cut.unit].tree);
        if self.trees.len() - self.own >= self.additions_max {
            return None;
        }
        let lanes = self.request.rank.map_or(1, <[_]>::len);
        let former: Vec<(Tree, u8, VlanId)> = (self.request.former.iter())
            .filter(|(tree, lane, vlan)| {
                !tree.contains(link) && usize::from(*lane) < lanes && !self.vlan.contains(&Some(*vlan))
            })
            .cloned()
            .collect();
        for (tree, lane, vlan) in former {
            if let Some(offer) = self.try_tree(cut, (tree, lane, Some(vlan)), worth, book.as_deref_mut()) {
                return Some(offer);
            }
        }
        let lane = self.lane[own];
        let directions: Vec<Direction> = cut.streams.iter().map(|stream| stream.direction).collect();
        let root = self.units[unit].root;
        let avoid = self.not_avoided_yet(unit);
        let mut sharers: Vec<SwitchId> = self.using[link.index()]
            .iter()
            .map(|&other| &self.units[other])
            .filter(|other| other.tree == own)
            .map(|other| other.root)
            .collect();
        sharers.dedup();
        // One tree for all who share theirs, else one for this unit alone.
        let own_links = self.trees[own].links().to_vec();
        let by_pair = self.units[unit].by_pair;
        let mut core = if by_pair { Vec::new() } else { grow::core(self.request.topology, &own_links, &sharers) };
        if core.contains(&link) {
            let mended = self.mended(link, own, book.as_deref_mut());
            core = mended.map_or_else(Vec::new, |tree| grow::core(self.request.topology, tree.links(), &sharers));
        }
        let cores = if core.is_empty() { vec![core] } else { vec![core, Vec::new()] };
        for core in cores {
            let order = book.as_deref_mut().map(|book| book.lane(lane));
            let Some(tree) = self.grown(root, &core, &directions, link, &avoid, order) else { continue };
            if let Some(offer) = self.try_tree(cut, (tree, lane, None), worth, book.as_deref_mut()) {
                return Some(offer);
            }
        }
        let tree = self.mended(link, own, book.as_deref_mut())?;
        self.try_tree(cut, (tree, lane, None), worth, book)
    }

    fn try_tree(
        &mut self,
        cut: &Cut,
        (tree, lane, vlan): (Tree, u8, Option<VlanId>),
        worth: f64,
        book: Option<&mut Book>,
    ) -> Option<Offer> {
        let hung = Hung::new(self.request.topology, &tree, self.units[cut.unit].root);
        let trace = hung.trace(self.request.topology, &cut.streams);
        let offer = self.offer(self.trees.len(), trace);
        if offer.peak > worth {
            return None;
        }
        let number = self.add(tree, lane, vlan)?;
        if self.admit(cut, &offer, book) {
            self.made[self.units[cut.unit].tree].push(number);
            return Some(offer);
        }
        self.forget(number);
        None
    }

    fn add(&mut self, tree: Tree, lane: u8, vlan: Option<VlanId>) -> Option<usize> {
        if self.trees.len() - self.own >= self.request.extras_max {
            return None;
        }
        self.trees.push(tree);
        self.lane.push(lane);
        self.vlan.push(vlan);
        self.hung.push(BTreeMap::new());
        Some(self.trees.len() - 1)
    }

    /// `avoid[link]`: links of a unit's tree that none of the trees that it moves to does without.
    fn not_avoided_yet(&self, unit: usize) -> Vec<bool> {
        let own = self.units[unit].tree;
        let mut avoid = vec![false; self.using.len()];
        for &link in self.trees[own].links() {
            let others = self.known[unit].iter().chain(&self.made[own]);
            avoid[link.index()] = others.into_iter().all(|&tree| self.trees[tree].contains(link));
        }
        avoid
    }

    fn grown(
        &mut self,
        root: SwitchId,
        core: &[LinkId],
        directions: &[Direction],
        dead: LinkId,
        avoid: &[bool],
        order: Option<&mut Order>,
    ) -> Option<Tree> {
        let topology = self.request.topology;
        let busy: Vec<f64> =
            self.load.iter().zip(&self.per_pair).map(|(load, per_pair)| *load as f64 * per_pair).collect();
        let peak = busy.iter().copied().fold(1.0, f64::max);
        let busy: Vec<f64> = busy.into_iter().map(|busy| busy / peak).collect();
        let wish = grow::Wish { topology, root, core, directions, dead, avoid, busy: &busy };
        Tree::new(topology, grow::grow(&wish, order)?).ok()
    }

    /// A tree for everybody without a link. A new one does without links that the others all have as well.
    fn common_without(&mut self, link: LinkId) -> Option<usize> {
        let free = |tree: &&usize| !self.trees[**tree].contains(link);
        if let Some(&tree) = self.common.iter().find(free) {
            return Some(tree);
        }
        let all_have = |link: LinkId| self.common.iter().all(|tree| self.trees[*tree].contains(link));
        let avoid: Vec<bool> =
            self.request.topology.link_ids().map(|link| !self.common.is_empty() && all_have(link)).collect();
        let root = self.units.first()?.root;
        let tree = self.grown(root, &[], &[Direction::Outward], link, &avoid, None)?;
        let tree = self.add(tree, 0, None)?;
        self.common.push(tree);
        Some(tree)
    }

    /// A tree without a link, mended for all units that share it, or else for as many as can be.
    fn mended(&mut self, link: LinkId, own: usize, book: Option<&mut Book>) -> Option<Tree> {
        let book = book?;
        let topology = self.request.topology;
        let left: Vec<LinkId> = self.trees[own].links().iter().copied().filter(|other| *other != link).collect();
        let sharers = self.using[link.index()].iter().map(|&other| &self.units[other]).filter(|unit| unit.tree == own);
        let flows: Vec<Flow> = sharers.flat_map(|unit| unit.flows(&unit.streams)).collect();
        let mut stubs: Vec<SwitchId> = both(link).map(|channel| topology.tail(channel)).to_vec();
        stubs.sort_unstable();
        let mut mender = Mender::new(topology, Cycles::Forbidden, vec![book.lane(self.lane[own]).clone()]);
        mender.do_without(&[link]);
        let links = mender.mend(0, &left, &stubs, &flows).or_else(|| mender.regrow(0, &left, &flows))?;
        Tree::new(topology, links).ok()
    }

    /// Moves everybody to one tree: its routes alone cannot close a cycle.
    fn everybody(&mut self, link: LinkId, book: &mut Book) -> Option<Vec<Move>> {
        let tree = self.common_without(link)?;
        self.load.fill(0);
        let mut moves = Vec::new();
        for unit in 0..self.units.len() {
            let cut = Cut { unit, streams: self.units[unit].streams.clone() };
            let trace = self.hung(unit, tree).trace(self.request.topology, &cut.streams);
            let offer = self.offer(tree, trace);
            let admitted = self.admit(&cut, &offer, Some(book));
            assert!(admitted, "routes of one tree close no cycle");
            moves.push(self.change(&cut, tree));
            self.take(offer);
        }
        let hosts = self.request.topology.host_ids();
        let by_pair = hosts.filter(|host| broadcast_tree(&self.request.routing.assignment, *host).is_some());
        moves.extend(by_pair.map(|source| Move::Broadcast { source, tree }));
        self.load_max = self.load_max.max(self.load.iter().copied().max().unwrap_or(0));
        Some(moves)
    }
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
