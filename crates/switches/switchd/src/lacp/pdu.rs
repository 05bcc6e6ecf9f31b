//! LACPDUs, from the subtype on.
//!
//! ```text
//! 0 subtype 1 │ 1 version │ 2 actor: type 1, length 20, information │ 22 partner: type 2, length 20, information
//!   │ 42 collector: type 3, length 16 │ 58 terminator: type 0, length 0 │ 60 reserved, to 110
//! information: 0 system priority │ 2 system │ 8 key │ 10 port priority │ 12 port │ 14 state │ 15 reserved, to 18
//! ```
//!
//! Source: IEEE 802.1AX-2014, 6.4.2.

use fabric::Mac;
use thiserror::Error;

/// What a port says of itself and of its partner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lacpdu {
    /// The port that sends.
    pub actor: PortInfo,
    /// What that port has last heard of the port that receives; all zeros if nothing.
    pub partner: PortInfo,
}

/// A port as LACP identifies it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortInfo {
    /// Priority of the system; the lower counts more.
    pub system_priority: u16,
    /// The system's address.
    pub system: Mac,
    /// The operational key: ports of one system and one key can be one LAG.
    pub key: u16,
    /// Priority of the port; the lower counts more.
    pub port_priority: u16,
    /// The port's number on its system.
    pub port: u16,
    /// What it does.
    pub state: PortState,
}

/// The bits of a port's state (IEEE 802.1AX-2014, 6.4.2.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct PortState(u8);

/// Why octets are no LACPDU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("not an LACPDU")]
pub struct LacpduError;

const SUBTYPE: u8 = 1;
const VERSION: u8 = 1;
const ACTOR: [u8; 2] = [1, 20];
const PARTNER: [u8; 2] = [2, 20];
const COLLECTOR: [u8; 2] = [3, 16];
const ACTOR_AT: usize = 2;
const PARTNER_AT: usize = 22;
const COLLECTOR_AT: usize = 42;
const LEN: usize = 110;

impl PortInfo {
    /// What is said of a partner that has not been heard.
    pub const UNKNOWN: Self =
        Self { system_priority: 0, system: Mac::new([0; 6]), key: 0, port_priority: 0, port: 0, state: PortState(0) };
}

impl PortState {
    /// LACP_Activity: it sends without being asked.
    pub const ACTIVE: Self = Self(1);
    /// LACP_Timeout: it expects a message every second, and waits for three.
    pub const SHORT_TIMEOUT: Self = Self(1 << 1);
    /// Aggregation: it can be a member of a LAG.
    pub const AGGREGATION: Self = Self(1 << 2);
    /// Synchronization: it is attached to the right LAG.
    pub const SYNCHRONIZATION: Self = Self(1 << 3);
    /// Collecting: it takes frames in.
    pub const COLLECTING: Self = Self(1 << 4);
    /// Distributing: it sends frames.
    pub const DISTRIBUTING: Self = Self(1 << 5);
    /// Defaulted: it has heard no partner.
    pub const DEFAULTED: Self = Self(1 << 6);
    /// Expired: it has not heard its partner in time.
    pub const EXPIRED: Self = Self(1 << 7);

    /// The octet of a message.
    pub const fn from_octet(octet: u8) -> Self {
        Self(octet)
    }

    /// As an octet of a message.
    pub const fn octet(self) -> u8 {
        self.0
    }

