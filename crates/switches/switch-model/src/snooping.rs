//! IGMP and MLD snooping: a switch that picks the receivers of multicasts by their membership reports.
//!
//! Hosts report groups in the VLAN that they send in, and multicasts to them come in the VLANs of others, so a switch that
//! snoops keeps them from their receivers. No plan has it. Source: RFC 4541.

use std::{fmt, str::FromStr};

/// The protocol whose reports a switch snoops on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Snooping {
    /// IGMP, of IPv4.
    Igmp,
    /// MLD, of IPv6.
    Mld,
}

impl Snooping {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Igmp, Self::Mld];

    /// The protocol's name in files.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Igmp => "igmp",
            Self::Mld => "mld",
        }
    }

    /// What the switch then does to frames, as the end of a sentence about it.
    pub const fn harm(self) -> &'static str {
        match self {
            Self::Igmp => "IPv4 multicasts reach only ports that asked for them",
            Self::Mld => "IPv6 multicasts, and so neighbour discovery, reach only ports that asked for them",
        }
    }
}

impl fmt::Display for Snooping {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Igmp => "IGMP snooping",
            Self::Mld => "MLD snooping",
        })
    }
}

impl FromStr for Snooping {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let known = Self::ALL.into_iter().find(|snooping| snooping.name() == name);
        known.ok_or_else(|| format!("{name:?} is neither igmp nor mld"))
    }
}
