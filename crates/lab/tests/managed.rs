//! Managed switches: from nothing but cables, by the real protocols, to the planned fabric, while not one broadcast goes
//! in circles.

mod common;
mod manager;

use bridge_mib::{
    AcceptableFrames, BridgePort, Enabled, IfStatus, PortList, RowStatus, StaticStatus, StpState,
    index::{CurrentVlan, IfIndex, StaticRow, VlanIndex},
    objects::{bridge, if_mib, lldp, own, q_bridge, system},
};
use common::{Guard, LAGS, Shape, grid, lab_name, plan, setting, skipped};
use fabric::{Attachment, DeviceIntent, LinkId, Plan, PortIntent, Tree, VlanId, format::native::parse_native};
use lab::{
    Backend, FailMode, Lab, LabOptions, Managed, Start,
    delivery::{Probe, check},
    lag,
};
use manager::{Agents, Manager, wait_for};
use snmp::Value;

fn options(word: &str, start: Start) -> LabOptions {
    LabOptions {
        backend: Some(Backend::Ebpf),
        rate_bps: 100_000_000,
        managed: Managed::Yes,
        start,
        ..LabOptions::new(lab_name(word))
    }
}

/// Broadcast frames that entered a switch anywhere.
fn broadcasts(lab: &Lab) -> u64 {
    lab.status().expect("a status").broadcasts()
}

/// A tree is settled when nobody waits, and as many ports are closed as cables close rings.
fn settled(managers: &mut [Manager], plan: &Plan) -> bool {
    let links = plan.topology.links().len();
    let (mut closed, mut waiting) = (0, 0);
    for (manager, intent) in managers.iter_mut().zip(&plan.devices) {
        for state in manager.states(intent.ports.len() as u32) {
            match state.int().map(StpState::try_from) {
                Some(Ok(StpState::Blocking)) => closed += 1,
                Some(Ok(StpState::Forwarding)) => {}
                _ => waiting += 1,
            }
        }
    }
    waiting == 0 && closed == links - (plan.devices.len() - 1)
}

fn list(ports: impl Iterator<Item = u32>) -> Value {
    Value::Octets(PortList::of(ports).expect("ports").encode(1))
}

/// Writes what a plan wants of a switch: VLANs, entries, PVIDs; then the default VLAN leaves the links, and last spanning
/// tree goes.
fn deploy(manager: &mut Manager, plan: &Plan, intent: &DeviceIntent) {
    let numbered = || (1_u32..).zip(&intent.ports);
    for vlan in intent.vlans().iter() {
        let row = VlanIndex(vlan);
        let egress = list(numbered().filter(|(_, port)| port.is_member(vlan)).map(|(number, _)| number));
        let untagged = list(numbered().filter(|(_, port)| port.untagged.contains(vlan)).map(|(number, _)| number));
        manager.set(vec![
            (q_bridge::VLAN_STATIC_EGRESS_PORTS.row(&row), egress),
            (q_bridge::VLAN_STATIC_UNTAGGED_PORTS.row(&row), untagged),
            (q_bridge::VLAN_STATIC_ROW_STATUS.row(&row), Value::Integer(RowStatus::CreateAndGo.code())),
        ]);
    }
    for entry in intent.fdb_entries(&plan.topology) {
        let row = StaticRow { fdb: u32::from(entry.vlan.get()), mac: entry.mac, receive_port: 0 };
        let (number, _) = numbered().find(|(_, port)| port.port == entry.port).expect("a port of the switch");
        manager.set(vec![
            (q_bridge::STATIC_UNICAST_ALLOWED_TO_GO_TO.row(&row), list(std::iter::once(number))),
            (q_bridge::STATIC_UNICAST_STATUS.row(&row), Value::Integer(StaticStatus::Permanent.code())),
        ]);
    }
    let is_member = |port: &PortIntent| matches!(plan.topology.port(port.port).attachment, Attachment::Member(_));
    for (number, port) in numbered().filter(|(_, port)| !is_member(port)) {
        let row = BridgePort(number);
        manager.set(vec![match port.pvid {
            Some(pvid) => (q_bridge::PVID.row(&row), Value::Gauge32(u32::from(pvid.get()))),
            None => {
                (q_bridge::PORT_ACCEPTABLE_FRAME_TYPES.row(&row), Value::Integer(AcceptableFrames::OnlyTagged.code()))
            }
        }]);
    }
    let default = VlanIndex(VlanId::MIN);
    manager.set(vec![(q_bridge::VLAN_STATIC_EGRESS_PORTS.row(&default), list(std::iter::empty()))]);
}

