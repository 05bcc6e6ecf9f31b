//! The manager before agents that are broken, or mean harm: it neither crashes nor hangs, and what it believes is true.
//!
//! Agents that spoil messages (garbage, cuts, other requests' answers, answers of long ago) can keep the truth back, and must
//! not pass off anything else for it. Agents that lie about values can be believed, but come to an end. Virtual time: nothing
//! waits. `HOSTILE_SEEDS` says how many worlds there are.

use std::{
    collections::VecDeque,
    io,
    sync::{Arc, Mutex},
    time::Duration,
};

use drivers::snmp::{Device, SaveMethod, Settings, read_station};
use enrol::{Ledger, ProbeCallbacks, ProbeRequest, Step, enrol};
use fabric::{Admin, Mac, Model, VlanId, rng::Rng};
use rollout::discover::cabling;
use snmp::{
    Credentials, Link, Oid, Patience, Session, Value,
    wire::{AuthProtocol, Keys, Message, Pdu, PrivacyProtocol},
};
use switch_model::{
    PortLearning, SwitchConfig,
    driver::{Driver, Fault},
    mark::Mark,
};
use switchd::agent::{Access, Config, Engine, Facts, Limits, PortFacts, PortKind, Rights, Still, Switch, User};

const PORTS: usize = 4;
const ENGINE: &[u8] = &[0x80, 0, 0x1f, 0x88, 4, b's', b'1'];
/// Most questions that a manager may need of a switch of four ports, be the agent what it will.
const QUESTIONS_MAX: usize = 40_000;

/// What is wrong with an agent, or with the way to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Malice {
    /// Octets drawn at random.
    Garbage,
    /// Messages that end too early.
    Truncated,
    /// Messages with as many octets behind them as a datagram holds.
    Oversized,
    /// Answers to another request.
    WrongRequest,
    /// Answers come after ten seconds.
    Late,
    /// The answers of long ago come first.
    Replayed,
    /// A bit is another, anywhere.
    Flipped,
    /// A walk that goes backwards, or stays where it is.
    Backwards,
    /// A walk that never ends.
    Endless,
    /// Values of other kinds.
    WrongTypes,
    /// Lists of half a million ports.
    HugeLists,
    /// Errors at random, some of which do not exist.
    Errors,
}

/// Those that cannot make anything up, if messages are signed.
const SPOILERS: [Malice; 7] = [
    Malice::Garbage,
    Malice::Truncated,
    Malice::Oversized,
    Malice::WrongRequest,
    Malice::Late,
    Malice::Replayed,
    Malice::Flipped,
];
const LIARS: [Malice; 5] = [Malice::Backwards, Malice::Endless, Malice::WrongTypes, Malice::HugeLists, Malice::Errors];

type Agent = Arc<Mutex<Engine<Switch<Still>>>>;

struct Wire {
    agent: Agent,
    malice: Malice,
    /// One message in so many is spoiled.
    rarity: usize,
    rng: Rng,
    back: VecDeque<(u64, Vec<u8>)>,
    kept: Vec<Vec<u8>>,
    now_ms: u64,
    sent: Arc<Mutex<usize>>,
}

