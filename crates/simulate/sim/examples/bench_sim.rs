//! What the simulator does in a second of this processor, for `bench/sim/run`.
//!
//! ```text
//!   bench_sim mesh [none|pause [MS]]   16 hosts, 4x4 mesh, all to all at 1 Gbit/s a host, for 2,000 ms unless it is said
//!   bench_sim burst [FILE]             64 hosts, 8x8 torus, sizes all different, at once: seconds, and ends to FILE
//!   bench_sim phased N                 N x N torus, one host a switch, all to all in phases: seconds and memory
//! ```

use std::{env, fs, process::ExitCode};

use fabric::{
    EngineName, Plan, Policy,
    generate::{Kind, Options, generate},
};
use sim::{
    flow::{FlowLevel, Transfer},
    packet::{FlowControlAt, PacketConfig, Simulation},
    pattern::Pattern,
    workload::{Arrivals, Flow, SECOND_PS, Transport, Workload},
};

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words[..] {
        ["mesh"] | ["mesh", "none"] => mesh(FlowControlAt::Nowhere, 2000),
        ["mesh", "pause"] => mesh(FlowControlAt::Everywhere, 2000),
        ["mesh", "none", ms] => mesh(FlowControlAt::Nowhere, ms.parse().expect("milliseconds")),
        ["mesh", "pause", ms] => mesh(FlowControlAt::Everywhere, ms.parse().expect("milliseconds")),
        ["burst"] => burst(None),
        ["burst", file] => burst(Some(file)),
        ["phased", side] => phased(side),
        _ => {
            eprintln!("usage: bench_sim mesh [none|pause [MS]] | burst [FILE] | phased N");
            return ExitCode::from(2);
        }
    }
    ExitCode::SUCCESS
}

fn planned(kind: &str, size: &str) -> Plan {
    let kind = Kind::parse(kind, &[size.to_owned()]).expect("a kind");
    let topology = generate(&kind, &Options::default()).expect("a topology");
    let policy = Policy { engine: EngineName::Dor, ..Policy::default() };
    planner::plan(&topology, &policy, None).expect("a plan")
}

/// Seconds that this process has computed, all threads together.
fn cpu_s() -> f64 {
    let text = fs::read_to_string("/proc/self/schedstat").expect("Linux");
    text.split_whitespace().next().and_then(|ns| ns.parse::<f64>().ok()).expect("a number") / 1e9
}

fn mesh(flow_control: FlowControlAt, duration_ms: u64) {
    let plan = planned("mesh", "4x4");
    let pairs = Pattern::AllToAll.pairs(&plan.topology, 1).expect("any number of hosts");
    let transport = Transport::Udp { rate_bps: Some(1_000_000_000 / 15), arrivals: Arrivals::Even };
    let flows = pairs.iter().map(|pair| Flow { transport, ..Flow::flood(pair.source, pair.destination) });
    let workload = Workload { flows: flows.collect(), faults: Vec::new() };
    let config = PacketConfig { flow_control, duration_ps: duration_ms * SECOND_PS / 1000, ..PacketConfig::default() };
    let begun = cpu_s();
    let outcome = Simulation::new(&plan, &workload, &config).finish();
    let seconds = cpu_s() - begun;
    let hops: u64 = outcome.ports.iter().map(|port| port.frames).sum();
    println!(
        "delivered {} cpu_s {seconds:.3} delivered_per_s {:.0} hops_per_s {:.0} events_per_s {:.0} loss {:.4} pauses {}",
        outcome.received_frames(),
        outcome.received_frames() as f64 / seconds,
        hops as f64 / seconds,
        outcome.events as f64 / seconds,
        outcome.loss(),
        outcome.counters.pauses,
    );
}

/// Pair number `k` sends `1,000,000 + 1,000·k` octets, so that every transfer ends at its own time.
fn burst(file: Option<&str>) {
    let plan = planned("torus", "8x8");
    let pairs = Pattern::AllToAll.pairs(&plan.topology, 1).expect("any number of hosts");
    let transfers: Vec<Transfer> = pairs
        .iter()
        .enumerate()
        .map(|(k, pair)| Transfer {
            source: pair.source,
            destination: pair.destination,
            bits: 8.0 * (1e6 + 1e3 * k as f64),
        })
        .collect();
    let level = FlowLevel::new(&plan);
    let begun = cpu_s();
    let shared = level.run(&transfers).expect("routes");
    let seconds = cpu_s() - begun;
    let end = shared.seconds.iter().copied().fold(0.0, f64::max);
    println!("transfers {} solutions {} cpu_s {seconds:.4} ends_s {end:.9}", transfers.len(), shared.solutions);
    if let Some(file) = file {
        let lines = pairs.iter().zip(&transfers).zip(&shared.seconds).map(|((pair, transfer), end)| {
            let name = |host: fabric::HostId| &plan.topology.host(host).name;
            format!("{} {} {:.0} {end:.9}\n", name(pair.source), name(pair.destination), transfer.bits / 8.0)
        });
        fs::write(file, lines.collect::<String>()).expect("write the ends");
    }
}

fn phased(side: &str) {
    let plan = planned("torus", &format!("{side}x{side}"));
    let planned_s = cpu_s();
    let level = FlowLevel::new(&plan);
    let pairs = Pattern::AllToAllPhased.pairs(&plan.topology, 1).expect("any number of hosts");
    let (mut seconds, mut solutions) = (0.0, 0);
    for phase in pairs.chunk_by(|a, b| a.phase == b.phase) {
        let transfer =
            |pair: &sim::pattern::Pair| Transfer { source: pair.source, destination: pair.destination, bits: 8e6 };
        let shared = level.run(&phase.iter().map(transfer).collect::<Vec<_>>()).expect("routes");
        seconds += shared.seconds.iter().copied().fold(0.0, f64::max);
        solutions += shared.solutions;
    }
    let status = fs::read_to_string("/proc/self/status").expect("Linux");
    let peak = status.lines().find(|line| line.starts_with("VmHWM")).unwrap_or_default().to_owned();
    println!(
        "transfers {} solutions {solutions} cpu_s {:.3} ends_s {seconds:.6} planning_cpu_s {planned_s:.3} {peak}",
        pairs.len(),
        cpu_s() - planned_s
    );
}
