//! When to stop: time enters the planner only through here.

use fabric::{FlowControl, Policy, Tagging, Topology};

/// Tells engines that can go on improving when to stop, and is told how far they are.
pub trait Watch {
    /// Whether to stop; asked after every step of work. Once true it should stay true.
    fn expired(&mut self) -> bool;

    /// The best plan so far has this load on its busiest channel, and none can have less than `bound`; both in ordered
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
}

/// How many times as many steps trees take that are shared and must not close a circle.
const SHARED_FACTOR: u64 = 3;

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

    /// As many steps as a request takes: more than by size alone where trees are shared and must not close a circle.
    pub fn by_request(topology: &Topology, policy: &Policy) -> Self {
        let sources = topology.switch_ids().filter(|switch| !topology.hosts_of(*switch).is_empty()).count();
        let shared = policy.tagging == Tagging::Pair || policy.vlans_max.is_some_and(|most| most < sources);
        let factor = if shared && policy.flow_control != FlowControl::None { SHARED_FACTOR } else { 1 };
        Self::new(Self::by_size(topology).left * factor)
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

/// A watch that also stops after so many steps.
pub(crate) struct Shortened<'a> {
    pub(crate) watch: &'a mut dyn Watch,
    pub(crate) steps: StepLimit,
}

impl Watch for Shortened<'_> {
    fn expired(&mut self) -> bool {
        self.steps.expired() || self.watch.expired()
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
