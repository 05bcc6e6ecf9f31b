//! Traffic patterns on planned networks: how many pairs meet on a channel, and a phase that is stopped half-way.

mod common;

use fabric::{
    EngineName, FlowControl, Policy, Topology,
    generate::{Kind, Options, generate},
};
use sim::{
    flow::{FlowLevel, Transfer},
    pattern::{Pattern, PatternError},
};

fn hosts(count: usize) -> Topology {
    let kind = Kind::parse("mesh", &[count.to_string()]).expect("a kind");
    generate(&kind, &Options::default()).expect("a sane size")
}

/// Receivers by sender; none of who sends nothing.
fn receivers(pattern: Pattern, count: usize) -> Vec<Option<usize>> {
    let mut receivers = vec![None; count];
    for pair in pattern.pairs(&hosts(count), 1).expect("no plan is needed") {
        let before = receivers[pair.source.index()].replace(pair.destination.index());
        assert_eq!((before, pair.phase), (None, 0), "{pattern} of {count}");
    }
    receivers
}

#[test]
fn tornado_and_shifts_send_so_many_numbers_on() {
    let on = |distance: usize, count: usize| (0..count).map(|host| Some((host + distance) % count)).collect::<Vec<_>>();
    // Dally and Towles: ⌈n / 2⌉ - 1.
    for (count, distance) in [(3, 1), (4, 1), (5, 2), (8, 3), (9, 4), (16, 7)] {
        assert_eq!(receivers(Pattern::Tornado, count), on(distance, count), "{count}");
        assert_eq!(receivers(Pattern::Shift(distance as u32), count), on(distance, count), "{count}");
        assert_eq!(receivers(Pattern::Shift((distance + 3 * count) as u32), count), on(distance, count), "{count}");
    }
    assert_eq!(receivers(Pattern::Tornado, 2), [None, None]);
    assert_eq!(receivers(Pattern::Shift(10), 5), [None; 5]);
}

#[test]
fn squares_and_powers_of_two_are_the_largest_that_there_are() {
    for count in 2..40 {
        for (pattern, part) in [
            (Pattern::Transpose, (1..).find(|side| (side + 1) * (side + 1) > count).map(|side| side * side)),
            (Pattern::BitReversal, (0..).find(|bits| 2 << bits > count).map(|bits| 1 << bits)),
        ] {
            let part = part.expect("some square, some power");
            assert_eq!(pattern.hosts_of(count), part, "{pattern} of {count}");
            let (some, whole) = (receivers(pattern, count), receivers(pattern, part));
            assert_eq!(some[..part], whole, "{pattern} of {count}");
            assert!(some[part..].iter().all(Option::is_none), "{pattern} of {count}");
            // Each is its own inverse.
            let twice = |host: usize| some[host].map(|to| some[to]);
            assert!((0..count).all(|host| twice(host).is_none_or(|back| back == Some(host))), "{pattern} of {count}");
        }
    }
    assert_eq!(Pattern::Transpose.title(60), "transpose of the first 49 of 60 hosts");
    assert_eq!(Pattern::Transpose.title(49), "transpose");
    assert_eq!(Pattern::BitReversal.title(60), "bit-reversal of the first 32 of 60 hosts");
    assert_eq!(Pattern::Shift(7).title(60), "shift=7");
    let rows: Vec<Option<usize>> = vec![None, Some(3), Some(6), Some(1), None, Some(7), Some(2), Some(5), None, None];
    assert_eq!(receivers(Pattern::Transpose, 10), rows);
}

#[test]
fn patterns_are_read_as_they_are_written() {
    for pattern in Pattern::ALL.iter().copied().chain([Pattern::Shift(1), Pattern::Shift(63)]) {
        assert_eq!(pattern.to_string().parse(), Ok(pattern));
    }
    for (text, expected) in [
        ("shift=0", "\"0\" is no distance from 1 to 4294967295: write it as in shift=5"),
        ("shift=x", "\"x\" is no distance from 1 to"),
        ("shift", "\"shift\" is none of all-to-all, "),
        ("broadcast", "\"broadcast\" is none of all-to-all, "),
    ] {
        let error = text.parse::<Pattern>().expect_err("no pattern");
        assert!(error.starts_with(expected), "{error}");
    }
}

#[test]
fn the_worst_permutation_is_the_one_that_the_plan_stores() {
    let policy = Policy { paths_max: 4, flow_control: FlowControl::None, ..Policy::default() };
    let policy = Policy { tagging: fabric::Tagging::Source, ..policy };
    let plan = common::plan_of("torus", "3x3", 1, &policy);
    let stored = &plan.paths.as_ref().expect("path sets").proof.worst;
    let pairs = Pattern::Worst.pairs_of(&plan, 1).expect("it is stored");
    assert!(!pairs.is_empty());
    for host in plan.topology.host_ids() {
        let sent = pairs.iter().find(|pair| pair.source == host).map(|pair| pair.destination);
        assert_eq!(sent, Some(stored[host.index()]).filter(|to| *to != host));
    }
    let plan = common::plan_of("torus", "3x3", 1, &Policy::default());
    assert_eq!(Pattern::Worst.pairs_of(&plan, 1), Err(PatternError::NoPathSets));
    assert_eq!(Pattern::Worst.pairs(&plan.topology, 1), Err(PatternError::NoPathSets));
}

/// A transpose sends all hosts of one place to one leaf, a bit-reversal too: they must come down from different spines.
#[test]
fn permutations_of_places_meet_nowhere_on_a_clos_network() {
    for size in [2, 4, 8] {
        let policy = Policy { engine: EngineName::Clos, ..Policy::default() };
        let plan = common::plan_of("clos", &format!("{size}x{size}"), size, &policy);
        let level = FlowLevel::new(&plan);
        for pattern in [Pattern::Transpose, Pattern::BitReversal] {
            let pairs = pattern.pairs(&plan.topology, 1).expect("a square power of two");
            let most = level.loads(&pairs).expect("routes").into_iter().max();
            assert_eq!(most, Some(1), "{pattern} of {size} leaves");
        }
        // No worse for all to all: hosts of a leaf still share its cables evenly.
        let wanted = (size * (size - 1)) as f64;
        assert_eq!(plan.summary.max_channel_load, wanted, "{size} leaves");
    }
}

/// A phase asks whether to go on while it runs: transfers have ended by then, more each time, and none of it is kept.
#[test]
fn a_long_phase_stops_in_the_middle() {
    let plan = common::plan_of("torus", "4x4", 1, &Policy::default());
    let pairs = Pattern::AllToAll.pairs(&plan.topology, 1).expect("any number of hosts");
    let transfer = |(bits, pair): (u32, &sim::pattern::Pair)| Transfer {
        source: pair.source,
        destination: pair.destination,
        bits: f64::from(bits),
    };
    let transfers: Vec<Transfer> = (1_000_000..).zip(&pairs).map(transfer).collect();
    let level = FlowLevel::new(&plan);
    let mut seen = Vec::new();
    let stopped = level.run_while(&transfers, &mut |progress| {
        seen.push(progress.ended);
        progress.ended < transfers.len() / 2
    });
    assert_eq!(stopped.expect("routes"), None);
    assert!(seen.is_sorted() && seen.len() > 10, "{seen:?}");
    let last = *seen.last().expect("it asked");
    assert!((transfers.len() / 2..transfers.len()).contains(&last), "{last} of {}", transfers.len());
    let whole = level.run_while(&transfers, &mut |_| true).expect("routes");
    assert_eq!(whole, Some(level.run(&transfers).expect("routes")));
}
