//! Which port of a failover bond sends, from the frames that switches count at its ports.
//!
//! ```text
//!   polls      │    │    │    │    │    │
//!   eth0, active ▮    ▮    ▯    ▯    ▯        ▮ frames came between two polls, ▯ none did
//!   eth1         ▯    ▯    ▮    ▮    ▮
//!                                  └ the bond sends from eth1: frames came twice after eth0's last, and eth0 is silent
//! ```
//! An active-backup bond sends unicast and broadcast frames from its active port alone. Frames that came at another port after the last
//! ones of the active port tell that the bond has left it, if
//!
//! - frames came in two windows between polls, or a broadcast was among them: a bond announces itself at its new port by a gratuitous
//!   ARP, and may send nothing more until it is spoken to; and
//! - the active port is silent: no frame has come for twice as long as the longest pause that it made of late, for two polls and for
//!   [`SILENCE_MIN`].
//!
//! So a single frame that is no broadcast turns nothing, and neither does a frame at another port while the active one sends. Where the
//! active port has not been seen to send twice, and where it pauses for long, [`SILENCE_MAX`] is enough. A switch that brings its counters
//! up to date seldom shows pauses of that length. A port to which entries lead only because it came up, and which has not sent since, is
//! presumed and no more: there two polls are enough. A bond that takes it announces itself there; one that does not within
//! [`ANNOUNCED_MAX`] has stayed where it was, as bonds without a primary port do. Bonds with IPv6 alone announce themselves by multicast,
//! which is not counted, so that is not held against them.
//!
//! A bond that watches by ARP, and gets no answer at any port, sends requests from all its ports in turn, as broadcasts, and no other frame.
//! An answer comes to the port that entries lead to, so entries search as well: they turn when the other port has sent twice more.
//!
//! ```text
//!   eth0, active ▮       ▮       ▮            ▮ requests alone: the bond has no port in use
//!   eth1             ▮       ▮       ▮
//!                               └ entries turn to eth1: an answer to the next request makes it the bond's port, if its path works
//! ```
//!
//! Switches are polled one after the other: frames of a window are later than those of another only if it begins when the other has ended.
//! Multicast frames are not counted, as LLDP comes from every port.
//!
//! Source: Linux, Documentation/networking/bonding.rst (active-backup, num_grat_arp, arp_interval); RFC 2863 (ifHCInUcastPkts,
//! ifHCInBroadcastPkts).

use std::time::Duration;

use switch_model::observe::{Count, Received, has_restarted};

/// How long a port is silent at least before another one counts as the one that sends.
pub const SILENCE_MIN: Duration = Duration::from_millis(100);
/// How long it need not be silent for longer: no switch takes longer to bring its counters up to date.
pub const SILENCE_MAX: Duration = Duration::from_secs(10);
/// How long caution has it be silent at most.
pub const CAUTIOUS_SILENCE_MAX: Duration = Duration::from_secs(60);
/// How long after a port has come up a bond announces itself there, if it takes it.
pub const ANNOUNCED_MAX: Duration = Duration::from_secs(1);
/// How often entries search at once, and for how many cycles of requests they stay at most at a port that gets no answer after that.
const QUICK_SEARCHES: u32 = 3;
/// See [`QUICK_SEARCHES`].
const SEARCH_CYCLES_MAX: u32 = 8;

/// What a switch has counted at a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reading {
    /// When it was read, by the clock of whoever polls.
    pub at: Duration,
    /// sysUpTime of the switch, in hundredths of a second.
    pub up_cs: u32,
    /// Frames that have come.
    pub received: Received,
}

/// The time between two readings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Window {
    from: Duration,
    to: Duration,
}

/// When frames came at a port.
#[derive(Clone, Debug, Default)]
pub(super) struct PortTraffic {
    last: Option<Reading>,
    /// Since when readings continue each other.
    begun: Duration,
    /// The newest window, whether frames came in it or not.
    newest: Option<Window>,
    /// The newest two windows in which frames came, the newest first.
    busy: [Option<Window>; 2],
    /// The newest window in which a broadcast came, and that in which another frame did.
    broadcast: Option<Window>,
    unicast: Option<Window>,
    /// The longest time without frames between two windows with some, halved with each window with some since.
    pause: Option<Duration>,
}

