//! `espalier plan`: plans, has the plan judged, prints what it achieves, writes it.

use std::{
    io::{self, IsTerminal},
    iter,
    process::ExitCode,
    time::{Duration, Instant},
};

use anyhow::Result;
use fabric::{
    FailoverSummary, FdbMode, Flood, FlowControl, Group, InBand, LinkId, PartCoverage, PathSummary, Plan, Planes,
    Policy, Report, Resilience, Summary, Tagging, Topology, TopologyBuilder, Traffic, TrafficMatrix, VlanId, VlanPool,
    format::{
        plan::ReadMode,
        report::{failover_json, load_json, report_json, summary_json},
    },
};
use verify::{Deadlock, FrameKind, Judgement, kinds_words};

use super::{
    Output, drain,
    explain::{self, Limit},
    loads::{all_to_all, load_of_each, load_words, max_load, most_loaded},
    observe::observed_vlans,
    pareto,
    patience::Patience,
    planes, price,
    processors::processors,
    say, since, suggest_cables,
    verdict::{deadlock_json, print_open, print_report},
};
use crate::{
    cli,
    count::{abridged, counted},
    failure::{FAILED, bad_input},
    files::{read_plan_file, read_topology_as, read_traffic, write_plan_file},
};

/// What `--traffic` calls traffic from every host to every other.
const ALL_TO_ALL: &str = "all-to-all";
/// Idle cables named to a person; the rest are counted.
const IDLE_SHOWN_MAX: usize = 4;
/// Groups, or failover bonds, named to a person; the rest are counted.
const NAMES_SHOWN_MAX: usize = 8;

pub(super) fn run(args: &cli::Plan, output: Output) -> Result<ExitCode> {
    let topology = in_band(read_topology_as(&args.topology, args.from.as_deref(), &args.own)?, args)?;
    let previous = args.previous.as_deref().map(|path| read_plan_file(path, ReadMode::Strict)).transpose()?;
    if args.resilience == Resilience::OneGroup && topology.groups().is_empty() {
        return Err(bad_input(
            "--resilience group: the topology names no groups; add a section such as groups: {feed-a: [sw1, sw2]}, or use --resilience switch",
        ));
    }
    let policy = policy(args, &topology, previous.as_ref())?;
    if args.pareto {
        return pareto::run(&topology, &policy, output);
    }
    if let Some(wanted) = args.suggest_cables {
        if !policy.further_traffic.is_empty() {
            return Err(bad_input("--suggest-cables goes by one traffic matrix; name one --traffic"));
        }
        return suggest_cables::run(&topology, &policy, wanted, output);
    }
    let started = Instant::now();
    let mut patience = Patience::new(&topology, &policy)?;
    let limits = if previous.is_none() { price::limits(&topology, &policy)? } else { Vec::new() };
    if !limits.is_empty() {
        patience.restart(&topology, &policy, price::time_limit(&policy, &limits), String::new());
    }
    let plan = match &previous {
        Some(previous) if args.keep_order => planner::plan_within_order(&topology, &policy, previous, &mut patience)?,
        previous => planner::plan_with(&topology, &policy, previous.as_ref(), &mut patience)?,
    };
    let log = patience.take_log();
    let limit = match policy.time_limit {
        _ if patience.is_interrupted() => Limit::Interrupt,
        Some(limit) => Limit::Time(limit),
        None => Limit::Steps,
    };
    let elapsed_ms = started.elapsed().as_secs_f64() * 1000.0;
    let prices = price::prices(limits, &plan, &mut patience);
    patience.finish();
    let judgement = verify::judge_with(&plan, processors());
    let report = &judgement.report;
    let fit = report.is_deployable();
    let anew = previous.as_ref().and_then(|_| better_anew(&plan, &patience));
    match output {
        Output::Json => {
            let mut object = json(&plan, report, elapsed_ms);
            object["deadlock"] = deadlock_json(&judgement);
            if args.explain {
                object["explain"] = explain::json(&plan, &log);
            }
            for price in &prices {
                object[price.key()] = price.json();
            }
            if let Some(previous) = &previous {
                object["difference"] = since::difference_json(&transition::difference(previous, &plan));
                object["anew"] = anew.as_ref().map_or(serde_json::Value::Null, |anew| summary_json(&anew.summary));
            }
            say!("{object}");
        }
        Output::Person => {
            if io::stderr().is_terminal() {
                eprintln!("planned in {elapsed_ms:.1} ms");
            }
            print_summary(&plan, &judgement)?;
            if args.explain {
                explain::print(&plan, &log, limit)?;
            }
            for price in &prices {
                say!("{}", price.words(&plan));
            }
            if let Some(previous) = &previous {
                print_change(previous, &plan, anew.as_ref())?;
            }
            print_report(report)?;
        }
    }
    if let Some(path) = &args.output {
        if fit || args.force {
            write_plan_file(&plan, path)?;
        } else {
            eprintln!("espalier: the plan is not written, since it is unfit to deploy; --force writes it all the same");
        }
    }
    Ok(if fit { ExitCode::SUCCESS } else { ExitCode::from(FAILED) })
}

