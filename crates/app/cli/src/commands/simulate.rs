//! `espalier simulate`: what a plan's switches do with a traffic pattern, where it chokes, and how far that is from the
//! best that any routing could do.

use std::{process::ExitCode, time::Instant};

use anyhow::Result;
use fabric::{
    ChannelId, FdbMode, FloodKind, Plan,
    format::{plan::ReadMode, table::Table},
};
use indicatif::{ProgressBar, ProgressStyle};
use sim::{
    flow::{Progress, Transfer},
    packet::{Arp, FlowControlAt, Outcome, PacketConfig, Refresh, Simulation, Switching},
    pattern::{Pair, Pattern},
    spread::Spread,
    workload::{Arrivals, Fault, Flow, SECOND_PS, TcpVariant, Transport, Workload},
};

use super::{
    Output,
    drive::{QUIET, SEED, Shown, drive},
    interrupt::{INTERRUPTED, Interrupt},
    outputs::{self, FlowRun, Ran, Settings, packet_json},
    say, simulate_job, simulate_options,
    simulate_spread::{count_json, count_said, even_loads, level_of, loads_at_once, spread_said},
};
use crate::{
    cli,
    failure::{FAILED, bad_input},
    files::{read_plan_file, write_file},
};

/// Simulated time unless it is said, in milliseconds.
const DURATION_MS: f64 = 100.0;
/// Channels that a person is shown.
const BUSIEST_SHOWN: usize = 5;

pub(super) fn run(args: &cli::Simulate, output: Output) -> Result<ExitCode> {
    simulate_options::check(args)?;
    let plan = read_plan_file(&args.plan, ReadMode::Strict)?;
    if plan.policy.fdb == FdbMode::Learned {
        return Err(bad_input(
            "the simulated switches do not learn; plan with --fdb minimal and simulate that; its trees may differ where flow control asks for a proof",
        ));
    }
    if args.fabric.arp && plan.policy.flood.blocked().contains(FloodKind::Broadcast) {
        return Err(bad_input(format!(
            "--arp: the plan drops broadcasts (--flood {}), so no ARP request would be answered; simulate without --arp",
            plan.policy.flood
        )));
    }
    if plan.topology.hosts().len() < 2 {
        return Err(bad_input("traffic needs two hosts at least"));
    }
    let spread = match args.level {
        cli::SimulationLevel::Packet => {
            args.spread.check_packet(&plan).and_then(|()| args.spread.check_transport(transport(args).0))
        }
        cli::SimulationLevel::Flow => args.spread.check_flow(&plan),
    };
    spread.map_err(|error| bad_input(error.to_string()))?;
    let faults = simulate_job::read_fault_arguments(&plan, &args.fabric.fault)?;
    if args.workload.is_program() {
        let (transport, payload_bytes) = transport(args);
        let way = simulate_job::RunMode { transport, payload_bytes, config: packet_config(args) };
        return simulate_job::run(&plan, args, way, faults, output);
    }
    let pairs =
        args.pattern.pairs_of(&plan, args.seed.unwrap_or(SEED)).map_err(|error| bad_input(error.to_string()))?;
    if pairs.is_empty() && !args.pattern.floods() {
        let (pattern, hosts) = (args.pattern, plan.topology.hosts().len());
        return Err(bad_input(format!(
            "nobody sends in the pattern {pattern} of {hosts} hosts: choose another with --pattern"
        )));
    }
    match args.level {
        cli::SimulationLevel::Packet => packet_level(&plan, &pairs, args, faults, output),
        cli::SimulationLevel::Flow => flow_level(&plan, &pairs, args, output),
    }
}

fn transport_of(args: &cli::Simulate) -> cli::TransportChoice {
    args.transport.unwrap_or(cli::TransportChoice::Udp)
}

fn flow_control_of(args: &cli::Simulate) -> cli::FlowControlChoice {
    args.flow_control.unwrap_or(cli::FlowControlChoice::AsPlanned)
}

fn transport(args: &cli::Simulate) -> (Transport, u32) {
    match transport_of(args) {
        cli::TransportChoice::Udp => (Transport::Udp { rate_bps: None, arrivals: Arrivals::Even }, 1472),
        cli::TransportChoice::Reno => (Transport::Tcp(TcpVariant::Reno), 1448),
        cli::TransportChoice::Cubic => (Transport::Tcp(TcpVariant::Cubic), 1448),
        cli::TransportChoice::GoBackN => (Transport::GoBackN, 1024),
    }
}

