//! Which paths are sound: probes go out, replies come back, and silence, loss or delay becomes a verdict.
//!
//! ```text
//!                    silence, or losses beyond chance, or much later than the next path
//!        ┌─────────┐ ───────────────────────────────────────────────────────────────▶ ┌──────┐
//!        │ healthy │                                                                  │ sick │
//!        └─────────┘ ◀─────────────────────────────────────────────────────────────── └──────┘
//!                    not one loss for `hold`, which doubles with each relapse
//! ```
//! A path is one VLAN toward the hosts of one switch. Frames of a VLAN stay in order, so a reply tells that the probes
//! before it are lost, however long queues are; nothing depends on a timeout but silence itself. Silence is several probes
//! in a row that should have been answered by now, for at least [`Settings::silence_ns`]: a long queue makes replies slow to
//! come, and a watcher that has to wait for its processor asks seldom and hears late, which says nothing of the path. So a
//! probe counts only when it is older than replies were lately, and a reply may have come at any time since the caller looked
//! for the last time. Losses add to a score and
//! replies take from it: the cumulative sum test between a loss of 0.1 % and one of 2 %, which three losses in a row end at
//! once, ten percent after some thirty probes and two percent after some two hundred, while one loss in a thousand is
//! forgiven.
//!
//! Both ends of a path probe it, and chance lets one know before the other. A warning of the far end counts as all losses but
//! the last: no verdict by itself, as the fault may be the other host's own, but the next loss here is one.
//!
//! Probes are bounded: paths that carry traffic are probed often, others seldom, and when that is too much for
//! [`Settings::probes_per_s_max`] each kind more seldom.
//!
//! Call order: [`Health::poll_probe`] until it gives none, [`Health::handle_reply`] and [`Health::handle_warning`] as they come,
//! [`Health::poll_change`] until it gives none; [`Health::due_ns`] says when to come again. Time is nanoseconds of any clock that
//! does not go back.
//!
//! Source: Page 1954 (cumulative sums); Miura et al. 2005, 5 (hosts that notice a broken link themselves).

use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Score of a lost probe: 100 times the logarithm of 2 % over 0.1 %.
const LOST: i32 = 300;
/// Score of a reply: 100 times the logarithm of 98 % over 99.9 %.
const REPLIED: i32 = -2;
/// Score of a reply that comes much later than on the best path to the same switch.
const LATE: i32 = 45;
/// The score that makes a path sick.
const LIMIT: i32 = 900;
/// Replies may overtake as many others: the far end has several processors.
const OVERTAKES_MAX: u32 = 2;
/// Probes on their way on one path; older ones are lost.
const OUTSTANDING_MAX: usize = 256;
/// A path is silent after this many intervals without a reply, at least.
const SILENT_INTERVALS: u64 = 5;
/// And when this many probes should have been answered and were not.
const SILENT_PROBES: usize = 4;
/// A reply should have come when this many mean deviations more have passed than replies take (RFC 6298, 2.3).
const DEVIATIONS: u64 = 4;
/// A relapse so soon doubles the hold.
const RELAPSE_HOLDS: u64 = 20;

/// How eagerly paths are watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Between probes of a path that carries traffic, or is sick.
    pub active_interval_ns: u64,
    /// Between probes of another path.
    pub idle_interval_ns: u64,
    /// Most probes of a second, over all paths.
    pub probes_per_s_max: u32,
    /// Shortest silence that makes a path sick.
    pub silence_ns: u64,
    /// How long a sick path has to lose nothing, the first time.
    pub hold_ns: u64,
    /// How long at most, after relapses.
    pub hold_ns_max: u64,
    /// Replies that come this much later than on the best path, and four times as late, are late.
    pub late_ns: u64,
}

impl Default for Settings {
    /// 2 ms and 100 ms between probes, 2,000 of a second, 10 ms of silence, 0.5 s to 60 s to heal, 20 ms late.
    fn default() -> Self {
        const MS: u64 = 1_000_000;
        Self {
            active_interval_ns: 2 * MS,
            idle_interval_ns: 100 * MS,
            probes_per_s_max: 2000,
            silence_ns: 10 * MS,
            hold_ns: 500 * MS,
            hold_ns_max: 60_000 * MS,
            late_ns: 20 * MS,
        }
    }
}

