//! How much may be in flight on one link.
//!
//! A window steered by delay, once a round trip, as in Swift (G. Kumar et al., *Swift: Delay is simple and effective for
//! congestion control in the datacenter*, SIGCOMM 2020): while the smallest round-trip time of a round stays under the
//! link's own smallest plus a target, the window grows by a packet or two; above, it shrinks in proportion to the excess.
//! The smallest of a round, not each sample, and without the time that either end was kept from looking, since a program
//! that was not scheduled is no congestion. By that time the target is *raised*, and growth is faster in proportion: what is
//! in flight must last until both ends had their turns, and it waits in a queue while they have them (see `lateness.rs`).
//!
//! ```text
//!  window ▲      ╱╲    ╱╲    queue of late:  < target  → + packet a round trip
//!         │  ╱╲ ╱  ╲  ╱  ╲                   ≥ target  → × (1 − 0.8 · excess / delay)
//!         └───────────────▶ rounds
//! ```
//!
//! *Loss* alone is no congestion either: a bad cable loses as much however little is sent. When rounds under the target lose more than
//! the link's known floor, an experiment sends a few packets a round trip for a while. If the loss halves, it was congestion, and the
//! window is cut by 30 %. If it does not, the loss becomes the floor and the window returns. If most rounds of the experiment are over the
//! target, another flow fills the queue, and the window competes with it. Flows that began in a full queue, and took its delay for that
//! of the link, experiment at about the same time, and then measure the round trip without the queue. In rounds over the target a
//! loss above the floor cuts the window by 30 % too, since the queue may have overflowed.
//!
//! *Another's queue*: if the delay stays over the target for long although the window shrank, a loss-driven flow such as
//! TCP's fills the buffer. Then the window grows as CUBIC's does beside Reno, half a packet a round trip and × 0.7 after a loss (Copa's
//! competitive mode: V. Arun and H. Balakrishnan, NSDI 2018, section 2.2), with a look every two seconds whether the queue
//! can be drained again.
//!
//! *Links together*: several links of a connection may lead through one bottleneck, where each would take a flow's share. So the
//! links of a connection that compete are coupled by LIA (RFC 6356): their windows grow together as one flow's would on the best
//! of them. Links of separate ports need no coupling while they are steered by delay: a queue of 400 µs leaves room for other flows,
//! and each link is filled.
//!
//! *Paths* between the same two addresses share at least the sender's port. The n links of such a pair each grow by an n-th of what a
//! lone link would, so on a link of the network that all of them cross they take one flow's share together; a link that only one of
//! them crosses is filled by that one. The delay of the least delayed of them is taken for the queue of the shared port, and sets the
//! target of all: a link that is delayed by more shrinks, and load moves to the others. The smallest round-trip time of any of them
//! counts for all: a path that is opened into a queue has not seen the network without it. Another flow is blamed only if all of them
//! are delayed and packets were lost, since many pairs that cross each other's paths are delay enough. Windows become smaller than a
//! packet, as those of many flows do.
//!
//! *A queue of this machine* that refuses a packet says so when it is sent: the window is cut by 30 % at once, once for what is in
//! flight, and nothing leaves on the link for about a round trip (`connection/transmit.rs`).
//!
//! *Many flows* of one machine: while more than eight of its connections have data waiting, a window may become smaller than a
//! packet, as those of Swift do in large incasts. Such a link sends a whole run, then pauses until its window
//! allows the next (`connection/transmit.rs`). It learns late what it does to the queue, so all of them together grow as eight
//! would.

