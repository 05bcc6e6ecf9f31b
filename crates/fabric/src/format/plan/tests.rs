//! Round trips of plausible plans, damaged files, and the size of a large plan.

use std::{
    collections::BTreeSet,
    net::{IpAddr, Ipv4Addr},
    sync::Arc,
};

use super::*;
use crate::{
    Admin, Assignment, Basis, Bound, Certificate, Demand, DeviceIntent, Drain, EngineName, Failover, FailoverSummary,
    Failure, FdbEntry, FdbRun, Flood, FloodSet, FlowControl, FlowControlMode, HostId, HostRun, IngressFilter, LinkId,
    Lldp, Mac, Model, Models, PATHS_MAX, PairRun, PartCoverage, PathSets, PathSummary, PermutationProof, Plan, Planes,
    Policy, PortIntent, PortNames, PortRole, Proof, Resilience, SpanningTree, StormLimit, Summary, SwitchId,
    SwitchOver, Tagging, Topology, TopologyBuilder, Traffic, TrafficMatrix, Tree, VlanId, VlanSet, VlanTree,
    generate::{Kind, Options, generate},
    permutations,
    rng::Rng,
};

/// Those that need no edge port.
const FLOODS: [Flood; 3] = [Flood::Forward, Flood::Drop, Flood::DropAll];

/// Switch-overs that mean nothing, but are written and read like others.
fn failover(topology: &Topology, vlans: &[VlanId], rng: &mut Rng) -> Failover {
    let hosts = topology.hosts().len();
    let mut run = |from: usize| {
        let from = from.min(hosts - 1);
        let last = from + rng.below(hosts - from);
        HostRun { first: HostId::new(from), last: HostId::new(last), choice: vlans[rng.below(vlans.len())] }
    };
    let proofs = [Proof::Unneeded, Proof::Certificate, Proof::Numbering(0), Proof::Drained(1)];
    let links = topology.link_ids().map(Failure::Link).skip(1).step_by(3);
    let switches = topology.switch_ids().map(Failure::Switch).step_by(2);
    let groups = topology.group_ids().map(Failure::Group).skip(1);
    let switch_overs = (links.chain(switches).chain(groups).zip(proofs.iter().cycle()).enumerate())
        .map(|(at, (failure, &proof))| SwitchOver {
            failure,
            hosts: vec![run(0)],
            pairs: (0..at % 3).map(|source| PairRun { source: HostId::new(source), run: run(1) }).collect(),
            proof,
        })
        .collect();
    let mut numbering =
        || Certificate { rank: vec![(0..topology.channel_count()).map(|_| rng.below(100) as u32).collect()] };
    let numberings = vec![numbering(), numbering()];
    let summary = FailoverSummary {
        links_covered: 7,
        links_dividing: 1,
        switches: Some(PartCoverage { covered: 5, dividing: 2 }),
        groups: (!topology.groups().is_empty()).then_some(PartCoverage { covered: 3, dividing: 1 }),
        drained: 2,
        max_channel_time: 1e6 * rng.unit_f64(),
        vlans_extra: 3,
        fdb_entries_extra: 400,
    };
    Failover { switch_overs, numberings, summary }
}

fn topology(kind: &str, sizes: &str, options: &Options) -> Topology {
    let kind = Kind::parse(kind, &[sizes.to_owned()]).expect("a known kind");
    generate(&kind, options).expect("a small network")
}

/// A breadth-first tree from each of the first `count` switches, a VLAN each, and `full` entries.
fn sample(topology: Topology, count: usize, tagging: Tagging, seed: u64) -> Plan {
    let mut rng = Rng::new(seed);
    let vlans: Vec<VlanId> = (0..count).map(|index| vlan(2 + index)).collect();
    let all = |_: &mut Rng| vlans[0];
    let any = |rng: &mut Rng| vlans[rng.below(vlans.len())];
    let trees: Vec<VlanTree> = (topology.switch_ids().take(count).zip(&vlans))
        .map(|(root, &vlan)| VlanTree { vlan, lane: (root.index() % 2) as u8, tree: bfs_tree(&topology, root) })
        .collect();
    let hosts = topology.hosts().len();
    let mut others = Rng::new(!seed);
    let further_traffic = (0..others.below(3)).map(|_| some_matrix(hosts, &mut others)).collect();
    let one_each = |rng: &mut Rng, choose: &dyn Fn(&mut Rng) -> VlanId| (0..hosts).map(|_| choose(rng)).collect();
    let assignment = match tagging {
        Tagging::Switch | Tagging::Source => Assignment::Source(one_each(&mut rng, &any)),
        Tagging::Destination => {
            Assignment::Destination { choice: one_each(&mut rng, &any), broadcast: one_each(&mut rng, &all) }
        }
        Tagging::SourceDestination => Assignment::Priority {
            choice: one_each(&mut rng, &any),
            priority: (0..hosts).map(|_| rng.below(hosts) as u32).collect(),
            broadcast: one_each(&mut rng, &all),
        },
        Tagging::Pair => Assignment::Pair {
            unicast: (0..hosts).map(|_| Arc::new(pair_runs(hosts, &vlans, &mut rng))).collect(),
            broadcast: one_each(&mut rng, &all),
        },
    };
    let devices = topology.switch_ids().map(|switch| device(&topology, switch, &trees)).collect::<Vec<_>>();
    let channels = topology.channel_count();
    let addresses = (1..=hosts as u32).map(|number| IpAddr::V4(Ipv4Addr::from(0x0a00_0000 + number))).collect();
    let has_paths = others.below(2) == 0;
    let fdb_lens: Vec<usize> = devices.iter().map(|device| device.fdb_len(&topology)).collect();
    Plan {
        policy: Policy {
            tagging,
            flow_control: FlowControl::Pfc(2),
            seed: rng.next_u64(),
            vlans_max: (rng.below(2) == 0).then_some(17),
            flood: FLOODS[hosts % 3],
            storm_limit: StormLimit::new((hosts % 100) as u8),
            traffic: if rng.below(2) == 0 { Traffic::AllToAll } else { Traffic::Matrix(some_matrix(hosts, &mut rng)) },
            further_traffic,
            paths_max: if has_paths { 8 } else { 1 },
            ..Policy::default()
        },
        engine: EngineName::Updown,
        trees,
        assignment,
        addresses,
        certificate: (rng.below(2) == 0).then(|| Certificate {
            rank: (0..2).map(|_| (0..channels).map(|_| rng.below(100) as u32).collect()).collect(),
        }),
        bound: Bound { lengths: (0..channels).map(|_| rng.below(5) as u32).collect() },
        failover: (hosts > 0 && rng.below(2) == 0).then(|| failover(&topology, &vlans, &mut rng)),
        paths: has_paths.then(|| path_sets(&topology, &vlans, &mut rng)),
        summary: Summary {
            switches: topology.switches().len(),
            hosts,
            links: topology.links().len(),
            vlans: count,
            lanes: 2,
            avg_switches_per_path: 1.0 + 7.0 * rng.unit_f64(),
            avg_hops: rng.unit_f64() / 3.0,
            max_switches_per_path: 9,
            max_channel_load: rng.below(1 << 40) as f64,
            max_channel_time: 1e6 * rng.unit_f64(),
            load_bound: 12.0,
            load_gap: 1.0 / 3.0,
            deadlock_free: true,
            fdb_entries_max: fdb_lens.iter().copied().max().unwrap_or(0),
            fdb_entries_total: fdb_lens.iter().sum(),
            paths: has_paths.then(|| PathSummary {
                paths_max: 8,
                permutation_mean: rng.unit_f64(),
                permutation_mean_bound: rng.unit_f64(),
                permutation_share_mean: rng.unit_f64(),
                permutation_worst: rng.unit_f64(),
                permutation_worst_bound: rng.unit_f64(),
                permutation_share_worst: rng.unit_f64(),
            }),
        },
        devices,
        topology,
    }
}

