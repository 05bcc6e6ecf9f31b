//! The vocabulary of Espalier.
//!
//! Everything that planner, judge, lab and renderers say to each other is said in the types of this crate:
//! a [`Topology`] of switches, links and hosts; [`Tree`]s over it; a [`Plan`] that gives each VLAN a tree and each
//! device its complete desired state; and a [`Report`] of what a judge found. The crate does no I/O; text formats
//! live in [`format`](mod@format), which is the only place that knows `serde`.
#![forbid(unsafe_code)]

pub mod format;
pub mod generate;
pub mod graph;
pub mod rng;

mod assignment;
mod builder;
mod certificate;
mod drain;
mod failover;
mod fault;
mod flood;
mod gravity;
mod group;
mod guid;
mod id;
mod identity;
mod in_band;
mod intent;
mod lag;
mod limits;
mod link_pairs;
mod mac;
mod model;
mod models;
mod name;
mod path_sets;
mod plan;
mod planes;
mod policy;
mod rate;
mod relation;
mod report;
mod switched_over;
mod topology;
mod traffic;
mod tree;
mod vlan;
mod without;
mod words;

pub use assignment::{Assignment, HostRun};
pub use builder::{SwitchSpec, TopologyBuilder};
pub use certificate::{Bound, Certificate};
pub use drain::{CutOff, Drain, InService};
pub use failover::{
    Failover, FailoverSummary, Failure, PairRun, PartCoverage, Proof, SwitchOver, dividing_groups, dividing_links,
    dividing_switches,
};
pub use fault::Fault;
pub use flood::{Flood, FloodKind, FloodSet};
pub use gravity::{Estimate, EstimateError, gravity};
pub use group::Group;
pub use guid::{Guid, GuidError};
pub use id::{ChannelId, GroupId, HostId, LinkId, MachineId, PortId, SwitchId};
pub use identity::{BadIdentity, IDENTITY_BYTES_MAX, SwitchIdentity};
pub use in_band::return_ports;
pub use intent::{
    Admin, DeviceIntent, ETHERNET_MTU_BYTES, FdbEntry, FdbRun, FlowControlMode, HostIntent, HostTable, HostTagging,
    IPV6_PREFIX_BITS, IngressFilter, Learning, Lldp, PortIntent, PortRole, SpanningTree, StormLimit, network_of,
};
pub use lag::LagNumber;
pub use limits::{
    ADDRESSES_MAX, GROUP_MEMBERS_MAX, GROUPS_MAX, HOSTS_MAX, LEARNED_MAX_DEFAULT, LINKS_MAX, NAME_BYTES_MAX,
    SWITCHES_MAX,
};
pub use mac::{Mac, MacError};
pub use model::{Basis, Model, PortNames};
pub use models::Models;
pub use name::is_port_name;
pub use path_sets::{
    PATH_HOSTS_MAX, PATHS_MAX, PathSets, PathSummary, PermutationProof, permutation_demand, permutation_rate,
    permutations,
};
pub use plan::{Plan, Summary};
pub use planes::{PlanePairs, PlaneParts, Planes};
pub use policy::{EngineName, FdbMode, FlowControl, Policy, Rails, Resilience, Subnet, Tagging, Weights};
pub use rate::{DEFAULT_RATE_BPS, RateError, format_rate, parse_rate};
pub use relation::Relation;
pub use report::{Finding, FindingKind, Report, Severity};
pub use topology::{Attachment, Host, InBand, Link, Machine, Port, StandbyEdge, Switch, Topology};
pub use traffic::{DEMAND_MAX, DEMANDS_MAX, Demand, Traffic, TrafficError, TrafficMatrix};
pub use tree::{RootedTree, Tree, TreeError, VlanTree, is_forest};
pub use vlan::{VlanError, VlanId, VlanPool, VlanSet};
