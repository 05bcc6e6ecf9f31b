//! Fewer trees than an engine asked for, at the lowest price.
//!
//! A tree was made for the hosts of one switch, but others can send along it as well, if that stays legal: without flow
//! control always, under a channel numbering where the way from their switch up the tree and down again increases. So
//! trees are given up one batch after the other, those first whose hosts lose least by moving to the cheapest tree that
//! is left and legal for them; then all hosts choose again a few times. A channel's price is exponential in its load, so
//! that hosts avoid the most loaded ones (Karger and Plotkin, 1995, use the same prices for fractional flows).
//!
//! ```text
//!   tree of a:  a──b──c      c may use it if c▶b < b▶a:     two trees become one
//! ```

use fabric::{Assignment, ChannelId, HostId, SwitchId, Topology, Traffic, Tree};

use crate::{confined::Confined, demand::sent_by, exponential::exp, routing::Routing};

/// Part of the surplus that is given up at once.
const BATCH: usize = 8;
/// Part of its present cost below which a tree is worth moving to.
const STAY: f64 = 0.9;
/// How sharply prices rise, in each round of choosing again.
const SHARPNESS: [f64; 8] = [4.0, 6.0, 9.0, 13.0, 18.0, 24.0, 30.0, 30.0];

/// Routes by source on at most `limit` of a routing's trees, or none if not every host has a legal one among them.
/// Where `rules` ask for it, routes go on to increase in the routing's own numbering; those that keep to their planes go on so.
/// Cost: O(trees · switches) a batch, of which there are O(`BATCH` · log(trees / limit)); with a traffic matrix that much for
/// every group of hosts.
pub(crate) fn fit(
    topology: &Topology,
    traffic: &Traffic,
    routing: &Routing,
    limit: usize,
    (rules, confined): (Rules, &Confined),
) -> Option<Routing> {
    let Assignment::Source(choice) = &routing.assignment else { return None };
    let numbering = match rules {
        Rules::Any => None,
        Rules::Increasing => Some(routing.numbering.as_deref()?),
    };
    let mut search = Search::new(topology, traffic, &routing.trees, choice, (numbering, confined));
    search.give_up(limit)?;
    search.choose_again();
    Some(search.routing(routing))
}

/// Which routes are allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rules {
    /// All: nothing waits, so nothing can deadlock.
    Any,
    /// Those along which the routing's channel numbering increases; none if it has no numbering.
    Increasing,
}

/// A tree rooted at the switch that it was made for.
struct Rooted {
    root: SwitchId,
    /// Covered switches, parents before children, with the channel into each; the root left out.
    inward: Vec<(SwitchId, ChannelId)>,
    /// `below[switch]`: hosts at or beyond it.
    below: Vec<u32>,
    /// `legal[switch]`: whether its hosts may send along the tree.
    legal: Vec<bool>,
}

/// Hosts of one switch that share a tree.
struct Group {
    switch: SwitchId,
    hosts: Vec<HostId>,
    tree: usize,
    /// `sent[switch]`: what they send there; none if all hosts send alike.
    sent: Option<Vec<f64>>,
}

struct Search<'a> {
    topology: &'a Topology,
    rooted: Vec<Rooted>,
    groups: Vec<Group>,
    alive: Vec<bool>,
    /// Whether all hosts send alike.
    all_alike: bool,
    /// `load[channel]`: time to carry the demand that crosses it, in demand on the fastest link.
    load: Vec<f64>,
    hosts: u32,
}

impl<'a> Search<'a> {
    fn new(
        topology: &'a Topology,
        traffic: &Traffic,
        trees: &[Tree],
        choice: &[usize],
        (numbering, confined): (Option<&[u32]>, &Confined),
    ) -> Self {
        let mut groups: Vec<Group> = Vec::new();
        for switch in topology.switch_ids() {
            let start = groups.len();
            for &host in topology.hosts_of(switch) {
                let tree = choice[host.index()];
                match groups[start..].iter_mut().find(|group| group.tree == tree) {
                    Some(group) => group.hosts.push(host),
                    None => groups.push(Group { switch, hosts: vec![host], tree, sent: None }),
                }
            }
        }
        let all_alike = *traffic == Traffic::AllToAll;
        if !all_alike {
            for group in &mut groups {
                let mut sent = vec![0.0; topology.switches().len()];
                sent_by(topology, traffic, &group.hosts, &mut sent);
                sent[group.switch.index()] = 0.0;
                group.sent = Some(sent);
            }
        }
        let mut root = vec![SwitchId::new(0); trees.len()];
        groups.iter().for_each(|group| root[group.tree] = group.switch);
        let rooted = trees.iter().zip(&root).map(|(tree, &root)| {
            let mut rooted = hang(topology, tree, root, numbering);
            let serves = confined.serves(topology, tree);
            rooted.legal.iter_mut().zip(serves).for_each(|(legal, serves)| *legal &= serves);
            rooted
        });
        let rooted = rooted.collect();
        let load = vec![0.0; topology.channel_count()];
        let alive = vec![true; trees.len()];
        let mut search =
            Self { topology, rooted, groups, alive, all_alike, load, hosts: topology.hosts().len() as u32 };
        search.recount();
        search
    }

