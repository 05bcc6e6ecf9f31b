//! The part of BER that SNMP uses: definite lengths, one-octet tags, and a handful of types.

use thiserror::Error;

use crate::{OID_LEN_MAX, Oid, Value};

/// Why octets are no message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum WireError {
    /// It ends too early.
    #[error("the message ends inside a field")]
    Short,
    /// A field of another kind was expected.
    #[error("a field of type {got:#04x} where {expected:#04x} belongs")]
    Tag {
        /// What belongs there.
        expected: u8,
        /// What is there.
        got: u8,
    },
    /// Octets behind the last field.
    #[error("octets behind the end of a field")]
    Trailing,
    /// A length, number or identifier that cannot be.
    #[error("a field whose content cannot be")]
    Content,
    /// A version or security model that nobody here speaks.
    #[error("an unknown version or security model")]
    Unsupported,
}

pub(super) const INTEGER: u8 = 0x02;
pub(super) const OCTETS: u8 = 0x04;
pub(super) const NULL: u8 = 0x05;
pub(super) const OID: u8 = 0x06;
pub(super) const SEQUENCE: u8 = 0x30;
const IP_ADDRESS: u8 = 0x40;
const COUNTER32: u8 = 0x41;
const GAUGE32: u8 = 0x42;
const TIME_TICKS: u8 = 0x43;
const OPAQUE: u8 = 0x44;
const COUNTER64: u8 = 0x46;
const NO_SUCH_OBJECT: u8 = 0x80;
const NO_SUCH_INSTANCE: u8 = 0x81;
const END_OF_MIB_VIEW: u8 = 0x82;

/// Reads fields one after the other.
pub(super) struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    pub(super) fn new(octets: &'a [u8]) -> Self {
        Self { rest: octets }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// The next field, whatever it is: tag and content.
    pub(super) fn any(&mut self) -> Result<(u8, &'a [u8]), WireError> {
        let [tag, first, rest @ ..] = self.rest else { return Err(WireError::Short) };
        let (len, rest) = match first {
            0..=0x7f => (usize::from(*first), rest),
            0x81..=0x84 => {
                let count = usize::from(first & 0x7f);
                let (octets, rest) = rest.split_at_checked(count).ok_or(WireError::Short)?;
                (octets.iter().fold(0, |len, octet| len << 8 | usize::from(*octet)), rest)
            }
            _ => return Err(WireError::Content),
        };
        let (content, rest) = rest.split_at_checked(len).ok_or(WireError::Short)?;
        self.rest = rest;
        Ok((*tag, content))
    }

    pub(super) fn field(&mut self, expected: u8) -> Result<&'a [u8], WireError> {
        let (got, content) = self.any()?;
        if got == expected { Ok(content) } else { Err(WireError::Tag { expected, got }) }
    }

    pub(super) fn sequence(&mut self) -> Result<Self, WireError> {
        self.field(SEQUENCE).map(Self::new)
    }

    pub(super) fn integer(&mut self) -> Result<i32, WireError> {
        signed(self.field(INTEGER)?)
    }

    pub(super) fn end(&self) -> Result<(), WireError> {
        if self.rest.is_empty() { Ok(()) } else { Err(WireError::Trailing) }
    }

    pub(super) fn oid(&mut self) -> Result<Oid, WireError> {
        oid(self.field(OID)?)
    }

    pub(super) fn value(&mut self) -> Result<Value, WireError> {
        let (tag, content) = self.any()?;
        let empty = |value| if content.is_empty() { Ok(value) } else { Err(WireError::Content) };
        match tag {
            INTEGER => signed(content).map(Value::Integer),
            OCTETS => Ok(Value::Octets(content.to_vec())),
            NULL => empty(Value::Null),
            OID => oid(content).map(Value::Oid),
            IP_ADDRESS => content.try_into().map(Value::IpAddress).map_err(|_| WireError::Content),
            COUNTER32 => unsigned32(content).map(Value::Counter32),
            GAUGE32 => unsigned32(content).map(Value::Gauge32),
            TIME_TICKS => unsigned32(content).map(Value::TimeTicks),
            OPAQUE => Ok(Value::Opaque(content.to_vec())),
            COUNTER64 => unsigned(content).map(Value::Counter64),
            NO_SUCH_OBJECT => empty(Value::NoSuchObject),
            NO_SUCH_INSTANCE => empty(Value::NoSuchInstance),
            END_OF_MIB_VIEW => empty(Value::EndOfMibView),
            got => Err(WireError::Tag { expected: NULL, got }),
        }
    }
}

