//! What `export --to host-setup` writes, on real kernels: two machines with two ports each, all ports on one bridge.
//!
//! ```text
//!   a: eth0 ─┐              ┌─ eth0 :b        before: both ports answer for each address; all packets leave by eth0
//!            ├─ bridge: sw ─┤
//!   a: eth1 ─┘              └─ eth1 :b        after: each port answers for its own address; packets leave by its port
//! ```
//! Machines and bridge are namespaces; traffic is some tens of frames. Needs root; skips aloud without.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    io::{self, ErrorKind},
    mem::MaybeUninit,
    net::{IpAddr, Ipv4Addr},
    path::Path,
    process::{Command, Output, Stdio},
    thread,
    time::{Duration, Instant},
};

use fabric::{HostId, Mac, MachineId, Plan, Policy, format::native::parse_native};
use host_setup::HostSetup;
use lab::netns::within;
use socket2::{Domain, Protocol, SockAddr, Socket, Type};

const DEVICES: [&str; 2] = ["eth0", "eth1"];
/// How long answers to a request are waited for; on one machine they take less than a millisecond.
const PATIENCE: Duration = Duration::from_millis(500);
const ECHOES: u64 = 5;
const NETWORKD: &str = "/lib/systemd/systemd-networkd";

#[test]
fn each_port_answers_and_sends_for_its_own_ipv4_address() {
    let policy = Policy { subnet: "10.77.0.0/16".parse().expect("a subnet"), mtu_bytes: 1400, ..Policy::default() };
    let plan = plan(["10.77.0.1", "10.77.0.2", "10.77.0.3", "10.77.0.4"], &policy);
    let Some(bench) = Bench::up("arp", &plan) else { return };
    bench.give_addresses(&plan);
    let macs = |numbers: &[usize]| -> BTreeSet<Mac> {
        numbers.iter().map(|number| plan.topology.hosts()[*number].mac).collect()
    };
    let answers = |port: usize, from: usize| bench.answers(&plan, HostId::new(2 + from), HostId::new(port));
    for port in 0..2 {
        assert_eq!(answers(port, 0), macs(&[0, 1]), "before: both ports answer for the address of port {port}");
    }
    let [first, second, peer] = [plan.addresses[0], plan.addresses[1], plan.addresses[2]];
    let [by_first, by_second] = bench.sent_by(second, peer);
    println!("before: {by_first} frames by eth0, {by_second} by eth1, from eth1's address");
    assert!(by_first >= ECHOES && by_second < ECHOES, "before: {by_first}, {by_second}");

    // As distributions that filter strictly have it.
    bench.well("a", "sysctl -q -w net/ipv4/conf/all/rp_filter=1");
    bench.run_scripts(&plan);
    let rules = bench.well("a", "ip rule show; ip route show table all");
    bench.run_scripts(&plan);
    assert_eq!(bench.well("a", "ip rule show; ip route show table all"), rules, "a second run changes nothing");

    for (port, from) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
        assert_eq!(answers(port, from), macs(&[port]), "after: port {port}, asked by eth{from}");
    }
    for (source, own) in [(first, 0), (second, 1)] {
        for peer in [2, 3] {
            let sent = bench.sent_by(source, plan.addresses[peer]);
            println!("after: {sent:?} frames by eth0 and eth1, from {source}");
            assert!(sent[own] >= ECHOES && sent[1 - own] < ECHOES, "after: from {source}: {sent:?}");
        }
    }
    assert_eq!(bench.well("a", "cat /sys/class/net/eth0/mtu /sys/class/net/eth1/mtu"), "1400\n1400\n");
}

/// Subnets of their own keep packets apart, and not ARP, where all ports are in one fabric.
#[test]
fn subnets_of_their_own_do_not_keep_arp_apart() {
    let policy = Policy { subnet: "10.78.0.0/16".parse().expect("a subnet"), ..Policy::default() };
    let plan = plan(["10.78.0.1", "10.79.0.1", "10.78.0.2", "10.79.0.2"], &policy);
    let Some(bench) = Bench::up("two", &plan) else { return };
    bench.give_addresses(&plan);
    let all: BTreeSet<Mac> = plan.topology.hosts()[..2].iter().map(|host| host.mac).collect();
    let answers = |port: usize| bench.answers(&plan, HostId::new(2 + port), HostId::new(port));
    assert_eq!([answers(0), answers(1)], [all.clone(), all], "before");
    bench.run_scripts(&plan);
    for port in 0..2 {
        assert_eq!(answers(port), BTreeSet::from([plan.topology.hosts()[port].mac]), "after: port {port}");
    }
}