/// Some VLANs for every pair, and numbers for a proof.
fn path_sets(topology: &Topology, vlans: &[VlanId], rng: &mut Rng) -> PathSets {
    let (hosts, channels) = (topology.hosts().len(), topology.channel_count());
    let numbers = |rng: &mut Rng| (0..channels).map(|_| rng.below(1000) as u32).collect::<Vec<u32>>();
    let proof = PermutationProof {
        lengths: permutations(topology).iter().map(|_| numbers(rng)).collect(),
        worst: (0..hosts).map(|_| HostId::new(rng.below(hosts))).collect(),
        worst_lengths: numbers(rng),
    };
    let count = 1 + rng.below(vlans.len().min(PATHS_MAX as usize));
    PathSets::new(hosts, proof, |source, _| vlans[source.index() % (vlans.len() - count + 1)..][..count].to_vec())
}

/// Demands large and small between some of the hosts.
fn some_matrix(hosts: usize, rng: &mut Rng) -> TrafficMatrix {
    let mut demands = Vec::new();
    for source in HostId::all(hosts) {
        for destination in HostId::all(hosts).filter(|destination| *destination != source) {
            if rng.below(3) == 0 {
                let amount = [1.0, 0.1 + rng.unit_f64(), 1e18 * rng.unit_f64(), 1e-9][rng.below(4)];
                demands.push(Demand { source, destination, amount });
            }
        }
    }
    TrafficMatrix::new(hosts, demands).expect("sound demands")
}

fn vlan(number: usize) -> VlanId {
    VlanId::new(number as u16).expect("a VLAN")
}

fn bfs_tree(topology: &Topology, root: SwitchId) -> Tree {
    let mut reached = vec![false; topology.switches().len()];
    reached[root.index()] = true;
    let (mut order, mut links, mut next) = (vec![root], Vec::new(), 0);
    while let Some(&at) = order.get(next) {
        next += 1;
        for &channel in topology.channels_from(at) {
            let head = topology.head(channel);
            if !std::mem::replace(&mut reached[head.index()], true) {
                links.push(channel.link());
                order.push(head);
            }
        }
    }
    Tree::new(topology, links).expect("a tree")
}

fn pair_runs(hosts: usize, vlans: &[VlanId], rng: &mut Rng) -> Vec<HostRun<VlanId>> {
    let mut runs = Vec::new();
    let mut first = 0;
    while first < hosts {
        let last = first + rng.below((hosts - first).min(4));
        let choice = vlans[rng.below(vlans.len())];
        runs.push(HostRun { first: HostId::new(first), last: HostId::new(last), choice });
        first = last + 1;
    }
    runs
}

fn device(topology: &Topology, switch: SwitchId, trees: &[VlanTree]) -> DeviceIntent {
    let all: VlanSet = trees.iter().map(|tree| tree.vlan).collect();
    let mut fdb = Vec::new();
    for tree in trees {
        let outward = tree.tree.rooted_at(topology, switch);
        // First channel toward each switch, inherited down the tree.
        let mut leaves_by = vec![None; topology.switches().len()];
        for &at in &outward.order[1..] {
            let inward = outward.inward[at.index()].expect("reached");
            leaves_by[at.index()] = leaves_by[topology.tail(inward).index()].or(Some(topology.tail_port(inward)));
        }
        let runs = topology.host_ids().map(|host| {
            let port = leaves_by[topology.switch_of(host).index()].unwrap_or(topology.host(host).port);
            FdbRun { vlan: tree.vlan, first: host, last: host, port }
        });
        let start = fdb.len();
        for run in runs {
            match fdb[start..].last_mut() {
                Some(FdbRun { last, port, .. }) if *port == run.port => *last = run.last,
                _ => fdb.push(run),
            }
        }
    }
    let ports = topology.port_ids(switch).map(|port| match topology.port(port).attachment {
        crate::Attachment::Nothing | crate::Attachment::Member(_) => PortIntent::unused(port),
        crate::Attachment::Host(host) => PortIntent {
            port,
            role: PortRole::Host(host),
            admin: Admin::Up,
            pvid: Some(trees[host.index() % trees.len()].vlan),
            tagged: VlanSet::new(),
            untagged: all.clone(),
            flow_control: FlowControlMode::Pause,
            ingress_filter: if switch.index() == 0 { IngressFilter::Off } else { IngressFilter::On },
            blocked: FLOODS[host.index() % 3].blocked(),
            untagged_class: u8::from(switch.index() == 1),
            storm_limit: StormLimit::new(if switch.index() == 2 { 7 } else { 0 }),
            ..PortIntent::unused(port)
        },
        crate::Attachment::Link(link) => PortIntent {
            port,
            role: PortRole::Link(link),
            admin: Admin::Up,
            pvid: None,
            tagged: trees.iter().filter(|tree| tree.tree.contains(link)).map(|tree| tree.vlan).collect(),
            untagged: VlanSet::new(),
            flow_control: FlowControlMode::Pfc { lanes: 2 },
            mtu_bytes: if switch.index() == 0 { 9000 } else { crate::ETHERNET_MTU_BYTES },
            ..PortIntent::unused(port)
        },
    });
    let classes = vec![all.clone(), VlanSet::new()];
    let spanning_tree = if switch.index() == 0 { SpanningTree::On } else { SpanningTree::Off };
    let lldp = if switch.index() == 0 { Lldp::Off } else { Lldp::On };
    DeviceIntent { ports: ports.collect(), fdb, classes, spanning_tree, lldp, ..DeviceIntent::blank(switch) }
}

