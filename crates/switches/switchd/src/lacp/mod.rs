//! The Link Aggregation Control Protocol: which members of a LAG carry frames, as both ends agree.
//!
//! ```text
//! receive   link up ─▶ Expired ─ 3 s ─▶ Defaulted      LACPDU ─▶ Current ─ 3 s without one ─▶ Expired
//! select    members whose partners are one system and one key, the LAG's partner
//! mux       Detached ─ selected ─▶ Attached ─ partner in sync ─▶ Collecting ─ partner collects ─▶ Distributing
//! ```
//! [`Lag`] is one LAG of one system. Its members are fixed, as an administrator configures them; a member is in use only
//! while LACP agrees. A member collects before it distributes, and distributes only once its partner collects, so frames
//! are neither sent to a port that drops them nor dropped when a member joins. It is active, and asks for short timeouts.
//! It waits for no further members before it attaches (aggregate wait time 0), since a LAG that grows loses nothing here.
//! Marker requests are not answered.
//!
//! No clock and no socket: `now_ms` comes with each call and never decreases. Call order: [`Lag::handle_link`] and
//! [`Lag::handle_pdu`] as things happen, then [`Lag::poll`], at least every 100 ms, whose messages must be sent; after each
//! of them [`Lag::state`] says what a member does.
//!
//! Source: IEEE 802.1AX-2014, 6.4 (receive: 6.4.12, periodic: 6.4.13, selection: 6.4.14, mux with independent control:
//! 6.4.15, transmit: 6.4.16).

mod pdu;

pub use pdu::{Lacpdu, LacpduError, PortInfo, PortState};

use fabric::Mac;

/// How often a member speaks to a partner that asks for short timeouts (Fast_Periodic_Time).
pub const FAST_PERIODIC_MS: u64 = 1000;
/// How often to one that does not (Slow_Periodic_Time).
pub const SLOW_PERIODIC_MS: u64 = 30_000;
/// How long a partner may be silent (Short_Timeout_Time).
pub const SHORT_TIMEOUT_MS: u64 = 3000;
/// Most messages of a member in [`FAST_PERIODIC_MS`].
pub const TRANSMIT_MAX: usize = 3;
/// Priority of systems and ports where nobody has set one.
const PRIORITY: u16 = 0x8000;
/// What a port says of itself whatever happens.
const OWN: PortState = PortState::ACTIVE.with(PortState::SHORT_TIMEOUT).with(PortState::AGGREGATION);
/// What a partner must know of a port, or is told at once (update_NTT).
const TOLD: PortState = OWN.with(PortState::SYNCHRONIZATION);

/// Whether a member's cable carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Link {
    /// It does, and the port is administratively up.
    Up,
    /// It does not.
    Down,
}

/// One LAG of one system.
#[derive(Clone, Debug)]
pub struct Lag {
    system: Mac,
    key: u16,
    /// The system, with its priority, and the key at the other end.
    partner: Option<Partner>,
    members: Vec<Member>,
}

/// System priority, system and key.
type Partner = (u16, Mac, u16);

