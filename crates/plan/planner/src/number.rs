//! Numbers: which VLAN id each tree gets, within what policy and switches allow.

use std::collections::{BTreeMap, BTreeSet};

use fabric::{Assignment, EngineName, LinkId, Plan, Policy, Topology, Tree, VlanId, VlanTree};

use crate::{PlanError, VlanLimit, routing::Routing};

/// Trees by ascending VLAN, who uses which, and the VLANs in the order of the routing's trees.
pub(crate) type Numbered = (Vec<VlanTree>, Assignment<VlanId>, Vec<VlanId>);

/// Checks that the trees of a routing fit the policy's range and cap and the VLAN table of every switch.
///
/// # Errors
/// [`PlanError::TooManyVlans`], naming what binds.
pub(crate) fn check_limits(
    topology: &Topology,
    policy: &Policy,
    engine: EngineName,
    routing: &Routing,
) -> Result<(), PlanError> {
    let need = routing.trees.len();
    let refuse = |need, limit| Err(PlanError::TooManyVlans { engine, need, limit, way_out: String::new() });
    if let Some(limit) = policy.vlans_max.filter(|&limit| need > limit) {
        return refuse(need, VlanLimit::Policy(limit));
    }
    let pool = policy.vlans.iter().count();
    if need > pool {
        return refuse(need, VlanLimit::Pool(pool));
    }
    let own = management_vlans(topology);
    if topology.switches().iter().all(|switch| switch.model.vlans_max >= need + own) {
        return Ok(());
    }
    let mut on_switch = vec![0; topology.switches().len()];
    let mut last_tree = vec![usize::MAX; topology.switches().len()];
    for (number, tree) in routing.trees.iter().enumerate() {
        for end in tree.links().iter().flat_map(|&link| ends(topology, link)) {
            if std::mem::replace(&mut last_tree[end], number) != number {
                on_switch[end] += 1;
            }
        }
    }
    for (switch, &need) in topology.switches().iter().zip(&on_switch) {
        let limit = switch.model.vlans_max.saturating_sub(own);
        if need > limit {
            let (switch, model) = (switch.name.clone(), switch.model.name.clone());
            return refuse(need, VlanLimit::Model { switch, model, limit });
        }
    }
    Ok(())
}

/// Checks that there is a VLAN for at least one tree, which every plan needs.
///
/// # Errors
/// [`PlanError::TooManyVlans`], naming what leaves none.
pub(crate) fn check_any(topology: &Topology, policy: &Policy) -> Result<(), PlanError> {
    let pool = policy.vlans.iter().count();
    let own = management_vlans(topology);
    let limit = match topology.switches().iter().find(|switch| switch.model.vlans_max <= own) {
        _ if policy.vlans_max == Some(0) => VlanLimit::Policy(0),
        _ if pool == 0 => VlanLimit::Pool(0),
        Some(switch) => VlanLimit::Model { switch: switch.name.clone(), model: switch.model.name.clone(), limit: 0 },
        None => return Ok(()),
    };
    Err(PlanError::TooManyVlans { engine: EngineName::Tree, need: 1, limit, way_out: String::new() })
}

/// How many trees fit everywhere: the policy's cap and range, and the smallest VLAN table of any switch.
pub(crate) fn capacity(topology: &Topology, policy: &Policy) -> usize {
    let own = management_vlans(topology);
    let pool = policy.vlans.iter().count();
    let tables = topology.switches().iter().map(|switch| pool.min(switch.model.vlans_max.saturating_sub(own)));
    tables.min().unwrap_or(usize::MAX).min(policy.vlans_max.unwrap_or(usize::MAX))
}

/// VLANs that switches hold beside those of data: that of management, if it has one.
pub(crate) fn management_vlans(topology: &Topology) -> usize {
    usize::from(topology.in_band().is_some())
}

/// The refusal of a plan that cannot be protected against failures within the limits: what binds.
pub(crate) fn too_many_for_resilience(
    topology: &Topology,
    policy: &Policy,
    engine: EngineName,
    own: usize,
    extras: usize,
) -> PlanError {
    let need = own + extras;
    let pool = policy.vlans.iter().count();
    let limit = match policy.vlans_max.filter(|&limit| limit < need) {
        Some(limit) => VlanLimit::Policy(limit),
        None if pool < need => VlanLimit::Pool(pool),
        None => {
            let smallest = topology.switches().iter().min_by_key(|switch| switch.model.vlans_available(&policy.vlans));
            let switch = smallest.expect("a topology with hosts has a switch");
            let limit = switch.model.vlans_available(&policy.vlans).saturating_sub(management_vlans(topology));
            VlanLimit::Model { switch: switch.name.clone(), model: switch.model.name.clone(), limit }
        }
    };
    PlanError::TooManyVlansForResilience { engine, own, need, limit, way_out: String::new() }
}

