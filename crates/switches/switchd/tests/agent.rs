//! The agent as a manager sees it: what it answers, what a SET does and does not do, and who may ask.

use std::collections::BTreeMap;

use bridge_mib::{
    BridgePort, LldpChassisSubtype, LldpPortSubtype, PortList, RowStatus, StaticStatus,
    index::{CurrentVlan, FdbRow, IfIndex, Neighbour, PortVlan, StaticRow, VlanIndex},
    objects::{self, bridge, ether_like, if_mib, lag, lldp, own, q_bridge, system},
};
use fabric::{Mac, VlanId};
use proptest::prelude::*;
use snmp::{
    Column, Oid, Value,
    wire::{
        AuthProtocol, Binding, CommunityMessage, ErrorStatus, Keys, Message, Pdu, PduKind, PrivacyProtocol, Scoped,
        ScopedData, SecurityLevel, UsmHeader, V3Message, Version, decode_scoped, decrypt, encode_scoped, encrypt,
        is_authentic, sign,
    },
};
use switchd::{
    agent::{
        Access, Answer, Change, Config, DataPlane, Engine, Facts, Fault, Faulty, HybridPorts, Learning, Limits, Mishap,
        NeighbourInfo, PortFacts, PortKind, Refused, Responder, Rights, Sensors, Still, Switch, Trigger, User,
    },
    lacp::PortState,
};

const ROOM: usize = 1400;
const ENGINE: &[u8] = b"\x80\x00\x1f\x88\x04agent";

fn facts(ports: u32) -> Facts {
    let port = |number: u32| PortFacts {
        name: format!("g{number}"),
        if_index: 100 + number,
        mac: Mac::local(number),
        kind: PortKind::Own,
    };
    Facts {
        description: "a switch under test".to_owned(),
        address: Mac::local(0xaa),
        ports: (1..=ports).map(port).collect(),
        limits: Limits {
            vlans_max: 8,
            statics_max: 20_000,
            hybrid: HybridPorts::Allowed,
            learning: Learning::Independent,
            pfc_classes: 8,
        },
    }
}

/// The same switch with its last three ports in a LAG, which is the first of them.
fn with_lag(mut facts: Facts) -> Facts {
    let lag = facts.ports.len() as u32 - 2;
    let kinds = [PortKind::Lag, PortKind::Member { lag }, PortKind::Member { lag }];
    facts.ports[lag as usize - 1..].iter_mut().zip(kinds).for_each(|(port, kind)| port.kind = kind);
    facts
}

fn switch<P: DataPlane>(facts: Facts, plane: P) -> Switch<P> {
    let config = facts.factory();
    Switch::new(facts, config, plane, ENGINE, 1, 0)
}

fn pdu(kind: PduKind, bindings: Vec<Binding>) -> Pdu {
    Pdu { kind, request_id: 7, status: 0, index: 0, bindings }
}

fn ask<R: Responder>(switch: &mut R, kind: PduKind, bindings: Vec<Binding>) -> Pdu {
    match switch.answer(1000, &pdu(kind, bindings), Rights::Write, ROOM) {
        Answer::Pdu(pdu) => pdu,
        other => panic!("{other:?}"),
    }
}

fn get<R: Responder>(switch: &mut R, oid: Oid) -> Value {
    ask(switch, PduKind::Get, vec![(oid, Value::Null)]).bindings.remove(0).1
}

fn set<R: Responder>(switch: &mut R, bindings: Vec<Binding>) -> Result<(), (ErrorStatus, i32)> {
    let answer = ask(switch, PduKind::Set, bindings);
    match ErrorStatus::of(answer.status) {
        ErrorStatus::NoError => Ok(()),
        status => Err((status, answer.index)),
    }
}

fn walk<R: Responder>(switch: &mut R, from: Oid) -> Vec<Binding> {
    let mut found: Vec<Binding> = Vec::new();
    let mut asked = from;
    loop {
        let (oid, value) = ask(switch, PduKind::GetNext, vec![(asked.clone(), Value::Null)]).bindings.remove(0);
        if value == Value::EndOfMibView {
            return found;
        }
        assert!(oid > asked, "{oid} after {asked}");
        asked = oid.clone();
        found.push((oid, value));
    }
}

fn vlan(id: u16) -> VlanIndex {
    VlanIndex(VlanId::new(id).expect("a VLAN id"))
}

fn list(ports: &[u32]) -> Value {
    Value::Octets(PortList::of(ports.iter().copied()).expect("ports").encode(1))
}

fn row_status(id: u16, status: RowStatus) -> Binding {
    (q_bridge::VLAN_STATIC_ROW_STATUS.row(&vlan(id)), Value::Integer(status.code()))
}

fn members(column: Column, id: u16, ports: &[u32]) -> Binding {
    (column.row(&vlan(id)), list(ports))
}

fn new_vlan(id: u16, egress: &[u32], untagged: &[u32]) -> Vec<Binding> {
    vec![
        (q_bridge::VLAN_STATIC_NAME.row(&vlan(id)), Value::Octets(format!("v{id}").into_bytes())),
        members(q_bridge::VLAN_STATIC_EGRESS_PORTS, id, egress),
        members(q_bridge::VLAN_STATIC_UNTAGGED_PORTS, id, untagged),
        row_status(id, RowStatus::CreateAndGo),
    ]
}

fn entry(fdb: u32, mac: u32) -> StaticRow {
    StaticRow { fdb, mac: Mac::local(mac), receive_port: 0 }
}