    /// Both states' bits.
    #[must_use]
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// This state's bits but those of the other.
    #[must_use]
    pub const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// The bits that both have.
    #[must_use]
    pub const fn masked(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// Whether it has every bit of the other.
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

impl Lacpdu {
    /// Reads a message, from behind the EtherType on. What follows the partner's information is not read.
    ///
    /// # Errors
    /// [`LacpduError`]: too short, another subtype of the slow protocols, or other fields than version 1 begins with.
    pub fn decode(octets: &[u8]) -> Result<Self, LacpduError> {
        let field = |at: usize, head: [u8; 2]| octets.get(at..at + 2).is_some_and(|found| found == head);
        let [SUBTYPE, (VERSION..), ..] = octets else { return Err(LacpduError) };
        if !field(ACTOR_AT, ACTOR) || !field(PARTNER_AT, PARTNER) || octets.len() < COLLECTOR_AT {
            return Err(LacpduError);
        }
        Ok(Self { actor: read(&octets[ACTOR_AT + 2..]), partner: read(&octets[PARTNER_AT + 2..]) })
    }

    /// Writes a message.
    pub fn encode(&self) -> Vec<u8> {
        let mut octets = vec![SUBTYPE, VERSION];
        for (head, info) in [(ACTOR, &self.actor), (PARTNER, &self.partner)] {
            octets.extend(head);
            write(info, &mut octets);
        }
        octets.extend(COLLECTOR);
        octets.resize(LEN, 0);
        octets
    }
}

/// Reads a port's information; there are 15 octets of it.
fn read(octets: &[u8]) -> PortInfo {
    let word = |at: usize| u16::from_be_bytes([octets[at], octets[at + 1]]);
    PortInfo {
        system_priority: word(0),
        system: Mac::new(std::array::from_fn(|octet| octets[2 + octet])),
        key: word(8),
        port_priority: word(10),
        port: word(12),
        state: PortState(octets[14]),
    }
}

fn write(info: &PortInfo, octets: &mut Vec<u8>) {
    octets.extend(info.system_priority.to_be_bytes());
    octets.extend(info.system.octets());
    octets.extend(info.key.to_be_bytes());
    octets.extend(info.port_priority.to_be_bytes());
    octets.extend(info.port.to_be_bytes());
    octets.extend([info.state.octet(), 0, 0, 0]);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    prop_compose! {
        fn any_info()(system: [u8; 6], words: [u16; 4], state: u8) -> PortInfo {
            let [system_priority, key, port_priority, port] = words;
            PortInfo { system_priority, system: Mac::new(system), key, port_priority, port, state: PortState(state) }
        }
    }

    proptest! {
        #[test]
        fn messages_read_what_they_write(actor in any_info(), partner in any_info()) {
            let pdu = Lacpdu { actor, partner };
            let octets = pdu.encode();
            prop_assert_eq!(octets.len(), LEN);
            prop_assert_eq!(Lacpdu::decode(&octets), Ok(pdu));
            // The check sequence and padding may follow; nothing may be missing.
            prop_assert_eq!(Lacpdu::decode(&[&octets[..], &[7; 20]].concat()), Ok(pdu));
            for short in 0..COLLECTOR_AT {
                prop_assert_eq!(Lacpdu::decode(&octets[..short]), Err(LacpduError));
            }
        }

        #[test]
        fn no_octets_make_the_reader_panic(octets in prop::collection::vec(any::<u8>(), 0..130), at in 0_usize..44) {
            let _ = Lacpdu::decode(&octets);
            // Octets that begin as an LACPDU does, and go on otherwise.
            let whole = Lacpdu { actor: PortInfo::UNKNOWN, partner: PortInfo::UNKNOWN }.encode();
            let _ = Lacpdu::decode(&[&whole[..at], &octets].concat());
        }
    }

    #[test]
    fn other_slow_protocols_are_refused() {
        let octets = Lacpdu { actor: PortInfo::UNKNOWN, partner: PortInfo::UNKNOWN }.encode();
        for (at, octet) in [(0, 2), (1, 0), (2, 3), (3, 19), (22, 1), (23, 0)] {
            let mut other = octets.clone();
            other[at] = octet;
            assert_eq!(Lacpdu::decode(&other), Err(LacpduError), "octet {at} is {octet}");
        }
        let mut newer = octets;
        newer[1] = 2;
        assert!(Lacpdu::decode(&newer).is_ok(), "later versions begin alike");
    }
}
