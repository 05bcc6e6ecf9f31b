//! A switch that misbehaves: the faults of real networks and of broken agents, on demand and in the same order every
//! time.
//!
//! ```text
//! request ─▶ Faulty ─ a fault strikes? ─ no ─▶ Switch
//!                          └ yes ▶ silence, refusal, a lie, garbage, a restart
//! ```

use fabric::rng::Rng;

use super::responder::{Answer, EngineClock, Responder, Rights};
use snmp::{
    Oid, Value,
    wire::{Binding, ErrorStatus, Pdu, PduKind},
};

/// What happens, and when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    /// When.
    pub when: Trigger,
    /// What.
    pub what: Mishap,
}

/// When a fault strikes. Requests are counted from 1, SETs by themselves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trigger {
    /// At every request.
    Always,
    /// At one request.
    Request(u64),
    /// At one SET.
    Set(u64),
    /// From one SET on.
    FromSet(u64),
    /// By chance, in so many of a thousand requests.
    PerMille(u16),
}

/// What goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mishap {
    /// No answer; the request is not carried out.
    Silent,
    /// No answer, but the request is carried out.
    AnswerLost,
    /// The answer takes this long.
    Late {
        /// How long.
        delay_ms: u64,
    },
    /// A SET is refused; other requests pass.
    RefuseSet(ErrorStatus),
    /// A SET is answered as if it were carried out; other requests pass.
    IgnoreSet,
    /// The switch restarts from its saved configuration, and says nothing for a while.
    Restart {
        /// How long.
        down_ms: u64,
    },
    /// Octets that are no message.
    Garbage,
    /// The message's beginning.
    CutShort,
    /// A walk goes round in circles: the answer is what was asked for.
    StuckWalk,
    /// A walk never ends: there is always one more row.
    EndlessWalk,
    /// Values of another type.
    WrongTypes,
    /// Strings of octets far longer than they can be.
    HugeStrings,
    /// The answer to another request.
    WrongRequest,
    /// More or fewer bindings than asked for.
    WrongCount,
}

/// A responder with faults.
pub struct Faulty<R> {
    inner: R,
    faults: Vec<Fault>,
    rng: Rng,
    requests: u64,
    sets: u64,
    down_until_ms: u64,
}

/// How long a string is that is too long: what a datagram holds.
const HUGE_LEN: usize = 60_000;
const GARBAGE_LEN_MAX: usize = 200;

impl<R: Responder> Faulty<R> {
    /// A responder to which these happen; of several at once, the first. The same seed, faults and requests give the
    /// same answers.
    pub fn new(inner: R, faults: &[Fault], seed: u64) -> Self {
        Self { inner, faults: faults.to_vec(), rng: Rng::new(seed), requests: 0, sets: 0, down_until_ms: 0 }
    }

    /// The responder behind.
    pub fn inner(&mut self) -> &mut R {
        &mut self.inner
    }

    /// Other faults from now on; counts go on.
    pub fn set_faults(&mut self, faults: &[Fault]) {
        self.faults = faults.to_vec();
    }

    /// How many requests have come.
    pub fn requests(&self) -> u64 {
        self.requests
    }

    /// How many SETs have come.
    pub fn sets(&self) -> u64 {
        self.sets
    }

    fn strikes(&mut self, kind: PduKind) -> Option<Mishap> {
        let (requests, sets, rng) = (self.requests, self.sets, &mut self.rng);
        let is_set = kind == PduKind::Set;
        let struck = self.faults.iter().find(|fault| match fault.when {
            Trigger::Always => true,
            Trigger::Request(number) => requests == number,
            Trigger::Set(number) => is_set && sets == number,
            Trigger::FromSet(number) => is_set && sets >= number,
            Trigger::PerMille(chance) => rng.below(1000) < usize::from(chance),
        });
        struck.map(|fault| fault.what)
    }

    /// The answer that belongs to the request, changed.
    fn altered(&mut self, now_ms: u64, request: &Pdu, rights: Rights, room: usize, alter: impl Fn(&mut Pdu)) -> Answer {
        match self.inner.answer(now_ms, request, rights, room) {
            Answer::Pdu(mut pdu) => {
                alter(&mut pdu);
                Answer::Pdu(pdu)
            }
            other => other,
        }
    }
}