use crate::time::Time;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Smallest window in packets.
const PACKETS_MIN: f64 = 2.0;
/// The same where many flows of one machine share a link: a fraction of a packet, which a turn now and then makes whole.
const PACKETS_MIN_SHARED: f64 = 1.0 / 16.0;
/// Flows of one machine that each go their own way; more share what so many would do.
const FLOWS_FEW: usize = 8;
/// First window in packets (RFC 6928).
const PACKETS_INITIAL: f64 = 10.0;
/// Largest window in bytes.
const WINDOW_MAX: f64 = 16.0 * 1024.0 * 1024.0;
/// Queueing delay that is aimed at.
const TARGET: Duration = Duration::from_micros(400);
/// The target is never less than this many packets' time on the wire.
const TARGET_PACKETS: f64 = 4.0;
/// Packets by which the window grows a round trip.
const GROWTH: f64 = 2.0;
/// Weight of excess delay.
const BETA: f64 = 0.8;
/// Largest cut of one round.
const CUT_MAX: f64 = 0.5;
/// Share of packets lost above the floor that starts an experiment.
const LOSS_NOTED: f64 = 0.02;
/// What remains of the window after a loss that is congestion.
const LOSS_FACTOR: f64 = 0.7;
/// Packets by which the window grows a round trip in competition: with this cut after a loss, the rate of Reno, which grows by
/// one and halves (RFC 9438, section 4.3).
const COMPETING_GROWTH: f64 = 3.0 * (1.0 - LOSS_FACTOR) / (1.0 + LOSS_FACTOR);
/// Packets that are counted at least before their losses are judged.
const JUDGED_PACKETS: u64 = 120;
/// Rounds that are counted at least, and those of them that must have lost something: where offloads carry a run as one frame, it
/// is lost as one, and a single bad run would look like a storm.
const JUDGED_ROUNDS: u64 = 8;
const JUDGED_ROUNDS_LOSSY: u64 = 3;
/// How long the delay must stay over the target before another flow is blamed.
const BLAME_AFTER: Duration = Duration::from_millis(150);
/// The same in round trips, for slow links.
const BLAME_AFTER_ROUND_TRIPS: u32 = 16;
/// The same, when looking whether the other flow is still there.
const BLAME_AGAIN_AFTER: Duration = Duration::from_millis(40);
/// The same in round trips, for slow links: as many as shrink a window that fills a queue to one that does not.
const BLAME_AGAIN_AFTER_ROUND_TRIPS: u32 = 4;
/// How long to compete before looking whether the queue can be drained.
const COMPETE_FOR: Duration = Duration::from_secs(2);
/// How long the queueing delay of a round is taken for the present one.
const QUEUE_OF_LATE: Duration = Duration::from_millis(500);
/// How often the smallest round-trip time is sought by draining the queue.
const DRAIN_EVERY: Duration = Duration::from_secs(5);

/// What one acknowledgement told about a link.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Acked {
    pub(crate) bytes: u64,
    pub(crate) packets: u64,
    /// Round-trip time of the packet that triggered it.
    pub(crate) rtt: Duration,
    /// Smallest round-trip time of the link of late.
    pub(crate) rtt_min: Duration,
    pub(crate) rtt_smoothed: Duration,
    /// Highest number acknowledged.
    pub(crate) number: u64,
    /// Number that the next packet will get: a round ends when it is acknowledged.
    pub(crate) next_number: u64,
    /// Whether the window kept something from being sent.
    pub(crate) limited: Limited,
    /// How long both ends together are expected to wait for their turns.
    pub(crate) waits: Duration,
    /// Share of a lone flow's growth that the link has while it competes ([`coupling`]).
    pub(crate) coupling: f64,
    /// The smallest queue of late of the other links between the same two addresses.
    pub(crate) least_queue: Option<Duration>,
    /// Whether other links between the same two addresses were ever used.
    pub(crate) has_siblings: bool,
}

/// A link that competes, as the others of its connection see it: its window in bytes, and its round-trip time in seconds.
pub(crate) type Competitor = (f64, f64);

/// The share of a lone flow's growth that a window has which is coupled with those of `all` links that compete, its own included:
/// RFC 6356, section 3, where the increase is the lesser of `alpha * bytes_acked * MSS / cwnd_total` and what one TCP's would be.
pub(crate) fn coupling(window: f64, all: impl Iterator<Item = Competitor>) -> f64 {
    let (mut best, mut rates) = (0.0_f64, 0.0);
    for (window, rtt) in all {
        best = best.max(window / (rtt * rtt));
        rates += window / rtt;
    }
    if rates > 0.0 { (best * window / (rates * rates)).min(1.0) } else { 1.0 }
}

/// What keeps the sender from sending more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Limited {
    /// The window.
    ByWindow,
    /// Nothing to send.
    ByApplication,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
enum Mode {
    /// Doubling until the first delay.
    Start,
    /// Steered by delay.
    Delay,
    /// Steered by loss, since another flow fills the queue.
    Compete { until: Time },
}

/// An experiment on the cause of losses.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Experiment {
    window_before: f64,
    loss_before: f64,
    /// What rounds under the target lost.
    #[serde(default)]
    calm: Tally,
    /// What rounds over the target lost.
    #[serde(default)]
    queued: Tally,
    /// Packets of the round that runs: lost, and acknowledged.
    #[serde(default)]
    round: (u64, u64),
    /// Packets sent before do not count.
    from_number: u64,
}

