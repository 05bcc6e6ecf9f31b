//! What a switch says of itself and of its neighbours, as JSON: how the controller hands it on to whoever compares it.
//!
//! ```text
//! { "name": "sw1", "system": "sw1", "chassis": { "subtype": 4, "octets": "020000000101" },
//!   "ports": [ { "name": "p1", "id": { "subtype": 5, "octets": "7031" } } ],
//!   "heard": [ { "port": 0, "chassis": {…}, "id": {…}, "system": "sw2", "capabilities": 32 } ],
//!   "identity": { "serial": "TX12345" } }
//! ```

use fabric::Mac;
use serde::{Deserialize, Serialize};

use super::FormatError;
use crate::{
    identity::Identity,
    station::{Capabilities, LldpId, LldpNeighbour, Station, StationPort, Unplaced, Where},
};

/// A switch's own words, as JSON has them.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StationRecord {
    name: String,
    system: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    chassis: Option<Id>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    address: Option<String>,
    ports: Vec<Port>,
    heard: Vec<Heard>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    unplaced: Vec<Lost>,
    /// Addresses, each with the position of its port.
    learned: Vec<(String, usize)>,
    identity: Who,
}

/// An identifier in one of LLDP's notations; octets in hexadecimal.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Id {
    subtype: i32,
    octets: String,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Port {
    name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    id: Option<Id>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    labels: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    mac: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    lag: Option<usize>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Heard {
    port: usize,
    chassis: Id,
    id: Id,
    description: String,
    system: String,
    /// The first octet of its capabilities.
    capabilities: u8,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Lost {
    at: Place,
    neighbour: String,
    port: String,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Place {
    Interface(String),
    Either(usize, usize),
    Unnamed(usize),
    Nowhere,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Who {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    chassis: Option<Id>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    bridge: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    engine: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    serial: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    system: Option<String>,
}

impl StationRecord {
    /// Puts down what a switch said.
    pub fn of(station: &Station, identity: &Identity) -> Self {
        let port = |port: &StationPort| Port {
            name: port.name.clone(),
            id: port.id.as_ref().map(Id::of),
            labels: port.labels.clone(),
            mac: port.mac.map(|mac| mac.to_string()),
            lag: port.lag,
        };
        let heard = |heard: &LldpNeighbour| Heard {
            port: heard.port,
            chassis: Id::of(&heard.chassis),
            id: Id::of(&heard.id),
            description: heard.description.clone(),
            system: heard.system.clone(),
            capabilities: heard.capabilities.octet(),
        };
        let lost = |lost: &Unplaced| Lost {
            at: match &lost.at {
                Where::Interface(name) => Place::Interface(name.clone()),
                Where::Either(one, other) => Place::Either(*one, *other),
                Where::Unnamed(port) => Place::Unnamed(*port),
                Where::Nowhere => Place::Nowhere,
            },
            neighbour: lost.neighbour.clone(),
            port: lost.port.clone(),
        };
        Self {
            name: station.name.clone(),
            system: station.system.clone(),
            chassis: station.chassis.as_ref().map(Id::of),
            address: station.address.map(|mac| mac.to_string()),
            ports: station.ports.iter().map(port).collect(),
            heard: station.heard.iter().map(heard).collect(),
            unplaced: station.unplaced.iter().map(lost).collect(),
            learned: station.learned.iter().map(|(mac, port)| (mac.to_string(), *port)).collect(),
            identity: Who {
                chassis: identity.chassis.as_ref().map(Id::of),
                bridge: identity.bridge.map(|mac| mac.to_string()),
                engine: identity.engine.as_deref().map(hex),
                serial: identity.serial.clone(),
                system: identity.system.clone(),
            },
        }
    }

    /// What the switch said.
    ///
    /// # Errors
    /// [`FormatError::Content`], if an address or identifier is none, or a port is named that is not there.
    pub fn parse(self) -> Result<(Station, Identity), FormatError> {
        let count = self.ports.len();
        let known = |port: usize| match port < count {
            true => Ok(port),
            false => Err(FormatError::Content(format!("port {port} of {count}"))),
        };
        let mac = |text: Option<String>| text.as_deref().map(parse_mac).transpose();
        let id = |id: Option<Id>| id.map(Id::parse).transpose();
        let port = |port: Port| {
            Ok::<_, FormatError>(StationPort {
                name: port.name,
                id: id(port.id)?,
                labels: port.labels,
                mac: mac(port.mac)?,
                lag: port.lag.map(known).transpose()?,
            })
        };
        let heard = |heard: Heard| {
            Ok::<_, FormatError>(LldpNeighbour {
                port: known(heard.port)?,
                chassis: heard.chassis.parse()?,
                id: heard.id.parse()?,
                description: heard.description,
                system: heard.system,
                capabilities: Capabilities::of(&[heard.capabilities]),
            })
        };
        let lost = |lost: Lost| {
            let at = match lost.at {
                Place::Interface(name) => Where::Interface(name),
                Place::Either(one, other) => Where::Either(known(one)?, known(other)?),
                Place::Unnamed(port) => Where::Unnamed(known(port)?),
                Place::Nowhere => Where::Nowhere,
            };
            Ok::<_, FormatError>(Unplaced { at, neighbour: lost.neighbour, port: lost.port })
        };
        let learned = |(text, port): (String, usize)| Ok::<_, FormatError>((parse_mac(&text)?, known(port)?));
        let station = Station {
            name: self.name,
            chassis: id(self.chassis)?,
            system: self.system,
            address: mac(self.address)?,
            heard: self.heard.into_iter().map(heard).collect::<Result<_, _>>()?,
            unplaced: self.unplaced.into_iter().map(lost).collect::<Result<_, _>>()?,
            learned: self.learned.into_iter().map(learned).collect::<Result<_, _>>()?,
            ports: self.ports.into_iter().map(port).collect::<Result<_, _>>()?,
        };
        let Who { chassis, bridge, engine, serial, system } = self.identity;
        let engine = engine.as_deref().map(octets).transpose()?;
        Ok((station, Identity { chassis: id(chassis)?, bridge: mac(bridge)?, engine, serial, system }))
    }
}

impl Id {
    fn of(id: &LldpId) -> Self {
        Self { subtype: id.subtype, octets: hex(&id.octets) }
    }

    fn parse(self) -> Result<LldpId, FormatError> {
        Ok(LldpId { subtype: self.subtype, octets: octets(&self.octets)? })
    }
}

fn hex(octets: &[u8]) -> String {
    octets.iter().map(|octet| format!("{octet:02x}")).collect()
}

fn octets(text: &str) -> Result<Vec<u8>, FormatError> {
    let wrong = || FormatError::Content(format!("{text:?} is no even number of hexadecimal digits"));
    if !text.is_ascii() || text.len() % 2 > 0 {
        return Err(wrong());
    }
    let octet = |at: usize| u8::from_str_radix(&text[at..at + 2], 16).map_err(|_| wrong());
    (0..text.len()).step_by(2).map(octet).collect()
}

fn parse_mac(text: &str) -> Result<Mac, FormatError> {
    text.parse().map_err(|_| FormatError::Content(format!("{text:?} is no MAC address")))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn ids() -> impl Strategy<Value = LldpId> {
        (any::<i32>(), prop::collection::vec(any::<u8>(), 0..8))
            .prop_map(|(subtype, octets)| LldpId { subtype, octets })
    }

    fn macs() -> impl Strategy<Value = Mac> {
        any::<[u8; 6]>().prop_map(Mac::new)
    }

    fn ports() -> impl Strategy<Value = StationPort> {
        let labels = prop::collection::vec(".{0,4}", 0..3);
        (".{0,4}", prop::option::of(ids()), labels, prop::option::of(macs()), prop::option::of(0..3_usize))
            .prop_map(|(name, id, labels, mac, lag)| StationPort { name, id, labels, mac, lag })
    }

    fn neighbours() -> impl Strategy<Value = LldpNeighbour> {
        (0..3_usize, ids(), ids(), ".{0,4}", ".{0,4}", any::<u8>()).prop_map(
            |(port, chassis, id, description, system, capabilities)| LldpNeighbour {
                port,
                chassis,
                id,
                description,
                system,
                capabilities: Capabilities::of(&[capabilities]),
            },
        )
    }

    fn places() -> impl Strategy<Value = Where> {
        prop_oneof![
            ".{0,4}".prop_map(Where::Interface),
            (0..3_usize, 0..3_usize).prop_map(|(one, other)| Where::Either(one, other)),
            (0..3_usize).prop_map(Where::Unnamed),
            Just(Where::Nowhere),
        ]
    }

    fn stations() -> impl Strategy<Value = Station> {
        let unplaced =
            (places(), ".{0,4}", ".{0,4}").prop_map(|(at, neighbour, port)| Unplaced { at, neighbour, port });
        (
            (".{0,4}", ".{0,4}", prop::option::of(ids()), prop::option::of(macs())),
            prop::collection::vec(ports(), 3..5),
            prop::collection::vec(neighbours(), 0..4),
            prop::collection::vec(unplaced, 0..3),
            prop::collection::vec((macs(), 0..3_usize), 0..4),
        )
            .prop_map(|((name, system, chassis, address), ports, heard, unplaced, learned)| Station {
                name,
                chassis,
                system,
                address,
                ports,
                heard,
                unplaced,
                learned,
            })
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back(
            station in stations(),
            chassis in prop::option::of(ids()),
            bridge in prop::option::of(macs()),
            engine in prop::option::of(prop::collection::vec(any::<u8>(), 0..8)),
            serial in prop::option::of(".{0,4}"),
        ) {
            let identity = Identity { chassis, bridge, engine, serial, system: None };
            let text = serde_json::to_string(&StationRecord::of(&station, &identity)).expect("JSON");
            let record: StationRecord = serde_json::from_str(&text).expect("a record");
            prop_assert_eq!(record.parse().expect("a station"), (station, identity));
        }
    }

    #[test]
    fn what_cannot_be_is_refused() {
        let station = Station { ports: vec![StationPort::default()], ..Station::default() };
        let whole = serde_json::to_value(StationRecord::of(&station, &Identity::default())).expect("JSON");
        for (field, value, expected) in [
            ("learned", serde_json::json!([["02:00:00:00:00:01", 1]]), "port 1 of 1"),
            ("learned", serde_json::json!([["02:00", 0]]), "\"02:00\" is no MAC address"),
            ("chassis", serde_json::json!({"subtype": 4, "octets": "0g"}), "\"0g\" is no even number"),
            ("chassis", serde_json::json!({"subtype": 4, "octets": "é"}), "\"é\" is no even number"),
        ] {
            let mut changed = whole.clone();
            changed[field] = value;
            let record: StationRecord = serde_json::from_value(changed).expect("a record");
            let refused = record.parse().expect_err(field).to_string();
            assert!(refused.starts_with(expected), "{refused}");
        }
    }
}
