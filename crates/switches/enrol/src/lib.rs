//! Enrolment: what a switch really can do, found out by writing and reading back, and put into a model file.
//!
//! ```text
//!   identify ─ survey ─ ledger kept ─▶ two VLANs ─ untagged in both? ─ one address, two ports? ─ PAUSE? ─ how many VLANs?
//!                                            └────────────── any trouble ──────────────┐         how many entries?
//!                                                                                      ▼                │
//!                                          read ─ take back ─ read again ◀─────────── clean ◀───────────┘
//! ```
//! Only VLANs that are not there and addresses that are nobody's are made, at ports without a link or ports that somebody
//! chose; the configuration is never saved, so a restart clears everything too. What is cleaned is told from the ledger and
//! from what the switch holds, never from what was written ([`clean()`]): so every way a probe can end leads through
//! the same door. A dry run ([`rehearse()`]) runs the same probes against an overlay and returns the SETs it would have sent.

#![forbid(unsafe_code)]

pub mod kept;

mod clean;
mod grow;
mod ledger;
mod model;
mod probe;
mod session;
mod survey;

use std::fmt;

use fabric::{VlanId, VlanSet};
use thiserror::Error;

use self::{
    clean::Moment,
    probe::Site,
    session::ProbeSession,
    survey::{Holding, hold, identify},
};
use bridge_mib::PortList;
use drivers::snmp::PortKind;
use snmp::{Link, Session, SessionError, wire::Binding};

pub use self::{
    grow::{End, Room},
    ledger::{Ledger, Names},
    model::{Base, advice, model_of, weakest},
    probe::{Capabilities, Verdict},
    survey::{Identity, PortFact},
};

/// A request to probe one switch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProbeRequest {
    /// Ports to use, by name, one or two; none for two without a link.
    pub ports: Vec<String>,
    /// VLANs beyond which no more are made, those that are there included.
    pub vlans_max: usize,
    /// Static entries beyond which no more are made, those that are there included.
    pub entries_max: usize,
    /// Another number for every probe.
    pub nonce: u32,
}

/// Most static entries that are asked for.
pub const ENTRIES_MAX: usize = 60_000;

/// What a probe calls on its way: to keep the ledger, to ask whether to stop, to tell of a step.
pub trait ProbeCallbacks {
    /// Keeps the ledger where it survives this program; called before the first write.
    ///
    /// # Errors
    /// Why it could not be kept: then nothing is written.
    fn keep(&mut self, ledger: &Ledger) -> Result<(), String>;

    /// Whether it should stop.
    fn stopped(&mut self) -> bool;

    /// Tells of a step that begins.
    fn tell(&mut self, step: Step);
}

/// A step of a probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Step {
    /// Two VLANs are made.
    Vlans,
    /// A port becomes untagged in both.
    Hybrid,
    /// One address is entered in both.
    Tables,
    /// PAUSE is turned on.
    Pause,
    /// More VLANs are made.
    VlanRoom,
    /// More entries are made.
    EntryRoom,
    /// Everything is taken back.
    Clean,
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Vlans => "two VLANs of its own",
            Self::Hybrid => "a port untagged in both",
            Self::Tables => "one address at two ports",
            Self::Pause => "PAUSE",
            Self::VlanRoom => "room for VLANs",
            Self::EntryRoom => "room for static entries",
            Self::Clean => "cleaning up",
        })
    }
}

