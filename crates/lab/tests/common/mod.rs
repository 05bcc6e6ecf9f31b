//! Plans by hand: small fabrics whose trees are written down directly, so that the lab is tried without a planner.
#![allow(dead_code, unreachable_pub, reason = "each test binary is a crate and uses the part that it needs")]

use std::{
    collections::BTreeMap,
    io::Write,
    net::IpAddr,
    process::{Command, Stdio},
    sync::atomic::{AtomicBool, Ordering},
};

use fabric::{
    Admin, Assignment, Bound, DEFAULT_RATE_BPS, DeviceIntent, EngineName, FdbRun, HostId, LinkId, Mac, Plan, Policy,
    PortIntent, PortRole, Summary, SwitchId, SwitchSpec, Topology, TopologyBuilder, Tree, VlanId, VlanSet, VlanTree,
};
use lab::{
    Lab,
    netns::within,
    tagger::{
        Spread,
        daemon::{self, Notice},
        device::Tagged,
        health::Settings,
        links::Links,
        paths::Paths,
    },
};

/// A topology of `switches`, cabled as `links` says, with `hosts[switch]` hosts each.
pub fn cabling(switches: usize, links: &[(usize, usize)], hosts: &[usize]) -> Topology {
    let mut builder = TopologyBuilder::new();
    let ids: Vec<SwitchId> = (0..switches)
        .map(|number| builder.add_switch(&format!("s{number}"), SwitchSpec::default()).expect("fresh"))
        .collect();
    let mut next = vec![0; switches];
    let mut port = |builder: &mut TopologyBuilder, switch: usize| {
        next[switch] += 1;
        builder.add_port(ids[switch], &format!("g{}", next[switch])).expect("any name is a port")
    };
    for &(a, b) in links {
        let (a, b) = (port(&mut builder, a), port(&mut builder, b));
        builder.add_link(a, b, DEFAULT_RATE_BPS).expect("free ports");
    }
    let mut number = 0;
    for (switch, &count) in hosts.iter().enumerate() {
        for _ in 0..count {
            number += 1;
            let port = port(&mut builder, switch);
            let mac = Mac::local(number);
            builder.add_host(&format!("n{number}"), mac, port, DEFAULT_RATE_BPS, None).expect("free port");
        }
    }
    builder.finish().expect("connected")
}

/// The plan in which `tree_of(host)` gives each host's tree; equal trees share a VLAN.
pub fn plan(topology: Topology, mut tree_of: impl FnMut(HostId) -> Tree) -> Plan {
    let by_host: Vec<Tree> = topology.host_ids().map(&mut tree_of).collect();
    let mut vlan_of: BTreeMap<&Tree, VlanId> = BTreeMap::new();
    for tree in &by_host {
        let next = VlanId::new(2 + vlan_of.len() as u16).expect("few trees");
        vlan_of.entry(tree).or_insert(next);
    }
    let mut trees: Vec<VlanTree> =
        vlan_of.iter().map(|(tree, vlan)| VlanTree { vlan: *vlan, lane: 0, tree: (*tree).clone() }).collect();
    trees.sort_by_key(|tree| tree.vlan);
    let pvid: Vec<VlanId> = by_host.iter().map(|tree| vlan_of[tree]).collect();
    let all: VlanSet = trees.iter().map(|tree| tree.vlan).collect();
    let devices = topology.switch_ids().map(|switch| device(&topology, switch, &trees, &pvid, &all)).collect();
    let policy = Policy::default();
    let addresses = (1..=topology.hosts().len() as u32)
        .map(|number| IpAddr::V4(policy.subnet.station(number).expect("a large subnet")))
        .collect();
    let summary = Summary {
        switches: topology.switches().len(),
        hosts: topology.hosts().len(),
        links: topology.links().len(),
        vlans: trees.len(),
        lanes: 1,
        avg_switches_per_path: 0.0,
        avg_hops: 0.0,
        max_switches_per_path: 0,
        max_channel_load: 0.0,
        max_channel_time: 0.0,
        load_bound: 0.0,
        load_gap: 1.0,
        deadlock_free: false,
        fdb_entries_max: 0,
        fdb_entries_total: 0,
        paths: None,
    };
    Plan {
        policy,
        engine: EngineName::Tree,
        assignment: Assignment::Source(pvid),
        addresses,
        devices,
        certificate: None,
        bound: Bound::default(),
        failover: None,
        paths: None,
        summary,
        trees,
        topology,
    }
}