/// What some rounds lost.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
struct Tally {
    lost: u64,
    acked: u64,
    rounds: u64,
    rounds_lossy: u64,
}

impl Tally {
    fn add(&mut self, lost: u64, acked: u64) {
        self.lost += lost;
        self.acked += acked;
        self.rounds += 1;
        self.rounds_lossy += u64::from(lost > 0);
    }

    fn packets(&self) -> u64 {
        self.lost + self.acked
    }

    fn ratio(&self) -> f64 {
        self.lost as f64 / self.packets().max(1) as f64
    }
}

/// The window of one link.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Congestion {
    window: f64,
    packet: f64,
    mode: Mode,
    round_end: u64,
    round_rtt_min: Duration,
    round_acked: u64,
    round_lost: u64,
    round_limited: Limited,
    /// What rounds under the target lost since losses were judged.
    #[serde(default)]
    tally: Tally,
    /// The queue of the last round, and when that ended.
    queue: Option<(Time, Duration)>,
    /// When the delay of all links between the same two addresses was last under the target.
    calm_at: Time,
    /// When a packet was last found lost.
    #[serde(default)]
    lost_at: Option<Time>,
    /// The window with which another flow was competed with, while looking whether it is still there.
    competing_window: Option<f64>,
    loss_floor: f64,
    experiment: Option<Experiment>,
    drain_at: Time,
    draining: Option<f64>,
    /// Flows of this machine that have data waiting, this one included.
    flows: f64,
    /// Links of the connection between the same two addresses, this one included.
    paths: f64,
    /// Refusals of numbers below were answered.
    refused_until: u64,
    rate: Rate,
}

impl Congestion {
    pub(crate) fn new(packet: u16) -> Self {
        let packet = f64::from(packet);
        Self {
            window: PACKETS_INITIAL * packet,
            packet,
            mode: Mode::Start,
            round_end: 0,
            round_rtt_min: Duration::MAX,
            round_acked: 0,
            round_lost: 0,
            round_limited: Limited::ByApplication,
            tally: Tally::default(),
            queue: None,
            calm_at: Time::ZERO,
            lost_at: None,
            competing_window: None,
            loss_floor: 0.0,
            experiment: None,
            drain_at: Time::ZERO,
            draining: None,
            flows: 1.0,
            paths: 1.0,
            refused_until: 0,
            rate: Rate::default(),
        }
    }

    /// Bytes that may be in flight; on average, where that is less than a run.
    pub(crate) fn window(&self) -> u64 {
        let is_held = self.draining.is_some() || self.experiment.is_some();
        let window = if is_held { 2.0 * self.window_min() } else { self.window };
        (window as u64).max(1)
    }

    fn window_min(&self) -> f64 {
        (PACKETS_MIN * self.share()).max(PACKETS_MIN_SHARED) * self.packet
    }

    /// The share of a lone flow's growth that this one has among the flows of this machine.
    fn share_of_flows(&self) -> f64 {
        (FLOWS_FEW as f64 / self.flows).min(1.0)
    }

    /// The share of a lone link's growth that this one has.
    fn share(&self) -> f64 {
        self.share_of_flows() / self.paths
    }

    /// Whether so many flows share the link that none of them goes its own way.
    pub(crate) fn is_shared(&self) -> bool {
        self.flows > FLOWS_FEW as f64
    }

    /// Whether the window may be a fraction of what one of a single link is.
    pub(crate) fn is_part(&self) -> bool {
        self.is_shared() || self.paths > 1.0
    }

    /// Flows of this machine that have data waiting, this one included.
    pub(crate) fn flows(&self) -> f64 {
        self.flows
    }

    /// Notes how many flows of this machine, this one included, have data waiting. A window that has not met its limit yet
    /// is shared with those that joined.
    pub(crate) fn set_flows(&mut self, flows: usize) {
        self.set_sharing(flows.max(1) as f64, self.paths);
    }

    /// The same of the connection's links between the same two addresses.
    pub(crate) fn set_paths(&mut self, paths: usize) {
        self.set_sharing(self.flows, paths.max(1) as f64);
    }

    fn set_sharing(&mut self, flows: f64, paths: f64) {
        let before = self.share();
        (self.flows, self.paths) = (flows, paths);
        if self.mode == Mode::Start && self.share() < before {
            self.window *= self.share() / before;
        }
        self.window = self.window.max(self.window_min());
    }

