//! Requests to one device and their answers: who asks, how often, how long, and what is believed.
//!
//! ```text
//!   request ─▶ message ─▶ link ─▶ ··· ─▶ link ─▶ message ─▶ answer, if it is to this request and genuine
//!      ▲                    │ nothing in time: again, the same request, a few times
//!      └─ report: not in time window, unknown engine: learn the engine's clock, again
//! ```
//! Version 3 wants to know the device's engine and its clock before it can sign (RFC 3414, 4); the first request asks
//! for them. A SET that is repeated because the answer was lost may be carried out twice: everything that is written
//! here says what should be, not what should change, and what must happen once bears the device's lock (RFC 3418,
//! snmpSetSerialNo).

use std::{
    io,
    time::{Duration, Instant},
};

use fabric::VlanId;
use thiserror::Error;

use crate::{
    Link, Oid, Value,
    ahead::Ahead,
    engine as stats,
    round_trip::RoundTrip,
    wire::{
        AuthProtocol, Binding, CommunityMessage, ErrorStatus, Keys, Message, Pdu, PduKind, PrivacyProtocol, Scoped,
        ScopedData, SecurityLevel, UsmHeader, V3Message, Version, decode_scoped, decrypt, encode_scoped, encrypt,
        is_authentic, sign,
    },
};
use cancel::{ANSWER_MAX, Cancel, GLANCE, Since};

/// Reports that one request takes before the device is given up: engine, clock, and one more for a restart in between.
const REPORTS_MAX: usize = 4;
/// Datagrams that are looked at while one answer is awaited: more is a flood, or somebody else's answers.
const STRAYS_MAX: usize = 64;
/// How far behind the clock that is known an answer may be, in seconds (RFC 3414, 2.2.3).
const WINDOW_S: i32 = 150;
const MESSAGE_LEN_MAX: i32 = 65_507;

/// Who asks.
#[derive(Clone)]
pub enum Credentials {
    /// Version 2c: a word that all share, readable to whoever listens.
    Community(String),
    /// Version 3, user-based security: signed, and enciphered if there is a password for it.
    User {
        /// The name.
        name: String,
        /// The hash function.
        protocol: AuthProtocol,
        /// Signs.
        auth_password: String,
        /// Enciphers: the cipher and its password.
        privacy: Option<(PrivacyProtocol, String)>,
    },
}

impl std::fmt::Debug for Credentials {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Community(_) => f.write_str("Community(…)"),
            Self::User { name, protocol, privacy, .. } => {
                write!(f, "User({name}, {protocol:?}, {:?}, …)", privacy.as_ref().map(|(cipher, _)| cipher))
            }
        }
    }
}

/// How patient a session is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patience {
    /// How long an answer may take.
    pub timeout: Duration,
    /// After how many timeouts without an answer the device counts as unreachable.
    pub attempts: u32,
}

impl Default for Patience {
    fn default() -> Self {
        Self { timeout: Duration::from_millis(1500), attempts: 4 }
    }
}

/// Why a request has no answer.
#[derive(Debug, Error)]
pub enum SessionError {
    /// The way to the device is broken.
    #[error("cannot send or receive: {0}")]
    Link(#[source] io::Error),
    /// It does not answer.
    #[error(
        "no answer to {attempts} requests within {waited_ms} ms; is the address right, SNMP on, and the community or user known to it?"
    )]
    Silent {
        /// How often it was asked.
        attempts: u32,
        /// How long an answer was awaited in all, in milliseconds.
        waited_ms: u128,
    },
    /// It knows the user not, or by another password, or wants more protection.
    #[error("the device refuses the user: {0}")]
    Credentials(&'static str),
    /// It answered with an error status.
    #[error("the device refuses {}: {status:?}", object.as_ref().map_or_else(|| "the request".to_owned(), ToString::to_string))]
    Refused {
        /// Which status.
        status: ErrorStatus,
        /// Which object is to blame, if it said so.
        object: Option<Oid>,
    },
    /// Somebody asked to stop.
    #[error("stopped, as you asked")]
    Stopped,
    /// The answer makes no sense.
    #[error("the device's answer makes no sense: {0}")]
    Nonsense(String),
}

impl Patience {
    /// As patient with one request, and asking for so long in all.
    #[must_use]
    pub fn over(self, total: Duration) -> Self {
        let attempts = total.as_secs_f64() / self.timeout.as_secs_f64().max(0.001);
        Self { attempts: (attempts.ceil() as u32).max(self.attempts), ..self }
    }
}

