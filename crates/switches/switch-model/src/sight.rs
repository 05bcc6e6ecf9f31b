//! What a switch says of its ports at one moment: whom they hear, what they count, which addresses they have learned.

use fabric::{Mac, SwitchId};

use crate::{
    Slot,
    identity::Identity,
    observe::Count,
    station::{LldpNeighbour, Station},
};

/// A port: its switch and its place there.
pub type End = (SwitchId, Slot);

/// What a switch says of its ports at one moment.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Sight {
    /// Neighbours; [`LldpNeighbour::port`] is the position of the port among those that the switch was connected for.
    pub heard: Vec<LldpNeighbour>,
    /// `running[slot]`: whether the cable carries; empty if the switch cannot be asked what it hears.
    pub running: Vec<bool>,
    /// `flooded[slot]`: broadcast and multicast frames received; empty where it does not count them.
    pub flooded: Vec<Count>,
    /// Learned addresses, as many as one look reads; none where they were not asked for, or cannot be read.
    pub learned: Option<Vec<Learned>>,
}

/// A row of a switch's forwarding table that is learned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Learned {
    /// The filtering database.
    pub database: u32,
    /// The address.
    pub mac: Mac,
    /// The port that it is learned at.
    pub at: Slot,
}

/// What a switch says when it is surveyed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SurveyReply {
    /// Who it is.
    pub identity: Identity,
    /// Its ports, under the topology's names where that names them, and whom it hears there.
    pub station: Station,
    /// `states[port]`: of the ports of the station.
    pub states: Vec<PortState>,
}

/// Whether a port carries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PortState {
    /// It does.
    Up,
    /// Its cable is dead, or there is none.
    Down,
    /// It is administratively down.
    Shut,
    /// The switch does not say.
    #[default]
    Unknown,
}