#[test]
fn from_nothing_but_cables_to_the_planned_fabric_without_a_storm() {
    if skipped(Backend::Ebpf) {
        return;
    }
    let plan = grid(setting("LAB_SIDE", 4) as usize, Shape::Torus);
    let (switches, hosts) = (plan.devices.len(), plan.topology.hosts().len() as u64);
    let lab = Guard::up(&plan, &options("factory", Start::Factory));
    // Before anybody runs spanning tree, every port is closed.
    assert_eq!(
        check(&lab.0, Probe::Dhcp).expect("probes can be sent").faults.len(),
        hosts as usize * (hosts as usize - 1)
    );
    assert_eq!(broadcasts(&lab.0), 0);
    let agents = Agents::start(&lab.0);
    let mut managers: Vec<Manager> = (0..switches).map(|switch| Manager::of(&lab.0, switch)).collect();
    wait_for("a tree", || settled(&mut managers, &plan));
    let before = broadcasts(&lab.0);
    assert_eq!(check(&lab.0, Probe::Dhcp).expect("probes can be sent").faults, []);
    // Each broadcast entered each switch once.
    assert_eq!(broadcasts(&lab.0) - before, hosts * switches as u64);

    let before = broadcasts(&lab.0);
    for (manager, intent) in managers.iter_mut().zip(&plan.devices) {
        deploy(manager, &plan, intent);
    }
    for (manager, intent) in managers.iter_mut().zip(&plan.devices) {
        for port in 1..=intent.ports.len() as u32 {
            let row = bridge::STP_PORT_ENABLE.row(&BridgePort(port));
            manager.set(vec![(row, Value::Integer(Enabled::No.code()))]);
        }
    }
    assert_eq!(broadcasts(&lab.0), before, "nobody spoke, so nothing may circle");
    for &probe in Probe::ALL {
        let before = broadcasts(&lab.0);
        assert_eq!(check(&lab.0, probe).expect("probes can be sent").faults, [], "{probe}");
        // Where ARP asks for each of the others, so many broadcasts are sent; none is heard twice.
        assert!(broadcasts(&lab.0) - before <= hosts * hosts * switches as u64, "{probe}");
    }
    assert_eq!(lab.0.status().expect("a status").unknown_floods(), 0);
    drop(agents);
}

#[test]
fn what_is_written_is_what_the_data_plane_does() {
    if skipped(Backend::Ebpf) {
        return;
    }
    let mut plan = grid(2, Shape::Mesh);
    // Files say what the planner claims; any bound will do.
    plan.bound.lengths = vec![1; 2 * plan.topology.links().len()];
    let mut text = Vec::new();
    fabric::format::plan::write_plan(&plan, &mut text).expect("a plan");
    let plan_text = Some(String::from_utf8(text).expect("text"));
    let lab = Guard::up(&plan, &LabOptions { plan_text, ..options("written", Start::Planned) });
    let agents = Agents::start(&lab.0);
    let mut manager = Manager::of(&lab.0, 0);
    assert_eq!(manager.get(system::NAME.instance()), Value::Octets(b"s0".to_vec()));
    assert_eq!(check(&lab.0, Probe::Ping).expect("probes can be sent").faults, []);
    let host_port = plan.devices[0].ports.len() as u32;
    let interface = IfIndex(15 + host_port);

    // A shut port is shut, and opens again.
    manager.set(vec![(if_mib::ADMIN_STATUS.row(&interface), Value::Integer(IfStatus::Down.code()))]);
    assert!(!check(&lab.0, Probe::Ping).expect("probes can be sent").faults.is_empty());
    manager.set(vec![(if_mib::ADMIN_STATUS.row(&interface), Value::Integer(IfStatus::Up.code()))]);
    wait_for("the port", || manager.get(if_mib::OPER_STATUS.row(&interface)) == Value::Integer(1));
    assert_eq!(check(&lab.0, Probe::Ping).expect("probes can be sent").faults, []);

    // An entry that is gone is missed: frames for the address are flooded.
    let entry = plan.devices[0].fdb_entries(&plan.topology).next().expect("an entry");
    let row = StaticRow { fdb: u32::from(entry.vlan.get()), mac: entry.mac, receive_port: 0 };
    let status = q_bridge::STATIC_UNICAST_STATUS.row(&row);
    manager.set(vec![(status.clone(), Value::Integer(StaticStatus::Invalid.code()))]);
    assert_eq!(manager.get(status.clone()), Value::NoSuchInstance);

    // A VLAN that is gone is gone; a restart brings everything back, as nothing was saved.
    let vlan = entry.vlan;
    let members = q_bridge::VLAN_CURRENT_EGRESS_PORTS.row(&CurrentVlan { time_mark: 0, vlan });
    let before = manager.get(members.clone());
    manager.set(vec![(q_bridge::VLAN_STATIC_EGRESS_PORTS.row(&VlanIndex(vlan)), list(std::iter::empty()))]);
    assert_ne!(manager.get(members.clone()), before);
    assert!(!check(&lab.0, Probe::Ping).expect("probes can be sent").faults.is_empty());
    manager.set(vec![(own::ACTION.instance(), Value::Integer(2))]);
    assert_eq!(manager.get(members), before);
    assert_eq!(manager.get(status), Value::Integer(StaticStatus::Permanent.code()));
    assert_eq!(check(&lab.0, Probe::Ping).expect("probes can be sent").faults, []);

    // The neighbours are those at the other ends of the cables.
    let heard = |manager: &mut Manager| {
        let rows = manager.walk(&lldp::REM_SYS_NAME.root());
        let name = |(_, value): &(_, Value)| value.octets().map(|name| String::from_utf8_lossy(name).into_owned());
        let mut names: Vec<String> = rows.iter().filter_map(name).collect();
        names.sort();
        names
    };
    wait_for("neighbours", || heard(&mut manager) == ["s1", "s2"]);
    // Counters have seen the probes.
    assert!(manager.get(if_mib::HC_IN_OCTETS.row(&interface)).count() > Some(1000));
    drop(agents);
}

