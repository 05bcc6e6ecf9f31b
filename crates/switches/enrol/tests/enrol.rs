//! Probes against the agent: what they find is what the agent was made with, and whatever happens on the way nothing of
//! them is left, or what is left is named and cleaned up later. `SEED=N` runs one seed alone.

#[path = "../../switchd/tests/common/wire.rs"]
mod wire;

use std::{
    collections::{BTreeMap, VecDeque},
    sync::{Arc, Mutex},
    time::Duration,
};

use bridge_mib::{
    IfStatus, PauseMode, PortList, RowStatus, StaticStatus,
    index::{StaticRow, VlanIndex},
    objects::{own, q_bridge},
};
use enrol::{
    Base, End, EnrolError, Enrolment, Ledger, ProbeCallbacks, ProbeRequest, Step, Trouble, clean, enrol,
    kept::{KeptLedger, parse_ledger, write_ledger},
    model_of, rehearse,
};
use fabric::{Basis, Mac, Model, PortNames, VlanId, rng::Rng};
use snmp::{
    Credentials, Patience, Session, Value,
    wire::{Binding, ErrorStatus, Pdu, PduKind},
};
use switchd::agent::{
    Access, Answer, Config, Engine, EngineClock, Facts, Fault, Faulty, HybridPorts, Learning, Limits, Mishap,
    PortFacts, PortKind, Responder, Rights, StaticConfig, Still, Switch, Trigger, VlanConfig,
};

use wire::Wire;

const PORTS: u32 = 10;
const ENGINE: &[u8] = &[0x80, 0, 0x1f, 0x88, 4, b'e'];

/// A habit of real agents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Habit {
    None,
    /// A port that becomes untagged somewhere leaves the VLAN in which it was untagged.
    MovesUntagged,
    /// The second untagged VLAN of a port is accepted and forgotten.
    ForgetsUntagged,
    /// A VLAN is made by its RowStatus alone.
    BareRows,
    /// Names are not kept.
    Nameless,
    /// One row a message.
    OneRow,
    /// A full table takes the newest entry, and drops the oldest.
    Evicts,
    /// Everything is saved at once.
    Saves,
}

struct Quirky {
    switch: Switch<Still>,
    habit: Habit,
    log: Vec<Vec<Binding>>,
    oldest: VecDeque<StaticRow>,
}

impl Quirky {
    fn set(&mut self, now_ms: u64, bindings: Vec<Binding>, request: &Pdu, room: usize) -> Answer {
        self.switch.answer(now_ms, &Pdu { bindings, ..request.clone() }, Rights::Write, room)
    }

    /// The untagged lists that are written, by VLAN.
    fn untagged(bindings: &[Binding]) -> Vec<(VlanId, PortList)> {
        let list = |(oid, value): &Binding| {
            let index: VlanIndex = q_bridge::VLAN_STATIC_UNTAGGED_PORTS.index_of(oid)?;
            Some((index.0, PortList::decode(value.octets()?).ok()?))
        };
        bindings.iter().filter_map(list).collect()
    }

    fn untagged_elsewhere(&self, vlan: VlanId, list: &PortList) -> Vec<(VlanId, PortList)> {
        let others = self.switch.config().vlans.iter().filter(|(index, _)| index.0 != vlan);
        let meeting = others.filter(|(_, other)| other.untagged.meets(list));
        meeting
            .map(|(index, other)| {
                (index.0, PortList::of(other.untagged.iter().filter(|port| !list.contains(*port))).expect("ports"))
            })
            .collect()
    }
}

impl Responder for Quirky {
    fn handle_tick(&mut self, now_ms: u64) {
        self.switch.handle_tick(now_ms);
    }

