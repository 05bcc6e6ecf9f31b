//! Messages of version 3 that somebody has kept and sends again: outside the window of 150 seconds (RFC 3414, 2.2.3), after
//! a restart, or as the answer to another request they are worth nothing; inside it the lock of RFC 3418 stands before
//! what is written.

use std::{
    collections::VecDeque,
    io,
    sync::{Arc, Mutex},
    time::Duration,
};

use bridge_mib::objects::system;
use fabric::{Mac, Model};
use snmp::{
    Credentials, Link, Oid, Patience, Session, SessionError, Value, engine as stats,
    wire::{
        AuthProtocol, Keys, Message, Pdu, PduKind, PrivacyProtocol, Scoped, ScopedData, SecurityLevel, UsmHeader,
        V3Message,
    },
};
use switchd::agent::{
    Access, Config, Engine, Facts, Limits, PortFacts, PortKind, Responder as _, Rights, Still, Switch, User,
};

const ENGINE: &[u8] = &[0x80, 0, 0x1f, 0x88, 4, b'r'];
const WINDOW_S: u64 = 150;

type Agent = Arc<Mutex<Engine<Switch<Still>>>>;

/// What somebody on the way does.
#[derive(Clone)]
enum Tap {
    /// Listens.
    Listen,
    /// Answers signed requests with what was heard before, in its order, instead of what the agent says.
    Replay(VecDeque<Vec<u8>>),
    /// Says all that was heard before, before every answer.
    Chatter(Vec<Vec<u8>>),
    /// Says before every answer to a signed request, with the request's number, that nobody knows the engine: under this
    /// name, at this time.
    Report(Vec<u8>, i32),
}

struct Wire {
    agent: Agent,
    now_ms: Arc<Mutex<u64>>,
    tap: Arc<Mutex<Tap>>,
    heard: Arc<Mutex<Heard>>,
    back: VecDeque<Vec<u8>>,
}

/// Signed messages that went by.
#[derive(Clone, Default)]
struct Heard {
    requests: Vec<Vec<u8>>,
    answers: Vec<Vec<u8>>,
}

impl Link for Wire {
    fn send(&mut self, datagram: &[u8]) -> io::Result<()> {
        let now_ms = *self.now_ms.lock().expect("no panic before");
        let reply = self.agent.lock().expect("no panic before").handle_datagram(now_ms, datagram);
        let reply = reply.map(|reply| reply.datagram);
        let signed = is_signed(datagram);
        if signed {
            let mut heard = self.heard.lock().expect("no panic before");
            heard.requests.push(datagram.to_vec());
            heard.answers.extend(reply.clone());
        }
        match &mut *self.tap.lock().expect("no panic before") {
            Tap::Listen => self.back.extend(reply),
            Tap::Replay(kept) if signed => self.back.extend(kept.pop_front()),
            Tap::Replay(_) => self.back.extend(reply),
            Tap::Chatter(kept) => {
                self.back.extend(kept.iter().cloned());
                self.back.extend(reply);
            }
            Tap::Report(engine, time_s) => {
                self.back.extend(signed.then(|| unknown_engine(datagram, engine, *time_s)));
                self.back.extend(reply);
            }
        }
        Ok(())
    }

    fn receive(&mut self, wait: Duration) -> io::Result<Option<Vec<u8>>> {
        let datagram = self.back.pop_front();
        if datagram.is_none() {
            *self.now_ms.lock().expect("no panic before") += wait.as_millis() as u64;
        }
        Ok(datagram)
    }
}

fn is_signed(datagram: &[u8]) -> bool {
    matches!(Message::decode(datagram), Ok(Message::V3(message)) if message.level != SecurityLevel::NoAuthNoPriv)
}

/// What an engine of this name would say to a request that is for another. Anybody can: it is not signed.
fn unknown_engine(request: &[u8], engine: &[u8], time_s: i32) -> Vec<u8> {
    let Ok(Message::V3(request)) = Message::decode(request) else { panic!("a request of version 3") };
    let bindings = vec![(stats::UNKNOWN_ENGINE_IDS.instance(), Value::Counter32(1))];
    let pdu = Pdu { kind: PduKind::Report, request_id: request.id, status: 0, index: 0, bindings };
    let usm = UsmHeader { engine_id: engine.to_vec(), boots: 1, time_s, ..UsmHeader::default() };
    let data = ScopedData::Plain(Scoped { engine_id: engine.to_vec(), context: Vec::new(), pdu });
    let level = SecurityLevel::NoAuthNoPriv;
    Message::V3(V3Message { id: request.id, max_size: 1500, level, reportable: false, usm, data }).encode()
}

