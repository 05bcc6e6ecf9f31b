//! LAGs: each cable has a queue and a rate of its own, and a flow takes one of them.
//!
//! ```text
//!   h0 ─┐            ┌─ h3
//!   h1 ─[a]═ m0 ═[b]─┤  h4      three flows over two cables: two of them share one
//!   h2 ─┘ ══ m1 ══   └─ h5
//! ```

mod common;

use std::collections::BTreeMap;

use fabric::{FlowControl, HostId, LinkId, Mac, Plan, Policy, PortId, SwitchId, Topology, TopologyBuilder, rng::Rng};
use planner::StepLimit;
use sim::{
    flow::{FlowLevel, Transfer},
    packet::{Buffers, FlowControlAt, Limit, Outcome, PacketConfig, Simulation},
    workload::{Arrivals, Change, Fault, Flow, SECOND_PS, TcpVariant, Transport, Workload},
};

const RATE_BPS: u64 = 1_000_000_000;

/// A LAG of so many ports of a switch; a port by itself where that is one.
fn lag(builder: &mut TopologyBuilder, switch: SwitchId, name: &str, members: usize) -> PortId {
    let ports: Vec<PortId> = (0..members)
        .map(|member| builder.add_port(switch, &format!("{name}-{member}")).expect("a fresh port"))
        .collect();
    if members == 1 {
        return ports[0];
    }
    let lag = builder.add_lag(switch, None).expect("a free number");
    ports.iter().for_each(|port| builder.add_to_lag(lag, *port).expect("a free port"));
    lag
}

/// Switches `a` and `b` with so many hosts each, those of `a` first, and a LAG between them.
fn joined(hosts: usize, members: usize, flow_control: FlowControl) -> Plan {
    let mut builder = TopologyBuilder::new();
    let switches = ["a", "b"].map(|name| builder.add_switch(name, Default::default()).expect("a fresh name"));
    let [a, b] = switches.map(|switch| lag(&mut builder, switch, "m", members));
    builder.add_link(a, b, members as u64 * RATE_BPS).expect("free ports");
    for number in 0..2 * hosts {
        let port = builder.add_port(switches[number / hosts], &format!("h{number}")).expect("a fresh port");
        let mac = Mac::local(number as u32 + 1);
        builder.add_host(&format!("h{number}"), mac, port, RATE_BPS, None).expect("a free port");
    }
    planned(&builder.finish().expect("connected"), flow_control)
}

fn planned(topology: &Topology, flow_control: FlowControl) -> Plan {
    let policy = Policy { flow_control, ..Policy::default() };
    planner::plan_with(topology, &policy, None, &mut StepLimit::new(2)).expect("a plan")
}

/// A flow from each host of `a` to the host of `b` with its number.
fn across(hosts: usize) -> Vec<(HostId, HostId)> {
    (0..hosts).map(|number| (HostId::new(number), HostId::new(hosts + number))).collect()
}

fn transfers(pairs: &[(HostId, HostId)], bits: f64) -> Vec<Transfer> {
    pairs.iter().map(|(source, destination)| Transfer { source: *source, destination: *destination, bits }).collect()
}

fn run(plan: &Plan, flows: Vec<Flow>, faults: Vec<Fault>, config: &PacketConfig) -> Outcome {
    Simulation::new(plan, &Workload { flows, faults }, config).finish()
}

/// The members of the LAG of the only link, at the end of `a`.
fn members(topology: &Topology) -> Vec<PortId> {
    topology.members(topology.links()[0].a).collect()
}

/// Which members carry something at the flow level, by the names of their resources.
fn used_members(level: &FlowLevel<'_>, topology: &Topology, carried: &[f64]) -> Vec<PortId> {
    let named = |port: &PortId| {
        let label = topology.port_label(*port);
        (0..level.resources()).any(|at| carried[at] > 0.0 && level.label(at).starts_with(&format!("{label} -> ")))
    };
    members(topology).into_iter().filter(named).collect()
}

/// `member[flow]`: the cable that each flow takes when it is alone, at both levels.
fn chosen(plan: &Plan, pairs: &[(HostId, HostId)]) -> Vec<PortId> {
    let topology = &plan.topology;
    let level = FlowLevel::new(plan);
    let of = |pair: &(HostId, HostId)| {
        let shared = level.run(&transfers(&[*pair], 1e6)).expect("a route");
        let by_rates = used_members(&level, topology, &shared.carried);
        let flow = Flow { bytes: Some(100_000), ..Flow::flood(pair.0, pair.1) };
        let outcome = run(plan, vec![flow], Vec::new(), &PacketConfig::default());
        let by_frames = members(topology).into_iter().filter(|port| outcome.ports[port.index()].frames > 0);
        assert_eq!(by_rates.len(), 1, "{pair:?} takes one cable");
        assert_eq!(by_frames.collect::<Vec<_>>(), by_rates, "{pair:?} at both levels");
        by_rates[0]
    };
    pairs.iter().map(of).collect()
}

