//! Correct plans for small topologies, made without any planner: one breadth-first tree for every switch with hosts.
#![allow(dead_code, reason = "each test file uses its own part")]

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use fabric::{
    Admin, Assignment, Attachment, Bound, Certificate, ChannelId, Demand, DeviceIntent, EngineName, FdbMode, FdbRun,
    Flood, FloodSet, FlowControl, FlowControlMode, HostId, HostRun, Learning, LinkId, Mac, Plan, Policy, PortIntent,
    PortRole, StormLimit, Summary, SwitchId, SwitchSpec, Tagging, Topology, TopologyBuilder, Traffic, TrafficMatrix,
    Tree, VlanId, VlanSet, VlanTree,
};

/// What a hand-made plan is to be like.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wish {
    pub(crate) tagging: Tagging,
    pub(crate) flow_control: FlowControl,
    pub(crate) fdb: FdbMode,
    pub(crate) flood: Flood,
    pub(crate) storm_limit: Option<StormLimit>,
}

impl Wish {
    pub(crate) fn switch_tagged() -> Self {
        Self {
            tagging: Tagging::Switch,
            flow_control: FlowControl::Pause,
            fdb: FdbMode::Minimal,
            flood: Flood::Forward,
            storm_limit: None,
        }
    }

    pub(crate) fn tagged_by(tagging: Tagging) -> Self {
        Self { tagging, flow_control: FlowControl::None, ..Self::switch_tagged() }
    }
}

/// Switches `s0…`, each with `hosts[i]` hosts `h0…`, and links between them, all on the generic model.
pub(crate) fn topology(hosts: &[usize], links: &[(usize, usize)]) -> Topology {
    topology_of("generic", hosts, links)
}

/// The same on another model, whose ports may be any.
pub(crate) fn topology_of(model: &str, hosts: &[usize], links: &[(usize, usize)]) -> Topology {
    let links: Vec<(usize, usize, u64)> = links.iter().map(|&(a, b)| (a, b, 1_000_000_000)).collect();
    rated_topology(model, hosts, &links)
}

/// The same with a rate for each link.
pub(crate) fn rated_topology(model: &str, hosts: &[usize], links: &[(usize, usize, u64)]) -> Topology {
    let mut builder = TopologyBuilder::new();
    let switches: Vec<SwitchId> = (0..hosts.len())
        .map(|index| {
            let spec = SwitchSpec { model: Some(model.to_owned()), mgmt: None };
            builder.add_switch(&format!("s{index}"), spec).unwrap()
        })
        .collect();
    let mut used = vec![0; hosts.len()];
    let mut free = |builder: &mut TopologyBuilder, switch: usize| {
        used[switch] += 1;
        builder.add_port(switches[switch], &used[switch].to_string()).unwrap()
    };
    let mut number = 0;
    for (switch, count) in hosts.iter().enumerate() {
        for _ in 0..*count {
            let port = free(&mut builder, switch);
            builder.add_host(&format!("h{number}"), Mac::local(number + 1), port, 1_000_000_000, None).unwrap();
            number += 1;
        }
    }
    for &(a, b, rate_bps) in links {
        let (a, b) = (free(&mut builder, a), free(&mut builder, b));
        builder.add_link(a, b, rate_bps).unwrap();
    }
    for switch in 0..hosts.len() {
        free(&mut builder, switch);
    }
    builder.finish().unwrap()
}

/// Three leaves with two hosts each under two spines: shortest paths there cannot deadlock.
pub(crate) fn clos() -> Topology {
    topology(&[2, 2, 2, 0, 0], &[(0, 3), (0, 4), (1, 3), (1, 4), (2, 3), (2, 4)])
}

/// The same with links of 10 and 1 Gbit/s, and hosts that do not all send alike, some nothing.
pub(crate) fn uneven_clos() -> Plan {
    const G: u64 = 1_000_000_000;
    let links = [(0, 3, 10 * G), (0, 4, G), (1, 3, G), (1, 4, 10 * G), (2, 3, 10 * G), (2, 4, 10 * G)];
    let topology = rated_topology("generic", &[2, 2, 2, 0, 0], &links);
    let mut demands = Vec::new();
    for source in topology.host_ids() {
        for destination in topology.host_ids().filter(|host| *host != source) {
            let amount = ((source.index() * 7 + destination.index() * 3) % 5) as f64 * 0.75;
            demands.push(Demand { source, destination, amount });
        }
    }
    let matrix = TrafficMatrix::new(topology.hosts().len(), demands).unwrap();
    with_traffic(plan(&topology, Wish::switch_tagged()), Traffic::Matrix(matrix))
}

