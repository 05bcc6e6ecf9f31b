//! Failover bonds whose ports stay up: those that watch by ARP, as Linux's driver does, and those without a primary port.

use std::time::Duration;

use fabric::{HostId, Mac, Plan, Policy, Topology, TopologyBuilder, rng::Rng};
use planner::{StepLimit, plan_with};
use rollout::{
    bonds::{Bonds, Reading},
    standby::LinkHealth,
};
use switch_model::observe::{Count, Received};

/// Two switches with a port of the bond each, and a third with the machine that it watches.
fn topology() -> Topology {
    let mut builder = TopologyBuilder::new();
    let ids: Vec<_> = (0..3).map(|n| builder.add_switch(&format!("s{n}"), Default::default()).unwrap()).collect();
    for n in 0..3 {
        let a = builder.add_port(ids[n], "next").unwrap();
        let b = builder.add_port(ids[(n + 1) % 3], "last").unwrap();
        builder.add_link(a, b, 1_000_000_000).unwrap();
    }
    let port = builder.add_port(ids[2], "host").unwrap();
    builder.add_host("target", Mac::local(1), port, 1_000_000_000, None).unwrap();
    let ports = [0, 1].map(|n: usize| builder.add_port(ids[n], "bond").unwrap());
    builder.add_host("b/0", Mac::local(2), ports[0], 1_000_000_000, None).unwrap();
    builder.join_machine("b").unwrap();
    builder.add_standby("b/1", ports[1], 1_000_000_000).unwrap();
    builder.finish().unwrap()
}

fn plan() -> Plan {
    plan_with(&topology(), &Policy::default(), None, &mut StepLimit::new(2)).unwrap()
}

/// A bond of two ports that are up, and what switches count of it.
struct Machine {
    ports: [HostId; 2],
    up: [bool; 2],
    /// Whether frames pass between the port and the target.
    path: [bool; 2],
    used: Option<usize>,
    has_primary: bool,
    /// Between two requests, if it watches by ARP.
    arp_ms: Option<u64>,
    /// When an answer came at each port last.
    answered_ms: [u64; 2],
    /// From which port requests go while none is in use.
    probes: usize,
    /// Whether it sends of its own accord.
    sends: bool,
    /// Unicast and broadcast frames, by port.
    received: [[u64; 2]; 2],
}

impl Machine {
    fn new(plan: &Plan) -> Self {
        let ports = ["b/0", "b/1"].map(|name| plan.topology.find_host(name).unwrap());
        Self {
            ports,
            up: [true; 2],
            path: [true; 2],
            used: Some(0),
            has_primary: false,
            arp_ms: None,
            answered_ms: [0; 2],
            probes: 0,
            sends: true,
            received: [[0; 2]; 2],
        }
    }

    fn uses(&mut self, port: Option<usize>) {
        if port != self.used {
            self.used = port;
            port.into_iter().for_each(|port| self.received[port][1] += 1);
        }
    }

    /// The port that entries lead to.
    fn entered(&self, bonds: &Bonds) -> usize {
        usize::from(bonds.topology().host(self.ports[0]).standby)
    }

    /// A request leaves, and its answer comes to where entries lead; ports that are not in use hear the request itself.
    fn request(&mut self, now_ms: u64, every_ms: u64, bonds: &Bonds) {
        let works = |port: &usize| now_ms - self.answered_ms[*port] <= 2 * every_ms;
        let preferred = [0].into_iter().filter(|_| self.has_primary);
        let used = preferred.chain(self.used).chain(0..2).find(works);
        self.uses(used);
        if used.is_none() {
            self.probes = 1 - self.probes;
        }
        let from = used.unwrap_or(self.probes);
        self.received[from][1] += 1;
        if !self.path[from] {
            return;
        }
        let entered = self.entered(bonds);
        if self.path[entered] {
            self.answered_ms[entered] = now_ms;
        }
        if used.is_some() && self.path[1 - from] {
            self.answered_ms[1 - from] = now_ms;
        }
    }

    /// Watches carriers: the primary port is taken once it is up.
    fn watch_carriers(&mut self) {
        let preferred = [0].into_iter().filter(|_| self.has_primary);
        let used = preferred.chain(self.used).chain(0..2).find(|port| self.up[*port]);
        self.uses(used);
    }

    /// Polls every port every `poll_ms` for a while, one after the other.
    fn live(&mut self, bonds: &mut Bonds, plan: &Plan, now_ms: &mut u64, (poll_ms, lasts_ms): (u64, u64)) {
        for _ in 0..lasts_ms / 10 {
            *now_ms += 10;
            match self.arp_ms {
                Some(every_ms) if *now_ms % every_ms == 0 => self.request(*now_ms, every_ms, bonds),
                Some(_) => {}
                None => self.watch_carriers(),
            }
            if let Some(used) = self.used {
                let is_asked = self.path[used] && self.entered(bonds) == used;
                self.received[used][0] += u64::from(*now_ms % 50 == 0 && (self.sends || is_asked));
            }
            for (nth, port) in self.ports.iter().enumerate() {
                if *now_ms % poll_ms == 10 * nth as u64 {
                    let [unicast, broadcast] = self.received[nth].map(Count::Wide);
                    let received = Received { unicast, broadcast };
                    let at = Duration::from_millis(*now_ms);
                    bonds.handle_reading(*port, Reading { at, up_cs: (*now_ms / 10) as u32, received });
                }
            }
            if *now_ms % poll_ms == 20 {
                let mut health = vec![LinkHealth::Up; plan.topology.hosts().len()];
                for (port, _) in self.ports.iter().zip(self.up).filter(|(_, up)| !*up) {
                    health[port.index()] = LinkHealth::Down;
                }
                bonds.handle_ports(Duration::from_millis(*now_ms), &health);
            }
        }
    }

