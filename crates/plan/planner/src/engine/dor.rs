//! Dimension-order routing on lattices of any mix of dimensions.
//!
//! A frame corrects its position in one dimension after the other, so dependencies between dimensions run one way, and
//! no cycle can close across them (\[Otsuka\] 4.3; Dally and Towles, "Principles and Practices of Interconnection
//! Networks", 2003, 8.4). A source's paths form a tree: its own line in the first dimension, from each switch there a
//! line in the second, and so on. On a mesh the tree depends only on the coordinates after the first, which gives
//! N^(M−1) VLANs.
//!
//! ```text
//!   VL(−, 1) of a 3×3 mesh:    ○──○──○      ○ ○ ○        from a source in row 1: along the row,
//!                              │  │  │      │ │ │        then up and down the columns
//!                              ○──○──○  ─▶  ○─○─○
//!                              │  │  │      │ │ │
//!                              ○──○──○      ○ ○ ○
//! ```
//!
//! Within a ring a path may go either way. On a 4-ring every route is minimal, opposite nodes being reached without
//! crossing the wrap-around link, and no cycle closes. Minimal routes on longer rings do close one; where flow control
//! forbids that, each direction is cut at one node, which frames of that direction may reach or leave but not pass,
//! and each source splits the ring between its two directions so that the most loaded channel carries least.
//!
//! With two lanes, each has its own pair of such nodes, and most sources are on a lane whose nodes they do not pass in
//! the last dimension's rings; their routes there are minimal. So are those in the dimension before, for sources that
//! may choose their lane after that, and so on; where the lane is settled, rings are cut.
//!
//! ```text
//!   ring of 7, sources reach 3 each way        lane A: nobody passes 0 ascending, nor 4 descending
//!   0──1──2──3──4──5──6──(0)                           only 5 and 6 would, so they are on lane B
//!                                              lane B: nobody passes 3 ascending, nor 0 descending: 1 and 2 would
//! ```

use std::collections::BTreeMap;

use fabric::{ChannelId, FlowControl, Policy, Topology, Tree};

use crate::{
    engine::ring_lanes,
    lattice::{Dimension, Lattice, Shape, Squares},
    routing::{Routing, Unsuitable},
};

pub(crate) fn route(topology: &Topology, policy: &Policy) -> Result<Vec<Routing>, Unsuitable> {
    route_on(topology, policy, &Lattice::recognise(topology, Squares::Rings)?)
}

/// The same with every 4-ring read as two paths of two; nothing if there is none.
pub(crate) fn route_on_squares(topology: &Topology, policy: &Policy) -> Result<Vec<Routing>, Unsuitable> {
    let lattice = Lattice::recognise(topology, Squares::Paths)?;
    let two = Dimension { shape: Shape::Path, size: 2 };
    let squares = lattice.dimensions.iter().filter(|dimension| **dimension == two).count() >= 2;
    if squares { route_on(topology, policy, &lattice) } else { Ok(Vec::new()) }
}

fn route_on(topology: &Topology, policy: &Policy, lattice: &Lattice) -> Result<Vec<Routing>, Unsuitable> {
    let rings = lattice.dimensions.iter().any(|d| d.shape == Shape::Ring && d.size > 4);
    let cuts: &[Cut] = match policy.flow_control {
        FlowControl::None => &[Cut::Nowhere],
        FlowControl::Pfc(2..) if rings => &[Cut::Nowhere, Cut::ByLane, Cut::EachDirection],
        FlowControl::Pause | FlowControl::Pfc(_) => &[Cut::EachDirection],
    };
    let mut routings: Vec<Routing> =
        cuts.iter().map(|&cut| Router::new(topology, lattice, cut).routing()).collect::<Result<_, _>>()?;
    if ring_lanes::applies(policy, lattice) {
        let minimal = Router::new(topology, lattice, Cut::Nowhere);
        let by_pair = ring_lanes::by_pair(topology, lattice, minimal.order[0], &minimal.routing()?);
        routings.splice(0..0, by_pair);
    }
    Ok(routings)
}

