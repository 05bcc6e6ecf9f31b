//! Who a switch is, by what its maker gave it, and whether that is the switch of a topology.
//!
//! ```text
//!   topology  sw1: {mgmt: 192.0.2.1, id: {chassis: A, engine: E, serial: S}}
//!   192.0.2.1 says: chassis A ─▶ same     chassis B ─▶ another switch: whose `id` has B?     nothing ─▶ cannot tell
//! ```
//! A name and an address can be given to any switch, so they prove nothing. A chassis identifier and a serial number belong
//! to the hardware; an SNMP engine ID changes when SNMP is set up anew, and is copied with a configuration on some switches,
//! so it decides only where nothing else is known.
//! Source: IEEE 802.1AB-2005, 9.5.2; RFC 3411, 5 (snmpEngineID); RFC 6933 (entPhysicalSerialNum).

use fabric::{Mac, SwitchIdentity};

use crate::{
    printable::told,
    station::{CHASSIS_MAC, LldpId},
};

/// What a switch says of itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Identity {
    /// Its LLDP chassis identifier.
    pub chassis: Option<LldpId>,
    /// Its bridge's address (dot1dBaseBridgeAddress).
    pub bridge: Option<Mac>,
    /// Its SNMP engine ID.
    pub engine: Option<Vec<u8>>,
    /// The serial number of its chassis.
    pub serial: Option<String>,
    /// Its sysName.
    pub system: Option<String>,
}

/// Whether two things are one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Likeness {
    /// They are.
    Same,
    /// They are not.
    Different,
    /// One of them is not known.
    Unknown,
}

/// Item by item, whether a switch is the one that a topology means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Comparison {
    /// By its chassis identifier.
    pub chassis: Likeness,
    /// By its engine ID.
    pub engine: Likeness,
    /// By its serial number.
    pub serial: Likeness,
}

impl Comparison {
    /// Compares what a topology has with what a switch says.
    pub fn of(known: &SwitchIdentity, found: &Identity) -> Self {
        let chassis = match &known.chassis {
            Some(known) if found.chassis_texts().contains(known) => Likeness::Same,
            Some(_) if !found.chassis_texts().is_empty() => Likeness::Different,
            _ => Likeness::Unknown,
        };
        Self {
            chassis,
            engine: likeness(known.engine.as_deref(), found.engine_text().as_deref()),
            serial: likeness(known.serial.as_deref(), found.serial.as_deref()),
        }
    }

    /// What all items say together: the hardware's own decide, and the engine ID where there are none.
    pub fn verdict(&self) -> Likeness {
        let hardware = [self.chassis, self.serial];
        if hardware.contains(&Likeness::Same) {
            Likeness::Same
        } else if hardware.contains(&Likeness::Different) {
            Likeness::Different
        } else {
            self.engine
        }
    }
}

impl Identity {
    /// As a topology keeps it; its chassis is the bridge's address where it has no LLDP. A serial number that many switches
    /// have is left out.
    pub fn for_topology(&self) -> SwitchIdentity {
        let keep = |text: String| (!text.is_empty() && text.len() <= fabric::IDENTITY_BYTES_MAX).then_some(text);
        SwitchIdentity {
            chassis: self.chassis_texts().into_iter().next().and_then(keep),
            engine: self.engine_text().and_then(keep),
            serial: self.serial.clone().filter(|serial| !is_placeholder(serial)).and_then(keep),
        }
    }

    /// The engine ID in hexadecimal.
    pub fn engine_text(&self) -> Option<String> {
        let hex = |octets: &Vec<u8>| octets.iter().map(|octet| format!("{octet:02x}")).collect();
        self.engine.as_ref().filter(|octets| !octets.is_empty()).map(hex)
    }

    /// Names of the chassis: LLDP's, then the bridge's address.
    pub fn chassis_texts(&self) -> Vec<String> {
        let lldp = self.chassis.as_ref().map(chassis_text);
        lldp.into_iter().chain(self.bridge.map(|mac| mac.to_string())).filter(|text| !text.is_empty()).collect()
    }

    /// Whether this is the same device as another that answers at another address.
    pub fn is(&self, other: &Self) -> Likeness {
        let (own, others) = (self.chassis_texts(), other.chassis_texts());
        let chassis = match (own.is_empty() || others.is_empty(), own.iter().any(|text| others.contains(text))) {
            (true, _) => Likeness::Unknown,
            (false, true) => Likeness::Same,
            (false, false) => Likeness::Different,
        };
        let serial = |identity: &Self| identity.serial.clone().filter(|serial| !is_placeholder(serial));
        let serial = likeness(serial(self).as_deref(), serial(other).as_deref());
        let engine = likeness(self.engine_text().as_deref(), other.engine_text().as_deref());
        // One agent has one engine and one serial number: two of a cheap make that share an address of their chassis do not.
        match chassis {
            Likeness::Same if serial == Likeness::Different || engine == Likeness::Different => Likeness::Different,
            Likeness::Unknown if serial == Likeness::Same && engine != Likeness::Different => Likeness::Same,
            Likeness::Unknown => Likeness::Unknown,
            decided => decided,
        }
    }

