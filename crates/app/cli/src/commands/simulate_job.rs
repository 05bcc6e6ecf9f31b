//! `espalier simulate` with a program instead of a pattern: collectives, schedules, traces, matrices, random messages.

use std::{path::Path, process::ExitCode, time::Instant};

use anyhow::Result;
use fabric::{Plan, format::table::Table};
use indicatif::ProgressBar;
use sim::{
    fault::{parse_fault, read_faults},
    flow_job::{FlowJobOutcome, JobProgress, run_job_while},
    job::{Job, Memory, Messaging, in_order},
    packet::{Outcome, PacketConfig, Simulation},
    program::{
        Program,
        collective::Operation,
        executor::{Costs, MessageTime, Ran},
        goal::read_goal,
        ti::{Reading, read_traces},
    },
    random::{Random, matrix_program},
    spread::Spread,
    workload::{Fault, Transport, Workload},
};

use super::{
    Output,
    drive::{QUIET, SEED, Shown, drive},
    interrupt::{INTERRUPTED, Interrupt},
    outputs, say,
    simulate_spread::spread_said,
};
use crate::{
    cli,
    failure::{FAILED, bad_input},
    files::{read_text, read_texts, read_traffic, write_file},
};

/// Octets of a collective's block or vector unless it is said.
const BYTES: u64 = 64 << 10;
/// Messages up to here are sent without asking the receiver first, in octets, unless it is said.
const EAGER_BYTES: u64 = 65_536;
/// Simulated time that a program may take unless it is said, in milliseconds.
const DURATION_MS: f64 = 3_600_000.0;
/// Classes of sizes, in octets, whose times are told apart.
const CLASSES: [u64; 3] = [10_000, 1_000_000, u64::MAX];

/// How a program is run.
pub(super) struct RunMode {
    pub(super) transport: Transport,
    pub(super) payload_bytes: u32,
    pub(super) config: PacketConfig,
}

pub(super) fn run(
    plan: &Plan,
    args: &cli::Simulate,
    way: RunMode,
    faults: Vec<Fault>,
    output: Output,
) -> Result<ExitCode> {
    let (name, program) = read_program(plan, args)?;
    let workload = &args.workload;
    let overhead_ps = (workload.overhead_us.unwrap_or(0.0) * 1e6) as u64;
    let messaging = Messaging {
        transport: way.transport,
        payload_bytes: way.payload_bytes,
        costs: Costs {
            eager_bytes_max: workload.eager.unwrap_or(EAGER_BYTES),
            send_ps: overhead_ps,
            receive_ps: overhead_ps,
        },
        memory: Memory::default(),
    };
    let ranks_per_host = workload.ranks_per_host.unwrap_or(1);
    let hosts = in_order(&plan.topology, program.ranks(), ranks_per_host);
    let used = program.ranks().div_ceil(ranks_per_host);
    if used > plan.topology.hosts().len() {
        let per_host = program.ranks().div_ceil(plan.topology.hosts().len());
        return Err(bad_input(format!(
            "{} ranks need {used} hosts and the plan has {}; put more on each with --ranks-per-host {per_host}",
            program.ranks(),
            plan.topology.hosts().len(),
        )));
    }
    let job =
        Job::new(&plan.topology, program, hosts, messaging, faults).map_err(|error| bad_input(error.to_string()))?;
    let mut config = way.config;
    (config.warmup_ps, config.duration_ps) = (0, (args.duration_ms.unwrap_or(DURATION_MS) * 1e9) as u64);
    outputs::check_program(&args.outputs)?;
    outputs::check(&plan.topology, args.level, &args.outputs)?;
    config.sample_ps = outputs::sample_ps(&args.outputs, config.duration_ps)?;
    let interrupt = Interrupt::watch()?;
    let (ran, cut_short, reached_ps, outcome) = match args.level {
        cli::SimulationLevel::Packet => {
            let mut simulation = Simulation::of_job(plan, &job, &config);
            drive(&mut simulation, config.duration_ps, Shown::Clock, &interrupt);
            let (outcome, job) = simulation.stop_job();
            let Some(job) = job else { unreachable!("a job was given") };
            let workload = Workload { flows: Vec::new(), faults: Vec::new() };
            let run =
                outputs::Ran { plan, workload: &workload, config: &config, outcome: &outcome, title: name.clone() };
            outputs::write_ports(&run, &args.outputs)?;
            (job.ran, job.cut_short, outcome.elapsed_ps, Some(outcome))
        }
        cli::SimulationLevel::Flow => {
            let outcome = run_at_flow_level(plan, &job, &config, &interrupt)?;
            (outcome.ran, outcome.cut_short, outcome.elapsed_ps, None)
        }
    };
    if let Some(path) = &args.outputs.csv {
        write_file(path, |out| write_messages(&ran, out))?;
    }
    match output {
        Output::Json => say!("{}", json((&name, config.spread), &job, &ran, cut_short, outcome.as_ref())),
        Output::Person => print(
            plan,
            &format!("{name}{}", spread_said(plan, config.spread)),
            &job,
            &ran,
            cut_short,
            outcome.as_ref(),
        )?,
    }
    if interrupt.is_pressed() {
        eprintln!("espalier: stopped by Ctrl-C after {:.6} simulated seconds", reached_ps as f64 / 1e12);
        return Ok(ExitCode::from(INTERRUPTED));
    }
    let failed = !ran.stalled.is_empty() || outcome.is_some_and(|outcome| outcome.deadlock.is_some());
    Ok(if failed { ExitCode::from(FAILED) } else { ExitCode::SUCCESS })
}

