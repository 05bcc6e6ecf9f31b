//! Path sets in the simulator: frames stay in them, paths are used as each spread says, nothing proven freezes, and ideal rates
//! are those that the planner measures path sets by.

mod common;

use std::collections::{BTreeMap, BTreeSet};

use common::{freezing_config, random_permutation};
use fabric::{
    FlowControl, HostId, Plan, Policy, Tagging, Topology, VlanId,
    generate::{Kind, Options, generate},
    permutation_rate, permutations,
    rng::Rng,
};
use planner::{StepLimit, plan_with, uncovered};
use sim::{
    flow::{FlowLevel, TOLERANCE, Transfer},
    job::{Job, Messaging, in_order},
    packet::{Carries, Direction, Outcome, PacketConfig, Seen, Simulation},
    pattern::Pattern,
    program::collective::{Algorithm, Collective, Operation},
    spread::{Spread, SpreadError},
    workload::{Arrivals, Change, Fault, Flow, SECOND_PS, TcpVariant, Transport, Workload},
};

fn policy(paths_max: u32, flow_control: FlowControl) -> Policy {
    Policy { paths_max, flow_control, tagging: Tagging::Source, ..Policy::default() }
}

fn plan_of(size: &str, paths_max: u32, flow_control: FlowControl) -> Plan {
    common::plan_of("torus", size, 1, &policy(paths_max, flow_control))
}

fn set_of(plan: &Plan, source: HostId, destination: HostId) -> &[VlanId] {
    plan.paths.as_ref().expect("path sets").of(source, destination)
}

/// Runs a permutation with captures of all hosts' ports.
fn run(plan: &Plan, flow: &Flow, config: PacketConfig) -> Outcome {
    let pairs = Pattern::Shift(3).pairs(&plan.topology, 1).expect("any number of hosts");
    let flows = pairs.iter().map(|pair| Flow { source: pair.source, destination: Some(pair.destination), ..*flow });
    let captures = plan.topology.hosts().iter().map(|host| host.port).collect();
    let config = PacketConfig { captures, ..config };
    Simulation::new(plan, &Workload { flows: flows.collect(), faults: Vec::new() }, &config).finish()
}

/// `used[(flow, is data)][vlan]`: frames as hosts sent them; those outside the path sets fail the test.
fn used(plan: &Plan, outcome: &Outcome) -> BTreeMap<(u32, bool), BTreeMap<VlanId, u64>> {
    let mut used: BTreeMap<(u32, bool), BTreeMap<VlanId, u64>> = BTreeMap::new();
    assert_eq!(outcome.uncaptured, 0);
    for seen in outcome.captured.iter().filter(|seen| seen.direction == Direction::In) {
        let Seen::Frame(frame) = seen.what else { continue };
        let (tag, destination) = (frame.tag.expect("hosts tag"), frame.destination.expect("unicast"));
        assert!(set_of(plan, frame.source, destination).contains(&tag), "{frame:?} is in no VLAN of its pair");
        *used.entry((frame.flow, frame.carries == Carries::Data)).or_default().entry(tag).or_default() += 1;
    }
    let counters = &outcome.counters;
    assert_eq!((counters.flooded, counters.dropped_filtered, counters.strayed), (0, 0, 0), "tables lead everywhere");
    used
}

fn tcp() -> Flow {
    let transport = Transport::Tcp(TcpVariant::Reno);
    Flow { bytes: Some(400_000), transport, payload_bytes: 1448, ..Flow::flood(HostId::new(0), HostId::new(0)) }
}

#[test]
fn frames_use_the_paths_of_their_pair_as_the_spread_says() {
    let plan = plan_of("4x4", 8, FlowControl::None);
    let udp = Flow { bytes: Some(400_000), ..Flow::flood(HostId::new(0), HostId::new(0)) };
    for flow in [udp, tcp()] {
        for spread in [Spread::One, Spread::Flow, Spread::Flowlet, Spread::Packet] {
            let config = PacketConfig { spread, duration_ps: SECOND_PS / 2, ..PacketConfig::default() };
            let outcome = run(&plan, &flow, config);
            let mut chosen = BTreeSet::new();
            for ((index, is_data), vlans) in used(&plan, &outcome) {
                let pair = (HostId::new(index as usize), HostId::new((index as usize + 3) % 16));
                let (from, to) = if is_data { pair } else { (pair.1, pair.0) };
                let (set, frames) = (set_of(&plan, from, to), vlans.values().sum::<u64>());
                match spread {
                    Spread::One => {
                        assert_eq!(vlans.keys().copied().collect::<Vec<_>>(), [plan.assignment.unicast(from, to)])
                    }
                    // No datagram sender of these is ever silent for long.
                    Spread::Flow => assert_eq!(vlans.len(), 1, "{spread}"),
                    Spread::Flowlet => {
                        assert!(is_data && flow.transport != tcp().transport || vlans.len() <= set.len())
                    }
                    Spread::Packet => {
                        let each = frames / set.len() as u64;
                        assert!(vlans.len() == set.len().min(frames as usize), "{vlans:?} of {set:?}");
                        assert!(vlans.values().all(|count| (each..=each + 1).contains(count)), "{vlans:?} of {set:?}");
                    }
                    Spread::Ideal | Spread::Coupled => unreachable!("not among these"),
                }
                chosen.extend(vlans.keys().map(|vlan| set.iter().position(|of| of == vlan)));
            }
            assert!(spread == Spread::One || chosen.len() > 3, "{spread} uses only {chosen:?}");
        }
    }
}