/// Where frames may not pass through a node of a ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cut {
    /// They may everywhere: every route is minimal.
    Nowhere,
    /// At one node for each direction, on rings where minimal routes would close a cycle.
    EachDirection,
    /// At one node for each direction and lane, which hardly anybody would pass.
    ByLane,
}

/// Which lane a source may be on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Choice {
    Either,
    Only(u8),
}

struct Router<'a> {
    topology: &'a Topology,
    lattice: &'a Lattice,
    /// Dimensions in the order in which they are corrected.
    order: Vec<usize>,
    cut: Cut,
    /// By ring size: `reach[position]`, how many nodes a source reaches in ascending direction.
    reach: BTreeMap<usize, Vec<usize>>,
    /// The same where a source's lane leaves it no better way.
    reach_cut: BTreeMap<usize, Vec<usize>>,
    /// By ring size: `choice[position]`, the lanes on which the source passes no forbidden node.
    choice: BTreeMap<usize, Vec<Choice>>,
}

impl<'a> Router<'a> {
    fn new(topology: &'a Topology, lattice: &'a Lattice, cut: Cut) -> Self {
        // The first dimension's line is the source's own: if it is a path, all sources on it share their tree. The
        // longest path goes first, for the fewest VLANs.
        let mut order: Vec<usize> = (0..lattice.dimensions.len()).collect();
        order.sort_by_key(|&d| (lattice.dimensions[d].shape, std::cmp::Reverse(lattice.dimensions[d].size), d));
        if cut == Cut::ByLane {
            // The longest ring is the most loaded and comes last, where routes are minimal.
            order.sort_by_key(|&d| (lattice.dimensions[d].shape, lattice.dimensions[d].size, d));
        }
        let sizes = || lattice.dimensions.iter().filter(|d| d.shape == Shape::Ring).map(|ring| ring.size);
        let minimal = if cut == Cut::ByLane { Cut::Nowhere } else { cut };
        let reach: BTreeMap<_, _> = sizes().map(|size| (size, ring_reach(size, minimal))).collect();
        let by_lane = |size: &usize| cut == Cut::ByLane && *size > 4;
        let choice = sizes().filter(by_lane).map(|size| (size, ring_choice(&reach[&size]))).collect();
        let reach_cut = sizes().filter(by_lane).map(|size| (size, ring_reach(size, Cut::EachDirection))).collect();
        Self { topology, lattice, order, cut, reach, reach_cut, choice }
    }

    /// The lane of a source, and the number of dimensions, counted in order, in which its rings are cut.
    fn lane(&self, source: usize) -> (u8, usize) {
        let position = &self.lattice.position[source];
        for (rank, &dimension) in self.order.iter().enumerate().rev() {
            let choice = self.choice.get(&self.lattice.dimensions[dimension].size);
            let ring = self.lattice.dimensions[dimension].shape == Shape::Ring;
            if let Some(Choice::Only(lane)) = choice.filter(|_| ring).map(|choice| choice[position[dimension]]) {
                return (lane, rank);
            }
        }
        ((position.iter().sum::<usize>() % 2) as u8, 0)
    }

    fn routing(&self) -> Result<Routing, Unsuitable> {
        let (mut trees, mut choice) = (Vec::new(), vec![0; self.topology.hosts().len()]);
        let mut lanes = Vec::new();
        let parallel_links = self.parallel_links();
        for (node, &switch) in self.lattice.nodes.iter().enumerate() {
            let hosts = self.topology.hosts_of(switch);
            let variants = hosts.len().min(parallel_links);
            for variant in 0..variants {
                let links = self.inward(node, variant).into_iter().map(ChannelId::link);
                // Cables that share a line switch, such as two from one node to it, need not combine into a tree.
                let tree = Tree::new(self.topology, links);
                trees.push(tree.map_err(|_| Unsuitable::new("the paths from one switch cross at a line switch"))?);
                lanes.push(self.lane(node).0);
            }
            for (turn, host) in hosts.iter().enumerate() {
                choice[host.index()] = trees.len() - variants + turn % variants;
            }
        }
        let lane = (self.cut == Cut::ByLane).then_some(lanes);
        Ok(Routing { lane, ..Routing::by_source(trees, choice) })
    }

