//! Traffic patterns on planned networks: how many pairs meet on a channel, and a phase that is stopped half-way.

mod common;

use fabric::{EngineName, Policy};
use sim::{
    flow::{FlowLevel, Transfer},
    pattern::Pattern,
};

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
