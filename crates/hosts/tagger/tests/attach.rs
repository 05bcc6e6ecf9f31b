//! Two hosts on one cable, real stacks: what attaching, replacing and detaching do to real traffic.
//!
//! ```text
//!   NAME-a/eth0 (02:…:01, 10.9.0.1) ═══ eth0 (02:…:02, 10.9.0.2) NAME-b
//! ```

use std::{
    io::{BufRead, BufReader},
    net::UdpSocket,
    os::fd::{AsRawFd, FromRawFd, OwnedFd},
    process::{Command, Stdio},
    sync::atomic::{AtomicBool, AtomicU32, Ordering},
    thread,
    time::{Duration, Instant},
};

use fabric::{Mac, VlanId};
use libbpf_rs::libbpf_sys as sys;
use nix::{
    sched::{CloneFlags, setns},
    time::{ClockId, clock_gettime},
};
use tagger::{
    Classes, Config, Spread, TaggerError, TaggingTable,
    device::{self, Tagged},
    layout::{self, Event, PlacementRecord},
    table::Route,
};

#[test]
fn the_stack_sees_a_flat_network_and_the_cable_sees_tags() {
    let Some(hosts) = Hosts::make() else { return };
    hosts.attach_both();
    let untagged = hosts.counters("b").events.get(&Event::UntaggedIn).copied();
    assert!(hosts.ping(&["-c", "3", "10.9.0.2"]), "IPv4, ARP by broadcast before it");
    assert!(hosts.ping(&["-c", "1", "-M", "do", "-s", "8900", "10.9.0.2"]), "jumbo frames");
    assert!(hosts.ping(&["-6", "-c", "1", "-w", "10", "ff02::1%eth0"]), "IPv6, multicast");

    // The stacks also speak unasked, perhaps between the two readings: what left a and what reached b agree once they
    // are silent.
    let deadline = Instant::now() + Duration::from_secs(10);
    let (sent, received) = loop {
        let (sent, received) = (hosts.counters("a"), hosts.counters("b"));
        let agrees = |id| {
            sent.vlans.get(&vlan(id)).map(|count| count.sent)
                == received.vlans.get(&vlan(id)).map(|count| count.received)
        };
        if agrees(2) && agrees(3) {
            break (sent, received);
        }
        assert!(Instant::now() < deadline, "sent {sent:?}, received {received:?}");
        thread::sleep(Duration::from_millis(50));
    };
    for (id, what) in [(2, "a's own VLAN: groups"), (3, "b's VLAN: frames for b")] {
        assert!(sent.vlans.get(&vlan(id)).is_some_and(|count| count.sent.frames > 0), "{what}: {sent:?}");
    }
    assert!(sent.destinations[&Mac::local(2)].frames >= 4);
    assert!(sent.destinations[&Mac::BROADCAST].frames >= 1);
    assert_eq!(received.events.get(&Event::UntaggedIn), untagged.as_ref(), "nothing goes untagged: {received:?}");

    // Again changes nothing but what is asked for, and counters go on.
    let before = hosts.counters("a").destinations[&Mac::local(2)];
    let again = hosts.in_a(|| device::attach("eth0", &table(1), None).expect("attached").table().expect("readable"));
    assert_eq!(again, table(1));
    assert!(hosts.ping(&["-c", "1", "10.9.0.2"]));
    assert!(hosts.counters("a").destinations[&Mac::local(2)].frames > before.frames);
}

