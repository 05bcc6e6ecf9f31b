//! Frames seen at ports: what of a frame a capture keeps.

use fabric::{HostId, PortId, VlanId};

use super::{
    Network,
    frame::{Frame, Payload},
};
use crate::tables::{NONE, UNTAGGED};

/// Most frames that all captures of a run keep.
pub const CAPTURE_MAX: usize = 1 << 20;

/// A frame seen at a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Captured {
    /// At which port.
    pub port: PortId,
    /// When its last bit passed.
    pub at_ps: u64,
    /// Which way.
    pub direction: Direction,
    /// What it was.
    pub what: Seen,
}

/// What passed a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seen {
    /// A PAUSE, or priority flow control for one class.
    Pause {
        /// The class, which PAUSE does not name.
        class: u8,
        /// How long to stop, in units of 512 bit times; 0 ends it.
        quanta: u16,
    },
    /// A frame between hosts.
    Frame(SeenFrame),
}

/// A frame between hosts, on the cable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SeenFrame {
    /// What it carries.
    pub carries: Carries,
    /// The sending host.
    pub source: HostId,
    /// The receiving host; none for a broadcast.
    pub destination: Option<HostId>,
    /// The VLAN tag on the cable.
    pub tag: Option<VlanId>,
    /// The class that a tag names as its priority.
    pub class: u8,
    /// Octets, the frame check sequence included, the tag not.
    pub bytes: u32,
    /// Which flow: an index into the workload's.
    pub flow: u32,
    /// Number of the data frame, or how many of them are acknowledged.
    pub number: u32,
    /// When the data frame was made; of an acknowledgement, the one that it answers.
    pub born_ps: u64,
    /// Whether a switch has marked it for congestion.
    pub marked: bool,
}

/// What a frame carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Carries {
    /// Payload of a flow.
    Data,
    /// An acknowledgement.
    Ack,
    /// An acknowledgement that echoes a congestion mark.
    MarkedAck,
    /// Who has this address?
    ArpRequest,
    /// I have.
    ArpReply,
}

/// Which way a frame passed a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Into the switch.
    In,
    /// Out of the switch.
    Out,
}

impl Network<'_> {
    /// Whether a port's frames are kept: its own, or those of the LAG that it is a member of.
    #[inline]
    pub(super) fn captures(&self, port: u32) -> bool {
        self.capturing && self.captured_as(port).next().is_some()
    }

    /// The captured ports that a frame at a port is seen at.
    fn captured_as(&self, port: u32) -> impl Iterator<Item = PortId> + Clone + '_ {
        let seen_at = [port, self.lags.logical(port)];
        self.config.captures.iter().copied().filter(move |captured| seen_at.contains(&(captured.index() as u32)))
    }

    /// Notes a frame at a captured port.
    pub(super) fn capture(&mut self, port: u32, frame: u32, at_ps: u64, direction: Direction) {
        let frame: &Frame = &self.frames[frame as usize];
        let what = Seen::Frame(SeenFrame {
            carries: match frame.kind {
                Payload::Data => Carries::Data,
                Payload::Ack => Carries::Ack,
                Payload::MarkedAck => Carries::MarkedAck,
                Payload::ArpRequest => Carries::ArpRequest,
                Payload::ArpReply => Carries::ArpReply,
            },
            source: HostId::new(frame.source as usize),
            destination: (frame.destination != NONE).then(|| HostId::new(frame.destination as usize)),
            tag: (frame.tag != UNTAGGED).then(|| self.tables.vlan(frame.tag)),
            class: frame.class,
            bytes: u32::from(frame.bytes),
            flow: self.flows[frame.flow as usize].origin,
            number: frame.number,
            born_ps: frame.born_ps,
            marked: frame.marked,
        });
        self.keep(port, at_ps, direction, what);
    }

    /// Notes a PAUSE at a captured port.
    pub(super) fn capture_pause(&mut self, port: u32, at_ps: u64, direction: Direction, class: u8, quanta: u16) {
        self.keep(port, at_ps, direction, Seen::Pause { class, quanta });
    }

    fn keep(&mut self, port: u32, at_ps: u64, direction: Direction, what: Seen) {
        let seen_at: Vec<PortId> = self.captured_as(port).collect();
        for port in seen_at {
            if self.captured.len() < CAPTURE_MAX {
                self.captured.push(Captured { port, at_ps, direction, what });
            } else {
                self.uncaptured += 1;
            }
        }
    }
}