impl<R: Responder> Responder for Faulty<R> {
    fn answer(&mut self, now_ms: u64, request: &Pdu, rights: Rights, room: usize) -> Answer {
        self.requests += 1;
        self.sets += u64::from(request.kind == PduKind::Set);
        if now_ms < self.down_until_ms {
            return Answer::Nothing;
        }
        let is_set = request.kind == PduKind::Set;
        let is_walk = matches!(request.kind, PduKind::GetNext | PduKind::GetBulk);
        match self.strikes(request.kind) {
            Some(Mishap::Silent) => Answer::Nothing,
            Some(Mishap::AnswerLost) => {
                self.inner.answer(now_ms, request, rights, room);
                Answer::Nothing
            }
            Some(Mishap::Late { delay_ms }) => match self.inner.answer(now_ms, request, rights, room) {
                Answer::Pdu(pdu) => Answer::Late { pdu, delay_ms },
                other => other,
            },
            Some(Mishap::RefuseSet(status)) if is_set => {
                Answer::Pdu(request.refusal(status, usize::from(!request.bindings.is_empty())))
            }
            Some(Mishap::IgnoreSet) if is_set => Answer::Pdu(request.answer(request.bindings.clone())),
            Some(Mishap::Restart { down_ms }) => {
                self.restart(now_ms + down_ms);
                self.down_until_ms = now_ms + down_ms;
                Answer::Nothing
            }
            Some(Mishap::Garbage) => {
                let len = self.rng.below(GARBAGE_LEN_MAX);
                Answer::Octets((0..len).map(|_| self.rng.next_u64() as u8).collect())
            }
            Some(Mishap::CutShort) => Answer::Octets(vec![0x30, 0x50, 0x02, 0x01, 0x01, 0x04, 0x20]),
            Some(Mishap::StuckWalk) if is_walk => {
                let stuck = request.bindings.iter().map(|(oid, _)| (oid.clone(), Value::Integer(1))).collect();
                Answer::Pdu(request.answer(stuck))
            }
            Some(Mishap::EndlessWalk) if is_walk => {
                Answer::Pdu(request.answer(request.bindings.iter().map(further).collect()))
            }
            Some(Mishap::WrongTypes) => self.altered(now_ms, request, rights, room, |pdu| {
                pdu.bindings.iter_mut().for_each(|(_, value)| *value = other_type(value));
            }),
            Some(Mishap::HugeStrings) => self.altered(now_ms, request, rights, room, |pdu| {
                pdu.bindings.truncate(1);
                pdu.bindings.iter_mut().for_each(|(_, value)| *value = Value::Octets(vec![0xff; HUGE_LEN]));
            }),
            Some(Mishap::WrongRequest) => {
                self.altered(now_ms, request, rights, room, |pdu| pdu.request_id = pdu.request_id.wrapping_add(1))
            }
            Some(Mishap::WrongCount) => self.altered(now_ms, request, rights, room, |pdu| {
                if pdu.bindings.pop().is_some() && pdu.bindings.is_empty() {
                    pdu.bindings = vec![(Oid::new(&[1, 3]), Value::Null); 3];
                }
            }),
            None | Some(Mishap::RefuseSet(_) | Mishap::IgnoreSet | Mishap::StuckWalk | Mishap::EndlessWalk) => {
                self.inner.answer(now_ms, request, rights, room)
            }
        }
    }

    fn clock(&self, now_ms: u64) -> EngineClock {
        self.inner.clock(now_ms)
    }

    fn handle_tick(&mut self, now_ms: u64) {
        self.inner.handle_tick(now_ms);
    }

    fn restart(&mut self, now_ms: u64) {
        self.inner.restart(now_ms);
    }
}

/// A row that does not exist, behind the one that was asked for.
fn further((oid, _): &Binding) -> Binding {
    let (last, rest) = oid.parts().split_last().map_or((0, &[][..]), |(last, rest)| (*last, rest));
    let next = if rest.len() < 12 { oid.child(&[1]) } else { Oid::new(&[rest, &[last.saturating_add(1)]].concat()) };
    (next, Value::Integer(1))
}

fn other_type(value: &Value) -> Value {
    match value {
        Value::Octets(_) => Value::Integer(-1),
        Value::Integer(_) | Value::Gauge32(_) => Value::Octets(b"seven".to_vec()),
        _ => Value::IpAddress([0; 4]),
    }
}
