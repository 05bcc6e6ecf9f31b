//! Why a plan could not be made, and what would make it possible.

use std::fmt;

use fabric::{EngineName, Flood, FlowControl, Subnet, Tagging};
use thiserror::Error;

use crate::routing::Unsuitable;

/// Why there is no plan.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum PlanError {
    /// Nothing to connect.
    #[error("the topology has no hosts: there is nothing to route between")]
    NoHosts,
    /// Every two links are a group, and a topology has only so many.
    #[error(
        "{links} links make {pairs} pairs, and a plan stores what to do for at most {most} groups: plan with --resilience switch; \
         `show PLAN --failures` bounds what any two links cost"
    )]
    TooManyLinkPairs {
        /// Links.
        links: usize,
        /// Pairs of them.
        pairs: usize,
        /// Groups that a topology may have.
        most: usize,
    },
    /// The traffic matrix was made for another topology.
    #[error("the traffic matrix is for another number of hosts than the {hosts} of the topology; read it for this one")]
    OtherTraffic {
        /// Hosts of the topology.
        hosts: usize,
    },
    /// Traffic between the ports of machines is a matrix, which has its limits.
    #[error(
        "all-to-all traffic between machines with several ports cannot be counted: {0}; state the traffic with --traffic"
    )]
    TooManyPairs(String),
    /// Pairs cannot have several paths.
    #[error("--paths: {reason}")]
    NoPaths {
        /// What stands against it, and what to do.
        reason: String,
    },
    /// The engine does not apply to this topology.
    #[error("engine {engine} does not apply: {reason}{}", after(way_out))]
    Unsuitable {
        /// The engine.
        engine: EngineName,
        /// What it needs and did not find.
        reason: Unsuitable,
        /// What would work; empty if nothing that was tried does.
        way_out: String,
    },
    /// More VLANs are needed than are allowed.
    #[error("engine {engine} needs {}, but {limit}{}", counted(*need, "VLAN"), after(way_out))]
    TooManyVlans {
        /// The engine.
        engine: EngineName,
        /// How many it needs.
        need: usize,
        /// What allows fewer.
        limit: VlanLimit,
        /// What would work; empty if nothing that was tried does.
        way_out: String,
    },
    /// More VLANs are needed than are allowed, to survive any link's failure.
    #[error(
        "engine {engine} needs {}, and {} more to survive any one failure, but {limit}{}",
        counted(*own, "VLAN"), need - own, after(way_out)
    )]
    TooManyVlansForResilience {
        /// The engine.
        engine: EngineName,
        /// How many it needs while all links are up.
        own: usize,
        /// How many it needs in all.
        need: usize,
        /// What allows fewer.
        limit: VlanLimit,
        /// What would work; empty if nothing that was tried does.
        way_out: String,
    },
    /// A switch cannot hold that many static entries.
    #[error("switch {switch} ({model}) holds {limit} static entries, but {need} are needed{}", after(way_out))]
    TooManyStaticEntries {
        /// The switch.
        switch: String,
        /// Its model.
        model: String,
        /// How many are needed.
        need: usize,
        /// How many fit.
        limit: usize,
        /// What would work; empty if nothing that was tried does.
        way_out: String,
    },
    /// A switch has not that many LAGs.
    #[error("switch {switch} ({model}) has {}, but the topology has {need} there; {way_out}", counted(*limit, "LAG"))]
    TooManyLags {
        /// The switch.
        switch: String,
        /// Its model.
        model: String,
        /// How many are needed.
        need: usize,
        /// How many it has.
        limit: usize,
        /// What would work.
        way_out: String,
    },
    /// The routes could deadlock under the flow control asked for.
    #[error(
        "the routes of engine {engine} with {tagging} tagging could deadlock under flow control {flow_control} \
         (a channel dependency cycle of {} channels: {}){}",
        cycle.len(), abridged(cycle), after(way_out)
    )]
    Deadlock {
        /// The engine.
        engine: EngineName,
        /// The tagging mode.
        tagging: Tagging,
        /// The flow control.
        flow_control: FlowControl,
        /// The channels of one cycle, as people write them.
        cycle: Vec<String>,
        /// What would work; empty if nothing that was tried does.
        way_out: String,
    },
    /// A switch cannot do what the policy asks.
    #[error("switch {switch} ({model}) lacks {needs}{}", after(way_out))]
    Unsupported {
        /// The switch.
        switch: String,
        /// Its model.
        model: String,
        /// What it lacks.
        needs: &'static str,
        /// What would work; empty if nothing that was tried does.
        way_out: String,
    },
    /// Switches would learn, but answers come back in other VLANs.
    #[error(
        "--fdb learned needs both directions of every pair in one VLAN, which {tagging} tagging gives only with a single \
         VLAN{}",
        after(way_out)
    )]
    AnswersElsewhere {
        /// The tagging mode.
        tagging: Tagging,
        /// What would work; empty if nothing that was tried does.
        way_out: String,
    },
    /// Switches would learn, which is not proven together with this.
    #[error("--fdb learned is not proven together with {what}; {way_out}")]
    LearnedUnproven {
        /// What was asked for besides.
        what: &'static str,
        /// What would work.
        way_out: &'static str,
    },
    /// Frames without an entry are to be dropped, but something finds its receivers by them.
    #[error("--flood {flood} drops the frames by which {by} finds receivers{}", after(way_out))]
    FloodsNeeded {
        /// What is to be dropped.
        flood: Flood,
        /// What needs floods.
        by: &'static str,
        /// What would work; empty if nothing that was tried does.
        way_out: String,
    },
    /// Unknown unicast is to go to an edge port, and there is none.
    #[error(
        "--flood edge needs an edge port, and the topology has none; write kind: edge at the host that is the uplink, or plan with --flood forward"
    )]
    NoEdge,
    /// Without what is drained, some hosts or switches cannot be reached.
    #[error("draining cuts off {}{}", cut_off(hosts, switches), after(way_out))]
    CutOff {
        /// Hosts that the others cannot reach.
        hosts: Vec<String>,
        /// Switches that the controller cannot reach over data ports.
        switches: Vec<String>,
        /// What would work; empty if nothing that was tried does.
        way_out: String,
    },
    /// No planes give machines paths of their own.
    #[error("--disjoint: {reason}")]
    NoPlanes {
        /// What is in the way.
        reason: String,
    },
    /// An engine's routes leave the planes to which they have to keep.
    #[error("the routes of engine {engine} leave the planes of --disjoint{}", after(way_out))]
    LeavesPlanes {
        /// The engine.
        engine: EngineName,
        /// What would work; empty if nothing that was tried does.
        way_out: String,
    },
    /// A plan cannot keep the channel order of the previous one.
    #[error(
        "--keep-order: {reason}; plan without --keep-order, and `show PLAN --since OLD` says whether the change is proven free of deadlock"
    )]
    OtherOrder {
        /// Why.
        reason: String,
    },
    /// Hosts are farther apart than paths may be.
    #[error(
        "--max-hops {limit}: {from} and {to} are {} apart; the smallest limit that the cabling allows is --max-hops {least}",
        counted(*least as usize, "hop")
    )]
    HopsTooFew {
        /// The limit.
        limit: u32,
        /// Links between switches on a shortest path between the two.
        least: u32,
        /// A host.
        from: String,
        /// The host that is farthest from it.
        to: String,
    },
    /// An engine's routes are longer than paths may be.
    #[error("the routes of engine {engine} take up to {}, but --max-hops allows {limit}{}", counted(*hops as usize, "hop"), after(way_out))]
    TooManyHops {
        /// The engine.
        engine: EngineName,
        /// The limit.
        limit: u32,
        /// Links between switches on the longest path.
        hops: u32,
        /// What would work; empty if nothing that was tried does.
        way_out: String,
    },
    /// There are more hosts than addresses.
    #[error("subnet {subnet} has too few addresses for the hosts; choose a larger one with --subnet")]
    SubnetFull {
        /// The subnet.
        subnet: Subnet,
    },
}

