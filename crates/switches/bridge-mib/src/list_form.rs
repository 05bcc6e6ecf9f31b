//! How a switch writes its lists of ports. RFC 4363 has one form; agents have more.
//!
//! ```text
//!   81 40               bits, the standard's: 1, 8 and 10
//!   "1,8,10"            decimals (Junos): read
//!   00 00 00 0f         bits at the right-hand end, port 1 the last (D-Link DES)             ┐
//!   00 01 00 08 00 0a   numbers of 16 bits (Brocade ICX)                                     │ refused, by name
//!   "8140"              the bits in hexadecimal digits (ZTE)                                 │
//!   00 1f               bits that are none of the switch's ports: trunks, CPUs, internal ones ┘
//! ```
//! The form is that of all of a switch's lists together: one that fits every list, where no other does. What is not the
//! standard's may be read where it leaves no doubt; it is never written.

use std::{collections::BTreeSet, fmt};

use super::{PortList, PortListError};

/// How a switch writes its lists of ports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ListForm {
    /// A bit a port, the lowest port in the most significant bit (RFC 4363, PortList).
    #[default]
    Bits,
    /// Decimal numbers with commas, in letters.
    Decimals,
}

/// Lists of ports that are not read, and what they look like.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OddLists {
    /// The last bit is port 1.
    RightAligned,
    /// Numbers of 16 bits.
    Words,
    /// Bits in hexadecimal digits.
    HexDigits,
    /// The switch's ports are numbered from 0, and a list has no bit for that.
    NoBitForZero,
    /// Bits and decimals fit both.
    Ambiguous,
    /// Some numbers are none of the switch's ports: those, ascending, at most four.
    Foreign(Vec<u32>),
}

/// Numbers that are named of ports that are not there.
const FOREIGN_MAX: usize = 4;

impl ListForm {
    /// The form that all of a switch's lists have; `ports` are those that the switch says it has.
    ///
    /// Cost: linear in the lists' octets, times the logarithm of the number of ports.
    ///
    /// # Errors
    /// [`OddLists`]: no list of them may be read.
    pub fn of(lists: &[&[u8]], ports: &BTreeSet<u32>) -> Result<Self, OddLists> {
        let said: Vec<&[u8]> = lists.iter().copied().filter(|list| list.iter().any(|octet| *octet != 0)).collect();
        if said.is_empty() {
            return Ok(Self::Bits);
        }
        let all = |numbers: fn(&[u8]) -> Option<Vec<u32>>, known: &dyn Fn(&u32) -> bool| {
            said.iter().all(|list| numbers(list).is_some_and(|numbers| numbers.iter().all(known)))
        };
        // No list holds a port 0.
        let known = |port: &u32| *port != 0 && ports.contains(port);
        let bits_fit = all(bits, &known);
        match (bits_fit && !ports.contains(&0), all(decimals, &known)) {
            (true, false) => return Ok(Self::Bits),
            (false, true) => return Ok(Self::Decimals),
            (true, true) => return Err(OddLists::Ambiguous),
            (false, false) => {}
        }
        let is_comma = said.iter().any(|list| list.contains(&b','));
        if !is_comma && all(hex_digits, &|_| true) {
            return Err(OddLists::HexDigits);
        }
        if ports.contains(&0) {
            return Err(OddLists::NoBitForZero);
        }
        // Only where lists have more bits than there are ports is there a side to be aligned to.
        let last = ports.last().copied().unwrap_or(0) as usize;
        if said.iter().all(|list| 8 * list.len() > last) && all(from_the_right, &known) {
            return Err(OddLists::RightAligned);
        }
        if all(words, &|number| *number == 0 || ports.contains(number)) {
            return Err(OddLists::Words);
        }
        let numbers = if all(decimals, &|_| true) { decimals } else { bits };
        let foreign: BTreeSet<u32> =
            said.iter().filter_map(|list| numbers(list)).flatten().filter(|port| !ports.contains(port)).collect();
        Err(OddLists::Foreign(foreign.into_iter().take(FOREIGN_MAX).collect()))
    }

    /// The ports of a list in this form.
    ///
    /// # Errors
    /// [`PortListError`] for a list that is too long, or has a number that no list can hold; a list that is not of this
    /// form is an empty one's error, [`PortListError::NoPort`] of 0.
    pub fn decode(self, octets: &[u8]) -> Result<PortList, PortListError> {
        match self {
            Self::Bits => PortList::decode(octets),
            Self::Decimals if octets.iter().all(|octet| *octet == 0) => Ok(PortList::new()),
            Self::Decimals => PortList::of(decimals(octets).ok_or(PortListError::NoPort(0))?),
        }
    }
}

impl fmt::Display for OddLists {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::RightAligned => f.write_str("are right-aligned: the last bit is port 1"),
            Self::Words => f.write_str("are numbers of 16 bits instead of a bit for each port"),
            Self::HexDigits => f.write_str("are bits written as hexadecimal digits"),
            Self::NoBitForZero => f.write_str("are of ports numbered from 0, for which a PortList has no bit"),
            Self::Ambiguous => f.write_str("can be read as bits and as decimal numbers"),
            Self::Foreign(ports) => {
                let ports: Vec<String> = ports.iter().map(u32::to_string).collect();
                write!(f, "name bridge ports that the switch does not have, such as {}", ports.join(", "))
            }
        }
    }
}

