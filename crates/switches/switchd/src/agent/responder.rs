//! Who answers requests behind an engine, and what an answer can be.

use snmp::wire::Pdu;

/// Longest message that is sent, in octets: one that no Ethernet cuts into pieces.
pub(super) const MESSAGE_LEN_MAX: usize = 1472;

/// What somebody may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rights {
    /// Read.
    Read,
    /// Read and write.
    Write,
}

/// What a manager's request becomes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// This.
    Pdu(Pdu),
    /// This, after a while.
    Late {
        /// The answer.
        pdu: Pdu,
        /// How long it takes.
        delay_ms: u64,
    },
    /// These octets, which need be no message.
    Octets(Vec<u8>),
    /// Silence.
    Nothing,
}

/// How often an agent has started, and how long ago.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EngineClock {
    /// snmpEngineBoots.
    pub boots: i32,
    /// snmpEngineTime.
    pub time_s: i32,
}

/// Who answers requests, behind an engine.
pub trait Responder {
    /// Answers a request. `room` is how many octets the bindings of an answer may take.
    fn answer(&mut self, now_ms: u64, request: &Pdu, rights: Rights, room: usize) -> Answer;

    /// The engine's clock.
    fn clock(&self, now_ms: u64) -> EngineClock;

    /// Does what is due.
    fn handle_tick(&mut self, now_ms: u64);

    /// Begins again, as after a loss of power: from the saved configuration.
    fn restart(&mut self, now_ms: u64);
}
