//! What a standby reads of a switch at each poll, and what it costs: states of ports, and frames received at those that are counted.

mod common;

use std::{
    collections::VecDeque,
    io,
    sync::{Arc, Mutex},
    time::Duration,
};

use bridge_mib::objects::if_mib;
use common::{access, connect, facts};
use drivers::snmp::Glance;
use snmp::{
    Link, Value,
    wire::{ErrorStatus, Pdu, PduKind},
};
use switch_model::{
    Slot,
    observe::{Count, Received},
};
use switchd::agent::{
    Answer, Change, Config, DataPlane, Engine, EngineClock, Refused, Responder, Rights, Sensors, Switch,
};

const ENGINE: &[u8] = &[0x80, 0, 0x1f, 0x88, 4, b'g', b'1'];

/// What a switch does about counters that it does not have.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Lacks {
    Nothing,
    /// It has no counters of 64 bits.
    Wide,
    /// It has none, and refuses every request for one.
    WideAloud,
    /// It has no counters of frames at all.
    All,
}

/// Every port has received 1000 unicast frames and its number more, and its number of broadcasts.
struct Plane;

impl DataPlane for Plane {
    fn observe(&mut self, _: u32, sensors: &mut Sensors) {
        for (number, port) in (1..).zip(&mut sensors.ports) {
            (port.counters.in_unicast, port.counters.in_broadcast) = (1000 + number, number);
        }
    }

    fn apply(&mut self, _: &Config, _: &[Change]) -> Result<(), Refused> {
        Ok(())
    }
}

struct Vendor {
    switch: Switch<Plane>,
    lacks: Lacks,
}

impl Responder for Vendor {
    fn answer(&mut self, now_ms: u64, request: &Pdu, rights: Rights, room: usize) -> Answer {
        let wide = [&if_mib::HC_IN_UCAST_PKTS, &if_mib::HC_IN_BROADCAST_PKTS];
        let narrow = [&if_mib::IN_UCAST_PKTS, &if_mib::IN_BROADCAST_PKTS];
        let lacks = |oid: &snmp::Oid| {
            let is_of = |columns: &[&snmp::Column]| {
                columns.iter().any(|column| oid.strip_prefix(column.root().parts()).is_some())
            };
            is_of(&wide) || (self.lacks == Lacks::All && is_of(&narrow))
        };
        let missing: Vec<usize> = match self.lacks {
            Lacks::Nothing => Vec::new(),
            _ => (0..request.bindings.len()).filter(|at| lacks(&request.bindings[*at].0)).collect(),
        };
        if let (Lacks::WideAloud, PduKind::Get, Some(first)) = (self.lacks, request.kind, missing.first()) {
            return Answer::Pdu(request.refusal(ErrorStatus::GenErr, first + 1));
        }
        let mut answer = self.switch.answer(now_ms, request, rights, room);
        if let Answer::Pdu(pdu) = &mut answer {
            missing.into_iter().for_each(|at| pdu.bindings[at].1 = Value::NoSuchObject);
        }
        answer
    }

    fn clock(&self, now_ms: u64) -> EngineClock {
        self.switch.clock(now_ms)
    }

    fn handle_tick(&mut self, now_ms: u64) {
        self.switch.handle_tick(now_ms);
    }

    fn restart(&mut self, now_ms: u64) {
        self.switch.restart(now_ms);
    }
}

struct Wire {
    engine: Engine<Vendor>,
    requests: Arc<Mutex<usize>>,
    back: VecDeque<Vec<u8>>,
}

impl Link for Wire {
    fn send(&mut self, datagram: &[u8]) -> io::Result<()> {
        *self.requests.lock().expect("no panic before") += 1;
        self.back.extend(self.engine.handle_datagram(60_000, datagram).map(|reply| reply.datagram));
        Ok(())
    }

    fn receive(&mut self, _: Duration) -> io::Result<Option<Vec<u8>>> {
        Ok(self.back.pop_front())
    }
}

/// Two glances at a switch with so many ports, some of which are counted, and how many requests the second one takes.
fn glances(ports: u32, counted: &[usize], lacks: Lacks) -> ([Glance; 2], usize) {
    let switch = Switch::new(facts(ports, 10_100), Config::factory(ports as usize), Plane, ENGINE, 1, 0);
    let requests = Arc::new(Mutex::new(0));
    let engine = Engine::new(Vendor { switch, lacks }, access(), ENGINE, 1);
    let wire = Wire { engine, requests: Arc::clone(&requests), back: VecDeque::new() };
    let mut device = connect(wire, ports);
    let counted: Vec<Slot> = counted.iter().copied().map(Slot::new).collect();
    let first = device.glance(&counted).expect("a glance");
    let before = *requests.lock().expect("no panic before");
    let second = device.glance(&counted).expect("a glance");
    let cost = *requests.lock().expect("no panic before") - before;
    ([first, second], cost)
}

fn received(count: impl Fn(u64) -> Count, slot: u64) -> Received {
    Received { unicast: count(1001 + slot), broadcast: count(1 + slot) }
}

#[test]
fn frames_are_counted_at_ports_that_are_asked_for_without_another_request() {
    let (glances, cost) = glances(16, &[3, 4, 8, 15], Lacks::Nothing);
    assert_eq!(cost, 2, "one for the tag, one for the ports");
    for (slot, port) in glances[1].ports.iter().enumerate() {
        let wanted =
            if [3, 4, 8, 15].contains(&slot) { received(Count::Wide, slot as u64) } else { Received::default() };
        assert_eq!((port.received, port.running), (wanted, true), "port {slot}");
    }
    let (_, cost) = self::glances(48, &(0..48).collect::<Vec<_>>(), Lacks::Nothing);
    assert_eq!(cost, 7, "one for the tag, and one for nine ports that are counted");
}

#[test]
fn counters_of_32_bits_do_where_there_are_no_others() {
    let narrow = |count| Count::Narrow(count as u32);
    for lacks in [Lacks::Wide, Lacks::WideAloud] {
        let ([first, second], cost) = glances(4, &[1, 2], lacks);
        assert_eq!(cost, 2, "it is known what is there");
        assert_eq!(first.ports[1].received, Received::default(), "that is found out first");
        assert_eq!(second.ports[1].received, received(narrow, 1));
        assert_eq!(second.ports[0].received, Received::default(), "nobody asked");
        assert!(first.ports.iter().chain(&second.ports).all(|port| port.running));
    }
}

#[test]
fn a_switch_that_counts_nothing_says_nothing() {
    let ([_, second], cost) = glances(4, &[1, 2], Lacks::All);
    assert!(second.ports.iter().all(|port| port.received == Received::default() && port.running));
    assert_eq!(cost, 2);
}
