//! Threads that do everything at once, over real socket pairs: what the kernel orders, and what it leaves open.

use std::{
    io::{self, Read, Write},
    os::{fd::AsRawFd, unix::net::UnixStream},
    sync::{
        Mutex, RwLock,
        atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst},
    },
    thread,
    time::{Duration, Instant},
};

use ri2n_express::{Copy, Delivery, Map, Pair, Sent, Sink};

const ROUNDS: u32 = 5_000;
const HEADER: usize = 7;

/// A message: who sent it, which of his it is, how long it is, and bytes that tell it from others.
fn message(who: u8, round: u32) -> Vec<u8> {
    let length = 16 + (round as usize * 37 + usize::from(who) * 11) % 200;
    let mut bytes = vec![who];
    bytes.extend(round.to_le_bytes());
    bytes.extend((length as u16).to_le_bytes());
    bytes.extend((HEADER..length).map(|k| (k as u8).wrapping_mul(who + 3) ^ round as u8));
    bytes
}

/// Lets others go on, for a while at most.
fn until(is_done: impl Fn() -> bool) {
    for _ in 0..100 {
        if is_done() {
            return;
        }
        thread::yield_now();
    }
}

/// Waits for what others do whichever processor they get.
fn wait_until(is_done: impl Fn() -> bool) {
    let begin = Instant::now();
    while !is_done() {
        assert!(begin.elapsed() < Duration::from_secs(20), "nothing goes on");
        thread::yield_now();
    }
}

/// Two threads send in calls that look for copies, one in calls that do not, and a broker reads, rests, and is slow at times.
/// Every message arrives whole and once, each sender's in order, and where it was said to be.
#[test]
fn many_write_while_a_broker_reads() {
    const WRITERS: u8 = 3;
    const STRANGER: u8 = 2;
    let (near, far) = UnixStream::pair().unwrap();
    far.set_nonblocking(true).unwrap();
    let map = Map::create(0, 0).unwrap().0;
    map.up.begin(0);
    let (said, is_done) = (Mutex::new(Vec::new()), AtomicBool::new(false));
    // Of those who write: all of them, or one that is alone.
    let writing = RwLock::new(());
    let write = |who: u8| {
        let pair = Pair(near.as_raw_fd());
        let mut alone = None;
        for round in 0..ROUNDS {
            let bytes = message(who, round);
            // Two messages in sixteen find that all has been read, whoever has the processors; others may.
            match round % 16 {
                0 if who != STRANGER => alone = Some(writing.write().unwrap()),
                2 => alone = None,
                _ => {}
            }
            let _among_others = alone.is_none().then(|| writing.read().unwrap());
            if alone.is_some() {
                wait_until(|| pair.is_written_empty());
            } else if round % 3 > 0 {
                until(|| pair.is_written_empty());
            }
            let came = if who == STRANGER {
                Sent::No
            } else {
                map.up.say(&bytes, || round % 8 != 0, || pair.is_written_empty(), || pair.write(&bytes))
            };
            match came {
                Sent::Ring(offset) | Sent::Pair(offset) => said.lock().unwrap().push((offset, who, round)),
                Sent::Somewhere => {}
                Sent::No => (&near).write_all(&bytes).unwrap(),
            }
        }
    };
    let read = || {
        let (mut stream, mut buffer, mut turns) = (Vec::new(), vec![0; 64 << 10], 0_u32);
        loop {
            // Before the last look: what is there after it was there before.
            let is_last = is_done.load(SeqCst);
            let (count, _) = map.up.collect(&mut buffer, |into| (&far).read(into)).unwrap();
            stream.extend(&buffer[..count]);
            turns += 1;
            if turns % 64 == 0 {
                map.up.rest();
            }
            if turns % 64 < 8 || count == 0 {
                thread::yield_now();
            }
            if count == 0 && is_last {
                return stream;
            }
        }
    };
    let stream = thread::scope(|scope| {
        let reader = scope.spawn(read);
        let writers: Vec<_> = (0..WRITERS).map(|who| scope.spawn(move || write(who))).collect();
        writers.into_iter().for_each(|writer| writer.join().unwrap());
        is_done.store(true, SeqCst);
        reader.join().unwrap()
    });
    let (mut at, mut next) = (0, [0; WRITERS as usize]);
    while at < stream.len() {
        let who = stream[at];
        let expected = message(who, next[usize::from(who)]);
        assert!(stream[at..].starts_with(&expected), "{who}'s message {} at {at}", next[usize::from(who)]);
        next[usize::from(who)] += 1;
        at += expected.len();
    }
    assert_eq!(next, [ROUNDS; WRITERS as usize]);
    let said = said.into_inner().unwrap();
    assert!(said.len() > 100, "the ring was used: {}", said.len());
    for (offset, who, round) in said {
        assert!(
            stream[offset as usize..].starts_with(&message(who, round)),
            "{who}'s message {round} is not at {offset}"
        );
    }
}

