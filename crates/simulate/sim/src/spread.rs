//! Which of a pair's VLANs carries what, where a plan gives pairs several.
//!
//! ```text
//!   one      the assigned VLAN                     flow     a hash of the flow chooses       packet   each frame the next
//!   flowlet  the next after a silence              ideal    max-min fair rates over all paths
//!   coupled  a TCP subflow for each path, with coupled windows
//! ```
//! Sources: RFC 2992 (`flow`: ECMP by hash); A. Dixit et al., "On the impact of packet spraying in data center networks", INFOCOM 2013
//! (`packet`); E. Vanini et al., "Let it flow", NSDI 2017 (`flowlet`).

use std::{fmt, str::FromStr};

use fabric::{HostId, Plan};
use thiserror::Error;

use crate::workload::{TcpVariant, Transport};

/// How hosts spread the frames of a pair over its path set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Spread {
    /// Not at all: the assigned VLAN.
    #[default]
    One,
    /// Max-min fair rates over all paths, at the flow level.
    Ideal,
    /// A hash of the flow's ends and number chooses.
    Flow,
    /// As for [`Flow`](Self::Flow), but after a silence of the flow the next path, at the packet level.
    Flowlet,
    /// Each frame takes the next path in turn, at the packet level.
    Packet,
    /// A TCP subflow for each path, with coupled windows (RFC 6356), at the packet level.
    Coupled,
}

/// Why a plan, a level or a transport cannot be spread like that.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SpreadError {
    /// The plan has no path sets.
    #[error(
        "the plan has one path a pair, so there is nothing to spread over: make one with `espalier plan TOPOLOGY --paths 8 -o \\
         plan.json`, or use --spread one"
    )]
    NoPathSets,
    /// It is about rates.
    #[error("--spread {0} is about rates: use --level flow, or one of {1}")]
    RatesOnly(Spread, String),
    /// Subflows are TCP's, and their windows Reno's.
    #[error("--spread coupled couples the windows of TCP (RFC 6356): use --transport reno")]
    RenoOnly,
    /// It is about frames.
    #[error("--spread {0} is about frames: use --level packet, or one of {1}")]
    FramesOnly(Spread, String),
}

impl Spread {
    /// Every one.
    pub const ALL: &'static [Self] = &[Self::One, Self::Ideal, Self::Flow, Self::Flowlet, Self::Packet, Self::Coupled];

    /// Its name.
    pub const fn word(self) -> &'static str {
        match self {
            Self::One => "one",
            Self::Ideal => "ideal",
            Self::Flow => "flow",
            Self::Flowlet => "flowlet",
            Self::Packet => "packet",
            Self::Coupled => "coupled",
        }
    }

    /// What it does, in a line.
    pub const fn about(self) -> &'static str {
        match self {
            Self::One => "the VLAN that the plan assigns to the pair",
            Self::Ideal => "max-min fair rates over all of a pair's paths; flow level",
            Self::Flow => "a hash of the flow's ends and number chooses one path (ECMP); both levels",
            Self::Flowlet => "as flow, but after a silence of the flow the next path; packet level",
            Self::Packet => "each frame the next path in turn; packet level",
            Self::Coupled => {
                "a TCP subflow for each path with coupled windows (RFC 6356); packet level, --transport reno"
            }
        }
    }

    /// Whether frames can be sent like that.
    pub const fn is_of_frames(self) -> bool {
        !matches!(self, Self::Ideal)
    }

    /// Checks that hosts can send like that by a transport.
    ///
    /// # Errors
    /// If it couples the windows of a transport that is not TCP with Reno's window.
    pub fn check_transport(self, transport: Transport) -> Result<(), SpreadError> {
        match (self, transport) {
            (Self::Coupled, Transport::Tcp(TcpVariant::Reno)) => Ok(()),
            (Self::Coupled, _) => Err(SpreadError::RenoOnly),
            _ => Ok(()),
        }
    }

    /// Whether the flow level knows it.
    pub const fn is_of_rates(self) -> bool {
        matches!(self, Self::One | Self::Ideal | Self::Flow)
    }

    /// Checks that the packet level can send like that over a plan's path sets.
    ///
    /// # Errors
    /// If it is about rates, or the plan has no path sets.
    pub fn check_packet(self, plan: &Plan) -> Result<(), SpreadError> {
        if !self.is_of_frames() {
            return Err(SpreadError::RatesOnly(self, words(Self::is_of_frames)));
        }
        self.check_plan(plan)
    }

    /// The same of the flow level.
    ///
    /// # Errors
    /// If it is about frames, or the plan has no path sets.
    pub fn check_flow(self, plan: &Plan) -> Result<(), SpreadError> {
        if !self.is_of_rates() {
            return Err(SpreadError::FramesOnly(self, words(Self::is_of_rates)));
        }
        self.check_plan(plan)
    }

    fn check_plan(self, plan: &Plan) -> Result<(), SpreadError> {
        if self != Self::One && plan.paths.is_none() { Err(SpreadError::NoPathSets) } else { Ok(()) }
    }
}

/// The VLANs of a pair: its path set, or the assigned one where there are no sets.
pub(crate) fn vlans_of(plan: &Plan, source: HostId, destination: HostId) -> Vec<fabric::VlanId> {
    match &plan.paths {
        Some(paths) => paths.of(source, destination).to_vec(),
        None => vec![plan.assignment.unicast(source, destination)],
    }
}

fn words(of: fn(Spread) -> bool) -> String {
    let words: Vec<&str> = Spread::ALL.iter().filter(|spread| of(**spread)).map(|spread| spread.word()).collect();
    words.join(", ")
}

impl fmt::Display for Spread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.word())
    }
}

impl FromStr for Spread {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let words = || words(|_| true);
        Self::ALL
            .iter()
            .copied()
            .find(|spread| spread.word() == text)
            .ok_or_else(|| format!("{text:?} is none of {}", words()))
    }
}
