//! Generators of the topologies that interconnects are made of: one file a family, each a pure function of its sizes.
//!
//! A [`Kind`] names a family and its sizes, [`Options`] say what hangs on it and how it is called, and [`generate`] wires
//! it. Sizes are judged by arithmetic before anything is allocated. Hosts are numbered switch by switch, so that the hosts
//! of a switch are consecutive.

mod clos;
mod crossbar;
mod draft;
mod dragonfly;
mod fat_tree;
mod kind;
mod lattice;
mod random;
mod tree;

#[cfg(test)]
mod tests;

use thiserror::Error;

use crate::{DEFAULT_RATE_BPS, Fault, HOSTS_MAX, LINKS_MAX, Models, SWITCHES_MAX, Topology};

pub use kind::{Family, Kind};

use self::{draft::Draft, lattice::Wiring};

/// What hangs on a generated network, and how it is called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Hosts on each switch that takes hosts; none is what the family has by itself: as many as make the network
    /// non-blocking on fat trees and Clos networks, `fanout` on trees, `a/2` on dragonflies, one elsewhere.
    pub hosts_per_switch: Option<usize>,
    /// Ports of each machine: so many consecutive switches with hosts serve the same machines, each as a rail of its own. None is one
    /// port, and no rails.
    pub nics: Option<usize>,
    /// Rate of every link between switches, in each direction.
    pub rate_bps: u64,
    /// Rate of every host's cable; none is that of the links.
    pub host_rate_bps: Option<u64>,
    /// Model of every switch; none is generic.
    pub model: Option<String>,
    /// The models that there are.
    pub models: Models,
    /// Seed by which to shuffle all that is arbitrary: the order and names of switches, ports and hosts, and the order and
    /// orientation of links. Structure must then be found from the links alone.
    pub shuffle: Option<u64>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            hosts_per_switch: None,
            nics: None,
            rate_bps: DEFAULT_RATE_BPS,
            host_rate_bps: None,
            model: None,
            models: Models::built_in(),
            shuffle: None,
        }
    }
}

/// Why no network was generated.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum GenerateError {
    /// No family has this name.
    #[error("unknown kind of network {word:?}; there are {}", Family::words())]
    UnknownKind {
        /// The name as written.
        word: String,
    },
    /// The sizes do not read.
    #[error("{family} does not take the size {given:?}; write {family} {}, for example: {}", family.sizes, family.example)]
    BadSizes {
        /// The family.
        family: &'static Family,
        /// The sizes as written.
        given: String,
    },
    /// The sizes read, but there is no such network.
    #[error("{kind}: {rule}")]
    Impossible {
        /// What was asked for.
        kind: Kind,
        /// What must hold.
        rule: String,
    },
    /// The network is larger than Espalier will hold.
    #[error("{kind} has {} {what}; at most {limit} are allowed", many(*.need))]
    TooLarge {
        /// What was asked for.
        kind: Kind,
        /// Of what there are too many.
        what: &'static str,
        /// How many; the largest number stands for all beyond it.
        need: u128,
        /// How many are allowed.
        limit: usize,
    },
    /// The model has fewer ports than the network needs.
    #[error(
        "switch {switch} needs {need} ports, and a {model} has {has}: take a larger model or fewer hosts per switch"
    )]
    TooFewPorts {
        /// A switch that needs too many.
        switch: String,
        /// The model.
        model: String,
        /// Ports needed.
        need: usize,
        /// Ports there are.
        has: usize,
    },
    /// The switches with hosts do not divide into rails.
    #[error("machines with {nics} ports need {nics}, {}, {} … switches with hosts, and the same number of hosts on each of them; this network has {found}", 2 * nics, 3 * nics)]
    NoRails {
        /// Ports of a machine.
        nics: usize,
        /// What the network has, in words.
        found: String,
    },
    /// No connected graph was drawn within the bound on rounds.
    #[error("no connected graph was drawn; try another seed")]
    Unlucky,
    /// The cabling is refused, for an unknown model for instance.
    #[error("{}{}", .0, .0.help().map(|help| format!(": {help}")).unwrap_or_default())]
    Cabling(Fault),
}

/// How large a network is, before it is built.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Counts {
    switches: u128,
    links: u128,
    /// Switches that take hosts.
    rim: u128,
}

