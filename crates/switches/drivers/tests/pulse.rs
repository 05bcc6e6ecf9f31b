//! What a quiet round of `watch` costs: a few requests for each switch, however many VLANs and static entries it holds; and
//! what makes it read tables again.

mod common;

use std::{
    collections::VecDeque,
    io,
    sync::{Arc, Mutex},
    time::Duration,
};

use common::{access, connect, facts};
use drivers::snmp::{Device, PulseColumns};
use fabric::{Admin, Mac, VlanId};
use snmp::Link;
use switch_model::{PortLearning, Slot, SwitchConfig, driver::Driver as _, mark::Mark, observe::flow};
use switchd::agent::{Config, Engine, Still, Switch};

const ENGINE: &[u8] = &[0x80, 0, 0x1f, 0x88, 4, b's', b'9'];

/// An agent and how many requests it has been sent.
struct Agent {
    engine: Engine<Switch<Still>>,
    requests: usize,
    now_ms: u64,
}

struct Wire {
    agent: Arc<Mutex<Agent>>,
    back: VecDeque<Vec<u8>>,
}

impl Link for Wire {
    fn send(&mut self, datagram: &[u8]) -> io::Result<()> {
        let mut agent = self.agent.lock().expect("no panic before");
        agent.requests += 1;
        agent.now_ms += 10;
        let now_ms = agent.now_ms;
        self.back.extend(agent.engine.handle_datagram(now_ms, datagram).map(|reply| reply.datagram));
        Ok(())
    }

    fn receive(&mut self, _: Duration) -> io::Result<Option<Vec<u8>>> {
        Ok(self.back.pop_front())
    }
}

fn agent(ports: u32) -> Arc<Mutex<Agent>> {
    let switch = Switch::new(facts(ports, 100), Config::factory(ports as usize), Still, ENGINE, 1, 0);
    Arc::new(Mutex::new(Agent { engine: Engine::new(switch, access(), ENGINE, 1), requests: 0, now_ms: 60_000 }))
}

fn device(agent: &Arc<Mutex<Agent>>, ports: u32) -> Device<Wire> {
    connect(Wire { agent: Arc::clone(agent), back: VecDeque::new() }, ports)
}

fn requests(agent: &Arc<Mutex<Agent>>) -> usize {
    agent.lock().expect("no panic before").requests
}

/// A state with so many VLANs and static entries.
fn config(ports: u32, vlans: u16, entries: u16) -> SwitchConfig {
    let mut config = SwitchConfig::blank((1..=ports).map(|number| format!("p{number}")));
    let vlan = |number: u16| VlanId::new(2 + number % vlans.max(1)).expect("in range");
    config.vlans = (0..vlans).map(vlan).collect();
    for port in &mut config.ports {
        (port.admin, port.learning) = (Admin::Up, PortLearning::Always);
        port.tagged = config.vlans.clone();
    }
    for number in 0..entries {
        let mac = Mac::new([2, 0, 0, 9, (number >> 8) as u8, number as u8]);
        config.entries.insert((vlan(number), mac), Slot::new(usize::from(number) % ports as usize));
    }
    config
}

#[test]
fn a_quiet_round_costs_as_many_requests_whatever_the_tables_hold() {
    const PORTS: u32 = 24;
    let mut costs = Vec::new();
    for (vlans, entries) in [(1, 0), (8, 200), (40, 900)] {
        let agent = agent(PORTS);
        let mut device = device(&agent, PORTS);
        let reading = device.read().expect("a reading");
        let mark = Mark::new(1, 1, 1);
        device.write(&reading.config, &config(PORTS, vlans, entries), mark, reading.fence, None).expect("a write");
        let mut columns = PulseColumns::default();
        let first = device.pulse(&mut columns).expect("a pulse");
        let before = requests(&agent);
        let second = device.pulse(&mut columns).expect("a pulse");
        costs.push(requests(&agent) - before);
        assert!(!second.has_changed_since(&first), "nothing has happened");
        let flows = flow(&first.counts, &second.counts);
        assert!(flows.iter().all(|flow| flow.is_some_and(|flow| flow.running && flow.rate_bps[0].is_some())));
        let whole = requests(&agent);
        device.read().expect("a reading");
        let whole = requests(&agent) - whole;
        assert!(entries < 900 || whole > 3 * costs[0], "tables take {whole} requests, a quiet round {costs:?}");
    }
    // One for indicators, and one for every 48 objects of 24 ports with at most 16 each.
    assert!(costs.iter().all(|cost| *cost == costs[0] && *cost <= 9), "{costs:?}");
}

#[test]
fn whatever_else_changes_moves_an_indicator() {
    const PORTS: u32 = 4;
    let agent = agent(PORTS);
    let mut device = device(&agent, PORTS);
    let mark = |nonce| Mark::new(1, nonce, 1);
    let mut columns = PulseColumns::default();
    let mut held = config(PORTS, 2, 3);
    let reading = device.read().expect("a reading");
    device.write(&reading.config, &held, mark(1), reading.fence, None).expect("a write");
    let changes: [fn(&mut SwitchConfig); 4] = [
        |config| config.ports[2].admin = Admin::Down,
        |config| config.ports[1].pvid = VlanId::new(3).ok(),
        |config| _ = config.entries.pop_first(),
        |config| _ = config.vlans.remove(VlanId::new(2).expect("in range")),
    ];
    for change in changes {
        let before = device.pulse(&mut columns).expect("a pulse");
        let reading = device.read().expect("a reading");
        change(&mut held);
        if let Some(gone) = (2..4).filter_map(|id| VlanId::new(id).ok()).find(|vlan| !held.vlans.contains(*vlan)) {
            held.ports.iter_mut().for_each(|port| _ = port.tagged.remove(gone));
            held.entries.retain(|(vlan, _), _| *vlan != gone);
        }
        device.write(&reading.config, &held, mark(1), reading.fence, None).expect("a write");
        assert!(device.pulse(&mut columns).expect("a pulse").has_changed_since(&before));
    }
}

#[test]
fn a_port_tells_for_how_long_it_has_been_up_and_lldp_how_often_it_speaks() {
    let agent = agent(2);
    let mut device = device(&agent, 2);
    let pulse = device.pulse(&mut PulseColumns::default()).expect("a pulse");
    assert!(pulse.ports.iter().all(|port| port.running && port.since_cs.is_some_and(|cs| cs >= 6000)), "{pulse:?}");
    assert_eq!(pulse.lldp_interval_s, Some(1));
}
