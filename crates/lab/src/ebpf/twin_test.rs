//! The program and its twin decide alike, frame by frame.
//!
//! Random tables, and for each every combination of ingress port, destination and tag. The program runs on each frame by
//! BPF test-run in a namespace whose ports are real devices: verdict and counters are compared with the twin's decision;
//! flooded copies are caught at the far ends of the ports, tags included. (A test run redirects nothing, so the tag of a
//! unicast frame, and the port whose device it leaves by, are read from the program's trace.)
//!
//! ```text
//! ports 0 to 4: up   5: down   6, 7: members of a LAG   8: the LAG, without a device
//! ```

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
    flow,
    table::{ActiveMembers, LagPart, Learning, Members, PortEntry, Relay},
    tool::{Batch, BatchOrigin, run_batch},
    twin::{Decision, Exit, FrameHead, Tag, decide, device, learn, queue},
};

/// Ports with devices.
const PORTS: u16 = 8;
const DOWN: u16 = 5;
const MEMBERS: [u16; 2] = [6, 7];
const LAG: u16 = 8;
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
const SKB_CB_DEVICE: usize = SKB_CB + 4;
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
        for seed in 1..=8 {
            try_all_frames(seed, &far_ends).iter().zip(&mut seen).for_each(|(count, sum)| *sum += count);
        }
        println!("{} dropped, {} relayed, {} flooded", seen[0], seen[1], seen[2]);
        assert!(seen.iter().all(|count| *count > 100), "every kind of decision is tried: {seen:?}");
    })
    .join()
    .expect("twin and program agree");
}

#[test]
fn a_conversation_takes_the_member_that_its_hash_chooses() {
    if !nix::unistd::geteuid().is_root() || probe().is_err() {
        println!("skipped: needs root and eBPF");
        return;
    }
    thread::spawn(|| {
        unshare(CloneFlags::CLONE_NEWNET).expect("root may");
        // A test run needs the device that the frame has come in by.
        let _far_ends = make_ports();
        try_conversations();
    })
    .join()
    .expect("twin and program agree");
}

fn try_conversations() {
    // Port 0, the LAG 1 and its members 2 to 6; a station behind the LAG.
    let vlan = VlanId::new(2).expect("in range");
    let mut table = empty_table();
    for part in [LagPart::None, LagPart::Lag].into_iter().chain([LagPart::Member(1); 5]) {
        table.ports.push(PortEntry { part, ..PortEntry::own(vlan) });
    }
    let mut members = Members::default();
    members.untagged.insert(0);
    members.tagged.insert(1);
    table.vlans.insert(vlan, members);
    table.fdb.insert((vlan, Mac::local(9)), 1);
    table.active.distributing.insert(1, (2..=6).collect());
    let object = load("test", &table, &TableCapacity::grown(8, 64, 64)).expect("the program loads");
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let mut taken = BTreeMap::<u32, usize>::new();
    for number in 0..2000 {
        let packet = conversation(&mut random, number);
        let run = run(&object, 0, &packet);
        assert_eq!(run.verdict, REDIRECT, "{packet:02x?}");
        assert_eq!(Some(run.device), device(&table, 1, flow::hash(&packet)).map(u32::from), "{packet:02x?}");
        *taken.entry(run.device).or_default() += 1;
    }
    println!("members by how many conversations take them: {taken:?}");
    assert!(taken.len() == 5 && taken.values().all(|count| *count > 300), "{taken:?}");
}

/// A frame to the station behind the LAG: of IPv4, IPv6 or neither, tagged or not, whole, in fragments or cut short.
fn conversation(random: &mut Random, number: usize) -> Vec<u8> {
    let mut packet = [Mac::local(9).octets(), Mac::local(random.below(9) as u32).octets()].concat();
    if number % 2 == 0 {
        packet.extend([0x81, 0x00, 0x20, 0x02]);
    }
    let kind = random.below(5);
    packet.extend([[0x08, 0x00], [0x08, 0x00], [0x86, 0xdd], [0x86, 0xdd], [0x88, 0xb5]][kind]);
    let body = packet.len();
    packet.extend((0..64).map(|_| random.below(256) as u8));
    let protocol = [1, 6, 17, 58][random.below(4)];
    match kind {
        0 | 1 => {
            packet[body] = [0x45, 0x46, 0x4f][random.below(3)];
            packet[body + 6..body + 8].copy_from_slice(&[[0, 0], [0x40, 0], [0x20, 0], [0, 7]][random.below(4)]);
            packet[body + 9] = protocol;
        }
        2 | 3 => packet[body + 6] = protocol,
        _ => {}
    }
    if random.below(4) == 0 {
        // A test run takes no frame without a payload, nor, where no tag hides it, with half an IP header.
        let least = if number % 2 == 0 { 1 } else { 40 };
        packet.truncate(body + least + random.below(64 - least));
    }
    packet
}

