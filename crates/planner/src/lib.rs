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
mod again;
mod bound;
mod broadcast;
mod candidate;
mod cap;
mod demand;
mod dependency;
mod difference;
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
mod relation;
mod replan;
mod resilience;
mod rivals;
mod routing;
mod threads;
mod transition;
mod watch;

pub use again::is_better_anew;
pub use difference::{Difference, EntryCounts, PortDifference, Presence, SwitchDifference, difference};
pub use error::{PlanError, VlanLimit};
pub use frames::{Uncovered, uncovered};
pub use replan::REPLAN_LOAD_FACTOR;
pub use transition::{
    FabricState, Part, PortChange, Step, StepError, StepKind, SwitchChange, Transition, apply, steps,
};
pub use watch::{StepLimit, Watch, tables_are_tight};

use std::{collections::BTreeSet, net::IpAddr};

use fabric::{
    Assignment, Certificate, DeviceIntent, EngineName, Failover, FailoverSummary, FdbMode, FlowControl, HostId, Plan,
    Policy, Proof, Resilience, Summary, Tagging, Topology, Tree, VlanId, VlanSet, VlanTree,
};

use crate::{
    candidate::{Candidate, attainable},
    demand::Demand,
    fitting::Fitting,
    intents::Carrying,
    lanes::Lanes,
    measure::Measure,
    relation::Relation,
    replan::Standing,
    resilience::{BackupFan, Protection, Request, Thrift},
    routing::Routing,
    watch::Shortened,
};

/// What part of the VLANs, and one more, is left for failures where time decides how long trees are searched for.
const RESERVED_PART: usize = 8;

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

/// Plans without regard to former routes; trees that are the same again keep their VLAN ids.
fn plan_afresh(
    topology: &Topology,
    policy: &Policy,
    previous: Option<&Plan>,
    watch: &mut dyn Watch,
) -> Result<Plan, PlanError> {
    let addresses = addresses(topology, policy, None)?;
    let bound = bound::bound(topology, &Demand::new(topology, &policy.traffic), watch.threads());
    match plan_anew(topology, policy, previous, &addresses, &bound, watch) {
        Err(refused) if policy.resilience != Resilience::None => {
            sparing_plan(topology, policy, previous, addresses, bound, refused, watch.threads())
        }
        result => result,
    }
}