fn new_static(row: StaticRow, port: u32) -> Vec<Binding> {
    vec![
        (q_bridge::STATIC_UNICAST_ALLOWED_TO_GO_TO.row(&row), list(&[port])),
        (q_bridge::STATIC_UNICAST_STATUS.row(&row), Value::Integer(StaticStatus::Permanent.code())),
    ]
}

#[test]
fn a_lag_is_a_bridge_port_and_its_members_are_none() {
    /// A plane in which LACP has attached the first member.
    struct Attached;
    impl DataPlane for Attached {
        fn observe(&mut self, _: u32, sensors: &mut Sensors) {
            sensors.ports[3].lacp.actor = PortState::ACTIVE.with(PortState::SYNCHRONIZATION);
        }

        fn apply(&mut self, _: &Config, _: &[Change]) -> Result<(), Refused> {
            Ok(())
        }
    }
    // Ports 1 and 2, the LAG 3, and its members 4 and 5.
    let mut switch = switch(with_lag(facts(5)), Attached);
    let column = |switch: &mut Switch<Attached>, column: &Column| -> Vec<(Vec<u32>, Value)> {
        let found = walk(switch, Oid::new(column.oid)).into_iter();
        found.filter_map(|(oid, value)| Some((oid.strip_prefix(column.oid)?.to_vec(), value))).collect()
    };
    let numbers = |switch: &mut Switch<Attached>, of: &Column| -> Vec<u32> {
        column(switch, of).iter().filter_map(|(_, value)| value.unsigned()).collect()
    };
    assert_eq!(numbers(&mut switch, &if_mib::TYPE), [6, 6, 161, 6, 6]);
    assert_eq!(numbers(&mut switch, &if_mib::CONNECTOR_PRESENT), [1, 1, 2, 1, 1]);
    assert_eq!(numbers(&mut switch, &bridge::PORT_IF_INDEX), [101, 102, 103]);
    assert_eq!(get(&mut switch, bridge::NUM_PORTS.instance()), Value::Integer(3));
    assert_eq!(numbers(&mut switch, &lldp::LOC_PORT_ID_SUBTYPE).len(), 4);
    // What has PAUSE is the members.
    assert_eq!(column(&mut switch, &ether_like::PAUSE_ADMIN_MODE).len(), 4);
    let stack: Vec<Vec<u32>> = column(&mut switch, &if_mib::STACK_STATUS).into_iter().map(|(row, _)| row).collect();
    let rows = [[0, 101], [0, 102], [0, 103], [101, 0], [102, 0], [103, 104], [103, 105], [104, 0], [105, 0]];
    assert_eq!(stack, rows);
    assert_eq!(numbers(&mut switch, &lag::ATTACHED_AGG), [103, 0]);
    let states = column(&mut switch, &lag::ACTOR_OPER_STATE);
    assert_eq!(states[0].1, Value::Octets(vec![0b1001_0000]), "BITS begin with the most significant one");
    // The default VLAN has the LAG, and no list takes a member.
    let default = q_bridge::VLAN_STATIC_EGRESS_PORTS.row(&VlanIndex(VlanId::MIN));
    assert_eq!(get(&mut switch, default), list(&[1, 2, 3]));
    for ports in [&[1, 4][..], &[5], &[6]] {
        let refused = set(&mut switch, new_vlan(2, ports, &[]));
        assert_eq!(refused.map_err(|(status, _)| status), Err(ErrorStatus::WrongValue), "{ports:?}");
    }
    set(&mut switch, new_vlan(2, &[1, 3], &[3])).expect("ports");
    let refused = set(&mut switch, vec![(q_bridge::PVID.row(&BridgePort(4)), Value::Gauge32(2))]);
    assert_eq!(refused, Err((ErrorStatus::NoCreation, 1)));
    set(&mut switch, vec![(q_bridge::PVID.row(&BridgePort(3)), Value::Gauge32(2))]).expect("a bridge port");
    // Factory settings are those of a switch whose LAGs are configured.
    set(&mut switch, vec![(own::ACTION.instance(), Value::Integer(3))]).expect("it restarts");
    assert_eq!(switch.config(), &with_lag(facts(5)).factory());
}

