//! Sizes against the papers and the families' formulas, connectivity, shuffles, and nonsense.

use std::collections::{BTreeMap, BTreeSet};

use super::*;
use crate::{HostId, SwitchId, rng::Rng};

fn kind(text: &str) -> Kind {
    try_kind(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn try_kind(text: &str) -> Result<Kind, GenerateError> {
    let mut words = text.split(' ').map(str::to_owned);
    let word = words.next().expect("a word");
    Kind::parse(&word, &words.collect::<Vec<_>>())
}

fn built(text: &str) -> Topology {
    generate(&kind(text), &Options::default()).unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn size(topology: &Topology) -> [usize; 3] {
    [topology.switches().len(), topology.links().len(), topology.hosts().len()]
}

/// Number of switches by (links, hosts).
fn degrees(topology: &Topology) -> BTreeMap<(usize, usize), usize> {
    let mut degrees = BTreeMap::new();
    for switch in topology.switch_ids() {
        let degree = (topology.channels_from(switch).len(), topology.hosts_of(switch).len());
        *degrees.entry(degree).or_default() += 1;
    }
    degrees
}

/// Links from `from` to every switch.
fn distances(topology: &Topology, from: SwitchId) -> Vec<usize> {
    let mut distance = vec![usize::MAX; topology.switches().len()];
    distance[from.index()] = 0;
    let mut queue = std::collections::VecDeque::from([from]);
    while let Some(at) = queue.pop_front() {
        for &channel in topology.channels_from(at) {
            let head = topology.head(channel);
            if distance[head.index()] == usize::MAX {
                distance[head.index()] = distance[at.index()] + 1;
                queue.push_back(head);
            }
        }
    }
    distance
}

/// What survives any renaming: for each switch its links, hosts and numbers of switches at each distance.
fn fingerprint(topology: &Topology) -> BTreeMap<Vec<usize>, usize> {
    let mut prints = BTreeMap::new();
    for switch in topology.switch_ids() {
        let mut print = vec![topology.channels_from(switch).len(), topology.hosts_of(switch).len()];
        for distance in distances(topology, switch) {
            let at = 2 + distance;
            print.resize(print.len().max(at + 1), 0);
            print[at] += 1;
        }
        *prints.entry(print).or_default() += 1;
    }
    prints
}

/// Switches, links, hosts; then for each sort of switch its links, hosts and number.
#[test]
fn sizes_are_those_of_the_papers() {
    type Sort = ((usize, usize), usize);
    let table: &[(&str, [usize; 3], &[Sort])] = &[
        ("mesh 4x2", [8, 10, 8], &[((2, 1), 4), ((3, 1), 4)]),
        ("mesh 4x4", [16, 24, 16], &[((2, 1), 4), ((3, 1), 8), ((4, 1), 4)]),
        ("torus 4x2", [8, 12, 8], &[((3, 1), 8)]),
        ("torus 4x4", [16, 32, 16], &[((4, 1), 16)]),
        ("torus 8x8x8", [512, 1536, 512], &[((6, 1), 512)]),
        ("m-tree 4x4", [16, 15, 16], &[((1, 1), 4), ((2, 1), 10), ((3, 1), 2)]),
        ("hypercube 6", [64, 192, 64], &[((6, 1), 64)]),
        ("hyperx 16x16", [256, 3840, 256], &[((30, 1), 256)]),
        ("hyper-crossbar 4x4x4", [112, 192, 64], &[((3, 1), 64), ((4, 0), 48)]),
        ("fat-tree 2,4,2", [14, 24, 16], &[((2, 2), 8), ((4, 0), 2), ((6, 0), 4)]),
        ("fat-tree 2,4,3", [32 + 16 + 8 + 4, 64 + 32 + 16, 64], &[((2, 2), 32), ((4, 0), 4), ((6, 0), 24)]),
        ("fat-tree 1,3,2", [9 + 3 + 1, 12, 9], &[((1, 1), 9), ((3, 0), 1), ((4, 0), 3)]),
        ("fat-tree 3,3,1", [2, 3, 3], &[((3, 0), 1), ((3, 3), 1)]),
        ("fat-tree k=4", [20, 32, 16], &[((2, 2), 8), ((4, 0), 12)]),
        ("fat-tree k=16", [320, 2048, 1024], &[((8, 8), 128), ((16, 0), 192)]),
        ("clos 4x4", [8, 16, 16], &[((4, 0), 4), ((4, 4), 4)]),
        ("clos 22x24", [46, 528, 528], &[((22, 0), 24), ((24, 24), 22)]),
        ("dragonfly a=8,h=4", [264, 1452, 1056], &[((11, 4), 264)]),
        ("dragonfly a=4,h=1,g=3,p=1", [12, 18 + 3 * 2, 12], &[((4, 1), 12)]),
        ("dragonfly a=1,h=3", [4, 6, 4], &[((3, 1), 4)]),
        ("random-regular n=256,d=8,seed=1", [256, 1024, 256], &[((8, 1), 256)]),
        ("tree fanout=4,depth=3", [21, 20, 64], &[((1, 4), 16), ((4, 0), 1), ((5, 0), 4)]),
        ("tree fanout=3,depth=1", [1, 0, 3], &[((0, 3), 1)]),
        ("mesh 1", [1, 0, 1], &[((0, 1), 1)]),
    ];
    for (text, expected, sorts) in table {
        let topology = built(text);
        assert_eq!(size(&topology), *expected, "{text}");
        assert_eq!(degrees(&topology), sorts.iter().copied().collect(), "{text}");
    }
}

#[test]
fn the_figures_of_otsuka_table_3_follow_from_shortest_paths() {
    for (text, hosts, average, longest) in [
        ("mesh 4x2", Some(2), 2.75, 5),
        ("torus 4x2", Some(2), 2.50, 4),
        ("clos 4x4", None, 2.50, 3),
        ("m-tree 4x4", None, 4.8125, 10),
        ("mesh 4x4", None, 3.50, 7),
        ("torus 4x4", None, 3.00, 5),
        ("fat-tree 2,4,2", None, 3.75, 5),
    ] {
        let options = Options { hosts_per_switch: hosts, ..Options::default() };
        let topology = generate(&kind(text), &options).expect(text);
        assert_eq!(topology.hosts().len(), 16, "{text}");
        let mut switches = Vec::new();
        for source in topology.host_ids() {
            let distance = distances(&topology, topology.switch_of(source));
            switches.extend(topology.host_ids().map(|to| 1 + distance[topology.switch_of(to).index()]));
        }
        assert_eq!(switches.iter().sum::<usize>() as f64 / 256.0, average, "{text}");
        assert_eq!(switches.iter().max(), Some(&longest), "{text}");
    }
}

#[test]
fn the_fat_tree_is_two_groups_of_four_leaves() {
    let topology = built("fat-tree 2,4,2");
    let neighbours = |name: &str| -> Vec<&str> {
        let switch = topology.find_switch(name).expect(name);
        let heads = topology.channels_from(switch).iter().map(|&channel| topology.head(channel));
        heads.map(|head| topology.switch(head).name.as_str()).collect()
    };
    assert_eq!(neighbours("leaf3"), ["l1-0", "l1-1"]);
    assert_eq!(neighbours("leaf4"), ["l1-2", "l1-3"]);
    assert_eq!(neighbours("l1-2"), ["leaf4", "leaf5", "leaf6", "leaf7", "t0", "t1"]);
    assert_eq!(neighbours("t1"), ["l1-0", "l1-1", "l1-2", "l1-3"]);
}

#[test]
fn every_two_groups_of_a_dragonfly_are_cabled_once_by_the_absolute_arrangement() {
    let topology = built("dragonfly a=4,h=2");
    let mut between = BTreeSet::new();
    for link in topology.links() {
        let [a, b] = [link.a, link.b].map(|port| topology.port(port).switch.index());
        if a / 4 != b / 4 {
            assert!(between.insert((a / 4, b / 4)));
            // Port k of the lower group leads to group k + 1, port k of the upper one to group k; two ports a router.
            assert_eq!((a % 4, b % 4), ((b / 4 - 1) / 2, a / 4 / 2));
        }
    }
    assert_eq!(between.len(), 9 * 8 / 2);
}

#[test]
fn ports_come_in_dimension_order_and_hosts_last() {
    let options = Options { hosts_per_switch: Some(2), ..Options::default() };
    let topology = generate(&kind("torus 3x3"), &options).expect("a torus");
    let middle = topology.find_switch("s1-1").expect("a switch");
    let beyond: Vec<String> = (topology.port_ids(middle))
        .map(|port| match topology.port(port).attachment {
            crate::Attachment::Link(link) => {
                let link = topology.link(link);
                let far = if link.a == port { link.b } else { link.a };
                format!("{} {}", topology.port(port).name, topology.switch(topology.port(far).switch).name)
            }
            crate::Attachment::Host(host) => {
                format!("{} {}", topology.port(port).name, topology.host(host).name)
            }
            crate::Attachment::Nothing | crate::Attachment::Member(_) => panic!("a generated port has a cable"),
        })
        .collect();
    assert_eq!(beyond, ["p1 s0-1", "p2 s2-1", "p3 s1-0", "p4 s1-2", "p5 h8", "p6 h9"]);
    assert_eq!(topology.host(HostId::new(9)).mac, crate::Mac::local(10));
}

#[test]
fn a_listed_model_lends_its_port_names_and_its_limit() {
    let with = |hosts, model: &str| {
        let options = Options { hosts_per_switch: Some(hosts), model: Some(model.to_owned()), ..Options::default() };
        generate(&kind("clos 4x4"), &options)
    };
    let topology = with(20, "powerconnect-5324").expect("24 ports");
    assert_eq!(topology.port_label(topology.link(crate::LinkId::new(5)).a), "leaf1:g2");
    assert_eq!(topology.port_label(topology.host(HostId::new(19)).port), "leaf0:g24");
    assert!(matches!(with(21, "powerconnect-5324"), Err(GenerateError::TooFewPorts { need: 25, has: 24, .. })));
    let error = with(1, "linux-brigde").expect_err("no such model").to_string();
    assert_eq!(error, "unknown model linux-brigde: did you mean linux-bridge?");
}

#[test]
fn rates_are_as_asked() {
    let options = Options { rate_bps: 7, host_rate_bps: Some(3), ..Options::default() };
    let topology = generate(&kind("mesh 2x2"), &options).expect("a mesh");
    assert!(topology.links().iter().all(|link| link.rate_bps == 7));
    assert!(topology.hosts().iter().all(|host| host.rate_bps == 3));
}

/// Every family at a random small size.
fn samples(rng: &mut Rng) -> Vec<Kind> {
    let sizes =
        |rng: &mut Rng, least: usize| -> Vec<usize> { (0..1 + rng.below(3)).map(|_| least + rng.below(4)).collect() };
    let (a, h) = (1 + rng.below(5), 1 + rng.below(3));
    let p = 1 + rng.below(3);
    let degree = 3 + rng.below(4);
    vec![
        Kind::Mesh(sizes(rng, 1)),
        Kind::Torus(sizes(rng, 1)),
        Kind::HyperX(sizes(rng, 1)),
        Kind::MTree(sizes(rng, 1)),
        Kind::HyperCrossbar(sizes(rng, 2)),
        Kind::Hypercube(1 + rng.below(6) as u32),
        Kind::FatTree { p, q: p * (2 + rng.below(2)), r: 1 + rng.below(3) as u32 },
        Kind::KaryFatTree { k: 2 * (1 + rng.below(4)) },
        Kind::Clos { leaves: 1 + rng.below(8), spines: 1 + rng.below(8) },
        Kind::Dragonfly { p: Some(p), a, h, groups: Some(2 + rng.below(a * h)) },
        Kind::RandomRegular { switches: 2 * (4 + rng.below(20)), degree, seed: rng.next_u64() },
        Kind::RandomRegular { switches: 3 + rng.below(20), degree: 2, seed: rng.next_u64() },
        Kind::Tree { fanout: 1 + rng.below(4), depth: 1 + rng.below(4) as u32 },
    ]
}

#[test]
fn what_is_built_is_what_was_counted() {
    let mut rng = Rng::new(11);
    for _ in 0..60 {
        for kind in samples(&mut rng) {
            let hosts = rng.below(4);
            let options = Options { hosts_per_switch: Some(hosts), ..Options::default() };
            let topology = generate(&kind, &options).unwrap_or_else(|error| panic!("{kind}: {error}"));
            let Counts { switches, links, rim } = counts(&kind);
            assert_eq!(size(&topology).map(|count| count as u128), [switches, links, rim * hosts as u128], "{kind}");
            assert_eq!(topology.ports().len(), 2 * topology.links().len() + topology.hosts().len(), "{kind}");
            let order: Vec<SwitchId> = topology.host_ids().map(|host| topology.switch_of(host)).collect();
            assert!(order.is_sorted(), "{kind}: the hosts of a switch are consecutive");
            assert_eq!(generate(&kind, &options).as_ref(), Ok(&topology), "{kind}");
            let text = kind.to_string();
            assert_eq!(try_kind(&text), Ok(kind), "{text}");
        }
    }
}

#[test]
fn only_dragonflies_and_thin_fat_trees_have_parallel_links() {
    let mut rng = Rng::new(5);
    for _ in 0..30 {
        for kind in samples(&mut rng) {
            if matches!(kind, Kind::Dragonfly { .. } | Kind::FatTree { r: 1, .. }) {
                continue;
            }
            let topology = generate(&kind, &Options::default()).unwrap_or_else(|error| panic!("{kind}: {error}"));
            let mut joined = BTreeSet::new();
            for link in topology.links() {
                let [a, b] = [link.a, link.b].map(|port| topology.port(port).switch);
                assert!(joined.insert((a.min(b), a.max(b))), "{kind}");
            }
        }
    }
}

#[test]
fn a_shuffle_is_the_same_network_under_other_names() {
    let mut rng = Rng::new(13);
    for _ in 0..10 {
        for kind in samples(&mut rng) {
            let shuffled = |seed| {
                generate(&kind, &Options { shuffle: Some(seed), ..Options::default() })
                    .unwrap_or_else(|error| panic!("{kind}: {error}"))
            };
            let plain = generate(&kind, &Options::default()).expect("generated before");
            let one = shuffled(1);
            assert_eq!(fingerprint(&one), fingerprint(&plain), "{kind}");
            assert_eq!(size(&one), size(&plain), "{kind}");
            assert_eq!(one, shuffled(1), "{kind}");
            let names = |topology: &Topology| -> BTreeSet<String> {
                let switches = topology.switches().iter().map(|switch| switch.name.clone());
                switches.chain(topology.hosts().iter().map(|host| host.name.clone())).collect()
            };
            assert_eq!(names(&one), names(&plain), "{kind}");
            if plain.switches().len() > 6 {
                assert_ne!(one, shuffled(2), "{kind}");
                assert_ne!(one, plain, "{kind}");
            }
        }
    }
}

#[test]
fn a_shuffle_scatters_names_ports_and_cables() {
    let options = Options { shuffle: Some(1), ..Options::default() };
    let (plain, shuffled) = (built("torus 4x4"), generate(&kind("torus 4x4"), &options).expect("a torus"));
    let cables = |topology: &Topology| -> BTreeSet<(String, String)> {
        let ends =
            |link: &crate::Link| [link.a, link.b].map(|port| topology.switch(topology.port(port).switch).name.clone());
        topology.links().iter().map(ends).map(|[a, b]| if a < b { (a, b) } else { (b, a) }).collect()
    };
    assert!(cables(&plain).intersection(&cables(&shuffled)).count() < 20);
    let first_is_host = |topology: &Topology| {
        let first = |switch: SwitchId| topology.ports()[topology.switch_ports(switch).start].attachment;
        topology.switch_ids().filter(|&switch| matches!(first(switch), crate::Attachment::Host(_))).count()
    };
    assert_eq!(first_is_host(&plain), 0);
    assert!(first_is_host(&shuffled) > 0);
}

#[test]
fn a_random_graph_depends_on_its_seed_alone_and_may_be_dense_or_a_ring() {
    assert_eq!(built("random-regular n=64,d=5"), built("random-regular n=64,d=5,seed=1"));
    assert_ne!(built("random-regular n=64,d=5,seed=1"), built("random-regular n=64,d=5,seed=2"));
    for text in
        ["random-regular n=9,d=8", "random-regular n=40,d=37", "random-regular n=2,d=1", "random-regular n=999,d=2"]
    {
        built(text);
    }
    // A circulant of degree 4 on 256 switches is 64 across; a random graph of that degree no more than 9.
    let longest = distances(&built("random-regular n=256,d=4"), SwitchId::new(0)).into_iter().max();
    assert!(longest < Some(10), "{longest:?}");
}

#[test]
fn sizes_are_read_as_the_field_writes_them() {
    assert_eq!(kind("mesh 4 2"), Kind::Mesh(vec![4, 2]));
    assert_eq!(kind("mesh 4X2"), kind("mesh 4×2"));
    assert_eq!(kind("dragonfly h=4 a=8 p=3"), Kind::Dragonfly { p: Some(3), a: 8, h: 4, groups: None });
    assert_eq!(kind("random-regular n=8,d=3"), Kind::RandomRegular { switches: 8, degree: 3, seed: 1 });
    for family in Family::ALL {
        let example = family.example;
        assert!(example.starts_with(family.word), "{example}");
        built(example);
    }
}

#[test]
fn nonsense_is_refused_with_the_way_out() {
    for (text, says) in [
        ("moebius 4", "there are mesh, torus"),
        ("mesh", "for example: mesh 4x4"),
        ("mesh 4x", "for example: mesh 4x4"),
        ("mesh 4x-4", "for example: mesh 4x4"),
        ("mesh +4", "for example: mesh 4x4"),
        ("mesh 4x99999999999999999999999", "for example: mesh 4x4"),
        ("mesh a=4", "for example: mesh 4x4"),
        ("mesh 0x4", "at least 1"),
        ("mesh 1x1x1x1x1x1x1x1x1x1x1x1x1x1x1", "for example: mesh 4x4"),
        ("hypercube 0", "1 to 14 dimensions"),
        ("hypercube 15", "1 to 14 dimensions"),
        ("hypercube 2x2", "for example: hypercube 6"),
        ("hyper-crossbar 4x1", "at least 2"),
        ("fat-tree 3,4,2", "divide"),
        ("fat-tree 0,4,2", "at least 1"),
        ("fat-tree 2,4,99", "1 to 14 levels"),
        ("fat-tree 2,4", "for example: fat-tree 2,4,2"),
        ("fat-tree k=5", "even"),
        ("fat-tree k=4,k=4", "for example: fat-tree k=16"),
        ("clos 4", "for example: clos 4x4"),
        ("clos 0x4", "at least 1"),
        ("dragonfly a=8", "for example: dragonfly a=8,h=4"),
        ("dragonfly a=8,h=4,x=1", "for example: dragonfly a=8,h=4"),
        ("dragonfly a=2,h=1,g=4", "2 to a·h + 1 = 3 groups"),
        ("dragonfly a=2,h=1,g=1", "2 to a·h + 1 = 3 groups"),
        ("random-regular n=5,d=3", "odd"),
        ("random-regular n=5,d=5", "fewer"),
        ("random-regular n=4,d=1", "not connected"),
        ("tree fanout=0,depth=2", "at least 1"),
        ("tree fanout=2", "for example: tree"),
    ] {
        let error = try_kind(text).expect_err(text).to_string();
        assert!(error.contains(says), "{text}: {error}");
    }
}

#[test]
fn absurd_sizes_are_refused_by_arithmetic_alone() {
    let huge = usize::MAX;
    let absurd = [
        Kind::Mesh(vec![huge; 14]),
        Kind::Torus(vec![200, 200]),
        Kind::HyperX(vec![16_384]),
        Kind::HyperCrossbar(vec![huge, huge]),
        Kind::MTree(vec![huge; 3]),
        Kind::FatTree { p: huge, q: huge, r: 14 },
        Kind::KaryFatTree { k: huge - 1 },
        Kind::Clos { leaves: huge, spines: huge },
        Kind::Clos { leaves: 8_000, spines: 8_000 },
        Kind::Dragonfly { p: Some(huge), a: huge, h: huge, groups: None },
        Kind::Dragonfly { p: None, a: huge, h: huge, groups: Some(huge) },
        Kind::RandomRegular { switches: huge - 1, degree: 8, seed: 1 },
        Kind::RandomRegular { switches: 16_384, degree: 16_000, seed: 1 },
        Kind::Tree { fanout: huge, depth: 14 },
    ];
    for kind in absurd {
        let error = generate(&kind, &Options::default()).expect_err("absurd");
        assert!(matches!(error, GenerateError::TooLarge { .. }), "{error}");
    }
    let options = Options { hosts_per_switch: Some(huge), ..Options::default() };
    let error = generate(&kind("mesh 4x4"), &options).expect_err("absurd").to_string();
    assert_eq!(error, "mesh 4x4 has more than a million million hosts; at most 262144 are allowed");
}

#[test]
fn machines_with_several_ports_have_one_on_each_rail() {
    let options = Options { hosts_per_switch: Some(2), nics: Some(2), ..Options::default() };
    let network = generate(&kind("torus 4"), &options).expect("two rails");
    assert_eq!((network.machines().len(), network.hosts().len()), (4, 8));
    let names: Vec<&str> = network.hosts().iter().map(|host| host.name.as_str()).collect();
    assert_eq!(names[..4], ["n0/0", "n0/1", "n1/0", "n1/1"]);
    for (number, machine) in network.machines().iter().enumerate() {
        let at = |host| (network.switch_of(host).index(), network.host(host).rail);
        let first = number / 2 * 2;
        assert!(machine.hosts().map(at).eq([(first, Some(0)), (first + 1, Some(1))]), "{machine:?}");
    }
    for (shape, nics) in [("torus 5", 2), ("torus 4", 3)] {
        let refused = generate(&kind(shape), &Options { nics: Some(nics), ..Options::default() });
        assert!(matches!(refused, Err(GenerateError::NoRails { .. })), "{refused:?}");
    }
}
