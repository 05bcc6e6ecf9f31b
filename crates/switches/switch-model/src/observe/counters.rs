//! What has passed a switch's ports between two readings of its counters.
//!
//! ```text
//!   sysUpTime   1200 ────────────── 1700      5 s by the switch's own clock
//!   ifHCInOctets  10 ──────────────  90       80 octets, unless ifCounterDiscontinuityTime moved: then nobody knows
//! ```
//! Counters that are only 32 bits wide may have wrapped once; one that is not there says nothing. After a restart, or
//! where a counter was set back, there is no difference to speak of until the next pair of readings.
//! Source: RFC 2863, 3.1.6 (64 bits) and ifCounterDiscontinuityTime; RFC 3635 (dot3InPauseFrames).

/// Counters of a switch at one moment.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Snapshot {
    /// sysUpTime in hundredths of a second.
    pub up_cs: u32,
    /// `ports[port]`, in the order in which they were asked for; none for a port that has no counters.
    pub ports: Vec<Option<PortCounts>>,
}

/// Counters of a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct PortCounts {
    /// Whether the cable carries.
    pub running: bool,
    /// Capacity in bits per second; 0 if unknown.
    pub speed_bps: u64,
    /// sysUpTime at which a counter last lost its continuity.
    pub discontinuity_cs: u32,
    /// Octets received and sent.
    pub octets: [Count; 2],
    /// Bad frames received, and frames that could not be sent.
    pub errors: [Count; 2],
    /// Good frames that were dropped, received and to be sent.
    pub discards: [Count; 2],
    /// PAUSE frames received and sent.
    pub pause: [Count; 2],
}

/// One counter's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Count {
    /// There is no such counter.
    #[default]
    Absent,
    /// Of 32 bits.
    Narrow(u32),
    /// Of 64 bits.
    Wide(u64),
}

impl Count {
    /// How much more there is than before. A counter that has become another kind says nothing.
    pub fn since(self, before: Self) -> Option<u64> {
        match (before, self) {
            (Self::Narrow(before), Self::Narrow(now)) => Some(u64::from(now.wrapping_sub(before))),
            // Nothing wraps 64 bits: less than before is a counter that was set back without a word.
            (Self::Wide(before), Self::Wide(now)) => now.checked_sub(before),
            _ => None,
        }
    }
}

/// What has passed a port. Pairs are received, sent; none is unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flow {
    /// Over how long, in milliseconds of the switch's clock.
    pub elapsed_ms: u64,
    /// Whether the cable carries now.
    pub running: bool,
    /// Capacity in bits per second; 0 if unknown.
    pub speed_bps: u64,
    /// Bits per second.
    pub rate_bps: [Option<u64>; 2],
    /// Bad frames.
    pub errors: [Option<u64>; 2],
    /// Frames dropped.
    pub discards: [Option<u64>; 2],
    /// PAUSE frames.
    pub pause: [Option<u64>; 2],
}

/// How close to its end sysUpTime must have been to have begun anew by itself, in hundredths of a second: a day.
const WRAP_CS: u32 = 8_640_000;

/// Frames that a port has received since the switch began to count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Received {
    /// To one address.
    pub unicast: Count,
    /// To all.
    pub broadcast: Count,
}

/// Frames that a port has received between two readings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Arrivals {
    /// To one address.
    pub unicast: u64,
    /// To all; 0 where the switch does not count them.
    pub broadcast: u64,
}

impl Received {
    /// What has come since an earlier reading of a switch that has not restarted in between; none if unicast frames are not counted or
    /// a counter was set back.
    pub fn since(self, before: Self) -> Option<Arrivals> {
        let more = |before: Count, now: Count| match (before, now) {
            // No port receives half the range between two readings: that is a counter that was set back.
            (Count::Narrow(_), Count::Narrow(_)) => now.since(before).filter(|more| *more < 1 << 31),
            _ => now.since(before),
        };
        let broadcast = match (before.broadcast, self.broadcast) {
            (Count::Absent, Count::Absent) => 0,
            (before, now) => more(before, now)?,
        };
        Some(Arrivals { unicast: more(before.unicast, self.unicast)?, broadcast })
    }
}

/// Whether a switch has restarted between two values of its sysUpTime, in hundredths of a second. A clock that has wrapped is no restart.
pub fn has_restarted(before_cs: u32, now_cs: u32) -> bool {
    let wrapped = before_cs > u32::MAX - WRAP_CS && now_cs < WRAP_CS;
    now_cs < before_cs && !wrapped
}

impl Snapshot {
    /// Whether the switch has restarted since an earlier reading.
    pub fn has_restarted_since(&self, before: &Self) -> bool {
        has_restarted(before.up_cs, self.up_cs)
    }
}