/// Plans with as many trees as limits and failures let there be.
fn plan_anew(
    topology: &Topology,
    policy: &Policy,
    previous: Option<&Plan>,
    addresses: &[IpAddr],
    bound: &bound::LoadBound,
    watch: &mut dyn Watch,
) -> Result<Plan, PlanError> {
    let threads = watch.threads();
    let searches = matches!(policy.engine, EngineName::Auto | EngineName::Balanced);
    let hurry = searches && policy.time_limit.is_some() && policy.resilience != Resilience::None;
    let trees_max = if hurry && engine::shares_trees(topology, policy) {
        // Sharing takes all the time there is, and how many more trees failures take shows only afterwards.
        let capacity = number::capacity(topology, policy);
        Some(capacity.saturating_sub(1 + capacity / RESERVED_PART).max(1))
    } else {
        policy.vlans_max
    };
    let mut fitting = Fitting::new(trees_max, tables_are_tight(topology, policy));
    let mut best = None;
    loop {
        let capped = Policy { vlans_max: fitting.cap(), ..policy.clone() };
        let mut shortened;
        let watch: &mut dyn Watch = match fitting.steps(|| StepLimit::for_one(topology, policy)) {
            Some(steps) => {
                shortened = Shortened { watch, steps };
                &mut shortened
            }
            None => watch,
        };
        let Candidate { engine, routing, lanes, measure } = match fitting.is_trial() {
            true => candidate::of_request(topology, &capped, bound.load, watch)?,
            false => rivals::contest(topology, &capped, bound.load, watch)?,
        };
        let own = routing.trees.len();
        let former = match previous {
            Some(previous) => {
                replan::former_extras(topology, previous, &Relation::between(&previous.topology, topology))
            }
            None => Vec::new(),
        };
        let finish = |thrift| -> Result<Plan, PlanError> {
            let protection = protect(topology, policy, engine, &routing, &lanes, former.clone(), thrift)?;
            let (routing, lane) = with_extras(routing.clone(), &lanes.lane, protection.as_ref());
            let (trees, assignment, vlan) = number::number(topology, policy, routing, &lane, previous)?;
            let backup = protection.map(|protection| Backup { protection, vlan });
            let (addresses, bound, measure) = (addresses.to_vec(), bound.clone(), measure.clone());
            let Lanes { count: lanes, rank, .. } = lanes.clone();
            let parts = Parts { engine, trees, assignment, addresses, measure, lanes, rank, bound, backup, threads };
            assemble(topology, policy, parts, None)
        };
        let finished = match finish(Thrift::Balanced) {
            Err(PlanError::TooManyStaticEntries { .. }) if policy.resilience != Resilience::None => {
                finish(Thrift::Sparing)
            }
            finished => finished,
        };
        let gives_up_trees = searches && own > 1;
        match finished {
            Err(PlanError::TooManyStaticEntries { need, limit, .. }) if gives_up_trees => {
                fitting.is_too_much(own, own * limit / need);
            }
            Err(PlanError::TooManyVlansForResilience { need, limit, .. }) if gives_up_trees => {
                fitting.is_too_much(own, limit.count().saturating_sub(need - own));
            }
            Ok(plan) => {
                let time_max = plan.summary.max_channel_time;
                if fitting.keeps() && best.as_ref().is_none_or(|best: &Plan| time_max <= best.summary.max_channel_time)
                {
                    best = Some(plan);
                }
                if fitting.fits(time_max) {
                    return Ok(best.expect("it was just found, or a better one was"));
                }
            }
            Err(error) => return best.ok_or(error),
        }
    }
}

/// The plan with the fewest trees of an engine, and of further ones only those that failures take: what is left where
/// no better one fits.
///
/// Neither the cap on VLANs nor the steps that are left have a say in how it is made, only in whether it is taken. So
/// the number that is named as enough is that of the very plan that a cap of so many lets through.
///
/// # Errors
/// How many VLANs it takes, if they are too many; `refused`, if the engine has no such plan.
fn sparing_plan(
    topology: &Topology,
    policy: &Policy,
    previous: Option<&Plan>,
    addresses: Vec<IpAddr>,
    bound: bound::LoadBound,
    refused: PlanError,
    threads: usize,
) -> Result<Plan, PlanError> {
    let Ok(Candidate { engine, routing, lanes, measure }) = fewest_trees(topology, policy, bound.load) else {
        return Err(refused);
    };
    let Ok(protection) = resilience::protect(&Request {
        topology,
        flow_control: policy.flow_control,
        routing: &routing,
        lane: &lanes.lane,
        rank: lanes.rank.as_deref(),
        former: Vec::new(),
        extras_max: usize::MAX,
        thrift: Thrift::Sparing,
    }) else {
        return Err(refused);
    };
    let (own, extras) = (routing.trees.len(), protection.extras.len());
    if extras > 0 && own + extras > number::capacity(topology, policy) {
        return Err(number::too_many_for_resilience(topology, policy, engine, own, extras));
    }
    number::check_limits(topology, policy, engine, &routing)?;
    let (routing, lane) = with_extras(routing, &lanes.lane, Some(&protection));
    let (trees, assignment, vlan) = number::number(topology, policy, routing, &lane, previous)?;
    let backup = Some(Backup { protection, vlan });
    let Lanes { count: lanes, rank, .. } = lanes;
    let parts = Parts { engine, trees, assignment, addresses, measure, lanes, rank, bound, backup, threads };
    assemble(topology, policy, parts, None)
}

/// The routes of the policy's engine under the lowest cap that it can keep, after a few steps.
fn fewest_trees(topology: &Topology, policy: &Policy, bound: f64) -> Result<Candidate, PlanError> {
    let mut capped = Policy { vlans_max: Some(1), ..policy.clone() };
    loop {
        let mut watch = StepLimit::probe();
        match candidate::of_request(topology, &capped, bound, &mut watch) {
            Err(PlanError::TooManyVlans { need, limit: VlanLimit::Policy(cap), .. }) if need > cap => {
                capped.vlans_max = Some(need);
            }
            found => return found,
        }
    }
}

