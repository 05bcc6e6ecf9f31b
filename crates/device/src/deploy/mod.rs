//! Brings a whole fabric from the state it is in to the state that a plan wants, and back if anything goes wrong.
//!
//! ```text
//!   survey ─ claim ─ record ─ drain ─ save drained ─ configure ─ read back ─ judge ─ open ─ confirm ─ save
//!                               └────────────────── any fault ──────────────────┘
//!   survey ◀ drain ◀ configure ◀ read back ◀ open ◀ save                       (back to what was recorded)
//! ```
//! A half-configured fabric storms, so no two switches with open ports ever hold different states: ports are shut on all
//! of them before the first is configured, and opened only when all have been read back and judged. What a switch
//! restarts with is the drained state from before the first change until after the last, so that a restart in the
//! middle opens nothing. On the way back a switch that does not answer is left out, with its neighbours' ports toward
//! it shut. Every write names the fence that was read before it: a switch that has restarted, or that somebody else has
//! written to, refuses, and is read again before anything else happens to it.
//!
//! A change under traffic is a list of states for each switch of which every mixture is known to be free of loops (fill,
//! flip, free); its stages replace drain, configure and open, and the way back takes them in reverse.
//!
//! A controller that dies leaves a journal, once anything but marks has been written. Its mark is remembered before the
//! first switch bears it, so that one that dies while it claims is no stranger to its own folder afterwards.
//!
//! The deployment does nothing itself. Take [`Deployment::poll_request`] until it returns none, carry the requests out
//! in any order, hand each answer to [`Deployment::handle_reply`], and go on until there is an [`Outcome`].
//! Source of the order of writes: \[Eicker\]; of marks and fences: leases with fencing tokens, and RFC 3418's advisory lock.

mod edit;
mod goal;
mod mark;
mod message;
mod park;
mod run;

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::Arc,
    time::Duration,
};

use fabric::{Attachment, SwitchId, Topology};

pub(crate) use self::park::{in_the_way, without_others};
pub use self::{
    edit::{Edit, edits},
    goal::{Management, ManagementForm, far_first},
    mark::{Mark, NoMark},
    message::{Direction, Event, Fault, Fence, Journal, Outcome, Reading, Reason, Reply, Request, Stage},
    run::{Driver, Surroundings, run},
};
use crate::{SpanningTree, SwitchConfig, observe::drift};

/// How often a deployment reads everything again because somebody wrote while it claimed the switches.
pub const CLAIMS_MAX: usize = 20;
/// How often the way back is tried for switches that failed on it.
pub const RETURNS_MAX: usize = 3;
/// How often switches are set up again that restarted while the others opened their ports.
pub const MENDS_MAX: usize = 3;

/// What is to be deployed.
#[derive(Clone, Debug)]
pub struct Order {
    /// `goals[switch]`: what each switch is to hold in the end.
    pub goals: Vec<SwitchConfig>,
    /// How it gets there.
    pub way: Way,
    /// The plan's digest, its first four bytes.
    pub digest: u32,
    /// Drawn anew for every deployment.
    pub nonce: u32,
    /// The newest generation that this controller knows of: a switch with a newer one was set up by somebody else since,
    /// so the plan is stale. None takes over whatever is there.
    pub generation: Option<u32>,
    /// Marks that this controller may have left since, and died.
    pub claims: Vec<Mark>,
    /// What an interrupted deployment left.
    pub resume: Option<Journal>,
    /// How the controller reaches the switches.
    pub management: Management,
    /// How long a switch may be cut off after a change before it takes the change back by itself, where management is in
    /// band and the switch can.
    pub guard: Option<Duration>,
    /// The order in which switches are written in every stage: farthest from the controller first.
    pub sequence: Vec<SwitchId>,
    /// Most switches with a request open at once.
    pub parallel_max: usize,
}

/// How a fabric gets from one state to another.
#[derive(Clone, Debug)]
pub enum Way {
    /// With its ports shut.
    Drained,
    /// Under traffic, from a state that all switches must be found in.
    Live {
        /// `start[switch]`.
        start: Vec<SwitchConfig>,
        /// `stages[stage]` holds what switches that change in it hold after it.
        stages: Vec<BTreeMap<SwitchId, SwitchConfig>>,
    },
    /// Only back to what an interrupted deployment found.
    Undo,
}