/// Gives each tree a VLAN id: its old one if the previous plan had the same tree, else the lowest free one, in the
/// order of first use. `lane[tree]` goes along.
///
/// # Errors
/// [`PlanError::TooManyVlans`] if the range is too small.
pub(crate) fn number(
    topology: &Topology,
    policy: &Policy,
    routing: Routing,
    lane: &[u8],
    previous: Option<&Plan>,
) -> Result<Numbered, PlanError> {
    let mut free: Vec<VlanId> = policy.vlans.iter().collect();
    let mut old: BTreeMap<Vec<String>, VlanId> = BTreeMap::new();
    if let Some(previous) = previous {
        for tree in previous.trees.iter().filter(|tree| policy.vlans.contains(tree.vlan)) {
            old.insert(signature(&previous.topology, &tree.tree), tree.vlan);
        }
    }
    let kept: Vec<Option<VlanId>> = (routing.trees.iter())
        .map(|tree| if old.is_empty() { None } else { old.remove(&signature(topology, tree)) })
        .collect();
    free.retain(|vlan| !kept.contains(&Some(*vlan)));
    prefer_fresh(&mut free, previous);
    let mut free = free.into_iter();
    let vlans: Vec<VlanId> = kept.iter().map_while(|kept| kept.or_else(|| free.next())).collect();
    if vlans.len() < routing.trees.len() {
        let limit = VlanLimit::Pool(vlans.len());
        let (engine, need) = (policy.engine, routing.trees.len());
        return Err(PlanError::TooManyVlans { engine, need, limit, way_out: String::new() });
    }
    Ok(named(routing, lane, vlans))
}

/// Gives each tree the VLAN id that it is to keep, or else the lowest free one; none if the range is too small.
pub(crate) fn number_with(
    policy: &Policy,
    routing: Routing,
    lane: &[u8],
    kept: Vec<Option<VlanId>>,
    previous: &Plan,
) -> Option<Numbered> {
    let taken: BTreeSet<VlanId> = kept.iter().flatten().copied().collect();
    let mut free: Vec<VlanId> = policy.vlans.iter().filter(|vlan| !taken.contains(vlan)).collect();
    prefer_fresh(&mut free, Some(previous));
    let mut free = free.into_iter();
    let vlans: Option<Vec<VlanId>> = kept.into_iter().map(|kept| kept.or_else(|| free.next())).collect();
    Some(named(routing, lane, vlans?))
}

/// Puts ids that the previous plan did not use first: a VLAN that is to be another tree can then be filled while the
/// old one still carries frames.
fn prefer_fresh(free: &mut [VlanId], previous: Option<&Plan>) {
    if let Some(previous) = previous {
        free.sort_by_key(|vlan| previous.tree(*vlan).is_some());
    }
}

fn named(routing: Routing, lane: &[u8], vlans: Vec<VlanId>) -> Numbered {
    let assignment = routing.assignment.map(|tree| vlans[tree]);
    let mut trees: Vec<VlanTree> = (routing.trees.into_iter().zip(&vlans).zip(lane))
        .map(|((tree, &vlan), &lane)| VlanTree { vlan, lane, tree })
        .collect();
    trees.sort_unstable_by_key(|tree| tree.vlan);
    (trees, assignment, vlans)
}

/// What makes a tree the same in two topologies: the cables as people write them, in either direction.
fn signature(topology: &Topology, tree: &Tree) -> Vec<String> {
    let mut labels: Vec<String> = (tree.links().iter())
        .map(|&link| {
            let fabric::Link { a, b, .. } = *topology.link(link);
            let (a, b) = (topology.port_label(a), topology.port_label(b));
            if a <= b { format!("{a} {b}") } else { format!("{b} {a}") }
        })
        .collect();
    labels.sort_unstable();
    labels
}

fn ends(topology: &Topology, link: LinkId) -> [usize; 2] {
    let fabric::Link { a, b, .. } = *topology.link(link);
    [a, b].map(|port| topology.port(port).switch.index())
}
