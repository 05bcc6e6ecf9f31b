//! How long `check` takes on large fabrics: `cargo bench -p verify`.
//!
//! Plans are made here, without a planner: breadth-first trees on tori, stars on the two-level Clos network of
//! ALiCEnext ([Eicker]). Each line says what was judged, how long it took, and the process's peak memory so far.

use std::time::Instant;

use fabric::{
    Admin, Assignment, Attachment, Bound, DeviceIntent, EngineName, FdbMode, FdbRun, FlowControl, HostId, LinkId, Mac,
    Plan, Policy, PortId, PortIntent, PortRole, Summary, SwitchId, SwitchSpec, Tagging, Topology, TopologyBuilder,
    Tree, VlanId, VlanSet, VlanTree,
};

fn main() {
    report("torus 16x16, minimal", &torus(&[16, 16]));
    report("ALiCEnext, full", &alicenext());
    report("torus 12x12x12, minimal", &torus(&[12, 12, 12]));
}

fn report(name: &str, plan: &Plan) {
    let before = peak_mib();
    let start = Instant::now();
    let report = verify::check(plan);
    let elapsed_ms = start.elapsed().as_secs_f64() * 1e3;
    let Summary { switches, hosts, vlans, fdb_entries_total, .. } = plan.summary;
    println!(
        "{name}: {switches} switches, {hosts} hosts, {vlans} VLANs, {fdb_entries_total} entries: {elapsed_ms:.0} ms, \
         peak {} MiB ({before} MiB before)",
        peak_mib()
    );
    assert!(report.is_deployable(), "{report}");
}

/// Peak resident memory of this process; 0 where the system does not say.
fn peak_mib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    peak.and_then(|line| line.trim().trim_end_matches("kB").trim().parse::<u64>().ok()).map_or(0, |kib| kib / 1024)
}

/// The VLAN of a tree: from 2 on, without the four that Cisco switches keep for themselves.
fn vlan(index: usize) -> VlanId {
    VlanId::new(if index < 1000 { 2 + index } else { 6 + index } as u16).unwrap()
}

/// A torus with a host and a breadth-first tree for each switch.
fn torus(sizes: &[usize]) -> Plan {
    let count: usize = sizes.iter().product();
    let mut links = Vec::new();
    for switch in 0..count {
        let mut stride = 1;
        for &size in sizes {
            let along = switch / stride % size;
            links.push((switch, switch - along * stride + (along + 1) % size * stride));
            stride *= size;
        }
    }
    let topology = topology(&vec![1; count], &links);
    let trees: Vec<Tree> = topology.switch_ids().map(|root| breadth_first(&topology, root)).collect();
    let choice: Vec<usize> = (0..count).collect();
    finish(topology, trees, &choice, FdbMode::Minimal)
}

/// 22 leaves with 24 hosts each under 24 spines: the star of spine j carries what the j-th host of every leaf sends.
fn alicenext() -> Plan {
    const LEAVES: usize = 22;
    const SPINES: usize = 24;
    let mut hosts = vec![24; LEAVES];
    hosts.resize(LEAVES + SPINES, 0);
    let links: Vec<(usize, usize)> =
        (0..LEAVES).flat_map(|leaf| (0..SPINES).map(move |spine| (leaf, LEAVES + spine))).collect();
    let topology = topology(&hosts, &links);
    let star = |spine: usize| (0..LEAVES).map(move |leaf| LinkId::new(leaf * SPINES + spine));
    let trees = (0..SPINES).map(|spine| Tree::new(&topology, star(spine)).unwrap()).collect();
    let choice: Vec<usize> = (0..topology.hosts().len()).map(|host| host % SPINES).collect();
    finish(topology, trees, &choice, FdbMode::Full)
}

fn topology(hosts: &[usize], links: &[(usize, usize)]) -> Topology {
    let spec = SwitchSpec { model: Some("linux-bridge".to_owned()), mgmt: None };
    let mut builder = TopologyBuilder::new();
    let switches: Vec<SwitchId> =
        (0..hosts.len()).map(|index| builder.add_switch(&format!("s{index}"), spec.clone()).unwrap()).collect();
    let mut used = vec![0; hosts.len()];
    let mut free = |builder: &mut TopologyBuilder, switch: usize| {
        used[switch] += 1;
        builder.add_port(switches[switch], &used[switch].to_string()).unwrap()
    };
    let mut number = 0;
    for (switch, count) in hosts.iter().enumerate() {
        for _ in 0..*count {
            let port = free(&mut builder, switch);
            number += 1;
            builder.add_host(&format!("h{number}"), Mac::local(number), port, 1_000_000_000, None).unwrap();
        }
    }
    for &(a, b) in links {
        let (a, b) = (free(&mut builder, a), free(&mut builder, b));
        builder.add_link(a, b, 1_000_000_000).unwrap();
    }
    builder.finish().unwrap()
}

fn breadth_first(topology: &Topology, root: SwitchId) -> Tree {
    let mut seen = vec![false; topology.switches().len()];
    seen[root.index()] = true;
    let mut order = vec![root];
    let mut links = Vec::new();
    let mut next = 0;
    while let Some(&at) = order.get(next) {
        next += 1;
        for &channel in topology.channels_from(at) {
            let head = topology.head(channel);
            if !std::mem::replace(&mut seen[head.index()], true) {
                links.push(channel.link());
                order.push(head);
            }
        }
    }
    Tree::new(topology, links).unwrap()
}