#[test]
fn frames_leave_in_their_class() {
    let Some(hosts) = Hosts::make() else { return };
    if Command::new("tshark").arg("--version").output().is_err() {
        eprintln!("SKIPPED: tshark is not installed; apt-get install tshark");
        return;
    }
    hosts.run("a", "ip", &["neigh", "replace", "10.9.0.2", "lladdr", &Mac::local(2).to_string(), "dev", "eth0"]);
    let lanes = |classes: &[(u16, u8)]| Classes::Vlan(classes.iter().map(|(id, class)| (vlan(*id), *class)).collect());
    // A lane's frames leave in its class whatever they ask for; by DSCP those of the network's own classes are out of reach.
    let cases = [
        (lanes(&[]), ["0", "0", "0", "0"]),
        (lanes(&[(2, 1), (3, 6)]), ["6", "6", "6", "6"]),
        (Classes::Dscp, ["0", "1", "5", "5"]),
    ];
    for (classes, expect) in cases {
        let table = TaggingTable { classes, ..table(1) };
        hosts.in_a(|| device::attach("eth0", &table, None).map(drop).expect("attached"));
        let fields = ["-T", "fields", "-e", "vlan.id", "-e", "vlan.priority", "-e", "ip.dsfield.dscp"];
        let listening = ["-q", "-l", "-n", "-i", "eth0", "-a", "duration:20", "-c", "4", "-f", "vlan and icmp"];
        let mut command = hosts.command("b", "tshark", &[&listening[..], &fields].concat());
        let mut tshark = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it is installed");
        // It says so when it listens.
        let mut said = BufReader::new(tshark.stderr.take().expect("asked for")).lines();
        assert!(said.any(|line| line.expect("text").contains("Capturing on")), "tshark listens");
        thread::sleep(Duration::from_millis(500));
        for asked in ["0", "0x20", "0xb8", "0xe0"] {
            hosts.ping(&["-c", "1", "-W", "0.2", "-Q", asked, "10.9.0.2"]);
        }
        let seen = tshark.wait_with_output().expect("it ends").stdout;
        let seen: Vec<Vec<&str>> =
            std::str::from_utf8(&seen).expect("text").lines().map(|line| line.split('\t').collect()).collect();
        let wanted: Vec<Vec<&str>> =
            expect.iter().zip(["0", "8", "46", "56"]).map(|(class, dscp)| vec!["3", class, dscp]).collect();
        assert_eq!(seen, wanted, "{:?}", table.classes);
    }
}

#[test]
fn detaching_gives_the_device_back_and_leaves_others_alone() {
    let Some(hosts) = Hosts::make() else { return };
    hosts.attach_both();
    let filters = |host: &str| hosts.output(host, "tc", &["filter", "show", "dev", "eth0", "egress"]);
    // Where ours are filters themselves there is one already.
    let _ = hosts.command("a", "tc", &["qdisc", "add", "dev", "eth0", "clsact"]).output();
    let other =
        ["filter", "add", "dev", "eth0", "egress", "pref", "9", "u32", "match", "u32", "0", "0", "flowid", "1:1"];
    hosts.run("a", "tc", &other);
    assert!(hosts.ping(&["-c", "1", "10.9.0.2"]), "another filter after ours");
    hosts.in_a(|| device::detach("eth0").expect("attached"));
    hosts.in_b(|| device::detach("eth0").expect("attached"));
    assert!(filters("a").contains("u32") && !filters("a").contains("tagger"), "{}", filters("a"));
    assert!(!hosts.output("b", "tc", &["qdisc", "show", "dev", "eth0"]).contains("clsact"), "nothing is left");
    assert!(hosts.ping(&["-c", "1", "10.9.0.2"]), "untagged again");
    hosts.in_a(|| {
        device::detach("eth0").expect("once more is no error");
        assert!(matches!(Tagged::open("eth0"), Err(TaggerError::NotAttached { .. })));
        assert!(matches!(Tagged::open("eth7"), Err(TaggerError::NoDevice { .. })));
        assert!(matches!(device::attach("lo", &table(1), None), Err(TaggerError::NotEthernet { .. })));
    });
}

