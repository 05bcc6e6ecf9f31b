//! What planner and judge both lean on (listed in ARCHITECTURE.md), each against brute force from raw data: one fault here
//! could blind both. Seeds are printed when a test fails.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use fabric::{
    Admin, Assignment, Attachment, ChannelId, Demand, DeviceIntent, Failure, FdbRun, FlowControl, GroupId, HostId,
    HostRun, InBand, LinkId, Mac, PairRun, PathSets, PermutationProof, PlanePairs, Planes, Policy, PortId, PortIntent,
    PortRole, Proof, Rails, Subnet, SwitchId, SwitchOver, SwitchSpec, Topology, TopologyBuilder, Traffic,
    TrafficMatrix, VlanId, VlanPool, VlanSet, Weights, dividing_groups, dividing_links, dividing_switches,
    permutation_demand, permutations, rng::Rng,
};

const SEEDS: std::ops::Range<u64> = 0..60;

fn vlan(id: usize) -> VlanId {
    VlanId::new(id as u16).expect("valid")
}

fn host(index: usize) -> HostId {
    HostId::new(index)
}

/// A connected fabric of up to eight switches with parallel links of several rates, hosts and unused ports.
fn random_fabric(rng: &mut Rng) -> Topology {
    let mut builder = TopologyBuilder::new();
    let count = 1 + rng.below(8);
    let switches: Vec<SwitchId> = (0..count)
        .map(|index| builder.add_switch(&format!("s{index}"), SwitchSpec::default()).expect("a fresh name"))
        .collect();
    let mut used = vec![0; count];
    let mut free = |builder: &mut TopologyBuilder, switch: usize| {
        used[switch] += 1;
        builder.add_port(switches[switch], &format!("p{}", used[switch])).expect("a fresh port")
    };
    let rates = [100_000_000, 1_000_000_000, 10_000_000_000];
    let tree = (1..count).map(|index| (index, rng.below(index))).collect::<Vec<_>>();
    let more = (0..rng.below(6)).map(|_| (rng.below(count), rng.below(count))).collect::<Vec<_>>();
    for (a, b) in tree.into_iter().chain(more).filter(|(a, b)| a != b) {
        let (a, b) = (free(&mut builder, a), free(&mut builder, b));
        builder.add_link(a, b, rates[rng.below(3)]).expect("two free ports");
    }
    for number in 0..rng.below(10) {
        let port = free(&mut builder, rng.below(count));
        let mac = Mac::local(number as u32 + 1);
        let name = if number % 3 == 0 { format!("h{number}") } else { format!("m{}/{number}", number / 3) };
        // Every other machine of two ports is a failover bond.
        if number % 6 == 5 {
            let host = builder.add_standby(&name, port, rates[rng.below(3)]).expect("a free port");
            if rng.below(2) == 0 {
                builder.set_active(host);
            }
            continue;
        }
        let host = builder.add_host(&name, mac, port, rates[rng.below(3)], None).expect("a free port");
        if number % 3 > 0 {
            builder.join_machine(&format!("m{}", number / 3)).expect("one after another");
        }
        if rng.below(3) > 0 {
            builder.set_rail(host, rng.below(2) as u8);
            builder.set_weight(host, rng.below(4) as u8);
        }
        for further in 0..rng.below(3) {
            builder.add_mac(host, Mac::local(1000 + 10 * number as u32 + further as u32)).expect("a fresh address");
        }
    }
    for _ in 0..rng.below(4) {
        free(&mut builder, rng.below(count));
    }
    builder.finish().expect("it is connected")
}

