//! Packets of an established connection: fourteen bytes before the data in the common case.
//!
//! ```text
//!  0        flags: 1 wide fin data control link₂ link₁ link₀
//!  1..5     low half of the receiver's token, as it is: the connection's identifier at the receiver
//!  5..9     high half, masked by the whole packet number and the whole offset
//!  9..11    packet number on this link, low 16 bits (wide: 32)
//!  11..14   stream offset, low 24 bits (wide: 40), if there are data
//!           length and bytes of control frames, if there are any
//!           data to the end, less the tag of the connection's seal
//! ```
//!
//! An end has one socket for many connections, and finds a packet's by the identifier. Numbers are cut to what tells them from
//! their neighbours. The mask has the receiver check the token's other half against the *whole* numbers that it restored, so a
//! packet that was delayed by more than a window fails instead of landing at another offset, at no cost in bytes.

use super::{Malformed, Reader};
use serde::{Deserialize, Serialize};

/// Most bytes from a datagram's start to its data, without control frames.
pub const HEADER_MAX: usize = 1 + 8 + 4 + 5;
/// Widest window, in bytes, with which offsets fit into three bytes.
pub const NARROW_WINDOW_MAX: u64 = 1 << 22;

const ESTABLISHED: u8 = 0x80;
const WIDE: u8 = 0x40;
const FIN: u8 = 0x20;
const DATA: u8 = 0x10;
const CONTROL: u8 = 0x08;
const LINK: u8 = 0x07;

/// How many bytes numbers take, agreed by the windows in the handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Width {
    /// 16-bit packet numbers, 24-bit offsets.
    Narrow,
    /// 32-bit packet numbers, 40-bit offsets.
    Wide,
}

impl Width {
    const fn packet_bits(self) -> u32 {
        match self {
            Self::Narrow => 16,
            Self::Wide => 32,
        }
    }

    const fn offset_bits(self) -> u32 {
        match self {
            Self::Narrow => 24,
            Self::Wide => 40,
        }
    }
}

/// Whether the data of a packet end the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum End {
    /// More may follow.
    Open,
    /// The stream ends after these data.
    Fin,
}

/// What is written before the data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Index of the link that the packet travels on, below eight.
    pub link: u8,
    /// The receiver's token.
    pub token: u64,
    /// The packet's number on its link.
    pub number: u64,
    /// Offset of the data and whether they end the stream; without, the packet has none.
    pub data: Option<(u64, End)>,
}

/// A packet taken apart but not yet believed: numbers are cut, the token is masked.
#[derive(Clone, Copy, Debug)]
pub struct Raw<'a> {
    /// Index of the link that the packet travelled on.
    pub link: u8,
    width: Width,
    masked: u64,
    number: u64,
    offset: u64,
    data: Option<End>,
    /// Control frames, undecoded.
    pub control: &'a [u8],
    /// What follows: the data, and the seal's tag if there is one.
    pub payload: &'a [u8],
}

/// Bytes before the data of a packet without control frames.
#[must_use]
pub const fn data_header_len(width: Width) -> usize {
    1 + 8 + (width.packet_bits() + width.offset_bits()) as usize / 8
}

/// Appends header and control frames.
///
/// # Panics
/// If `control` is longer than 65,535 bytes.
pub fn encode(out: &mut Vec<u8>, width: Width, header: &Header, control: &[u8]) {
    let mut flags = ESTABLISHED | (header.link & LINK);
    flags |= if width == Width::Wide { WIDE } else { 0 };
    flags |= if control.is_empty() { 0 } else { CONTROL };
    flags |= match header.data {
        None => 0,
        Some((_, End::Open)) => DATA,
        Some((_, End::Fin)) => DATA | FIN,
    };
    let offset = header.data.map_or(0, |(offset, _)| offset);
    // Each field is written whole and the next one over what was cut off: no copy of odd lengths but the last.
    let mut head = [0; HEADER_MAX + 8];
    head[0] = flags;
    head[1..9].copy_from_slice(&(header.token ^ mask(header.number, offset)).to_le_bytes());
    head[9..17].copy_from_slice(&header.number.to_le_bytes());
    let mut end = 9 + width.packet_bits() as usize / 8;
    if header.data.is_some() {
        head[end..end + 8].copy_from_slice(&offset.to_le_bytes());
        end += width.offset_bits() as usize / 8;
    }
    if !control.is_empty() {
        let length = u16::try_from(control.len()).expect("control frames fit a datagram");
        head[end..end + 2].copy_from_slice(&length.to_le_bytes());
        end += 2;
    }
    out.reserve(end + control.len());
    out.extend_from_slice(&head[..end]);
    out.extend_from_slice(control);
}

/// The identifier of the connection that a packet is for, at whoever receives it; perhaps the rest was cut off.
#[must_use]
pub fn connection_id(bytes: &[u8]) -> Option<u32> {
    let (flags, rest) = bytes.split_first()?;
    let id = rest.first_chunk().map(|id| u32::from_le_bytes(*id));
    id.filter(|_| flags & ESTABLISHED != 0)
}

/// Whether a packet has control frames, which its first byte tells.
#[must_use]
pub fn has_control(bytes: &[u8]) -> bool {
    bytes.first().is_some_and(|flags| flags & CONTROL != 0)
}