    /// Whether the bond uses a port that works, and entries lead there.
    fn is_reached(&self, bonds: &Bonds) -> bool {
        self.used.is_some_and(|used| self.path[used] && self.up[used] && self.entered(bonds) == used)
    }

    /// Lives until it is reached; for how long it was not, up to `most_ms`.
    fn gap(&mut self, bonds: &mut Bonds, plan: &Plan, now_ms: &mut u64, (poll_ms, most_ms): (u64, u64)) -> u64 {
        let begun_ms = *now_ms;
        while !self.is_reached(bonds) && *now_ms < begun_ms + most_ms {
            self.live(bonds, plan, now_ms, (poll_ms, 10));
        }
        *now_ms - begun_ms
    }
}

/// The path of the port in use dies while the port stays up, again and again, and the other one is mended first or later: entries and bond
/// meet at a port that works, however slowly switches are polled beside the bond's requests.
#[test]
fn entries_meet_a_bond_that_watches_by_arp() {
    let plan = plan();
    let (mut searched, mut worst_ms) = (0, 0);
    for seed in 0..120 {
        let mut rng = Rng::new(seed);
        let (mut machine, mut bonds, mut now_ms) = (Machine::new(&plan), Bonds::new(&plan), 0);
        let arp_ms = [250, 500, 1000][rng.below(3)];
        let poll_ms = [50, 100, 500][rng.below(3)];
        machine.arp_ms = Some(arp_ms);
        machine.has_primary = rng.below(2) == 0;
        machine.sends = rng.below(2) == 0;
        machine.live(&mut bonds, &plan, &mut now_ms, (poll_ms, 20_000));
        for round in 0..12 {
            let at = format!("seed {seed}, round {round}: requests every {arp_ms} ms, polls every {poll_ms} ms");
            let used = machine.used.expect("it was reached");
            machine.path = [true; 2];
            machine.path[used] = false;
            // After two dead paths the first of them may work again first.
            if rng.below(4) == 0 {
                machine.path = [false; 2];
                machine.live(&mut bonds, &plan, &mut now_ms, (poll_ms, 1_000 + rng.below(60_000) as u64));
                machine.path[rng.below(2)] = true;
            }
            let most_ms = 5_000 + 60 * (arp_ms + poll_ms);
            let gap_ms = machine.gap(&mut bonds, &plan, &mut now_ms, (poll_ms, most_ms));
            assert!(machine.is_reached(&bonds), "{at}: not reached after {gap_ms} ms");
            worst_ms = worst_ms.max(gap_ms);
            searched += usize::from(gap_ms > 4 * arp_ms);
            machine.live(&mut bonds, &plan, &mut now_ms, (poll_ms, 3_000 + rng.below(400_000) as u64));
            assert!(machine.is_reached(&bonds), "{at}: lost again");
        }
    }
    assert!(searched > 100, "{searched} times entries had to search, {worst_ms} ms at most");
}

/// Without a primary port a bond stays where it is when the planned port comes up again: entries go back there first, and leave it after
/// two polls in which the bond has sent from the other one, or after a second in which it has not announced itself.
#[test]
fn entries_come_back_soon_to_a_bond_without_a_primary_port() {
    let plan = plan();
    for poll_ms in [50, 100, 500] {
        for (has_primary, sends) in [(false, true), (true, true), (false, false), (true, false)] {
            let (mut machine, mut bonds, mut now_ms) = (Machine::new(&plan), Bonds::new(&plan), 0);
            (machine.has_primary, machine.sends) = (has_primary, sends);
            machine.live(&mut bonds, &plan, &mut now_ms, (poll_ms, 30_000));
            for _ in 0..3 {
                machine.up[0] = false;
                machine.live(&mut bonds, &plan, &mut now_ms, (poll_ms, 400_000));
                assert!(machine.is_reached(&bonds) && machine.used == Some(1));
                machine.up[0] = true;
                machine.live(&mut bonds, &plan, &mut now_ms, (poll_ms, poll_ms + 20));
                let gap_ms = machine.gap(&mut bonds, &plan, &mut now_ms, (poll_ms, 60_000));
                let most_ms = 4 * poll_ms + if sends || has_primary { 100 } else { 1_000 };
                assert!(
                    gap_ms <= most_ms,
                    "polls every {poll_ms} ms, primary: {has_primary}, sends: {sends}: {gap_ms} ms"
                );
                machine.live(&mut bonds, &plan, &mut now_ms, (poll_ms, 400_000));
                assert!(machine.is_reached(&bonds) && machine.used == Some(usize::from(!has_primary)));
            }
        }
    }
}