/// The plan with the same routes, for other traffic.
pub(crate) fn with_traffic(mut plan: Plan, traffic: Traffic) -> Plan {
    let routes = Routes::follow(&plan.topology, &plan.trees, &plan.assignment);
    let [load, time, bound] = routes.loads(&plan.topology, &traffic);
    plan.policy.traffic = traffic;
    plan.summary.max_channel_load = load;
    plan.summary.max_channel_time = time;
    plan.summary.load_bound = bound;
    plan.summary.load_gap = if time == 0.0 { 1.0 } else { time / bound };
    plan
}

/// A ring of five switches with a host each: shortest paths there wait for each other in a ring.
pub(crate) fn ring() -> Topology {
    topology(&[1; 5], &[(0, 1), (1, 2), (2, 3), (3, 4), (4, 0)])
}

/// A plan with one breadth-first tree for every switch that has hosts, VLANs from 2 on.
pub(crate) fn plan(topology: &Topology, wish: Wish) -> Plan {
    let roots: Vec<SwitchId> = topology.switch_ids().filter(|switch| !topology.hosts_of(*switch).is_empty()).collect();
    let trees: Vec<VlanTree> = roots
        .iter()
        .enumerate()
        .map(|(index, root)| VlanTree {
            vlan: vlan(2 + index),
            lane: match wish.flow_control {
                FlowControl::Pfc(classes) => (index % usize::from(classes)) as u8,
                FlowControl::None | FlowControl::Pause => 0,
            },
            tree: breadth_first(topology, *root, index),
        })
        .collect();
    let own = |host: HostId| trees[roots.binary_search(&topology.switch_of(host)).unwrap()].vlan;
    let choice: Vec<VlanId> = topology.host_ids().map(own).collect();
    let assignment = match wish.tagging {
        Tagging::Switch | Tagging::Source => Assignment::Source(choice),
        Tagging::Destination => Assignment::Destination { broadcast: choice.clone(), choice },
        Tagging::SourceDestination => {
            let priority = (0..choice.len()).map(|host| host as u32 * 7 % 5).collect();
            Assignment::Priority { priority, broadcast: choice.clone(), choice }
        }
        Tagging::Pair => Assignment::Pair {
            unicast: topology
                .host_ids()
                .map(|source| {
                    let pick = |to: HostId| trees[(source.index() * 3 + to.index() / 2) % trees.len()].vlan;
                    let run = |to| HostRun { first: to, last: to, choice: pick(to) };
                    Arc::new(topology.host_ids().map(run).collect())
                })
                .collect(),
            broadcast: choice,
        },
    };
    let policy = Policy {
        tagging: wish.tagging,
        flow_control: wish.flow_control,
        fdb: wish.fdb,
        flood: wish.flood,
        storm_limit: wish.storm_limit,
        ..Policy::default()
    };
    let routes = Routes::follow(topology, &trees, &assignment);
    let devices = devices(topology, wish, &trees, &routes);
    let addresses =
        topology.host_ids().map(|host| policy.subnet.station(host.index() as u32 + 1).unwrap().into()).collect();
    let certificate = routes.certificate(topology, &trees);
    let summary = summary(topology, &trees, &routes, &devices, certificate.is_some());
    Plan {
        policy,
        engine: EngineName::Updown,
        assignment,
        addresses,
        devices,
        certificate,
        bound: Bound { lengths: vec![1; topology.channel_count()] },
        failover: None,
        paths: None,
        summary,
        trees,
        topology: topology.clone(),
    }
}

pub(crate) fn vlan(id: usize) -> VlanId {
    VlanId::new(id as u16).unwrap()
}

/// Turns the order of each switch's channels with `turn`, so that trees differ in more than their roots.
fn breadth_first(topology: &Topology, root: SwitchId, turn: usize) -> Tree {
    let mut order = vec![root];
    let mut seen = BTreeSet::from([root]);
    let mut links = Vec::new();
    let mut next = 0;
    while let Some(&at) = order.get(next) {
        next += 1;
        let channels = topology.channels_from(at);
        for index in 0..channels.len() {
            let channel = channels[(index + turn) % channels.len()];
            if seen.insert(topology.head(channel)) {
                links.push(channel.link());
                order.push(topology.head(channel));
            }
        }
    }
    Tree::new(topology, links).unwrap()
}

/// Every pair's VLAN and channels.
struct Routes {
    pairs: Vec<(HostId, HostId, VlanId, Vec<ChannelId>)>,
}

impl Routes {
    fn follow(topology: &Topology, trees: &[VlanTree], assignment: &Assignment<VlanId>) -> Self {
        let mut pairs = Vec::new();
        for source in topology.host_ids() {
            for to in topology.host_ids().filter(|to| *to != source) {
                let vlan = assignment.unicast(source, to);
                let tree = &trees[trees.iter().position(|tree| tree.vlan == vlan).unwrap()].tree;
                let path =
                    tree.rooted_at(topology, topology.switch_of(source)).path_to(topology, topology.switch_of(to));
                pairs.push((source, to, vlan, path));
            }
        }
        Self { pairs }
    }