    /// Gives trees up until `limit` are left.
    fn give_up(&mut self, limit: usize) -> Option<()> {
        loop {
            let alive = self.alive.iter().filter(|alive| **alive).count();
            let surplus = alive.checked_sub(limit).filter(|surplus| *surplus > 0);
            let Some(surplus) = surplus else { return Some(()) };
            let costs = self.costs(SHARPNESS[0]);
            // What each tree's hosts lose if it alone goes; none if some have nowhere to go.
            let mut loss = vec![Some(0.0); self.rooted.len()];
            for (group, costs) in self.groups.iter().zip(&costs) {
                let own = costs.iter().find(|(tree, _)| *tree == group.tree).map_or(0.0, |(_, cost)| *cost);
                let next = costs.iter().filter(|(tree, _)| *tree != group.tree).map(|(_, cost)| *cost);
                let next = next.min_by(f64::total_cmp);
                loss[group.tree] = loss[group.tree].zip(next).map(|(loss, next)| loss + next - own);
            }
            let mut leaving: Vec<(f64, usize)> = (loss.into_iter().enumerate())
                .filter_map(|(tree, loss)| Some((loss?, tree)).filter(|_| self.alive[tree]))
                .collect();
            leaving.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
            let mut left = 0;
            for (_, tree) in leaving.into_iter().take(surplus.div_ceil(BATCH)) {
                left += usize::from(self.remove(tree, &costs));
            }
            if left == 0 {
                return None;
            }
            self.recount();
        }
    }

    /// Moves a tree's hosts to their cheapest other one; false, with nothing changed, if some have none.
    fn remove(&mut self, tree: usize, costs: &[Vec<(usize, f64)>]) -> bool {
        self.alive[tree] = false;
        let cheapest = |group: usize| {
            let open = costs[group].iter().filter(|(tree, _)| self.alive[*tree]);
            open.min_by(|a, b| a.1.total_cmp(&b.1)).map(|(tree, _)| *tree)
        };
        let moves: Option<Vec<(usize, usize)>> = (0..self.groups.len())
            .filter(|group| self.groups[*group].tree == tree)
            .map(|group| Some((group, cheapest(group)?)))
            .collect();
        let Some(moves) = moves else {
            self.alive[tree] = true;
            return false;
        };
        moves.into_iter().for_each(|(group, to)| self.groups[group].tree = to);
        true
    }

    /// Lets hosts choose again against ever sharper prices, and keeps the best round.
    fn choose_again(&mut self) {
        let mut best = (self.peak(), self.choices());
        for sharpness in SHARPNESS {
            let costs = self.costs(sharpness);
            for (group, costs) in costs.into_iter().enumerate() {
                let Some(own) = costs.iter().find(|(tree, _)| *tree == self.groups[group].tree) else { continue };
                let cheapest = costs.iter().min_by(|a, b| a.1.total_cmp(&b.1)).copied();
                // All choose by the same prices; if everybody moved for little, they would meet again elsewhere.
                let Some((to, _)) = cheapest.filter(|(_, cost)| *cost < STAY * own.1) else { continue };
                let before = self.peak_along(group, to);
                self.weigh(group, -1.0);
                let from = std::mem::replace(&mut self.groups[group].tree, to);
                self.weigh(group, 1.0);
                if self.peak_along(group, from) > before {
                    self.weigh(group, -1.0);
                    self.groups[group].tree = from;
                    self.weigh(group, 1.0);
                }
            }
            self.recount();
            let peak = self.peak();
            if peak < best.0 {
                best = (peak, self.choices());
            }
        }
        self.groups.iter_mut().zip(best.1).for_each(|(group, tree)| group.tree = tree);
    }

    /// The busiest of the channels that a group's frames cross in its tree and in another.
    fn peak_along(&self, group: usize, other: usize) -> f64 {
        let mut peak: f64 = 0.0;
        for tree in [self.groups[group].tree, other] {
            self.for_each_channel(&self.groups[group], tree, |channel, _| {
                peak = peak.max(self.load[channel.index()]);
            });
        }
        peak
    }

    /// By group: every tree that is alive and legal for it, with the price of its frames there.
    fn costs(&self, sharpness: f64) -> Vec<Vec<(usize, f64)>> {
        let peak = self.peak().max(f64::MIN_POSITIVE);
        let price: Vec<f64> = (self.topology.channel_ids().zip(&self.load))
            .map(|(channel, load)| (exp(sharpness * (load / peak - 1.0)) + 1e-6) * self.topology.slowness(channel))
            .collect();
        let mut costs = vec![Vec::new(); self.groups.len()];
        let mut from = vec![0.0; self.topology.switches().len()];
        for (tree, rooted) in self.rooted.iter().enumerate().filter(|(tree, _)| self.alive[*tree]) {
            let legal = (self.groups.iter().zip(&mut costs)).filter(|(group, _)| rooted.legal[group.switch.index()]);
            if !self.all_alike {
                legal.for_each(|(group, costs)| costs.push((tree, self.cost(group, tree, &price))));
                continue;
            }
            // One pass for all groups: what it costs from the root, and what changes from a switch to the next.
            let below = |switch: SwitchId| f64::from(rooted.below[switch.index()]);
            from[rooted.root.index()] =
                rooted.inward.iter().map(|&(switch, channel)| price[channel.index()] * below(switch)).sum();
            for &(switch, channel) in &rooted.inward {
                // From a switch further out, this channel is crossed the other way, by frames for everybody else.
                let back = price[channel.reverse().index()] * (f64::from(self.hosts) - below(switch));
                let forth = price[channel.index()] * below(switch);
                from[switch.index()] = from[self.topology.tail(channel).index()] + back - forth;
            }
            legal.for_each(|(group, costs)| costs.push((tree, from[group.switch.index()])));
        }
        costs
    }