/// Ports with nothing plugged in become those of standby edges, the controller and the return of a switch at random; they are told
/// apart from free ports and from hosts'.
#[test]
fn the_ports_of_standby_edges_are_known() {
    let (mut standby, mut returns) = (0, 0);
    for seed in SEEDS {
        let mut rng = Rng::new(seed);
        let plain = random_fabric(&mut rng);
        let mut builder = TopologyBuilder::of(&plain);
        let mut expected: BTreeMap<(SwitchId, String), String> = BTreeMap::new();
        for (at, port) in plain.ports().iter().enumerate().filter(|(_, port)| port.attachment == Attachment::Nothing) {
            if rng.below(2) == 0 {
                let name = format!("edge{at}");
                builder.add_standby_edge(&name, PortId::new(at), 1_000_000_000).expect("nothing is plugged in");
                expected.insert((port.switch, port.name.clone()), name);
            }
        }
        // Management over data ports takes two more, of those that are left.
        let kept = |builder: &TopologyBuilder| {
            (plain.ports().iter().enumerate().map(|(at, port)| (PortId::new(at), port)))
                .filter(|(_, port)| port.attachment == Attachment::Nothing)
                .filter(|(_, port)| !expected.contains_key(&(port.switch, port.name.clone())))
                .filter(|(id, _)| builder.clone().add_return_port(*id).is_ok())
                .map(|(id, port)| (id, (port.switch, port.name.clone())))
                .next()
        };
        let mut roles: BTreeMap<(SwitchId, String), PortRole> = BTreeMap::new();
        if let Some((controller, place)) = kept(&builder) {
            builder.set_in_band(InBand { vlan: VlanId::MIN, controller }).expect("a free port");
            roles.insert(place, PortRole::Controller);
            if let Some((port, place)) = kept(&builder) {
                builder.add_return_port(port).expect("a free port");
                roles.insert(place, PortRole::Return);
                returns += 1;
            }
        }
        let topology = builder.finish().expect("as connected as before");
        for (at, port) in topology.ports().iter().enumerate() {
            let place = (port.switch, port.name.clone());
            let (id, name) = (PortId::new(at), expected.get(&place));
            assert_eq!(topology.standby_edge_at(id).map(|edge| &edge.name), name, "seed {seed}: {port:?}");
            let role = roles.get(&place).copied();
            assert_eq!(topology.role_without_cable(id), role.unwrap_or(PortRole::Unused), "seed {seed}: {port:?}");
            assert_eq!(topology.return_ports().contains(&id), role == Some(PortRole::Return), "seed {seed}: {port:?}");
            let is_free = port.attachment == Attachment::Nothing && name.is_none() && role.is_none();
            assert_eq!(topology.is_free(id), is_free, "seed {seed}: {port:?}");
        }
        assert_eq!(topology.standby_edges().len(), expected.len(), "seed {seed}");
        assert_eq!((topology.hosts(), topology.edge()), (plain.hosts(), None), "seed {seed}");
        standby += expected.len();
    }
    assert!(standby > 30 && returns > 10, "{standby} standby edges, {returns} return ports");
}

#[test]
fn a_topology_says_of_channels_what_its_links_say() {
    for seed in SEEDS {
        let topology = random_fabric(&mut Rng::new(seed));
        let at = |port: PortId| topology.ports()[port.index()].switch;
        assert_eq!(topology.channel_count(), 2 * topology.links().len(), "seed {seed}");
        let mut leaving: BTreeMap<SwitchId, BTreeSet<ChannelId>> = BTreeMap::new();
        let fastest = topology.links().iter().map(|link| link.rate_bps).max().unwrap_or(1);
        for (index, link) in topology.links().iter().enumerate() {
            let id = LinkId::new(index);
            for (channel, from, to) in
                [(ChannelId::forward(id), link.a, link.b), (ChannelId::backward(id), link.b, link.a)]
            {
                assert_eq!((topology.tail_port(channel), topology.head_port(channel)), (from, to), "seed {seed}");
                assert_eq!((topology.tail(channel), topology.head(channel)), (at(from), at(to)), "seed {seed}");
                assert_eq!((channel.link(), channel.reverse().reverse()), (id, channel), "seed {seed}");
                assert_eq!(topology.tail(channel.reverse()), at(to), "seed {seed}");
                assert_ne!(channel, channel.reverse());
                let slowness = fastest as f64 / link.rate_bps as f64;
                assert!((topology.slowness(channel) - slowness).abs() < 1e-9 * slowness, "seed {seed}");
                leaving.entry(at(from)).or_default().insert(channel);
                assert_eq!(topology.ports()[from.index()].attachment, Attachment::Link(id), "seed {seed}");
            }
        }
        for switch in (0..topology.switches().len()).map(SwitchId::new) {
            let listed: Vec<ChannelId> = topology.channels_from(switch).to_vec();
            let set: BTreeSet<ChannelId> = listed.iter().copied().collect();
            assert_eq!((set.len(), set), (listed.len(), leaving.remove(&switch).unwrap_or_default()), "seed {seed}");
        }
    }
}

#[test]
fn a_topology_says_of_ports_and_hosts_what_its_lists_say() {
    for seed in SEEDS {
        let topology = random_fabric(&mut Rng::new(seed));
        for switch in (0..topology.switches().len()).map(SwitchId::new) {
            let ports: Vec<usize> =
                (0..topology.ports().len()).filter(|port| topology.ports()[*port].switch == switch).collect();
            assert_eq!(topology.switch_ports(switch).collect::<Vec<_>>(), ports, "seed {seed}");
            assert_eq!(topology.port_ids(switch).map(PortId::index).collect::<Vec<_>>(), ports, "seed {seed}");
            let at = |host: &HostId| topology.ports()[topology.hosts()[host.index()].port.index()].switch == switch;
            let hosts: Vec<HostId> = (0..topology.hosts().len()).map(HostId::new).filter(at).collect();
            assert_eq!(topology.hosts_of(switch), hosts, "seed {seed}");
            assert!(hosts.iter().all(|host| topology.switch_of(*host) == switch), "seed {seed}");
        }
        for (index, known) in topology.hosts().iter().enumerate() {
            assert_eq!(topology.ports()[known.port.index()].attachment, Attachment::Host(host(index)), "seed {seed}");
        }
    }
}