    /// The most demand on a channel, the longest time of one, and what uniform lengths prove or a single pair needs.
    fn loads(&self, topology: &Topology, traffic: &Traffic) -> [f64; 3] {
        let mut load = vec![0.0; topology.channel_count()];
        let (mut covered, mut largest): (f64, f64) = (0.0, 0.0);
        let links: Vec<LinkId> = (0..topology.links().len()).map(LinkId::new).collect();
        for (source, to, _, path) in &self.pairs {
            let demand = traffic.demand(*source, *to);
            path.iter().for_each(|channel| load[channel.index()] += demand);
            let hops = distances(topology, &links, topology.switch_of(*source))[topology.switch_of(*to).index()];
            covered += demand * hops as f64;
            largest = if hops > 0 { largest.max(demand) } else { largest };
        }
        let fastest = topology.links().iter().map(|link| link.rate_bps).max().unwrap_or(1) as f64;
        let slowness = |channel: ChannelId| fastest / topology.link(channel.link()).rate_bps as f64;
        let capacity: f64 = topology.channel_ids().map(|channel| 1.0 / slowness(channel)).sum();
        let time = topology.channel_ids().map(|channel| load[channel.index()] * slowness(channel)).fold(0.0, f64::max);
        let proven = if capacity == 0.0 { 0.0 } else { covered / capacity };
        [load.into_iter().fold(0.0, f64::max), time, proven.max(largest)]
    }

    /// Numbers the channels of each lane by taking away, again and again, those that nothing leads to.
    fn certificate(&self, topology: &Topology, trees: &[VlanTree]) -> Option<Certificate> {
        let lanes = trees.iter().map(|tree| tree.lane).max().map_or(0, |lane| usize::from(lane) + 1);
        let mut rank = Vec::new();
        for lane in 0..lanes {
            let in_lane = |vlan: VlanId| trees.iter().any(|tree| tree.vlan == vlan && usize::from(tree.lane) == lane);
            let mut follows: BTreeSet<(ChannelId, ChannelId)> = BTreeSet::new();
            for (_, _, _, path) in self.pairs.iter().filter(|pair| in_lane(pair.2)) {
                follows.extend(path.windows(2).map(|pair| (pair[0], pair[1])));
            }
            let mut numbers: BTreeMap<ChannelId, u32> = BTreeMap::new();
            while numbers.len() < topology.channel_count() {
                let free = topology
                    .channel_ids()
                    .find(|to| !numbers.contains_key(to) && !follows.iter().any(|(_, later)| later == to))?;
                numbers.insert(free, numbers.len() as u32);
                follows.retain(|(before, _)| *before != free);
            }
            rank.push(numbers.into_values().collect());
        }
        Some(Certificate { rank })
    }
}

fn devices(topology: &Topology, wish: Wish, trees: &[VlanTree], routes: &Routes) -> Vec<DeviceIntent> {
    let all: VlanSet = trees.iter().map(|tree| tree.vlan).collect();
    let mut entries: BTreeMap<(SwitchId, VlanId, HostId), fabric::PortId> = BTreeMap::new();
    for (_, to, vlan, path) in &routes.pairs {
        for &channel in path {
            entries.insert((topology.tail(channel), *vlan, *to), topology.tail_port(channel));
        }
        entries.insert((topology.switch_of(*to), *vlan, *to), topology.host(*to).port);
    }
    if wish.fdb == FdbMode::Full {
        for tree in trees {
            for to in topology.host_ids() {
                let rooted = tree.tree.rooted_at(topology, topology.switch_of(to));
                for switch in topology.switch_ids() {
                    let port = rooted.inward[switch.index()].map_or(topology.host(to).port, |c| topology.head_port(c));
                    entries.insert((switch, tree.vlan, to), port);
                }
            }
        }
    }
    if wish.fdb == FdbMode::Learned {
        entries.clear();
    }
    let learning = if wish.fdb == FdbMode::Learned { Learning::On } else { Learning::Off };
    let mut devices: Vec<DeviceIntent> = topology
        .switch_ids()
        .map(|switch| {
            let ports = topology.port_ids(switch).map(|port| port_intent(topology, wish, trees, &all, routes, port));
            let mut device = DeviceIntent { ports: ports.collect(), learning, ..DeviceIntent::blank(switch) };
            if let FlowControl::Pfc(lanes) = wish.flow_control {
                let mine = device.vlans();
                let of = |lane| trees.iter().filter(move |tree| tree.lane == lane).map(|tree| tree.vlan);
                device.classes =
                    (0..lanes).map(|lane| of(lane).filter(|vlan| mine.contains(*vlan)).collect()).collect();
            }
            device
        })
        .collect();
    for ((switch, vlan, host), port) in entries {
        let fdb = &mut devices[switch.index()].fdb;
        match fdb.last_mut() {
            Some(run) if run.vlan == vlan && run.port == port && run.last.index() + 1 == host.index() => {
                run.last = host
            }
            _ => fdb.push(FdbRun { vlan, first: host, last: host, port }),
        }
    }
    devices
}