#[test]
fn each_port_sends_for_its_own_ipv6_address() {
    let plan = plan(["fd77::1", "fd77::2", "fd77::3", "fd77::4"], &Policy::default());
    let Some(bench) = Bench::up("nd", &plan) else { return };
    bench.give_addresses(&plan);
    let [first, second, peer] = [plan.addresses[0], plan.addresses[1], plan.addresses[2]];
    let sent = bench.sent_by(second, peer);
    println!("before: {sent:?} frames by eth0 and eth1, from {second}");
    assert!(sent[0] >= ECHOES && sent[1] < ECHOES, "before: {sent:?}");
    bench.run_scripts(&plan);
    bench.run_scripts(&plan);
    for (source, own) in [(first, 0), (second, 1)] {
        let sent = bench.sent_by(source, peer);
        println!("after: {sent:?} frames by eth0 and eth1, from {source}");
        assert!(sent[own] >= ECHOES && sent[1 - own] < ECHOES, "after: from {source}: {sent:?}");
        // Neighbour discovery needs no setting: a port answers for its own addresses alone.
        let entry = bench.well("b", &format!("ip -6 neigh show {source}"));
        assert!(entry.contains(&plan.topology.hosts()[own].mac.to_string()), "{entry}");
    }
}

/// The files for systemd-networkd do what the script does.
#[test]
fn networkd_and_sysctl_set_the_same() {
    if !Path::new(NETWORKD).exists() {
        println!("skipped: {NETWORKD} is missing (apt-get install systemd)");
        return;
    }
    let policy = Policy { subnet: "10.77.0.0/16".parse().expect("a subnet"), mtu_bytes: 1400, ..Policy::default() };
    let plan = plan(["10.77.0.1", "10.77.0.2", "10.77.0.3", "10.77.0.4"], &policy);
    let Some(bench) = Bench::up("nwd", &plan) else { return };
    let folder = std::env::temp_dir().join(format!("{}_files", bench.prefix));
    for (number, machine) in ["a", "b"].into_iter().enumerate() {
        let setup = HostSetup::new(&plan, "test", MachineId::new(number)).expect("two ports");
        for file in setup.files() {
            let path = folder.join(machine).join(&file.name);
            fs::create_dir_all(path.parent().expect("a folder"))
                .and_then(|()| fs::write(&path, file.text))
                .expect("room");
        }
        let folder = folder.join(machine);
        bench.well(machine, &format!("sysctl -q -p {}", folder.join("sysctl.d/50-espalier.conf").display()));
        // Without udev, which it does not wait for if /sys cannot be written; what it keeps in /run is its own.
        let networkd = format!(
            "mount -o remount,ro /sys && mount -t tmpfs none /run && mkdir -p /run/systemd/network /run/systemd/netif/links && \
             cp {}/network/* /run/systemd/network/ && chown -R systemd-network /run/systemd/netif && exec {NETWORKD}",
            folder.display()
        );
        let namespace = bench.namespace(machine);
        let words = ["netns", "exec", &namespace, "sh", "-c", &networkd];
        let mut child = Command::new("ip").args(words).stderr(Stdio::null()).spawn().expect("ip runs");
        let since = Instant::now();
        let is_done = || {
            let rules = bench.well(machine, "ip rule show; ip route show table all");
            ["lookup 1001", "lookup 1002", "table 1001", "table 1002"].iter().all(|word| rules.contains(word))
        };
        while !is_done() && since.elapsed() < Duration::from_secs(20) {
            thread::sleep(Duration::from_millis(50));
        }
        let done = is_done();
        child.kill().and_then(|()| child.wait()).expect("it is ours");
        assert!(done, "{machine}: {}", bench.well(machine, "ip rule show; ip route show table all"));
    }
    fs::remove_dir_all(&folder).expect("it is ours");
    for port in 0..2 {
        let own = BTreeSet::from([plan.topology.hosts()[port].mac]);
        assert_eq!(bench.answers(&plan, HostId::new(2), HostId::new(port)), own);
        let sent = bench.sent_by(plan.addresses[port], plan.addresses[2]);
        assert!(sent[port] >= ECHOES && sent[1 - port] < ECHOES, "from port {port}: {sent:?}");
    }
    assert_eq!(bench.well("a", "cat /sys/class/net/eth0/mtu /sys/class/net/eth1/mtu"), "1400\n1400\n");
}