/// By pigeonhole two of n + 1 flows share one of n cables, and a flow among k on a cable gets one k-th of its rate: exactly at the flow
/// level, and to a few per cent at the packet level. On one link of n times the rate all would get n/(n + 1).
#[test]
fn one_flow_more_than_cables_shares_one() {
    for count in 2..=6 {
        let flows = count + 1;
        let plan = joined(flows, count, FlowControl::Pause);
        let pairs = across(flows);
        let member = chosen(&plan, &pairs);
        let mut sharing: BTreeMap<PortId, usize> = BTreeMap::new();
        member.iter().for_each(|port| *sharing.entry(*port).or_default() += 1);
        assert!(sharing.values().any(|flows| *flows > 1), "{count} cables: {sharing:?}");

        let level = FlowLevel::new(&plan);
        let shared = level.run(&transfers(&pairs, 1e9)).expect("routes");
        let config = PacketConfig { duration_ps: SECOND_PS / 4, warmup_ps: SECOND_PS / 20, ..PacketConfig::default() };
        let endless = pairs.iter().map(|(from, to)| Flow::flood(*from, *to)).collect();
        let outcome = run(&plan, endless, Vec::new(), &config);
        for (flow, port) in member.iter().enumerate() {
            let fair_bps = RATE_BPS as f64 / sharing[port] as f64;
            assert!((shared.first_bps[flow] / fair_bps - 1.0).abs() < 1e-9, "{count} cables, flow {flow}");
            // Between switches a frame has a tag: 1,542 octets for 1,472.
            let ratio = outcome.goodput_bps(flow) / (fair_bps * 1472.0 / 1542.0);
            assert!((0.93..1.07).contains(&ratio), "{count} cables, flow {flow} of {}: {ratio}", sharing[port]);
        }
        assert_eq!(outcome.counters.dropped(), 0, "{count} cables");
    }
}

/// Queues are apart: a flow that is alone on its cable waits for nobody, however long the queue of another cable is.
#[test]
fn a_full_cable_delays_nobody_on_another() {
    let plan = joined(7, 3, FlowControl::None);
    let pairs = across(7);
    let member = chosen(&plan, &pairs);
    let crowd = |port: PortId| (0..7).filter(|flow| member[*flow] == port).collect::<Vec<_>>();
    let ports = members(&plan.topology);
    let (full, other) = match ports.iter().find(|port| crowd(**port).len() > 1) {
        Some(full) => (*full, *ports.iter().find(|port| *port != full && !crowd(**port).is_empty()).expect("another")),
        None => panic!("seven flows share three cables"),
    };
    let lone = crowd(other)[0];
    let paced = |flow: usize| Flow {
        transport: Transport::Udp { rate_bps: Some(300_000_000), arrivals: Arrivals::Even },
        ..Flow::flood(pairs[flow].0, pairs[flow].1)
    };
    let config = PacketConfig { duration_ps: SECOND_PS / 10, ..PacketConfig::default() };
    let alone = run(&plan, vec![paced(lone)], Vec::new(), &config);
    let mut flows = vec![paced(lone)];
    flows.extend(crowd(full).into_iter().map(|flow| Flow::flood(pairs[flow].0, pairs[flow].1)));
    let beside = run(&plan, flows, Vec::new(), &config);
    assert!(beside.ports[full.index()].dropped > 0, "the other cable is full");
    assert_eq!(beside.flows[0], alone.flows[0]);
}

/// Rings of LAGs, with hosts that have LAGs of their own.
fn random_lags(rng: &mut Rng) -> Topology {
    let mut builder = TopologyBuilder::new();
    let count = 2 + rng.below(3);
    let switches: Vec<SwitchId> =
        (0..count).map(|at| builder.add_switch(&format!("s{at}"), Default::default()).expect("fresh")).collect();
    let cables = if count == 2 { 1 } else { count };
    for at in 0..cables {
        let members = 1 + rng.below(4);
        let a = lag(&mut builder, switches[at], &format!("r{at}"), members);
        let b = lag(&mut builder, switches[(at + 1) % count], &format!("l{at}"), members);
        builder.add_link(a, b, members as u64 * RATE_BPS).expect("free ports");
    }
    for number in 0..4 + rng.below(5) {
        let members = 1 + rng.below(3);
        let port = lag(&mut builder, switches[rng.below(count)], &format!("h{number}"), members);
        let mac = Mac::local(number as u32 + 1);
        let rate_bps = members as u64 * RATE_BPS;
        builder.add_host(&format!("h{number}"), mac, port, rate_bps, None).expect("a free port");
    }
    builder.finish().expect("connected")
}

