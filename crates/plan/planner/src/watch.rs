//! When to stop: time enters the planner only through here.

use fabric::{EngineName, FdbMode, FlowControl, HostId, Policy, Tagging, Topology, graph::breadth_first};

use crate::{SearchEvent, SearchPart, rivals::rivals};

/// Tells engines that can go on improving when to stop, and is told how far they are.
pub trait Watch {
    /// Whether to stop; asked after every step of work. Once true it should stay true.
    fn expired(&mut self) -> bool;

    /// The best plan so far has this load on its most loaded channel, and none can have less than `bound`; both in ordered
    /// pairs of hosts, on the fastest rate where rates differ.
    fn progress(&mut self, load: f64, bound: f64);

    /// How many threads may work at the same time. Plans do not depend on it, but come sooner.
    fn threads(&self) -> usize {
        1
    }

    /// After how many more questions `expired` will be true, if questions are what it counts.
    fn steps_left(&self) -> u64 {
        u64::MAX
    }

    /// A part of the search to leave out, so that what it is worth can be measured. Always the same one.
    fn left_out(&self) -> Option<SearchPart> {
        None
    }

    /// What part of the time is over, 0 to 1; 0 where time does not count.
    fn time_spent(&self) -> f64 {
        0.0
    }

    /// The search has come this far.
    fn happened(&mut self, _event: &SearchEvent) {}
}

/// How many plans a request for several kinds of traffic takes, each for another sum of them.
pub(crate) const SUMS: u64 = 5;
/// How many plans with several paths a pair compete, where they must not close a cycle: which numbering of channels suits
/// permutations shows only afterwards.
const PATH_CANDIDATES: u64 = 3;
/// The same where there is a time limit, which is for them all.
const PATH_CANDIDATES_IN_TIME: u64 = 8;
/// How many times as many steps trees take that are shared and must not close a circle.
const SHARED_FACTOR: u64 = 3;
/// How many times as many steps it takes to find out how many trees fit into small tables.
const FITTING_FACTOR: u64 = 6;
/// How much more entries the fullest switch may take than the average one where all paths are shortest.
const FULLEST: f64 = 1.5;

/// Stops after so many steps: the same plan on every machine, however fast.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StepLimit {
    left: u64,
}

impl StepLimit {
    /// As many steps as `plan` takes: some milliseconds on a small fabric, up to some 30 s of one
    /// processor on a large one.
    pub fn by_size(topology: &Topology) -> Self {
        const MOST: u64 = 8000;
        // From so many switches on, annealing an order takes many more steps a switch.
        const LARGE: u64 = 500;
        let switches = topology.switches().len() as u64;
        let size = topology.channel_count() as u64 * switches;
        let most = 400 + 3 * switches + 8 * switches.saturating_sub(LARGE);
        Self::new((size / 128).clamp(8, most.min(MOST)))
    }

    /// As many steps as a request takes, with those of the stricter requests whose plans compete with its own.
    pub fn by_request(topology: &Topology, policy: &Policy) -> Self {
        let rivals = rivals(topology, policy);
        let steps = rivals.iter().map(|rival| Self::for_one(topology, rival).left);
        let of_a_sum = steps.fold(Self::for_one(topology, policy).left, u64::saturating_add);
        let sums = if policy.further_traffic.is_empty() { 1 } else { SUMS };
        Self::new(of_a_sum.saturating_mul(sums).saturating_mul(path_candidates(policy)))
    }

    /// As many steps as a request takes by itself: more than by size alone where trees are shared and must not close a
    /// circle, or where tables may be too small for a tree for every switch.
    pub(crate) fn for_one(topology: &Topology, policy: &Policy) -> Self {
        let sources = topology.switch_ids().filter(|switch| !topology.hosts_of(*switch).is_empty()).count();
        let shared = policy.tagging == Tagging::Pair || policy.vlans_max.is_some_and(|most| most < sources);
        let factor = match policy.engine {
            EngineName::Auto | EngineName::Balanced if tables_are_tight(topology, policy) => FITTING_FACTOR,
            _ if shared && policy.flow_control != FlowControl::None => SHARED_FACTOR,
            _ => 1,
        };
        Self::new(Self::by_size(topology).left * factor)
    }

