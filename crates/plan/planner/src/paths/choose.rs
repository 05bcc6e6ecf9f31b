//! Which paths a pair gets: short ones that share few channels with those that it has.
//!
//! ```text
//!   a ─▶ d has a▶b▶d.      a▶b▶c▶d: 3 hops, one of them shared      a▶c▶d: 2 hops, none shared: next
//! ```
//! What a path costs is the derivative of what the pair's own traffic adds to a network that everybody else loads: each channel
//! by how many paths of other pairs take it, compared with the mean, and by what the pair has put on it already.

use std::collections::{BTreeMap, BTreeSet};

use fabric::{ChannelId, HostId, LinkId, Plan, SwitchId, Topology, Tree};

use crate::confined::Confined;

use super::order::ChannelOrder;

/// Most candidates of a pair, the shortest ones.
const CANDIDATES_MAX: usize = 64;

/// The trees of every pair of hosts, and the paths behind them.
pub(super) struct ChosenPaths {
    switches: usize,
    /// `paths[source switch · switches + destination switch]`: by tree, the channels of the path.
    paths: Vec<BTreeMap<usize, Vec<u32>>>,
    /// `sets[source][destination]`: trees, the assigned one first; none to the own switch.
    sets: Vec<Vec<Vec<u32>>>,
}

impl ChosenPaths {
    /// The trees of a pair, the assigned one first; none where both hosts are on one switch.
    pub(super) fn of(&self, source: HostId, destination: HostId) -> impl ExactSizeIterator<Item = usize> + '_ {
        self.sets[source.index()][destination.index()].iter().map(|tree| *tree as usize)
    }

    /// The channels of a pair's path along one of its trees.
    pub(super) fn path(&self, topology: &Topology, source: HostId, destination: HostId, tree: usize) -> &[u32] {
        let [from, to] = [source, destination].map(|host| topology.switch_of(host).index());
        &self.paths[from * self.switches + to][&tree]
    }

    /// Whether every pair that other sets protect against link failures is protected by these.
    pub(super) fn protects_all_of(&self, topology: &Topology, other: &Self) -> bool {
        let mut pairs = topology.host_ids().flat_map(|from| topology.host_ids().map(move |to| (from, to)));
        pairs.all(|(from, to)| self.protects(topology, from, to) || !other.protects(topology, from, to))
    }

    /// Whether no link is in all paths of a pair.
    fn protects(&self, topology: &Topology, source: HostId, destination: HostId) -> bool {
        let links = |tree| self.path(topology, source, destination, tree).iter().map(|channel| link_of(*channel));
        let mut trees = self.of(source, destination);
        let Some(first) = trees.next() else { return true };
        let mut common: Vec<LinkId> = links(first).collect();
        trees.for_each(|tree| common.retain(|link| links(tree).any(|other| other == *link)));
        common.is_empty()
    }

    /// Every tree that some pair has.
    pub(super) fn used(&self) -> impl Iterator<Item = usize> + '_ {
        let trees: BTreeSet<usize> = self.paths.iter().flat_map(|paths| paths.keys().copied()).collect();
        trees.into_iter()
    }

    /// A tree without the branches that no path takes. Cost: O(pairs of switches + links · hops).
    pub(super) fn pruned(&self, topology: &Topology, tree: usize, links: &Tree) -> Tree {
        let channels = self.paths.iter().filter_map(|paths| paths.get(&tree)).flatten();
        let used: BTreeSet<LinkId> = channels.map(|channel| link_of(*channel)).collect();
        let mut kept: BTreeSet<LinkId> = links.links().iter().copied().collect();
        loop {
            let mut degree = vec![0; topology.switches().len()];
            let ends = |link: LinkId| {
                let channel = ChannelId::forward(link);
                [topology.tail(channel).index(), topology.head(channel).index()]
            };
            kept.iter().for_each(|link| ends(*link).into_iter().for_each(|end| degree[end] += 1));
            let before = kept.len();
            kept.retain(|link| used.contains(link) || ends(*link).into_iter().all(|end| degree[end] > 1));
            if kept.len() == before {
                return Tree::new(topology, kept).expect("a tree without some of its leaves is a tree");
            }
        }
    }
}

