//! Fat trees and Clos networks of any depth.
//!
//! Hosts sit on the lowest level only, and every cable joins a level to the next. A frame goes up to some switch and
//! then down, so numbering the up channels before the down channels increases along every route, and no cycle can
//! form. A top switch from which every leaf can be reached downward is the root of trees: each switch below keeps one
//! cable up. Where it has a choice, every choice makes another tree, level by level like the digits of a number. Hosts
//! are then dealt onto the trees so that the cables up and the roots are used evenly (\[Eicker\]: as many VLANs as
//! middle switches), and moved as long as that lowers the most loaded channel.
//!
//! ```text
//!     [t0]   [t1]          VLAN 0: everything through t0      [t0]          VLAN 1:     [t1]
//!      │ ╲   ╱ │           h0 and h2 send in it               ╱  ╲                      ╱  ╲
//!      │   ╳   │           h1 and h3 send in VLAN 1         [a]  [b]                  [a]  [b]
//!     [a]─╱ ╲─[b]                                           h0,h1 h2,h3
//!    h0,h1   h2,h3
//! ```

use std::collections::BTreeMap;

use fabric::{ChannelId, HostId, Policy, SwitchId, Topology, Tree, graph::breadth_first};

use crate::routing::{Routing, Unsuitable};

/// Rounds of moving hosts, each over all hosts of the most loaded channel.
const ROUNDS_MAX: usize = 64;
/// Channel visits spent on moving hosts.
const VISITS_MAX: usize = 60_000_000;

pub(crate) fn route(topology: &Topology, policy: &Policy) -> Result<Vec<Routing>, Unsuitable> {
    let levels = Levels::recognise(topology)?;
    let vlans = policy.vlans.iter().count().min(policy.vlans_max.unwrap_or(usize::MAX)).max(1);
    let trees = levels.trees(topology, vlans)?;
    let mut deal = Deal::new(topology, &trees);
    deal.deal_evenly();
    deal.improve();
    let choice = deal.choice;
    let trees = trees.into_iter().map(|tree| {
        let links = tree.up.into_iter().flatten().map(ChannelId::link);
        Tree::new(topology, links).expect("one cable up for each switch below a root is a tree")
    });
    Ok(vec![Routing::by_source(trees.collect(), choice)])
}

/// A topology in levels.
struct Levels {
    /// `level[switch]`: links to the nearest switch with hosts.
    level: Vec<usize>,
    /// Switches by descending level.
    order: Vec<SwitchId>,
}

impl Levels {
    fn recognise(topology: &Topology) -> Result<Self, Unsuitable> {
        let leaves = topology.switch_ids().filter(|switch| !topology.hosts_of(*switch).is_empty());
        let found = breadth_first(topology.switches().len(), leaves, |switch| topology.neighbours(switch));
        let level =
            topology.switch_ids().map(|switch| found.distance(switch).map_or(usize::MAX, |level| level as usize));
        let level: Vec<usize> = level.collect();
        for channel in topology.channel_ids().step_by(2) {
            let (tail, head) = (topology.tail(channel), topology.head(channel));
            if level[tail.index()].abs_diff(level[head.index()]) != 1 {
                return Err(Unsuitable::new(format!(
                    "cable {} joins two switches of one level",
                    topology.link_label(channel.link())
                )));
            }
        }
        let mut order = found.order;
        order.reverse();
        Ok(Self { level, order })
    }

    fn is_up(&self, topology: &Topology, channel: ChannelId) -> bool {
        self.level[topology.head(channel).index()] > self.level[topology.tail(channel).index()]
    }

    /// Trees from every root and choice of cables up, roots in turn, at most `limit`.
    fn trees(&self, topology: &Topology, limit: usize) -> Result<Vec<UpTree>, Unsuitable> {
        let roots: Vec<(SwitchId, Vec<Vec<ChannelId>>)> = (self.order.iter())
            .filter(|switch| !topology.channels_from(**switch).iter().any(|c| self.is_up(topology, *c)))
            .filter_map(|&root| Some((root, self.choices_below(topology, root)?)))
            .collect();
        if roots.is_empty() {
            return Err(Unsuitable::new("no top switch reaches every leaf downward"));
        }
        let variants = roots.iter().map(|(_, choices)| self.variants(choices, limit)).max().unwrap_or(1);
        let mut trees = Vec::new();
        for variant in 0..variants {
            for (root, choices) in &roots {
                if trees.len() < limit && variant < self.variants(choices, limit) {
                    trees.push(self.tree(topology, *root, choices, variant));
                }
            }
        }
        Ok(trees)
    }

