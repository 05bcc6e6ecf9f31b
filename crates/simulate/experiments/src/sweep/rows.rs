//! One row: a point planned and simulated.

use std::sync::Arc;

use fabric::{
    Plan, Policy,
    generate::{Options, generate},
};
use sim::{
    flow::{FlowLevel, Transfer},
    packet::{Outcome, PacketConfig, Refresh, Simulation, Switching},
    pattern::{Pair, Pattern},
    spread::Spread,
    workload::{Flow, SECOND_PS, Workload},
};

use super::{
    csv::quoted,
    point::{AXES, AXES_COUNT, FLOW_CONTROLS, LEVELS, Level, Point, Source, TRANSPORTS, named, value},
};

/// Whether to go on.
pub(super) type GoOn<'a> = &'a (dyn Fn() -> bool + Sync);

/// Simulated time from one time that the caller is asked whether to go on to the next.
const STEP_PS: u64 = SECOND_PS / 1000;
/// Payload of a transfer at the flow level whose size is not given.
const FLOW_BYTES: f64 = 1e6;

/// Columns after those of the point.
const MEASURED: [&str; 17] = [
    "status",
    "switches",
    "links",
    "hosts",
    "vlans",
    "busiest_channel_pairs",
    "load_bound",
    "pairs",
    "seconds",
    "goodput_mean_mbps",
    "goodput_slowest_mbps",
    "latency_mean_us",
    "latency_max_us",
    "loss",
    "busiest_utilisation",
    "pauses",
    "note",
];

/// What was measured; nothing where it makes no sense.
#[derive(Default)]
struct Measured {
    status: &'static str,
    pairs: Option<usize>,
    seconds: Option<f64>,
    goodput_mean_bps: Option<f64>,
    goodput_slowest_bps: Option<f64>,
    latency_mean_ps: Option<f64>,
    latency_max_ps: Option<u64>,
    loss: Option<f64>,
    busiest: Option<f64>,
    pauses: Option<u64>,
    note: String,
}

/// The names of all columns.
pub(super) fn header() -> String {
    let point = ["topology", "hosts_per_switch"].into_iter().chain(AXES.iter().map(|axis| axis.column));
    point.chain(MEASURED).collect::<Vec<_>>().join(",")
}

/// Plans a point; the error is for its row.
pub(super) fn plan(source: &Source, values: &[String; AXES_COUNT]) -> Result<Plan, String> {
    let topology = match source {
        Source::File { topology, .. } => Arc::clone(topology),
        Source::Generated { kind, hosts_per_switch } => {
            let options = Options { hosts_per_switch: *hosts_per_switch, ..Options::default() };
            Arc::new(generate(kind, &options).map_err(|error| error.to_string())?)
        }
    };
    let policy = Policy {
        engine: parsed(values, "engine")?,
        tagging: parsed(values, "tagging")?,
        flow_control: parsed(values, "planned_flow_control")?,
        fdb: parsed(values, "fdb")?,
        vlans_max: optional(values, "max_vlans")?,
        paths_max: parsed(values, "paths")?,
        seed: parsed(values, "plan_seed")?,
        ..Policy::default()
    };
    planner::plan(&topology, &policy, None).map_err(|error| error.to_string())
}

