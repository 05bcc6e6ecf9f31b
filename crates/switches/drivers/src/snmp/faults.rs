//! What an answer, or none, says of a switch: the fault that a deployment hears, or the number that it should be.

use std::fmt;

use fabric::VlanId;
use snmp::SessionError;
use switch_model::driver::Fault;

/// A fault of an answer that makes no sense.
pub(super) fn nonsense(error: impl fmt::Display) -> Fault {
    Fault::Refused(error.to_string())
}

/// The fault that a failed request is.
pub(super) fn fault(error: SessionError) -> Fault {
    match error {
        SessionError::Silent { .. } => Fault::Silent,
        SessionError::Stopped => Fault::Stopped,
        error => Fault::Refused(error.to_string()),
    }
}

/// A VLAN by its number, if there is such a VLAN.
pub(super) fn vlan_id(number: u32) -> Option<VlanId> {
    u16::try_from(number).ok().and_then(|id| VlanId::new(id).ok())
}