/// The topology with the management that the command line asks for, or its own.
fn in_band(topology: Topology, args: &cli::Plan) -> Result<Topology> {
    let (Some(vlan), Some(label)) = (args.management_vlan, &args.controller) else { return Ok(topology) };
    let refused = |fault: fabric::Fault| match fault.help() {
        Some(help) => bad_input(format!("--controller {label}: {fault}; {help}")),
        None => bad_input(format!("--controller {label}: {fault}")),
    };
    let (switch, port) =
        label.split_once(':').ok_or_else(|| bad_input(format!("--controller {label}: write switch:port")))?;
    let mut builder = TopologyBuilder::of(&topology);
    let switch = builder.switch(switch).map_err(refused)?;
    let controller = builder.add_port(switch, port).map_err(refused)?;
    builder.set_in_band(InBand { vlan, controller }).map_err(refused)?;
    builder.finish().map_err(|faults| bad_input(faults.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")))
}

fn policy(args: &cli::Plan, topology: &Topology, previous: Option<&Plan>) -> Result<Policy> {
    let (first, last) = args
        .vlans
        .runs()
        .first()
        .zip(args.vlans.runs().last())
        .map(|(a, b)| (a.0, b.1))
        .ok_or_else(|| bad_input("--vlans names no VLAN; write a range such as 2-4094"))?;
    // Holes in the range are as good as reserved.
    let mut reserved = args.reserved_vlans.clone();
    let holes = (first.get()..=last.get()).filter_map(|id| VlanId::new(id).ok()).filter(|id| !args.vlans.contains(*id));
    reserved.extend(holes);
    if let Some(folder) = &args.avoid_vlans_of {
        reserved.extend(observed_vlans(folder)?.iter());
    }
    let drain = drain::drain(topology, &args.drain)?;
    let (traffic, further_traffic) = traffic(args, topology)?;
    let planes = match args.disjoint {
        true => planner::planes(topology, &drain.links, previous)?,
        false => Planes::default(),
    };
    Ok(Policy {
        engine: args.engine,
        tagging: args.tagging.unwrap_or(if args.paths > 1 { Tagging::Source } else { Tagging::Switch }),
        flow_control: args.flow_control,
        fdb: args.fdb,
        flood: args.flood,
        storm_limit: args.storm_control,
        vlans: VlanPool { first, last, reserved },
        vlans_max: args.max_vlans,
        subnet: args.subnet,
        mtu_bytes: args.mtu,
        traffic,
        further_traffic,
        rails: args.rails,
        weights: args.weights,
        seed: args.seed,
        resilience: args.resilience,
        drain,
        planes,
        hops_max: args.max_hops,
        paths_max: args.paths,
        time_limit: time_limit(args)?,
    })
}

/// What `--traffic` names, all-to-all first if that is named or nothing is.
fn traffic(args: &cli::Plan, topology: &Topology) -> Result<(Traffic, Vec<TrafficMatrix>)> {
    if iter::once(&args.topology).chain(&args.traffic).filter(|path| path.as_os_str() == "-").count() > 1 {
        return Err(bad_input("only one of topology and --traffic can be standard input"));
    }
    let (all_to_all, files): (Vec<_>, Vec<_>) = args.traffic.iter().partition(|path| path.as_os_str() == ALL_TO_ALL);
    let mut matrices = files.into_iter().map(|path| read_traffic(path, topology)).collect::<Result<Vec<_>>>()?;
    let first = if matrices.is_empty() || !all_to_all.is_empty() {
        Traffic::AllToAll
    } else {
        Traffic::Matrix(matrices.remove(0))
    };
    Ok((first, matrices))
}

fn time_limit(args: &cli::Plan) -> Result<Option<Duration>> {
    let wrong = || bad_input("--time-limit takes seconds, such as 10 or 0.5");
    args.time_limit.map(|seconds| Duration::try_from_secs_f64(seconds).map_err(|_| wrong())).transpose()
}

/// The object that `plan --json` prints.
fn json(plan: &Plan, report: &Report, elapsed_ms: f64) -> serde_json::Value {
    let mut summary = summary_json(&plan.summary);
    summary["engine"] = plan.engine.word().into();
    summary["elapsed_ms"] = elapsed_ms.into();
    add_options(plan, &mut summary);
    serde_json::json!({ "summary": summary, "findings": report_json(report), "deployable": report.is_deployable() })
}

/// Adds the loads of each traffic where there are several, what a plan is ready for, what is drained, and which paths are apart,
/// to its figures.
pub(super) fn add_options(plan: &Plan, summary: &mut serde_json::Value) {
    if !plan.policy.further_traffic.is_empty() {
        summary["max_channel_time_by_traffic"] = planner::times_by_traffic(plan).into_iter().map(load_json).collect();
    }
    if let Some(failover) = &plan.failover {
        summary["resilience"] = failover_json(&failover.summary);
    }
    if let Some(drained) = drain::json(plan) {
        summary["drained"] = drained;
    }
    if let Some(planes) = planes::json(plan) {
        summary["disjoint"] = planes;
    }
    let without = bonds_without_failover(plan);
    if !without.is_empty() {
        summary["bonds_without_failover"] = without.into();
    }
}

/// Names of the failover bonds' active ports that no other port can take over from.
fn bonds_without_failover(plan: &Plan) -> Vec<String> {
    plan.bonds_without_failover().into_iter().map(|host| plan.topology.host(host).name.clone()).collect()
}

/// What a plan achieves, for a person.
pub(super) fn print_summary(plan: &Plan, judgement: &Judgement) -> Result<()> {
    let Judgement { deadlock, dropped, .. } = judgement;
    print_open(deadlock)?;
    let Summary { switches, hosts, links, vlans, lanes, .. } = plan.summary;
    let Summary { avg_switches_per_path, avg_hops, max_switches_per_path, .. } = plan.summary;
    let Summary { load_bound, load_gap, .. } = plan.summary;
    let Summary { fdb_entries_max, fdb_entries_total, .. } = plan.summary;
    let lanes = if lanes == 1 { "one lossless lane".to_owned() } else { format!("{lanes} lossless lanes") };
    let with = match plan.policy.flow_control {
        FlowControl::None => "without flow control".to_owned(),
        FlowControl::Pause => "with PAUSE".to_owned(),
        FlowControl::Pfc(classes) => format!("with PFC ({})", counted(usize::from(classes), "class")),
    };
    let proof = match deadlock {
        Deadlock::NothingWaits if plan.summary.deadlock_free => {
            format!(
                "impossible {with}: frames are dropped, not held (and no cycle of channels, should it be turned on)"
            )
        }
        Deadlock::NothingWaits => {
            format!("impossible {with}: frames are dropped, not held (keep it off: the channels form a cycle)")
        }
        Deadlock::Waits { covered, open } if open.is_empty() => {
            format!("proven free {with} ({}; {lanes})", kinds_words(covered))
        }
        Deadlock::Waits { covered, .. } => format!("covers {} {with} ({lanes})", kinds_words(covered)),
    };
    say!("{}, {}, {}", counted(switches, "switch"), counted(links, "link"), counted(hosts, "host"));
    say!("engine           {}, {} tagging", plan.engine, plan.policy.tagging);
    say!("VLANs            {vlans}");
    say!(
        "path             {avg_switches_per_path:.2} switches on average, {max_switches_per_path} at most; {avg_hops:.2} hops"
    );
    let first = most_loaded(plan).into_iter().next();
    let at = first.map_or(String::new(), |channel| format!(" ({})", plan.topology.channel_label(channel)));
    say!("max load         {}{at}; no routing can do better than {load_bound:.1} ({load_gap:.2}×)", max_load(plan));
    if let Some(loads) = load_of_each(plan) {
        say!("of each traffic  {loads}");
    }
    if let Some(rate) = all_to_all(plan) {
        say!("all-to-all       {rate}");
    }
    if let Some(paths) = &plan.summary.paths {
        print_paths(paths)?;
    }
    print_idle(plan)?;
    drain::print(plan)?;
    planes::print(plan)?;
    if let Some(limit) = plan.policy.hops_max {
        let longest = max_switches_per_path.saturating_sub(1);
        say!("hops             {longest} at most between two hosts; --max-hops allows {limit}");
    }
    let label = if matches!(deadlock, Deadlock::Waits { open, .. } if !open.is_empty()) { "proof" } else { "deadlock" };
    say!("{label:<16} {proof}");
    if !dropped.is_empty() {
        let (kinds, are) = (kinds_words(dropped), if dropped.len() == 1 { "is" } else { "are" });
        say!("floods           {kinds} {are} dropped: no switch sends such frames on");
    }
    if let Some(edge) = plan.topology.edge().filter(|_| plan.policy.flood == Flood::Edge) {
        let host = plan.topology.host(edge);
        let at = plan.topology.port_label(host.port);
        say!("floods           unknown unicast leaves by the edge port alone: {} at {at}", host.name);
    }
    for edge in plan.topology.standby_edges() {
        say!(
            "edge             {} at {} is on standby: its port is shut",
            edge.name,
            plan.topology.port_label(edge.port)
        );
    }
    let without = bonds_without_failover(plan);
    if !without.is_empty() {
        let names = abridged(&without, ", ", NAMES_SHOWN_MAX);
        say!("failover bonds   no failover for {names}: the other ports of the bond are in other VLANs;");
        say!("                 plan with --tagging switch, or with --flow-control none and one path a pair");
    }
    let groups = plan.topology.groups().iter().filter(|group| !group.is_link_pair());
    let groups: Vec<String> = groups.map(group_words).collect();
    if !groups.is_empty() {
        say!("groups           {}", abridged(&groups, ", ", NAMES_SHOWN_MAX));
    }
    if dropped.contains(&FrameKind::Broadcast) {
        say!("                 hosts need static neighbour entries (ARP, ND): requests for an address are dropped");
    }
    if plan.summary.lanes > 1 && plan.policy.tagging == Tagging::Switch {
        say!(
            "                 no switch's configuration gives untagged frames a lane: to deploy it, let hosts tag (--tagging source)"
        );
    }
    if let Some(limit) = plan.policy.storm_limit {
        say!(
            "storm control    each host's port admits {limit} % of its rate in broadcasts, multicasts and unknown unicasts each"
        );
    }
    if let Some(in_band) = plan.topology.in_band() {
        let links = in_band.links(&plan.topology, &plan.devices).len();
        let port = plan.topology.port_label(in_band.controller);
        say!("management       in band: VLAN {}, over {} from {port}", in_band.vlan, counted(links, "link"));
    }
    match plan.policy.fdb {
        FdbMode::Full | FdbMode::Minimal => {
            say!("static entries   {fdb_entries_max} on one switch at most, {fdb_entries_total} in all");
        }
        FdbMode::Learned => say!("static entries   none: switches learn"),
    }
    if let Some(failover) = &plan.failover {
        print_resilience(plan, &failover.summary)?;
    }
    Ok(())
}

/// What several paths a pair are worth in permutations, for a person.
fn print_paths(paths: &PathSummary) -> Result<()> {
    let PathSummary { paths_max, permutation_mean, permutation_mean_bound, permutation_share_mean, .. } = paths;
    let PathSummary { permutation_worst, permutation_worst_bound, permutation_share_worst, .. } = paths;
    say!("paths            up to {} for each pair of hosts", counted(*paths_max, "VLAN"));
    say!(
        "permutations     {permutation_mean:.2} of each host's rate on average; no routing can do better than \
         {permutation_mean_bound:.2} ({permutation_share_mean:.2}×)"
    );
    say!(
        "worst case       {permutation_worst:.2} at least; no routing guarantees more than {permutation_worst_bound:.2} \
         ({permutation_share_worst:.2}×)"
    );
    Ok(())
}

/// A group and how many members it has, for a person.
fn group_words(group: &Group) -> String {
    let Group { name, switches, links } = group;
    match (switches.len(), links.len()) {
        (switches, 0) => format!("{name} ({})", counted(switches, "switch")),
        (0, links) => format!("{name} ({})", counted(links, "link")),
        (switches, links) => format!("{name} ({}, {})", counted(switches, "switch"), counted(links, "link")),
    }
}

/// Parallel cables without traffic, for a person.
fn print_idle(plan: &Plan) -> Result<()> {
    let mut idle = plan.idle_parallels();
    idle.retain(|link| !plan.policy.drain.links.contains(link));
    let label = |link: &LinkId| plan.topology.link_label(*link);
    let mut shown = idle.iter().take(IDLE_SHOWN_MAX).map(label).collect::<Vec<_>>().join(", ");
    match idle.len() {
        0 => return Ok(()),
        more if more > IDLE_SHOWN_MAX => shown.push_str(", …"),
        _ => {}
    }
    let count = if idle.len() == 1 {
        "1 parallel cable carries".to_owned()
    } else {
        format!("{} parallel cables carry", idle.len())
    };
    say!("idle             {count} no traffic: {shown}");
    Ok(())
}

/// What a plan is ready for, for a person.
fn print_resilience(plan: &Plan, summary: &FailoverSummary) -> Result<()> {
    let FailoverSummary { links_covered, links_dividing, switches, groups, drained, .. } = *summary;
    let FailoverSummary { max_channel_time, vlans_extra, fdb_entries_extra, .. } = *summary;
    let worst = load_words(plan, max_channel_time);
    let pairs = plan.topology.groups().iter().filter(|group| group.is_link_pair()).count();
    let group = if pairs > 0 && pairs == plan.topology.groups().len() { "link pair" } else { "group" };
    let among = if pairs > 0 && group == "group" { ", every two links among them," } else { "" };
    let or_others = match (switches, groups) {
        (Some(switches), Some(groups)) => {
            format!(", {} or {}{among}", counted(switches.covered, "switch"), counted(groups.covered, group))
        }
        (Some(switches), None) => format!(" or {}", counted(switches.covered, "switch")),
        (None, _) => String::new(),
    };
    say!("resilience       any one of {links_covered} links{or_others} may fail: max load at worst {worst}");
    let (are, entries) = (if vlans_extra == 1 { "is" } else { "are" }, counted(fdb_entries_extra, "entry"));
    say!("                 {} {are} for failures only, with {entries}", counted(vlans_extra, "VLAN"));
    if drained > 0 {
        let of = if switches.is_some() { "these failures" } else { "the links" };
        say!("                 for {drained} of {of}, let the fabric run empty before hosts switch over");
    }
    if links_dividing > 0 {
        let (have, their) = if links_dividing == 1 { ("has", "its") } else { ("have", "their") };
        let links = counted(links_dividing, "link");
        say!("                 {links} {have} no alternative path: {their} failure cuts hosts off");
    }
    for (coverage, what) in [(switches, "switch"), (groups, group)] {
        let Some(PartCoverage { dividing: dividing @ 1.., .. }) = coverage else { continue };
        let (are, their) = if dividing == 1 { ("is", "its") } else { ("are", "their") };
        say!(
            "                 {} {are} the only path between other hosts: {their} failure cuts hosts off",
            counted(dividing, what)
        );
    }
    Ok(())
}

/// A fresh plan, if its most loaded link takes so much less time that planning without `--previous` is worth its changes.
fn better_anew(plan: &Plan, patience: &Patience) -> Option<Plan> {
    // Whoever asked to stop does not wait for a comparison.
    if patience.is_interrupted() {
        return None;
    }
    planner::better_anew(plan, &mut planner::StepLimit::by_request(&plan.topology, &plan.policy))
}

/// What changes since the previous plan, and whether keeping so much of it costs too much.
fn print_change(previous: &Plan, plan: &Plan, anew: Option<&Plan>) -> Result<()> {
    let difference = transition::difference(previous, plan);
    say!("since before     {}", difference.to_string().lines().next().unwrap_or_default());
    if let Some(anew) = anew {
        let (anew, kept) = (max_load(anew), max_load(plan));
        say!("                 a plan made anew would have a max load of {anew} instead of {kept};");
        say!("                 plan without --previous if that is worth more changes");
    }
    Ok(())
}