    fn answer(&mut self, now_ms: u64, request: &Pdu, rights: Rights, room: usize) -> Answer {
        if request.kind != PduKind::Set {
            return self.switch.answer(now_ms, request, rights, room);
        }
        self.log.push(request.bindings.clone());
        let mut bindings = request.bindings.clone();
        let accepted = Answer::Pdu(request.answer(request.bindings.clone()));
        match self.habit {
            Habit::None | Habit::Saves => {}
            Habit::MovesUntagged => {
                for (vlan, list) in Self::untagged(&bindings) {
                    for (other, rest) in self.untagged_elsewhere(vlan, &list) {
                        let index = VlanIndex(other);
                        let octets = Value::Octets(rest.encode(0));
                        let egress = q_bridge::VLAN_STATIC_EGRESS_PORTS.row(&index);
                        let members = &self.switch.config().vlans[&index].egress;
                        let stay = PortList::of(members.iter().filter(|port| !list.contains(*port))).expect("ports");
                        let moved = vec![
                            (egress, Value::Octets(stay.encode(0))),
                            (q_bridge::VLAN_STATIC_UNTAGGED_PORTS.row(&index), octets),
                        ];
                        self.set(now_ms, moved, request, room);
                    }
                }
            }
            Habit::ForgetsUntagged => {
                let taken = Self::untagged(&bindings);
                if taken.iter().any(|(vlan, list)| {
                    *vlan != VlanId::MIN
                        && self.untagged_elsewhere(*vlan, list).iter().any(|(other, _)| *other != VlanId::MIN)
                }) {
                    return accepted;
                }
            }
            Habit::BareRows => {
                let status = |(oid, _): &Binding| q_bridge::VLAN_STATIC_ROW_STATUS.index_of::<VlanIndex>(oid).is_some();
                if bindings.iter().any(status) && !bindings.iter().all(status) {
                    return Answer::Pdu(request.refusal(ErrorStatus::InconsistentValue, 1));
                }
            }
            Habit::Nameless => {
                bindings.retain(|(oid, _)| q_bridge::VLAN_STATIC_NAME.index_of::<VlanIndex>(oid).is_none());
                if bindings.is_empty() {
                    return accepted;
                }
            }
            Habit::OneRow => {
                let rows = |column: &snmp::Column| {
                    bindings.iter().filter(|(oid, _)| oid.strip_prefix(column.oid).is_some()).count()
                };
                if rows(&q_bridge::STATIC_UNICAST_STATUS) > 1 || rows(&q_bridge::VLAN_STATIC_ROW_STATUS) > 1 {
                    return Answer::Pdu(Pdu { bindings: Vec::new(), ..request.refusal(ErrorStatus::TooBig, 0) });
                }
            }
            Habit::Evicts => {
                let fresh: Vec<StaticRow> = (bindings.iter())
                    .filter(|(_, value)| value.int() == Some(StaticStatus::Permanent.code()))
                    .filter_map(|(oid, _)| q_bridge::STATIC_UNICAST_STATUS.index_of(oid))
                    .filter(|row| !self.switch.config().statics.contains_key(row))
                    .collect();
                let full = self.switch.config().statics.len() + fresh.len();
                for _ in self.switch.facts().limits.statics_max..full {
                    let Some(row) = self.oldest.pop_front() else { break };
                    let gone = q_bridge::STATIC_UNICAST_STATUS.row(&row);
                    self.set(now_ms, vec![(gone, Value::Integer(StaticStatus::Invalid.code()))], request, room);
                }
                self.oldest.extend(fresh);
            }
        }
        let answer = self.set(now_ms, bindings, request, room);
        if self.habit == Habit::Saves {
            self.set(now_ms, vec![(own::ACTION.instance(), Value::Integer(1))], request, room);
        }
        match answer {
            Answer::Pdu(pdu) if pdu.status == 0 => Answer::Pdu(request.answer(request.bindings.clone())),
            other => other,
        }
    }

    fn clock(&self, now_ms: u64) -> EngineClock {
        self.switch.clock(now_ms)
    }

    fn restart(&mut self, now_ms: u64) {
        self.switch.restart(now_ms);
    }
}

type Agent = Arc<Mutex<Engine<Faulty<Quirky>>>>;

