//! Where a deployment leads: the states of every switch on the way from what it holds to the plan.

use std::collections::BTreeMap;

use fabric::{DeviceIntent, Mac, Plan, SwitchId, Topology, VlanId, VlanSet};
use rollout::{
    addresses::{LearnedPlan, in_other_topology},
    deploy::{LiveStage, Management, Way, far_first},
};
use switch_model::SwitchConfig;
use transition::{Deadlock, Part, StepKind};

use super::{
    DeployRequest, HostsState, Start,
    hitless::{HostTables, has_hosts, hitless},
};
use crate::{
    Error,
    goals::{free_vlan, vlans_of},
};

/// Where the switches are to get, and how.
#[derive(Clone, Debug)]
pub struct Route {
    /// The plan, with the learned addresses whose entries are kept.
    pub plan: LearnedPlan,
    /// The cabling, with the ports of both plans where there are two.
    pub topology: Topology,
    /// `goals[switch]`: what each switch is to hold.
    pub goals: Vec<SwitchConfig>,
    /// How it gets there.
    pub way: Way,
    /// The states that hosts that tag pass through on a way under traffic, the first one included; empty if they change nothing.
    pub hosts: Vec<HostsState>,
    /// Whether frames of two plans can wait for each other for ever under way. Nothing waits where there is no traffic.
    pub deadlock: Deadlock,
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
        match request.since {
            Some(old) => Self::under_traffic(old, request),
            None => Ok(Self::drained(request)),
        }
    }

    fn drained(request: &DeployRequest<'_>) -> Self {
        let plan = LearnedPlan::new(request.plan, request.learned);
        let (topology, devices) = (plan.plan().topology.clone(), &plan.plan().devices);
        Self {
            goals: plan.goals(),
            way: if request.start == Start::Undo { Way::Undo } else { Way::Drained },
            hosts: Vec::new(),
            deadlock: Deadlock::NothingWaits,
            management: Management::of(&topology, devices),
            sequence: far_first(&topology, devices),
            topology,
            plan,
        }
    }

    fn under_traffic(old: &Plan, request: &DeployRequest<'_>) -> Result<Self, Error> {
        let before = LearnedPlan::new(old, request.learned);
        let known = in_other_topology(before.known(), &old.topology, &request.plan.topology);
        let plan = LearnedPlan::new(request.plan, &known);
        let host_tables = if request.hosts_program.is_empty() { HostTables::ByHand } else { HostTables::ByProgram };
        let transition = hitless(before.plan(), plan.plan(), host_tables).map_err(|reason| {
            let way_out = reason.way_out().map(|way_out| format!("; {way_out}"));
            Error::Request(format!("{reason}{}", way_out.unwrap_or_default()))
        })?;
        let (topology, deadlock) = (transition.topology, transition.deadlock);
        let twins: Vec<Option<SwitchId>> =
            topology.switches().iter().map(|switch| old.topology.find_switch(&switch.name)).collect();
        let kept_before = |switch: SwitchId, vlan: VlanId, mac: Mac| {
            twins[switch.index()].is_none_or(|twin| before.keeps(twin, vlan, mac))
        };
        let kept_after = |switch: SwitchId, vlan: VlanId, mac: Mac| plan.keeps(switch, vlan, mac);
        // Entries that only one of the plans does without are there from before the first step until after the last.
        let kept_between =
            |switch: SwitchId, vlan: VlanId, mac: Mac| kept_before(switch, vlan, mac) || kept_after(switch, vlan, mac);
        let config = |device: &DeviceIntent| config_of(&topology, device, &kept_between);
        let management = Management::of(&topology, &transition.goal.devices);
        let joins = |switch: &SwitchId| twins[switch.index()].is_none();
        let sequence = far_first(&topology, &transition.goal.devices);
        let (start, begun) = each_config(&topology, &transition.start.devices, (&kept_before, &kept_between));
        let (goals, ended) = each_config(&topology, &transition.goal.devices, (&kept_after, &kept_between));
        let differing = |from: &[SwitchConfig], to: &[SwitchConfig]| -> BTreeMap<SwitchId, SwitchConfig> {
            let pairs = topology.switch_ids().zip(from).zip(to).filter(|((_, from), to)| from != to);
            pairs.map(|((switch, _), to)| (switch, to.clone())).collect()
        };
        let mut first = differing(&start, &begun);
        first.extend(
            topology.switch_ids().zip(&begun).filter(|(switch, _)| joins(switch)).map(|(s, blank)| (s, blank.clone())),
        );
        let start =
            topology.switch_ids().zip(start).map(|(switch, config)| (!joins(&switch)).then_some(config)).collect();
        let (mut state, mut stages) = (transition.start, vec![LiveStage::Switches(first)]);
        let mut hosts = Vec::new();
        for step in &transition.steps {
            let mut stage = BTreeMap::new();
            step.parts.iter().for_each(|part| transition::apply(part, &mut state));
            for part in &step.parts {
                if let Part::Switch(change) = part {
                    stage.insert(change.switch, config(&state.devices[change.switch.index()]));
                }
            }
            stages.push(LiveStage::Switches(stage));
            if !has_hosts(&step.parts) {
                continue;
            }
            if hosts.is_empty() {
                hosts.push(HostsState::plan(old));
            }
            if step.kind != StepKind::Settle {
                stages.push(LiveStage::Hosts(hosts.len()));
                hosts.push(HostsState::between(&topology, &state, request.plan)?);
            }
        }
        if !hosts.is_empty() {
            stages.push(LiveStage::Hosts(hosts.len()));
            hosts.push(HostsState::plan(request.plan));
        }
        stages.push(LiveStage::Switches(differing(&ended, &goals)));
        stages.retain(|stage| !matches!(stage, LiveStage::Switches(configs) if configs.is_empty()));
        Ok(Self { plan, goals, way: Way::Live { start, stages }, hosts, deadlock, topology, management, sequence })
    }

    /// Every VLAN on the whole way, that of management included.
    pub fn vlans(&self) -> VlanSet {
        let mut used = vlans_of(&self.goals);
        if let Way::Live { start, stages } = &self.way {
            used.extend(vlans_of(start.iter().flatten().chain(stages.iter().flat_map(LiveStage::configs))).iter());
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
                    Some((format!("live step {number}"), stage.config(switch)?.with_parked(parked)))
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

/// Whether a switch holds a device's entry for an address in a VLAN.
type Keeps<'a> = dyn Fn(SwitchId, VlanId, Mac) -> bool + 'a;

fn config_of(topology: &Topology, device: &DeviceIntent, keeps: &Keeps<'_>) -> SwitchConfig {
    let mut config = SwitchConfig::of_intent(topology, device);
    config.entries.retain(|(vlan, mac), _| keeps(device.switch, *vlan, *mac));
    config
}

/// What switches hold, `[switch]`, by two rules for entries.
fn each_config(
    topology: &Topology,
    devices: &[DeviceIntent],
    (one, other): (&Keeps<'_>, &Keeps<'_>),
) -> (Vec<SwitchConfig>, Vec<SwitchConfig>) {
    let by = |keeps: &Keeps<'_>| devices.iter().map(|device| config_of(topology, device, keeps)).collect();
    (by(one), by(other))
}