#[test]
fn tcp_retransmits_early_on_the_device_s_subnets_and_nothing_else_changes() {
    let Some(hosts) = Hosts::make() else { return };
    let ip = |words: &str| hosts.output("a", "ip", &words.split(' ').collect::<Vec<_>>());
    for words in [
        "link add eth1 type veth peer name eth2",
        "link set eth1 up",
        "link set eth2 up",
        "addr add 10.8.0.1/24 dev eth0",
        // Two devices of one subnet: one route more would decide between them.
        "addr add 10.7.0.1/24 dev eth0",
        "addr add 10.7.0.2/24 dev eth1",
        "addr add fd00:9::1/64 dev eth0 nodad",
        "route add 10.6.0.0/16 via 10.9.0.2",
        "route change 10.8.0.0/24 dev eth0 proto kernel scope link src 10.8.0.1 rto_min 50ms",
    ] {
        hosts.run("a", "ip", &words.split(' ').collect::<Vec<_>>());
    }
    let listed = || ip("route show table all") + &ip("-6 route show table all");
    let ways = || ip("route get 10.7.0.9") + &ip("route get 10.6.0.9");
    let (before, ways_before) = (listed(), ways());
    let set = |floor_ms: u64| {
        let floor = (floor_ms > 0).then(|| Duration::from_millis(floor_ms));
        hosts.in_a(|| device::set_rto_min("eth0", floor).expect("routes may be set"))
    };
    let floors =
        [("10.9.0.2", true), ("10.8.0.2", false), ("10.7.0.9", false), ("10.6.0.9", false), ("fd00:9::2", true)];
    // Again with another floor, and again with the same.
    for floor_ms in [10, 7, 7] {
        let subnets = set(floor_ms);
        assert_eq!(subnets, 3, "10.9.0.0/24, fd00:9::/64 and fe80::/64 of {before}");
        for (to, is_set) in floors {
            let way = ip(&format!("route get {to}"));
            assert!(way.contains("dev eth0"), "{way}");
            assert_eq!(way.contains(&format!("rto_min lock {floor_ms}ms")), is_set, "{way}");
        }
        assert!(ip("route get 10.8.0.2").contains("rto_min lock 50ms"), "the administrator's own is kept");
        assert_eq!(ip("route show proto 229").lines().count() + ip("-6 route show proto 229").lines().count(), 3);
        assert_eq!(ways(), ways_before);
    }
    hosts.attach_both();
    assert!(hosts.ping(&["-c", "1", "10.9.0.2"]) && hosts.ping(&["-c", "1", "-6", "-W", "5", "fe80::ff:fe00:2%eth0"]));
    hosts.in_a(|| device::detach("eth0").expect("attached"));
    assert_eq!(listed(), before, "detaching takes them away");
    assert_eq!(set(0), 0);
    // What has gone with an address meanwhile is no failure.
    assert_eq!(set(10), 3);
    hosts.run("a", "ip", &["addr", "del", "10.9.0.1/24", "dev", "eth0"]);
    assert_eq!(set(10), 2);
}

#[test]
fn a_failed_attach_leaves_the_device_as_it_was() {
    let Some(hosts) = Hosts::make() else { return };
    let filters = || hosts.output("a", "tc", &["filter", "show", "dev", "eth0", "ingress"]);
    let attach = || hosts.in_a(|| device::attach("eth0", &table(1), None).map(drop));
    if let Some(others) = hosts.in_a(|| fill_egress("eth0")) {
        let error = attach().expect_err("no room among what leaves");
        assert!(matches!(error, TaggerError::Bpf { step: "hang the egress program", .. }), "{error}");
        assert!(hosts.in_a(|| matches!(Tagged::open("eth0"), Err(TaggerError::NotAttached { .. }))));
        assert!(hosts.ping(&["-c", "1", "10.9.0.2"]), "the host is not cut off");
        hosts.in_a(|| others.into_iter().for_each(drop_egress("eth0")));
    } else {
        // The older qdisc has no egress: what is hung there lands among what comes in, instead of our own program.
        hosts.run("a", "tc", &["qdisc", "add", "dev", "eth0", "ingress"]);
        let before = filters();
        let error = attach().expect_err("no egress");
        assert!(matches!(error, TaggerError::NoEgress { .. }), "{error}");
        assert_eq!(filters(), before);
        assert!(hosts.ping(&["-c", "1", "10.9.0.2"]), "the host is not cut off");
        hosts.run("a", "tc", &["qdisc", "del", "dev", "eth0", "ingress"]);
    }
    // A table that does not fit changes nothing either.
    hosts.attach_both();
    hosts.in_a(|| {
        device::detach("eth0").expect("attached");
        let tagged = device::attach("eth0", &table(1), Some(4)).expect("room for four");
        let mut large = table(1);
        large.destinations.extend((10..20).map(|mac| (Mac::local(mac), Route::single(vlan(2)))));
        assert!(matches!(tagged.replace(&large), Err(TaggerError::NoRoom { needed: 11, room: 4, .. })));
        assert_eq!(tagged.table().expect("readable"), table(1));
    });
    assert!(hosts.ping(&["-c", "1", "10.9.0.2"]));
}

