//! Where to draw switches, so that a person recognises the fabric.
//!
//! Lattices stand on their lattice, further dimensions as blocks of it; fabrics some of whose switches have no hosts
//! stand in tiers by their distance from hosts; others where springs as long as the hops between them hold them.
//!
//! ```text
//!   o─o─o     o─o─o o─o─o        o   o          o──o
//!   o─o─o     o─o─o o─o─o       /|\ /|\        / \/ \
//!   o─o─o                      o o o o o      o──o──o
//! ```
//! Source: springs by stress majorization, E. Gansner, Y. Koren, S. North, "Graph drawing by stress majorization", 2004.
//! Cost: O(switches²) for springs and each of their [`ROUNDS`], up to [`SPRINGS_MAX`] switches; a circle beyond.

use std::collections::VecDeque;

use fabric::{SwitchId, Topology};

/// Switches whose places springs find.
const SPRINGS_MAX: usize = 600;
const ROUNDS: usize = 80;

/// Where switches stand, `place[switch]`, a cable's usual length being 1.
pub(super) struct Layout {
    pub(super) place: Vec<(f64, f64)>,
}

/// Finds places for all switches: on their lattice, where its positions are known, `lattice[switch][dimension]`. The same
/// topology gives the same places.
pub(super) fn lay_out(topology: &Topology, lattice: Option<&[Vec<usize>]>) -> Layout {
    let place = match lattice {
        Some(positions) => positions.iter().map(|position| on_lattice(position, positions)).collect(),
        None => tiers(topology).unwrap_or_else(|| springs(topology)),
    };
    Layout { place }
}

/// The first two dimensions are a block; of the others every first one puts blocks side by side, every second one below.
fn on_lattice(position: &[usize], all: &[Vec<usize>]) -> (f64, f64) {
    let mut at = [0.0, 0.0];
    let mut block = [1.0, 1.0];
    for (dimension, &number) in position.iter().enumerate() {
        let size = all.iter().map(|position| position[dimension] + 1).max().unwrap_or(1);
        at[dimension % 2] += number as f64 * block[dimension % 2];
        block[dimension % 2] *= size as f64 + 0.6;
    }
    (at[0], at[1])
}

/// Hops from the nearest of some switches; `usize::MAX` where no way leads.
fn hops_from(topology: &Topology, starts: impl Iterator<Item = SwitchId>) -> Vec<usize> {
    let mut hops = vec![usize::MAX; topology.switches().len()];
    let mut next: VecDeque<SwitchId> = starts.collect();
    next.iter().for_each(|switch| hops[switch.index()] = 0);
    while let Some(switch) = next.pop_front() {
        for channel in topology.channels_from(switch) {
            let head = topology.head(*channel);
            if hops[head.index()] == usize::MAX {
                hops[head.index()] = hops[switch.index()] + 1;
                next.push_back(head);
            }
        }
    }
    hops
}

/// Tiers by distance from hosts, each in the order of its neighbours in the tier below; none if all switches have hosts.
fn tiers(topology: &Topology) -> Option<Vec<(f64, f64)>> {
    let with_hosts = topology.switch_ids().filter(|switch| !topology.hosts_of(*switch).is_empty());
    let tier = hops_from(topology, with_hosts);
    let highest = tier.iter().copied().max()?;
    if highest == 0 || highest == usize::MAX {
        return None;
    }
    let mut widest = 0;
    let mut tiers: Vec<Vec<SwitchId>> = vec![Vec::new(); highest + 1];
    for switch in topology.switch_ids() {
        tiers[tier[switch.index()]].push(switch);
        widest = widest.max(tiers[tier[switch.index()]].len());
    }
    let mut x = vec![0.0; tier.len()];
    for (level, switches) in tiers.iter_mut().enumerate() {
        if level > 0 {
            let middle = |switch: &SwitchId| {
                let below = topology.channels_from(*switch).iter().map(|channel| topology.head(*channel).index());
                let below: Vec<f64> = below.filter(|other| tier[*other] + 1 == level).map(|other| x[other]).collect();
                below.iter().sum::<f64>() / below.len().max(1) as f64
            };
            switches.sort_by(|a, b| middle(a).total_cmp(&middle(b)).then(a.cmp(b)));
        }
        let gap = widest as f64 / switches.len() as f64;
        for (index, switch) in switches.iter().enumerate() {
            x[switch.index()] = (index as f64 + 0.5) * gap;
        }
    }
    let height = (widest as f64 / 4.0).clamp(1.5, 6.0);
    Some(tier.iter().zip(x).map(|(level, x)| (x, (highest - level) as f64 * height)).collect())
}

fn springs(topology: &Topology) -> Vec<(f64, f64)> {
    let count = topology.switches().len();
    let radius = count as f64 / std::f64::consts::TAU;
    let mut place: Vec<(f64, f64)> = (0..count)
        .map(|index| {
            let (sin, cos) = (index as f64 / radius.max(0.1)).sin_cos();
            (radius * cos, radius * sin)
        })
        .collect();
    if count > SPRINGS_MAX {
        return place;
    }
    let hops: Vec<Vec<usize>> =
        topology.switch_ids().map(|switch| hops_from(topology, std::iter::once(switch))).collect();
    for _ in 0..ROUNDS {
        for index in 0..count {
            let (mut sum, mut weights) = ((0.0, 0.0), 0.0);
            for other in (0..count).filter(|other| *other != index) {
                // Cabling is connected, so every distance is finite.
                let length = hops[index][other] as f64 * 1.3;
                let (dx, dy) = (place[index].0 - place[other].0, place[index].1 - place[other].1);
                let distance = dx.hypot(dy).max(1e-6);
                let weight = 1.0 / (length * length);
                sum.0 += weight * (place[other].0 + length * dx / distance);
                sum.1 += weight * (place[other].1 + length * dy / distance);
                weights += weight;
            }
            if weights > 0.0 {
                place[index] = (sum.0 / weights, sum.1 / weights);
            }
        }
    }
    place
}

#[cfg(test)]
mod tests {
    use fabric::generate::{Kind, Options, generate};

    use super::*;

    #[test]
    fn no_two_switches_stand_on_each_other() {
        for (kind, size) in [
            ("torus", "4x4"),
            ("torus", "4x4x4"),
            ("mesh", "5"),
            ("hypercube", "5"),
            ("clos", "4x4"),
            ("fat-tree", "k=4"),
            ("random-regular", "n=24,d=3,seed=1"),
            ("mesh", "1"),
        ] {
            let kind = Kind::parse(kind, &[size.to_owned()]).expect("a kind");
            let topology = generate(&kind, &Options::default()).expect("a topology");
            let lattice = planner::lattice_positions(&topology);
            let place = lay_out(&topology, lattice.as_deref()).place;
            assert_eq!(place.len(), topology.switches().len());
            for (index, (x, y)) in place.iter().enumerate() {
                assert!(x.is_finite() && y.is_finite());
                for (other_x, other_y) in &place[..index] {
                    assert!((x - other_x).hypot(y - other_y) > 0.2, "{kind:?}: {place:?}");
                }
            }
        }
    }
}
