//! A managed switch without hardware, for managers to practise on.
//!
//! ```text
//! cargo run -p switchd --example agent -- 127.0.0.1:1161 [PORTS] [STATIC-ENTRIES]
//! snmpwalk -v2c -c public 127.0.0.1:1161 1.3.6.1.2.1.17
//! snmpwalk -v3 -u ops -l authPriv -a SHA-256 -A authenticate -x AES -X encipher-me 127.0.0.1:1161 1.3.6.1.2.1.17
//! ```
//!
//! Community `public` reads and `private` writes; user `ops` (SHA-256) and user `old` (SHA-1) do both. Its Ethernet address and
//! serial number come of the last octet of the IP address, so that 127.0.0.1 and 127.0.0.2 are two switches.

use std::{
    collections::BTreeMap,
    env, io,
    net::{IpAddr, UdpSocket},
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use bridge_mib::{PortList, StaticStatus, index::StaticRow};
use fabric::Mac;
use snmp::wire::{AuthProtocol, Keys, PrivacyProtocol};
use switchd::agent::{
    Access, Config, Engine, Facts, HybridPorts, Learning, Limits, PortFacts, PortKind, Rights, Server, StaticConfig,
    Still, Switch, User,
};

fn main() -> io::Result<()> {
    let args: Vec<String> = env::args().skip(1).collect();
    let listen = args.first().map_or("127.0.0.1:1161", String::as_str);
    let number = |at: usize, default: u32| args.get(at).and_then(|text| text.parse().ok()).unwrap_or(default);
    let (ports, entries) = (number(1, 24), number(2, 0));
    let socket = UdpSocket::bind(listen)?;
    let number_of_switch = match socket.local_addr()?.ip() {
        IpAddr::V4(ip) => ip.octets()[3],
        IpAddr::V6(ip) => ip.octets()[15],
    };
    let engine_id = [&[0x80, 0, 0x1f, 0x88, 4][..], b"example", &[number_of_switch]].concat();
    let port =
        |port: u32| PortFacts { name: format!("g{port}"), if_index: port, mac: Mac::local(port), kind: PortKind::Own };
    let facts = Facts {
        description: "a switch of software alone".to_owned(),
        address: Mac::local(0xaa00 + u32::from(number_of_switch)),
        ports: (1..=ports).map(port).collect(),
        limits: Limits {
            vlans_max: 255,
            statics_max: 16_384,
            hybrid: HybridPorts::Allowed,
            learning: Learning::Independent,
            pfc_classes: 0,
        },
    };
    let entry = |port: u32| StaticConfig {
        ports: PortList::of([port]).expect("a port of the switch"),
        status: StaticStatus::Permanent,
    };
    let statics: BTreeMap<StaticRow, StaticConfig> = (0..entries)
        .map(|number| (StaticRow { fdb: 1, mac: Mac::local(number + 1), receive_port: 0 }, entry(number % ports + 1)))
        .collect();
    let config = Config { statics, ..Config::factory(ports as usize) };
    let unix_s = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let switch = Switch::new(facts, config, Still, &engine_id, unix_s as i32, 0);
    let user = |name: &str, protocol, privacy| User {
        name: name.as_bytes().to_vec(),
        keys: Keys::new(protocol, "authenticate", Some((privacy, "encipher-me")), &engine_id),
        rights: Rights::Write,
    };
    let access = Access {
        communities: vec![(b"public".to_vec(), Rights::Read), (b"private".to_vec(), Rights::Write)],
        users: vec![
            user("ops", AuthProtocol::Sha256, PrivacyProtocol::Aes128),
            user("old", AuthProtocol::Sha1, PrivacyProtocol::Aes128),
        ],
    };
    let engine = Engine::new(switch, access, &engine_id, unix_s << 32);
    let mut server = Server::new(engine, socket, Instant::now());
    loop {
        server.step(Duration::from_secs(1))?;
    }
}