/// Completes a switch-tagged plan in which every path is a shortest one.
fn finish(topology: Topology, trees: Vec<Tree>, choice: &[usize], fdb: FdbMode) -> Plan {
    let policy = Policy { flow_control: FlowControl::None, fdb, ..Policy::default() };
    let mut devices = devices(&topology, &trees, choice);
    let (mut load, mut hops, mut longest) = (vec![0.0_f64; topology.channel_count()], 0, 0);
    for (index, tree) in trees.iter().enumerate() {
        let sources: Vec<HostId> = topology.host_ids().filter(|host| choice[host.index()] == index).collect();
        // Trees of several sources are full ones here, whose entries do not depend on who sends.
        let full: Option<Vec<_>> = (fdb == FdbMode::Full)
            .then(|| topology.switch_ids().map(|switch| tree.rooted_at(&topology, switch)).collect());
        let from: Vec<_> = sources.iter().map(|host| tree.rooted_at(&topology, topology.switch_of(*host))).collect();
        for to in topology.host_ids() {
            let mut entries: Vec<(SwitchId, PortId)> = vec![(topology.switch_of(to), topology.host(to).port)];
            for (_, rooted) in sources.iter().zip(&from).filter(|(source, _)| **source != to) {
                let path = rooted.path_to(&topology, topology.switch_of(to));
                path.iter().for_each(|channel| load[channel.index()] += 1.0);
                hops += path.len();
                longest = longest.max(path.len());
                if full.is_none() {
                    entries.extend(path.iter().map(|channel| (topology.tail(*channel), topology.tail_port(*channel))));
                }
            }
            if let Some(full) = &full {
                let inward = &full[topology.switch_of(to).index()].inward;
                let along = topology.switch_ids().filter_map(|at| Some((at, topology.head_port(inward[at.index()]?))));
                entries.extend(along);
            }
            for (switch, port) in entries {
                let fdb: &mut Vec<FdbRun> = &mut devices[switch.index()].fdb;
                match fdb.last_mut() {
                    Some(run) if run.vlan == vlan(index) && run.port == port && run.last.index() + 1 == to.index() => {
                        run.last = to;
                    }
                    _ => fdb.push(FdbRun { vlan: vlan(index), first: to, last: to, port }),
                }
            }
        }
    }
    let (hosts, channels) = (topology.hosts().len(), topology.channel_count());
    let max_channel_load = load.into_iter().fold(0.0, f64::max);
    let load_bound = hops as f64 / channels as f64;
    let entries: Vec<usize> = devices.iter().map(|device| device.fdb_len(&topology)).collect();
    Plan {
        addresses: (1..=hosts).map(|host| policy.subnet.station(host as u32).unwrap().into()).collect(),
        assignment: Assignment::Source(choice.iter().map(|index| vlan(*index)).collect()),
        policy: Policy { tagging: Tagging::Switch, ..policy },
        engine: EngineName::Updown,
        certificate: None,
        bound: Bound { lengths: vec![1; channels] },
        failover: None,
        paths: None,
        summary: Summary {
            switches: topology.switches().len(),
            hosts,
            links: topology.links().len(),
            vlans: trees.len(),
            lanes: 1,
            avg_switches_per_path: (hops + hosts * hosts) as f64 / (hosts * hosts) as f64,
            avg_hops: hops as f64 / (hosts * (hosts - 1)) as f64,
            max_switches_per_path: longest + 1,
            max_channel_load,
            max_channel_time: max_channel_load,
            load_bound,
            load_gap: max_channel_load / load_bound,
            deadlock_free: false,
            fdb_entries_max: entries.iter().copied().max().unwrap_or(0),
            fdb_entries_total: entries.iter().sum(),
            paths: None,
        },
        devices,
        trees: (trees.into_iter().enumerate())
            .map(|(index, tree)| VlanTree { vlan: vlan(index), lane: 0, tree })
            .collect(),
        topology,
    }
}

/// Port state for trees on VLANs from 2 on; entries are left for the caller.
fn devices(topology: &Topology, trees: &[Tree], choice: &[usize]) -> Vec<DeviceIntent> {
    let all: VlanSet = (0..trees.len()).map(vlan).collect();
    let mut tagged = vec![VlanSet::new(); topology.links().len()];
    for (index, tree) in trees.iter().enumerate() {
        tree.links().iter().for_each(|link| _ = tagged[link.index()].insert(vlan(index)));
    }
    let port = |port: PortId| {
        let blank = PortIntent { admin: Admin::Up, ..PortIntent::unused(port) };
        match topology.port(port).attachment {
            Attachment::Nothing | Attachment::Member(_) => PortIntent { admin: Admin::Down, ..blank },
            Attachment::Link(link) => {
                PortIntent { role: PortRole::Link(link), tagged: tagged[link.index()].clone(), ..blank }
            }
            Attachment::Host(host) => PortIntent {
                role: PortRole::Host(host),
                pvid: Some(vlan(choice[host.index()])),
                untagged: all.clone(),
                ..blank
            },
        }
    };
    let device = |switch: SwitchId| DeviceIntent {
        ports: topology.port_ids(switch).map(port).collect(),
        ..DeviceIntent::blank(switch)
    };
    topology.switch_ids().map(device).collect()
}