#[test]
fn every_object_of_the_agent_is_seen_on_a_walk_in_order() {
    /// A plane that has seen something of everything.
    struct Busy;
    impl DataPlane for Busy {
        fn observe(&mut self, _: u32, sensors: &mut Sensors) {
            sensors.learned.insert(FdbRow { fdb: 1, mac: Mac::local(5) }, 2);
            sensors.vlan_frames.insert(PortVlan { port: 1, vlan: VlanId::MIN }, [3, 4]);
            let info = NeighbourInfo {
                chassis_subtype: LldpChassisSubtype::Mac,
                chassis_id: vec![2, 0, 0, 0, 0, 9],
                port_subtype: LldpPortSubtype::Name,
                port_id: b"g2".to_vec(),
                port_description: b"g2".to_vec(),
                system_name: b"sw2".to_vec(),
                system_description: b"a switch".to_vec(),
                capabilities: 4,
                capabilities_enabled: 4,
            };
            sensors.neighbours.rows.insert(Neighbour { time_mark: 12, local_port: 1, index: 1 }, info);
        }

        fn apply(&mut self, _: &Config, _: &[Change]) -> Result<(), Refused> {
            Ok(())
        }
    }
    let mut switch = switch(with_lag(facts(6)), Busy);
    set(&mut switch, new_static(entry(1, 9), 3)).expect("room");
    let found = walk(&mut switch, Oid::new(&[1]));
    let seen = |oid: &[u32]| found.iter().any(|(found, _)| found.strip_prefix(oid).is_some());
    let missing: Vec<&str> = objects::scalars()
        .map(|object| (object.name, object.oid))
        .chain(objects::columns().map(|object| (object.name, object.oid)))
        .filter(|(_, oid)| !seen(oid))
        .map(|(name, _)| name)
        .collect();
    // Learned addresses are in dot1qTpFdbTable, VLAN by VLAN; the message layer counts for itself;
    // a name is no value; what is sent is not counted by kind.
    assert_eq!(
        missing,
        [
            "snmpUnknownContexts",
            "usmStatsUnsupportedSecLevels",
            "usmStatsNotInTimeWindows",
            "usmStatsUnknownUserNames",
            "usmStatsUnknownEngineIDs",
            "usmStatsWrongDigests",
            "usmStatsDecryptionErrors",
            "espalierProduct",
            "ifHCOutMulticastPkts",
            "ifHCOutBroadcastPkts",
            "dot1dTpFdbAddress",
            "dot1dTpFdbPort",
            "dot1dTpFdbStatus",
        ]
    );
    for (oid, value) in &found {
        assert_eq!(&get(&mut switch, oid.clone()), value, "{oid}");
        let syntaxes = objects::scalars().filter(|object| oid.strip_prefix(object.oid).is_some()).map(|o| o.syntax);
        let mut syntaxes =
            syntaxes.chain(objects::columns().filter(|o| oid.strip_prefix(o.oid).is_some()).map(|o| o.syntax));
        assert!(value.fits(syntaxes.next().expect("an object")), "{oid}: {value:?}");
    }
}

#[test]
fn the_factory_has_one_vlan_for_all_ports() {
    let mut switch = switch(facts(10), Still);
    assert_eq!(get(&mut switch, q_bridge::NUM_VLANS.instance()), Value::Gauge32(1));
    let all = Value::Octets(vec![0xff, 0xc0]);
    assert_eq!(get(&mut switch, q_bridge::VLAN_STATIC_UNTAGGED_PORTS.row(&vlan(1))), all);
    let current = CurrentVlan { time_mark: 0, vlan: VlanId::MIN };
    assert_eq!(get(&mut switch, q_bridge::VLAN_CURRENT_EGRESS_PORTS.row(&current)), all);
    assert_eq!(get(&mut switch, q_bridge::PVID.row(&BridgePort(10))), Value::Gauge32(1));
    assert_eq!(get(&mut switch, bridge::STP_PORT_ENABLE.row(&BridgePort(1))), Value::Integer(1));
    assert_eq!(get(&mut switch, q_bridge::PVID.row(&BridgePort(11))), Value::NoSuchInstance);
    assert_eq!(get(&mut switch, Oid::new(&[1, 3, 6, 1, 9])), Value::NoSuchObject);
    assert_eq!(get(&mut switch, own::SAVED.instance()), Value::Integer(1));
}

#[test]
fn a_set_is_all_or_nothing_whatever_the_order_of_its_bindings() {
    let mut switch = switch(facts(4), Still);
    let mut bindings = new_vlan(7, &[1, 2], &[1]);
    bindings.push((q_bridge::PVID.row(&BridgePort(1)), Value::Gauge32(7)));
    bindings.extend(new_static(entry(7, 1), 2));
    let before = switch.config().clone();
    let mut wrong = bindings.clone();
    wrong.push((if_mib::ALIAS.row(&IfIndex(101)), Value::Octets(b"desk".to_vec())));
    wrong.push((q_bridge::PVID.row(&BridgePort(2)), Value::Gauge32(9)));
    assert_eq!(set(&mut switch, wrong), Err((ErrorStatus::InconsistentValue, 9)));
    assert_eq!(switch.config(), &before);
    bindings.reverse();
    assert_eq!(set(&mut switch, bindings), Ok(()));
    assert_eq!(get(&mut switch, q_bridge::VLAN_STATIC_EGRESS_PORTS.row(&vlan(7))), Value::Octets(vec![0xc0]));
    assert_eq!(get(&mut switch, q_bridge::TP_FDB_PORT.row(&FdbRow { fdb: 7, mac: Mac::local(1) })), Value::Integer(2));
    assert_eq!(get(&mut switch, own::SAVED.instance()), Value::Integer(2));
}

