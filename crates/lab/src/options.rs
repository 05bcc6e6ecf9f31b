//! How a lab is built, as its builder asks for it.

use serde::{Deserialize, Serialize};
use tagger::Spread;

use crate::{Backend, table::AGEING_S};

/// How a lab is built.
#[derive(Clone, Debug)]
pub struct LabOptions {
    /// Its name.
    pub name: String,
    /// Rate of the fastest host cable; all other cables keep their proportion to it.
    pub rate_bps: u64,
    /// Most bytes that wait for one direction of a cable, in frames of the largest size.
    pub queue_bytes: u32,
    /// What switches are made of; none is the first of [`Backend::ALL`] that runs here.
    pub backend: Option<Backend>,
    /// Whether hosts send super-packets.
    pub offload: Offload,
    /// Whether switches can be managed.
    pub managed: Managed,
    /// What switches do at first.
    pub start: Start,
    /// How a host that tags its own frames spreads them over the VLANs of a pair.
    pub spread: Spread,
    /// How long switches that learn remember an address, in seconds, if they are not managed.
    pub ageing_s: u32,
    /// The plan's own text, kept with the lab for whoever opens it later.
    pub plan_text: Option<String>,
}

impl LabOptions {
    /// 100 Mbit/s, 4 MiB queues, frames one by one: half of them full frames of 64 windows, half what acknowledges them.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            rate_bps: 100_000_000,
            queue_bytes: 4 << 20,
            backend: None,
            offload: Offload::Off,
            managed: Managed::No,
            start: Start::Planned,
            spread: Spread::First,
            ageing_s: AGEING_S,
            plan_text: None,
        }
    }
}

/// Whether switches can be managed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Managed {
    /// They do what they are told when the lab is built, and have no management.
    No,
    /// Each has an address in a management network, where agents answer once
    /// [`managed::serve`](crate::managed::serve) runs.
    Yes,
}

/// What switches do at first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// What the plan says.
    Planned,
    /// What they do when they leave the factory: one VLAN for all, learning, and spanning tree, which has opened no port
    /// yet. Only for managed switches.
    Factory,
}

/// Whether hosts send super-packets through the fabric.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Offload {
    /// Every frame by itself, as on a cable: shaping, loss and fairness are those of frames.
    Off,
    /// Trains of up to [`TRAIN_FRAMES`] TCP segments: a third of the work, for rates that a machine could not carry frame
    /// by frame. Shaping stays exact; what is lost or overtaken is a train.
    Trains,
    /// Super-packets of up to 64 KiB: many times faster, and no longer like a cable.
    On,
}

/// Most TCP segments of one train, with [`Offload::Trains`].
pub const TRAIN_FRAMES: u32 = 4;