#[test]
fn a_flow_that_was_silent_takes_the_next_path() {
    let plan = plan_of("4x4", 8, FlowControl::None);
    // A datagram of 1,538 octets on the cable every 1 ms.
    let transport = Transport::Udp { rate_bps: Some(1538 * 8 * 1000), arrivals: Arrivals::Even };
    let flow = Flow { transport, ..Flow::flood(HostId::new(0), HostId::new(0)) };
    for (gap_ps, turns) in [(SECOND_PS / 2000, true), (SECOND_PS / 500, false)] {
        let spread = Spread::Flowlet;
        let config =
            PacketConfig { spread, flowlet_gap_ps: gap_ps, duration_ps: SECOND_PS / 20, ..PacketConfig::default() };
        for ((index, _), vlans) in used(&plan, &run(&plan, &flow, config)) {
            let pair = (HostId::new(index as usize), HostId::new((index as usize + 3) % 16));
            assert_eq!(vlans.len(), if turns { set_of(&plan, pair.0, pair.1).len() } else { 1 }, "{gap_ps} ps");
        }
    }
}

#[test]
fn all_that_is_sent_arrives_whatever_overtakes_what() {
    let plan = plan_of("3x3", 4, FlowControl::None);
    for transport in [Transport::Tcp(TcpVariant::Reno), Transport::Tcp(TcpVariant::Cubic), Transport::GoBackN] {
        for spread in [Spread::Flow, Spread::Flowlet, Spread::Packet, Spread::Coupled] {
            let config = PacketConfig { spread, duration_ps: 20 * SECOND_PS, ..PacketConfig::default() };
            let outcome = run(&plan, &Flow { transport, ..tcp() }, config);
            used(&plan, &outcome);
            assert!(outcome.flows.iter().all(|flow| flow.delivered_bytes == 400_000), "{transport:?}, {spread}");
            assert!(outcome.flows.iter().all(|flow| flow.ended_ps.is_some()), "{transport:?}, {spread}");
        }
    }
}

#[test]
fn a_spread_that_cannot_be_says_what_can() {
    let (plain, plan) = (plan_of("3x3", 1, FlowControl::None), plan_of("3x3", 4, FlowControl::None));
    assert_eq!(Spread::Packet.check_packet(&plain), Err(SpreadError::NoPathSets));
    assert_eq!(Spread::Ideal.check_flow(&plain), Err(SpreadError::NoPathSets));
    for spread in Spread::ALL {
        assert_eq!(spread.to_string().parse(), Ok(*spread));
        assert_eq!(spread.check_packet(&plan).is_ok(), *spread != Spread::Ideal);
        let of_rates = [Spread::One, Spread::Ideal, Spread::Flow].contains(spread);
        assert_eq!(spread.check_flow(&plan).is_ok(), of_rates);
        assert_eq!(FlowLevel::with_spread(&plan, *spread).is_ok(), of_rates);
    }
    for transport in [tcp().transport, Transport::Tcp(TcpVariant::Cubic), Transport::GoBackN] {
        let is_reno = transport == tcp().transport;
        assert!(
            Spread::ALL
                .iter()
                .all(|spread| spread.check_transport(transport).is_ok() == (is_reno || *spread != Spread::Coupled))
        );
    }
    let error = Spread::Packet.check_flow(&plan).expect_err("frames").to_string();
    assert_eq!(error, "--spread packet is about frames: use --level packet, or one of one, ideal, flow");
}