/// A deployment on its way.
pub struct Deployment {
    order: Order,
    mark: Mark,
    /// `facing[switch][port]`: the switch at the other end of the port's cable, of ports that the topology knows.
    facing: Vec<Vec<Option<SwitchId>>>,
    goals: Vec<Arc<SwitchConfig>>,
    known: Vec<Option<Known>>,
    backup: Vec<Arc<SwitchConfig>>,
    direction: Direction,
    legs: VecDeque<Leg>,
    leg: Leg,
    waiting: VecDeque<SwitchId>,
    open: BTreeSet<SwitchId>,
    /// A request that concerns no single switch: to be sent, or sent.
    common: Common,
    faults: Vec<(SwitchId, Fault)>,
    reason: Option<Reason>,
    /// Switches given up, and why: on the way back, or when mended.
    lost: BTreeMap<SwitchId, Fault>,
    /// Switches that need no draining, since they hold what this direction leads to.
    settled: BTreeSet<SwitchId>,
    unsaved: Vec<(SwitchId, Fault)>,
    claims: usize,
    returns: usize,
    mends: usize,
    stages_done: usize,
    interrupted: bool,
    events: VecDeque<Event>,
    outcome: Option<Outcome>,
}

/// What a switch is believed to hold.
#[derive(Clone, Debug)]
struct Known {
    config: Arc<SwitchConfig>,
    mark: Option<Mark>,
    fence: Fence,
}

/// One stage, and what it does to switches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Leg {
    Read(Stage),
    /// Remembers the mark that is to be left.
    Note,
    Claim,
    Record(Stage),
    /// Writes the goal of this stage.
    Write(Stage),
    Save(Stage),
    Judge,
    End,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Common {
    None,
    Due,
    Sent,
}

impl Leg {
    fn stage(self) -> Stage {
        match self {
            Self::Read(stage) | Self::Record(stage) | Self::Write(stage) | Self::Save(stage) => stage,
            Self::Note | Self::Claim => Stage::Claim,
            Self::Judge | Self::End => Stage::Judge,
        }
    }
}

impl Deployment {
    /// Prepares a deployment; nothing happens before requests are polled.
    ///
    /// # Panics
    /// If there is not one goal a switch with one port state a port, those that the topology does not know behind the
    /// others, or `sequence` does not name every switch once.
    pub fn new(topology: &Topology, order: Order) -> Self {
        let switches = topology.switches().len();
        assert_eq!(order.goals.len(), switches, "a goal for every switch");
        let named: BTreeSet<SwitchId> = order.sequence.iter().copied().collect();
        assert!(named.len() == switches && order.sequence.len() == switches, "every switch once");
        let facing = topology.switch_ids().map(|switch| {
            let far = |port| match topology.port(port).attachment {
                Attachment::Link(link) => {
                    let link = topology.link(link);
                    let other = if link.a == port { link.b } else { link.a };
                    Some(topology.port(other).switch)
                }
                Attachment::Host(_) | Attachment::Nothing => None,
            };
            topology.port_ids(switch).map(far).collect::<Vec<_>>()
        });
        let facing: Vec<Vec<Option<SwitchId>>> = facing.collect();
        for (ports, goal) in facing.iter().zip(&order.goals) {
            assert!(ports.len() <= goal.ports.len(), "a state for every port");
        }
        let goals = order.goals.iter().zip(topology.switch_ids()).map(|(goal, switch)| {
            let mut goal = goal.clone();
            order.management.overlay(switch, &mut goal);
            Arc::new(goal)
        });
        let mut deployment = Self {
            mark: order.resume.as_ref().map_or(
                Mark { generation: 0, nonce: order.nonce, digest: order.digest },
                |journal| Mark { digest: order.digest, ..journal.mark },
            ),
            goals: goals.collect(),
            facing,
            known: vec![None; switches],
            backup: order.resume.as_ref().map(|journal| journal.backup.clone()).unwrap_or_default(),
            direction: Direction::Forward,
            legs: VecDeque::new(),
            leg: Leg::End,
            waiting: VecDeque::new(),
            open: BTreeSet::new(),
            common: Common::None,
            faults: Vec::new(),
            reason: None,
            lost: BTreeMap::new(),
            settled: BTreeSet::new(),
            unsaved: Vec::new(),
            claims: 0,
            returns: 0,
            mends: 0,
            stages_done: order.resume.as_ref().map_or(0, |journal| journal.stages_done),
            interrupted: false,
            events: VecDeque::new(),
            outcome: None,
            order,
        };
        deployment.legs = deployment.forward();
        deployment.next_leg();
        deployment
    }