#[test]
fn lags_are_ports_of_spanning_tree_and_of_the_plan() {
    if skipped(Backend::Ebpf) {
        return;
    }
    let topology = parse_native("lags.yaml", LAGS).expect("valid");
    let cabling = topology.clone();
    let plan = plan(topology, |_| Tree::new(&cabling, [0, 1].map(LinkId::new).to_vec()).expect("a tree"));
    let (hosts, switches) = (plan.topology.hosts().len() as u64, plan.devices.len() as u64);
    let lab = Guard::up(&plan, &options("mlag", Start::Factory));
    let agents = Agents::start(&lab.0);
    let mut managers: Vec<Manager> = (0..plan.devices.len()).map(|switch| Manager::of(&lab.0, switch)).collect();
    lag::await_active(&lab.0).expect("LACP agrees");
    // Of the three links of the ring one is closed, and the two cables of the LAG are one link.
    let bridged = |intent: &DeviceIntent| -> Vec<u32> {
        let own = |port: &PortIntent| !matches!(plan.topology.port(port.port).attachment, Attachment::Member(_));
        (1..).zip(&intent.ports).filter(|(_, port)| own(port)).map(|(number, _)| number).collect()
    };
    wait_for("a tree", || {
        let states = managers.iter_mut().zip(&plan.devices).flat_map(|(manager, intent)| {
            let state = |port: u32| manager.get(bridge::STP_PORT_STATE.row(&BridgePort(port)));
            bridged(intent).into_iter().map(state).collect::<Vec<_>>()
        });
        let states: Vec<_> = states.map(|state| state.int().map(StpState::try_from)).collect();
        let count = |wanted: StpState| states.iter().filter(|state| **state == Some(Ok(wanted))).count();
        count(StpState::Blocking) == 1 && count(StpState::Forwarding) == states.len() - 1
    });
    let before = broadcasts(&lab.0);
    assert_eq!(check(&lab.0, Probe::Dhcp).expect("probes can be sent").faults, []);
    assert_eq!(broadcasts(&lab.0) - before, hosts * switches);

    for (manager, intent) in managers.iter_mut().zip(&plan.devices) {
        deploy(manager, &plan, intent);
    }
    for (manager, intent) in managers.iter_mut().zip(&plan.devices) {
        for port in bridged(intent) {
            let row = bridge::STP_PORT_ENABLE.row(&BridgePort(port));
            manager.set(vec![(row, Value::Integer(Enabled::No.code()))]);
        }
    }
    for &probe in Probe::ALL {
        assert_eq!(check(&lab.0, probe).expect("probes can be sent").faults, [], "{probe}");
    }
    // A member that is pulled is down, and the LAG is up with half its capacity.
    let interface = |switch: usize, name: &str| {
        let ports = &lab.0.layout().switches[switch].ports;
        IfIndex(16 + ports.iter().position(|port| port.name == name).expect("a port") as u32)
    };
    let [lag1, p1] = ["lag1", "p1"].map(|name| interface(0, name));
    let whole_mbps = managers[0].get(if_mib::HIGH_SPEED.row(&lag1)).unsigned();
    lab.0.fail("s0:p1", FailMode::Down).expect("a cable");
    wait_for("the member", || managers[0].get(if_mib::OPER_STATUS.row(&p1)) == Value::Integer(IfStatus::Down.code()));
    assert_eq!(managers[0].get(if_mib::OPER_STATUS.row(&lag1)), Value::Integer(IfStatus::Up.code()));
    assert_eq!(managers[0].get(if_mib::HIGH_SPEED.row(&lag1)).unsigned(), whole_mbps.map(|mbps| mbps / 2));
    assert_eq!(check(&lab.0, Probe::Ping).expect("probes can be sent").faults, []);
    // A LAG that is shut takes its members with it, at both ends.
    let admin = |status: IfStatus| vec![(if_mib::ADMIN_STATUS.row(&lag1), Value::Integer(status.code()))];
    lab.0.heal("s0:p1").expect("a cable");
    lag::await_active(&lab.0).expect("LACP agrees");
    managers[0].set(admin(IfStatus::Down));
    let far = interface(1, "lag1");
    wait_for("the far end", || managers[1].get(if_mib::OPER_STATUS.row(&far)) == Value::Integer(IfStatus::Down.code()));
    managers[0].set(admin(IfStatus::Up));
    lag::await_active(&lab.0).expect("LACP agrees");
    assert_eq!(check(&lab.0, Probe::Ping).expect("probes can be sent").faults, []);
    drop(agents);
}
