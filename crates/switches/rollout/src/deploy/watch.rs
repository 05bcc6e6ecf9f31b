//! Looking at cables and floods while ports open.
//!
//! ```text
//!   every switch is asked ─▶ a cable elsewhere, a storm ─▶ shut, back; on the way back: shut, and left so
//!        ▲                 ├▶ a cable not seen yet, a doubt ─ pause ─┐
//!        │                 └▶ all is well ─▶ on                      │
//!        └────────────────────────────────────────────────────────────┘  until it has taken too long
//! ```

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use fabric::{Admin, SwitchId};

use super::{
    Common, Comparison, Deployment, Direction, Event, FarEnd, Floods, LOOK_MAX, LOOK_MIN, Law, Misplaced, Moves,
    Reason, Stage, WINDOW_MAX, Way, Weather,
    legs::{Leg, Look},
};
use fabric::SpanningTree;
use switch_model::{
    Slot, SwitchConfig,
    driver::{Addresses, Fault},
    sight::Sight,
};

/// Most cables that a person is told of at once.
const TOLD_MAX: usize = 6;
/// Readings of learned addresses after each opening that a storm would show in.
const READINGS_ENOUGH: usize = 24;
/// Windows after the last opening that show that nothing floods.
const WINDOWS_ENOUGH: usize = 2;
/// How long cables are awaited before a person is told.
const TELL_AFTER: Duration = Duration::from_secs(2);

/// What has been seen so far.
pub(super) struct Looking {
    /// `sights[switch]`: the present round's answers.
    sights: Vec<Option<Sight>>,
    floods: Floods,
    moves: Moves,
    /// Switches without counters, or whose counters have not moved from one reading to another yet: they are asked for learned
    /// addresses.
    uncounted: BTreeSet<SwitchId>,
    /// Readings of such, with any address, since ports were last opened.
    readings: usize,
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
            moves: Moves::default(),
            uncounted: BTreeSet::new(),
            readings: 0,
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

    /// Whether a switch is asked for learned addresses.
    pub(super) fn addresses(&self, switch: SwitchId) -> Addresses {
        if self.uncounted.contains(&switch) { Addresses::Read } else { Addresses::Skip }
    }

    /// Whether learned addresses have been read too seldom since ports were opened to say anything. Where no address is
    /// learned nobody has spoken, and there is nothing to wait for.
    fn wants_readings(&self) -> bool {
        self.readings < READINGS_ENOUGH && self.has_learned()
    }

    /// Whether a switch that was asked for learned addresses has any.
    fn has_learned(&self) -> bool {
        let learned = self.sights.iter().flatten().filter_map(|sight| sight.learned.as_ref());
        learned.into_iter().any(|rows| !rows.is_empty())
    }

    /// Whether floods have been watched for long enough since ports were last opened.
    fn has_settled(&self, now: Duration, floods_min: Duration) -> bool {
        let long = now.saturating_sub(self.opened) >= floods_min;
        (long || self.floods.windows() >= self.windows_then + WINDOWS_ENOUGH) && !self.wants_readings()
    }
}

/// What a round says of floods.
enum Sky {
    Calm,
    Doubtful,
    /// A storm, and how it shows.
    Storm(Reason),
}

impl Deployment {
    pub(super) fn ports_opened(&mut self) {
        (self.look.opened, self.look.windows_then) = (self.now, self.look.floods.windows());
        self.look.readings = 0;
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
        let governed = |config: &Arc<SwitchConfig>| config.spanning_tree == SpanningTree::On;
        let law = match self.direction == Direction::Back && self.backup.iter().any(governed) {
            true => Law::SpanningTree,
            false => Law::NoLoop,
        };
        self.look.floods.forget(law);
        self.look.moves.forget();
    }

    /// Has the next round come after a pause, which grows while nothing new is seen.
    fn wait_and_look(&mut self, pause_max: Duration) {
        self.look.pause = (self.look.pause * 2).min(pause_max);
        self.common = Common::Due;
    }

    /// What an answered round says of the cables and of floods.
    fn judge_look(&mut self) -> (Comparison, Sky) {
        let sights = std::mem::take(&mut self.look.sights);
        let cables = self.order.watch.as_ref().map(|watch| &watch.cables);
        let is_open = |(switch, slot): switch_model::sight::End| {
            let known = self.known[switch.index()].as_ref();
            let port = known.and_then(|known| known.config.ports.get(slot.index()));
            port.is_some_and(|port| port.admin == Admin::Up)
        };
        let comparison = cables.map(|cables| cables.compare(&sights, is_open)).unwrap_or_default();
        let compares = self.look.floods.compares();
        let counted = self.look.floods.handle_reading(self.now, &sights);
        let learned = self.look.moves.handle_reading(&sights);
        self.look.sights = sights;
        self.look.readings += usize::from(self.look.has_learned());
        if !self.look.uncounted.is_empty() {
            self.tell_unwatched();
        }
        let uncounted = |switch: &SwitchId| {
            let sight = self.look.sights[switch.index()].as_ref();
            let still = !self.look.floods.is_counting(*switch);
            sight.is_some_and(|sight| sight.flooded.is_empty() || (compares && still))
        };
        self.look.uncounted = self.order.sequence.iter().copied().filter(uncounted).collect();
        let sky = match (counted, learned) {
            (Weather::Storm(surges), _) => Sky::Storm(Reason::Storm(surges)),
            (_, Weather::Storm(flaps)) => Sky::Storm(Reason::Flapping(flaps)),
            (Weather::Calm, Weather::Calm) => Sky::Calm,
            _ => Sky::Doubtful,
        };
        (comparison, sky)
    }