    /// Most cables in parallel between two nodes.
    fn parallel_links(&self) -> usize {
        let lattice = self.lattice;
        let count = |node: usize| {
            (0..lattice.dimensions.len())
                .flat_map(|d| {
                    self.line(node, d, &self.reach).into_iter().map(|(from, to)| lattice.hops(from, to).len())
                })
                .max()
                .unwrap_or(1)
        };
        (0..lattice.nodes.len()).map(count).max().unwrap_or(1)
    }

    /// The channels of a source's tree; where cables are parallel, those whose turn `variant` is.
    fn inward(&self, source: usize, variant: usize) -> Vec<ChannelId> {
        let mut channels = Vec::new();
        let mut covered = vec![source];
        let cut = self.lane(source).1;
        for (rank, &dimension) in self.order.iter().enumerate() {
            let is_cut = rank < cut && self.reach_cut.contains_key(&self.lattice.dimensions[dimension].size);
            let reach = if is_cut { &self.reach_cut } else { &self.reach };
            for node in covered.clone() {
                for (from, to) in self.line(node, dimension, reach) {
                    let hops = self.lattice.hops(from, to);
                    channels.extend(&hops[variant % hops.len()]);
                    covered.push(to);
                }
            }
        }
        channels
    }

    /// The steps from a node to all others on its line.
    fn line(&self, node: usize, dimension: usize, reach: &BTreeMap<usize, Vec<usize>>) -> Vec<(usize, usize)> {
        let fabric_dimension = self.lattice.dimensions[dimension];
        let (size, here) = (fabric_dimension.size, self.lattice.position[node][dimension]);
        let at = |position| self.lattice.along(node, dimension, position);
        let (up, down) = match fabric_dimension.shape {
            Shape::Full => return (0..size).filter(|&there| there != here).map(|there| (node, at(there))).collect(),
            Shape::Path => (size - 1 - here, here),
            Shape::Ring => {
                let up = reach[&size][here];
                (up, size - 1 - up)
            }
        };
        let up = (0..up).map(|step| (at((here + step) % size), at((here + step + 1) % size)));
        let down = (0..down).map(|step| (at((here + size - step) % size), at((here + size - step - 1) % size)));
        up.chain(down).collect()
    }
}

/// How many nodes each source reaches in ascending direction on a ring; it reaches the rest descending.
fn ring_reach(size: usize, cut: Cut) -> Vec<usize> {
    if size == 4 {
        // Opposite nodes without crossing the link between 3 and 0.
        return vec![2, 2, 1, 1];
    }
    if cut == Cut::Nowhere {
        // An even ring's opposite node is as near either way: sources take turns.
        return (0..size).map(|here| if size % 2 == 0 { size / 2 - here % 2 } else { size / 2 }).collect();
    }
    // Ascending frames may not pass node 0; descending ones may not pass `cut`, which must be at most one away, or some
    // pair could go neither way.
    [0, 1, size - 1]
        .into_iter()
        .map(|cut| {
            let bounds: Vec<(usize, usize)> = (0..size)
                .map(|here| {
                    let up_max = if here == 0 { size - 1 } else { size - here };
                    let down_max = if here == cut { size - 1 } else { (here + size - cut) % size };
                    (size - 1 - down_max.min(size - 1), up_max.min(size - 1))
                })
                .collect();
            balanced_reach(size, &bounds)
        })
        .min_by_key(|reach| ring_quality(size, reach))
        .expect("three cuts are tried")
}

