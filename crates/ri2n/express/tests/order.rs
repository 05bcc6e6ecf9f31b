//! Whatever happens to copies, and however a program writes and reads, the bytes that come out are those that went in.
//!
//! ```text
//!  messages ─▶ say ─┬─ ring, pair ─▶ collect ─▶ stream ─▶ pass ─▶ pair ─┬─▶ what came out
//!                   └─ copies: lost, doubled, shuffled ─────▶ deliver ──┘
//! ```

use std::{collections::VecDeque, io};

use proptest::prelude::*;
use ri2n_express::{Copy, DATAGRAM_MAX, Delivery, HEARD_FOR, MESSAGE_MAX, Map, Seen, Sent, Wrote, encode};

/// What a socket pair holds at most.
const PAIR_BYTES: usize = 3000;
const TOKEN: u64 = 0x7e57;

#[derive(Clone, Debug)]
enum Step {
    /// The program sends a message in a call that is seen.
    Say { length: usize, may_wait: bool },
    /// In a call that is not.
    Write { length: usize },
    /// Its broker looks, with room for a full ring and so much from the pair.
    Collect { most: usize },
    /// The other broker passes on up to so many bytes, and perhaps loses its processor before it can say so: meanwhile the
    /// program reads all of them, and what has been kept of copies.
    Pass { most: usize, is_interrupted: bool },
    /// A copy arrives, one of those under way: it stays there, and may come again. The reader looked just now, or before
    /// the last steps.
    Arrive { which: prop::sample::Index, room: usize, late: bool },
    /// One arrives while the reader waits for several descriptors: it is kept.
    Hold { which: prop::sample::Index },
    /// One gets lost.
    Lose { which: prop::sample::Index },
    /// The other program reads by the C library's call, perhaps one that is not seen.
    Read { most: usize, is_seen: bool },
    /// In one that is: first what was kept of a copy.
    Kept { room: usize },
    /// The other program looks at what was kept of a copy, and leaves it there.
    Peek { room: usize },
    /// The broker has had nothing for a while.
    Quiet,
}

fn steps() -> impl Strategy<Value = Step> {
    let which = any::<prop::sample::Index>;
    prop_oneof![
        6 => (1..=MESSAGE_MAX, any::<bool>()).prop_map(|(length, may_wait)| Step::Say { length, may_wait }),
        6 => (1..20_usize, any::<bool>()).prop_map(|(length, may_wait)| Step::Say { length, may_wait }),
        2 => (1..3 * MESSAGE_MAX).prop_map(|length| Step::Write { length }),
        4 => (1..3000_usize).prop_map(|most| Step::Collect { most }),
        3 => (1..3000_usize, any::<bool>()).prop_map(|(most, is_interrupted)| Step::Pass { most, is_interrupted }),
        8 => (which(), 1..1500_usize, any::<bool>()).prop_map(|(which, room, late)| Step::Arrive { which, room, late }),
        1 => which().prop_map(|which| Step::Lose { which }),
        3 => (1..3000_usize, prop::bool::weighted(0.9)).prop_map(|(most, is_seen)| Step::Read { most, is_seen }),
        3 => (1..1500_usize).prop_map(|room| Step::Kept { room }),
        1 => (1..1500_usize).prop_map(|room| Step::Peek { room }),
        6 => which().prop_map(|which| Step::Hold { which }),
        1 => Just(Step::Quiet),
    ]
}

struct World {
    here: Map,
    there: Map,
    sent: u64,
    near_pair: VecDeque<u8>,
    stream: VecDeque<u8>,
    /// Stream offset of the first byte that has not been passed on.
    passed: u64,
    far_pair: VecDeque<u8>,
    copies: Vec<Vec<u8>>,
    came: u64,
    by_copies: u64,
    looked: Option<Seen>,
}

/// The byte at an offset of the stream; neighbours, and bytes a ring apart, differ.
fn byte(offset: u64) -> u8 {
    (offset ^ (offset >> 8).wrapping_mul(167) ^ (offset >> 14).wrapping_mul(13)) as u8
}

impl World {
    fn new(begun: u64) -> Self {
        let (here, there) = (Map::create(0, TOKEN).unwrap().0, Map::create(TOKEN, 0).unwrap().0);
        here.up.begin(begun);
        there.down.begin(begun);
        Self {
            here,
            there,
            sent: begun,
            near_pair: VecDeque::new(),
            stream: VecDeque::new(),
            passed: begun,
            far_pair: VecDeque::new(),
            copies: Vec::new(),
            came: begun,
            by_copies: 0,
            looked: None,
        }
    }