/// Whether switches with hosts are on both sides of a link, by a search that does not use it.
fn divides(topology: &Topology, without: usize) -> bool {
    let at = |port: PortId| topology.ports()[port.index()].switch;
    let mut side = BTreeSet::from([at(topology.links()[without].a)]);
    loop {
        let before = side.len();
        for (_, link) in topology.links().iter().enumerate().filter(|(index, _)| *index != without) {
            let (a, b) = (at(link.a), at(link.b));
            if side.contains(&a) || side.contains(&b) {
                side.extend([a, b]);
            }
        }
        if side.len() == before {
            break;
        }
    }
    let here = topology.hosts().iter().filter(|host| side.contains(&at(host.port))).count();
    (1..topology.hosts().len()).contains(&here)
}

/// Whether hosts on other switches than one are in two pieces without it, by merging the ends of links until nothing changes.
fn divides_without(topology: &Topology, dead: usize) -> bool {
    let at = |port: PortId| topology.ports()[port.index()].switch.index();
    let mut piece: Vec<usize> = (0..topology.switches().len()).collect();
    while let Some((a, b)) = (topology.links().iter().map(|link| (at(link.a), at(link.b))))
        .find(|(a, b)| *a != dead && *b != dead && piece[*a] != piece[*b])
    {
        let (from, to) = (piece[a], piece[b]);
        piece.iter_mut().filter(|piece| **piece == from).for_each(|piece| *piece = to);
    }
    let lived_in = topology.hosts().iter().map(|host| at(host.port)).filter(|switch| *switch != dead);
    lived_in.map(|switch| piece[switch]).collect::<BTreeSet<usize>>().len() > 1
}

#[test]
fn switches_divide_if_hosts_of_others_are_in_pieces_without_them() {
    let mut dividing = 0;
    for seed in SEEDS {
        let topology = random_fabric(&mut Rng::new(seed));
        let expect: Vec<SwitchId> = (0..topology.switches().len())
            .filter(|switch| divides_without(&topology, *switch))
            .map(SwitchId::new)
            .collect();
        assert_eq!(dividing_switches(&topology), expect, "seed {seed}");
        dividing += expect.len();
    }
    assert!(dividing > 30, "{dividing}");
}

#[test]
fn a_failure_takes_its_links_and_blocks_what_goes_on_through_it() {
    for seed in SEEDS {
        let topology = random_fabric(&mut Rng::new(seed));
        let at = |port: PortId| topology.ports()[port.index()].switch;
        let ends: Vec<(SwitchId, SwitchId)> = topology.links().iter().map(|link| (at(link.a), at(link.b))).collect();
        for failure in (0..ends.len()).map(|link| Failure::Link(LinkId::new(link))) {
            let Failure::Link(link) = failure else { unreachable!("made above") };
            assert_eq!(failure.links(&topology), [link], "seed {seed}");
            for channel in topology.channel_ids() {
                assert_eq!(failure.blocks(&topology, channel), channel.index() / 2 == link.index(), "seed {seed}");
            }
            assert!(topology.switch_ids().all(|switch| !failure.takes(&topology, switch)));
        }
        for dead in (0..topology.switches().len()).map(SwitchId::new) {
            let failure = Failure::Switch(dead);
            let own: Vec<LinkId> = (0..ends.len())
                .filter(|link| ends[*link].0 == dead || ends[*link].1 == dead)
                .map(LinkId::new)
                .collect();
            assert_eq!(failure.links(&topology), own, "seed {seed}");
            for (link, (a, b)) in ends.iter().enumerate() {
                let blocked = [2 * link, 2 * link + 1].map(|index| failure.blocks(&topology, ChannelId::new(index)));
                // The channel of an even number leaves the link's first end.
                assert_eq!(blocked, [*a == dead, *b == dead], "seed {seed}");
            }
            assert!(topology.switch_ids().all(|switch| failure.takes(&topology, switch) == (switch == dead)));
        }
    }
}

/// The same cabling with up to four groups of any switches and links.
fn with_random_groups(topology: &Topology, rng: &mut Rng) -> Topology {
    let mut builder = TopologyBuilder::of(topology);
    for number in 0..rng.below(5) {
        let switches: Vec<SwitchId> = topology.switch_ids().filter(|_| rng.below(4) == 0).collect();
        let links: Vec<LinkId> = topology.link_ids().filter(|_| rng.below(5) == 0).collect();
        if !switches.is_empty() || !links.is_empty() {
            builder.add_group(&format!("g{number}"), &switches, &links).expect("a fresh name and members");
        }
    }
    builder.finish().expect("as connected as before")
}