/// What LAGs carry is what their cables do, at both levels; no cable carries more than it can, no flow is faster than one cable, and
/// what arrives on a path without loss is all that was sent.
#[test]
fn frames_and_bits_are_those_of_the_cables() {
    let all = Limit::Static(1 << 30);
    let roomy = Buffers { pool_bytes: 1 << 30, ingress: all, egress: all, xoff_bytes: 1 << 29, ..Buffers::default() };
    let (mut lags_used, mut cables_used) = (0, 0);
    for seed in 0..40 {
        let mut rng = Rng::new(seed);
        let topology = random_lags(&mut rng);
        let flow_control = [FlowControl::Pause, FlowControl::None, FlowControl::Pfc(2)][seed as usize % 3];
        let plan = planned(&topology, flow_control);
        let hosts = topology.hosts().len();
        let mut pairs: Vec<(HostId, HostId)> = (0..24)
            .map(|_| {
                let from = rng.below(hosts);
                (HostId::new(from), HostId::new((from + 1 + rng.below(hosts - 1)) % hosts))
            })
            .collect();
        pairs.sort_unstable();

        let level = FlowLevel::new(&plan);
        let shared = level.run(&transfers(&pairs, 1e8)).expect("routes");
        let seconds = shared.seconds.iter().copied().fold(0.0, f64::max);
        for (at, carried) in shared.carried.iter().enumerate() {
            let most = level.capacity_bps()[at] * seconds * (1.0 + 1e-9);
            assert!(*carried <= most, "seed {seed}: {} carries {carried} of {most}", level.label(at));
        }
        assert!(shared.first_bps.iter().all(|rate| *rate <= RATE_BPS as f64 * (1.0 + 1e-9)), "seed {seed}");
        let (channels, own) = (topology.channel_count(), topology.channel_count() + 2 * hosts);
        let by_label: BTreeMap<String, f64> =
            (own..level.resources()).map(|at| (level.label(at), shared.carried[at])).collect();
        assert_eq!(by_label.len(), level.resources() - own, "seed {seed}: every cable has a name of its own");
        for channel in topology.channel_ids() {
            let [tail, head] = [topology.tail_port(channel), topology.head_port(channel)];
            let names = topology.members(tail).zip(topology.members(head));
            let sum: f64 = names
                .map(|(a, b)| by_label[&format!("{} -> {}", topology.port_label(a), topology.port_label(b))])
                .sum();
            let whole = shared.carried[channel.index()];
            assert!(topology.port(tail).lag().is_none() || (sum - whole).abs() < 1.0, "seed {seed}: {sum} of {whole}");
        }
        let loads = level.loads(&pairs.iter().map(|(a, b)| pair(*a, *b)).collect::<Vec<_>>()).expect("routes");
        let sent: u32 = loads[channels..channels + hosts].iter().sum();
        assert_eq!(sent as usize, pairs.len(), "seed {seed}");

        let flow = |(number, (from, to)): (usize, &(HostId, HostId))| Flow {
            bytes: Some(60_000),
            transport: match number % 3 {
                0 => Transport::Tcp(TcpVariant::Cubic),
                1 => Transport::GoBackN,
                _ => Transport::Udp { rate_bps: None, arrivals: Arrivals::Even },
            },
            payload_bytes: 1448,
            ..Flow::flood(*from, *to)
        };
        let flows = pairs.iter().enumerate().map(flow).collect();
        let config = PacketConfig { duration_ps: 10 * SECOND_PS, buffers: roomy, seed, ..PacketConfig::default() };
        let outcome = run(&plan, flows, Vec::new(), &config);
        assert_eq!((outcome.counters.dropped(), outcome.counters.in_flight), (0, 0), "seed {seed}");
        assert!(outcome.flows.iter().all(|flow| flow.delivered_bytes == 60_000), "seed {seed}");
        assert_eq!(outcome.ports.len(), topology.ports().len() + hosts, "seed {seed}");
        for lag in (0..topology.ports().len()).map(PortId::new).filter(|port| topology.port(*port).lag().is_some()) {
            let of = |port: PortId| outcome.ports[port.index()];
            let sum = |figure: fn(&sim::packet::PortOutcome) -> u64| -> u64 {
                topology.members(lag).map(|member| figure(&of(member))).sum()
            };
            assert_eq!(of(lag).frames, sum(|port| port.frames), "seed {seed}");
            assert_eq!(of(lag).wire_bytes, sum(|port| port.wire_bytes), "seed {seed}");
            let used = topology.members(lag).filter(|member| of(*member).frames > 0).count();
            (lags_used, cables_used) = (lags_used + usize::from(used > 0), cables_used + used);
        }
    }
    assert!(lags_used > 100 && cables_used > lags_used * 3 / 2, "{lags_used} LAGs, {cables_used} cables");
}

