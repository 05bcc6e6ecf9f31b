//! Every quirk of `bridge_mib::quirks`, as a switch that was made up for the purpose: what is read of it, or how it is refused.
//!
//! A switch is a text, an object a line; one test a quirk, named like it.

use std::{
    collections::{BTreeMap, VecDeque},
    io,
    sync::{Arc, Mutex},
    time::Duration,
};

use bridge_mib::{
    objects::{columns, scalars},
    quirks::QUIRKS,
};
use drivers::snmp::{Device, SaveMethod, Settings, read_station};
use enrol::{self, Nobody, ProbeRequest};
use fabric::{Mac, VlanId, VlanSet};
use rollout::discover::{Cabling, Doubt, Evidence, cabling};
use snmp::{
    Credentials, Link, Oid, Patience, Session, Value,
    wire::{CommunityMessage, Message, Pdu, PduKind},
};
use switch_model::{
    LagMembership, Slot, SwitchConfig,
    driver::{Driver as _, Fault},
    station::{Station, Where},
};

type Rows = BTreeMap<Oid, Value>;

/// An agent that answers from a list of objects, one for each community, and takes no SET.
#[derive(Clone)]
struct Agent {
    rows: BTreeMap<String, Rows>,
    back: VecDeque<Vec<u8>>,
    sets: Arc<Mutex<usize>>,
}

impl Link for Agent {
    fn send(&mut self, datagram: &[u8]) -> io::Result<()> {
        let Ok(Message::Community(message)) = Message::decode(datagram) else { return Ok(()) };
        let community = String::from_utf8_lossy(&message.community).into_owned();
        let Some(rows) = self.rows.get(&community) else { return Ok(()) };
        let next = |oid: &Oid| {
            let found = rows.range::<Oid, _>((std::ops::Bound::Excluded(oid), std::ops::Bound::Unbounded)).next();
            found.map_or((oid.clone(), Value::EndOfMibView), |(oid, value)| (oid.clone(), value.clone()))
        };
        let mut bindings = Vec::new();
        for (oid, _) in &message.pdu.bindings {
            match message.pdu.kind {
                PduKind::Get => bindings.push((oid.clone(), rows.get(oid).cloned().unwrap_or(Value::NoSuchInstance))),
                PduKind::GetNext => bindings.push(next(oid)),
                PduKind::GetBulk => {
                    let mut at = oid.clone();
                    for _ in 0..message.pdu.index {
                        let (oid, value) = next(&at);
                        at = oid.clone();
                        bindings.push((oid, value));
                    }
                }
                _ => *self.sets.lock().expect("no panic before") += 1,
            }
        }
        let pdu = Pdu { kind: PduKind::Response, status: 0, index: 0, bindings, ..message.pdu };
        self.back.push_back(Message::Community(CommunityMessage { pdu, ..message }).encode());
        Ok(())
    }

    fn receive(&mut self, _: Duration) -> io::Result<Option<Vec<u8>>> {
        Ok(self.back.pop_front())
    }
}

/// Objects by name or number, and what they hold: a number, `"text"`, or `0x` and octets.
fn rows(text: &str) -> Rows {
    let roots: BTreeMap<&str, &[u32]> = (scalars().map(|scalar| (scalar.name, scalar.oid)))
        .chain(columns().map(|column| (column.name, column.oid)))
        .collect();
    let row = |line: &str| {
        let (object, value) = line.split_once(" = ").unwrap_or_else(|| panic!("no object: {line}"));
        let oid = match object.split_once('.').filter(|(name, _)| roots.contains_key(name)) {
            Some((name, index)) => Oid::new(roots[name]).child(index.parse::<Oid>().expect("an index").parts()),
            None => object.parse().expect("an identifier"),
        };
        let value = match (value.strip_prefix('"'), value.strip_prefix("0x")) {
            (Some(text), _) => Value::Octets(text.trim_end_matches('"').as_bytes().to_vec()),
            (_, Some(hex)) => {
                let octet = |at: usize| u8::from_str_radix(&hex[at..at + 2], 16).expect("octets");
                Value::Octets((0..hex.len()).step_by(2).map(octet).collect())
            }
            _ => Value::Integer(value.parse().expect("a number")),
        };
        (oid, value)
    };
    text.lines().map(str::trim).filter(|line| !line.is_empty()).map(row).collect()
}

