//! The packet level before theory and before itself.

mod common;

use common::{clockwise_ring, opposite, plan_of};
use fabric::{
    EngineName, Flood, FloodKind, FlowControl, FlowControlMode, HostId, LinkId, Policy, StormLimit, Tagging, rng::Rng,
};
use sim::{
    packet::{Arp, Buffers, FlowControlAt, Limit, Outcome, PacketConfig, RTO_MIN_PS, Refresh, Simulation, Switching},
    workload::{Arrivals, Change, Fault, Flow, SECOND_PS, TcpVariant, Transport, Workload},
};

fn run(plan: &fabric::Plan, flows: Vec<Flow>, config: &PacketConfig) -> Outcome {
    Simulation::new(plan, &Workload { flows, faults: Vec::new() }, config).finish()
}

fn udp(source: usize, destination: usize, rate_bps: u64, arrivals: Arrivals) -> Flow {
    let transport = Transport::Udp { rate_bps: Some(rate_bps), arrivals };
    Flow { transport, ..Flow::flood(HostId::new(source), HostId::new(destination)) }
}

fn tcp(source: usize, destination: usize, bytes: u64, variant: TcpVariant) -> Flow {
    Flow {
        bytes: Some(bytes),
        transport: Transport::Tcp(variant),
        payload_bytes: 1448,
        ..Flow::flood(HostId::new(source), HostId::new(destination))
    }
}

fn roomy() -> Buffers {
    let all = Limit::Static(1 << 30);
    Buffers { pool_bytes: 1 << 30, ingress: all, egress: all, xoff_bytes: 1 << 29, ..Buffers::default() }
}

#[test]
fn a_poisson_queue_waits_as_an_m_d_1_queue_does() {
    // The host's own cable is the server: every frame takes S, and the mean wait is ρ·S / 2(1 − ρ).
    let plan = plan_of("mesh", "1", 2, &Policy::default());
    let service_ps = (1472 + 46 + 20) as f64 * 8000.0;
    for (share, seed) in [(0.3, 3), (0.6, 6), (0.8, 8)] {
        let config = PacketConfig {
            socket_bytes: u32::MAX / 2,
            buffers: roomy(),
            duration_ps: 60 * SECOND_PS,
            seed,
            ..PacketConfig::default()
        };
        let outcome = run(&plan, vec![udp(0, 1, (share * 1e9) as u64, Arrivals::Poisson)], &config);
        let flow = &outcome.flows[0];
        let mean_ps = flow.latency_sum_ps as f64 / flow.received_frames as f64;
        // Two cables, and the second is never busy when a frame comes.
        let wait_ps = mean_ps - 2.0 * service_ps - 2.0 * config.cable_ps as f64;
        let theory_ps = share * service_ps / (2.0 * (1.0 - share));
        assert!((wait_ps / theory_ps - 1.0).abs() < 0.01, "ρ = {share}, seed {seed}: {wait_ps} against {theory_ps}");
    }
}

#[test]
fn a_switch_port_fed_by_poisson_arrivals_is_an_m_d_1_queue_as_well() {
    // Hosts' cables a thousand times faster, so that what reaches the slow middle is as good as Poisson.
    let plan = plan_of("mesh", "2", 1, &Policy::default());
    let mut slow = plan.clone();
    let (share, seed) = (0.7, 11);
    let faults = vec![Fault { at_ps: 0, change: Change::LinkRate(LinkId::new(0), 1_000_000) }];
    slow.policy.seed = seed;
    let flow = udp(0, 1, (share * 1e6 * 1538.0 / 1542.0) as u64, Arrivals::Poisson);
    let config = PacketConfig {
        socket_bytes: u32::MAX / 2,
        buffers: roomy(),
        duration_ps: 20_000 * SECOND_PS,
        seed,
        flow_control: FlowControlAt::Nowhere,
        ..PacketConfig::default()
    };
    let outcome = Simulation::new(&slow, &Workload { flows: vec![flow], faults }, &config).finish();
    // A tag makes the frame four octets longer between the switches.
    let (service_ps, cable_ps) = (1542.0 * 8e6, 1538.0 * 8e3);
    let flow = &outcome.flows[0];
    let mean_ps = flow.latency_sum_ps as f64 / flow.received_frames as f64;
    let wait_ps = mean_ps - service_ps - 2.0 * cable_ps;
    let theory_ps = share * service_ps / (2.0 * (1.0 - share));
    assert!((wait_ps / theory_ps - 1.0).abs() < 0.01, "seed {seed}: {wait_ps} against {theory_ps}");
}

