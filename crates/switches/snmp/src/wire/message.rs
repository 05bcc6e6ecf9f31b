//! Messages and what they ask.
//!
//! ```text
//! v1, v2c   { version, community, pdu }
//! v3        { 3, { id, max size, flags, model }, [ USM header ], { context engine, context, pdu } or its cipher text }
//! ```

use std::ops::Range;

use super::ber::{INTEGER, OCTETS, Reader, SEQUENCE, WireError, put, put_integer, put_oid, put_value};
use crate::{Oid, Value};

/// Most bindings of one message.
pub const BINDINGS_MAX: usize = 4096;

/// A message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message {
    /// Of version 1 or 2c.
    Community(CommunityMessage),
    /// Of version 3.
    V3(V3Message),
}

/// Versions with a community.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// SNMPv1.
    V1,
    /// SNMPv2c.
    V2c,
}

/// A message of version 1 or 2c.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommunityMessage {
    /// Which.
    pub version: Version,
    /// Who asks, by a word that all share.
    pub community: Vec<u8>,
    /// What is asked.
    pub pdu: Pdu,
}

/// A message of version 3 with the user-based security model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct V3Message {
    /// Pairs answers with requests, along with the PDU's own.
    pub id: i32,
    /// Longest message that the sender takes, in octets.
    pub max_size: i32,
    /// How it is protected.
    pub level: SecurityLevel,
    /// Whether a report may answer it.
    pub reportable: bool,
    /// Who speaks with whom, and when.
    pub usm: UsmHeader,
    /// What is asked.
    pub data: ScopedData,
}

/// How a message is protected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SecurityLevel {
    /// Not at all.
    NoAuthNoPriv,
    /// Nobody can alter it.
    AuthNoPriv,
    /// Nobody can alter or read it.
    AuthPriv,
}

/// Parameters of the user-based security model.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct UsmHeader {
    /// Whose clock counts.
    pub engine_id: Vec<u8>,
    /// How often that engine has started.
    pub boots: i32,
    /// Seconds since it last did.
    pub time_s: i32,
    /// The user.
    pub user: Vec<u8>,
    /// The signature, or as many zeros; empty if there is none.
    pub signature: Vec<u8>,
    /// The salt of the cipher; empty if there is none.
    pub salt: Vec<u8>,
}

/// The part of a version 3 message that may be secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ScopedData {
    /// As it is.
    Plain(Scoped),
    /// As cipher text.
    Encrypted(Vec<u8>),
}

/// A PDU and what it is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scoped {
    /// The engine that it is about.
    pub engine_id: Vec<u8>,
    /// Part of that engine; mostly empty.
    pub context: Vec<u8>,
    /// What is asked.
    pub pdu: Pdu,
}

/// What is asked or answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pdu {
    /// Which kind.
    pub kind: PduKind,
    /// Pairs answers with requests.
    pub request_id: i32,
    /// The error status; non-repeaters of a GETBULK.
    pub status: i32,
    /// Which binding is in error, from 1; max-repetitions of a GETBULK.
    pub index: i32,
    /// Objects and values.
    pub bindings: Vec<Binding>,
}

/// An object and its value.
pub type Binding = (Oid, Value);

/// Kinds of PDU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PduKind {
    /// Asks for values.
    Get,
    /// Asks for the values behind.
    GetNext,
    /// Answers.
    Response,
    /// Writes values.
    Set,
    /// Asks for many values behind.
    GetBulk,
    /// Tells, and wants an answer.
    Inform,
    /// Tells.
    Trap,
    /// Says why a message was refused.
    Report,
}

/// Why a request was not carried out (RFC 3416, 3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ErrorStatus {
    /// It was.
    NoError,
    /// The answer does not fit.
    TooBig,
    /// Version 1: there is no such object.
    NoSuchName,
    /// Version 1: it cannot have this value.
    BadValue,
    /// Version 1: it cannot be written.
    ReadOnly,
    /// For another reason.
    GenErr,
    /// Nobody with these rights may.
    NoAccess,
    /// A value of this type cannot be.
    WrongType,
    /// A value of this length cannot be.
    WrongLength,
    /// A value of this encoding cannot be.
    WrongEncoding,
    /// This value can never be.
    WrongValue,
    /// Such a row can never be.
    NoCreation,
    /// This value cannot be now.
    InconsistentValue,
    /// There is no room.
    ResourceUnavailable,
    /// Accepted, but it did not work, and everything is as before.
    CommitFailed,
    /// It did not work, and not everything is as before.
    UndoFailed,
    /// Who asks must not.
    AuthorizationError,
    /// It cannot be written.
    NotWritable,
    /// Such a row cannot be now.
    InconsistentName,
}