#[test]
fn what_cannot_be_is_refused_with_the_status_that_says_why() {
    use ErrorStatus::{
        InconsistentName, InconsistentValue, NoCreation, NotWritable, ResourceUnavailable, WrongLength, WrongType,
        WrongValue,
    };
    let mut switch = switch(facts(4), Still);
    set(&mut switch, new_vlan(2, &[1, 2], &[1])).expect("room");
    set(&mut switch, vec![(q_bridge::PVID.row(&BridgePort(1)), Value::Gauge32(2))]).expect("the VLAN exists");
    set(&mut switch, new_static(entry(2, 1), 1)).expect("room");
    let before = switch.config().clone();
    let egress = |id: u16| q_bridge::VLAN_STATIC_EGRESS_PORTS.row(&vlan(id));
    let goes = |row: StaticRow| q_bridge::STATIC_UNICAST_ALLOWED_TO_GO_TO.row(&row);
    let group = StaticRow { mac: Mac::BROADCAST, ..entry(2, 0) };
    let cases: Vec<(Vec<Binding>, ErrorStatus)> = vec![
        (vec![(egress(2), Value::Integer(1))], WrongType),
        (vec![(egress(2), Value::Octets(vec![0x08]))], WrongValue),
        (vec![(q_bridge::VLAN_STATIC_NAME.row(&vlan(2)), Value::Octets(vec![b'x'; 33]))], WrongLength),
        (vec![(egress(3), list(&[1]))], InconsistentName),
        (vec![(Oid::new(&[1, 3, 6, 1]), Value::Integer(1))], NotWritable),
        (vec![(system::UP_TIME.instance(), Value::TimeTicks(1))], NotWritable),
        (vec![(q_bridge::PVID.row(&BridgePort(5)), Value::Gauge32(2))], NoCreation),
        (vec![(q_bridge::PVID.row(&BridgePort(1)), Value::Gauge32(4095))], WrongValue),
        (vec![(q_bridge::PVID.row(&BridgePort(1)), Value::Gauge32(3))], InconsistentValue),
        (vec![row_status(2, RowStatus::CreateAndGo)], InconsistentValue),
        (vec![row_status(2, RowStatus::NotReady)], WrongValue),
        (vec![row_status(3, RowStatus::Active)], InconsistentValue),
        (vec![row_status(1, RowStatus::Destroy)], InconsistentValue),
        // Its PVID is in use.
        (vec![row_status(2, RowStatus::Destroy)], InconsistentValue),
        (vec![row_status(2, RowStatus::NotInService)], InconsistentValue),
        (vec![members(q_bridge::VLAN_STATIC_UNTAGGED_PORTS, 2, &[3])], InconsistentValue),
        (vec![members(q_bridge::VLAN_FORBIDDEN_EGRESS_PORTS, 2, &[2])], InconsistentValue),
        (vec![(goes(entry(2, 1)), list(&[1, 2]))], InconsistentValue),
        (vec![(goes(entry(2, 1)), list(&[]))], InconsistentValue),
        (vec![(goes(entry(9, 1)), list(&[1]))], InconsistentName),
        (vec![(goes(group), list(&[1]))], InconsistentName),
        (vec![(goes(StaticRow { receive_port: 1, ..entry(2, 3) }), list(&[1]))], NoCreation),
        (vec![(q_bridge::STATIC_UNICAST_STATUS.row(&entry(2, 4)), Value::Integer(3))], InconsistentValue),
        (vec![(q_bridge::STATIC_UNICAST_STATUS.row(&entry(2, 1)), Value::Integer(9))], WrongValue),
        (vec![(q_bridge::PORT_INGRESS_FILTERING.row(&BridgePort(1)), Value::Integer(2))], InconsistentValue),
        (vec![(if_mib::ADMIN_STATUS.row(&IfIndex(101)), Value::Integer(3))], WrongValue),
        (vec![(if_mib::ADMIN_STATUS.row(&IfIndex(1)), Value::Integer(1))], NoCreation),
        (vec![(own::ACTION.instance(), Value::Integer(9))], WrongValue),
        ((10..20).map(|id| row_status(id, RowStatus::CreateAndGo)).collect(), ResourceUnavailable),
    ];
    for (bindings, status) in cases {
        let what = format!("{bindings:?}");
        let answer = set(&mut switch, bindings);
        assert_eq!(answer.map_err(|(status, _)| status), Err(status), "{what}");
        assert_eq!(switch.config(), &before, "{what}");
    }
    let read_only = switch.answer(0, &pdu(PduKind::Set, new_vlan(3, &[], &[])), Rights::Read, ROOM);
    assert!(matches!(read_only, Answer::Pdu(pdu) if pdu.status == ErrorStatus::NoAccess.code()));
}

#[test]
fn a_vlan_may_be_made_step_by_step_and_goes_with_its_entries() {
    let mut switch = switch(facts(4), Still);
    set(&mut switch, vec![row_status(5, RowStatus::CreateAndWait)]).expect("room");
    let status = q_bridge::VLAN_STATIC_ROW_STATUS.row(&vlan(5));
    assert_eq!(get(&mut switch, status.clone()), Value::Integer(RowStatus::NotInService.code()));
    assert_eq!(get(&mut switch, q_bridge::NUM_VLANS.instance()), Value::Gauge32(1));
    set(&mut switch, vec![members(q_bridge::VLAN_STATIC_EGRESS_PORTS, 5, &[1, 4])]).expect("a row");
    set(&mut switch, vec![row_status(5, RowStatus::Active)]).expect("a row");
    set(&mut switch, vec![members(q_bridge::VLAN_STATIC_UNTAGGED_PORTS, 5, &[1, 4])]).expect("members");
    // A port that leaves is no untagged member any more.
    set(&mut switch, vec![members(q_bridge::VLAN_STATIC_EGRESS_PORTS, 5, &[4])]).expect("a row");
    assert_eq!(get(&mut switch, q_bridge::VLAN_STATIC_UNTAGGED_PORTS.row(&vlan(5))), list(&[4]));
    set(&mut switch, new_static(entry(5, 1), 4)).expect("room");
    set(&mut switch, vec![row_status(5, RowStatus::Destroy)]).expect("nobody needs it");
    set(&mut switch, vec![row_status(5, RowStatus::Destroy)]).expect("what is gone may go");
    assert_eq!(get(&mut switch, status), Value::NoSuchInstance);
    assert!(switch.config().statics.is_empty());
    assert_eq!(get(&mut switch, q_bridge::VLAN_NUM_DELETES.instance()), Value::Counter32(1));
}