/// Takes a packet apart.
///
/// # Errors
/// If the bytes are too few or are a handshake's.
pub fn decode(bytes: &[u8]) -> Result<Raw<'_>, Malformed> {
    let mut reader = Reader::new(bytes);
    let flags = reader.u8()?;
    if flags & ESTABLISHED == 0 || flags & (FIN | DATA) == FIN {
        return Err(Malformed);
    }
    let width = if flags & WIDE == 0 { Width::Narrow } else { Width::Wide };
    let masked = reader.u64()?;
    let number = match width {
        Width::Narrow => u64::from(reader.u16()?),
        Width::Wide => u64::from(u32::from_le_bytes(reader.array()?)),
    };
    let offset = match (flags & DATA, width) {
        (0, _) => 0,
        (_, Width::Narrow) => {
            let [a, b, c] = reader.array()?;
            u64::from(u32::from_le_bytes([a, b, c, 0]))
        }
        (_, Width::Wide) => {
            let [a, b, c, d, e] = reader.array()?;
            u64::from_le_bytes([a, b, c, d, e, 0, 0, 0])
        }
    };
    let control = if flags & CONTROL == 0 {
        &[][..]
    } else {
        let length = reader.u16()?;
        reader.bytes(usize::from(length))?
    };
    let data = match flags & (DATA | FIN) {
        0 => None,
        DATA => Some(End::Open),
        _ => Some(End::Fin),
    };
    Ok(Raw { link: flags & LINK, width, masked, number, offset, data, control, payload: reader.rest() })
}

impl Raw<'_> {
    /// Restores the numbers and checks the token against them. `number_expected` and `offset_expected` lie within half
    /// the cut range of the true ones, or the token does not match.
    #[must_use]
    pub fn resolve(&self, token: u64, number_expected: u64, offset_expected: u64) -> Option<Header> {
        let number = restore(self.number, self.width.packet_bits(), number_expected);
        let offset =
            if self.data.is_some() { restore(self.offset, self.width.offset_bits(), offset_expected) } else { 0 };
        (self.masked ^ mask(number, offset) == token).then_some(Header {
            link: self.link,
            token,
            number,
            data: self.data.map(|end| (offset, end)),
        })
    }
}

/// The number with these low bits that lies nearest to `expected`.
fn restore(low: u64, bits: u32, expected: u64) -> u64 {
    let (window, half) = (1_u64 << bits, 1_u64 << (bits - 1));
    let candidate = (expected & !(window - 1)) | low;
    if candidate.wrapping_add(half) <= expected && candidate < u64::MAX - window {
        candidate + window
    } else if candidate > expected.saturating_add(half) && candidate >= window {
        candidate - window
    } else {
        candidate
    }
}

/// Spreads a packet number and an offset over the high 32 bits. Not a secret: it ties the numbers to the token.
fn mask(number: u64, offset: u64) -> u64 {
    let mut mixed =
        number.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ offset.wrapping_mul(0xc2b2_ae3d_27d4_eb4f).rotate_left(31);
    mixed = (mixed ^ (mixed >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    (mixed ^ (mixed << 32)) & !u64::from(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn packets_survive(
            link in 0..8_u8, token: u64, number in 0..1_u64 << 48, offset in 0..1_u64 << 48, kind in 0..3_usize, wide: bool,
            control in proptest::collection::vec(0..=255_u8, 0..40), payload in proptest::collection::vec(0..=255_u8, 0..40),
            number_behind in 0..30_000_u64, offset_behind in 0..8_000_000_u64,
        ) {
            let width = if wide { Width::Wide } else { Width::Narrow };
            let data = [None, Some((offset, End::Open)), Some((offset, End::Fin))][kind];
            let header = Header { link, token, number, data };
            let mut bytes = Vec::new();
            encode(&mut bytes, width, &header, &control);
            bytes.extend(&payload);
            let raw = decode(&bytes).unwrap();
            prop_assert_eq!((raw.control, raw.payload), (&control[..], &payload[..]));
            let near = raw.resolve(token, number.saturating_sub(number_behind), offset.saturating_sub(offset_behind));
            prop_assert_eq!(near, Some(header));
            prop_assert_eq!(raw.resolve(token ^ 1, number, offset), None);
            prop_assert_eq!(connection_id(&bytes), Some(token as u32));
            let far = raw.resolve(token, number + (1 << 33), offset);
            prop_assert_eq!(far, None, "a number of another age is refused");
            if data.is_some() {
                prop_assert_eq!(raw.resolve(token, number, offset + (1 << 41)), None, "so is an offset");
            }
            for cut in 0..bytes.len() - payload.len() {
                prop_assert!(decode(&bytes[..cut]).is_err());
            }
        }

        #[test]
        fn any_bytes_are_taken(bytes in proptest::collection::vec(0..=255_u8, 0..64), number: u64, offset: u64) {
            if let Ok(raw) = decode(&bytes) {
                let _ = raw.resolve(7, number, offset);
                prop_assert!(connection_id(&bytes).is_some());
            }
        }
    }

    #[test]
    fn the_common_header_has_fourteen_bytes() {
        let mut bytes = Vec::new();
        let header = Header { link: 1, token: 2, number: 3, data: Some((4, End::Open)) };
        encode(&mut bytes, Width::Narrow, &header, &[]);
        assert_eq!((bytes.len(), data_header_len(Width::Narrow)), (14, 14));
        assert_eq!(data_header_len(Width::Wide), HEADER_MAX);
    }
}