struct Site {
    agent: Agent,
    now_ms: Arc<Mutex<u64>>,
    /// Of the session that was begun last.
    tap: Arc<Mutex<Tap>>,
    heard: Arc<Mutex<Heard>>,
}

impl Site {
    fn new() -> Self {
        Self::of(ENGINE)
    }

    fn of(name: &[u8]) -> Self {
        let port = PortFacts { name: "p1".to_owned(), if_index: 1, mac: Mac::local(1), kind: PortKind::Own };
        let facts = Facts {
            description: "a switch".to_owned(),
            address: Mac::local(9),
            ports: vec![port],
            limits: Limits::of(&Model::generic()),
        };
        let switch = Switch::new(facts, Config::factory(1), Still, name, 1, 0);
        let keys =
            Keys::new(AuthProtocol::Sha256, "authentication", Some((PrivacyProtocol::Aes128, "privacy-too")), name);
        let user = User { name: b"admin".to_vec(), keys, rights: Rights::Write };
        let access = Access { communities: Vec::new(), users: vec![user] };
        let engine = Engine::new(switch, access, name, 1);
        Self {
            agent: Arc::new(Mutex::new(engine)),
            now_ms: Arc::new(Mutex::new(1_000_000)),
            tap: Arc::new(Mutex::new(Tap::Listen)),
            heard: Arc::default(),
        }
    }

    /// Two sessions of one salt number their requests alike.
    fn session(&self, tap: Tap, salt: u64) -> Session<Wire> {
        let credentials = Credentials::User {
            name: "admin".to_owned(),
            protocol: AuthProtocol::Sha256,
            auth_password: "authentication".to_owned(),
            privacy: Some((PrivacyProtocol::Aes128, "privacy-too".to_owned())),
        };
        self.set(tap);
        let wire = Wire {
            agent: Arc::clone(&self.agent),
            now_ms: Arc::clone(&self.now_ms),
            tap: Arc::clone(&self.tap),
            heard: Arc::clone(&self.heard),
            back: VecDeque::new(),
        };
        Session::new(wire, credentials, Patience { timeout: Duration::from_millis(100), attempts: 3 }, salt)
    }

    fn set(&self, tap: Tap) {
        *self.tap.lock().expect("no panic before") = tap;
    }

    fn pass_s(&self, seconds: u64) {
        *self.now_ms.lock().expect("no panic before") += seconds * 1000;
    }

    fn restart(&self) {
        let now_ms = *self.now_ms.lock().expect("no panic before");
        self.agent.lock().expect("no panic before").responder().restart(now_ms);
    }

    /// Sends a message again to the agent.
    fn send(&self, datagram: &[u8]) -> Option<Message> {
        let now_ms = *self.now_ms.lock().expect("no panic before");
        let reply = self.agent.lock().expect("no panic before").handle_datagram(now_ms, datagram)?;
        Some(Message::decode(&reply.datagram).expect("an answer"))
    }

    fn heard(&self) -> Heard {
        self.heard.lock().expect("no panic before").clone()
    }

    fn contact(&self) -> String {
        let agent = &mut *self.agent.lock().expect("no panic before");
        String::from_utf8(agent.responder().config().contact.clone()).expect("text")
    }

    fn call(&self, contact: &str) {
        self.session(Tap::Listen, 0x77 << 40).set(named(contact)).expect("it can be written");
    }
}

fn named(contact: &str) -> Vec<(Oid, Value)> {
    vec![(system::CONTACT.instance(), Value::Octets(contact.as_bytes().to_vec()))]
}

#[test]
fn an_old_write_changes_nothing_outside_the_window() {
    for (passed_s, taken) in [(0, true), (WINDOW_S - 1, true), (WINDOW_S, true), (WINDOW_S + 1, false), (9000, false)] {
        let site = Site::new();
        site.session(Tap::Listen, 1 << 40).set(named("old")).expect("it can be written");
        let kept = site.heard().requests.last().expect("a signed request").clone();
        site.call("new");
        site.pass_s(passed_s);
        let answer = site.send(&kept);
        assert_eq!(site.contact(), if taken { "old" } else { "new" }, "after {passed_s} s");
        assert!(answer.is_some(), "whoever asks for it gets a report");
    }
}