fn port_intent(
    topology: &Topology,
    wish: Wish,
    trees: &[VlanTree],
    all: &VlanSet,
    routes: &Routes,
    port: fabric::PortId,
) -> PortIntent {
    let flow_control = match wish.flow_control {
        FlowControl::None => FlowControlMode::Off,
        FlowControl::Pause => FlowControlMode::Pause,
        FlowControl::Pfc(lanes) => FlowControlMode::Pfc { lanes },
    };
    let blocked = match topology.port(port).attachment {
        Attachment::Host(_) => wish.flood.needed(),
        Attachment::Member(_) => FloodSet::NONE,
        Attachment::Nothing | Attachment::Link(_) => wish.flood.blocked(),
    };
    let blank = PortIntent { admin: Admin::Up, flow_control, blocked, ..PortIntent::unused(port) };
    let pvid = |host| routes.pairs.iter().find(|pair| pair.0 == host).map(|pair| pair.2).or_else(|| all.iter().next());
    match topology.port(port).attachment {
        Attachment::Nothing => PortIntent::unused(port),
        Attachment::Member(lag) => PortIntent { role: PortRole::Member, lag: Some(lag), ..blank },
        Attachment::Link(link) => PortIntent {
            role: PortRole::Link(link),
            tagged: trees.iter().filter(|tree| tree.tree.contains(link)).map(|tree| tree.vlan).collect(),
            ..blank
        },
        Attachment::Host(host) if wish.tagging == Tagging::Switch => PortIntent {
            role: PortRole::Host(host),
            pvid: pvid(host),
            untagged_class: match wish.flow_control {
                FlowControl::Pfc(_) => {
                    trees.iter().find(|tree| Some(tree.vlan) == pvid(host)).map_or(0, |tree| tree.lane)
                }
                FlowControl::None | FlowControl::Pause => 0,
            },
            untagged: all.clone(),
            storm_limit: wish.storm_limit,
            ..blank
        },
        Attachment::Host(host) => {
            PortIntent { role: PortRole::Host(host), tagged: all.clone(), storm_limit: wish.storm_limit, ..blank }
        }
    }
}

fn summary(
    topology: &Topology,
    trees: &[VlanTree],
    routes: &Routes,
    devices: &[DeviceIntent],
    deadlock_free: bool,
) -> Summary {
    let hosts = topology.hosts().len();
    let [max_channel_load, max_channel_time, load_bound] = routes.loads(topology, &Traffic::AllToAll);
    let hops: usize = routes.pairs.iter().map(|pair| pair.3.len()).sum();
    let longest = routes.pairs.iter().map(|pair| pair.3.len()).max().unwrap_or(0);
    let entries: Vec<usize> = devices.iter().map(|device| device.fdb_len(topology)).collect();
    let lanes: BTreeSet<u8> = trees.iter().map(|tree| tree.lane).collect();
    Summary {
        switches: topology.switches().len(),
        hosts,
        links: topology.links().len(),
        vlans: trees.len(),
        lanes: lanes.len(),
        avg_switches_per_path: (hops + hosts * hosts) as f64 / (hosts * hosts) as f64,
        avg_hops: if hosts > 1 { hops as f64 / (hosts * (hosts - 1)) as f64 } else { 0.0 },
        max_switches_per_path: longest + 1,
        max_channel_load,
        max_channel_time,
        load_bound,
        load_gap: if max_channel_time == 0.0 { 1.0 } else { max_channel_time / load_bound },
        deadlock_free,
        fdb_entries_max: entries.iter().copied().max().unwrap_or(0),
        fdb_entries_total: entries.iter().sum(),
        paths: None,
    }
}

/// Hops from one switch to every other.
fn distances(topology: &Topology, links: &[LinkId], source: SwitchId) -> Vec<usize> {
    let mut distance = vec![usize::MAX; topology.switches().len()];
    distance[source.index()] = 0;
    for round in 0..topology.switches().len() {
        for link in links {
            let channel = ChannelId::forward(*link);
            let (a, b) = (topology.tail(channel).index(), topology.head(channel).index());
            if distance[a] == round && distance[b] > round {
                distance[b] = round + 1;
            }
            if distance[b] == round && distance[a] > round {
                distance[a] = round + 1;
            }
        }
    }
    distance
}