impl Wire {
    fn spoil(&mut self, reply: Vec<u8>) {
        let now = self.now_ms;
        if self.kept.len() < 64 {
            self.kept.push(reply.clone());
        }
        if self.rng.below(self.rarity) != 0 {
            return self.back.push_back((now, reply));
        }
        let spoiled = match self.malice {
            Malice::Garbage => (0..self.rng.below(300)).map(|_| self.rng.below(256) as u8).collect(),
            Malice::Truncated => reply[..self.rng.below(reply.len())].to_vec(),
            Malice::Oversized => {
                let mut long = reply;
                long.resize(65_507, 0x30);
                long
            }
            Malice::WrongRequest => {
                let other = self.rng.below(7) as i32 + 1;
                rewrite(&reply, |pdu, _| pdu.request_id = pdu.request_id.wrapping_sub(other), &mut self.rng)
            }
            Malice::Late => return self.back.push_back((now + 10_000, reply)),
            Malice::Replayed => {
                for _ in 0..self.rng.below(5) {
                    let old = self.kept[self.rng.below(self.kept.len())].clone();
                    self.back.push_back((now, old));
                }
                reply
            }
            Malice::Flipped => {
                let mut flipped = reply;
                let at = self.rng.below(flipped.len());
                flipped[at] ^= 1 << self.rng.below(8);
                flipped
            }
            Malice::Backwards => rewrite(
                &reply,
                |pdu, rng| {
                    for (oid, _) in &mut pdu.bindings {
                        if rng.below(2) == 0 {
                            *oid = Oid::new(&oid.parts()[..oid.parts().len().saturating_sub(rng.below(3) + 1).max(2)]);
                        }
                    }
                },
                &mut self.rng,
            ),
            Malice::Endless => rewrite(
                &reply,
                |pdu, rng| {
                    if let Some((oid, value)) = pdu.bindings.last().cloned() {
                        let mut parts = oid.parts().to_vec();
                        let last = parts.pop().unwrap_or(0);
                        let next = |step: u32| {
                            let mut parts = parts.clone();
                            parts.push(last.saturating_add(step));
                            (Oid::new(&parts), value.clone())
                        };
                        pdu.bindings = (0..1 + rng.below(3) as u32).map(next).collect();
                    }
                },
                &mut self.rng,
            ),
            Malice::WrongTypes => rewrite(
                &reply,
                |pdu, rng| {
                    for (_, value) in &mut pdu.bindings {
                        *value = match rng.below(8) {
                            0 => Value::Integer(i32::MIN),
                            1 => Value::Octets(vec![0xff; rng.below(70)]),
                            2 => Value::Null,
                            3 => Value::Counter64(u64::MAX),
                            4 => Value::IpAddress([255; 4]),
                            5 => Value::Oid(Oid::new(&[1, 3])),
                            6 => Value::Gauge32(u32::MAX),
                            _ => Value::NoSuchInstance,
                        };
                    }
                },
                &mut self.rng,
            ),
            Malice::HugeLists => rewrite(
                &reply,
                |pdu, rng| {
                    for (_, value) in &mut pdu.bindings {
                        if matches!(value, Value::Octets(_)) {
                            *value = Value::Octets(vec![0xff; [1000, 8191, 8192, 60_000][rng.below(4)]]);
                        }
                    }
                    pdu.bindings.truncate(1);
                },
                &mut self.rng,
            ),
            Malice::Errors => rewrite(
                &reply,
                |pdu, rng| {
                    pdu.status = [1, 2, 3, 5, 12, 18, 19, 255, -1, i32::MAX][rng.below(10)];
                    pdu.index = [0, 1, -1, 1000, i32::MAX, i32::MIN][rng.below(6)];
                },
                &mut self.rng,
            ),
        };
        self.back.push_back((now, spoiled));
    }
}

/// The message with another PDU in it, if it is not signed: nobody can change one that is.
fn rewrite(reply: &[u8], change: impl FnOnce(&mut Pdu, &mut Rng), rng: &mut Rng) -> Vec<u8> {
    match Message::decode(reply) {
        Ok(Message::Community(mut message)) => {
            change(&mut message.pdu, rng);
            Message::Community(message).encode()
        }
        _ => reply.to_vec(),
    }
}

impl Link for Wire {
    fn send(&mut self, datagram: &[u8]) -> io::Result<()> {
        let mut sent = self.sent.lock().expect("no panic before");
        *sent += 1;
        assert!(*sent < QUESTIONS_MAX, "{:?}: the manager asks for ever", self.malice);
        drop(sent);
        self.now_ms += 1;
        let reply = self.agent.lock().expect("no panic before").handle_datagram(self.now_ms, datagram);
        if let Some(reply) = reply {
            self.spoil(reply.datagram);
        }
        Ok(())
    }

