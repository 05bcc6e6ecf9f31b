//! What it takes to be ready for any one link, or any one switch as well, to fail: `cargo run --release -p planner --example resilience
//! [KIND SIZE ENGINE TAGGING FLOW-CONTROL MAX-VLANS]`.

use std::time::Instant;

use fabric::{
    EngineName, Policy, Proof, Resilience,
    generate::{Kind, Options, generate},
};
use planner::plan;

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let word = |at: usize, default: &str| args.get(at).cloned().unwrap_or_else(|| default.to_owned());
    let kind = Kind::parse(&word(0, "torus"), &[word(1, "4x4")]).expect("a kind and its size");
    let topology = generate(&kind, &Options::default()).expect("a sane size");
    let engine: EngineName = word(2, "auto").parse().expect("an engine");
    let tagging = word(3, "switch").parse().expect("a tagging mode");
    let flow_control = word(4, "pause").parse().expect("a flow control");
    let vlans_max = args.get(5).map(|cap| cap.parse().expect("a number of VLANs"));
    let plain = Policy { engine, tagging, flow_control, vlans_max, ..Policy::default() };
    // Generated topologies have no named groups.
    let asked = Resilience::ALL.iter().filter(|resilience| !resilience.protects_groups());
    for policy in asked.map(|resilience| Policy { resilience: *resilience, ..plain.clone() }) {
        let started = Instant::now();
        let plan = plan(&topology, &policy, None).expect("it plans");
        let planned_ms = started.elapsed().as_secs_f64() * 1000.0;
        let started = Instant::now();
        let findings = verify::check(&plan).findings().len();
        let judged_ms = started.elapsed().as_secs_f64() * 1000.0;
        let summary = &plan.summary;
        print!(
            "{} {}: {} VLANs, busiest {}, {} entries, {} on one switch; planned in {planned_ms:.0} ms, judged in \
             {judged_ms:.0} ms, {findings} findings",
            kind,
            plan.engine,
            summary.vlans,
            summary.max_channel_load,
            summary.fdb_entries_total,
            summary.fdb_entries_max
        );
        if let Some(failover) = &plan.failover {
            let count = |is: fn(&Proof) -> bool| failover.switch_overs.iter().filter(|over| is(&over.proof)).count();
            print!(
                "\n  worst failure {}, {} extra VLANs; proofs: {} common, {} by {} further numberings, {} drained, \
                 {} none",
                failover.summary.max_channel_time,
                failover.summary.vlans_extra,
                count(|proof| *proof == Proof::Certificate),
                count(|proof| matches!(proof, Proof::Numbering(_))),
                failover.numberings.len(),
                count(|proof| matches!(proof, Proof::Drained(_))),
                count(|proof| *proof == Proof::Unneeded),
            );
        }
        println!();
    }
}