fn written(plan: &Plan) -> String {
    let mut bytes = Vec::new();
    write_plan(plan, &mut bytes).expect("writing to memory");
    String::from_utf8(bytes).expect("plans are UTF-8")
}

#[test]
fn guids_are_kept_and_unique() {
    let text = "switches: {a: {guid: 0x0002c90200405a10}, b: {}}\nlinks: [\"a:1 -- b:1\"]\n\
                hosts: {h: {mac: 020000000001, port: \"b:2\", guid: 0x7}}";
    let topology = crate::format::native::parse_native("f", text).expect("valid");
    assert_eq!(topology.switches()[0].guid, crate::Guid::new(0x0002_c902_0040_5a10));
    let plan = sample(topology, 1, Tagging::Destination, 1);
    let text = written(&plan);
    assert_eq!(read_plan(text.as_bytes(), ReadMode::Strict), Ok(plan));
    let twice = text.replace("0x0000000000000007", "0x0002c90200405a10");
    let refusal = read_plan(twice.as_bytes(), ReadMode::IgnoreDigest).expect_err("a GUID twice").to_string();
    assert_eq!(refusal, "topology.hosts[0].guid: GUID 0x0002c90200405a10 already belongs to switch a");
}

#[test]
fn identities_are_kept() {
    let text = "switches:\n  a: {mgmt: 192.0.2.1, id: {chassis: \"02:00:00:00:01:01\", serial: \"TX \\\"1\\\"\"}}\n  b:\nlinks: [\"a:1 -- b:1\"]\n";
    let topology = crate::format::native::parse_native("f", text).expect("valid");
    let identity = &topology.switches()[0].identity;
    assert_eq!(identity.items(), [("chassis", "02:00:00:00:01:01"), ("serial", "TX \"1\"")]);
    let plan = sample(topology, 1, Tagging::Destination, 1);
    let text = written(&plan);
    assert_eq!(read_plan(text.as_bytes(), ReadMode::Strict), Ok(plan));
    // Whoever is nobody is written as before.
    assert_eq!(text.matches("\"id\":").count(), 1);
    let odd = text.replace("TX \\\"1\\\"", "TX\\n1");
    let refusal = read_plan(odd.as_bytes(), ReadMode::IgnoreDigest).expect_err("a line break").to_string();
    assert!(refusal.starts_with("topology.switches[0].id: serial:"), "{refusal}");
}

fn small() -> Plan {
    sample(topology("mesh", "2x2", &Options::default()), 2, Tagging::Switch, 1)
}

#[test]
fn plans_are_read_as_they_were_written() {
    let networks = [
        ("mesh", "1", None, None),
        ("mesh", "4x2", None, Some(3)),
        ("torus", "3x3", Some("powerconnect-5324"), None),
        ("clos", "4x3", Some("smc-8648t"), Some(9)),
        ("hyper-crossbar", "2x3", None, Some(4)),
        ("random-regular", "n=12,d=5", Some("linux-bridge"), None),
        ("dragonfly", "a=2,h=1,g=2", None, None),
    ];
    for (seed, (kind, sizes, model, shuffle)) in networks.into_iter().enumerate() {
        for &tagging in Tagging::ALL {
            let options = Options { model: model.map(str::to_owned), shuffle, ..Options::default() };
            let topology = topology(kind, sizes, &options);
            let count = topology.switches().len().min(5);
            let plan = sample(topology, count, tagging, seed as u64);
            let text = written(&plan);
            let read = read_plan(text.as_bytes(), ReadMode::Strict);
            assert_eq!(read.as_ref(), Ok(&plan), "{kind} {sizes} {tagging}");
            assert_eq!(written(&read.expect("just read")), text);
        }
    }
}

#[test]
fn what_is_rarely_there_is_kept_too() {
    let options = Options { hosts_per_switch: Some(0), ..Options::default() };
    let mut plans = vec![sample(topology("mesh", "3", &options), 1, Tagging::Pair, 1), small()];
    let port = plans[1].devices[2].ports[0].port;
    plans[1].devices[2].foreign = vec![FdbEntry { vlan: vlan(3), mac: Mac::BROADCAST, port }];
    let first = plans[1].devices[0].fdb[0];
    // Two runs that could be one stay two.
    let split = FdbRun { first: HostId::new(2), last: HostId::new(2), ..first };
    plans[1].devices[0].fdb = vec![FdbRun { last: HostId::new(1), ..first }, split];
    plans[1].certificate = None;
    for plan in plans {
        assert_eq!(read_plan(written(&plan).as_bytes(), ReadMode::Strict), Ok(plan));
    }
}

#[test]
fn the_time_limit_is_no_part_of_a_plan() {
    let plan = small();
    let mut limited = plan.clone();
    limited.policy.time_limit = Some(std::time::Duration::from_secs(3));
    assert_eq!(written(&limited), written(&plan));
}

#[test]
fn every_device_is_a_line() {
    let text = written(&small());
    let lines: Vec<&str> = text.lines().filter(|line| line.starts_with("{\"switch\":\"")).collect();
    assert_eq!(lines.len(), 4);
    assert!(lines.iter().all(|line| line.contains("\"fdb\":[{\"vlan\":2,\"to\":{")));
    let value: serde_json::Value = serde_json::from_str(&text).expect("plans are JSON");
    assert_eq!(value["devices"][3]["fdb"][1]["vlan"], 3);
    assert_eq!(value["summary"], crate::format::report::summary_json(&small().summary));
}

#[test]
fn a_figure_that_is_no_number_is_not_written() {
    let mut plan = small();
    plan.summary.load_gap = f64::NAN;
    let error = write_plan(&plan, std::io::sink()).expect_err("not a number");
    assert_eq!(error.to_string(), "summary.load_gap is not a number");
}

#[test]
fn a_changed_file_says_so_and_can_still_be_read_on_purpose() {
    let text = written(&small());
    let changed = text.replacen("\"pvid\":2", "\"pvid\":3", 1);
    assert_ne!(changed, text);
    let error = read_plan(changed.as_bytes(), ReadMode::Strict).expect_err("changed");
    assert!(matches!(error, PlanFileError::Changed { .. }), "{error}");
    assert!(error.to_string().contains("plan again"), "{error}");
    let read = read_plan(changed.as_bytes(), ReadMode::IgnoreDigest).expect("a plan all the same");
    assert_ne!(read, small());
    let laid_out_anew = text.replace(',', ", ");
    assert!(matches!(read_plan(laid_out_anew.as_bytes(), ReadMode::Strict), Err(PlanFileError::Changed { .. })));
    let crlf = text.replace('\n', "\r\n");
    assert!(matches!(read_plan(crlf.as_bytes(), ReadMode::Strict), Err(PlanFileError::Changed { .. })));
}