/// What has passed each port between two readings; none for a port without counters, or whose counters lost their
/// continuity. The octets of a frame do not count the 20 that are on the wire between frames.
pub fn flow(before: &Snapshot, after: &Snapshot) -> Vec<Option<Flow>> {
    let elapsed_cs = after.up_cs.wrapping_sub(before.up_cs);
    let restarted = after.has_restarted_since(before);
    let one = |(before, now): (&Option<PortCounts>, &Option<PortCounts>)| {
        let (before, now) = ((*before)?, (*now)?);
        if restarted || elapsed_cs == 0 || before.discontinuity_cs != now.discontinuity_cs {
            return None;
        }
        let pair = |before: [Count; 2], now: [Count; 2]| [now[0].since(before[0]), now[1].since(before[1])];
        let rate = |octets: u64| (u128::from(octets) * 800 / u128::from(elapsed_cs)).min(u128::from(u64::MAX)) as u64;
        Some(Flow {
            elapsed_ms: u64::from(elapsed_cs) * 10,
            running: now.running,
            speed_bps: now.speed_bps,
            rate_bps: pair(before.octets, now.octets).map(|octets| octets.map(rate)),
            errors: pair(before.errors, now.errors),
            discards: pair(before.discards, now.discards),
            pause: pair(before.pause, now.pause),
        })
    };
    before.ports.iter().zip(&after.ports).map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn snapshot(up_cs: u32, octets: Count) -> Snapshot {
        let port = PortCounts { octets: [octets, Count::Wide(7)], ..PortCounts::default() };
        Snapshot { up_cs, ports: vec![Some(port), None] }
    }

    fn received(before: &Snapshot, after: &Snapshot) -> Option<u64> {
        flow(before, after)[0].and_then(|flow| flow.rate_bps[0])
    }

    #[test]
    fn rates_are_by_the_switch_s_own_clock() {
        let flows = flow(&snapshot(1000, Count::Wide(500)), &snapshot(1250, Count::Wide(3000)));
        let first = flows[0].expect("continuous");
        assert_eq!((first.elapsed_ms, first.rate_bps), (2500, [Some(8000), Some(0)]));
        assert_eq!((first.pause, flows[1]), ([None, None], None));
    }

    #[test]
    fn narrow_counters_wrap_and_wide_ones_do_not() {
        let narrow = |count| snapshot(0, Count::Narrow(count));
        let later = |count| Snapshot { up_cs: 100, ..snapshot(100, count) };
        assert_eq!(received(&narrow(u32::MAX), &later(Count::Narrow(9))), Some(80));
        assert_eq!(received(&snapshot(0, Count::Wide(10)), &later(Count::Wide(9))), None);
        assert_eq!(received(&narrow(0), &later(Count::Wide(9))), None);
    }

    #[test]
    fn what_lost_its_continuity_says_nothing() {
        let before = snapshot(5000, Count::Wide(10));
        assert_eq!(received(&before, &snapshot(400, Count::Wide(90))), None, "a restart");
        let mut moved = snapshot(5100, Count::Wide(90));
        assert_eq!(received(&before, &moved), Some(640));
        moved.ports[0].as_mut().expect("a port").discontinuity_cs = 5050;
        assert_eq!(received(&before, &moved), None, "a discontinuity");
        assert_eq!(received(&before, &before), None, "no time has passed");
    }

    #[test]
    fn a_clock_at_its_end_begins_anew() {
        let (before, after) = (snapshot(u32::MAX - 49, Count::Wide(0)), snapshot(50, Count::Wide(100)));
        assert_eq!(received(&before, &after), Some(800));
    }

    #[test]
    fn arrivals_know_a_wrap_from_a_counter_that_was_set_back() {
        let of = |unicast, broadcast| Received { unicast, broadcast };
        let (narrow, wide) =
            (|count| of(Count::Narrow(count), Count::Absent), |count| of(Count::Wide(count), Count::Wide(2)));
        let unicast = |before: Received, now: Received| now.since(before).map(|arrivals| arrivals.unicast);
        assert_eq!(unicast(narrow(u32::MAX - 1), narrow(3)), Some(5));
        assert_eq!(unicast(narrow(1000), narrow(3)), None, "set back");
        assert_eq!(unicast(wide(1000), wide(1003)), Some(3));
        assert_eq!(unicast(wide(1000), wide(3)), None, "set back");
        assert_eq!(unicast(narrow(3), wide(1000)), None, "another counter");
        assert_eq!(unicast(Received::default(), Received::default()), None, "nothing is counted");
        let more = of(Count::Wide(7), Count::Wide(9)).since(of(Count::Wide(7), Count::Wide(8)));
        assert_eq!(more, Some(Arrivals { unicast: 0, broadcast: 1 }));
    }
}
