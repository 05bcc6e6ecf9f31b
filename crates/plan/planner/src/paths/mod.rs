//! Path sets: further VLANs for every pair of hosts, with paths that differ, beside the one that a plan assigns.
//!
//! ```text
//!   plan ─ order ─▶ which channel may follow which ─ grow ─▶ more trees ─ choose ─▶ up to K VLANs a pair ─ measure ─▶ plan
//! ```
//! All-to-all keeps the assigned VLANs, so its load is that of the plan with one path. Rates adapt where hosts send; paths
//! stay. That split, few paths from many trees and rates by demand, comes close to the best any routing does: H. Räcke,
//! "Optimal hierarchical decompositions for congestion minimization in networks", STOC 2008; P. Kumar et al.,
//! "Semi-oblivious traffic engineering: the road not taken" (SMORE), NSDI 2018.
//!
//! Where full buffers wait, the plan's numbering of channels fixes an order for its own routes alone. It is extended to as many
//! successions of channels as close no cycle, and further paths follow that order: all paths of a lane together are free of
//! deadlock by one numbering.

mod choose;
mod grow;
mod matching;
mod measure;
mod order;

use std::collections::{BTreeMap, BTreeSet};

use fabric::{
    ChannelId, FdbMode, HostId, PATH_HOSTS_MAX, PathSets, Plan, Policy, Relation, Resilience, SwitchId, Tagging,
    Topology, Tree, VlanId, VlanTree, rng::Rng,
};

use crate::{
    OrderRule, PlanError, Watch,
    assemble::check_static_entries,
    confined::Confined,
    fan::Direction,
    host_set::HostSet,
    intents::{self, Carrying},
    number, plan_between_machines,
    resilience::OwnedFan,
    watch::{Shortened, path_candidates},
};

use self::{
    choose::{Choice, ChosenPaths},
    measure::{Measured, RoutingBounds},
    order::ChannelOrder,
};

/// By how much the most loaded link may take longer than in another plan that carries less of permutations.
const LOAD_FACTOR: f64 = 1.03;
/// By how many hops paths may be longer than the shortest of their pair; each value is tried. A torus needs detours. In a fat tree the
/// shortest paths fill every uplink, and a path that goes up, down and up again takes capacity from other pairs.
const DETOURS: [u32; 2] = [u32::MAX, 0];

/// Refuses path sets where they cannot be.
pub(crate) fn check(topology: &Topology, policy: &Policy) -> Result<(), PlanError> {
    if policy.paths_max <= 1 {
        return Ok(());
    }
    let refuse = |reason: &str| Err(PlanError::NoPaths { reason: reason.to_owned() });
    if policy.tagging == Tagging::Switch {
        return refuse("switches that tag know one VLAN for each host; let hosts choose with --tagging source");
    }
    if policy.fdb == FdbMode::Learned {
        return refuse("switches that learn have one path for each pair; keep static entries with --fdb minimal");
    }
    if policy.resilience != Resilience::None {
        return refuse(
            "backup assignments are for one path a pair; omit --resilience: hosts leave a path that fails by themselves (espalier tagger run)",
        );
    }
    if topology.in_band().is_some() && policy.flow_control.lanes().is_some() {
        return refuse(
            "management over data ports and further paths are not proven free of deadlock together; use --flow-control none, or manage the switches out of band",
        );
    }
    let hosts = topology.hosts().len();
    if hosts > PATH_HOSTS_MAX {
        return refuse(&format!(
            "{hosts} hosts are more than the {PATH_HOSTS_MAX} for which permutations are certified"
        ));
    }
    Ok(())
}

/// Plans one path a pair, then the further ones. Where full buffers wait, several plans compete, each from another seed: of those
/// whose most loaded link takes about as little time as any, the one that carries most of permutations is kept.
pub(crate) fn plan(
    topology: &Topology,
    policy: &Policy,
    (previous, order): (Option<&Plan>, OrderRule),
    watch: &mut dyn Watch,
) -> Result<Plan, PlanError> {
    let count = if previous.is_some() { 1 } else { path_candidates(policy) };
    let mut candidates: Vec<Plan> = Vec::new();
    let mut any = RoutingBounds::default();
    for number in 0..count {
        if number > 0 && watch.expired() {
            break;
        }
        let asked = Policy { seed: policy.seed.wrapping_add(number), ..policy.clone() };
        let threads = watch.threads();
        let mut part = Shortened::first_part(&mut *watch, count - number);
        let plan = plan_between_machines(topology, &asked, (previous, order), &mut part)
            .and_then(|plan| with_paths(topology, &asked, (previous, order), plan, &mut any, threads));
        match plan {
            Ok(plan) => candidates.push(plan),
            Err(error) if candidates.is_empty() => return Err(error),
            Err(_) => {}
        }
    }
    let least = candidates.iter().map(|plan| plan.summary.max_channel_time).fold(f64::INFINITY, f64::min);
    candidates.retain(|plan| plan.summary.max_channel_time <= least * LOAD_FACTOR);
    let share = |plan: &Plan| plan.summary.paths.as_ref().map_or(1.0, |paths| paths.permutation_share_mean);
    let best = candidates.into_iter().reduce(|best, plan| if share(&plan) > share(&best) { plan } else { best });
    let plan = best.expect("one of them has the least");
    Ok(if count > 1 { Plan { policy: policy.clone(), ..plan } } else { plan })
}

