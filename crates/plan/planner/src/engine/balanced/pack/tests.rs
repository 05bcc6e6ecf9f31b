//! Shared trees on random cablings: what moves add and subtract is what counting from nothing gives, and nothing that a cap
//! leaves of a tree for every source is better.

use fabric::{FlowControl, Mac, Policy, SwitchId, SwitchSpec, Tagging, Topology, TopologyBuilder, Traffic, rng::Rng};

use super::{Limits, pack};
use crate::{
    StepLimit,
    cap::{self, Rules},
    confined::Confined,
    engine::balanced::{
        branch::Scratch,
        converter::Converter,
        net::Net,
        pairs::{OrderPolicy, Pairs},
        schedule::SweepTerms,
        senders::Share,
        starts::{
            seed::{self, Ask},
            split,
            spread::spread,
        },
        work::Work,
    },
    measure::Measure,
    merge::merge,
    routing::Routing,
};

const FLOW_CONTROLS: [FlowControl; 4] =
    [FlowControl::None, FlowControl::Pause, FlowControl::Pfc(2), FlowControl::Pfc(3)];

/// A random connected cabling of 4 to 12 switches, some cables parallel or slow, with no to two hosts a switch.
fn cabling(rng: &mut Rng) -> Topology {
    let mut builder = TopologyBuilder::new();
    let count = 4 + rng.below(9);
    let switches: Vec<SwitchId> = (0..count)
        .map(|number| builder.add_switch(&format!("s{number}"), SwitchSpec::default()).expect("a fresh name"))
        .collect();
    let mut ports = 0;
    let mut port = |builder: &mut TopologyBuilder, switch: usize| {
        ports += 1;
        builder.add_port(switches[switch], &format!("p{ports}")).expect("a fresh port")
    };
    let mut cables: Vec<(usize, usize)> = (1..count).map(|switch| (rng.below(switch), switch)).collect();
    cables.extend((0..rng.below(2 * count)).map(|_| (rng.below(count), rng.below(count))).filter(|(a, b)| a != b));
    let slow = rng.below(4) == 0;
    for (a, b) in cables {
        let (a, b) = (port(&mut builder, a), port(&mut builder, b));
        let rate = if slow && rng.below(3) == 0 { 1_000_000_000 } else { 10_000_000_000 };
        builder.add_link(a, b, rate).expect("two switches");
    }
    let mut number = 0;
    for switch in 0..count {
        for _ in 0..if switch < 3 { 1 + rng.below(2) } else { rng.below(3) } {
            number += 1;
            let at = port(&mut builder, switch);
            builder.add_host(&format!("h{number}"), Mac::local(number), at, 10_000_000_000, None).expect("fresh");
        }
    }
    builder.finish().expect("all is connected")
}

/// Shared trees to begin with: one tree, split, where paths must rise, else trees spread over the network.
fn start(converter: &Converter<'_>, net: &Net, flow_control: FlowControl, trees: usize, rng: &mut Rng) -> Share {
    let mut watch = StepLimit::new(1000);
    let mut work = Work::new(&mut watch);
    match flow_control {
        FlowControl::None => spread(net, converter.units(), trees, rng, &mut work),
        _ => {
            let single = split::single(net, converter.units(), rng, &mut work);
            let first = split::in_order(net, &single, converter.lane_count());
            (1..trees).fold(first, |share, _| split::split(net, share, rng, &mut work))
        }
    }
}

/// Sweeps, senders that move, splits and copies: loads, turns in use, orders and prices, after each.
#[test]
fn trees_of_senders_are_counted_right() {
    let (mut splits, mut changes) = (0, 0);
    for seed in 0..60 {
        let mut rng = Rng::new(seed);
        let topology = cabling(&mut rng);
        let net = Net::new(&topology, 1.0);
        let flow_control = FLOW_CONTROLS[seed as usize % FLOW_CONTROLS.len()];
        let policy = Policy { flow_control, seed, ..Policy::default() };
        let converter = Converter::new(&topology, &policy, &net);
        let trees = 1 + rng.below(4);
        let mut share = start(&converter, &net, flow_control, trees, &mut rng);
        assert!(share.is_counted(&net), "seed {seed}: a start");
        let (mut watch, mut scratch) = (StepLimit::new(1000), Scratch::new(&net));
        let mut work = Work::new(&mut watch);
        let mut kept = share.clone();
        for step in 0..12 {
            let before = share.trees.load.clone();
            match rng.below(3) {
                0 => {
                    let tree = rng.below(share.trees.len());
                    let is_split = share.split(&net, tree);
                    assert!(!is_split || share.trees.load == before, "seed {seed}, step {step}: a split changes loads");
                    splits += usize::from(is_split);
                }
                1 => {
                    let sharpness = 2.0 + 40.0 * rng.unit_f64();
                    share.polish(&net, SweepTerms { sharpness, room: 1.25 }, &mut scratch, &mut rng, &mut work);
                }
                _ => {
                    let mut prices = share.trees.prices(&net, 8.0);
                    let room = 1 + rng.below(6) as u64;
                    share.turn_to_other_trees(&net, &mut prices, room, &mut rng, &mut work);
                    assert!(prices.follows(&net, &share.trees.load), "seed {seed}, step {step}: prices");
                }
            }
            changes += usize::from(share.trees.load != before);
            assert!(share.is_counted(&net), "seed {seed}, step {step}, {flow_control}");
            // A copy stands for itself, in tables of its own or in those of another plan.
            if rng.below(2) == 0 {
                kept.clone_from(&share);
            } else {
                std::mem::swap(&mut kept, &mut share);
                assert!(share.is_counted(&net), "seed {seed}, step {step}: a copy");
            }
        }
    }
    assert!(splits > 60 && changes > 60, "{splits} splits, {changes} changes");
}

