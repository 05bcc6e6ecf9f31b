//! Finds the lattice in a cabling that names no axes.
//!
//! Meshes, tori, hypercubes and HyperX networks are Cartesian products of paths, rings and full meshes, and a product
//! betrays its factors locally: two cables at a switch lie in different dimensions exactly when they span one square
//! without diagonals, and opposite sides of such a square lie in the same dimension (the square property of product
//! relations: Feder, "Product graph representations", 1992; Imrich and Klavžar, "Product Graphs", 2000). So a
//! union–find over cables gives the dimensions, the pieces left without a dimension's cables give the coordinates along
//! it, and counting cables proves that nothing is missing. A 4-ring is itself a product of two 2-paths, and such pairs
//! are read as rings, as \[Otsuka\] does. Line switches of a hyper-crossbar have no hosts; each counts as a full mesh of
//! its neighbours.
//!
//! ```text
//!   b──d     ab, cd: opposite sides, one dimension      a──b──c    ab, bc: no square, one dimension
//!   │  │     ac, bd: the other
//!   a──c
//! ```

use std::collections::{BTreeMap, BTreeSet};

use fabric::{ChannelId, SwitchId, Topology, graph::UnionFind};

use crate::routing::Unsuitable;

/// A lattice of switches.
#[derive(Clone, Debug)]
pub(crate) struct Lattice {
    /// The dimensions.
    pub(crate) dimensions: Vec<Dimension>,
    /// `position[node][dimension]`, nodes in the order of `nodes`.
    pub(crate) position: Vec<Vec<usize>>,
    /// The switches at lattice points; line switches are not among them.
    pub(crate) nodes: Vec<SwitchId>,
    /// By position in `nodes`, then by the other node, ascending: how to get there along a line.
    hops: Vec<Vec<(usize, Vec<Hop>)>>,
    /// By position in every dimension as a number of mixed radix, the first dimension's digit lowest: the node there.
    node_at: Vec<usize>,
}

/// One dimension.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Dimension {
    pub(crate) shape: Shape,
    /// Positions along it; at least 2.
    pub(crate) size: usize,
}

/// How the positions along a dimension are joined.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Shape {
    /// Each to the next.
    Path,
    /// Each to the next, the last to the first; at least 4 positions.
    Ring,
    /// Each to every other, directly or through one line switch.
    Full,
}

/// How to read a 4-ring, which is also the product of two paths of two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Squares {
    /// As a ring, as [Otsuka] does.
    Rings,
    /// As two paths.
    Paths,
}

/// Cables in a row that lead from one node to another on its line: one, or two through a line switch.
pub(crate) type Hop = Vec<ChannelId>;

impl Lattice {
    /// Recognises a lattice from links alone. Cost: O(Σ degree²·log) at the switches, at worst.
    ///
    /// # Errors
    /// [`Unsuitable`], saying where the cabling departs from a lattice.
    pub(crate) fn recognise(topology: &Topology, squares: Squares) -> Result<Self, Unsuitable> {
        let graph = Graph::new(topology)?;
        if graph.nodes.len() < 2 {
            return Err(Unsuitable::new("a lattice has at least two switches"));
        }
        let factors = match squares {
            Squares::Rings => pair_up_rings(&graph, graph.factors()?)?,
            Squares::Paths => graph.factors()?,
        };
        let dimensions = factors.iter().map(|factor| factor.dimension).collect();
        let position: Vec<Vec<usize>> =
            (0..graph.nodes.len()).map(|node| factors.iter().map(|factor| factor.position[node]).collect()).collect();
        let mut hops = vec![Vec::new(); graph.nodes.len()];
        graph.hops.into_iter().for_each(|((from, to), ways)| hops[from].push((to, ways)));
        let mut lattice = Self { dimensions, position, node_at: vec![0; graph.nodes.len()], nodes: graph.nodes, hops };
        for node in 0..lattice.nodes.len() {
            let at = lattice.number(node);
            lattice.node_at[at] = node;
        }
        Ok(lattice)
    }

    /// The node that shares `node`'s line along `dimension` at `position`.
    pub(crate) fn along(&self, node: usize, dimension: usize, position: usize) -> usize {
        let stride: usize = self.dimensions[..dimension].iter().map(|dimension| dimension.size).product();
        let here = self.number(node) - self.position[node][dimension] * stride;
        self.node_at[here + position * stride]
    }

    /// The cables from a node to another that is joined to it, several where they are parallel.
    pub(crate) fn hops(&self, from: usize, to: usize) -> &[Hop] {
        let hops = &self.hops[from];
        let at = hops.binary_search_by_key(&to, |(to, _)| *to).expect("the nodes are neighbours on a line");
        &hops[at].1
    }