/// By merging the ends of links without a member at them, until nothing changes: `piece[switch]`.
fn pieces_without(topology: &Topology, group: GroupId) -> Vec<usize> {
    let at = |port: PortId| topology.ports()[port.index()].switch;
    let known = &topology.groups()[group.index()];
    let mut piece: Vec<usize> = (0..topology.switches().len()).collect();
    let carrying = topology.links().iter().enumerate().filter(|(number, link)| {
        let is_member = known.links.contains(&LinkId::new(*number));
        !is_member && !known.switches.contains(&at(link.a)) && !known.switches.contains(&at(link.b))
    });
    let carrying: Vec<(usize, usize)> = carrying.map(|(_, link)| (at(link.a).index(), at(link.b).index())).collect();
    while let Some((a, b)) = carrying.iter().find(|(a, b)| piece[*a] != piece[*b]) {
        let (from, to) = (piece[*a], piece[*b]);
        piece.iter_mut().filter(|piece| **piece == from).for_each(|piece| *piece = to);
    }
    piece
}

#[test]
fn groups_divide_if_hosts_elsewhere_are_in_pieces_without_them() {
    let (mut dividing, mut covered) = (0, 0);
    for seed in SEEDS {
        let mut rng = Rng::new(seed);
        let topology = with_random_groups(&random_fabric(&mut rng), &mut rng);
        let groups: Vec<GroupId> = (0..topology.groups().len()).map(GroupId::new).collect();
        let divides = |group: &GroupId| {
            let piece = pieces_without(&topology, *group);
            let members = &topology.groups()[group.index()].switches;
            let lived_in = topology.hosts().iter().map(|host| topology.ports()[host.port.index()].switch);
            let left = lived_in.filter(|switch| !members.contains(switch));
            left.map(|switch| piece[switch.index()]).collect::<BTreeSet<usize>>().len() > 1
        };
        let expect: Vec<GroupId> = groups.iter().copied().filter(divides).collect();
        assert_eq!(dividing_groups(&topology), expect, "seed {seed}");
        dividing += expect.len();
        covered += groups.len() - expect.len();
    }
    assert!(dividing > 20 && covered > 20, "{dividing}, {covered}");
}

#[test]
fn a_group_fails_with_the_links_of_its_switches_and_blocks_what_goes_on_through_a_member() {
    let mut groups = 0;
    for seed in SEEDS {
        let mut rng = Rng::new(seed);
        let topology = with_random_groups(&random_fabric(&mut rng), &mut rng);
        let at = |port: PortId| topology.ports()[port.index()].switch;
        for (number, group) in topology.groups().iter().enumerate() {
            let failure = Failure::Group(GroupId::new(number));
            assert_eq!(failure.label(&topology), group.name);
            assert_eq!(topology.find_group(&group.name), Some(GroupId::new(number)));
            let mut own = Vec::new();
            for (number, link) in topology.links().iter().enumerate() {
                let id = LinkId::new(number);
                let ends = [at(link.a), at(link.b)];
                let dead = ends.map(|end| group.switches.contains(&end));
                let is_member = group.links.contains(&id);
                if is_member || dead.contains(&true) {
                    own.push(id);
                }
                // The channel of an even number leaves the link's first end. What goes to a dead switch ends there in any case.
                let expect = [!dead[1] && (is_member || dead[0]), !dead[0] && (is_member || dead[1])];
                let blocked = [2 * number, 2 * number + 1];
                assert_eq!(blocked.map(|at| failure.blocks(&topology, ChannelId::new(at))), expect, "seed {seed}");
            }
            assert_eq!(failure.links(&topology), own, "seed {seed}");
            let is_outer = |link: &LinkId| {
                let link = topology.links()[link.index()];
                [link.a, link.b].iter().any(|end| !group.switches.contains(&at(*end)))
            };
            own.retain(is_outer);
            assert_eq!(failure.outer_links(&topology), own, "seed {seed}");
            let takes = |switch: SwitchId| failure.takes(&topology, switch) == group.switches.contains(&switch);
            assert!(topology.switch_ids().all(takes), "seed {seed}");
            groups += 1;
        }
    }
    assert!(groups > 60, "{groups}");
}

#[test]
fn links_divide_if_a_search_without_them_misses_hosts() {
    let mut dividing = 0;
    for seed in SEEDS {
        let topology = random_fabric(&mut Rng::new(seed));
        let expect: Vec<LinkId> =
            (0..topology.links().len()).filter(|link| divides(&topology, *link)).map(LinkId::new).collect();
        assert_eq!(dividing_links(&topology), expect, "seed {seed}");
        dividing += expect.len();
    }
    assert!(dividing > 30, "{dividing}");
}

