//! Draining: planning as if some links were unplugged, for a fabric in which they stay where they are.
//!
//! ```text
//!   whole cabling ─ without drained links ─▶ what is in service ─ planned ─▶ its plan ─ renumbered ─▶ a plan of the whole cabling
//! ```
//! A drained switch that has hosts, or is managed over its data ports, keeps its links to one neighbour, so that whatever tree
//! reaches it ends there. Ports of drained links stay up and configured, in no VLAN.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
};

use fabric::{
    Attachment, Bound, Certificate, ChannelId, CutOff, DeviceIntent, Drain, Failover, Failure, InService, Link, LinkId,
    PermutationProof, Plan, Policy, PortId, PortIntent, PortRole, SwitchId, SwitchOver, Topology, Traffic, Tree,
    VlanTree, graph::breadth_first,
};

use crate::{OrderRule, PlanError, Watch, again, attempt_whole, bound, demand::Demand, intents};

/// What carries no frames if these switches and links are drained: which links a drained switch keeps is chosen here, the most
/// capacity to one neighbour first, to one that is in service and reaches most hosts.
///
/// # Errors
/// [`PlanError::CutOff`] if hosts, or switches that are managed over data ports, could not be reached, with what to leave in
/// service.
pub fn drain(topology: &Topology, switches: &BTreeSet<SwitchId>, links: &BTreeSet<LinkId>) -> Result<Drain, PlanError> {
    let drain = expanded(topology, switches, links);
    let Err(cut) = InService::of(topology, &drain.links) else { return Ok(drain) };
    let way_out = fewer(topology, switches, links);
    Err(cut_off(topology, cut, way_out))
}

/// A switch or link that is to be drained.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Asked {
    Switch(SwitchId),
    Link(LinkId),
}

/// What to leave out so that nobody is cut off: any one of several, or else all of some.
fn fewer(topology: &Topology, switches: &BTreeSet<SwitchId>, links: &BTreeSet<LinkId>) -> String {
    let switches = switches.iter().copied().map(Asked::Switch);
    let asked: Vec<Asked> = switches.chain(links.iter().copied().map(Asked::Link)).collect();
    let works = |asked: &[Asked]| {
        let (mut switches, mut links) = (BTreeSet::new(), BTreeSet::new());
        for one in asked {
            match one {
                Asked::Switch(switch) => switches.insert(*switch),
                Asked::Link(link) => links.insert(*link),
            };
        }
        InService::of(topology, &expanded(topology, &switches, &links).links).is_ok()
    };
    let option = |one: &Asked| match one {
        Asked::Switch(switch) => format!("--drain {}", topology.switch(*switch).name),
        Asked::Link(link) => format!("--drain {}", topology.port_label(topology.link(*link).a)),
    };
    let enough = |one: &&Asked| {
        let others: Vec<Asked> = asked.iter().copied().filter(|other| other != *one).collect();
        works(&others)
    };
    let any: Vec<String> = asked.iter().filter(enough).map(option).collect();
    match &any[..] {
        [] => {}
        [one] => return format!("leave out {one}"),
        several => return format!("leave out one of {}", several.join(", ")),
    }
    let (mut kept, mut left_out) = (Vec::new(), Vec::new());
    for one in &asked {
        kept.push(*one);
        if !works(&kept) {
            kept.pop();
            left_out.push(option(one));
        }
    }
    format!("leave out {}", left_out.join(" and "))
}

/// All links that are drained if these switches and links are.
fn expanded(topology: &Topology, switches: &BTreeSet<SwitchId>, links: &BTreeSet<LinkId>) -> Drain {
    let main = reached_without(topology, switches, links);
    let kept: BTreeMap<SwitchId, Option<SwitchId>> = (switches.iter())
        .map(|&switch| {
            let needed = !topology.hosts_of(switch).is_empty() || topology.in_band().is_some();
            (switch, if needed { kept_neighbour(topology, switch, (switches, links), &main) } else { None })
        })
        .collect();
    let refuses = |switch: SwitchId, other: SwitchId| kept.get(&switch).is_some_and(|kept| *kept != Some(other));
    let drained = |link: &LinkId| {
        let [a, b] = ends(topology, *link);
        links.contains(link) || refuses(a, b) || refuses(b, a)
    };
    Drain { links: topology.link_ids().filter(drained).collect(), switches: switches.clone() }
}