    /// A node's position as a number of mixed radix.
    fn number(&self, node: usize) -> usize {
        self.position[node].iter().zip(&self.dimensions).rev().fold(0, |number, (at, along)| number * along.size + at)
    }
}

/// The cabling with parallel cables taken together and hostless line switches replaced by full meshes.
struct Graph {
    nodes: Vec<SwitchId>,
    hops: BTreeMap<(usize, usize), Vec<Hop>>,
    /// `neighbours[node]`: ascending.
    neighbours: Vec<Vec<usize>>,
}

impl Graph {
    fn new(topology: &Topology) -> Result<Self, Unsuitable> {
        let is_line = |switch: SwitchId| topology.hosts_of(switch).is_empty();
        let nodes: Vec<SwitchId> = topology.switch_ids().filter(|switch| !is_line(*switch)).collect();
        let mut node_of = vec![usize::MAX; topology.switches().len()];
        for (node, switch) in nodes.iter().enumerate() {
            node_of[switch.index()] = node;
        }
        let mut hops: BTreeMap<(usize, usize), Vec<Hop>> = BTreeMap::new();
        for (node, &switch) in nodes.iter().enumerate() {
            for &first in topology.channels_from(switch) {
                let next = topology.head(first);
                if !is_line(next) {
                    hops.entry((node, node_of[next.index()])).or_default().push(vec![first]);
                    continue;
                }
                for &second in topology.channels_from(next) {
                    let far = node_of[topology.head(second).index()];
                    if far == usize::MAX {
                        return Err(Unsuitable::new(format!(
                            "switches {} and {} have no hosts and are joined, which no lattice has",
                            topology.switch(next).name,
                            topology.switch(topology.head(second)).name
                        )));
                    }
                    if far != node {
                        hops.entry((node, far)).or_default().push(vec![first, second]);
                    }
                }
            }
        }
        // Two ways between two nodes, one of them through a line switch, could close a cycle in a source's tree.
        if let Some(((a, b), _)) = hops.iter().find(|(_, ways)| ways.len() > 1 && ways.iter().any(|way| way.len() > 1))
        {
            return Err(Unsuitable::new(format!(
                "switches {} and {} are joined through a switch without hosts and in another way as well",
                topology.switch(nodes[*a]).name,
                topology.switch(nodes[*b]).name
            )));
        }
        let mut neighbours = vec![Vec::new(); nodes.len()];
        hops.keys().for_each(|&(from, to)| neighbours[from].push(to));
        Ok(Self { nodes, hops, neighbours })
    }

    fn joined(&self, a: usize, b: usize) -> bool {
        self.neighbours[a].binary_search(&b).is_ok()
    }

    /// The prime factors of the product, ascending by the first cable in each.
    fn factors(&self) -> Result<Vec<Factor>, Unsuitable> {
        let mut cables = BTreeMap::new();
        for (a, neighbours) in self.neighbours.iter().enumerate() {
            for &b in neighbours.iter().filter(|b| **b > a) {
                let number = cables.len();
                cables.insert((a, b), number);
            }
        }
        let cable = |a: usize, b: usize| cables[&(a.min(b), a.max(b))];
        let mut class = UnionFind::new(cables.len());
        for (node, around) in self.neighbours.iter().enumerate() {
            for (index, &b) in around.iter().enumerate() {
                for &c in &around[index + 1..] {
                    match self.square(node, b, c) {
                        Some(far) => {
                            class.join(cable(node, b), cable(c, far));
                            class.join(cable(node, c), cable(b, far));
                        }
                        None => {
                            class.join(cable(node, b), cable(node, c));
                        }
                    }
                }
            }
        }
        let mut members: BTreeMap<usize, Vec<(usize, usize)>> = BTreeMap::new();
        for (&ends, &number) in &cables {
            let root = class.find(number);
            members.entry(root).or_default().push(ends);
        }
        let factors: Vec<Factor> =
            members.values().map(|members| self.factor(members, &cables)).collect::<Result<_, _>>()?;
        let product: usize = factors.iter().map(|factor| factor.dimension.size).product();
        if product != self.nodes.len() {
            return Err(Unsuitable::new(format!(
                "its dimensions multiply to {product} switches, not {}: cables or switches are missing",
                self.nodes.len()
            )));
        }
        let distinct: BTreeSet<Vec<usize>> =
            (0..self.nodes.len()).map(|node| factors.iter().map(|factor| factor.position[node]).collect()).collect();
        if distinct.len() != product {
            return Err(Unsuitable::new("two switches would share a lattice point"));
        }
        Ok(factors)
    }

