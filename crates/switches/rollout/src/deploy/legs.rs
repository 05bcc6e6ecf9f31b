//! The legs of a deployment, and what a switch holds after each.

use std::{
    collections::{BTreeSet, VecDeque},
    sync::Arc,
};

use fabric::{Admin, SwitchId};

use super::{Deployment, Direction, FarEnd, LiveStage, Management, Stage, Way};
use fabric::SpanningTree;
use switch_model::{Slot, SwitchConfig, mark::Phase, sight::End};

/// One stage, and what it does to switches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Leg {
    Read(Stage),
    /// Remembers the mark that is to be left.
    Note,
    Claim,
    Record(Stage),
    /// Writes the goal of this stage.
    Write(Stage),
    Save(Stage),
    Judge,
    /// Has hosts go to this one of their states.
    Hosts(Stage, usize),
    /// Looks at cables and floods.
    Look(Look),
    /// Shuts what was opened last, at once.
    Shut,
    /// Has the deployment tag say that it is over, where it does not yet.
    Seal,
    End,
}

/// What a look is to see before the deployment goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Look {
    /// Every cable whose ports are open.
    Cables,
    /// That nothing floods, as far as can be seen by now.
    Floods,
    /// That nothing has flooded for a while.
    Last,
}

impl Leg {
    pub(super) fn stage(self) -> Stage {
        match self {
            Self::Read(stage) | Self::Record(stage) | Self::Write(stage) | Self::Save(stage) => stage,
            Self::Hosts(stage, _) => stage,
            Self::Note | Self::Claim => Stage::Claim,
            Self::Judge | Self::End => Stage::Judge,
            Self::Look(_) => Stage::Look,
            Self::Shut => Stage::Shut,
            Self::Seal => Stage::Seal,
        }
    }
}

/// Of the ports that are no cables between switches, one in so many opens with the first group.
const FIRST_GROUP: usize = 16;

/// The groups in which ports open: a few that are far apart, then the rest. `ports` are in the order of switches.
pub(super) fn groups(ports: Vec<End>) -> Vec<BTreeSet<End>> {
    let first: BTreeSet<End> = ports.iter().step_by(FIRST_GROUP).copied().collect();
    let rest: BTreeSet<End> = ports.into_iter().filter(|port| !first.contains(port)).collect();
    if rest.is_empty() { vec![first] } else { vec![first, rest] }
}

impl Deployment {
    pub(super) fn forward(&self) -> VecDeque<Leg> {
        let mut legs = vec![Leg::Read(Stage::Survey), Leg::Note, Leg::Claim];
        legs.extend([Leg::Read(Stage::Record), Leg::Record(Stage::Record)]);
        match &self.order.way {
            Way::Drained => {
                legs.extend([
                    Leg::Write(Stage::Drain),
                    Leg::Read(Stage::ReadBack),
                    Leg::Save(Stage::SaveDrained),
                    Leg::Write(Stage::Configure),
                    Leg::Read(Stage::ReadBack),
                    Leg::Judge,
                ]);
                legs.extend(self.opening());
            }
            Way::Live { stages, .. } => {
                for (number, stage) in stages.iter().enumerate().skip(self.stages_done) {
                    let name = Stage::Live(number);
                    legs.extend([Leg::Record(name), Leg::Look(Look::Cables)]);
                    match stage {
                        LiveStage::Switches(_) => legs.extend([Leg::Write(name), Leg::Read(Stage::ReadBack)]),
                        LiveStage::Hosts(state) => {
                            if number == self.stages_done && self.order.resume.is_some() {
                                // Hosts may go there only while switches hold what came before, which some may have lost since.
                                legs.extend([Leg::Write(name), Leg::Read(Stage::ReadBack)]);
                            }
                            legs.push(Leg::Hosts(name, *state));
                        }
                    }
                    legs.push(Leg::Look(Look::Floods));
                }
                legs.push(Leg::Judge);
            }
            Way::Undo => drop(legs.pop()),
        }
        if !matches!(self.order.way, Way::Undo) {
            legs.extend([Leg::Seal, Leg::Read(Stage::Confirm), Leg::Save(Stage::Save), Leg::Look(Look::Last)]);
        }
        legs.push(Leg::End);
        self.those_that_see(legs)
    }

