//! An SNMP agent for a bridge with VLANs: what managed switches answer, for switches made of software.
//!
//! ```text
//!  datagram ─▶ Engine ─▶ Responder ─▶ Switch ─▶ DataPlane
//!             v2c, v3     (faults)     MIB       what really forwards
//! ```
//!
//! [`Switch`] holds the configuration that managers read and write; a [`DataPlane`] carries it out and says what it sees.
//! [`Engine`] speaks the protocol around it. [`Faulty`] stands between the two and misbehaves on demand. None of them
//! has a socket or a clock: time comes in with each call, so that a test can play any hour in any order. [`Server`] is
//! the thin shell with a UDP socket.

mod config;
mod engine;
mod faults;
mod plane;
mod responder;
mod sensors;
mod switch;
mod udp;
mod view;
mod write;

pub use config::{
    Config, Facts, HybridPorts, Learning, Limits, PortConfig, PortFacts, PortKind, StaticConfig, VlanConfig,
};
pub use engine::{Access, Engine, Reply, User};
pub use faults::{Fault, Faulty, Mishap, Trigger};
pub use plane::{Change, DataPlane, Refused};
pub use responder::{Answer, EngineClock, Responder, Rights};
pub use sensors::{
    Counters, LacpSensor, NeighbourInfo, Neighbours, PortSensor, Sensors, StpPortSensor, StpSensor, bridge_id,
};
pub use switch::{Still, Switch};
pub use udp::Server;
