//! Assembling: trees, choices and proofs become a plan, with the complete desired state of every switch.

use std::{collections::BTreeSet, net::IpAddr};

use fabric::{
    Assignment, Certificate, DeviceIntent, EngineName, Failover, FailoverSummary, HostId, PartCoverage, Plan, Policy,
    Proof, Relation, Resilience, Summary, Topology, VlanId, VlanSet, VlanTree,
};

use crate::{
    PlanError, bound,
    intents::{self, Carrying},
    measure::Measure,
    replan::Standing,
    resilience::{OwnedFan, Protection},
};

/// What a plan is made of before its devices are.
pub(crate) struct Parts {
    pub(crate) engine: EngineName,
    pub(crate) trees: Vec<VlanTree>,
    pub(crate) assignment: Assignment<VlanId>,
    pub(crate) addresses: Vec<IpAddr>,
    pub(crate) measure: Measure,
    pub(crate) lanes: usize,
    pub(crate) rank: Option<Vec<Vec<u32>>>,
    pub(crate) bound: bound::LoadBound,
    pub(crate) backup: Option<Backup>,
    pub(crate) threads: usize,
}

/// What a plan does when a link, a switch or a group fails, and the VLANs of its trees.
pub(crate) struct Backup {
    pub(crate) protection: Protection,
    /// `vlan[tree]`.
    pub(crate) vlan: Vec<VlanId>,
}

impl Backup {
    fn failover(
        self,
        topology: &Topology,
        resilience: Resilience,
        assignment: &Assignment<VlanId>,
        devices: &[DeviceIntent],
    ) -> Failover {
        let mut used = VlanSet::new();
        assignment.map(|vlan| used.insert(vlan));
        let is_extra = |vlan: VlanId| !used.contains(vlan);
        let Self { protection, vlan } = self;
        let switch_overs = protection.switch_overs(&vlan);
        let Protection { numberings, time_max, links_dividing, switches_dividing, groups_dividing, .. } = protection;
        let runs = devices.iter().flat_map(|device| &device.fdb).filter(|run| is_extra(run.vlan));
        let summary = FailoverSummary {
            links_covered: topology.links().len() - links_dividing,
            links_dividing,
            switches: resilience.protects_switches().then(|| PartCoverage {
                covered: topology.switches().len() - switches_dividing,
                dividing: switches_dividing,
            }),
            groups: resilience.protects_groups().then(|| PartCoverage {
                covered: topology.groups().len() - groups_dividing,
                dividing: groups_dividing,
            }),
            drained: switch_overs.iter().filter(|over| matches!(over.proof, Proof::Drained(_))).count(),
            max_channel_time: time_max,
            vlans_extra: vlan.iter().filter(|vlan| is_extra(**vlan)).count(),
            fdb_entries_extra: runs.map(|run| run.len(topology)).sum(),
        };
        let numberings = numberings.into_iter().map(|rank| Certificate { rank }).collect();
        Failover { switch_overs, numberings, summary }
    }
}

pub(crate) fn assemble(
    topology: &Topology,
    policy: &Policy,
    parts: Parts,
    standing: Option<Standing<'_>>,
) -> Result<Plan, PlanError> {
    let Parts { engine, trees, assignment, addresses, measure, lanes, rank, bound, backup, threads } = parts;
    let position = |vlan: VlanId| trees.partition_point(|tree| tree.vlan < vlan);
    let mut fans = backup.as_ref().map_or_else(Vec::new, |backup| {
        let at = |fan: OwnedFan| OwnedFan { tree: position(backup.vlan[fan.tree]), ..fan };
        backup.protection.fans().into_iter().map(at).collect()
    });
    fans.sort_by_key(|fan| fan.tree);
    let carrying = Carrying { trees: &trees, assignment: &assignment, further: &fans, standing: standing.as_ref() };
    let devices = intents::intents(topology, policy, &carrying, threads);
    let common = backup.as_ref().and_then(|backup| backup.protection.rank.clone());
    let certificate = common.or(rank).map(|rank| Certificate { rank });
    check_static_entries(topology, &devices)?;
    let entries: Vec<usize> = devices.iter().map(|device| device.fdb_len(topology)).collect();
    let failover = backup.map(|backup| backup.failover(topology, policy.resilience, &assignment, &devices));
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
        paths: None,
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
        paths: None,
        summary,
    })
}

/// Gives every host without an address the one that it had, or else the next free one of the subnet. A standby port has that of
/// its bond.
pub(crate) fn addresses(
    topology: &Topology,
    policy: &Policy,
    before: Option<(&Plan, &Relation)>,
) -> Result<Vec<IpAddr>, PlanError> {
    let had = |host: HostId| {
        let (previous, relation) = before.filter(|(previous, _)| previous.policy.subnet == policy.subnet)?;
        let twin = relation.host_from[topology.active_port(host).index()]?;
        previous.addresses.get(twin.index()).copied().filter(|_| previous.topology.host(twin).address.is_none())
    };
    let stated: BTreeSet<IpAddr> = topology.hosts().iter().filter_map(|host| host.address).collect();
    let kept: Vec<Option<IpAddr>> = (topology.host_ids())
        .map(|host| topology.host(host).address.or_else(|| had(host).filter(|address| !stated.contains(address))))
        .collect();
    let taken: BTreeSet<IpAddr> = kept.iter().flatten().copied().collect();
    let mut stations = (1..).map_while(|number| policy.subnet.station(number)).map(IpAddr::V4);
    let mut next = || stations.by_ref().find(|address| !taken.contains(address));
    let mut own = kept;
    let without = |(host, own): &(HostId, &mut Option<IpAddr>)| own.is_none() && !topology.host(*host).standby;
    for (_, own) in topology.host_ids().zip(&mut own).filter(without) {
        *own = Some(next().ok_or(PlanError::SubnetFull { subnet: policy.subnet })?);
    }
    let of_bond = |host| own[topology.active_port(host).index()].expect("every active port has one");
    Ok(topology.host_ids().map(of_bond).collect())
}

pub(crate) fn check_static_entries(topology: &Topology, devices: &[DeviceIntent]) -> Result<(), PlanError> {
    for (switch, device) in topology.switches().iter().zip(devices) {
        let (need, limit) = (device.fdb_room(topology), switch.model.static_entries_max);
        if need > limit {
            let (switch, model) = (switch.name.clone(), switch.model.name.clone());
            return Err(PlanError::TooManyStaticEntries { switch, model, need, limit, way_out: String::new() });
        }
    }
    Ok(())
}