/// A broker passes a stream on while a program reads it, also by copies, of which some are early, into buffers of any length. Another
/// thread of it waits for several descriptors meanwhile: it keeps copies, of which most are old. The broker loses its processor at
/// times after it has written, and of the program's reads some are not seen. Every byte comes once and in order.
#[test]
fn a_broker_writes_while_copies_come() {
    const AHEAD: usize = 300;
    let byte = |offset: u32| (offset ^ (offset >> 8).wrapping_mul(167) ^ (offset >> 16).wrapping_mul(13)) as u8;
    let bytes: Vec<u8> = (0..1_000_000).map(byte).collect();
    let (near, far) = UnixStream::pair().unwrap();
    near.set_nonblocking(true).unwrap();
    far.set_nonblocking(true).unwrap();
    let map = Map::create(0, 0).unwrap().0;
    map.down.begin(0);
    let pair = Pair(near.as_raw_fd());
    // Neither gets far ahead of the other. In one stretch of four the program is ahead, which it can be by copies alone, and in
    // another one the broker.
    let stretch = |at: usize| at / 4096 % 4;
    let (passed, read, is_over) = (AtomicUsize::new(0), AtomicUsize::new(0), AtomicBool::new(false));
    let pass = || {
        let mut at = 0;
        while at < bytes.len() && !is_over.load(SeqCst) {
            if stretch(at) == 0 {
                wait_until(|| at < read.load(SeqCst) || is_over.load(SeqCst));
            }
            until(|| at < read.load(SeqCst) + AHEAD);
            let end = bytes.len().min(at + 1 + at % 300);
            let write = |bytes: &[u8]| {
                let count = (&far).write(bytes);
                if at % 7 == 0 {
                    until(|| read.load(SeqCst) > end);
                }
                count
            };
            at += map.down.pass(at as u64, &bytes[at..end], write).unwrap();
            passed.store(at, SeqCst);
        }
    };
    let hold = || {
        let (mut turn, mut held) = (1, 0);
        while read.load(SeqCst) < bytes.len() && !is_over.load(SeqCst) {
            turn = turn * 26 % 1009;
            let offset = (read.load(SeqCst) + turn % 60).saturating_sub(40).min(bytes.len() - 1);
            let copy = &bytes[offset..bytes.len().min(offset + 1 + turn % 90)];
            let kept = map.down.hold(&Copy { offset: offset as u64, listens: true, hears: true, bytes: copy });
            held += usize::from(kept > 0);
            let mut looked = Vec::with_capacity(turn);
            if let Delivery::Bytes(count) = map.down.peek_kept(|| pair.is_read_empty(), &mut looked) {
                assert_eq!(count, looked.len());
            }
            thread::yield_now();
        }
        assert!(held > 0, "copies were kept");
    };
    let (mut at, mut by_copies, mut in_turns, mut turn) = (0, 0, 0, 1);
    thread::scope(|scope| {
        scope.spawn(pass);
        scope.spawn(hold);
        while at < bytes.len() {
            if stretch(at) == 2 {
                wait_until(|| at < passed.load(SeqCst));
            }
            until(|| at < passed.load(SeqCst) + AHEAD);
            turn = turn * 25 % 1009;
            let mut into = Vec::with_capacity(1 + turn % 100);
            let room = into.room();
            let then = map.down.look();
            let offset = (at + [0, 0, 0, 40][turn % 4]).min(bytes.len() - 1);
            let copy = &bytes[offset..bytes.len().min(offset + 1 + turn % 130)];
            let copy = Copy { offset: offset as u64, listens: true, hears: true, bytes: copy };
            let came = match map.down.deliver_kept(|| pair.is_read_empty(), &mut into) {
                Delivery::No if turn % 3 > 0 && pair.is_read_empty() => map.down.deliver(&copy, then, &mut into),
                came => came,
            };
            match came {
                Delivery::Bytes(count) => {
                    by_copies += count;
                    in_turns += usize::from(map.down.is_passing());
                }
                Delivery::No => {
                    let mut plain = [0; 128];
                    let is_seen = at % 4096 > 200;
                    if is_seen {
                        map.down.begin_read();
                    }
                    let count = match (&near).read(&mut plain[..room]) {
                        Ok(count) => count,
                        Err(error) => {
                            assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
                            0
                        }
                    };
                    into.extend(&plain[..count]);
                    if is_seen {
                        map.down.end_read(count);
                    }
                }
            }
            if !bytes[at..].starts_with(&into) {
                is_over.store(true, SeqCst);
                panic!("other bytes at {at}");
            }
            at += into.len();
            read.store(at, SeqCst);
        }
    });
    assert!((bytes.len() / 100..bytes.len() * 99 / 100).contains(&by_copies), "by copies and by the pair: {by_copies}");
    assert!(in_turns > 10, "while the broker had its turn: {in_turns}");
}