fn agent(text: &str) -> Agent {
    Agent { rows: BTreeMap::from([("word".to_owned(), rows(text))]), back: VecDeque::new(), sets: Arc::default() }
}

fn session(agent: &Agent) -> Session<Agent> {
    let patience = Patience { timeout: Duration::from_millis(1), attempts: 1 };
    Session::new(agent.clone(), Credentials::Community("word".to_owned()), patience, 1)
}

/// Ports with these names: bridge port N, ifIndex 100 + N, Ethernet with a connector, down.
fn ports(names: &[&str]) -> String {
    (1..)
        .zip(names)
        .map(|(number, name): (usize, _)| {
            let index = 100 + number;
            format!(
                "dot1dBasePortIfIndex.{number} = {index}\nifName.{index} = \"{name}\"\nifType.{index} = 6\nifOperStatus.{index} = 2\n\
                 ifAdminStatus.{index} = 1\nifConnectorPresent.{index} = 1\ndot1qPvid.{number} = 1\n"
            )
        })
        .collect()
}

/// VLAN 1 with all of these ports, in bits.
const ONE: &str =
    "dot1qVlanStaticName.1 = \"default\"\ndot1qVlanStaticEgressPorts.1 = 0xf0\ndot1qVlanStaticUntaggedPorts.1 = 0xf0\n";

fn observe(text: &str, names: &[&str]) -> Result<SwitchConfig, Fault> {
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    let settings = Settings { mark_vlan: VlanId::new(4093).expect("in range"), save: SaveMethod::Unknown };
    let mut device = Device::connect(session(&agent(text)), &names, settings)?;
    device.read().map(|reading| reading.config)
}

fn refusal(text: &str, names: &[&str]) -> String {
    observe(text, names).expect_err("not to be read").to_string()
}

fn station(text: &str) -> Station {
    read_station(&mut session(&agent(text)), None, &[]).expect("it answers")
}

fn set(text: &str) -> VlanSet {
    text.parse().expect("VLANs")
}

/// A neighbour at one of LLDP's ports: chassis and port of some subtype.
fn neighbour(port: u32, chassis: (i32, &str), id: (i32, &str), further: &str) -> String {
    let of = |object: &str, value: &str| format!("{object}.0.{port}.1 = {value}\n");
    of("lldpRemChassisIdSubtype", &chassis.0.to_string())
        + &of("lldpRemChassisId", chassis.1)
        + &of("lldpRemPortIdSubtype", &id.0.to_string())
        + &of("lldpRemPortId", id.1)
        + &further.lines().map(|line| line.replacen(" = ", &format!(".0.{port}.1 = "), 1) + "\n").collect::<String>()
}

/// Two switches, each of whose first port hears the other's, by names.
fn found(a: &str, b: &str) -> Cabling {
    cabling(&[station(a), station(b)])
}

fn request() -> ProbeRequest {
    ProbeRequest { ports: Vec::new(), vlans_max: 4, entries_max: 4, nonce: 7 }
}

/// The refusal of a probe that has written nothing.
fn unprobed(text: &str) -> String {
    let agent = agent(text);
    let error = enrol::enrol(session(&agent), &request(), &mut Nobody).expect_err("not to be probed").to_string();
    assert_eq!(*agent.sets.lock().expect("no panic before"), 0, "{error}");
    error
}

#[test]
fn no_vlan_table() {
    let text = ports(&["g1", "g2"]);
    let error = refusal(&text, &["g1"]);
    assert!(error.contains("no Q-BRIDGE table of VLANs") && error.contains("ssh-user"), "{error}");
    assert!(unprobed(&text).contains("no Q-BRIDGE table of VLANs"));
    assert_eq!(station(&text).ports.len(), 2, "its cables can be found all the same");
}

