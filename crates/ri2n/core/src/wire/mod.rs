//! The bytes on the wire; `docs/ri2n-protocol.md` says what they mean.
//!
//! Every parser here takes any bytes, never panics, allocates no more than the bounds below, and refuses with
//! [`Malformed`].

pub mod control;
pub mod handshake;
pub mod packet;

/// Version of the wire format.
pub const VERSION: u8 = 2;

/// Datagram payload that every path takes: IPv6's least MTU less the largest headers.
pub(crate) const DATAGRAM_MIN: u16 = 1232;

/// A datagram that is not what it should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("malformed datagram")]
pub struct Malformed;

/// Reads fields off the front of a slice. Numbers are little-endian.
#[derive(Clone, Debug)]
pub(crate) struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    pub(crate) fn rest(&self) -> &'a [u8] {
        self.rest
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    pub(crate) fn bytes(&mut self, count: usize) -> Result<&'a [u8], Malformed> {
        let (head, rest) = self.rest.split_at_checked(count).ok_or(Malformed)?;
        self.rest = rest;
        Ok(head)
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let (head, rest) = self.rest.split_first_chunk().ok_or(Malformed)?;
        self.rest = rest;
        Ok(*head)
    }

    pub(crate) fn u8(&mut self) -> Result<u8, Malformed> {
        Ok(self.array::<1>()?[0])
    }

    pub(crate) fn u16(&mut self) -> Result<u16, Malformed> {
        Ok(u16::from_le_bytes(self.array()?))
    }

    pub(crate) fn u64(&mut self) -> Result<u64, Malformed> {
        Ok(u64::from_le_bytes(self.array()?))
    }

    /// A number in base 128, lowest digits first, the top bit of each byte saying that more follow.
    pub(crate) fn varint(&mut self) -> Result<u64, Malformed> {
        let mut value = 0_u64;
        for shift in (0..64).step_by(7) {
            let byte = self.u8()?;
            let digit = u64::from(byte & 0x7f);
            if shift == 63 && digit > 1 {
                return Err(Malformed);
            }
            value |= digit << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(Malformed)
    }
}

/// Appends what [`Reader::varint`] reads.
pub(crate) fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn varints_survive(value: u64, shift in 0..64_u32) {
            let mut bytes = Vec::new();
            put_varint(&mut bytes, value >> shift);
            prop_assert_eq!(Reader::new(&bytes).varint(), Ok(value >> shift));
            prop_assert_eq!(Reader::new(&bytes[..bytes.len() - 1]).varint(), Err(Malformed));
        }
    }

    #[test]
    fn varints_end() {
        assert_eq!(Reader::new(&[0xff; 11]).varint(), Err(Malformed));
        assert_eq!(Reader::new(&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2]).varint(), Err(Malformed));
    }
}
