//! Traffic patterns on planned networks: how many pairs meet on a channel.

mod common;

use fabric::{EngineName, Policy};
use sim::{flow::FlowLevel, pattern::Pattern};

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
