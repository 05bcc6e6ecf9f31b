//! Broadcasts: trees along which hosts send to everybody, where their own would close a cycle with the rest.
//!
//! By destination a host's own tree carries frames toward it. What it floods goes along it the other way, and the two
//! together may close a cycle. But the way of its unicast frames to each host increases in the numbering of channels, so
//! there is a tree of such ways: the one that reaches each switch by the channel that is numbered lowest. It costs a VLAN and no
//! load. Switches take a tree that is there before one is made for them.
//!
//! ```text
//!   numbering  r▶a 1   r▶b 2   a▶b 3   b▶c 4   a▶c 5        tree of r:  r▶a, r▶b, b▶c: whatever goes along it increases
//! ```
//! Source: the earliest arrival in a temporal graph (B. Bui Xuan, A. Ferreira and A. Jarry, "Computing shortest, fastest, and
//! foremost journeys in dynamic networks", 2003), with numbers for times.

use std::collections::BTreeSet;

use fabric::{
    Assignment, ChannelId, FdbMode, FlowControl, HostId, LinkId, Policy, Resilience, SwitchId, Topology, Tree,
    graph::{Insertion, TopologicalOrder},
};

use crate::{
    dependency::Dependency,
    frames::{self, Flooding, Frames},
    lanes::Lanes,
    merge::without_dead_ends,
    number,
    routing::Routing,
};

/// Trees that a switch tries though they do not increase in the numbering as it is.
const RENUMBERING_TRIES_MAX: usize = 8;

/// The same routes with trees for broadcasts that are free of deadlock with all the rest; none if they are so already, need
/// not be, or cannot be within the limits. Cost: O(switches with hosts · trees · switches) at worst.
pub(crate) fn cover(
    topology: &Topology,
    policy: &Policy,
    routing: &Routing,
    lanes: &Lanes,
) -> Option<(Routing, Lanes)> {
    let rank = lanes.rank.as_deref()?;
    let apart = may_be_apart(policy, &routing.assignment);
    if policy.flow_control.lanes().is_none() || policy.fdb == FdbMode::Learned || !apart {
        return None;
    }
    if frames::climb(topology, routing, &lanes.lane, rank, Flooding::of(policy)) {
        return None;
    }
    let mut cover = Cover::new(topology, policy, routing, lanes)?;
    let mut left = Vec::new();
    for (tree, root) in frames::floods(topology, &routing.assignment, Flooding::of(policy)) {
        if !cover.admit(tree, root) {
            left.push((tree, root));
        }
    }
    for (own, root) in left {
        let tree = cover.tree_for(root)?;
        let hosts = topology.hosts_of(root).iter().filter(|host| routing.assignment.broadcast(**host) == own);
        cover.moved.extend(hosts.map(|host| (*host, tree)));
    }
    let Cover { trees, lane, orders, moved, .. } = cover;
    let chosen = routing.lane.is_some().then(|| lane.clone());
    let mut routing = Routing { trees, assignment: routing.assignment.clone(), numbering: None, lane: chosen };
    let broadcast = routing.assignment.broadcast_mut();
    moved.into_iter().for_each(|(host, tree)| broadcast[host.index()] = tree);
    let rank: Option<Vec<Vec<u32>>> = orders.into_iter().map(TopologicalOrder::into_rank).collect();
    let lanes = Lanes { count: rank.as_ref().map_or(1, Vec::len), lane, rank };
    number::check_limits(topology, policy, policy.engine, &routing).is_ok().then_some((routing, lanes))
}

/// Whether a host may flood along another tree than the one that it chooses by its own address. A switch-over for a link of
/// the one would leave the other where it is, except by pair.
pub(crate) fn may_be_apart<T>(policy: &Policy, assignment: &Assignment<T>) -> bool {
    policy.resilience == Resilience::None || matches!(assignment, Assignment::Pair { .. })
}

/// Trees so far, and everything that goes along them.
struct Cover<'a> {
    topology: &'a Topology,
    trees: Vec<Tree>,
    lane: Vec<u8>,
    orders: Vec<TopologicalOrder>,
    /// How many trees there may be, and how many were there.
    trees_max: usize,
    own: usize,
    lanes_max: usize,
    moved: Vec<(HostId, usize)>,
}

impl<'a> Cover<'a> {
    /// None if the lanes do not prove what they should.
    fn new(topology: &'a Topology, policy: &Policy, routing: &Routing, lanes: &Lanes) -> Option<Self> {
        let rank = lanes.rank.as_deref()?;
        let mut orders: Vec<TopologicalOrder> = rank.iter().map(|rank| TopologicalOrder::by_number(rank)).collect();
        let (lane, flooding) = ((lanes.lane.as_slice(), rank.len()), Flooding::of(policy));
        let unicast = frames::dependencies(topology, routing, lane, Frames::Unicast, flooding);
        for (order, unicast) in orders.iter_mut().zip(unicast) {
            let number = |channel: ChannelId| channel.index() as u32;
            let unicast: Vec<Dependency> = unicast.iter().map(|(from, to)| (number(from), number(to))).collect();
            order.insert_all(&unicast)?;
        }
        let lanes_max = match policy.flow_control {
            FlowControl::Pfc(lanes) => usize::from(lanes),
            FlowControl::None | FlowControl::Pause => 1,
        };
        Some(Self {
            topology,
            trees: routing.trees.clone(),
            lane: lanes.lane.clone(),
            orders,
            trees_max: number::capacity(topology, policy),
            own: routing.trees.len(),
            lanes_max,
            moved: Vec::new(),
        })
    }