/// Makes routes ready for any link to fail, if the policy asks for it.
fn protect(
    topology: &Topology,
    policy: &Policy,
    engine: EngineName,
    routing: &Routing,
    lanes: &Lanes,
    former: Vec<(Tree, u8, VlanId)>,
    thrift: Thrift,
) -> Result<Option<Protection>, PlanError> {
    if policy.resilience == Resilience::None {
        return Ok(None);
    }
    let own = routing.trees.len();
    let former: Vec<_> = former.into_iter().filter(|(.., vlan)| policy.vlans.contains(*vlan)).collect();
    let request = |thrift, extras_max| {
        let (lane, rank, former) = (&lanes.lane[..], lanes.rank.as_deref(), former.clone());
        let flow_control = policy.flow_control;
        resilience::protect(&Request { topology, flow_control, routing, lane, rank, former, extras_max, thrift })
    };
    let extras_max = number::capacity(topology, policy).saturating_sub(own);
    if thrift == Thrift::Balanced {
        if let Ok(protection) = request(thrift, extras_max) {
            return Ok(Some(protection));
        }
    }
    // However few there may be, it is made in the same way, so that it fits wherever its number does.
    match request(Thrift::Sparing, usize::MAX) {
        Ok(protection) if protection.extras.len() <= extras_max => Ok(Some(protection)),
        protection => {
            let extras = protection.map_or(0, |protection| protection.extras.len());
            Err(number::too_many_for_resilience(topology, policy, engine, own, extras))
        }
    }
}

/// The trees of a routing and those that are added for failures, with their lanes.
fn with_extras(mut routing: Routing, lane: &[u8], protection: Option<&Protection>) -> (Routing, Vec<u8>) {
    let mut lane = lane.to_vec();
    for (tree, of, _) in protection.into_iter().flat_map(|protection| &protection.extras) {
        routing.trees.push(tree.clone());
        lane.push(*of);
    }
    (routing, lane)
}

/// What a plan is made of before its devices are.
struct Parts {
    engine: EngineName,
    trees: Vec<VlanTree>,
    assignment: Assignment<VlanId>,
    addresses: Vec<IpAddr>,
    measure: Measure,
    lanes: usize,
    rank: Option<Vec<Vec<u32>>>,
    bound: bound::LoadBound,
    backup: Option<Backup>,
    threads: usize,
}

/// What a plan does when a link fails, and the VLANs of its trees.
struct Backup {
    protection: Protection,
    /// `vlan[tree]`.
    vlan: Vec<VlanId>,
}

impl Backup {
    fn failover(self, topology: &Topology, assignment: &Assignment<VlanId>, devices: &[DeviceIntent]) -> Failover {
        let mut used = VlanSet::new();
        assignment.map(|vlan| used.insert(vlan));
        let is_extra = |vlan: VlanId| !used.contains(vlan);
        let Self { protection, vlan } = self;
        let switch_overs = protection.switch_overs(&vlan);
        let Protection { numberings, load_max, links_dividing, .. } = protection;
        let runs = devices.iter().flat_map(|device| &device.fdb).filter(|run| is_extra(run.vlan));
        let summary = FailoverSummary {
            links_covered: topology.links().len() - links_dividing,
            links_dividing,
            drained: switch_overs.iter().filter(|over| matches!(over.proof, Proof::Drained(_))).count(),
            max_channel_load: load_max,
            vlans_extra: vlan.iter().filter(|vlan| is_extra(**vlan)).count(),
            fdb_entries_extra: runs.map(|run| run.last.index() - run.first.index() + 1).sum(),
        };
        let numberings = numberings.into_iter().map(|rank| Certificate { rank }).collect();
        Failover { switch_overs, numberings, summary }
    }
}

