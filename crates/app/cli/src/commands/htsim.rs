//! Traffic and topologies for htsim: a connection matrix (`.cm`), and for fabrics of leaves and spines a topology (`.topo`).
//!
//! Hosts are numbered switch by switch, as htsim numbers them under its racks. Phases wait for each other by barriers:
//! each transfer of a phase fires one when it is received, and the next phase's start by it. htsim builds its own fat
//! trees and routes on them by itself (ECMP or spraying), so a plan's routes have no place in either file.
//!
//! Source: csg-htsim, `sim/datacenter/connection_matrix.cpp` and `fat_tree_topology.cpp`; neither allows comments.

use std::io::{self, Write};

use fabric::{HostId, SwitchId, Topology};
use sim::pattern::Pair;

/// Most bytes of a transfer: htsim reads them as a 32-bit number with a sign.
pub(super) const BYTES_MAX: u64 = i32::MAX as u64;

/// `number[host]`: hosts switch by switch.
fn numbers(topology: &Topology) -> Vec<usize> {
    let mut number = vec![0; topology.hosts().len()];
    let by_switch = topology.switch_ids().flat_map(|switch| topology.hosts_of(switch).iter());
    by_switch.enumerate().for_each(|(next, host)| number[host.index()] = next);
    number
}

/// Writes the transfers of a pattern, all of one size, by phase.
///
/// # Errors
/// If the writer fails.
pub(super) fn write_connections(
    topology: &Topology,
    pairs: &[Pair],
    bytes: u64,
    out: &mut dyn Write,
) -> io::Result<()> {
    let number = numbers(topology);
    let phases: Vec<&[Pair]> = pairs.chunk_by(|a, b| a.phase == b.phase).collect();
    let barriers = phases.len().saturating_sub(1);
    writeln!(out, "Nodes {}\nConnections {}", topology.hosts().len(), pairs.len())?;
    if barriers > 0 {
        writeln!(out, "Triggers {barriers}")?;
    }
    let mut id = 0;
    for (phase, pairs) in phases.iter().enumerate() {
        for pair in *pairs {
            id += 1;
            let of = |host: HostId| number[host.index()];
            write!(out, "{}->{} id {id} ", of(pair.source), of(pair.destination))?;
            match phase {
                0 => write!(out, "start 0")?,
                barrier => write!(out, "trigger {barrier}")?,
            }
            write!(out, " size {bytes}")?;
            if phase < barriers {
                write!(out, " recv_done_trigger {}", phase + 1)?;
            }
            writeln!(out)?;
        }
    }
    for (barrier, pairs) in phases.iter().take(barriers).enumerate() {
        writeln!(out, "trigger id {} barrier count {}", barrier + 1, pairs.len())?;
    }
    Ok(())
}

/// A fabric of leaves with hosts, each joined once to every spine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LeafSpine {
    leaves: usize,
    spines: usize,
    hosts_per_leaf: usize,
    host_gbps: u64,
    link_gbps: u64,
}

impl LeafSpine {
    /// Recognises leaves and spines.
    ///
    /// # Errors
    /// Where the topology departs from what htsim can build.
    pub(super) fn recognise(topology: &Topology) -> Result<Self, String> {
        let name = |switch: SwitchId| topology.switch(switch).name.as_str();
        let (leaves, spines): (Vec<SwitchId>, Vec<SwitchId>) =
            topology.switch_ids().partition(|switch| !topology.hosts_of(*switch).is_empty());
        if spines.is_empty() {
            return Err("every switch has hosts, so there are no spines".to_owned());
        }
        let hosts_per_leaf = topology.hosts_of(leaves[0]).len();
        for leaf in &leaves {
            if topology.hosts_of(*leaf).len() != hosts_per_leaf {
                let (first, other) = (name(leaves[0]), name(*leaf));
                return Err(format!("{first} and {other} have different numbers of hosts"));
            }
            let mut heads: Vec<SwitchId> =
                topology.channels_from(*leaf).iter().map(|channel| topology.head(*channel)).collect();
            heads.sort_unstable();
            if heads != spines {
                return Err(format!("{} is not joined once to every switch without hosts", name(*leaf)));
            }
        }
        if topology.links().len() != leaves.len() * spines.len() {
            return Err("switches without hosts are joined to each other".to_owned());
        }
        let host_gbps = gbps(topology.hosts().iter().map(|host| host.rate_bps), "hosts' cables")?;
        let link_gbps = gbps(topology.links().iter().map(|link| link.rate_bps), "cables between switches")?;
        Ok(Self { leaves: leaves.len(), spines: spines.len(), hosts_per_leaf, host_gbps, link_gbps })
    }

    /// Writes the topology.
    ///
    /// # Errors
    /// If the writer fails.
    pub(super) fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let Self { leaves, spines, hosts_per_leaf, host_gbps, link_gbps } = *self;
        let hosts = leaves * hosts_per_leaf;
        writeln!(out, "Nodes {hosts}\nTiers 2\nPodsize {hosts}\n")?;
        writeln!(out, "Tier 0\nDownlink_speed_Gbps {host_gbps}\nRadix_Down {hosts_per_leaf}\nRadix_Up {spines}")?;
        let (down, up) = (hosts_per_leaf as u64 * host_gbps, spines as u64 * link_gbps);
        if down > up && down % up == 0 {
            writeln!(out, "Oversubscribed {}", down / up)?;
        }
        // A cable and the switch behind it, as in the platform for SimGrid.
        writeln!(out, "Downlink_Latency_ns 10000\nSwitch_Latency_ns 0\n")?;
        writeln!(out, "Tier 1\nDownlink_speed_Gbps {link_gbps}\nRadix_Down {leaves}")?;
        writeln!(out, "Downlink_Latency_ns 10000\nSwitch_Latency_ns 0")
    }
}

fn gbps(mut rates: impl Iterator<Item = u64>, what: &str) -> Result<u64, String> {
    let first = rates.next().ok_or_else(|| format!("there are no {what}"))?;
    if rates.any(|rate| rate != first) {
        return Err(format!("{what} differ in rate"));
    }
    if first % 1_000_000_000 != 0 {
        return Err(format!("{what} run at {first} bit/s, and htsim counts in whole Gbit/s"));
    }
    Ok(first / 1_000_000_000)
}