    fn receive(&mut self, wait: Duration) -> io::Result<Option<Vec<u8>>> {
        let until = self.now_ms + wait.as_millis() as u64;
        match self.back.front() {
            Some((at, _)) if *at <= until => {
                self.now_ms = self.now_ms.max(*at);
                Ok(self.back.pop_front().map(|(_, datagram)| datagram))
            }
            _ => {
                self.now_ms = until;
                Ok(None)
            }
        }
    }
}

fn agent() -> Agent {
    let ports = (1..=PORTS as u32).map(|number| PortFacts {
        name: format!("p{number}"),
        if_index: 100 + number,
        mac: Mac::new([2, 0, 0, 0, 1, number as u8]),
        kind: PortKind::Own,
    });
    let facts = Facts {
        description: "a switch".to_owned(),
        address: Mac::new([2, 0, 0, 0, 1, 0]),
        ports: ports.collect(),
        limits: Limits::of(&Model::generic()),
    };
    let switch = Switch::new(facts, Config::factory(PORTS), Still, ENGINE, 1, 0);
    let keys =
        Keys::new(AuthProtocol::Sha256, "authentication", Some((PrivacyProtocol::Aes128, "privacy-too")), ENGINE);
    let access = Access {
        communities: vec![(b"private".to_vec(), Rights::Write)],
        users: vec![User { name: b"admin".to_vec(), keys, rights: Rights::Write }],
    };
    Arc::new(Mutex::new(Engine::new(switch, access, ENGINE, 1)))
}

fn user() -> Credentials {
    Credentials::User {
        name: "admin".to_owned(),
        protocol: AuthProtocol::Sha256,
        auth_password: "authentication".to_owned(),
        privacy: Some((PrivacyProtocol::Aes128, "privacy-too".to_owned())),
    }
}

fn session(agent: &Agent, credentials: Credentials, malice: Malice, rarity: usize, seed: u64) -> Session<Wire> {
    let wire = Wire {
        agent: Arc::clone(agent),
        malice,
        rarity,
        rng: Rng::new(seed),
        back: VecDeque::new(),
        kept: Vec::new(),
        now_ms: 1000 + seed % 100,
        sent: Arc::default(),
    };
    Session::new(wire, credentials, Patience { timeout: Duration::from_millis(1500), attempts: 4 }, seed)
}

fn connect(session: Session<Wire>) -> Result<Device<Wire>, Fault> {
    let names: Vec<String> = (1..=PORTS).map(|number| format!("p{number}")).collect();
    let settings = Settings { mark_vlan: VlanId::new(4093).expect("in range"), save: SaveMethod::Unknown };
    Device::connect(session, &names, settings)
}

fn truth(agent: &Agent) -> SwitchConfig {
    let session = session(agent, user(), Malice::Errors, usize::MAX, 77);
    connect(session).and_then(|mut device| device.read()).expect("an honest agent").config
}

fn goal(rng: &mut Rng) -> SwitchConfig {
    let mut config = SwitchConfig::blank((1..=PORTS).map(|number| format!("p{number}")));
    // As the switch says it over SNMP, which does not tell what ports block or limit, nor LLDP.
    for port in &mut config.ports {
        (port.learning, port.mtu_bytes) = (PortLearning::Always, Some(1500));
        (port.blocked, port.storm_limits) = (None, None);
    }
    let vlans: Vec<VlanId> = (2..6).filter_map(|id| VlanId::new(id).ok()).collect();
    config.vlans = vlans.iter().copied().collect();
    for (at, port) in config.ports.iter_mut().enumerate() {
        port.admin = if rng.below(2) == 0 { Admin::Up } else { Admin::Down };
        port.untagged.extend(vlans.iter().copied());
        port.pvid = Some(vlans[rng.below(vlans.len())]);
        config.entries.insert((vlans[rng.below(vlans.len())], Mac::local(at as u32 + 1)), switch_model::Slot::new(at));
    }
    config
}

fn seeds() -> u64 {
    std::env::var("HOSTILE_SEEDS").ok().and_then(|text| text.parse().ok()).unwrap_or(25)
}