/// What allows only so many VLANs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VlanLimit {
    /// The policy's own cap.
    Policy(usize),
    /// The range of ids less the reserved ones.
    Pool(usize),
    /// A switch model.
    Model {
        /// The switch.
        switch: String,
        /// Its model.
        model: String,
        /// How many VLANs it can have.
        limit: usize,
    },
}

impl VlanLimit {
    /// How many VLANs are allowed.
    pub fn count(&self) -> usize {
        match self {
            Self::Policy(limit) | Self::Pool(limit) | Self::Model { limit, .. } => *limit,
        }
    }
}

impl fmt::Display for VlanLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Policy(limit) => write!(f, "--max-vlans allows {limit}"),
            Self::Pool(limit) => write!(f, "the range of VLAN ids has {limit}"),
            Self::Model { switch, model, limit } => write!(f, "switch {switch} ({model}) has {limit}"),
        }
    }
}

impl PlanError {
    /// Of two refusals, the one that a smaller relaxation would lift.
    pub(crate) fn nearer(self, other: Self) -> Self {
        match (&self, &other) {
            (Self::TooManyVlans { need, .. }, Self::TooManyVlans { need: other_need, .. }) if other_need < need => {
                other
            }
            (Self::TooManyHops { hops, .. }, Self::TooManyHops { hops: other_hops, .. }) if other_hops < hops => other,
            (Self::Deadlock { .. }, Self::TooManyVlans { .. }) => other,
            _ => self,
        }
    }
}

/// A way out as the end of a sentence.
fn after(way_out: &str) -> String {
    if way_out.is_empty() { String::new() } else { format!("; {way_out}") }
}

/// A number and what it counts, in the singular where it is one.
pub(crate) fn counted(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

/// Who is cut off, abridged.
fn cut_off(hosts: &[String], switches: &[String]) -> String {
    const SHOWN_MAX: usize = 6;
    let (what, names) = if hosts.is_empty() { ("the management of ", switches) } else { ("", hosts) };
    let shown = names.iter().take(SHOWN_MAX).cloned().collect::<Vec<_>>().join(", ");
    let more = names.len().saturating_sub(SHOWN_MAX);
    if more > 0 { format!("{what}{shown} and {more} more") } else { format!("{what}{shown}") }
}

fn abridged(cycle: &[String]) -> String {
    const SHOWN_MAX: usize = 6;
    let shown = cycle.iter().take(SHOWN_MAX).cloned().collect::<Vec<_>>().join(", ");
    if cycle.len() > SHOWN_MAX { format!("{shown}, …") } else { shown }
}
