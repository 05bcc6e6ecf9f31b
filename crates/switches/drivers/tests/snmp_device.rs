//! The manager against the agent, over a link that loses, repeats and garbles: what is written is what is read.

use std::{
    collections::VecDeque,
    io,
    sync::{Arc, Mutex},
    time::Duration,
};

use drivers::snmp::{Device, SaveMethod, Settings};
use fabric::{Admin, FlowControlMode, Mac, Model, VlanId, rng::Rng};
use proptest::prelude::*;
use snmp::{
    Credentials, Link, Patience, Session,
    wire::{AuthProtocol, Keys, PrivacyProtocol},
};
use switch_model::{
    PortLearning, SwitchConfig,
    driver::{Driver, Fault},
    mark::Mark,
};
use switchd::agent::{Access, Config, Engine, Facts, Limits, PortFacts, PortKind, Rights, Still, Switch, User};

const PORTS: usize = 12;
const ENGINE: &[u8] = &[0x80, 0, 0x1f, 0x88, 4, b's', b'1'];

/// How a link treats datagrams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Weather {
    Fair,
    /// One datagram in eight is lost, one in eight comes twice.
    Wet,
    /// One in sixteen is garbled as well, so that checksums do not tell: only signatures do.
    Foul,
}

type Agent = Arc<Mutex<Engine<Switch<Still>>>>;

struct Wire {
    agent: Agent,
    weather: Weather,
    rng: Rng,
    back: VecDeque<Vec<u8>>,
    now_ms: u64,
    sent: Arc<Mutex<usize>>,
}

impl Wire {
    fn pass(&mut self, datagram: &[u8]) -> Vec<Vec<u8>> {
        if self.weather == Weather::Fair {
            return vec![datagram.to_vec()];
        }
        match self.rng.below(16) {
            0 | 1 => Vec::new(),
            2 | 3 => vec![datagram.to_vec(), datagram.to_vec()],
            4 if self.weather == Weather::Foul => {
                let mut garbled = datagram.to_vec();
                let at = self.rng.below(garbled.len());
                garbled[at] ^= 1 << self.rng.below(8);
                vec![garbled]
            }
            _ => vec![datagram.to_vec()],
        }
    }
}

impl Link for Wire {
    fn send(&mut self, datagram: &[u8]) -> io::Result<()> {
        self.now_ms += 1;
        *self.sent.lock().expect("no panic before") += 1;
        for datagram in self.pass(datagram) {
            let reply = self.agent.lock().expect("no panic before").handle_datagram(self.now_ms, &datagram);
            if let Some(reply) = reply {
                let passed = self.pass(&reply.datagram);
                self.back.extend(passed);
            }
        }
        Ok(())
    }