fn packet_config(args: &cli::Simulate) -> PacketConfig {
    let duration_ps = (args.duration_ms.unwrap_or(DURATION_MS) * (SECOND_PS as f64) / 1e3) as u64;
    PacketConfig {
        switching: if args.cut_through { Switching::CutThrough } else { Switching::StoreAndForward },
        flow_control: match flow_control_of(args) {
            cli::FlowControlChoice::AsPlanned => FlowControlAt::AsPlanned,
            cli::FlowControlChoice::None => FlowControlAt::Nowhere,
            cli::FlowControlChoice::All => FlowControlAt::Everywhere,
            cli::FlowControlChoice::Hosts => FlowControlAt::Hosts,
            cli::FlowControlChoice::Switches => FlowControlAt::Switches,
        },
        refresh: if args.refresh_pause { Refresh::HalfTime } else { Refresh::OnArrival },
        spread: args.spread,
        flowlet_gap_ps: args.flowlet_gap_us.map_or(PacketConfig::default().flowlet_gap_ps, |us| (us * 1e6) as u64),
        ecn_bytes: args.fabric.ecn,
        arp: if args.fabric.arp { Arp::Ask } else { Arp::Known },
        duration_ps,
        // Sizes end by themselves; rates are those of the second half, when queues have settled.
        warmup_ps: if args.bytes.is_some() { 0 } else { duration_ps / 2 },
        seed: args.seed.unwrap_or(SEED),
        ..PacketConfig::default()
    }
}

fn packet_level(
    plan: &Plan,
    pairs: &[Pair],
    args: &cli::Simulate,
    faults: Vec<Fault>,
    output: Output,
) -> Result<ExitCode> {
    let flow_level = level_of(plan, args.spread)?;
    let loads = even_loads(&flow_level, args.spread, pairs)?;
    let together = loads_at_once(&flow_level, args.spread, pairs)?;
    let (transport, payload_bytes) = transport(args);
    let captures = outputs::check(&plan.topology, args.level, &args.outputs)?;
    if args.bytes.is_none() && args.pattern == Pattern::AllToAllPhased {
        return Err(bad_input("phases end when their transfers do: say how much each pair sends with --bytes"));
    }
    let flow = |pair: &Pair| Flow {
        bytes: args.bytes,
        phase: pair.phase,
        transport,
        payload_bytes,
        ..Flow::flood(pair.source, pair.destination)
    };
    let mut flows: Vec<Flow> = pairs.iter().map(flow).collect();
    if let Some(kind) = args.pattern.flood() {
        let flood = |source| Flow { destination: None, flood: kind, bytes: args.bytes, ..Flow::flood(source, source) };
        flows.extend(plan.topology.host_ids().map(flood));
    }
    let workload = Workload { flows, faults };
    let mut config = packet_config(args);
    config.sample_ps = outputs::sample_ps(&args.outputs, config.duration_ps)?;
    config.captures.clone_from(&captures);
    let duration_ps = config.duration_ps;
    let interrupt = Interrupt::watch()?;
    let mut simulation = Simulation::new(plan, &workload, &config);
    drive(&mut simulation, duration_ps, Shown::Share, &interrupt);
    let outcome = simulation.stop();
    let hosts = plan.topology.hosts().len();
    let spread = spread_said(plan, args.spread);
    let title = format!("{}, {hosts} hosts, {}{spread}", args.pattern.title(hosts), word(transport_of(args)));
    let ran = Ran { plan, workload: &workload, config: &config, outcome: &outcome, title };
    outputs::write_packet(&ran, &args.outputs, &captures)?;
    let view = View::new(plan, &loads, &together, pairs, args);
    let contradiction = outcome.deadlock.is_some()
        && plan.certificate.is_some()
        && matches!(flow_control_of(args), cli::FlowControlChoice::AsPlanned);
    match output {
        Output::Json => {
            let busiest = view.busiest.map(|(channel, load)| (plan.topology.channel_label(channel), count_json(load)));
            let settings = Settings {
                pattern: view.pattern.to_string(),
                pattern_hosts: view.pattern.hosts_of(hosts),
                spread: args.spread,
                transport: word(transport_of(args)),
                flow_control: word(flow_control_of(args)),
                bytes: args.bytes,
                interrupted: interrupt.is_pressed(),
                fair_bps: view.fair_bps,
                bound_bps: view.bound_bps,
                bottleneck: busiest,
            };
            say!("{}", packet_json(&ran, &settings));
        }
        Output::Person => print_packet(plan, &view, args.spread, &outcome)?,
    }
    if interrupt.is_pressed() {
        let (reached, asked) = (outcome.elapsed_ps as f64 / 1e9, duration_ps as f64 / 1e9);
        eprintln!("espalier: stopped by Ctrl-C after {reached:.1} of {asked:.1} simulated milliseconds");
        return Ok(ExitCode::from(INTERRUPTED));
    }
    if contradiction {
        eprintln!("espalier: the plan is certified free of deadlock and deadlocked: please report this as a bug");
    }
    Ok(if outcome.deadlock.is_some() { ExitCode::from(FAILED) } else { ExitCode::SUCCESS })
}