    fn next(&self, length: usize) -> Vec<u8> {
        (self.sent..self.sent + length as u64).map(byte).collect()
    }

    fn take(&mut self, bytes: &[u8]) {
        for came in bytes {
            assert_eq!(*came, byte(self.came), "at {}", self.came);
            self.came += 1;
        }
    }

    fn step(&mut self, step: &Step) {
        match step {
            Step::Say { length, may_wait } => self.say(*length, *may_wait),
            Step::Write { length } => self.write(*length),
            Step::Collect { most } => self.collect(*most),
            Step::Pass { most, is_interrupted } => self.pass(*most, *is_interrupted),
            Step::Arrive { which, room, late } if !self.copies.is_empty() => {
                let seen = if *late { self.looked } else { self.look() };
                self.arrive(which.index(self.copies.len()), *room, seen);
            }
            Step::Lose { which } if !self.copies.is_empty() => {
                self.copies.swap_remove(which.index(self.copies.len()));
            }
            Step::Hold { which } if !self.copies.is_empty() => self.hold(which.index(self.copies.len())),
            Step::Arrive { .. } | Step::Hold { .. } | Step::Lose { .. } => {}
            Step::Read { most, is_seen } => {
                let count = self.far_pair.len().min(*most);
                let bytes: Vec<u8> = self.far_pair.drain(..count).collect();
                self.take(&bytes);
                if *is_seen {
                    self.there.down.begin_read();
                    self.there.down.end_read(count);
                }
            }
            Step::Kept { room } => self.read_kept(*room),
            Step::Peek { room } => {
                let mut into = Vec::with_capacity(*room);
                let is_empty = self.far_pair.is_empty();
                let kept = self.there.down.kept_next();
                let delivery = self.there.down.peek_kept(|| is_empty, &mut into);
                assert!(into.iter().zip(self.came..).all(|(came, at)| *came == byte(at)));
                let wanted = if is_empty { kept.min(*room) } else { 0 };
                assert_eq!(delivery, if wanted > 0 { Delivery::Bytes(wanted) } else { Delivery::No });
                assert_eq!((self.there.down.kept_next(), into.len()), (kept, wanted), "a look takes nothing");
            }
            Step::Quiet => {
                self.here.up.rest();
            }
        }
    }

    /// What is said to be readable is, unless the pair has something before it; what came before is not said to be.
    fn hold(&mut self, which: usize) {
        let datagram = self.copies[which].clone();
        let copy = Copy::decode(&datagram, TOKEN).unwrap();
        let kept_before = self.there.down.kept_next();
        let kept = self.there.down.hold(&copy);
        assert_eq!(kept, self.there.down.kept_next());
        assert!(kept >= kept_before, "what was readable still is");
        let position = self.came + self.far_pair.len() as u64;
        let end = copy.offset + copy.bytes.len() as u64;
        assert!(end > position || kept == kept_before, "an old copy changes nothing");
        assert!(copy.offset > position || end <= position || kept > 0, "the next one is kept");
        if kept > 0 && self.far_pair.is_empty() {
            let before = self.came;
            self.read_kept(kept);
            assert_eq!(self.came - before, kept as u64);
        }
    }

    fn read_kept(&mut self, room: usize) {
        let mut into = Vec::with_capacity(room);
        let is_empty = self.far_pair.is_empty();
        if let Delivery::Bytes(count) = self.there.down.deliver_kept(|| is_empty, &mut into) {
            assert_eq!(count, into.len());
            self.by_copies += count as u64;
            self.take(&into);
        }
    }

    fn say(&mut self, length: usize, may_wait: bool) {
        let bytes = self.next(length);
        let is_empty = self.near_pair.is_empty();
        let pair = &mut self.near_pair;
        let said = self.here.up.say(
            &bytes,
            || may_wait,
            || is_empty,
            || {
                pair.extend(&bytes);
                Wrote::Alone
            },
        );
        match said {
            Sent::Ring(offset) | Sent::Pair(offset) => {
                assert_eq!(offset, self.sent);
                let mut datagram = [0; DATAGRAM_MAX];
                let length = encode(&Copy { offset, listens: true, hears: true, bytes: &bytes }, TOKEN, &mut datagram);
                self.copies.push(datagram[..length].to_vec());
                self.sent += bytes.len() as u64;
            }
            Sent::Somewhere => unreachable!("nobody else writes"),
            Sent::No => self.write(length),
        }
    }

