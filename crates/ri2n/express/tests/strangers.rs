//! Real socket pairs and processes: others who write in between, and a broker that dies.

use std::{
    cell::Cell,
    io::{self, Read, Write},
    os::{fd::AsRawFd, unix::net::UnixStream},
};

use ri2n_express::{Copy, Delivery, Map, Pair, Sent, Wrote};

const ROUNDS: u32 = 5_000;

/// Two send messages, one in calls that look for copies; the other's know nothing of them and come in between, at every
/// point. Wherever a message is said to be, there it is, and nothing is lost.
#[test]
fn messages_are_where_they_are_said_to_be() {
    let (near, far) = UnixStream::pair().unwrap();
    let map = Map::create(0, 0).unwrap().0;
    map.up.begin(0);
    let strange = Cell::new(0);
    far.set_nonblocking(true).unwrap();
    let (mut stream, mut said, mut counts) = (Vec::new(), Vec::new(), [0; 4]);
    for round in 0..ROUNDS {
        let came = say(&map, &near, round, &strange);
        match came {
            Sent::Ring(offset) | Sent::Pair(offset) => said.push((offset, round)),
            Sent::Somewhere | Sent::No => {}
        }
        counts[match came {
            Sent::Ring(_) => 0,
            Sent::Pair(_) => 1,
            Sent::Somewhere => 2,
            Sent::No => 3,
        }] += 1;
        // The broker is late now and then, and rests at times.
        if round % 7 != 0 {
            collect_all(&map, &far, &mut stream);
        }
        if round % 4 == 0 {
            map.up.rest();
        }
    }
    collect_all(&map, &far, &mut stream);
    let ours: usize = (0..ROUNDS).map(|round| message(0, round).len()).sum();
    assert_eq!(stream.len(), ours + strange.get());
    assert!(counts.iter().all(|count| *count > 0), "ring, pair, somewhere, nowhere: {counts:?}");
    for (offset, round) in said {
        let expected = message(0, round);
        let at = offset as usize;
        assert!(stream[at..at + expected.len()] == expected[..], "message {round} is not at {offset}");
    }
}

/// What one of two writers sends in a round, unlike all else.
fn message(who: u8, round: u32) -> Vec<u8> {
    let length = 8 + (round as usize * 37 + usize::from(who) * 11) % 200;
    (0..length).map(|k| [who, round as u8, (round >> 8) as u8, (round >> 16) as u8, k as u8][k % 5]).collect()
}

fn say(map: &Map, near: &UnixStream, round: u32, strange: &Cell<usize>) -> Sent {
    let (pair, bytes) = (Pair(near.as_raw_fd()), message(0, round));
    let stranger = |moment: u32| {
        if round % 5 == moment {
            let bytes = message(1, round);
            (&*near).write_all(&bytes).unwrap();
            strange.set(strange.get() + bytes.len());
        }
    };
    stranger(0);
    let may_wait = round % 3 == 0;
    let is_empty = || {
        let is_empty = pair.is_written_empty();
        if is_empty {
            stranger(1);
        }
        is_empty
    };
    let write = || {
        stranger(2);
        let wrote = pair.write(&bytes);
        stranger(3);
        wrote
    };
    let said = map.up.say(&bytes, || may_wait, is_empty, write);
    stranger(4);
    if said == Sent::No {
        (&*near).write_all(&bytes).unwrap();
    }
    said
}

/// The broker takes all that there is.
fn collect_all(map: &Map, far: &UnixStream, stream: &mut Vec<u8>) {
    let mut buffer = vec![0; 64 << 10];
    loop {
        let (count, goes_on) = map.up.collect(&mut buffer, |into| (&*far).read(into)).unwrap();
        assert!(goes_on, "nobody closed the pair");
        stream.extend(&buffer[..count]);
        if count == 0 {
            return;
        }
    }
}

/// A broker that is killed right after it wrote to the pair has not noted it. What it wrote is not delivered again.
#[test]
fn what_a_dying_broker_wrote_comes_once() {
    let (near, far) = UnixStream::pair().unwrap();
    let map = Map::create(0, 0).unwrap().0;
    map.down.begin(0);
    // Ten bytes by a copy, of which the reader takes four: six are kept.
    let mut got = Vec::with_capacity(4);
    let copy = Copy { offset: 0, listens: true, hears: true, bytes: b"0123456789" };
    assert_eq!(map.down.deliver(&copy, map.down.look(), &mut got), Delivery::Bytes(4));
    // SAFETY: the child makes system calls only, and ends.
    let broker = unsafe { libc::fork() };
    if broker == 0 {
        let _ = map.down.pass(0, b"0123456789", |bytes| {
            let _ = (&far).write(bytes);
            // SAFETY: no memory is involved.
            unsafe { libc::_exit(0) }
        });
        // SAFETY: as above.
        unsafe { libc::_exit(1) };
    }
    let mut status = 0;
    // SAFETY: the status is live.
    assert_eq!(unsafe { libc::waitpid(broker, &raw mut status, 0) }, broker);
    assert_eq!(status, 0, "the broker got to its end");
    drop(far);
    let mut rest = [0; 20];
    let count = (&near).read(&mut rest).unwrap();
    got.extend_from_slice(&rest[..count]);
    let mut again = Vec::with_capacity(20);
    let pair = Pair(near.as_raw_fd());
    assert_eq!(map.down.deliver_kept(|| pair.is_read_empty(), &mut again), Delivery::No);
    assert_eq!((got.as_slice(), again.as_slice()), (&b"0123456789"[..], &b""[..]));
}