impl ErrorStatus {
    /// Every status; each one's place is its number.
    pub const ALL: [Self; 19] = [
        Self::NoError,
        Self::TooBig,
        Self::NoSuchName,
        Self::BadValue,
        Self::ReadOnly,
        Self::GenErr,
        Self::NoAccess,
        Self::WrongType,
        Self::WrongLength,
        Self::WrongEncoding,
        Self::WrongValue,
        Self::NoCreation,
        Self::InconsistentValue,
        Self::ResourceUnavailable,
        Self::CommitFailed,
        Self::UndoFailed,
        Self::AuthorizationError,
        Self::NotWritable,
        Self::InconsistentName,
    ];

    /// The number that travels.
    pub const fn code(self) -> i32 {
        self as i32
    }

    /// The status of a number; what is unknown is a general error.
    pub fn of(code: i32) -> Self {
        usize::try_from(code).ok().and_then(|code| Self::ALL.get(code).copied()).unwrap_or(Self::GenErr)
    }
}

impl Pdu {
    /// The answer to this request with these bindings.
    #[must_use]
    pub fn answer(&self, bindings: Vec<Binding>) -> Self {
        Self { kind: PduKind::Response, request_id: self.request_id, status: 0, index: 0, bindings }
    }

    /// The refusal of this request; `index` names the binding, from 1.
    #[must_use]
    pub fn refusal(&self, status: ErrorStatus, index: usize) -> Self {
        Self {
            kind: PduKind::Response,
            request_id: self.request_id,
            status: status.code(),
            index: index as i32,
            bindings: self.bindings.clone(),
        }
    }

    fn decode(reader: &mut Reader<'_>) -> Result<Self, WireError> {
        let (tag, content) = reader.any()?;
        let kind = PduKind::of(tag).ok_or(WireError::Tag { expected: PduKind::Get.tag(), got: tag })?;
        let mut pdu = Reader::new(content);
        let (request_id, status, index) = (pdu.integer()?, pdu.integer()?, pdu.integer()?);
        let mut list = pdu.sequence()?;
        pdu.end()?;
        let mut bindings = Vec::new();
        while !list.is_empty() {
            let mut binding = list.sequence()?;
            bindings.push((binding.oid()?, binding.value()?));
            binding.end()?;
            if bindings.len() > BINDINGS_MAX {
                return Err(WireError::Content);
            }
        }
        Ok(Self { kind, request_id, status, index, bindings })
    }

    fn put(&self, out: &mut Vec<u8>) {
        let mut list = Vec::new();
        let mut binding = Vec::new();
        for (oid, value) in &self.bindings {
            binding.clear();
            put_oid(&mut binding, oid);
            put_value(&mut binding, value);
            put(&mut list, SEQUENCE, &binding);
        }
        let mut content = Vec::with_capacity(list.len() + 24);
        for number in [self.request_id, self.status, self.index] {
            put_integer(&mut content, number);
        }
        put(&mut content, SEQUENCE, &list);
        put(out, self.kind.tag(), &content);
    }
}

impl PduKind {
    const TAGS: [(Self, u8); 8] = [
        (Self::Get, 0xa0),
        (Self::GetNext, 0xa1),
        (Self::Response, 0xa2),
        (Self::Set, 0xa3),
        (Self::GetBulk, 0xa5),
        (Self::Inform, 0xa6),
        (Self::Trap, 0xa7),
        (Self::Report, 0xa8),
    ];

    fn tag(self) -> u8 {
        Self::TAGS.iter().find(|(kind, _)| *kind == self).map_or(0, |(_, tag)| *tag)
    }

    fn of(tag: u8) -> Option<Self> {
        Self::TAGS.iter().find(|(_, known)| *known == tag).map(|(kind, _)| *kind)
    }
}

const FLAG_AUTH: u8 = 1;
const FLAG_PRIV: u8 = 2;
const FLAG_REPORTABLE: u8 = 4;
const MODEL_USM: i32 = 3;

impl Message {
    /// Reads a datagram.
    ///
    /// # Errors
    /// Any [`WireError`].
    pub fn decode(datagram: &[u8]) -> Result<Self, WireError> {
        let mut outer = Reader::new(datagram);
        let mut message = outer.sequence()?;
        outer.end()?;
        let version = match message.integer()? {
            0 => Version::V1,
            1 => Version::V2c,
            3 => return decode_v3(message).map(Self::V3),
            _ => return Err(WireError::Unsupported),
        };
        let community = message.field(OCTETS)?.to_vec();
        let pdu = Pdu::decode(&mut message)?;
        message.end()?;
        Ok(Self::Community(CommunityMessage { version, community, pdu }))
    }