/// A conversation with one device.
pub struct Session<L> {
    link: L,
    credentials: Credentials,
    patience: Patience,
    request_id: i32,
    salt: u64,
    engine: Option<Engine>,
    /// The VLAN whose bridge is spoken of, where a switch has one for each.
    context: Option<VlanId>,
    cancel: Cancel,
    /// What the token said when the present work began.
    since: Since,
    /// How long answers take.
    round_trip: RoundTrip,
    /// What the last request told beyond what it was about, if it was the walk of a column.
    ahead: Option<Ahead>,
}

/// What is known of the device's engine.
struct Engine {
    id: Vec<u8>,
    boots: i32,
    time_s: i32,
    keys: Keys,
    /// Whether it has signed anything yet: until then its name is what somebody said.
    proven: bool,
}

/// What came of one attempt.
enum AttemptOutcome {
    Answer(Pdu),
    /// The engine's clock has been learned from a report; the request is to be sent again.
    Learned,
    /// A report that refuses the user, and why.
    Refusal(&'static str),
    /// Nobody signs for it, but there is said to be another engine now.
    OtherEngine(UsmHeader),
    Nothing,
}

impl<L: Link> Session<L> {
    /// Begins a conversation; nothing is sent yet. `salt` must differ from every session to the next.
    pub fn new(link: L, credentials: Credentials, patience: Patience, salt: u64) -> Self {
        let request_id = (salt >> 33) as i32 & 0x3fff_ffff;
        let (cancel, since) = (Cancel::default(), Since::default());
        let (engine, context, round_trip, ahead) = (None, None, RoundTrip::default(), None);
        Self { link, credentials, patience, request_id, salt, engine, context, cancel, since, round_trip, ahead }
    }

    /// From now on requests are about the bridge of one VLAN, as Cisco's switches have one for each: `community@VLAN`, or
    /// SNMPv3's context `vlan-VLAN`; or about the switch again.
    pub fn set_context(&mut self, vlan: Option<VlanId>) {
        self.context = vlan;
        self.ahead = None;
    }

    /// From now on whoever holds this token can have requests end early.
    pub fn set_cancel(&mut self, cancel: Cancel) {
        self.since = cancel.now();
        self.cancel = cancel;
    }

    /// Begins a piece of work: whoever asked to stop before did not mean this.
    pub fn begin(&mut self) {
        self.since = self.cancel.now();
    }

    /// Whether somebody has asked to stop since the present work began.
    pub fn is_stopped(&self) -> bool {
        self.cancel.is_stopped(self.since)
    }

    /// Whether somebody has asked to stop, or to wait no longer, since the present work began.
    pub fn is_hurried(&self) -> bool {
        self.cancel.is_hurried(self.since)
    }

    /// From now on a request is repeated for so long before the device counts as silent.
    pub fn set_patience(&mut self, total: Duration) {
        self.patience = self.patience.over(total);
    }

    /// How often the device's engine has started, if the version tells.
    pub fn boots(&self) -> Option<i32> {
        self.engine.as_ref().map(|engine| engine.boots)
    }

    /// The name of the device's engine, if the version tells: of version 3, once it has answered.
    pub fn engine_id(&self) -> Option<&[u8]> {
        self.engine.as_ref().filter(|engine| engine.proven).map(|engine| engine.id.as_slice())
    }

    /// Values of objects; those without one come as [`Value::NoSuchObject`] or [`Value::NoSuchInstance`].
    ///
    /// # Errors
    /// [`SessionError`].
    pub fn get(&mut self, objects: &[Oid]) -> Result<Vec<Value>, SessionError> {
        let bindings = self.ask(PduKind::Get, 0, 0, asked(objects))?;
        let same =
            bindings.len() == objects.len() && bindings.iter().zip(objects).all(|((oid, _), object)| oid == object);
        if !same {
            return Err(SessionError::Nonsense("values of other objects than were asked for".to_owned()));
        }
        Ok(bindings.into_iter().map(|(_, value)| value).collect())
    }

    /// The objects behind some, up to `repetitions` rows of them.
    ///
    /// # Errors
    /// [`SessionError`].
    pub fn get_bulk(&mut self, objects: &[Oid], repetitions: i32) -> Result<Vec<Binding>, SessionError> {
        self.ask(PduKind::GetBulk, 0, repetitions, asked(objects))
    }