fn signed(content: &[u8]) -> Result<i32, WireError> {
    let (first, rest) = content.split_first().ok_or(WireError::Content)?;
    // Agents have been seen that pad numbers; as long as the number fits, it is understood.
    if content.len() > 8 {
        return Err(WireError::Content);
    }
    let number = rest.iter().fold(i64::from(*first as i8), |number, octet| number << 8 | i64::from(*octet));
    i32::try_from(number).map_err(|_| WireError::Content)
}

fn unsigned(content: &[u8]) -> Result<u64, WireError> {
    let digits = match content {
        [] => return Err(WireError::Content),
        [0, digits @ ..] => digits,
        digits => digits,
    };
    if digits.len() > 8 {
        return Err(WireError::Content);
    }
    Ok(digits.iter().fold(0, |number, octet| number << 8 | u64::from(*octet)))
}

fn unsigned32(content: &[u8]) -> Result<u32, WireError> {
    u32::try_from(unsigned(content)?).map_err(|_| WireError::Content)
}

fn oid(content: &[u8]) -> Result<Oid, WireError> {
    let mut parts: Vec<u32> = Vec::with_capacity(content.len() + 1);
    let mut part: u64 = 0;
    let mut open = false;
    for octet in content {
        part = part << 7 | u64::from(octet & 0x7f);
        // The first number holds two parts, so it may be a little larger than one.
        if part > u64::from(u32::MAX) + 80 {
            return Err(WireError::Content);
        }
        open = octet & 0x80 != 0;
        if open {
            continue;
        }
        if parts.is_empty() {
            let first = (part / 40).min(2);
            parts.push(first as u32);
            part -= 40 * first;
        }
        parts.push(u32::try_from(part).map_err(|_| WireError::Content)?);
        part = 0;
        if parts.len() > OID_LEN_MAX {
            return Err(WireError::Content);
        }
    }
    if open { Err(WireError::Content) } else { Ok(Oid::new(&parts)) }
}

/// Appends a field.
pub(super) fn put(out: &mut Vec<u8>, tag: u8, content: &[u8]) {
    out.push(tag);
    match content.len() {
        len @ 0..=0x7f => out.push(len as u8),
        len => {
            let octets = (len as u32).to_be_bytes();
            let skip = octets.iter().take_while(|octet| **octet == 0).count();
            out.push(0x80 | (octets.len() - skip) as u8);
            out.extend(&octets[skip..]);
        }
    }
    out.extend(content);
}

pub(super) fn put_integer(out: &mut Vec<u8>, number: i32) {
    let octets = number.to_be_bytes();
    // The shortest form: a leading octet goes while the next one has the same sign and it says nothing more.
    let skip = (0..3).take_while(|at| {
        let negative = octets[at + 1] & 0x80 != 0;
        octets[*at] == if negative { 0xff } else { 0 }
    });
    let skip = skip.count();
    put(out, INTEGER, &octets[skip..]);
}

fn put_unsigned(out: &mut Vec<u8>, tag: u8, number: u64) {
    let mut octets = vec![0];
    octets.extend(number.to_be_bytes());
    let skip = (0..8).take_while(|at| octets[*at] == 0 && octets[at + 1] & 0x80 == 0).count();
    put(out, tag, &octets[skip..]);
}

pub(super) fn put_oid(out: &mut Vec<u8>, oid: &Oid) {
    let mut content = Vec::with_capacity(oid.parts().len() * 2);
    let mut put_part = |part: u64| {
        for shift in (1..5).rev().map(|group| 7 * group) {
            if part >> shift != 0 {
                content.push((part >> shift & 0x7f) as u8 | 0x80);
            }
        }
        content.push((part & 0x7f) as u8);
    };
    match oid.parts() {
        [] => {}
        [one] => put_part(40 * u64::from(*one)),
        [first, second, rest @ ..] => {
            put_part(40 * u64::from(*first) + u64::from(*second));
            rest.iter().for_each(|part| put_part(u64::from(*part)));
        }
    }
    put(out, OID, &content);
}

