//! Traffic matrices and uneven speeds: plans are right under the judge, loads are what routes walked anew say, and the
//! bound is below every load and near to the optimum of an exact linear program.

use std::collections::BTreeMap;

use fabric::{
    ChannelId, Demand, EngineName, FlowControl, HostId, Mac, Plan, Policy, Severity, SwitchId, SwitchSpec, Tagging,
    Topology, TopologyBuilder, Traffic, TrafficMatrix,
    generate::{Kind, Options, generate},
    rng::Rng,
};
use planner::{PlanError, StepLimit, plan, plan_with};
use proptest::prelude::*;

const RATES_BPS: [u64; 4] = [100_000_000, 1_000_000_000, 2_500_000_000, 10_000_000_000];

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, ..ProptestConfig::default() })]

    /// In every mode, on any cabling and for any matrix, plans pass the judge, and say what routes walked anew say.
    #[test]
    fn any_matrix_is_planned_for(
        switches in 1_usize..14,
        extra in 0_usize..24,
        seed in any::<u64>(),
        tagging in prop::sample::select(Tagging::ALL),
        flow_control in prop::sample::select(&[FlowControl::None, FlowControl::Pause, FlowControl::Pfc(2)][..]),
        engine in prop::sample::select(&[EngineName::Auto, EngineName::Balanced, EngineName::Updown][..]),
        vlans_max in prop::sample::select(&[None, Some(1), Some(4)][..]),
    ) {
        let mut rng = Rng::new(seed);
        let topology = random_topology(switches, extra, 3, &mut rng);
        let policy =
            Policy { tagging, flow_control, engine, vlans_max, traffic: random_traffic(&topology, &mut rng), ..Policy::default() };
        match plan_with(&topology, &policy, None, &mut StepLimit::new(3)) {
            Ok(plan) => judged(&plan),
            // An engine by name gives up no trees, and may not be safe in every mode.
            Err(error) => prop_assert!(engine == EngineName::Updown, "{error}"),
        }
    }

    /// The bound is at most the exact optimum of splittable routing, and close to it.
    #[test]
    fn the_bound_is_close_to_the_optimum(
        switches in 2_usize..6,
        extra in 0_usize..5,
        seed in any::<u64>(),
        kind in 0..2,
    ) {
        let mut rng = Rng::new(seed);
        let topology = random_topology(switches, extra, 2, &mut rng);
        let traffic = if kind == 0 { Traffic::AllToAll } else { random_traffic(&topology, &mut rng) };
        let policy =
            Policy { engine: EngineName::Tree, flow_control: FlowControl::None, traffic, ..Policy::default() };
        let plan = plan(&topology, &policy, None).expect("a tree always fits");
        let single = largest_demand(&topology, &policy.traffic);
        let optimum = optimum(&topology, &policy.traffic).max(single);
        let bound = plan.summary.load_bound;
        prop_assert!(bound <= optimum * (1.0 + 1e-6), "bound {bound}, but {optimum} is possible");
        prop_assert!(bound >= optimum * 0.995, "bound {bound}, far below {optimum}");
    }
}

#[test]
fn the_same_demand_everywhere_is_all_to_all() {
    for (kind, size) in [("torus", "4x4"), ("random-regular", "n=24,d=4,seed=3"), ("clos", "4x4")] {
        let topology = topology(kind, size);
        let traffic = matrix(&topology, |_, _| 2.5);
        let with = |traffic| {
            let policy = Policy { engine: EngineName::Updown, traffic, ..Policy::default() };
            plan(&topology, &policy, None).expect("up*/down* always plans").summary
        };
        let (all, even) = (with(Traffic::AllToAll), with(traffic));
        assert!(near(even.max_channel_load, 2.5 * all.max_channel_load), "{kind}: {even:?} {all:?}");
        assert!(near(even.load_bound, 2.5 * all.load_bound), "{kind}: {even:?} {all:?}");
    }
}

/// What a matrix tells is used: neighbours that exchange everything get channels of their own.
#[test]
fn planning_for_a_matrix_beats_planning_for_all_to_all() {
    let torus = topology("torus", "6x6");
    let mut rng = Rng::new(5);
    let mut partner: Vec<usize> = (0..36).collect();
    rng.shuffle(&mut partner);
    let traffic =
        matrix(&torus, |source, destination| if partner[source.index()] == destination.index() { 1e6 } else { 1.0 });
    for flow_control in [FlowControl::None, FlowControl::Pause] {
        let policy = Policy { flow_control, traffic: traffic.clone(), ..Policy::default() };
        let with = plan(&torus, &policy, None).expect("always possible");
        judged(&with);
        let blind = plan(&torus, &Policy { traffic: Traffic::AllToAll, ..policy.clone() }, None).expect("as before");
        let blind = times(&Plan { policy, ..blind }).into_iter().fold(0.0, f64::max);
        let aware = with.summary.max_channel_time;
        assert!(aware < 0.75 * blind, "{flow_control}: {aware} against {blind}");
        let again = plan(&torus, &with.policy, None).expect("as before");
        assert_eq!(again, with, "the same input, the same plan");
    }
}

