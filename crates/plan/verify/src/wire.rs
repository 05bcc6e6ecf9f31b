//! The frames that may be on the wire: the one definition that the judge's verdict on deadlock is about.
//!
//! ```text
//!   unicast           from every host to every other, in the VLAN of its table; what crosses a link waits for the next one
//!   broadcast         from every host to everybody; multicast spreads alike, since no switch has entries for groups
//!   unknown unicast   for an address that no switch knows: spreads from every host whose table sends it there, and where
//!                     switches learn from every host that sends in the VLAN at all, since what is learned ages
//!   management        between the controller and the switches, over their data ports; their agents' broadcasts
//!   switch-over       what hosts broadcast after a stored switch-over, beside what was sent before it
//! ```
//! Broadcast, multicast and unknown unicast are on the wire only if some port between switches lets them out.
//!
//! All of them take the same channels and are stopped by the same PAUSE, so they have to be free of a cycle *together*. Hosts
//! are taken to keep to their tagging tables.

use std::fmt;

/// Frames of one kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FrameKind {
    /// From one host to another one that switches know.
    Unicast,
    /// To everybody.
    Broadcast,
    /// To a group.
    Multicast,
    /// To an address that no switch knows.
    UnknownUnicast,
    /// Of a controller that manages the switches over their data ports.
    Management,
    /// Sent after a switch-over, beside what was sent before it.
    SwitchOver,
}

/// Whether frames can wait for each other for ever.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Deadlock {
    /// Nothing waits: switches drop what they cannot buffer.
    NothingWaits,
    /// Frames wait. Those of the covered kinds cannot close a cycle of channel dependencies together; each of the open
    /// kinds can, with them. All kinds that the plan has are in one of the lists, each ascending.
    Waits {
        /// Kinds that the proof covers.
        covered: Vec<FrameKind>,
        /// Kinds that it does not.
        open: Vec<FrameKind>,
    },
}

/// Whether the numberings of switch-overs cover floods as well.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Floods {
    Covered,
    Open,
}

impl Deadlock {
    /// Adds what is on the wire around a switch-over.
    pub(crate) fn add_switch_overs(&mut self, floods: Floods) {
        if let Self::Waits { covered, open } = self {
            match floods {
                Floods::Covered => covered.push(FrameKind::SwitchOver),
                Floods::Open => open.push(FrameKind::SwitchOver),
            }
        }
    }

    /// Whether no frame of any kind can wait for ever.
    pub fn is_impossible(&self) -> bool {
        match self {
            Self::NothingWaits => true,
            Self::Waits { open, .. } => open.is_empty(),
        }
    }
}

impl FrameKind {
    /// What people call it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Unicast => "unicast",
            Self::Broadcast => "broadcast",
            Self::Multicast => "multicast",
            Self::UnknownUnicast => "unknown unicast",
            Self::Management => "management",
            Self::SwitchOver => "switch-over",
        }
    }
}

impl fmt::Display for FrameKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// `unicast, broadcast and multicast`.
pub fn kinds_words(kinds: &[FrameKind]) -> String {
    let names: Vec<&str> = kinds.iter().map(|kind| kind.name()).collect();
    match &names[..] {
        [] => "none".to_owned(),
        [one] => (*one).to_owned(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}