/// The neighbour to which a drained switch keeps its links: one that is in service if there is any.
fn kept_neighbour(
    topology: &Topology,
    switch: SwitchId,
    (switches, links): (&BTreeSet<SwitchId>, &BTreeSet<LinkId>),
    main: &[bool],
) -> Option<SwitchId> {
    let mut rate_bps: BTreeMap<SwitchId, u64> = BTreeMap::new();
    for (channel, neighbour) in topology.neighbours(switch).filter(|(channel, _)| !links.contains(&channel.link())) {
        *rate_bps.entry(neighbour).or_default() += topology.link(channel.link()).rate_bps;
    }
    let capacity = |neighbour: SwitchId| -> u64 {
        let channels = topology.channels_from(neighbour).iter().filter(|channel| !links.contains(&channel.link()));
        channels.map(|channel| topology.link(channel.link()).rate_bps).sum()
    };
    let worth = |(neighbour, rate_bps): (SwitchId, u64)| {
        let in_service = main[neighbour.index()] && !switches.contains(&neighbour);
        (in_service, rate_bps, capacity(neighbour), std::cmp::Reverse(neighbour))
    };
    rate_bps.into_iter().max_by_key(|neighbour| worth(*neighbour)).map(|(neighbour, _)| neighbour)
}

/// `reached[switch]`: the part of the cabling with the most hosts if neither these switches nor these links are passed.
fn reached_without(topology: &Topology, switches: &BTreeSet<SwitchId>, links: &BTreeSet<LinkId>) -> Vec<bool> {
    let count = topology.switches().len();
    let (mut best, mut most) = (vec![false; count], None);
    let mut seen = vec![false; count];
    for start in topology.switch_ids().filter(|switch| !switches.contains(switch)) {
        if seen[start.index()] {
            continue;
        }
        let found = breadth_first(count, [start], |switch| {
            topology
                .neighbours(switch)
                .filter(|(channel, head)| !links.contains(&channel.link()) && !switches.contains(head))
        });
        let hosts: usize = found.order.iter().map(|switch| topology.hosts_of(*switch).len()).sum();
        found.order.iter().for_each(|switch| seen[switch.index()] = true);
        if most.is_none_or(|most| hosts > most) {
            most = Some(hosts);
            best = vec![false; count];
            found.order.iter().for_each(|switch| best[switch.index()] = true);
        }
    }
    best
}

fn ends(topology: &Topology, link: LinkId) -> [SwitchId; 2] {
    let Link { a, b, .. } = *topology.link(link);
    [a, b].map(|port| topology.port(port).switch)
}

fn cut_off(topology: &Topology, cut: CutOff, way_out: String) -> PlanError {
    PlanError::CutOff {
        hosts: cut.hosts.iter().map(|host| topology.host(*host).name.clone()).collect(),
        switches: cut.switches.iter().map(|switch| topology.switch(*switch).name.clone()).collect(),
        way_out,
    }
}

/// Plans a topology of which a part is drained.
pub(crate) fn plan(
    topology: &Topology,
    policy: &Policy,
    (previous, order): (Option<&Plan>, OrderRule),
    watch: &mut dyn Watch,
) -> Result<Plan, PlanError> {
    let mut stated = policy.clone();
    stated.vlans.reserved.extend(topology.in_band().map(|in_band| in_band.vlan));
    if let Some(same) = previous.and_then(|previous| again::unchanged(topology, &stated, previous, watch)) {
        return Ok(same);
    }
    let in_service =
        InService::of(topology, &policy.drain.links).map_err(|cut| cut_off(topology, cut, String::new()))?;
    let planes = policy.planes.in_service(&in_service);
    let asked = Policy { drain: Drain::default(), planes, ..policy.clone() };
    let plan = attempt_whole(&in_service.topology, &asked, (previous, order), watch)?;
    let (drain, planes) = (policy.drain.clone(), policy.planes.clone());
    let policy = Policy { drain, planes, ..plan.policy.clone() };
    Ok(of_whole(topology, policy, &in_service, plan))
}

