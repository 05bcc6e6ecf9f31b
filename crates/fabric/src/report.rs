//! What a judge found.

use std::fmt;

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// The fabric would loop, lose or misdeliver frames, or deadlock: never deploy.
    Fatal,
    /// It would work, but not as promised.
    Warning,
    /// Worth knowing.
    Note,
}

/// What kind of fact was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FindingKind {
    /// A frame comes back to a switch that it has passed.
    Loop,
    /// A VLAN's member ports close a cycle, so a broadcast never ends.
    BroadcastLoop,
    /// A unicast frame meets a switch without an entry for it and is sent out of every port of the VLAN.
    Flood,
    /// A frame ends before it reaches its receiver.
    Drop,
    /// A frame reaches a host that it is not for, or not the one that it is for.
    WrongDelivery,
    /// A host receives a broadcast more than once.
    DuplicateDelivery,
    /// A host does not receive a broadcast.
    MissedBroadcast,
    /// A static entry whose port is not a member of the VLAN, is shut, or has no cable.
    DeadEntry,
    /// A static entry for a group address, or for an address that no host has.
    ForeignEntry,
    /// Two static entries of one switch contradict each other.
    ContradictoryEntries,
    /// A VLAN's active topology is not a tree.
    NotATree,
    /// A port's PVID is a VLAN that the port is no member of.
    PvidWithoutMembership,
    /// A port is a tagged and an untagged member of one VLAN.
    TaggedAndUntagged,
    /// The two ends of a link disagree about a VLAN.
    OneSidedMembership,
    /// The two ends of a link disagree about flow control.
    FlowControlMismatch,
    /// The state of a port contradicts the cabling.
    RoleMismatch,
    /// A port that leads nowhere is up.
    UnusedPort,
    /// Something is set that no frame of the plan needs.
    UnusedSetting,
    /// A switch's state is missing, or names ports that it does not have.
    IncompleteState,
    /// A model's limit is exceeded.
    LimitExceeded,
    /// A model cannot do what the state asks of it.
    Unsupported,
    /// A VLAN outside the range that the policy allows.
    ForbiddenVlan,
    /// The state disagrees with the plan's trees or assignment.
    PlanMismatch,
    /// The channel dependency graph of a lane has a cycle.
    DependencyCycle,
    /// The certificate does not prove what it should.
    BadCertificate,
    /// The lower bound does not follow from the stored channel lengths.
    BadBound,
    /// The summary disagrees with what was recomputed.
    SummaryMismatch,
    /// A stored switch-over is malformed, or leaves frames of some pair on a way over what failed.
    BadSwitchOver,
    /// No plan can survive the failure of this link: it alone ties hosts to others.
    DividingLink,
    /// No plan can survive the failure of this switch: it alone ties hosts of others together.
    DividingSwitch,
    /// No plan can survive the failure of this group: it alone ties hosts elsewhere together.
    DividingGroup,
    /// A frame would cross a drained link, or pass through a drained switch.
    DrainedInUse,
    /// A frame between two hosts of one plane would leave it.
    LeavesPlane,
    /// A port is set up as a member of another LAG than its cable is one of, or carries something beside its LAG.
    LagMismatch,
    /// A port that leads to the network outside beside the edge port is not shut.
    StandbyEdgeUp,
    /// A frame crosses more links between switches than the plan allows.
    TooManyHops,
    /// Two hosts have one address, or an address is outside the subnet.
    BadAddress,
}

impl FindingKind {
    /// The stable name that `--json` prints.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Loop => "loop",
            Self::BroadcastLoop => "broadcast-loop",
            Self::Flood => "flood",
            Self::Drop => "drop",
            Self::WrongDelivery => "wrong-delivery",
            Self::DuplicateDelivery => "duplicate-delivery",
            Self::MissedBroadcast => "missed-broadcast",
            Self::DeadEntry => "dead-entry",
            Self::ForeignEntry => "foreign-entry",
            Self::ContradictoryEntries => "contradictory-entries",
            Self::NotATree => "not-a-tree",
            Self::PvidWithoutMembership => "pvid-without-membership",
            Self::TaggedAndUntagged => "tagged-and-untagged",
            Self::OneSidedMembership => "one-sided-membership",
            Self::FlowControlMismatch => "flow-control-mismatch",
            Self::RoleMismatch => "role-mismatch",
            Self::UnusedPort => "unused-port",
            Self::UnusedSetting => "unused-setting",
            Self::IncompleteState => "incomplete-state",
            Self::LimitExceeded => "limit-exceeded",
            Self::Unsupported => "unsupported",
            Self::ForbiddenVlan => "forbidden-vlan",
            Self::PlanMismatch => "plan-mismatch",
            Self::DependencyCycle => "dependency-cycle",
            Self::BadCertificate => "bad-certificate",
            Self::BadBound => "bad-bound",
            Self::SummaryMismatch => "summary-mismatch",
            Self::BadSwitchOver => "bad-switch-over",
            Self::DividingLink => "dividing-link",
            Self::DividingSwitch => "dividing-switch",
            Self::DividingGroup => "dividing-group",
            Self::DrainedInUse => "drained-in-use",
            Self::LeavesPlane => "leaves-plane",
            Self::LagMismatch => "lag-mismatch",
            Self::StandbyEdgeUp => "standby-edge-up",
            Self::TooManyHops => "too-many-hops",
            Self::BadAddress => "bad-address",
        }
    }
}

/// One judged fact.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Finding {
    /// How bad it is.
    pub severity: Severity,
    /// What kind of fact.
    pub kind: FindingKind,
    /// What it is about: a switch, port, link, VLAN or pair, as people write it.
    pub subject: String,
    /// One sentence for a person.
    pub message: String,
}

/// Findings, worst first, then by kind and subject.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Report {
    findings: Vec<Finding>,
}

impl Report {
    /// Sorts findings into a report; equal ones count once.
    pub fn new(mut findings: Vec<Finding>) -> Self {
        findings.sort_unstable();
        findings.dedup();
        Self { findings }
    }

    /// A report that begins with causes, sorted, and goes on with what follows from them, sorted; equal findings count once,
    /// as causes.
    pub fn led_by(causes: Vec<Finding>, consequences: Vec<Finding>) -> Self {
        let mut findings = Self::new(causes).findings;
        let rest = Self::new(consequences).findings.into_iter().filter(|finding| !findings.contains(finding));
        let rest: Vec<Finding> = rest.collect();
        findings.extend(rest);
        Self { findings }
    }

    /// The findings, worst first; those of a report that is [led by](Self::led_by) causes, behind these.
    pub fn findings(&self) -> &[Finding] {
        &self.findings
    }

    /// Whether nothing was found that forbids deployment.
    pub fn is_deployable(&self) -> bool {
        self.findings.iter().all(|finding| finding.severity > Severity::Fatal)
    }

    /// The number of findings of one severity.
    pub fn count(&self, severity: Severity) -> usize {
        self.findings.iter().filter(|finding| finding.severity == severity).count()
    }
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Fatal => "fatal",
            Self::Warning => "warning",
            Self::Note => "note",
        })
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}[{}] {}: {}", self.severity, self.kind.name(), self.subject, self.message)
    }
}

impl fmt::Display for Report {
    /// One finding a line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.findings.iter().try_for_each(|finding| writeln!(f, "{finding}"))
    }
}