/// A ring of a fast and three slow cables: without speeds, all would seem alike.
#[test]
fn a_slow_cable_is_busy_longer() {
    let mut builder = TopologyBuilder::new();
    let ids: Vec<SwitchId> =
        (0..4).map(|n| builder.add_switch(&format!("s{n}"), SwitchSpec::default()).expect("a fresh name")).collect();
    for (number, rate_bps) in [10_000_000_000, 1_000_000_000, 1_000_000_000, 1_000_000_000].into_iter().enumerate() {
        let a = builder.add_port(ids[number], "right").expect("a fresh port");
        let b = builder.add_port(ids[(number + 1) % 4], "left").expect("a fresh port");
        builder.add_link(a, b, rate_bps).expect("free ports");
        let port = builder.add_port(ids[number], "host").expect("a fresh port");
        let mac = Mac::local(number as u32 + 1);
        builder.add_host(&format!("h{number}"), mac, port, 1_000_000_000, None).expect("a free port");
    }
    let ring = builder.finish().expect("a ring");
    let policy = Policy { flow_control: FlowControl::None, ..Policy::default() };
    let plan = plan(&ring, &policy, None).expect("always possible");
    judged(&plan);
    // Two of the four switches are cut off by two slow cables: 4 pairs over 2 channels, each 10 times slower.
    let summary = plan.summary;
    assert_eq!((summary.max_channel_load, summary.max_channel_time, summary.load_bound), (2.0, 20.0, 20.0));
    assert_eq!(summary.load_gap, 1.0);
}

#[test]
fn a_matrix_for_other_hosts_is_refused() {
    let (small, large) = (topology("mesh", "2x2"), topology("mesh", "3x3"));
    let policy = Policy { traffic: matrix(&small, |_, _| 1.0), ..Policy::default() };
    assert_eq!(plan(&large, &policy, None), Err(PlanError::OtherTraffic { hosts: 9 }));
    assert!(plan(&small, &policy, None).is_ok());
}

#[test]
fn a_changed_matrix_or_cabling_is_planned_again() {
    let torus = topology("torus", "4x4");
    let mut rng = Rng::new(3);
    let policy = Policy { traffic: random_traffic(&torus, &mut rng), ..Policy::default() };
    let first = plan(&torus, &policy, None).expect("always possible");
    assert_eq!(plan(&torus, &policy, Some(&first)).expect("nothing to do"), first);
    let other = Policy { traffic: random_traffic(&torus, &mut rng), ..Policy::default() };
    let second = plan(&torus, &other, Some(&first)).expect("always possible");
    judged(&second);
    assert_eq!(second.policy.traffic, other.traffic);
    // Routes are kept unless fresh ones are better by a tenth and more.
    let fresh = plan(&torus, &other, None).expect("always possible").summary.max_channel_time;
    let time = second.summary.max_channel_time;
    assert!(time <= 1.1 * fresh, "{time} where {fresh} is to be had");
    assert_eq!(plan(&torus, &other, Some(&second)).expect("nothing to do"), second);
    // The same matrix in another unit asks for the same routes.
    let Traffic::Matrix(matrix) = &other.traffic else { panic!("a matrix") };
    let doubled = matrix.demands().map(|demand| Demand { amount: 2.0 * demand.amount, ..demand }).collect();
    let doubled = TrafficMatrix::new(torus.hosts().len(), doubled).expect("sound demands");
    let third = Policy { traffic: Traffic::Matrix(doubled), ..Policy::default() };
    assert_eq!(
        plan(&torus, &third, Some(&second)).expect("always possible").trees,
        second.trees,
        "what stands is kept"
    );
}

fn topology(kind: &str, size: &str) -> Topology {
    let kind = Kind::parse(kind, &[size.to_owned()]).expect("a valid size");
    generate(&kind, &Options::default()).expect("a sane size")
}

/// A matrix with this demand for every pair of hosts.
fn matrix(topology: &Topology, demand: impl Fn(HostId, HostId) -> f64) -> Traffic {
    let pairs = topology.host_ids().flat_map(|source| topology.host_ids().map(move |other| (source, other)));
    let demands = pairs.filter(|(source, destination)| source != destination).map(|(source, destination)| Demand {
        source,
        destination,
        amount: demand(source, destination),
    });
    Traffic::Matrix(TrafficMatrix::new(topology.hosts().len(), demands.collect()).expect("sound demands"))
}

