//! Frames: what the simulator knows of each.

use fabric::FloodKind;

use crate::{tables::UNTAGGED, workload::WIRE_OVERHEAD_BYTES};

/// A frame: a line of the processor's cache.
#[derive(Clone, Copy)]
#[repr(align(64))]
pub(super) struct Frame {
    pub(super) at_ps: u64,
    pub(super) born_ps: u64,
    pub(super) flow: u32,
    pub(super) number: u32,
    pub(super) source: u32,
    pub(super) destination: u32,
    /// The port by which it came into the switch where it is.
    pub(super) ingress: u32,
    /// The port on whose cable it is, or was last.
    pub(super) exit: u32,
    pub(super) next: u32,
    /// Without tag, with the frame check sequence.
    pub(super) bytes: u16,
    pub(super) tag: u16,
    pub(super) vlan: u16,
    pub(super) kind: Payload,
    /// What it is to a switch without an entry for it.
    pub(super) flood: FloodKind,
    pub(super) class: u8,
    pub(super) marked: bool,
}

/// What a frame carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Payload {
    Data,
    Ack,
    MarkedAck,
    ArpRequest,
    ArpReply,
}

impl Frame {
    #[inline]
    pub(super) fn wire_bytes(&self) -> u64 {
        u64::from(self.bytes) + u64::from(WIRE_OVERHEAD_BYTES) + if self.tag == UNTAGGED { 0 } else { 4 }
    }
}
