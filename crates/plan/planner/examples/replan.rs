//! How long it takes to plan again after one cable died, and how much changes: `cargo run --release -p planner
//! --example replan [KIND SIZE ENGINE RUNS [again [FLOW-CONTROL TAGGING CABLES]]]`. Times of planning again are medians: of
//! one thread its processor time, and what goes by with as many threads as there are processors. With `again` nothing is
//! planned anew for comparison. CABLES die one at a time, far apart.

use std::time::Instant;

use fabric::{
    EngineName, Policy, SwitchSpec, Topology, TopologyBuilder,
    generate::{Kind, Options, generate},
};
use planner::{StepLimit, Watch, plan, plan_with};
use transition::{difference, steps};

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let word = |at: usize, default: &str| args.get(at).cloned().unwrap_or_else(|| default.to_owned());
    let kind = Kind::parse(&word(0, "torus"), &word(1, "8x8x8").split(',').map(str::to_owned).collect::<Vec<_>>())
        .expect("a kind and its size");
    let engine: EngineName = word(2, "auto").parse().expect("an engine");
    let runs: usize = word(3, "5").parse().expect("a number of runs");
    let topology = generate(&kind, &Options::default()).expect("a sane size");
    let policy = Policy {
        engine,
        flow_control: word(5, "pause").parse().expect("a flow control"),
        tagging: word(6, "switch").parse().expect("a tagging"),
        ..Policy::default()
    };
    let cables: usize = word(7, "3").parse().expect("a number of cables");
    let (before, first_ms) = timed(|| plan(&topology, &policy, None).expect("it plans"));
    println!(
        "{} switches, {} links, {}: {} VLANs, busiest {}, {} entries, {first_ms:.0} ms",
        before.summary.switches,
        before.summary.links,
        before.engine,
        before.summary.vlans,
        before.summary.max_channel_load,
        before.summary.fdb_entries_total
    );
    let last = topology.links().len() - 1;
    for link in (0..cables).map(|turn| (last * turn).div_ceil(cables.max(2) - 1)) {
        let less = without_link(&topology, link);
        let again_ms = median(runs, || processor_ms(|| plan(&less, &policy, Some(&before)).expect("it plans")).1);
        let threads_ms = median(runs, || {
            let mut watch = Processors(StepLimit::by_request(&less, &policy));
            timed(|| plan_with(&less, &policy, Some(&before), &mut watch).expect("it plans")).1
        });
        let after = plan(&less, &policy, Some(&before)).expect("it plans");
        // Less a cable the structure that the engine needs may be gone.
        let any = Policy { engine: EngineName::Auto, ..policy.clone() };
        let anew = match &word(4, "")[..] {
            "again" => "not planned".to_owned(),
            _ => {
                let (anew, anew_ms) = timed(|| plan(&less, &any, None).expect("it plans"));
                format!("{} in {anew_ms:.0} ms", anew.summary.max_channel_load)
            }
        };
        let (difference, difference_ms) = timed(|| difference(&before, &after));
        let (transition, steps_ms) = timed(|| steps(&before, &after));
        println!(
            "less {}: again {again_ms:.0} ms, by all processors {threads_ms:.0} ms; busiest {} (anew {anew}); {} VLANs; {:.2} % of entries, {} PVIDs, \
             difference {difference_ms:.0} ms, {} steps in {steps_ms:.0} ms, judge: {}",
            topology.link_label(fabric::LinkId::new(link)),
            after.summary.max_channel_load,
            after.summary.vlans,
            100.0 * difference.entries.share_touched(),
            difference.pvids_changed,
            transition.map_or_else(|error| error.to_string(), |transition| transition.steps.len().to_string()),
            verify::check(&after).findings().len(),
        );
    }
}

/// Steps as `plan` takes, by as many threads as there are processors.
struct Processors(StepLimit);

impl Watch for Processors {
    fn expired(&mut self) -> bool {
        self.0.expired()
    }

    fn progress(&mut self, load: f64, bound: f64) {
        self.0.progress(load, bound);
    }

    fn threads(&self) -> usize {
        std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
    }

    fn steps_left(&self) -> u64 {
        self.0.steps_left()
    }
}

fn median(runs: usize, mut run: impl FnMut() -> f64) -> f64 {
    let mut times: Vec<f64> = (0..runs.max(1)).map(|_| run()).collect();
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

fn timed<T>(work: impl FnOnce() -> T) -> (T, f64) {
    let started = Instant::now();
    let result = work();
    (result, started.elapsed().as_secs_f64() * 1000.0)
}

/// The time that a processor spent on the work of this thread; where the system does not tell, the time that went by.
fn processor_ms<T>(work: impl FnOnce() -> T) -> (T, f64) {
    let spent = || -> Option<f64> {
        let told = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
        told.split(' ').next()?.parse().ok().map(|nanoseconds: f64| nanoseconds / 1e6)
    };
    let before = spent();
    let (result, elapsed_ms) = timed(work);
    (result, before.and_then(|before| Some(spent()? - before)).unwrap_or(elapsed_ms))
}

/// The topology less one link, with every port still in its place.
fn without_link(topology: &Topology, link: usize) -> Topology {
    let mut builder = TopologyBuilder::new();
    let mut ports = Vec::new();
    for id in topology.switch_ids() {
        let switch = builder.add_switch(&topology.switch(id).name, SwitchSpec::default()).expect("a fresh name");
        for port in topology.port_ids(id) {
            ports.push(builder.add_port(switch, &topology.port(port).name).expect("a fresh port"));
        }
    }
    for (number, cable) in topology.links().iter().enumerate() {
        if number != link {
            builder.add_link(ports[cable.a.index()], ports[cable.b.index()], cable.rate_bps).expect("free ports");
        }
    }
    builder.add_hosts_of(topology, |_, host| Some(ports[host.port.index()])).expect("free ports");
    builder.finish().expect("the rest is connected")
}