    /// Writes a datagram; a signature is written as it is.
    pub fn encode(&self) -> Vec<u8> {
        let mut content = Vec::new();
        match self {
            Self::Community(message) => {
                put_integer(&mut content, message.version as i32);
                put(&mut content, OCTETS, &message.community);
                message.pdu.put(&mut content);
            }
            Self::V3(message) => message.put(&mut content),
        }
        let mut out = Vec::with_capacity(content.len() + 6);
        put(&mut out, SEQUENCE, &content);
        out
    }

    /// Where the signature stands in a datagram of version 3.
    ///
    /// # Errors
    /// Any [`WireError`].
    pub(super) fn signature_place(datagram: &[u8]) -> Result<Range<usize>, WireError> {
        let mut message = Reader::new(datagram).sequence()?;
        if message.integer()? != 3 {
            return Err(WireError::Unsupported);
        }
        message.field(SEQUENCE)?;
        let mut usm = Reader::new(message.field(OCTETS)?).sequence()?;
        usm.field(OCTETS)?;
        usm.field(INTEGER)?;
        usm.field(INTEGER)?;
        usm.field(OCTETS)?;
        let signature = usm.field(OCTETS)?;
        let start = signature.as_ptr() as usize - datagram.as_ptr() as usize;
        Ok(start..start + signature.len())
    }
}

impl V3Message {
    fn put(&self, out: &mut Vec<u8>) {
        put_integer(out, 3);
        let mut header = Vec::new();
        put_integer(&mut header, self.id);
        put_integer(&mut header, self.max_size);
        let level = match self.level {
            SecurityLevel::NoAuthNoPriv => 0,
            SecurityLevel::AuthNoPriv => FLAG_AUTH,
            SecurityLevel::AuthPriv => FLAG_AUTH | FLAG_PRIV,
        };
        put(&mut header, OCTETS, &[level | if self.reportable { FLAG_REPORTABLE } else { 0 }]);
        put_integer(&mut header, MODEL_USM);
        put(out, SEQUENCE, &header);
        let mut fields = Vec::new();
        put(&mut fields, OCTETS, &self.usm.engine_id);
        put_integer(&mut fields, self.usm.boots);
        put_integer(&mut fields, self.usm.time_s);
        for octets in [&self.usm.user, &self.usm.signature, &self.usm.salt] {
            put(&mut fields, OCTETS, octets);
        }
        let mut usm = Vec::new();
        put(&mut usm, SEQUENCE, &fields);
        put(out, OCTETS, &usm);
        match &self.data {
            ScopedData::Plain(scoped) => out.extend(encode_scoped(scoped)),
            ScopedData::Encrypted(octets) => put(out, OCTETS, octets),
        }
    }
}

fn decode_v3(mut message: Reader<'_>) -> Result<V3Message, WireError> {
    let mut header = message.sequence()?;
    let (id, max_size) = (header.integer()?, header.integer()?);
    let &[flags] = header.field(OCTETS)? else { return Err(WireError::Content) };
    if header.integer()? != MODEL_USM {
        return Err(WireError::Unsupported);
    }
    header.end()?;
    let level = match flags & (FLAG_AUTH | FLAG_PRIV) {
        0 => SecurityLevel::NoAuthNoPriv,
        FLAG_AUTH => SecurityLevel::AuthNoPriv,
        FLAG_PRIV => return Err(WireError::Content),
        _ => SecurityLevel::AuthPriv,
    };
    let mut outer = Reader::new(message.field(OCTETS)?);
    let mut usm = outer.sequence()?;
    outer.end()?;
    let header = UsmHeader {
        engine_id: usm.field(OCTETS)?.to_vec(),
        boots: usm.integer()?,
        time_s: usm.integer()?,
        user: usm.field(OCTETS)?.to_vec(),
        signature: usm.field(OCTETS)?.to_vec(),
        salt: usm.field(OCTETS)?.to_vec(),
    };
    usm.end()?;
    let data = match level {
        SecurityLevel::AuthPriv => ScopedData::Encrypted(message.field(OCTETS)?.to_vec()),
        SecurityLevel::NoAuthNoPriv | SecurityLevel::AuthNoPriv => ScopedData::Plain(read_scoped(&mut message)?),
    };
    message.end()?;
    Ok(V3Message { id, max_size, level, reportable: flags & FLAG_REPORTABLE != 0, usm: header, data })
}