    /// The objects behind one in a column, up to `repetitions` of them, or those that the last request told already.
    ///
    /// # Errors
    /// [`SessionError`].
    pub(super) fn walk_on(
        &mut self,
        column: &Oid,
        behind: &Oid,
        repetitions: i32,
    ) -> Result<Vec<Binding>, SessionError> {
        if let Some(told) = self.ahead.as_ref().and_then(|ahead| ahead.behind(behind, column, Instant::now())) {
            return Ok(told.to_vec());
        }
        let answer = self.get_bulk(std::slice::from_ref(behind), repetitions)?;
        self.ahead = Some(Ahead::new(behind.clone(), &answer, Instant::now()));
        Ok(answer)
    }

    /// The objects behind some.
    ///
    /// # Errors
    /// [`SessionError`].
    pub fn get_next(&mut self, objects: &[Oid]) -> Result<Vec<Binding>, SessionError> {
        self.ask(PduKind::GetNext, 0, 0, asked(objects))
    }

    /// Writes values, all or none.
    ///
    /// # Errors
    /// [`SessionError`].
    pub fn set(&mut self, bindings: Vec<Binding>) -> Result<(), SessionError> {
        self.ask(PduKind::Set, 0, 0, bindings).map(drop)
    }

    /// Writes values that may be written twice without harm, and is as quick to repeat that as a reading.
    ///
    /// # Errors
    /// [`SessionError`].
    pub fn set_urgently(&mut self, bindings: Vec<Binding>) -> Result<(), SessionError> {
        let patience = self.quick();
        self.ask_within(patience, PduKind::Set, 0, 0, bindings).map(drop)
    }

    /// How long an answer is awaited before a request that does no harm is repeated.
    fn quick(&self) -> Duration {
        self.round_trip.patience().map_or(self.patience.timeout, |patience| patience.min(self.patience.timeout))
    }

    /// Readings are repeated early, SETs after the whole timeout, since a repeated one may be carried out twice.
    fn ask(
        &mut self,
        kind: PduKind,
        status: i32,
        index: i32,
        bindings: Vec<Binding>,
    ) -> Result<Vec<Binding>, SessionError> {
        let first_wait = if kind == PduKind::Set { self.patience.timeout } else { self.quick() };
        self.ask_within(first_wait, kind, status, index, bindings)
    }

    /// Asks, and repeats the request after `wait`, twice that, and so on.
    fn ask_within(
        &mut self,
        mut wait: Duration,
        kind: PduKind,
        status: i32,
        index: i32,
        bindings: Vec<Binding>,
    ) -> Result<Vec<Binding>, SessionError> {
        self.request_id = if self.request_id >= 0x3fff_ffff { 1 } else { self.request_id + 1 };
        let pdu = Pdu { kind, request_id: self.request_id, status, index, bindings };
        self.ahead = None;
        let (mut reports, mut attempts) = (0, 0);
        let (mut refusal, mut refusals) = (None, 0);
        let asked = self.cancel.now();
        let mut left = self.patience.timeout * self.patience.attempts.max(1);
        let waited_ms = left.as_millis();
        while !left.is_zero() {
            if self.is_stopped() {
                return Err(SessionError::Stopped);
            }
            if attempts > 0 && self.cancel.is_hurried(asked) {
                break;
            }
            let datagram = self.message(&pdu)?;
            self.link.send(&datagram).map_err(SessionError::Link)?;
            let sent = Instant::now();
            match self.hear(wait.min(left))? {
                AttemptOutcome::Answer(answer) => {
                    match attempts {
                        0 => self.round_trip.handle_answer(sent.elapsed()),
                        _ => self.round_trip.handle_late_answer(wait),
                    }
                    return judge(&pdu, answer);
                }
                AttemptOutcome::Learned if reports < REPORTS_MAX => {
                    reports += 1;
                    continue;
                }
                AttemptOutcome::Learned | AttemptOutcome::OtherEngine(_) | AttemptOutcome::Nothing => {}
                // Nobody signs that, so it may be forged, or be about a request that was garbled on its way.
                AttemptOutcome::Refusal(why) => {
                    refusal = Some(why);
                    refusals += 1;
                }
            }
            attempts += 1;
            left = left.saturating_sub(wait);
            wait = (wait * 2).min(self.patience.timeout);
        }
        // Said now and then among silence, it is the link that is bad.
        match refusal.filter(|_| 2 * refusals >= attempts) {
            Some(why) => Err(SessionError::Credentials(why)),
            None => Err(SessionError::Silent { attempts, waited_ms }),
        }
    }

