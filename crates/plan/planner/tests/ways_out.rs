//! Advice is followed: every way out that a refusal names leads to a plan.

use fabric::{
    EngineName, FdbMode, Policy, Resilience, Topology, TopologyBuilder, VlanId, VlanPool, VlanSet,
    generate::{Kind, Options, generate},
};
use planner::{StepLimit, plan_with};

fn torus(static_entries_max: usize) -> Topology {
    let kind = Kind::parse("torus", &["4x4".to_owned()]).expect("a valid size");
    let mut builder = TopologyBuilder::of(&generate(&kind, &Options::default()).expect("a sane size"));
    builder.change_models(|model| model.static_entries_max = static_entries_max);
    builder.finish().expect("connected")
}

/// VLANs 2 to `last`.
fn up_to(last: usize) -> VlanPool {
    let [first, last] = [2, last].map(|id| VlanId::new(id as u16).expect("in range"));
    VlanPool { first, last, reserved: VlanSet::new() }
}

/// Requests that one way out makes of another: each is a list of what a refusal tells to do.
fn followed(topology: &Topology, policy: &Policy, way: &str) -> Vec<(Topology, Policy)> {
    let (mut topology, mut policy, mut engines) = (topology.clone(), policy.clone(), Vec::new());
    let words: Vec<&str> =
        way.split(|c: char| c.is_whitespace() || "(),".contains(c)).filter(|w| !w.is_empty()).collect();
    let number = |word: &str| word.parse::<usize>().unwrap_or_else(|_| panic!("a number in {way:?}"));
    for (at, word) in words.iter().enumerate() {
        let next = words.get(at + 1).copied().unwrap_or_default();
        match *word {
            "--max-vlans" if at > 0 && words[at - 1] == "no" => policy.vlans_max = None,
            "--max-vlans" => policy.vlans_max = Some(number(next)),
            "--max-hops" if words[at - 1] == "no" => policy.hops_max = None,
            "--max-hops" => policy.hops_max = Some(number(next) as u32),
            "--vlans" if next == "to" => policy.vlans = up_to(number(words[at + 2]) + 1),
            "--vlans" if words[at - 1] == "in" => policy.vlans = up_to(number(words[at - 3]) + 1),
            "--vlans" => policy.vlans = VlanPool::default(),
            "--resilience" => policy.resilience = Resilience::None,
            "--fdb" => policy.fdb = next.parse().expect("a kind of tables"),
            "--tagging" => policy.tagging = next.parse().expect("a tagging"),
            "--flow-control" => policy.flow_control = next.parse().expect("a flow control"),
            "--engine" => {
                engines.push(next);
                engines.extend(words[at + 2..].strip_prefix(&["or"]).map(|others| others[0]));
            }
            "holds" => {
                let mut builder = TopologyBuilder::of(&topology);
                builder.change_models(|model| model.static_entries_max = number(next));
                topology = builder.finish().expect("connected");
            }
            _ => {}
        }
    }
    if engines.is_empty() {
        return vec![(topology, policy)];
    }
    let with = |word: &str| Policy { engine: word.parse().expect("an engine"), ..policy.clone() };
    engines.into_iter().map(|engine| (topology.clone(), with(engine))).collect()
}

#[test]
fn no_advice_leads_in_a_circle() {
    let all = Policy::default;
    let ready = || Policy { resilience: Resilience::OneLink, ..all() };
    let mut followed_count = 0;
    for (entries, policy) in [
        (40, ready()),
        (40, Policy { vlans_max: Some(3), ..ready() }),
        (20, Policy { vlans_max: Some(3), ..ready() }),
        (12, all()),
        (20, Policy { fdb: FdbMode::Full, ..all() }),
        (12, Policy { fdb: FdbMode::Minimal, engine: EngineName::Dor, ..all() }),
        (12, Policy { engine: EngineName::Auto, vlans_max: Some(2), ..all() }),
        (10_000, Policy { vlans_max: Some(5), vlans: up_to(3), engine: EngineName::Dor, ..all() }),
        (10_000, Policy { vlans_max: Some(5), vlans: up_to(3), ..ready() }),
        (10_000, Policy { vlans_max: Some(1), engine: EngineName::Auto, ..ready() }),
        (10_000, Policy { vlans_max: Some(11), engine: EngineName::Dor, ..ready() }),
    ] {
        let topology = torus(entries);
        let plans = |topology: &Topology, policy: &Policy| plan_with(topology, policy, None, &mut StepLimit::new(64));
        let Err(refused) = plans(&topology, &policy) else { continue };
        let text = refused.to_string();
        let (_, advice) = text.split_once("; ").unwrap_or((&text, ""));
        let ways: Vec<&str> = match advice {
            "" => Vec::new(),
            together if together.starts_with("several changes") => vec![together],
            several => several.split(", ").map(|way| way.trim_start_matches("or ")).collect(),
        };
        // Fewer entries than hosts are too few for any plan.
        assert!(!ways.is_empty() || entries < topology.hosts().len(), "{text}");
        for way in ways {
            for (other, changed) in followed(&topology, &policy, way) {
                assert!((&other, &changed) != (&topology, &policy), "{way:?} changes nothing: {text}");
                let found = plans(&other, &changed);
                assert!(found.is_ok(), "{way:?} of {text:?}: {}", found.expect_err("just seen"));
                followed_count += 1;
            }
        }
    }
    assert!(followed_count > 10, "{followed_count} ways out were followed");
}