/// A ring of switches with one host each; every host's tree is the ring less the link opposite to it.
pub fn ring(switches: usize) -> Plan {
    let links: Vec<(usize, usize)> = (0..switches).map(|switch| (switch, (switch + 1) % switches)).collect();
    let topology = cabling(switches, &links, &vec![1; switches]);
    let cut = |host: HostId| (host.index() + switches / 2) % switches;
    let without = |topology: &Topology, cut: usize| {
        Tree::new(topology, LinkIds(switches).filter(|link| link.index() != cut)).expect("a tree")
    };
    let cabling = topology.clone();
    plan(topology, |host| without(&cabling, cut(host)))
}

/// `side` × `side` switches with one host each, dimension order x before y; `wrap` closes rows and columns.
pub fn grid(side: usize, shape: Shape) -> Plan {
    let at = |x: usize, y: usize| y * side + x;
    let mut links = Vec::new();
    for y in 0..side {
        for x in 0..side {
            if x + 1 < side || shape == Shape::Torus {
                links.push((at(x, y), at((x + 1) % side, y)));
            }
            if y + 1 < side || shape == Shape::Torus {
                links.push((at(x, y), at(x, (y + 1) % side)));
            }
        }
    }
    let topology = cabling(side * side, &links, &vec![1; side * side]);
    let cabling = topology.clone();
    let link = |a: usize, b: usize| link_between(&cabling, a, b);
    // One step from `at` toward `to` along a path or ring; opposite nodes of a ring by alternate sides.
    let step = |at: usize, to: usize| match shape {
        Shape::Mesh if to > at => at + 1,
        Shape::Mesh => at - 1,
        Shape::Torus => {
            let ahead = (to + side - at) % side;
            let forward = if 2 * ahead == side { at < to } else { 2 * ahead < side };
            if forward { (at + 1) % side } else { (at + side - 1) % side }
        }
    };
    plan(topology, |host| {
        let (sx, sy) = (host.index() % side, host.index() / side);
        let mut links = Vec::new();
        for x in 0..side {
            for (mut here, to) in [(sx, x)] {
                while here != to {
                    let next = step(here, to);
                    links.push(link(at(here, sy), at(next, sy)));
                    here = next;
                }
            }
            for y in 0..side {
                let mut here = sy;
                while here != y {
                    let next = step(here, y);
                    links.push(link(at(x, here), at(x, next)));
                    here = next;
                }
            }
        }
        Tree::new(&cabling, links).expect("dimension order gives trees")
    })
}

/// Whether a grid's rows and columns are closed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    Mesh,
    Torus,
}

/// A grid's cables with a single tree for everybody: breadth first from the first switch.
pub fn grid_tree(side: usize, shape: Shape) -> Plan {
    let topology = grid(side, shape).topology;
    let mut seen = vec![false; topology.switches().len()];
    seen[0] = true;
    let (mut order, mut links, mut next) = (vec![SwitchId::new(0)], Vec::new(), 0);
    while let Some(&switch) = order.get(next) {
        next += 1;
        for &channel in topology.channels_from(switch) {
            let head = topology.head(channel);
            if !std::mem::replace(&mut seen[head.index()], true) {
                links.push(channel.link());
                order.push(head);
            }
        }
    }
    let tree = Tree::new(&topology, links).expect("breadth first gives a tree");
    plan(topology, |_| tree.clone())
}

/// `leaves` × `spines` with as many hosts a leaf as spines; the k-th host of a leaf uses spine k.
pub fn clos(leaves: usize, spines: usize) -> Plan {
    let links: Vec<(usize, usize)> =
        (0..leaves).flat_map(|leaf| (0..spines).map(move |spine| (leaf, leaves + spine))).collect();
    let hosts: Vec<usize> = (0..leaves + spines).map(|switch| if switch < leaves { spines } else { 0 }).collect();
    let topology = cabling(leaves + spines, &links, &hosts);
    let cabling = topology.clone();
    plan(topology, |host| {
        let spine = host.index() % spines;
        // The other spines hang from the first leaf, or the tree would not span.
        let stars = (0..leaves).map(|leaf| link_between(&cabling, leaf, leaves + spine));
        let rest = (0..spines).filter(|other| *other != spine).map(|other| link_between(&cabling, 0, leaves + other));
        Tree::new(&cabling, stars.chain(rest)).expect("a star with leaves")
    })
}