#[test]
fn what_comes_spoiled_is_not_believed() {
    let (mut read, mut written) = (0, 0);
    for malice in SPOILERS {
        for seed in 0..seeds() {
            let agent = agent();
            let rarity = [1, 2, 5, 20][seed as usize % 4];
            println!("{malice:?}, one in {rarity}, seed {seed}");
            let Ok(mut device) = connect(session(&agent, user(), malice, rarity, seed)) else { continue };
            let Ok(reading) = device.read() else { continue };
            assert_eq!(reading.config, truth(&agent), "{malice:?}, seed {seed}");
            read += 1;
            let wanted = goal(&mut Rng::new(seed));
            let mark = Mark::new(1, 2, 3);
            if device.write(&reading.config, &wanted, mark, reading.fence, None).is_ok() {
                assert_eq!(truth(&agent), wanted, "{malice:?}, seed {seed}");
                written += 1;
            }
        }
    }
    // A test in which nothing ever gets through would prove nothing.
    assert!(read > 20 && written > 10, "{read} readings, {written} writings");
}

#[test]
fn lies_come_to_an_end() {
    let word = || Credentials::Community("private".to_owned());
    for malice in LIARS.into_iter().chain(SPOILERS) {
        for seed in 0..seeds() {
            let agent = agent();
            let rarity = [1, 3, 10, 50][seed as usize % 4];
            println!("{malice:?}, one in {rarity}, seed {seed}");
            if let Ok(mut device) = connect(session(&agent, word(), malice, rarity, seed)) {
                if let Ok(reading) = device.read() {
                    assert_eq!(reading.config.ports.len(), PORTS);
                    let mark = Mark::new(1, 2, 3);
                    let _ = device.write(&reading.config, &goal(&mut Rng::new(seed)), mark, reading.fence, None);
                }
            }
            if let Ok(station) = read_station(&mut session(&agent, word(), malice, rarity, seed), None, &[]) {
                let found = cabling(&[station.clone(), station]);
                assert!(found.links.len() <= 2 * PORTS);
            }
        }
    }
}

struct RecordingCallbacks;

impl ProbeCallbacks for RecordingCallbacks {
    fn keep(&mut self, _: &Ledger) -> Result<(), String> {
        Ok(())
    }

    fn stopped(&mut self) -> bool {
        false
    }

    fn tell(&mut self, _: Step) {}
}

/// Signed messages cannot be altered: what a probe finds in spite of all is true, and nothing of it is left. Whatever is
/// not signed may lie, and then a probe at least comes to an end.
#[test]
fn probes_come_to_an_end_and_are_not_misled() {
    let request =
        ProbeRequest { ports: vec!["p1".to_owned(), "p2".to_owned()], vlans_max: 8, entries_max: 40, nonce: 0xbad };
    let mut found = 0;
    for malice in LIARS.into_iter().chain(SPOILERS) {
        for seed in 0..seeds() {
            let rarity = [2, 5, 20, 50][seed as usize % 4];
            println!("{malice:?}, one in {rarity}, seed {seed}");
            let signed = agent();
            if let Ok(enrolment) =
                enrol(session(&signed, user(), malice, rarity, seed), &request, &mut RecordingCallbacks)
            {
                if let Ok(capabilities) = &enrolment.found {
                    assert!(capabilities.hybrid_ports.able && capabilities.independent_vlan_learning.able);
                    assert_eq!((capabilities.vlans.held, capabilities.statics.held), (8, 40));
                    found += 1;
                }
                if enrolment.left.is_empty() {
                    let mut config = signed.lock().expect("no panic before").responder().config().clone();
                    config.vlans.values_mut().for_each(|vlan| vlan.created_cs = 0);
                    assert_eq!(config, Config::factory(PORTS), "{malice:?}, seed {seed}");
                }
            }
            let word = Credentials::Community("private".to_owned());
            let _ = enrol(session(&agent(), word, malice, rarity, seed), &request, &mut RecordingCallbacks);
        }
    }
    assert!(found > 50, "a test in which nothing ever gets through would prove nothing: {found}");
}