#[test]
fn ieee_vlan_table() {
    let base = "1.3.111.2.802.1.1.4.1.4";
    let text = ports(&["g1", "g2"]).replace("dot1qPvid", "1.3.6.1.4.1.99999")
        + &format!(
            "{base}.3.1.3.1.20 = \"red\"\n{base}.3.1.4.1.20 = 0xc0\n{base}.3.1.6.1.20 = 0x80\n{base}.5.1.1.1.1 = 20\n{base}.5.1.2.1.2 = 3\n"
        );
    let config = observe(&text, &["g1", "g2"]).expect("it can be read");
    assert_eq!((config.vlans.clone(), config.ports[0].pvid), (set("20"), VlanId::new(20).ok()));
    assert_eq!((&config.ports[0].untagged, &config.ports[1].tagged), (&set("20"), &set("20")));
    assert_eq!(config.ports[1].pvid, None);
    assert!(unprobed(&text).contains("IEEE8021-Q-BRIDGE-MIB"));
    let names = ["g1".to_owned()];
    let settings = Settings { mark_vlan: VlanId::new(4093).expect("in range"), save: SaveMethod::Unknown };
    let agent = agent(&text);
    let mut device = Device::connect(session(&agent), &names, settings).expect("a switch");
    let reading = device.read().expect("a reading");
    let mark = switch_model::mark::Mark::new(1, 1, 1);
    let refused = device.write(&reading.config, &reading.config, mark, reading.fence, None);
    assert!(matches!(&refused, Err(Fault::Refused(why)) if why.contains("not written")), "{refused:?}");
    assert_eq!(*agent.sets.lock().expect("no panic before"), 0);
}

#[test]
fn vlan_without_name() {
    let text = ports(&["g1", "g2"]) + "dot1qVlanStaticName.1 = \"default\"\ndot1qVlanStaticEgressPorts.30 = 0x40\n";
    let config = observe(&text, &["g1", "g2"]).expect("it can be read");
    assert_eq!((config.vlans.clone(), &config.ports[1].tagged), (set("30"), &set("30")));
}

#[test]
fn decimal_lists() {
    let text = ports(&["ge-0/0/0", "ge-0/0/1"])
        + "dot1qVlanStaticEgressPorts.5 = \"1,2\"\ndot1qVlanStaticUntaggedPorts.5 = \"2\"\ndot1qVlanStaticUntaggedPorts.6 = \"\"\n";
    let config = observe(&text, &["ge-0/0/0", "ge-0/0/1"]).expect("it can be read");
    assert_eq!(
        (config.vlans.clone(), &config.ports[0].tagged, &config.ports[1].untagged),
        (set("5-6"), &set("5"), &set("5"))
    );
    assert!(unprobed(&text).contains("decimal numbers"));
}

#[test]
fn right_aligned_lists() {
    let text = ports(&["1", "2", "3"])
        + "dot1qVlanStaticEgressPorts.1 = 0x00000007\ndot1qVlanStaticUntaggedPorts.1 = 0x00000003\n";
    let error = refusal(&text, &["1"]);
    assert!(error.contains("PortList") && error.contains("right-aligned") && error.contains("ssh-user"), "{error}");
    assert!(unprobed(&text).contains("right-aligned"));
}

#[test]
fn word_lists() {
    let text = ports(&["1", "2", "3"]) + "dot1qVlanStaticEgressPorts.1 = 0x000000010003\n";
    assert!(refusal(&text, &["1"]).contains("numbers of 16 bits"));
}

#[test]
fn hex_lists() {
    let text =
        ports(&["1", "2", "3"]) + "dot1qVlanStaticEgressPorts.1 = \"e000\"\ndot1qVlanStaticEgressPorts.2 = \"0000\"\n";
    assert!(refusal(&text, &["1"]).contains("hexadecimal"));
}

#[test]
fn foreign_bits() {
    let text = ports(&["1", "2"]) + "dot1qVlanStaticEgressPorts.1 = 0xc001\n";
    let error = refusal(&text, &["1"]);
    assert!(error.contains("does not have, such as 16") && error.contains("2 bridge ports"), "{error}");
}