    fn write(&mut self, length: usize) {
        let bytes = self.next(length);
        let room = PAIR_BYTES.saturating_sub(self.near_pair.len()).min(length);
        self.near_pair.extend(&bytes[..room]);
        self.sent += room as u64;
    }

    fn collect(&mut self, most: usize) {
        let mut into = vec![0; 64 << 10];
        let pair = &mut self.near_pair;
        let read = |into: &mut [u8]| {
            let count = pair.len().min(most).min(into.len());
            pair.drain(..count).zip(into).for_each(|(from, to)| *to = from);
            if count == 0 { Err(io::ErrorKind::WouldBlock.into()) } else { Ok(count) }
        };
        let (count, _) = self.here.up.collect(&mut into, read).unwrap();
        self.stream.extend(&into[..count]);
    }

    fn pass(&mut self, most: usize, is_interrupted: bool) {
        let bytes: Vec<u8> = self.stream.iter().take(most).copied().collect();
        let Self { far_pair: pair, there, came, by_copies, .. } = self;
        let write = |bytes: &[u8]| {
            let count = PAIR_BYTES.saturating_sub(pair.len()).min(bytes.len());
            pair.extend(&bytes[..count]);
            if is_interrupted {
                let mut read: Vec<u8> = pair.drain(..).collect();
                there.down.begin_read();
                there.down.end_read(read.len());
                read.reserve(4 * MESSAGE_MAX);
                if let Delivery::Bytes(count) = there.down.deliver_kept(|| true, &mut read) {
                    *by_copies += count as u64;
                }
                assert!(read.iter().zip(*came..).all(|(came, at)| *came == byte(at)));
                *came += read.len() as u64;
            }
            if count == 0 { Err(io::ErrorKind::WouldBlock.into()) } else { Ok(count) }
        };
        let passed = there.down.pass(self.passed, &bytes, write).unwrap();
        self.stream.drain(..passed);
        self.passed += passed as u64;
    }

    /// The reader's look at the pair; what it notes when the pair is not empty is that it must not take copies.
    fn look(&mut self) -> Option<Seen> {
        let seen = self.there.down.look();
        self.looked = self.far_pair.is_empty().then_some(seen);
        self.looked
    }

    fn arrive(&mut self, which: usize, room: usize, seen: Option<Seen>) {
        let Some(seen) = seen else { return };
        let datagram = self.copies[which].clone();
        let copy = Copy::decode(&datagram, TOKEN).unwrap();
        let mut into = Vec::with_capacity(room);
        if let Delivery::Bytes(count) = self.there.down.deliver(&copy, seen, &mut into) {
            assert!(count == into.len() && count > 0);
            self.by_copies += count as u64;
            self.take(&into);
        }
    }

    /// Everything that is under way arrives by the stream alone; what is known already is left out.
    fn finish(&mut self) {
        while self.came < self.sent || self.passed < self.sent {
            let before = (self.came, self.passed, self.stream.len());
            self.collect(usize::MAX);
            self.pass(usize::MAX, false);
            self.step(&Step::Read { most: usize::MAX, is_seen: true });
            assert_ne!((self.came, self.passed, self.stream.len()), before, "nothing moves");
        }
        assert!(self.near_pair.is_empty() && self.stream.is_empty() && self.far_pair.is_empty());
    }
}

proptest! {
    #[test]
    fn what_goes_in_comes_out(begun in 0..100_000_u64, steps in prop::collection::vec(steps(), 1..400)) {
        let mut world = World::new(begun);
        for step in &steps {
            world.step(step);
        }
        world.finish();
        prop_assert_eq!(world.came, world.sent);
    }
}

#[test]
fn a_conversation_goes_by_copies() {
    let mut world = World::new(7);
    world.step(&Step::Write { length: 10 });
    world.step(&Step::Collect { most: 100 });
    world.step(&Step::Pass { most: 100, is_interrupted: false });
    world.step(&Step::Read { most: 100, is_seen: true });
    for _ in 0..100 {
        world.say(64, true);
        let seen = world.look();
        world.arrive(world.copies.len() - 1, 60, seen);
        world.step(&Step::Kept { room: 60 });
        world.collect(1);
    }
    assert_eq!((world.by_copies, world.came), (6400, world.sent));
    assert!(world.near_pair.is_empty(), "all of it waited in the ring for the broker");
}