    /// The corner opposite `node` of the only square on cables to `b` and `c`, if there is exactly one, undivided.
    fn square(&self, node: usize, b: usize, c: usize) -> Option<usize> {
        if self.joined(b, c) {
            return None;
        }
        let mut common = self.neighbours[b].iter().copied().filter(|&far| far != node && self.joined(c, far));
        let far = common.next()?;
        (common.next().is_none() && !self.joined(node, far)).then_some(far)
    }

    /// The factor of one class of cables: positions are the pieces that the other cables leave.
    fn factor(
        &self,
        members: &[(usize, usize)],
        cables: &BTreeMap<(usize, usize), usize>,
    ) -> Result<Factor, Unsuitable> {
        let own: BTreeSet<(usize, usize)> = members.iter().copied().collect();
        let mut piece = UnionFind::new(self.nodes.len());
        for &(a, b) in cables.keys().filter(|ends| !own.contains(ends)) {
            piece.join(a, b);
        }
        let roots: Vec<usize> = (0..self.nodes.len()).map(|node| piece.find(node)).collect();
        let mut number = BTreeMap::new();
        for &root in &roots {
            let next = number.len();
            number.entry(root).or_insert(next);
        }
        let place: Vec<usize> = roots.iter().map(|root| number[root]).collect();
        let size = number.len();
        let mut neighbours = vec![BTreeSet::new(); size];
        for &(a, b) in members {
            if place[a] == place[b] {
                return Err(Unsuitable::new("a cable joins two switches that the lattice keeps in one place"));
            }
            neighbours[place[a]].insert(place[b]);
            neighbours[place[b]].insert(place[a]);
        }
        let pairs = neighbours.iter().map(BTreeSet::len).sum::<usize>() / 2;
        if pairs * (self.nodes.len() / size) != members.len() || self.nodes.len() % size != 0 {
            return Err(Unsuitable::new("one line lacks a cable that its parallels have"));
        }
        let (shape, order) = classify(&neighbours)
            .ok_or_else(|| Unsuitable::new("a dimension is neither a path, a ring nor a full mesh"))?;
        let mut rank = vec![0; size];
        for (position, &at) in order.iter().enumerate() {
            rank[at] = position;
        }
        Ok(Factor { dimension: Dimension { shape, size }, position: place.iter().map(|&at| rank[at]).collect() })
    }
}

/// One factor of the product.
struct Factor {
    dimension: Dimension,
    /// `position[node]`.
    position: Vec<usize>,
}

/// What shape a small graph has, and its positions in order along it.
fn classify(neighbours: &[BTreeSet<usize>]) -> Option<(Shape, Vec<usize>)> {
    let size = neighbours.len();
    let degree = |count: usize| neighbours.iter().filter(|around| around.len() == count).count();
    if size > 2 && degree(size - 1) == size {
        return Some((Shape::Full, (0..size).collect()));
    }
    let (shape, start) = match (degree(1), degree(2)) {
        (2, inner) if inner == size - 2 => (Shape::Path, neighbours.iter().position(|around| around.len() == 1)?),
        (0, all) if all == size => (Shape::Ring, 0),
        _ => return None,
    };
    let mut order = vec![start];
    let mut seen = vec![false; size];
    seen[start] = true;
    while let Some(&next) = neighbours[*order.last()?].iter().find(|next| !seen[**next]) {
        seen[next] = true;
        order.push(next);
    }
    (order.len() == size).then_some((shape, order))
}

/// Reads pairs of 2-paths as 4-rings: round the ring, positions (0,0), (0,1), (1,1), (1,0).
fn pair_up_rings(graph: &Graph, factors: Vec<Factor>) -> Result<Vec<Factor>, Unsuitable> {
    const ROUND: [[usize; 2]; 2] = [[0, 1], [3, 2]];
    let two = Dimension { shape: Shape::Path, size: 2 };
    let (mut paths, mut rest): (Vec<Factor>, Vec<Factor>) =
        factors.into_iter().partition(|factor| factor.dimension == two);
    // A 2-path whose ends are joined through a line switch is a crossbar of two, not half a ring.
    let direct = |factor: &Factor| {
        let far =
            (1..graph.nodes.len()).find(|&node| graph.joined(0, node) && factor.position[0] != factor.position[node]);
        far.is_none_or(|far| graph.hops[&(0, far)].iter().all(|hop| hop.len() == 1))
    };
    // A lone square stays a 2×2 mesh: as such it needs two trees, as a ring three.
    let lone = rest.is_empty() && paths.len() == 2;
    while !lone && paths.len() >= 2 && direct(&paths[0]) && direct(&paths[1]) {
        let second = paths.remove(1);
        let first = paths.remove(0);
        let position = first.position.iter().zip(&second.position).map(|(&a, &b)| ROUND[a][b]).collect();
        rest.push(Factor { dimension: Dimension { shape: Shape::Ring, size: 4 }, position });
    }
    rest.extend(paths);
    Ok(rest)
}
