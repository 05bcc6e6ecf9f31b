//! What a simulation leaves behind: tables, pictures, captures, JSON.

mod json;
mod pictures;
mod tables;

use anyhow::Result;
use fabric::{PortId, Topology};
use sim::{
    packet::{CAPTURE_MAX, Outcome, PacketConfig},
    pcap::write_pcap,
    workload::{SECOND_PS, Workload},
};

pub(super) use json::{Settings, packet_json};
pub(super) use tables::write_transfers;

use crate::{
    cli::{self, SimulateOutputs},
    failure::bad_input,
    files::write_file,
    pictures::{check_name, write_picture},
};
use fabric::Plan;

/// Samples of a run unless their distance is given.
const SAMPLES: u64 = 200;
/// Most samples of a run.
const SAMPLES_MAX: f64 = 1e6;

/// A run of the packet level that has ended.
pub(super) struct Ran<'a> {
    pub(super) plan: &'a Plan,
    pub(super) workload: &'a Workload,
    pub(super) config: &'a PacketConfig,
    pub(super) outcome: &'a Outcome,
    /// What pictures are called.
    pub(super) title: String,
}

/// A run of the flow level that has ended.
pub(super) struct FlowRun<'a> {
    pub(super) plan: &'a Plan,
    /// `carried[resource]`, in bits.
    pub(super) carried: &'a [f64],
    pub(super) seconds: f64,
    pub(super) title: String,
}

/// One direction of a cable.
struct CableDirection {
    from: String,
    to: String,
    rate_bps: u64,
    /// Index among an outcome's ports.
    port: usize,
    /// Index among the flow level's resources.
    resource: usize,
}

/// Every direction of every cable: channels between switches first, then out of each host, then into each.
fn ways(topology: &Topology) -> Vec<CableDirection> {
    let (channels, hosts) = (topology.channel_count(), topology.hosts().len());
    let between = topology.channel_ids().map(|channel| CableDirection {
        from: topology.port_label(topology.tail_port(channel)),
        to: topology.port_label(topology.head_port(channel)),
        rate_bps: topology.link(channel.link()).rate_bps,
        port: topology.tail_port(channel).index(),
        resource: channel.index(),
    });
    let out = topology.hosts().iter().enumerate().map(|(index, host)| CableDirection {
        from: host.name.clone(),
        to: topology.port_label(host.port),
        rate_bps: host.rate_bps,
        port: topology.ports().len() + index,
        resource: channels + index,
    });
    let into = topology.hosts().iter().enumerate().map(|(index, host)| CableDirection {
        from: topology.port_label(host.port),
        to: host.name.clone(),
        rate_bps: host.rate_bps,
        port: host.port.index(),
        resource: channels + hosts + index,
    });
    between.chain(out).chain(into).collect()
}

/// The ports to capture at, in the order of the command line; also checks everything else that can be checked before a
/// run.
///
/// # Errors
/// Bad input if a port does not exist, a picture has no known ending, or the level has nothing to write.
pub(super) fn check(topology: &Topology, level: cli::SimulationLevel, wanted: &SimulateOutputs) -> Result<Vec<PortId>> {
    for path in wanted.plot.iter().chain(&wanted.heat_map) {
        check_name(path)?;
    }
    if matches!(level, cli::SimulationLevel::Flow) {
        let frames_only = [
            ("--series", wanted.series.is_some()),
            ("--goodput", wanted.goodput.is_some()),
            ("--plot", wanted.plot.is_some()),
            ("--pcap", !wanted.pcap.is_empty()),
        ];
        if let Some((option, _)) = frames_only.iter().find(|(_, given)| *given) {
            return Err(bad_input(format!("{option} needs frames, and the flow level has none: use --level packet")));
        }
    }
    let find = |at: &cli::PcapAt| {
        let switch = topology
            .find_switch(&at.switch)
            .ok_or_else(|| bad_input(format!("--pcap: the plan has no switch {:?}", at.switch)))?;
        topology.find_port(switch, &at.port).ok_or_else(|| {
            let known: Vec<&str> = topology.port_ids(switch).map(|port| topology.port(port).name.as_str()).collect();
            bad_input(format!("--pcap: {} has no port {:?}; it has {}", at.switch, at.port, known.join(", ")))
        })
    };
    wanted.pcap.iter().map(find).collect()
}