/// A program that has read all that the broker's turn is for takes the next copy, though the turn has not ended.
#[test]
fn a_program_does_not_wait_for_a_turn_that_is_done() {
    let copy = |offset, bytes| Copy { offset, listens: true, hears: true, bytes };
    for (seen, wanted) in [(7, Delivery::Bytes(4)), (6, Delivery::No), (0, Delivery::No)] {
        let map = Map::create(0, TOKEN).unwrap().0;
        map.down.begin(5);
        // The first copy finds the pair empty: by then it is known how far the program is.
        let mut into = Vec::with_capacity(99);
        assert_eq!(map.down.deliver(&copy(5, b"hello"), map.down.look(), &mut into), Delivery::Bytes(5));
        let passed = map.down.pass(10, b"by pair", |bytes| {
            map.down.begin_read();
            map.down.end_read(seen);
            into.extend(bytes);
            assert_eq!(map.down.deliver(&copy(17, b"next"), map.down.look(), &mut into), wanted);
            Ok(bytes.len())
        });
        assert_eq!(passed.unwrap(), 7);
        if wanted == Delivery::No {
            assert_eq!(map.down.deliver_kept(|| true, &mut into), Delivery::Bytes(4));
        }
        assert_eq!(into, b"helloby pairnext");
        assert_eq!(map.down.pass(17, b"next", |_| unreachable!("it has come")).unwrap(), 4);
    }
}

#[test]
fn a_doubled_copy_is_no_news() {
    let map = Map::create(0, TOKEN).unwrap().0;
    let copy = |offset, bytes| Copy { offset, listens: true, hears: true, bytes };
    assert_eq!(map.down.hold(&copy(5, b"too soon")), 0, "the broker has not begun");
    map.down.begin(5);
    assert_eq!(map.down.hold(&copy(5, b"abc")), 8, "what was kept is the next now");
    let mut into = Vec::with_capacity(8);
    assert_eq!(map.down.deliver_kept(|| false, &mut into), Delivery::No, "the pair comes first");
    assert_eq!(map.down.deliver_kept(|| true, &mut into), Delivery::Bytes(8));
    assert_eq!((into.as_slice(), map.down.has_kept()), (b"too soon".as_slice(), false));
    assert_eq!(map.down.hold(&copy(5, b"too soon")), 0);
    // Of one that is known in part, the rest is news, and messages that follow each other are kept together.
    assert_eq!(map.down.hold(&copy(10, b"xyzw")), 1);
    assert_eq!(map.down.hold(&copy(14, b"and more")), 9);
    assert_eq!(map.down.hold(&copy(23, b"not this: 22 is missing")), 9);
    let mut into = Vec::with_capacity(99);
    assert_eq!(map.down.deliver_kept(|| true, &mut into), Delivery::Bytes(9));
    assert_eq!(into, b"wand more");
}

#[test]
fn nothing_is_taken_when_the_pair_has_ended() {
    let map = Map::create(0, 0).unwrap().0;
    map.up.begin(0);
    let (count, goes_on) = map.up.collect(&mut vec![0; 64 << 10], |_| Ok(0)).unwrap();
    assert_eq!((count, goes_on), (0, false));
    assert_eq!(map.up.say(b"late", || true, || true, || Wrote::Alone), Sent::No);
}

#[test]
fn one_relies_on_copies_only_where_they_go_both_ways() {
    let talk = &Map::create(0, 0).unwrap().0.talk;
    let copy = |listens, hears| Copy { offset: 0, listens, hears, bytes: b"x" };
    let late_ns = 1_000_000_000 + HEARD_FOR.as_nanos() as u64;
    assert!(!talk.hears(1_000_000_000), "nothing has come");
    for (listens, hears) in [(false, false), (false, true), (true, false), (true, true)] {
        talk.hear(&copy(listens, hears), 1_000_000_000);
        assert!(talk.hears(1_000_000_001) && !talk.hears(late_ns));
        assert_eq!(talk.is_heard(1_000_000_001), listens && hears);
        assert!(!talk.is_heard(late_ns));
    }
    talk.stop_relying();
    assert!(talk.hears(1_000_000_001) && !talk.is_heard(1_000_000_001), "not before the peer has told again");
    let worth = (0..6400).filter(|_| talk.is_worth_a_copy()).count();
    assert_eq!(worth, 64 + 99, "into silence, ever fewer");
}