#[test]
fn a_vlan_set_is_a_set() {
    for seed in SEEDS {
        let mut rng = Rng::new(seed);
        let (mut set, mut model) = (VlanSet::new(), BTreeSet::new());
        for _ in 0..300 {
            // Near each other and at both ends of the range, so that runs meet and words are crossed.
            let id = vlan([1 + rng.below(70), 4030 + rng.below(65)][rng.below(2)]);
            match rng.below(3) {
                0 | 1 => assert_eq!(set.insert(id), model.insert(id), "seed {seed}"),
                _ => assert_eq!(set.remove(id), model.remove(&id), "seed {seed}"),
            }
            assert_eq!(set.contains(id), model.contains(&id), "seed {seed}");
        }
        assert!(set.iter().eq(model.iter().copied()), "seed {seed}");
        assert_eq!((set.len(), set.is_empty()), (model.len(), model.is_empty()), "seed {seed}");
        let spelled: Vec<VlanId> =
            set.runs().into_iter().flat_map(|(a, b)| (a.get()..=b.get()).map(|id| vlan(id.into()))).collect();
        assert!(spelled.iter().eq(model.iter()), "seed {seed}");
        assert!(set.runs().windows(2).all(|pair| pair[0].1.get() + 1 < pair[1].0.get()), "seed {seed}");
        assert_eq!(set.to_string().parse(), Ok(set.clone()), "seed {seed}");
        assert_eq!(model.iter().rev().copied().collect::<VlanSet>(), set, "seed {seed}");
        let pool = VlanPool { first: vlan(5), last: vlan(4050), reserved: set };
        for id in (1..=4094).map(vlan) {
            let inside = (5..=4050).contains(&id.get()) && !model.contains(&id);
            assert_eq!(pool.contains(id), inside, "seed {seed}, VLAN {id}");
        }
        assert!(pool.iter().eq((1..=4094).map(vlan).filter(|id| pool.contains(*id))), "seed {seed}");
    }
}

/// By pair: `table[source][destination]`, and an assignment of consecutive runs that says the same.
fn random_pairs(rng: &mut Rng, hosts: usize) -> (Vec<Vec<VlanId>>, Vec<VlanId>, Assignment<VlanId>) {
    let table: Vec<Vec<VlanId>> = (0..hosts).map(|_| (0..hosts).map(|_| vlan(2 + rng.below(2))).collect()).collect();
    let broadcast: Vec<VlanId> = (0..hosts).map(|_| vlan(2 + rng.below(4))).collect();
    let unicast = table.iter().map(|row| {
        let mut runs: Vec<HostRun<VlanId>> = Vec::new();
        for (to, &choice) in row.iter().enumerate() {
            match runs.last_mut().filter(|run| run.choice == choice) {
                Some(run) => run.last = host(to),
                None => runs.push(HostRun { first: host(to), last: host(to), choice }),
            }
        }
        Arc::new(runs)
    });
    let assignment = Assignment::Pair { unicast: unicast.collect(), broadcast: broadcast.clone() };
    (table, broadcast, assignment)
}

#[test]
fn assignments_say_what_their_tables_say_before_and_after_a_switch_over() {
    for seed in SEEDS {
        let mut rng = Rng::new(seed);
        let hosts = 2 + rng.below(7);
        let choice: Vec<VlanId> = (0..hosts).map(|_| vlan(2 + rng.below(4))).collect();
        let priority: Vec<u32> = (0..hosts).map(|_| rng.below(3) as u32).collect();
        let (mut table, mut broadcast, by_pair) = random_pairs(&mut rng, hosts);
        let moved = HostRun { first: host(rng.below(2)), last: host(1), choice: vlan(9) };
        let moves = |at: usize| (moved.first.index()..=1).contains(&at);
        let run = HostRun { first: host(0), last: host(rng.below(hosts)), choice: vlan(8) };
        let source = host(rng.below(hosts));
        let (failure, proof) = (Failure::Link(LinkId::new(0)), Proof::Unneeded);
        let over = SwitchOver { failure, hosts: vec![moved], pairs: vec![PairRun { source, run }], proof };
        let alone = SwitchOver { pairs: Vec::new(), ..over.clone() };
        let after: Vec<VlanId> = (0..hosts).map(|at| if moves(at) { vlan(9) } else { choice[at] }).collect();
        for a in 0..hosts {
            for b in (0..hosts).filter(|b| *b != a) {
                let say = |assignment: &Assignment<VlanId>| {
                    let doubled = assignment.map(|vlan| u32::from(vlan.get()) * 2).unicast(host(a), host(b));
                    let said = assignment.unicast(host(a), host(b));
                    assert_eq!(doubled, u32::from(said.get()) * 2, "seed {seed}");
                    said
                };
                for (own, over) in [(&choice, None), (&after, Some(&alone))] {
                    let of = |assignment: Assignment<VlanId>| {
                        say(&over.map_or(assignment.clone(), |over| over.apply(&assignment)))
                    };
                    assert_eq!(of(Assignment::Source(choice.clone())), own[a], "seed {seed}");
                    let by_destination = Assignment::Destination { choice: choice.clone(), broadcast: choice.clone() };
                    assert_eq!(of(by_destination), own[b], "seed {seed}");
                    let higher = if priority[b] > priority[a] { b } else { a };
                    let by_priority = Assignment::Priority {
                        choice: choice.clone(),
                        priority: priority.clone(),
                        broadcast: choice.clone(),
                    };
                    assert_eq!(of(by_priority), own[higher], "seed {seed}");
                }
                assert_eq!(say(&by_pair), table[a][b], "seed {seed}");
            }
        }
        let switched = over.apply(&by_pair);
        assert!((0..hosts).map(|at| by_pair.broadcast(host(at))).eq(broadcast.iter().copied()), "seed {seed}");
        table[source.index()][..=run.last.index()].fill(vlan(8));
        (moved.first.index()..=1).for_each(|at| broadcast[at] = vlan(9));
        for a in 0..hosts {
            assert_eq!(switched.broadcast(host(a)), broadcast[a], "seed {seed}");
            for b in (0..hosts).filter(|b| *b != a) {
                assert_eq!(switched.unicast(host(a), host(b)), table[a][b], "seed {seed}");
            }
        }
    }
}

