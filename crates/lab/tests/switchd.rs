//! A bridge of the kernel's as a managed switch, and as one that is configured by its shell: what managers write is what
//! iproute2 shows and what frames meet. Needs a kernel whose bridge filters VLANs (`crates/lab/vm/run` boots one).

mod common;

use std::{
    fs,
    net::{Ipv4Addr, SocketAddr},
    os::unix::fs::PermissionsExt as _,
    path::PathBuf,
    process::Command,
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::Duration,
};

use ::switchd::{
    bridge::{ServeEvent, serve},
    settings::{SwitchdConfig, parse_switchd},
};
use bridge_mib::{
    PauseMode, PortList, StaticStatus,
    index::{IfIndex, StaticRow},
    objects::{ether_like, own, q_bridge},
};
use cancel::Cancel;
use common::skipped;
use dialects::Target;
use drivers::{
    snmp::{Device, SaveMethod, Settings},
    ssh::{self, Login},
};
use fabric::{Admin, Mac, VlanId, VlanSet};
use lab::{Backend, netns::within};
use snmp::{
    Credentials, Patience, Session, SessionError, UdpLink, Value,
    wire::{AuthProtocol, ErrorStatus, PrivacyProtocol},
};
use switch_model::{
    Slot, SwitchConfig,
    driver::{Driver, Fault},
    mark::Mark,
};

const PORTS: [&str; 3] = ["p1", "p2", "p3"];
const PASSWORD: &str = "a-password-of-its-own";

/// A namespace with three ports, a host at each, and a folder; all of it goes with this value.
struct Bench {
    namespace: String,
    folder: PathBuf,
}

impl Bench {
    fn new(word: &str) -> Self {
        let namespace = format!("swd{word}{}", std::process::id());
        let folder = std::env::temp_dir().join(&namespace);
        fs::create_dir_all(&folder).expect("a folder");
        let bench = Self { namespace, folder };
        tool(&["ip", "netns", "add", &bench.namespace]);
        bench.run("ip link set lo up");
        for (number, port) in (1..).zip(PORTS) {
            let host = bench.host(number);
            tool(&["ip", "netns", "add", &host]);
            bench.run(&format!("ip link add {port} type veth peer name eth0 netns {host}"));
            let mac = Mac::local(number);
            within(&host, || {
                tool(&["ip", "link", "set", "eth0", "address", &mac.to_string(), "up"]);
                tool(&["ip", "addr", "add", &format!("10.9.0.{number}/24"), "dev", "eth0"]);
            })
            .expect("a namespace");
        }
        bench
    }

    fn host(&self, number: u32) -> String {
        format!("{}h{number}", self.namespace)
    }

    /// Runs a command in the switch and returns what it prints.
    fn run(&self, command: &str) -> String {
        let words: Vec<&str> = command.split_whitespace().collect();
        within(&self.namespace, || tool(&words)).expect("a namespace")
    }

    fn hears(&self, from: u32, to: u32) -> bool {
        let ping = || {
            Command::new("ping").args(["-c", "1", "-W", "2", &format!("10.9.0.{to}")]).output().expect("ping").status
        };
        within(&self.host(from), ping).expect("a namespace").success()
    }

    fn secret(&self, name: &str, word: &str) -> PathBuf {
        let path = self.folder.join(name);
        fs::write(&path, format!("{word}\n")).expect("a file");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).expect("rights");
        path
    }

    fn config(&self) -> SwitchdConfig {
        let (auth, privacy) = (self.secret("auth", PASSWORD), self.secret("privacy", PASSWORD));
        let text = format!(
            "bridge = \"br0\"\nlisten = \"127.0.0.1:1161\"\nstate = \"{}\"\nname = \"rack7\"\n[[users]]\nname = \"admin\"\n\
             auth-password-file = \"{}\"\nprivacy-password-file = \"{}\"\nrights = \"write\"\n",
            self.folder.join("state").display(),
            auth.display(),
            privacy.display()
        );
        parse_switchd(&text).expect("a configuration")
    }

    /// Serves the bridge while `meanwhile` runs in its namespace.
    fn serve(&self, config: &SwitchdConfig, meanwhile: impl FnOnce() + Send) {
        let (stop, ready) = (AtomicBool::new(false), AtomicBool::new(false));
        thread::scope(|scope| {
            let served = scope.spawn(|| {
                let mut tell = |event: ServeEvent| {
                    if matches!(event, ServeEvent::Ready) {
                        ready.store(true, Ordering::SeqCst);
                    }
                };
                let serve = || serve(config, "br0", &stop, &mut tell);
                within(&self.namespace, serve).expect("a namespace")
            });
            while !ready.load(Ordering::SeqCst) && !served.is_finished() {
                thread::sleep(Duration::from_millis(20));
            }
            let end = End(&stop);
            within(&self.namespace, meanwhile).expect("a namespace");
            drop(end);
            served.join().expect("no panic").expect("it serves to the end");
        });
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        for name in (1..4).map(|number| self.host(number)).chain([self.namespace.clone()]) {
            // What is gone already needs no removing.
            let _ = Command::new("ip").args(["netns", "delete", &name]).output();
        }
        let _ = fs::remove_dir_all(&self.folder);
        let _ = fs::remove_file("/run/espalier/switchd-br0");
    }
}

