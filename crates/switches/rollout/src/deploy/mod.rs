//! Brings a whole fabric from the state it is in to the state that a plan wants, and back if anything goes wrong.
//!
//! ```text
//!   survey ─ claim ─ record ─ drain ─ save drained ─ configure ─ read back ─ judge ─ open links ─ look ─ open hosts,
//!                               └────────────────── any fault ──────────────────┴──── look, group by group ─ confirm ─ save
//!   survey ◀ drain ◀ configure ◀ read back ◀ open links, look, open hosts ◀ save     (back to what was recorded)
//! ```
//! A half-configured fabric storms, so no two switches with open ports ever hold different states: ports are shut on all
//! of them before the first is configured, and opened only when all have been read back and judged. Frames come from hosts
//! alone, so cables between switches open first, and are looked at: hosts' ports open only once every cable leads where the
//! plan has it, a few before the rest, and floods are watched after each group. What a switch
//! restarts with is the drained state from before the first change until after the last, so that a restart in the
//! middle opens nothing. On the way back a switch that does not answer is left out, with its neighbours' ports toward
//! it shut. Every write names the fence that was read before it: a switch that has restarted, or that somebody else has
//! written to, refuses, and is read again before anything else happens to it.
//!
//! A change under traffic is a list of states for each switch of which every mixture is known to be free of loops (fill,
//! flip, free); its stages replace drain, configure and open, and the way back takes them in reverse. Between two stages of
//! switches, hosts that tag their own frames go from one state to the next: all of them, before the next switch is written.
//!
//! A controller that dies leaves a journal, once anything but marks has been written. Its mark is remembered before the
//! first switch bears it, so that one that dies while it claims is known to its own folder afterwards.
//!
//! The deployment does nothing itself. Take [`Deployment::poll_request`] until it returns none, carry the requests out
//! in any order, hand each answer to [`Deployment::handle_reply`], and go on until there is an [`Outcome`].
//! Source of the order of writes: \[Eicker\]; of marks and fences: leases with fencing tokens, and RFC 3418's advisory lock.

mod asking;
mod cables;
mod ends;
mod flood;
mod goal;
mod legs;
mod message;
mod moves;
mod order;
mod park;
mod run;
mod watch;

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::Arc,
    time::Duration,
};

use fabric::{Admin, Attachment, SwitchId, Topology};

use self::legs::{Leg, groups};
pub use self::{
    cables::{Cables, Comparison, FarEnd, LinkState, Misplaced, Unseen},
    flood::{Floods, Law, OWN_FRAMES_MAX, SURGES_MAX, Surge, WINDOW_MAX, Weather},
    goal::{Management, ManagementForm, far_first},
    message::{Direction, Event, Journal, Outcome, Reason, Reply, Stage, SwitchRequest},
    moves::{Flap, Moves, STORM_RETURNS},
    order::{CABLES_MAX, DeploymentSpec, LOOK_MAX, LOOK_MIN, LiveStage, Precedence, Watch, Way},
    run::{Surroundings, run},
};
use switch_model::{
    Slot, SwitchConfig,
    driver::{Fault, Fence, Reading},
    mark::Mark,
    sight::End,
};

/// How often a deployment reads everything again because somebody wrote while it claimed the switches.
pub const CLAIMS_MAX: usize = 20;
/// How often the way back is tried for switches that failed on it.
pub const RETURNS_MAX: usize = 3;
/// How often switches are set up again that restarted while the others opened their ports.
pub const MENDS_MAX: usize = 3;