/// Generates a network. Cost: O(ports · log ports).
///
/// # Errors
/// [`GenerateError`] if there is no such network, it is too large, or the model lacks ports.
pub fn generate(kind: &Kind, options: &Options) -> Result<Topology, GenerateError> {
    kind.validate()?;
    let hosts = options.hosts_per_switch.unwrap_or_else(|| default_hosts(kind));
    let Counts { switches, links, rim } = counts(kind);
    let host_count = rim.saturating_mul(hosts as u128);
    for (what, need, limit) in
        [("switches", switches, SWITCHES_MAX), ("links", links, LINKS_MAX), ("hosts", host_count, HOSTS_MAX)]
    {
        if need > limit as u128 {
            return Err(GenerateError::TooLarge { kind: kind.clone(), what, need, limit });
        }
    }
    draft(kind, hosts)?.build(options)
}

/// Hosts on each switch that takes hosts, where the options do not say.
fn default_hosts(kind: &Kind) -> usize {
    match kind {
        Kind::Mesh(_)
        | Kind::Torus(_)
        | Kind::Hypercube(_)
        | Kind::HyperX(_)
        | Kind::HyperCrossbar(_)
        | Kind::MTree(_)
        | Kind::RandomRegular { .. } => 1,
        Kind::FatTree { p, .. } => *p,
        Kind::KaryFatTree { k } => k / 2,
        Kind::Clos { spines, .. } => *spines,
        Kind::Dragonfly { p, a, .. } => p.unwrap_or(a / 2).max(1),
        Kind::Tree { fanout, .. } => *fanout,
    }
}

fn counts(kind: &Kind) -> Counts {
    match kind {
        Kind::Mesh(sizes) => lattice::counts(sizes, Wiring::Path),
        Kind::Torus(sizes) => lattice::counts(sizes, Wiring::Ring),
        Kind::Hypercube(dimensions) => lattice::counts(&vec![2; *dimensions as usize], Wiring::Path),
        Kind::HyperX(sizes) => lattice::counts(sizes, Wiring::Full),
        Kind::MTree(sizes) => lattice::counts(sizes, Wiring::Spine),
        Kind::HyperCrossbar(sizes) => crossbar::counts(sizes),
        Kind::FatTree { p, q, r } => fat_tree::counts(*p, *q, *r),
        Kind::KaryFatTree { k } => fat_tree::kary_counts(*k),
        Kind::Clos { leaves, spines } => clos::counts(*leaves, *spines),
        Kind::Dragonfly { a, h, groups, .. } => {
            dragonfly::counts(*a, *h, groups.unwrap_or(a.saturating_mul(*h).saturating_add(1)))
        }
        Kind::RandomRegular { switches, degree, .. } => random::counts(*switches, *degree),
        Kind::Tree { fanout, depth } => tree::counts(*fanout, *depth),
    }
}

fn draft(kind: &Kind, hosts: usize) -> Result<Draft, GenerateError> {
    Ok(match kind {
        Kind::Mesh(sizes) => lattice::draft(sizes, Wiring::Path, hosts, lattice::dashed),
        Kind::Torus(sizes) => lattice::draft(sizes, Wiring::Ring, hosts, lattice::dashed),
        Kind::Hypercube(dimensions) => {
            lattice::draft(&vec![2; *dimensions as usize], Wiring::Path, hosts, lattice::binary)
        }
        Kind::HyperX(sizes) => lattice::draft(sizes, Wiring::Full, hosts, lattice::dashed),
        Kind::MTree(sizes) => lattice::draft(sizes, Wiring::Spine, hosts, lattice::dashed),
        Kind::HyperCrossbar(sizes) => crossbar::draft(sizes, hosts),
        Kind::FatTree { p, q, r } => fat_tree::draft(*p, *q, *r, hosts),
        Kind::KaryFatTree { k } => fat_tree::kary_draft(*k, hosts),
        Kind::Clos { leaves, spines } => clos::draft(*leaves, *spines, hosts),
        Kind::Dragonfly { a, h, groups, .. } => dragonfly::draft(*a, *h, groups.unwrap_or(a * h + 1), hosts),
        Kind::RandomRegular { switches, degree, seed } => random::draft(*switches, *degree, *seed, hosts)?,
        Kind::Tree { fanout, depth } => tree::draft(*fanout, *depth, hosts),
    })
}

impl From<Fault> for GenerateError {
    fn from(fault: Fault) -> Self {
        Self::Cabling(fault)
    }
}

fn many(number: u128) -> String {
    if number > 1_000_000_000_000 { "more than a million million".to_owned() } else { number.to_string() }
}