/// A path, by its position.
pub type PathId = usize;

/// What is known of a path, the worst first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// To be left.
    Sick(Why),
    /// Fit for traffic.
    Healthy,
}

/// Why a path is sick, the worst first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Why {
    /// Nothing comes back.
    Silent,
    /// Too much is lost.
    Lossy,
    /// It takes much longer than another path to the same switch.
    Late,
}

/// Whether a path carries traffic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Activity {
    /// It does.
    Active,
    /// It does not.
    Idle,
}

/// A probe to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Probe {
    /// On this path.
    pub path: PathId,
    /// Its number on the path.
    pub sequence: u32,
}

/// A verdict that changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Change {
    /// The path.
    pub path: PathId,
    /// What it is now.
    pub verdict: Verdict,
}

/// The health of all paths of a host.
#[derive(Clone, Debug)]
pub struct Health {
    settings: Settings,
    paths: Vec<Path>,
    /// `(when, path)` of each next probe.
    due: BTreeSet<(u64, PathId)>,
    /// Paths probed at the shorter interval.
    eager: usize,
    changes: VecDeque<Change>,
}

#[derive(Clone, Debug)]
struct Path {
    /// Paths of one group lead to one switch.
    group: usize,
    activity: Activity,
    verdict: Verdict,
    next_ns: u64,
    sequence: u32,
    outstanding: VecDeque<(u32, u64)>,
    heard_ns: u64,
    /// Set when it becomes active: queues may be long already, so the first reply may take as long as an idle path's.
    unheard: bool,
    score: i32,
    late: u32,
    round_trip_ns: Option<u64>,
    /// How far replies are from that, smoothed.
    deviation_ns: u64,
    sound_since_ns: u64,
    /// When it was found sick last.
    sick_ns: u64,
    healed_ns: u64,
    hold_ns: u64,
}

impl Health {
    /// Paths that are healthy until shown otherwise, `groups[path]` saying which lead to one switch. First probes are spread over
    /// an idle interval.
    pub fn new(settings: Settings, groups: &[usize], now_ns: u64) -> Self {
        let mut health = Self { settings, paths: Vec::new(), due: BTreeSet::new(), eager: 0, changes: VecDeque::new() };
        // As long as a round of idle paths takes with their quarter of the probes, so that rounds are no bursts.
        let round_ns = groups.len() as u64 * 4_000_000_000 / u64::from(settings.probes_per_s_max.max(1));
        let span_ns = settings.idle_interval_ns.max(round_ns);
        for (id, group) in groups.iter().enumerate() {
            let next_ns = now_ns + span_ns * id as u64 / groups.len() as u64;
            health.due.insert((next_ns, id));
            health.paths.push(Path {
                group: *group,
                activity: Activity::Idle,
                verdict: Verdict::Healthy,
                next_ns,
                sequence: 0,
                outstanding: VecDeque::new(),
                heard_ns: now_ns,
                unheard: true,
                score: 0,
                late: 0,
                round_trip_ns: None,
                deviation_ns: 0,
                sound_since_ns: now_ns,
                sick_ns: 0,
                healed_ns: 0,
                hold_ns: settings.hold_ns,
            });
        }
        health
    }

    /// What is known of a path.
    pub fn verdict(&self, path: PathId) -> Verdict {
        self.paths[path].verdict
    }

    /// `fit[path]`: whether it is to carry traffic. Healthy paths are; toward a switch that has none, the one that fell last of
    /// those least sick: that verdict may be a far host's fault or a processor's, and there is nothing better to leave it for.
    /// Cost: O(paths).
    pub fn fit(&self) -> Vec<bool> {
        let rank = |id: PathId| (self.paths[id].verdict, self.paths[id].sick_ns);
        let mut best: BTreeMap<usize, PathId> = BTreeMap::new();
        for (id, path) in self.paths.iter().enumerate() {
            let known = best.entry(path.group).or_insert(id);
            if rank(id) > rank(*known) {
                *known = id;
            }
        }
        let is_fit = |(id, path): (PathId, &Path)| path.verdict == Verdict::Healthy || best[&path.group] == id;
        self.paths.iter().enumerate().map(is_fit).collect()
    }