struct Site {
    agent: Agent,
    now_ms: Arc<Mutex<u64>>,
    before: Config,
}

/// What the switches of most tests hold and have room for.
const LIMITS: Limits = Limits {
    vlans_max: 20,
    statics_max: 70,
    hybrid: HybridPorts::Allowed,
    learning: Learning::Independent,
    pfc_classes: 0,
};

impl Site {
    fn new(limits: Limits, habit: Habit) -> Self {
        let port = |port: u32| PortFacts {
            name: format!("g{port}"),
            if_index: 1000 + port,
            mac: Mac::new([2, 0, 0, 0, 1, port as u8]),
            kind: PortKind::Own,
        };
        let facts = Facts {
            description: "Wiredrawer 10, version 3".to_owned(),
            address: Mac::new([2, 0, 0, 0, 1, 0]),
            ports: (1..=PORTS).map(port).collect(),
            limits,
        };
        let mut config = Config::factory(PORTS as usize);
        let vlan = VlanId::new(7).expect("in range");
        let members = PortList::of([2, 3, 10]).expect("ports");
        let held = VlanConfig {
            name: b"printers".to_vec(),
            egress: members,
            forbidden: PortList::new(),
            untagged: PortList::new(),
            status: RowStatus::Active,
            created_cs: 0,
        };
        config.vlans.insert(VlanIndex(vlan), held);
        for number in 1..=3 {
            let row = StaticRow { fdb: limits.fdb_of(vlan), mac: Mac::local(number), receive_port: 0 };
            let entry =
                StaticConfig { ports: PortList::of([number + 1]).expect("ports"), status: StaticStatus::Permanent };
            config.statics.insert(row, entry);
        }
        config.ports[9].pause = PauseMode::Receive;
        // The last two have no link.
        config.ports[8..].iter_mut().for_each(|port| port.admin = IfStatus::Down);
        let switch = Switch::new(facts, config.clone(), Still, ENGINE, 1, 0);
        let quirky = Quirky { switch, habit, log: Vec::new(), oldest: VecDeque::new() };
        let access = Access { communities: vec![(b"private".to_vec(), Rights::Write)], users: Vec::new() };
        let engine = Engine::new(Faulty::new(quirky, &[], 1), access, ENGINE, 1);
        Self { agent: Arc::new(Mutex::new(engine)), now_ms: Arc::new(Mutex::new(1_000_000)), before: config }
    }

    fn session(&self, seed: u64) -> Session<Wire<Faulty<Quirky>>> {
        let wire = Wire::new(&self.agent, &self.now_ms, 20);
        let patience = Patience { timeout: Duration::from_millis(1500), attempts: 4 };
        Session::new(wire, Credentials::Community("private".to_owned()), patience, seed)
    }

    fn with<R>(&self, work: impl FnOnce(&mut Faulty<Quirky>) -> R) -> R {
        work(self.agent.lock().expect("no panic before").responder())
    }

    fn faults(&self, faults: &[Fault]) {
        self.with(|faulty| faulty.set_faults(faults));
    }

    /// What is configured, but for when VLANs came into force.
    fn config(&self) -> Config {
        let mut config = self.with(|faulty| faulty.inner().switch.config().clone());
        config.vlans.values_mut().for_each(|vlan| vlan.created_cs = 0);
        config
    }

    fn enrol(&self, request: &ProbeRequest, callbacks: &mut RecordingCallbacks) -> Result<Enrolment, EnrolError> {
        enrol(self.session(u64::from(request.nonce) << 34), request, callbacks)
    }

    /// A healthy switch, to which somebody comes with the ledger.
    fn clean_later(&self, callbacks: &RecordingCallbacks) -> Vec<String> {
        self.faults(&[]);
        *self.now_ms.lock().expect("no panic before") += 1_000_000;
        let ledger = callbacks.ledger.clone().expect("kept before the first write");
        let kept = KeptLedger { switch: "s".to_owned(), address: ([192, 0, 2, 1], 161).into(), ledger };
        let kept = parse_ledger(&write_ledger(&kept)).expect("its own file");
        clean(self.session(1 << 50), &kept.ledger)
    }
}