    fn receive(&mut self, wait: Duration) -> io::Result<Option<Vec<u8>>> {
        let datagram = self.back.pop_front();
        if datagram.is_none() {
            self.now_ms += wait.as_millis() as u64;
        }
        Ok(datagram)
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

fn device(agent: &Agent, credentials: Credentials, weather: Weather, seed: u64) -> (Device<Wire>, Arc<Mutex<usize>>) {
    let sent = Arc::new(Mutex::new(0));
    let wire = Wire {
        agent: Arc::clone(agent),
        weather,
        rng: Rng::new(seed),
        back: VecDeque::new(),
        now_ms: 1000 + seed % 100,
        sent: Arc::clone(&sent),
    };
    // In foul weather one attempt in three fails, and twelve in a row do once in half a million exchanges.
    let patience = Patience { timeout: Duration::from_millis(10), attempts: 24 };
    let session = Session::new(wire, credentials, patience, seed);
    let names: Vec<String> = (1..PORTS).map(|number| format!("p{number}")).collect();
    let settings = Settings { mark_vlan: VlanId::new(4093).expect("in range"), save: SaveMethod::Unknown };
    (Device::connect(session, &names, settings).expect("a switch with these ports"), sent)
}

fn mark(nonce: u32) -> Mark {
    Mark::new(1, nonce, 7)
}

/// Any state of a switch that plans ask for.
fn config(rng: &mut Rng) -> SwitchConfig {
    let mut config = SwitchConfig::blank((1..PORTS).map(|number| format!("p{number}")));
    // As the switch says it over SNMP, which does not tell what ports block or limit, nor LLDP.
    for port in &mut config.ports {
        (port.learning, port.mtu_bytes) = (PortLearning::Always, Some(1500));
        (port.blocked, port.storm_limits) = (None, None);
    }
    let vlans: Vec<VlanId> =
        (0..rng.below(6)).map(|_| VlanId::new(2 + rng.below(40) as u16).expect("in range")).collect();
    config.vlans = vlans.iter().copied().collect();
    for port in &mut config.ports {
        port.admin = if rng.below(2) == 0 { Admin::Up } else { Admin::Down };
        port.flow_control = if rng.below(2) == 0 { FlowControlMode::Pause } else { FlowControlMode::Off };
        for vlan in config.vlans.iter() {
            match rng.below(3) {
                0 => {
                    port.tagged.insert(vlan);
                }
                1 => {
                    port.untagged.insert(vlan);
                }
                _ => {}
            }
        }
        let members: Vec<VlanId> = port.members().iter().collect();
        port.pvid =
            if members.is_empty() || rng.below(3) == 0 { None } else { Some(members[rng.below(members.len())]) };
    }
    for _ in 0..rng.below(30) {
        if let Some(&vlan) = vlans.get(rng.below(vlans.len().max(1))) {
            let mac = Mac::new([2, 0, 0, 0, 0, rng.below(20) as u8]);
            config.entries.insert((vlan, mac), switch_model::Slot::new(rng.below(PORTS - 1)));
        }
    }
    config
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn what_is_written_is_read(seed in any::<u64>(), foul in any::<bool>(), v3 in any::<bool>()) {
        let mut rng = Rng::new(seed);
        let agent = agent();
        let weather = match (foul, v3) {
            (false, _) => Weather::Fair,
            (true, false) => Weather::Wet,
            (true, true) => Weather::Foul,
        };
        let credentials = if v3 { user() } else { Credentials::Community("private".to_owned()) };
        let (mut device, _) = device(&agent, credentials, weather, seed);
        for round in 0..3 {
            let reading = device.read().expect("a reading");
            let wanted = config(&mut rng);
            device.write(&reading.config, &wanted, mark(round), reading.fence, None).expect("a write");
            let found = device.read().expect("a reading");
            prop_assert_eq!(&found.config, &wanted);
            prop_assert_eq!(found.mark, Some(mark(round)));
        }
    }
}

#[test]
fn a_second_writer_is_noticed_and_nothing_is_written() {
    let agent = agent();
    let (mut one, _) = device(&agent, user(), Weather::Fair, 1);
    let (mut two, _) = device(&agent, Credentials::Community("private".to_owned()), Weather::Fair, 2);
    let (first, second) = (one.read().expect("a reading"), two.read().expect("a reading"));
    let mut rng = Rng::new(5);
    let (a, b) = (config(&mut rng), config(&mut rng));
    one.write(&first.config, &a, mark(1), first.fence, None).expect("the first writes");
    assert_eq!(two.write(&second.config, &b, mark(2), second.fence, None), Err(Fault::Fenced));
    assert_eq!(one.read().expect("a reading").config, a);
}

#[test]
fn a_restart_is_noticed_and_nothing_is_written() {
    let agent = agent();
    let (mut device, _) = device(&agent, user(), Weather::Fair, 1);
    let reading = device.read().expect("a reading");
    use switchd::agent::Responder;
    agent.lock().expect("no panic before").responder().restart(5000);
    let wanted = config(&mut Rng::new(3));
    assert_eq!(device.write(&reading.config, &wanted, mark(1), reading.fence, None), Err(Fault::Fenced));
}

#[test]
fn what_was_saved_survives_a_restart() {
    let agent = agent();
    let (mut device, _) = device(&agent, user(), Weather::Fair, 1);
    let reading = device.read().expect("a reading");
    let wanted = config(&mut Rng::new(4));
    let fence = device.write(&reading.config, &wanted, mark(1), reading.fence, None).expect("a write");
    device.save(fence).expect("saved");
    use switchd::agent::Responder;
    agent.lock().expect("no panic before").responder().restart(9000);
    assert_eq!(device.read().expect("a reading").config, wanted);
}

#[test]
fn a_wrong_password_and_a_wrong_word_are_told_apart_from_silence() {
    let agent = agent();
    let try_it = |credentials| {
        let wire = Wire {
            agent: Arc::clone(&agent),
            weather: Weather::Fair,
            rng: Rng::new(1),
            back: VecDeque::new(),
            now_ms: 1000,
            sent: Arc::default(),
        };
        let patience = Patience { timeout: Duration::from_millis(1), attempts: 2 };
        let settings = Settings { mark_vlan: VlanId::MIN, save: SaveMethod::Unknown };
        Device::connect(Session::new(wire, credentials, patience, 9), &[], settings).map(drop)
    };
    let Credentials::User { name, protocol, privacy, .. } = user() else { unreachable!("a user") };
    let wrong = Credentials::User { name, protocol, auth_password: "something else".to_owned(), privacy };
    assert!(matches!(try_it(wrong), Err(Fault::Refused(text)) if text.contains("password for signing")));
    assert_eq!(try_it(Credentials::Community("public".to_owned())), Err(Fault::Silent));
}

/// A link that fails: of the datagrams after so many, every third comes through garbled and the others are lost.
struct Failing {
    wire: Wire,
    sound: usize,
    failed: usize,
}

impl Link for Failing {
    fn send(&mut self, datagram: &[u8]) -> io::Result<()> {
        if self.sound > 0 {
            self.sound -= 1;
            return self.wire.send(datagram);
        }
        self.failed += 1;
        if self.failed % 3 == 0 {
            let mut garbled = datagram.to_vec();
            *garbled.last_mut().expect("not empty") ^= 1;
            return self.wire.send(&garbled);
        }
        Ok(())
    }

    fn receive(&mut self, wait: Duration) -> io::Result<Option<Vec<u8>>> {
        self.wire.receive(wait)
    }
}

#[test]
fn a_link_that_garbles_is_not_taken_for_a_wrong_password() {
    let sent = Arc::<Mutex<usize>>::default();
    let patience = Patience { timeout: Duration::from_millis(1), attempts: 6 };
    let names: Vec<String> = (1..PORTS).map(|number| format!("p{number}")).collect();
    let settings = Settings { mark_vlan: VlanId::new(4093).expect("in range"), save: SaveMethod::Unknown };
    let connect = |sound| {
        let wire = Wire {
            agent: agent(),
            weather: Weather::Fair,
            rng: Rng::new(1),
            back: VecDeque::new(),
            now_ms: 1000,
            sent: Arc::clone(&sent),
        };
        let session = Session::new(Failing { wire, sound, failed: 0 }, user(), patience, 9);
        Device::connect(session, &names, settings)
    };
    connect(usize::MAX).expect("a sound link");
    let needed = *sent.lock().expect("no panic before");
    let mut device = connect(needed).expect("sound so far");
    assert_eq!(device.read().map(drop), Err(Fault::Silent));
    assert_eq!(*sent.lock().expect("no panic before"), 2 * needed + 2, "two of six came to the agent");
}