    fn message(&mut self, pdu: &Pdu) -> Result<Vec<u8>, SessionError> {
        let (name, privacy) = match &self.credentials {
            Credentials::Community(word) => {
                let community = self.context.map_or_else(|| word.clone(), |vlan| format!("{word}@{vlan}")).into_bytes();
                return Ok(Message::Community(CommunityMessage { version: Version::V2c, community, pdu: pdu.clone() })
                    .encode());
            }
            Credentials::User { name, privacy, .. } => (name.clone().into_bytes(), privacy.is_some()),
        };
        let header = |level, usm, data| {
            let id = pdu.request_id;
            Message::V3(V3Message { id, max_size: MESSAGE_LEN_MAX, level, reportable: true, usm, data })
        };
        let Some(engine) = &self.engine else {
            // An empty request to an engine without a name is answered by a report that bears it.
            let empty = Pdu { kind: PduKind::Get, status: 0, index: 0, bindings: Vec::new(), ..pdu.clone() };
            let scoped = Scoped { engine_id: Vec::new(), context: Vec::new(), pdu: empty };
            let data = ScopedData::Plain(scoped);
            return Ok(header(SecurityLevel::NoAuthNoPriv, UsmHeader::default(), data).encode());
        };
        let context = self.context.map_or_else(Vec::new, |vlan| format!("vlan-{vlan}").into_bytes());
        let scoped = Scoped { engine_id: engine.id.clone(), context, pdu: pdu.clone() };
        let mut usm = UsmHeader {
            engine_id: engine.id.clone(),
            boots: engine.boots,
            time_s: engine.time_s,
            user: name,
            signature: vec![0; engine.keys.protocol.signature_len()],
            salt: Vec::new(),
        };
        let (level, data) = match (&engine.keys.privacy, privacy) {
            (Some(key), true) => {
                self.salt = self.salt.wrapping_add(1);
                let salt = self.salt.to_be_bytes();
                usm.salt = salt.to_vec();
                let cipher = encrypt(&encode_scoped(&scoped), key, engine.boots, engine.time_s, salt);
                (SecurityLevel::AuthPriv, ScopedData::Encrypted(cipher))
            }
            _ => (SecurityLevel::AuthNoPriv, ScopedData::Plain(scoped)),
        };
        let mut datagram = header(level, usm, data).encode();
        sign(&mut datagram, &engine.keys).map_err(|error| SessionError::Nonsense(error.to_string()))?;
        Ok(datagram)
    }

    fn hear(&mut self, time: Duration) -> Result<AttemptOutcome, SessionError> {
        let mut until = Instant::now() + time;
        let mut left = time;
        let (mut other_engine, mut before) = (None, Some(self.cancel.now()));
        let mut strays = 0;
        while strays < STRAYS_MAX && !left.is_zero() {
            let slice = left.min(GLANCE);
            let Some(datagram) = self.link.receive(slice).map_err(SessionError::Link)? else {
                left -= slice;
                if before.is_some_and(|before| self.cancel.is_hurried(before)) {
                    before = None;
                    left = left.min(ANSWER_MAX);
                    until = until.min(Instant::now() + left);
                }
                continue;
            };
            strays += 1;
            // What is no answer buys no time for another.
            left = until.saturating_duration_since(Instant::now());
            let heard = match (Message::decode(&datagram), &self.credentials) {
                (Ok(Message::Community(message)), Credentials::Community(_)) => {
                    Some(AttemptOutcome::Answer(message.pdu))
                }
                (Ok(Message::V3(message)), Credentials::User { .. }) => self.hear_v3(message, &datagram),
                // Garbage, or another version: not the answer.
                _ => None,
            };
            match heard {
                Some(AttemptOutcome::Answer(pdu))
                    if pdu.request_id != self.request_id || pdu.kind != PduKind::Response => {}
                Some(AttemptOutcome::OtherEngine(usm)) => other_engine = Some(usm),
                Some(heard) => return Ok(heard),
                None => {}
            }
        }
        // The engine that is known says nothing: perhaps its name is another since a restart.
        Ok(other_engine.map_or(AttemptOutcome::Nothing, |usm| self.meet(usm)))
    }