#[derive(Default)]
struct RecordingCallbacks {
    ledger: Option<Ledger>,
    /// Stops when it is asked that often.
    patience: Option<usize>,
    asked: usize,
    steps: Vec<Step>,
}

impl ProbeCallbacks for RecordingCallbacks {
    fn keep(&mut self, ledger: &Ledger) -> Result<(), String> {
        self.ledger = Some(ledger.clone());
        Ok(())
    }

    fn stopped(&mut self) -> bool {
        self.asked += 1;
        self.patience.is_some_and(|patience| self.asked > patience)
    }

    fn tell(&mut self, step: Step) {
        self.steps.push(step);
    }
}

fn request() -> ProbeRequest {
    ProbeRequest { ports: Vec::new(), vlans_max: 64, entries_max: 500, nonce: 0xabc_0001 }
}

/// That what was found is what the switch was made with.
#[track_caller]
fn assert_found(enrolment: &Enrolment, limits: Limits, context: &str) {
    let found = enrolment.found.as_ref().unwrap_or_else(|trouble| panic!("{context}: {trouble}"));
    let independent = limits.learning == Learning::Independent;
    assert_eq!(found.hybrid_ports.able, limits.hybrid == HybridPorts::Allowed, "{context}: {:?}", found.hybrid_ports);
    assert_eq!(found.independent_vlan_learning.able, independent, "{context}: {:?}", found.independent_vlan_learning);
    assert_eq!((found.vlans.held, found.vlans.end), (limits.vlans_max, End::Full), "{context}");
    assert_eq!((found.statics.held, found.statics.end), (limits.statics_max, End::Full), "{context}");
    assert!(found.pause.as_ref().is_some_and(|verdict| verdict.able), "{context}: {:?}", found.pause);
}

#[test]
fn what_is_found_is_what_there_is() {
    for hybrid in [HybridPorts::Allowed, HybridPorts::Refused] {
        for learning in [Learning::Independent, Learning::Shared] {
            for (vlans_max, statics_max) in [(4, 5), (20, 70), (64, 499), (5, 64)] {
                let limits = Limits { vlans_max, statics_max, hybrid, learning, pfc_classes: 0 };
                let site = Site::new(limits, Habit::None);
                let mut request = request();
                request.vlans_max = 100;
                let enrolment =
                    site.enrol(&request, &mut RecordingCallbacks::default()).expect("a switch that can be probed");
                assert_found(&enrolment, limits, &format!("{limits:?}"));
                assert_eq!(enrolment.left, [""; 0], "{limits:?}");
                assert_eq!(enrolment.remarks, [""; 0], "{limits:?}");
                assert_eq!(enrolment.ports, ["g10", "g9"]);
                assert_eq!(site.config(), site.before, "{limits:?}");
            }
        }
    }
}

#[test]
fn bounds_are_kept_and_said() {
    let site = Site::new(Limits { vlans_max: 4094, statics_max: 100_000, ..LIMITS }, Habit::None);
    let request = ProbeRequest { vlans_max: 11, entries_max: 100, ..request() };
    let enrolment = site.enrol(&request, &mut RecordingCallbacks::default()).expect("a switch that can be probed");
    let found = enrolment.found.expect("all is well");
    assert_eq!((found.vlans.held, found.vlans.end), (11, End::Bound));
    assert_eq!((found.statics.held, found.statics.end), (100, End::Bound));
    assert_eq!(site.config(), site.before);
    let (model, remarks) = model_of("x", &enrolment.identity, &found, Base::Nothing);
    assert_eq!((model.vlans_max, model.static_entries_max), (9, 100));
    assert!(remarks.iter().any(|remark| remark.contains("--max-entries")), "{remarks:?}");
}