fn tool(words: &[&str]) -> String {
    let output = Command::new(words[0]).args(&words[1..]).output().unwrap_or_else(|error| panic!("{words:?}: {error}"));
    assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn names() -> Vec<String> {
    PORTS.map(str::to_owned).to_vec()
}

/// Hosts 1 and 2 in VLAN 10, one of them known; host 3 alone in VLAN 20; VLAN 30 with tags on a cable to elsewhere.
fn goal() -> SwitchConfig {
    let vlan = |id| VlanId::new(id).expect("valid");
    let mut goal = SwitchConfig::blank(names());
    goal.vlans = [vlan(10), vlan(20), vlan(30)].into_iter().collect();
    for (port, pvid) in goal.ports.iter_mut().zip([10, 10, 20]) {
        (port.admin, port.pvid) = (Admin::Up, Some(vlan(pvid)));
        port.untagged = VlanSet::from_iter([vlan(pvid)]);
    }
    goal.ports[1].tagged.insert(vlan(30));
    goal.entries.insert((vlan(10), Mac::local(2)), Slot::new(1));
    goal
}

/// What iproute2 says of the bridge is what was written.
fn assert_held(bench: &Bench, bridge: &str) {
    let vlans = bench.run("bridge vlan show dev p2");
    assert!(vlans.contains("10 PVID Egress Untagged") && vlans.contains("30") && !vlans.contains("20"), "{vlans}");
    let addresses = bench.run(&format!("bridge fdb show br {bridge}"));
    let entry = format!("{} dev p2 vlan 10 master {bridge} static", Mac::local(2));
    assert!(addresses.contains(&entry), "{addresses}");
    assert!(bench.hears(1, 2), "hosts of one VLAN hear each other");
    assert!(!bench.hears(1, 3), "hosts of two do not");
}

#[test]
fn managers_by_snmp_change_the_kernels_bridge() {
    if skipped(Backend::Bridge) {
        return;
    }
    let bench = Bench::new("s");
    bench.run("ip link add name br0 type bridge vlan_filtering 1 mcast_snooping 0");
    bench.run("ip link set br0 up");
    for port in PORTS {
        bench.run(&format!("ip link set {port} master br0 up"));
    }
    let config = bench.config();
    let mut starts = Vec::new();
    for start in 1..=2 {
        bench.serve(&config, || {
            if start == 1 {
                first(&bench)
            } else {
                second()
            }
            starts.push(boots());
        });
        assert!(!bench.run("ip link show p3").contains("changed"), "what nobody confirmed ends with the program");
        assert_held(&bench, "br0");
    }
    assert!(starts[0] < starts[1], "managers refuse an engine whose count does not rise: {starts:?}");
    fs::set_permissions(bench.folder.join("auth"), fs::Permissions::from_mode(0o644)).expect("rights");
    let refused = within(&bench.namespace, || serve(&config, "br0", &AtomicBool::new(true), &mut |_| {}));
    assert!(refused.expect("a namespace").is_err_and(|error| error.to_string().contains("chmod 600")));
}

/// What somebody does to the bridge by its shell is what managers read the next moment, and whoever was about to write is
/// told; what the bridge learns meanwhile is no such thing.
#[test]
fn what_others_change_is_told() {
    if skipped(Backend::Bridge) {
        return;
    }
    let bench = Bench::new("o");
    bench.run("ip link add name br0 type bridge vlan_filtering 1 mcast_snooping 0");
    bench.run("ip link set br0 up");
    for port in PORTS {
        bench.run(&format!("ip link set {port} master br0 up"));
    }
    bench.serve(&bench.config(), || {
        let mut device = connect();
        let read = |device: &mut Device<UdpLink>| {
            let mut reading = device.read().expect("a reading");
            reading.config.take_unwritable_of(&goal());
            reading
        };
        let found = read(&mut device);
        let mark = Mark::new(1, 2, 3);
        let fence = device.write(&found.config, &goal(), mark, found.fence, None).expect("a write");
        assert!(bench.hears(1, 2), "hosts of one VLAN hear each other");
        let held = read(&mut device);
        assert_eq!((&held.config, held.fence), (&goal(), fence), "what is learned changes nothing");
        let vlan = |id| VlanId::new(id).expect("valid");
        type Does = fn(&mut SwitchConfig, VlanId);
        let by_shell: [(String, u16, Does); 6] = [
            ("bridge vlan add dev p3 vid 77".to_owned(), 77, |c, v| {
                c.ports[2].tagged.insert(v);
                c.vlans.insert(v);
            }),
            ("bridge vlan del dev p2 vid 30".to_owned(), 30, |c, v| _ = c.ports[1].tagged.remove(v)),
            (format!("bridge fdb replace {} dev p1 vlan 10 master static", Mac::local(5)), 10, |c, v| {
                c.entries.insert((v, Mac::local(5)), Slot::new(0));
            }),
            (format!("bridge fdb del {} dev p2 vlan 10 master static", Mac::local(2)), 10, |c, v| {
                c.entries.remove(&(v, Mac::local(2)));
            }),
            ("bridge vlan add dev p3 vid 20 untagged".to_owned(), 20, |c, _| c.ports[2].pvid = None),
            ("ip link set p3 down".to_owned(), 20, |c, _| c.ports[2].admin = Admin::Down),
        ];
        let (mut expected, mut last) = (goal(), held);
        for (command, id, does) in by_shell {
            bench.run(&command);
            does(&mut expected, vlan(id));
            assert_eq!(device.write(&last.config, &goal(), mark, last.fence, None), Err(Fault::Fenced), "{command}");
            last = read(&mut device);
            assert_eq!(last.config, expected, "{command}");
        }
        let fence = device.write(&last.config, &goal(), mark, last.fence, None).expect("a write");
        let again = read(&mut device);
        assert_eq!((&again.config, again.fence), (&goal(), fence));
    });
    assert_held(&bench, "br0");
}

/// A card whose driver has PAUSE does what is written, as ethtool shows it, and says so.
#[test]
fn pause_is_what_the_driver_does() {
    let Some(card) = std::env::var("LAB_PAUSE_DEVICE").ok().filter(|_| !skipped(Backend::Bridge)) else {
        println!("SKIPPED: LAB_PAUSE_DEVICE names no card whose driver has PAUSE");
        return;
    };
    let bench = Bench::new("q");
    tool(&["ip", "link", "set", "dev", &card, "netns", &bench.namespace]);
    bench.run("ip link add name br0 type bridge vlan_filtering 1 mcast_snooping 0");
    bench.run("ip link set br0 up");
    for port in ["p1", &card] {
        bench.run(&format!("ip link set dev {port} master br0 up"));
    }
    let config = bench.config();
    let row = IfIndex(index_of(&bench, &card));
    bench.serve(&config, || {
        let mut session = session();
        for (mode, shown) in [
            (PauseMode::Both, ["on", "on"]),
            (PauseMode::Receive, ["on", "off"]),
            (PauseMode::Transmit, ["off", "on"]),
            (PauseMode::Off, ["off", "off"]),
            (PauseMode::Both, ["on", "on"]),
        ] {
            let asked = vec![(ether_like::PAUSE_ADMIN_MODE.row(&row), Value::Integer(mode.code()))];
            session.set(asked).expect("the driver has it");
            let said = bench.run(&format!("ethtool -a {card}"));
            let words: Vec<&str> = said.split_whitespace().collect();
            let after = |word: &str| words.iter().position(|other| *other == word).map(|at| words[at + 1]);
            assert_eq!([after("RX:"), after("TX:")], shown.map(Some), "{mode:?}: {said}");
        }
        let counters =
            session.get(&[ether_like::HC_IN_PAUSE_FRAMES.row(&row), ether_like::HC_OUT_PAUSE_FRAMES.row(&row)]);
        assert_eq!(counters.expect("counters").iter().filter(|value| value.count() == Some(0)).count(), 2);
    });
    // Another start finds what the driver does.
    bench.serve(&config, || {
        let read = session().get(&[ether_like::PAUSE_ADMIN_MODE.row(&row)]).expect("an answer");
        assert_eq!(read[0], Value::Integer(PauseMode::Both.code()));
    });
    bench.run(&format!("ip link set dev {card} nomaster"));
}

/// Has the program end, whatever becomes of its manager.
struct End<'a>(&'a AtomicBool);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

