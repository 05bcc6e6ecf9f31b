//! Tables as CSV (RFC 4180, lines end in `\n`).

use std::{
    borrow::Cow,
    io::{self, Write},
};

use fabric::Plan;
use sim::pattern::Pair;

use super::{FlowRun, Ran, received, receivers, ways};

/// A field, quoted where it must be.
fn field(text: &str) -> Cow<'_, str> {
    if text.contains(['"', ',', '\n', '\r']) {
        Cow::Owned(format!("\"{}\"", text.replace('"', "\"\"")))
    } else {
        Cow::Borrowed(text)
    }
}

fn us(ps: u64) -> String {
    format!("{}.{:06}", ps / 1_000_000, ps % 1_000_000)
}

/// A line a flow.
pub(super) fn write_flows(ran: &Ran<'_>, out: &mut dyn Write) -> io::Result<()> {
    writeln!(
        out,
        "source,destination,phase,sent_frames,received_frames,delivered_bytes,goodput_bps,mean_latency_us,max_latency_us,\
         started_us,ended_us"
    )?;
    let topology = &ran.plan.topology;
    for (index, (spec, flow)) in ran.workload.flows.iter().zip(&ran.outcome.flows).enumerate() {
        let name = |host: fabric::HostId| field(&topology.host(host).name);
        let latency_us = flow.latency_sum_ps as f64 / flow.received_frames.max(1) as f64 / 1e6;
        writeln!(
            out,
            "{},{},{},{},{},{},{:.0},{latency_us:.3},{:.3},{},{}",
            name(spec.source),
            spec.destination.map_or(Cow::Borrowed(""), name),
            spec.phase,
            flow.sent_frames,
            flow.received_frames,
            flow.delivered_bytes,
            ran.outcome.goodput_bps(index),
            flow.latency_max_ps as f64 / 1e6,
            flow.started_ps.map_or(String::new(), us),
            flow.ended_ps.map_or(String::new(), us),
        )?;
    }
    Ok(())
}

/// A line for each direction of each cable.
pub(super) fn write_ports(ran: &Ran<'_>, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "from,to,rate_bps,frames,wire_bytes,utilisation,dropped,queue_bytes_max,pauses_sent,paused_us")?;
    let elapsed_ps = ran.outcome.elapsed_ps;
    for way in ways(&ran.plan.topology) {
        let port = &ran.outcome.ports[way.port];
        writeln!(
            out,
            "{},{},{},{},{},{:.6},{},{},{},{}",
            field(&way.from),
            field(&way.to),
            way.rate_bps,
            port.frames,
            port.wire_bytes,
            share(port.wire_bytes, elapsed_ps, way.rate_bps),
            port.dropped,
            port.queue_bytes_max,
            port.pauses,
            us(port.paused_ps),
        )?;
    }
    Ok(())
}

/// A line for each direction of each cable and interval.
pub(super) fn write_series(ran: &Ran<'_>, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "start_us,end_us,from,to,utilisation,queue_bytes")?;
    let ways = ways(&ran.plan.topology);
    let mut before: Option<&sim::packet::Sample> = None;
    for sample in &ran.outcome.samples {
        let start_ps = before.map_or(0, |before| before.at_ps);
        let (start, end) = (us(start_ps), us(sample.at_ps));
        for way in &ways {
            let sent = sample.wire_bytes[way.port] - before.map_or(0, |before| before.wire_bytes[way.port]);
            writeln!(
                out,
                "{start},{end},{},{},{:.6},{}",
                field(&way.from),
                field(&way.to),
                share(sent, sample.at_ps - start_ps, way.rate_bps),
                sample.queue_bytes[way.port]
            )?;
        }
        before = Some(sample);
    }
    Ok(())
}

/// A line an interval.
pub(super) fn write_goodput(ran: &Ran<'_>, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "start_us,end_us,total_bps,slowest_host_bps,median_host_bps,fastest_host_bps")?;
    let hosts = receivers(ran.workload);
    for (start_ps, end_ps, bytes) in received(ran.outcome) {
        let rate = |bytes: u64| bytes as f64 * 8e12 / (end_ps - start_ps) as f64;
        let mut rates: Vec<f64> = hosts.iter().map(|host| rate(bytes[*host])).collect();
        rates.sort_by(f64::total_cmp);
        let at = |index: usize| rates.get(index).copied().unwrap_or(0.0);
        writeln!(
            out,
            "{},{},{:.0},{:.0},{:.0},{:.0}",
            us(start_ps),
            us(end_ps),
            rates.iter().sum::<f64>(),
            at(0),
            at(rates.len() / 2),
            at(rates.len().saturating_sub(1))
        )?;
    }
    Ok(())
}

/// A line for each direction of each cable, at the flow level.
pub(super) fn write_resources(shared: &FlowRun<'_>, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "from,to,rate_bps,bytes,utilisation")?;
    for way in ways(&shared.plan.topology) {
        let bits = shared.carried[way.resource];
        let used = if shared.seconds > 0.0 { bits / shared.seconds / way.rate_bps as f64 } else { 0.0 };
        let (from, to) = (field(&way.from), field(&way.to));
        writeln!(out, "{from},{to},{},{:.0},{used:.6}", way.rate_bps, bits / 8.0)?;
    }
    Ok(())
}

/// A line a transfer, at the flow level. `ends[pair]` in seconds.
///
/// # Errors
/// If the writer fails.
pub(crate) fn write_transfers(plan: &Plan, pairs: &[Pair], ends: &[f64], out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "source,destination,phase,ended_s")?;
    for (pair, end) in pairs.iter().zip(ends) {
        let name = |host: fabric::HostId| field(&plan.topology.host(host).name);
        writeln!(out, "{},{},{},{end:.9}", name(pair.source), name(pair.destination), pair.phase)?;
    }
    Ok(())
}

/// The share of a time that octets keep a cable busy.
pub(super) fn share(wire_bytes: u64, elapsed_ps: u64, rate_bps: u64) -> f64 {
    if elapsed_ps == 0 { 0.0 } else { wire_bytes as f64 * 8e12 / elapsed_ps as f64 / rate_bps as f64 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_quoted_where_they_must_be() {
        for (text, written) in [("s0-0:p1", "s0-0:p1"), ("a,b", "\"a,b\""), ("a\"b", "\"a\"\"b\"")] {
            assert_eq!(field(text), written);
        }
        assert_eq!(us(1_234_567_890), "1234.567890");
    }
}
