//! Where a deployment leads: the states of every switch on the way from what it holds to the plan.

use std::collections::BTreeMap;

use fabric::{DeviceIntent, SwitchId, Topology, VlanId, VlanSet};
use rollout::deploy::{Management, Way, far_first};
use switch_model::SwitchConfig;
use transition::Part;

use super::{DeployRequest, Start};
use crate::{
    Error,
    goals::{free_vlan, goals, vlans_of},
};

/// Where the switches are to get, and how.
#[derive(Clone, Debug)]
pub struct Route {
    /// The cabling, with the ports of both plans where there are two.
    pub topology: Topology,
    /// `goals[switch]`: what each switch is to hold.
    pub goals: Vec<SwitchConfig>,
    /// How it gets there.
    pub way: Way,
    /// How management frames reach the switches meanwhile.
    pub management: Management,
    /// The order in which switches are written where management is in band: the farthest first.
    pub sequence: Vec<SwitchId>,
}

impl Route {
    /// The states on the way to a plan.
    ///
    /// # Errors
    /// [`Error::Request`], if no change under traffic leads from the old plan to the new one.
    pub fn new(request: &DeployRequest<'_>) -> Result<Self, Error> {
        let plan = request.plan;
        let Some(old) = request.since else {
            let way = if request.start == Start::Undo { Way::Undo } else { Way::Drained };
            return Ok(Self {
                topology: plan.topology.clone(),
                goals: goals(plan),
                way,
                management: Management::of(&plan.topology, &plan.devices),
                sequence: far_first(&plan.topology, &plan.devices),
            });
        };
        let transition = transition::steps(old, plan).map_err(|error| Error::Request(error.to_string()))?;
        let topology = transition.topology;
        let config = |device: &DeviceIntent| SwitchConfig::of_intent(&topology, device);
        let management = Management::of(&topology, &transition.goal.devices);
        if management != Management::of(&topology, &transition.start.devices) {
            return Err(Error::Request(
                "the plans manage the switches by different cables; plan with --previous, which keeps the old ones, or \
                 deploy without --since"
                    .to_owned(),
            ));
        }
        let sequence = far_first(&topology, &transition.goal.devices);
        let start: Vec<SwitchConfig> = transition.start.devices.iter().map(config).collect();
        let goals: Vec<SwitchConfig> = transition.goal.devices.iter().map(config).collect();
        let (mut state, mut stages) = (transition.start, Vec::new());
        for step in &transition.steps {
            let mut stage = BTreeMap::new();
            for part in &step.parts {
                match part {
                    Part::Host(..) => {
                        return Err(Error::Request(
                            "hosts tag their frames in these plans, and must change their tables between two steps, \
                             which deploy cannot see to; deploy without --since"
                                .to_owned(),
                        ));
                    }
                    Part::Switch(change) => {
                        transition::apply(part, &mut state);
                        stage.insert(change.switch, config(&state.devices[change.switch.index()]));
                    }
                }
            }
            stages.push(stage);
        }
        Ok(Self { goals, way: Way::Live { start, stages }, topology, management, sequence })
    }

    /// Every VLAN on the whole way, that of management included.
    pub fn vlans(&self) -> VlanSet {
        let mut used = vlans_of(&self.goals);
        if let Way::Live { start, stages } = &self.way {
            used.extend(vlans_of(start.iter().chain(stages.iter().flat_map(BTreeMap::values))).iter());
        }
        if let Management::InBand { vlan, .. } = self.management {
            used.insert(vlan);
        }
        used
    }

    /// The highest VLAN id that stays free on the whole way.
    pub fn mark_vlan(&self) -> VlanId {
        free_vlan(&self.vlans())
    }

    /// The states that a switch passes through, the last one included, and what they are called.
    pub fn states(&self, switch: SwitchId, found: &SwitchConfig, parked: &[String]) -> Vec<(String, SwitchConfig)> {
        let goal = &self.goals[switch.index()].with_parked(parked);
        match &self.way {
            Way::Live { stages, .. } => (stages.iter().zip(1..))
                .filter_map(|(stage, number)| {
                    Some((format!("live step {number}"), stage.get(&switch)?.with_parked(parked)))
                })
                .collect(),
            Way::Drained | Way::Undo if found == goal => Vec::new(),
            Way::Drained | Way::Undo => vec![
                ("drain".to_owned(), self.management.shut(switch, found)),
                ("configure".to_owned(), self.management.shut(switch, goal)),
                ("open".to_owned(), goal.clone()),
            ],
        }
    }
}