#[test]
fn littles_law_holds() {
    let plan = plan_of("torus", "3x3", 2, &Policy::default());
    let hosts = plan.topology.hosts().len();
    for seed in 0..4 {
        let mut rng = Rng::new(seed);
        let flows = (0..60).map(|_| {
            let source = rng.below(hosts);
            udp(source, (source + 1 + rng.below(hosts - 1)) % hosts, 60_000_000, Arrivals::Poisson)
        });
        let config = PacketConfig { duration_ps: 2 * SECOND_PS, buffers: roomy(), seed, ..PacketConfig::default() };
        let outcome = run(&plan, flows.collect(), &config);
        let time_s = outcome.elapsed_ps as f64 / SECOND_PS as f64;
        let latency_s: f64 = outcome.flows.iter().map(|flow| flow.latency_sum_ps as f64).sum::<f64>()
            / outcome.received_frames() as f64
            / SECOND_PS as f64;
        let little = outcome.counters.injected as f64 / time_s * latency_s;
        let ratio = outcome.mean_in_network / little;
        assert!((ratio - 1.0).abs() < 0.01, "seed {seed}: {} frames against {little}", outcome.mean_in_network);
        assert_eq!(outcome.counters.dropped(), 0, "seed {seed}");
    }
}

#[test]
fn a_lone_tcp_flow_follows_its_closed_forms() {
    let plan = plan_of("mesh", "1", 2, &Policy::default());
    for variant in [TcpVariant::Reno, TcpVariant::Cubic] {
        // All of the cable, less headers and what slow start leaves unused.
        let config = PacketConfig { duration_ps: 10 * SECOND_PS, ..PacketConfig::default() };
        let outcome = run(&plan, vec![tcp(0, 1, 200_000_000, variant)], &config);
        let ideal = 1e9 * 1448.0 / (1448 + 70 + 20) as f64;
        let ratio = outcome.goodput_bps(0) / ideal;
        assert!((0.995..=1.0).contains(&ratio), "{variant:?}: {ratio} of the cable");
        // A window of the receiver below the product of rate and time: window / round trip.
        let cable_ps = 5_000_000_000;
        let window = 64 * 1448;
        let config =
            PacketConfig { cable_ps, window_bytes: window, duration_ps: 60 * SECOND_PS, ..PacketConfig::default() };
        let outcome = run(&plan, vec![tcp(0, 1, 20_000_000, variant)], &config);
        let round_s = (4 * cable_ps) as f64 / 1e12 + 2.0 * (1538.0 + 90.0) * 8e-9 + 1538.0 * 8e-9;
        let ratio = outcome.goodput_bps(0) / (f64::from(window) * 8.0 / round_s);
        assert!((0.97..=1.01).contains(&ratio), "{variant:?}: {ratio} of window over round trip");
    }
}

#[test]
fn reno_meets_the_square_root_law() {
    // Mathis et al., 1997: rate = MSS/RTT · sqrt(3 / 2p), here with an acknowledgement a second segment, which grows the
    // window by whole segments all the same.
    let plan = plan_of("mesh", "2", 1, &Policy::default());
    let (loss, cable_ps) = (0.002, 4_000_000_000);
    let change = Change::LinkLoses(LinkId::new(0), loss);
    let mut total = 0.0;
    for seed in 0..4 {
        let config = PacketConfig {
            cable_ps,
            duration_ps: 400 * SECOND_PS,
            seed,
            window_bytes: 1 << 24,
            ..PacketConfig::default()
        };
        let flows = vec![Flow { bytes: None, ..tcp(0, 1, 1, TcpVariant::Reno) }];
        let workload = Workload { flows, faults: vec![Fault { at_ps: 0, change }] };
        total += Simulation::new(&plan, &workload, &config).finish().goodput_bps(0) / 4.0;
    }
    let round_s = 6.0 * cable_ps as f64 / 1e12;
    let law = 1448.0 * 8.0 / round_s * (1.5 / loss).sqrt();
    assert!((0.8..1.2).contains(&(total / law)), "{total} against {law}");
}