#[derive(Clone, Debug)]
struct Member {
    port: u16,
    receive: Receive,
    /// When `receive` expires (current_while_timer).
    expires_ms: u64,
    /// What the partner last said of itself; unknown once that no longer holds.
    partner: PortInfo,
    /// Whether the partner is in sync with this very port.
    in_sync: bool,
    mux: Mux,
    /// Whether something must be said (NTT).
    untold: bool,
    /// When something must be said at the latest.
    due_ms: u64,
    /// When each of the last messages was sent.
    sent_ms: [Option<u64>; TRANSMIT_MAX],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Receive {
    Disabled,
    Expired,
    Defaulted,
    Current,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Mux {
    Detached,
    Attached,
    Collecting,
    Distributing,
}

impl Lag {
    /// A LAG of the members with these numbers on their system, all links down.
    pub fn new(system: Mac, key: u16, ports: &[u16]) -> Self {
        let member = |port: &u16| Member {
            port: *port,
            receive: Receive::Disabled,
            expires_ms: 0,
            partner: PortInfo::UNKNOWN,
            in_sync: false,
            mux: Mux::Detached,
            untold: false,
            due_ms: 0,
            sent_ms: [None; TRANSMIT_MAX],
        };
        Self { system, key, partner: None, members: ports.iter().map(member).collect() }
    }

    /// Sets whether a member's link is up; the same link again changes nothing. A link that went down and came up between two
    /// calls takes a call for each.
    pub fn handle_link(&mut self, now_ms: u64, member: usize, link: Link) {
        let of = &mut self.members[member];
        match (of.receive, link) {
            (Receive::Disabled, Link::Up) => {
                (of.receive, of.expires_ms) = (Receive::Expired, now_ms + SHORT_TIMEOUT_MS);
                of.untold = true;
            }
            (Receive::Expired | Receive::Defaulted | Receive::Current, Link::Down) => {
                of.receive = Receive::Disabled;
                of.forget();
            }
            _ => return,
        }
        self.decide();
    }

    /// A message came in by a member. What comes in by one whose link is down is dropped.
    pub fn handle_pdu(&mut self, now_ms: u64, member: usize, pdu: &Lacpdu) {
        let own = self.actor(member);
        let of = &mut self.members[member];
        if of.receive == Receive::Disabled {
            return;
        }
        let told = PortInfo { state: pdu.partner.state.masked(TOLD), ..pdu.partner };
        let is = PortInfo { state: own.state.masked(TOLD), ..own };
        of.untold |= told != is;
        // Of the partner's view of this port everything must be right but its state (recordPDU).
        let knows_us = PortInfo { state: own.state, ..pdu.partner } == own
            && pdu.partner.state.has(PortState::AGGREGATION) == own.state.has(PortState::AGGREGATION);
        of.in_sync = knows_us && pdu.actor.state.has(PortState::SYNCHRONIZATION);
        of.partner = pdu.actor;
        (of.receive, of.expires_ms) = (Receive::Current, now_ms + SHORT_TIMEOUT_MS);
        self.decide();
    }

    /// Does what is due by time, and returns what is to be sent, by which member.
    pub fn poll(&mut self, now_ms: u64) -> Vec<(usize, Lacpdu)> {
        for member in &mut self.members {
            if member.expires_ms > now_ms {
                continue;
            }
            match member.receive {
                Receive::Current => {
                    (member.receive, member.expires_ms) = (Receive::Expired, now_ms + SHORT_TIMEOUT_MS);
                    (member.in_sync, member.untold) = (false, true);
                }
                Receive::Expired => {
                    member.receive = Receive::Defaulted;
                    member.forget();
                }
                Receive::Disabled | Receive::Defaulted => {}
            }
        }
        self.decide();
        let speaks: Vec<usize> =
            (0..self.members.len()).filter(|member| self.members[*member].may_speak(now_ms)).collect();
        let pdu = |member: usize| Lacpdu { actor: self.actor(member), partner: self.members[member].partner };
        speaks.into_iter().map(|member| (member, pdu(member))).collect()
    }

    /// What a member says of itself: whether it collects and distributes, and what it has heard.
    pub fn state(&self, member: usize) -> PortState {
        let Member { receive, mux, .. } = self.members[member];
        [
            (PortState::SYNCHRONIZATION, mux >= Mux::Attached),
            (PortState::COLLECTING, mux >= Mux::Collecting),
            (PortState::DISTRIBUTING, mux >= Mux::Distributing),
            (PortState::DEFAULTED, matches!(receive, Receive::Defaulted | Receive::Disabled)),
            (PortState::EXPIRED, receive == Receive::Expired),
        ]
        .into_iter()
        .filter(|(_, is_so)| *is_so)
        .fold(OWN, |state, (bit, _)| state.with(bit))
    }

    /// What a member's partner last said of itself; all zeros if nothing that still holds.
    pub fn partner_state(&self, member: usize) -> PortState {
        self.members[member].partner.state
    }

    /// Whether a member carries frames both ways.
    pub fn is_active(&self, member: usize) -> bool {
        self.members[member].mux == Mux::Distributing
    }

    fn actor(&self, member: usize) -> PortInfo {
        PortInfo {
            system_priority: PRIORITY,
            system: self.system,
            key: self.key,
            port_priority: PRIORITY,
            port: self.members[member].port,
            state: self.state(member),
        }
    }

    /// Selects members anew, and lets each go as far as it can.
    fn decide(&mut self) {
        self.partner = self.choose_partner();
        let (system, chosen) = (self.system, self.partner);
        for member in &mut self.members {
            let selected = chosen.is_some() && member.candidate(system) == chosen;
            let collects = member.partner.state.has(PortState::COLLECTING);
            let mux = match (selected, member.in_sync, collects) {
                (false, ..) => Mux::Detached,
                (true, false, _) => Mux::Attached,
                (true, true, false) => Mux::Collecting,
                (true, true, true) => Mux::Distributing,
            };
            if std::mem::replace(&mut member.mux, mux) != mux {
                member.untold = true;
            }
        }
    }

    /// The partner that is in sync with most members, then the one that most hear, then the one in use, then the first
    /// member's. The one in use stays while nobody is heard. A partner is in sync with a member whether that is selected
    /// here or not, so a LAG does not keep to a system that has chosen another one.
    fn choose_partner(&self) -> Option<Partner> {
        let hearing = || self.members.iter().filter(|member| member.receive == Receive::Current);
        let at = |partner: Partner| hearing().filter(move |member| member.candidate(self.system) == Some(partner));
        let rank = |partner: &Partner| {
            let in_sync = at(*partner).filter(|member| member.in_sync).count();
            (in_sync, at(*partner).count(), self.partner == Some(*partner))
        };
        // Of equals `max_by_key` returns the last.
        let best = hearing().filter_map(|member| member.candidate(self.system)).rev().max_by_key(rank);
        best.or(self.partner)
    }
}

impl Member {
    /// What the LAG's partner is if it is this member's; none where nobody is heard, the partner wants no LAG, or the cable
    /// leads back to this very system.
    fn candidate(&self, own: Mac) -> Option<Partner> {
        let PortInfo { system_priority, system, key, state, .. } = self.partner;
        let heard = matches!(self.receive, Receive::Current | Receive::Expired) && !system.is_zero();
        (heard && system != own && state.has(PortState::AGGREGATION)).then_some((system_priority, system, key))
    }

    fn forget(&mut self) {
        (self.partner, self.in_sync) = (PortInfo::UNKNOWN, false);
    }

    /// Whether a message is due and allowed; notes that it is sent.
    fn may_speak(&mut self, now_ms: u64) -> bool {
        let due = self.untold || self.due_ms <= now_ms;
        let limited = self.sent_ms[0].is_some_and(|sent_ms| now_ms < sent_ms + FAST_PERIODIC_MS);
        if self.receive == Receive::Disabled || !due || limited {
            return false;
        }
        self.sent_ms.rotate_left(1);
        self.sent_ms[TRANSMIT_MAX - 1] = Some(now_ms);
        self.untold = false;
        let slow = self.receive == Receive::Current && !self.partner.state.has(PortState::SHORT_TIMEOUT);
        self.due_ms = now_ms + if slow { SLOW_PERIODIC_MS } else { FAST_PERIODIC_MS };
        true
    }
}