#[test]
fn other_versions_and_other_files_are_refused() {
    let text = written(&small());
    let newer = text.replacen("\"espalier_plan\":5", "\"espalier_plan\":6", 1);
    let error = read_plan(newer.as_bytes(), ReadMode::IgnoreDigest).expect_err("newer");
    assert_eq!(error, PlanFileError::Version { found: 6 });
    assert!(error.to_string().contains("use a newer espalier"), "{error}");
    for other in ["{}", "[]", "1", "null", "{\"switches\":[]}"] {
        assert_eq!(read_plan(other.as_bytes(), ReadMode::Strict), Err(PlanFileError::NotAPlan), "{other}");
    }
    for broken in ["", "{", "switches:\n", "\u{feff}{}", &"[".repeat(100_000), "{\"a\":1,\"a\":2}"] {
        let error = read_plan(broken.as_bytes(), ReadMode::Strict).expect_err("broken");
        assert!(matches!(error, PlanFileError::NotJson { .. }), "{error}");
    }
    assert!(read_plan(&[0xff, 0xfe], ReadMode::Strict).is_err());
}

#[test]
fn a_plan_that_asks_for_switch_overs_and_has_none_is_read_as_it_is() {
    let plain = Plan { failover: None, ..small() };
    let resilient = Policy { resilience: Resilience::OneLink, ..plain.policy.clone() };
    let resilient = Plan { policy: resilient, ..plain };
    let text = written(&resilient);
    assert!(text.starts_with("{\n\"espalier_plan\":5,"));
    assert_eq!(read_plan(text.as_bytes(), ReadMode::Strict), Ok(resilient));
}