    /// The legs of a way that opens ports.
    fn opening(&self) -> Vec<Leg> {
        let mut legs = vec![Leg::Write(Stage::OpenLinks)];
        let groups = self.groups.len();
        for group in 0..groups {
            legs.extend([Leg::Look(Look::Cables), Leg::Write(Stage::Open(group, groups)), Leg::Look(Look::Floods)]);
        }
        legs
    }

    /// The legs by which switches are set up again that have restarted while the others were in service.
    pub(super) fn mending(&self) -> VecDeque<Leg> {
        let mut legs = vec![
            Leg::Write(Stage::Drain),
            Leg::Read(Stage::ReadBack),
            Leg::Save(Stage::SaveDrained),
            Leg::Write(Stage::Configure),
            Leg::Read(Stage::ReadBack),
        ];
        legs.extend(self.opening());
        legs.extend([Leg::Seal, Leg::Read(Stage::Confirm), Leg::Save(Stage::Save), Leg::Look(Look::Last), Leg::End]);
        self.those_that_see(legs)
    }

    pub(super) fn back(&self) -> VecDeque<Leg> {
        let mut legs = vec![Leg::Read(Stage::Survey)];
        match &self.order.way {
            Way::Live { stages, .. } => {
                legs.push(Leg::Look(Look::Floods));
                // A stage at a time, as it came, the one that is half done first; whoever resumes must know where from.
                for number in (0..=self.stages_done).rev() {
                    legs.push(Leg::Record(Stage::Live(number)));
                    legs.extend(match (stages.get(number), number.checked_sub(1)) {
                        (Some(LiveStage::Hosts(state)), _) => Some(Leg::Hosts(Stage::Live(number), state - 1)),
                        (_, Some(before)) => Some(Leg::Write(Stage::Live(before))),
                        (_, None) => None,
                    });
                }
            }
            Way::Drained | Way::Undo => {
                legs.extend([Leg::Write(Stage::Drain), Leg::Read(Stage::ReadBack), Leg::Save(Stage::SaveDrained)]);
                legs.extend([Leg::Write(Stage::Configure), Leg::Read(Stage::ReadBack)]);
                if self.order.management != Management::OutOfBand {
                    // Management ports are open after a restart as well, and must then have the old spanning tree.
                    legs.push(Leg::Save(Stage::SaveDrained));
                }
                let governed = self.backup.iter().all(|backup| backup.spanning_tree == SpanningTree::On);
                // Where every switch runs spanning tree, that sees to loops, and opens ports no sooner than after seconds.
                if !governed {
                    legs.extend(self.opening());
                    legs.push(Leg::Look(Look::Last));
                }
            }
        }
        legs.extend([Leg::Write(Stage::Open(0, 1)), Leg::Seal, Leg::Read(Stage::Confirm), Leg::Save(Stage::Save)]);
        legs.push(Leg::End);
        self.those_that_see(legs)
    }

    /// The legs that leave every switch as it was, but shut, after a storm on the way back.
    pub(super) fn quenching(&self) -> VecDeque<Leg> {
        let write = |stage| [Leg::Write(stage), Leg::Read(Stage::ReadBack)];
        let shut = [Leg::Shut, Leg::Read(Stage::Survey)];
        let legs = shut.into_iter().chain(write(Stage::Drain)).chain(write(Stage::Configure));
        legs.chain([Leg::Save(Stage::SaveDrained), Leg::End]).collect()
    }

    fn those_that_see(&self, legs: Vec<Leg>) -> VecDeque<Leg> {
        legs.into_iter().filter(|leg| self.order.watch.is_some() || !matches!(leg, Leg::Look(_))).collect()
    }