#[test]
fn a_traffic_matrix_says_what_was_put_in() {
    for seed in SEEDS {
        let mut rng = Rng::new(seed);
        let hosts = 1 + rng.below(7);
        let mut table = vec![vec![0.0; hosts]; hosts];
        for _ in 0..rng.below(20) {
            let (a, b) = (rng.below(hosts), rng.below(hosts));
            if a != b {
                table[a][b] = 1.0 + rng.below(9) as f64;
            }
        }
        let pairs = (0..hosts).flat_map(|a| (0..hosts).map(move |b| (a, b)));
        let mut demands: Vec<Demand> = (pairs.clone().filter(|&(a, b)| table[a][b] > 0.0))
            .map(|(a, b)| Demand { source: host(a), destination: host(b), amount: table[a][b] })
            .collect();
        rng.shuffle(&mut demands);
        let traffic = Traffic::Matrix(TrafficMatrix::new(hosts, demands).expect("sound demands"));
        for (a, b) in pairs.filter(|(a, b)| a != b) {
            assert!((traffic.demand(host(a), host(b)) - table[a][b]).abs() < 1e-12, "seed {seed}");
            assert!((Traffic::AllToAll.demand(host(a), host(b)) - 1.0).abs() < 1e-12);
        }
        assert!(traffic.fits(hosts) && !traffic.fits(hosts + 1), "seed {seed}");
    }
}

#[test]
fn an_intent_says_of_itself_what_its_fields_say() {
    for seed in SEEDS {
        let mut rng = Rng::new(seed);
        let mut device = DeviceIntent::blank(SwitchId::new(0));
        let mut vlans = BTreeSet::new();
        for port in 0..rng.below(5) {
            let mut intent = PortIntent { admin: Admin::Up, ..PortIntent::unused(PortId::new(port)) };
            for _ in 0..rng.below(5) {
                let id = vlan(2 + rng.below(9));
                let set = if rng.below(2) == 0 { &mut intent.tagged } else { &mut intent.untagged };
                set.insert(id);
                vlans.insert(id);
            }
            for id in (1..20).map(vlan) {
                let member = intent.tagged.iter().chain(intent.untagged.iter()).any(|own| own == id);
                assert_eq!(intent.is_member(id), member, "seed {seed}");
            }
            device.ports.push(intent);
        }
        assert!(device.vlans().iter().eq(vlans.iter().copied()), "seed {seed}");
        device.classes = (0..3).map(|_| VlanSet::new()).collect();
        for &id in &vlans {
            let class = rng.below(4);
            if let Some(class) = device.classes.get_mut(class) {
                class.insert(id);
            }
            assert_eq!(device.class_of(id), (class < 3).then_some(class), "seed {seed}");
        }
        let topology = random_fabric(&mut rng);
        let mut next = 0;
        while next + 2 < topology.hosts().len() {
            let (first, last) = (host(next + rng.below(2)), host(next + 1 + rng.below(2)));
            device.fdb.push(FdbRun { vlan: vlan(2), first, last, port: PortId::new(0) });
            next += 4;
        }
        let hosts = device.fdb.iter().flat_map(|run| run.first.index()..=run.last.index());
        let macs: Vec<Mac> = hosts.flat_map(|at| topology.hosts()[at].macs().collect::<Vec<_>>()).collect();
        assert_eq!(device.fdb_len(&topology), macs.len(), "seed {seed}");
        // Addresses that are learned take the place of those that may be.
        let (mut learned, mut left) = (BTreeMap::new(), 0);
        for at in topology.learning_hosts() {
            let most = topology.host(at).learned_max.expect("it learns");
            let some = rng.below(most + 1);
            (0..some).for_each(|n| _ = learned.insert(Mac::new([6, 1, 0, 0, at.index() as u8, n as u8]), at));
            let own = device.fdb.iter().filter(|run| run.first <= at && at <= run.last).count();
            left += own * most;
        }
        let later = topology.with_learned(&learned);
        assert_eq!(later.hosts_by_mac().len(), topology.hosts_by_mac().len() + learned.len(), "seed {seed}");
        assert!(learned.iter().all(|(mac, at)| later.hosts_by_mac()[mac] == *at), "seed {seed}");
        assert_eq!(device.fdb_room(&topology), macs.len() + left, "seed {seed}");
        assert_eq!(device.fdb_room(&later), macs.len() + left, "seed {seed}");
        let entries = device.fdb_entries(&later).filter(|entry| learned.contains_key(&entry.mac)).count();
        assert_eq!(device.fdb_len(&later), macs.len() + entries, "seed {seed}");
        assert!(device.fdb_entries(&topology).map(|entry| entry.mac).eq(macs), "seed {seed}");
    }
}