/// A plan whose pairs have up to `paths_max` VLANs, as many as tables hold; the plan itself if none is asked for, or if it has
/// its path sets already. Cost: O(trees · switches² + pairs · paths · candidates), and the permutations' measuring.
///
/// # Errors
/// [`PlanError::TooManyStaticEntries`] if a switch cannot hold the entries of two paths a pair.
fn with_paths(
    topology: &Topology,
    policy: &Policy,
    (previous, rule): (Option<&Plan>, OrderRule),
    plan: Plan,
    any: &mut RoutingBounds,
    threads: usize,
) -> Result<Plan, PlanError> {
    if policy.paths_max <= 1 || plan.paths.is_some() {
        return Ok(plan);
    }
    let mut rng = Rng::new(policy.seed);
    let order = ChannelOrder::of(topology, policy, &plan, rule, &mut rng);
    let confined = Confined::by(topology, policy);
    let own: Vec<(Tree, u8)> = plan.trees.iter().map(|tree| (tree.tree.clone(), tree.lane)).collect();
    let mut former = former(topology, previous);
    former.retain(|(_, lane, _)| *lane < order.lanes());
    let again = former.iter().map(|(tree, lane, _)| (tree.clone(), *lane)).filter(|tree| !own.contains(tree));
    let grown = grow::grow(topology, &order, &confined, &mut rng);
    let capacity = number::capacity(topology, policy).max(own.len());
    let trees = own.iter().cloned().chain(again).chain(grown).take(capacity).collect();
    let assembly = Assembly { topology, policy, plan: &plan, trees, former, order, threads };
    let mut most = policy.paths_max as usize;
    loop {
        let (chosen, measured) = assembly.choose(&confined, most, any)?;
        match assembly.with(&chosen, measured) {
            Err(PlanError::TooManyStaticEntries { .. }) if most > 2 => most = most.div_ceil(2),
            result => return result,
        }
    }
}

/// Trees of a previous plan that carried further paths, with their lanes and VLANs, as far as their links are still there.
fn former(topology: &Topology, previous: Option<&Plan>) -> Vec<(Tree, u8, VlanId)> {
    let Some(previous) = previous.filter(|previous| previous.paths.is_some()) else { return Vec::new() };
    let relation = Relation::between(&previous.topology, topology);
    let now = |tree: &VlanTree| {
        let link = |link: &fabric::LinkId| Some(relation.channel[ChannelId::forward(*link).index()]?.link());
        let links: Option<Vec<_>> = tree.tree.links().iter().map(link).collect();
        Some((Tree::new(topology, links?).ok()?, tree.lane, tree.vlan))
    };
    previous.trees.iter().filter_map(now).collect()
}

/// What chosen paths become a plan with.
struct Assembly<'a> {
    topology: &'a Topology,
    policy: &'a Policy,
    /// With one path a pair.
    plan: &'a Plan,
    /// Trees with their lanes, the plan's own first.
    trees: Vec<(Tree, u8)>,
    /// Further trees of a previous plan, with their VLANs.
    former: Vec<(Tree, u8, VlanId)>,
    order: ChannelOrder,
    threads: usize,
}