pub(super) fn put_value(out: &mut Vec<u8>, value: &Value) {
    match value {
        Value::Integer(number) => put_integer(out, *number),
        Value::Octets(octets) => put(out, OCTETS, octets),
        Value::Oid(oid) => put_oid(out, oid),
        Value::Null => put(out, NULL, &[]),
        Value::IpAddress(octets) => put(out, IP_ADDRESS, octets),
        Value::Counter32(number) => put_unsigned(out, COUNTER32, u64::from(*number)),
        Value::Gauge32(number) => put_unsigned(out, GAUGE32, u64::from(*number)),
        Value::TimeTicks(number) => put_unsigned(out, TIME_TICKS, u64::from(*number)),
        Value::Opaque(octets) => put(out, OPAQUE, octets),
        Value::Counter64(number) => put_unsigned(out, COUNTER64, *number),
        Value::NoSuchObject => put(out, NO_SUCH_OBJECT, &[]),
        Value::NoSuchInstance => put(out, NO_SUCH_INSTANCE, &[]),
        Value::EndOfMibView => put(out, END_OF_MIB_VIEW, &[]),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn written(value: &Value) -> Vec<u8> {
        let mut out = Vec::new();
        put_value(&mut out, value);
        out
    }

    #[test]
    fn numbers_take_the_octets_that_the_standard_says() {
        let cases: [(Value, &[u8]); 9] = [
            (Value::Integer(0), &[2, 1, 0]),
            (Value::Integer(127), &[2, 1, 127]),
            (Value::Integer(128), &[2, 2, 0, 128]),
            (Value::Integer(-128), &[2, 1, 0x80]),
            (Value::Integer(-129), &[2, 2, 0xff, 0x7f]),
            (Value::Gauge32(u32::MAX), &[0x42, 5, 0, 255, 255, 255, 255]),
            (Value::Counter64(1 << 63), &[0x46, 9, 0, 0x80, 0, 0, 0, 0, 0, 0, 0]),
            (Value::Oid("1.3.6.1.2.1.17".parse().expect("an identifier")), &[6, 6, 0x2b, 6, 1, 2, 1, 17]),
            (Value::Oid("1.0.8802".parse().expect("an identifier")), &[6, 3, 40, 0xc4, 0x62]),
        ];
        for (value, octets) in cases {
            assert_eq!(written(&value), octets, "{value:?}");
        }
    }

    #[test]
    fn fields_that_lie_about_their_length_are_refused() {
        for octets in [
            &[2_u8, 5, 1][..],
            &[4, 0x84, 0xff, 0xff, 0xff, 0xff],
            &[4, 0x80, 0, 0],
            &[4, 0x85, 0, 0, 0, 0, 0],
            &[2, 0],
            &[0x1f, 0],
        ] {
            assert!(Reader::new(octets).value().is_err(), "{octets:?}");
        }
    }

    fn values() -> impl Strategy<Value = Value> {
        let octets = prop::collection::vec(any::<u8>(), 0..300);
        let parts = (0_u32..3, 0_u32..40, prop::collection::vec(any::<u32>(), 0..30));
        prop_oneof![
            any::<i32>().prop_map(Value::Integer),
            octets.clone().prop_map(Value::Octets),
            octets.prop_map(Value::Opaque),
            parts.prop_map(|(first, second, rest)| Value::Oid(Oid::new(&[&[first, second][..], &rest].concat()))),
            any::<u32>().prop_map(Value::Counter32),
            any::<u32>().prop_map(Value::Gauge32),
            any::<u32>().prop_map(Value::TimeTicks),
            any::<u64>().prop_map(Value::Counter64),
            any::<[u8; 4]>().prop_map(Value::IpAddress),
            Just(Value::NoSuchObject),
            Just(Value::NoSuchInstance),
            Just(Value::EndOfMibView),
            Just(Value::Null),
        ]
    }

    proptest! {
        #[test]
        fn values_read_what_they_write(value in values()) {
            let octets = written(&value);
            let mut reader = Reader::new(&octets);
            prop_assert_eq!(reader.value(), Ok(value));
            prop_assert!(reader.is_empty());
        }

        #[test]
        fn no_octets_make_the_reader_panic(octets in prop::collection::vec(any::<u8>(), 0..80)) {
            let mut reader = Reader::new(&octets);
            while reader.value().is_ok() {}
        }
    }
}
