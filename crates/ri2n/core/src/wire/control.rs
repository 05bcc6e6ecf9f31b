//! Control frames: acknowledgements, probes, links, and the end.

use super::{
    Malformed, Reader,
    handshake::{ADDRESSES_MAX, Address, put_address, read_address},
    put_varint,
};
use crate::{ENTROPIES, LINKS_MAX, RangeSet};
use serde::{Deserialize, Serialize};
use smallvec::SmallVec;
use std::ops::Range;

/// Most ranges of packet numbers that one acknowledgement tells of a link.
pub const ACK_RANGES_MAX: usize = 32;

const PADDING: u8 = 0;
const ACK: u8 = 1;
const PING: u8 = 2;
const PONG: u8 = 3;
const LINK: u8 = 4;
const TROUBLE: u8 = 5;
const RESET: u8 = 6;
const ADDRESS: u8 = 7;
const LINK_BY_PORT: u8 = 8;

/// What arrived on one link.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkAck {
    /// Index of the link.
    pub link: u8,
    /// Microseconds between the arrival of the highest number and this acknowledgement.
    pub delay_us: u64,
    /// Packet numbers that arrived; at most [`ACK_RANGES_MAX`] ranges, never none.
    pub ranges: RangeSet,
}

/// What arrived on all links, and what there is room for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ack {
    /// Every stream byte below arrived.
    pub received: u64,
    /// No stream byte from here on may be sent.
    pub limit: u64,
    /// One entry a link on which something new arrived; at most [`LINKS_MAX`].
    pub links: SmallVec<[LinkAck; 2]>,
}

/// One control frame.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Control {
    /// What arrived.
    Ack(Ack),
    /// Asks for a pong with the same number on the same link.
    Ping(u64),
    /// Answers a ping.
    Pong(u64),
    /// The client uses this link to reach the server's address of this index.
    Link {
        /// Index in the list of the server's ACCEPT.
        address: u8,
        /// Largest datagram that the sender's port takes.
        mtu: u16,
        /// Data leave on the links of the lowest number that deliver.
        priority: u8,
        /// By which source port both ends send on it, below [`ENTROPIES`]; zero is a connection's own.
        entropy: u8,
    },
    /// The sender suspects some of its links (a bit each): acknowledge on every link for a while.
    Trouble(u8),
    /// The connection is over.
    Reset(u64),
    /// The server has this address now, in the place of whatever its list had there.
    Address {
        /// Index in the list of the server's ACCEPT, or one past its end; below [`ADDRESSES_MAX`].
        index: u8,
        /// The address.
        address: Address,
    },
}

/// Appends a frame.
pub fn encode(out: &mut Vec<u8>, frame: &Control) {
    match frame {
        Control::Ack(ack) => encode_ack(
            out,
            ack.received,
            ack.limit,
            ack.links.iter().map(|link| (link.link, link.delay_us, &link.ranges)),
        ),
        Control::Ping(number) => {
            out.push(PING);
            out.extend_from_slice(&number.to_le_bytes());
        }
        Control::Pong(number) => {
            out.push(PONG);
            out.extend_from_slice(&number.to_le_bytes());
        }
        Control::Link { address, mtu, priority, entropy } => {
            out.extend_from_slice(&[if *entropy == 0 { LINK } else { LINK_BY_PORT }, *address]);
            out.extend_from_slice(&mtu.to_le_bytes());
            out.push(*priority);
            out.extend((*entropy > 0).then_some(*entropy));
        }
        Control::Trouble(links) => out.extend_from_slice(&[TROUBLE, *links]),
        Control::Reset(code) => {
            out.push(RESET);
            put_varint(out, *code);
        }
        Control::Address { index, address } => {
            out.extend_from_slice(&[ADDRESS, *index]);
            put_address(out, address);
        }
    }
}

/// Appends an acknowledgement without building it first. Links without ranges are left out.
pub(crate) fn encode_ack<'a>(
    out: &mut Vec<u8>,
    received: u64,
    limit: u64,
    links: impl Iterator<Item = (u8, u64, &'a RangeSet)>,
) {
    out.push(ACK);
    put_varint(out, received);
    put_varint(out, limit);
    let count_at = out.len();
    out.push(0);
    for (link, delay_us, ranges) in links {
        let mut descending = ranges.iter().rev().take(ACK_RANGES_MAX);
        let Some(highest) = descending.next() else { continue };
        out[count_at] += 1;
        out.push(link);
        put_varint(out, delay_us);
        put_varint(out, highest.end - 1);
        put_varint(out, highest.end - highest.start - 1);
        put_varint(out, descending.len() as u64);
        let mut floor = highest.start;
        for range in descending {
            put_varint(out, floor - range.end - 1);
            put_varint(out, range.end - range.start - 1);
            floor = range.start;
        }
    }
}

/// Reads every frame.
///
/// # Errors
/// If one is cut short, unknown or contradicts itself. Frames before it were yielded.
pub fn decode(bytes: &[u8]) -> impl Iterator<Item = Result<Control, Malformed>> + '_ {
    let mut reader = Reader::new(bytes);
    let mut broken = false;
    std::iter::from_fn(move || {
        while !broken && !reader.is_empty() {
            match decode_one(&mut reader) {
                Ok(None) => {}
                Ok(Some(frame)) => return Some(Ok(frame)),
                Err(error) => {
                    broken = true;
                    return Some(Err(error));
                }
            }
        }
        None
    })
}