/// A program that closes with data unread leaves an error in the pair. What it had written before comes first.
#[test]
fn what_was_written_comes_before_the_error() {
    let map = Map::create(0, 0).unwrap().0;
    map.up.begin(0);
    let mut buffer = vec![0; 64 << 10];
    // The broker has seen a small message, so it looks into the ring from now on.
    assert_eq!(map.up.collect(&mut buffer, |_| Ok(1)).unwrap(), (1, true));
    let no_pair = || unreachable!("the ring has room");
    assert_eq!(map.up.say(b"last words", || true, || true, no_pair), Sent::Ring(1));
    let reset = |_: &mut [u8]| Err(io::Error::from(io::ErrorKind::ConnectionReset));
    assert_eq!(map.up.collect(&mut buffer, reset).unwrap(), (10, true));
    assert_eq!(&buffer[..10], b"last words");
    assert_eq!(map.up.collect(&mut buffer, reset).unwrap_err().kind(), io::ErrorKind::ConnectionReset);
    assert_eq!(map.up.say(b"x", || true, || true, || unreachable!()), Sent::No);
}

/// A program that is stopped in the middle of a call, or never comes back to it, holds nobody up, and does nothing when it
/// goes on too late.
#[test]
fn nobody_waits_for_a_program() {
    let map = Map::create(0, 0).unwrap().0;
    map.up.begin(0);
    map.down.begin(0);
    let mut buffer = vec![0; 64 << 10];
    assert_eq!(map.up.collect(&mut buffer, |_| Ok(1)).unwrap(), (1, true));
    let stopped = || {
        assert_eq!(map.up.say(b"x", || true, || true, || unreachable!()), Sent::No, "another goes by the pair");
        assert_eq!(map.up.collect(&mut vec![0; 64 << 10], |_| Ok(1)).unwrap(), (1, true));
        true
    };
    assert_eq!(map.up.say(b"late", || true, stopped, || unreachable!()), Sent::No);
    assert_eq!(map.up.say(b"early", || true, || true, || unreachable!()), Sent::Ring(2));
    assert_eq!(map.up.collect(&mut buffer, |_| unreachable!()).unwrap(), (5, true));
    // As well if it was in the middle of its own write: where that is nobody knows.
    let stopped = || {
        assert_eq!(map.up.collect(&mut vec![0; 64 << 10], |_| Ok(9)).unwrap(), (9, true));
        Wrote::Alone
    };
    assert_eq!(map.up.say(b"somewhere", || false, || true, stopped), Sent::Somewhere);

    let copy = |offset, bytes| Copy { offset, listens: true, hears: true, bytes };
    let then = map.down.look();
    assert_eq!(map.down.deliver(&copy(3, b"def"), then, &mut Vec::with_capacity(9)), Delivery::No, "it is kept");
    assert_eq!(map.down.pass(0, b"abc", |bytes| Ok(bytes.len())).unwrap(), 3);
    let stopped = || {
        assert_eq!(map.down.pass(3, b"d", |bytes| Ok(bytes.len())).unwrap(), 1);
        true
    };
    assert_eq!(map.down.deliver_kept(stopped, &mut Vec::with_capacity(9)), Delivery::No);
    let mut rest = Vec::with_capacity(9);
    assert_eq!(map.down.deliver_kept(|| true, &mut rest), Delivery::Bytes(2));
    assert_eq!(rest, b"ef");
}

/// While a broker reads or writes the pair, nobody knows what is in it.
#[test]
fn a_broker_has_its_turn_alone() {
    let map = Map::create(0, 0).unwrap().0;
    map.up.begin(0);
    map.down.begin(0);
    let copy = Copy { offset: 0, listens: true, hears: true, bytes: b"abcd" };
    let passed = map.down.pass(0, b"abc", |bytes| {
        assert_eq!(map.down.deliver(&copy, map.down.look(), &mut Vec::with_capacity(9)), Delivery::No);
        assert_eq!(map.down.deliver_kept(|| true, &mut Vec::with_capacity(9)), Delivery::No);
        Ok(bytes.len())
    });
    assert_eq!(passed.unwrap(), 3);
    let collected = map.up.collect(&mut vec![0; 64 << 10], |_| {
        assert_eq!(map.up.say(b"x", || true, || true, || unreachable!()), Sent::No);
        Ok(1)
    });
    assert_eq!(collected.unwrap(), (1, true));
}