    /// This machine's own queue took no packet of this number and the next: that is congestion, known without a round trip. The
    /// window is cut once for all that was sent before `next_number`.
    pub(crate) fn handle_refused(&mut self, number: u64, next_number: u64) {
        if number < self.refused_until {
            return;
        }
        self.refused_until = next_number;
        self.window = (self.window * LOSS_FACTOR).max(self.window_min());
        if self.mode == Mode::Start {
            self.mode = Mode::Delay;
        }
    }

    /// The queue of the last round, if that was of late.
    pub(crate) fn queue_of_late(&self, now: Time) -> Option<Duration> {
        self.queue.filter(|(at, _)| now.since(*at) < QUEUE_OF_LATE).map(|(_, queue)| queue)
    }

    /// Bytes a second that were delivered of late; zero before the first measurement.
    pub(crate) fn rate(&self) -> f64 {
        self.rate.bytes_per_second()
    }

    /// Whether the window goes the way of a loss-driven flow.
    pub(crate) fn competes(&self) -> bool {
        matches!(self.mode, Mode::Compete { .. })
    }

    /// Whether another flow fills the queue, as far as is known.
    pub(crate) fn is_crowded(&self) -> bool {
        self.competes() || self.competing_window.is_some()
    }

    pub(crate) fn set_packet(&mut self, packet: u16) {
        self.packet = f64::from(packet);
        self.window = self.window.max(self.window_min());
    }

    /// The link was silent and answers again: half the window that it had, doubling from there.
    pub(crate) fn handle_recovery(&mut self, now: Time) {
        self.window = (self.window / 2.0).max(PACKETS_INITIAL * self.packet * self.share());
        self.mode = Mode::Start;
        self.experiment = None;
        self.draining = None;
        self.calm_at = now;
        (self.round_acked, self.round_lost, self.round_rtt_min) = (0, 0, Duration::MAX);
    }

    pub(crate) fn handle_lost(&mut self, number: u64) {
        self.round_lost += 1;
        if let Some(experiment) = self.experiment.as_mut().filter(|experiment| number >= experiment.from_number) {
            experiment.round.0 += 1;
        }
    }

    pub(crate) fn handle_acked(&mut self, now: Time, acked: Acked) {
        self.rate.handle_delivered(now, acked.bytes);
        self.round_acked += acked.packets;
        self.round_rtt_min = self.round_rtt_min.min(acked.rtt);
        if let Some(experiment) = self.experiment.as_mut().filter(|experiment| acked.number >= experiment.from_number) {
            experiment.round.1 += acked.packets;
        }
        if acked.limited == Limited::ByWindow {
            self.round_limited = Limited::ByWindow;
            let haste = 1.0 + acked.waits.as_secs_f64() / TARGET.as_secs_f64();
            let windows = acked.bytes as f64 / self.window;
            let growth = match self.mode {
                Mode::Start => acked.bytes as f64,
                Mode::Delay => GROWTH * haste * self.packet * windows * self.share(),
                // The coupling knows the other links.
                Mode::Compete { .. } => {
                    COMPETING_GROWTH * self.packet * windows * self.share_of_flows() * acked.coupling
                }
            };
            // A run may be many windows long.
            self.window = (self.window + growth.min(self.window)).min(WINDOW_MAX);
        }
        if acked.number >= self.round_end {
            self.end_round(now, &acked);
            self.round_end = acked.next_number;
            (self.round_acked, self.round_lost, self.round_rtt_min) = (0, 0, Duration::MAX);
            self.round_limited = Limited::ByApplication;
        }
    }

