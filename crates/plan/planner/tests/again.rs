//! Planning again holds still: the same request is the same plan, and a changed one is heard, whatever the options.
//!
//! Requests are randomly chosen from tagging, flow control, tables, resilience, cap, management in band and matrix;
//! a failure names its seed. `ESPALIER_REQUESTS` sets how many.

mod common;

use common::Cabling;
use fabric::{
    Demand, FdbMode, FlowControl, InBand, LinkId, Plan, Policy, Resilience, SwitchId, Tagging, Topology,
    TopologyBuilder, Traffic, TrafficMatrix, VlanId,
    format::plan::{ReadMode, read_plan, write_plan},
    rng::Rng,
};
use planner::{PlanError, REPLAN_LOAD_FACTOR, StepLimit, plan_with};
use transition::difference;

fn requests() -> u64 {
    std::env::var("ESPALIER_REQUESTS").ok().and_then(|count| count.parse().ok()).unwrap_or(200)
}

/// Plans with little search: these tests compare plans that were made with as little.
fn few_steps(topology: &Topology, policy: &Policy, previous: Option<&Plan>) -> Result<Plan, PlanError> {
    plan_with(topology, policy, previous, &mut StepLimit::new(2))
}

fn vlan(id: u16) -> VlanId {
    VlanId::new(id).expect("in range")
}

/// The cabling's topology, managed in band if `managed` says so.
fn topology(cabling: &Cabling, managed: bool) -> Topology {
    let topology = cabling.topology().expect("connected");
    if !managed {
        return topology;
    }
    let mut builder = TopologyBuilder::of(&topology);
    let controller = builder.add_port(SwitchId::new(0), "ctl").expect("a fresh port");
    builder.set_in_band(InBand { vlan: vlan(100), controller }).expect("a free port");
    builder.finish().expect("connected")
}

/// Demands between a quarter of all pairs.
fn matrix(topology: &Topology, rng: &mut Rng) -> Traffic {
    let mut demands = Vec::new();
    for source in topology.host_ids() {
        for destination in topology.host_ids().filter(|destination| *destination != source) {
            if rng.below(4) == 0 {
                demands.push(Demand { source, destination, amount: (1 + rng.below(9)) as f64 });
            }
        }
    }
    Traffic::Matrix(TrafficMatrix::new(topology.hosts().len(), demands).expect("sane demands"))
}

struct Case {
    cabling: Cabling,
    managed: bool,
    policy: Policy,
    rng: Rng,
}

impl Case {
    fn random(seed: u64) -> Self {
        let mut rng = Rng::new(seed);
        let (switches, extra) = (2 + rng.below(8), rng.below(9));
        let cabling = Cabling::random(switches, extra, &mut rng);
        let managed = rng.below(5) == 0;
        let traffic =
            if rng.below(4) == 0 { matrix(&topology(&cabling, managed), &mut rng) } else { Traffic::AllToAll };
        let flow_controls =
            [FlowControl::None, FlowControl::Pause, FlowControl::Pause, FlowControl::Pfc(2), FlowControl::Pfc(4)];
        let policy = Policy {
            tagging: Tagging::ALL[rng.below(Tagging::ALL.len())],
            flow_control: flow_controls[rng.below(flow_controls.len())],
            fdb: [FdbMode::Full, FdbMode::Minimal][rng.below(2)],
            vlans_max: (rng.below(3) == 0).then(|| 1 + rng.below(8)),
            resilience: if rng.below(4) == 0 { Resilience::OneLink } else { Resilience::None },
            seed: 1 + rng.below(5) as u64,
            traffic,
            ..Policy::default()
        };
        Self { cabling, managed, policy, rng }
    }

    fn topology(&self) -> Topology {
        topology(&self.cabling, self.managed)
    }

    /// Its first plan, as it is after it was stored; none if the cap leaves no room for protection.
    fn first(&self) -> Option<Plan> {
        let plan = match few_steps(&self.topology(), &self.policy, None) {
            Err(PlanError::TooManyVlansForResilience { .. }) => return None,
            plan => plan.expect("auto plans every cabling"),
        };
        let mut text = Vec::new();
        write_plan(&plan, &mut text).expect("into memory");
        Some(read_plan(&text, ReadMode::Strict).expect("what was written"))
    }
}