/// Runs to the end or to Ctrl-C, showing the simulated clock once it has taken a while.
fn run_at_flow_level(plan: &Plan, job: &Job, config: &PacketConfig, interrupt: &Interrupt) -> Result<FlowJobOutcome> {
    let (begun, mut bar) = (Instant::now(), None);
    let mut go_on = |progress: JobProgress| {
        if bar.is_none() && begun.elapsed() > QUIET {
            bar = Some(ProgressBar::new_spinner());
        }
        if let Some(bar) = &bar {
            let now_s = progress.now_ps as f64 / 1e12;
            bar.set_message(format!("{now_s:.3} s simulated, {} messages arrived", progress.messages));
            bar.tick();
        }
        !interrupt.is_pressed()
    };
    let outcome = run_job_while(plan, job, config, &mut go_on).map_err(|error| bad_input(error.to_string()));
    if let Some(bar) = bar {
        bar.finish_and_clear();
    }
    outcome
}

/// Faults of the command line: each argument is one, or a file of them.
pub(super) fn read_fault_arguments(plan: &Plan, arguments: &[String]) -> Result<Vec<Fault>> {
    let mut faults = Vec::new();
    for argument in arguments {
        if Path::new(argument).is_file() {
            let (name, text) = read_text(Path::new(argument))?;
            faults.extend(read_faults(&name, &text, &plan.topology).map_err(|wrong| bad_input(wrong.to_string()))?);
        } else {
            let fault = parse_fault(argument, &plan.topology);
            faults.push(fault.map_err(|wrong| bad_input(format!("--fault {argument:?}: {wrong}")))?);
        }
    }
    faults.sort_by_key(|fault| fault.at_ps);
    Ok(faults)
}

/// What is run, by name.
fn read_program(plan: &Plan, args: &cli::Simulate) -> Result<(String, Program)> {
    let workload = &args.workload;
    let hosts = plan.topology.hosts().len() as u32;
    let wrong = |error: &dyn std::fmt::Display| bad_input(error.to_string());
    if let Some((collective, algorithm)) = workload.collective {
        let ranks = workload.ranks.unwrap_or(hosts * workload.ranks_per_host.unwrap_or(1) as u32);
        let operation =
            Operation { collective, algorithm, bytes: args.bytes.unwrap_or(BYTES), root: workload.root.unwrap_or(0) };
        let operation = operation.resolve(ranks).map_err(|error| wrong(&error))?;
        let name = format!("{collective}, {}, of {} octets", operation.algorithm, operation.bytes);
        return Ok((name, operation.program(ranks, workload.times).map_err(|error| wrong(&error))?));
    }
    if let Some(path) = &workload.goal {
        let (name, text) = read_text(path)?;
        let program = read_goal(&name, &text).map_err(|error| wrong(&error))?;
        return Ok((name, program));
    }
    if let Some(path) = &workload.trace {
        let algorithms = workload.algorithm.clone();
        let reading = Reading { ps_per_flop: workload.ns_per_flop * 1000.0, algorithms, ..Reading::default() };
        let files = read_texts(path)?;
        let files: Vec<(&str, &str)> = files.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
        let program = read_traces(&files, &reading).map_err(|error| wrong(&error))?;
        return Ok((path.display().to_string(), program));
    }
    if let Some(path) = &workload.matrix {
        let matrix = read_traffic(path, &plan.topology)?;
        let program = matrix_program(&matrix, args.bytes.unwrap_or(1) as f64).map_err(|error| wrong(&error))?;
        return Ok((path.display().to_string(), program));
    }
    let Some(messages) = workload.random else { return Err(bad_input("no program is named")) };
    let random =
        Random { messages, load: workload.load, sizes: workload.sizes.clone(), seed: args.seed.unwrap_or(SEED) };
    let program = random.program(&plan.topology).map_err(|error| wrong(&error))?;
    Ok((format!("{messages} random messages, {}, load {}", workload.sizes, workload.load), program))
}