#[test]
fn frames_balance_and_a_seed_repeats_on_random_fabrics() {
    for seed in 0..40 {
        let mut rng = Rng::new(seed);
        let sizes = ["n=6,d=3,seed=1", "n=8,d=3,seed=2", "n=10,d=4,seed=3"];
        let flow_control = [FlowControl::None, FlowControl::Pause, FlowControl::Pfc(2)][rng.below(3)];
        let tagging = Tagging::ALL[rng.below(Tagging::ALL.len())];
        let policy = Policy { engine: EngineName::Balanced, flow_control, tagging, seed, ..Policy::default() };
        let plan = plan_of("random-regular", sizes[rng.below(3)], 2, &policy);
        let hosts = plan.topology.hosts().len();
        let flows = (0..30).map(|number| {
            let source = rng.below(hosts);
            let other = HostId::new((source + 1 + rng.below(hosts - 1)) % hosts);
            let base = Flow { phase: number / 15, ..Flow::flood(HostId::new(source), other) };
            match rng.below(5) {
                0 => Flow { bytes: Some(300_000), ..base },
                1 => Flow {
                    bytes: Some(400_000),
                    transport: Transport::Tcp(TcpVariant::Cubic),
                    payload_bytes: 1448,
                    ..base
                },
                2 => Flow { bytes: Some(400_000), transport: Transport::GoBackN, payload_bytes: 1024, ..base },
                3 => Flow { bytes: Some(20_000), destination: None, ..base },
                _ => Flow {
                    bytes: Some(400_000),
                    transport: Transport::Tcp(TcpVariant::Reno),
                    payload_bytes: 1448,
                    ..base
                },
            }
        });
        let workload = Workload {
            flows: flows.collect(),
            faults: vec![
                Fault { at_ps: SECOND_PS / 500, change: Change::LinkDown(LinkId::new(0)) },
                Fault { at_ps: SECOND_PS / 200, change: Change::LinkUp(LinkId::new(0)) },
                Fault { at_ps: 0, change: Change::LinkLoses(LinkId::new(1), 0.01) },
            ],
        };
        let config = PacketConfig {
            switching: if rng.below(2) == 0 { Switching::StoreAndForward } else { Switching::CutThrough },
            arp: if rng.below(2) == 0 { Arp::Known } else { Arp::Ask },
            refresh: if rng.below(2) == 0 { Refresh::OnArrival } else { Refresh::HalfTime },
            ecn_bytes: (rng.below(2) == 0).then_some(30_000),
            buffers: Buffers {
                reserved_bytes: 3_000,
                egress: if rng.below(2) == 0 { Limit::Dynamic(0.5) } else { Limit::Static(60_000) },
                ..Buffers::default()
            },
            duration_ps: 20 * SECOND_PS,
            seed,
            ..PacketConfig::default()
        };
        let outcome = Simulation::new(&plan, &workload, &config).finish();
        assert!(outcome.counters.balances(), "seed {seed}");
        assert_eq!(outcome.counters.flooded, 0, "seed {seed}: a plan's tables know every host");
        for (flow, spec) in outcome.flows.iter().zip(&workload.flows) {
            assert!(flow.ended_ps.is_some(), "seed {seed}: {spec:?} never ended: {flow:?}");
            if !matches!(spec.transport, Transport::Udp { .. }) {
                assert_eq!(Some(flow.delivered_bytes), spec.bytes, "seed {seed}: {spec:?}");
            }
        }
        assert_eq!(outcome.counters.in_flight, 0, "seed {seed}");
        // Driven in steps, and again: the same to the last bit.
        let mut again = Simulation::new(&plan, &workload, &config);
        for step in 1..50 {
            again.run_until(step * SECOND_PS / 777);
        }
        assert_eq!(again.finish(), outcome, "seed {seed}");
    }
}