#[test]
fn an_invalid_entry_is_gone_and_a_temporary_one_ends_with_a_restart() {
    let mut switch = switch(facts(4), Still);
    set(&mut switch, new_static(entry(1, 1), 1)).expect("room");
    let mut temporary = new_static(entry(1, 2), 2);
    temporary[1].1 = Value::Integer(StaticStatus::DeleteOnReset.code());
    set(&mut switch, temporary).expect("room");
    set(&mut switch, new_static(entry(1, 3), 3)).expect("room");
    let status = |mac| q_bridge::STATIC_UNICAST_STATUS.row(&entry(1, mac));
    set(&mut switch, vec![(status(3), Value::Integer(StaticStatus::Invalid.code()))]).expect("a row");
    assert_eq!(get(&mut switch, status(3)), Value::NoSuchInstance);
    // Whatever else is written about it, and in whatever order.
    for order in [[0, 1], [1, 0]] {
        let mut gone = new_static(entry(1, 3), 3);
        gone[1].1 = Value::Integer(StaticStatus::Invalid.code());
        set(&mut switch, order.map(|at| gone[at].clone()).to_vec()).expect("what is gone may go");
        assert_eq!(get(&mut switch, status(3)), Value::NoSuchInstance);
    }
    set(&mut switch, vec![(own::ACTION.instance(), Value::Integer(1))]).expect("saved");
    set(&mut switch, new_static(entry(1, 4), 4)).expect("room");
    set(&mut switch, vec![(own::ACTION.instance(), Value::Integer(2))]).expect("restarted");
    assert_eq!(switch.config().statics.keys().copied().collect::<Vec<_>>(), [entry(1, 1)]);
    assert_eq!(switch.clock(0).boots, 2);
    set(&mut switch, vec![(own::ACTION.instance(), Value::Integer(3))]).expect("restarted");
    assert_eq!(switch.config(), &Config::factory(4));
}

#[test]
fn switches_of_other_makes_say_so() {
    let mut limits = facts(4);
    limits.limits.hybrid = HybridPorts::Refused;
    limits.limits.learning = Learning::Shared;
    limits.limits.statics_max = 2;
    let mut switch = switch(limits, Still);
    let refused = Err((ErrorStatus::InconsistentValue, 4));
    assert_eq!(set(&mut switch, new_vlan(2, &[1], &[1])), refused);
    assert_eq!(set(&mut switch, new_vlan(2, &[1], &[])), Ok(()));
    for id in [1, 2] {
        let row = CurrentVlan { time_mark: 0, vlan: vlan(id).0 };
        assert_eq!(get(&mut switch, q_bridge::VLAN_FDB_ID.row(&row)), Value::Gauge32(1));
    }
    assert_eq!(set(&mut switch, new_static(entry(2, 1), 1)), Err((ErrorStatus::InconsistentName, 2)));
    for mac in [1, 2] {
        assert_eq!(set(&mut switch, new_static(entry(1, mac), 1)), Ok(()));
    }
    assert_eq!(set(&mut switch, new_static(entry(1, 3), 1)), Err((ErrorStatus::ResourceUnavailable, 2)));
}

#[test]
fn a_data_plane_that_refuses_leaves_everything_as_it_was() {
    /// Refuses a VLAN, and remembers what it was last told.
    #[derive(Default)]
    struct Picky {
        told: BTreeMap<VlanIndex, PortList>,
    }
    impl DataPlane for Picky {
        fn observe(&mut self, _: u32, _: &mut Sensors) {}

        fn apply(&mut self, config: &Config, _: &[Change]) -> Result<(), Refused> {
            self.told = config.vlans.iter().map(|(index, vlan)| (*index, vlan.egress.clone())).collect();
            if config.vlans.contains_key(&vlan(13)) {
                return Err(Refused::commit_failed("unlucky".to_owned()));
            }
            let full = config.statics.keys().find(|row| row.mac == Mac::local(9)).map(|row| Refused {
                why: "full".to_owned(),
                status: ErrorStatus::ResourceUnavailable,
                change: Some(Change::Static(*row)),
            });
            full.map_or(Ok(()), Err)
        }
    }
    let mut switch = switch(facts(4), Picky::default());
    set(&mut switch, new_vlan(12, &[1], &[1])).expect("a good number");
    let before = switch.config().clone();
    let mut both = new_vlan(13, &[1], &[1]);
    both.push(members(q_bridge::VLAN_STATIC_EGRESS_PORTS, 12, &[1, 2]));
    assert_eq!(set(&mut switch, both), Err((ErrorStatus::CommitFailed, 1)));
    assert_eq!(switch.config(), &before);
    let told = switch.plane().told.clone();
    assert_eq!(told.keys().copied().collect::<Vec<_>>(), [vlan(1), vlan(12)]);
    assert_eq!(told[&vlan(12)], PortList::of([1]).expect("ports"));
    // Where the plane says which entry it was and why, so does the answer.
    let entries = [new_static(entry(12, 8), 1), new_static(entry(12, 9), 1), new_static(entry(12, 7), 1)].concat();
    assert_eq!(set(&mut switch, entries), Err((ErrorStatus::ResourceUnavailable, 4)));
    assert_eq!(switch.config(), &before);
}

