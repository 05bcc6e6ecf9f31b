//! Looking at cables and floods while ports open.
//!
//! ```text
//!   every switch is asked ─▶ a cable elsewhere, a storm ─▶ shut, back
//!        ▲                 ├▶ a cable not seen yet, a doubt ─ pause ─┐
//!        │                 └▶ all is well ─▶ on                      │
//!        └────────────────────────────────────────────────────────────┘  until it has taken too long
//! ```

use std::{collections::BTreeMap, time::Duration};

use fabric::{Admin, SwitchId};

use super::{
    Common, Comparison, Deployment, Event, FarEnd, Fault, Floods, LOOK_MAX, LOOK_MIN, Misplaced, Reason, Sight, Stage,
    WINDOW_MAX, Way, Weather,
    legs::{Leg, Look},
};
use crate::Slot;

/// Most cables that a person is told of at once.
const TOLD_MAX: usize = 6;
/// Windows after the last opening that show that nothing floods.
const WINDOWS_ENOUGH: usize = 2;
/// How long cables are awaited before a person is told.
const TELL_AFTER: Duration = Duration::from_secs(2);

/// What has been seen so far.
pub(super) struct Looking {
    /// `sights[switch]`: the present round's answers.
    sights: Vec<Option<Sight>>,
    floods: Floods,
    /// When the present leg began.
    began: Duration,
    /// When ports were last opened.
    opened: Duration,
    /// Windows that were over by then.
    windows_then: usize,
    pause: Duration,
    told_unwatched: Told,
    told_awaited: Told,
}

/// Whether a person knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Told {
    NotYet,
    Already,
}

impl Looking {
    /// `facing[switch][slot]`: the switch at the other end of a port's cable.
    pub(super) fn new(facing: &[Vec<Option<SwitchId>>]) -> Self {
        let between = facing.iter().enumerate().flat_map(|(index, far)| {
            let one =
                move |(slot, far): (usize, &Option<SwitchId>)| Some(((SwitchId::new(index), Slot::new(slot)), (*far)?));
            far.iter().enumerate().filter_map(one)
        });
        Self {
            sights: vec![None; facing.len()],
            floods: Floods::new(between.collect::<BTreeMap<_, _>>()),
            began: Duration::ZERO,
            opened: Duration::ZERO,
            windows_then: 0,
            pause: LOOK_MIN,
            told_unwatched: Told::NotYet,
            told_awaited: Told::NotYet,
        }
    }

    pub(super) fn take(&mut self, switch: SwitchId, sight: Sight) {
        self.sights[switch.index()] = Some(sight);
    }

    /// How long to wait before the next round.
    pub(super) fn pause(&self) -> Duration {
        self.pause
    }
}

impl Deployment {
    pub(super) fn ports_opened(&mut self) {
        (self.look.opened, self.look.windows_then) = (self.now, self.look.floods.windows());
    }

    pub(super) fn begin_to_look(&mut self) {
        (self.look.began, self.look.pause, self.look.told_awaited) = (self.now, LOOK_MIN, Told::NotYet);
        self.look_again();
    }

    /// Begins another round.
    pub(super) fn look_again(&mut self) {
        self.look.sights.fill(None);
        self.ask_all();
    }

    /// Begins to judge floods anew: what was received before ports were shut says nothing of what comes after.
    pub(super) fn forget_floods(&mut self) {
        self.look.floods.forget();
    }

    /// Has the next round come after a pause, which grows while nothing new is seen.
    fn wait_and_look(&mut self, pause_max: Duration) {
        self.look.pause = (self.look.pause * 2).min(pause_max);
        self.common = Common::Due;
    }

    /// What an answered round says of the cables and of floods.
    fn judge_look(&mut self) -> (Comparison, Weather) {
        let sights = std::mem::take(&mut self.look.sights);
        let cables = self.order.watch.as_ref().map(|watch| &watch.cables);
        let is_open = |(switch, slot): super::End| {
            let known = self.known[switch.index()].as_ref();
            let port = known.and_then(|known| known.config.ports.get(slot.index()));
            port.is_some_and(|port| port.admin == Admin::Up)
        };
        let comparison = cables.map(|cables| cables.compare(&sights, is_open)).unwrap_or_default();
        let unwatched = || -> Vec<SwitchId> {
            let blind =
                |switch: &SwitchId| sights[switch.index()].as_ref().is_some_and(|sight| sight.flooded.is_empty());
            self.order.sequence.iter().copied().filter(blind).collect()
        };
        if self.look.told_unwatched == Told::NotYet {
            self.look.told_unwatched = Told::Already;
            let mut blind = unwatched();
            if !blind.is_empty() {
                blind.sort_unstable();
                self.events.push_back(Event::Unwatched(blind));
            }
        }
        let weather = self.look.floods.handle_reading(self.now, &sights);
        self.look.sights = sights;
        (comparison, weather)
    }