fn pair(source: HostId, destination: HostId) -> sim::pattern::Pair {
    sim::pattern::Pair { source, destination, phase: 0 }
}

/// A host with a LAG: one flow has the rate of one cable, and flows to one receiver, told apart by their ports, use both.
#[test]
fn a_host_sends_one_flow_by_one_of_its_cables() {
    let mut builder = TopologyBuilder::new();
    let switch = builder.add_switch("s", Default::default()).expect("a fresh name");
    let two = lag(&mut builder, switch, "two", 2);
    builder.add_host("two", Mac::local(1), two, 2 * RATE_BPS, None).expect("a free port");
    let fast = builder.add_port(switch, "fast").expect("a fresh port");
    builder.add_host("fast", Mac::local(2), fast, 10 * RATE_BPS, None).expect("a free port");
    let plan = planned(&builder.finish().expect("one switch"), FlowControl::Pause);
    let [two, fast] = [0, 1].map(HostId::new);
    // PAUSE would hold all flows of the fast host back for the fuller cable's sake.
    let flow_control = FlowControlAt::Nowhere;
    let config = PacketConfig { duration_ps: SECOND_PS / 5, flow_control, ..PacketConfig::default() };
    let cable_bps = RATE_BPS as f64 * 1472.0 / 1538.0;
    for (from, to) in [(two, fast), (fast, two)] {
        for (flows, cables) in [(1, 1.0), (16, 2.0)] {
            let outcome = run(&plan, vec![Flow::flood(from, to); flows], Vec::new(), &config);
            let sum: f64 = (0..flows).map(|flow| outcome.goodput_bps(flow)).sum();
            let ratio = sum / (cables * cable_bps);
            assert!((0.97..1.01).contains(&ratio), "{flows} flows from {from:?}: {ratio}");
            let level = FlowLevel::new(&plan);
            let shared = level.run(&transfers(&vec![(from, to); flows], 1e6)).expect("a route");
            let rates: f64 = shared.first_bps.iter().sum();
            assert!((rates / (cables * RATE_BPS as f64) - 1.0).abs() < 1e-9, "{flows} flows from {from:?}: {rates}");
        }
    }
}

/// Faults are those of the whole link: each of its cables goes down, or has its share of the new rate.
#[test]
fn faults_of_a_link_are_those_of_all_its_cables() {
    let plan = joined(8, 4, FlowControl::Pause);
    let pairs = across(8);
    let flows = || pairs.iter().map(|(from, to)| Flow::flood(*from, *to)).collect::<Vec<_>>();
    let config = PacketConfig { duration_ps: SECOND_PS / 5, ..PacketConfig::default() };
    let link = LinkId::new(0);
    let at = |at_ps, change| Fault { at_ps, change };
    let sound = run(&plan, flows(), Vec::new(), &config);
    let down = run(&plan, flows(), vec![at(0, Change::LinkDown(link))], &config);
    assert_eq!(down.received_frames(), 0);
    let slow = run(&plan, flows(), vec![at(0, Change::LinkRate(link, 2 * RATE_BPS))], &config);
    let ratio = slow.received_frames() as f64 / sound.received_frames() as f64;
    assert!((0.48..0.52).contains(&ratio), "{ratio}");
    for port in members(&plan.topology) {
        let [slow, sound] = [&slow, &sound].map(|outcome| outcome.ports[port.index()].frames as f64);
        assert!(sound == 0.0 || (0.45..0.55).contains(&(slow / sound)), "{port:?}: {slow} of {sound}");
    }
}

/// A capture of a LAG has the frames of all its cables, one of a member its own.
#[test]
fn a_capture_of_a_lag_has_the_frames_of_its_cables() {
    let plan = joined(6, 3, FlowControl::Pause);
    let (lag, members) = (plan.topology.links()[0].a, members(&plan.topology));
    let flow = |(from, to): (HostId, HostId)| Flow { bytes: Some(30_000), ..Flow::flood(from, to) };
    let captures: Vec<PortId> = members.iter().copied().chain([lag]).collect();
    let config = PacketConfig { captures, ..PacketConfig::default() };
    let outcome = run(&plan, across(6).into_iter().map(flow).collect(), Vec::new(), &config);
    let out = |frame: &&sim::packet::Captured| frame.direction == sim::packet::Direction::Out;
    let seen = |port: PortId| outcome.captured.iter().filter(out).filter(|frame| frame.port == port).count();
    assert!(members.iter().filter(|port| seen(**port) > 0).count() > 1, "several cables are used");
    assert_eq!(seen(lag), members.iter().map(|port| seen(*port)).sum::<usize>());
    assert_eq!(seen(lag) as u64, outcome.ports[lag.index()].frames + outcome.ports[lag.index()].pauses);
}
