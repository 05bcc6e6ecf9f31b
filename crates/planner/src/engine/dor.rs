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
//! and each source splits the ring between its two directions so that the busiest channel carries least.

use std::collections::BTreeMap;

use fabric::{ChannelId, FlowControl, Policy, Topology, Tree};

use crate::{
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
        FlowControl::Pfc(2..) if rings => &[Cut::Nowhere, Cut::EachDirection],
        FlowControl::Pause | FlowControl::Pfc(_) => &[Cut::EachDirection],
    };
    cuts.iter().map(|&cut| Router::new(topology, lattice, cut).routing()).collect()
}

/// Where frames may not pass through a node of a ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cut {
    /// They may everywhere: every route is minimal.
    Nowhere,
    /// At one node for each direction, on rings where minimal routes would close a cycle.
    EachDirection,
}

struct Router<'a> {
    topology: &'a Topology,
    lattice: &'a Lattice,
    /// Dimensions in the order in which they are corrected.
    order: Vec<usize>,
    /// By ring size: `reach[position]`, how many nodes a source reaches in ascending direction.
    reach: BTreeMap<usize, Vec<usize>>,
}

impl<'a> Router<'a> {
    fn new(topology: &'a Topology, lattice: &'a Lattice, cut: Cut) -> Self {
        // The first dimension's line is the source's own: if it is a path, all sources on it share their tree. The
        // longest path goes first, for the fewest VLANs.
        let mut order: Vec<usize> = (0..lattice.dimensions.len()).collect();
        order.sort_by_key(|&d| (lattice.dimensions[d].shape, std::cmp::Reverse(lattice.dimensions[d].size), d));
        let rings = lattice.dimensions.iter().filter(|dimension| dimension.shape == Shape::Ring);
        let reach = rings.map(|ring| (ring.size, ring_reach(ring.size, cut))).collect();
        Self { topology, lattice, order, reach }
    }

    fn routing(&self) -> Result<Routing, Unsuitable> {
        let (mut trees, mut choice) = (Vec::new(), vec![0; self.topology.hosts().len()]);
        let parallel_links = self.parallel_links();
        for (node, &switch) in self.lattice.nodes.iter().enumerate() {
            let hosts = self.topology.hosts_of(switch);
            let variants = hosts.len().min(parallel_links);
            for variant in 0..variants {
                let links = self.inward(node, variant).into_iter().map(ChannelId::link);
                // Cables that share a line switch, such as two from one node to it, need not combine into a tree.
                let tree = Tree::new(self.topology, links);
                trees.push(tree.map_err(|_| Unsuitable::new("the paths from one switch cross at a line switch"))?);
            }
            for (turn, host) in hosts.iter().enumerate() {
                choice[host.index()] = trees.len() - variants + turn % variants;
            }
        }
        Ok(Routing::by_source(trees, choice))
    }

    /// Most cables in parallel between two nodes.
    fn parallel_links(&self) -> usize {
        let lattice = self.lattice;
        let count = |node: usize| {
            (0..lattice.dimensions.len())
                .flat_map(|d| self.line(node, d).into_iter().map(|(from, to)| lattice.hops(from, to).len()))
                .max()
                .unwrap_or(1)
        };
        (0..lattice.nodes.len()).map(count).max().unwrap_or(1)
    }

    /// The channels of a source's tree; where cables are parallel, those whose turn `variant` is.
    fn inward(&self, source: usize, variant: usize) -> Vec<ChannelId> {
        let mut channels = Vec::new();
        let mut covered = vec![source];
        for &dimension in &self.order {
            for node in covered.clone() {
                for (from, to) in self.line(node, dimension) {
                    let hops = self.lattice.hops(from, to);
                    channels.extend(&hops[variant % hops.len()]);
                    covered.push(to);
                }
            }
        }
        channels
    }

    /// The steps from a node to all others on its line.
    fn line(&self, node: usize, dimension: usize) -> Vec<(usize, usize)> {
        let fabric_dimension = self.lattice.dimensions[dimension];
        let (size, here) = (fabric_dimension.size, self.lattice.position[node][dimension]);
        let at = |position| self.lattice.along(node, dimension, position);
        let (up, down) = match fabric_dimension.shape {
            Shape::Full => return (0..size).filter(|&there| there != here).map(|there| (node, at(there))).collect(),
            Shape::Path => (size - 1 - here, here),
            Shape::Ring => {
                let up = self.reach[&size][here];
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

/// The reach within bounds whose busiest channel carries least, by descent from the most even one.
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

/// The busiest channel of a ring, then the sum of squares of all loads.
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
    fn uncut_rings_are_balanced() {
        for (size, expect) in [(5, 3), (6, 5), (7, 6), (8, 8), (12, 18)] {
            assert_eq!(ring_quality(size, &ring_reach(size, Cut::Nowhere)).0, expect, "ring of {size}");
        }
    }
}