/// Why nothing was written.
#[derive(Debug, Error)]
pub enum EnrolError {
    /// It cannot be read.
    #[error("{0}")]
    Session(#[from] SessionError),
    /// It says nothing of bridge ports.
    #[error("it has no BRIDGE-MIB, so it cannot be probed by SNMP")]
    NoBridge,
    /// Its VLANs cannot be written by SNMP.
    #[error("{0}; so it cannot be probed by SNMP, and nothing was written")]
    Unwritable(String),
    /// A port that carries no data.
    #[error("{name} is no port for data ({kind:?}); name with --at one or two that are: {known}")]
    NotForData {
        /// The port.
        name: String,
        /// What it is for.
        kind: PortKind,
        /// Ports for data.
        known: String,
    },
    /// A port that it does not have.
    #[error("it has no port {name}; its ports are {known}")]
    NoPort {
        /// The name.
        name: String,
        /// Those that it has.
        known: String,
    },
    /// Every port has a link.
    #[error(
        "each of its {0} ports for data has a link; name with --at one or two whose cables may carry VLANs of their own for a \
         while, or unplug two"
    )]
    AllRunning(usize),
    /// No ids are left for VLANs of the probe's own.
    #[error("it has {0} VLANs, and no two ids are left for the probe's")]
    NoVlans(usize),
    /// The ledger could not be kept.
    #[error("the ledger cannot be kept, so nothing was written: {0}")]
    NoLedger(String),
}

/// Why a probe broke off.
#[derive(Debug, Error)]
pub enum Trouble {
    /// Somebody asked it to.
    #[error("stopped on request")]
    Stopped,
    /// The switch restarted.
    #[error("the switch restarted in the middle; what it had not saved before is gone")]
    Restarted,
    /// It does not do what every probe needs.
    #[error("{0}")]
    Unable(String),
    /// The ledger could not be kept.
    #[error("the ledger cannot be kept: {0}")]
    NoLedger(String),
    /// It fell silent, or answered nonsense.
    #[error("{0}")]
    Session(#[from] SessionError),
}

/// What came of a probe.
#[derive(Debug)]
pub struct Enrolment {
    /// What the switch is.
    pub identity: Identity,
    /// Names of the ports that were used.
    pub ports: Vec<String>,
    /// What it can do, or why that is not known.
    pub found: Result<Capabilities, Trouble>,
    /// What could not be taken back, each with the way out. Empty: read back, and nothing is left.
    pub left: Vec<String>,
    /// What else changed meanwhile.
    pub remarks: Vec<String>,
    /// SETs that were sent.
    pub sets: usize,
}

/// Finds out what a switch can do, and cleans up whatever happens.
///
/// # Errors
/// [`EnrolError`], and then nothing was written.
pub fn enrol<L: Link>(
    session: Session<L>,
    request: &ProbeRequest,
    callbacks: &mut dyn ProbeCallbacks,
) -> Result<Enrolment, EnrolError> {
    run(&mut ProbeSession::new(session), request, callbacks)
}

/// The SETs of a probe of a switch that takes everything; none is sent.
///
/// # Errors
/// [`EnrolError`].
pub fn rehearse<L: Link>(
    session: Session<L>,
    request: &ProbeRequest,
) -> Result<(Enrolment, Vec<Vec<Binding>>), EnrolError> {
    let mut session = ProbeSession::new(session);
    session.rehearse();
    let enrolment = run(&mut session, request, &mut Nobody)?;
    Ok((enrolment, session.written()))
}

/// Takes back what a probe left whose program died; what could not be, each with the way out.
pub fn clean<L: Link>(session: Session<L>, ledger: &Ledger) -> Vec<String> {
    clean::clean(&mut ProbeSession::new(session), ledger, Moment::Later)
}

/// Nobody keeps the ledger, and nobody stops the probe: of what is not sent, and in tests.
pub struct Nobody;

impl ProbeCallbacks for Nobody {
    fn keep(&mut self, _: &Ledger) -> Result<(), String> {
        Ok(())
    }

    fn stopped(&mut self) -> bool {
        false
    }

