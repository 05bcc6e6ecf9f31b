//! The planner: a pure, deterministic function from topology and policy to a complete plan.
//!
//! ```text
//! Topology ─ engine ─▶ Routing ─ merge ─▶ fewer trees ─ lanes ─▶ certificate ─ number ─▶ VLANs ─ intents ─▶ Plan
//! ```
//!
//! An *engine* finds, for every host, the tree along which its frames spread. Everything after that is the same for
//! all engines: identical trees become one (\[Otsuka\] 4.3), trees are placed on lanes and proven free of cycles,
//! measured, numbered, and turned into the complete desired state of every port.
#![forbid(unsafe_code)]

mod advice;
mod afresh;
mod again;
mod assemble;
mod bound;
mod broadcast;
mod candidate;
mod cap;
mod contest;
mod demand;
mod dependency;
mod engine;
mod error;
mod exponential;
mod fan;
mod fitting;
mod frames;
mod host_set;
mod in_band;
mod intents;
mod lanes;
mod lattice;
mod measure;
mod merge;
mod number;
mod part;
mod replan;
mod resilience;
mod rivals;
mod routing;
mod threads;
mod watch;

pub use again::{better_anew, is_better_anew};
pub use error::{PlanError, VlanLimit};
pub use frames::{Uncovered, uncovered};
pub use part::SearchPart;
pub use replan::REPLAN_LOAD_FACTOR;
pub use watch::{StepLimit, Watch, tables_are_tight};

use fabric::{EngineName, FdbMode, Flood, FlowControl, Plan, Policy, Resilience, Switch, Tagging, Topology};

use crate::afresh::plan_afresh;

/// Plans a topology.
///
/// Engines that can go on improving take a number of steps that depends on the size of the topology alone; [`plan_with`]
/// lets them go on.
///
/// With a `previous` plan for the same request, its trees, VLANs and choices stay as far as the cabling lets them, and
/// what broke is mended with few changes; switches, ports and hosts are matched by name. Where that is impossible the
/// topology is planned anew, and trees that are the same again keep their VLAN ids.
/// Cost: dominated by the engine; at least O(VLANs · (switches + links)).
///
/// # Errors
/// [`PlanError`], naming the limit that binds, and relaxations that were tried and work.
pub fn plan(topology: &Topology, policy: &Policy, previous: Option<&Plan>) -> Result<Plan, PlanError> {
    plan_with(topology, policy, previous, &mut StepLimit::by_request(topology, policy))
}

/// Plans a topology; engines that can go on improving do so until the watch says stop. That is how
/// [`Policy::time_limit`] or an interrupt reaches them: the planner itself reads no clock. The best plan so far is
/// returned.
///
/// Two plans from the same topology, policy, previous plan and number of steps are the same bytes.
///
/// # Errors
/// As [`plan`].
pub fn plan_with(
    topology: &Topology,
    policy: &Policy,
    previous: Option<&Plan>,
    watch: &mut dyn Watch,
) -> Result<Plan, PlanError> {
    attempt(topology, policy, previous, watch).map_err(|refused| advice::with_way_out(topology, policy, refused))
}

/// Plans a topology; a refusal names no way out.
fn attempt(
    topology: &Topology,
    policy: &Policy,
    previous: Option<&Plan>,
    watch: &mut dyn Watch,
) -> Result<Plan, PlanError> {
    check_request(topology, policy)?;
    check_learned(policy, previous)?;
    let Some(in_band) = topology.in_band() else { return plan_data(topology, policy, previous, watch) };
    let mut policy = policy.clone();
    policy.vlans.reserved.insert(in_band.vlan);
    let mut plan = plan_data(topology, &policy, previous, watch)?;
    in_band::overlay(topology, in_band, previous, &mut plan);
    Ok(plan)
}

/// `position[switch][dimension]` of every switch if the links make a lattice of them all, found as the engine `dor` finds it;
/// none otherwise.
pub fn lattice_positions(topology: &Topology) -> Option<Vec<Vec<usize>>> {
    let lattice = lattice::Lattice::recognise(topology, lattice::Squares::Rings).ok()?;
    let mut positions = vec![Vec::new(); topology.switches().len()];
    for (node, position) in lattice.nodes.iter().zip(lattice.position) {
        positions[node.index()] = position;
    }
    positions.iter().all(|position| !position.is_empty()).then_some(positions)
}

