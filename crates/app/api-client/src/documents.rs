//! What the store keeps and the API shows: each is one JSON document.

use std::net::IpAddr;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The plan that the switches are to hold. A new one is set only in place of its parent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Target {
    /// Counts targets, from 1.
    pub number: u64,
    /// The number of the target before; 0 of the first.
    pub parent: u64,
    /// The digest of its plan.
    pub plan: String,
    /// How the switches get there.
    pub way: Way,
    /// Which proposal it was.
    pub proposal: u64,
    /// Who approved it last.
    pub by: String,
    /// When, in seconds since 1970-01-01 UTC.
    pub at_s: u64,
    /// What became of it.
    pub state: TargetState,
    /// Why it is in that state, if a person should know.
    pub note: Option<String>,
}

/// How switches get to a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Way {
    /// Under traffic, in proven steps from the target before; every switch must hold that one.
    Hitless,
    /// With the ports of switches that differ administratively down until all hold the plan.
    Drained,
}

/// What became of a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TargetState {
    /// It is to be deployed.
    Pending,
    /// The switches hold it.
    Deployed,
    /// The deployment failed; `note` says why.
    Failed,
}

/// A plan that somebody, or the controller itself, proposes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Proposal {
    /// Counts proposals, from 1.
    pub id: u64,
    /// The number of the target that it is to follow; it is stale once there is another.
    pub parent: u64,
    /// The digest of its plan.
    pub plan: String,
    /// What for.
    pub reason: String,
    /// Who proposes it.
    pub by: String,
    /// Why it was made.
    #[serde(default)]
    pub cause: Cause,
    /// When, in seconds since 1970-01-01 UTC.
    pub at_s: u64,
    /// How switches would get there.
    pub way: Way,
    /// What it would change.
    pub effect: Effect,
    /// Where it stands.
    pub state: ProposalState,
    /// Who approved it.
    pub approvals: Vec<Approval>,
    /// Parts that it does without beyond its base: failed ones, and those in maintenance.
    pub drained: Vec<String>,
    /// Switches among them that are down: the plan does not know them, and is deployed without them.
    #[serde(default)]
    pub absent: Vec<String>,
    /// The digest of the plan that it comes from: its own, if it does without nothing.
    pub base: String,
}

/// Why a proposal was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Cause {
    /// Somebody asked for it.
    #[default]
    Request,
    /// Parts have failed, are to rest, or are back.
    Parts,
    /// Traffic that was measured.
    Traffic,
}

/// Where a proposal stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ProposalState {
    /// It waits for approval.
    Open,
    /// It was approved, and became the target.
    Approved,
    /// Somebody withdrew it.
    Withdrawn,
    /// Another target was set meanwhile, or its cause is gone.
    Stale,
}

/// Who approved a proposal, and when.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Approval {
    /// Who.
    pub by: String,
    /// When, in seconds since 1970-01-01 UTC.
    pub at_s: u64,
}

/// What a plan would change, as the judge and the planner have it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Effect {
    /// Findings of the judge; a plan with a fatal one cannot be proposed.
    pub findings: Vec<String>,
    /// Time that the most loaded link takes for the plan's traffic, in units of the plan: now, if there is a target.
    pub max_channel_time_before: Option<f64>,
    /// And afterwards.
    pub max_channel_time_after: f64,
    /// Switches that change.
    pub switches_changed: usize,
    /// Forwarding entries that are added, removed or changed.
    pub entries_changed: usize,
    /// Steps of a hitless change; none of a drained one.
    pub steps: Option<usize>,
    /// Why the change is not hitless.
    pub drained_because: Option<String>,
}

/// How much an event concerns a person.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Severity {
    /// Worth knowing.
    #[default]
    Note,
    /// It resolves by itself, or waits for a person without harm.
    Warning,
    /// A person is needed.
    Critical,
}

/// A root cause, with what follows from it folded under it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Event {
    /// Counts events, from 1.
    pub id: u64,
    /// What kind of cause, such as `cable-down`.
    pub kind: String,
    /// What it is about: a switch, a link, a host; empty if it is about the whole fabric.
    pub subject: String,
    /// How much it concerns a person.
    pub severity: Severity,
    /// The most that it has, since it came.
    #[serde(default)]
    pub worst: Severity,
    /// What is wrong, in a sentence.
    pub message: String,
    /// What follows from it, and needs nothing done by itself.
    pub consequences: Vec<String>,
    /// What to do, in a sentence.
    pub remedy: Option<String>,
    /// When it was seen first, in seconds since 1970-01-01 UTC.
    pub first_s: u64,
    /// When it was seen last.
    pub last_s: u64,
    /// Since when it is not seen, though it may return: it has flapped, and its hold-down lasts. It is a note meanwhile.
    pub gone_s: Option<u64>,
    /// When it was gone for good; none while it lasts.
    pub cleared_s: Option<u64>,
    /// How often it came, without being gone for long in between.
    pub times: u32,
    /// Why maintenance keeps it from being acted on, if it does.
    pub maintenance: Option<String>,
}