    fn tell(&mut self, _: Step) {}
}

fn run<L: Link>(
    session: &mut ProbeSession<L>,
    request: &ProbeRequest,
    callbacks: &mut dyn ProbeCallbacks,
) -> Result<Enrolment, EnrolError> {
    let identity = identify(session)?;
    let before = hold(session)?;
    session.restarts()?;
    let ports = choose(&identity, request)?;
    let ledger = ledger(&identity, &before, &ports, request)?;
    callbacks.keep(&ledger).map_err(EnrolError::NoLedger)?;
    let names = ports.iter().map(|port| port.name.clone()).collect();
    let mut site = Site {
        ledger,
        ports,
        vlans_before: before.vlans.len(),
        statics_before: before.statics.len(),
        vlans_max: request.vlans_max,
        entries_max: request.entries_max.min(ENTRIES_MAX),
        callbacks,
    };
    let found = probe::probe(session, &mut site);
    let Site { ledger, callbacks, .. } = site;
    callbacks.tell(Step::Clean);
    let left = clean::clean(session, &ledger, Moment::AtOnce);
    let remarks = hold(session).map(|after| clean::foreign(&before, &after, &ledger)).unwrap_or_default();
    Ok(Enrolment { identity, ports: names, found, left, remarks, sets: session.sets })
}

/// The ports that were asked for, or the last two without a link; ports for data alone.
fn choose(identity: &Identity, request: &ProbeRequest) -> Result<Vec<PortFact>, EnrolError> {
    let data: Vec<&PortFact> = identity.ports.iter().filter(|port| port.kind == PortKind::Data).collect();
    let names = |ports: &mut dyn Iterator<Item = &PortFact>| {
        ports.map(|port| port.name.as_str()).collect::<Vec<_>>().join(", ")
    };
    let by_name = |name: &String| {
        let Some(port) = identity.ports.iter().find(|port| port.name == *name) else {
            return Err(EnrolError::NoPort { name: name.clone(), known: names(&mut identity.ports.iter()) });
        };
        if port.kind != PortKind::Data {
            let known = names(&mut data.iter().copied());
            return Err(EnrolError::NotForData { name: name.clone(), kind: port.kind, known });
        }
        Ok(port.clone())
    };
    let mut ports: Vec<PortFact> = match request.ports.as_slice() {
        [] => data.iter().rev().filter(|port| !port.running).take(PORTS_USED).map(|port| (*port).clone()).collect(),
        names => names.iter().take(PORTS_USED).map(by_name).collect::<Result<_, _>>()?,
    };
    ports.dedup_by_key(|port| port.bridge);
    if ports.is_empty() { Err(EnrolError::AllRunning(data.len())) } else { Ok(ports) }
}

/// One address at two ports takes two.
const PORTS_USED: usize = 2;
/// The highest id that every switch leaves to its users.
const VLAN_ID_MAX: u16 = 4093;
/// Ids that many switches keep for themselves.
const RESERVED: std::ops::RangeInclusive<u16> = 1002..=1005;

fn ledger(
    identity: &Identity,
    before: &Holding,
    ports: &[PortFact],
    request: &ProbeRequest,
) -> Result<Ledger, EnrolError> {
    let most =
        identity.vlan_id_max.map_or(VLAN_ID_MAX, |id| u16::try_from(id).map_or(VLAN_ID_MAX, |id| id.min(VLAN_ID_MAX)));
    let free = (2..=most).rev().filter(|id| !RESERVED.contains(id)).filter_map(|id| VlanId::new(id).ok());
    let free = free.filter(|vlan| !before.vlans.contains_key(vlan) && !before.names.contains_key(vlan));
    let count = request.vlans_max.saturating_sub(before.vlans.len()).max(2);
    let vlans: VlanSet = free.take(count).collect();
    if vlans.iter().count() < 2 {
        return Err(EnrolError::NoVlans(before.vlans.len()));
    }
    let last = identity.ports.iter().map(|port| port.bridge).max().unwrap_or(0);
    let list_len = PortList::octets_for(last as usize);
    // Addresses that by chance are somebody's already are nobody's after a few more draws.
    let drawn = (0..=u32::MAX).map(|step| request.nonce.wrapping_add(step));
    let mut ledgers = drawn.map(|nonce| Ledger::new(nonce, vlans.clone(), ports, before, list_len));
    let unused = |ledger: &Ledger| !before.statics.keys().any(|row| ledger.owns(row));
    ledgers.find(unused).ok_or(EnrolError::NoVlans(before.vlans.len()))
}
