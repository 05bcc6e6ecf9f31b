//! What switches are made of.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

/// What the switches of a lab are made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Backend {
    /// The kernel's own VLAN-aware bridge.
    Bridge,
    /// A tc program on each port.
    Ebpf,
}

impl Backend {
    /// Every back end, the preferred one first.
    pub const ALL: &'static [Self] = &[Self::Bridge, Self::Ebpf];

    /// The word for it.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Bridge => "bridge",
            Self::Ebpf => "ebpf",
        }
    }
}

impl fmt::Display for Backend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.word())
    }
}

impl FromStr for Backend {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.iter().copied().find(|backend| backend.word() == text);
        found.ok_or_else(|| format!("{text:?} is none of bridge, ebpf"))
    }
}