    pub(super) fn finish_look(&mut self) {
        let Leg::Look(look) = self.leg else { return };
        let (cables_max, floods_min) = self
            .order
            .watch
            .as_ref()
            .map_or((Duration::ZERO, Duration::ZERO), |watch| (watch.cables_max, watch.floods_min));
        let faults = std::mem::take(&mut self.faults);
        let (mut comparison, weather) = self.judge_look();
        if !comparison.misplaced.is_empty() {
            return self.turn(Reason::Miscabled(comparison.misplaced));
        }
        let doubtful = match weather {
            Weather::Storm(surges) => return self.turn(Reason::Storm(surges)),
            Weather::Doubtful => true,
            Weather::Calm => false,
        };
        if self.mends > 0 {
            self.lost.extend(faults);
        } else if !faults.is_empty() && look != Look::Last {
            return self.turn(Reason::Faults(Stage::Look, faults));
        }
        let waited = self.now.saturating_sub(self.look.began);
        match look {
            Look::Cables if !comparison.unseen.is_empty() => {
                if waited >= cables_max {
                    return self.turn(Reason::Unseen(comparison.unseen, waited));
                }
                if waited >= TELL_AFTER && self.look.told_awaited == Told::NotYet {
                    self.look.told_awaited = Told::Already;
                    comparison.unseen.truncate(TOLD_MAX);
                    self.events.push_back(Event::Awaited(comparison.unseen));
                }
                self.wait_and_look(LOOK_MAX);
            }
            // What is doubtful is decided by the next readings; nothing opens before.
            _ if doubtful => self.wait_and_look(2 * LOOK_MIN),
            Look::Last
                if self.now.saturating_sub(self.look.opened) < floods_min
                    && self.look.floods.windows() < self.look.windows_then + WINDOWS_ENOUGH =>
            {
                self.wait_and_look(2 * LOOK_MIN);
            }
            Look::Cables | Look::Floods | Look::Last => self.next_leg(),
        }
    }

    /// On the way back nothing is refused but what may do harm: a port whose cable leads elsewhere, or is not seen any more,
    /// stays shut. What floods once hosts' ports are open is looked at again, for as long as counters may lag behind: a cable
    /// between two ports for hosts is not heard before both are open.
    pub(super) fn finish_look_back(&mut self, faults: Vec<(SwitchId, Fault)>) {
        self.lost.extend(faults);
        let cables_max = self.order.watch.as_ref().map_or(Duration::ZERO, |watch| watch.cables_max);
        let (comparison, weather) = self.judge_look();
        let waited = self.now.saturating_sub(self.look.began);
        let floods = self.leg == Leg::Look(Look::Floods) && weather != Weather::Calm;
        if floods && comparison.misplaced.is_empty() && waited < WINDOW_MAX {
            return self.wait_and_look(2 * LOOK_MIN);
        }
        let given_up = |at: super::End| match &self.reason {
            Some(Reason::Unseen(cables, _)) => cables.iter().any(|cable| cable.at == at),
            _ => false,
        };
        let awaited = comparison.unseen.iter().any(|cable| !given_up(cable.at));
        let waits = self.leg == Leg::Look(Look::Cables) && awaited && comparison.misplaced.is_empty();
        if waits && waited < cables_max {
            return self.wait_and_look(LOOK_MAX);
        }
        // What was seen before and is not any more may lead anywhere.
        let unseen = comparison.unseen.iter().filter(|_| self.leg == Leg::Look(Look::Cables)).map(|cable| {
            let (at, expected, found) = (cable.at, Some(cable.expected), FarEnd::Unknown);
            Misplaced { at, expected, found }
        });
        let shut = |at: super::End| self.misplaced.iter().any(|known| known.at == at);
        let fresh: Vec<Misplaced> =
            comparison.misplaced.iter().cloned().chain(unseen).filter(|misplaced| !shut(misplaced.at)).collect();
        if !fresh.is_empty() {
            self.events.push_back(Event::KeptShut(fresh.clone()));
            self.misplaced.extend(fresh);
            if !matches!(self.order.way, Way::Live { .. }) {
                self.legs.push_front(Leg::Look(Look::Cables));
                self.legs.push_front(Leg::Write(Stage::OpenLinks));
            }
        }
        self.next_leg();
    }

    /// The ports of a switch that go out of service at once: all but those by which it is managed.
    pub(super) fn shut_at_once(&self, switch: SwitchId) -> Vec<Slot> {
        let Some(known) = &self.known[switch.index()] else { return Vec::new() };
        let shut = self.order.management.shut(switch, &known.config);
        let open =
            |slot: &usize| known.config.ports[*slot].admin == Admin::Up && shut.ports[*slot].admin == Admin::Down;
        (0..known.config.ports.len()).filter(open).map(Slot::new).collect()
    }
}