#[test]
fn programs_of_others_have_their_turn_after_ours() {
    let Some(hosts) = Hosts::make() else { return };
    let Some(others) = hosts.in_a(|| fill_egress("eth0")) else { return println!("skipped: no tcx before Linux 6.6") };
    hosts.in_a(|| others.into_iter().skip(1).for_each(drop_egress("eth0")));
    hosts.attach_both();
    let list = |hosts: &Hosts| hosts.in_a(|| egress_programs("eth0"));
    let [ours, other] = list(&hosts)[..] else { panic!("two programs: {:?}", list(&hosts)) };
    assert!(hosts.ping(&["-c", "1", "10.9.0.2"]));
    // Again, ours changes in its place.
    hosts.in_a(|| device::attach("eth0", &table(1), None).map(drop).expect("attached"));
    let again = list(&hosts);
    assert!(again.len() == 2 && again[0] != ours && again[1] == other, "{ours}, {other}, then {again:?}");
    hosts.in_a(|| device::detach("eth0").expect("attached"));
    assert_eq!(list(&hosts), [other]);
}

#[test]
fn a_thousand_replacements_drop_and_reorder_nothing_of_others() {
    const REPLACEMENTS: u32 = 1000;
    let Some(hosts) = Hosts::make() else { return };
    hosts.attach_both();
    assert!(hosts.ping(&["-c", "1", "10.9.0.2"]), "addresses are resolved before");
    let socket = |address: &str| {
        let socket = UdpSocket::bind(address).expect("a free port");
        socket.set_read_timeout(Some(Duration::from_secs(5))).expect("a socket");
        socket
    };
    let sender = hosts.in_a(|| socket("10.9.0.1:5000"));
    let receiver = hosts.in_b(|| socket("10.9.0.2:5000"));
    let (stop, acknowledged) = (AtomicBool::new(false), AtomicU32::new(0));
    let (sent, replaced) = thread::scope(|scope| {
        let replacing = scope.spawn(|| {
            hosts.in_a(|| {
                let tagged = Tagged::open("eth0").expect("attached");
                let mut table = table(1);
                for round in 0..REPLACEMENTS {
                    // Other destinations come, go, and change their VLAN; ours does not.
                    table.destinations.insert(Mac::local(9), Route::single(vlan(2 + round as u16 % 2)));
                    match round % 3 {
                        0 => drop(table.destinations.insert(Mac::local(10), Route::single(vlan(2)))),
                        _ => drop(table.destinations.remove(&Mac::local(10))),
                    }
                    tagged.replace(&table).expect("replaced");
                }
                stop.store(true, Ordering::SeqCst);
                REPLACEMENTS
            })
        });
        let receiving = scope.spawn(|| {
            let mut bytes = [0; 4];
            for expect in 0_u32.. {
                let length = receiver.recv(&mut bytes).expect("nothing is lost");
                assert_eq!(length, 4);
                let got = u32::from_be_bytes(bytes);
                if got == u32::MAX {
                    return;
                }
                assert_eq!(got, expect, "in order, none missing, none twice");
                acknowledged.store(got + 1, Ordering::SeqCst);
            }
        });
        let mut sent = 0_u32;
        while !(stop.load(Ordering::SeqCst) || replacing.is_finished() || receiving.is_finished()) {
            // No more on the way than sockets and queues hold.
            if sent - acknowledged.load(Ordering::SeqCst) < 64 {
                sender.send_to(&sent.to_be_bytes(), "10.9.0.2:5000").expect("a route");
                sent += 1;
            } else {
                thread::yield_now();
            }
        }
        sender.send_to(&u32::MAX.to_be_bytes(), "10.9.0.2:5000").expect("a route");
        receiving.join().expect("all arrived in order");
        (sent, replacing.join().expect("all tables were put in force"))
    });
    println!("{replaced} replacements during {sent} datagrams");
    assert!(sent > REPLACEMENTS, "there was load: {sent}");
    let counters = hosts.counters("a");
    assert!(counters.destinations[&Mac::local(2)].frames > u64::from(sent), "counters go on: {counters:?}");
    assert_eq!(counters.events.get(&Event::NoVlan), None, "{counters:?}");
}