fn decode_one(reader: &mut Reader<'_>) -> Result<Option<Control>, Malformed> {
    Ok(Some(match reader.u8()? {
        PADDING => {
            let zeros = reader.rest().iter().take_while(|byte| **byte == PADDING).count();
            reader.bytes(zeros)?;
            return Ok(None);
        }
        ACK => Control::Ack(decode_ack(reader)?),
        PING => Control::Ping(reader.u64()?),
        PONG => Control::Pong(reader.u64()?),
        LINK => Control::Link { address: reader.u8()?, mtu: reader.u16()?, priority: reader.u8()?, entropy: 0 },
        LINK_BY_PORT => {
            let (address, mtu, priority, entropy) = (reader.u8()?, reader.u16()?, reader.u8()?, reader.u8()?);
            if !(1..ENTROPIES).contains(&entropy) {
                return Err(Malformed);
            }
            Control::Link { address, mtu, priority, entropy }
        }
        TROUBLE => Control::Trouble(reader.u8()?),
        RESET => Control::Reset(reader.varint()?),
        ADDRESS => match reader.u8()? {
            index if usize::from(index) < ADDRESSES_MAX => Control::Address { index, address: read_address(reader)? },
            _ => return Err(Malformed),
        },
        _ => return Err(Malformed),
    }))
}

fn decode_ack(reader: &mut Reader<'_>) -> Result<Ack, Malformed> {
    let (received, limit, count) = (reader.varint()?, reader.varint()?, reader.u8()?);
    if usize::from(count) > LINKS_MAX {
        return Err(Malformed);
    }
    let mut links = SmallVec::with_capacity(usize::from(count));
    for _ in 0..count {
        let (link, delay_us) = (reader.u8()?, reader.varint()?);
        let highest = reader.varint()?;
        let mut end = highest.checked_add(1).ok_or(Malformed)?;
        let mut start = highest.checked_sub(reader.varint()?).ok_or(Malformed)?;
        let more = reader.varint()?;
        if usize::from(link) >= LINKS_MAX || more >= ACK_RANGES_MAX as u64 {
            return Err(Malformed);
        }
        let mut descending: SmallVec<[Range<u64>; 4]> = SmallVec::with_capacity(more as usize + 1);
        descending.push(start..end);
        for _ in 0..more {
            end = start.checked_sub(reader.varint()?).and_then(|end| end.checked_sub(1)).ok_or(Malformed)?;
            start = end.checked_sub(reader.varint()?).and_then(|start| start.checked_sub(1)).ok_or(Malformed)?;
            descending.push(start..end);
        }
        let mut ranges = RangeSet::new();
        descending.into_iter().rev().for_each(|range| ranges.insert(range));
        links.push(LinkAck { link, delay_us, ranges });
    }
    Ok(Ack { received, limit, links })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn ranges() -> impl Strategy<Value = RangeSet> {
        proptest::collection::vec((1..1000_u64, 1..1000_u64), 1..=ACK_RANGES_MAX).prop_map(|pairs| {
            let mut set = RangeSet::new();
            let mut at = 0;
            for (gap, length) in pairs {
                set.insert(at + gap..at + gap + length);
                at += gap + length;
            }
            set
        })
    }

    fn frame() -> impl Strategy<Value = Control> {
        let link = (0..8_u8, any::<u32>(), ranges()).prop_map(|(link, delay, ranges)| LinkAck {
            link,
            delay_us: u64::from(delay),
            ranges,
        });
        prop_oneof![
            (any::<u64>(), any::<u64>(), proptest::collection::vec(link, 0..=LINKS_MAX))
                .prop_map(|(received, limit, links)| Control::Ack(Ack { received, limit, links: links.into() })),
            any::<u64>().prop_map(Control::Ping),
            any::<u64>().prop_map(Control::Pong),
            (any::<u8>(), any::<u16>(), any::<u8>(), 0..ENTROPIES)
                .prop_map(|(address, mtu, priority, entropy)| Control::Link { address, mtu, priority, entropy }),
            (0..ADDRESSES_MAX as u8, crate::wire::handshake::tests::address())
                .prop_map(|(index, address)| Control::Address { index, address }),
            any::<u8>().prop_map(Control::Trouble),
            any::<u64>().prop_map(Control::Reset),
        ]
    }

    proptest! {
        #[test]
        fn frames_survive(frames in proptest::collection::vec((frame(), 0..3_usize), 0..6)) {
            let mut bytes = Vec::new();
            for (frame, padding) in &frames {
                encode(&mut bytes, frame);
                bytes.extend(vec![PADDING; *padding]);
            }
            let read: Result<Vec<Control>, Malformed> = decode(&bytes).collect();
            prop_assert_eq!(read.unwrap(), frames.into_iter().map(|(frame, _)| frame).collect::<Vec<_>>());
        }

        #[test]
        fn any_bytes_are_taken(bytes in proptest::collection::vec(0..=255_u8, 0..200)) {
            prop_assert!(decode(&bytes).count() <= bytes.len());
        }
    }
}