fn session() -> Session<UdpLink> {
    let link = UdpLink::open(SocketAddr::from((Ipv4Addr::LOCALHOST, 1161))).expect("a socket");
    let credentials = Credentials::User {
        name: "admin".to_owned(),
        protocol: AuthProtocol::Sha256,
        auth_password: PASSWORD.to_owned(),
        privacy: Some((PrivacyProtocol::Aes128, PASSWORD.to_owned())),
    };
    let patience = Patience { timeout: Duration::from_secs(10), attempts: 3 };
    Session::new(link, credentials, patience, u64::from(std::process::id()) << 40)
}

fn connect() -> Device<UdpLink> {
    let settings = Settings { mark_vlan: VlanId::new(4000).expect("valid"), save: SaveMethod::Unknown };
    Device::connect(session(), &names(), settings).expect("the agent answers")
}

/// From what the kernel's bridge begins with to the goal, and then a change that nobody confirms.
fn first(bench: &Bench) {
    let mut device = connect();
    let found = device.read().expect("a reading");
    assert_eq!(found.config.ports[0].pvid, Some(VlanId::MIN), "{:?}", found.config);
    let mark = Mark::new(1, 2, 3);
    let guard = Some(Duration::from_secs(30));
    let fence = device.write(&found.config, &goal(), mark, found.fence, guard).expect("a write");
    let mut read = device.read().expect("a reading");
    // SNMP knows no word for whether a port learns.
    read.config.take_unwritable_of(&goal());
    assert_eq!((&read.config, read.mark, read.fence), (&goal(), Some(mark), fence));
    device.save(fence).expect("it saves");
    let vlans = bench.run("bridge vlan show dev p1");
    assert!(vlans.contains("10 PVID Egress Untagged"), "{vlans}");
    refusals_are_told(bench);
    let mut session = session();
    session.set(vec![(own::GUARD.instance(), Value::Integer(600))]).expect("a guard");
    let alias = bridge_mib::objects::if_mib::ALIAS.row(&bridge_mib::index::IfIndex(index_of(bench, "p3")));
    session.set(vec![(alias, Value::Octets(b"changed".to_vec()))]).expect("a change");
    assert!(bench.run("ip link show p3").contains("changed"));
}