#[test]
fn the_demand_of_all_to_all_is_between_machines_by_weight_and_within_rails_if_asked() {
    for seed in SEEDS {
        let topology = random_fabric(&mut Rng::new(seed));
        for machine in topology.machines() {
            assert!(
                machine.hosts().all(|host| topology.machine(topology.host(host).machine) == machine),
                "seed {seed}"
            );
        }
        let owners = topology.hosts_by_mac();
        let macs = |host: &fabric::Host| std::iter::once(host.mac).chain(host.further_macs.clone()).collect::<Vec<_>>();
        let active = || topology.host_ids().zip(topology.hosts()).filter(|(_, host)| !host.standby);
        assert_eq!(owners.len(), active().map(|(_, host)| macs(host).len()).sum::<usize>(), "seed {seed}");
        for (id, host) in active() {
            assert!(macs(host).iter().all(|mac| owners[mac] == id), "seed {seed}: {}", host.name);
        }
        for (id, host) in topology.host_ids().zip(topology.hosts()) {
            let bond: Vec<HostId> = topology.host_ids().filter(|other| topology.host(*other).mac == host.mac).collect();
            let active = bond.iter().copied().filter(|port| !topology.host(*port).standby).collect::<Vec<_>>();
            assert_eq!(active, [topology.active_port(id)], "seed {seed}: one port of {} is active", host.name);
            let standby: Vec<HostId> = bond.iter().copied().filter(|port| *port != active[0]).collect();
            let listed: Vec<HostId> = topology.standby_ports(id).collect();
            assert_eq!(listed, if host.standby { Vec::new() } else { standby.clone() }, "seed {seed}: {}", host.name);
            assert_eq!(topology.is_in_bond(host), bond.len() > 1, "seed {seed}: {}", host.name);
            let changed = topology.with_active(id);
            assert_eq!(changed.active_port(active[0]), if bond.len() > 1 { id } else { active[0] }, "seed {seed}");
            assert_eq!(changed.with_active(active[0]), topology, "seed {seed}: and back");
        }
        let of_machines: usize = topology.machines().iter().map(|machine| machine.hosts().count()).sum();
        assert_eq!(of_machines, topology.hosts().len(), "seed {seed}");
        let slowest = active().map(|(_, host)| host.rate_bps).min().unwrap_or(1);
        for (rails, weights) in
            Rails::ALL.iter().flat_map(|rails| Weights::ALL.iter().map(|weights| (*rails, *weights)))
        {
            let policy = Policy { rails, weights, ..Policy::default() };
            let weight = |host: &fabric::Host| {
                let by_rate = if weights == Weights::Rate { host.rate_bps as f64 / slowest as f64 } else { 1.0 };
                by_rate * f64::from(host.weight)
            };
            let demand = policy.demand(&topology).expect("a small network");
            for (source, a) in topology.host_ids().zip(topology.hosts()) {
                for (destination, b) in topology.host_ids().zip(topology.hosts()) {
                    let machine = |name: &str| name.split('/').next().unwrap_or_default().to_owned();
                    let apart = machine(&a.name) != machine(&b.name) && !a.standby && !b.standby;
                    let same_rail = a.rail.zip(b.rail).is_none_or(|(a, b)| a == b);
                    let exchange = apart && (same_rail || rails == Rails::Across);
                    let expected = if exchange { weight(a) * weight(b) } else { 0.0 };
                    assert_eq!(demand.demand(source, destination), expected, "seed {seed}: {} to {}", a.name, b.name);
                }
            }
        }
    }
}

#[test]
fn stations_are_the_addresses_of_their_subnet_in_order() {
    let subnet: Subnet = "10.1.2.0/28".parse().expect("a subnet");
    let listed: Vec<String> = (0..20).filter_map(|number| subnet.station(number)).map(|a| a.to_string()).collect();
    let expect: Vec<String> = (1..15).map(|last| format!("10.1.2.{last}")).collect();
    assert_eq!(listed, expect);
    let lanes =
        [FlowControl::None, FlowControl::Pause, FlowControl::Pfc(1), FlowControl::Pfc(8)].map(FlowControl::lanes);
    assert_eq!(lanes, [None, Some(1), Some(1), Some(8)]);
}

