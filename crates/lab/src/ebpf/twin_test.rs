//! The program and its twin decide alike, frame by frame.
//!
//! Random tables, and for each every combination of ingress port, destination and tag. The program runs on each frame by
//! BPF test-run in a namespace whose ports are real devices: verdict and counters are compared with the twin's decision;
//! flooded copies are caught at the far ends of the ports, tags included. (A test run redirects nothing, so the tag of a
//! unicast frame is read from the program's trace.)

use std::{
    io,
    os::fd::{AsRawFd, OwnedFd},
    thread,
    time::{Duration, Instant},
};

use fabric::{Mac, VlanId};
use libbpf_rs::{Object, ProgramInput};
use nix::{
    sched::{CloneFlags, unshare},
    sys::socket::{AddressFamily, SockFlag, SockType, socket},
};

use super::*;
use crate::{
    table::{Learning, Members, PortEntry, Relay},
    tool::{Batch, BatchOrigin, run_batch},
    twin::{Decision, Exit, FrameHead, Tag, decide, learn, queue},
};

const PORTS: u16 = 6;
/// The far end of port `k` has this index plus `k`.
const FAR_IFINDEX_BASE: u32 = 100;
const FRAME_BYTES: usize = 60;

/// `TC_ACT_*` of `linux/pkt_cls.h`.
const OK: u32 = 0;
const SHOT: u32 = 2;
const STOLEN: u32 = 4;
const REDIRECT: u32 = 7;

/// Offsets in, and size of, `struct __sk_buff`.
const SKB_IFINDEX: usize = 40;
const SKB_PRIORITY: usize = 32;
const SKB_CB: usize = 48;
const SKB_BYTES: usize = 192;
const TRACE_TAGGED: u32 = 0x10000;

#[test]
fn the_program_and_its_twin_decide_alike() {
    if !nix::unistd::geteuid().is_root() {
        println!("skipped: needs root");
        return;
    }
    if let Err(reason) = probe() {
        println!("skipped: ebpf: {reason}");
        return;
    }
    // A namespace belongs to a thread, and goes with it.
    thread::spawn(|| {
        unshare(CloneFlags::CLONE_NEWNET).expect("root may");
        let far_ends = make_ports();
        let mut seen = [0; 3];
        for seed in 1..=6 {
            try_all_frames(seed, &far_ends).iter().zip(&mut seen).for_each(|(count, sum)| *sum += count);
        }
        println!("{} dropped, {} relayed, {} flooded", seen[0], seen[1], seen[2]);
        assert!(seen.iter().all(|count| *count > 100), "every kind of decision is tried: {seen:?}");
    })
    .join()
    .expect("twin and program agree");
}

/// Tries one table; how many frames were dropped, relayed and flooded.
fn try_all_frames(seed: u64, far_ends: &[OwnedFd]) -> [usize; 3] {
    let mut table = random_table(&mut Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15)));
    let object = load("test", &table, &TableCapacity::grown(8, 64, 64)).expect("the program loads");
    let mut seen = [0_usize; 3];
    for port in 0..PORTS {
        for destination in destinations() {
            for tag in tags() {
                // The second is a destination too, so that what is learned is used.
                for source in [Mac::local(77), Mac::local(5), Mac::new([1, 0, 0, 0, 0, 1])] {
                    let frame = FrameHead { destination, source, tag };
                    if let Some(key) = learn(&table, port, &frame) {
                        table.learned.insert(key, port);
                    }
                    let decision = decide(&table, port, &frame);
                    seen[match decision {
                        Decision::Drop(_) => 0,
                        Decision::Unicast(_) => 1,
                        Decision::Flood(..) => 2,
                    }] += 1;
                    let what = format!("seed {seed}, port {port}, {frame:?}: {decision:?}");
                    try_frame(&object, &table, port, &frame, &decision, far_ends, &what);
                }
            }
        }
    }
    let learned = object.maps().find(|map| map.name() == "learned").expect("a map of the object");
    assert_eq!(sum_learned(&learned, "test").expect("readable"), table.learned, "seed {seed}");
    seen
}

