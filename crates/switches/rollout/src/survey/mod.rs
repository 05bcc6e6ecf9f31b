//! Looks before anything is written: whether the switches and cables are those of the plan.
//!
//! ```text
//!   topology ─────────────┐                 ┌─ misfits        another switch, one switch twice, a cable elsewhere: refuse
//!   each switch: who it is├─▶ survey() ─────┼─ confirmed      cables that both ends report
//!     whom it hears (LLDP)│                 ├─ unconfirmed    cables that nobody can see, and why: not to be opened
//!     which ports are up ─┘                 └─ notes          worth knowing, no danger
//! ```
//! A plan's trees are free of loops on the plan's cabling alone. One pair of exchanged plugs puts a ring into some VLAN for
//! 316 of the 896 exchanges that a 4×4 torus has, so what the switches hear must be what the plan says before a port opens.
//!
//! Where two addresses are exchanged, every cable of both switches seems to be elsewhere. Port by port the neighbours say
//! which switch is really there; if an exchange of names explains every cable, that is reported instead of the cables.
//! A connected cabling with distinct ports has no relabelling but the identity that leaves one switch in its place, so where
//! all cables are confirmed, addresses are right.

mod answers;
mod cables;
mod probe;
mod relabel;
mod sentence;

use std::collections::{BTreeMap, BTreeSet};

use fabric::{HostId, LinkId, PortId, SwitchId, Topology};

pub use self::{
    answers::other_answers,
    cables::{CableState, Unconfirmed, recheck},
    probe::{Probed, Trial, followed, judge_probe},
};

use crate::discover::Mismatch;
use switch_model::{
    identity::{Comparison, Identity, Likeness},
    sight::SurveyReply,
};

/// How exchanged switches were recognised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Proof {
    /// By the identities that the topology has.
    Identity,
    /// By the cabling: every cable fits the exchanged names.
    Cabling,
    /// By their sysNames, where no cable says otherwise.
    Name,
}

/// Why the plan must not be deployed on these switches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Misfit {
    /// At the addresses of these switches others of them answer: each is answered for by the next, the last by the first.
    Exchanged {
        /// The switches.
        switches: Vec<SwitchId>,
        /// How that is known.
        proof: Proof,
    },
    /// At the address of a switch another one answers.
    OtherSwitch {
        /// Whose address it is.
        switch: SwitchId,
        /// The switch of the topology that answers, if it is one of them.
        answers: Option<SwitchId>,
        /// Which items differ.
        comparison: Comparison,
        /// What the one that answers says.
        found: Identity,
    },
    /// Two addresses lead to one switch.
    OneDevice {
        /// The switches whose addresses they are.
        switches: [SwitchId; 2],
        /// What it says.
        found: Identity,
    },
    /// A cable is elsewhere.
    Cable(Mismatch),
    /// A port hears another port than the cable's other end.
    Elsewhere {
        /// The port.
        port: PortId,
        /// The other end that it should have.
        expected: PortId,
        /// What it hears there.
        heard: Neighbour,
    },
    /// A port that the plan has for a host, or for the controller, hears a switch: there is a patch cord.
    PatchCord {
        /// The port.
        port: PortId,
        /// What it hears there.
        heard: Neighbour,
    },
}

/// What a port hears.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Neighbour {
    /// A port of the topology.
    Port(PortId),
    /// A switch of the topology, and what it calls its port.
    Switch(SwitchId, String),
    /// Something else, in its own words.
    Other(String),
}