/// What is told of an event to the world outside.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Notification {
    /// `event.opened`, `event.changed` or `event.cleared`.
    #[serde(rename = "type")]
    pub kind: String,
    /// When, by RFC 3339.
    pub timestamp: String,
    /// The event.
    pub data: Event,
}

/// A notification on its way to somebody.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Delivery {
    /// Counts deliveries, from 1.
    pub id: u64,
    /// To whom, by the name in the configuration.
    pub to: String,
    /// The notification, as JSON.
    pub body: String,
    /// When it was written, in seconds since 1970-01-01 UTC.
    pub at_s: u64,
    /// How often it was tried.
    pub tries: u32,
    /// When it is tried next; none if it is not tried any more.
    pub next_s: Option<u64>,
    /// Why the last try failed.
    pub failure: Option<String>,
}

/// A mark that keeps the controller from acting on something.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Maintenance {
    /// Counts marks, from 1.
    pub id: u64,
    /// A switch, link, group or host by name; `fabric` is everything.
    pub subject: String,
    /// Why.
    pub reason: String,
    /// Who set it.
    pub by: String,
    /// When, in seconds since 1970-01-01 UTC.
    pub at_s: u64,
    /// Until when; none if until it is removed.
    pub until_s: Option<u64>,
    /// Whether a plan without the subject is proposed, and one with it afterwards.
    pub drain: bool,
}

/// What somebody did.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AuditEntry {
    /// Counts entries, from 1.
    pub id: u64,
    /// When, in seconds since 1970-01-01 UTC.
    pub at_s: u64,
    /// Who.
    pub who: String,
    /// What, in a sentence.
    pub what: String,
}

/// The fabric as it was polled last.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Status {
    /// What the controller is doing.
    pub doing: String,
    /// The target.
    pub target: Option<Target>,
    /// Switches of the target's plan.
    pub switches: usize,
    /// Those that answer and hold the plan.
    pub as_planned: usize,
    /// When all switches were polled last, in seconds since 1970-01-01 UTC; none if they have not been.
    pub polled_s: Option<u64>,
    /// How long that took, in seconds.
    pub poll_took_s: f64,
    /// Every link between switches, then those of hosts.
    pub links: Vec<LinkStatus>,
    /// Links that are kept out of use, since they have failed too often in a row.
    #[serde(default)]
    pub kept_out: Vec<KeptOut>,
    /// Hosts that send heartbeats.
    #[serde(default)]
    pub heartbeats: usize,
    /// Paths that fail, by their heartbeats.
    #[serde(default)]
    pub paths_failing: usize,
    /// Events that last.
    pub events: Vec<Event>,
    /// Open proposals.
    pub proposals: Vec<Proposal>,
    /// Maintenance marks that are in force.
    pub maintenance: Vec<Maintenance>,
    /// Notifications that are to be delivered, or tried again.
    pub deliveries_pending: usize,
    /// Notifications that could not be delivered.
    pub deliveries_failed: usize,
}

/// What a host says of its paths and of its traffic, every few seconds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Heartbeat {
    /// The MAC address of its port.
    pub host: String,
    /// What tests the paths. A host's heartbeats of each source stand beside each other.
    #[serde(default, skip_serializing_if = "HeartbeatSource::is_tagger")]
    pub source: HeartbeatSource,
    /// Seconds until the next heartbeat, 1 to 3600.
    pub every_s: u64,
    /// The VLANs in which it tests the paths to all other switches, as `2-9`.
    #[serde(default)]
    pub vlans: String,
    /// Further paths that it tests, in the VLANs that the plan has for the pairs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tested: Vec<TestedPath>,
    /// The paths that fail; all others do not.
    #[serde(default)]
    pub failing: Vec<FailingPath>,
    /// Bytes that it has sent by destination, counted from a moment of its own. At most 4096 destinations.
    #[serde(default)]
    pub sent: Vec<SentBytes>,
}

/// What tests a host's paths.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum HeartbeatSource {
    /// The tagger's probes.
    #[default]
    Tagger,
    /// Connections of RI2N.
    Ri2n,
}

impl HeartbeatSource {
    fn is_tagger(&self) -> bool {
        *self == Self::Tagger
    }
}

/// A path to one host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TestedPath {
    /// The host's MAC address.
    pub toward: String,
    /// How it fails, if it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loss: Option<PathLoss>,
}

/// A path that fails: the VLAN, and a host on the switch that it leads to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct FailingPath {
    /// The VLAN.
    pub vlan: u16,
    /// The host's MAC address.
    pub toward: String,
    /// How.
    pub loss: PathLoss,
}

// Ordered by severity.
/// How a path fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PathLoss {
    /// Some frames are lost.
    Lossy,
    /// No frame arrives.
    Silent,
}