/// An option's value as the command line spells it.
fn word(value: impl clap::ValueEnum) -> String {
    value.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
}

/// What the pairs and the plan say before anything runs.
struct View {
    pairs: usize,
    pattern: Pattern,
    /// The channel between switches that most pairs cross, and how many do.
    busiest: Option<(ChannelId, f64)>,
    /// Raw rate that a pair has on the busiest cable or channel if all share it evenly.
    fair_bps: f64,
    /// The same with the best routing there could be, as far as is proved.
    bound_bps: f64,
    bound_of: &'static str,
    by_load: Vec<(ChannelId, f64)>,
}

impl View {
    /// `loads` are pairs over each resource in all, `together` those that share it at one time.
    fn new(plan: &Plan, loads: &[f64], together: &[f64], pairs: &[Pair], args: &cli::Simulate) -> Self {
        let topology = &plan.topology;
        let channels = topology.channel_count();
        let rate = |channel: ChannelId| topology.link(channel.link()).rate_bps as f64;
        let share = |(channel, _): &(ChannelId, f64)| rate(*channel) / together[channel.index()];
        let mut by_load: Vec<(ChannelId, f64)> = topology
            .channel_ids()
            .map(|channel| (channel, loads[channel.index()]))
            .filter(|(_, load)| *load > 0.0)
            .collect();
        by_load.sort_by(|a, b| share(a).total_cmp(&share(b)));
        let hosts = topology.hosts().len();
        let cable = (0..2 * hosts)
            .filter(|cable| together[channels + cable] > 0.0)
            .map(|cable| topology.hosts()[cable % hosts].rate_bps as f64 / together[channels + cable])
            .fold(f64::INFINITY, f64::min);
        let busiest = by_load.first().copied();
        let fair_bps = busiest.as_ref().map_or(cable, |busiest| share(busiest).min(cable));
        // The plan's bound is for everybody to everybody; for other patterns only hosts' cables bound.
        let proved = args.pattern == Pattern::AllToAll
            && plan.policy.traffic == fabric::Traffic::AllToAll
            && plan.policy.further_traffic.is_empty()
            && plan.policy.host_weights(topology).is_none()
            && plan.summary.load_bound > 0.0;
        let (bound_bps, bound_of) = if proved {
            let routed = topology.rate_max_bps() as f64 / plan.summary.load_bound;
            if routed < cable { (routed, "any routing of these cables") } else { (cable, "the hosts' cables") }
        } else {
            (cable, "the hosts' cables")
        };
        Self { pairs: pairs.len(), pattern: args.pattern, busiest, fair_bps, bound_bps, bound_of, by_load }
    }
}