/// Planes by definition: switches of one plane reach each other over links in service between switches of it; two machines with two
/// ports each have paths apart if they meet so in two planes.
#[test]
fn planes_link_machines_as_their_switches_reach_each_other() {
    let mut disjoint = 0;
    for seed in 0..10 * SEEDS.end {
        let mut rng = Rng::new(seed);
        let topology = random_fabric(&mut rng);
        let count = topology.switches().len();
        let planes = Planes::new((0..count).map(|_| rng.below(2) as u8).collect());
        let drained: BTreeSet<LinkId> = topology.link_ids().filter(|_| rng.below(5) == 0).collect();
        let mut reach: Vec<Vec<bool>> = (0..count).map(|a| (0..count).map(|b| a == b).collect()).collect();
        for link in topology.link_ids().filter(|link| !drained.contains(link)) {
            let ends = [topology.link(link).a, topology.link(link).b].map(|port| topology.port(port).switch);
            if planes.of(ends[0]) == planes.of(ends[1]) {
                reach[ends[0].index()][ends[1].index()] = true;
                reach[ends[1].index()][ends[0].index()] = true;
            }
        }
        for via in 0..count {
            for a in 0..count {
                for b in 0..count {
                    reach[a][b] |= reach[a][via] && reach[via][b];
                }
            }
        }
        let parts = planes.parts(&topology, &drained);
        for (a, b) in topology.switch_ids().flat_map(|a| topology.switch_ids().map(move |b| (a, b))) {
            let same = parts.by_switch()[a.index()] == parts.by_switch()[b.index()];
            assert_eq!(same, reach[a.index()][b.index()], "seed {seed}: {a:?} and {b:?}");
        }
        let active = |machine| -> Vec<SwitchId> {
            let hosts = topology.machine(machine).hosts().filter(|host| !topology.host(*host).standby);
            hosts.map(|host| topology.switch_of(host)).collect()
        };
        let mut expected = (0, 0);
        for (a, b) in topology.machine_ids().flat_map(|a| topology.machine_ids().map(move |b| (a, b))) {
            let (ours, theirs) = (active(a), active(b));
            if a >= b || ours.len() < 2 || theirs.len() < 2 {
                continue;
            }
            let meets = |plane: u8| {
                let pairs = ours.iter().flat_map(|a| theirs.iter().map(move |b| (a, b)));
                let mut here = pairs.filter(|(a, b)| planes.of(**a) == plane && planes.of(**b) == plane);
                here.any(|(a, b)| reach[a.index()][b.index()])
            };
            let met = (0..2).filter(|plane| meets(*plane)).count();
            assert_eq!(parts.links(&topology, a, b).len(), met, "seed {seed}: {a:?} and {b:?}");
            expected = (expected.0 + 1, expected.1 + u64::from(met == 2));
        }
        let PlanePairs { all, disjoint: found, example } = parts.pairs(&topology);
        assert_eq!((all, found), expected, "seed {seed}");
        assert_eq!(example.is_some(), all > found, "seed {seed}");
        disjoint += found;
    }
    assert!(disjoint > 0);
}

/// Path sets by the table that they were made from; permutations by counting who receives.
#[test]
fn path_sets_name_what_they_were_told_and_permutations_are_some() {
    for seed in SEEDS {
        let mut rng = Rng::new(seed);
        let topology = random_fabric(&mut rng);
        let hosts = topology.hosts().len();
        let some = |rng: &mut Rng| (2..6).filter(|_| rng.below(2) == 0).map(vlan).collect::<Vec<VlanId>>();
        let table: Vec<Vec<Vec<VlanId>>> = (0..hosts).map(|_| (0..hosts).map(|_| some(&mut rng)).collect()).collect();
        let sets =
            PathSets::new(hosts, PermutationProof::default(), |from, to| table[from.index()][to.index()].clone());
        let permutations = permutations(&topology);
        assert_eq!(permutations.len(), 21);
        for (from, to) in (0..hosts).flat_map(|from| (0..hosts).map(move |to| (from, to))) {
            assert_eq!(sets.of(host(from), host(to)), table[from][to], "seed {seed}");
        }
        let fastest = topology.links().iter().map(|link| link.rate_bps).max().unwrap_or(1) as f64;
        for receiver in &permutations {
            let received: BTreeSet<HostId> = receiver.iter().copied().collect();
            assert_eq!(received.len(), hosts, "seed {seed}: somebody receives twice");
            let demand = permutation_demand(&topology, receiver).expect("a matrix");
            for (from, to) in (0..hosts).flat_map(|from| (0..hosts).map(move |to| (from, to))) {
                let rate = |index: usize| topology.host(host(index)).rate_bps as f64;
                let is_silent = |index: usize| topology.host(host(index)).standby || topology.host(host(index)).edge;
                let sends = from != to
                    && !is_silent(from)
                    && !is_silent(to)
                    && receiver[from] == host(to)
                    && topology.host(host(from)).machine != topology.host(host(to)).machine;
                let expected = if sends { rate(from).min(rate(to)) / fastest } else { 0.0 };
                assert!((demand.demand(host(from), host(to)) - expected).abs() < 1e-12, "seed {seed}");
            }
        }
        // The transpose swaps rows and columns, so it undoes itself.
        for from in 0..hosts {
            assert_eq!(permutations[0][permutations[0][from].index()], host(from), "seed {seed}");
        }
    }
}