impl PortTraffic {
    /// Takes a reading. One that does not continue the last, as after a restart of the switch, begins anew.
    pub(super) fn handle_reading(&mut self, reading: Reading) {
        let last = self.last.replace(reading).filter(|last| !has_restarted(last.up_cs, reading.up_cs));
        let arrivals = last.and_then(|last| Some((last.at, reading.received.since(last.received)?)));
        let Some((from, arrivals)) = arrivals else {
            self.begun = reading.at;
            return;
        };
        let window = Window { from, to: reading.at };
        self.newest = Some(window);
        if arrivals.broadcast > 0 {
            self.broadcast = Some(window);
        }
        if arrivals.unicast > 0 {
            self.unicast = Some(window);
        }
        if arrivals.unicast + arrivals.broadcast > 0 {
            if let Some(before) = self.busy[0] {
                let pause = window.from.saturating_sub(before.to);
                self.pause = Some(self.pause.map_or(pause, |known| pause.max(known / 2)));
            }
            self.busy = [Some(window), self.busy[0]];
        }
    }

    fn two_polls(&self) -> Duration {
        self.newest.map_or(Duration::ZERO, |window| (window.to - window.from) * 2)
    }

    /// For how long no frame comes before the port counts as silent.
    fn silence(&self) -> Duration {
        let usual = self.pause.map_or(SILENCE_MAX, |pause| (pause * 2).min(SILENCE_MAX));
        self.two_polls().max(usual).max(SILENCE_MIN)
    }

    /// Since when no frame has come for all that is known; never before `since`.
    fn quiet_from(&self, since: Duration) -> Duration {
        self.busy[0].map_or(since, |window| window.to.max(since)).max(self.begun)
    }

    /// Whether no frame has come since the port came up, as the poll that ended at `since` showed.
    fn is_unseen(&self, since: Duration) -> bool {
        let poll = self.newest.map_or(Duration::ZERO, |window| window.to - window.from);
        self.busy[0].is_none_or(|window| window.to + poll <= since)
    }

    /// Whether a frame that is no broadcast has come since then.
    pub(super) fn has_spoken(&self, since: Duration) -> bool {
        self.unicast.is_some_and(|window| window.from >= since)
    }

    /// Whether what came in a window came before this port's last frames for certain.
    fn sent_after(&self, window: Window) -> bool {
        // Counters that are behind show frames late, by a pause at most.
        let late = self.pause.unwrap_or_default();
        self.busy[0].is_some_and(|own| own.from >= window.to + late)
    }
}

/// How a bond came to its active port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stay {
    /// When.
    pub(super) since: Duration,
    /// Whether the port's state alone says so: it came up, or another one went down.
    pub(super) is_presumed: bool,
    /// How many times as long as usual the port must be silent, up to [`CAUTIOUS_SILENCE_MAX`].
    pub(super) caution: u32,
    /// How often entries have searched for the bond since it last sent anything but requests.
    pub(super) searches: u32,
}

impl Stay {
    /// For how many cycles of requests entries stay at a port: one at first, then twice as many each time, up to [`SEARCH_CYCLES_MAX`].
    fn search_cycles(self) -> u32 {
        1_u32
            .checked_shl(self.searches.saturating_sub(QUICK_SEARCHES))
            .unwrap_or(SEARCH_CYCLES_MAX)
            .min(SEARCH_CYCLES_MAX)
    }
}

/// The end of the first window in which a bond was at another port, if frames show that it has left the active one for that; none if
/// nothing does. Only frames since the bond came to its active port count.
pub(super) fn left_for(active: &PortTraffic, other: &PortTraffic, stay: Stay) -> Option<Duration> {
    let Stay { since, is_presumed, caution, .. } = stay;
    let seen = active.newest?.to;
    let quiet = active.quiet_from(since);
    let is_unseen = is_presumed && active.is_unseen(since);
    let twice = match other.busy {
        [Some(_), Some(first)] if first.from >= quiet => Some((first, quiet)),
        _ => None,
    };
    let announced = other.broadcast.filter(|window| window.from >= since && !active.sent_after(*window));
    let announced = announced.map(|window| (window, quiet.max(window.to)));
    let usual = active.silence();
    let silence = |usual: Duration| usual.max((usual * caution).min(CAUTIOUS_SILENCE_MAX));
    let of_twice = silence(if is_unseen { active.two_polls().max(SILENCE_MIN) } else { usual });
    let is_told =
        |(window, quiet, silence): (Window, Duration, Duration)| (seen >= quiet + silence).then_some(window.to);
    let twice = twice.map(|(window, quiet)| (window, quiet, of_twice));
    let announced = announced.map(|(window, quiet)| (window, quiet, silence(usual)));
    [twice, announced].into_iter().flatten().find_map(is_told)
}