    fn end_round(&mut self, now: Time, acked: &Acked) {
        if self.round_lost > 0 {
            self.lost_at = Some(now);
        }
        let queue = self.round_rtt_min.saturating_sub(acked.rtt_min);
        // The queue that all of the pair's links see is that of the port that they share.
        let common = acked.least_queue.map_or(queue, |least| least.min(queue));
        let rtt = acked.rtt_smoothed.saturating_sub(queue - common);
        let target = self.target(rtt) + acked.waits;
        let is_calm = queue < target;
        self.queue = Some((now, queue));
        if common < target || self.calm_at == Time::ZERO {
            self.calm_at = now;
        }
        self.judge_losses(now, acked, is_calm);
        if self.drain(now) {
            return;
        }
        match self.mode {
            Mode::Start if !is_calm || self.exceeds_floor(self.loss_ratio()) => {
                self.mode = Mode::Delay;
                self.shrink(queue, target);
            }
            Mode::Delay if !is_calm => {
                self.shrink(queue, target);
                let patience = if self.competing_window.is_some() {
                    BLAME_AGAIN_AFTER.max(acked.rtt_smoothed * BLAME_AGAIN_AFTER_ROUND_TRIPS)
                } else {
                    BLAME_AFTER.max(acked.rtt_smoothed * BLAME_AFTER_ROUND_TRIPS)
                };
                // Where many pairs cross, windows of a few packets each, of which none can shrink, delay them all; a flow that fills a
                // queue makes it overflow.
                let may_blame = !acked.has_siblings || self.lost_at.is_some_and(|lost| lost > self.calm_at);
                if may_blame && now.since(self.calm_at) > patience {
                    self.compete(now);
                }
            }
            Mode::Compete { until } => {
                if self.round_lost > 0 {
                    self.window = (self.window * LOSS_FACTOR).max(self.window_min());
                }
                if is_calm || now >= until {
                    self.competing_window = (!is_calm).then_some(self.window);
                    self.mode = Mode::Delay;
                    self.calm_at = now;
                }
            }
            Mode::Start | Mode::Delay => self.competing_window = None,
        }
    }

    /// Goes the way of a loss-driven flow, from where it left that for a look.
    fn compete(&mut self, now: Time) {
        self.window = self.window.max(self.competing_window.take().unwrap_or_default());
        self.mode = Mode::Compete { until: now + COMPETE_FOR };
        (self.experiment, self.tally) = (None, Tally::default());
    }

    fn target(&self, rtt: Duration) -> Duration {
        // Links between the same ends meet in the sender's port, a packet of each.
        let packets = TARGET_PACKETS.max(self.paths) * self.packet;
        let packets = (packets / (self.window / self.share())).min(1.0);
        TARGET.max(Duration::from_nanos((rtt.as_nanos() as f64 * packets) as u64))
    }

    fn shrink(&mut self, queue: Duration, target: Duration) {
        let excess = queue.saturating_sub(target).as_secs_f64() / self.round_rtt_min.as_secs_f64().max(1e-6);
        let by_delay = 1.0 - (BETA * excess).min(CUT_MAX);
        let factor = if self.exceeds_floor(self.loss_ratio()) { by_delay.min(LOSS_FACTOR) } else { by_delay };
        self.window = (self.window * factor).max(self.window_min());
    }

    /// Whether a share of packets lost is more than the link is known to lose.
    fn exceeds_floor(&self, ratio: f64) -> bool {
        ratio > self.loss_floor * 2.0 + LOSS_NOTED
    }

    fn loss_ratio(&self) -> f64 {
        self.round_lost as f64 / (self.round_lost + self.round_acked).max(1) as f64
    }

    /// Decides by an experiment whether what rounds under the target lose is congestion.
    fn judge_losses(&mut self, now: Time, acked: &Acked, is_calm: bool) {
        if let Some(mut experiment) = self.experiment.take() {
            let (lost, answered) = std::mem::take(&mut experiment.round);
            let tally = if is_calm { &mut experiment.calm } else { &mut experiment.queued };
            tally.add(lost, answered);
            let Experiment { calm, queued, window_before, loss_before, .. } = experiment;
            let cut = (window_before * LOSS_FACTOR).max(self.window_min());
            if queued.packets() >= JUDGED_PACKETS {
                self.window = cut;
                self.compete(now);
            } else if calm.packets() < JUDGED_PACKETS {
                self.experiment = Some(experiment);
            } else if calm.ratio() > loss_before / 2.0 {
                self.loss_floor = calm.ratio().max(loss_before);
                self.window = window_before;
            } else {
                self.window = cut;
            }
            return;
        }
        if self.competes() || !is_calm {
            return;
        }
        self.loss_floor *= 0.9999;
        self.tally.add(self.round_lost, self.round_acked);
        if self.tally.packets() < JUDGED_PACKETS || self.tally.rounds < JUDGED_ROUNDS {
            return;
        }
        let tally = std::mem::take(&mut self.tally);
        if tally.rounds_lossy < JUDGED_ROUNDS_LOSSY || !self.exceeds_floor(tally.ratio()) {
            return;
        }
        self.mode = Mode::Delay;
        if self.is_shared() {
            // One of many flows changes no loss by sending less: an experiment would tell nothing.
            self.window = (self.window * LOSS_FACTOR).max(self.window_min());
            return;
        }
        self.experiment = Some(Experiment {
            window_before: self.window,
            loss_before: tally.ratio(),
            calm: Tally::default(),
            queued: Tally::default(),
            round: (0, 0),
            from_number: acked.next_number,
        });
    }