#[test]
fn a_flow_is_moved_during_a_pause_or_at_its_deadline() {
    let Some(hosts) = Hosts::make() else { return };
    hosts.attach_both();
    assert!(hosts.ping(&["-c", "1", "10.9.0.2"]), "addresses are resolved before");
    let ends_anew = Duration::from_nanos(layout::FLOW_ENDS_NS) + Duration::from_millis(50);
    hosts.in_a(|| {
        let mut placed = table(1);
        let route = Route::spread([vlan(2), vlan(3)], Spread::Placed).expect("two VLANs");
        placed.destinations.insert(Mac::local(2), route);
        let tagged = device::attach("eth0", &placed, None).expect("attached");
        let socket = UdpSocket::bind("10.9.0.1:5000").expect("a free port");
        let send = || socket.send_to(&[0; 1000], "10.9.0.2:5000").map(drop).expect("a route");
        // The stack sends by itself too, so the flow is the one with these bytes.
        let bytes = |datagrams: u64| datagrams * 1042;
        let flow = |datagrams: u64| {
            let flows = tagged.flows().expect("readable").into_iter();
            flows.filter(|(_, flow)| flow.bytes == bytes(datagrams)).collect::<Vec<_>>()
        };
        send();
        let [(slot, first)] = flow(1)[..] else { panic!("{:?}", tagged.flows()) };
        let other = 1 - first.choice;
        let now_ns = || Duration::from(clock_gettime(ClockId::CLOCK_MONOTONIC).expect("a clock")).as_nanos() as u64;
        let place = |choice: u32, latest_ns: u64| {
            let placement = PlacementRecord { ordered_ns: now_ns(), latest_ns, choice, pause_us: 300_000 };
            tagged.place(slot, &placement).expect("written");
        };
        place(other, u64::MAX);
        send();
        let [(_, second)] = flow(2)[..] else { panic!("{:?}", tagged.flows()) };
        let has_paused = second.seen_ns - first.seen_ns > 300_000_000;
        assert!(second.choice == first.choice || has_paused, "it has not paused: {first:?}, {second:?}");
        thread::sleep(Duration::from_millis(350));
        send();
        assert_eq!(flow(3)[0].1.choice, other, "it has");
        place(first.choice, now_ns());
        send();
        assert_eq!(flow(4)[0].1.choice, first.choice, "the deadline is over");
        // What was asked of a flow that ended is not asked of the next one in its slot.
        place(other, now_ns());
        thread::sleep(ends_anew);
        send();
        let anew = tagged.flows().expect("readable").into_iter().find(|(known, _)| *known == slot).expect("used");
        assert_eq!(anew.1.bytes, bytes(1));
        assert!(anew.1.began_ns > first.began_ns);
        let choice = anew.1.choice;
        send();
        assert_eq!(flow(2)[0].1.choice, choice, "no pause, no deadline");
    });
    let sent = hosts.counters("a").vlans;
    assert!(sent[&vlan(2)].sent.frames > 0 && sent[&vlan(3)].sent.frames > 0, "{sent:?}");
}

fn vlan(id: u16) -> VlanId {
    VlanId::new(id).expect("in range")
}

/// By destination: toward host `n`, VLAN `n + 1`.
fn table(own: u32) -> TaggingTable {
    let text = "mode destination\n02:00:00:00:00:01 2 1\n02:00:00:00:00:02 3 1\n";
    Config::parse("test", text).expect("right").table(Mac::local(own)).expect("listed")
}

/// Programs that do nothing, as many as a device has room for among what leaves; none where the kernel has no such list.
fn fill_egress(device: &str) -> Option<Vec<OwnedFd>> {
    let target = nix::net::if_::if_nametoindex(device).expect("made before") as i32;
    // r0 = TCX_NEXT, exit.
    let code: [u64; 2] = [0xffff_ffff_0000_00b7, 0x95];
    let mut hung = Vec::new();
    loop {
        // SAFETY: the code and the words outlive the call, with their true lengths.
        let program = unsafe {
            sys::bpf_prog_load(
                sys::BPF_PROG_TYPE_SCHED_CLS,
                c"other".as_ptr(),
                c"GPL".as_ptr(),
                code.as_ptr().cast(),
                code.len() as u64,
                std::ptr::null_mut(),
            )
        };
        assert!(program >= 0, "the kernel takes it: {program}");
        // SAFETY: just made, and nobody else's.
        let program = unsafe { OwnedFd::from_raw_fd(program) };
        // SAFETY: no options are a valid choice.
        match unsafe { sys::bpf_prog_attach_opts(program.as_raw_fd(), target, sys::BPF_TCX_EGRESS, std::ptr::null()) } {
            0 => hung.push(program),
            _ => return (!hung.is_empty()).then_some(hung),
        }
    }
}

