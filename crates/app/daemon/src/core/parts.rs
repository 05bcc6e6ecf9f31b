//! Parts of a fabric by name, and which of them have failed without a stored answer.

use std::collections::BTreeSet;

use fabric::{LinkId, Plan, SwitchId, Topology};
use rollout::diagnose::{Cause, Consequence, Diagnosis};

/// Switches and links.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Parts {
    /// Switches.
    pub switches: BTreeSet<SwitchId>,
    /// Links.
    pub links: BTreeSet<LinkId>,
}

impl Parts {
    /// Parts of these names: switches, links as `sw1:p1 -- sw2:p2`, and the members of groups. Names that the topology does not have are
    /// left out.
    pub fn named<'n>(topology: &Topology, names: impl IntoIterator<Item = &'n str>) -> Self {
        let mut parts = Self::default();
        for name in names {
            if let Some(switch) = topology.find_switch(name) {
                parts.switches.insert(switch);
            } else if let Some(group) = topology.find_group(name) {
                let group = topology.group(group);
                parts.switches.extend(&group.switches);
                parts.links.extend(&group.links);
            } else {
                parts.links.extend(topology.link_ids().filter(|link| topology.link_label(*link) == name));
            }
        }
        parts
    }

    /// What has failed and has no stored answer in force: switches that are down and links, of which the plan stores nothing, or
    /// only the answer to another failure.
    pub fn unprotected(topology: &Topology, diagnoses: &[Diagnosis]) -> Self {
        let mut parts = Self::default();
        for diagnosis in diagnoses {
            let is_unanswered = |consequence: &Consequence| {
                matches!(consequence, Consequence::NothingStored | Consequence::AnswerForAnother { .. })
            };
            match &diagnosis.cause {
                Cause::SwitchDown { switch, .. } => {
                    let is_answered = |consequence: &Consequence| matches!(consequence, Consequence::InForce { failure, .. } if failure.takes(topology, *switch));
                    if !diagnosis.consequences.iter().any(is_answered) {
                        parts.switches.insert(*switch);
                    }
                }
                Cause::CableDown { link, .. } if diagnosis.consequences.iter().any(is_unanswered) => {
                    parts.links.insert(*link);
                }
                _ => {}
            }
        }
        parts
    }

    /// Cables that are down, whatever the plan does about it.
    pub fn down(diagnoses: &[Diagnosis]) -> Self {
        let of = |diagnosis: &Diagnosis| match diagnosis.cause {
            Cause::CableDown { link, .. } => Some(link),
            _ => None,
        };
        Self { links: diagnoses.iter().filter_map(of).collect(), ..Self::default() }
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.switches.is_empty() && self.links.is_empty()
    }

    /// Their names, in order.
    pub fn names(&self, topology: &Topology) -> Vec<String> {
        let switches = self.switches.iter().map(|switch| topology.switch(*switch).name.clone());
        switches.chain(self.links.iter().map(|link| topology.link_label(*link))).collect()
    }
}

/// What an event is about, by name; empty if it is about the whole fabric.
pub fn subject(plan: &Plan, diagnosis: &Diagnosis) -> String {
    let topology = &plan.topology;
    let cause = &diagnosis.cause;
    if let Some(switch) = cause.switch() {
        return topology.switch(switch).name.clone();
    }
    if let Some(link) = cause.link() {
        return topology.link_label(link);
    }
    match cause {
        Cause::LagShort { lag, .. } => topology.port_label(*lag),
        // There may be several of a kind, and each says where it is.
        Cause::Miscabled(_)
        | Cause::ForeignCable { .. }
        | Cause::UnknownPort { .. }
        | Cause::Crowd { .. }
        | Cause::OneWay { .. } => diagnosis.sentence(plan),
        _ => String::new(),
    }
}