    /// The price of a group's frames in a tree.
    fn cost(&self, group: &Group, tree: usize, price: &[f64]) -> f64 {
        let mut cost = 0.0;
        self.for_each_channel(group, tree, |channel, demand| cost += demand * price[channel.index()]);
        cost
    }

    fn peak(&self) -> f64 {
        self.load.iter().copied().fold(0.0, f64::max)
    }

    fn choices(&self) -> Vec<usize> {
        self.groups.iter().map(|group| group.tree).collect()
    }

    fn recount(&mut self) {
        self.load.fill(0.0);
        (0..self.groups.len()).for_each(|group| self.weigh(group, 1.0));
    }

    /// Adds or removes a group's load.
    fn weigh(&mut self, group: usize, sign: f64) {
        let mut load = std::mem::take(&mut self.load);
        let group = &self.groups[group];
        self.for_each_channel(group, group.tree, |channel, demand| {
            load[channel.index()] += sign * demand * self.topology.slowness(channel);
        });
        self.load = load;
    }

    /// Visits the channels that a group's frames cross in a tree, with what crosses each.
    fn for_each_channel(&self, group: &Group, tree: usize, mut visit: impl FnMut(ChannelId, f64)) {
        let rooted = &self.rooted[tree];
        let mut on_path = vec![false; self.topology.switches().len()];
        on_path[group.switch.index()] = true;
        let mut sent = group.sent.clone();
        let all = sent.as_ref().map_or(f64::from(self.hosts), |sent| sent.iter().sum());
        let senders = if sent.is_some() { 1.0 } else { group.hosts.len() as f64 };
        for &(outer, channel) in rooted.inward.iter().rev() {
            let inner = self.topology.tail(channel);
            let beyond = match &mut sent {
                None => f64::from(rooted.below[outer.index()]),
                Some(sent) => {
                    let beyond = sent[outer.index()];
                    sent[inner.index()] += beyond;
                    beyond
                }
            };
            if on_path[outer.index()] {
                on_path[inner.index()] = true;
                visit(channel.reverse(), senders * (all - beyond));
            } else if beyond > 0.0 {
                visit(channel, senders * beyond);
            }
        }
    }

    fn routing(&self, routing: &Routing) -> Routing {
        let mut choice = vec![0; self.topology.hosts().len()];
        for group in &self.groups {
            group.hosts.iter().for_each(|host| choice[host.index()] = group.tree);
        }
        Routing { assignment: Assignment::Source(choice), ..routing.clone() }
    }
}

/// Hangs a tree up at `root` and finds from where frames may be sent along it.
fn hang(topology: &Topology, tree: &Tree, root: SwitchId, numbering: Option<&[u32]>) -> Rooted {
    let rooted = tree.rooted_at(topology, root);
    let switches = topology.switches().len();
    let mut below = vec![0; switches];
    let inward: Vec<(SwitchId, ChannelId)> =
        rooted.order.iter().filter_map(|&switch| Some((switch, rooted.inward[switch.index()]?))).collect();
    rooted.order.iter().for_each(|switch| below[switch.index()] = topology.hosts_of(*switch).len() as u32);
    for &(switch, channel) in inward.iter().rev() {
        below[topology.tail(channel).index()] += below[switch.index()];
    }
    let mut legal = vec![false; switches];
    legal[root.index()] = true;
    match numbering {
        None => inward.iter().for_each(|(switch, _)| legal[switch.index()] = true),
        Some(rank) => {
            // The two lowest numbers among the channels outward from each switch, to exclude the one to a child itself.
            let mut lowest = vec![[u32::MAX; 2]; switches];
            for &(_, channel) in &inward {
                let [first, second] = &mut lowest[topology.tail(channel).index()];
                let number = rank[channel.index()];
                if number < *first {
                    (*first, *second) = (number, *first);
                } else {
                    *second = number.min(*second);
                }
            }
            for &(switch, channel) in &inward {
                let parent = topology.tail(channel);
                let back = rank[channel.reverse().index()];
                let onward = rooted.inward[parent.index()].map_or(u32::MAX, |up| rank[up.reverse().index()]);
                let [first, second] = lowest[parent.index()];
                let siblings = if first == rank[channel.index()] { second } else { first };
                legal[switch.index()] = legal[parent.index()] && back < onward && back < siblings;
            }
        }
    }
    Rooted { root, inward, below, legal }
}
