//! The programs and their twin decide alike, frame by frame.
//!
//! Random tables and random frames: IPv4 and IPv6 with and without ports, fragments, extension headers, ARP, LLDP, groups,
//! tags of every kind, probes, frames cut anywhere, large ones. The programs run on each by BPF test-run; verdict, VLAN,
//! resulting frame and counters are compared with what the twin says.

use std::{process::Command, thread};

use libbpf_rs::{Object, ProgramInput};
use nix::sched::{CloneFlags, unshare};

use super::*;
use crate::{
    layout::{PROBE_PRIORITY, PROBE_TYPE},
    table::Spread,
    twin::{self, Egress, Ingress},
};

const FRAMES: usize = 3000;
/// `TC_ACT_UNSPEC`, `TC_ACT_SHOT`, `TC_ACT_REDIRECT` of `linux/pkt_cls.h`.
const UNSPEC: u32 = u32::MAX;
const SHOT: u32 = 2;
const REDIRECT: u32 = 7;
/// Offsets in, and size of, `struct __sk_buff`.
const SKB_IFINDEX: usize = 40;
const SKB_PRIORITY: usize = 32;
const SKB_CB: usize = 48;
const SKB_BYTES: usize = 192;
const TRACE_TAG: u32 = 0x10000;
const OWN: Mac = Mac::local(0);

#[test]
fn the_programs_and_their_twin_decide_alike() {
    if !nix::unistd::Uid::effective().is_root() {
        println!("skipped: needs root");
        return;
    }
    // A namespace belongs to a thread, and goes with it.
    thread::spawn(|| {
        unshare(CloneFlags::CLONE_NEWNET).expect("root may");
        let made = Command::new("ip")
            .args(["link", "add", "t0", "address", &OWN.to_string(), "type", "veth", "peer", "name", "t1"])
            .status();
        assert!(made.expect("iproute2 is there").success());
        let (ifindex, mac) = find("t0").expect("just made");
        assert_eq!(mac, OWN);
        let mut seen = BTreeMap::new();
        for seed in 1..=8_u64 {
            println!("seed {seed}");
            let random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
            for kind in try_frames(random, ifindex, &format!("seed {seed}")) {
                *seen.entry(kind).or_insert(0_usize) += 1;
            }
        }
        println!("{seen:?}");
        assert_eq!(seen.len(), 10, "every kind of decision is tried: {seen:?}");
        assert!(seen.values().all(|count| *count >= 10), "and often: {seen:?}");
    })
    .join()
    .expect("twin and programs agree");
}