#[test]
fn ports_from_zero() {
    let text = ports(&["Eth1/2"])
        + "dot1dBasePortIfIndex.0 = 100\nifName.100 = \"Eth1/1\"\nifType.100 = 6\n"
        + "lldpLocPortId.100 = \"Eth1/1\"\nlldpLocPortIdSubtype.100 = 5\n"
        + &neighbour(100, (4, "0x020000000007"), (3, "0x020000000007"), "");
    let station = station(&text);
    assert_eq!(station.ports[0].name, "Eth1/1");
    assert_eq!(cabling(&[station]).hosts.len(), 1);
    assert!(refusal(&(text.clone() + ONE), &["Eth1/1"]).contains("numbered from 0"));
    let decimals = text + "dot1qVlanStaticEgressPorts.5 = \"1\"\n";
    assert_eq!(observe(&decimals, &["Eth1/2"]).expect("it can be read").ports[0].tagged, set("5"));
}

#[test]
fn per_vlan_bridge() {
    let text = "dot1dBasePortIfIndex.1 = 101\nifName.101 = \"Gi0/1\"\nifName.102 = \"Gi0/2\"\nifName.103 = \"Gi0/3\"\n\
                1.3.6.1.4.1.9.9.46.1.3.1.1.2.1.1 = 1\n1.3.6.1.4.1.9.9.46.1.3.1.1.2.1.7 = 1\n\
                1.3.6.1.4.1.9.9.46.1.3.1.1.2.1.8 = 2\n1.3.6.1.4.1.9.9.46.1.3.1.1.2.1.9 = 1\n";
    let of_vlan = |port: u32, mac: u32| {
        rows(&format!(
            "dot1dBasePortIfIndex.{port} = {}\ndot1dTpFdbPort.2.0.0.0.0.{mac} = {port}\ndot1dTpFdbStatus.2.0.0.0.0.{mac} = 3\n",
            100 + port
        ))
    };
    let mut agent = agent(text);
    agent.rows.insert("word@7".to_owned(), of_vlan(2, 7));
    agent.rows.insert("word@9".to_owned(), of_vlan(3, 9));
    let station = read_station(&mut session(&agent), None, &[]).expect("it answers");
    let names: Vec<&str> = station.ports.iter().map(|port| port.name.as_str()).collect();
    assert_eq!(names, ["Gi0/1", "Gi0/2", "Gi0/3"]);
    assert_eq!(station.learned, [(Mac::local(7), 1), (Mac::local(9), 2)]);
    // Of a VLAN whose context does not answer nothing is known, and the rest is as it was.
    agent.rows.remove("word@7");
    let station = read_station(&mut session(&agent), None, &[]).expect("it answers");
    assert_eq!(station.ports.len(), 1);
}

#[test]
fn lldp_by_ifindex() {
    let text = "dot1dBasePortIfIndex.147 = 436281344\nifName.436281344 = \"Ethernet1/19\"\n".to_owned()
        + "lldpLocPortId.436281344 = \"02:00:00:00:01:13\"\nlldpLocPortIdSubtype.436281344 = 3\nlldpLocPortDesc.436281344 = \"Ethernet1/19\"\n"
        + &neighbour(436_281_344, (4, "0x020000000007"), (3, "0x020000000007"), "");
    let station = station(&text);
    assert_eq!(station.heard.len(), 1);
    assert_eq!(station.ports[0].id.as_ref().map(|id| id.subtype), Some(3));
}

#[test]
fn lldp_without_local_ports() {
    let host = |port| neighbour(port, (4, "0x020000000007"), (3, "0x020000000007"), "");
    // Port 2 and ifIndex 2 are one, or nothing else has the number.
    let same = "dot1dBasePortIfIndex.2 = 2\nifName.2 = \"g2\"\n".to_owned() + &host(2);
    assert_eq!(cabling(&[station(&same)]).hosts.len(), 1);
    assert_eq!(cabling(&[station(&(ports(&["g1", "g2"]) + &host(102)))]).hosts.len(), 1);
    // Port 1 and ifIndex 1 are two: nothing tells which is meant.
    let either =
        "dot1dBasePortIfIndex.1 = 2\ndot1dBasePortIfIndex.2 = 1\nifName.1 = \"g2\"\nifName.2 = \"g1\"\n".to_owned();
    let cabling = cabling(&[station(&(either + &host(1)))]);
    assert!(cabling.hosts.is_empty());
    assert!(matches!(&cabling.doubts[..], [Doubt::Unplaced { unplaced, .. }] if unplaced.at == Where::Either(0, 1)));
}

