//! What a switch says of itself and of its neighbours over LLDP, and what it has learned.
//!
//! Source: IEEE 802.1AB-2005, 9.5.2 and 9.5.3 (chassis and port identifiers).

use fabric::Mac;

use crate::printable::told;

/// A name in one of LLDP's notations.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LldpId {
    /// Which notation: the subtype of a chassis or port identifier.
    pub subtype: i32,
    /// The name in it.
    pub octets: Vec<u8>,
}

/// Subtype of a chassis identifier that is a MAC address.
pub const CHASSIS_MAC: i32 = 4;
/// Subtype of a port identifier that is a MAC address.
pub const PORT_MAC: i32 = 3;

impl LldpId {
    /// The address, if the name is one; some agents say it in letters.
    pub fn mac(&self, subtype: i32) -> Option<Mac> {
        if self.subtype != subtype {
            return None;
        }
        let mac = match <[u8; 6]>::try_from(self.octets.as_slice()) {
            Ok(octets) => Mac::new(octets),
            Err(_) => mac_in_letters(&self.octets)?,
        };
        (!mac.is_zero() && !mac.is_multicast()).then_some(mac)
    }

    /// The name as a person may be shown it: an address in the usual form, else text without control characters.
    pub fn text(&self) -> String {
        match self.octets.len() {
            6 if [PORT_MAC, CHASSIS_MAC].contains(&self.subtype) => {
                self.mac(self.subtype).map_or_else(|| told(&self.octets), |mac| mac.to_string())
            }
            _ => told(&self.octets).trim().to_owned(),
        }
    }
}

/// An address as `74:86:e2:0a:0c:04`, with hyphens, dots, spaces or nothing between.
fn mac_in_letters(octets: &[u8]) -> Option<Mac> {
    const LETTERS_MAX: usize = 18;
    let text = std::str::from_utf8(octets).ok()?.trim_end_matches('\0').trim();
    let digits: String = text.chars().filter(|c| !":-. ".contains(*c)).collect();
    if text.len() > LETTERS_MAX || digits.len() != 12 || !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    let mut mac = [0; 6];
    for (at, octet) in mac.iter_mut().enumerate() {
        *octet = u8::from_str_radix(&digits[2 * at..2 * at + 2], 16).ok()?;
    }
    Some(Mac::new(mac))
}

/// What one switch says of itself and of its neighbours.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Station {
    /// What it is called here.
    pub name: String,
    /// How it names its chassis.
    pub chassis: Option<LldpId>,
    /// Its sysName.
    pub system: String,
    /// The bridge's own address.
    pub address: Option<Mac>,
    /// Its ports.
    pub ports: Vec<StationPort>,
    /// Neighbours that it hears.
    pub heard: Vec<LldpNeighbour>,
    /// Neighbours that it hears, but not on a port that is known.
    pub unplaced: Vec<Unplaced>,
    /// Addresses that it has learned, and on which port.
    pub learned: Vec<(Mac, usize)>,
}

/// A port of a switch, by all its names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StationPort {
    /// What it is called here.
    pub name: String,
    /// How LLDP names it.
    pub id: Option<LldpId>,
    /// Other names: its description, its alias.
    pub labels: Vec<String>,
    /// Its own address.
    pub mac: Option<Mac>,
    /// The position of the LAG that it is a member of.
    pub lag: Option<usize>,
}

/// A neighbour that a switch hears.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LldpNeighbour {
    /// The position of the port in [`Station::ports`].
    pub port: usize,
    /// The neighbour's chassis.
    pub chassis: LldpId,
    /// The neighbour's port.
    pub id: LldpId,
    /// The neighbour's description of its port.
    pub description: String,
    /// The neighbour's sysName.
    pub system: String,
    /// What the neighbour says that it is.
    pub capabilities: Capabilities,
}

/// A neighbour that a switch hears, but not on a port that is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unplaced {
    /// What is known of where.
    pub at: Where,
    /// The neighbour's sysName, or its chassis.
    pub neighbour: String,
    /// What it calls its port.
    pub port: String,
}

/// Where a neighbour is heard that is heard on no known port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Where {
    /// At an interface that is no bridge port: routed, for management, or a member of a LAG.
    Interface(String),
    /// At one of two ports, by position: the number is one's bridge port and the other's ifIndex.
    Either(usize, usize),
    /// At a port, by position, but by a neighbour that does not name itself and its port.
    Unnamed(usize),
    /// Nothing is said of it.
    Nowhere,
}

/// What a neighbour says that it is (LldpSystemCapabilitiesMap): bits, the first the most significant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Capabilities(u8);

impl Capabilities {
    const BRIDGE: u8 = 0x20;
    const ROUTER: u8 = 0x08;
    const TELEPHONE: u8 = 0x04;

    /// Those of an octet string; what follows the first octet is reserved.
    pub fn of(octets: &[u8]) -> Self {
        Self(octets.first().copied().unwrap_or(0))
    }

    /// The octet that [`Self::of`] takes.
    pub fn octet(self) -> u8 {
        self.0
    }

    /// Whether frames pass through it: a bridge or a router, but no telephone with a second socket.
    pub fn is_switch(self) -> bool {
        self.0 & (Self::BRIDGE | Self::ROUTER) != 0 && self.0 & Self::TELEPHONE == 0
    }
}