#[test]
fn habits_of_real_agents_are_seen_through() {
    let moves = Limits { hybrid: HybridPorts::Refused, ..LIMITS };
    for (habit, truth) in [
        (Habit::MovesUntagged, moves),
        (Habit::ForgetsUntagged, moves),
        (Habit::BareRows, LIMITS),
        (Habit::Nameless, LIMITS),
        (Habit::OneRow, LIMITS),
        (Habit::Evicts, LIMITS),
        (Habit::Saves, LIMITS),
    ] {
        let site = Site::new(LIMITS, habit);
        let enrolment =
            site.enrol(&request(), &mut RecordingCallbacks::default()).expect("a switch that can be probed");
        assert_found(&enrolment, truth, &format!("{habit:?}"));
        assert_eq!(enrolment.left, [""; 0], "{habit:?}");
        assert_eq!(site.config(), site.before, "{habit:?}");
        let found = enrolment.found.expect("all is well");
        assert_eq!(found.whole_rows, habit != Habit::BareRows, "{habit:?}");
        let batch = if habit == Habit::OneRow { 1 } else { 16 };
        assert_eq!(found.statics.batch, batch, "{habit:?}");
    }
}

/// One fault at every place where one can strike: whatever is said to have been found is true, and nothing is left.
#[test]
fn one_fault_anywhere_neither_misleads_nor_leaves_anything() {
    let limits = Limits { vlans_max: 9, statics_max: 20, ..LIMITS };
    let count = |habit: Habit| {
        let site = Site::new(limits, habit);
        site.enrol(&request(), &mut RecordingCallbacks::default()).expect("a switch that can be probed");
        site.with(|faulty| (faulty.requests(), faulty.sets()))
    };
    let mut found = 0;
    for habit in [Habit::None, Habit::Saves] {
        let (requests, sets) = count(habit);
        let whats = [
            Mishap::RefuseSet(ErrorStatus::GenErr),
            Mishap::RefuseSet(ErrorStatus::ResourceUnavailable),
            Mishap::IgnoreSet,
        ];
        let anywhere = [
            Mishap::Silent,
            Mishap::AnswerLost,
            Mishap::Garbage,
            Mishap::WrongCount,
            Mishap::Restart { down_ms: 10 },
            Mishap::Restart { down_ms: 40_000 },
        ];
        let at_sets = whats.iter().flat_map(|what| (1..=sets).map(|at| (Trigger::Set(at), *what)));
        let at_all = anywhere.iter().flat_map(|what| (1..=requests).map(|at| (Trigger::Request(at), *what)));
        for (when, what) in at_sets.chain(at_all) {
            let context = format!("{habit:?}, {what:?} at {when:?}");
            let site = Site::new(limits, habit);
            site.faults(&[Fault { when, what }]);
            match site.enrol(&request(), &mut RecordingCallbacks::default()) {
                Err(_) => {}
                Ok(enrolment) => {
                    assert_eq!(enrolment.left, [""; 0], "{context}");
                    if enrolment.found.is_ok() {
                        assert_found(&enrolment, limits, &context);
                        found += 1;
                    }
                }
            }
            assert_eq!(site.config(), site.before, "{context}");
        }
    }
    assert!(found > 200, "a test in which nothing is ever found would prove nothing: {found}");
}