/// Plans what carries data, which is all there is where switches have ports for their management.
fn plan_data(
    topology: &Topology,
    policy: &Policy,
    previous: Option<&Plan>,
    watch: &mut dyn Watch,
) -> Result<Plan, PlanError> {
    match previous {
        Some(previous) => again::plan(topology, policy, previous, watch),
        None => plan_afresh(topology, policy, None, watch),
    }
}

/// Refuses what no engine could plan.
fn check_request(topology: &Topology, policy: &Policy) -> Result<(), PlanError> {
    if topology.hosts().is_empty() {
        return Err(PlanError::NoHosts);
    }
    if !policy.traffic.fits(topology.hosts().len()) {
        return Err(PlanError::OtherTraffic { hosts: topology.hosts().len() });
    }
    for switch in topology.switches() {
        let refuse = |needs: &'static str| {
            let (switch, model) = (switch.name.clone(), switch.model.name.clone());
            Err(PlanError::Unsupported { switch, model, needs, way_out: String::new() })
        };
        if !switch.model.independent_vlan_learning {
            return refuse("a forwarding table per VLAN (IVL)");
        }
        if policy.tagging == Tagging::Switch && !switch.model.hybrid_ports {
            return refuse("ports that are untagged in many VLANs");
        }
        match policy.flow_control {
            FlowControl::Pause if !switch.model.pause => {
                return refuse("802.3x PAUSE");
            }
            FlowControl::Pfc(classes) if switch.model.pfc_classes < classes => {
                return refuse("as many priority flow control classes");
            }
            _ => {}
        }
    }
    check_flood(topology, policy)?;
    check_storm_control(topology, policy)?;
    number::check_any(topology, policy)
}

/// Refuses to drop floods where something needs them, or a switch cannot.
fn check_flood(topology: &Topology, policy: &Policy) -> Result<(), PlanError> {
    let flood = policy.flood;
    if flood == Flood::Forward {
        return Ok(());
    }
    let needed = |by| Err(PlanError::FloodsNeeded { flood, by, way_out: String::new() });
    if policy.fdb == FdbMode::Learned {
        return needed("a switch that learns");
    }
    if topology.in_band().is_some() {
        return needed("management over data ports");
    }
    let lacks = |switch: &&Switch| !flood.blocked().without(switch.model.blocks_floods).is_empty();
    match topology.switches().iter().find(lacks) {
        None => Ok(()),
        Some(switch) => Err(PlanError::Unsupported {
            switch: switch.name.clone(),
            model: switch.model.name.clone(),
            needs: match flood {
                Flood::Forward => unreachable!("it blocks nothing"),
                Flood::Drop => "ports that block unknown unicast",
                Flood::DropAll => "ports that block unknown unicast, multicast and broadcast",
            },
            way_out: String::new(),
        }),
    }
}

/// Refuses to limit floods where a switch with hosts cannot.
fn check_storm_control(topology: &Topology, policy: &Policy) -> Result<(), PlanError> {
    if policy.storm_limit.is_none() {
        return Ok(());
    }
    let mut edges = topology.host_ids().map(|host| topology.switch(topology.switch_of(host)));
    match edges.find(|switch| !switch.model.storm_control) {
        None => Ok(()),
        Some(switch) => Err(PlanError::Unsupported {
            switch: switch.name.clone(),
            model: switch.model.name.clone(),
            needs: "storm control in percent of a port's rate",
            way_out: String::new(),
        }),
    }
}

/// Refuses what switches that learn are not known to survive.
fn check_learned(policy: &Policy, previous: Option<&Plan>) -> Result<(), PlanError> {
    let unproven = |what, way_out| Err(PlanError::LearnedUnproven { what, way_out });
    let learns = policy.fdb == FdbMode::Learned;
    if previous.is_some_and(|previous| learns || previous.policy.fdb == FdbMode::Learned) {
        return unproven(
            "--previous",
            "plan without --previous, or keep static entries in both plans with --fdb minimal",
        );
    }
    if !learns {
        return Ok(());
    }
    if policy.resilience != Resilience::None {
        return unproven("--resilience", "plan with --resilience 0, or keep static entries with --fdb minimal");
    }
    let one_tree = policy.engine == EngineName::Tree || policy.vlans_max == Some(1);
    if policy.tagging != Tagging::SourceDestination && !one_tree {
        return Err(PlanError::AnswersElsewhere { tagging: policy.tagging, way_out: String::new() });
    }
    Ok(())
}