#[test]
fn a_guarded_switch_goes_back_unless_it_is_told_to_stay() {
    let answer = |switch: &mut Switch<Still>, now_ms: u64, kind, bindings: Vec<Binding>| match switch.answer(
        now_ms,
        &pdu(kind, bindings),
        Rights::Write,
        ROOM,
    ) {
        Answer::Pdu(pdu) => pdu,
        other => panic!("{other:?}"),
    };
    let guard = |seconds| vec![(own::GUARD.instance(), Value::Integer(seconds))];
    for stays in [false, true] {
        let mut switch = switch(facts(4), Still);
        let before = switch.config().clone();
        assert_eq!(answer(&mut switch, 1000, PduKind::Set, guard(10)).status, 0);
        let serial = answer(&mut switch, 1100, PduKind::Get, vec![(system::SET_SERIAL_NO.instance(), Value::Null)]);
        assert_eq!(answer(&mut switch, 2000, PduKind::Set, new_vlan(7, &[1, 2], &[1])).status, 0);
        assert_ne!(*switch.config(), before);
        let left = answer(&mut switch, 4000, PduKind::Get, vec![(own::GUARD.instance(), Value::Null)]);
        assert_eq!(left.bindings[0].1, Value::Integer(7));
        if stays {
            assert_eq!(answer(&mut switch, 10_999, PduKind::Set, guard(0)).status, 0);
        }
        switch.handle_tick(10_999);
        assert_ne!(*switch.config(), before, "not a moment too early");
        switch.handle_tick(11_000);
        assert_eq!(*switch.config() == before, !stays);
        let locked = [new_vlan(8, &[1], &[]), serial.bindings].concat();
        assert_eq!(
            answer(&mut switch, 12_000, PduKind::Set, locked).status == 0,
            stays,
            "whoever was cut off is locked out"
        );
    }
    let mut switch = switch(facts(4), Still);
    for wrong in [-1, 3601] {
        assert_eq!(set(&mut switch, guard(wrong)), Err((ErrorStatus::WrongValue, 1)));
    }
}

#[test]
fn a_getbulk_brings_what_fits() {
    let mut switch = switch(facts(20), Still);
    let asked = [system::UP_TIME.oid, if_mib::DESCR.oid, if_mib::NAME.oid];
    let bindings: Vec<Binding> = asked.iter().map(|oid| (Oid::new(oid), Value::Null)).collect();
    let request = Pdu { status: 1, index: 5, ..pdu(PduKind::GetBulk, bindings) };
    let Answer::Pdu(answer) = switch.answer(0, &request, Rights::Read, ROOM) else { panic!("no answer") };
    assert_eq!(answer.bindings.len(), 11);
    assert_eq!(answer.bindings[1].0, if_mib::DESCR.row(&IfIndex(101)));
    assert_eq!(answer.bindings[10].0, if_mib::NAME.row(&IfIndex(105)));
    let endless = Pdu { index: i32::MAX, ..request.clone() };
    let Answer::Pdu(answer) = switch.answer(0, &endless, Rights::Read, ROOM) else { panic!("no answer") };
    let message = CommunityMessage { version: Version::V2c, community: b"public".to_vec(), pdu: answer };
    assert!((1000..=ROOM).contains(&Message::Community(message).encode().len()));
    let negative = Pdu { status: -5, index: -5, ..request };
    let Answer::Pdu(answer) = switch.answer(0, &negative, Rights::Read, ROOM) else { panic!("no answer") };
    assert_eq!(answer.bindings, []);
}

fn engine(keys: Keys) -> Engine<Switch<Still>> {
    let access = Access {
        communities: vec![(b"public".to_vec(), Rights::Read)],
        users: vec![User { name: b"ops".to_vec(), keys, rights: Rights::Write }],
    };
    Engine::new(switch(facts(4), Still), access, ENGINE, 5)
}

/// The keys of these passwords with AES-128.
fn keys(protocol: AuthProtocol, auth: &str, privacy: &str) -> Keys {
    Keys::new(protocol, auth, Some((PrivacyProtocol::Aes128, privacy)), ENGINE)
}

/// A request of version 3 as a manager with these keys sends it.
fn request(keys: &Keys, boots: i32, time_s: i32) -> Vec<u8> {
    let asked = pdu(PduKind::Get, vec![(system::DESCR.instance(), Value::Null)]);
    let scoped = Scoped { engine_id: ENGINE.to_vec(), context: Vec::new(), pdu: asked };
    let salt = 77_u64.to_be_bytes();
    let cipher = encrypt(&encode_scoped(&scoped), keys.privacy.as_ref().expect("a key"), boots, time_s, salt);
    let usm = UsmHeader {
        engine_id: ENGINE.to_vec(),
        boots,
        time_s,
        user: b"ops".to_vec(),
        signature: vec![0; keys.protocol.signature_len()],
        salt: salt.to_vec(),
    };
    let level = SecurityLevel::AuthPriv;
    let data = ScopedData::Encrypted(cipher);
    let message = Message::V3(V3Message { id: 3, max_size: 1472, level, reportable: true, usm, data });
    let mut datagram = message.encode();
    sign(&mut datagram, keys).expect("a message");
    datagram
}