/// Bytes sent to one destination.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SentBytes {
    /// Its MAC address.
    pub to: String,
    /// Bytes.
    pub bytes: u64,
}

/// What `espalier status` prints of the fabric, at one poll.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct FabricStatus {
    /// When the switches were polled, in seconds since 1970-01-01 UTC.
    pub polled_s: u64,
    /// Whether there is nothing to do and nothing to wait for.
    pub is_sound: bool,
    /// Its lines, for a person. Loads are since the poll before.
    pub lines: Vec<String>,
    /// What `espalier status --json` prints.
    #[schema(value_type = Object)]
    pub report: serde_json::Value,
}

/// What one switch holds, read from it now.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct SwitchObservation {
    /// Its name.
    pub switch: String,
    /// What `espalier observe` writes of it; none if it does not answer.
    #[schema(value_type = Option<Object>)]
    pub observation: Option<serde_json::Value>,
    /// Why it does not answer.
    pub fault: Option<String>,
}

/// Switches to ask who they are and whom they hear.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct DiscoveryRequest {
    /// Which.
    pub switches: Vec<AskedSwitch>,
}

/// A switch to ask.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AskedSwitch {
    /// Its management address.
    #[schema(value_type = String)]
    pub address: IpAddr,
    /// Its name, if known.
    pub name: Option<String>,
    /// The names of its ports, if known.
    #[serde(default)]
    pub ports: Vec<String>,
}

/// What a switch says of itself and of its neighbours.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct DiscoveredSwitch {
    /// Its management address.
    #[schema(value_type = String)]
    pub address: IpAddr,
    /// Its names, ports, neighbours and identity; none if it does not answer.
    #[schema(value_type = Option<Object>)]
    pub station: Option<serde_json::Value>,
    /// Why it does not answer.
    pub fault: Option<String>,
}

/// A link that hosts do not return to until it has carried for its hold-down.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct KeptOut {
    /// Its ends.
    pub link: String,
    /// Failures in a row.
    pub failures: u32,
    /// How long it must carry, in milliseconds.
    pub hold_ms: u64,
}

/// A link as it was polled last.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct LinkStatus {
    /// Its ends.
    pub link: String,
    /// Whether it carries; none if neither end says.
    pub up: Option<bool>,
    /// The part of its capacity that is used, 0 to 1, from the first end to the second and in reverse.
    pub load: [Option<f64>; 2],
    /// Bad frames at both ends since the poll before.
    pub errors: Option<u64>,
    /// Dropped frames at both ends since the poll before.
    pub discards: Option<u64>,
}

/// The load of a link, at one poll or over some time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct LoadSample {
    /// When, or when the time began, in seconds since 1970-01-01 UTC.
    pub at_s: u64,
    /// Seconds that the mean and the maximum are of; 0 of one poll.
    pub over_s: u64,
    /// The mean part of its capacity that was used, 0 to 1, from the first end to the second and in reverse.
    pub mean: [Option<f64>; 2],
    /// The maximum of all polls.
    pub max: [Option<f64>; 2],
}

/// The loads of a link, oldest first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct LinkHistory {
    /// Its ends.
    pub link: String,
    /// Means and maxima of five minutes each, then single polls.
    pub samples: Vec<LoadSample>,
}

/// The mean and the maximum load of a link over some time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct LinkSummary {
    /// Its ends.
    pub link: String,
    /// The mean part of its capacity that was used, 0 to 1, from the first end to the second and in reverse.
    pub mean: [Option<f64>; 2],
    /// The maximum of all polls.
    pub max: [Option<f64>; 2],
}

/// The current deployment of a target, or the last one since the daemon was started.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Deployment {
    /// The number of the target.
    pub target: u64,
    /// The digest of its plan.
    pub plan: String,
    /// When it began, in seconds since 1970-01-01 UTC.
    pub at_s: u64,
    /// What has happened, as `espalier deploy` prints it.
    pub lines: Vec<String>,
    /// How it ended; none while it goes on.
    pub outcome: Option<DeploymentOutcome>,
}

/// How a deployment ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DeploymentOutcome {
    /// In one word, such as `deployed`, `unchanged`, `rolled-back`, `refused` or `interrupted`.
    pub word: String,
    /// In sentences, with the way on.
    pub lines: Vec<String>,
    /// Whether every switch holds the plan.
    pub is_sound: bool,
}

/// Why a request is refused, as JSON.
#[derive(Serialize, Deserialize, ToSchema)]
pub struct ErrorDocument {
    /// What is wrong, and what to do.
    pub error: String,
}

/// A maintenance mark that is to be set.
#[derive(Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct MaintenanceRequest {
    /// A switch, link, group or host by name, or `fabric`.
    pub subject: String,
    /// Why.
    pub reason: String,
    /// For how many seconds; none if until it is removed.
    pub for_s: Option<u64>,
    /// Whether a plan without the subject is proposed.
    #[serde(default)]
    pub drain: bool,
}