#[test]
fn a_script_of_another_machine_sets_nothing() {
    let plan = plan(["10.77.0.1", "10.77.0.2", "10.77.0.3", "10.77.0.4"], &Policy::default());
    let Some(bench) = Bench::up("other", &plan) else { return };
    let script = HostSetup::new(&plan, "test", MachineId::new(1)).expect("two ports").script();
    let before = bench.well("a", "ip address; ip rule; ip route show table all; sysctl net.ipv4.conf.eth0");
    let output = bench.shell("a", &script);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && said.contains("eth0 has the Ethernet address 02:00:00:00:0a:00"), "{said}");
    assert_eq!(bench.well("a", "ip address; ip rule; ip route show table all; sysctl net.ipv4.conf.eth0"), before);
}

/// Machines `a` and `b`, each with a port on each of two switches; addresses machine by machine.
fn plan(addresses: [&str; 4], policy: &Policy) -> Plan {
    let mut text = "switches: {s1: {}, s2: {}}\nlinks: [\"s1:1 -- s2:1\"]\nmachines:\n".to_owned();
    for (machine, addresses) in ["a", "b"].iter().zip(addresses.chunks(2)) {
        text.push_str(&format!("  {machine}:\n    nics:\n"));
        for (nic, address) in addresses.iter().enumerate() {
            let (mac, port) = (format!("02:00:00:00:0{machine}:0{nic}"), format!("s{}:{machine}", nic + 1));
            text.push_str(&format!("      eth{nic}: {{mac: \"{mac}\", port: \"{port}\", ip: \"{address}\"}}\n"));
        }
    }
    let topology = parse_native("test.yaml", &text).unwrap_or_else(|wrong| panic!("{wrong}"));
    planner::plan(&topology, policy, None).expect("two switches")
}

/// Namespaces that go with the test, also when it fails.
struct Bench {
    prefix: String,
}

impl Bench {
    /// None, saying why, where namespaces cannot be.
    fn up(word: &str, plan: &Plan) -> Option<Self> {
        if !nix::unistd::geteuid().is_root() {
            println!("skipped: needs root");
            return None;
        }
        let bench = Self { prefix: format!("t{}_{word}", std::process::id()) };
        for node in ["sw", "a", "b"] {
            run("ip", &["netns", "add", &bench.namespace(node)]);
        }
        let switch = bench.namespace("sw");
        run("ip", &["-n", &switch, "link", "add", "br0", "type", "bridge", "mcast_snooping", "0"]);
        run("ip", &["-n", &switch, "link", "set", "br0", "up"]);
        for (number, host) in plan.topology.hosts().iter().enumerate() {
            let (machine, device) = host.name.split_once('/').expect("a machine and a device");
            let (port, namespace) = (format!("p{number}"), bench.namespace(machine));
            let near = ["link", "add", &port, "netns", &switch, "type", "veth"];
            run("ip", &[&near[..], &["peer", "name", device, "netns", &namespace]].concat());
            run("ip", &["-n", &switch, "link", "set", &port, "master", "br0", "up"]);
            run("ip", &["-n", &namespace, "link", "set", device, "address", &host.mac.to_string(), "up"]);
        }
        Some(bench)
    }

    fn namespace(&self, node: &str) -> String {
        format!("{}_{node}", self.prefix)
    }

    /// Addresses without any setting.
    fn give_addresses(&self, plan: &Plan) {
        for (id, host) in plan.topology.host_ids().zip(plan.topology.hosts()) {
            let (machine, device) = host.name.split_once('/').expect("a machine and a device");
            let intent = plan.host_intent(id);
            self.well(machine, &format!("ip address add {}/{} dev {device}", intent.address, intent.prefix_bits));
        }
        self.wait_for_addresses();
    }

    /// An IPv6 address is usable once nobody else has claimed it.
    fn wait_for_addresses(&self) {
        let since = Instant::now();
        while ["a", "b"].iter().any(|machine| !self.well(machine, "ip -6 address show tentative").trim().is_empty()) {
            assert!(since.elapsed() < Duration::from_secs(20), "addresses stay tentative");
            thread::sleep(Duration::from_millis(50));
        }
    }

    fn run_scripts(&self, plan: &Plan) {
        for (number, machine) in ["a", "b"].into_iter().enumerate() {
            let setup = HostSetup::new(plan, "test", MachineId::new(number)).expect("two ports");
            self.well(machine, &setup.script());
        }
        self.wait_for_addresses();
    }

    fn shell(&self, machine: &str, script: &str) -> Output {
        let words = ["netns", "exec", &self.namespace(machine), "sh", "-c", script];
        Command::new("ip").args(words).output().expect("ip runs")
    }

