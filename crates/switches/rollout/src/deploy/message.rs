//! What a deployment asks of the world, and what the world answers.

use std::{collections::BTreeMap, fmt, sync::Arc, time::Duration};

use fabric::SwitchId;

use super::{Flap, Misplaced, Surge, Unseen};
use switch_model::{
    Slot, SwitchConfig,
    driver::{Addresses, Fault, Fence, Reading},
    mark::Mark,
    sight::{End, Sight},
};

/// Something to do. Every request is answered by exactly one [`Reply`]; at most one a switch is open at any time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SwitchRequest {
    /// Read the whole state of a switch.
    Read {
        /// Which.
        switch: SwitchId,
    },
    /// Bring a switch from one state to another. A switch whose fence is no longer `fence` must not be written at all.
    Write {
        /// Which.
        switch: SwitchId,
        /// What it holds.
        before: Arc<SwitchConfig>,
        /// What it is to hold.
        after: Arc<SwitchConfig>,
        /// The mark to leave.
        mark: Mark,
        /// The fence that was read or returned last.
        fence: Fence,
        /// How long the switch may be cut off after the change before it takes it back by itself, if it can. The answer
        /// comes only when it cannot do so any more.
        guard: Option<Duration>,
    },
    /// Make the running state the one that the switch starts with. A switch whose fence is no longer `fence` must not.
    Save {
        /// Which.
        switch: SwitchId,
        /// The fence that was read or returned last.
        fence: Fence,
    },
    /// Ask a switch what its ports hear and count.
    Look {
        /// Which.
        switch: SwitchId,
        /// Whether to read learned addresses as well.
        addresses: Addresses,
    },
    /// Take ports out of service at once, whoever else writes.
    Shut {
        /// Which.
        switch: SwitchId,
        /// Its ports.
        ports: Vec<Slot>,
    },
    /// Let this time pass.
    Pause(Duration),
    /// Have all hosts that tag go to this one of the states that they pass through in a change under traffic.
    Hosts(usize),
    /// Judge the states that all switches were found in, as they will be once their ports are open.
    Judge {
        /// `devices[switch]`.
        devices: Vec<Arc<SwitchConfig>>,
    },
    /// Remember that this mark is ours where a crash cannot take it, before the next request: it is about to be left on
    /// switches, and whoever deploys next from here must know it for their own.
    Note(Mark),
    /// Put the journal where a crash cannot take it, before the next request.
    Record(Journal),
}

/// The answer to a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// To [`SwitchRequest::Read`].
    Read(SwitchId, Result<Reading, Fault>),
    /// To [`SwitchRequest::Write`]: the new fence.
    Written(SwitchId, Result<Fence, Fault>),
    /// To [`SwitchRequest::Save`]: the new fence.
    Saved(SwitchId, Result<Fence, Fault>),
    /// To [`SwitchRequest::Look`].
    Looked(SwitchId, Result<Sight, Fault>),
    /// To [`SwitchRequest::Shut`].
    Shut(SwitchId, Result<(), Fault>),
    /// To [`SwitchRequest::Pause`].
    Paused,
    /// To [`SwitchRequest::Hosts`]: [`Reason::Hosts`] or [`Reason::Interrupted`], if some may not be there.
    Hosts(Result<(), Reason>),
    /// To [`SwitchRequest::Judge`]: all that is fatal, if anything.
    Judged(Result<(), Vec<String>>),
    /// To [`SwitchRequest::Note`] and [`SwitchRequest::Record`].
    Recorded(Result<(), String>),
}

/// What an interrupted deployment leaves for the one that resumes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Journal {
    /// Its mark.
    pub mark: Mark,
    /// Of a change under traffic: how many stages every switch has behind it, while the next may be half done. None of any other.
    pub stages_done: Option<usize>,
    /// `backup[switch]`: what each switch held before.
    pub backup: Vec<Arc<SwitchConfig>>,
    /// Switches that another deployment was in the middle of, and its mark: their backup is no state to go back to.
    pub under_way: BTreeMap<SwitchId, Mark>,
}

/// A stage of a deployment. All switches finish one before any begins the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// Everything is read; nothing has been written yet.
    Survey,
    /// The mark is left on every switch, which stops whoever else is writing.
    Claim,
    /// What the switches hold is read again, now that nobody else writes, and put into the journal.
    Record,
    /// Ports that carry data are shut.
    Drain,
    /// The shut state is what a switch restarts with from now on.
    SaveDrained,
    /// VLANs, memberships, PVIDs and entries are written; spanning tree goes off.
    Configure,
    /// One stage of a change under traffic, counted from 0.
    Live(usize),
    /// Everything is read back and compared.
    ReadBack,
    /// The judge sees what was read back.
    Judge,
    /// Ports toward other switches come into service; those of hosts are shut, so no frame travels.
    OpenLinks,
    /// A group of all other ports comes into service, counted from 0, of so many.
    Open(usize, usize),
    /// Cables and floods are looked at.
    Look,
    /// What was opened last is shut at once.
    Shut,
    /// The deployment tag says that the deployment is over.
    Seal,
    /// Everything is read once more.
    Confirm,
    /// The new state is what a switch restarts with.
    Save,
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Survey => f.write_str("survey"),
            Self::Claim => f.write_str("claim"),
            Self::Record => f.write_str("record"),
            Self::Drain => f.write_str("drain"),
            Self::SaveDrained => f.write_str("save drained"),
            Self::Configure => f.write_str("configure"),
            Self::Live(number) => write!(f, "live step {}", number + 1),
            Self::ReadBack => f.write_str("read back"),
            Self::Judge => f.write_str("judge"),
            Self::OpenLinks => f.write_str("open links"),
            Self::Open(_, 1) => f.write_str("open hosts"),
            Self::Open(group, of) => write!(f, "open hosts, group {} of {of}", group + 1),
            Self::Look => f.write_str("look"),
            Self::Shut => f.write_str("shut"),
            Self::Seal => f.write_str("seal"),
            Self::Confirm => f.write_str("confirm"),
            Self::Save => f.write_str("save"),
        }
    }
}