/// What the kernel would not have is refused with the status that says why, at the binding that asked for it, and
/// nothing of the request is done.
fn refusals_are_told(bench: &Bench) {
    let before = bench.run("bridge fdb show br br0 state static");
    let mut session = session();
    let entry = |mac: u32, port: u32| {
        let row = StaticRow { fdb: 10, mac: Mac::local(mac), receive_port: 0 };
        let ports = PortList::of([port]).expect("a port").encode(1);
        [
            (q_bridge::STATIC_UNICAST_ALLOWED_TO_GO_TO.row(&row), Value::Octets(ports)),
            (q_bridge::STATIC_UNICAST_STATUS.row(&row), Value::Integer(StaticStatus::Permanent.code())),
        ]
    };
    // Port 3 is no member of VLAN 10, and the kernel enters nothing there.
    let asked = [entry(8, 1), entry(9, 3), entry(7, 1)].concat();
    let (culprit, _) = asked[3].clone();
    let refused = |session: &mut Session<UdpLink>, asked| match session.set(asked) {
        Err(SessionError::Refused { status, object }) => (status, object),
        other => panic!("{other:?}"),
    };
    assert_eq!(refused(&mut session, asked), (ErrorStatus::InconsistentValue, Some(culprit)));
    assert_eq!(bench.run("bridge fdb show br br0 state static"), before);
    // A virtual cable has no PAUSE to set; that there is none may be written.
    let pause = |mode: PauseMode| {
        let row = ether_like::PAUSE_ADMIN_MODE.row(&IfIndex(index_of(bench, "p1")));
        vec![(row, Value::Integer(mode.code()))]
    };
    assert_eq!(refused(&mut session, pause(PauseMode::Both)).0, ErrorStatus::NotWritable);
    session.set(pause(PauseMode::Off)).expect("as it is");
}

