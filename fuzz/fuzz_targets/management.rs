//! Any bytes as what managers and neighbours send: SNMP messages to an agent, spanning tree, LLDP, LACP, port lists, indices.
#![no_main]

use std::collections::BTreeSet;

use bridge_mib::{ListForm, PortList, index::StaticRow};
use fabric::Mac;
use snmp::{Oid, RowIndex, wire::Message};
use switchd::{
    agent::{
        Access, Engine, Facts, HybridPorts, Learning, Limits, PortFacts, PortKind, Responder, Rights, Still, Switch,
    },
    lacp::{Lacpdu, Lag, Link as Carrier},
    lldp::{Announcement, Neighbourhood},
    stp::{Bpdu, Bridge, Link, Timers},
};

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    if let Ok(message) = Message::decode(data) {
        assert_eq!(Message::decode(&message.encode()), Ok(message));
    }
    let mut engine = agent();
    engine.handle_datagram(0, data);
    // The same as a request that is let in.
    if let Ok(Message::Community(message)) = Message::decode(data) {
        engine.responder().answer(0, &message.pdu, Rights::Write, 1400);
    }
    let config = engine.responder().config();
    assert!(config.ports.iter().all(|port| config.is_active(port.pvid)));

    let mut bridge = Bridge::new([0x80, 0, 0, 0, 0, 0, 0, 9], &[(1, 19), (2, 19)], Timers::SHORT, 0);
    bridge.handle_link(0, 0, Link::Governed);
    if let Ok(bpdu) = Bpdu::decode(data) {
        bridge.handle_bpdu(10, 0, &bpdu);
        bridge.handle_tick(60);
    }
    let mut heard = Neighbourhood::default();
    if let Ok(said) = Announcement::decode(data) {
        assert_eq!(Announcement::decode(&said.encode()), Ok(said.clone()));
        heard.handle_announcement(0, 0, 1, said);
    }
    let mut lag = Lag::new(Mac::local(0xaa), 1, &[1, 2]);
    lag.handle_link(0, 0, Carrier::Up);
    if let Ok(pdu) = Lacpdu::decode(data) {
        assert_eq!(Lacpdu::decode(&pdu.encode()), Ok(pdu.clone()));
        lag.handle_pdu(10, 0, &pdu);
        lag.poll(20);
        assert!(!lag.is_active(1), "a member without carrier");
    }
    if let Ok(list) = PortList::decode(data) {
        assert_eq!(PortList::of(list.iter()), Ok(list.clone()));
        assert_eq!(PortList::decode(&list.encode(data.len())), Ok(list));
    }
    // No member is invented, whatever form a list has.
    let ports: BTreeSet<u32> = (0..60).collect();
    if let Ok(list) = ListForm::of(&[data], &ports).map(|form| form.decode(data)) {
        assert!(list.expect("its form fits").iter().all(|port| ports.contains(&port)));
    }
    let parts: Vec<u32> =
        data.chunks(2).map(|pair| pair.iter().fold(0, |part, byte| part << 8 | u32::from(*byte))).collect();
    let _ = (StaticRow::decode(&parts), StaticRow::after(&parts));
    let _ = String::from_utf8_lossy(data).parse::<Oid>();
});

fn agent() -> Engine<Switch<Still>> {
    // g4 is a LAG, of which g2 and g3 are members.
    let kind = |number| match number {
        1 => PortKind::Own,
        4 => PortKind::Lag,
        _ => PortKind::Member { lag: 4 },
    };
    let port = |number: u32| PortFacts {
        name: format!("g{number}"),
        if_index: number,
        mac: Mac::local(number),
        kind: kind(number),
    };
    let facts = Facts {
        description: String::new(),
        address: Mac::local(0xaa),
        ports: (1..=4).map(port).collect(),
        limits: Limits {
            vlans_max: 8,
            statics_max: 8,
            hybrid: HybridPorts::Allowed,
            learning: Learning::Independent,
            pfc_classes: 0,
        },
    };
    let access = Access { communities: vec![(b"private".to_vec(), Rights::Write)], users: Vec::new() };
    let config = facts.factory();
    Engine::new(Switch::new(facts, config, Still, b"engine", 1, 0), access, b"engine", 0)
}