fn bits(list: &[u8]) -> Option<Vec<u32>> {
    Some(PortList::decode(list).ok()?.iter().collect())
}

/// The numbers of the bits that are set, counted from the last.
fn from_the_right(list: &[u8]) -> Option<Vec<u32>> {
    let mirrored: Vec<u8> = list.iter().rev().map(|octet| octet.reverse_bits()).collect();
    bits(&mirrored)
}

fn words(list: &[u8]) -> Option<Vec<u32>> {
    let pairs = list.chunks_exact(2);
    pairs.remainder().is_empty().then(|| pairs.map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]]))).collect())
}

/// Numbers with commas between; none for anything else, a number of more than nine digits included.
fn decimals(list: &[u8]) -> Option<Vec<u32>> {
    let text = std::str::from_utf8(list).ok()?.trim_end_matches('\0');
    let number = |part: &str| {
        let digits = (1..=9).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_digit());
        if digits { part.parse().ok() } else { None }
    };
    text.split(',').map(number).collect()
}

/// An even number of hexadecimal digits; what they stand for is of no use.
fn hex_digits(list: &[u8]) -> Option<Vec<u32>> {
    let digits = list.strip_prefix(b"0x").unwrap_or(list);
    (digits.len() >= 2 && digits.len() % 2 == 0 && digits.iter().all(u8::is_ascii_hexdigit)).then(Vec::new)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn form(lists: &[&[u8]], ports: impl IntoIterator<Item = u32>) -> Result<ListForm, OddLists> {
        ListForm::of(lists, &ports.into_iter().collect())
    }

    #[test]
    fn forms_are_told_by_all_lists_together() {
        assert_eq!(form(&[&[0x81, 0x40], &[0x40, 0]], 1..=10), Ok(ListForm::Bits));
        assert_eq!(form(&[&[0, 0], &[]], 1..=10), Ok(ListForm::Bits));
        assert_eq!(form(&[b"491,492", b"", b"500"], 490..=510), Ok(ListForm::Decimals));
        assert_eq!(form(&[b"2,4"], [0, 2, 4, 6]), Ok(ListForm::Decimals));
        assert_eq!(form(&[b"0,2,4"], [0, 2, 4, 6]), Err(OddLists::NoBitForZero));
        assert_eq!(form(&[&[0, 0, 0, 0x0f], &[0, 0, 0, 0x03]], 1..=4), Err(OddLists::RightAligned));
        assert_eq!(form(&[&[0xa0, 0x02]], (2..=16).filter(|port| *port != 3)), Err(OddLists::Foreign(vec![1, 3])));
        assert_eq!(form(&[&[0, 0, 0, 1, 0, 9]], 1..=9), Err(OddLists::Words));
        assert_eq!(form(&[b"c000", b"0000"], 1..=10), Err(OddLists::HexDigits));
        assert_eq!(form(&[b"00000000000000"], 1..=52), Err(OddLists::HexDigits));
        assert_eq!(form(&[&[0x80]], 0..=7), Err(OddLists::NoBitForZero));
        assert_eq!(form(&[&[0xc0, 0x01]], 1..=4), Err(OddLists::Foreign(vec![16])));
        assert_eq!(form(&[b"491,7000"], 490..=510), Err(OddLists::Foreign(vec![7000])));
        // 0x31 is port 3, 4 and 8, or the digit 1.
        assert_eq!(form(&[b"1"], 1..=8), Err(OddLists::Ambiguous));
        assert_eq!(form(&[b"1", &[0xff]], 1..=8), Ok(ListForm::Bits));
    }

    proptest! {
        #[test]
        fn what_is_read_is_what_was_written(ports in prop::collection::btree_set(1_u32..400, 1..60), some in any::<u64>(), commas in any::<bool>()) {
            let listed: Vec<u32> = ports.iter().copied().filter(|port| some >> (port % 64) & 1 == 1).collect();
            let list = if commas {
                listed.iter().map(u32::to_string).collect::<Vec<_>>().join(",").into_bytes()
            } else {
                PortList::of(listed.iter().copied()).expect("ports").encode(50)
            };
            // Either the form is known and the ports are right, or it is refused.
            if let Ok(form) = ListForm::of(&[&list], &ports) {
                let read: Vec<u32> = form.decode(&list).expect("a list").iter().collect();
                prop_assert_eq!(read, listed);
            } else {
                prop_assert!(commas || list.iter().all(u8::is_ascii_digit));
            }
        }

        #[test]
        fn no_member_is_invented(list in prop::collection::vec(any::<u8>(), 0..40), ports in prop::collection::btree_set(0_u32..300, 0..60)) {
            if let Ok(form) = ListForm::of(&[&list], &ports) {
                let read = form.decode(&list).expect("a list");
                prop_assert!(read.iter().all(|port| ports.contains(&port)));
            }
        }
    }
}