fn link_of(channel: u32) -> LinkId {
    ChannelId::new(channel as usize).link()
}

/// What a pair may choose from.
#[derive(Clone, Copy)]
pub(super) struct Choice {
    /// Most paths of a pair.
    pub(super) most: usize,
    /// By how many hops a path may be longer than the shortest that the pair could have.
    pub(super) detour: u32,
    /// Most hops of any path.
    pub(super) hops_max: Option<u32>,
}

/// Chooses paths for every pair of hosts. Cost: O(trees · switches²), and for each pair of switches and assigned tree
/// O(most · candidates · hops).
pub(super) fn choose(
    topology: &Topology,
    plan: &Plan,
    trees: &[(Tree, u8)],
    order: &ChannelOrder,
    confined: &Confined,
    choice: Choice,
) -> ChosenPaths {
    let switches = topology.switches().len();
    let hosts = topology.hosts().len();
    let mut chosen = ChosenPaths {
        switches,
        paths: vec![BTreeMap::new(); switches * switches],
        sets: vec![vec![Vec::new(); hosts]; hosts],
    };
    let mut usage = ChannelUsage::new(topology, choice.most);
    let own = |source: HostId, destination: HostId| {
        let vlan = plan.assignment.unicast(source, destination);
        plan.trees.partition_point(|tree| tree.vlan < vlan)
    };
    for from in topology.switch_ids().filter(|switch| !topology.hosts_of(*switch).is_empty()) {
        let mut candidates = candidates(topology, trees, order, confined, from, choice);
        for to in topology.switch_ids().filter(|to| *to != from && !topology.hosts_of(*to).is_empty()) {
            let candidates = &mut candidates[to.index()];
            let mut by_own: BTreeMap<usize, Vec<u32>> = BTreeMap::new();
            for &source in topology.hosts_of(from) {
                for &destination in topology.hosts_of(to) {
                    let own = own(source, destination);
                    let set = by_own.entry(own).or_insert_with(|| {
                        let assigned = plan.trees[own].tree.rooted_at(topology, from).path_to(topology, to);
                        let assigned: Vec<u32> = assigned.iter().map(|channel| channel.index() as u32).collect();
                        let set = usage.set(own, &assigned, candidates);
                        let paths = &mut chosen.paths[from.index() * switches + to.index()];
                        paths.insert(own, assigned);
                        for &tree in &set[1..] {
                            let path = candidates.iter().find(|candidate| candidate.tree == tree as usize);
                            paths.insert(tree as usize, path.expect("it was chosen").channels.clone());
                        }
                        set
                    });
                    chosen.sets[source.index()][destination.index()].clone_from(set);
                }
            }
        }
    }
    chosen
}

/// A path that a pair may get.
struct Candidate {
    tree: usize,
    channels: Vec<u32>,
}

