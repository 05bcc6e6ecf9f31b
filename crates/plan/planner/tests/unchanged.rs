//! Planning the same request for the same cabling again changes nothing.

use fabric::{
    FlowControl, Policy, Tagging, Topology,
    generate::{Kind, Options, generate},
};
use planner::{StepLimit, plan_with};
use transition::difference;

const FABRICS: [(&str, &[&str]); 5] = [
    ("torus", &["4x4"]),
    ("torus", &["4x5"]),
    ("dragonfly", &["a=4", "h=2", "p=1"]),
    ("random-regular", &["n=12", "d=4", "seed=2"]),
    ("fat-tree", &["k=4"]),
];

fn generated(kind: &str, words: &[&str]) -> Topology {
    let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
    generate(&Kind::parse(kind, &words).expect("a valid size"), &Options::default()).expect("a sane size")
}

#[test]
fn the_same_request_again_changes_nothing() {
    for (kind, words) in FABRICS {
        let topology = generated(kind, words);
        for &tagging in Tagging::ALL {
            for flow_control in [FlowControl::Pause, FlowControl::Pfc(2), FlowControl::None] {
                let policy = Policy { tagging, flow_control, ..Policy::default() };
                let steps = || StepLimit::new(64);
                let first = plan_with(&topology, &policy, None, &mut steps()).expect("it plans");
                let again = plan_with(&topology, &policy, Some(&first), &mut steps()).expect("it plans again");
                let what = format!("{kind} {words:?}, {tagging} tagging, {flow_control}");
                let changes = difference(&first, &again);
                assert!(changes.switches.is_empty() && changes.entries.touched() == 0, "{what}: {changes}");
                assert_eq!(first.assignment, again.assignment, "{what}");
                assert_eq!(first.summary, again.summary, "{what}");
            }
        }
    }
}