fn index_of(bench: &Bench, device: &str) -> u32 {
    let line = bench.run(&format!("ip -o link show {device}"));
    line.split(':').next().and_then(|index| index.trim().parse().ok()).expect("an index")
}

/// A new start of the program finds what the bridge holds, and its mark; its clock is another.
fn second() {
    let mut device = connect();
    let mut found = device.read().expect("a reading");
    found.config.take_unwritable_of(&goal());
    assert_eq!(found.config, goal());
}

/// How often the program has started, as it tells managers.
fn boots() -> i32 {
    let mut session = session();
    session.get(&[own::SAVED.instance()]).expect("an answer");
    session.boots().expect("it says")
}

/// The driver of `deploy` for Linux, in front of a shell here instead of one behind sshd: what it says, and what it makes
/// of the answers, is the same.
#[test]
fn the_shell_of_a_linux_switch_is_spoken_on_a_kernel() {
    if skipped(Backend::Bridge) {
        return;
    }
    let bench = Bench::new("l");
    let program = bench.folder.join("ssh");
    let cut = bench.folder.join("cut");
    let script = format!(
        "#!/bin/sh\nif [ -e {} ]; then awk '/it has gone back already/ {{ exit }} {{ print; fflush() }}' | /bin/sh; else exec /bin/sh; fi\n",
        cut.display()
    );
    fs::write(&program, script).expect("a file");
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).expect("rights");
    let path = std::env::var("PATH").unwrap_or_default();
    // SAFETY: the tests of this program run one at a time (`--test-threads=1`), and no other thread reads it meanwhile.
    unsafe { std::env::set_var("PATH", format!("{}:{path}", bench.folder.display())) };
    within(&bench.namespace, || by_shell(&bench)).expect("a namespace");
    assert_held(&bench, "espalier");
    // SAFETY: as above.
    unsafe { std::env::set_var("PATH", path) };
    let _ = fs::remove_file("/etc/espalier/switch.sh");
}

fn by_shell(bench: &Bench) {
    let settings = Settings { mark_vlan: VlanId::new(4000).expect("valid"), save: SaveMethod::Unknown };
    let login = Login { user: "root".to_owned(), ..Login::default() };
    let patience = Duration::from_secs(60);
    let local = Ipv4Addr::LOCALHOST.into();
    let mut device = ssh::connect(local, &login, Target::LinuxBridge, &names(), settings, patience, &Cancel::default())
        .expect("a shell");
    let found = device.read().expect("a reading");
    let mark = Mark::new(1, 2, 3);
    let guard = Some(Duration::from_secs(60));
    let fence = device.write(&found.config, &goal(), mark, found.fence, guard).expect("a write");
    let mut read = device.read().expect("a reading");
    read.config.take_unwritable_of(&goal());
    assert_eq!((&read.config, read.mark, read.fence), (&goal(), Some(mark), fence));
    device.save(fence).expect("it saves");
    assert!(fs::read_to_string("/etc/espalier/switch.sh").is_ok_and(|text| text.contains("vlan add dev p2 vid 30")));
    // The way to the switch breaks where the controller would say that all is well: the machine goes back by itself.
    fs::write(bench.folder.join("cut"), "").expect("a file");
    let mut device = ssh::connect(local, &login, Target::LinuxBridge, &names(), settings, patience, &Cancel::default())
        .expect("a shell");
    let mut other = goal();
    other.ports[0].admin = Admin::Down;
    other.ports[1].tagged = VlanSet::new();
    other.vlans.remove(VlanId::new(30).expect("valid"));
    other.entries.clear();
    let reading = device.read().expect("a reading");
    let done = device.write(&reading.config, &other, mark, reading.fence, Some(Duration::from_secs(20)));
    assert_eq!(done, Err(Fault::Reverted));
    let mut reverted = device.read().expect("a reading");
    reverted.config.take_unwritable_of(&goal());
    assert_eq!(reverted.config, goal());
}