/// When it shows that a bond has not come to its port, which came up: nothing was heard of it there, though its switch was read before
/// and counts broadcasts.
pub(super) fn never_came_at(active: &PortTraffic, stay: Stay) -> Option<Duration> {
    let (newest, counted) = (active.newest?, active.last?.received.broadcast != Count::Absent);
    let was_read = active.begun + (newest.to - newest.from) <= stay.since;
    let patience = active.silence().max(ANNOUNCED_MAX) * stay.caution;
    let is_over = newest.to >= stay.since + patience.min(CAUTIOUS_SILENCE_MAX);
    (counted && was_read && is_over && active.is_unseen(stay.since)).then_some(newest.to)
}

/// When the entries of a bond that sends requests from its ports in turn, and nothing else, are to turn to another port: when that has
/// sent twice since they turned last, or after more such cycles where that has led to nothing before.
pub(super) fn searches_at(active: &PortTraffic, other: &PortTraffic, stay: Stay) -> Option<Duration> {
    let [Some(newest), Some(first)] = other.busy else { return None };
    let ports = [active, other];
    let spoke = ports.iter().filter_map(|port| port.unicast).map(|window| window.to).max().unwrap_or_default();
    let begun = ports.iter().map(|port| port.begun).max().unwrap_or_default();
    let alone = stay.since.max(spoke).max(begun);
    let in_turn = active.busy[0].is_some_and(|own| own.from >= first.from);
    let cycles = (newest.to - first.from) * stay.search_cycles();
    let seen = active.newest?.to.max(newest.to);
    (first.from >= alone && in_turn && seen >= alone + cycles).then_some(seen)
}

#[cfg(test)]
mod tests {
    use super::*;
    use fabric::rng::Rng;

    const POLL_MS: u64 = 50;

    /// A port of a switch that counts.
    #[derive(Default)]
    struct Port {
        received: [u64; 2],
        traffic: PortTraffic,
    }

    impl Port {
        fn poll(&mut self, at_ms: u64) {
            let [unicast, broadcast] = self.received.map(Count::Wide);
            let received = Received { unicast, broadcast };
            self.traffic.handle_reading(Reading { at: ms(at_ms), up_cs: at_ms as u32 / 10, received });
        }
    }

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    /// When the bond has left its first port, polled every 50 ms; `sent(at_ms)` are unicast and broadcast frames that come at both ports
    /// before that poll.
    fn left_at(until_ms: u64, sent: impl Fn(u64) -> [[u64; 2]; 2]) -> Option<u64> {
        let mut ports = [Port::default(), Port::default()];
        (0..until_ms / POLL_MS).map(|poll| poll * POLL_MS).find(|at_ms| {
            for (port, sent) in ports.iter_mut().zip(sent(*at_ms)) {
                port.received[0] += sent[0];
                port.received[1] += sent[1];
                port.poll(*at_ms);
            }
            left_for(&ports[0].traffic, &ports[1].traffic, START).is_some()
        })
    }

    const NONE: [u64; 2] = [0, 0];
    const START: Stay = Stay { since: Duration::ZERO, is_presumed: false, caution: 1, searches: 0 };

    #[test]
    fn a_bond_that_sends_from_another_port_has_left_the_active_one() {
        let moves = |at_ms| if at_ms < 1000 { [[5, 0], NONE] } else { [NONE, [5, 0]] };
        assert_eq!(left_at(5000, moves), Some(1050));
    }

    #[test]
    fn an_announcement_is_enough_once_the_active_port_is_silent() {
        let moves = |at_ms| match at_ms {
            0..1000 => [[5, 0], NONE],
            1000 => [NONE, [0, 1]],
            _ => [NONE, NONE],
        };
        assert_eq!(left_at(5000, moves), Some(1100));
        let within_one_poll = |at_ms| match at_ms {
            0..1000 => [[5, 0], NONE],
            1000 => [[2, 0], [0, 1]],
            _ => [NONE, NONE],
        };
        assert_eq!(left_at(5000, within_one_poll), Some(1100));
        let idle_before = |at_ms| [NONE, if at_ms == 1000 { [0, 1] } else { NONE }];
        assert_eq!(left_at(20_000, idle_before), Some(11_000));
    }

    #[test]
    fn a_stray_frame_turns_nothing() {
        let idle = |at_ms| [NONE, if at_ms == 1000 { [1, 0] } else { NONE }];
        assert_eq!(left_at(60_000, idle), None);
        let busy = |at_ms| [[5, 0], if at_ms % 1000 == 0 { [3, 1] } else { NONE }];
        assert_eq!(left_at(60_000, busy), None);
        // A frame every 700 ms, or a switch that brings its counters up to date so often.
        let seldom = |at_ms| [[u64::from(at_ms % 700 == 0), 0], if at_ms % 5000 == 0 { [0, 1] } else { NONE }];
        assert_eq!(left_at(60_000, |at_ms| if at_ms < 2000 { [seldom(at_ms)[0], NONE] } else { seldom(at_ms) }), None);
    }