/// Dense or sparse, even or with elephants, large or tiny numbers; perhaps nothing at all.
fn random_traffic(topology: &Topology, rng: &mut Rng) -> Traffic {
    let (share, unit, elephants) = (rng.unit_f64(), [1.0, 1e-7, 1e12][rng.below(3)], rng.below(2) == 0);
    let mut demands = Vec::new();
    for source in topology.host_ids() {
        for destination in topology.host_ids().filter(|host| *host != source) {
            if rng.unit_f64() < share {
                let size = if elephants && rng.below(10) == 0 { 100.0 } else { 1.0 };
                demands.push(Demand { source, destination, amount: unit * size * rng.unit_f64() });
            }
        }
    }
    Traffic::Matrix(TrafficMatrix::new(topology.hosts().len(), demands).expect("sound demands"))
}

/// A connected cabling with cables beyond a tree, some parallel, of several rates, and up to `hosts_max` hosts a switch.
fn random_topology(switches: usize, extra: usize, hosts_max: usize, rng: &mut Rng) -> Topology {
    let mut builder = TopologyBuilder::new();
    let ids: Vec<SwitchId> = (0..switches)
        .map(|number| builder.add_switch(&format!("s{number}"), SwitchSpec::default()).expect("a fresh name"))
        .collect();
    let mut links: Vec<(usize, usize)> = (1..switches).map(|b| (rng.below(b), b)).collect();
    links.extend((0..extra).map(|_| (rng.below(switches), rng.below(switches))).filter(|(a, b)| a != b));
    for (number, (a, b)) in links.into_iter().enumerate() {
        let a = builder.add_port(ids[a], &format!("p{number}")).expect("a fresh port");
        let b = builder.add_port(ids[b], &format!("p{number}")).expect("a fresh port");
        builder.add_link(a, b, RATES_BPS[rng.below(4)]).expect("free ports");
    }
    let mut number = 0;
    for (at, id) in ids.iter().enumerate() {
        for _ in 0..if at == 0 { 1 } else { rng.below(hosts_max + 1) } {
            number += 1;
            let port = builder.add_port(*id, &format!("h{number}")).expect("a fresh port");
            let mac = Mac::local(number);
            builder.add_host(&format!("h{number}"), mac, port, RATES_BPS[1], None).expect("a free port");
        }
    }
    builder.finish().expect("a tree connects everything")
}

/// The judge finds nothing that matters, the bound holds, and figures are those of routes walked anew.
fn judged(plan: &Plan) {
    let report = verify::check(plan);
    assert!(report.findings().iter().all(|finding| finding.severity == Severity::Note), "{report}");
    let summary = &plan.summary;
    assert!(summary.max_channel_time >= summary.load_bound * (1.0 - 1e-9), "{summary:?}");
    let time = times(plan).into_iter().fold(0.0, f64::max);
    assert!(near(time, summary.max_channel_time), "{time}, and not {}", summary.max_channel_time);
}

/// How long each channel takes, from routes walked anew; every pair must have one, whatever its demand.
fn times(plan: &Plan) -> Vec<f64> {
    let topology = &plan.topology;
    let fastest = topology.links().iter().map(|link| link.rate_bps).max().unwrap_or(1) as f64;
    let mut time = vec![0.0; topology.channel_count()];
    let mut rooted = BTreeMap::new();
    for source in topology.host_ids() {
        for destination in topology.host_ids().filter(|host| *host != source) {
            let vlan = plan.assignment.unicast(source, destination);
            let (from, to) = (topology.switch_of(source), topology.switch_of(destination));
            let tree = plan.tree(vlan).expect("an assigned VLAN has a tree");
            let rooted = rooted.entry((vlan, from)).or_insert_with(|| tree.tree.rooted_at(topology, from));
            assert!(rooted.covers(to), "{source:?} does not reach {destination:?}");
            for channel in rooted.path_to(topology, to) {
                let slowness = fastest / topology.link(channel.link()).rate_bps as f64;
                time[channel.index()] += plan.policy.traffic.demand(source, destination) * slowness;
            }
        }
    }
    time
}

fn near(found: f64, expected: f64) -> bool {
    (found - expected).abs() <= 1e-9 * expected.abs()
}

fn largest_demand(topology: &Topology, traffic: &Traffic) -> f64 {
    let mut most: f64 = 0.0;
    for source in topology.host_ids() {
        for other in topology.host_ids().filter(|host| topology.switch_of(*host) != topology.switch_of(source)) {
            most = most.max(traffic.demand(source, other));
        }
    }
    most
}

