//! The protocol around a responder: who asks, whether the message is genuine and fresh, and how the answer is protected.
//!
//! Version 2c knows a community, version 3 a user (RFC 3414): a message for another engine, from an unknown user, altered, or
//! older than 150 seconds is answered by a report that says which, and counted. Version 1 is not spoken.

use super::responder::{Answer, MESSAGE_LEN_MAX, Responder, Rights};
use snmp::{
    Scalar, Value, engine as stats,
    wire::{
        CommunityMessage, Keys, Message, Pdu, PduKind, Scoped, ScopedData, SecurityLevel, UsmHeader, V3Message,
        Version, decode_scoped, decrypt, encode_scoped, encrypt, is_authentic, sign,
    },
};

/// Octets around the bindings of a message, but for names and signature: headers, salt.
const ENVELOPE_LEN: usize = 96;
/// Shortest message that everybody takes (RFC 3417).
const MESSAGE_LEN_MIN: i32 = 484;
/// How far two clocks may differ.
const WINDOW_S: i32 = 150;

/// Who may do what.
#[derive(Clone, Debug, Default)]
pub struct Access {
    /// Communities of version 2c.
    pub communities: Vec<(Vec<u8>, Rights)>,
    /// Users of version 3.
    pub users: Vec<User>,
}

/// A user of version 3, who always signs, and enciphers if there is a key for it.
#[derive(Clone, Debug)]
pub struct User {
    /// The name.
    pub name: Vec<u8>,
    /// The keys on this engine.
    pub keys: Keys,
    /// What the user may do.
    pub rights: Rights,
}

/// An answer on its way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    /// What is sent.
    pub datagram: Vec<u8>,
    /// After how long.
    pub delay_ms: u64,
}

/// An SNMP engine that answers.
pub struct Engine<R> {
    responder: R,
    access: Access,
    engine_id: Vec<u8>,
    salt: u64,
    counts: [u32; 7],
}

/// Why a message is refused: the order is that of `counts`.
const REASONS: [&Scalar; 7] = [
    &stats::UNSUPPORTED_SEC_LEVELS,
    &stats::NOT_IN_TIME_WINDOWS,
    &stats::UNKNOWN_USER_NAMES,
    &stats::UNKNOWN_ENGINE_IDS,
    &stats::WRONG_DIGESTS,
    &stats::DECRYPTION_ERRORS,
    &stats::UNKNOWN_CONTEXTS,
];

impl<R: Responder> Engine<R> {
    /// An engine of this identifier. `salt` must differ from every start to the next.
    pub fn new(responder: R, access: Access, engine_id: &[u8], salt: u64) -> Self {
        Self { responder, access, engine_id: engine_id.to_vec(), salt, counts: [0; 7] }
    }

    /// Who answers.
    pub fn responder(&mut self) -> &mut R {
        &mut self.responder
    }

    /// Takes a datagram; what is to be sent back, if anything.
    pub fn handle_datagram(&mut self, now_ms: u64, datagram: &[u8]) -> Option<Reply> {
        match Message::decode(datagram).ok()? {
            Message::Community(message) => self.community(now_ms, &message),
            Message::V3(message) => self.v3(now_ms, &message, datagram),
        }
    }

    fn community(&mut self, now_ms: u64, message: &CommunityMessage) -> Option<Reply> {
        let rights = self.access.communities.iter().find(|(word, _)| *word == message.community)?.1;
        if message.version == Version::V1 {
            return None;
        }
        let room = MESSAGE_LEN_MAX - ENVELOPE_LEN;
        let (pdu, delay_ms) = match self.responder.answer(now_ms, &message.pdu, rights, room) {
            Answer::Pdu(pdu) => (pdu, 0),
            Answer::Late { pdu, delay_ms } => (pdu, delay_ms),
            Answer::Octets(datagram) => return Some(Reply { datagram, delay_ms: 0 }),
            Answer::Nothing => return None,
        };
        Some(Reply { datagram: Message::Community(CommunityMessage { pdu, ..message.clone() }).encode(), delay_ms })
    }

