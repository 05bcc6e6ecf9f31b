//! A switch with an SNMP agent of its own in the process, and a driver connected to it.

use std::time::Duration;

use drivers::snmp::{Device, SaveMethod, Settings};
use fabric::{Mac, Model, VlanId};
use snmp::{Credentials, Link, Patience, Session};
use switchd::agent::{Access, Facts, Limits, PortFacts, PortKind, Rights};

/// What is fixed about a switch with ports p1, p2, …; port n has the ifIndex `base` + n.
pub(crate) fn facts(ports: u32, base: u32) -> Facts {
    Facts {
        description: "a switch".to_owned(),
        address: Mac::new([2, 0, 0, 0, 1, 0]),
        ports: (1..=ports)
            .map(|number| PortFacts {
                name: format!("p{number}"),
                if_index: base + number,
                mac: Mac::new([2, 0, 0, 0, 1, number as u8]),
                kind: PortKind::Own,
            })
            .collect(),
        limits: Limits::of(&Model::generic()),
    }
}

/// The community `private` may write.
pub(crate) fn access() -> Access {
    Access { communities: vec![(b"private".to_vec(), Rights::Write)], users: Vec::new() }
}

/// A driver for the switch at the other end of a link, which has ports p1, p2, ….
pub(crate) fn connect<L: Link>(link: L, ports: u32) -> Device<L> {
    let patience = Patience { timeout: Duration::from_millis(10), attempts: 1 };
    let session = Session::new(link, Credentials::Community("private".to_owned()), patience, 5);
    let names: Vec<String> = (1..=ports).map(|number| format!("p{number}")).collect();
    let settings = Settings { mark_vlan: VlanId::new(4093).expect("in range"), save: SaveMethod::Unknown };
    Device::connect(session, &names, settings).expect("a switch with these ports")
}