/// Reads what was secret. Octets behind it are the cipher's padding.
///
/// # Errors
/// Any [`WireError`].
pub fn decode_scoped(octets: &[u8]) -> Result<Scoped, WireError> {
    read_scoped(&mut Reader::new(octets))
}

/// Writes what may be secret.
pub fn encode_scoped(scoped: &Scoped) -> Vec<u8> {
    let mut content = Vec::new();
    put(&mut content, OCTETS, &scoped.engine_id);
    put(&mut content, OCTETS, &scoped.context);
    scoped.pdu.put(&mut content);
    let mut out = Vec::with_capacity(content.len() + 6);
    put(&mut out, SEQUENCE, &content);
    out
}

fn read_scoped(reader: &mut Reader<'_>) -> Result<Scoped, WireError> {
    let mut scoped = reader.sequence()?;
    let (engine_id, context) = (scoped.field(OCTETS)?.to_vec(), scoped.field(OCTETS)?.to_vec());
    let pdu = Pdu::decode(&mut scoped)?;
    scoped.end()?;
    Ok(Scoped { engine_id, context, pdu })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn pdu() -> impl Strategy<Value = Pdu> {
        let kind = prop::sample::select(PduKind::TAGS.map(|(kind, _)| kind).to_vec());
        let binding = (prop::collection::vec(any::<u32>(), 0..10), any::<i32>());
        (kind, any::<i32>(), any::<i32>(), any::<i32>(), prop::collection::vec(binding, 0..6)).prop_map(
            |(kind, request_id, status, index, bindings)| {
                let oid = |parts: &[u32]| Oid::new(&[&[1, 3][..], parts].concat());
                let bindings = bindings.iter().map(|(parts, number)| (oid(parts), Value::Integer(*number))).collect();
                Pdu { kind, request_id, status, index, bindings }
            },
        )
    }

    fn octets(len: usize) -> impl Strategy<Value = Vec<u8>> {
        prop::collection::vec(any::<u8>(), 0..len)
    }

    proptest! {
        #[test]
        fn messages_with_a_community_read_what_they_write(community in octets(40), pdu in pdu()) {
            for version in [Version::V1, Version::V2c] {
                let message = Message::Community(CommunityMessage { version, community: community.clone(), pdu: pdu.clone() });
                prop_assert_eq!(Message::decode(&message.encode()), Ok(message));
            }
        }

        #[test]
        fn messages_of_version_3_read_what_they_write(
            pdu in pdu(), engine_id in octets(32), user in octets(32), signature in octets(30), salt in octets(9),
            cipher in octets(200), numbers in any::<[i32; 4]>(),
        ) {
            let scoped = Scoped { engine_id: engine_id.clone(), context: salt.clone(), pdu };
            prop_assert_eq!(decode_scoped(&encode_scoped(&scoped)), Ok(scoped.clone()));
            for (level, data) in [
                (SecurityLevel::NoAuthNoPriv, ScopedData::Plain(scoped.clone())),
                (SecurityLevel::AuthNoPriv, ScopedData::Plain(scoped.clone())),
                (SecurityLevel::AuthPriv, ScopedData::Encrypted(cipher.clone())),
            ] {
                let usm = UsmHeader {
                    engine_id: engine_id.clone(), boots: numbers[0], time_s: numbers[1], user: user.clone(),
                    signature: signature.clone(), salt: salt.clone(),
                };
                let message = Message::V3(V3Message { id: numbers[2], max_size: numbers[3], level, reportable: true, usm, data });
                let written = message.encode();
                let place = Message::signature_place(&written).expect("a message");
                prop_assert_eq!(&written[place], &signature[..]);
                prop_assert_eq!(Message::decode(&written), Ok(message));
            }
        }

        #[test]
        fn a_damaged_message_never_panics(pdu in pdu(), at in any::<prop::sample::Index>(), octet in any::<u8>(), cut in any::<prop::sample::Index>()) {
            let mut written = Message::Community(CommunityMessage { version: Version::V2c, community: b"c".to_vec(), pdu }).encode();
            let at = at.index(written.len());
            written[at] = octet;
            let _ = Message::decode(&written);
            let _ = Message::signature_place(&written);
            written.truncate(cut.index(written.len()));
            prop_assert!(Message::decode(&written).is_err());
        }
    }

    #[test]
    fn every_status_has_its_number() {
        assert!(
            (0_i32..)
                .zip(ErrorStatus::ALL)
                .all(|(code, status)| status.code() == code && ErrorStatus::of(code) == status)
        );
        assert_eq!((ErrorStatus::of(19), ErrorStatus::of(-1)), (ErrorStatus::GenErr, ErrorStatus::GenErr));
    }
}
