//! Four switches that answer SNMP on loopback addresses.
#![allow(dead_code)]

use std::{
    collections::BTreeSet,
    fs,
    net::{SocketAddr, UdpSocket},
    path::PathBuf,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use bridge_mib::{
    BridgePort, IfStatus, LldpChassisSubtype, LldpPortSubtype,
    index::{FdbRow, Neighbour},
    objects::q_bridge,
};
use fabric::{Mac, VlanId, rng::Rng};
use snmp::{
    Credentials, Patience, Session, UdpLink, Value,
    wire::{AuthProtocol, Keys, PrivacyProtocol},
};
use switchd::agent::{
    Access, Change, Config, DataPlane, Engine, Facts, HybridPorts, Learning, Limits, NeighbourInfo, PortFacts,
    PortKind, Refused, Rights, Sensors, Server, Switch, User,
};

const PORTS: u32 = 4;

/// With room for all that a plan of the ring needs.
pub(crate) const ROOMY: Limits = Limits { vlans_max: 64, statics_max: 512, ..LIMITS };

pub(crate) const LIMITS: Limits = Limits {
    vlans_max: 6,
    statics_max: 9,
    hybrid: HybridPorts::Allowed,
    learning: Learning::Independent,
    pfc_classes: 0,
};

/// The network of the switches' addresses, on the loopback interface.
const LOOPBACK: [u8; 3] = [127, 0, 7];

/// What is told of each configuration that a switch has applied.
pub(crate) type Watch = Arc<dyn Fn(usize, &Config) + Send + Sync>;

/// The ring, in which two hosts are hypervisors whose addresses are learned.
pub(crate) fn learning_ring() -> String {
    let at = |host: u8| format!("port: \"s{host}:p3\"");
    let learn = |text: String, host: u8| {
        text.replace(&at(host), &format!("{}, addresses: learned, addresses-max: 2", at(host)))
    };
    [1, 3].into_iter().fold(ring(), learn)
}

/// A ring of four switches with a host each.
pub(crate) fn ring() -> String {
    ring_in(LOOPBACK)
}

/// The same, with management addresses of this network.
pub(crate) fn ring_in([a, b, c]: [u8; 3]) -> String {
    let mut text = String::from("switches:\n");
    for n in 0..4 {
        text.push_str(&format!("  s{n}: {{mgmt: {a}.{b}.{c}.{}}}\n", n + 1));
    }
    text.push_str("links:\n");
    for n in 0..4 {
        text.push_str(&format!("  - s{n}:p1 -- s{}:p2\n", (n + 1) % 4));
    }
    text.push_str("hosts:\n");
    for n in 0..4 {
        text.push_str(&format!("  h{n}: {{mac: \"02:00:00:00:00:0{}\", port: \"s{n}:p3\"}}\n", n + 1));
    }
    text
}

/// What is wrong with the cables of the ring.
#[derive(Default)]
struct Cabling {
    /// Links without carrier, each by the switch at its `p1`.
    cut: BTreeSet<u8>,
    /// Switches whose plugs in `p1` and `p2` are exchanged.
    crossed: BTreeSet<u8>,
    /// `boxes[switch]`: how often it has been replaced by another one.
    boxes: [u8; 4],
    /// `heard[switch]`: addresses that send behind its `p3`, beside the host of the topology.
    heard: [BTreeSet<Mac>; 4],
    /// `forwarding[switch]`.
    forwarding: [Forwarding; 4],
}

/// Where a switch forwards broadcasts.
#[derive(Default)]
struct Forwarding {
    /// The VLAN of untagged frames that enter by `p3`.
    host: Option<VlanId>,
    /// VLANs that pass `p1` and `p2`.
    ring: [BTreeSet<VlanId>; 2],
}

impl Cabling {
    /// The port by which a switch hears broadcasts from behind a switch's `p3`, in their VLAN.
    fn hears(&self, number: usize, from: usize) -> Option<(VlanId, u32)> {
        let vlan = self.forwarding[from].host?;
        if number == from {
            return Some((vlan, 3));
        }
        let passes = |switch: usize, port: usize| self.forwarding[switch].ring[port - 1].contains(&vlan);
        // Onward from `p1` to the next one's `p2`, or back.
        [(1, 2, 1), (2, 1, 3)].into_iter().find_map(|(port, far, step)| {
            let mut way = (0..4).map(|hops| (from + hops * step) % 4).take_while(|switch| *switch != number);
            let arrives = way.all(|switch| passes(switch, port) && passes((switch + step) % 4, far));
            arrives.then_some((vlan, far as u32))
        })
    }
}

/// The chassis of a switch, which a replacement does not share.
fn chassis(number: u8, replaced: u8) -> Mac {
    Mac::new([2, 0, 0, 1 + replaced, number, 0])
}

/// Four switches, each with an address of its own.
pub(crate) struct Closet {
    network: [u8; 3],
    pub(crate) port: u16,
    pub(crate) silent: Vec<Arc<AtomicBool>>,
    /// `unanswered[switch]`: requests that came while it was silent.
    pub(crate) unanswered: Vec<Arc<AtomicUsize>>,
    /// Changes of a configuration that were asked for, on all switches.
    pub(crate) writes: Arc<AtomicUsize>,
    cabling: Arc<Mutex<Cabling>>,
    traps: Vec<Arc<AtomicBool>>,
    freezes: Vec<Arc<AtomicBool>>,
    storms: Vec<Arc<AtomicBool>>,
    stop: Arc<AtomicBool>,
    agents: Vec<JoinHandle<()>>,
}

impl Closet {
    pub(crate) fn open(limits: Limits) -> Self {
        Self::open_with(limits, ["p"; 4])
    }

    /// `kinds[switch]`: what stands before the number in a port's name.
    pub(crate) fn open_with(limits: Limits, kinds: [&'static str; 4]) -> Self {
        Self::open_in(LOOPBACK, limits, kinds, None)
    }

    /// The same, at addresses 1 to 4 of a network that this machine has.
    pub(crate) fn open_in(network: [u8; 3], limits: Limits, kinds: [&'static str; 4], watch: Option<&Watch>) -> Self {
        let [a, b, c] = network;
        let bind = |host: u8, port: u16| UdpSocket::bind(SocketAddr::from(([a, b, c, host], port)));
        // A port that is free on all four.
        let (port, sockets) = (0..100)
            .find_map(|_| {
                let first = bind(1, 0).ok()?;
                let port = first.local_addr().ok()?.port();
                let others = (2..=4).map(|n| bind(n, port)).collect::<Result<Vec<_>, _>>().ok()?;
                Some((port, [first].into_iter().chain(others).collect::<Vec<_>>()))
            })
            .expect("a port is free on four addresses");
        let stop = Arc::new(AtomicBool::new(false));
        let flags = || -> Vec<Arc<AtomicBool>> { (0..4).map(|_| Arc::default()).collect() };
        let (silent, traps, freezes, storms) = (flags(), flags(), flags(), flags());
        let unanswered: Vec<Arc<AtomicUsize>> = (0..4).map(|_| Arc::default()).collect();
        let (writes, cabling) = (Arc::new(AtomicUsize::new(0)), Arc::default());
        let agents = sockets.into_iter().zip(0_u8..).map(|(socket, number)| {
            let at = usize::from(number);
            let (stop, silent) = (Arc::clone(&stop), Arc::clone(&silent[at]));
            let (trap, freeze) = (Arc::clone(&traps[at]), Arc::clone(&freezes[at]));
            let (storm, open, turns) = (Arc::clone(&storms[at]), false, Rng::new(u64::from(number)));
            let (writes, cabling) = (Arc::clone(&writes), Arc::clone(&cabling));
            let (silent_too, watch) = (Arc::clone(&silent), watch.cloned());
            let ring = Ring { number, trap, freeze, silent: silent_too, storm, open, turns, writes, cabling, watch };
            let lost = Arc::clone(&unanswered[at]);
            thread::spawn(move || serve(socket, ring, limits, kinds[at], &stop, (&silent, &lost)))
        });
        let agents = agents.collect();
        Self { network, port, silent, unanswered, writes, cabling, traps, freezes, storms, stop, agents }
    }

    pub(crate) fn do_it(&self, deed: &str) {
        let words: Vec<&str> = deed.split_whitespace().collect();
        let number: usize = words[0].strip_prefix('s').and_then(|n| n.parse().ok()).expect("a switch");
        match &words[1..] {
            ["silent"] => self.silent[number].store(true, Ordering::SeqCst),
            [how @ ("cuts" | "mends" | "crosses" | "uncrosses")] => {
                let mut cabling = self.cabling.lock().expect("nobody panics with it");
                let (number, Cabling { cut, crossed, .. }) = (number as u8, &mut *cabling);
                match *how {
                    "cuts" => cut.insert(number),
                    "mends" => cut.remove(&number),
                    "crosses" => crossed.insert(number),
                    _ => crossed.remove(&number),
                };
            }
            ["replaced"] => self.cabling.lock().expect("nobody panics with it").boxes[number] += 1,
            [how @ ("hears" | "forgets"), address] => {
                let address = address.parse().expect("an address");
                let heard = &mut self.cabling.lock().expect("nobody panics with it").heard[number];
                if *how == "hears" {
                    heard.insert(address)
                } else {
                    heard.remove(&address)
                };
            }
            ["storms"] => self.storms[number].store(true, Ordering::SeqCst),
            ["calms"] => self.storms[number].store(false, Ordering::SeqCst),
            ["freezes"] => self.freezes[number].store(true, Ordering::SeqCst),
            ["traps"] => self.traps[number].store(true, Ordering::SeqCst),
            ["speaks"] => self.silent[number].store(false, Ordering::SeqCst),
            [object, "=", value] => {
                let port = object.strip_prefix("dot1qPvid.").and_then(|port| port.parse().ok()).expect("a PVID");
                let [a, b, c] = self.network;
                let link = UdpLink::open(([a, b, c, number as u8 + 1], self.port).into()).expect("a socket");
                let word = Credentials::Community("private".to_owned());
                let mut session = Session::new(link, word, Patience::default(), 7 << 40);
                let value = Value::Gauge32(value.parse().expect("a number"));
                session.set(vec![(q_bridge::PVID.row(&BridgePort(port)), value)]).expect("it is written");
            }
            other => panic!("nobody can do {other:?}"),
        }
    }
}

impl Drop for Closet {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        for agent in self.agents.drain(..) {
            // One that panicked has said so.
            let _ = agent.join();
        }
    }
}

fn serve(
    socket: UdpSocket,
    ring: Ring,
    limits: Limits,
    kind: &str,
    stop: &AtomicBool,
    (silent, unanswered): (&AtomicBool, &AtomicUsize),
) {
    let replaced = || ring.cabling.lock().expect("nobody panics with it").boxes[usize::from(ring.number)];
    while !stop.load(Ordering::SeqCst) {
        let this = replaced();
        let mut server = boot(socket.try_clone().expect("a socket"), (ring.clone(), this), limits, kind);
        while !stop.load(Ordering::SeqCst) && replaced() == this {
            if silent.load(Ordering::SeqCst) {
                let mut lost = [0; 2048];
                if server.socket().recv(&mut lost).is_ok() {
                    unanswered.fetch_add(1, Ordering::SeqCst);
                }
                thread::sleep(Duration::from_millis(5));
            } else {
                server.step(Duration::from_millis(50)).expect("a socket");
            }
        }
    }
}

/// A switch as it comes out of its box.
fn boot(socket: UdpSocket, (ring, replaced): (Ring, u8), limits: Limits, kind: &str) -> Server<Switch<Ring>> {
    let number = ring.number;
    let engine_id = [0x80, 0, 0x1f, 0x88, 4, b's', number, replaced];
    let [a, b, c, d, e, _] = chassis(number, replaced).octets();
    let port = |port: u32| PortFacts {
        name: format!("{kind}{port}"),
        if_index: 100 + port,
        mac: Mac::new([a, b, c, d, e, port as u8]),
        kind: PortKind::Own,
    };
    let facts = Facts {
        description: "Wiredrawer 4, version 3".to_owned(),
        address: chassis(number, replaced),
        ports: (1..=PORTS).map(port).collect(),
        limits,
    };
    let mut config = Config::factory(PORTS as usize);
    config.name = format!("s{number}").into_bytes();
    // The last port has no link.
    config.ports[PORTS as usize - 1].admin = IfStatus::Down;
    let switch = Switch::new(facts, config, ring, &engine_id, 1, 0);
    let keys =
        Keys::new(AuthProtocol::Sha256, "authentication", Some((PrivacyProtocol::Aes128, "privacy-too")), &engine_id);
    let access = Access {
        communities: vec![(b"private".to_vec(), Rights::Write)],
        users: vec![User { name: b"admin".to_vec(), keys, rights: Rights::Write }],
    };
    // Links have been up for a while: neighbours that are not heard are not there.
    let since = Instant::now().checked_sub(Duration::from_secs(60)).unwrap_or_else(Instant::now);
    Server::new(Engine::new(switch, access, &engine_id, 1), socket, since)
}

/// A plane that forwards nothing, and hears the switches before and behind it in the ring.
#[derive(Clone)]
struct Ring {
    number: u8,
    /// Whether it falls silent once its first port has been shut.
    trap: Arc<AtomicBool>,
    /// Whether it falls silent once anything has been changed.
    freeze: Arc<AtomicBool>,
    silent: Arc<AtomicBool>,
    /// Whether a broadcast comes back by both ports toward its neighbours.
    storm: Arc<AtomicBool>,
    /// Whether its ports are open, the one for a host as well.
    open: bool,
    turns: Rng,
    writes: Arc<AtomicUsize>,
    cabling: Arc<Mutex<Cabling>>,
    watch: Option<Watch>,
}

impl DataPlane for Ring {
    fn observe(&mut self, up_cs: u32, sensors: &mut Sensors) {
        let cabling = self.cabling.lock().expect("nobody panics with it");
        let speaker = |number: u8, port: u8| NeighbourInfo {
            chassis_subtype: LldpChassisSubtype::Mac,
            chassis_id: chassis(number, cabling.boxes[usize::from(number)]).octets().to_vec(),
            port_subtype: LldpPortSubtype::Name,
            port_id: format!("p{port}").into_bytes(),
            port_description: Vec::new(),
            system_name: format!("s{number}").into_bytes(),
            system_description: Vec::new(),
            capabilities: 4,
            capabilities_enabled: 4,
        };
        let row = |local_port: u32| Neighbour { time_mark: 0, local_port, index: 1 };
        let before = (self.number + 3) % 4;
        let [next, back] = [(self.number, (self.number + 1) % 4, 2), (before, before, 1)];
        let is_crossed = |number: u8| cabling.crossed.contains(&number);
        let by_port = if is_crossed(self.number) { [back, next] } else { [next, back] };
        let ends = (1..).zip(by_port).map(|(port, (link, neighbour, its_port))| {
            (port, link, neighbour, if is_crossed(neighbour) { 3 - its_port } else { its_port })
        });
        sensors.neighbours.rows.clear();
        for (port, link, neighbour, its_port) in ends {
            let sensor = &mut sensors.ports[port as usize - 1];
            let oper = if cabling.cut.contains(&link) { IfStatus::Down } else { IfStatus::Up };
            if oper == IfStatus::Up {
                sensors.neighbours.rows.insert(row(port), speaker(neighbour, its_port));
            }
            if sensor.oper != oper {
                (sensor.oper, sensor.changed_cs, sensors.neighbours.changed_cs) = (oper, up_cs, up_cs);
            }
        }
        sensors.learned.clear();
        for (from, heard) in cabling.heard.iter().enumerate() {
            let Some((vlan, port)) = cabling.hears(usize::from(self.number), from) else { continue };
            let row = |mac: &Mac| (FdbRow { fdb: u32::from(vlan.get()), mac: *mac }, port);
            sensors.learned.extend(heard.iter().map(row));
        }
        drop(cabling);
        if self.open && self.storm.load(Ordering::SeqCst) {
            sensors.learned.insert(FdbRow { fdb: 2, mac: Mac::local(77) }, [1, 2][self.turns.below(2)]);
        }
    }

    fn apply(&mut self, config: &Config, _: &[Change]) -> Result<(), Refused> {
        self.writes.fetch_add(1, Ordering::SeqCst);
        if let Some(watch) = &self.watch {
            watch(usize::from(self.number), config);
        }
        self.open = config.ports[..3].iter().all(|port| port.admin == IfStatus::Up);
        let passes = |port: u32| {
            let is_up = config.ports[port as usize - 1].admin == IfStatus::Up;
            let members = config.active_vlans().filter(move |(_, vlan)| is_up && vlan.egress.contains(port));
            members.map(|(vlan, _)| vlan).collect()
        };
        let host = self.open.then_some(config.ports[2].pvid);
        self.cabling.lock().expect("nobody panics with it").forwarding[usize::from(self.number)] =
            Forwarding { host, ring: [passes(1), passes(2)] };
        let is_shut = config.ports[0].admin == IfStatus::Down;
        if (is_shut && self.trap.swap(false, Ordering::SeqCst)) || self.freeze.swap(false, Ordering::SeqCst) {
            self.silent.store(true, Ordering::SeqCst);
        }
        Ok(())
    }
}

/// A folder of the test's own, gone with it.
pub(crate) struct Folder(pub(crate) PathBuf);

impl Folder {
    pub(crate) fn new(word: &str) -> Self {
        let path = std::env::temp_dir().join(format!("espalier-switches-{}-{word}", std::process::id()));
        fs::create_dir(&path).expect("a fresh folder");
        Self(path)
    }

    /// Credentials, and a topology.
    pub(crate) fn prepare(&self, topology: &str) {
        self.write("credentials.toml", "[default]\ncommunity = \"private\"\nsave = \"by-hand\"\n");
        self.write("ring.yaml", topology);
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        use std::os::unix::fs::PermissionsExt as _;
        let path = self.0.join(name);
        fs::write(&path, text).expect("it can be written");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).expect("it is ours");
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.0) {
            eprintln!("{} stays behind: {error}", self.0.display());
        }
    }
}
