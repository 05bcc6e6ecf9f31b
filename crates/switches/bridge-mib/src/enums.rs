//! Enumerations of the MIBs, each with the numbers that travel.

use thiserror::Error;

/// A number that an enumeration does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("{number} is no {what}")]
pub struct UnknownCode {
    /// What was expected.
    pub what: &'static str,
    /// What came.
    pub number: i32,
}

macro_rules! codes {
    ($(#[$doc:meta])* $name:ident, $what:literal { $($(#[$item:meta])* $variant:ident = $code:literal,)+ }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name {
            $($(#[$item])* $variant,)+
        }

        impl $name {
            /// Every value, in order.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)+];

            /// The number that travels.
            pub const fn code(self) -> i32 {
                match self {
                    $(Self::$variant => $code,)+
                }
            }
        }

        impl TryFrom<i32> for $name {
            type Error = UnknownCode;

            fn try_from(number: i32) -> Result<Self, UnknownCode> {
                let found = Self::ALL.iter().copied().find(|value| value.code() == number);
                found.ok_or(UnknownCode { what: $what, number })
            }
        }
    };
}

codes!(
    /// How rows of a table come and go (RFC 2579).
    RowStatus, "RowStatus" {
        /// In force.
        Active = 1,
        /// Complete, but not in force.
        NotInService = 2,
        /// Something is missing.
        NotReady = 3,
        /// Written: make the row and put it in force.
        CreateAndGo = 4,
        /// Written: make the row, but wait.
        CreateAndWait = 5,
        /// Written: remove the row.
        Destroy = 6,
    }
);
codes!(
    /// Whether a port announces itself by LLDP, and listens (lldpPortConfigAdminStatus).
    LldpAdmin, "lldpPortConfigAdminStatus" {
        /// It announces itself and does not listen.
        TxOnly = 1,
        /// It listens and says nothing.
        RxOnly = 2,
        /// Both.
        TxAndRx = 3,
        /// Neither.
        Disabled = 4,
    }
);
codes!(
    /// How long a static entry lasts (dot1qStaticUnicastStatus).
    StaticStatus, "dot1qStaticUnicastStatus" {
        /// None of the below.
        Other = 1,
        /// Written: remove the entry.
        Invalid = 2,
        /// It survives a restart.
        Permanent = 3,
        /// It lasts until the next restart.
        DeleteOnReset = 4,
        /// It lasts until it ages.
        DeleteOnTimeout = 5,
    }
);
codes!(
    /// Where an entry of the filtering database is from (dot1qTpFdbStatus).
    FdbStatus, "dot1qTpFdbStatus" {
        /// None of the below.
        Other = 1,
        /// It has aged.
        Invalid = 2,
        /// It was learned.
        Learned = 3,
        /// It is the bridge itself.
        Own = 4,
        /// It is a static entry.
        Mgmt = 5,
    }
);
codes!(
    /// Why a VLAN is there (dot1qVlanStatus).
    VlanStatus, "dot1qVlanStatus" {
        /// None of the below.
        Other = 1,
        /// It is configured.
        Permanent = 2,
        /// A protocol made it.
        Dynamic = 3,
    }
);
codes!(
    /// Spanning tree's state of a port (dot1dStpPortState).
    StpState, "dot1dStpPortState" {
        /// Spanning tree has no part in it.
        Disabled = 1,
        /// It relays nothing.
        Blocking = 2,
        /// It relays nothing, and waits.
        Listening = 3,
        /// It relays nothing, but learns.
        Learning = 4,
        /// It relays.
        Forwarding = 5,
        /// It does not work.
        Broken = 6,
    }
);
codes!(
    /// EnabledStatus of P-BRIDGE-MIB, and dot1dStpPortEnable.
    Enabled, "EnabledStatus" {
        /// On.
        Yes = 1,
        /// Off.
        No = 2,
    }
);
codes!(
    /// TruthValue.
    Truth, "TruthValue" {
        /// Yes.
        True = 1,
        /// No.
        False = 2,
    }
);
codes!(
    /// ifAdminStatus and ifOperStatus.
    IfStatus, "ifStatus" {
        /// In service.
        Up = 1,
        /// Out of service.
        Down = 2,
        /// In a test mode.
        Testing = 3,
        /// It cannot be told.
        Unknown = 4,
        /// Waiting for something outside.
        Dormant = 5,
        /// A part is missing.
        NotPresent = 6,
        /// What is below it is down.
        LowerLayerDown = 7,
    }
);
codes!(
    /// dot3PauseAdminMode and dot3PauseOperMode.
    PauseMode, "dot3PauseMode" {
        /// No PAUSE frames.
        Off = 1,
        /// Sends them.
        Transmit = 2,
        /// Obeys them.
        Receive = 3,
        /// Sends and obeys them.
        Both = 4,
    }
);
codes!(
    /// dot1qPortAcceptableFrameTypes.
    AcceptableFrames, "dot1qPortAcceptableFrameTypes" {
        /// All.
        All = 1,
        /// Only with a tag.
        OnlyTagged = 2,
    }
);
codes!(
    /// How a chassis is named (LldpChassisIdSubtype).
    LldpChassisSubtype, "LldpChassisIdSubtype" {
        /// entPhysicalAlias of a chassis.
        Component = 1,
        /// ifAlias.
        Alias = 2,
        /// entPhysicalAlias of a port.
        PortComponent = 3,
        /// An Ethernet address.
        Mac = 4,
        /// A network address.
        Network = 5,
        /// ifName.
        Name = 6,
        /// What somebody chose.
        Local = 7,
    }
);
codes!(
    /// How a port is named (LldpPortIdSubtype).
    LldpPortSubtype, "LldpPortIdSubtype" {
        /// ifAlias.
        Alias = 1,
        /// entPhysicalAlias of a port.
        PortComponent = 2,
        /// An Ethernet address.
        Mac = 3,
        /// A network address.
        Network = 4,
        /// ifName.
        Name = 5,
        /// A DHCP relay's circuit.
        Circuit = 6,
        /// What somebody chose.
        Local = 7,
    }
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_read_what_they_write_and_refuse_the_rest() {
        assert!(RowStatus::ALL.iter().all(|status| RowStatus::try_from(status.code()) == Ok(*status)));
        assert!(StaticStatus::ALL.iter().all(|status| StaticStatus::try_from(status.code()) == Ok(*status)));
        assert!(StpState::ALL.iter().all(|state| StpState::try_from(state.code()) == Ok(*state)));
        for number in [0, 7, -1, i32::MAX] {
            assert_eq!(RowStatus::try_from(number), Err(UnknownCode { what: "RowStatus", number }));
        }
    }
}