/// A deployment on its way.
pub struct Deployment {
    order: DeploymentSpec,
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
    /// Ports that are no cables between switches, in the groups in which they open.
    groups: Vec<BTreeSet<End>>,
    /// Switches that another deployment was in the middle of: what they held before is not known here.
    under_way: BTreeMap<SwitchId, Mark>,
    /// The same as found by the survey, before what switches hold is recorded.
    others: BTreeMap<SwitchId, Mark>,
    look: watch::Looking,
    /// Ports whose cables lead elsewhere: on the way back they stay shut.
    misplaced: BTreeSet<Misplaced>,
    /// How a storm on the way back showed.
    quenched: Option<Reason>,
    now: Duration,
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

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Common {
    None,
    Due,
    Sent,
}

impl Deployment {
    /// Prepares a deployment; nothing happens before requests are polled.
    ///
    /// # Panics
    /// If there is not one goal a switch with one port state a port, those that the topology does not know behind the
    /// others, or `sequence` does not name every switch once.
    pub fn new(topology: &Topology, order: DeploymentSpec) -> Self {
        let switches = topology.switches().len();
        assert_eq!(order.goals.len(), switches, "a goal for every switch");
        let named: BTreeSet<SwitchId> = order.sequence.iter().copied().collect();
        assert!(named.len() == switches && order.sequence.len() == switches, "every switch once");
        let facing = topology.switch_ids().map(|switch| {
            // A member leads where its LAG does, and opens with it.
            let far = |port| match topology.port(topology.logical_port(port)).attachment {
                Attachment::Link(link) => {
                    let link = topology.link(link);
                    let ends = [link.a, link.b].map(|end| topology.port(end).switch);
                    Some(if ends[0] == switch { ends[1] } else { ends[0] })
                }
                Attachment::Host(_) | Attachment::Nothing | Attachment::Member(_) => None,
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
        let goals: Vec<Arc<SwitchConfig>> = goals.collect();
        let fresh = Mark::new(0, order.nonce, order.digest);
        let taken_up = order.resume.as_ref().filter(|_| order.precedence == Precedence::GiveWay);
        let mut deployment = Self {
            mark: taken_up.map_or(fresh, |journal| Mark { digest: order.digest, ..journal.mark }),
            groups: groups(hosts_of(&goals, &facing, &order.management)),
            under_way: order.resume.as_ref().map(|journal| journal.under_way.clone()).unwrap_or_default(),
            others: BTreeMap::new(),
            look: watch::Looking::new(&facing),
            misplaced: BTreeSet::new(),
            quenched: None,
            now: Duration::ZERO,
            goals,
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
            stages_done: order.resume.as_ref().and_then(|journal| journal.stages_done).unwrap_or(0),
            interrupted: false,
            events: VecDeque::new(),
            outcome: None,
            order,
        };
        deployment.legs = deployment.forward();
        deployment.next_leg();
        deployment
    }

    /// Takes what time it is, counted from any moment. It is asked for before requests are polled and replies handled;
    /// without it no time passes.
    pub fn handle_time(&mut self, now: Duration) {
        self.now = now;
    }

    /// The next thing to do; none while answers are awaited, or at the end.
    pub fn poll_request(&mut self) -> Option<SwitchRequest> {
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
                        Ok(()) => self.recorded(),
                        Err(error) if self.direction == Direction::Back => {
                            self.stop_on_the_way_back(&format!("the journal could not be written: {error}"));
                        }
                        Err(error) => self.turn(Reason::NoJournal(error)),
                    }
                }
            }
            Reply::Hosts(result) => {
                let asked = matches!(self.leg, Leg::Hosts(..));
                if asked && std::mem::replace(&mut self.common, Common::None) == Common::Sent {
                    match (result, self.direction) {
                        (Ok(()), _) => self.told_hosts(),
                        (Err(Reason::Hosts(why)), Direction::Back) => {
                            self.stop_on_the_way_back(&format!("hosts could not be told: {why}"));
                        }
                        (Err(_), Direction::Back) => self.stop_on_the_way_back("hosts were not told"),
                        (Err(reason), Direction::Forward) => self.turn(reason),
                    }
                }
            }
            Reply::Read(switch, result) if self.open.remove(&switch) => match result {
                Ok(Reading { mut config, mark, fence }) => {
                    config.take_unwritable_of(&self.goals[switch.index()]);
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
                    let mark = Some(self.mark.at(self.phase(self.leg, switch)));
                    self.known[switch.index()] = Some(Known { config, mark, fence });
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
            Reply::Looked(switch, result) if self.open.remove(&switch) => match result {
                Ok(sight) => {
                    self.look.take(switch, sight);
                    self.done(switch);
                }
                Err(fault) => self.fail(switch, fault),
            },
            Reply::Shut(switch, result) if self.open.remove(&switch) => match result {
                Ok(()) => self.done(switch),
                // It is shut with the others on the way back, if it answers.
                Err(fault) => self.events.push_back(Event::Failed(self.leg.stage(), switch, fault)),
            },
            Reply::Paused => {
                if std::mem::replace(&mut self.common, Common::None) == Common::Sent {
                    self.look_again();
                }
            }
            Reply::Read(..) | Reply::Written(..) | Reply::Saved(..) | Reply::Looked(..) | Reply::Shut(..) => {}
        }
    }

    /// Stops as soon as that is safe: what has been changed is taken back. On the way back, and once all ports are open,
    /// it has no effect; whether it has one.
    pub fn handle_interrupt(&mut self) -> bool {
        let turns = self.direction == Direction::Forward && self.can_turn();
        self.interrupted |= turns;
        turns
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

    /// Whether the way still leads back from here without harm: not once the new state is in service everywhere.
    fn can_turn(&self) -> bool {
        !matches!(self.leg, Leg::Read(Stage::Confirm) | Leg::Save(Stage::Save) | Leg::Look(legs::Look::Last) | Leg::End)
    }

    fn next_leg(&mut self) {
        if matches!(self.leg, Leg::Write(Stage::OpenLinks | Stage::Open(..) | Stage::Live(_))) {
            self.ports_opened();
        }
        self.leg = self.legs.pop_front().unwrap_or(Leg::End);
        self.faults.clear();
        self.waiting.clear();
        match self.leg {
            Leg::Note | Leg::Record(_) | Leg::Judge | Leg::Hosts(..) => self.common = Common::Due,
            Leg::End => {}
            Leg::Look(_) => self.begin_to_look(),
            Leg::Read(_) | Leg::Claim | Leg::Write(_) | Leg::Save(_) | Leg::Shut | Leg::Seal => self.ask_all(),
        }
        if !matches!(self.leg, Leg::End | Leg::Note | Leg::Seal) {
            let (stage, direction, switches) = (self.leg.stage(), self.direction, self.waiting.len());
            self.events.push_back(Event::Begun { stage, direction, switches });
        }
    }

    /// Has every switch asked that is not given up.
    fn ask_all(&mut self) {
        let lost = &self.lost;
        self.waiting.extend(self.order.sequence.iter().filter(|switch| !lost.contains_key(*switch)));
    }

    fn known_of(&self, switch: SwitchId) -> &Known {
        self.known[switch.index()].as_ref().expect("a switch is read before it is written")
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
        if let Some(found) = known.mark.filter(|found| found.is_later_than(self.mark) && self.mark.generation > 0) {
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
            Some(expected) => {
                self.fail(switch, Fault::Differs(ends::first_difference(&expected.config, &known.config)))
            }
            None => self.done(switch),
        }
    }
}

/// Ports that are to be in service and are no cables between switches: those from which frames may come.
fn hosts_of(goals: &[Arc<SwitchConfig>], facing: &[Vec<Option<SwitchId>>], management: &Management) -> Vec<End> {
    let of_switch = |(index, goal): (usize, &Arc<SwitchConfig>)| -> Vec<End> {
        let (switch, shut) = (SwitchId::new(index), management.shut(SwitchId::new(index), goal));
        let opens = |slot: &usize| {
            let between = facing[index].get(*slot).is_some_and(Option::is_some);
            !between && goal.ports[*slot].admin == Admin::Up && shut.ports[*slot].admin == Admin::Down
        };
        (0..goal.ports.len()).filter(opens).map(|slot| (switch, Slot::new(slot))).collect()
    };
    goals.iter().enumerate().flat_map(of_switch).collect()
}