fn try_frame(
    object: &Object,
    table: &SwitchTable,
    port: u16,
    frame: &FrameHead,
    decision: &Decision,
    far_ends: &[OwnedFd],
    what: &str,
) {
    let map = |name: &str| object.maps().find(|map| map.name() == name).expect("a map of the object");
    let read = || {
        let traffic = sum_traffic(&map("traffic"), "test").expect("readable");
        (traffic, sum_drops(&map("drops"), "test", usize::from(PORTS)).expect("readable"))
    };
    let (traffic_before, drops_before) = read();
    let Run { verdict, trace, priority } = run(object, port, frame);
    let (traffic, drops) = read();

    let mut expect_drops = drops_before;
    let mut expect_exits: Vec<Exit> = Vec::new();
    let mut expect_flood = None;
    match decision {
        Decision::Drop(reason) => {
            // A reserved frame is not relayed, but whoever listens on the port may have it.
            assert_eq!(verdict, if *reason == DropReason::Reserved { OK } else { SHOT }, "{what}");
            *expect_drops[usize::from(port)].entry(*reason).or_default() += 1;
        }
        Decision::Unicast(exit) => {
            assert_eq!(verdict, REDIRECT, "{what}");
            assert_eq!(priority, queue(frame.tag), "{what}");
            assert_eq!(trace, exit.tag.map_or(0, |tag| TRACE_TAGGED | u32::from(tag.vid)), "{what}");
            expect_exits.push(*exit);
        }
        Decision::Flood(kind, exits) => {
            assert_eq!(verdict, STOLEN, "{what}");
            assert_eq!(caught(far_ends, exits.len()), *exits, "{what}");
            expect_exits.clone_from(exits);
            expect_flood = Some(*kind);
        }
    }
    assert_eq!(drops, expect_drops, "{what}");
    let vlan = frame.tag.map_or(0, |tag| tag.vid);
    let vlan = if vlan == 0 { table.ports[usize::from(port)].pvid.map_or(0, VlanId::get) } else { vlan };
    // The port is found in the tables, and has passed the ingress filter, unless the frame was dropped before that.
    let entered = match decision {
        Decision::Drop(reason) => match reason {
            DropReason::SamePort | DropReason::EgressNotMember => true,
            DropReason::Blocked => table.ports[usize::from(port)].relay == Relay::Forward,
            _ => false,
        },
        Decision::Unicast(_) | Decision::Flood(..) => true,
    };
    for (key, before) in &traffic_before {
        let mut expect = *before;
        if *key == (port, vlan) && entered {
            expect.in_frames += 1;
            expect.in_bytes += FRAME_BYTES as u64;
            let count = match expect_flood {
                None => None,
                Some(FloodKind::UnknownUnicast) => Some(&mut expect.flooded_unknown),
                Some(FloodKind::Multicast) => Some(&mut expect.flooded_multicast),
                Some(FloodKind::Broadcast) => Some(&mut expect.flooded_broadcast),
            };
            if let Some(count) = count {
                *count = count.map(|count| count + 1);
            }
        }
        if expect_exits.iter().any(|exit| *key == (exit.port, vlan)) {
            expect.out_frames += 1;
            expect.out_bytes += FRAME_BYTES as u64;
        }
        assert_eq!(traffic[key], expect, "{what}: counters of {key:?}");
    }
}

struct Run {
    verdict: u32,
    trace: u32,
    priority: u32,
}

/// Runs the program.
fn run(object: &Object, port: u16, frame: &FrameHead) -> Run {
    let mut packet = [frame.destination.octets(), frame.source.octets()].concat();
    if let Some(tag) = frame.tag {
        packet.extend([0x81, 0x00]);
        packet.extend((u16::from(tag.priority) << 12 | tag.vid).to_be_bytes());
    }
    // The type is one for local experiments, which no stack answers.
    packet.extend([0x88, 0xb5]);
    packet.resize(FRAME_BYTES + if frame.tag.is_some() { 4 } else { 0 }, 0);
    let mut context = [0_u8; SKB_BYTES];
    context[SKB_IFINDEX..SKB_IFINDEX + 4].copy_from_slice(&(PORT_IFINDEX_BASE + u32::from(port)).to_ne_bytes());
    let mut context_out = [0_u8; SKB_BYTES];
    let program = object.progs_mut().next().expect("the object has its program");
    let input = ProgramInput {
        context_in: Some(&mut context),
        context_out: Some(&mut context_out),
        data_in: Some(&packet),
        ..ProgramInput::default()
    };
    let verdict = program.test_run(input).expect("the kernel runs it").return_value;
    let word = |at: usize| context_out[at..at + 4].try_into().map_or(0, u32::from_ne_bytes);
    Run { verdict, trace: word(SKB_CB), priority: word(SKB_PRIORITY) }
}

/// What arrives at the far ends, ascending by port; waits for as many copies as should come, and a moment for more.
fn caught(far_ends: &[OwnedFd], expected: usize) -> Vec<Exit> {
    let mut exits = Vec::new();
    let since = Instant::now();
    loop {
        for (port, far_end) in (0_u16..).zip(far_ends) {
            while let Some(tag) = receive(far_end) {
                exits.push(Exit { port, tag });
            }
        }
        if exits.len() >= expected || since.elapsed() > Duration::from_secs(1) {
            exits.sort_unstable();
            return exits;
        }
        thread::yield_now();
    }
}

