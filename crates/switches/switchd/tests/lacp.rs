//! LAGs in virtual time: over cables that lose, delay and go down, both ends agree on the members in use, and a member whose
//! cable leads elsewhere is never in use.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BinaryHeap},
};

use fabric::{Mac, rng::Rng};
use proptest::prelude::*;
use switchd::lacp::{FAST_PERIODIC_MS, Lacpdu, Lag, Link, PortState, SHORT_TIMEOUT_MS, TRANSMIT_MAX};

/// A member: the position of its LAG, and its own in that.
type At = (usize, usize);

/// A message on its way: due, number, to whom, octets.
type Letter = (u64, u64, At, Vec<u8>);

/// LAGs, cables between their members, and messages on their way.
struct Net {
    lags: Vec<Lag>,
    /// The other end of a member's cable.
    far: BTreeMap<At, At>,
    down: BTreeMap<At, bool>,
    mail: BinaryHeap<Reverse<Letter>>,
    sent: BTreeMap<At, Vec<u64>>,
    letters: u64,
    now_ms: u64,
    rng: Rng,
    /// Of a hundred messages.
    lost: usize,
}

/// Longest time that a message takes.
const DELAY_MS_MAX: usize = 20;
const TICK_MS: u64 = 50;
/// What two ends need to agree where nothing is lost: each speaks at most [`TRANSMIT_MAX`] times a second, and what is told
/// last goes with the next periodic message.
const AGREE_MS: u64 = 3 * FAST_PERIODIC_MS;

impl Net {
    /// LAGs of so many members, each as a system and a key, and cables.
    fn new(lags: &[(u8, u16, usize)], cables: &[(At, At)], seed: u64) -> Self {
        let lag = |&(system, key, members): &(u8, u16, usize)| {
            Lag::new(Mac::local(u32::from(system)), key, &(1..=members as u16).collect::<Vec<_>>())
        };
        let mut net = Self {
            lags: lags.iter().map(lag).collect(),
            far: cables.iter().flat_map(|&(a, b)| [(a, b), (b, a)]).collect(),
            down: BTreeMap::new(),
            mail: BinaryHeap::new(),
            sent: BTreeMap::new(),
            letters: 0,
            now_ms: 0,
            rng: Rng::new(seed),
            lost: 0,
        };
        let ends: Vec<At> = net.far.keys().copied().collect();
        ends.into_iter().for_each(|at| net.lags[at.0].handle_link(0, at.1, Link::Up));
        net
    }

    /// Lets time pass.
    fn run(&mut self, span_ms: u64) {
        let end_ms = self.now_ms + span_ms;
        while self.now_ms < end_ms {
            while self.mail.peek().is_some_and(|Reverse((due, ..))| *due <= self.now_ms) {
                let Some(Reverse((_, _, (lag, member), octets))) = self.mail.pop() else { break };
                let pdu = Lacpdu::decode(&octets).expect("a speaker's own words");
                self.lags[lag].handle_pdu(self.now_ms, member, &pdu);
                self.speak(lag);
            }
            if self.now_ms % TICK_MS == 0 {
                (0..self.lags.len()).for_each(|lag| self.speak(lag));
            }
            self.check();
            self.now_ms += 1;
        }
    }

    fn speak(&mut self, lag: usize) {
        for (member, pdu) in self.lags[lag].poll(self.now_ms) {
            let at = (lag, member);
            self.sent.entry(at).or_default().push(self.now_ms);
            let Some(far) = self.far.get(&at).copied() else { continue };
            let lost = self.rng.below(100) < self.lost || self.down.contains_key(&at) || self.down.contains_key(&far);
            if !lost {
                let due = self.now_ms + 1 + self.rng.below(DELAY_MS_MAX) as u64;
                self.letters += 1;
                self.mail.push(Reverse((due, self.letters, far, pdu.encode())));
            }
        }
    }

    /// What holds at every moment: the members that are in use of one LAG all lead to one LAG.
    fn check(&self) {
        for (number, lag) in self.lags.iter().enumerate() {
            let members = self.far.range((number, 0)..(number + 1, 0));
            let leads: Vec<usize> = members.filter(|(at, _)| lag.is_active(at.1)).map(|(_, (far, _))| *far).collect();
            assert!(
                leads.windows(2).all(|pair| pair[0] == pair[1]),
                "{} ms: LAG {number} leads to {leads:?}",
                self.now_ms
            );
        }
    }