    /// In words: `chassis 02:00:00:00:01:01, serial number TX12345`; empty if nothing is known.
    pub fn sentence(&self) -> String {
        let known = self.for_topology();
        let name = self.system.clone().filter(|name| !name.is_empty()).map(|name| format!("sysName {name}"));
        let engine = known.engine.filter(|_| known.chassis.is_none() && known.serial.is_none());
        let items = [
            name,
            known.chassis.map(|text| format!("chassis {text}")),
            known.serial.map(|text| format!("serial number {text}")),
            engine.map(|text| format!("engine {text}")),
        ];
        items.into_iter().flatten().collect::<Vec<_>>().join(", ")
    }
}

/// A chassis identifier as people write it: an address in its notation, anything else as text.
pub fn chassis_text(id: &LldpId) -> String {
    match <[u8; 6]>::try_from(id.octets.as_slice()) {
        Ok(octets) if id.subtype == CHASSIS_MAC => Mac::new(octets).to_string(),
        _ => told(&id.octets),
    }
}

fn likeness(known: Option<&str>, found: Option<&str>) -> Likeness {
    match (known, found) {
        (Some(known), Some(found)) if known == found => Likeness::Same,
        (Some(_), Some(_)) => Likeness::Different,
        _ => Likeness::Unknown,
    }
}

/// Whether a serial number is one that makers write where they have none: `0123456789`, `N/A`, zeros.
fn is_placeholder(serial: &str) -> bool {
    const WORDS: [&str; 8] =
        ["n/a", "na", "none", "unknown", "not specified", "default", "0123456789", "to be filled by o.e.m."];
    let plain = serial.trim().to_lowercase();
    let first = plain.chars().next();
    first.is_none_or(|first| plain.chars().all(|letter| letter == first)) || WORDS.contains(&plain.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn identity(chassis: u8, engine: u8, serial: &str) -> Identity {
        let octets = vec![2, 0, 0, 0, 0, chassis];
        Identity {
            chassis: (chassis > 0).then_some(LldpId { subtype: CHASSIS_MAC, octets }),
            engine: (engine > 0).then(|| vec![0x80, engine]),
            serial: Some(serial.to_owned()).filter(|serial| !serial.is_empty()),
            ..Identity::default()
        }
    }

    #[test]
    fn hardware_decides_and_the_engine_only_where_nothing_else_is_known() {
        let check = |known: Identity, found: Identity, expect: Likeness| {
            assert_eq!(Comparison::of(&known.for_topology(), &found).verdict(), expect, "{known:?} {found:?}");
        };
        check(identity(1, 1, "TX1"), identity(1, 1, "TX1"), Likeness::Same);
        // SNMP was set up anew; a power supply's number was read; the configuration of another switch was loaded.
        check(identity(1, 1, "TX1"), identity(1, 2, "TX1"), Likeness::Same);
        check(identity(1, 1, "TX1"), identity(1, 1, "TX2"), Likeness::Same);
        check(identity(1, 1, "TX1"), identity(2, 1, "TX2"), Likeness::Different);
        check(identity(0, 1, ""), identity(2, 1, "TX2"), Likeness::Same);
        check(identity(0, 1, ""), identity(2, 2, "TX2"), Likeness::Different);
        check(identity(1, 1, "TX1"), identity(0, 0, ""), Likeness::Unknown);
        check(identity(0, 0, ""), identity(1, 1, "TX1"), Likeness::Unknown);
        check(identity(0, 0, "N/A"), identity(0, 0, "N/A"), Likeness::Unknown);
    }

    #[test]
    fn a_bridges_address_serves_where_there_is_no_lldp() {
        let bridge = Identity { bridge: Some(Mac::new([2, 0, 0, 0, 0, 7])), ..Identity::default() };
        assert_eq!(bridge.for_topology().chassis.as_deref(), Some("02:00:00:00:00:07"));
        let both = Identity { bridge: bridge.bridge, ..identity(8, 0, "") };
        assert_eq!(Comparison::of(&bridge.for_topology(), &both).verdict(), Likeness::Same);
        assert_eq!(bridge.is(&both), Likeness::Same);
    }

    #[test]
    fn two_of_a_make_that_share_an_address_are_two() {
        assert_eq!(identity(1, 1, "TX1").is(&identity(1, 1, "TX1")), Likeness::Same);
        assert_eq!(identity(1, 1, "TX1").is(&identity(1, 2, "TX1")), Likeness::Different);
        assert_eq!(identity(1, 0, "TX1").is(&identity(1, 0, "TX2")), Likeness::Different);
        assert_eq!(identity(1, 0, "00000").is(&identity(2, 0, "00000")), Likeness::Different);
        assert_eq!(identity(0, 0, "TX1").is(&identity(2, 0, "TX1")), Likeness::Same);
        assert_eq!(identity(0, 1, "").is(&identity(0, 1, "")), Likeness::Unknown);
    }
}