/// Something that is worth knowing and stops nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Note {
    /// A switch is called otherwise than in the topology, which is no proof of anything.
    Renamed {
        /// The switch.
        switch: SwitchId,
        /// Its sysName.
        system: String,
    },
    /// A switch is the one of the topology, but some of its identity is another.
    IdentityChanged {
        /// The switch.
        switch: SwitchId,
        /// Which items differ.
        comparison: Comparison,
    },
    /// A switch that was said to be replaced says who it is.
    Replaced {
        /// The switch.
        switch: SwitchId,
        /// What it says.
        found: Identity,
    },
    /// A host is on another port.
    HostElsewhere {
        /// The host.
        host: HostId,
        /// Where it was found.
        found: PortId,
    },
    /// A cable between ports that the plan leaves unused, and shut.
    Spare {
        /// Its ends.
        ends: (PortId, PortId),
    },
}

/// What the survey found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Survey {
    /// `identities[switch]`: whether the switch that answers is the one of the topology.
    pub identities: Vec<Likeness>,
    /// Why nothing must be written.
    pub misfits: Vec<Misfit>,
    /// Cables that both ends report, and that carry.
    pub confirmed: BTreeSet<LinkId>,
    /// Cables that are not elsewhere, but that nobody can see either.
    pub unconfirmed: BTreeMap<LinkId, Unconfirmed>,
    /// What else is worth knowing.
    pub notes: Vec<Note>,
}

impl Survey {
    /// What cables do not decide: who answers.
    pub fn identity_misfits(&self) -> impl Iterator<Item = &Misfit> {
        self.misfits.iter().filter(|misfit| {
            matches!(misfit, Misfit::Exchanged { .. } | Misfit::OtherSwitch { .. } | Misfit::OneDevice { .. })
        })
    }

    /// Whether nothing that is known of a switch speaks against its being another one.
    fn allows(&self, topology: &Topology, replies: &[Option<SurveyReply>], moved: &[SwitchId]) -> bool {
        topology.switch_ids().zip(replies).zip(moved).all(|((switch, reply), other)| {
            let system = reply.as_ref().and_then(|reply| reply.identity.system.as_deref());
            let named = system.is_some_and(|system| relabel::is_name(system, &topology.switch(switch).name));
            switch == *other || (self.identities[switch.index()] != Likeness::Same && !named)
        })
    }

    /// Notes switches that call themselves otherwise than the topology does.
    fn rename(&mut self, topology: &Topology, replies: &[Option<SurveyReply>], belongs: &[SwitchId]) {
        for (switch, reply) in belongs.iter().zip(replies) {
            let system = reply.as_ref().and_then(|reply| reply.identity.system.clone());
            if let Some(system) = system.filter(|system| !relabel::is_name(system, &topology.switch(*switch).name)) {
                self.notes.push(Note::Renamed { switch: *switch, system });
            }
        }
    }
}

/// Compares what the switches say with the topology. `replies[switch]`; none of a switch that cannot say such things, as
/// over a command line. Switches in `replaced` may have another identity than the topology's, if it is no other switch's.
/// Cost: O(ports and neighbours) look-ups.
///
/// # Panics
/// If there is not one reply a switch, or one state a port.
pub fn survey(topology: &Topology, replies: &[Option<SurveyReply>], replaced: &BTreeSet<SwitchId>) -> Survey {
    assert_eq!(replies.len(), topology.switches().len(), "a reply for every switch");
    let mut survey = Survey::default();
    let mut belongs = identities(topology, replies, replaced, &mut survey);
    let (mut proof, known) = (Proof::Identity, survey.misfits.is_empty());
    if relabel::cycles(&belongs).is_none() {
        belongs = topology.switch_ids().collect();
    }
    let mut cables = cables::Cables::of(topology, replies, &belongs);
    if known {
        let guess = relabel::by_cabling(topology, &cables).map(|moved| (moved, Proof::Cabling));
        let guess = guess.or_else(|| relabel::by_name(topology, replies, &cables).map(|moved| (moved, Proof::Name)));
        for (moved, how) in guess.into_iter().filter(|(moved, _)| survey.allows(topology, replies, moved)) {
            let relabelled = cables::Cables::of(topology, replies, &moved);
            let exchanges = relabel::cycles(&moved).map_or(0, |cycles| cycles.len());
            // As many cables in the wrong ports as switches would be the simpler explanation.
            if how == Proof::Name || relabelled.misfits.len() + exchanges < cables.misfits.len() {
                (belongs, proof, cables) = (moved, how, relabelled);
            }
        }
    }
    let others = |misfit: &Misfit| matches!(misfit, Misfit::OtherSwitch { answers: Some(_), .. });
    if survey.misfits.iter().all(others) {
        if let Some(cycles) = relabel::cycles(&belongs) {
            survey.misfits.clear();
            survey.misfits.extend(cycles.into_iter().map(|switches| Misfit::Exchanged { switches, proof }));
        }
    }
    survey.rename(topology, replies, &belongs);
    survey.misfits.extend(cables.misfits);
    survey.notes.extend(cables.notes);
    survey.confirmed = cables.confirmed;
    survey.unconfirmed = cables.unconfirmed;
    survey
}