fn print_packet(plan: &Plan, view: &View, spread: Spread, outcome: &Outcome) -> Result<()> {
    let topology = &plan.topology;
    // Floods come after the pairs.
    let rates: Vec<f64> = (0..view.pairs).map(|flow| outcome.goodput_bps(flow)).collect();
    let mean = rates.iter().sum::<f64>() / rates.len().max(1) as f64;
    let slowest = rates.iter().copied().fold(f64::INFINITY, f64::min);
    say!(
        "{}: {} pairs, {:.1} ms simulated{}",
        view.pattern.title(topology.hosts().len()),
        view.pairs,
        outcome.elapsed_ps as f64 / 1e9,
        spread_said(plan, spread)
    );
    let mut table = Table::new(["", "Mbit/s for each pair", "of the bound"]);
    let of_bound = |bps: f64| format!("{:.0} %", 100.0 * bps / view.bound_bps);
    let mut row =
        |name: &str, bps: f64, share: String| table.row([name.to_owned(), format!("{:.1}", bps / 1e6), share]);
    // The bound is what all pairs can have at the same time; the mean exceeds it where some of them have faster cables.
    row("payload that arrived, mean", mean, String::new());
    row("payload that arrived, slowest pair", slowest, of_bound(slowest));
    row("the plan's most loaded channel, shared evenly", view.fair_bps, of_bound(view.fair_bps));
    row(&format!("the bound for the slowest pair: {}", view.bound_of), view.bound_bps, of_bound(view.bound_bps));
    say!("{table}\n");
    match view.busiest {
        Some((channel, load)) => {
            say!(
                "bottleneck: {}, which {} of {} pairs cross",
                topology.channel_label(channel),
                count_said(load),
                view.pairs
            )
        }
        None => say!("bottleneck: the hosts' own cables; nothing crosses a link"),
    }
    let mut table = Table::new(["most loaded channels", "pairs", "use", "longest queue", "lost here", "paused"]);
    for (channel, load) in view.by_load.iter().take(BUSIEST_SHOWN) {
        let port = &outcome.ports[topology.tail_port(*channel).index()];
        let rate = topology.link(channel.link()).rate_bps as f64;
        let used = port.wire_bytes as f64 * 8e12 / outcome.elapsed_ps as f64 / rate;
        table.row([
            topology.channel_label(*channel),
            count_said(*load),
            format!("{:.0} %", 100.0 * used),
            format!("{:.1} KiB", f64::from(port.queue_bytes_max) / 1024.0),
            port.dropped.to_string(),
            format!("{:.0} %", 100.0 * port.paused_ps as f64 / outcome.elapsed_ps as f64),
        ]);
    }
    say!("{table}\n");
    let counters = &outcome.counters;
    say!(
        "frames: {} sent, {} delivered, {} lost ({:.2} % of data), {} on their way, {} PAUSE",
        counters.injected + counters.copied,
        counters.delivered + counters.strayed,
        counters.dropped(),
        100.0 * counters.dropped() as f64 / counters.injected.max(1) as f64,
        counters.in_flight,
        counters.pauses
    );
    if counters.dropped_storm > 0 {
        say!("of these {} floods beyond the storm limit of hosts' ports (--storm-control)", counters.dropped_storm);
    }
    if counters.dropped_blocked > 0 {
        say!("of these {} floods that switches drop (--flood {})", counters.dropped_blocked, plan.policy.flood);
    }
    if counters.dropped_fault + counters.marked > 0 {
        say!("of these {} lost to faults, {} marked for congestion", counters.dropped_fault, counters.marked);
    }
    if let Some(deadlock) = &outcome.deadlock {
        say!("\nDEADLOCK after {:.1} ms; each port waits for the next:", deadlock.at_ps as f64 / 1e9);
        for blocked in &deadlock.cycle {
            let vlans: Vec<String> = blocked.vlans.iter().map(ToString::to_string).collect();
            let name = |host: fabric::HostId| topology.host(host).name.as_str();
            let flows: Vec<String> =
                blocked.flows.iter().map(|(from, to)| format!("{} -> {}", name(*from), name(*to))).collect();
            say!("  {}  VLAN {}  {}", topology.port_label(blocked.port), vlans.join(","), flows.join(", "));
        }
    }
    say!(
        "deadlock: {}",
        match (&outcome.deadlock, &plan.certificate) {
            (None, Some(_)) => "none, as the plan's certificate says",
            (None, None) => "none seen; the plan has no certificate",
            (Some(_), Some(_)) => "yes, though the plan has a certificate for its own flow control",
            (Some(_), None) => "yes; the plan has no certificate",
        }
    );
    Ok(())
}