    /// A cable goes down at both ends, or comes back.
    fn set_link(&mut self, at: At, link: Link) {
        for end in [at, self.far[&at]] {
            match link {
                Link::Down => drop(self.down.insert(end, true)),
                Link::Up => drop(self.down.remove(&end)),
            }
            self.lags[end.0].handle_link(self.now_ms, end.1, link);
        }
        // What was on its way is lost.
        let far = self.far[&at];
        if link == Link::Down {
            self.mail = self.mail.drain().filter(|Reverse((.., to, _))| *to != at && *to != far).collect();
        }
    }

    fn active(&self, lag: usize) -> Vec<usize> {
        let members = self.far.range((lag, 0)..(lag + 1, 0)).map(|((_, member), _)| *member);
        members.filter(|member| self.lags[lag].is_active(*member)).collect()
    }
}

/// Two LAGs, each member of one cabled to some member of the other.
fn pair(members: usize, seed: u64) -> Net {
    let mut far: Vec<usize> = (0..members).collect();
    Rng::new(seed).shuffle(&mut far);
    let cables: Vec<(At, At)> = (0..members).map(|member| ((0, member), (1, far[member]))).collect();
    Net::new(&[(1, 1, members), (2, 7, members)], &cables, seed)
}

#[test]
fn two_ends_are_in_use_within_three_seconds() {
    let mut net = pair(4, 1);
    net.run(AGREE_MS);
    assert_eq!((net.active(0), net.active(1)), (vec![0, 1, 2, 3], vec![0, 1, 2, 3]));
    // At rest each member speaks once a second.
    let before: BTreeMap<At, usize> = net.sent.iter().map(|(at, sent)| (*at, sent.len())).collect();
    net.run(10 * FAST_PERIODIC_MS);
    for (at, sent) in &net.sent {
        assert!((9..=10).contains(&(sent.len() - before[at])), "{at:?}: {sent:?}");
    }
}

#[test]
fn a_lost_carrier_takes_a_member_out_at_once() {
    let mut net = pair(3, 2);
    net.run(AGREE_MS);
    net.set_link((0, 1), Link::Down);
    let far = net.far[&(0, 1)].1;
    assert_eq!(net.active(0), [0, 2]);
    assert!(!net.active(1).contains(&far) && net.active(1).len() == 2);
    net.run(10_000);
    assert_eq!(net.active(0), [0, 2]);
    net.set_link((0, 1), Link::Up);
    net.run(AGREE_MS);
    assert_eq!((net.active(0).len(), net.active(1).len()), (3, 3));
}

#[test]
fn a_silent_partner_is_left_within_the_short_timeout() {
    let mut net = pair(2, 3);
    net.run(5000);
    // The cable carries, and one direction loses everything.
    let (cut, far) = ((0, 0), net.far[&(0, 0)]);
    let others = net.far.remove(&far).expect("cabled");
    let since = net.now_ms;
    while net.lags[0].is_active(cut.1) {
        net.run(1);
        assert!(net.now_ms - since <= SHORT_TIMEOUT_MS + TICK_MS, "still in use after {} ms", net.now_ms - since);
    }
    // The other end is told, and leaves as well.
    net.run(u64::from(DELAY_MS_MAX as u32) + FAST_PERIODIC_MS);
    net.far.insert(far, others);
    assert!(!net.lags[1].is_active(far.1));
    // Later nobody is known there.
    net.far.remove(&far);
    net.run(SHORT_TIMEOUT_MS + TICK_MS);
    assert!(net.lags[0].state(cut.1).has(PortState::DEFAULTED));
    assert_eq!(net.lags[0].partner_state(cut.1), PortState::default());
    net.far.insert(far, others);
    net.run(AGREE_MS);
    assert_eq!((net.active(0).len(), net.active(1).len()), (2, 2));
}