    fn v3(&mut self, now_ms: u64, message: &V3Message, datagram: &[u8]) -> Option<Reply> {
        let usm = &message.usm;
        if usm.engine_id != self.engine_id {
            return self.report(now_ms, message, &stats::UNKNOWN_ENGINE_IDS, None);
        }
        let Some(user) = self.access.users.iter().find(|user| user.name == usm.user).cloned() else {
            return self.report(now_ms, message, &stats::UNKNOWN_USER_NAMES, None);
        };
        let required = if user.keys.privacy.is_some() { SecurityLevel::AuthPriv } else { SecurityLevel::AuthNoPriv };
        if message.level != required {
            return self.report(now_ms, message, &stats::UNSUPPORTED_SEC_LEVELS, None);
        }
        if !is_authentic(datagram, &user.keys) {
            return self.report(now_ms, message, &stats::WRONG_DIGESTS, None);
        }
        let clock = self.responder.clock(now_ms);
        if usm.boots != clock.boots || usm.time_s.abs_diff(clock.time_s) > WINDOW_S as u32 {
            return self.report(now_ms, message, &stats::NOT_IN_TIME_WINDOWS, Some(&user));
        }
        let scoped = match (&message.data, &user.keys.privacy) {
            (ScopedData::Plain(scoped), _) => Some(scoped.clone()),
            (ScopedData::Encrypted(octets), Some(key)) => {
                let plain = decrypt(octets, key, usm.boots, usm.time_s, &usm.salt);
                plain.and_then(|plain| decode_scoped(&plain).ok())
            }
            (ScopedData::Encrypted(_), None) => None,
        };
        let Some(scoped) = scoped else {
            return self.report(now_ms, message, &stats::DECRYPTION_ERRORS, Some(&user));
        };
        if !scoped.context.is_empty() {
            return self.report(now_ms, message, &stats::UNKNOWN_CONTEXTS, Some(&user));
        }
        let room = message.max_size.clamp(MESSAGE_LEN_MIN, MESSAGE_LEN_MAX as i32) as usize - ENVELOPE_LEN;
        let around = 2 * self.engine_id.len() + user.name.len() + user.keys.protocol.signature_len();
        let room = room.saturating_sub(around);
        let (pdu, delay_ms) = match self.responder.answer(now_ms, &scoped.pdu, user.rights, room) {
            Answer::Pdu(pdu) => (pdu, 0),
            Answer::Late { pdu, delay_ms } => (pdu, delay_ms),
            Answer::Octets(datagram) => return Some(Reply { datagram, delay_ms: 0 }),
            Answer::Nothing => return None,
        };
        Some(Reply { datagram: self.protect(now_ms, message.id, message.level, Some(&user), pdu), delay_ms })
    }

    /// Says why a message is refused. Only a report about a genuine message is signed.
    fn report(&mut self, now_ms: u64, message: &V3Message, why: &Scalar, user: Option<&User>) -> Option<Reply> {
        let at = REASONS.iter().position(|reason| *reason == why).expect("every reason is counted");
        self.counts[at] = self.counts[at].wrapping_add(1);
        if !message.reportable {
            return None;
        }
        let request_id = match &message.data {
            ScopedData::Plain(scoped) => scoped.pdu.request_id,
            ScopedData::Encrypted(_) => 0,
        };
        let bindings = vec![(why.instance(), Value::Counter32(self.counts[at]))];
        let pdu = Pdu { kind: PduKind::Report, request_id, status: 0, index: 0, bindings };
        let level = if user.is_some() { SecurityLevel::AuthNoPriv } else { SecurityLevel::NoAuthNoPriv };
        Some(Reply { datagram: self.protect(now_ms, message.id, level, user, pdu), delay_ms: 0 })
    }

    fn protect(&mut self, now_ms: u64, id: i32, level: SecurityLevel, user: Option<&User>, pdu: Pdu) -> Vec<u8> {
        let clock = self.responder.clock(now_ms);
        let mut usm = UsmHeader {
            engine_id: self.engine_id.clone(),
            boots: clock.boots,
            time_s: clock.time_s,
            user: user.map(|user| user.name.clone()).unwrap_or_default(),
            ..UsmHeader::default()
        };
        let keys = user.map(|user| &user.keys).filter(|_| level > SecurityLevel::NoAuthNoPriv);
        if let Some(keys) = keys {
            usm.signature = vec![0; keys.protocol.signature_len()];
        }
        let scoped = Scoped { engine_id: self.engine_id.clone(), context: Vec::new(), pdu };
        let key = keys.and_then(|keys| keys.privacy.as_ref()).filter(|_| level == SecurityLevel::AuthPriv);
        let data = match key {
            None => ScopedData::Plain(scoped),
            Some(key) => {
                self.salt = self.salt.wrapping_add(1);
                let salt = self.salt.to_be_bytes();
                usm.salt = salt.to_vec();
                ScopedData::Encrypted(encrypt(&encode_scoped(&scoped), key, clock.boots, clock.time_s, salt))
            }
        };
        let max_size = MESSAGE_LEN_MAX as i32;
        let message = V3Message { id, max_size, level, reportable: false, usm, data };
        let mut datagram = Message::V3(message).encode();
        if let Some(keys) = keys {
            sign(&mut datagram, keys).expect("the message has room for its signature");
        }
        datagram
    }
}