/// Tries one table; how many frames were dropped, relayed and flooded.
fn try_all_frames(seed: u64, far_ends: &[OwnedFd]) -> [usize; 3] {
    let mut table = random_table(&mut Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15)));
    let object = load("test", &table, &TableCapacity::grown(8, 64, 128)).expect("the program loads");
    let mut seen = [0_usize; 3];
    for port in 0..PORTS {
        for destination in destinations() {
            for tag in tags() {
                // The second is a destination too, so that what is learned is used.
                for source in [Mac::local(77), Mac::local(5), Mac::new([1, 0, 0, 0, 0, 1])] {
                    let frame = FrameHead { destination, source, tag };
                    if let Some((key, port)) = learn(&table, port, &frame) {
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
        (traffic, sum_drops(&map("drops"), "test", table.ports.len()).expect("readable"))
    };
    let (traffic_before, drops_before) = read();
    let packet = packet(frame);
    let hash = flow::hash(&packet);
    let Run { verdict, trace, device: left_by, priority } = run(object, port, &packet);
    let (traffic, drops) = read();

    let mut expect_drops = drops_before;
    // A frame that a member has let in has come in by the LAG, and counts at both.
    let logical = match table.ports[usize::from(port)].part {
        LagPart::Member(lag) if table.active.collecting.contains(port) => lag,
        _ => port,
    };
    let mut expect_exits: Vec<Exit> = Vec::new();
    let mut expect_flood = None;
    match decision {
        Decision::Drop(reason) => {
            // A reserved frame is not relayed, but whoever listens on the port may have it.
            assert_eq!(verdict, if *reason == DropReason::Reserved { OK } else { SHOT }, "{what}");
            let by_member = matches!(reason, DropReason::Malformed | DropReason::Reserved | DropReason::NotCollecting);
            let at = if by_member { port } else { logical };
            *expect_drops[usize::from(at)].entry(*reason).or_default() += 1;
        }
        Decision::Unicast(exit) => {
            assert_eq!(verdict, REDIRECT, "{what}");
            assert_eq!(priority, queue(frame.tag), "{what}");
            assert_eq!(trace, exit.tag.map_or(0, |tag| TRACE_TAGGED | u32::from(tag.vid)), "{what}");
            assert_eq!(Some(left_by), device(table, exit.port, hash).map(u32::from), "{what}");
            expect_exits.push(*exit);
        }
        Decision::Flood(kind, exits) => {
            assert_eq!(verdict, STOLEN, "{what}");
            let left = |exit: &Exit| Exit { port: device(table, exit.port, hash).expect("a member"), ..*exit };
            let mut left: Vec<Exit> = exits.iter().map(left).collect();
            left.sort_unstable();
            assert_eq!(caught(far_ends, exits.len()), left, "{what}");
            expect_exits.clone_from(exits);
            expect_flood = Some(*kind);
        }
    }
    assert_eq!(drops, expect_drops, "{what}");
    let vlan = frame.tag.map_or(0, |tag| tag.vid);
    let vlan = if vlan == 0 { table.ports[usize::from(logical)].pvid.map_or(0, VlanId::get) } else { vlan };
    // The port is found in the tables, and has passed the ingress filter, unless the frame was dropped before that.
    let entered = match decision {
        Decision::Drop(reason) => match reason {
            DropReason::SamePort | DropReason::EgressNotMember | DropReason::NoMember => true,
            DropReason::Blocked => table.ports[usize::from(logical)].relay == Relay::Forward,
            _ => false,
        },
        Decision::Unicast(_) | Decision::Flood(..) => true,
    };
    for (key, before) in &traffic_before {
        let mut expect = *before;
        if [(logical, vlan), (port, vlan)].contains(key) && entered {
            expect.in_frames += 1;
            expect.in_bytes += FRAME_BYTES as u64;
        }
        if *key == (logical, vlan) && entered {
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
        let leaves_by = |exit: &Exit| *key == (exit.port, vlan) || Some(key.0) == device(table, exit.port, hash);
        if key.1 == vlan && expect_exits.iter().any(leaves_by) {
            expect.out_frames += 1;
            expect.out_bytes += FRAME_BYTES as u64;
        }
        assert_eq!(traffic[key], expect, "{what}: counters of {key:?}");
    }
}

struct Run {
    verdict: u32,
    trace: u32,
    device: u32,
    priority: u32,
}

fn packet(frame: &FrameHead) -> Vec<u8> {
    let mut packet = [frame.destination.octets(), frame.source.octets()].concat();
    if let Some(tag) = frame.tag {
        packet.extend([0x81, 0x00]);
        packet.extend((u16::from(tag.priority) << 12 | tag.vid).to_be_bytes());
    }
    // The type is one for local experiments, which no stack answers.
    packet.extend([0x88, 0xb5]);
    packet.resize(FRAME_BYTES + if frame.tag.is_some() { 4 } else { 0 }, 0);
    packet
}

/// Runs the program.
fn run(object: &Object, port: u16, packet: &[u8]) -> Run {
    let mut context = [0_u8; SKB_BYTES];
    context[SKB_IFINDEX..SKB_IFINDEX + 4].copy_from_slice(&(PORT_IFINDEX_BASE + u32::from(port)).to_ne_bytes());
    let mut context_out = [0_u8; SKB_BYTES];
    let program = object.progs_mut().next().expect("the object has its program");
    let input = ProgramInput {
        context_in: Some(&mut context),
        context_out: Some(&mut context_out),
        data_in: Some(packet),
        ..ProgramInput::default()
    };
    let verdict = program.test_run(input).expect("the kernel runs it").return_value;
    let word = |at: usize| context_out[at..at + 4].try_into().map_or(0, u32::from_ne_bytes);
    Run { verdict, trace: word(SKB_CB), device: word(SKB_CB_DEVICE), priority: word(SKB_PRIORITY) }
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
    let mut table = empty_table();
    for port in 0..=LAG {
        let pvid = [None, Some(vlan(2)), Some(vlan(3)), Some(vlan(4)), Some(vlan(5))][random.below(5)];
        let service = if port == DOWN { Service::Down } else { Service::Up };
        let relay = if random.below(4) == 0 { Relay::Block } else { Relay::Forward };
        let learning = [Learning::Off, Learning::For { ageing_s: 1000 }][random.below(2)];
        let kinds = FloodKind::ALL.iter().copied();
        let blocked_floods = kinds.filter(|_| random.below(4) == 0).collect();
        let part = match port {
            LAG => LagPart::Lag,
            port if MEMBERS.contains(&port) => LagPart::Member(LAG),
            _ => LagPart::None,
        };
        table.ports.push(PortEntry { pvid, service, relay, learning, blocked_floods, part });
    }
    let mut members_in_use = || MEMBERS.into_iter().filter(|_| random.below(3) > 0).collect::<Vec<u16>>();
    members_in_use().into_iter().for_each(|member| table.active.collecting.insert(member));
    table.active.distributing.insert(LAG, members_in_use());
    for id in 2..=4 {
        let mut members = Members::default();
        for port in (0..DOWN).chain([LAG]) {
            match random.below(3) {
                0 => members.tagged.insert(port),
                1 => members.untagged.insert(port),
                _ => {}
            }
        }
        table.vlans.insert(vlan(id), members);
        // Stations 4 and 5 have no entries; 5 is learned.
        for station in 1..=3 {
            table.fdb.insert((vlan(id), Mac::local(station)), random.below(usize::from(LAG) + 1) as u16);
        }
    }
    table
}

fn empty_table() -> SwitchTable {
    SwitchTable {
        ports: Vec::new(),
        vlans: BTreeMap::new(),
        fdb: BTreeMap::new(),
        learned: BTreeMap::new(),
        active: ActiveMembers::default(),
    }
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
