//! What really forwards, as the managed switch sees it: told what has been written, asked what is.

use std::fmt;

use bridge_mib::{BridgePort, index::StaticRow};
use fabric::VlanId;
use snmp::wire::ErrorStatus;

use super::{config::Config, sensors::Sensors};

/// What has been written, for a data plane that need not look at everything.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Change {
    /// Everything may be different.
    All,
    /// Names, ageing, the bridge's priority.
    Bridge,
    /// A VLAN came, changed or went.
    Vlan(VlanId),
    /// A port.
    Port(BridgePort),
    /// A static entry came, changed or went.
    Static(StaticRow),
}

/// Why a data plane cannot do what was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// In words, for whoever runs the agent.
    pub why: String,
    /// What the manager hears, once everything is as it was.
    pub status: ErrorStatus,
    /// Which of the changes it was, if one of them.
    pub change: Option<Change>,
}

impl Refused {
    /// A refusal that no status of its own describes.
    pub fn commit_failed(why: String) -> Self {
        Self { why, status: ErrorStatus::CommitFailed, change: None }
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.why)
    }
}

/// What really forwards.
pub trait DataPlane {
    /// Brings the sensors up to date; a plane may keep what it read a moment ago. `up_cs` is sysUpTime.
    fn observe(&mut self, up_cs: u32, sensors: &mut Sensors);

    /// What is configured, if somebody else than managers has changed it where it is carried out since it was last asked.
    fn found(&mut self, _config: &Config) -> Option<Config> {
        None
    }

    /// Carries the configuration out, of which only what `changes` name is new.
    ///
    /// # Errors
    /// Why not; a plane need not undo what it has begun, since it is then asked to carry the old configuration out.
    fn apply(&mut self, config: &Config, changes: &[Change]) -> Result<(), Refused>;
}
