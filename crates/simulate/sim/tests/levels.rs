//! Why all-to-all under PAUSE takes longer at the packet level than at the flow level: a port that is asked to stop holds
//! frames back whose own way is free.
//!
//! ```text
//!   s0 ──[ to s2 | to s1 | to s2 ]──▶ s1 ──full──▶ s2       s1 stops s0 for s2's sake; the frame to s1 waits as well
//! ```
//! Routes and cables stay as they are, so that nothing but queues can make a difference: the memory that PAUSE leaves them is
//! varied, and in two controls no port is ever asked to stop.

mod common;

use fabric::{EngineName, Plan, Policy};
use sim::{
    flow::{FlowLevel, Transfer},
    packet::{Buffers, FlowControlAt, Limit, PacketConfig, Simulation},
    pattern::{Pair, Pattern},
    workload::{Arrivals, Flow, SECOND_PS, Transport, Workload},
};

/// What each pair sends, in octets: 400 full frames.
const BYTES: u64 = 400 * 1472;
/// Octets on the cable for each octet of data: headers, tag, preamble and gap.
const OVERHEAD: f64 = (1472 + 46 + 4 + 20) as f64 / 1472.0;
/// What part of its fair rate a paced sender takes, so that no queue grows.
const PACE: f64 = 0.98;

/// All-to-all on a ring, at both levels.
struct Ring {
    plan: Plan,
    pairs: Vec<Pair>,
    /// `fair_bps[pair]`: its max-min fair rate, as octets on the cable.
    fair_bps: Vec<f64>,
    /// How long the flow level takes.
    seconds: f64,
}

impl Ring {
    fn of(switches: usize) -> Self {
        let policy = Policy { engine: EngineName::Updown, ..Policy::default() };
        let plan = common::plan_of("torus", &switches.to_string(), 1, &policy);
        let pairs = Pattern::AllToAll.pairs(&plan.topology, 1).expect("any number of hosts");
        let bits = BYTES as f64 * 8.0 * OVERHEAD;
        let transfer = |pair: &Pair| Transfer { source: pair.source, destination: pair.destination, bits };
        let transfers: Vec<Transfer> = pairs.iter().map(transfer).collect();
        let shared = FlowLevel::new(&plan).run(&transfers).expect("routes");
        let seconds = shared.seconds.iter().copied().fold(0.0, f64::max);
        Self { plan, pairs, fair_bps: shared.first_bps, seconds }
    }

    /// How many times as long the packet level takes, and how many PAUSE frames it sends.
    fn packets(&self, config: PacketConfig, paced: bool) -> (f64, u64) {
        let flow = |(pair, fair_bps): (&Pair, &f64)| Flow {
            bytes: Some(BYTES),
            transport: Transport::Udp { rate_bps: paced.then_some((fair_bps * PACE) as u64), arrivals: Arrivals::Even },
            ..Flow::flood(pair.source, pair.destination)
        };
        let flows = self.pairs.iter().zip(&self.fair_bps).map(flow).collect();
        let config = PacketConfig { duration_ps: 10 * SECOND_PS, ..config };
        let outcome = Simulation::new(&self.plan, &Workload { flows, faults: Vec::new() }, &config).finish();
        let ends = outcome.flows.iter().map(|flow| flow.ended_ps.expect("nothing is lost"));
        let seconds = ends.max().expect("pairs") as f64 / SECOND_PS as f64;
        (seconds / self.seconds, outcome.counters.pauses)
    }

    /// The same where a port is asked to stop when it holds more than `kib` KiB.
    fn paused_at(&self, kib: u32) -> (f64, u64) {
        let buffers = Buffers {
            pool_bytes: 1 << 30,
            ingress: Limit::Static(kib << 11),
            xoff_bytes: kib << 10,
            xon_bytes: kib << 9,
            ..Buffers::default()
        };
        self.packets(PacketConfig { buffers, ..PacketConfig::default() }, false)
    }
}

#[test]
fn what_pause_holds_back_makes_packets_slower_than_flows() {
    for (switches, at_32_kib) in [(7, 1.10), (9, 1.25), (11, 1.25)] {
        let ring = Ring::of(switches);
        let thresholds = [8, 32, 128, 512];
        let paused = thresholds.map(|kib| ring.paused_at(kib));
        let all = Limit::Static(1 << 30);
        let roomy = Buffers { pool_bytes: 1 << 30, ingress: all, egress: all, ..Buffers::default() };
        let never = PacketConfig { buffers: roomy, flow_control: FlowControlAt::Nowhere, ..PacketConfig::default() };
        let (unpaused, pauses) = ring.packets(never, false);
        let (paced, paced_pauses) = ring.packets(PacketConfig::default(), true);
        eprintln!(
            "ring of {switches}: by KiB {thresholds:?} {paused:.3?}; without PAUSE {unpaused:.3}, paced {paced:.3}"
        );
        assert_eq!((pauses, paced_pauses), (0, 0));
        assert!((paced * PACE - 1.0).abs() < 0.01, "{switches}: routes and cables are the same");
        assert!(unpaused < 1.05, "{switches}: {unpaused}");
        assert!(paused[1].0 > at_32_kib, "{switches}: {paused:?}");
        assert!(paused.windows(2).all(|pair| pair[0].0 > pair[1].0 && pair[0].1 > pair[1].1), "{switches}: {paused:?}");
    }
}