#[test]
fn the_lock_stands_before_old_writes_inside_the_window() {
    let site = Site::new();
    let mut session = site.session(Tap::Listen, 1 << 40);
    let lock = system::SET_SERIAL_NO.instance();
    let serial = session.get(std::slice::from_ref(&lock)).expect("it can be read")[0].clone();
    let mut bindings = named("old");
    bindings.push((lock, serial));
    session.set(bindings).expect("it can be written");
    let kept = site.heard().requests.last().expect("a signed request").clone();
    site.call("new");
    for _ in 0..3 {
        assert!(site.send(&kept).is_some());
        assert_eq!(site.contact(), "new");
    }
}

#[test]
fn an_old_write_changes_nothing_after_a_restart() {
    let site = Site::new();
    site.session(Tap::Listen, 1 << 40).set(named("old")).expect("it can be written");
    let kept = site.heard().requests.last().expect("a signed request").clone();
    site.restart();
    site.call("new");
    assert!(site.send(&kept).is_some());
    assert_eq!(site.contact(), "new");
}

#[test]
fn an_old_answer_to_a_request_of_the_same_number_is_not_believed() {
    let object = system::CONTACT.instance();
    for (restarts, passed_s) in [(false, WINDOW_S + 1), (false, 100_000), (true, 0)] {
        let site = Site::new();
        site.call("old");
        let salt = 5 << 40;
        let told = site.session(Tap::Listen, salt).get(std::slice::from_ref(&object)).expect("it can be read");
        assert_eq!(told, [Value::Octets(b"old".to_vec())]);
        let kept = site.heard().answers.last().expect("a signed answer").clone();
        site.call("new");
        site.pass_s(passed_s);
        if restarts {
            site.restart();
            site.call("new");
        }
        // The numbers are the same again, and the old answer comes alone: better none than that.
        let replay = Tap::Replay([kept.clone(), kept.clone(), kept.clone()].into());
        let told = site.session(replay, salt).get(std::slice::from_ref(&object));
        assert!(matches!(told, Err(SessionError::Silent { .. })), "{told:?}");
        // It comes before the true one, as does all that was ever said.
        let mut chatter = site.heard().answers;
        chatter.truncate(20);
        chatter.push(kept);
        let told = site.session(Tap::Chatter(chatter), salt).get(std::slice::from_ref(&object)).expect("the true one");
        assert_eq!(told, [Value::Octets(b"new".to_vec())]);
    }
}

#[test]
fn an_answer_to_another_request_is_not_believed_at_any_time() {
    let object = system::CONTACT.instance();
    let site = Site::new();
    site.call("old");
    let mut first = site.session(Tap::Listen, 5 << 40);
    for _ in 0..5 {
        first.get(std::slice::from_ref(&object)).expect("it can be read");
    }
    site.call("new");
    // No time has passed, but the numbers are others.
    let kept = site.heard().answers;
    let told = site.session(Tap::Replay(kept.clone().into()), 6 << 40).get(std::slice::from_ref(&object));
    assert!(matches!(told, Err(SessionError::Silent { .. })), "{told:?}");
    let told = site.session(Tap::Chatter(kept), 6 << 40).get(std::slice::from_ref(&object)).expect("the true one");
    assert_eq!(told, [Value::Octets(b"new".to_vec())]);
}

#[test]
fn nobody_talks_a_session_out_of_an_engine_that_it_knows() {
    let object = system::CONTACT.instance();
    // Of the engine's own name with a clock of long ago, and of another.
    for (engine, time_s) in [(ENGINE, 0), (&[0x80, 0, 0x1f, 0x88, 4, b'x'][..], 7)] {
        let site = Site::new();
        site.call("name");
        let mut session = site.session(Tap::Listen, 5 << 40);
        session.get(std::slice::from_ref(&object)).expect("the first answer");
        site.set(Tap::Report(engine.to_vec(), time_s));
        let requests = site.heard().requests.len();
        for _ in 0..5 {
            let told = session.get(std::slice::from_ref(&object)).expect("the true one");
            assert_eq!(told, [Value::Octets(b"name".to_vec())]);
        }
        assert_eq!(site.heard().requests.len(), requests + 5, "no request is sent twice");
    }
}

#[test]
fn an_engine_that_has_another_name_after_a_restart_is_met_again() {
    let object = system::CONTACT.instance();
    let (before, after) = (Site::new(), Site::of(&[0x80, 0, 0x1f, 0x88, 4, b'y']));
    before.call("before");
    let mut session = before.session(Tap::Listen, 5 << 40);
    session.get(std::slice::from_ref(&object)).expect("the first answer");
    std::mem::swap(&mut *before.agent.lock().expect("no panic"), &mut *after.agent.lock().expect("no panic"));
    let told = session.get(std::slice::from_ref(&object)).expect("the new engine's");
    assert_eq!(told, [Value::Octets(Vec::new())]);
}