    fn well(&self, machine: &str, script: &str) -> String {
        run("ip", &["netns", "exec", &self.namespace(machine), "sh", "-c", script])
    }

    /// The Ethernet addresses of all ports that answer when `from`, a port of `b`, asks who has `target`'s address.
    fn answers(&self, plan: &Plan, from: HostId, target: HostId) -> BTreeSet<Mac> {
        let host = plan.topology.host(from);
        let device = host.name.split_once('/').expect("a machine and a device").1;
        let (IpAddr::V4(sender), IpAddr::V4(target)) = (plan.addresses[from.index()], plan.addresses[target.index()])
        else {
            panic!("ARP is of IPv4");
        };
        let ask = || arp_answers(device, host.mac, sender, target);
        within(&self.namespace("b"), ask).expect("a namespace").expect("root may use packet sockets")
    }

    /// Frames that each port of `a` sends while `a` asks `target` for echoes from its address `source`.
    fn sent_by(&self, source: IpAddr, target: IpAddr) -> [u64; 2] {
        let before = self.sent();
        self.well("a", &format!("ping -c {ECHOES} -i 0.02 -W 5 -I {source} {target}"));
        let after = self.sent();
        DEVICES.map(|device| after[device] - before[device])
    }

    /// Frames that each device of `a` has sent.
    fn sent(&self) -> BTreeMap<String, u64> {
        let count = |line: &str| {
            let (name, counts) = line.trim().split_once(':')?;
            Some((name.to_owned(), counts.split_whitespace().nth(9)?.parse().ok()?))
        };
        self.well("a", "cat /proc/net/dev").lines().filter_map(count).collect()
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        for node in ["sw", "a", "b"] {
            let _ = Command::new("ip").args(["netns", "del", &self.namespace(node)]).stderr(Stdio::null()).status();
        }
    }
}

fn run(program: &str, words: &[&str]) -> String {
    let output = Command::new(program).args(words).output().expect("it runs");
    let said = [&output.stdout[..], &output.stderr[..]].concat();
    assert!(output.status.success(), "{program} {words:?}: {}", String::from_utf8_lossy(&said));
    String::from_utf8(output.stdout).expect("text")
}

/// Broadcasts an ARP request by a device of the calling thread's namespace, and collects who answers.
fn arp_answers(device: &str, mac: Mac, sender: Ipv4Addr, target: Ipv4Addr) -> io::Result<BTreeSet<Mac>> {
    let arp = libc::ETH_P_ARP as u16;
    let socket = Socket::new(Domain::PACKET, Type::RAW, Some(Protocol::from(i32::from(arp.to_be()))))?;
    let address = device_address(nix::net::if_::if_nametoindex(device)?, arp)?;
    socket.bind(&address)?;
    socket.set_read_timeout(Some(PATIENCE))?;
    let mut request = [Mac::BROADCAST.octets(), mac.octets()].concat();
    request.extend(arp.to_be_bytes());
    request.extend([0, 1, 8, 0, 6, 4, 0, 1]);
    request.extend(mac.octets());
    request.extend(sender.octets());
    request.extend([0; 6]);
    request.extend(target.octets());
    socket.send_to(&request, &address)?;
    let (since, mut found) = (Instant::now(), BTreeSet::new());
    while since.elapsed() < PATIENCE {
        let mut buffer = [MaybeUninit::<u8>::uninit(); 128];
        let length = match socket.recv(&mut buffer) {
            Ok(length) => length,
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => break,
            Err(error) => return Err(error),
        };
        // SAFETY: the kernel has written the first `length` bytes.
        let frame: Vec<u8> = buffer[..length].iter().map(|byte| unsafe { byte.assume_init() }).collect();
        // Operation 2 is an answer; sender's addresses follow.
        if frame.len() >= 42 && frame[20..22] == [0, 2] && frame[28..32] == target.octets() {
            found.insert(Mac::new(frame[22..28].try_into().expect("six octets")));
        }
    }
    Ok(found)
}

fn device_address(ifindex: u32, protocol: u16) -> io::Result<SockAddr> {
    // SAFETY: the closure fills in a complete sockaddr_ll, which fits in sockaddr_storage, and says how long it is.
    let ((), address) = unsafe {
        SockAddr::try_init(|storage, length| {
            let address = storage.cast::<libc::sockaddr_ll>();
            (*address).sll_family = libc::AF_PACKET as u16;
            (*address).sll_protocol = protocol.to_be();
            (*address).sll_ifindex = ifindex as i32;
            *length = size_of::<libc::sockaddr_ll>() as u32;
            Ok(())
        })?
    };
    Ok(address)
}
