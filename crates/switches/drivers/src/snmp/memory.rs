//! What is remembered of a switch from look to look.

use bridge_mib::index::FdbRow;
use switch_model::station::LldpNeighbour;

use super::{SaveMethod, neighbours::LocalPorts, ports::PortTable};

/// What is remembered from look to look.
#[derive(Debug, Default)]
pub(super) struct Memory {
    /// All its ports, as they were when it was first asked.
    pub(super) table: PortTable,
    /// What LLDP's numbers of them mean.
    pub(super) local: Option<LocalPorts>,
    pub(super) heard: Vec<LldpNeighbour>,
    pub(super) changed: Option<u64>,
    pub(super) time: ChangeTime,
    /// Where the next reading of learned addresses begins.
    pub(super) learned: FdbPosition,
}

/// A place in dot1qTpFdbTable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(super) enum FdbPosition {
    #[default]
    Start,
    After(FdbRow),
    /// The switch does not let it be read.
    Nowhere,
}

/// Whether the time of the last change tells of changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(super) enum ChangeTime {
    #[default]
    Untried,
    Tells,
    Lies,
}

impl Memory {
    /// Of a switch whose time of the last change is known to tell, if it is one of ours.
    pub(super) fn of(save: SaveMethod, table: PortTable) -> Self {
        let time = if save == SaveMethod::Own { ChangeTime::Tells } else { ChangeTime::Untried };
        Self { table, time, ..Self::default() }
    }
}