/// The fat tree (2,4,2) of [Otsuka] Fig. 6(a): 8 leaves with two hosts, 4 middle switches, 2 at the top.
pub fn fat_tree() -> Plan {
    let (middle, top) = (|group: usize, m: usize| 8 + 2 * group + m, |t: usize| 12 + t);
    let mut links = Vec::new();
    for leaf in 0..8 {
        links.extend((0..2).map(|m| (leaf, middle(leaf / 4, m))));
    }
    for group in 0..2 {
        links.extend((0..2).flat_map(|m| (0..2).map(move |t| (8 + 2 * group + m, 12 + t))));
    }
    let _ = top;
    let hosts: Vec<usize> = (0..14).map(|switch| if switch < 8 { 2 } else { 0 }).collect();
    let topology = cabling(14, &links, &hosts);
    let cabling = topology.clone();
    plan(topology, |host| {
        let (m, t) = (host.index() % 2, host.index() / 2 % 2);
        let mut links: Vec<LinkId> = (0..8).map(|leaf| link_between(&cabling, leaf, middle(leaf / 4, m))).collect();
        links.extend((0..2).map(|group| link_between(&cabling, middle(group, m), top(t))));
        Tree::new(&cabling, links).expect("a tree")
    })
}

/// Says why a test does not run, and whether it does not.
pub fn skipped(backend: lab::Backend) -> bool {
    if !nix::unistd::geteuid().is_root() {
        println!("skipped: needs root");
        return true;
    }
    if let Err(reason) = backend.probe() {
        println!("skipped: {backend}: {reason}");
        return true;
    }
    false
}

/// Whether a fabric is to be tried: all are, unless `LAB_SHAPES` names some.
pub fn wanted(word: &str) -> bool {
    std::env::var("LAB_SHAPES").map_or(true, |words| words.split(',').any(|wanted| wanted == word))
}

/// A number that the caller may set from outside.
pub fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// A lab that goes down with the test, also when the test fails.
pub struct Guard(pub lab::Lab);

impl Guard {
    pub fn up(plan: &Plan, options: &lab::LabOptions) -> Self {
        Self(lab::Lab::up(plan, options, &mut |_| {}).expect("the lab comes up"))
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        let name = self.0.layout().name.clone();
        if let Err(error) = lab::down(&name) {
            eprintln!("lab {name} stays behind: {error}");
        }
    }
}

/// A lab name that no other test process uses.
pub fn lab_name(word: &str) -> String {
    format!("t{}_{word}", std::process::id())
}

/// Runs the daemon of one host until `stop`.
pub fn watch(lab: &Lab, plan: &Plan, host: HostId, stop: &AtomicBool, tell: &mut (dyn FnMut(Notice) + Send)) {
    let work = || {
        let tagged = Tagged::open("eth0").expect("the lab attached it");
        let base = tagged.table().expect("readable");
        let places = base.destinations.values().any(|route| route.how() == Spread::Placed);
        let topology = &plan.topology;
        let hosts = topology
            .host_ids()
            .map(|host| (topology.host(host).mac, Some(topology.switch(topology.switch_of(host)).name.as_str())));
        let paths = Paths::new(tagged.mac(), hosts, &base.receive);
        // Eight hosts share the processors of one, and other tests run beside them.
        let settings = Settings { silence_ns: 20_000_000, ..Settings::default() };
        let prepared = daemon::prepare(&tagged).expect("root may");
        let links = places.then(|| Links::of(plan));
        daemon::run(&prepared, &base, &paths, settings, links, &|| stop.load(Ordering::SeqCst), tell)
            .expect("it watches");
    };
    within(&lab.layout().hosts[host.index()].namespace, work).expect("a namespace");
}

/// Ends the other threads of a scope when a test fails, too.
pub struct StopOnDrop<'a>(pub &'a AtomicBool);

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

