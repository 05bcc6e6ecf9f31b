//! Bridges in virtual time: whatever the cabling, they agree on one tree, no frame ever finds a loop, and a cable that
//! breaks is replaced.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BinaryHeap},
};

use bridge_mib::StpState;
use fabric::rng::Rng;
use proptest::prelude::*;
use switchd::stp::{Bpdu, Bridge, Effect, Link, Timers};

/// Bridges, cables between their ports, and messages on their way.
struct Net {
    bridges: Vec<Bridge>,
    /// The other end of a port.
    far: BTreeMap<(usize, usize), (usize, usize)>,
    mail: BinaryHeap<Reverse<Letter>>,
    sent: u64,
    now_ms: u64,
    rng: Rng,
    forgotten: u64,
}

/// A message on its way: due, number, bridge, port, octets.
type Letter = (u64, u64, usize, usize, Vec<u8>);

/// Longest time that a message takes.
const DELAY_MS_MAX: usize = 20;
const TICK_MS: u64 = 50;

impl Net {
    fn new(bridges: usize, cables: &[(usize, usize)], seed: u64) -> Self {
        let mut ports = vec![0; bridges];
        let mut far = BTreeMap::new();
        for &(a, b) in cables {
            let (at_a, at_b) = (ports[a], ports[b] + usize::from(a == b));
            ports[a] += 1;
            ports[b] += 1;
            far.insert((a, at_a), (b, at_b));
            far.insert((b, at_b), (a, at_a));
        }
        let mut rng = Rng::new(seed);
        let mut ids: Vec<u64> = (1..=bridges as u64).collect();
        rng.shuffle(&mut ids);
        let bridge = |(number, &count): (usize, &usize)| {
            let ports: Vec<(u16, u32)> = (1..=count as u16).map(|port| (0x8000 | port, 19)).collect();
            Bridge::new((0x8000 << 48 | ids[number]).to_be_bytes(), &ports, Timers::SHORT, 0)
        };
        let bridges = ports.iter().enumerate().map(bridge).collect();
        let mut net = Self { bridges, far, mail: BinaryHeap::new(), sent: 0, now_ms: 0, rng, forgotten: 0 };
        for (bridge, port) in net.far.keys().copied().collect::<Vec<_>>() {
            let effects = net.bridges[bridge].handle_link(0, port, Link::Governed);
            net.happen(bridge, effects);
        }
        net
    }

    fn happen(&mut self, bridge: usize, effects: Vec<Effect>) {
        for effect in effects {
            match effect {
                Effect::Send(port, bpdu) => {
                    if let Some(&(far, far_port)) = self.far.get(&(bridge, port)) {
                        self.sent += 1;
                        let due = self.now_ms + self.rng.below(DELAY_MS_MAX) as u64;
                        self.mail.push(Reverse((due, self.sent, far, far_port, bpdu.encode())));
                    }
                }
                Effect::State(..) => {}
                Effect::Forget => self.forgotten += 1,
            }
        }
    }

    /// Lets time pass; at no moment may there be a loop.
    fn run(&mut self, span_ms: u64) {
        let end_ms = self.now_ms + span_ms;
        while self.now_ms < end_ms {
            let tick_ms = self.now_ms + TICK_MS;
            while let Some(Reverse((due, ..))) = self.mail.peek() {
                if *due > tick_ms {
                    break;
                }
                let Reverse((due, _, bridge, port, octets)) = self.mail.pop().expect("peeked");
                self.now_ms = self.now_ms.max(due);
                if self.far.contains_key(&(bridge, port)) {
                    let bpdu = Bpdu::decode(&octets).expect("bridges write what they read");
                    let effects = self.bridges[bridge].handle_bpdu(self.now_ms, port, &bpdu);
                    self.happen(bridge, effects);
                    self.assert_loop_free();
                }
            }
            self.now_ms = tick_ms;
            for bridge in 0..self.bridges.len() {
                let effects = self.bridges[bridge].handle_tick(self.now_ms);
                self.happen(bridge, effects);
                self.assert_loop_free();
            }
        }
    }

    fn cut(&mut self, bridge: usize, port: usize) {
        let (far, far_port) = self.far.remove(&(bridge, port)).expect("a cable");
        self.far.remove(&(far, far_port));
        for (bridge, port) in [(bridge, port), (far, far_port)] {
            let effects = self.bridges[bridge].handle_link(self.now_ms, port, Link::Down);
            self.happen(bridge, effects);
        }
    }

