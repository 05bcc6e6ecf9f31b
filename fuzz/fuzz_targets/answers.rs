//! Any bytes as what is wrong with an agent's answers: the manager ends, and what it read is of the switch that it asked.
//!
//! An agent of ours answers; the bytes say which answers are lost, replaced or changed, and how. When they have run out it
//! is honest.
#![no_main]

use std::{collections::VecDeque, io, time::Duration};

use drivers::snmp::{Device, PulseColumns, SaveMethod, Settings};
use fabric::{Mac, Model, VlanId};
use rollout::discover::cabling;
use snmp::{
    Credentials, Link, Oid, Patience, Session, Value,
    wire::{Message, Pdu},
};
use switch_model::{PortLearning, Slot, SwitchConfig, driver::Driver as _, mark::Mark, observe::flow};
use switchd::agent::{Access, Config, Engine, Facts, Limits, PortFacts, PortKind, Rights, Still, Switch};

const PORTS: usize = 3;
/// Most questions that a switch of three ports is worth.
const QUESTIONS_MAX: usize = 20_000;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let wire = Wire { agent: agent(), bytes: data, back: VecDeque::new(), now_ms: 1, asked: 0 };
    let patience = Patience { timeout: Duration::from_millis(10), attempts: 2 };
    let session = Session::new(wire, Credentials::Community("private".to_owned()), patience, 1);
    let names: Vec<String> = (1..=PORTS).map(|number| format!("p{number}")).collect();
    let mark_vlan = VlanId::new(4093).expect("in range");
    let Ok(mut device) = Device::connect(session, &names, Settings { mark_vlan, save: SaveMethod::ByHand }) else {
        return;
    };
    let mut columns = PulseColumns::default();
    let before = device.pulse(&mut columns);
    if let Ok(reading) = device.read() {
        let config = &reading.config;
        assert!(config.ports.iter().map(|port| &port.name).eq(&names));
        assert!(config.entries.values().all(|slot| slot.index() < PORTS));
        let mark = Mark::new(1, 2, 3);
        let _ = device.write(config, &goal(&names), mark, reading.fence, None);
    }
    if let Ok(unmanaged) = device.unmanaged(&[VlanId::MIN].into_iter().collect()) {
        assert!(unmanaged.iter().all(|name| !names.contains(name)));
    }
    if let Ok(station) = device.station("s1") {
        let _ = cabling(&[station.clone(), station]);
    }
    if let (Ok(before), Ok(after)) = (before, device.pulse(&mut columns)) {
        let _ = flow(&before.counts, &after.counts);
    }
});

struct Wire<'a> {
    agent: Engine<Switch<Still>>,
    bytes: &'a [u8],
    back: VecDeque<Vec<u8>>,
    now_ms: u64,
    asked: usize,
}

impl<'a> Wire<'a> {
    fn octet(&mut self) -> u8 {
        let Some((first, rest)) = self.bytes.split_first() else { return 0 };
        self.bytes = rest;
        *first
    }

    fn octets(&mut self) -> &'a [u8] {
        let len = usize::from(self.octet()).min(self.bytes.len());
        let (taken, rest) = self.bytes.split_at(len);
        self.bytes = rest;
        taken
    }

    fn number(&mut self) -> u32 {
        (0..4).fold(0, |number, _| number << 8 | u32::from(self.octet()))
    }

    fn value(&mut self) -> Value {
        match self.octet() % 10 {
            0 => Value::Integer(self.number() as i32),
            1 => Value::Octets(self.octets().to_vec()),
            // Lists of many ports.
            2 => Value::Octets(vec![self.octet(); usize::from(self.octet()) * 64]),
            3 => Value::Gauge32(self.number()),
            4 => Value::Counter64(u64::from(self.number()) << 32 | u64::from(self.number())),
            5 => Value::Oid(self.oid(&[1, 3])),
            6 => Value::NoSuchInstance,
            7 => Value::EndOfMibView,
            8 => Value::TimeTicks(self.number()),
            _ => Value::Null,
        }
    }

    /// Another identifier that begins like this one.
    fn oid(&mut self, like: &[u32]) -> Oid {
        let kept = like.len().saturating_sub(usize::from(self.octet() % 4)).max(2);
        let mut parts = like[..kept].to_vec();
        for _ in 0..self.octet() % 8 {
            parts.push(if self.octet() < 0xf0 { u32::from(self.octet()) } else { self.number() });
        }
        Oid::new(&parts)
    }

    fn change(&mut self, pdu: &mut Pdu) {
        let at = usize::from(self.octet());
        match self.octet() % 6 {
            0 => pdu.bindings.truncate(at),
            1 => (pdu.status, pdu.index) = (self.octet() as i32, self.octet() as i32 - 1),
            2 => pdu.request_id = self.number() as i32,
            what => {
                let Some(place) = (!pdu.bindings.is_empty()).then(|| at % pdu.bindings.len()) else { return };
                if what != 3 {
                    pdu.bindings[place].1 = self.value();
                }
                if what != 4 {
                    let like = pdu.bindings[place].0.parts().to_vec();
                    pdu.bindings[place].0 = self.oid(&like);
                }
            }
        }
    }
}

impl Link for Wire<'_> {
    fn send(&mut self, datagram: &[u8]) -> io::Result<()> {
        self.asked += 1;
        assert!(self.asked < QUESTIONS_MAX, "the manager asks for ever");
        self.now_ms += 1;
        let Some(reply) = self.agent.handle_datagram(self.now_ms, datagram) else { return Ok(()) };
        let mut answer = reply.datagram;
        match self.octet() {
            // Most are in order, so that what comes later is reached.
            0..0xa0 => {}
            0xa0..0xa8 => return Ok(()),
            0xa8..0xb0 => answer = self.octets().to_vec(),
            0xb0..0xb8 => {
                let at = usize::from(self.octet()) % answer.len();
                answer[at] ^= self.octet();
            }
            _ => {
                if let Ok(Message::Community(mut message)) = Message::decode(&answer) {
                    self.change(&mut message.pdu);
                    answer = Message::Community(message).encode();
                }
            }
        }
        self.back.push_back(answer);
        Ok(())
    }

    fn receive(&mut self, wait: Duration) -> io::Result<Option<Vec<u8>>> {
        let answer = self.back.pop_front();
        if answer.is_none() {
            self.now_ms += wait.as_millis() as u64;
        }
        Ok(answer)
    }
}

fn agent() -> Engine<Switch<Still>> {
    // One port more than the manager is told of.
    let port = |number: u32| PortFacts {
        name: format!("p{number}"),
        if_index: 100 + number,
        mac: Mac::local(number),
        kind: PortKind::Own,
    };
    let facts = Facts {
        description: String::new(),
        address: Mac::local(0xaa),
        ports: (1..=PORTS as u32 + 1).map(port).collect(),
        limits: Limits::of(&Model::generic()),
    };
    let access = Access { communities: vec![(b"private".to_vec(), Rights::Write)], users: Vec::new() };
    Engine::new(Switch::new(facts, Config::factory(PORTS + 1), Still, b"engine", 1, 0), access, b"engine", 0)
}

fn goal(names: &[String]) -> SwitchConfig {
    let mut config = SwitchConfig::blank(names.iter().cloned());
    config.vlans = (2..4).filter_map(|id| VlanId::new(id).ok()).collect();
    for port in &mut config.ports {
        port.learning = PortLearning::Always;
        port.untagged = config.vlans.clone();
        port.pvid = VlanId::new(2).ok();
    }
    config.entries.insert((VlanId::new(3).expect("in range"), Mac::local(1)), Slot::new(0));
    config
}