/// Judges who answers; returns `belongs[switch]`: the switch of the topology that answers at the address of each.
fn identities(
    topology: &Topology,
    replies: &[Option<SurveyReply>],
    replaced: &BTreeSet<SwitchId>,
    survey: &mut Survey,
) -> Vec<SwitchId> {
    let mut belongs: Vec<SwitchId> = topology.switch_ids().collect();
    let mut owners: BTreeMap<String, SwitchId> = BTreeMap::new();
    for switch in topology.switch_ids() {
        let known = &topology.switch(switch).identity;
        let texts = [
            known.chassis.as_ref().map(|text| format!("c{text}")),
            known.serial.as_ref().map(|text| format!("s{text}")),
        ];
        owners.extend(texts.into_iter().flatten().map(|text| (text, switch)));
    }
    let mut seen: BTreeMap<String, SwitchId> = BTreeMap::new();
    let mut twice: BTreeSet<SwitchId> = BTreeSet::new();
    for (switch, reply) in topology.switch_ids().zip(replies) {
        let Some(SurveyReply { identity, .. }) = reply else {
            survey.identities.push(Likeness::Unknown);
            continue;
        };
        let keys: Vec<String> = (identity.chassis_texts().into_iter().map(|text| format!("c{text}")))
            .chain(identity.for_topology().serial.map(|text| format!("s{text}")))
            .collect();
        let other = |key: &String| {
            let other = *seen.get(key)?;
            let theirs = &replies[other.index()].as_ref()?.identity;
            (identity.is(theirs) == Likeness::Same).then_some(other)
        };
        if let Some(other) = keys.iter().find_map(other) {
            survey.misfits.push(Misfit::OneDevice { switches: [other, switch], found: identity.clone() });
            twice.extend([other, switch]);
        }
        for key in &keys {
            seen.entry(key.clone()).or_insert(switch);
        }
        let comparison = Comparison::of(&topology.switch(switch).identity, identity);
        let verdict = comparison.verdict();
        survey.identities.push(verdict);
        let answers = keys.iter().find_map(|key| owners.get(key)).copied().filter(|owner| *owner != switch);
        match (verdict, answers) {
            _ if twice.contains(&switch) => {}
            (Likeness::Same, _)
                if [comparison.chassis, comparison.serial, comparison.engine].contains(&Likeness::Different) =>
            {
                survey.notes.push(Note::IdentityChanged { switch, comparison });
            }
            (Likeness::Same, _) => {}
            (Likeness::Different, None) if replaced.contains(&switch) => {
                survey.notes.push(Note::Replaced { switch, found: identity.clone() });
            }
            (Likeness::Unknown, None) => {}
            (Likeness::Different, _) | (Likeness::Unknown, Some(_)) => {
                survey.misfits.push(Misfit::OtherSwitch { switch, answers, comparison, found: identity.clone() });
                belongs[switch.index()] = answers.unwrap_or(switch);
            }
        }
    }
    belongs
}
