//! What a person is told of a fabric: causes, what follows from each, and what to do.

use std::time::Duration;

use fabric::{Failure, HostId, LinkId, PortId, SwitchId};

use crate::discover::Mismatch;
use switch_model::{
    driver::Fault,
    mark::Mark,
    observe::{Drift, SmallMtu},
};

/// How much a diagnosis concerns a person.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Urgency {
    /// A person is needed.
    Act,
    /// It resolves by itself; ask again.
    Wait,
    /// Worth knowing.
    Note,
}

/// A cause, its consequences, and what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnosis {
    /// How much it concerns a person.
    pub urgency: Urgency,
    /// What is wrong.
    pub cause: Cause,
    /// What follows from it, and needs nothing done by itself.
    pub consequences: Vec<Consequence>,
    /// What to do.
    pub remedy: Remedy,
}

/// What is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cause {
    /// A switch does not answer, and none of its cables carries.
    SwitchDown {
        /// Which.
        switch: SwitchId,
        /// Why it cannot be read.
        fault: Fault,
    },
    /// A switch cannot be read, though cables of it carry, or nobody knows.
    Unreachable {
        /// Which.
        switch: SwitchId,
        /// Why.
        fault: Fault,
    },
    /// A cable that the plan uses has no carrier.
    CableDown {
        /// Which.
        link: LinkId,
        /// Ends that say so.
        at: Vec<PortId>,
        /// For how long.
        since: Option<Duration>,
    },
    /// Hosts' ports hold what is stored for a cable that carries, or a switch whose cables do.
    Lingering {
        /// Which failure it is stored for.
        failure: Failure,
        /// For how long it has carried.
        since: Option<Duration>,
    },
    /// Hosts' ports take no untagged frames, or hold PVIDs of several failures: somebody stopped `standby` in the middle of a
    /// change.
    Between {
        /// Whose.
        hosts: Vec<HostId>,
    },
    /// A plug is in the wrong port.
    Miscabled(Mismatch),
    /// A cable between ports that the plan does not have.
    ForeignCable {
        /// Its ends, as `switch:port`.
        ends: [String; 2],
    },
    /// A neighbour calls its port by none of the names that are known of it.
    UnknownPort {
        /// Who hears it.
        hears: String,
        /// Which switch is heard.
        neighbour: String,
        /// What it calls its port.
        port: String,
    },
    /// Several switches are heard at one port.
    Crowd {
        /// Where.
        hears: String,
        /// How many are heard.
        count: usize,
    },
    /// One end hears the other by LLDP, but not the other way round.
    OneWay {
        /// Who hears.
        hears: PortId,
        /// Who does not.
        deaf: PortId,
    },
    /// Cables that have not carried long enough for LLDP.
    NotHeardYet {
        /// Which.
        links: Vec<LinkId>,
        /// How long the youngest has carried.
        up: Duration,
        /// How often LLDP announces.
        interval: Duration,
    },
    /// Cables that carry, but neither end hears the other by LLDP.
    NoNeighbour {
        /// Which.
        links: Vec<LinkId>,
    },
    /// Every port of these switches that the plan uses is administratively down, as in the middle of a deployment.
    Drained {
        /// Which.
        switches: Vec<SwitchId>,
    },
    /// Cables that the plan uses and that are administratively down at both ends, as a deployment leaves those that nothing
    /// confirms.
    Shut {
        /// Which.
        links: Vec<LinkId>,
    },
    /// A switch holds nothing of the plan: it was replaced, or reset.
    Reset {
        /// Which.
        switch: SwitchId,
        /// Since its management started.
        up: Option<Duration>,
    },
    /// A switch bears the tag of another deployment than the others.
    OtherDeployment {
        /// Which.
        switch: SwitchId,
        /// Its tag.
        found: Mark,
        /// That of most others.
        others: Mark,
    },
    /// A switch differs from the plan, and nothing else explains it.
    Drifted {
        /// Which.
        switch: SwitchId,
    },
    /// Ports of a switch drop the largest packets that the plan's hosts send.
    SmallMtu {
        /// Which switch.
        switch: SwitchId,
        /// Which ports, at least one.
        ports: Vec<SmallMtu>,
    },
    /// A LAG has less capacity than the plan reckons with, since some of its members carry nothing.
    LagShort {
        /// Which.
        lag: PortId,
        /// Members that have no carrier.
        missing: Vec<PortId>,
        /// How many there should be.
        members: usize,
    },
    /// Hosts whose ports have no carrier: off, or unplugged.
    HostsDown {
        /// Which.
        hosts: Vec<HostId>,
    },
}

/// What follows from a cause.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Consequence {
    /// These cables have no carrier.
    Links(Vec<LinkId>),
    /// These switches are managed over the cable, and do not answer since.
    CutOff(Vec<SwitchId>),
    /// These hosts are cut off, or nothing is known of their ports.
    Hosts(Vec<HostId>),
    /// The answer that the plan stored for a failure is in force: these ports hold other PVIDs than all cables being alive.
    InForce {
        /// Which failure.
        failure: Failure,
        /// Whose ports.
        moved: Vec<HostId>,
    },
    /// The answer is in force on some ports only.
    PartlyInForce {
        /// Which failure.
        failure: Failure,
        /// Ports that hold it.
        moved: Vec<HostId>,
        /// Ports that take no untagged frames until frames on their way have gone.
        stopped: Vec<HostId>,
        /// Ports that hold what they held before.
        waiting: Vec<HostId>,
    },
    /// These hosts would have to move, and none has.
    NotMoved {
        /// Which failure.
        failure: Failure,
        /// Whose ports.
        waiting: Vec<HostId>,
    },
    /// The answer to another failure is in force, and nothing is stored for two.
    AnswerForAnother {
        /// Which.
        failure: Failure,
    },
    /// No frame needs the cable.
    NotNeeded,
    /// Nothing runs beside the cable: hosts at its ends are cut off from each other.
    Divides,
    /// The plan stores nothing for failures.
    NothingStored,
    /// Hosts tag their own frames, and leave dead paths by themselves.
    HostsChoose,
    /// A switch differs from the plan in this.
    Differs(Drift),
}

/// What to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Remedy {
    /// Nothing, but for a look at the cause.
    Nothing,
    /// Ask again after so long.
    AskAgain(Duration),
    /// Deploy the plan again.
    DeployAgain,
    /// What has to be repaired before the plan can be deployed again without harm.
    AfterRepairs {
        /// Cables that are down.
        links: Vec<LinkId>,
        /// Switches that do not answer.
        switches: Vec<SwitchId>,
        /// Whether plugs are in the wrong ports.
        plugs: bool,
    },
    /// A switch's own commands; SNMP cannot set it.
    OwnCommands,
    /// A switch's own commands for the MTU, or a plan for smaller packets.
    RaiseMtu,
    /// Repair or replace the cable; switches need nothing.
    Repair(LinkId),
    /// Start `standby`, which moves the hosts, and repair the cable.
    StandbyAndRepair(LinkId),
    /// Start `standby`, which moves hosts back.
    Standby,
    /// Power the switch on, or replace it.
    Power(SwitchId),
    /// See to the way to the switch: address, credentials, management network.
    Reach(SwitchId),
    /// What the mismatch itself says.
    Replug,
    /// Look at the cable's ends.
    LookAtLldp,
    /// Have a cable confirmed, or trusted, and deploy.
    Confirm(LinkId),
    /// Finish or undo the deployment.
    ResumeOrUndo,
}