struct LinkIds(usize);

impl LinkIds {
    fn filter(self, keep: impl Fn(LinkId) -> bool) -> impl Iterator<Item = LinkId> {
        LinkId::all(self.0).filter(move |link| keep(*link))
    }
}

fn link_between(topology: &Topology, a: usize, b: usize) -> LinkId {
    let joins = |link: LinkId| {
        let ends = topology.link(link);
        let (x, y) = (topology.port(ends.a).switch.index(), topology.port(ends.b).switch.index());
        (x, y) == (a, b) || (x, y) == (b, a)
    };
    LinkId::all(topology.links().len()).find(|link| joins(*link)).expect("neighbours")
}

fn device(topology: &Topology, switch: SwitchId, trees: &[VlanTree], pvid: &[VlanId], all: &VlanSet) -> DeviceIntent {
    let ports = (topology.port_ids(switch))
        .map(|port| {
            let (role, pvid, tagged, untagged) = match topology.port(port).attachment {
                fabric::Attachment::Nothing => (PortRole::Unused, None, VlanSet::new(), VlanSet::new()),
                fabric::Attachment::Member(_) => (PortRole::Member, None, VlanSet::new(), VlanSet::new()),
                fabric::Attachment::Host(host) => (
                    PortRole::Host(host),
                    Some(pvid[host.index()]),
                    VlanSet::new(),
                    covering(topology, switch, trees, all),
                ),
                fabric::Attachment::Link(link) => {
                    let tagged = trees.iter().filter(|tree| tree.tree.contains(link)).map(|tree| tree.vlan).collect();
                    (PortRole::Link(link), None, tagged, VlanSet::new())
                }
            };
            let lag = Some(topology.logical_port(port)).filter(|lag| *lag != port);
            PortIntent { role, admin: Admin::Up, pvid, tagged, untagged, lag, ..PortIntent::unused(port) }
        })
        .collect();
    let mut fdb = Vec::new();
    for tree in trees {
        let rooted = tree.tree.rooted_at(topology, switch);
        for host in topology.host_ids() {
            let home = topology.switch_of(host);
            let port = match rooted.path_to(topology, home).first() {
                Some(channel) => topology.tail_port(*channel),
                None if home == switch => topology.host(host).port,
                None => continue,
            };
            fdb.push(FdbRun { vlan: tree.vlan, first: host, last: host, port });
        }
    }
    DeviceIntent { ports, fdb, ..DeviceIntent::blank(switch) }
}

/// The VLANs whose trees reach a switch.
fn covering(topology: &Topology, switch: SwitchId, trees: &[VlanTree], all: &VlanSet) -> VlanSet {
    let reaches = |tree: &VlanTree| {
        tree.tree.links().is_empty()
            || tree.tree.links().iter().any(|link| {
                let ends = topology.link(*link);
                topology.port(ends.a).switch == switch || topology.port(ends.b).switch == switch
            })
    };
    trees.iter().filter(|tree| all.contains(tree.vlan) && reaches(tree)).map(|tree| tree.vlan).collect()
}

/// A ring with a LAG, and a host on another one.
pub const LAGS: &str = r#"switches:
  s0: {lags: {lag1: [p1, p2], lag2: [p5, p6]}}
  s1: {lags: {lag1: [p1, p2]}}
  s2: {}
links:
  - s0:lag1 -- s1:lag1
  - s1:p3 -- s2:p1
  - s2:p2 -- s0:p3
hosts:
  n1: {mac: "02:00:00:00:00:01", port: "s0:lag2"}
  n2: {mac: "02:00:00:00:00:02", port: "s1:p4"}
  n3: {mac: "02:00:00:00:00:03", port: "s2:p4"}
"#;

/// Runs a script in a namespace and returns what it prints.
pub fn shell(namespace: &str, script: &str) -> String {
    let run = || {
        let mut child = Command::new("sh")
            .args(["-eu"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("a shell");
        child.stdin.take().expect("piped").write_all(script.as_bytes()).expect("the shell reads");
        child.wait_with_output().expect("it ends")
    };
    let output = within(namespace, run).expect("a namespace");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{namespace}: {said}\n{script}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}