/// What a report is about.
fn reported(datagram: &[u8]) -> Oid {
    match Message::decode(datagram) {
        Ok(Message::V3(V3Message { data: ScopedData::Plain(scoped), .. })) if scoped.pdu.kind == PduKind::Report => {
            scoped.pdu.bindings[0].0.clone()
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn genuine_fresh_messages_are_answered_in_kind() {
    let all = AuthProtocol::ALL.iter().flat_map(|auth| PrivacyProtocol::ALL.map(|privacy| (*auth, privacy)));
    for (protocol, privacy) in all {
        let keys = Keys::new(protocol, "authenticate", Some((privacy, "encipher!")), ENGINE);
        let reply = engine(keys.clone()).handle_datagram(9000, &request(&keys, 1, 9));
        let datagram = reply.expect("an answer").datagram;
        assert!(is_authentic(&datagram, &keys));
        let Ok(Message::V3(V3Message { usm, data: ScopedData::Encrypted(cipher), .. })) = Message::decode(&datagram)
        else {
            panic!("not enciphered");
        };
        let plain = decrypt(&cipher, keys.privacy.as_ref().expect("a key"), usm.boots, usm.time_s, &usm.salt);
        let scoped = decode_scoped(&plain.expect("a salt")).expect("an answer");
        assert_eq!(scoped.pdu.bindings[0].1, Value::Octets(b"a switch under test".to_vec()));
    }
}

#[test]
fn other_messages_are_reported_and_not_answered() {
    use snmp::engine::{
        DECRYPTION_ERRORS, NOT_IN_TIME_WINDOWS, UNKNOWN_ENGINE_IDS, UNKNOWN_USER_NAMES, UNSUPPORTED_SEC_LEVELS,
        WRONG_DIGESTS,
    };
    let protocol = AuthProtocol::Sha256;
    let right = keys(protocol, "authenticate", "encipher!");
    let mut engine = engine(right.clone());
    let longer = Keys::new(protocol, "authenticate", Some((PrivacyProtocol::Aes256, "encipher!")), ENGINE);
    let cases = [
        (request(&keys(protocol, "wrong password", "encipher!"), 1, 9), WRONG_DIGESTS),
        (request(&keys(protocol, "authenticate", "wrong password"), 1, 9), DECRYPTION_ERRORS),
        (request(&longer, 1, 9), DECRYPTION_ERRORS),
        (request(&right, 1, 160), NOT_IN_TIME_WINDOWS),
        (request(&right, 2, 9), NOT_IN_TIME_WINDOWS),
        (request(&keys(AuthProtocol::Sha1, "authenticate", "encipher!"), 1, 9), WRONG_DIGESTS),
        (request(&keys(AuthProtocol::Sha512, "authenticate", "encipher!"), 1, 9), WRONG_DIGESTS),
    ];
    for (datagram, why) in cases {
        let reply = engine.handle_datagram(9000, &datagram).expect("a report");
        assert_eq!(reported(&reply.datagram), why.instance());
    }
    let plain = |usm: UsmHeader, reportable| {
        let scoped = Scoped { engine_id: Vec::new(), context: Vec::new(), pdu: pdu(PduKind::Get, Vec::new()) };
        let (level, data) = (SecurityLevel::NoAuthNoPriv, ScopedData::Plain(scoped));
        Message::V3(V3Message { id: 1, max_size: 1472, level, reportable, usm, data }).encode()
    };
    let known = |user: &[u8]| UsmHeader { engine_id: ENGINE.to_vec(), user: user.to_vec(), ..UsmHeader::default() };
    for (usm, why) in [
        (UsmHeader::default(), UNKNOWN_ENGINE_IDS),
        (known(b"nobody"), UNKNOWN_USER_NAMES),
        (known(b"ops"), UNSUPPORTED_SEC_LEVELS),
    ] {
        let reply = engine.handle_datagram(9000, &plain(usm.clone(), true)).expect("a report");
        assert_eq!(reported(&reply.datagram), why.instance());
        assert_eq!(engine.handle_datagram(9000, &plain(usm, false)), None);
    }
}

#[test]
fn known_communities_and_users_are_answered_and_others_are_not() {
    let mut engine = engine(keys(AuthProtocol::Sha1, "authenticate", "encipher!"));
    let mut ask = |version, community: &[u8], kind, bindings| {
        let message = CommunityMessage { version, community: community.to_vec(), pdu: pdu(kind, bindings) };
        engine.handle_datagram(0, &Message::Community(message).encode()).map(|reply| Message::decode(&reply.datagram))
    };
    let name = || vec![(system::NAME.instance(), Value::Octets(Vec::new()))];
    assert!(matches!(ask(Version::V2c, b"public", PduKind::Get, name()), Some(Ok(Message::Community(_)))));
    assert_eq!(ask(Version::V2c, b"private", PduKind::Get, name()), None);
    assert_eq!(ask(Version::V1, b"public", PduKind::Get, name()), None);
    match ask(Version::V2c, b"public", PduKind::Set, name()) {
        Some(Ok(Message::Community(message))) => assert_eq!(message.pdu.status, ErrorStatus::NoAccess.code()),
        other => panic!("{other:?}"),
    }
}

#[test]
fn faults_strike_when_they_should() {
    let faults = [
        Fault { when: Trigger::Set(2), what: Mishap::RefuseSet(ErrorStatus::GenErr) },
        Fault { when: Trigger::Set(3), what: Mishap::IgnoreSet },
        Fault { when: Trigger::Set(4), what: Mishap::Restart { down_ms: 500 } },
        Fault { when: Trigger::Set(6), what: Mishap::AnswerLost },
    ];
    let mut faulty = Faulty::new(switch(facts(4), Still), &faults, 1);
    assert_eq!(set(&mut faulty, new_vlan(2, &[1], &[1])), Ok(()));
    assert_eq!(set(&mut faulty, new_vlan(3, &[1], &[1])), Err((ErrorStatus::GenErr, 1)));
    assert_eq!(set(&mut faulty, new_vlan(4, &[1], &[1])), Ok(()));
    assert_eq!(faulty.inner().config().vlans.len(), 2);
    let request = pdu(PduKind::Set, new_vlan(5, &[1], &[1]));
    assert_eq!(faulty.answer(2000, &request, Rights::Write, ROOM), Answer::Nothing);
    assert_eq!(faulty.inner().config(), &Config::factory(4));
    assert_eq!(faulty.answer(2499, &request, Rights::Write, ROOM), Answer::Nothing);
    assert_eq!(faulty.answer(2500, &request, Rights::Write, ROOM), Answer::Nothing);
    assert_eq!(faulty.inner().config().vlans.len(), 2);
    assert!(matches!(faulty.answer(2500, &request, Rights::Write, ROOM), Answer::Pdu(_)));
    assert_eq!((faulty.requests(), faulty.sets()), (7, 7));
}

#[test]
fn the_same_seed_misbehaves_in_the_same_way() {
    let run = |seed| {
        let faults = [
            Fault { when: Trigger::PerMille(300), what: Mishap::Garbage },
            Fault { when: Trigger::PerMille(300), what: Mishap::EndlessWalk },
        ];
        let mut faulty = Faulty::new(switch(facts(4), Still), &faults, seed);
        let request = pdu(PduKind::GetNext, vec![(Oid::new(&[1, 3]), Value::Null)]);
        (0..50).map(|at| faulty.answer(at, &request, Rights::Read, ROOM)).collect::<Vec<_>>()
    };
    assert_eq!(run(1), run(1));
    assert_ne!(run(1), run(2));
}

fn any_binding() -> impl Strategy<Value = Binding> {
    let ports =
        prop::collection::btree_set(1_u32..6, 0..4).prop_map(|ports| list(&ports.into_iter().collect::<Vec<_>>()));
    let id = 1_u16..6;
    let columns = [
        q_bridge::VLAN_STATIC_EGRESS_PORTS,
        q_bridge::VLAN_STATIC_UNTAGGED_PORTS,
        q_bridge::VLAN_FORBIDDEN_EGRESS_PORTS,
    ];
    prop_oneof![
        (prop::sample::select(columns.to_vec()), id.clone(), ports.clone())
            .prop_map(|(column, id, ports)| (column.row(&vlan(id)), ports)),
        (id.clone(), 1..7)
            .prop_map(|(id, status)| (q_bridge::VLAN_STATIC_ROW_STATUS.row(&vlan(id)), Value::Integer(status))),
        (id.clone(), 0_u32..3, ports).prop_map(|(id, mac, ports)| (
            q_bridge::STATIC_UNICAST_ALLOWED_TO_GO_TO.row(&entry(u32::from(id), mac)),
            ports
        )),
        (id.clone(), 0_u32..3, 1..5).prop_map(|(id, mac, status)| (
            q_bridge::STATIC_UNICAST_STATUS.row(&entry(u32::from(id), mac)),
            Value::Integer(status)
        )),
        (1_u32..6, id).prop_map(|(port, id)| (q_bridge::PVID.row(&BridgePort(port)), Value::Gauge32(u32::from(id)))),
        (1_u32..6, 1..4)
            .prop_map(|(port, mode)| (if_mib::ADMIN_STATUS.row(&IfIndex(100 + port)), Value::Integer(mode))),
    ]
}

/// What every configuration keeps, whatever was written.
fn assert_sound(config: &Config) {
    for (index, vlan) in &config.vlans {
        assert!(vlan.untagged.is_subset(&vlan.egress), "{index:?}");
        assert!(!vlan.egress.meets(&vlan.forbidden), "{index:?}");
    }
    assert!(config.ports.iter().all(|port| config.is_active(port.pvid)));
    for (row, entry) in &config.statics {
        assert!(entry.ports.len() == 1 && config.vlans.keys().any(|index| u32::from(index.0.get()) == row.fdb));
    }
}

proptest! {
    #[test]
    fn no_set_leaves_half_of_itself(sets in prop::collection::vec(prop::collection::vec(any_binding(), 1..7), 1..30)) {
        let mut switch = switch(facts(4), Still);
        for bindings in sets {
            let before = switch.config().clone();
            let answer = set(&mut switch, bindings.clone());
            if answer.is_err() {
                prop_assert_eq!(switch.config(), &before);
            }
            assert_sound(switch.config());
            // The order of different bindings means nothing.
            let mut other = Switch::new(facts(4), before, Still, ENGINE, 1, 0);
            let mut reversed: BTreeMap<Oid, Value> = BTreeMap::new();
            let distinct = bindings.iter().all(|(oid, value)| reversed.insert(oid.clone(), value.clone()).is_none());
            if distinct {
                let reversed: Vec<Binding> = reversed.into_iter().rev().collect();
                prop_assert_eq!(set(&mut other, reversed).is_ok(), answer.is_ok());
                prop_assert_eq!(other.config(), switch.config());
            }
        }
    }

    #[test]
    fn a_walk_from_anywhere_finds_the_first_instance_behind(
        macs in prop::collection::btree_set(any::<u32>(), 0..20),
        asked in prop::collection::vec(prop_oneof![0_u32..20, any::<u32>()], 0..12),
        within in prop::sample::select(objects::columns().map(|column| column.oid).collect::<Vec<_>>()),
    ) {
        let mut switch = switch(facts(3), Still);
        for mac in macs {
            set(&mut switch, new_static(entry(1, mac), 1)).expect("room");
        }
        let all: Vec<Oid> = walk(&mut switch, Oid::default()).into_iter().map(|(oid, _)| oid).collect();
        prop_assert!(all.is_sorted());
        for asked in [Oid::new(&asked), Oid::new(within).child(&asked), Oid::new(within).child(&[0])] {
            let found = ask(&mut switch, PduKind::GetNext, vec![(asked.clone(), Value::Null)]).bindings.remove(0);
            match all.iter().find(|oid| **oid > asked) {
                Some(next) => prop_assert_eq!(&found.0, next),
                None => prop_assert_eq!(found, (asked, Value::EndOfMibView)),
            }
        }
    }
}