#[test]
fn lldp_short_index() {
    let text = ports(&["g1"]) + "lldpRemSysName.8 = \"attic\"\nlldpRemChassisId.8 = \"x\"\n";
    let doubts = cabling(&[station(&text)]).doubts;
    assert!(
        matches!(&doubts[..], [Doubt::Unplaced { unplaced, .. }] if unplaced.at == Where::Nowhere && unplaced.neighbour == "attic"),
        "{doubts:?}"
    );
}

/// Which ports are members of which LAG, by IEEE8023-LAG-MIB or by ifStackTable, and what of that nobody says.
#[test]
fn members_of_lags_are_read() {
    let all =
        ports(&["Po3", "Eth7", "Eth8"]).replace("ifType.101 = 6", "ifType.101 = 161") + &ONE.replace("0xf0", "0xe0");
    let attached = |rows: &[(u32, u32)]| -> String {
        rows.iter().map(|(port, lag)| format!("1.2.840.10006.300.43.1.2.1.1.13.{port} = {lag}\n")).collect()
    };
    let read = |text: &str| {
        let config = observe(text, &["lag3", "Eth7", "Eth8"]).expect("it answers");
        config.ports.into_iter().map(|port| port.lag).collect::<Vec<_>>()
    };
    let (alone, of) = (LagMembership::Alone, LagMembership::Of(Slot::new(0)));
    assert_eq!(read(&(all.clone() + &attached(&[(102, 101), (103, 0)]))), [alone, of, alone]);
    // One that is set up and hears no LACP stands in ifStackTable alone.
    assert_eq!(
        read(&(all.clone() + "1.3.6.1.2.1.31.1.2.1.3.101.103 = 1\n" + &attached(&[(102, 101), (103, 0)]))),
        [alone, of, of]
    );
    // A switch with neither table says nothing.
    assert_eq!(read(&all), [alone, LagMembership::Unsaid, LagMembership::Unsaid]);
    // Members that are no bridge ports are found all the same.
    let without =
        all.replace("dot1dBasePortIfIndex.2 = 102\n", "").replace("dot1qPvid.2 = 1\n", "").replace("0xe0", "0xa0");
    assert_eq!(read(&(without.clone() + &attached(&[(102, 101)]))), [alone, of, alone]);
    assert!(refusal(&without, &["lag3", "Eth7", "Eth8"]).contains("Eth7"));
    // A LAG of another number is another LAG.
    assert!(refusal(&all, &["lag4", "Eth7", "Eth8"]).contains("lag4"));
}

#[test]
fn lldp_v2() {
    let rem = "1.3.111.2.802.1.1.13.1.4.1.1";
    let row = "0.101.1.1";
    let text = ports(&["g1"])
        + &format!(
            "{rem}.5.{row} = 4\n{rem}.6.{row} = 0x020000000007\n{rem}.7.{row} = 3\n{rem}.8.{row} = 0x020000000007\n"
        );
    let cabling = cabling(&[station(&text)]);
    assert_eq!(cabling.hosts[&(0, 0)].mac, Mac::local(7));
}

#[test]
fn lldp_on_lag_members() {
    let text = ports(&["Po1"])
        + "ifName.7 = \"Eth7\"\nlldpLocPortId.7 = \"Eth7\"\nlldpLocPortIdSubtype.7 = 5\n"
        + &neighbour(7, (4, "0x020000000007"), (5, "\"Eth9\""), "lldpRemSysName = \"spine\"\n");
    let doubts = cabling(&[station(&text)]).doubts;
    let [Doubt::Unplaced { unplaced, .. }] = &doubts[..] else { panic!("{doubts:?}") };
    assert_eq!(
        (&unplaced.at, unplaced.neighbour.as_str(), unplaced.port.as_str()),
        (&Where::Interface("Eth7".to_owned()), "spine", "Eth9")
    );
    // A switch that says which LAG it is a member of is understood, whether or not the bridge knows the member.
    let attached = "1.2.840.10006.300.43.1.2.1.1.13";
    let told = station(&format!("{text}{attached}.7 = 101\n{attached}.101 = 0\nifType.7 = 6\nifType.101 = 161\n"));
    let named: Vec<(&str, Option<&str>)> = (told.ports.iter())
        .map(|port| (port.name.as_str(), port.lag.map(|lag| told.ports[lag].name.as_str())))
        .collect();
    assert_eq!(named, [("Po1", None), ("Eth7", Some("Po1"))]);
    assert_eq!((told.heard.len(), told.heard[0].port, told.unplaced.len()), (1, 1, 0));
    // Its ports are found by the names that topologies have for them.
    let names = ["lag1", "Eth7"].map(str::to_owned);
    let text = format!("{text}{attached}.7 = 101\nifType.7 = 6\nifType.101 = 161\n");
    let told = read_station(&mut session(&agent(&text)), None, &names).expect("it answers");
    assert_eq!(told.ports.iter().map(|port| port.name.as_str()).collect::<Vec<_>>(), ["lag1", "Eth7"]);
}