#[test]
fn planes_are_stated_only_where_there_are_some() {
    let plain = small();
    assert!(!written(&plain).contains("planes"));
    let mut plane = vec![1; plain.topology.switches().len()];
    plane[0] = 0;
    let with = Plan { policy: Policy { planes: Planes::new(plane), ..plain.policy.clone() }, ..plain };
    let text = written(&with);
    let list = r#""planes":["0","1-3"]"#;
    assert!(text.contains(list), "{text}");
    assert_eq!(read_plan(text.as_bytes(), ReadMode::Strict).as_ref(), Ok(&with));
    for (wrong, place) in [
        (r#"["0","1-4"]"#, "policy.planes[1]: there is no switch 4"),
        (r#"["0","0-3"]"#, "policy.planes[1]: switch 0 is in two planes"),
        (r#"["0","2-3"]"#, "policy.planes: switch 1 is in no plane; leave the list out for none at all"),
        (r#"[]"#, "policy.planes: switch 0 is in no plane"),
        (r#"{"0":"1"}"#, "policy.planes"),
    ] {
        let broken = text.replacen(list, &format!("\"planes\":{wrong}"), 1);
        let error = read_plan(broken.as_bytes(), ReadMode::IgnoreDigest).expect_err(wrong).to_string();
        assert!(error.contains(place), "{error}");
    }
}

#[test]
fn a_limit_on_hops_is_stated_only_where_there_is_one() {
    let plain = small();
    assert!(!written(&plain).contains("hops_max"));
    for hops_max in [0, 4, u32::MAX] {
        let with = Plan { policy: Policy { hops_max: Some(hops_max), ..plain.policy.clone() }, ..plain.clone() };
        let text = written(&with);
        assert!(text.contains(&format!("\"hops_max\":{hops_max}")), "{text}");
        assert_eq!(read_plan(text.as_bytes(), ReadMode::Strict).as_ref(), Ok(&with));
    }
    let with = Plan { policy: Policy { hops_max: Some(4), ..plain.policy.clone() }, ..plain };
    for wrong in ["-1", "4.5", "4294967296", "\"4\""] {
        let broken = written(&with).replacen("\"hops_max\":4", &format!("\"hops_max\":{wrong}"), 1);
        let error = read_plan(broken.as_bytes(), ReadMode::IgnoreDigest).expect_err(wrong).to_string();
        assert!(error.contains("policy.hops_max"), "{error}");
    }
}

#[test]
fn standby_edges_are_stated_only_where_there_are_some() {
    assert!(!written(&small()).contains("standby_edges"));
    let mut builder = TopologyBuilder::of(&topology("torus", "3x3", &Options::default()));
    for (switch, macs) in [(4, vec![Mac::local(901), Mac::local(900)]), (7, Vec::new())] {
        let port = builder.add_port(SwitchId::new(switch), "uplink").expect("a fresh port");
        let edge = builder.add_standby_edge(&format!("edge{switch}"), port, 10_000_000_000).expect("a free port");
        macs.into_iter().for_each(|mac| builder.add_standby_mac(edge, mac).expect("a fresh address"));
    }
    let plan = sample(builder.finish().expect("connected"), 3, Tagging::Source, 5);
    let text = written(&plan);
    let line = r#"{"name":"edge4","port":"s1-1:uplink","rate_bps":10000000000,"macs":["02:00:00:00:03:84","02:00:00:00:03:85"]}"#;
    assert!(text.contains(line), "{text}");
    assert_eq!(read_plan(text.as_bytes(), ReadMode::Strict).as_ref(), Ok(&plan));
    for (right, wrong, says) in [
        ("\"port\":\"s1-1:uplink\"", "\"port\":\"s1-1:p9\"", "topology.standby_edges[0].port: there is no port"),
        ("\"port\":\"s1-1:uplink\"", "\"port\":\"s1-1:p1\"", "topology.standby_edges[0]: port s1-1:p1 already carries"),
        (
            "\"port\":\"s2-1:uplink\"",
            "\"port\":\"s1-1:uplink\"",
            "topology.standby_edges[1]: port s1-1:uplink already carries the standby edge edge4",
        ),
        ("\"name\":\"edge7\"", "\"name\":\"edge4\"", "topology.standby_edges[1]: host edge4 is named twice"),
        (
            "02:00:00:00:03:85",
            "02:00:00:00:03:84",
            "topology.standby_edges[0].macs[1]: address 02:00:00:00:03:84 already belongs to host edge4",
        ),
        ("02:00:00:00:03:85", "02:00:00:00:00:01", "topology: address 02:00:00:00:00:01 already belongs to host"),
        (
            "02:00:00:00:03:85",
            "01:00:5e:00:00:01",
            "topology.standby_edges[0].macs[1]: address 01:00:5e:00:00:01 is a group",
        ),
        (
            "\"name\":\"edge7\",",
            "\"name\":\"edge7\",\"rail\":1,",
            "topology.standby_edges[1].rail: there is no such field",
        ),
    ] {
        let damaged = text.replacen(right, wrong, 1);
        assert!(damaged != text, "{right} stands nowhere in\n{text}");
        let error = read_plan(damaged.as_bytes(), ReadMode::IgnoreDigest).expect_err(wrong).to_string();
        assert!(error.starts_with(says), "{wrong}: {error}");
    }
}

#[test]
fn groups_are_stated_only_where_there_are_some() {
    assert!(!written(&small()).contains("group"));
    let mut builder = TopologyBuilder::of(&topology("torus", "3x3", &Options::default()));
    for (name, switches, links) in
        [("feed-a", vec![4, 0, 1], vec![]), ("card-3", vec![], vec![7, 5]), ("both", vec![2], vec![0, 1, 2, 9])]
    {
        let switches: Vec<SwitchId> = switches.into_iter().map(SwitchId::new).collect();
        let links: Vec<LinkId> = links.into_iter().map(LinkId::new).collect();
        builder.add_group(name, &switches, &links).expect("members that there are");
    }
    let topology = builder.finish().expect("connected");
    let vlans = [vlan(2), vlan(3)];
    let plan = sample(topology.clone(), 2, Tagging::Switch, 5);
    let plan = Plan { failover: Some(failover(&topology, &vlans, &mut Rng::new(3))), ..plan };
    let text = written(&plan);
    let lines = "\"groups\":[\n{\"name\":\"feed-a\",\"switches\":\"0-1,4\",\"links\":\"\"},\n{\"name\":\"card-3\",\"switches\":\"\",\"links\":\"5,7\"},\n{\"name\":\"both\",\"switches\":\"2\",\"links\":\"0-2,9\"}\n]";
    assert!(text.contains(lines), "{text}");
    assert!(text.contains("\"groups_covered\":3,\"groups_dividing\":1"), "{text}");
    assert_eq!(read_plan(text.as_bytes(), ReadMode::Strict).as_ref(), Ok(&plan));
    for (right, wrong, says) in [
        ("\"name\":\"both\"", "\"name\":\"card-3\"", "topology.groups[2]: group card-3 is named twice"),
        ("\"name\":\"both\"", "\"name\":\"s1-1\"", "topology.groups[2]: s1-1 is the name of a switch and of a group"),
        ("\"links\":\"5,7\"", "\"links\":\"\"", "topology.groups[1]: group card-3 has no members"),
        ("\"links\":\"5,7\"", "\"links\":\"5,18\"", "topology.groups[1].links: there is no link 18"),
        ("\"switches\":\"0-1,4\"", "\"switches\":\"0-1,9\"", "topology.groups[0].switches: there is no switch 9"),
        ("\"group\":2", "\"group\":1", "failover.switch_overs"),
        ("\"group\":2", "\"group\":3", "failover.switch_overs"),
    ] {
        let damaged = text.replacen(right, wrong, 1);
        assert!(damaged != text, "{right} stands nowhere in\n{text}");
        let error = read_plan(damaged.as_bytes(), ReadMode::IgnoreDigest).expect_err(wrong).to_string();
        assert!(error.starts_with(says), "{wrong}: {error}");
    }
}

#[test]
fn what_is_drained_is_stated_only_where_something_is() {
    let plain = small();
    assert!(!written(&plain).contains("drain\""));
    let drain =
        Drain { links: BTreeSet::from([0, 2, 3].map(LinkId::new)), switches: BTreeSet::from([SwitchId::new(1)]) };
    let drained = Plan { policy: Policy { drain, ..plain.policy.clone() }, ..plain };
    let text = written(&drained);
    assert!(text.contains(r#""drain":{"links":"0,2-3","switches":"1"}"#), "{text}");
    assert_eq!(read_plan(text.as_bytes(), ReadMode::Strict).as_ref(), Ok(&drained));
    for (wrong, place) in [
        (r#"{"links":"0-99999","switches":""}"#, "policy.drain.links: there is no link 99999"),
        (r#"{"links":"","switches":"1,1"}"#, "policy.drain.switches"),
        (r#"{"links":"","switches":""}"#, "policy.drain: it drains nothing; leave it out"),
        (r#"{"links":"0"}"#, "policy.drain"),
        (r#"{"links":"0","switches":"","hosts":""}"#, "policy.drain"),
    ] {
        let broken = text.replacen(r#"{"links":"0,2-3","switches":"1"}"#, wrong, 1);
        let error = read_plan(broken.as_bytes(), ReadMode::IgnoreDigest).expect_err(wrong).to_string();
        assert!(error.contains(place), "{error}");
    }
}

#[test]
fn a_plan_holds_what_its_models_can_do() {
    let known = Model::by_name("linux-bridge").expect("a known model");
    let description = "ours: \"4\" ports\tand a\\b".to_owned();
    let ports = PortNames::Listed(["p1", "p2", "p3", "p4"].map(str::to_owned).to_vec());
    let basis_of = vec![("hybrid-ports".to_owned(), Basis::Probed), ("max-vlans".to_owned(), Basis::Probed)];
    let own = Model { name: "own".to_owned(), description, ports, vlans_max: 17, basis_of, ..(*known).clone() };
    let models = Models::built_in().with([own.clone()]);
    let options = Options { model: Some("own".to_owned()), models, ..Options::default() };
    let plan = sample(topology("mesh", "2x2", &options), 2, Tagging::Switch, 1);
    let text = written(&plan);
    let read = read_plan(text.as_bytes(), ReadMode::Strict).expect("no other file is needed");
    assert_eq!(read, plan);
    assert_eq!(*read.topology.switches()[0].model, own);
    // The digest covers them, and what no switch can be is refused by its place.
    let changed = text.replacen("\"max_vlans\":17", "\"max_vlans\":18", 1);
    assert!(matches!(read_plan(changed.as_bytes(), ReadMode::Strict), Err(PlanFileError::Changed { .. })));
    let read = read_plan(changed.as_bytes(), ReadMode::IgnoreDigest).expect("a plan all the same");
    assert_eq!(read.topology.switches()[0].model.vlans_max, 18);
    for (to, place) in [("\"max_vlans\":0", "models[0]: max-vlans"), ("\"colour\":17", "models[0].colour")] {
        let changed = text.replacen("\"max_vlans\":17", to, 1);
        let error = read_plan(changed.as_bytes(), ReadMode::IgnoreDigest).expect_err(to).to_string();
        assert!(error.starts_with(place), "{error}");
    }
    let without = text.replacen("\"model\":\"own\"", "\"model\":\"linux-bridge\"", 1);
    let error = read_plan(without.as_bytes(), ReadMode::IgnoreDigest).expect_err("a model that the plan lacks");
    assert!(error.to_string().contains("unknown model linux-bridge"), "{error}");
}

#[test]
fn an_older_plan_has_the_models_that_there_are() {
    let text = written(&small());
    let start = text.find("\"models\":[").expect("the models");
    let end = text.find("\"topology\":").expect("the topology");
    let older = format!("{}{}", &text[..start], &text[end..]).replacen("\"espalier_plan\":5", "\"espalier_plan\":2", 1);
    let read = read_plan(older.as_bytes(), ReadMode::IgnoreDigest).expect("a plan");
    assert_eq!(Plan { devices: small().devices, ..read }, small());
    let newer = older.replacen("\"espalier_plan\":2", "\"espalier_plan\":3", 1);
    let error = read_plan(newer.as_bytes(), ReadMode::IgnoreDigest).expect_err("without models");
    assert!(error.to_string().contains("models"), "{error}");
}

#[test]
fn how_many_lags_a_model_has_is_stated_only_where_it_is_known() {
    let plan = small();
    assert!(!written(&plan).contains("max_lags"));
    let mut builder = TopologyBuilder::of(&plan.topology);
    builder.change_models(|model| model.lags_max = Some(6));
    let known = Plan { topology: builder.finish().expect("as it was"), ..plan };
    let text = written(&known);
    assert!(text.contains(",\"max_lags\":6,\"speaks\""), "{text}");
    assert_eq!(read_plan(text.as_bytes(), ReadMode::Strict).as_ref(), Ok(&known));
    let error = read_plan(text.replacen(":6,", ":-6,", 1).as_bytes(), ReadMode::IgnoreDigest).expect_err("no number");
    assert!(error.to_string().contains("max_lags"), "{error}");
}

/// Up to version 4 floods are forwarded, and no model is known to block them.
#[test]
fn an_older_plan_forwards_floods() {
    let plan = small();
    let policy = Policy { flood: Flood::Forward, storm_limit: None, ..plan.policy.clone() };
    let mut plan = Plan { policy, ..plan };
    for port in plan.devices.iter_mut().flat_map(|device| &mut device.ports) {
        (port.blocked, port.storm_limit) = (FloodSet::NONE, None);
        port.untagged_class = port.pvid.map_or(0, |pvid| plan.policy.class_of(&plan.trees, pvid));
    }
    let text = written(&plan);
    let able = ",\"blocks_floods\":\"unknown-unicast,multicast,broadcast\",\"storm_control\":true";
    assert_eq!(text.matches(able).count(), 1, "{text}");
    let older = text.replacen("\"espalier_plan\":5", "\"espalier_plan\":4", 1).replacen(able, "", 1);
    let read = read_plan(older.as_bytes(), ReadMode::IgnoreDigest).expect("a plan");
    let models = || read.topology.switches().iter().map(|switch| &switch.model);
    assert!(models().all(|model| model.blocks_floods.is_empty() && !model.storm_control));
    assert_eq!(Plan { topology: plan.topology.clone(), ..read }, plan);
}

/// Before version 4 classes and MTU were implied by the trees and the policy.
#[test]
fn an_older_plan_is_read_with_the_classes_and_the_mtu_that_it_implies() {
    let plan = small();
    let policy = Policy { flow_control: FlowControl::Pfc(2), mtu_bytes: 4000, ..plan.policy.clone() };
    let mut stated = Plan { policy, ..plan };
    stated.trees[1].lane = 1;
    let mut implied = stated.clone();
    for device in &mut stated.devices {
        let of = |lane: u8| {
            let trees = stated.trees.iter().filter(|tree| tree.lane == lane).map(|tree| tree.vlan);
            trees.filter(|vlan| device.vlans().contains(*vlan)).collect::<VlanSet>()
        };
        device.classes = vec![of(0), of(1)];
        assert!(device.classes.iter().all(|vlans| !vlans.is_empty()));
        for port in device.ports.iter_mut().filter(|port| port.role != PortRole::Unused) {
            port.mtu_bytes = 4000;
            let lane = stated.trees.iter().find(|tree| Some(tree.vlan) == port.pvid).map(|tree| tree.lane);
            port.untagged_class = lane.unwrap_or(0);
        }
    }
    let later = stated.devices.iter().flat_map(|device| &device.ports).filter(|port| port.untagged_class == 1);
    assert!(later.count() > 0);
    for device in &mut implied.devices {
        device.classes.clear();
        for port in &mut device.ports {
            (port.mtu_bytes, port.untagged_class) = (crate::ETHERNET_MTU_BYTES, 0);
        }
    }
    let older = written(&implied).replacen("\"espalier_plan\":5", "\"espalier_plan\":3", 1);
    assert_eq!(read_plan(older.as_bytes(), ReadMode::IgnoreDigest).as_ref(), Ok(&stated));
    assert_eq!(read_plan(written(&implied).as_bytes(), ReadMode::Strict), Ok(implied));
    assert_eq!(read_plan(written(&stated).as_bytes(), ReadMode::Strict), Ok(stated));
}

#[test]
fn wrong_switch_overs_are_named_by_their_place() {
    let run = HostRun { first: HostId::new(0), last: HostId::new(1), choice: vlan(3) };
    let over = |link: usize, proof| SwitchOver {
        failure: Failure::Link(LinkId::new(link)),
        hosts: vec![run],
        pairs: Vec::new(),
        proof,
    };
    let pairs = vec![PairRun { source: HostId::new(2), run }];
    let (first, second) = (over(0, Proof::Numbering(0)), SwitchOver { pairs, ..over(2, Proof::Drained(0)) });
    let channels = small().topology.channel_count();
    let failover = Failover {
        switch_overs: vec![first, second],
        numberings: vec![Certificate { rank: vec![vec![1; channels]] }],
        summary: FailoverSummary {
            links_covered: 4,
            links_dividing: 0,
            switches: None,
            groups: None,
            drained: 1,
            max_channel_time: 3.0,
            vlans_extra: 0,
            fdb_entries_extra: 0,
        },
    };
    let plan = Plan { failover: Some(failover), ..small() };
    let text = written(&plan);
    assert_eq!(read_plan(text.as_bytes(), ReadMode::Strict).as_ref(), Ok(&plan));
    for (right, wrong, says) in [
        ("\"link\":2", "\"link\":0", "failover.switch_overs[1]: switch-overs ascend by link"),
        ("\"link\":2", "\"link\":4", "failover.switch_overs[1].link: there is no link 4"),
        ("\"link\":2", "\"switch\":9", "failover.switch_overs[1].switch: there is no switch 9"),
        (
            "\"link\":2",
            "\"switch\":0,\"link\":2",
            "failover.switch_overs[1]: a switch-over is for a link, for a switch or for a group",
        ),
        ("\"link\":2", "\"group\":0", "failover.switch_overs[1].group: there is no group 0"),
        ("\"link\":0", "\"switch\":0", "failover.switch_overs[1]: switch-overs ascend by link, then by switch"),
        ("[[0,1,3]]", "[[0,9,3]]", "failover.switch_overs[0].hosts[0][1]: there is no host 9"),
        ("[[0,1,3]]", "[[1,0,3]]", "failover.switch_overs[0].hosts[0]: the run 1-0 runs backwards"),
        ("[[0,1,3]]", "[[0,1,3],[1,1,3]]", "failover.switch_overs[0].hosts[1]: runs of hosts ascend"),
        ("[[0,1,3]]", "[[0,1]]", "failover.switch_overs[0].hosts[0]: there are 2 values for 3 parts"),
        ("[[2,0,1,3]]", "[[2,0,1,3],[2,1,1,3]]", "failover.switch_overs[1].pairs[1]: runs of pairs ascend"),
        ("\"numbering 0\"", "\"numbering 1\"", "failover.switch_overs[0].proof: \"numbering 1\" is none of"),
        ("\"drained 0\"", "\"trust me\"", "failover.switch_overs[1].proof: \"trust me\" is none of"),
        ("\"links_covered\":4", "\"links_uncovered\":4", "failover.summary: the field links_covered is missing"),
    ] {
        assert!(text.contains(right), "{right}");
        let error = read_plan(text.replacen(right, wrong, 1).as_bytes(), ReadMode::IgnoreDigest).expect_err(wrong);
        assert!(error.to_string().starts_with(says), "{error}");
    }
}

/// What is written in a good file, what stands there instead, and what the error says.
#[test]
fn wrong_values_are_named_by_their_place() {
    let plan = small();
    let text = written(&plan);
    for (right, wrong, says) in [
        ("\"pvid\":2", "\"pvid\":5000", "devices[0].ports[2].pvid: 5000 is not a VLAN id"),
        ("\"pvid\":2", "\"pvid\":\"2\"", "devices[0].ports[2].pvid: this is no whole number"),
        ("\"pvid\":2", "\"pvib\":2", "devices[0].ports[2].pvib: there is no such field here"),
        ("\"pvid\":2", "\"pvid\":-2", "devices[0].ports[2].pvid: this is no whole number"),
        ("\"engine\":\"updown\"", "\"engine\":\"auto\"", "engine: a finished plan names the engine"),
        ("\"engine\":\"updown\"", "\"engine\":\"magic\"", "engine: \"magic\" is none of"),
        ("\"tagging\":\"switch\"", "\"tagging\":\"none\"", "policy.tagging: \"none\" is none of switch"),
        ("\"subnet\":\"10.0.0.0/8\"", "\"subnet\":\"10.0.0.1/8\"", "policy.subnet: "),
        ("\"first\":2,\"last\":4094", "\"first\":9,\"last\":3", "policy.vlans: the range 9-3 runs backwards"),
        ("\"mtu_bytes\":1500", "\"mtu_bytes\":150000", "policy.mtu_bytes: 150000 is too large"),
        (
            "\"model\":\"generic\"",
            "\"model\":\"genric\"",
            "topology.switches[0]: unknown model genric: did you mean generic?",
        ),
        ("\"name\":\"s0-1\"", "\"name\":\"s0-0\"", "topology.switches[1]: switch s0-0 is named twice"),
        (
            "[\"p1\",\"p2\",\"p3\"]",
            "[\"p1\",\"p2\",\"p2\"]",
            "topology.switches[0].ports[2]: switch s0-0 has two ports p2",
        ),
        ("\"b\":\"s0-1:p2\"", "\"b\":\"s0-1:p9\"", "topology.links[1].b: there is no port \"s0-1:p9\""),
        ("\"b\":\"s0-1:p2\"", "\"b\":\"s1-0:p1\"", "topology.links[1]: port s1-0:p1 already carries"),
        ("\"rate_bps\":1000000000", "\"rate_bps\":0", "topology.links[0].rate_bps: a cable's rate is at least 1"),
        ("02:00:00:00:00:02", "02:00:00:00:00:01", "topology.hosts[1]: address 02:00:00:00:00:01 already belongs"),
        ("02:00:00:00:00:02", "03:00:00:00:00:02", "topology.hosts[1]: address 03:00:00:00:00:02 is a group"),
        ("{\"vlan\":3,\"lane\":1", "{\"vlan\":2,\"lane\":1", "trees[1].vlan: trees ascend"),
        ("\"lane\":1", "\"lane\":8", "trees[1].lane: lanes run from 0 to 7"),
        ("\"links\":\"0-1,3\"", "\"links\":\"0-3\"", "trees[0].links: 4 links among 4 switches close a cycle"),
        ("\"links\":\"0-1,3\"", "\"links\":\"0-4\"", "trees[0].links: there is no link 4: the last is 3"),
        ("\"links\":\"0-1,3\"", "\"links\":\"2-0\"", "trees[0].links: the run 2-0 runs backwards"),
        ("\"by\":\"source\"", "\"by\":\"chance\"", "assignment.by: \"chance\" is none of"),
        (
            "\"by\":\"source\",\"vlans\":[",
            "\"by\":\"source\",\"vlans\":[2,",
            "assignment.vlans: there are 5 values for 4 hosts",
        ),
        ("\"addresses\":[\"10.0.0.1\"", "\"addresses\":[\"10.0.0.256\"", "addresses[0]: invalid IP address"),
        ("{\"switch\":\"s0-1\"", "{\"switch\":\"s1-0\"", "devices[1].switch: devices come in the order"),
        ("{\"port\":\"p2\"", "{\"port\":\"p3\"", "devices[0].ports[1].port: ports come in the order"),
        ("\"role\":\"host 0\"", "\"role\":\"host 4\"", "devices[0].ports[2].role: \"host 4\" is none of"),
        ("\"role\":\"host 0\"", "\"role\":\"guest\"", "devices[0].ports[2].role: \"guest\" is none of"),
        ("\"admin\":\"up\"", "\"admin\":\"on\"", "devices[0].ports[0].admin: \"on\" is none of up, down"),
        ("\"untagged\":\"2-3\"", "\"untagged\":\"2-4095\"", "devices[0].ports[2].untagged: 4095 is not a VLAN id"),
        ("\"flow_control\":\"pause\",", "\"flow_control\":\"pfc=9\",", "devices[0].ports[2].flow_control: \"pfc=9\""),
        ("\"mtu_bytes\":9000", "\"mtu_bytes\":90000", "devices[0].ports[0].mtu_bytes: "),
        (
            "\"ingress_filter\":\"off\"",
            "\"ingress_filter\":\"no\"",
            "devices[0].ports[2].ingress_filter: \"no\" is neither on",
        ),
        ("\"spanning_tree\":\"on\"", "\"spanning_tree\":1", "devices[0].spanning_tree: "),
        ("\"classes\":[\"2-3\"", "\"classes\":[\"2-9999\"", "devices[0].classes[0]: 9999 is not a VLAN id"),
        (
            "\"classes\":[\"2-3\"",
            "\"classes\":[\"\",\"\",\"\",\"\",\"\",\"\",\"\",\"2-3\"",
            "devices[0].classes: there are at most 8 priority classes",
        ),
        ("\"flood\":\"drop\"", "\"flood\":\"no\"", "policy.flood: \"no\" is none of forward, edge, drop, drop-all"),
        (
            "\"blocked\":\"unknown-unicast\"",
            "\"blocked\":\"noise\"",
            "devices[1].ports[2].blocked: \"noise\" is none of unknown-unicast, multicast, broadcast",
        ),
        ("\"lldp\":\"off\"", "\"lldp\":\"no\"", "devices[0].lldp: \"no\" is neither on"),
        (
            "\"untagged_class\":1",
            "\"untagged_class\":8",
            "devices[1].ports[2].untagged_class: priority classes are 0 to 7",
        ),
        ("\"storm_limit\":4", "\"storm_limit\":100", "policy.storm_limit: storm limits are 1 to 99 percent"),
        ("\"p3\":\"0\"", "\"p9\":\"0\"", "devices[0].fdb[0].to.p9: switch s0-0 has no port \"p9\""),
        ("\"p3\":\"0\"", "\"p3\":\"0-1\"", "devices[0].fdb[0]: host 1 has two entries"),
        ("\"p3\":\"0\"", "\"p3\":\"0,0\"", "devices[0].fdb[0].to.p3: host 0 comes after"),
        ("\"p3\":\"0\"", "\"p3\":\"4\"", "devices[0].fdb[0].to.p3: there is no host 4"),
        ("\"fdb\":[{\"vlan\":2", "\"fdb\":[{\"vlan\":3", "devices[0].fdb[1].vlan: tables ascend"),
        ("\"lengths\":[", "\"lengths\":[1,", "bound.lengths: there are 9 values for 8 channels"),
        ("\"ranks\":[\n[", "\"ranks\":[\n[1,", "certificate.ranks[0]: there are 9 values for 8 channels"),
        ("\"deadlock_free\":true", "\"deadlock_free\":1", "summary.deadlock_free: this is neither"),
        ("\"lanes\":2,", "", "summary: the field lanes is missing"),
        ("\"lanes\":2,", "\"lanes\":2,\"lames\":2,", "summary.lames: there is no such field"),
        ("\"load_bound\":12.0", "\"load_bound\":\"12\"", "summary.load_bound: this is no number"),
    ] {
        let damaged = text.replacen(right, wrong, 1);
        assert!(damaged != text, "{right} stands nowhere in\n{text}");
        let error = read_plan(damaged.as_bytes(), ReadMode::IgnoreDigest).expect_err(wrong).to_string();
        assert!(error.starts_with(says), "{wrong}: {error}");
    }
}

#[test]
fn gaps_in_a_sender_s_choices_are_refused() {
    let mut plan = sample(topology("mesh", "2x2", &Options::default()), 2, Tagging::Pair, 1);
    let run = |first, last| HostRun { first: HostId::new(first), last: HostId::new(last), choice: vlan(2) };
    for (runs, says) in [
        (
            vec![run(0, 1), run(3, 3)],
            "assignment.unicast[1][1]: runs cover every host in order; the next begins with 2",
        ),
        (vec![run(1, 3)], "assignment.unicast[1][0]: runs cover every host in order; the next begins with 0"),
        (vec![run(0, 2)], "assignment.unicast[1]: nothing is chosen for the hosts from 3 on"),
        (vec![run(0, 2), run(2, 3)], "assignment.unicast[1][1]: runs cover"),
    ] {
        let Assignment::Pair { unicast, .. } = &mut plan.assignment else { panic!("planned by pair") };
        unicast[1] = Arc::new(runs);
        let error = read_plan(written(&plan).as_bytes(), ReadMode::Strict).expect_err("a gap").to_string();
        assert!(error.starts_with(says), "{error}");
    }
}

/// Bytes changed at random: whatever comes of it, no panic, and never a plan by digest.
#[test]
fn damage_at_random_is_refused_or_read_but_never_a_panic() {
    let good = written(&sample(topology("torus", "3x2", &Options::default()), 3, Tagging::Pair, 2)).into_bytes();
    let mut rng = Rng::new(99);
    let mut read = 0;
    for _ in 0..3000 {
        let mut bytes = good.clone();
        for _ in 0..1 + rng.below(3) {
            let at = rng.below(bytes.len());
            match rng.below(4) {
                0 => bytes[at] = rng.below(256) as u8,
                1 => bytes[at] = b"0123456789,-\"[]{}"[rng.below(17)],
                2 => bytes.truncate(at.max(1)),
                _ => drop(bytes.remove(at)),
            }
        }
        if bytes != good {
            assert!(read_plan(&bytes, ReadMode::Strict).is_err());
        }
        if let Ok(plan) = read_plan(&bytes, ReadMode::IgnoreDigest) {
            assert_eq!(read_plan(written(&plan).as_bytes(), ReadMode::Strict), Ok(plan));
            read += 1;
        }
    }
    assert!(read > 20, "{read} damaged files were still plans");
}

/// ALiCEnext: 46 switches with 12,672 entries each.
#[test]
fn a_plan_of_half_a_million_entries_is_small() {
    let mut plan = sample(topology("clos", "22x24", &Options::default()), 24, Tagging::Switch, 1);
    // Matrices of a quarter of a million demands are another matter.
    plan.policy.further_traffic.clear();
    assert!(plan.devices.iter().all(|device| device.fdb_len(&plan.topology) == 12_672));
    let text = written(&plan);
    assert!(text.len() < 2_000_000, "{} bytes", text.len());
    assert_eq!(read_plan(text.as_bytes(), ReadMode::Strict), Ok(plan));
}