/// A switch that from some SET on does nothing any more: what is left is named, and goes once the switch is well.
#[test]
fn what_cannot_be_cleaned_is_named_and_cleaned_later() {
    let limits = Limits { vlans_max: 9, statics_max: 20, ..LIMITS };
    let site = Site::new(limits, Habit::None);
    site.enrol(&request(), &mut RecordingCallbacks::default()).expect("a switch that can be probed");
    let sets = site.with(|faulty| faulty.sets());
    for habit in [Habit::None, Habit::Nameless, Habit::MovesUntagged] {
        for what in [Mishap::Silent, Mishap::AnswerLost, Mishap::IgnoreSet, Mishap::RefuseSet(ErrorStatus::GenErr)] {
            for from in 1..=sets {
                let context = format!("{habit:?}, {what:?} from SET {from}");
                let site = Site::new(limits, habit);
                site.faults(&[Fault { when: Trigger::FromSet(from), what }]);
                let mut callbacks = RecordingCallbacks::default();
                let enrolment = site.enrol(&request(), &mut callbacks).expect("reading is well");
                let dirty = site.config() != site.before;
                assert_eq!(!enrolment.left.is_empty(), dirty, "{context}: {:?}", enrolment.left);
                for sentence in &enrolment.left {
                    assert!(sentence.contains("espalier enrol --clean") || sentence.contains("by hand"), "{sentence}");
                }
                let left = site.clean_later(&callbacks);
                // Without names nobody can know later whose the VLANs are, unless it was seen that there are none.
                if habit == Habit::Nameless && !left.is_empty() {
                    assert!(left.iter().all(|sentence| sentence.contains("left alone")), "{context}: {left:?}");
                } else {
                    assert_eq!(left, [""; 0], "{context}");
                    assert_eq!(site.config(), site.before, "{context}");
                }
            }
        }
    }
}

#[test]
fn a_probe_can_be_stopped_anywhere() {
    let mut stops = 0;
    for patience in 0.. {
        let site = Site::new(LIMITS, Habit::None);
        let mut callbacks = RecordingCallbacks { patience: Some(patience), ..RecordingCallbacks::default() };
        let enrolment = site.enrol(&request(), &mut callbacks).expect("a switch that can be probed");
        assert_eq!(enrolment.left, [""; 0], "{patience}");
        assert_eq!(site.config(), site.before, "{patience}");
        assert_eq!(callbacks.steps.last(), Some(&Step::Clean));
        match enrolment.found {
            Err(Trouble::Stopped) => stops += 1,
            Err(other) => panic!("{patience}: {other}"),
            Ok(_) => break,
        }
    }
    assert!(stops > 15, "{stops}");
}

#[test]
fn nothing_is_written_without_a_ledger() {
    struct Full;
    impl ProbeCallbacks for Full {
        fn keep(&mut self, _: &Ledger) -> Result<(), String> {
            Err("no space left".to_owned())
        }
        fn stopped(&mut self) -> bool {
            false
        }
        fn tell(&mut self, _: Step) {}
    }
    let site = Site::new(LIMITS, Habit::None);
    let error = enrol(site.session(1), &request(), &mut Full).expect_err("no ledger");
    assert!(error.to_string().contains("no space left"), "{error}");
    assert_eq!(site.with(|faulty| faulty.sets()), 0);
}

#[test]
fn a_rehearsal_writes_down_what_a_probe_sends_and_sends_nothing() {
    let generous = Limits { vlans_max: 4094, statics_max: 100_000, ..LIMITS };
    for ports in [Vec::new(), vec!["g3".to_owned()], vec!["g1".to_owned(), "g2".to_owned()]] {
        let request = ProbeRequest { ports, vlans_max: 30, entries_max: 150, ..request() };
        let site = Site::new(generous, Habit::None);
        let (enrolment, written) = rehearse(site.session(1), &request).expect("a switch that can be read");
        assert_eq!(site.with(|faulty| faulty.sets()), 0);
        assert_eq!(enrolment.sets, written.len());
        assert_eq!(enrolment.left, [""; 0]);
        site.enrol(&request, &mut RecordingCallbacks::default()).expect("a switch that can be probed");
        let sent = site.with(|faulty| faulty.inner().log.clone());
        assert!(sent == written, "{} SETs were sent, {} written down", sent.len(), written.len());
    }
}