/// `candidates[destination switch]`: the shortest paths from a switch that respect the order and are no longer than the choice
/// allows, each once, by the first tree that has it, ascending by length.
fn candidates(
    topology: &Topology,
    trees: &[(Tree, u8)],
    order: &ChannelOrder,
    confined: &Confined,
    from: SwitchId,
    choice: Choice,
) -> Vec<Vec<Candidate>> {
    let switches = topology.switches().len();
    let mut candidates: Vec<Vec<Candidate>> = (0..switches).map(|_| Vec::new()).collect();
    let mut known: Vec<BTreeSet<Vec<u32>>> = vec![BTreeSet::new(); switches];
    // `shorter[switch][hops]`: how many paths of fewer hops, or as many, there are.
    let mut shorter: Vec<Vec<usize>> = vec![vec![0; switches]; switches];
    let mut paths: Vec<Option<Vec<u32>>> = vec![None; switches];
    for (tree, (links, lane)) in trees.iter().enumerate() {
        let rooted = links.rooted_at(topology, from);
        paths.fill(None);
        paths[from.index()] = Some(Vec::new());
        for &switch in &rooted.order[1..] {
            let channel = rooted.inward[switch.index()].expect("only the root has none");
            let parent = topology.tail(channel);
            let allowed = order.allows(*lane, rooted.inward[parent.index()], channel)
                && confined.allows(from.index(), parent.index(), switch.index());
            let Some(before) = paths[parent.index()].as_ref().filter(|_| allowed) else { continue };
            if choice.hops_max.is_some_and(|most| before.len() >= most as usize) {
                continue;
            }
            let mut path = before.clone();
            path.push(channel.index() as u32);
            let shorter = &mut shorter[switch.index()][path.len()..];
            let is_wanted = !topology.hosts_of(switch).is_empty() && shorter[0] < CANDIDATES_MAX;
            if is_wanted && known[switch.index()].insert(path.clone()) {
                shorter.iter_mut().for_each(|count| *count += 1);
                candidates[switch.index()].push(Candidate { tree, channels: path.clone() });
            }
            paths[switch.index()] = Some(path);
        }
    }
    for candidates in &mut candidates {
        candidates.sort_by_key(|candidate| candidate.channels.len());
        candidates.truncate(CANDIDATES_MAX);
        if let Some(shortest) = candidates.first().map(|candidate| candidate.channels.len()) {
            candidates.retain(|candidate| candidate.channels.len() - shortest <= choice.detour as usize);
        }
    }
    candidates
}

/// How many paths take each channel: of all pairs so far, and of the pair that is being served.
struct ChannelUsage {
    most: usize,
    /// `slowness[channel]`.
    slowness: Vec<f64>,
    /// `used[channel]`: paths of all pairs so far.
    used: Vec<f64>,
    used_total: f64,
    /// `shares[channel]`: paths of the pair at hand.
    shares: Vec<f64>,
}

impl ChannelUsage {
    fn new(topology: &Topology, most: usize) -> Self {
        let slowness: Vec<f64> = topology.channel_ids().map(|channel| topology.slowness(channel)).collect();
        let none = vec![0.0; slowness.len()];
        Self { most, slowness, used: none.clone(), used_total: 0.0, shares: none }
    }

    /// The trees of a pair: the assigned one, then greedily the candidate that costs least, again and again.
    fn set(&mut self, own: usize, assigned: &[u32], candidates: &[Candidate]) -> Vec<u32> {
        let mut left: Vec<&Candidate> = candidates.iter().filter(|candidate| candidate.channels != assigned).collect();
        let mut set = vec![own as u32];
        let mut taken: Vec<&[u32]> = vec![assigned];
        self.take(assigned);
        while set.len() < self.most {
            let costs = left.iter().map(|candidate| self.cost(&candidate.channels)).enumerate();
            let Some((cheapest, _)) = costs.min_by(|a, b| a.1.total_cmp(&b.1)) else { break };
            let next = left.remove(cheapest);
            self.take(&next.channels);
            taken.push(&next.channels);
            set.push(next.tree as u32);
        }
        taken.into_iter().flatten().for_each(|channel| self.shares[*channel as usize] = 0.0);
        set
    }

    fn take(&mut self, path: &[u32]) {
        for &channel in path {
            self.shares[channel as usize] += 1.0;
            self.used[channel as usize] += 1.0;
        }
        self.used_total += path.len() as f64;
    }

    fn cost(&self, path: &[u32]) -> f64 {
        let mean = self.used_total / self.used.len() as f64;
        let of = |channel: &u32| {
            let (used, shares) = (self.used[*channel as usize], self.shares[*channel as usize]);
            self.slowness[*channel as usize] * ((used + 1.0) / (mean + 1.0) + 1.0 + 2.0 * shares)
        };
        path.iter().map(of).sum()
    }
}