    /// The smoothed time that a probe takes there and back; none before the first reply.
    pub fn round_trip_ns(&self, path: PathId) -> Option<u64> {
        self.paths[path].round_trip_ns
    }

    /// Says whether a path carries traffic.
    pub fn set_activity(&mut self, now_ns: u64, path: PathId, activity: Activity) {
        let before = self.paths[path].is_eager();
        let state = &mut self.paths[path];
        if state.activity == Activity::Idle && activity == Activity::Active {
            state.unheard = true;
        }
        state.activity = activity;
        self.recount(now_ns, path, before);
    }

    /// The target of a group's probes was replaced: what is on its way will not be answered.
    pub fn forget_outstanding(&mut self, group: usize) {
        for path in self.paths.iter_mut().filter(|path| path.group == group) {
            path.outstanding.clear();
            path.unheard = true;
        }
    }

    /// When [`Health::poll_probe`] has something next; none without paths.
    pub fn due_ns(&self) -> Option<u64> {
        self.due.first().map(|(when, _)| *when)
    }

    /// The next probe that is due, if one is. Cost: O(log paths).
    pub fn poll_probe(&mut self, now_ns: u64) -> Option<Probe> {
        let (when, path) = self.due.first().copied().filter(|(when, _)| *when <= now_ns)?;
        self.due.remove(&(when, path));
        self.listen(now_ns, path);
        let interval_ns = self.interval_ns(path);
        let state = &mut self.paths[path];
        state.sequence = state.sequence.wrapping_add(1);
        state.outstanding.push_back((state.sequence, now_ns));
        let sequence = state.sequence;
        // From now, not from when it was due: what was missed is not made up for in a burst.
        state.next_ns = now_ns + interval_ns;
        self.due.insert((state.next_ns, path));
        if state.outstanding.len() > OUTSTANDING_MAX {
            state.outstanding.pop_front();
            self.lost(now_ns, path);
        }
        Some(Probe { path, sequence })
    }

    /// A reply came, some time between `looked_ns`, when the caller looked and there was none, and now. One that is not
    /// waited for, or of a path that there is not, is nothing.
    pub fn handle_reply(&mut self, now_ns: u64, looked_ns: u64, path: PathId, sequence: u32) {
        let Some(state) = self.paths.get_mut(path) else { return };
        let Some(at) = state.outstanding.iter().position(|(known, _)| *known == sequence) else { return };
        let (_, sent_ns) = state.outstanding.remove(at).expect("just found");
        state.heard_ns = now_ns;
        state.unheard = false;
        let round_trip_ns = now_ns.saturating_sub(sent_ns);
        match state.round_trip_ns {
            None => (state.round_trip_ns, state.deviation_ns) = (Some(round_trip_ns), round_trip_ns / 2),
            Some(before) => {
                state.deviation_ns = (3 * state.deviation_ns + before.abs_diff(round_trip_ns)) / 4;
                state.round_trip_ns = Some((7 * before + round_trip_ns) / 8);
            }
        }
        let overtaken = |(known, _): &(u32, u64)| sequence.wrapping_sub(*known) as i32 > OVERTAKES_MAX as i32;
        let lost = state.outstanding.iter().take_while(|probe| overtaken(probe)).count();
        state.outstanding.drain(..lost);
        for _ in 0..lost {
            self.lost(now_ns, path);
        }
        if self.is_late(path, looked_ns.min(now_ns).saturating_sub(sent_ns)) {
            self.paths[path].late += 1;
            self.worse(now_ns, path, LATE, Why::Late);
        } else {
            let state = &mut self.paths[path];
            state.late = 0;
            state.score = (state.score + REPLIED).max(0);
            let healed = now_ns.saturating_sub(state.sound_since_ns) >= state.hold_ns;
            if state.verdict != Verdict::Healthy && healed {
                state.healed_ns = now_ns;
                self.judge(now_ns, path, Verdict::Healthy);
            }
        }
    }

