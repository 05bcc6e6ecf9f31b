//! Pictures of a run: the fabric by use, and what hosts received over time.

use fabric::Topology;
use plot::{Chart, Heat, Kind, Picture, Series, draw_fabric};

use super::{CableDirection, FlowRun, Ran, received, receivers, tables::share, ways};

/// The fabric by use of its cables, over all of the run.
pub(super) fn packet_heat(ran: &Ran<'_>) -> Picture {
    let used =
        |way: &CableDirection| share(ran.outcome.ports[way.port].wire_bytes, ran.outcome.elapsed_ps, way.rate_bps);
    heat(&ran.plan.topology, &ran.title, used)
}

/// The same at the flow level.
pub(super) fn flow_heat(shared: &FlowRun<'_>) -> Picture {
    let used = |way: &CableDirection| shared.carried[way.resource] / shared.seconds.max(1e-12) / way.rate_bps as f64;
    heat(&shared.plan.topology, &shared.title, used)
}

fn heat(topology: &Topology, title: &str, used: impl Fn(&CableDirection) -> f64) -> Picture {
    let used: Vec<f64> = ways(topology).iter().map(used).collect();
    let (channels, hosts) = (topology.channel_count(), topology.hosts().len());
    let (out, into) = used[channels..].split_at(hosts);
    let heat = Heat {
        title: title.to_owned(),
        of: "of each direction's rate",
        channels: used[..channels].to_vec(),
        hosts: out.iter().zip(into).map(|(out, into)| out.max(*into)).collect(),
    };
    draw_fabric(topology, planner::lattice_positions(topology).as_deref(), &heat)
}

/// What hosts received over time: their mean, the slowest and the fastest.
pub(super) fn throughput(ran: &Ran<'_>) -> Picture {
    let hosts = receivers(ran.workload);
    let (mut mean, mut slowest, mut fastest) = (Vec::new(), Vec::new(), Vec::new());
    for (start_ps, end_ps, bytes) in received(ran.outcome) {
        let at_ms = (start_ps + end_ps) as f64 / 2e9;
        let rate = |host: &usize| bytes[*host] as f64 * 8e6 / (end_ps - start_ps) as f64;
        let rates: Vec<f64> = hosts.iter().map(rate).collect();
        mean.push((at_ms, rates.iter().sum::<f64>() / rates.len().max(1) as f64));
        slowest.push((at_ms, rates.iter().copied().fold(f64::INFINITY, f64::min)));
        fastest.push((at_ms, rates.iter().copied().fold(0.0, f64::max)));
    }
    let series = |name: &str, values: Vec<(f64, f64)>| Series { name: name.to_owned(), values };
    let count = hosts.len();
    let lines = vec![
        series(&format!("mean of {count} receiving hosts"), mean),
        series("slowest in each interval", slowest),
        series("fastest in each interval", fastest),
    ];
    Chart {
        title: ran.title.clone(),
        x: "milliseconds".to_owned(),
        y: "payload received by a host, Mbit/s".to_owned(),
        kind: Kind::Lines(lines),
    }
    .draw()
}
