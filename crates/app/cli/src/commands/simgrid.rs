//! A plan as a SimGrid platform: explicit routes, so that `smpirun` runs any MPI program on the planned fabric.

use std::io::{self, Write};

use fabric::{Plan, Topology};
use sim::flow::{FlowLevel, NoRoute};

/// What each host computes a second; users of SimGrid scale it.
const HOST_SPEED: &str = "1Gf";
/// Latency of a cable and the switch behind it.
const LATENCY: &str = "10us";

/// Writes the platform. Cost: O(Σ hops over ordered pairs of hosts).
///
/// # Errors
/// If the writer fails, or a pair of hosts is not connected, as an error of kind `InvalidData`.
pub(super) fn write_simgrid(plan: &Plan, out: &mut dyn Write) -> io::Result<()> {
    let topology = &plan.topology;
    let level = FlowLevel::new(plan);
    writeln!(out, "<?xml version='1.0'?>\n<!DOCTYPE platform SYSTEM \"https://simgrid.org/simgrid.dtd\">")?;
    writeln!(out, "<platform version=\"4.1\">\n <zone id=\"plan\" routing=\"Full\">")?;
    for host in topology.hosts() {
        writeln!(out, "  <host id=\"{}\" speed=\"{HOST_SPEED}\"/>", host.name)?;
    }
    let rates =
        topology.links().iter().map(|link| link.rate_bps).enumerate().map(|(at, rate)| (format!("l{at}"), rate));
    let cables = topology.hosts().iter().map(|host| (format!("c-{}", host.name), host.rate_bps));
    for (name, rate) in rates.chain(cables) {
        let policy = "sharing_policy=\"SPLITDUPLEX\"";
        writeln!(out, "  <link id=\"{name}\" bandwidth=\"{rate}bps\" latency=\"{LATENCY}\" {policy}/>")?;
    }
    let mut way = Vec::new();
    for from in topology.host_ids() {
        for to in topology.host_ids().filter(|to| *to != from) {
            way.clear();
            level
                .append_route(from, to, &mut way)
                .map_err(|error: NoRoute| io::Error::new(io::ErrorKind::InvalidData, error.to_string()))?;
            let (from, to) = (&topology.host(from).name, &topology.host(to).name);
            write!(out, "  <route src=\"{from}\" dst=\"{to}\" symmetrical=\"NO\">")?;
            for resource in &way {
                let (name, direction) = link_of(topology, *resource as usize);
                write!(out, "<link_ctn id=\"{name}\" direction=\"{direction}\"/>")?;
            }
            writeln!(out, "</route>")?;
        }
    }
    writeln!(out, " </zone>\n</platform>")
}

fn link_of(topology: &Topology, resource: usize) -> (String, &'static str) {
    let (channels, hosts) = (topology.channel_count(), topology.hosts().len());
    match resource {
        channel if channel < channels => (format!("l{}", channel / 2), if channel % 2 == 0 { "UP" } else { "DOWN" }),
        up if up < channels + hosts => (format!("c-{}", topology.hosts()[up - channels].name), "UP"),
        down => (format!("c-{}", topology.hosts()[down - channels - hosts].name), "DOWN"),
    }
}