    /// For every switch below `root`: its channels up toward it. None if some leaf is not below it.
    fn choices_below(&self, topology: &Topology, root: SwitchId) -> Option<Vec<Vec<ChannelId>>> {
        let mut below = vec![false; self.level.len()];
        below[root.index()] = true;
        let mut choices = vec![Vec::new(); self.level.len()];
        for &switch in &self.order {
            let up = topology.channels_from(switch).iter().copied();
            let up = up.filter(|channel| self.is_up(topology, *channel) && below[topology.head(*channel).index()]);
            let mut up: Vec<ChannelId> = up.collect();
            // The same order at all switches below the same ones, so that they choose alike and stay close.
            up.sort_by_key(|channel| (topology.head(*channel), topology.head_port(*channel)));
            choices[switch.index()] = up;
            if switch != root {
                below[switch.index()] = !choices[switch.index()].is_empty();
            }
            if self.level[switch.index()] == 0 && !below[switch.index()] {
                return None;
            }
        }
        Some(choices)
    }

    /// How many trees the choices make: the product over levels of the widest choice there.
    fn variants(&self, choices: &[Vec<ChannelId>], limit: usize) -> usize {
        self.widths(choices).iter().fold(1, |product: usize, width| product.saturating_mul(*width)).min(limit)
    }

    /// `widths[level]`: the widest choice at that level; at least 1.
    fn widths(&self, choices: &[Vec<ChannelId>]) -> Vec<usize> {
        let mut widths = vec![1; self.level.iter().max().map_or(0, |top| top + 1)];
        for (level, choices) in self.level.iter().zip(choices) {
            widths[*level] = widths[*level].max(choices.len());
        }
        widths
    }

    /// The tree of a root in which each level takes the choice that its digit of `variant` names.
    fn tree(&self, topology: &Topology, root: SwitchId, choices: &[Vec<ChannelId>], variant: usize) -> UpTree {
        let mut digits = Vec::new();
        let mut rest = variant;
        for width in self.widths(choices) {
            digits.push(rest % width);
            rest /= width;
        }
        let mut up = vec![None; self.level.len()];
        let mut needed = vec![false; self.level.len()];
        for &switch in self.order.iter().rev() {
            let choices = &choices[switch.index()];
            let level = self.level[switch.index()];
            if level == 0 {
                needed[switch.index()] = true;
            }
            if needed[switch.index()] && switch != root {
                let channel = choices[digits[level] % choices.len()];
                needed[topology.head(channel).index()] = true;
                up[switch.index()] = Some(channel);
            }
        }
        let order = self.order.iter().copied().filter(|switch| needed[switch.index()]).collect();
        UpTree { root, up, order }
    }
}

/// A tree in which every switch but the root keeps one channel up.
struct UpTree {
    root: SwitchId,
    /// `up[switch]`.
    up: Vec<Option<ChannelId>>,
    /// Covered switches, parents before children.
    order: Vec<SwitchId>,
}

/// Hosts dealt onto trees, and the loads that follow.
struct Deal<'a> {
    topology: &'a Topology,
    trees: &'a [UpTree],
    /// `below[tree]` by position in its order: hosts at or below the switch.
    below: Vec<Vec<u64>>,
    hosts_of: Vec<u64>,
    choice: Vec<usize>,
    load: Vec<i64>,
}

impl<'a> Deal<'a> {
    fn new(topology: &'a Topology, trees: &'a [UpTree]) -> Self {
        let hosts_of: Vec<u64> = topology.switch_ids().map(|s| topology.hosts_of(s).len() as u64).collect();
        let below = (trees.iter())
            .map(|tree| {
                let mut at: BTreeMap<SwitchId, u64> = tree.order.iter().map(|s| (*s, hosts_of[s.index()])).collect();
                for switch in tree.order.iter().rev() {
                    if let Some(channel) = tree.up[switch.index()] {
                        let hosts = at[switch];
                        *at.get_mut(&topology.head(channel)).expect("parents are covered") += hosts;
                    }
                }
                tree.order.iter().map(|switch| at[switch]).collect()
            })
            .collect();
        let (hosts, channels) = (topology.hosts().len(), topology.channel_count());
        Self { topology, trees, below, hosts_of, choice: vec![0; hosts], load: vec![0; channels] }
    }