/// The row of a point, without its end of line; none if it was not to go on.
pub(super) fn row(source: &Source, point: &Point, plan: &Result<Plan, String>, go_on: GoOn<'_>) -> Option<String> {
    let (measured, plan) = match plan {
        Ok(plan) => (measure(plan, &point.values, go_on)?, Some(plan)),
        Err(error) => (Measured { status: "no plan", note: error.clone(), ..Measured::default() }, None),
    };
    let summary = plan.map(|plan| &plan.summary);
    let count =
        |pick: fn(&fabric::Summary) -> usize| summary.map_or(String::new(), |summary| pick(summary).to_string());
    let real = |pick: fn(&fabric::Summary) -> f64| summary.map_or(String::new(), |summary| pick(summary).to_string());
    let fixed = |value: Option<f64>, digits: usize| value.map_or(String::new(), |value| format!("{value:.digits$}"));
    let whole = |value: Option<u64>| value.map_or(String::new(), |value| value.to_string());
    let mut fields: Vec<String> = source.columns().to_vec();
    fields.extend(point.values.iter().cloned());
    fields.extend([
        measured.status.to_owned(),
        count(|summary| summary.switches),
        count(|summary| summary.links),
        count(|summary| summary.hosts),
        count(|summary| summary.vlans),
        real(|summary| summary.max_channel_load),
        real(|summary| summary.load_bound),
        whole(measured.pairs.map(|pairs| pairs as u64)),
        fixed(measured.seconds, 9),
        fixed(measured.goodput_mean_bps.map(|bps| bps / 1e6), 4),
        fixed(measured.goodput_slowest_bps.map(|bps| bps / 1e6), 4),
        fixed(measured.latency_mean_ps.map(|ps| ps / 1e6), 3),
        fixed(measured.latency_max_ps.map(|ps| ps as f64 / 1e6), 3),
        fixed(measured.loss, 6),
        fixed(measured.busiest, 6),
        whole(measured.pauses),
        measured.note,
    ]);
    Some(fields.iter().map(|field| quoted(field)).collect::<Vec<_>>().join(","))
}

fn measure(plan: &Plan, values: &[String; AXES_COUNT], go_on: GoOn<'_>) -> Option<Measured> {
    let failed = |status: &'static str, note: String| Some(Measured { status, note, ..Measured::default() });
    let topology = &plan.topology;
    if topology.hosts().len() < 2 {
        return failed("no traffic", "traffic needs two hosts at least".to_owned());
    }
    let wanted = parsed::<Pattern>(values, "pattern")
        .and_then(|pattern| Ok((pattern, pattern.pairs_of(plan, parsed(values, "seed")?).map_err(|e| e.to_string())?)));
    let (pattern, pairs) = match wanted {
        Ok((pattern, pairs)) if !pairs.is_empty() => (pattern, pairs),
        Ok(_) => return failed("no traffic", "nobody sends".to_owned()),
        Err(error) => return failed("no traffic", error),
    };
    let outcome = match named(&LEVELS, value(values, "level")) {
        Ok(Level::Flow) => flow_level(plan, values, &pairs, go_on),
        Ok(Level::Packet) => packet_level(plan, values, pattern, &pairs, go_on),
        Err(error) => Err(error),
    };
    match outcome {
        Ok(measured) => measured.map(|measured| Measured { pairs: Some(pairs.len()), ..measured }),
        Err(error) => failed("no traffic", error),
    }
}

fn packet_level(
    plan: &Plan,
    values: &[String; AXES_COUNT],
    pattern: Pattern,
    pairs: &[Pair],
    go_on: GoOn<'_>,
) -> Result<Option<Measured>, String> {
    let bytes: Option<u64> = optional(values, "bytes")?;
    if bytes.is_none() && pattern == Pattern::AllToAllPhased {
        return Err("phases end when their transfers do: give bytes".to_owned());
    }
    let (transport, payload_bytes) = named(&TRANSPORTS, value(values, "transport"))?;
    let spread: Spread = parsed(values, "spread")?;
    spread.check_packet(plan).and_then(|()| spread.check_transport(transport)).map_err(|error| error.to_string())?;
    let flow = |pair: &Pair| Flow {
        bytes,
        phase: pair.phase,
        transport,
        payload_bytes,
        ..Flow::flood(pair.source, pair.destination)
    };
    let workload = Workload { flows: pairs.iter().map(flow).collect(), faults: Vec::new() };
    let duration_ps = (parsed::<f64>(values, "duration_ms")? * SECOND_PS as f64 / 1e3) as u64;
    let config = PacketConfig {
        switching: if parsed(values, "cut_through")? { Switching::CutThrough } else { Switching::StoreAndForward },
        flow_control: named(&FLOW_CONTROLS, value(values, "flow_control"))?,
        refresh: if parsed(values, "refresh_pause")? { Refresh::HalfTime } else { Refresh::OnArrival },
        duration_ps,
        warmup_ps: if bytes.is_some() { 0 } else { duration_ps / 2 },
        spread,
        seed: parsed(values, "seed")?,
        ..PacketConfig::default()
    };
    let mut simulation = Simulation::new(plan, &workload, &config);
    let mut until_ps = 0;
    while until_ps < duration_ps {
        if !go_on() {
            return Ok(None);
        }
        until_ps = (until_ps + STEP_PS).min(duration_ps);
        if simulation.run_until(until_ps) < until_ps {
            break;
        }
    }
    Ok(Some(of_outcome(plan, &simulation.stop())))
}