#[test]
fn somebody_else_s_vlan_is_left_alone() {
    let site = Site::new(LIMITS, Habit::None);
    // The program dies, and the switch with it: it comes back as it was saved, and somebody makes a VLAN.
    site.faults(&[Fault { when: Trigger::FromSet(9), what: Mishap::Silent }]);
    let mut callbacks = RecordingCallbacks::default();
    site.enrol(&request(), &mut callbacks).expect("reading is well");
    site.faults(&[]);
    site.with(|faulty| faulty.restart(1_000_000));
    let vlan = callbacks.ledger.as_ref().and_then(|ledger| ledger.vlans.iter().last()).expect("a VLAN");
    let index = VlanIndex(vlan);
    let made = vec![
        (q_bridge::VLAN_STATIC_NAME.row(&index), Value::Octets(b"guests".to_vec())),
        (q_bridge::VLAN_STATIC_ROW_STATUS.row(&index), Value::Integer(RowStatus::CreateAndGo.code())),
    ];
    site.session(3).set(made).expect("somebody makes a VLAN");
    let left = site.clean_later(&callbacks);
    assert!(left.len() == 1 && left[0].contains("\"guests\"") && left[0].contains("left alone"), "{left:?}");
    assert!(site.config().vlans.contains_key(&index));
}

#[test]
fn what_others_change_meanwhile_is_not_undone_but_said() {
    struct Meddler<'a>(&'a Site);
    impl ProbeCallbacks for Meddler<'_> {
        fn keep(&mut self, _: &Ledger) -> Result<(), String> {
            Ok(())
        }
        fn stopped(&mut self) -> bool {
            false
        }
        fn tell(&mut self, step: Step) {
            if step == Step::EntryRoom {
                let gone = q_bridge::VLAN_STATIC_ROW_STATUS.row(&VlanIndex(VlanId::new(7).expect("in range")));
                let gone = vec![(gone, Value::Integer(RowStatus::Destroy.code()))];
                self.0.session(5).set(gone).expect("somebody removes a VLAN");
            }
        }
    }
    let site = Site::new(LIMITS, Habit::None);
    let enrolment = enrol(site.session(1), &request(), &mut Meddler(&site)).expect("a switch that can be probed");
    assert_eq!(enrolment.left, [""; 0]);
    assert!(enrolment.remarks.iter().any(|remark| remark.contains("VLAN 7")), "{:?}", enrolment.remarks);
    assert!(!site.config().vlans.contains_key(&VlanIndex(VlanId::new(7).expect("in range"))));
}

#[test]
fn a_switch_that_cannot_be_probed_says_why() {
    let site = Site::new(LIMITS, Habit::None);
    let request = ProbeRequest { ports: vec!["g11".to_owned()], ..request() };
    let error = site.enrol(&request, &mut RecordingCallbacks::default()).expect_err("no such port").to_string();
    assert!(error.contains("g11") && error.contains("g10"), "{error}");
    let silent = Site::new(LIMITS, Habit::None);
    silent.faults(&[Fault { when: Trigger::Always, what: Mishap::Silent }]);
    assert!(matches!(silent.enrol(&request, &mut RecordingCallbacks::default()), Err(EnrolError::Session(_))));
}

#[test]
fn models_hold_what_was_found_and_what_was_believed() {
    let site = Site::new(LIMITS, Habit::None);
    let enrolment = site.enrol(&request(), &mut RecordingCallbacks::default()).expect("a switch that can be probed");
    let found = enrolment.found.expect("all is well");
    let (model, _) = model_of("wiredrawer", &enrolment.identity, &found, Base::Nothing);
    assert_eq!(model.description, "Wiredrawer 10, version 3");
    assert_eq!((model.vlans_max, model.static_entries_max, model.total_entries_max), (18, 70, 70));
    assert!(model.hybrid_ports && model.independent_vlan_learning && model.pause);
    assert_eq!((model.pfc_classes, model.syntax.as_deref(), model.save.as_deref()), (0, None, None));
    assert_eq!(model.ports, PortNames::Listed((1..=PORTS).map(|port| format!("g{port}")).collect()));
    let bases: BTreeMap<&str, Basis> = model.basis_of.iter().map(|(fact, basis)| (fact.as_str(), *basis)).collect();
    let probed = ["hybrid-ports", "independent-vlan-learning", "max-vlans", "pause", "static-macs"];
    assert_eq!(bases, probed.into_iter().map(|fact| (fact, Basis::Probed)).collect());

    let known = Model::by_name("cisco-sg300-28").expect("a known model");
    let (model, _) = model_of("sg", &enrolment.identity, &found, Base::Known(&known));
    assert_eq!((model.static_entries_max, model.total_entries_max), (70, 8192));
    assert_eq!((model.syntax.as_deref(), model.save.as_deref()), (known.syntax.as_deref(), known.save.as_deref()));
    assert_eq!(model.basis_of("total-macs"), known.basis_of("total-macs"));
    assert_eq!(model.basis_of("hybrid-ports"), Basis::Probed);
}