fn try_frames(mut random: Random, ifindex: i32, what: &str) -> Vec<&'static str> {
    let table = random_table(&mut random);
    let object = load("t0", None, 64).expect("the programs load");
    let tagged = Tagged::of(&object, "t0", ifindex, OWN).expect("its maps open");
    tagged.replace(&table).expect("the table is written");
    assert_eq!(tagged.table().expect("readable"), table, "{what}: what was written is what is read");
    let mut expect = tagged.counters().expect("readable");
    let mut kinds = Vec::new();
    for number in 0..FRAMES {
        let frame = random_frame(&mut random);
        let what = format!("{what}, frame {number}: {frame:02x?}");
        let decision = {
            let Run { verdict, trace, frame: out, .. } = run(&object, "tagger_egress", ifindex, &frame);
            let decision = twin::egress(&table, &frame, |spread, hash| {
                let (name, at) = if spread == Spread::Placed { ("tagger_flows", 24) } else { ("tagger_flowlets", 8) };
                let map = object.maps().find(|map| map.name() == name).expect("a map of the object");
                let slot = hash % layout::FLOWLETS_MAX as u32;
                let value = map.lookup(&slot.to_ne_bytes(), MapFlags::ANY).expect("readable").expect("an array");
                u32::from_ne_bytes([value[at], value[at + 1], value[at + 2], value[at + 3]])
            });
            let (expect_verdict, expect_trace) = match decision {
                Egress::Tag { vlan, class, .. } => (UNSPEC, TRACE_TAG | u32::from(class) << 13 | u32::from(vlan.get())),
                Egress::Leave(_) => (UNSPEC, 0),
                Egress::Drop(_) => (SHOT, 0),
            };
            assert_eq!((verdict, trace), (expect_verdict, expect_trace), "{decision:?} {what}");
            assert_eq!(out, frame, "the tag goes beside the frame: {what}");
            decision
        };
        let bytes = frame.len() as u64;
        kinds.push(match decision {
            Egress::Tag { vlan, counted, .. } => {
                add(expect.destinations.get_mut(&counted).expect("listed"), bytes);
                add(&mut expect.vlans.entry(vlan).or_default().sent, bytes);
                if counted == Mac::BROADCAST { "group" } else { "unicast" }
            }
            Egress::Leave(event) | Egress::Drop(event) => {
                *expect.events.entry(event).or_default() += 1;
                event.word()
            }
        });

        let Run { verdict, trace, priority, frame: out } = run(&object, "tagger_ingress", ifindex, &frame);
        let decision = twin::ingress(&table, OWN, &frame);
        let (expect_verdict, expect_trace, expect_out) = match &decision {
            // An inner tag goes beside the frame.
            Ingress::Pop(vlan) => {
                let tags = if matches!(frame[16..18], [0x81, 0x00] | [0x88, 0xa8]) { 8 } else { 4 };
                (UNSPEC, TRACE_TAG | u32::from(vlan.get()), [&frame[..12], &frame[12 + tags..]].concat())
            }
            Ingress::Leave(_) => (UNSPEC, 0, frame.clone()),
            Ingress::Drop(_) => (SHOT, 0, out.clone()),
            Ingress::Answer(answer) => (REDIRECT, 0, answer.clone()),
        };
        assert_eq!((verdict, trace), (expect_verdict, expect_trace), "{decision:?} {what}");
        assert_eq!(out, expect_out, "{decision:?} {what}");
        let urgent = if matches!(decision, Ingress::Answer(_)) { PROBE_PRIORITY } else { 0 };
        assert_eq!(priority, urgent, "{decision:?} {what}");
        let event = match decision {
            Ingress::Pop(vlan) => {
                add(&mut expect.vlans.entry(vlan).or_default().received, bytes - 4);
                kinds.push("popped");
                None
            }
            Ingress::Leave(event) | Ingress::Drop(event) => Some(event),
            Ingress::Answer(_) => Some(Event::ProbeAnswered),
        };
        if let Some(event) = event {
            *expect.events.entry(event).or_default() += 1;
            kinds.push(event.word());
        }
        // Reading all counters takes a while.
        if number % 500 == 0 || number + 1 == FRAMES {
            assert_eq!(tagged.counters().expect("readable"), expect, "{what}");
        }
    }
    kinds
}

fn add(count: &mut Count, bytes: u64) {
    count.frames += 1;
    count.bytes += bytes;
}

/// What a program decided, and the frame afterwards.
struct Run {
    verdict: u32,
    trace: u32,
    priority: u32,
    frame: Vec<u8>,
}

fn run(object: &Object, program: &str, ifindex: i32, frame: &[u8]) -> Run {
    let mut context = [0_u8; SKB_BYTES];
    context[SKB_IFINDEX..SKB_IFINDEX + 4].copy_from_slice(&ifindex.to_ne_bytes());
    let (mut context_out, mut out) = ([0_u8; SKB_BYTES], vec![0; 8192]);
    let program = object.progs_mut().find(|known| known.name() == program).expect("a program of the object");
    let input = ProgramInput {
        context_in: Some(&mut context),
        context_out: Some(&mut context_out),
        data_in: Some(frame),
        data_out: Some(&mut out),
        ..ProgramInput::default()
    };
    let output = program.test_run(input).expect("the kernel runs it");
    let (verdict, frame) = (output.return_value, output.data.expect("asked for").to_vec());
    let word = |at: usize| u32::from_ne_bytes([0, 1, 2, 3].map(|byte| context_out[at + byte]));
    Run { verdict, trace: word(SKB_CB), priority: word(SKB_PRIORITY), frame }
}