/// Refuses what follows flows: a program has none that last, but messages.
///
/// # Errors
/// Bad input.
pub(super) fn check_program(wanted: &SimulateOutputs) -> Result<()> {
    let of_flows = [
        ("--goodput", wanted.goodput.is_some()),
        ("--plot", wanted.plot.is_some()),
        ("--pcap", !wanted.pcap.is_empty()),
    ];
    match of_flows.iter().find(|(_, given)| *given) {
        Some((option, _)) => Err(bad_input(format!(
            "{option} follows the flows of a pattern, and a program has messages: --csv writes those; --channels, --series and \
             --heat-map show cables"
        ))),
        None => Ok(()),
    }
}

/// How often to take samples, if anything wants them.
///
/// # Errors
/// Bad input if the time between samples is no time, or too short for the run.
pub(super) fn sample_ps(wanted: &SimulateOutputs, duration_ps: u64) -> Result<Option<u64>> {
    let sampled = wanted.series.is_some() || wanted.goodput.is_some() || wanted.plot.is_some();
    match wanted.sample_ms {
        None => Ok(sampled.then_some((duration_ps / SAMPLES).max(1))),
        Some(_) if !sampled => Err(bad_input("--sample-ms needs --series, --goodput or --plot")),
        Some(ms) => {
            let sample_ps = ms * SECOND_PS as f64 / 1e3;
            let is_fit = sample_ps >= 1.0 && duration_ps as f64 / sample_ps <= SAMPLES_MAX;
            if !is_fit {
                return Err(bad_input(format!("--sample-ms {ms}: at most a million samples fit into the time")));
            }
            Ok(Some(sample_ps as u64))
        }
    }
}

/// Writes what was asked for.
///
/// # Errors
/// If a file cannot be written.
pub(super) fn write_packet(ran: &Ran<'_>, wanted: &SimulateOutputs, captures: &[PortId]) -> Result<()> {
    if let Some(path) = &wanted.csv {
        write_file(path, |out| tables::write_flows(ran, out))?;
    }
    if let Some(path) = &wanted.goodput {
        write_file(path, |out| tables::write_goodput(ran, out))?;
    }
    if let Some(path) = &wanted.plot {
        write_picture(path, &pictures::throughput(ran))?;
    }
    write_ports(ran, wanted)?;
    let Ran { plan, workload, config, outcome, .. } = *ran;
    for (port, at) in captures.iter().zip(&wanted.pcap) {
        write_file(&at.file, |out| write_pcap(plan, workload, config, &outcome.captured, *port, out))?;
    }
    if outcome.uncaptured > 0 {
        eprintln!(
            "captures hold the first {CAPTURE_MAX} frames; {} more passed: shorten the time with --duration-ms",
            outcome.uncaptured
        );
    }
    Ok(())
}

/// Writes what was asked for of cables, whatever they carried.
///
/// # Errors
/// If a file cannot be written.
pub(super) fn write_ports(ran: &Ran<'_>, wanted: &SimulateOutputs) -> Result<()> {
    if let Some(path) = &wanted.channels {
        write_file(path, |out| tables::write_ports(ran, out))?;
    }
    if let Some(path) = &wanted.series {
        write_file(path, |out| tables::write_series(ran, out))?;
    }
    if let Some(path) = &wanted.heat_map {
        write_picture(path, &pictures::packet_heat(ran))?;
    }
    Ok(())
}

/// Writes what was asked for and does not need frames; transfers are written by [`write_transfers`].
///
/// # Errors
/// If a file cannot be written.
pub(super) fn write_flow(shared: &FlowRun<'_>, wanted: &SimulateOutputs) -> Result<()> {
    if let Some(path) = &wanted.channels {
        write_file(path, |out| tables::write_resources(shared, out))?;
    }
    if let Some(path) = &wanted.heat_map {
        write_picture(path, &pictures::flow_heat(shared))?;
    }
    Ok(())
}

/// Received bytes between one sample and the next: start, end, `bytes[host]`.
fn received(outcome: &Outcome) -> impl Iterator<Item = (u64, u64, Vec<u64>)> + '_ {
    let before = std::iter::once(None).chain(outcome.samples.iter().map(Some));
    before.zip(&outcome.samples).map(|(before, sample)| {
        let since = |host: usize| before.map_or(0, |before| before.received_bytes[host]);
        let bytes = sample.received_bytes.iter().enumerate().map(|(host, bytes)| bytes - since(host)).collect();
        (before.map_or(0, |before| before.at_ps), sample.at_ps, bytes)
    })
}

/// Who receives anything, in host order.
fn receivers(workload: &Workload) -> Vec<usize> {
    let mut hosts: Vec<usize> =
        workload.flows.iter().filter_map(|flow| flow.destination).map(fabric::HostId::index).collect();
    hosts.sort_unstable();
    hosts.dedup();
    hosts
}