/// The same for trees of pairs.
#[test]
fn trees_of_pairs_are_counted_right() {
    let mut changes = 0;
    for seed in 0..60 {
        let mut rng = Rng::new(seed);
        let topology = cabling(&mut rng);
        let net = Net::new(&topology, 1.0);
        let flow_control = FLOW_CONTROLS[seed as usize % FLOW_CONTROLS.len()];
        let policy = Policy { flow_control, tagging: Tagging::Pair, seed, ..Policy::default() };
        let converter = Converter::new(&topology, &policy, &net);
        let trees = 2 + rng.below(4);
        let share = start(&converter, &net, flow_control, trees, &mut rng);
        let mut pairs = Pairs::from_share(&net, &share).expect("what senders may do, pairs may");
        let (mut watch, mut scratch) = (StepLimit::new(1000), Scratch::new(&net));
        let mut work = Work::new(&mut watch);
        for step in 0..8 {
            let before = pairs.trees.load.clone();
            let bold = if rng.below(2) == 0 { OrderPolicy::Bending } else { OrderPolicy::Rising };
            let sharpness = 2.0 + 40.0 * rng.unit_f64();
            pairs.polish(&net, sharpness, bold, &mut scratch, &mut rng, &mut work);
            changes += usize::from(pairs.trees.load != before);
            assert!(pairs.is_counted(&net), "seed {seed}, step {step}, {flow_control}");
        }
    }
    assert!(changes > 60, "{changes} changes");
}

/// Shared trees load the most loaded link no more than what giving up trees leaves of any routes that they start from.
#[test]
fn shared_trees_are_never_worse_than_capped_ones() {
    let (mut compared, mut better) = (0, 0);
    for seed in 0..60 {
        let mut rng = Rng::new(seed);
        let topology = cabling(&mut rng);
        let net = Net::new(&topology, 1.0);
        let flow_control = FLOW_CONTROLS[seed as usize % FLOW_CONTROLS.len()];
        let policy = Policy { flow_control, seed, ..Policy::default() };
        let rules = if flow_control == FlowControl::None { Rules::Any } else { Rules::Increasing };
        let routings: Vec<_> =
            [Ask::Structured, Ask::Updown].map(|ask| seed::routings(&topology, &policy, ask)).concat();
        let routings: Vec<_> = routings.into_iter().map(|(_, routing)| routing).collect();
        let sources = Converter::new(&topology, &policy, &net).units().len();
        for trees in 1..sources {
            let limits = Limits { trees, bound: 0.0 };
            let mut watch = StepLimit::new(rng.below(30) as u64);
            let shared = pack(&topology, &policy, &net, &limits, &routings, &mut Work::new(&mut watch));
            let time = |routing: &Routing| Measure::of(&topology, &Traffic::AllToAll, routing).time_max;
            let shared_time = shared.first().map(time).expect("a single tree at least");
            for routing in &routings {
                let Some(capped) =
                    cap::fit(&topology, &Traffic::AllToAll, routing, trees, (rules, &Confined::default()))
                else {
                    continue;
                };
                let capped_time = time(&merge(&topology, capped));
                compared += 1;
                better += usize::from(shared_time < capped_time);
                assert!(
                    shared_time <= capped_time * (1.0 + 1e-9),
                    "seed {seed}, {flow_control}, {trees} trees: {shared_time} shared, {capped_time} capped"
                );
            }
        }
    }
    assert!(compared > 300 && better > 100, "{better} of {compared}");
}