    /// An answer or a report of version 3; none for what is forged or for somebody else.
    fn hear_v3(&mut self, message: V3Message, datagram: &[u8]) -> Option<AttemptOutcome> {
        if message.id != self.request_id {
            return None;
        }
        let genuine = self.engine.as_ref().is_some_and(|engine| {
            engine.id == message.usm.engine_id
                && message.level >= SecurityLevel::AuthNoPriv
                && is_authentic(datagram, &engine.keys)
        });
        let pdu = match message.data {
            ScopedData::Plain(scoped) => scoped.pdu,
            ScopedData::Encrypted(cipher) => {
                let key = self.engine.as_ref().filter(|_| genuine).and_then(|engine| engine.keys.privacy.as_ref());
                let plain =
                    key.and_then(|key| decrypt(&cipher, key, message.usm.boots, message.usm.time_s, &message.usm.salt));
                match plain.and_then(|plain| decode_scoped(&plain).ok()) {
                    Some(scoped) => scoped.pdu,
                    None => return None,
                }
            }
        };
        if let Some(engine) = self.engine.as_mut().filter(|_| genuine) {
            engine.proven = true;
        }
        if pdu.kind == PduKind::Report {
            return self.learn(&pdu, message.usm, genuine);
        }
        if !genuine {
            return None;
        }
        if let Some(engine) = &mut self.engine {
            // Of an earlier time: somebody has kept it, and sends it again (RFC 3414, 3.2, 7b).
            let (boots, time_s) = (message.usm.boots, message.usm.time_s);
            if boots < engine.boots || (boots == engine.boots && time_s.saturating_add(WINDOW_S) < engine.time_s) {
                return None;
            }
            (engine.boots, engine.time_s) = (message.usm.boots, message.usm.time_s);
        }
        Some(AttemptOutcome::Answer(pdu))
    }

    /// Learns the engine and its clock from a report. The first comes unsigned, as nobody can sign for an engine that
    /// is not known yet; whoever forges it gains nothing but silence, since keys are made for the engine's name. Once an
    /// engine has signed something, its clock is its own to say, and another name counts only if it falls silent.
    fn learn(&mut self, report: &Pdu, usm: UsmHeader, genuine: bool) -> Option<AttemptOutcome> {
        let reported = |object: &crate::Scalar| report.bindings.iter().any(|(oid, _)| *oid == object.instance());
        if reported(&stats::UNKNOWN_ENGINE_IDS) && !genuine {
            return match self.engine.as_ref().filter(|engine| engine.proven) {
                None => Some(self.meet(usm)),
                Some(engine) if engine.id == usm.engine_id => None,
                Some(_) => Some(AttemptOutcome::OtherEngine(usm)),
            };
        }
        if reported(&stats::NOT_IN_TIME_WINDOWS) && genuine {
            return Some(self.meet(usm));
        }
        let refusals = [
            (&stats::UNKNOWN_USER_NAMES, "it knows no such user"),
            (&stats::WRONG_DIGESTS, "it has another password for signing, or another hash function"),
            (&stats::DECRYPTION_ERRORS, "it has another password for enciphering, or another cipher"),
            (&stats::UNSUPPORTED_SEC_LEVELS, "it wants another level of protection"),
        ];
        Some(match refusals.iter().find(|(object, _)| reported(object)) {
            Some((_, why)) => AttemptOutcome::Refusal(why),
            None => AttemptOutcome::Nothing,
        })
    }

    /// Takes this for the engine and its clock.
    fn meet(&mut self, usm: UsmHeader) -> AttemptOutcome {
        let Credentials::User { protocol, auth_password, privacy, .. } = &self.credentials else {
            return AttemptOutcome::Nothing;
        };
        let same = self.engine.take().filter(|engine| engine.id == usm.engine_id);
        let proven = same.as_ref().is_some_and(|engine| engine.proven);
        let privacy = privacy.as_ref().map(|(cipher, password)| (*cipher, password.as_str()));
        let keys =
            same.map_or_else(|| Keys::new(*protocol, auth_password, privacy, &usm.engine_id), |engine| engine.keys);
        self.engine = Some(Engine { id: usm.engine_id, boots: usm.boots, time_s: usm.time_s, keys, proven });
        AttemptOutcome::Learned
    }
}

fn asked(objects: &[Oid]) -> Vec<Binding> {
    objects.iter().map(|oid| (oid.clone(), Value::Null)).collect()
}

fn judge(request: &Pdu, answer: Pdu) -> Result<Vec<Binding>, SessionError> {
    if answer.status == 0 {
        return Ok(answer.bindings);
    }
    let blamed = usize::try_from(answer.index).ok().and_then(|index| index.checked_sub(1));
    let object = blamed.and_then(|index| request.bindings.get(index)).map(|(oid, _)| oid.clone());
    Err(SessionError::Refused { status: ErrorStatus::of(answer.status), object })
}