    /// What the deployment tag says after a leg.
    pub(super) fn phase(&self, leg: Leg, switch: SwitchId) -> Phase {
        let found = self.known[switch.index()].as_ref().and_then(|known| known.mark).map_or(Phase::AtRest, |m| m.phase);
        match leg {
            _ if self.direction == Direction::Back && self.under_way.contains_key(&switch) => Phase::UnderWay,
            // Nothing is changed by that, whatever was being done to the switch.
            Leg::Claim => found,
            Leg::Seal => Phase::AtRest,
            Leg::Write(Stage::Open(group, of)) if group + 1 == of => Phase::AtRest,
            _ => Phase::UnderWay,
        }
    }

    /// What a switch holds after a stage of writing.
    pub(super) fn goal(&self, stage: Stage, switch: SwitchId) -> Arc<SwitchConfig> {
        let index = switch.index();
        let known = || &self.known_of(switch).config;
        let back = self.direction == Direction::Back;
        if back && self.under_way.contains_key(&switch) {
            return self.without_misplaced(switch, self.order.management.shut(switch, known()));
        }
        let goal = match stage {
            Stage::Drain | Stage::Configure if self.settled.contains(&switch) => (**known()).clone(),
            Stage::Drain => self.order.management.shut(switch, known()),
            Stage::Configure => {
                let version = if back { &self.backup[index] } else { &self.goals[index] };
                self.order.management.shut(switch, version)
            }
            Stage::Live(stage) => match &self.order.way {
                Way::Live { stages, .. } => {
                    let reached = stages[..=stage].iter().rev().find_map(|stage| stage.config(switch));
                    reached.map_or_else(|| (*self.backup[index]).clone(), Clone::clone)
                }
                Way::Drained | Way::Undo => (**known()).clone(),
            },
            Stage::OpenLinks => self.opened(switch, |at| self.between(at)),
            Stage::Open(group, of) if group + 1 < of => {
                self.opened(switch, |at| self.between(at) || self.groups[..=group].iter().any(|g| g.contains(&at)))
            }
            Stage::Open(..) => self.target(switch),
            _ => (*self.goals[index]).clone(),
        };
        self.without_misplaced(switch, goal)
    }

    /// What a switch is to hold in the end of this direction.
    fn target(&self, switch: SwitchId) -> SwitchConfig {
        match self.direction {
            Direction::Back => self.restored(switch),
            Direction::Forward => (*self.goals[switch.index()]).clone(),
        }
    }

    /// What a switch holds, with these of its ports as they are to be in the end.
    fn opened(&self, switch: SwitchId, opens: impl Fn(End) -> bool) -> SwitchConfig {
        let (mut config, target) = ((*self.known_of(switch).config).clone(), self.target(switch));
        for (slot, (port, target)) in config.ports.iter_mut().zip(target.ports).enumerate() {
            if opens((switch, Slot::new(slot))) {
                *port = target;
            }
        }
        config
    }

    /// Whether a port's cable leads to another switch.
    pub(super) fn between(&self, (switch, slot): End) -> bool {
        self.facing[switch.index()].get(slot.index()).is_some_and(Option::is_some)
    }

    fn without_misplaced(&self, switch: SwitchId, mut config: SwitchConfig) -> Arc<SwitchConfig> {
        if self.direction == Direction::Back {
            let alone = self.order.management.shut(switch, &config);
            for misplaced in self.misplaced.iter().filter(|misplaced| misplaced.at.0 == switch) {
                let slot = misplaced.at.1.index();
                match misplaced.found {
                    // What is behind a dead cable of the management tree answers again once it is mended.
                    FarEnd::Unknown => config.ports[slot].clone_from(&alone.ports[slot]),
                    _ => config.ports[slot].admin = Admin::Down,
                }
            }
        }
        Arc::new(config)
    }

    /// What a switch held before, less ports toward switches that could not be brought back.
    fn restored(&self, switch: SwitchId) -> SwitchConfig {
        let backup = &self.backup[switch.index()];
        if (self.lost.is_empty() && self.under_way.is_empty()) || matches!(self.order.way, Way::Live { .. }) {
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
            let gone = |far: SwitchId| self.lost.contains_key(&far) || self.under_way.contains_key(&far);
            // Nobody knows where a port leads that no plan names.
            if facing.get(at).is_none_or(|far| far.is_some_and(gone)) {
                *port = shut;
            }
        }
        restored
    }
}