/// On which of two lanes each source of a ring may be, so that on neither of them anybody passes its forbidden nodes, one
/// for each direction. Cost: O(size³).
fn ring_choice(reach: &[usize]) -> Vec<Choice> {
    let size = reach.len();
    // Who would pass a node ascending, or another descending.
    let passes = |ascending: usize, descending: usize, here: usize| {
        let (up, down) = ((ascending + size - here) % size, (here + size - descending) % size);
        (up > 0 && up < reach[here]) || (down > 0 && down < size - 1 - reach[here])
    };
    let bans = |pair: usize| -> Vec<bool> { (0..size).map(|here| passes(pair / size, pair % size, here)).collect() };
    let count = |bans: &[bool]| bans.iter().filter(|banned| **banned).count();
    let fewest = (0..size * size).map(|pair| count(&bans(pair))).min().unwrap_or(0);
    let best: Vec<Vec<bool>> = (0..size * size).map(bans).filter(|bans| count(bans) == fewest).collect();
    let apart = |other: &&Vec<bool>| !best[0].iter().zip(*other).any(|(a, b)| *a && *b);
    // Where no two pairs of nodes go together, the second lane is left to those who cannot be on the first.
    let other = best.iter().find(apart).cloned().unwrap_or_else(|| vec![false; size]);
    let choice = |(&first, &second): (&bool, &bool)| match (first, second) {
        (true, _) => Choice::Only(1),
        (false, true) => Choice::Only(0),
        (false, false) => Choice::Either,
    };
    best[0].iter().zip(&other).map(choice).collect()
}

/// The reach within bounds whose most loaded channel carries least, by descent from the most even one.
fn balanced_reach(size: usize, bounds: &[(usize, usize)]) -> Vec<usize> {
    let mut reach: Vec<usize> = bounds.iter().map(|&(least, most)| (size / 2).clamp(least, most)).collect();
    loop {
        let before = ring_quality(size, &reach);
        for here in 0..size {
            let (least, most) = bounds[here];
            reach[here] = (least..=most)
                .min_by_key(|&up| {
                    let mut changed = reach.clone();
                    changed[here] = up;
                    (ring_quality(size, &changed), up)
                })
                .expect("bounds are not empty");
        }
        if ring_quality(size, &reach) == before {
            return reach;
        }
    }
}

/// The most loaded channel of a ring, then the sum of squares of all loads.
fn ring_quality(size: usize, reach: &[usize]) -> (usize, usize) {
    let mut load = vec![0; 2 * size];
    for (here, &up) in reach.iter().enumerate() {
        (0..up).for_each(|step| load[(here + step) % size] += up - step);
        let down = size - 1 - up;
        (0..down).for_each(|step| load[size + (here + size - step) % size] += down - step);
    }
    (load.iter().copied().max().unwrap_or(0), load.iter().map(|load| load * load).sum())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cut_rings_carry_what_exhaustive_search_found() {
        for (size, expect) in [(4, 3), (6, 6), (8, 12), (12, 30)] {
            assert_eq!(ring_quality(size, &ring_reach(size, Cut::EachDirection)).0, expect, "ring of {size}");
        }
    }

    #[test]
    fn on_either_lane_of_a_ring_some_node_is_passed_by_nobody_each_way() {
        for size in 5..=40 {
            let reach = ring_reach(size, Cut::Nowhere);
            let choice = ring_choice(&reach);
            for lane in 0..2 {
                let members = || (0..size).filter(|here| [Choice::Either, Choice::Only(lane)].contains(&choice[*here]));
                let passed = |node: usize, here: usize, down: bool| {
                    let way = if down { (here + size - node) % size } else { (node + size - here) % size };
                    way > 0 && way < if down { size - 1 - reach[here] } else { reach[here] }
                };
                for down in [false, true] {
                    let free = (0..size).any(|node| members().all(|here| !passed(node, here, down)));
                    assert!(free, "ring of {size}, lane {lane}: {choice:?}");
                }
            }
        }
    }

    #[test]
    fn uncut_rings_are_balanced() {
        for (size, expect) in [(5, 3), (6, 5), (7, 6), (8, 8), (12, 18)] {
            assert_eq!(ring_quality(size, &ring_reach(size, Cut::Nowhere)).0, expect, "ring of {size}");
        }
    }
}