#[test]
fn floods_that_no_port_lets_out_end_at_the_first_switch() {
    for flood in [Flood::Forward, Flood::Drop, Flood::DropAll] {
        let plan = plan_of("mesh", "2x2", 2, &Policy { flood, ..Policy::default() });
        for kind in [FloodKind::UnknownUnicast, FloodKind::Broadcast] {
            let spread =
                Flow { bytes: Some(14_720), destination: None, flood: kind, ..udp(0, 1, 100_000_000, Arrivals::Even) };
            let unicast = Flow { bytes: Some(14_720), ..udp(1, 6, 100_000_000, Arrivals::Even) };
            let counters = run(&plan, vec![spread, unicast], &PacketConfig::default()).counters;
            let (heard, dropped) = if flood.blocked().contains(kind) { (0, 10) } else { (70, 0) };
            assert_eq!((counters.delivered, counters.dropped_blocked), (10 + heard, dropped), "{flood}, {kind}");
            assert!(counters.balances() && counters.strayed == 0, "{flood}, {kind}: {counters:?}");
        }
    }
}

/// A host's port of 1 Gbit/s admits ten frames at once, and then the share of its rate that the plan gives.
#[test]
fn storm_control_admits_its_share_of_the_rate() {
    const MILLISECOND_PS: u64 = 1_000_000_000;
    for percent in [1, 10, 50] {
        let storm_limit = StormLimit::new(percent);
        let plan = plan_of("mesh", "2x2", 2, &Policy { storm_limit, ..Policy::default() });
        let spread = Flow { bytes: None, destination: None, ..udp(0, 1, 1_000_000_000, Arrivals::Even) };
        let unicast = Flow { bytes: None, ..udp(1, 6, 100_000_000, Arrivals::Even) };
        let config = PacketConfig { duration_ps: 100 * MILLISECOND_PS, ..PacketConfig::default() };
        let outcome = run(&plan, vec![spread, unicast], &config);
        let counters = &outcome.counters;
        // Of the sender's 8,127 frames of 1,538 bytes on the wire, sent in 100 ms; each that is admitted reaches seven hosts.
        let admitted = 81.27 * f64::from(percent) + 10.0;
        let heard = counters.delivered as f64 - outcome.flows[1].received_frames as f64;
        assert!((heard / 7.0 - admitted).abs() < 3.0, "{percent} %: {heard}, {counters:?}");
        assert!(counters.balances() && counters.dropped_storm > 3_000, "{percent} %: {counters:?}");
        assert!(outcome.flows[1].received_frames > 800, "{percent} %: unicast is no flood");
    }
}

#[test]
fn certified_plans_never_deadlock() {
    for seed in 0..25 {
        let mut rng = Rng::new(seed);
        let size = format!("n={},d=3,seed={seed}", 6 + 2 * rng.below(4));
        let flow_control = if rng.below(2) == 0 { FlowControl::Pause } else { FlowControl::Pfc(2) };
        let policy = Policy { engine: EngineName::Balanced, flow_control, seed, ..Policy::default() };
        let plan = plan_of("random-regular", &size, 2, &policy);
        assert!(plan.certificate.is_some());
        let hosts = plan.topology.hosts().len();
        let flows = (0..hosts).flat_map(|source| {
            let all = (0..hosts).filter(move |to| *to != source);
            all.map(move |to| Flow::flood(HostId::new(source), HostId::new(to))).collect::<Vec<_>>()
        });
        let config = PacketConfig { duration_ps: SECOND_PS / 4, ..PacketConfig::default() };
        let outcome = run(&plan, flows.collect(), &config);
        assert_eq!(outcome.deadlock, None, "seed {seed}");
        assert_eq!(outcome.counters.dropped(), 0, "seed {seed}: flow control everywhere, so nothing is lost");
        assert!(outcome.counters.pauses > 0, "seed {seed}: the test must press hard enough");
    }
}

