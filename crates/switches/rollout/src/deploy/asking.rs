//! What a leg asks: of each switch, or of the world at large.

use std::{sync::Arc, time::Duration};

use fabric::SwitchId;

use super::{Deployment, Journal, Known, Management, Stage, SwitchRequest, Way, legs::Leg};
use switch_model::SwitchConfig;

impl Deployment {
    pub(super) fn common_request(&self) -> SwitchRequest {
        match self.leg {
            Leg::Look(_) => SwitchRequest::Pause(self.look.pause()),
            Leg::Hosts(_, state) => SwitchRequest::Hosts(state),
            Leg::Judge => SwitchRequest::Judge { devices: self.judged() },
            Leg::Note => SwitchRequest::Note(self.mark),
            _ => SwitchRequest::Record(Journal {
                mark: self.mark,
                stages_done: match (&self.order.way, self.leg) {
                    (Way::Live { .. }, Leg::Record(Stage::Live(stage))) => Some(stage),
                    (Way::Live { .. }, _) => Some(self.stages_done),
                    (Way::Drained | Way::Undo, _) => None,
                },
                backup: self.backup.clone(),
                under_way: self.under_way.clone(),
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
    pub(super) fn request(&self, switch: SwitchId) -> Option<SwitchRequest> {
        match self.leg {
            Leg::Read(_) => Some(SwitchRequest::Read { switch }),
            Leg::Claim => {
                let Known { config, fence, mark } = self.known_of(switch).clone();
                let (before, after) = (Arc::clone(&config), config);
                let guard = self.guard();
                // A switch that waits for an earlier controller must not go back any more.
                let due = mark != Some(self.mark) || guard.is_some();
                let mark = self.mark.at(self.phase(self.leg, switch));
                due.then_some(SwitchRequest::Write { switch, before, after, mark, fence, guard })
            }
            Leg::Seal => {
                let Known { config, fence, mark } = self.known_of(switch).clone();
                let (before, after, wanted) = (Arc::clone(&config), config, self.phase(self.leg, switch));
                let due = mark.is_none_or(|mark| mark.phase != wanted);
                let (mark, guard) = (self.mark.at(wanted), self.guard());
                due.then_some(SwitchRequest::Write { switch, before, after, mark, fence, guard })
            }
            Leg::Write(stage) => {
                let Known { config: before, fence, .. } = self.known_of(switch).clone();
                let after = self.goal(stage, switch);
                let (mark, guard) = (self.mark.at(self.phase(self.leg, switch)), self.guard());
                (before != after).then_some(SwitchRequest::Write { switch, before, after, mark, fence, guard })
            }
            Leg::Look(_) => Some(SwitchRequest::Look { switch, addresses: self.look.addresses(switch) }),
            Leg::Shut => {
                let ports = self.shut_at_once(switch);
                (!ports.is_empty()).then_some(SwitchRequest::Shut { switch, ports })
            }
            Leg::Save(_) => Some(SwitchRequest::Save { switch, fence: self.known_of(switch).fence }),
            Leg::Note | Leg::Record(_) | Leg::Judge | Leg::Hosts(..) | Leg::End => None,
        }
    }

    fn guard(&self) -> Option<Duration> {
        self.order.guard.filter(|_| self.order.management != Management::OutOfBand)
    }
}