    /// A host at the other end finds a path sick.
    pub fn handle_warning(&mut self, path: PathId) {
        if let Some(state) = self.paths.get_mut(path) {
            state.score = state.score.max(LIMIT - LOST);
        }
    }

    /// The next verdict that changed.
    pub fn poll_change(&mut self) -> Option<Change> {
        self.changes.pop_front()
    }

    fn interval_ns(&self, path: PathId) -> u64 {
        let Settings { active_interval_ns, idle_interval_ns, probes_per_s_max, .. } = self.settings;
        // Probes of a second, times a million to keep small ones.
        let rate = |paths: usize, interval_ns: u64| paths as u64 * (1_000_000_000_000_000 / interval_ns);
        let eager = rate(self.eager, active_interval_ns);
        let idle = rate(self.paths.len() - self.eager, idle_interval_ns);
        let most = u64::from(probes_per_s_max.max(1)) * 1_000_000;
        // Idle paths have a quarter, and what the others leave.
        let idle_most = (most / 4).max(most.saturating_sub(eager));
        let (base_ns, wanted, granted) = if self.paths[path].is_eager() {
            (active_interval_ns, eager, most - idle.min(idle_most))
        } else {
            (idle_interval_ns, idle, idle_most)
        };
        (u128::from(base_ns) * u128::from(wanted.max(granted)) / u128::from(granted.max(1))) as u64
    }

    /// Notices silence.
    fn listen(&mut self, now_ns: u64, path: PathId) {
        let state = &self.paths[path];
        let Some((_, oldest_ns)) = state.outstanding.front() else { return };
        let mut limit_ns = self.settings.silence_ns.max(SILENT_INTERVALS * self.interval_ns(path));
        if state.unheard {
            limit_ns = limit_ns.max(SILENT_INTERVALS * self.settings.idle_interval_ns);
        }
        let answered_by_ns = state.round_trip_ns.map_or(0, |usual| usual + DEVIATIONS * state.deviation_ns);
        let overdue = |probe: &&(u32, u64)| now_ns.saturating_sub(probe.1) >= answered_by_ns;
        let enough = state.outstanding.iter().filter(overdue).count() >= SILENT_PROBES;
        if enough && now_ns.saturating_sub((*oldest_ns).max(state.heard_ns)) >= limit_ns {
            self.paths[path].sound_since_ns = now_ns;
            self.worse(now_ns, path, LIMIT, Why::Silent);
        }
    }

    fn lost(&mut self, now_ns: u64, path: PathId) {
        self.paths[path].sound_since_ns = now_ns;
        self.worse(now_ns, path, LOST, Why::Lossy);
    }

    fn worse(&mut self, now_ns: u64, path: PathId, by: i32, why: Why) {
        let state = &mut self.paths[path];
        if why == Why::Late {
            state.sound_since_ns = now_ns;
        }
        state.score = (state.score + by).min(LIMIT);
        if state.score >= LIMIT && state.verdict == Verdict::Healthy {
            let relapsed = state.healed_ns > 0 && now_ns - state.healed_ns < RELAPSE_HOLDS * state.hold_ns;
            state.hold_ns = if relapsed { 2 * state.hold_ns } else { self.settings.hold_ns };
            state.hold_ns = state.hold_ns.min(self.settings.hold_ns_max);
            self.judge(now_ns, path, Verdict::Sick(why));
        }
    }

    fn judge(&mut self, now_ns: u64, path: PathId, verdict: Verdict) {
        let before = self.paths[path].is_eager();
        let state = &mut self.paths[path];
        state.verdict = verdict;
        match verdict {
            Verdict::Healthy => state.score = 0,
            Verdict::Sick(_) => state.sick_ns = now_ns,
        }
        self.changes.push_back(Change { path, verdict });
        self.recount(now_ns, path, before);
    }

    /// Keeps the number of eagerly probed paths, and brings a path's next probe forward when it becomes one.
    fn recount(&mut self, now_ns: u64, path: PathId, before: bool) {
        let is_eager = self.paths[path].is_eager();
        if is_eager == before {
            return;
        }
        self.eager = if is_eager { self.eager + 1 } else { self.eager - 1 };
        let next_ns = now_ns + self.interval_ns(path);
        let state = &mut self.paths[path];
        if next_ns < state.next_ns && self.due.remove(&(state.next_ns, path)) {
            state.next_ns = next_ns;
            self.due.insert((next_ns, path));
        }
    }

