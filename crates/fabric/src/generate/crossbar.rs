//! Hyper-crossbars: a switch at every lattice point, and one more switch for every line, to which all points of the
//! line are cabled.
//!
//! The machine of that name, CP-PACS, joins its processors so (Boku et al., ICS 1997), and Kudoh's VLAN routing was
//! first shown on one. Two points that differ in one coordinate are two links apart, however long the line; the switches of the
//! lines carry no hosts. The line of dimension 1 through (0, ·) is named `c0-x`:
//!
//! ```text
//! hyper-crossbar 2x2      cx-0       cx-1
//!                        ╱    ╲     ╱    ╲
//!               c0-x ── s0-0 ──╴c0-x╶── s0-1     each s has one cable to its c0-x or c1-x
//!                                                and one to its cx-0 or cx-1
//! ```

use super::{
    Counts,
    draft::Draft,
    lattice::{Lattice, dashed, points},
};

/// The numbers of switches and links, and of switches that take hosts.
pub(super) fn counts(sizes: &[usize]) -> Counts {
    let points = points(sizes);
    let lines = sizes.iter().fold(0, |sum: u128, &size| sum.saturating_add(points / size as u128));
    Counts { switches: points.saturating_add(lines), links: points.saturating_mul(sizes.len() as u128), rim: points }
}

/// Wires the hyper-crossbar, `hosts` at every lattice point: first the points, then the lines of each dimension.
pub(super) fn draft(sizes: &[usize], hosts: usize) -> Draft {
    let lattice = Lattice::new(sizes);
    let mut draft = Draft::default();
    for point in lattice.points() {
        draft.add_switch(dashed(&lattice.coordinates(point)), hosts);
    }
    for (dimension, &size) in sizes.iter().enumerate() {
        for first in lattice.points() {
            let at = lattice.coordinates(first);
            if at[dimension] != 0 {
                continue;
            }
            let line = draft.add_switch(line_name(&at, dimension), 0);
            for coordinate in 0..size {
                draft.add_link((lattice.moved(first, 0, coordinate, dimension), dimension), (line, coordinate));
            }
        }
    }
    draft
}

fn line_name(coordinates: &[usize], dimension: usize) -> String {
    let written: Vec<String> = (coordinates.iter().enumerate())
        .map(|(at, coordinate)| if at == dimension { "x".to_owned() } else { coordinate.to_string() })
        .collect();
    format!("c{}", written.join("-"))
}