#[test]
fn mac_in_letters() {
    for letters in ["02:00:00:00:00:07", "02-00-00-00-00-07", "0200.0000.0007", "02 00 00 00 00 07", "020000000007"] {
        let text = ports(&["g1"]) + &neighbour(101, (7, "\"host\""), (3, &format!("\"{letters}\"")), "");
        assert_eq!(cabling(&[station(&text)]).hosts[&(0, 0)].mac, Mac::local(7), "{letters}");
    }
    let wrong = ports(&["g1"]) + &neighbour(101, (7, "\"host\""), (3, "\"02:00:00:00:00:0g\""), "");
    assert!(matches!(cabling(&[station(&wrong)]).doubts[..], [Doubt::NoAddress { .. }]));
}

#[test]
fn short_names() {
    let nexus = "sysName.0 = \"nexus\"\n".to_owned()
        + &ports(&["Ethernet1/19"])
        + &neighbour(101, (7, "\"other\""), (5, "\"17\""), "lldpRemSysName = \"hp\"\n");
    let hp = "sysName.0 = \"hp\"\n".to_owned()
        + &ports(&["17"])
        + &neighbour(101, (7, "\"other\""), (5, "\"Eth1/19\""), "lldpRemSysName = \"nexus\"\n");
    let cabling = found(&nexus, &hp);
    assert_eq!((cabling.links, cabling.doubts), (vec![((0, 0), (1, 0))], vec![]));
}

#[test]
fn cdp_among_lldp() {
    let nexus = "sysName.0 = \"nexus\"\n".to_owned()
        + &ports(&["Ethernet1/19"])
        + &neighbour(101, (4, "0x020000000201"), (5, "\"17\""), "lldpRemSysName = \"hp\"\n");
    let hp = "sysName.0 = \"hp\"\ndot1dBaseBridgeAddress.0 = 0x020000000201\n".to_owned()
        + &ports(&["17"])
        + &neighbour(101, (7, "\"nexus(ABC123)\""), (7, "\"Ethernet1/19\""), "lldpRemSysCapEnabled = 0x28\n");
    assert_eq!(found(&nexus, &hp).links.len(), 1);
}

#[test]
fn one_neighbour_many_ports() {
    let bridge = "lldpRemSysName = \"core\"\nlldpRemSysCapEnabled = 0x28\n";
    let text = ports(&["g1", "g2", "g3", "g4"])
        + &neighbour(101, (4, "0x020000000207"), (5, "\"x1\""), bridge)
        + &neighbour(102, (4, "0x020000000207"), (5, "\"x2\""), bridge)
        + &neighbour(103, (4, "0x020000000007"), (3, "0x020000000007"), "lldpRemSysCapEnabled = 0x01\n")
        // A telephone is a bridge of two sockets.
        + &neighbour(104, (4, "0x020000000008"), (3, "0x020000000008"), "lldpRemSysCapEnabled = 0x24\n");
    let cabling = cabling(&[station(&text)]);
    assert_eq!(cabling.hosts.keys().copied().collect::<Vec<_>>(), [(0, 2), (0, 3)]);
    assert!(cabling.hosts.values().all(|host| host.evidence == Evidence::Lldp));
    assert!(matches!(cabling.doubts[..], [Doubt::Unasked { hears: (0, 0), .. }, Doubt::Unasked { hears: (0, 1), .. }]));
}