fn of_outcome(plan: &Plan, outcome: &Outcome) -> Measured {
    let topology = &plan.topology;
    let used = |channel: fabric::ChannelId| {
        let bytes = outcome.ports[topology.tail_port(channel).index()].wire_bytes as f64;
        bytes * 8e12 / outcome.elapsed_ps.max(1) as f64 / topology.link(channel.link()).rate_bps as f64
    };
    let received = outcome.received_frames();
    let latency: u128 = outcome.flows.iter().map(|flow| flow.latency_sum_ps).sum();
    Measured {
        status: if outcome.deadlock.is_some() { "deadlock" } else { "ok" },
        seconds: Some(outcome.elapsed_ps as f64 / 1e12),
        goodput_mean_bps: Some(outcome.mean_goodput_bps()),
        goodput_slowest_bps: (0..outcome.flows.len()).map(|flow| outcome.goodput_bps(flow)).reduce(f64::min),
        latency_mean_ps: (received > 0).then(|| latency as f64 / received as f64),
        latency_max_ps: outcome.flows.iter().map(|flow| flow.latency_max_ps).max(),
        loss: Some(outcome.loss()),
        busiest: topology.channel_ids().map(used).reduce(f64::max),
        pauses: Some(outcome.counters.pauses),
        ..Measured::default()
    }
}

/// Rates, phase by phase; goodput is what each transfer had from the start of its phase to its end.
fn flow_level(
    plan: &Plan,
    values: &[String; AXES_COUNT],
    pairs: &[Pair],
    go_on: GoOn<'_>,
) -> Result<Option<Measured>, String> {
    let bits = 8.0 * optional::<u64>(values, "bytes")?.map_or(FLOW_BYTES, |bytes| bytes as f64);
    let level = FlowLevel::with_spread(plan, parsed(values, "spread")?).map_err(|error| error.to_string())?;
    let mut carried = vec![0.0; level.resources()];
    let (mut seconds, mut rate_sum, mut slowest) = (0.0, 0.0, f64::INFINITY);
    for phase in pairs.chunk_by(|a, b| a.phase == b.phase) {
        let transfer = |pair: &Pair| Transfer { source: pair.source, destination: pair.destination, bits };
        let transfers: Vec<Transfer> = phase.iter().map(transfer).collect();
        let shared = level.run_while(&transfers, &mut |_| go_on());
        let Some(shared) = shared.map_err(|error| error.to_string())? else { return Ok(None) };
        carried.iter_mut().zip(&shared.carried).for_each(|(sum, bits)| *sum += bits);
        rate_sum += shared.seconds.iter().map(|end| bits / end).sum::<f64>();
        let end = shared.seconds.iter().copied().fold(0.0, f64::max);
        slowest = f64::min(slowest, bits / end);
        seconds += end;
    }
    let channels = plan.topology.channel_count();
    let used = carried[..channels].iter().zip(level.capacity_bps()).map(|(bits, bps)| bits / bps / seconds);
    Ok(Some(Measured {
        status: "ok",
        seconds: Some(seconds),
        goodput_mean_bps: Some(rate_sum / pairs.len() as f64),
        goodput_slowest_bps: Some(slowest),
        busiest: used.reduce(f64::max),
        ..Measured::default()
    }))
}

fn parsed<T: std::str::FromStr<Err: ToString>>(values: &[String; AXES_COUNT], column: &str) -> Result<T, String> {
    value(values, column).parse::<T>().map_err(|error| error.to_string())
}

fn optional<T: std::str::FromStr<Err: ToString>>(
    values: &[String; AXES_COUNT],
    column: &str,
) -> Result<Option<T>, String> {
    if value(values, column) == "none" { Ok(None) } else { parsed(values, column).map(Some) }
}