fn print(plan: &Plan, name: &str, job: &Job, ran: &Ran, cut_short: bool, outcome: Option<&Outcome>) -> Result<()> {
    let (messages, bytes) = job.program().sent();
    say!("{name}: {} ranks, {messages} messages, {bytes} bytes", job.program().ranks());
    let end_s = ran.end_ps() as f64 / 1e12;
    let computed_s = ran.computed_ps.iter().map(|ps| *ps as f64 / 1e12).sum::<f64>() / ran.computed_ps.len() as f64;
    say!("  ends after              {end_s:.6} s");
    if computed_s > 0.0 {
        say!("  of it a rank computes   {computed_s:.6} s on average, {:.0} %", 100.0 * computed_s / end_s);
    }
    say!("  arrived                 {} messages, {} bytes", ran.messages, ran.bytes);
    if !ran.times.is_empty() {
        let mut table = Table::new(["messages", "count", "median us", "99 % within", "longest"]);
        for (name, times) in classes(&ran.times) {
            let at = |share: f64| times[((times.len() - 1) as f64 * share) as usize] as f64 / 1e6;
            let cells = [at(0.5), at(0.99), at(1.0)].map(|us| format!("{us:.1}"));
            table.row([vec![name, times.len().to_string()], cells.to_vec()].concat());
        }
        say!("{table}");
    }
    if let Some(outcome) = outcome {
        let counters = &outcome.counters;
        say!(
            "frames: {} sent, {} lost to full buffers, {} to faults, {} marked, {} PAUSE",
            counters.injected + counters.copied,
            counters.dropped_full,
            counters.dropped_fault,
            counters.marked,
            counters.pauses
        );
        if let Some(deadlock) = &outcome.deadlock {
            say!("DEADLOCK after {:.1} ms; each port waits for the next:", deadlock.at_ps as f64 / 1e9);
            for blocked in &deadlock.cycle {
                say!("  {}", plan.topology.port_label(blocked.port));
            }
        }
    }
    if !ran.stalled.is_empty() {
        say!("{}:", if cut_short { "NOT DONE when the simulated time was over" } else { "STALLED" });
        for line in &ran.stalled {
            say!("  {line}");
        }
    }
    Ok(())
}

/// Times of messages from the moment in which they could go to their arrival, sorted, by class of sizes.
fn classes(times: &[MessageTime]) -> Vec<(String, Vec<u64>)> {
    let mut above = 0;
    let mut found = Vec::new();
    for upto in CLASSES {
        let own = times.iter().filter(|time| time.bytes >= above && time.bytes < upto);
        let mut own: Vec<u64> = own.map(|time| time.arrived_ps - time.sent_ps).collect();
        own.sort_unstable();
        let name = if upto == u64::MAX { format!("of {above} bytes or more") } else { format!("below {upto} bytes") };
        if !own.is_empty() {
            found.push((name, own));
        }
        above = upto;
    }
    found
}

fn json(
    (name, spread): (&str, Spread),
    job: &Job,
    ran: &Ran,
    cut_short: bool,
    outcome: Option<&Outcome>,
) -> serde_json::Value {
    let (messages, bytes) = job.program().sent();
    serde_json::json!({
        "workload": name, "spread": spread.word(), "ranks": job.program().ranks(), "messages": messages, "bytes": bytes,
        "end_ps": ran.end_ps(), "ended_ps": ran.ended_ps, "computed_ps": ran.computed_ps,
        "arrived": { "messages": ran.messages, "bytes": ran.bytes },
        "stalled": ran.stalled, "cut_short": cut_short,
        "frames": outcome.map(|outcome| serde_json::json!({
            "injected": outcome.counters.injected, "dropped_full": outcome.counters.dropped_full,
            "dropped_fault": outcome.counters.dropped_fault, "marked": outcome.counters.marked,
            "pauses": outcome.counters.pauses })),
        "deadlock": outcome.map(|outcome| outcome.deadlock.is_some()),
    })
}

fn write_messages(ran: &Ran, out: &mut dyn std::io::Write) -> std::io::Result<()> {
    writeln!(out, "from_rank,to_rank,bytes,sent_us,arrived_us")?;
    for time in &ran.times {
        let us = |ps: u64| ps as f64 / 1e6;
        writeln!(out, "{},{},{},{:.6},{:.6}", time.from, time.to, time.bytes, us(time.sent_ps), us(time.arrived_ps))?;
    }
    Ok(())
}