fn drop_egress(device: &str) -> impl Fn(OwnedFd) {
    let target = nix::net::if_::if_nametoindex(device).expect("made before") as i32;
    move |program| {
        // SAFETY: no options are a valid choice.
        let done =
            unsafe { sys::bpf_prog_detach_opts(program.as_raw_fd(), target, sys::BPF_TCX_EGRESS, std::ptr::null()) };
        assert_eq!(done, 0);
    }
}

/// The numbers of the programs among what leaves, in the order of their turns.
fn egress_programs(device: &str) -> Vec<u32> {
    let target = nix::net::if_::if_nametoindex(device).expect("made before") as i32;
    let (mut ids, mut count, mut flags) = ([0; 64], 64, 0);
    // SAFETY: the array outlives the call, with its true length.
    let done = unsafe {
        sys::bpf_prog_query(target, sys::BPF_TCX_EGRESS, 0, &raw mut flags, ids.as_mut_ptr(), &raw mut count)
    };
    assert_eq!(done, 0);
    ids[..count as usize].to_vec()
}

struct Hosts {
    name: String,
}

impl Hosts {
    /// None, saying why, without root.
    fn make() -> Option<Self> {
        if !nix::unistd::Uid::effective().is_root() {
            println!("skipped: needs root");
            return None;
        }
        static MADE: AtomicU32 = AtomicU32::new(0);
        let name = format!("tagger-{}-{}", std::process::id(), MADE.fetch_add(1, Ordering::SeqCst));
        let hosts = Self { name };
        let ip = |words: &str| {
            let done = Command::new("ip").args(words.split(' ')).status().expect("iproute2 is there");
            assert!(done.success(), "ip {words}");
        };
        for host in ["a", "b"] {
            ip(&format!("netns add {}-{host}", hosts.name));
            // An address that is still being looked for on the cable would change the routes when it is found free.
            hosts.run(host, "sh", &["-c", "echo 0 >/proc/sys/net/ipv6/conf/default/accept_dad"]);
        }
        ip(&format!(
            "-n {name}-a link add eth0 mtu 9000 type veth peer name eth0 mtu 9000 netns {name}-b",
            name = hosts.name
        ));
        for (number, host) in [(1, "a"), (2, "b")] {
            hosts.run(host, "ip", &["link", "set", "eth0", "address", &Mac::local(number).to_string(), "up"]);
            hosts.run(host, "ip", &["addr", "add", &format!("10.9.0.{number}/24"), "dev", "eth0"]);
        }
        Some(hosts)
    }

    /// b first, so that it counts every frame that a tags, the stack's own included.
    fn attach_both(&self) {
        self.in_b(|| device::attach("eth0", &table(2), None).map(drop).expect("attached"));
        self.in_a(|| device::attach("eth0", &table(1), None).map(drop).expect("attached"));
    }

    fn in_a<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        within(&format!("{}-a", self.name), work)
    }

    fn in_b<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        within(&format!("{}-b", self.name), work)
    }

    fn counters(&self, host: &str) -> device::Counters {
        let read = || Tagged::open("eth0").expect("attached").counters().expect("readable");
        within(&format!("{}-{host}", self.name), read)
    }

    fn ping(&self, args: &[&str]) -> bool {
        self.command("a", "ping", &[&["-q", "-W", "2", "-i", "0.2"], args].concat())
            .output()
            .expect("ping")
            .status
            .success()
    }

    fn run(&self, host: &str, program: &str, args: &[&str]) {
        let status = self.command(host, program, args).status().expect("a program of iproute2");
        assert!(status.success(), "{program} {args:?}");
    }

    fn output(&self, host: &str, program: &str, args: &[&str]) -> String {
        let output = self.command(host, program, args).output().expect("a program of iproute2");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    fn command(&self, host: &str, program: &str, args: &[&str]) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &format!("{}-{host}", self.name), program]).args(args);
        command
    }
}

impl Drop for Hosts {
    fn drop(&mut self) {
        for host in ["a", "b"] {
            let _ = Command::new("ip").args(["netns", "del", &format!("{}-{host}", self.name)]).status();
        }
    }
}

fn within<T: Send>(namespace: &str, work: impl FnOnce() -> T + Send) -> T {
    let enter = || {
        let file = std::fs::File::open(format!("/run/netns/{namespace}")).expect("made before");
        setns(file, CloneFlags::CLONE_NEWNET).expect("root may");
        work()
    };
    thread::scope(|scope| scope.spawn(enter).join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
}