#[test]
fn a_cable_to_another_system_or_key_is_never_in_use() {
    // Member 2 of LAG 0 leads to another system; of LAG 2, member 2 to another key of the same system; LAG 4 to itself.
    let cables =
        [((0, 0), (1, 0)), ((0, 1), (1, 1)), ((0, 2), (2, 2)), ((2, 0), (3, 0)), ((2, 1), (3, 1)), ((4, 0), (4, 1))];
    for seed in 0..20 {
        let lags = [(1, 1, 3), (2, 1, 2), (3, 1, 3), (2, 9, 2), (4, 1, 2)];
        let mut net = Net::new(&lags, &cables, seed);
        net.lost = 30;
        net.run(20_000);
        net.lost = 0;
        net.run(AGREE_MS + 2 * SHORT_TIMEOUT_MS);
        assert_eq!([net.active(0), net.active(1)], [[0, 1], [0, 1]], "seed {seed}");
        assert_eq!([net.active(2), net.active(3)], [[0, 1], [0, 1]], "seed {seed}");
        assert_eq!(net.active(4), [] as [usize; 0], "seed {seed}: a loop");
    }
}

#[test]
fn a_partner_that_speaks_seldom_is_answered_seldom() {
    let mut lag = Lag::new(Mac::local(1), 1, &[1]);
    lag.handle_link(0, 0, Link::Up);
    let (_, mut said) = lag.poll(0).remove(0);
    std::mem::swap(&mut said.actor, &mut said.partner);
    said.actor.system = Mac::local(2);
    said.actor.state = PortState::ACTIVE.with(PortState::AGGREGATION);
    let mut sent = 0;
    for now_ms in (0..60_000).step_by(TICK_MS as usize) {
        if now_ms % 1000 == 0 {
            said.partner.state = lag.state(0);
            lag.handle_pdu(now_ms, 0, &said);
        }
        sent += lag.poll(now_ms).len();
    }
    assert!((2..=4).contains(&sent), "{sent} messages in a minute");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn both_ends_agree_whatever_was_lost(
        seed: u64,
        members in 1_usize..5,
        lost in 0_usize..60,
        events in prop::collection::vec((0_usize..4, 0_u64..4000), 0..8),
    ) {
        let mut net = pair(members, seed);
        net.lost = lost;
        for (member, span_ms) in events {
            net.run(span_ms);
            let at = (0, member % members);
            let link = if net.down.contains_key(&at) { Link::Up } else { Link::Down };
            net.set_link(at, link);
        }
        net.run(1000);
        // Once nothing is lost any more, what carries is in use at both ends, and nothing else.
        net.lost = 0;
        net.run(AGREE_MS);
        let near: Vec<usize> = (0..members).filter(|member| !net.down.contains_key(&(0, *member))).collect();
        let mut far: Vec<usize> = near.iter().map(|member| net.far[&(0, *member)].1).collect();
        far.sort_unstable();
        prop_assert_eq!(net.active(0), near);
        prop_assert_eq!(net.active(1), far);
        // Nobody speaks more often than is allowed.
        for sent in net.sent.values() {
            let apart = |burst: &[u64]| burst[TRANSMIT_MAX] - burst[0] >= FAST_PERIODIC_MS;
            prop_assert!(sent.windows(TRANSMIT_MAX + 1).all(apart), "{:?}", sent);
        }
    }

    #[test]
    fn any_words_of_a_partner_are_taken(seed: u64, octets in prop::collection::vec(any::<u8>(), 46)) {
        let mut lag = Lag::new(Mac::local(1), 1, &[1, 2]);
        lag.handle_link(0, 0, Link::Up);
        let whole = lag.poll(0).remove(0).1.encode();
        let mut rng = Rng::new(seed);
        for now_ms in 0..200 {
            let mut said = whole.clone();
            for _ in 0..rng.below(8) {
                said[2 + rng.below(44)] = octets[rng.below(46)];
            }
            if let Ok(pdu) = Lacpdu::decode(&said) {
                lag.handle_pdu(50 * now_ms, rng.below(2), &pdu);
            }
            lag.poll(50 * now_ms);
            prop_assert!(!lag.is_active(1), "its link is down");
        }
    }
}