/// The plan of what is in service as a plan of the whole cabling.
fn of_whole(topology: &Topology, policy: Policy, in_service: &InService, plan: Plan) -> Plan {
    let Plan { topology: part, engine, trees, assignment, addresses, devices, certificate, failover, paths, .. } = plan;
    let lengths = plan.bound.lengths;
    let mut summary = plan.summary;
    // Times are counted on the fastest link, which may be drained.
    let scale = topology.rate_max_bps() as f64 / part.rate_max_bps().max(1) as f64;
    if part.rate_max_bps() > 0 && part.rate_max_bps() != topology.rate_max_bps() {
        let bound = |traffic: Cow<'_, Traffic>| {
            let demand = Demand::new(&part, &traffic);
            // A single demand takes one path, whatever the fastest link is.
            (bound::proven(&part, &demand, &lengths) * scale).max(demand.single_max())
        };
        let demands = policy.demands(&part).expect("the part was planned by it");
        summary.load_bound = demands.into_iter().map(bound).fold(0.0, f64::max);
        summary.max_channel_time *= scale;
        summary.load_gap = if summary.load_bound > 0.0 { summary.max_channel_time / summary.load_bound } else { 1.0 };
    }
    (summary.switches, summary.links) = (topology.switches().len(), topology.links().len());
    let whole = |link: &LinkId| in_service.link[link.index()];
    let trees: Vec<VlanTree> = (trees.into_iter())
        .map(|VlanTree { vlan, lane, tree }| {
            let tree = Tree::new(topology, tree.links().iter().map(whole)).expect("renumbered links are as connected");
            VlanTree { vlan, lane, tree }
        })
        .collect();
    let per_channel = |numbers: &[u32]| {
        let mut all = vec![0; topology.channel_count()];
        for (channel, number) in part.channel_ids().zip(numbers) {
            let link = whole(&channel.link());
            let channel = if channel.is_forward() { ChannelId::forward(link) } else { ChannelId::backward(link) };
            all[channel.index()] = *number;
        }
        all
    };
    let numbering =
        |Certificate { rank }: Certificate| Certificate { rank: rank.iter().map(|rank| per_channel(rank)).collect() };
    let failover = failover.map(|Failover { switch_overs, numberings, summary: mut said }| {
        let drained = topology.links().len() - part.links().len();
        said.links_covered += drained;
        if let Some(switches) = &mut said.switches {
            switches.covered += topology.switches().len() - part.switches().len();
        }
        said.max_channel_time *= if part.rate_max_bps() > 0 { scale } else { 1.0 };
        if drained > 0 {
            // The failure of a drained link leaves all as it is.
            said.max_channel_time = said.max_channel_time.max(summary.max_channel_time);
        }
        let failed = |failure| match failure {
            Failure::Link(link) => Failure::Link(whole(&link)),
            Failure::Switch(switch) => Failure::Switch(in_service.switch[switch.index()]),
            Failure::Group(group) => Failure::Group(group),
        };
        let switch_overs =
            switch_overs.into_iter().map(|over| SwitchOver { failure: failed(over.failure), ..over }).collect();
        Failover { switch_overs, numberings: numberings.into_iter().map(numbering).collect(), summary: said }
    });
    let paths = paths.map(|mut paths| {
        let PermutationProof { lengths, worst_lengths, .. } = &mut paths.proof;
        lengths.iter_mut().chain([worst_lengths]).for_each(|lengths| *lengths = per_channel(lengths));
        paths
    });
    let devices = devices_of_whole(topology, &policy, in_service, (&trees, &assignment), devices);
    Plan {
        topology: topology.clone(),
        policy,
        engine,
        trees,
        assignment,
        addresses,
        devices,
        certificate: certificate.map(numbering),
        bound: Bound { lengths: per_channel(&lengths) },
        failover,
        paths,
        summary,
    }
}

/// The devices of what is in service with their own numbers, and beside them ports and switches that are drained: up, and in no
/// VLAN.
fn devices_of_whole(
    topology: &Topology,
    policy: &Policy,
    in_service: &InService,
    (trees, assignment): (&[VlanTree], &fabric::Assignment<fabric::VlanId>),
    devices: Vec<DeviceIntent>,
) -> Vec<DeviceIntent> {
    let mut all = intents::ports(topology, policy, trees, assignment);
    let whole = |port: PortId| in_service.port[port.index()];
    for device in devices {
        let DeviceIntent { switch, ports, mut fdb, mut foreign, .. } = device.clone();
        let switch = in_service.switch[switch.index()];
        fdb.iter_mut().for_each(|run| run.port = whole(run.port));
        foreign.iter_mut().for_each(|entry| entry.port = whole(entry.port));
        let drained = std::mem::take(&mut all[switch.index()].ports);
        let ports = ports.into_iter().zip(drained).map(|(port, drained)| {
            let is_drained = matches!(topology.port(drained.port).attachment, Attachment::Link(link)
                if policy.drain.links.contains(&link));
            if is_drained {
                return drained;
            }
            let role = match port.role {
                PortRole::Link(link) => PortRole::Link(in_service.link[link.index()]),
                other => other,
            };
            PortIntent { port: drained.port, role, ..port }
        });
        all[switch.index()] = DeviceIntent { switch, ports: ports.collect(), fdb, foreign, ..device };
    }
    all
}
