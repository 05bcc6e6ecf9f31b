//! What it costs to prove floods free of deadlock as well as unicast, for each tagging mode: a table in Markdown.
//!
//! `cargo run --release -p planner --example flood_cost`

use fabric::{
    FlowControl, Policy, Tagging, Topology,
    generate::{Kind, Options, generate},
};
use planner::{Uncovered, plan, uncovered};

const FABRICS: [(&str, &[&str]); 7] = [
    ("torus", &["4x4"]),
    ("torus", &["4x5"]),
    ("torus", &["4x4x4"]),
    ("mesh", &["6x6"]),
    ("dragonfly", &["a=4", "h=2", "p=1"]),
    ("random-regular", &["n=24", "d=4"]),
    ("fat-tree", &["k=4"]),
];

fn generated(kind: &str, words: &[&str]) -> Topology {
    let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
    generate(&Kind::parse(kind, &words).expect("a valid size"), &Options::default()).expect("a sane size")
}

fn main() {
    println!(
        "| fabric | tagging | flow control | maximum load, host pairs | VLANs | of those for floods alone | covers floods |"
    );
    println!("|---|---|---|---|---|---|---|");
    for (kind, words) in FABRICS {
        let topology = generated(kind, words);
        for &tagging in Tagging::ALL {
            for flow_control in [FlowControl::Pause, FlowControl::Pfc(2)] {
                let policy = Policy { tagging, flow_control, ..Policy::default() };
                let plan = match plan(&topology, &policy, None) {
                    Ok(plan) => plan,
                    Err(error) => {
                        println!("| {kind} {} | {tagging} | {flow_control} | {error} | | | |", words.join(" "));
                        continue;
                    }
                };
                let mut unicast = fabric::VlanSet::new();
                for from in topology.host_ids() {
                    for to in topology.host_ids().filter(|to| *to != from) {
                        unicast.insert(plan.assignment.unicast(from, to));
                    }
                }
                let apart = plan.trees.iter().filter(|tree| !unicast.contains(tree.vlan)).count();
                let covers = if uncovered(&plan).contains(&Uncovered::Floods) { "no" } else { "yes" };
                let load = plan.summary.max_channel_load;
                let vlans = plan.trees.len();
                println!(
                    "| {kind} {} | {tagging} | {flow_control} | {load:.0} | {vlans} | {apart} | {covers} |",
                    words.join(" ")
                );
            }
        }
    }
}
