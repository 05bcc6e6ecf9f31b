//! LAGs over SNMP of a switch whose members are no bridge ports: each port is told apart by its interface, and what a member
//! hears by LLDP is put down at that member.

#[path = "../../switchd/tests/common/wire.rs"]
mod wire;

use std::sync::{Arc, Mutex};

use bridge_mib::{IfStatus, LldpChassisSubtype, LldpPortSubtype, index::Neighbour};
use drivers::snmp::{Device, SaveMethod, Settings};
use fabric::{Mac, Model, VlanId};
use snmp::{Credentials, Patience, Session};
use switch_model::{
    LagMembership, Slot,
    driver::{Addresses, Driver as _},
    sight::PortState,
};
use switchd::agent::{
    Access, Change, Config, DataPlane, Engine, Facts, Limits, NeighbourInfo, PortFacts, PortKind, Refused, Rights,
    Sensors, Switch,
};

use wire::Wire;

const ENGINE: &[u8] = &[0x80, 0, 0x1f, 0x88, 4, b'l'];
/// As the switch counts them from 1: two LAGs between their members.
const PORTS: [(&str, PortKind); 6] = [
    ("p1", PortKind::Member { lag: 2 }),
    ("lag1", PortKind::Lag),
    ("p2", PortKind::Member { lag: 2 }),
    ("p3", PortKind::Member { lag: 5 }),
    ("lag2", PortKind::Lag),
    ("p4", PortKind::Own),
];
/// The names in the topology's order.
const NAMES: [&str; 6] = ["lag1", "lag2", "p1", "p2", "p3", "p4"];

/// A plane that hears another port of one neighbour at every port with a cable; p2 has no carrier.
struct Hearing;

impl DataPlane for Hearing {
    fn observe(&mut self, _: u32, sensors: &mut Sensors) {
        for (number, (name, kind)) in (1..).zip(PORTS) {
            sensors.ports[number as usize - 1].oper = if name == "p2" { IfStatus::Down } else { IfStatus::Up };
            if kind == PortKind::Lag {
                continue;
            }
            let info = NeighbourInfo {
                chassis_subtype: LldpChassisSubtype::Mac,
                chassis_id: vec![2, 0, 0, 0, 0, 9],
                port_subtype: LldpPortSubtype::Name,
                port_id: format!("far-{name}").into_bytes(),
                port_description: Vec::new(),
                system_name: b"far".to_vec(),
                system_description: Vec::new(),
                capabilities: 4,
                capabilities_enabled: 4,
            };
            sensors.neighbours.rows.insert(Neighbour { time_mark: 1, local_port: number, index: number }, info);
        }
    }

    fn apply(&mut self, _: &Config, _: &[Change]) -> Result<(), Refused> {
        Ok(())
    }
}

fn device() -> Device<Wire<Switch<Hearing>>> {
    let port = |(number, (name, kind)): (u32, (&str, PortKind))| PortFacts {
        name: name.to_owned(),
        if_index: 100 + number,
        mac: Mac::local(number),
        kind,
    };
    let facts = Facts {
        description: "a switch with LAGs".to_owned(),
        address: Mac::local(0xaa),
        ports: (1..).zip(PORTS).map(port).collect(),
        limits: Limits::of(&Model::generic()),
    };
    let config = facts.factory();
    let switch = Switch::new(facts, config, Hearing, ENGINE, 1, 0);
    let access = Access { communities: vec![(b"private".to_vec(), Rights::Write)], users: Vec::new() };
    let agent = Arc::new(Mutex::new(Engine::new(switch, access, ENGINE, 1)));
    let wire = Wire::new(&agent, &Arc::new(Mutex::new(1000)), 1);
    let session = Session::new(wire, Credentials::Community("private".to_owned()), Patience::default(), 1);
    let settings = Settings { mark_vlan: VlanId::new(4093).expect("in range"), save: SaveMethod::Unknown };
    Device::connect(session, &NAMES.map(str::to_owned), settings).expect("a switch with these ports")
}

#[test]
fn members_are_read_as_members_of_their_lags() {
    let config = device().read().expect("a reading").config;
    let lags: Vec<LagMembership> = config.ports.iter().map(|port| port.lag).collect();
    let of = |slot: usize| LagMembership::Of(Slot::new(slot));
    assert_eq!(lags, [LagMembership::Alone, LagMembership::Alone, of(0), of(0), of(1), LagMembership::Alone]);
    let in_default = |port: &switch_model::PortConfig| port.is_member(VlanId::MIN);
    assert_eq!(config.ports.iter().map(in_default).collect::<Vec<_>>(), [true, true, false, false, false, true]);
}

#[test]
fn what_a_member_hears_is_put_down_at_that_member() {
    let mut device = device();
    let told = |heard: &switch_model::station::LldpNeighbour| (heard.port, heard.id.text());
    let mut heard: Vec<(usize, String)> =
        device.look(Addresses::Skip).expect("a look").heard.iter().map(told).collect();
    heard.sort();
    let at = |slot: usize| (slot, format!("far-{}", NAMES[slot]));
    assert_eq!(heard, [at(2), at(3), at(4), at(5)]);
    // The survey has the switch's own order of ports, and the names and states of each.
    let reply = device.survey("sw").expect("a survey");
    for (port, state) in reply.station.ports.iter().zip(&reply.states) {
        assert_eq!(*state, if port.name == "p2" { PortState::Down } else { PortState::Up }, "{}", port.name);
    }
    let mut named: Vec<&str> = reply.station.ports.iter().map(|port| port.name.as_str()).collect();
    named.sort_unstable();
    assert_eq!(named, NAMES);
    for heard in &reply.station.heard {
        assert_eq!(heard.id.text(), format!("far-{}", reply.station.ports[heard.port].name));
    }
}