    /// The next thing to do; none while answers are awaited, or at the end.
    pub fn poll_request(&mut self) -> Option<Request> {
        loop {
            if self.outcome.is_some() {
                return None;
            }
            if self.common == Common::Due {
                self.common = Common::Sent;
                return Some(self.common_request());
            }
            if self.common == Common::Sent {
                return None;
            }
            if self.interrupted && self.direction == Direction::Forward && self.can_turn() {
                self.waiting.clear();
            }
            while self.open.len() < self.order.parallel_max.max(1) {
                let Some(switch) = self.waiting.pop_front() else { break };
                if let Some(request) = self.request(switch) {
                    self.open.insert(switch);
                    return Some(request);
                }
                self.events.push_back(Event::Done(self.leg.stage(), switch));
            }
            if !self.open.is_empty() {
                return None;
            }
            self.finish_leg();
        }
    }

    /// Takes an answer. Answers that nobody asked for are ignored.
    pub fn handle_reply(&mut self, reply: Reply) {
        match reply {
            Reply::Judged(verdict) => {
                if self.leg == Leg::Judge && std::mem::replace(&mut self.common, Common::None) == Common::Sent {
                    match verdict {
                        Ok(()) => self.next_leg(),
                        Err(unfit) => self.turn(Reason::Unfit(unfit)),
                    }
                }
            }
            Reply::Recorded(result) => {
                let asked = matches!(self.leg, Leg::Note | Leg::Record(_));
                if asked && std::mem::replace(&mut self.common, Common::None) == Common::Sent {
                    match result {
                        Ok(()) => self.next_leg(),
                        Err(error) => self.turn(Reason::NoJournal(error)),
                    }
                }
            }
            Reply::Read(switch, result) if self.open.remove(&switch) => match result {
                Ok(Reading { mut config, mark, fence }) => {
                    config.take_learning_of(&self.goals[switch.index()]);
                    let known = Known { config: Arc::new(config), mark, fence };
                    let expected = self.known[switch.index()].replace(known);
                    self.read(switch, expected);
                }
                Err(fault) => self.fail(switch, fault),
            },
            Reply::Written(switch, result) if self.open.remove(&switch) => match result {
                Ok(fence) => {
                    let config = match self.leg {
                        Leg::Write(stage) => self.goal(stage, switch),
                        _ => Arc::clone(&self.known_of(switch).config),
                    };
                    self.known[switch.index()] = Some(Known { config, mark: Some(self.mark), fence });
                    self.done(switch);
                }
                Err(fault) => self.fail(switch, fault),
            },
            Reply::Saved(switch, result) if self.open.remove(&switch) => match result {
                Ok(fence) => {
                    if let Some(known) = &mut self.known[switch.index()] {
                        known.fence = fence;
                    }
                    self.done(switch);
                }
                Err(fault) => self.fail(switch, fault),
            },
            Reply::Read(..) | Reply::Written(..) | Reply::Saved(..) => {}
        }
    }

    /// Stops as soon as that is safe: what has been changed is taken back. On the way back, and once ports are open, it
    /// has no effect.
    pub fn handle_interrupt(&mut self) {
        self.interrupted = true;
    }

    /// The next thing worth telling a person.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// How it ended, once it has.
    pub fn outcome(&self) -> Option<&Outcome> {
        self.outcome.as_ref()
    }

    /// The mark that it may have left on switches, unless one of somebody else's was found that goes before it. Whoever
    /// deploys next from the same folder has to know its generation for their own, however this one ended.
    pub fn mark_left(&self) -> Option<Mark> {
        let found = self.known.iter().flatten().filter_map(|known| known.mark).max();
        Some(self.mark).filter(|mark| mark.generation > 0 && found.is_none_or(|found| found <= *mark))
    }