    /// Cables that carry frames both ways.
    fn open(&self) -> Vec<(usize, usize)> {
        let forwards = |end: &(usize, usize)| self.bridges[end.0].state(end.1) == StpState::Forwarding;
        let cables = self.far.iter().filter(|(a, b)| a < b && forwards(a) && forwards(b));
        cables.map(|(a, b)| (a.0, b.0)).collect()
    }

    fn assert_loop_free(&self) {
        let mut group: Vec<usize> = (0..self.bridges.len()).collect();
        for (a, b) in self.open() {
            let (a, b) = (find(&group, a), find(&group, b));
            assert_ne!(a, b, "a loop at {} ms", self.now_ms);
            group[a] = b;
        }
    }

    /// Whatever is connected by cables is connected by open ones, and agrees on the root.
    fn assert_spanning(&self) {
        let groups = |cables: &[(usize, usize)]| {
            let mut group: Vec<usize> = (0..self.bridges.len()).collect();
            for &(a, b) in cables {
                let (a, b) = (find(&group, a), find(&group, b));
                group[a] = b;
            }
            (0..group.len()).map(|bridge| find(&group, bridge)).collect::<Vec<_>>()
        };
        let cables: Vec<(usize, usize)> = self.far.iter().map(|(a, b)| (a.0, b.0)).collect();
        let (cabled, open) = (groups(&cables), groups(&self.open()));
        for a in 0..self.bridges.len() {
            for b in 0..a {
                assert_eq!(cabled[a] == cabled[b], open[a] == open[b], "bridges {a} and {b}");
                assert!(cabled[a] != cabled[b] || self.bridges[a].root() == self.bridges[b].root());
            }
        }
        // On each cable one end at most is closed.
        for (a, b) in &self.far {
            assert!([a, b].iter().any(|end| self.bridges[end.0].state(end.1) == StpState::Forwarding));
        }
    }
}

fn find(group: &[usize], mut member: usize) -> usize {
    while group[member] != member {
        member = group[member];
    }
    member
}

/// Long enough for word of a change to arrive and for ports to open.
fn settling_ms() -> u64 {
    u64::from(2 * Timers::SHORT.max_age_ms + 3 * Timers::SHORT.forward_delay_ms)
}

#[test]
fn a_torus_of_sixteen_becomes_a_tree() {
    let cables: Vec<(usize, usize)> =
        (0..16).flat_map(|at| [(at, at / 4 * 4 + (at + 1) % 4), (at, (at + 4) % 16)]).collect();
    let mut net = Net::new(16, &cables, 1);
    net.run(settling_ms());
    net.assert_spanning();
    assert_eq!(net.open().len(), 15);
    assert!(net.forgotten > 0);
}

#[test]
fn a_port_without_spanning_tree_is_left_alone() {
    let ports = [(1, 19), (2, 19)];
    let mut bridge = Bridge::new([0x80, 0, 0, 0, 0, 0, 0, 1], &ports, Timers::SHORT, 0);
    bridge.handle_link(0, 0, Link::Free);
    let effects: Vec<Effect> = (0..100).flat_map(|tick| bridge.handle_tick(50 * tick)).collect();
    assert_eq!(effects, []);
    assert_eq!((bridge.state(0), bridge.state(1)), (StpState::Disabled, StpState::Disabled));
}

#[test]
fn a_bridge_that_hears_itself_closes_one_port() {
    let mut net = Net::new(1, &[(0, 0)], 3);
    net.run(settling_ms());
    let states = [net.bridges[0].state(0), net.bridges[0].state(1)];
    assert_eq!(states, [StpState::Forwarding, StpState::Blocking]);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]
    #[test]
    fn any_cabling_becomes_a_tree_and_mends(
        bridges in 2_usize..9,
        ends in prop::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>()), 1..16),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..4),
        seed: u64,
    ) {
        let cables: Vec<(usize, usize)> =
            ends.iter().map(|(a, b)| (a.index(bridges), b.index(bridges))).filter(|(a, b)| a != b).collect();
        let mut net = Net::new(bridges, &cables, seed);
        net.run(settling_ms());
        net.assert_spanning();
        for cut in cuts {
            let ends: Vec<(usize, usize)> = net.far.keys().copied().collect();
            if ends.is_empty() {
                break;
            }
            let (bridge, port) = ends[cut.index(ends.len())];
            net.cut(bridge, port);
            net.run(settling_ms());
            net.assert_spanning();
        }
    }
}