    /// Lets a switch flood a tree, if that closes no cycle.
    fn admit(&mut self, tree: usize, root: SwitchId) -> bool {
        let turns = turns(self.topology, &self.trees[tree], root);
        self.orders[usize::from(self.lane[tree])].insert_all(&turns).is_some()
    }

    /// A tree that a switch may flood: one that is there, the latest first, else a new one.
    fn tree_for(&mut self, root: SwitchId) -> Option<usize> {
        let increases = |cover: &Self, tree: &usize| {
            let order = &cover.orders[usize::from(cover.lane[*tree])];
            turns(cover.topology, &cover.trees[*tree], root).iter().all(|turn| order.respects(*turn))
        };
        let found = (0..self.trees.len()).rev().find(|tree| increases(self, tree));
        if let Some(tree) = found.filter(|tree| self.admit(*tree, root)) {
            return Some(tree);
        }
        let latest = (self.own..self.trees.len()).rev().take(RENUMBERING_TRIES_MAX);
        if let Some(tree) = latest.into_iter().find(|tree| self.admit(*tree, root)) {
            return Some(tree);
        }
        let (tree, lane) = self.new_tree(root)?;
        self.trees.push(tree);
        self.lane.push(lane);
        let tree = self.trees.len() - 1;
        self.admit(tree, root).then_some(tree)
    }

    /// A tree that increases from a switch on, in a lane that there is, or any tree in a lane of its own.
    fn new_tree(&mut self, root: SwitchId) -> Option<(Tree, u8)> {
        if self.trees.len() >= self.trees_max {
            return None;
        }
        let lanes = 0..self.orders.len();
        let increasing = |lane| Some((earliest(self.topology, &self.orders[lane], root)?, lane as u8));
        let increasing = lanes.clone().find_map(increasing);
        let grown = increasing.or_else(|| {
            let mut lanes = lanes;
            lanes.find_map(|lane| Some((grown(self.topology, &mut self.orders[lane], root)?, lane as u8)))
        });
        if grown.is_some() || self.orders.len() >= self.lanes_max {
            return grown;
        }
        let order = TopologicalOrder::by_number(&vec![0; self.topology.channel_count()]);
        self.orders.push(order);
        let lane = self.orders.len() - 1;
        Some((self.trees[0].clone(), lane as u8))
    }
}

/// The dependencies of frames that a switch floods through a tree.
fn turns(topology: &Topology, tree: &Tree, root: SwitchId) -> Vec<Dependency> {
    let rooted = tree.rooted_at(topology, root);
    let number = |channel: ChannelId| channel.index() as u32;
    let turn = |switch: &SwitchId| {
        let last = rooted.inward[switch.index()]?;
        let first = rooted.inward[topology.tail(last).index()]?;
        Some((number(first), number(last)))
    };
    rooted.order.iter().filter_map(turn).collect()
}

/// The tree that reaches every switch from a root by the channel that is numbered lowest; none if a switch with hosts is not
/// reached by increasing numbers.
fn earliest(topology: &Topology, order: &TopologicalOrder, root: SwitchId) -> Option<Tree> {
    let mut channels: Vec<ChannelId> = topology.channel_ids().collect();
    channels.sort_unstable_by_key(|channel| order.rank()[channel.index()]);
    let mut reached: BTreeSet<SwitchId> = BTreeSet::from([root]);
    let mut links = Vec::new();
    for channel in channels {
        // Whatever reached the tail before has a lower number.
        if reached.contains(&topology.tail(channel)) && reached.insert(topology.head(channel)) {
            links.push(channel.link());
        }
    }
    spanning(topology, links)
}

/// A tree from a root each turn of which a numbering allows, or can be made to; none if a switch with hosts is not reached.
/// Channels that are numbered low come first.
fn grown(topology: &Topology, order: &mut TopologicalOrder, root: SwitchId) -> Option<Tree> {
    let before = order.clone();
    let mut channels: Vec<ChannelId> = topology.channel_ids().collect();
    channels.sort_unstable_by_key(|channel| order.rank()[channel.index()]);
    let mut inward: Vec<Option<ChannelId>> = vec![None; topology.switches().len()];
    let mut links = Vec::new();
    let mut grows = true;
    while std::mem::replace(&mut grows, false) {
        for &channel in &channels {
            let (tail, head) = (topology.tail(channel), topology.head(channel));
            let first = inward[tail.index()];
            if head == root || inward[head.index()].is_some() || (tail != root && first.is_none()) {
                continue;
            }
            let turn = first.map(|first| (first.index() as u32, channel.index() as u32));
            if turn.is_none_or(|turn| order.insert(turn) != Insertion::Cycle) {
                inward[head.index()] = Some(channel);
                links.push(channel.link());
                grows = true;
            }
        }
    }
    let tree = spanning(topology, links);
    if tree.is_none() {
        *order = before;
    }
    tree
}

/// The tree of some links less branches on which nobody lives; none if a switch with hosts is not in it.
fn spanning(topology: &Topology, links: Vec<LinkId>) -> Option<Tree> {
    let tree = Tree::new(topology, links).ok()?;
    let start = topology.switch_ids().find(|switch| !topology.hosts_of(*switch).is_empty())?;
    let rooted = tree.rooted_at(topology, start);
    let everybody = (topology.switch_ids())
        .all(|at| at == start || rooted.inward[at.index()].is_some() || topology.hosts_of(at).is_empty());
    everybody.then(|| without_dead_ends(topology, &tree))
}