#[test]
fn names_with_spaces() {
    let names = ["TenGigabitEthernet 1/30", "1/1/11:3", "trunk: Down (eth5)"];
    let text = ports(&names) + "dot1qVlanStaticEgressPorts.1 = 0xe0\ndot1qVlanStaticUntaggedPorts.1 = 0xe0\n";
    let found: Vec<String> = station(&text).ports.into_iter().map(|port| port.name).collect();
    assert_eq!(found, names);
    assert_eq!(observe(&text, &names).expect("they are there").ports.len(), 3);
    // What no line can hold is told by another name.
    let hostile = ports(&["a\u{1b}[2J", &"x".repeat(5000)]) + "ifDescr.101 = \"Port 1\"\n";
    let found: Vec<String> = station(&hostile).ports.into_iter().map(|port| port.name).collect();
    assert_eq!(found, ["Port 1", "bridge port 2"]);
}

#[test]
fn names_twice() {
    let text = ports(&["XGE2/0/2", "XGE2/0/2", "g3"]) + "dot1qVlanStaticEgressPorts.1 = 0xe0\n";
    let found: Vec<String> = station(&text).ports.into_iter().map(|port| port.name).collect();
    assert_eq!(found, ["bridge port 1", "bridge port 2", "g3"]);
    let error = refusal(&text, &["XGE2/0/2"]);
    assert!(error.contains("\"bridge port 1\" or \"bridge port 2\""), "{error}");
    assert!(observe(&text, &["bridge port 1", "bridge port 2"]).is_ok(), "as the refusal says");
}

#[test]
fn names_of_models() {
    for (said, asked) in [
        (["Port1", "Port2"], ["1/1", "1/2"]),
        (["swp00", "swp01"], ["1", "2"]),
        (["gigabitEthernet 1/0/1", "gigabitEthernet 1/0/2"], ["1/0/1", "1/0/2"]),
    ] {
        let text = ports(&said) + "dot1qVlanStaticEgressPorts.1 = 0xc0\ndot1qVlanStaticEgressPorts.2 = 0x40\n";
        let config = observe(&text, &asked).expect("its ports");
        assert_eq!((&config.ports[0].tagged, &config.ports[1].tagged), (&set("1"), &set("1-2")), "{asked:?}");
    }
    let error = refusal(&(ports(&["Ethernet1/1", "Ethernet1/2"]) + ONE), &["Ethernet1/3"]);
    assert!(error.contains("names like it are Ethernet1/1"), "{error}");
    let error = refusal(&(ports(&["gi1", "gi2"]) + ONE), &["gi1", "GigabitEthernet1"]);
    assert!(error.contains("one port of it"), "{error}");
}

#[test]
fn lags_like_ports() {
    let names = ["gi1", "gi2", "gi3", "gi4", "Po1", "port-channel 2", "Management1", "1/1+3/1"];
    // A bundle of radio links has the name of its port.
    let lists = "dot1qVlanStaticEgressPorts.1 = 0xff\ndot1qVlanStaticUntaggedPorts.1 = 0xff\nifName.900 = \"1/1+3/1\"\nifType.900 = 188\n";
    // gi4 is a member of Po1, and gi3 has no connector.
    let text = ports(&names)
        .replace("ifType.105 = 6", "ifType.105 = 161")
        .replace("ifConnectorPresent.103 = 1", "ifConnectorPresent.103 = 2")
        + lists
        + "1.3.6.1.2.1.31.1.2.1.3.105.104 = 1\n";
    let (rehearsed, _) = enrol::rehearse(session(&agent(&text)), &request()).expect("two are left");
    assert_eq!(rehearsed.ports, ["gi2", "gi1"]);
    let named = ProbeRequest { ports: vec!["Po1".to_owned()], ..request() };
    let error = enrol::rehearse(session(&agent(&text)), &named).expect_err("no port for data").to_string();
    assert!(error.contains("gi1, gi2") && !error.contains("gi4"), "{error}");
}

#[test]
fn every_quirk_has_its_test() {
    let own = include_str!("quirks.rs");
    for quirk in QUIRKS {
        let head = format!("\nfn {}() {{", quirk.name.replace('-', "_"));
        assert!(own.contains(&head), "{} has no test", quirk.name);
    }
}