    /// As few steps as make a plan that only shows whether there may be too much of something.
    pub const fn probe() -> Self {
        Self::new(2)
    }

    /// A part of these steps.
    pub(crate) const fn part(self, of: u64) -> Self {
        Self::new(self.left / of)
    }

    /// Allows so many steps.
    pub const fn new(steps: u64) -> Self {
        Self { left: steps }
    }
}

/// How many plans with several paths a pair compete.
pub(crate) fn path_candidates(policy: &Policy) -> u64 {
    let searches = matches!(policy.engine, EngineName::Auto | EngineName::Balanced);
    match policy.time_limit {
        _ if policy.paths_max <= 1 || policy.flow_control.lanes().is_none() || !searches => 1,
        Some(_) => PATH_CANDIDATES_IN_TIME,
        None => PATH_CANDIDATES,
    }
}

/// Whether a tree of shortest paths for every switch may take more entries than some switch holds.
/// Cost: O(switches · links) if some switch holds less than anything could take.
pub fn tables_are_tight(topology: &Topology, policy: &Policy) -> bool {
    let switches = topology.switches().len();
    let macs_of = |hosts: &[HostId]| hosts.iter().map(|host| topology.mac_room(*host, *host)).sum::<usize>();
    let macs: usize = topology.host_ids().map(|host| topology.mac_room(host, host)).sum();
    let Some(least) = topology.switches().iter().map(|switch| switch.model.static_entries_max).min() else {
        return false;
    };
    if policy.fdb == FdbMode::Learned || least >= macs.saturating_mul(switches) {
        return false;
    }
    if policy.fdb == FdbMode::Full {
        return true;
    }
    // A tree takes an entry for every address of a host on every switch on the way there.
    let mut entries = 0;
    for source in topology.switch_ids().filter(|switch| !topology.hosts_of(*switch).is_empty()) {
        let found = breadth_first(switches, [source], |switch| topology.neighbours(switch));
        for &switch in &found.order {
            let distance = found.distance(switch).map_or(0, |distance| distance as usize);
            entries += (distance + 1) * macs_of(topology.hosts_of(switch));
        }
    }
    entries as f64 / switches as f64 * FULLEST > least as f64
}

/// A watch that also stops after so many steps, or when a part of the time is over.
pub(crate) struct Shortened<'a> {
    watch: &'a mut dyn Watch,
    steps: StepLimit,
    /// What part of the time may be over, 0 to 1.
    until: f64,
}

impl<'a> Shortened<'a> {
    /// Stops after so many steps.
    pub(crate) fn new(watch: &'a mut dyn Watch, steps: StepLimit) -> Self {
        Self { watch, steps, until: 1.0 }
    }

    /// Stops after the first of so many equal parts of what is left, be it steps or time.
    pub(crate) fn first_part(watch: &'a mut dyn Watch, of: u64) -> Self {
        let (spent, left) = (watch.time_spent(), watch.steps_left());
        let steps = StepLimit::new(if left == u64::MAX { left } else { left / of });
        Self { watch, steps, until: spent + (1.0 - spent) / of as f64 }
    }
}

impl Watch for Shortened<'_> {
    fn expired(&mut self) -> bool {
        let out_of_time = self.until < 1.0 && self.watch.time_spent() >= self.until;
        self.steps.expired() || out_of_time || self.watch.expired()
    }

    fn progress(&mut self, load: f64, bound: f64) {
        self.watch.progress(load, bound);
    }

    fn threads(&self) -> usize {
        self.watch.threads()
    }

    fn steps_left(&self) -> u64 {
        self.steps.left.min(self.watch.steps_left())
    }

    fn left_out(&self) -> Option<SearchPart> {
        self.watch.left_out()
    }

    fn time_spent(&self) -> f64 {
        (self.watch.time_spent() / self.until).min(1.0)
    }

    fn happened(&mut self, event: &SearchEvent) {
        self.watch.happened(event);
    }
}

impl Watch for StepLimit {
    fn expired(&mut self) -> bool {
        let expired = self.left == 0;
        self.left = self.left.saturating_sub(1);
        expired
    }

    fn progress(&mut self, _load: f64, _bound: f64) {}

    fn steps_left(&self) -> u64 {
        self.left
    }
}