/// Max-min fair rates: each phase runs until its last transfer has ended.
fn flow_level(plan: &Plan, pairs: &[Pair], args: &cli::Simulate, output: Output) -> Result<ExitCode> {
    outputs::check(&plan.topology, args.level, &args.outputs)?;
    let interrupt = Interrupt::watch()?;
    let level = level_of(plan, args.spread)?;
    let no_route = |error: sim::flow::NoRoute| bad_input(error.to_string());
    let bits = args.bytes.unwrap_or(1_000_000) as f64 * 8.0;
    let phases = pairs.last().map_or(0, |pair| pair.phase + 1);
    let (mut seconds, mut solutions, mut rate_sum) = (0.0, 0, 0.0);
    let (mut carried, mut loads) = (vec![0.0; level.resources()], vec![0.0; level.resources()]);
    let mut slowest = f64::INFINITY;
    let begun = Instant::now();
    let mut bar: Option<ProgressBar> = None;
    let mut rest = pairs;
    let mut ends = args.outputs.csv.as_ref().map(|_| Vec::new());
    while let Some(first) = rest.first() {
        let before = pairs.len() - rest.len();
        let mut go_on = |progress: Progress| {
            if bar.is_none() && begun.elapsed() > QUIET {
                let template = "{elapsed} [{bar:40}] {human_pos} of {human_len} transfers";
                let style = ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
                bar = Some(ProgressBar::new(pairs.len() as u64).with_style(style));
            }
            if let Some(bar) = &bar {
                bar.set_position((before + progress.ended) as u64);
            }
            !interrupt.is_pressed()
        };
        let (phase, later) = rest.split_at(rest.partition_point(|pair| pair.phase == first.phase));
        let transfer = |pair: &Pair| Transfer { source: pair.source, destination: pair.destination, bits };
        let transfers: Vec<Transfer> = phase.iter().map(transfer).collect();
        let Some(shared) = level.run_while(&transfers, &mut go_on).map_err(no_route)? else {
            if let Some(bar) = bar {
                bar.finish_and_clear();
            }
            eprintln!("espalier: stopped by Ctrl-C in phase {} of {phases}; nothing is written", first.phase + 1);
            return Ok(ExitCode::from(INTERRUPTED));
        };
        for (resource, amount) in shared.carried.iter().enumerate() {
            carried[resource] += amount;
            // Sums of whole pairs, but for what rounding leaves, where a pair has one path.
            let pairs = amount / bits;
            loads[resource] += if args.spread == Spread::Ideal { pairs } else { pairs.round() };
        }
        solutions += shared.solutions;
        slowest = shared.seconds.iter().map(|end| bits / end).fold(slowest, f64::min);
        rate_sum += shared.seconds.iter().map(|end| bits / end).sum::<f64>();
        if let Some(ends) = &mut ends {
            ends.extend(shared.seconds.iter().map(|end| seconds + end));
        }
        seconds += shared.seconds.iter().copied().fold(0.0, f64::max);
        rest = later;
    }
    if let Some(bar) = bar {
        bar.finish_and_clear();
    }
    if let (Some(path), Some(ends)) = (&args.outputs.csv, &ends) {
        write_file(path, |out| outputs::write_transfers(plan, pairs, ends, out))?;
    }
    let hosts = plan.topology.hosts().len();
    let spread = spread_said(plan, args.spread);
    let title = format!("{}, {hosts} hosts, flow level{spread}", args.pattern.title(hosts));
    outputs::write_flow(&FlowRun { plan, carried: &carried, seconds, title }, &args.outputs)?;
    // No schedule whatever ends sooner than the busiest resource needs.
    let busiest = (0..level.resources())
        .max_by(|a, b| (carried[*a] / level.capacity_bps()[*a]).total_cmp(&(carried[*b] / level.capacity_bps()[*b])))
        .unwrap_or(0);
    let least = carried[busiest] / level.capacity_bps()[busiest];
    let view = View::new(plan, &loads, &loads, pairs, args);
    let bound = bits / view.bound_bps;
    match output {
        Output::Json => say!(
            "{}",
            serde_json::json!({
                "level": "flow", "spread": args.spread.word(), "pattern": view.pattern.to_string(), "hosts": hosts,
                "pattern_hosts": view.pattern.hosts_of(hosts), "pairs": pairs.len(), "phases": phases,
                "seconds": seconds, "busiest": level.label(busiest), "busiest_seconds": least, "bound_seconds": bound,
                "mean_rate_bps": rate_sum / pairs.len() as f64, "slowest_rate_bps": slowest, "solutions": solutions,
            })
        ),
        Output::Person => {
            let (title, spread) = (view.pattern.title(hosts), spread_said(plan, args.spread));
            say!("{title}: {} pairs in {phases} phases, {} bytes each{spread}", pairs.len(), bits / 8.0);
            say!("  ends after              {seconds:.4} s");
            say!("  the most loaded needs   {least:.4} s  {}", level.label(busiest));
            say!("  {:<24}{bound:.4} s", format!("{}:", view.bound_of));
            say!("  slowest pair            {:.1} Mbit/s", slowest / 1e6);
            say!("  mean rate of a pair     {:.1} Mbit/s", rate_sum / pairs.len() as f64 / 1e6);
        }
    }
    Ok(ExitCode::SUCCESS)
}
