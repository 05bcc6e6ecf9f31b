//! How the legs of a deployment end: on to the next, once more, back, or over.

use std::{collections::BTreeSet, sync::Arc};

use fabric::SwitchId;

use super::{
    CLAIMS_MAX, Deployment, Direction, Event, LiveStage, MENDS_MAX, Outcome, Precedence, RETURNS_MAX, Reason, Stage,
    Way,
    legs::{Leg, Look},
};
use switch_model::{SwitchConfig, driver::Fault, mark::Phase, observe::drift, sight::End};

impl Deployment {
    pub(super) fn finish_leg(&mut self) {
        match self.direction {
            Direction::Back => self.finish_leg_back(),
            Direction::Forward if self.interrupted && self.can_turn() && self.mends == 0 => {
                self.turn(Reason::Interrupted)
            }
            Direction::Forward if matches!(self.leg, Leg::Look(_)) => self.finish_look(),
            Direction::Forward if self.mends > 0 => self.finish_leg_of_mending(),
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
                self.note_under_way();
                if let Some(reason) = self.elsewhere() {
                    return self.turn(reason);
                }
            }
            Leg::Write(Stage::Live(stage)) if !self.is_of_hosts(stage) => self.stages_done = stage + 1,
            Leg::End if matches!(self.order.way, Way::Undo) => return self.turn(Reason::Interrupted),
            Leg::End => self.deployed(),
            _ => {}
        }
        self.next_leg();
    }

    /// The journal is written.
    pub(super) fn recorded(&mut self) {
        if let (Direction::Back, Leg::Record(Stage::Live(stage))) = (self.direction, self.leg) {
            self.stages_done = stage;
        }
        self.next_leg();
    }

    fn is_of_hosts(&self, stage: usize) -> bool {
        matches!(&self.order.way, Way::Live { stages, .. } if matches!(stages[stage], LiveStage::Hosts(_)))
    }

    /// Hosts have gone to the state that they were asked to.
    pub(super) fn told_hosts(&mut self) {
        if let (Direction::Forward, Leg::Hosts(Stage::Live(stage), _)) = (self.direction, self.leg) {
            self.stages_done = stage + 1;
        }
        self.next_leg();
    }

    /// Leaves every switch at the stage that the journal knows: whoever resumes must find them there.
    pub(super) fn stop_on_the_way_back(&mut self, why: &str) {
        let fault = Fault::Refused(format!("it was left between two stages, since {why}"));
        let reason = self.reason.clone().unwrap_or(Reason::Interrupted);
        let lost = self.order.sequence.iter().map(|switch| (*switch, fault.clone())).collect();
        self.outcome = Some(Outcome::Stranded { reason, lost });
    }

    /// Whether the journal is of another change under traffic than this one, which must go on where its own stages have led.
    fn is_other_change(&self) -> bool {
        let (Way::Live { start, .. }, Some(journal)) = (&self.order.way, &self.order.resume) else { return false };
        let begins_there = || {
            start.iter().zip(&self.backup).all(|(start, backup)| start.as_ref().is_none_or(|start| *start == **backup))
        };
        journal.stages_done.is_none() || journal.mark.digest != self.order.digest || !begins_there()
    }

    /// A switch at which a change under traffic does not begin where it must: steps are safe from there alone.
    fn elsewhere(&self) -> Option<Reason> {
        let Way::Live { start, .. } = &self.order.way else { return None };
        self.order.sequence.iter().find_map(|&switch| {
            let (found, wanted) = (&self.known_of(switch).config, start[switch.index()].as_ref()?);
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
        self.note_others();
        let marks = self.order.sequence.iter().filter_map(|&switch| Some((self.known_of(switch).mark?, switch)));
        let newest = marks.clone().max().map_or(0, |(mark, _)| mark.generation);
        let found = marks.filter(|(mark, _)| !self.order.claims.contains(mark)).max();
        let unchanged = || self.known.iter().flatten().zip(&self.goals).all(|(known, goal)| known.config == *goal);
        let finished =
            || self.known.iter().flatten().all(|known| known.mark.is_some_and(|mark| mark.phase == Phase::AtRest));
        if self.is_other_change() {
            self.outcome = Some(Outcome::Refused(Reason::OtherChange));
            return;
        }
        if self.mark.generation > 0 {
            return;
        }
        let gives_way = self.order.precedence == Precedence::GiveWay;
        match found {
            Some((found, switch))
                if gives_way && self.order.generation.is_some_and(|known| known < found.generation) =>
            {
                self.outcome = Some(Outcome::Stale { switch, found });
            }
            _ if !matches!(self.order.way, Way::Undo) && unchanged() && finished() && self.order.resume.is_none() => {
                self.outcome = Some(Outcome::Unchanged);
            }
            // Before a mark is left, so that whoever deploys next need not take over.
            _ => match self.elsewhere().or_else(|| self.no_way()).filter(|_| self.order.resume.is_none()) {
                Some(reason) => self.outcome = Some(Outcome::Refused(reason)),
                None => {
                    self.mark.generation = newest.saturating_add(1);
                    self.forget_what_others_finished();
                }
            },
        }
    }

    /// A journal that is taken over says what switches held before, unless somebody else has set all of them up since.
    fn forget_what_others_finished(&mut self) {
        let Some(journal) = self.order.resume.as_ref().filter(|_| !matches!(self.order.way, Way::Undo)) else { return };
        let since = |switch: &SwitchId| {
            let mark = self.known_of(*switch).mark;
            mark.is_some_and(|mark| {
                mark > journal.mark && mark.phase == Phase::AtRest && !self.order.claims.contains(&mark)
            })
        };
        if self.order.sequence.iter().all(since) {
            self.backup.clear();
            self.under_way.clear();
        }
    }

    /// Which switches bear the mark of another deployment that is in the middle of them. Once they bear ours, that is
    /// remembered.
    fn note_others(&mut self) {
        let known = self.order.generation;
        for &switch in &self.order.sequence {
            let Some(mark) = self.known[switch.index()].as_ref().and_then(|known| known.mark) else { continue };
            if mark.is_of(self.mark) || self.order.claims.contains(&mark) {
                continue;
            }
            // Of our own earlier ones that are over, it is what they left.
            if mark.phase == Phase::UnderWay && known.is_none_or(|known| mark.generation > known) {
                self.others.insert(switch, mark);
            } else {
                self.others.remove(&switch);
            }
        }
    }

    /// Which switches another deployment is in the middle of: their present state is none to go back to.
    fn note_under_way(&mut self) {
        let found = |switch: &SwitchId| Some((*switch, self.others.get(switch).copied()?));
        self.under_way = self.order.sequence.iter().filter_map(found).collect();
    }

    /// Goes through it once more for switches that do not hold what they should although the others are in service. They
    /// are drained, or were by their restart, so nothing is lost that was not already.
    fn mend(&mut self, faults: Vec<(SwitchId, Fault)>) {
        self.mends += 1;
        self.lost = faults.iter().filter(|(_, fault)| *fault == Fault::Silent).cloned().collect();
        let doubted: BTreeSet<SwitchId> = faults.iter().map(|(switch, _)| *switch).collect();
        self.settled = self.order.sequence.iter().filter(|switch| !doubted.contains(*switch)).copied().collect();
        self.legs = self.mending();
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

    pub(super) fn turn(&mut self, reason: Reason) {
        let untouched = matches!(
            self.leg,
            Leg::Read(Stage::Survey | Stage::Record)
                | Leg::Note
                | Leg::Claim
                | Leg::Record(Stage::Record | Stage::Live(0))
        );
        let live = matches!(self.order.way, Way::Live { .. });
        let only_looked = live && self.stages_done == 0 && self.leg == Leg::Look(Look::Cables);
        if untouched || only_looked {
            self.outcome = Some(Outcome::Refused(reason));
            return;
        }
        // A storm goes on by itself, so what feeds it and what carries it goes out of service before anything else. A storm may
        // also be why a switch has stopped answering.
        let at_once = !live && matches!(self.leg, Leg::Look(_)) && reason != Reason::Interrupted;
        self.direction = Direction::Back;
        self.forget_floods();
        self.events.push_back(Event::Turned(reason.clone()));
        self.reason = Some(reason);
        self.legs = self.back();
        if at_once {
            self.legs.push_front(Leg::Shut);
        }
        self.next_leg();
    }

    fn finish_leg_back(&mut self) {
        let faults = std::mem::take(&mut self.faults);
        match self.leg {
            Leg::Save(Stage::Save) => self.unsaved = faults,
            Leg::End => return self.finish_return(),
            Leg::Look(_) => return self.finish_look_back(faults),
            _ => self.lost.extend(faults),
        }
        if self.leg == Leg::Read(Stage::Survey) {
            let management = &self.order.management;
            let holds_old = |switch: &SwitchId| {
                let (known, backup) = (&self.known_of(*switch).config, &self.backup[switch.index()]);
                management.shut(*switch, known) == management.shut(*switch, backup)
            };
            let reached = self.order.sequence.iter().filter(|switch| !self.lost.contains_key(*switch));
            let held: BTreeSet<SwitchId> = reached.copied().filter(holds_old).collect();
            // After a storm every switch is to be drained, whatever it holds.
            self.settled = if self.quenched.is_none() { held } else { BTreeSet::new() };
        }
        self.next_leg();
    }

    fn finish_return(&mut self) {
        if !self.lost.is_empty() && self.returns < RETURNS_MAX {
            self.returns += 1;
            self.lost.clear();
            self.legs = if self.quenched.is_some() { self.quenching() } else { self.back() };
            return self.next_leg();
        }
        let reason = self.reason.clone().unwrap_or(Reason::Interrupted);
        let unsaved = std::mem::take(&mut self.unsaved);
        let not_known = self.under_way.iter().map(|(switch, mark)| (*switch, Fault::UnderWay(*mark)));
        for (switch, fault) in not_known.collect::<Vec<_>>() {
            self.lost.entry(switch).or_insert(fault);
        }
        let kept_shut = std::mem::take(&mut self.misplaced).into_iter().collect();
        let lost: Vec<(SwitchId, Fault)> = std::mem::take(&mut self.lost).into_iter().collect();
        self.outcome = Some(match self.quenched.take() {
            Some(storm) => Outcome::Quenched { reason, storm, shut: self.kept_from_opening(&lost), lost },
            None if lost.is_empty() => Outcome::RolledBack { reason, unsaved, kept_shut },
            None => Outcome::Stranded { reason, lost },
        });
    }

    /// Ports that were open before and are drained now, of all switches but those that are lost.
    fn kept_from_opening(&self, lost: &[(SwitchId, Fault)]) -> Vec<End> {
        let reached = |(index, backup): (usize, &Arc<SwitchConfig>)| -> Vec<End> {
            let switch = SwitchId::new(index);
            if lost.iter().any(|(other, _)| *other == switch) {
                return Vec::new();
            }
            self.shut_by_draining(switch, backup).into_iter().map(|slot| (switch, slot)).collect()
        };
        self.backup.iter().enumerate().flat_map(reached).collect()
    }
}

/// Names the first thing in which a switch differs from what it was told.
pub(super) fn first_difference(expected: &SwitchConfig, found: &SwitchConfig) -> String {
    drift(found, expected).first().map_or_else(String::new, |drift| drift.sentence(found))
}