/// Each subflow stays in its VLAN, and together they carry each octet once, whatever is lost.
#[test]
fn coupled_subflows_carry_one_flow_over_all_its_paths() {
    let plan = plan_of("4x4", 8, FlowControl::None);
    let flow = Flow { bytes: Some(8_000_000), ..tcp() };
    let config = |spread| PacketConfig { spread, duration_ps: 20 * SECOND_PS, ..PacketConfig::default() };
    let outcome = run(&plan, &flow, config(Spread::Coupled));
    for ((index, is_data), vlans) in used(&plan, &outcome) {
        let pair = (HostId::new(index as usize), HostId::new((index as usize + 3) % 16));
        let set = set_of(&plan, pair.0, pair.1);
        assert!(!is_data || vlans.keys().eq(set), "{vlans:?} of {set:?}");
    }
    assert!(outcome.flows.iter().all(|flow| flow.delivered_bytes == 8_000_000 && flow.ended_ps.is_some()));
    assert_eq!(outcome.flows.len(), 16, "one line a flow");
    // Losses, also of acknowledgements: what is missing comes again over the same path.
    let pairs = Pattern::Shift(5).pairs(&plan.topology, 1).expect("any number of hosts");
    let flows = pairs.iter().map(|pair| Flow { source: pair.source, destination: Some(pair.destination), ..tcp() });
    let loses = |link| Fault { at_ps: 0, change: Change::LinkLoses(link, 0.01) };
    let faults = (0..plan.topology.links().len()).map(|link| loses(fabric::LinkId::new(link))).collect();
    let workload = Workload { flows: flows.collect(), faults };
    let outcome = Simulation::new(&plan, &workload, &config(Spread::Coupled)).finish();
    assert!(outcome.counters.dropped_fault > 50);
    assert!(outcome.flows.iter().all(|flow| flow.delivered_bytes == 400_000 && flow.ended_ps.is_some()));
}

/// Where pairs in one VLAN meet on channels, subflows find what is idle: the mean goodput of long flows is higher.
#[test]
fn coupled_subflows_find_idle_channels() {
    let plan = plan_of("4x4", 8, FlowControl::None);
    let mean = |spread| {
        let pairs = Pattern::Transpose.pairs(&plan.topology, 1).expect("any number of hosts");
        let flow = Flow { bytes: None, ..tcp() };
        let flows = pairs.iter().map(|pair| Flow { source: pair.source, destination: Some(pair.destination), ..flow });
        let workload = Workload { flows: flows.collect(), faults: Vec::new() };
        let config =
            PacketConfig { spread, duration_ps: 2 * SECOND_PS, warmup_ps: SECOND_PS, ..PacketConfig::default() };
        Simulation::new(&plan, &workload, &config).finish().mean_goodput_bps()
    };
    let (one, coupled) = (mean(Spread::One), mean(Spread::Coupled));
    assert!(coupled > 1.2 * one && coupled < 950e6, "{coupled} against {one}");
}

/// A program's messages travel over subflows as well, in order.
#[test]
fn programs_run_over_every_spread() {
    let plan = plan_of("3x3", 4, FlowControl::None);
    let operation =
        Operation { collective: Collective::AllToAll, algorithm: Algorithm::Pairwise, bytes: 100_000, root: 0 };
    let program = operation.program(9, 2).expect("nine ranks");
    let (messages, bytes) = program.sent();
    let hosts = in_order(&plan.topology, 9, 1);
    let job = Job::new(&plan.topology, program, hosts, Messaging::default(), Vec::new()).expect("hosts for all");
    for spread in [Spread::One, Spread::Flow, Spread::Flowlet, Spread::Packet, Spread::Coupled] {
        let config = PacketConfig { spread, duration_ps: 100 * SECOND_PS, ..PacketConfig::default() };
        let (_, job) = Simulation::of_job(&plan, &job, &config).finish_job();
        let job = job.expect("a job was given");
        assert!(!job.cut_short && job.ran.stalled.is_empty(), "{spread}: {:?}", job.ran.stalled);
        assert_eq!((job.ran.messages, job.ran.bytes), (messages, bytes), "{spread}");
    }
}

/// The rates of a permutation, in bits a second.
fn rates(level: &FlowLevel<'_>, topology: &Topology, receiver: &[HostId]) -> Vec<(HostId, HostId, f64)> {
    let pairs = topology.host_ids().zip(receiver.iter().copied());
    let pairs: Vec<(HostId, HostId)> =
        pairs.filter(|(source, to)| permutation_rate(topology, *source, *to) > 0.0).collect();
    let transfers: Vec<Transfer> =
        pairs.iter().map(|&(source, destination)| Transfer { source, destination, bits: 1e6 }).collect();
    let shared = level.run(&transfers).expect("routes");
    pairs.into_iter().zip(shared.first_bps).map(|((source, to), rate)| (source, to, rate)).collect()
}