/// The least time of the most loaded channel if every pair may split its demand over all simple paths: a linear program over
/// paths, by the simplex method with Bland's rule. Largest share s with s·demand routed and no channel busier than 1.
fn optimum(topology: &Topology, traffic: &Traffic) -> f64 {
    let mut demand: BTreeMap<(SwitchId, SwitchId), f64> = BTreeMap::new();
    for source in topology.host_ids() {
        for other in topology.host_ids() {
            let (a, b) = (topology.switch_of(source), topology.switch_of(other));
            if a != b && traffic.demand(source, other) > 0.0 {
                *demand.entry((a, b)).or_default() += traffic.demand(source, other);
            }
        }
    }
    let unit = demand.values().copied().fold(0.0, f64::max);
    if unit == 0.0 {
        return 0.0;
    }
    // Rows: a pair each, then a channel each. Columns: the share, then a path each.
    let rows = demand.len() + topology.channel_count();
    let mut columns = vec![vec![0.0; rows]];
    for (row, (&(from, to), amount)) in demand.iter().enumerate() {
        columns[0][row] = amount / unit;
        for path in simple_paths(topology, from, to) {
            let mut column = vec![0.0; rows];
            column[row] = -1.0;
            for channel in path {
                let rate = topology.link(channel.link()).rate_bps as f64 / topology.rate_max_bps() as f64;
                column[demand.len() + channel.index()] = 1.0 / rate;
            }
            columns.push(column);
        }
    }
    let limits: Vec<f64> = (0..rows).map(|row| if row < demand.len() { 0.0 } else { 1.0 }).collect();
    unit / largest_first(&columns, &limits)
}

fn simple_paths(topology: &Topology, from: SwitchId, to: SwitchId) -> Vec<Vec<ChannelId>> {
    fn extend(
        topology: &Topology,
        at: SwitchId,
        to: SwitchId,
        seen: &mut Vec<SwitchId>,
        path: &mut Vec<ChannelId>,
        paths: &mut Vec<Vec<ChannelId>>,
    ) {
        if at == to {
            paths.push(path.clone());
            return;
        }
        for &channel in topology.channels_from(at) {
            let next = topology.head(channel);
            if !seen.contains(&next) {
                seen.push(next);
                path.push(channel);
                extend(topology, next, to, seen, path, paths);
                path.pop();
                seen.pop();
            }
        }
    }
    let mut paths = Vec::new();
    extend(topology, from, to, &mut vec![from], &mut Vec::new(), &mut paths);
    paths
}

/// The largest first variable with Σ columns · variables ≤ limits, all variables ≥ 0.
fn largest_first(columns: &[Vec<f64>], limits: &[f64]) -> f64 {
    const TINY: f64 = 1e-11;
    let (rows, count) = (limits.len(), columns.len());
    // Variables, slacks, limit; the last row is what is maximised, negated.
    let width = count + rows + 1;
    let mut table = vec![vec![0.0; width]; rows + 1];
    for (row, line) in table.iter_mut().take(rows).enumerate() {
        columns.iter().enumerate().for_each(|(column, values)| line[column] = values[row]);
        line[count + row] = 1.0;
        line[width - 1] = limits[row];
    }
    table[rows][0] = -1.0;
    let mut basis: Vec<usize> = (count..count + rows).collect();
    while let Some(enters) = (0..width - 1).find(|&column| table[rows][column] < -TINY) {
        let mut leaves: Option<(f64, usize)> = None;
        for row in (0..rows).filter(|&row| table[row][enters] > TINY) {
            let ratio = table[row][width - 1] / table[row][enters];
            let first = leaves
                .is_none_or(|(least, at)| ratio < least - TINY || (ratio < least + TINY && basis[row] < basis[at]));
            if first {
                leaves = Some((ratio, row));
            }
        }
        let (_, leaves) = leaves.expect("channels bound every flow");
        let pivot = table[leaves][enters];
        table[leaves].iter_mut().for_each(|value| *value /= pivot);
        let line = table[leaves].clone();
        for (_, other) in table.iter_mut().enumerate().filter(|(row, _)| *row != leaves) {
            let factor = other[enters];
            if factor != 0.0 {
                other.iter_mut().zip(&line).for_each(|(value, pivot)| *value -= factor * pivot);
            }
        }
        basis[leaves] = enters;
    }
    table[rows][width - 1]
}

/// Where hosts send nearly as much to each other, a cap costs about as much as where they send alike.
#[test]
fn a_cap_costs_as_much_as_without_a_matrix_that_says_little() {
    let topology = topology("random-regular", "n=48,d=6");
    let nearly = |source: HostId, to: HostId| 0.9 + 0.02 * ((5 * source.index() + 7 * to.index()) % 11) as f64;
    let traffic = matrix(&topology, nearly);
    let alike = Policy { vlans_max: Some(12), ..Policy::default() };
    let plain = plan(&topology, &alike, None).expect("it plans");
    let plan = plan(&topology, &Policy { traffic, ..alike }, None).expect("it plans");
    judged(&plan);
    let (load, before) = (plan.summary.max_channel_time, plain.summary.max_channel_time);
    assert!(load <= 1.2 * before, "{before} where all send alike, {load}");
}
