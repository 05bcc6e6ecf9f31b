//! A topology as BookSim's `anynet`: which routers and nodes are joined, and no more.
//!
//! The format knows neither routes (BookSim finds shortest ones by itself, `routing_function = min`), nor rates, nor a
//! second cable between two routers. Source: BookSim 2, `src/networks/anynet.cpp`, which allows no comments.

use std::{
    collections::BTreeSet,
    io::{self, Write},
};

use fabric::{SwitchId, Topology};

/// What the format could not say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Unsaid {
    /// Cables beside another one between the same two switches.
    pub(super) parallel: usize,
    /// Whether cables differ in rate.
    pub(super) rates_differ: bool,
}

/// What of a topology gets lost.
pub(super) fn unsaid_by_anynet(topology: &Topology) -> Unsaid {
    let pairs: BTreeSet<(SwitchId, SwitchId)> = topology
        .links()
        .iter()
        .map(|link| {
            let (a, b) = (topology.port(link.a).switch, topology.port(link.b).switch);
            (a.min(b), a.max(b))
        })
        .collect();
    let mut rates =
        topology.links().iter().map(|link| link.rate_bps).chain(topology.hosts().iter().map(|host| host.rate_bps));
    let first = rates.next();
    Unsaid { parallel: topology.links().len() - pairs.len(), rates_differ: rates.any(|rate| Some(rate) != first) }
}

/// Writes a line a switch: its hosts as nodes, and its neighbours with a higher number. Switches and hosts have their
/// numbers in the topology's order.
///
/// # Errors
/// If the writer fails.
pub(super) fn write_anynet(topology: &Topology, out: &mut dyn Write) -> io::Result<()> {
    for switch in topology.switch_ids() {
        write!(out, "router {}", switch.index())?;
        for host in topology.hosts_of(switch) {
            write!(out, " node {}", host.index())?;
        }
        let heads = topology.channels_from(switch).iter().map(|channel| topology.head(*channel));
        let neighbours: BTreeSet<SwitchId> = heads.filter(|other| *other > switch).collect();
        for other in neighbours {
            write!(out, " router {}", other.index())?;
        }
        writeln!(out)?;
    }
    Ok(())
}