    /// Says once which switches count nothing, when they have been asked for learned addresses.
    fn tell_unwatched(&mut self) {
        if std::mem::replace(&mut self.look.told_unwatched, Told::Already) == Told::Already {
            return;
        }
        let sight = |switch: &SwitchId| self.look.sights[switch.index()].as_ref();
        let blind = |switch: &SwitchId| sight(switch).is_some_and(|sight| sight.flooded.is_empty());
        let learns = |switch: &SwitchId| sight(switch).is_some_and(|sight| sight.learned.is_some());
        let blind: BTreeSet<SwitchId> = self.look.uncounted.iter().copied().filter(blind).collect();
        let (by_addresses, unwatched): (Vec<SwitchId>, Vec<SwitchId>) = blind.into_iter().partition(learns);
        let events = [Event::WatchedByAddresses(by_addresses), Event::Unwatched(unwatched)];
        let of_any = |event: &Event| match event {
            Event::WatchedByAddresses(switches) | Event::Unwatched(switches) => !switches.is_empty(),
            _ => false,
        };
        self.events.extend(events.into_iter().filter(of_any));
    }

    pub(super) fn finish_look(&mut self) {
        let Leg::Look(look) = self.leg else { return };
        let (cables_max, floods_min) = self
            .order
            .watch
            .as_ref()
            .map_or((Duration::ZERO, Duration::ZERO), |watch| (watch.cables_max, watch.floods_min));
        let faults = std::mem::take(&mut self.faults);
        let (mut comparison, sky) = self.judge_look();
        if !comparison.misplaced.is_empty() {
            return self.turn(Reason::Miscabled(comparison.misplaced));
        }
        let doubtful = match sky {
            Sky::Storm(reason) => return self.turn(reason),
            Sky::Doubtful => true,
            Sky::Calm => false,
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
            Look::Floods if self.look.wants_readings() => self.wait_and_look(2 * LOOK_MIN),
            Look::Last if !self.look.has_settled(self.now, floods_min) => self.wait_and_look(2 * LOOK_MIN),
            Look::Cables | Look::Floods | Look::Last => self.next_leg(),
        }
    }

    /// On the way back nothing is refused but what may do harm: a port whose cable leads elsewhere, or is not seen any more,
    /// stays shut, and after a storm all that was opened. What floods once hosts' ports are open is looked at again, for as long
    /// as counters may lag behind: a cable between two ports for hosts is not heard before both are open.
    pub(super) fn finish_look_back(&mut self, faults: Vec<(SwitchId, Fault)>) {
        self.lost.extend(faults);
        let (cables_max, floods_min) = self
            .order
            .watch
            .as_ref()
            .map_or((Duration::ZERO, Duration::ZERO), |watch| (watch.cables_max, watch.floods_min));
        let (comparison, sky) = self.judge_look();
        let waited = self.now.saturating_sub(self.look.began);
        let live = matches!(self.order.way, Way::Live { .. });
        let unsettled = match (self.leg, sky) {
            // The port alone is shut then, which ends the storm.
            _ if !comparison.misplaced.is_empty() => false,
            // Nothing was shut before, so nothing was opened.
            (_, Sky::Storm(storm)) if !live => return self.quench(storm),
            (Leg::Look(Look::Cables), _) => false,
            (_, Sky::Storm(_) | Sky::Doubtful) => waited < WINDOW_MAX,
            (Leg::Look(Look::Last), Sky::Calm) => !self.look.has_settled(self.now, floods_min),
            (_, Sky::Calm) => self.look.wants_readings(),
        };
        if unsettled {
            return self.wait_and_look(2 * LOOK_MIN);
        }
        let given_up = |at: switch_model::sight::End| match &self.reason {
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
        let shut = |at: switch_model::sight::End| self.misplaced.iter().any(|known| known.at == at);
        let fresh: Vec<Misplaced> =
            comparison.misplaced.iter().cloned().chain(unseen).filter(|misplaced| !shut(misplaced.at)).collect();
        if !fresh.is_empty() {
            self.events.push_back(Event::KeptShut(fresh.clone()));
            self.misplaced.extend(fresh);
            if !live {
                // What was received before they were shut says nothing of what comes after.
                self.forget_floods();
                if let Leg::Look(Look::Floods | Look::Last) = self.leg {
                    self.legs.push_front(self.leg);
                }
                self.legs.push_front(Leg::Look(Look::Cables));
                self.legs.push_front(Leg::Write(Stage::OpenLinks));
            }
        }
        self.next_leg();
    }

    /// Shuts what the way back has opened, for good: a storm shows that it must not be open with the cables as they are.
    fn quench(&mut self, storm: Reason) {
        self.events.push_back(Event::Quenched(storm.clone()));
        self.quenched = Some(storm);
        self.legs = self.quenching();
        self.next_leg();
    }

    /// The ports of a switch that go out of service at once: all but those by which it is managed.
    pub(super) fn shut_at_once(&self, switch: SwitchId) -> Vec<Slot> {
        self.known[switch.index()].as_ref().map_or_else(Vec::new, |known| self.shut_by_draining(switch, &known.config))
    }

    /// The ports of a state that are open, and shut once it is drained.
    pub(super) fn shut_by_draining(&self, switch: SwitchId, config: &SwitchConfig) -> Vec<Slot> {
        let shut = self.order.management.shut(switch, config);
        let open = |slot: &usize| config.ports[*slot].admin == Admin::Up && shut.ports[*slot].admin == Admin::Down;
        (0..config.ports.len()).filter(open).map(Slot::new).collect()
    }
}
