//! The ladder: what the controller does about each kind of event by itself.

use serde::{Deserialize, Serialize};

/// What the controller does about an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reaction {
    /// It says so.
    Report,
    /// It proposes a plan, for a person to approve.
    Propose,
    /// It acts.
    Act,
}

/// What is done about each kind of event that leaves a choice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Ladder {
    /// A failure for which the plan stores an answer: `act` has hosts switch over.
    pub stored: Reaction,
    /// A failure for which it stores none: `propose` plans without the failed parts.
    pub unprotected: Reaction,
    /// A switch that differs from the plan: `act` deploys the plan once more, once.
    pub drift: Reaction,
    /// A switch that holds nothing of the plan: `act` sets it up.
    pub reset: Reaction,
    /// Traffic for which another plan would load links less: `propose` proposes it.
    pub traffic: Reaction,
    /// Addresses that ports learn: `act` enters them everywhere, within each port's bound.
    pub addresses: Reaction,
}

impl Default for Ladder {
    fn default() -> Self {
        Self {
            stored: Reaction::Act,
            unprotected: Reaction::Propose,
            drift: Reaction::Report,
            reset: Reaction::Act,
            traffic: Reaction::Report,
            addresses: Reaction::Act,
        }
    }
}

impl Ladder {
    /// The first rung that its kind of event does not have, and those that it has.
    pub fn misfit(&self) -> Option<(&'static str, Reaction, &'static [Reaction])> {
        use Reaction::{Act, Propose, Report};
        let rungs: [(&str, Reaction, &'static [Reaction]); 6] = [
            ("stored", self.stored, &[Report, Act]),
            ("unprotected", self.unprotected, &[Report, Propose]),
            ("drift", self.drift, &[Report, Act]),
            ("reset", self.reset, &[Report, Act]),
            ("traffic", self.traffic, &[Report, Propose]),
            ("addresses", self.addresses, &[Report, Act]),
        ];
        rungs.into_iter().find(|(_, chosen, there)| !there.contains(chosen))
    }
}

impl Reaction {
    /// As it is written in a configuration.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Report => "report",
            Self::Propose => "propose",
            Self::Act => "act",
        }
    }
}
