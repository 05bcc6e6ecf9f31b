//! A run as one JSON object; docs/simulator-outputs.md says what each field is.

use fabric::HostId;
use serde_json::{Value, json};
use sim::spread::Spread;

use super::{Ran, tables::share, ways};

/// What the command line asked for, in its words.
pub(crate) struct Settings {
    pub(crate) pattern: String,
    /// How many hosts take part in it: the first ones.
    pub(crate) pattern_hosts: usize,
    pub(crate) spread: Spread,
    pub(crate) transport: String,
    pub(crate) flow_control: String,
    pub(crate) bytes: Option<u64>,
    /// Whether Ctrl-C ended it.
    pub(crate) interrupted: bool,
    /// Raw rate that a pair has if the busiest channel is shared evenly, and the bound of any routing.
    pub(crate) fair_bps: f64,
    pub(crate) bound_bps: f64,
    /// The channel between switches that most pairs cross, and how many do.
    pub(crate) bottleneck: Option<(String, Value)>,
}

/// The packet level's object.
pub(crate) fn packet_json(ran: &Ran<'_>, settings: &Settings) -> Value {
    let (topology, outcome, config) = (&ran.plan.topology, ran.outcome, ran.config);
    let counters = &outcome.counters;
    let name = |host: HostId| topology.host(host).name.as_str();
    let ways = ways(topology);
    let ports = |range: std::ops::Range<usize>| -> Vec<Value> {
        let port_json = |way: &super::CableDirection| {
            let port = &outcome.ports[way.port];
            json!({
                "channel": format!("{} -> {}", way.from, way.to), "rate_bps": way.rate_bps, "frames": port.frames,
                "wire_bytes": port.wire_bytes,
                "utilisation": share(port.wire_bytes, outcome.elapsed_ps, way.rate_bps), "dropped": port.dropped,
                "queue_bytes_max": port.queue_bytes_max, "pauses_sent": port.pauses, "paused_ps": port.paused_ps,
            })
        };
        ways[range].iter().map(port_json).collect()
    };
    let flows: Vec<Value> = ran
        .workload
        .flows
        .iter()
        .zip(&outcome.flows)
        .enumerate()
        .map(|(index, (spec, flow))| {
            json!({
                "source": name(spec.source), "destination": spec.destination.map(name), "phase": spec.phase,
                "sent_frames": flow.sent_frames, "received_frames": flow.received_frames,
                "delivered_bytes": flow.delivered_bytes, "goodput_bps": outcome.goodput_bps(index),
                "latency_mean_ps": flow.latency_sum_ps as f64 / flow.received_frames.max(1) as f64,
                "latency_max_ps": flow.latency_max_ps, "started_ps": flow.started_ps, "ended_ps": flow.ended_ps,
            })
        })
        .collect();
    let received = outcome.received_frames();
    let latency: u128 = outcome.flows.iter().map(|flow| flow.latency_sum_ps).sum();
    let between = topology.channel_count();
    json!({
        "level": "packet", "pattern": settings.pattern, "hosts": topology.hosts().len(),
        "pattern_hosts": settings.pattern_hosts, "pairs": outcome.flows.len(),
        "spread": settings.spread.word(), "transport": settings.transport, "flow_control": settings.flow_control, "bytes": settings.bytes,
        "seed": config.seed, "duration_ps": config.duration_ps, "elapsed_ps": outcome.elapsed_ps,
        "warmup_ps": outcome.warmup_ps, "interrupted": settings.interrupted,
        "goodput_mean_bps": outcome.mean_goodput_bps(), "fair_bps": settings.fair_bps,
        "bound_bps": settings.bound_bps, "loss": outcome.loss(),
        "latency_mean_ps": latency as f64 / received.max(1) as f64,
        "latency_max_ps": outcome.flows.iter().map(|flow| flow.latency_max_ps).max(),
        "frames_in_network_mean": outcome.mean_in_network, "events": outcome.events,
        "bottleneck": settings.bottleneck.as_ref().map(|(channel, pairs)| json!({ "channel": channel, "pairs": pairs })),
        "frames": { "injected": counters.injected, "copied": counters.copied, "delivered": counters.delivered,
            "strayed": counters.strayed, "dropped_full": counters.dropped_full,
            "dropped_filtered": counters.dropped_filtered, "dropped_blocked": counters.dropped_blocked, "dropped_storm": counters.dropped_storm, "dropped_fault": counters.dropped_fault,
            "in_flight": counters.in_flight, "pauses": counters.pauses, "flooded": counters.flooded,
            "marked": counters.marked },
        "deadlock": outcome.deadlock.as_ref().map(|deadlock| json!({
            "at_ps": deadlock.at_ps,
            "cycle": deadlock.cycle.iter().map(|blocked| topology.port_label(blocked.port)).collect::<Vec<_>>(),
            "waiting": deadlock.cycle.iter().map(|blocked| json!({
                "port": topology.port_label(blocked.port),
                "vlans": blocked.vlans.iter().map(|vlan| vlan.get()).collect::<Vec<_>>(),
                "flows": blocked.flows.iter().map(|(from, to)| json!([name(*from), name(*to)])).collect::<Vec<_>>(),
            })).collect::<Vec<_>>() })),
        "certified": ran.plan.certificate.is_some(),
        "channels": ports(0..between), "host_cables": ports(between..ways.len()), "flows": flows,
    })
}