    #[test]
    fn a_bond_that_sends_from_both_ports_stays() {
        assert_eq!(left_at(60_000, |_| [[5, 0], [5, 1]]), None);
        assert_eq!(left_at(60_000, |_| [NONE, NONE]), None);
    }

    #[test]
    fn ports_that_are_not_counted_say_nothing() {
        let (mut active, mut other) = (PortTraffic::default(), PortTraffic::default());
        for at_ms in (0..30_000).step_by(50) {
            let counted = Received { unicast: Count::Wide(at_ms), broadcast: Count::Absent };
            let of = |received| Reading { at: ms(at_ms), up_cs: 0, received };
            active.handle_reading(of(Received::default()));
            other.handle_reading(of(counted));
            assert_eq!(left_for(&active, &other, START), None);
            assert_eq!(left_for(&other, &active, START), None);
        }
    }

    /// How a bond sends, and how it is polled.
    #[derive(Debug)]
    struct Life {
        polls_ms: [u64; 2],
        /// How old counters are at most.
        stale_ms: [u64; 2],
        every_ms: u64,
        restarts: bool,
    }

    /// Frames of a bond come at its ports at any time, counted early or late and polled now and then; stray ones come before it moves.
    #[test]
    fn entries_follow_the_port_that_sends_and_no_other() {
        for seed in 0..2_000 {
            let mut rng = Rng::new(seed);
            let poll_ms = [20, 50, 500][rng.below(3)];
            let life = Life {
                polls_ms: [0, 1].map(|_| poll_ms + rng.below(poll_ms as usize / 2) as u64),
                stale_ms: [0, 1].map(|_| [1, 100, 1000, 5000][rng.below(4)]),
                every_ms: [5, 90, 700, 3000][rng.below(4)],
                restarts: rng.below(3) == 0,
            };
            let moves_ms = 20_000 + rng.below(20_000) as u64;
            let strays: Vec<u64> = (0..rng.below(4)).map(|_| rng.below(moves_ms as usize) as u64).collect();
            let at = format!("seed {seed}: moves at {moves_ms} ms, strays {strays:?}, {life:?}");
            live(&mut rng, &life, moves_ms, &strays, &at);
        }
    }

    /// Lives through a move from the first port to the second.
    fn live(rng: &mut Rng, life: &Life, moves_ms: u64, strays: &[u64], at: &str) {
        let (mut ports, mut shown) = ([Port::default(), Port::default()], [[0; 2]; 2]);
        // The first frames are as far apart as any: what is known of pauses is known by then.
        let settled_ms = 4 * (life.every_ms + life.stale_ms[0]) + 2 * life.polls_ms[0];
        let (mut counted, mut due_ms, mut booted_ms) = ([[0_u64; 2]; 2], life.polls_ms, [0; 2]);
        let deadline_ms = moves_ms + 2 * SILENCE_MAX.as_millis() as u64 + 6 * life.polls_ms.iter().max().unwrap();
        for now_ms in 0..deadline_ms + 20_000 {
            let in_use = usize::from(now_ms >= moves_ms);
            counted[in_use][0] += u64::from(now_ms % life.every_ms == 0);
            counted[in_use][1] += u64::from(now_ms == moves_ms);
            if now_ms > settled_ms && strays.contains(&now_ms) {
                counted[1][rng.below(2)] += 1;
            }
            for port in 0..2 {
                if now_ms % life.stale_ms[port] == 0 {
                    shown[port] = counted[port];
                }
                if life.restarts && now_ms == moves_ms / 2 + port as u64 {
                    (counted[port], shown[port], booted_ms[port]) = (NONE, NONE, now_ms);
                }
                if now_ms < due_ms[port] {
                    continue;
                }
                due_ms[port] += life.polls_ms[port];
                let [unicast, broadcast] = shown[port].map(Count::Wide);
                let up_cs = ((now_ms - booted_ms[port]) / 10) as u32;
                let received = Received { unicast, broadcast };
                ports[port].traffic.handle_reading(Reading { at: ms(now_ms), up_cs, received });
            }
            if left_for(&ports[0].traffic, &ports[1].traffic, START).is_some() {
                assert!(now_ms >= moves_ms, "{at}: left at {now_ms} ms, before it moved");
                assert!(now_ms <= deadline_ms, "{at}: seen at {now_ms} ms");
                return;
            }
        }
        panic!("{at}: never seen");
    }
}
