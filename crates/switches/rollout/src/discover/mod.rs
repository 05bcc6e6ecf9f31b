//! Cables from what switches say of their neighbours.
//!
//! ```text
//!   s1: "my p1 hears chassis S2, port p4"  ┐
//!   s2: "my p4 hears chassis S1, port p1"  ┴─▶ s1:p1 -- s2:p4    both ends agree
//!   s1: "my p3 hears chassis H, port <MAC>" ──▶ a host on s1:p3
//! ```
//! Each end names the other by a chassis and a port, in one of several notations: a MAC address, an interface's name, a
//! number, or free text. Whatever names a port of a known switch unambiguously counts. A cable that only one end
//! reports is told as such: the other end may have LLDP off, or one direction of the fibre may be dead. A neighbour
//! that is a bridge or a router, or that is heard on several ports, is a switch that was not asked, and no host. Where
//! a port has no neighbour that speaks, the addresses learned there tell which host is likely behind it. Source: IEEE
//! 802.1AB-2005, 9.5.2 and 9.5.3 (chassis and port identifiers).

mod compare;
mod find;

use std::collections::BTreeMap;

use fabric::Mac;

pub use self::{
    compare::{Mismatch, compare},
    find::cabling,
};

use switch_model::station::Unplaced;

/// A port: the position of its switch, and its position there.
pub type PortPosition = (usize, usize);

/// Cables and hosts, and what is doubtful.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cabling {
    /// Cables that both ends report, the lower place first, ascending.
    pub links: Vec<(PortPosition, PortPosition)>,
    /// Hosts, by place.
    pub hosts: BTreeMap<PortPosition, FoundHost>,
    /// What is doubtful.
    pub doubts: Vec<Doubt>,
}

/// A host behind a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundHost {
    /// Its name, if it told one.
    pub name: Option<String>,
    /// Its address.
    pub mac: Mac,
    /// How it is known.
    pub evidence: Evidence,
}

/// How something is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Evidence {
    /// It said so itself.
    Lldp,
    /// The switch has learned its address there, and nobody else's.
    Learned,
}

/// What is doubtful about a cabling.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Doubt {
    /// One end hears the other, but not the other way round.
    OneWay {
        /// Who hears.
        hears: PortPosition,
        /// Who does not.
        deaf: PortPosition,
    },
    /// The neighbour is a known switch, but its port is not to be found there.
    UnknownPort {
        /// Who hears it.
        hears: PortPosition,
        /// The switch that is heard.
        switch: usize,
        /// What it calls its port.
        port: String,
    },
    /// More than one switch is heard on a port: there is a hub or an unmanaged switch between.
    Crowd {
        /// Where.
        hears: PortPosition,
        /// How many are heard.
        count: usize,
    },
    /// A port hears what it says itself.
    Itself {
        /// The port.
        hears: PortPosition,
    },
    /// A neighbour that is a switch, but none of those that were asked.
    Unasked {
        /// Where it is heard.
        hears: PortPosition,
        /// Its sysName, or its chassis.
        neighbour: String,
        /// What it calls its port.
        port: String,
        /// Its address, if it tells one.
        mac: Option<Mac>,
    },
    /// A neighbour that is heard on no known port.
    Unplaced {
        /// The switch that hears it.
        switch: usize,
        /// The neighbour.
        unplaced: Unplaced,
    },
    /// A neighbour that tells no address, so that it is neither a known switch nor a host.
    NoAddress {
        /// Where it is heard.
        hears: PortPosition,
        /// Its sysName, or its chassis.
        neighbour: String,
    },
    /// A port has a host already.
    SecondHost {
        /// Where.
        hears: PortPosition,
        /// The address that is left out.
        mac: Mac,
    },
    /// An address that is a host's at another port already.
    SameHost {
        /// Where it is left out.
        hears: PortPosition,
        /// Where it is a host.
        other: PortPosition,
        /// The address.
        mac: Mac,
    },
}
