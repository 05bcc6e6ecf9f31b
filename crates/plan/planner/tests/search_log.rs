//! The log of a search: what it says is what was done, whoever listens and on however many threads.

use fabric::{
    EngineName, FlowControl, Plan, Policy, Tagging, Topology,
    generate::{Kind, Options, generate},
};
use planner::{Ending, SearchEvent, StepLimit, Watch, channel_times, plan, plan_with, spanning_tree_time};

/// Takes down what happens.
struct Listener {
    steps: StepLimit,
    threads: usize,
    log: Vec<SearchEvent>,
}

impl Watch for Listener {
    fn expired(&mut self) -> bool {
        self.steps.expired()
    }

    fn progress(&mut self, _load: f64, _bound: f64) {}

    fn threads(&self) -> usize {
        self.threads
    }

    fn steps_left(&self) -> u64 {
        self.steps.steps_left()
    }

    fn happened(&mut self, event: &SearchEvent) {
        self.log.push(event.clone());
    }
}

fn known(kind: &str, size: &str) -> Topology {
    let kind = Kind::parse(kind, &[size.to_owned()]).expect("a valid size");
    generate(&kind, &Options::default()).expect("a sane size")
}

fn logged(topology: &Topology, policy: &Policy, threads: usize) -> (Plan, Vec<SearchEvent>) {
    let mut listener = Listener { steps: StepLimit::by_request(topology, policy), threads, log: Vec::new() };
    let plan = plan_with(topology, policy, None, &mut listener).expect("it can be planned");
    (plan, listener.log)
}

#[test]
fn the_log_tells_what_was_done() {
    let fabrics = [("torus", "4x4"), ("fat-tree", "k=4"), ("random-regular", "n=14,d=3"), ("dragonfly", "a=2,h=1,p=1")];
    for (kind, size) in fabrics {
        let topology = known(kind, size);
        for flow_control in [FlowControl::None, FlowControl::Pause, FlowControl::Pfc(2)] {
            for (tagging, vlans_max) in [(Tagging::Switch, None), (Tagging::Source, Some(3)), (Tagging::Pair, Some(3))]
            {
                let policy = Policy { flow_control, tagging, vlans_max, ..Policy::default() };
                let what = format!("{kind} {size}, {flow_control}, {tagging}, {vlans_max:?}");
                let (found, log) = logged(&topology, &policy, 1);
                assert_eq!(log, logged(&topology, &policy, 3).1, "{what}: by threads");
                assert_eq!(found, plan(&topology, &policy, None).expect("as before"), "{what}: by listeners");
                says_what_was_done(&policy, &found, &log, &what);
            }
        }
    }
}

fn says_what_was_done(policy: &Policy, found: &Plan, log: &[SearchEvent], what: &str) {
    let best = log.iter().filter_map(|event| match event {
        SearchEvent::Engine { engine, outcome: Ok(achieved) } => Some((*engine, achieved.load)),
        _ => None,
    });
    let least = best.clone().map(|(_, load)| load).fold(f64::INFINITY, f64::min);
    let engines: Vec<EngineName> = best.map(|(engine, _)| engine).collect();
    assert_eq!(log[0], SearchEvent::Bound(found.summary.load_bound), "{what}");
    assert!(engines.contains(&found.engine), "{what}: {:?} is none of {engines:?}", found.engine);
    // Routes of a rival may need to be made fit, but nothing better than all that is logged comes of it.
    assert!(found.summary.max_channel_time >= least, "{what}: {} < {least}", found.summary.max_channel_time);
    let own: Vec<bool> = log
        .iter()
        .filter_map(|event| match event {
            SearchEvent::Request { is_rival, policy: of } => {
                assert_eq!(*is_rival, **of != *policy, "{what}");
                Some(!is_rival)
            }
            _ => None,
        })
        .collect();
    assert!(own[0] && own[1..].iter().all(|own| !own), "{what}: {own:?}");
    // All links have one rate, and loads are whole numbers: what is optimal is less than one above the bound.
    for pair in log.windows(2) {
        if let [SearchEvent::Ended(Ending::Optimal), SearchEvent::Engine { outcome: Ok(achieved), .. }] = pair {
            assert!(achieved.load < found.summary.load_bound + 1.0, "{what}: {achieved:?}");
        }
    }
}

#[test]
fn mended_and_unchanged_plans_say_so() {
    let topology = known("torus", "3x3");
    let policy = Policy::default();
    let first = plan(&topology, &policy, None).expect("it can be planned");
    let listen = |topology: &Topology| {
        let mut listener = Listener { steps: StepLimit::by_request(topology, &policy), threads: 1, log: Vec::new() };
        let plan = plan_with(topology, &policy, Some(&first), &mut listener).expect("it can be planned");
        (plan, listener.log)
    };
    assert_eq!(listen(&topology).1, [SearchEvent::Unchanged]);
    let mut builder = fabric::TopologyBuilder::of(&topology);
    let more = builder.add_switch("more", fabric::SwitchSpec::default()).expect("a new name");
    let (near, far) = (builder.switch("s0-0").expect("it is there"), more);
    let (a, b) = (builder.add_port(near, "new").expect("free"), builder.add_port(far, "new").expect("free"));
    builder.add_link(a, b, fabric::DEFAULT_RATE_BPS).expect("free");
    let (plan, log) = listen(&builder.finish().expect("connected"));
    assert_eq!(log, [SearchEvent::Mended(plan.summary.max_channel_time)]);
}

#[test]
fn times_of_links_are_those_of_the_summary() {
    for (kind, size) in [("torus", "4x4"), ("random-regular", "n=14,d=3")] {
        let topology = known(kind, size);
        for &tagging in Tagging::ALL {
            let policy = Policy { tagging, ..Policy::default() };
            let found = plan(&topology, &policy, None).expect("it can be planned");
            let longest = channel_times(&found).into_iter().fold(0.0, f64::max);
            assert_eq!(longest, found.summary.max_channel_time, "{kind} {size}, {tagging}");
        }
    }
}

#[test]
fn a_spanning_tree_takes_as_long_as_its_plan() {
    for (kind, size) in [("torus", "4x4"), ("fat-tree", "k=4"), ("random-regular", "n=14,d=3")] {
        let topology = known(kind, size);
        let policy = Policy { engine: EngineName::Tree, ..Policy::default() };
        let found = plan(&topology, &policy, None).expect("a tree is always there");
        assert_eq!(
            spanning_tree_time(&topology, &fabric::Traffic::AllToAll),
            found.summary.max_channel_time,
            "{kind} {size}"
        );
    }
}