    /// Empties the queue for one round now and then, so that the smallest round-trip time is the link's and not that of a
    /// standing queue. Returns whether this round was spent on it.
    fn drain(&mut self, now: Time) -> bool {
        if let Some(window) = self.draining.take() {
            self.window = window;
            self.drain_at = now + DRAIN_EVERY;
            return true;
        }
        if self.drain_at == Time::ZERO {
            self.drain_at = now + DRAIN_EVERY;
        }
        if now >= self.drain_at && self.mode == Mode::Delay && self.round_limited == Limited::ByWindow {
            self.draining = Some(self.window);
            return true;
        }
        false
    }
}

/// Bytes a second delivered, counted over intervals.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
struct Rate {
    bytes: u64,
    since: Time,
    last: f64,
}

impl Rate {
    const INTERVAL: Duration = Duration::from_millis(100);

    fn handle_delivered(&mut self, now: Time, bytes: u64) {
        self.bytes += bytes;
        let elapsed = now.since(self.since);
        if elapsed >= Self::INTERVAL {
            self.last = self.bytes as f64 / elapsed.as_secs_f64();
            (self.bytes, self.since) = (0, now);
        }
    }

    fn bytes_per_second(&self) -> f64 {
        self.last
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_cuts_once_for_all_that_is_in_flight() {
        let mut congestion = Congestion::new(1232);
        let before = congestion.window();
        congestion.handle_refused(10, 14);
        let cut = congestion.window();
        assert_eq!(cut, (before as f64 * LOSS_FACTOR) as u64);
        congestion.handle_refused(12, 20);
        assert_eq!(congestion.window(), cut, "sent before the first refusal was known");
        congestion.handle_refused(14, 20);
        assert!(congestion.window() < cut);
        (20..200).for_each(|number| congestion.handle_refused(number, number + 1));
        assert_eq!(congestion.window(), 2 * 1232, "never less than the least");
    }

    /// Rounds of 200 packets, of which one in ten is lost, at this round-trip time on a link whose own is 1 ms.
    fn lossy_rounds(rtt: Duration) -> Congestion {
        let mut congestion = Congestion::new(1232);
        let mut now = Time::ZERO + Duration::from_secs(1);
        for round in 0..40 {
            let number = round * 200;
            (number..number + 20).for_each(|lost| congestion.handle_lost(lost));
            let acked = Acked {
                bytes: 180 * 1232,
                packets: 180,
                rtt,
                rtt_min: Duration::from_millis(1),
                rtt_smoothed: rtt,
                number: number + 199,
                next_number: number + 200,
                limited: Limited::ByWindow,
                waits: Duration::ZERO,
                coupling: 1.0,
                least_queue: None,
                has_siblings: false,
            };
            congestion.handle_acked(now, acked);
            now = now + rtt;
        }
        congestion
    }

    #[test]
    fn losses_are_the_links_own_only_where_no_queue_could_have_overflowed() {
        let bad_cable = lossy_rounds(Duration::from_micros(1_100)).loss_floor;
        assert!((0.09..0.11).contains(&bad_cable), "{bad_cable}");
        let behind_another_flow = lossy_rounds(Duration::from_millis(9));
        assert_eq!(behind_another_flow.loss_floor, 0.0);
        assert!(behind_another_flow.competes());
    }

    #[test]
    fn coupled_windows_grow_together_as_the_best_of_them_would_alone() {
        let share = |window: f64, all: &[Competitor]| coupling(window, all.iter().copied());
        assert_eq!(share(5e4, &[]), 1.0, "nothing competes");
        assert_eq!(share(5e4, &[(5e4, 0.01)]), 1.0, "a link competes alone");
        // Equal links: a quarter each, so that two of them, which lose half as often each, have one flow's rate.
        assert!((share(5e4, &[(5e4, 0.01); 2]) - 0.25).abs() < 1e-9);
        // Never more than a lone flow's, however different the links are.
        for (window, rtt) in [(1e3, 0.001), (1e6, 0.001), (1e3, 0.1), (1e6, 0.1)] {
            let all = [(window, rtt), (5e4, 0.01)];
            assert!(all.iter().all(|(window, _)| (0.0..=1.0).contains(&share(*window, &all))), "{all:?}");
        }
    }
}