    /// Gives each host the tree whose cables up from its leaf, and whose root, fewest hosts use so far. Every leaf begins
    /// with another tree, so that hosts of one place on their leaves, which patterns such as a transpose send to one leaf,
    /// come down to it from different roots.
    fn deal_evenly(&mut self) {
        let mut used = vec![0_u64; self.topology.channel_count()];
        let count = self.trees.len();
        let mut sources = vec![0_u64; count];
        let leaves = self.topology.switch_ids().filter(|switch| !self.topology.hosts_of(*switch).is_empty());
        for (turn, switch) in leaves.enumerate() {
            for &host in self.topology.hosts_of(switch) {
                let cost = |place: usize| {
                    let tree = (place + turn) % count;
                    let path = up_path(self.topology, &self.trees[tree], switch);
                    (path.map(|channel| used[channel.index()]).max().unwrap_or(0), sources[tree], place, tree)
                };
                let tree = (0..count).map(cost).min().expect("there is a tree").3;
                up_path(self.topology, &self.trees[tree], switch).for_each(|channel| used[channel.index()] += 1);
                sources[tree] += 1;
                self.choice[host.index()] = tree;
                self.add(host, tree, 1);
            }
        }
    }

    /// Moves hosts off the most loaded channel while that helps.
    fn improve(&mut self) {
        let mut visits = 0;
        for _ in 0..ROUNDS_MAX {
            let busiest = self.load.iter().copied().max().unwrap_or(0);
            let hot = self.load.iter().position(|&load| load == busiest).map(ChannelId::new);
            let Some(hot) = hot.filter(|_| busiest > 0) else { return };
            let mut moved = false;
            for host in self.topology.host_ids() {
                let from = self.choice[host.index()];
                if !self.crosses(host, from, hot) {
                    continue;
                }
                let before = self.cost(host, from);
                self.add(host, from, -1);
                let best = (0..self.trees.len())
                    .filter(|tree| *tree != from)
                    .map(|tree| {
                        visits += self.trees[tree].order.len();
                        self.add(host, tree, 1);
                        let cost = self.cost(host, tree);
                        self.add(host, tree, -1);
                        (cost, tree)
                    })
                    .min();
                let to = best.filter(|(cost, _)| *cost < before).map_or(from, |(_, tree)| tree);
                self.add(host, to, 1);
                self.choice[host.index()] = to;
                if to != from {
                    moved = true;
                    break;
                }
                if visits > VISITS_MAX {
                    return;
                }
            }
            if !moved {
                return;
            }
        }
    }

    /// The most loaded channel that a host's frames cross in a tree, and the squares of all.
    fn cost(&self, host: HostId, tree: usize) -> (i64, i64) {
        let mut cost = (0, 0);
        self.for_each_channel(host, tree, |channel, _| {
            let load = self.load[channel.index()];
            cost = (cost.0.max(load), cost.1 + load * load);
        });
        cost
    }

    fn crosses(&self, host: HostId, tree: usize, hot: ChannelId) -> bool {
        let mut found = false;
        self.for_each_channel(host, tree, |channel, _| found |= channel == hot);
        found
    }

    fn add(&mut self, host: HostId, tree: usize, sign: i64) {
        let mut load = std::mem::take(&mut self.load);
        self.for_each_channel(host, tree, |channel, pairs| load[channel.index()] += sign * pairs);
        self.load = load;
    }

    /// Visits the channels that a host's frames cross in a tree, with the number of receivers beyond each.
    fn for_each_channel(&self, host: HostId, tree: usize, mut visit: impl FnMut(ChannelId, i64)) {
        let UpTree { root, up, order } = &self.trees[tree];
        let mut above = self.topology.switch_of(host);
        let all: u64 = self.hosts_of.iter().sum();
        let mut at_or_above: Vec<SwitchId> = Vec::new();
        while above != *root {
            at_or_above.push(above);
            above = self.topology.head(up[above.index()].expect("below the root"));
        }
        for (switch, &below) in order.iter().zip(&self.below[tree]) {
            let Some(channel) = up[switch.index()] else { continue };
            if at_or_above.contains(switch) {
                visit(channel, (all - below) as i64);
            } else if below > 0 {
                visit(channel.reverse(), below as i64);
            }
        }
    }
}

/// The channels from a switch up to the root of a tree.
fn up_path<'a>(topology: &'a Topology, tree: &'a UpTree, from: SwitchId) -> impl Iterator<Item = ChannelId> + 'a {
    std::iter::successors(tree.up[from.index()], |channel| tree.up[topology.head(*channel).index()])
}