/// The planner says what all pairs of a permutation can have at the same time; the least of the max-min fair rates is that.
#[test]
fn ideal_rates_are_what_the_planner_measures_path_sets_by() {
    for (size, paths_max, flow_control) in
        [("4x4", 8, FlowControl::None), ("4x4", 4, FlowControl::Pause), ("3x5", 2, FlowControl::None)]
    {
        let plan = plan_of(size, paths_max, flow_control);
        let topology = &plan.topology;
        let (level, one) = (FlowLevel::with_spread(&plan, Spread::Ideal).expect("path sets"), FlowLevel::new(&plan));
        let (mut sum, mut gained) = (0.0, 0);
        let measured = permutations(topology);
        for receiver in &measured {
            let share = |level: &FlowLevel<'_>| {
                let whole = topology.rate_max_bps() as f64;
                rates(level, topology, receiver)
                    .into_iter()
                    .map(|(source, to, rate)| rate / whole / permutation_rate(topology, source, to))
                    .fold(1.0, f64::min)
            };
            let (ideal, single) = (share(&level), share(&one));
            assert!(ideal >= single * (1.0 - TOLERANCE), "{size}: {ideal} is less than {single} with one path");
            gained += usize::from(ideal > single * 1.05);
            sum += ideal;
        }
        let said = plan.summary.paths.as_ref().expect("figures").permutation_mean;
        let mean = sum / measured.len() as f64;
        assert!((mean / said - 1.0).abs() < 0.01, "{size}: {mean} is not {said}");
        assert!(gained * 2 > measured.len(), "{size}: {gained}");
    }
}

/// What a hash chooses at one level it chooses at the other: the same paths, so the same rates where nothing is lost.
#[test]
fn both_levels_hash_alike() {
    let plan = plan_of("4x4", 8, FlowControl::None);
    let pairs = Pattern::Shift(3).pairs(&plan.topology, 1).expect("any number of hosts");
    let level = FlowLevel::with_spread(&plan, Spread::Flow).expect("path sets");
    let loads = level.loads(&pairs).expect("routes");
    let udp = Flow { bytes: Some(100_000), ..Flow::flood(HostId::new(0), HostId::new(0)) };
    let config = PacketConfig { spread: Spread::Flow, ..PacketConfig::default() };
    let outcome = run(&plan, &udp, config);
    for channel in plan.topology.channel_ids() {
        let frames = outcome.ports[plan.topology.tail_port(channel).index()].frames;
        let (load, each) = (u64::from(loads[channel.index()]), udp.frames().expect("a size"));
        assert_eq!(frames > 0, load > 0, "{}", plan.topology.channel_label(channel));
        assert!(frames <= load * each);
    }
}

/// Paths are proven free of deadlock together: spraying over them under PAUSE freezes nothing.
#[test]
fn no_plan_with_path_sets_that_is_proven_freezes_when_frames_are_sprayed() {
    let (mut proven, mut several) = (0, 0);
    for seed in 0..60 {
        let mut rng = Rng::new(seed);
        let fabrics: [(&str, &[&str]); 5] = [
            ("torus", &["3x3"]),
            ("torus", &["5"]),
            ("mesh", &["3x3"]),
            ("hypercube", &["3"]),
            ("random-regular", &["n=8", "d=3"]),
        ];
        let (kind, words) = fabrics[rng.below(fabrics.len())];
        let mut words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        if kind == "random-regular" {
            words.push(format!("seed={}", 1 + rng.below(50)));
        }
        let kind = Kind::parse(kind, &words).expect("a valid size");
        let topology = generate(&kind, &Options::default()).expect("a sane size");
        let flow_control = [FlowControl::Pause, FlowControl::Pfc(2)][rng.below(2)];
        let policy = policy([2, 4, 8][rng.below(3)], flow_control);
        let Ok(plan) = plan_with(&topology, &policy, None, &mut StepLimit::new(4)) else { continue };
        if !uncovered(&plan).is_empty() {
            continue;
        }
        proven += 1;
        several += usize::from(plan.summary.paths.as_ref().is_some_and(|paths| paths.paths_max > 1));
        let flows = random_permutation(&topology, &mut rng);
        let config = PacketConfig { spread: Spread::Packet, ..freezing_config(seed) };
        let outcome = Simulation::new(&plan, &Workload { flows, faults: Vec::new() }, &config).finish();
        assert_eq!(outcome.deadlock, None, "seed {seed}: {flow_control}");
        assert_eq!(outcome.counters.dropped(), 0, "seed {seed}: PAUSE loses nothing");
    }
    assert!(proven > 30 && several > 20, "{proven} proven, {several} of them with several paths");
}