#[test]
fn a_cycle_of_dependencies_deadlocks_and_is_explained() {
    let plan = clockwise_ring(1, FlowControlMode::Pause);
    let flows: Vec<Flow> = opposite(&plan).into_iter().map(|(from, to)| Flow::flood(from, to)).collect();
    let config =
        PacketConfig { flow_control: FlowControlAt::Switches, duration_ps: 2 * SECOND_PS, ..PacketConfig::default() };
    for refresh in [Refresh::OnArrival, Refresh::OnLapse, Refresh::HalfTime] {
        let outcome = run(&plan, flows.clone(), &PacketConfig { refresh, ..config.clone() });
        let deadlock = outcome.deadlock.clone().expect("a deadlock");
        assert_eq!(deadlock.cycle.len(), 4, "{deadlock:?}");
        for (blocked, next) in deadlock.cycle.iter().zip(deadlock.cycle.iter().cycle().skip(1)) {
            let fabric::Attachment::Link(link) = plan.topology.port(blocked.port).attachment else { panic!("a host") };
            let link = plan.topology.link(link);
            let peer = if link.a == blocked.port { link.b } else { link.a };
            assert_eq!(plan.topology.port(peer).switch, plan.topology.port(next.port).switch);
            assert!(!blocked.vlans.is_empty() && !blocked.flows.is_empty());
        }
        let goodput = outcome.mean_goodput_bps() / 1e6;
        assert!(outcome.loss() > 0.99, "{refresh:?}: {}", outcome.loss());
        match refresh {
            // One frame each 33.55 ms, sometimes a second one, or none.
            Refresh::OnLapse => assert!((0.25..0.45).contains(&goodput), "{goodput} Mbit/s"),
            Refresh::OnArrival => assert!((0.25..1.2).contains(&goodput), "{goodput} Mbit/s"),
            Refresh::HalfTime => assert!(goodput < 0.5, "{goodput} Mbit/s"),
        }
    }
    // Below saturation the same cycle does no harm.
    let gentle =
        opposite(&plan).into_iter().map(|(from, to)| udp(from.index(), to.index(), 450_000_000, Arrivals::Even));
    let outcome = run(&plan, gentle.collect(), &PacketConfig { duration_ps: SECOND_PS, ..config });
    assert_eq!((outcome.deadlock, outcome.counters.dropped()), (None, 0));
}

#[test]
fn cut_through_is_faster_by_what_it_does_not_wait_for() {
    let plan = plan_of("mesh", "4", 1, &Policy::default());
    let flow = Flow { bytes: Some(1472), ..Flow::flood(HostId::new(0), HostId::new(3)) };
    let latency = |switching| {
        let config = PacketConfig { switching, ..PacketConfig::default() };
        run(&plan, vec![flow], &config).flows[0].latency_max_ps
    };
    // Four switches: host cable, three tagged links, host cable.
    let whole = 2 * 1538 * 8000 + 3 * 1542 * 8000 + 5 * 500_000;
    assert_eq!(latency(Switching::StoreAndForward), whole);
    // The head needs 72 octets a switch; the last cable carries the whole frame.
    assert_eq!(latency(Switching::CutThrough), 4 * 72 * 8000 + 1538 * 8000 + 5 * 500_000);
}

#[test]
fn a_broadcast_reaches_everybody_once_and_addresses_are_asked_for() {
    let plan = plan_of("torus", "4x4", 1, &Policy::default());
    let flow = Flow { bytes: Some(1000), destination: None, ..Flow::flood(HostId::new(5), HostId::new(0)) };
    let outcome = run(&plan, vec![flow], &PacketConfig::default());
    assert_eq!((outcome.counters.delivered, outcome.counters.strayed), (15, 0));
    let flow = Flow { bytes: Some(1000), ..Flow::flood(HostId::new(5), HostId::new(10)) };
    let outcome = run(&plan, vec![flow], &PacketConfig { arp: Arp::Ask, ..PacketConfig::default() });
    // The request to fifteen, the answer, the datagram.
    assert_eq!((outcome.counters.injected, outcome.counters.delivered), (3, 17));
}

#[test]
fn a_dead_link_costs_a_timeout() {
    let plan = plan_of("mesh", "2", 1, &Policy::default());
    let flow = tcp(0, 1, 10_000_000, TcpVariant::Reno);
    let (down, up) = (SECOND_PS / 50, SECOND_PS / 20);
    let faults = vec![
        Fault { at_ps: down, change: Change::LinkDown(LinkId::new(0)) },
        Fault { at_ps: up, change: Change::LinkUp(LinkId::new(0)) },
    ];
    let config = PacketConfig { duration_ps: 10 * SECOND_PS, ..PacketConfig::default() };
    let outcome = Simulation::new(&plan, &Workload { flows: vec![flow], faults }, &config).finish();
    let ended = outcome.flows[0].ended_ps.expect("it ends");
    assert!(ended > down + RTO_MIN_PS && ended < SECOND_PS, "{ended}");
    assert!(outcome.counters.dropped_fault > 0);
}
