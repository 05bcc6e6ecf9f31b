//! Meshes, tori, hypercubes, HyperX networks and mesh-based trees: switches at the points of a lattice, each cabled to
//! others of its own lines.
//!
//! In a *mesh* a switch is cabled to its neighbours along each dimension; a *torus* closes every line into a ring, save
//! lines of two switches, whose one cable already joins them; a *HyperX* (Ahn et al., SC 2009) cables every two switches
//! of a line; a *hypercube* is the mesh whose dimensions all have two. The *M-Tree* of \[Otsuka\] Table 3 keeps of a mesh
//! only the lines of its last dimension, and of each earlier one only the lines at the origin of the later ones.
//!
//! ```text
//! mesh 3x2          torus 3x2             m-tree 3x2
//! s0-0 ── s0-1      s0-0 ── s0-1          s0-0 ── s0-1
//!  │       │       ╭ │       │ ╮           │
//! s1-0 ── s1-1     │s1-0 ── s1-1│         s1-0 ── s1-1
//!  │       │       │ │       │ │           │
//! s2-0 ── s2-1     ╰s2-0 ── s2-1╯         s2-0 ── s2-1
//! ```

use super::{Counts, draft::Draft};

/// How the switches of one line are cabled.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Wiring {
    /// Neighbours only.
    Path,
    /// Neighbours, and the last to the first.
    Ring,
    /// Every two.
    Full,
    /// Neighbours, and only on lines at the origin of all later dimensions.
    Spine,
}

/// The numbers of switches and links, and of switches that take hosts.
pub(super) fn counts(sizes: &[usize], wiring: Wiring) -> Counts {
    let switches = points(sizes);
    let mut links: u128 = 0;
    for (dimension, &size) in sizes.iter().enumerate() {
        let size = size as u128;
        let of_line = match wiring {
            Wiring::Path | Wiring::Spine => size - 1,
            Wiring::Ring => {
                if size > 2 {
                    size
                } else {
                    size - 1
                }
            }
            Wiring::Full => size.saturating_mul(size - 1) / 2,
        };
        let lines = match wiring {
            Wiring::Spine => points(&sizes[..dimension]),
            Wiring::Path | Wiring::Ring | Wiring::Full => switches / size,
        };
        links = links.saturating_add(lines.saturating_mul(of_line));
    }
    Counts { switches, links, rim: switches }
}

/// Wires the lattice, `hosts` at every switch; `name` writes a point's coordinates.
pub(super) fn draft(sizes: &[usize], wiring: Wiring, hosts: usize, name: fn(&[usize]) -> String) -> Draft {
    let lattice = Lattice::new(sizes);
    let mut draft = Draft::default();
    for point in lattice.points() {
        draft.add_switch(name(&lattice.coordinates(point)), hosts);
    }
    for point in lattice.points() {
        let at = lattice.coordinates(point);
        for (dimension, &size) in sizes.iter().enumerate() {
            let here = at[dimension];
            let heads = match wiring {
                Wiring::Path => here + 1..size.min(here + 2),
                Wiring::Ring if size > 2 => here + 1..here + 2,
                Wiring::Ring => here + 1..size,
                Wiring::Full => here + 1..size,
                Wiring::Spine if at[dimension + 1..].iter().all(|&later| later == 0) => here + 1..size.min(here + 2),
                Wiring::Spine => 0..0,
            };
            for head in heads {
                let other = lattice.moved(point, here, head % size, dimension);
                let (slot, other_slot) = match wiring {
                    // Rank of the far end among the others of the line.
                    Wiring::Full => (lattice.slot(dimension, head - 1), lattice.slot(dimension, here)),
                    // The port toward the next switch comes after the one toward the previous.
                    Wiring::Path | Wiring::Ring | Wiring::Spine => {
                        (lattice.slot(dimension, 1), lattice.slot(dimension, 0))
                    }
                };
                draft.add_link((point, slot), (other, other_slot));
            }
        }
    }
    draft
}

/// A point's name: `s0-3-1`.
pub(super) fn dashed(coordinates: &[usize]) -> String {
    format!("s{}", join(coordinates))
}

/// A hypercube point's name: `s0110`, the first dimension leftmost.
pub(super) fn binary(coordinates: &[usize]) -> String {
    let digits: String = coordinates.iter().map(usize::to_string).collect();
    format!("s{digits}")
}

/// Coordinates with dashes between.
pub(super) fn join(coordinates: &[usize]) -> String {
    coordinates.iter().map(usize::to_string).collect::<Vec<_>>().join("-")
}

/// The number of points of a lattice, or the largest number there is.
pub(super) fn points(sizes: &[usize]) -> u128 {
    sizes.iter().fold(1, |product: u128, &size| product.saturating_mul(size as u128))
}

/// Points numbered with the last dimension fastest.
pub(super) struct Lattice<'a> {
    sizes: &'a [usize],
    /// How far apart two points are that differ by one in a dimension.
    strides: Vec<usize>,
}

impl<'a> Lattice<'a> {
    pub(super) fn new(sizes: &'a [usize]) -> Self {
        let mut strides = vec![1; sizes.len()];
        for dimension in (1..sizes.len()).rev() {
            strides[dimension - 1] = strides[dimension] * sizes[dimension];
        }
        Self { sizes, strides }
    }

    pub(super) fn points(&self) -> std::ops::Range<usize> {
        0..self.sizes.iter().product()
    }

    pub(super) fn coordinates(&self, point: usize) -> Vec<usize> {
        self.sizes.iter().zip(&self.strides).map(|(size, stride)| point / stride % size).collect()
    }

    /// The point reached by moving along `dimension` from coordinate `from` to `to`.
    pub(super) fn moved(&self, point: usize, from: usize, to: usize, dimension: usize) -> usize {
        point - from * self.strides[dimension] + to * self.strides[dimension]
    }

    /// The slot of rank `rank` among those of a dimension.
    fn slot(&self, dimension: usize, rank: usize) -> usize {
        let widest = self.sizes.iter().copied().max().unwrap_or(1).max(2);
        dimension * widest + rank
    }
}