fn random_table(random: &mut Random) -> TaggingTable {
    let vlan = |id: usize| VlanId::new(id as u16).expect("in range");
    let mut table =
        TaggingTable { receive: [2, 3, 5, 9, 4094].map(vlan).into_iter().collect(), ..TaggingTable::default() };
    for station in 1..=6 {
        let spreads = [
            Spread::First,
            Spread::Port,
            Spread::Flow,
            Spread::Flowlet { gap_us: 10 },
            Spread::Flowlet { gap_us: 1_000_000 },
            Spread::Placed,
        ];
        let spread = spreads[random.below(spreads.len())];
        let choices: Vec<VlanId> = (0..1 + random.below(8)).map(|at| vlan(2 + at)).collect();
        table.destinations.insert(Mac::local(station), Route::spread(choices, spread).expect("some"));
    }
    table.classes = match random.below(3) {
        0 => Classes::Dscp,
        1 => Classes::default(),
        _ => Classes::Vlan([(vlan(3), 1), (vlan(5), 7), (vlan(4094), 2)].into()),
    };
    // One table in four has no VLAN for groups and strangers.
    table.group = (random.below(4) > 0).then(|| Route::single(vlan(9)));
    table
}

fn random_frame(random: &mut Random) -> Vec<u8> {
    let group = [[0xff; 6], [0x01, 0, 0x5e, 1, 2, 3], [0x33, 0x33, 0, 0, 0, 1], [0x01, 0x80, 0xc2, 0, 0, 0x0e]];
    let destination = match random.below(8) {
        0 => Mac::new(group[random.below(4)]),
        1 => OWN,
        at => Mac::local(at as u32),
    };
    let source = if random.below(16) == 0 { Mac::new(group[1]) } else { Mac::local(20 + random.below(3) as u32) };
    let mut frame = [destination.octets(), source.octets()].concat();
    match random.below(8) {
        0..=2 => {}
        3 => frame.extend([0x88, 0xa8, 0, 2]),
        _ => {
            let id = [0, 1, 2, 3, 5, 9, 4094, 4095][random.below(8)] as u16;
            frame.extend([0x81, 0x00]);
            frame.extend((id | (random.below(16) as u16) << 12).to_be_bytes());
            if random.below(8) == 0 {
                frame.extend([0x81, 0x00, 0, 2]);
            }
        }
    }
    let mut bytes = |count: usize| (0..count).map(|_| random.below(256) as u8).collect::<Vec<u8>>();
    let body = bytes(120);
    let pick = bytes(4);
    match pick[0] % 6 {
        0 | 1 => {
            frame.extend([0x08, 0x00, 0x45 + pick[1] % 4, pick[0] ^ pick[2]]);
            frame.extend(&body[..4]);
            frame.extend(if pick[2] % 4 == 0 { [0x20, 0x08] } else { [0x40, 0] });
            frame.extend([64, [6, 17, 132, 1][usize::from(pick[3]) % 4]]);
            // Few addresses and ports, so that flows come again.
            frame.extend([0, 0, 10, 0, 0, body[0] % 3, 10, 0, 0, body[1] % 3]);
            let options = frame.len() + 4 * usize::from(pick[1] % 4);
            frame.extend(body.iter().skip(40).map(|byte| byte % 2));
            put_choosing_port(&mut frame, options, pick[2]);
        }
        2 => {
            frame.extend([
                0x86,
                0xdd,
                0x60 | (pick[2] % 16),
                pick[3],
                0,
                0,
                0,
                40,
                [6, 17, 58, 0][usize::from(pick[1]) % 4],
                64,
            ]);
            let ports = frame.len() + 32;
            frame.extend(body.iter().map(|byte| byte % 2));
            put_choosing_port(&mut frame, ports, pick[2]);
        }
        3 => {
            frame.extend([0x08, 0x06]);
            frame.extend(&body[..46]);
        }
        4 => {
            frame.extend(PROBE_TYPE.to_be_bytes());
            frame.push(pick[1] % 6);
            frame.extend(&body[..45]);
        }
        _ => {
            frame.extend([0x88, 0xb5]);
            frame.extend(&body[..46]);
        }
    }
    match random.below(10) {
        // The kernel runs nothing on an Ethernet header alone, nor on half an IP header.
        0 => {
            let whole = match frame[12..14] {
                [0x08, 0x00] => 14 + 20,
                [0x86, 0xdd] => 14 + 40,
                _ => 15,
            };
            frame.truncate(whole + random.below(20));
        }
        1 => frame.resize(1518 + random.below(1500), 7),
        _ => {}
    }
    frame
}

/// Has every other frame come from a port that chooses its VLAN, or from the last below them.
fn put_choosing_port(frame: &mut [u8], at: usize, chance: u8) {
    if chance % 2 == 0 {
        let port = layout::PATH_PORTS - 1 + u16::from(chance / 2);
        frame[at..at + 2].copy_from_slice(&port.to_be_bytes());
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
