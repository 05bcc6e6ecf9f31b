//! What every switch can be asked, whatever it speaks, and what it answers.

use std::{fmt, time::Duration};

use fabric::VlanSet;

use crate::{Slot, SwitchConfig, mark::Mark, printable::plain, sight::Sight};
use cancel::Cancel;

/// A switch that can be read, written and saved.
pub trait Driver: Send {
    /// Reads the whole state.
    ///
    /// # Errors
    /// [`Fault`].
    fn read(&mut self) -> Result<Reading, Fault>;

    /// Brings the switch from one state to another and leaves a mark, unless the fence has moved. With a `guard`, a switch
    /// that can takes the change back by itself when it is cut off for so long; when this returns it will not any more.
    ///
    /// # Errors
    /// [`Fault`].
    fn write(
        &mut self,
        before: &SwitchConfig,
        after: &SwitchConfig,
        mark: Mark,
        fence: Fence,
        guard: Option<Duration>,
    ) -> Result<Fence, Fault>;

    /// Makes the running state the one that the switch starts with, unless the fence has moved.
    ///
    /// # Errors
    /// [`Fault`].
    fn save(&mut self, fence: Fence) -> Result<Fence, Fault>;

    /// What its ports hear and count at this moment, and learned addresses if they are asked for. One that cannot be asked
    /// that says nothing: an empty [`Sight`].
    ///
    /// # Errors
    /// [`Fault`].
    fn look(&mut self, _addresses: Addresses) -> Result<Sight, Fault> {
        Ok(Sight::default())
    }

    /// Takes ports out of service as fast as it can, whoever else writes. One that has no faster way than
    /// [`Driver::write`] leaves it to that.
    ///
    /// # Errors
    /// [`Fault`].
    fn shut(&mut self, _ports: &[Slot]) -> Result<(), Fault> {
        Ok(())
    }

    /// Names of the unmanaged ports that are in the way of a deployment with these VLANs: ports beyond those that the switch
    /// was connected for, whose settings have to do with them, or with VLANs of the ports it was connected for.
    ///
    /// # Errors
    /// [`Fault`].
    fn unmanaged(&mut self, vlans: &VlanSet) -> Result<Vec<String>, Fault>;

    /// Includes unmanaged ports behind the others: they are read and written like them from now on.
    ///
    /// # Errors
    /// [`Fault`], naming a port that the switch does not have.
    fn include(&mut self, names: &[String]) -> Result<(), Fault>;

    /// From now on whoever holds this token can have requests end early. One that never waits has none to end.
    fn set_cancel(&mut self, _cancel: &Cancel) {}
}

/// Whether a look reads learned addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Addresses {
    /// As many as a few requests bring.
    Read,
    /// None: counters tell.
    Skip,
}

/// What a switch said of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reading {
    /// Its state.
    pub config: SwitchConfig,
    /// Who set it up last.
    pub mark: Option<Mark>,
    /// Changes with every write by anybody, and with every restart.
    pub fence: Fence,
}

/// A number that a switch changes whenever anybody writes to it, and when it restarts: the standard's advisory lock
/// (RFC 3418, snmpSetSerialNo) or, where a switch has none, the time of its last restart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fence(pub u64);

/// Why a switch did not do what it was asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It did not answer, as often as it was asked. Whether it did what it was asked is unknown.
    Silent,
    /// It refused, or answered what makes no sense.
    Refused(String),
    /// It restarted, or somebody else wrote to it.
    Fenced,
    /// It was cut off by a change, and has taken it back by itself.
    Reverted,
    /// It said yes, but holds something else.
    Differs(String),
    /// It was left alone in the middle of a request, because somebody asked to stop.
    Stopped,
    /// Whatever was asked of it made this program fail: a defect, in these words.
    Panicked(String),
    /// Another deployment was in the middle of it, so what it held before is in that one's journal.
    UnderWay(Mark),
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Silent => f.write_str("does not answer"),
            Self::Refused(what) => write!(f, "refused: {}", plain(what)),
            Self::Fenced => f.write_str("restarted, or was changed by somebody else"),
            Self::Reverted => f.write_str("was cut off by the change, and took it back by itself"),
            Self::Differs(what) => write!(f, "accepted a change but holds something else: {}", plain(what)),
            Self::Stopped => f.write_str("was left in the middle of a request, as you asked"),
            Self::Panicked(what) => {
                write!(f, "could not be dealt with, by a defect of this program; please report it: {}", plain(what))
            }
            Self::UnderWay(mark) => write!(
                f,
                "was in the middle of another deployment (generation {}), whose journal knows what it held before",
                mark.generation
            ),
        }
    }
}