/// The tag of a frame that waits at a far end, which the kernel blocks beside the frame; none if there is no frame.
fn receive(far_end: &OwnedFd) -> Option<Option<Tag>> {
    let (mut data, mut control) = ([0_u8; 256], [0_u64; 16]);
    let mut part = libc::iovec { iov_base: data.as_mut_ptr().cast(), iov_len: data.len() };
    // SAFETY: all-zero bytes are a valid msghdr.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_iov = &raw mut part;
    message.msg_iovlen = 1;
    message.msg_control = control.as_mut_ptr().cast();
    message.msg_controllen = size_of_val(&control);
    // SAFETY: the message points to buffers that outlive the call, with their true lengths.
    let length = unsafe { libc::recvmsg(far_end.as_raw_fd(), &raw mut message, libc::MSG_DONTWAIT) };
    if length < 0 {
        return None;
    }
    // SAFETY: the kernel has filled in the message, whose control buffer is aligned for its headers.
    let auxiliary = unsafe {
        let header = libc::CMSG_FIRSTHDR(&raw const message);
        assert!(!header.is_null() && (*header).cmsg_type == libc::PACKET_AUXDATA, "auxiliary data was asked for");
        libc::CMSG_DATA(header).cast::<libc::tpacket_auxdata>().read_unaligned()
    };
    let tagged = auxiliary.tp_status & libc::TP_STATUS_VLAN_VALID != 0;
    let tci = auxiliary.tp_vlan_tci;
    Some(tagged.then_some(Tag { vid: tci & 0x0fff, priority: (tci >> 12) as u8 }))
}

/// Ports as the program expects them, and a socket at the far end of each.
fn make_ports() -> Vec<OwnedFd> {
    let mut script = String::new();
    for port in 0..u32::from(PORTS) {
        let (near, far) = (PORT_IFINDEX_BASE + port, FAR_IFINDEX_BASE + port);
        script += &format!("link add p{port} index {near} type veth peer name q{port} index {far}\n");
        script += &format!("link set p{port} addrgenmode none up\nlink set q{port} addrgenmode none up\n");
    }
    let place = BatchOrigin { operation: "test", device: "ports", step: "make" };
    run_batch(&Batch { tool: "ip", namespace: None, script }, place).expect("root may");
    (0..u32::from(PORTS)).map(|port| listen(FAR_IFINDEX_BASE + port).expect("root may")).collect()
}

fn listen(ifindex: u32) -> io::Result<OwnedFd> {
    let all = (libc::ETH_P_ALL as u16).to_be();
    let listener = socket(AddressFamily::Packet, SockType::Raw, SockFlag::SOCK_CLOEXEC, None)?;
    // SAFETY: all-zero bytes are a valid sockaddr_ll.
    let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
    address.sll_family = libc::AF_PACKET as u16;
    address.sll_protocol = all;
    address.sll_ifindex = ifindex as i32;
    let one: libc::c_int = 1;
    // SAFETY: both calls get pointers to live values with their true sizes.
    let done = unsafe {
        let length = size_of_val(&one) as u32;
        let fd = listener.as_raw_fd();
        libc::setsockopt(fd, libc::SOL_PACKET, libc::PACKET_AUXDATA, (&raw const one).cast(), length) == 0
            && libc::bind(fd, (&raw const address).cast(), size_of_val(&address) as u32) == 0
    };
    if done { Ok(listener) } else { Err(io::Error::last_os_error()) }
}

fn destinations() -> Vec<Mac> {
    let stations = (1..=5).map(Mac::local);
    let groups = [[0xff; 6], [0x01, 0, 0x5e, 1, 2, 3], [0x33, 0x33, 0, 0, 0, 1], [0x01, 0x80, 0xc2, 0, 0, 0x0e]];
    stations.chain(groups.map(Mac::new)).chain([Mac::new([0x01, 0x80, 0xc2, 0, 0, 0x10])]).collect()
}

fn tags() -> Vec<Option<Tag>> {
    let tag = |vid, priority| Some(Tag { vid, priority });
    vec![None, tag(0, 5), tag(2, 0), tag(2, 9), tag(3, 7), tag(4, 15), tag(99, 1), tag(4095, 0)]
}

fn random_table(random: &mut Random) -> SwitchTable {
    let vlan = |id| VlanId::new(id).expect("in range");
    let mut table =
        SwitchTable { ports: Vec::new(), vlans: BTreeMap::new(), fdb: BTreeMap::new(), learned: BTreeMap::new() };
    for port in 0..PORTS {
        let pvid = [None, Some(vlan(2)), Some(vlan(3)), Some(vlan(4)), Some(vlan(5))][random.below(5)];
        let service = if port == PORTS - 1 { Service::Down } else { Service::Up };
        let relay = if random.below(4) == 0 { Relay::Block } else { Relay::Forward };
        let learning = [Learning::Off, Learning::For { ageing_s: 1000 }][random.below(2)];
        let kinds = FloodKind::ALL.iter().copied();
        let blocked_floods = kinds.filter(|_| random.below(4) == 0).collect();
        table.ports.push(PortEntry { pvid, service, relay, learning, blocked_floods });
    }
    for id in 2..=4 {
        let mut members = Members::default();
        for port in 0..PORTS - 1 {
            match random.below(3) {
                0 => members.tagged.insert(port),
                1 => members.untagged.insert(port),
                _ => {}
            }
        }
        table.vlans.insert(vlan(id), members);
        // Stations 4 and 5 have no entries; 5 is learned.
        for station in 1..=3 {
            table.fdb.insert((vlan(id), Mac::local(station)), random.below(usize::from(PORTS)) as u16);
        }
    }
    table
}

/// Xorshift (Marsaglia, 2003).
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 20) as usize % bound
    }
}