#[test]
fn many_faults_by_chance() {
    let seeds = match std::env::var("SEED").ok().and_then(|seed| seed.parse().ok()) {
        Some(seed) => seed..seed + 1,
        None => 0..200_u64,
    };
    let mut complete = 0;
    for seed in seeds {
        println!("seed {seed}");
        let mut rng = Rng::new(seed);
        let limits = Limits { vlans_max: 4 + rng.below(20), statics_max: 5 + rng.below(80), ..LIMITS };
        let site = Site::new(limits, [Habit::None, Habit::Saves, Habit::OneRow, Habit::Nameless][rng.below(4)]);
        let what = [
            Mishap::Silent,
            Mishap::AnswerLost,
            Mishap::RefuseSet(ErrorStatus::GenErr),
            Mishap::IgnoreSet,
            Mishap::Restart { down_ms: 3000 },
            Mishap::Garbage,
            Mishap::WrongTypes,
        ][rng.below(7)];
        let when = Trigger::PerMille([2, 10, 40][rng.below(3)]);
        site.faults(&[Fault { when, what }]);
        let mut callbacks = RecordingCallbacks::default();
        let Ok(enrolment) = site.enrol(&request(), &mut callbacks) else {
            assert_eq!(site.config(), site.before, "seed {seed}");
            continue;
        };
        complete += usize::from(enrolment.found.is_ok());
        if enrolment.left.is_empty() {
            assert_eq!(site.config(), site.before, "seed {seed}");
        } else {
            assert_eq!(site.clean_later(&callbacks), [""; 0], "seed {seed}");
            assert_eq!(site.config(), site.before, "seed {seed}");
        }
    }
    assert!(complete > 0 || std::env::var_os("SEED").is_some());
}

#[test]
fn what_ports_say_of_priority_flow_control_goes_into_the_model() {
    for (pfc_classes, expected) in [(0, None), (1, Some(1)), (8, Some(8))] {
        let site = Site::new(Limits { pfc_classes, ..LIMITS }, Habit::None);
        let mut enrolment =
            site.enrol(&request(), &mut RecordingCallbacks::default()).expect("a switch that can be probed");
        assert_eq!(enrolment.identity.pfc_classes, expected);
        let found = enrolment.found.as_ref().expect("probed").clone();
        let known = Model { pfc_classes: 3, ..(*Model::generic()).clone() };
        let (model, remarks) = model_of("x", &enrolment.identity, &found, Base::Known(&known));
        assert_eq!(model.pfc_classes, expected.unwrap_or(3), "what says nothing keeps what is believed");
        assert_eq!(model.basis_of("pfc-classes") == Basis::Probed, expected.is_some());
        assert_eq!(remarks.iter().any(|remark| remark.contains("(DCBX)")), expected.is_some(), "{remarks:?}");
        // A table that was full says so, and what it holds is the least that fits.
        enrolment.identity.learned = 9_000;
        enrolment.identity.learned_discards = 7;
        let (model, remarks) = model_of("x", &enrolment.identity, &found, Base::Nothing);
        assert_eq!(model.total_entries_max, 9_000);
        assert!(remarks.iter().any(|remark| remark.contains("no room for an address 7 times")), "{remarks:?}");
    }
}