impl Assembly<'_> {
    /// Chooses paths with and without detours. Those without are kept if they carry as much of permutations and protect as many pairs against
    /// link failures. Cost: up to two measurements.
    fn choose(
        &self,
        confined: &Confined,
        most: usize,
        any: &mut RoutingBounds,
    ) -> Result<(ChosenPaths, Measured), PlanError> {
        let Self { topology, policy, plan, trees, order, threads, .. } = self;
        let mut best: Option<(ChosenPaths, Measured)> = None;
        for detour in DETOURS {
            let choice = Choice { most, detour, hops_max: policy.hops_max };
            let chosen = choose::choose(topology, plan, trees, order, confined, choice);
            if let Some((known, worth)) = &best {
                if !chosen.protects_all_of(topology, known)
                    || !measure::may_carry_as_much(topology, &chosen, worth, any)?
                {
                    continue;
                }
            }
            let measured = measure::measure(topology, plan, &chosen, any, *threads)?;
            if best.as_ref().is_none_or(|(_, worth)| measured.carries_as_much_as(worth)) {
                best = Some((chosen, measured));
            }
        }
        Ok(best.expect("there is a choice"))
    }

    /// The plan with the chosen paths: trees that no path takes are left out, the rest get VLANs, and switches their entries.
    fn with(&self, chosen: &ChosenPaths, measured: Measured) -> Result<Plan, PlanError> {
        let Self { topology, policy, plan, trees, former, threads, order } = self;
        let own = plan.trees.len();
        let used: BTreeSet<usize> = chosen.used().filter(|tree| *tree >= own).collect();
        let mut taken: BTreeSet<VlanId> = plan.trees.iter().map(|tree| tree.vlan).collect();
        let mut vlan: BTreeMap<usize, VlanId> = plan.trees.iter().map(|tree| tree.vlan).enumerate().collect();
        for &tree in &used {
            let (links, lane) = &trees[tree];
            let before = former.iter().find(|(former, of, vlan)| {
                former == links && of == lane && policy.vlans.contains(*vlan) && !taken.contains(vlan)
            });
            if let Some((.., before)) = before {
                taken.insert(*before);
                vlan.insert(tree, *before);
            }
        }
        let mut free = policy.vlans.iter().filter(|vlan| !taken.contains(vlan));
        for &tree in &used {
            vlan.entry(tree).or_insert_with(|| free.next().expect("trees are no more than there are VLANs"));
        }
        let mut all: Vec<(usize, VlanTree)> = (vlan.iter())
            .map(|(tree, vlan)| {
                let (links, lane) = &trees[*tree];
                let links = if *tree < own { links.clone() } else { chosen.pruned(topology, *tree, links) };
                (*tree, VlanTree { vlan: *vlan, lane: *lane, tree: links })
            })
            .collect();
        all.sort_by_key(|(_, tree)| tree.vlan);
        let position: BTreeMap<usize, usize> = all.iter().enumerate().map(|(at, (tree, _))| (*tree, at)).collect();
        let all: Vec<VlanTree> = all.into_iter().map(|(_, tree)| tree).collect();
        let mut fans = fans(topology, chosen, &position);
        fans.sort_by_key(|fan| fan.tree);
        let carrying = Carrying { trees: &all, assignment: &plan.assignment, further: &fans, standing: None };
        let devices = intents::intents(topology, policy, &carrying, *threads);
        check_static_entries(topology, &devices)?;
        let vlans_of = |source: HostId, destination: HostId| {
            let mut vlans: Vec<VlanId> = chosen.of(source, destination).map(|tree| vlan[&tree]).collect();
            if vlans.is_empty() {
                vlans.push(plan.assignment.unicast(source, destination));
            }
            vlans.sort_unstable();
            vlans
        };
        let paths = PathSets::new(topology.hosts().len(), measured.proof, vlans_of);
        let entries: Vec<usize> = devices.iter().map(|device| device.fdb_len(topology)).collect();
        let certificate = order.certificate();
        let lanes: BTreeSet<u8> = all.iter().map(|tree| tree.lane).collect();
        let summary = fabric::Summary {
            vlans: all.len(),
            lanes: lanes.len(),
            deadlock_free: certificate.is_some(),
            fdb_entries_max: entries.iter().copied().max().unwrap_or(0),
            fdb_entries_total: entries.iter().sum(),
            paths: Some(measured.summary),
            ..plan.summary.clone()
        };
        Ok(Plan { trees: all, devices, certificate, paths: Some(paths), summary, ..(*plan).clone() })
    }
}

/// What flows along further paths: a fan for each tree and each sender that uses it.
fn fans(topology: &Topology, chosen: &ChosenPaths, position: &BTreeMap<usize, usize>) -> Vec<OwnedFan> {
    let hosts = topology.hosts().len();
    let mut fans: BTreeMap<(usize, SwitchId, HostId), HostSet> = BTreeMap::new();
    for source in topology.host_ids() {
        let root = topology.switch_of(source);
        for destination in topology.host_ids().filter(|destination| *destination != source) {
            for tree in chosen.of(source, destination) {
                let peers = fans.entry((position[&tree], root, source)).or_insert_with(|| HostSet::empty(hosts));
                peers.insert(destination);
            }
        }
    }
    let fan = |((tree, root, source), peers): ((usize, SwitchId, HostId), HostSet)| OwnedFan {
        tree,
        root,
        direction: Direction::Outward,
        owners: vec![source],
        peers,
    };
    fans.into_iter().map(fan).collect()
}