fn assemble(
    topology: &Topology,
    policy: &Policy,
    parts: Parts,
    standing: Option<Standing<'_>>,
) -> Result<Plan, PlanError> {
    let Parts { engine, trees, assignment, addresses, measure, lanes, rank, bound, backup, threads } = parts;
    let position = |vlan: VlanId| trees.partition_point(|tree| tree.vlan < vlan);
    let mut fans = backup.as_ref().map_or_else(Vec::new, |backup| {
        let at = |fan: BackupFan| BackupFan { tree: position(backup.vlan[fan.tree]), ..fan };
        backup.protection.fans().into_iter().map(at).collect()
    });
    fans.sort_by_key(|fan| fan.tree);
    let carrying = Carrying { trees: &trees, assignment: &assignment, backup: &fans, standing: standing.as_ref() };
    let devices = intents::intents(topology, policy, &carrying, threads);
    let common = backup.as_ref().and_then(|backup| backup.protection.rank.clone());
    let certificate = common.or(rank).map(|rank| Certificate { rank });
    check_static_entries(topology, &devices)?;
    let entries: Vec<usize> = devices.iter().map(DeviceIntent::fdb_len).collect();
    let failover = backup.map(|backup| backup.failover(topology, &assignment, &devices));
    let summary = Summary {
        switches: topology.switches().len(),
        hosts: topology.hosts().len(),
        links: topology.links().len(),
        vlans: trees.len(),
        lanes,
        avg_switches_per_path: measure.avg_switches_per_path(topology),
        avg_hops: measure.avg_hops(topology),
        max_switches_per_path: measure.hops_max + 1,
        max_channel_load: measure.load_max(),
        max_channel_time: measure.time_max,
        load_bound: bound.load,
        load_gap: if bound.load > 0.0 { measure.time_max / bound.load } else { 1.0 },
        deadlock_free: certificate.is_some(),
        fdb_entries_max: entries.iter().copied().max().unwrap_or(0),
        fdb_entries_total: entries.iter().sum(),
    };
    Ok(Plan {
        topology: topology.clone(),
        policy: policy.clone(),
        engine,
        trees,
        assignment,
        addresses,
        devices,
        certificate,
        bound: bound.certificate,
        failover,
        summary,
    })
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
    number::check_any(topology, policy)
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

/// Gives every host without an address the one that it had, or else the next free one of the subnet.
fn addresses(
    topology: &Topology,
    policy: &Policy,
    before: Option<(&Plan, &Relation)>,
) -> Result<Vec<IpAddr>, PlanError> {
    let had = |host: HostId| {
        let (previous, relation) = before.filter(|(previous, _)| previous.policy.subnet == policy.subnet)?;
        let twin = relation.host_from[host.index()]?;
        previous.addresses.get(twin.index()).copied().filter(|_| previous.topology.host(twin).address.is_none())
    };
    let stated: BTreeSet<IpAddr> = topology.hosts().iter().filter_map(|host| host.address).collect();
    let kept: Vec<Option<IpAddr>> = (topology.host_ids())
        .map(|host| topology.host(host).address.or_else(|| had(host).filter(|address| !stated.contains(address))))
        .collect();
    let taken: BTreeSet<IpAddr> = kept.iter().flatten().copied().collect();
    let mut stations = (1..).map_while(|number| policy.subnet.station(number)).map(IpAddr::V4);
    let mut next = || stations.by_ref().find(|address| !taken.contains(address));
    (kept.into_iter())
        .map(|kept| kept.or_else(&mut next).ok_or(PlanError::SubnetFull { subnet: policy.subnet }))
        .collect()
}

fn check_static_entries(topology: &Topology, devices: &[DeviceIntent]) -> Result<(), PlanError> {
    for (switch, device) in topology.switches().iter().zip(devices) {
        let (need, limit) = (device.fdb_len(), switch.model.static_entries_max);
        if need > limit {
            let (switch, model) = (switch.name.clone(), switch.model.name.clone());
            return Err(PlanError::TooManyStaticEntries { switch, model, need, limit, way_out: String::new() });
        }
    }
    Ok(())
}