/// Whether a deployment is on its way to the new state or back to the old one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// To the new state.
    Forward,
    /// To the state before.
    Back,
}

/// Something worth telling a person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A stage begins, with so many switches to ask.
    Begun {
        /// Which stage.
        stage: Stage,
        /// Where it leads.
        direction: Direction,
        /// How many switches take part.
        switches: usize,
    },
    /// A switch has done its share of the stage.
    Done(Stage, SwitchId),
    /// A switch has not.
    Failed(Stage, SwitchId, Fault),
    /// The way leads back from here.
    Turned(Reason),
    /// Nobody can tell a flood on these switches: they count no broadcasts, and learned addresses cannot be read.
    Unwatched(Vec<SwitchId>),
    /// These switches count no broadcasts, and are watched by the addresses that they learn.
    WatchedByAddresses(Vec<SwitchId>),
    /// These cables are awaited: their ports are open, but do not hear their far ends yet.
    Awaited(Vec<Unseen>),
    /// These ports stay shut, since their cables lead elsewhere.
    KeptShut(Vec<Misplaced>),
    /// A storm on the way back, and how it shows: what was opened goes out of service again.
    Quenched(Reason),
}

/// Why a deployment did not go on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reason {
    /// Switches failed at a stage.
    Faults(Stage, Vec<(SwitchId, Fault)>),
    /// A change under traffic begins elsewhere than where this switch was found, and how that differs.
    Elsewhere(SwitchId, String),
    /// The way by which this switch is to be managed does not carry management yet, at a port of this name.
    NoWay(SwitchId, String),
    /// The judge found the states that were read back unfit, and all of why.
    Unfit(Vec<String>),
    /// Cables lead elsewhere than the plan has them.
    Miscabled(Vec<Misplaced>),
    /// Cables that were seen before were not seen again, for so long.
    Unseen(Vec<Unseen>, Duration),
    /// Broadcasts multiply; the ports that received the most, descending.
    Storm(Vec<Surge>),
    /// Addresses move to and fro between ports, as in a storm; those that do so most, descending.
    Flapping(Vec<Flap>),
    /// Hosts that tag could not be told, and why.
    Hosts(String),
    /// The journal could not be written.
    NoJournal(String),
    /// The journal is not of this change under traffic, so where its stages would begin is not known.
    OtherChange,
    /// Somebody asked it to stop.
    Interrupted,
}

/// How a deployment ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Every switch already held what it should; nothing was written.
    Unchanged,
    /// Every switch holds the new state, and its ports are open.
    Deployed {
        /// Its mark.
        mark: Mark,
        /// Switches that could not save it: they come back with their ports shut.
        unsaved: Vec<(SwitchId, Fault)>,
        /// Switches that do not hold the new state, their ports shut if they are as their last restart left them: the
        /// others go on without them. Deploying again sets them up.
        doubts: Vec<(SwitchId, Fault)>,
    },
    /// A switch bears a mark that is not older: this plan, or this attempt to resume, is stale. Nothing was written.
    Stale {
        /// Where.
        switch: SwitchId,
        /// The mark that was found.
        found: Mark,
    },
    /// Another deployment took over, and this one has stopped where it was.
    Superseded {
        /// Where it was noticed.
        switch: SwitchId,
        /// The other's mark.
        by: Mark,
    },
    /// It did not begin; at most marks were written.
    Refused(Reason),
    /// Every switch holds what it held before, and its ports are as they were.
    RolledBack {
        /// Why it turned back.
        reason: Reason,
        /// Switches that could not save it: they come back with their ports shut.
        unsaved: Vec<(SwitchId, Fault)>,
        /// Ports that stay shut, since their cables lead elsewhere.
        kept_shut: Vec<Misplaced>,
    },
    /// A storm came up when ports were opened on the way back. The switches hold what they held before, with these ports
    /// shut, and bear the tag of a deployment that is not over; the journal knows how they were.
    Quenched {
        /// Why it turned back.
        reason: Reason,
        /// How the storm showed.
        storm: Reason,
        /// Ports that were open and are shut now, by switch.
        shut: Vec<End>,
        /// Switches in an unknown or drained state, and what they failed with.
        lost: Vec<(SwitchId, Fault)>,
    },
    /// Some switches could not be brought back. The others hold what they held before, with the ports that lead to those
    /// shut.
    Stranded {
        /// Why it turned back.
        reason: Reason,
        /// Switches in an unknown or drained state, and what they failed with.
        lost: Vec<(SwitchId, Fault)>,
    },
}