#[test]
fn the_same_request_again_is_the_same_plan() {
    let mut planned = 0;
    for seed in 0..requests() {
        let case = Case::random(seed);
        let Some(first) = case.first() else { continue };
        let again = few_steps(&case.topology(), &case.policy, Some(&first)).expect("the plan is there");
        assert!(again == first, "seed {seed}, {:?}: {}", case.policy, difference(&first, &again));
        planned += 1;
    }
    assert!(2 * planned > requests(), "{planned}");
}

/// A changed input may cost changes, but never more load than [`REPLAN_LOAD_FACTOR`] times a fresh plan's.
#[test]
fn a_changed_input_is_heard() {
    let (mut heard, mut kept) = (0, 0);
    for seed in 0..requests() {
        let mut case = Case::random(seed);
        let Some(first) = case.first() else { continue };
        let (whole, rng) = (case.topology(), &mut case.rng);
        let mut policy = case.policy.clone();
        match rng.below(5) {
            0 => policy.traffic = matrix(&whole, rng),
            1 => policy.vlans_max = if rng.below(3) == 0 { None } else { Some(1 + rng.below(9)) },
            2 => policy.vlans.reserved.extend((2..2 + rng.below(6) as u16).map(vlan)),
            3 => policy.seed += 1,
            _ => {
                let links = case.cabling.links.len();
                let rates = [100_000_000, 1_000_000_000, 10_000_000_000];
                if links > 0 {
                    case.cabling.links[rng.below(links)].2 = rates[rng.below(3)];
                }
            }
        }
        let changed = case.topology();
        let Ok(fresh) = few_steps(&changed, &policy, None) else { continue };
        let again = few_steps(&changed, &policy, Some(&first)).expect("where a fresh plan is, so is this");
        let times = [&again, &fresh].map(|plan| plan.summary.max_channel_time);
        assert!(times[0] <= times[1] * REPLAN_LOAD_FACTOR * (1.0 + 1e-9), "seed {seed}: {times:?}, {policy:?}");
        assert!(again.trees.iter().all(|tree| policy.vlans.contains(tree.vlan)), "seed {seed}");
        let report = verify::check(&again);
        assert!(report.is_deployable(), "seed {seed}, {policy:?}\n{report}");
        if difference(&first, &again).entries.touched() > 0 { heard += 1 } else { kept += 1 }
    }
    eprintln!("{heard} changed entries, {kept} did not");
    assert!(heard > 0 && kept > 0, "{heard} changed entries, {kept} did not");
}

/// A cable that dies costs only trees that used it; one that comes costs nothing; nor does a host that leaves another's
/// choice.
#[test]
fn little_changes_with_the_cabling() {
    let (mut lost, mut anew) = (0, 0);
    for seed in 0..requests() {
        let mut case = Case::random(seed);
        // What is ready for failures uses every cable, and is made ready again when one comes.
        case.policy.resilience = Resilience::None;
        let Some(first) = case.first() else { continue };
        let at = case.rng.below(case.cabling.links.len().max(1));
        let mut less = case.cabling.clone();
        if case.cabling.links.is_empty() {
            continue;
        }
        less.links.remove(at);
        if less.topology().is_none() {
            continue;
        }
        let what = format!("seed {seed}, link {at}, {:?}", case.policy);
        let without = few_steps(&topology(&less, case.managed), &case.policy, Some(&first)).expect("it plans");
        assert!(verify::check(&without).is_deployable(), "{what}");
        lost += 1;
        let gone = LinkId::new(at);
        let untouched = |tree: &&fabric::VlanTree| !tree.tree.contains(gone);
        let stays = |tree: &fabric::VlanTree| {
            without.tree(tree.vlan).is_some_and(|now| now.tree.links().len() == tree.tree.links().len())
        };
        anew += usize::from(!first.trees.iter().filter(untouched).all(stays));
        let again = few_steps(&case.topology(), &case.policy, Some(&without)).expect("it plans");
        let back = difference(&without, &again);
        assert_eq!(back.entries.touched(), 0, "{what}: {back}");
        assert!(verify::check(&again).is_deployable(), "{what}");
    }
    eprintln!("{lost} lost cables, after {anew} of which trees changed that had not used them");
    assert!(lost > 20 && 5 * anew <= lost, "{anew} of {lost}");
}