    /// Requests that are open: switches of which no answer has come.
    pub fn awaited(&self) -> impl Iterator<Item = SwitchId> + '_ {
        self.open.iter().copied()
    }

    fn forward(&self) -> VecDeque<Leg> {
        let mut legs = vec![Leg::Read(Stage::Survey), Leg::Note, Leg::Claim];
        legs.extend([Leg::Read(Stage::Record), Leg::Record(Stage::Record)]);
        match &self.order.way {
            Way::Drained => legs.extend([
                Leg::Write(Stage::Drain),
                Leg::Read(Stage::ReadBack),
                Leg::Save(Stage::SaveDrained),
                Leg::Write(Stage::Configure),
                Leg::Read(Stage::ReadBack),
                Leg::Judge,
                Leg::Write(Stage::Open),
            ]),
            Way::Live { stages, .. } => {
                for stage in self.stages_done..stages.len() {
                    legs.extend([Leg::Record(Stage::Live(stage)), Leg::Write(Stage::Live(stage))]);
                    legs.push(Leg::Read(Stage::ReadBack));
                }
                legs.push(Leg::Judge);
            }
            Way::Undo => drop(legs.pop()),
        }
        if !matches!(self.order.way, Way::Undo) {
            legs.extend([Leg::Read(Stage::Confirm), Leg::Save(Stage::Save)]);
        }
        legs.push(Leg::End);
        legs.into()
    }

    fn back(&self) -> VecDeque<Leg> {
        let mut legs = vec![Leg::Read(Stage::Survey)];
        match &self.order.way {
            Way::Live { .. } => {
                legs.extend((0..self.stages_done).rev().map(|stage| Leg::Write(Stage::Live(stage))));
            }
            Way::Drained | Way::Undo => {
                legs.extend([Leg::Write(Stage::Drain), Leg::Read(Stage::ReadBack), Leg::Save(Stage::SaveDrained)]);
                legs.extend([Leg::Write(Stage::Configure), Leg::Read(Stage::ReadBack)]);
                if self.order.management != Management::OutOfBand {
                    // Management ports are open after a restart as well, and must then have the old spanning tree.
                    legs.push(Leg::Save(Stage::SaveDrained));
                }
            }
        }
        legs.extend([Leg::Write(Stage::Open), Leg::Read(Stage::Confirm), Leg::Save(Stage::Save), Leg::End]);
        legs.into()
    }

    /// Whether the way still leads back from here without harm: not once the new state is in service everywhere.
    fn can_turn(&self) -> bool {
        !matches!(self.leg, Leg::Read(Stage::Confirm) | Leg::Save(Stage::Save) | Leg::End)
    }

    fn next_leg(&mut self) {
        self.leg = self.legs.pop_front().unwrap_or(Leg::End);
        self.faults.clear();
        let lost = &self.lost;
        self.waiting.clear();
        match self.leg {
            Leg::Note | Leg::Record(_) | Leg::Judge => self.common = Common::Due,
            Leg::End => {}
            Leg::Read(_) | Leg::Claim | Leg::Write(_) | Leg::Save(_) => {
                self.waiting.extend(self.order.sequence.iter().filter(|switch| !lost.contains_key(*switch)));
            }
        }
        if !matches!(self.leg, Leg::End | Leg::Note) {
            let (stage, direction, switches) = (self.leg.stage(), self.direction, self.waiting.len());
            self.events.push_back(Event::Begun { stage, direction, switches });
        }
    }

    fn common_request(&self) -> Request {
        match self.leg {
            Leg::Judge => Request::Judge { devices: self.judged() },
            Leg::Note => Request::Note(self.mark),
            _ => Request::Record(Journal {
                mark: self.mark,
                stages_done: match self.leg {
                    Leg::Record(Stage::Live(stage)) => stage,
                    _ => 0,
                },
                backup: self.backup.clone(),
            }),
        }
    }

    /// What was read back, as it will be with open ports: whatever differs from the goal by more than being shut would
    /// have been a fault.
    fn judged(&self) -> Vec<Arc<SwitchConfig>> {
        let state = |(known, goal): (&Option<Known>, &Arc<SwitchConfig>)| {
            let mut config = known.as_ref().map_or_else(|| (**goal).clone(), |known| (*known.config).clone());
            for (port, goal) in config.ports.iter_mut().zip(&goal.ports) {
                port.admin = goal.admin;
                if matches!(self.order.management, Management::InBand { .. }) {
                    (port.tagged, port.untagged) = (goal.tagged.clone(), goal.untagged.clone());
                    port.pvid = goal.pvid;
                }
            }
            Arc::new(config)
        };
        self.known.iter().zip(&self.goals).map(state).collect()
    }

    /// The request that this leg has for a switch, if it needs any.
    fn request(&self, switch: SwitchId) -> Option<Request> {
        match self.leg {
            Leg::Read(_) => Some(Request::Read { switch }),
            Leg::Claim => {
                let Known { config, fence, mark } = self.known_of(switch).clone();
                let (before, after) = (Arc::clone(&config), config);
                let guard = self.guard();
                // A switch that waits for an earlier controller must not go back any more.
                let due = mark != Some(self.mark) || guard.is_some();
                due.then_some(Request::Write { switch, before, after, mark: self.mark, fence, guard })
            }
            Leg::Write(stage) => {
                let Known { config: before, fence, .. } = self.known_of(switch).clone();
                let after = self.goal(stage, switch);
                let guard = self.guard();
                (before != after).then_some(Request::Write { switch, before, after, mark: self.mark, fence, guard })
            }
            Leg::Save(_) => Some(Request::Save { switch, fence: self.known_of(switch).fence }),
            Leg::Note | Leg::Record(_) | Leg::Judge | Leg::End => None,
        }
    }

    fn guard(&self) -> Option<Duration> {
        self.order.guard.filter(|_| self.order.management != Management::OutOfBand)
    }

    fn known_of(&self, switch: SwitchId) -> &Known {
        self.known[switch.index()].as_ref().expect("a switch is read before it is written")
    }

    /// What a switch holds after a stage of writing.
    fn goal(&self, stage: Stage, switch: SwitchId) -> Arc<SwitchConfig> {
        let index = switch.index();
        let known = || &self.known_of(switch).config;
        let back = self.direction == Direction::Back;
        match stage {
            Stage::Drain if self.settled.contains(&switch) => Arc::clone(known()),
            Stage::Configure if self.settled.contains(&switch) => Arc::clone(known()),
            Stage::Drain => Arc::new(self.order.management.shut(switch, known())),
            Stage::Configure => {
                let version = if back { &self.backup[index] } else { &self.goals[index] };
                Arc::new(self.order.management.shut(switch, version))
            }
            Stage::Live(stage) => match &self.order.way {
                Way::Live { stages, .. } => {
                    let reached = stages[..=stage].iter().rev().find_map(|stage| stage.get(&switch));
                    reached.map_or_else(|| Arc::clone(&self.backup[index]), |config| Arc::new(config.clone()))
                }
                Way::Drained | Way::Undo => Arc::clone(known()),
            },
            Stage::Open if back => Arc::new(self.restored(switch)),
            _ => Arc::clone(&self.goals[index]),
        }
    }

    /// What a switch held before, less ports toward switches that could not be brought back.
    fn restored(&self, switch: SwitchId) -> SwitchConfig {
        let backup = &self.backup[switch.index()];
        if self.lost.is_empty() || matches!(self.order.way, Way::Live { .. }) {
            return (**backup).clone();
        }
        let shut = self.order.management.shut(switch, backup);
        let in_band = self.order.management != Management::OutOfBand;
        if in_band && backup.spanning_tree == SpanningTree::On {
            // A lost switch may have its spanning tree off, and its management ports are open.
            return shut;
        }
        let mut restored = (**backup).clone();
        let facing = &self.facing[switch.index()];
        for (at, (port, shut)) in restored.ports.iter_mut().zip(shut.ports).enumerate() {
            // Nobody knows where a port leads that no plan names.
            let may_be_lost = facing.get(at).is_none_or(|far| far.is_some_and(|far| self.lost.contains_key(&far)));
            if may_be_lost {
                *port = shut;
            }
        }
        restored
    }

    fn done(&mut self, switch: SwitchId) {
        self.events.push_back(Event::Done(self.leg.stage(), switch));
    }

    fn fail(&mut self, switch: SwitchId, fault: Fault) {
        self.events.push_back(Event::Failed(self.leg.stage(), switch, fault.clone()));
        self.faults.push((switch, fault));
    }

    /// Judges a fresh reading against what the switch was believed to hold.
    fn read(&mut self, switch: SwitchId, expected: Option<Known>) {
        let known = self.known_of(switch).clone();
        if let Some(found) = known.mark.filter(|found| *found > self.mark && self.mark.generation > 0) {
            let resuming =
                self.leg == Leg::Read(Stage::Survey) && self.claims == 0 && self.direction == Direction::Forward;
            self.outcome.get_or_insert(match resuming {
                true => Outcome::Stale { switch, found },
                false => Outcome::Superseded { switch, by: found },
            });
            return;
        }
        let compared = matches!(self.leg, Leg::Read(Stage::ReadBack | Stage::Confirm));
        match expected.filter(|expected| compared && expected.config != known.config) {
            Some(expected) => self.fail(switch, Fault::Differs(first_difference(&expected.config, &known.config))),
            None => self.done(switch),
        }
    }

    fn finish_leg(&mut self) {
        match self.direction {
            Direction::Back => self.finish_leg_back(),
            Direction::Forward if self.mends > 0 => self.finish_leg_of_mending(),
            Direction::Forward if self.interrupted && self.can_turn() => self.turn(Reason::Interrupted),
            Direction::Forward => self.finish_leg_forward(),
        }
    }

    fn finish_leg_forward(&mut self) {
        let faults = std::mem::take(&mut self.faults);
        match self.leg {
            // Somebody wrote since the survey; if that was a deployment of a higher mark, the next survey tells.
            Leg::Claim if faults.iter().any(|(_, fault)| *fault == Fault::Fenced) && self.claims < CLAIMS_MAX => {
                self.claims += 1;
                self.legs = self.forward();
            }
            Leg::Read(Stage::Confirm) if !faults.is_empty() => return self.mend(faults),
            Leg::Save(Stage::Save) => self.unsaved = faults,
            _ if !faults.is_empty() => return self.turn(Reason::Faults(self.leg.stage(), faults)),
            Leg::Read(Stage::Survey) => self.survey(),
            Leg::Read(Stage::Record) if self.backup.is_empty() => {
                self.backup = self.known.iter().flatten().map(|known| Arc::clone(&known.config)).collect();
                if let Some(reason) = self.elsewhere() {
                    return self.turn(reason);
                }
            }
            Leg::Write(Stage::Live(stage)) => self.stages_done = stage + 1,
            Leg::End if matches!(self.order.way, Way::Undo) => return self.turn(Reason::Interrupted),
            Leg::End => self.deployed(),
            _ => {}
        }
        self.next_leg();
    }

    /// A switch that a change under traffic does not begin where it must: steps are safe from there alone.
    fn elsewhere(&self) -> Option<Reason> {
        let Way::Live { start, .. } = &self.order.way else { return None };
        self.order.sequence.iter().find_map(|&switch| {
            let (found, wanted) = (&self.known_of(switch).config, &start[switch.index()]);
            (**found != *wanted).then(|| Reason::Elsewhere(switch, first_difference(wanted, found)))
        })
    }

    /// A switch that the deployment would lose, since the way that is to stay is not there yet.
    fn no_way(&self) -> Option<Reason> {
        self.order.sequence.iter().find_map(|&switch| {
            let config = &self.known_of(switch).config;
            let slot = self.order.management.gap(switch, config)?;
            Some(Reason::NoWay(switch, config.port(slot).name.clone()))
        })
    }

    /// Draws conclusions from the marks and states that the switches were found with.
    fn survey(&mut self) {
        let marks = self.order.sequence.iter().filter_map(|&switch| Some((self.known_of(switch).mark?, switch)));
        let newest = marks.clone().max().map_or(0, |(mark, _)| mark.generation);
        let found = marks.filter(|(mark, _)| !self.order.claims.contains(mark)).max();
        let unchanged = || self.known.iter().flatten().zip(&self.goals).all(|(known, goal)| known.config == *goal);
        if self.mark.generation > 0 {
            return;
        }
        match found {
            Some((found, switch)) if self.order.generation.is_some_and(|known| known < found.generation) => {
                self.outcome = Some(Outcome::Stale { switch, found });
            }
            _ if !matches!(self.order.way, Way::Undo) && unchanged() => self.outcome = Some(Outcome::Unchanged),
            // Before a mark is left, so that whoever deploys next need not take over.
            _ => match self.elsewhere().or_else(|| self.no_way()).filter(|_| self.order.resume.is_none()) {
                Some(reason) => self.outcome = Some(Outcome::Refused(reason)),
                None => self.mark.generation = newest.saturating_add(1),
            },
        }
    }

    /// Goes through it once more for switches that do not hold what they should although the others are in service. They
    /// are drained, or were by their restart, so nothing is lost that was not already.
    fn mend(&mut self, faults: Vec<(SwitchId, Fault)>) {
        self.mends += 1;
        self.lost = faults.iter().filter(|(_, fault)| *fault == Fault::Silent).cloned().collect();
        let doubted: BTreeSet<SwitchId> = faults.iter().map(|(switch, _)| *switch).collect();
        self.settled = self.order.sequence.iter().filter(|switch| !doubted.contains(*switch)).copied().collect();
        self.legs = [
            Leg::Write(Stage::Drain),
            Leg::Read(Stage::ReadBack),
            Leg::Save(Stage::SaveDrained),
            Leg::Write(Stage::Configure),
            Leg::Read(Stage::ReadBack),
            Leg::Write(Stage::Open),
            Leg::Read(Stage::Confirm),
            Leg::Save(Stage::Save),
            Leg::End,
        ]
        .into();
        self.next_leg();
    }

    fn finish_leg_of_mending(&mut self) {
        let faults = std::mem::take(&mut self.faults);
        match self.leg {
            Leg::Read(Stage::Confirm) if !faults.is_empty() && self.mends < MENDS_MAX => return self.mend(faults),
            Leg::Save(Stage::Save) => self.unsaved = faults,
            Leg::End => self.deployed(),
            _ => self.lost.extend(faults),
        }
        self.next_leg();
    }

    fn deployed(&mut self) {
        let doubts = std::mem::take(&mut self.lost).into_iter().collect();
        self.outcome = Some(Outcome::Deployed { mark: self.mark, unsaved: std::mem::take(&mut self.unsaved), doubts });
    }

    fn turn(&mut self, reason: Reason) {
        let begun = !matches!(
            self.leg,
            Leg::Read(Stage::Survey | Stage::Record)
                | Leg::Note
                | Leg::Claim
                | Leg::Record(Stage::Record | Stage::Live(0))
        );
        if !begun {
            self.outcome = Some(Outcome::Refused(reason));
            return;
        }
        self.direction = Direction::Back;
        self.events.push_back(Event::Turned(reason.clone()));
        self.reason = Some(reason);
        self.legs = self.back();
        self.next_leg();
    }

    fn finish_leg_back(&mut self) {
        let faults = std::mem::take(&mut self.faults);
        match self.leg {
            Leg::Save(Stage::Save) => self.unsaved = faults,
            Leg::End => return self.finish_return(),
            _ => self.lost.extend(faults),
        }
        if self.leg == Leg::Read(Stage::Survey) {
            let management = &self.order.management;
            let holds_old = |switch: &SwitchId| {
                let (known, backup) = (&self.known_of(*switch).config, &self.backup[switch.index()]);
                management.shut(*switch, known) == management.shut(*switch, backup)
            };
            let reached = self.order.sequence.iter().filter(|switch| !self.lost.contains_key(*switch));
            self.settled = reached.copied().filter(holds_old).collect();
        }
        self.next_leg();
    }

    fn finish_return(&mut self) {
        if !self.lost.is_empty() && self.returns < RETURNS_MAX {
            self.returns += 1;
            self.lost.clear();
            self.legs = self.back();
            return self.next_leg();
        }
        let reason = self.reason.clone().unwrap_or(Reason::Interrupted);
        let unsaved = std::mem::take(&mut self.unsaved);
        self.outcome = Some(if self.lost.is_empty() {
            Outcome::RolledBack { reason, unsaved }
        } else {
            Outcome::Stranded { reason, lost: std::mem::take(&mut self.lost).into_iter().collect() }
        });
    }
}

/// Names the first thing in which a switch differs from what it was told.
fn first_difference(expected: &SwitchConfig, found: &SwitchConfig) -> String {
    drift(found, expected).first().map_or_else(String::new, |drift| drift.sentence(found))
}