    fn is_late(&self, path: PathId, round_trip_ns: u64) -> bool {
        if round_trip_ns < self.settings.late_ns {
            return false;
        }
        let group = self.paths[path].group;
        let others = self
            .paths
            .iter()
            .enumerate()
            .filter(|(id, other)| *id != path && other.group == group && other.verdict == Verdict::Healthy);
        let best = others.filter_map(|(_, other)| other.round_trip_ns).min();
        best.is_some_and(|best| round_trip_ns > (4 * best).max(best + self.settings.late_ns))
    }
}

impl Path {
    fn is_eager(&self) -> bool {
        self.activity == Activity::Active || self.verdict != Verdict::Healthy
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const MS: u64 = 1_000_000;

    /// One active path whose probes are lost with this chance, from `from_ns` on until `until_ns`.
    struct World {
        health: Health,
        now_ns: u64,
        random: u64,
        flying: BTreeSet<(u64, PathId, u32)>,
        changes: Vec<(u64, Change)>,
        sent: Vec<u64>,
    }

    impl World {
        fn new(groups: &[usize], seed: u64) -> Self {
            Self {
                health: Health::new(Settings::default(), groups, 0),
                now_ns: 0,
                random: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1,
                flying: BTreeSet::new(),
                changes: Vec::new(),
                sent: Vec::new(),
            }
        }

        fn below(&mut self, bound: u64) -> u64 {
            self.random ^= self.random << 13;
            self.random ^= self.random >> 7;
            self.random ^= self.random << 17;
            (self.random >> 20) % bound
        }

        /// Lets time pass; `fate(path)` is the chance of loss per million and how long a probe takes.
        fn pass(&mut self, span_ns: u64, fate: impl Fn(PathId) -> (u64, u64)) {
            self.pass_in_steps(span_ns, MS / 4, fate);
        }

        /// The same for a watcher that gets its processor only so often.
        fn pass_in_steps(&mut self, span_ns: u64, step_ns: u64, fate: impl Fn(PathId) -> (u64, u64)) {
            let end_ns = self.now_ns + span_ns;
            while self.now_ns < end_ns {
                let looked_ns = self.now_ns.saturating_sub(step_ns);
                while let Some((at, path, sequence)) =
                    self.flying.first().copied().filter(|(at, ..)| *at <= self.now_ns)
                {
                    self.flying.remove(&(at, path, sequence));
                    self.health.handle_reply(self.now_ns, looked_ns, path, sequence);
                }
                while let Some(probe) = self.health.poll_probe(self.now_ns) {
                    self.sent.push(self.now_ns);
                    let (loss_ppm, takes_ns) = fate(probe.path);
                    if self.below(1_000_000) >= loss_ppm {
                        let jitter = self.below(takes_ns / 4 + 1);
                        self.flying.insert((self.now_ns + takes_ns + jitter, probe.path, probe.sequence));
                    }
                }
                while let Some(change) = self.health.poll_change() {
                    self.changes.push((self.now_ns, change));
                }
                self.now_ns += step_ns;
            }
        }
    }

    fn settled(groups: &[usize], seed: u64) -> World {
        let mut world = World::new(groups, seed);
        world.health.set_activity(0, 0, Activity::Active);
        world.pass(1000 * MS, |_| (0, MS / 5));
        assert_eq!(world.changes, [], "seed {seed}");
        world
    }

    #[test]
    fn a_verdict_on_the_last_path_does_not_send_traffic_back_to_a_dead_one() {
        let mut world = World::new(&[0, 0, 1], 5);
        let dead = |path| (if path == 0 { 1_000_000 } else { 0 }, MS / 4);
        world.pass(500 * MS, |_| (0, MS / 4));
        assert_eq!(world.health.fit(), [true; 3]);
        world.pass(1000 * MS, dead);
        assert_eq!(world.health.fit(), [false, true, true]);
        // Nobody there has a processor: the other path is found silent too.
        world.pass(1000 * MS, |path| (if path < 2 { 1_000_000 } else { 0 }, MS / 4));
        assert_eq!(world.health.verdict(1), Verdict::Sick(Why::Silent));
        assert_eq!(world.health.fit(), [false, true, true], "what fell last is kept");
        world.pass(2000 * MS, |path| (if path == 1 { 1_000_000 } else { 0 }, MS / 4));
        assert_eq!(world.health.fit(), [true, false, true], "what heals first is taken");
    }

    #[test]
    fn silence_is_noticed_at_once_and_so_is_healing() {
        for seed in 1..=50 {
            let mut world = settled(&[0, 0], seed);
            world.pass(2000 * MS, |path| if path == 0 { (1_000_000, MS / 5) } else { (0, MS / 5) });
            let [(at, change)] = world.changes[..] else { panic!("seed {seed}: {:?}", world.changes) };
            assert_eq!(change, Change { path: 0, verdict: Verdict::Sick(Why::Silent) });
            assert!(at <= 1025 * MS, "seed {seed}: after {} us", (at - 1000 * MS) / 1000);
            world.pass(1000 * MS, |_| (0, MS / 5));
            let (at, change) = world.changes[1];
            assert_eq!(change, Change { path: 0, verdict: Verdict::Healthy });
            assert!((3500 * MS..3600 * MS).contains(&at), "seed {seed}: {at}");
        }
    }

    #[test]
    fn loss_is_noticed_the_sooner_the_more_and_chance_is_forgiven() {
        // Loss, within, of a hundred runs at least so many.
        for (loss_ppm, within_ms, least) in [(200_000, 100, 95), (100_000, 200, 95), (20_000, 2000, 95)] {
            let noticed = (1..=100).filter(|seed| {
                let mut world = settled(&[0], *seed);
                world.pass(within_ms * MS, |_| (loss_ppm, MS / 5));
                !world.changes.is_empty()
            });
            let noticed = noticed.count();
            assert!(noticed >= least, "{loss_ppm} ppm: {noticed} of 100 runs within {within_ms} ms");
        }
        for seed in 1..=20 {
            let mut world = settled(&[0], seed);
            world.pass(20_000 * MS, |_| (200, MS / 5));
            assert_eq!(world.changes, [], "seed {seed}: two lost of ten thousand");
        }
    }

    #[test]
    fn a_warning_makes_the_next_loss_a_verdict_and_is_none_itself() {
        // How long after one end the other leaves a path that loses one probe in five there and back.
        let lag_ms = |seed: u64, warns: bool| {
            let mut ends = [settled(&[0], seed), settled(&[0], seed + 1000)];
            for ms in 0..2000 {
                ends.iter_mut().for_each(|end| end.pass(MS, |_| (200_000, MS / 5)));
                let left: Vec<bool> = ends.iter().map(|end| !end.changes.is_empty()).collect();
                if left == [true, true] {
                    let [first, second] = ends.each_ref().map(|end| end.changes[0].0);
                    return first.abs_diff(second) / MS;
                }
                if warns && left[0] != left[1] {
                    // Repeats change nothing.
                    ends.iter_mut().for_each(|end| end.health.handle_warning(0));
                }
                assert!(ms < 1999, "seed {seed}: not left");
            }
            unreachable!()
        };
        let sum = |warns| (1..=100).map(|seed| lag_ms(seed, warns)).sum::<u64>();
        let (alone, warned) = (sum(false), sum(true));
        assert!(4 * warned <= 3 * alone, "{warned} ms after the other end on the whole, {alone} ms without a warning");

        let mut sound = settled(&[0, 0], 1);
        for _ in 0..100 {
            sound.health.handle_warning(0);
            sound.health.handle_warning(7);
            sound.pass(20 * MS, |_| (0, MS / 5));
        }
        assert_eq!(sound.changes, [], "hearsay alone");
    }

    #[test]
    fn a_gray_path_is_not_taken_back_over_and_over() {
        for seed in 1..=10 {
            let mut world = settled(&[0, 0], seed);
            world.pass(60_000 * MS, |path| if path == 0 { (20_000, MS / 5) } else { (0, MS / 5) });
            let back = world.changes.iter().filter(|(_, change)| change.verdict == Verdict::Healthy).count();
            assert!(back <= 4, "seed {seed}: back {back} times in a minute: {:?}", world.changes);
        }
    }

    #[test]
    fn long_queues_alone_are_no_verdict_but_a_much_slower_path_is() {
        let mut world = settled(&[0, 0], 1);
        world.health.set_activity(world.now_ns, 1, Activity::Active);
        world.pass(3000 * MS, |_| (0, 100 * MS));
        assert!(
            !world.changes.iter().any(|(_, change)| change.verdict == Verdict::Sick(Why::Late)),
            "{:?}",
            world.changes
        );
        let mut world = settled(&[0, 0], 2);
        world.health.set_activity(world.now_ns, 1, Activity::Active);
        for step in 0..20 {
            world.pass(50 * MS, |path| (0, if path == 0 { MS * (1 + 4 * step) } else { MS / 5 }));
        }
        assert_eq!(
            world.changes.first().map(|(_, change)| *change),
            Some(Change { path: 0, verdict: Verdict::Sick(Why::Late) })
        );
    }

    #[test]
    fn a_watcher_that_waits_for_its_processor_blames_no_path() {
        for seed in 1..=50 {
            for step_ms in [10, 25, 60] {
                let mut world = settled(&[0, 0], seed);
                // Longer than silence, and as late as queues would be; once in a while a probe is lost, too.
                world.pass_in_steps(4000 * MS, step_ms * MS, |_| (500, MS / 5));
                assert_eq!(world.changes, [], "seed {seed}, once in {step_ms} ms");
                world.pass_in_steps(2000 * MS, step_ms * MS, |path| (if path == 0 { 1_000_000 } else { 0 }, MS / 5));
                let [(at, change)] = world.changes[..] else { panic!("seed {seed}: {:?}", world.changes) };
                assert_eq!(change, Change { path: 0, verdict: Verdict::Sick(Why::Silent) });
                assert!(at <= (5000 + 7 * step_ms + 25) * MS, "seed {seed}: after {} ms", at / MS - 5000);
            }
        }
    }

    #[test]
    fn a_queue_that_fills_is_no_silence() {
        for seed in 1..=20 {
            let mut world = settled(&[0, 0], seed);
            for round in 0..100 {
                // Four times as much comes as the path carries: replies are ever further apart, up to a full queue.
                world.pass(2 * MS, |path| (0, if path == 0 { MS / 5 + (6 * round).min(100) * MS } else { MS / 5 }));
            }
            let silent = |change: &(u64, Change)| change.1.verdict == Verdict::Sick(Why::Silent);
            assert!(!world.changes.iter().any(silent), "seed {seed}: {:?}", world.changes);
        }
    }

    proptest! {
        #[test]
        fn probes_are_bounded_and_lossless_paths_stay_healthy(paths in 1_usize..400, active in 0_usize..400, seed in 1_u64..1000) {
            let mut world = World::new(&(0..paths).map(|path| path / 4).collect::<Vec<_>>(), seed);
            for path in 0..active.min(paths) {
                world.health.set_activity(0, path, Activity::Active);
            }
            world.pass(2000 * MS, |_| (0, MS / 5));
            prop_assert_eq!(&world.changes, &[]);
            let last_second = world.sent.iter().filter(|at| **at >= 1000 * MS).count();
            prop_assert!(last_second <= 2100, "{} probes of a second", last_second);
        }

        #[test]
        fn any_replies_are_taken(events in proptest::collection::vec((0_u64..50, 0_usize..5, 0_u32..40), 0..300)) {
            let mut health = Health::new(Settings::default(), &[0, 0, 1], 0);
            let mut now_ns = 0;
            for (span, path, sequence) in events {
                now_ns += span * MS;
                while health.poll_probe(now_ns).is_some() {}
                health.handle_reply(now_ns, now_ns, path, sequence);
                health.set_activity(now_ns, path % 3, if sequence % 2 == 0 { Activity::Active } else { Activity::Idle });
                let eager = health.paths.iter().filter(|path| path.is_eager()).count();
                prop_assert_eq!(eager, health.eager);
                prop_assert_eq!(health.due.len(), 3);
            }
        }
    }
}
