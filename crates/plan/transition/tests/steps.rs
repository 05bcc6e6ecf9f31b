//! The steps between two plans: after each part of a step, in any order, the fabric is sound.
//!
//! `ESPALIER_REPLANS` sets how many random re-plans are judged; the default suits every commit.

#[path = "../../planner/tests/common/mod.rs"]
mod common;

use std::collections::BTreeSet;

use common::{Cabling, grouped, pairs};
use fabric::{
    Admin, ChannelId, FdbMode, FindingKind, FlowControl, HostId, Plan, Policy, PortId, Resilience, Severity, Tagging,
    Topology, VlanId, VlanPool, dividing_groups, dividing_links, dividing_switches,
    generate::{Kind, Options, generate},
    rng::Rng,
};
use planner::{PlanError, StepLimit, plan, plan_with};
use transition::{
    Deadlock, Difference, FabricState, Presence, Step, StepError, StepKind, Transition, apply, difference, steps,
};
use verify::{Live, LiveCheck, check_state};

/// Re-plans in one chain of changes.
const CHAIN: usize = 8;

#[test]
fn every_state_between_two_plans_is_free_of_loops_and_floods() {
    let replans = std::env::var("ESPALIER_REPLANS").ok().and_then(|count| count.parse().ok()).unwrap_or(1_000);
    let mut tally = Tally::default();
    let mut chain = 0;
    while tally.replans < replans {
        judge_chain(chain, &mut tally);
        chain += 1;
    }
    eprintln!("{tally:?}");
    assert!(tally.mended > replans / 4, "most re-plans keep trees: {tally:?}");
    assert!(tally.states > 4 * replans, "{tally:?}");
    assert!(tally.several_paths > replans / 50, "{tally:?}");
    assert!(tally.in_turns > replans / 200 && tally.may_block <= replans / 200, "{tally:?}");
    assert!(tally.resilient > replans / 10 && tally.moved_cables_astray > replans / 100, "{tally:?}");
}

#[derive(Debug, Default)]
struct Tally {
    replans: usize,
    states: usize,
    /// Re-plans that kept the ids and lanes of all old VLANs that are left.
    mended: usize,
    /// Re-plans before which a cable that was plugged in elsewhere made frames loop, flood or stray.
    moved_cables_astray: usize,
    /// Re-plans that are ready for failures.
    resilient: usize,
    several_rounds: usize,
    /// Re-plans of several paths a pair whose trees or sets change.
    several_paths: usize,
    no_spare: usize,
    /// Re-plans in which hosts change in turns, lest frames wait for each other for ever.
    in_turns: usize,
    /// Re-plans of which no order of hosts is proven free of that.
    may_block: usize,
    entries_before: usize,
    entries_touched: usize,
}

fn judge_chain(seed: u64, tally: &mut Tally) {
    let mut rng = Rng::new(seed);
    let (switches, extra) = (2 + rng.below(9), rng.below(10));
    let mut cabling = Cabling::random(switches, extra, &mut rng);
    let first = 2 + rng.below(20) as u16;
    // Every third chain has hardly more ids than it needs.
    let last = if seed % 3 == 0 { first + 40 } else { 4094 };
    let [first, last] = [first, last].map(|id| VlanId::new(id).expect("in range"));
    let tagging = Tagging::ALL[rng.below(Tagging::ALL.len())];
    let policy = Policy {
        tagging,
        fdb: [FdbMode::Full, FdbMode::Minimal][rng.below(2)],
        flow_control: [FlowControl::None, FlowControl::Pause, FlowControl::Pause, FlowControl::Pfc(2)][rng.below(4)],
        vlans: VlanPool { first, last, ..VlanPool::default() },
        // Every fifth chain has several paths a pair, if hosts tag.
        paths_max: if tagging != Tagging::Switch && seed % 5 == 0 { 2 + rng.below(3) as u32 } else { 1 },
        // Every fourth chain makes do with few VLANs, every fifth is ready for failures.
        vlans_max: (seed % 4 == 1).then(|| 2 + rng.below(6)),
        resilience: match seed % 10 {
            2 => Resilience::OneLink,
            7 if seed % 20 == 7 => Resilience::OneGroup,
            7 => Resilience::OneSwitch,
            _ => Resilience::None,
        },
        ..Policy::default()
    };
    let with_groups = |topology: Topology, rng: &mut Rng| match policy.resilience.protects_groups() {
        true => grouped(&topology, rng),
        false => topology,
    };
    let topology = with_groups(cabling.topology().expect("connected"), &mut rng);
    // So few VLANs that no plan could be ready for failures are no plan's fault.
    let Some(mut previous) = plan_or_too_few(&topology, &policy, None) else { return };
    for link in 0..CHAIN {
        for _ in 0..1 + rng.below(3) {
            cabling.change(&mut rng);
        }
        let changed = with_groups(cabling.topology().expect("changes keep it connected"), &mut rng);
        // Now and then somebody plans anew, without regard to what is there.
        let regardless = rng.below(6) == 0;
        let Some(next) = plan_or_too_few(&changed, &policy, (!regardless).then_some(&previous)) else { return };
        tally.resilient += usize::from(next.failover.is_some());
        judge_plan(&next, &format!("chain {seed}, link {link}, {policy:?}"));
        tally.replans += 1;
        let kept = |plan: &Plan| previous.trees.iter().filter(|tree| plan.tree(tree.vlan).is_some()).count();
        tally.mended += usize::from(!regardless && kept(&next) > 0);
        let counts = difference(&previous, &next).entries;
        if !regardless {
            tally.entries_before += counts.before();
            tally.entries_touched += counts.touched();
        }
        match steps(&previous, &next) {
            Ok(transition) => {
                assert_eq!(transition.deadlock == Deadlock::NothingWaits, policy.flow_control == FlowControl::None);
                tally.may_block += usize::from(transition.deadlock == Deadlock::Unproven);
                judge_steps(&transition, &mut rng, tally, &format!("chain {seed}, link {link}"));
            }
            Err(StepError::NoSpareVlans { .. }) => tally.no_spare += 1,
            Err(error) => panic!("chain {seed}, link {link}: {error}"),
        }
        previous = next;
    }
}

/// A plan is sound if the judge finds nothing, with three exceptions, none of which depends on how it was made.
/// Without flow control routes may have cycles: mended trees keep what stands of the old ones, which a plan made anew
/// might not have. Then, and only then, there is no certificate; several paths a pair may have cycles that assigned ones have not. With flow control broadcasts alone may close a ring,
/// since a certificate is about routes. And a plan that is ready for failures is warned of links, switches and groups that nothing
/// can replace.
fn judge_plan(plan: &Plan, what: &str) {
    let report = verify::check(plan);
    let found = |kind| report.findings().iter().filter(move |finding| finding.kind == kind);
    let cycle = found(FindingKind::DependencyCycle).next();
    let unproven = found(FindingKind::BadCertificate).next().is_some();
    let (topology, asked) = (&plan.topology, plan.policy.resilience);
    let links = if asked == Resilience::None { 0 } else { dividing_links(topology).len() };
    let switches = if asked.protects_switches() { dividing_switches(topology).len() } else { 0 };
    let groups = if asked.protects_groups() { dividing_groups(topology).len() } else { 0 };
    let warned = [FindingKind::DividingLink, FindingKind::DividingSwitch, FindingKind::DividingGroup];
    assert_eq!(warned.map(|kind| found(kind).count()), [links, switches, groups], "{what}\n{report}");
    match plan.policy.flow_control {
        FlowControl::None if plan.paths.is_some() => {}
        FlowControl::None => assert_eq!(cycle.is_some(), unproven, "{what}\n{report}"),
        FlowControl::Pause | FlowControl::Pfc(_) => {
            assert!(!unproven && plan.summary.deadlock_free, "{what}\n{report}");
            let only_broadcasts = cycle.is_none_or(|cycle| cycle.message.starts_with("unicast frames cannot block"));
            assert!(only_broadcasts, "{what}\n{report}");
        }
    }
    let others = report.findings().iter().filter(|finding| match finding.kind {
        FindingKind::DividingLink | FindingKind::DividingSwitch | FindingKind::DividingGroup => false,
        FindingKind::DependencyCycle | FindingKind::BadCertificate => finding.severity != Severity::Note,
        _ => true,
    });
    assert_eq!(others.count(), 0, "{what}\n{report}");
}

fn check(transition: &Transition, state: &FabricState) -> LiveCheck {
    let FabricState { devices, tables } = state;
    let (topology, judged) = (&transition.topology, &transition.settled[..]);
    check_state(&Live { topology, devices, tables: tables.as_deref(), judged })
}

/// Isolates ports part by part, in random order. A cable that was plugged in elsewhere may loop, flood or misdeliver
/// from that moment on, which no order of steps can help; but whatever is isolated first, things only get better, nobody
/// is cut off but those whose frames met an isolated port, and in the end nothing loops or floods.
fn judge_isolation(
    transition: &Transition,
    isolating: &[Step],
    state: &mut FabricState,
    rng: &mut Rng,
    tally: &mut Tally,
    what: &str,
) -> LiveCheck {
    let mut isolated = state.clone();
    isolating.iter().flat_map(|step| &step.parts).for_each(|part| apply(part, &mut isolated));
    let end = check(transition, &isolated);
    assert!(end.report.findings().is_empty(), "{what}, isolated:\n{}", end.report);
    let mut before = check(transition, state);
    tally.moved_cables_astray += usize::from(!before.report.findings().is_empty());
    let mut parts: Vec<_> = isolating.iter().flat_map(|step| &step.parts).collect();
    rng.shuffle(&mut parts);
    for part in parts {
        apply(part, state);
        let now = check(transition, state);
        tally.states += 1;
        let at = format!("{what}, isolate: {part:?}");
        for finding in now.report.findings() {
            let known = before.report.findings().iter().any(|known| known.subject == finding.subject);
            assert!(known, "{at}\n{finding}\nbefore:\n{}", before.report);
        }
        let among = |these: &[(HostId, HostId)], those: &[(HostId, HostId)]| -> Vec<(HostId, HostId)> {
            these.iter().filter(|pair| those.binary_search(pair).is_err()).copied().collect()
        };
        let cut = among(&among(&now.lost, &before.lost), &end.lost);
        assert!(cut.is_empty(), "{at}\ncuts off {}", pairs(&transition.topology, &cut));
        let deaf = among(&among(&now.unheard, &before.unheard), &end.unheard);
        assert!(deaf.is_empty(), "{at}\nkeeps broadcasts from {}", pairs(&transition.topology, &deaf));
        before = now;
    }
    end
}

/// Takes the steps part by part, in random order within each, and judges every state.
fn judge_steps(transition: &Transition, rng: &mut Rng, tally: &mut Tally, what: &str) {
    let mut state = transition.start.clone();
    let steps = &transition.steps;
    let (isolating, rest) = steps.split_at(steps.iter().take_while(|step| step.kind == StepKind::Isolate).count());
    let start = judge_isolation(transition, isolating, &mut state, rng, tally, what);
    let mut now = start.clone();
    for step in rest {
        let mut parts: Vec<_> = step.parts.iter().collect();
        rng.shuffle(&mut parts);
        let mut waits = Waits::default();
        waits.see(transition, &state);
        for part in parts {
            apply(part, &mut state);
            waits.see(transition, &state);
            now = check(transition, &state);
            tally.states += 1;
            let at = format!("{what}, round {} {}: {part:?}", step.round, step.kind.word());
            assert!(now.report.findings().is_empty(), "{at}\n{}", now.report);
            let cut: Vec<_> = now.lost.iter().filter(|pair| start.lost.binary_search(pair).is_err()).copied().collect();
            assert!(cut.is_empty(), "{at}\ncuts off {}", pairs(&transition.topology, &cut));
            let in_vain: Vec<_> =
                now.lost_in.iter().filter(|lost| start.lost_in.binary_search(lost).is_err()).collect();
            assert!(in_vain.is_empty(), "{at}\nfurther VLANs lose frames: {in_vain:?}");
            let deaf: Vec<_> =
                now.unheard.iter().filter(|pair| start.unheard.binary_search(pair).is_err()).copied().collect();
            assert!(deaf.is_empty(), "{at}\nkeeps broadcasts from {}", pairs(&transition.topology, &deaf));
        }
        let at = format!("{what}, round {} {}", step.round, step.kind.word());
        let proven = matches!(transition.deadlock, Deadlock::Impossible(_));
        assert!(!proven || !waits.can_last(), "{at}: frames can wait for each other for ever");
    }
    tally.several_rounds += usize::from(steps.iter().any(|step| step.round > 1));
    let flips = |steps: &[Step]| steps.iter().all(|step| step.kind == StepKind::Flip && step.round == steps[0].round);
    tally.in_turns += usize::from(steps.windows(2).any(flips));
    let spreads = |state: &FabricState| state.tables.iter().flatten().any(|table| !table.paths.is_empty());
    let settles = steps.iter().any(|step| step.kind == StepKind::Settle);
    tally.several_paths += usize::from(settles && spreads(&transition.goal));
    assert_eq!(state, transition.goal, "{what}");
    let all_arrive = now.lost.is_empty() && now.lost_in.is_empty() && now.unheard.is_empty();
    assert!(all_arrive || rest.is_empty(), "{what}: the goal loses pairs");
}

/// What frames of settled hosts wait for, as they are followed from entry to entry in every state that is seen: held
/// channel to wanted channel, each with the priority class of the switch that it leads to.
#[derive(Default)]
struct Waits(BTreeSet<[(ChannelId, usize); 2]>);

impl Waits {
    fn see(&mut self, transition: &Transition, state: &FabricState) {
        let topology = &transition.topology;
        let port = |port: PortId| {
            let device = &state.devices[topology.port(port).switch.index()];
            device.ports.iter().find(|intent| intent.port == port).expect("state for every port")
        };
        let carries = |at: PortId, vlan: VlanId| port(at).admin == Admin::Up && port(at).tagged.contains(vlan);
        for (source, destination) in
            transition.settled.iter().flat_map(|a| transition.settled.iter().map(move |b| (*a, *b)))
        {
            let vlans: Vec<VlanId> = match &state.tables {
                None => port(topology.host(source).port).pvid.into_iter().collect(),
                Some(tables) => {
                    let table = &tables[source.index()];
                    table.vlan_to(destination).into_iter().chain(table.paths_to(destination).iter().copied()).collect()
                }
            };
            for vlan in vlans {
                let (mut at, mut held) = (topology.switch_of(source), None);
                while let Some(run) = (state.devices[at.index()].fdb.iter())
                    .find(|run| run.vlan == vlan && run.first <= destination && destination <= run.last)
                {
                    let mut ways =
                        topology.neighbours(at).filter(|(channel, _)| topology.tail_port(*channel) == run.port);
                    let Some((channel, next)) = ways.next() else { break };
                    let back = held.is_some_and(|(held, _)| topology.head_port(held) == run.port);
                    if back || !carries(run.port, vlan) || !carries(topology.head_port(channel), vlan) {
                        break;
                    }
                    let wanted = (channel, state.devices[next.index()].class_of(vlan).unwrap_or(0));
                    self.0.extend(held.map(|held| [held, wanted]));
                    (at, held) = (next, Some(wanted));
                }
            }
        }
    }

    /// Whether some of it closes a cycle: what nobody waits for is taken away as long as there is any.
    fn can_last(&self) -> bool {
        let mut left = self.0.clone();
        loop {
            let held: BTreeSet<_> = left.iter().map(|[held, _]| *held).collect();
            let before = left.len();
            left.retain(|[_, wanted]| held.contains(wanted));
            if left.len() == before {
                return !left.is_empty();
            }
        }
    }
}

#[test]
fn nothing_changes_between_a_plan_and_itself() {
    let plan = plan(&generated("torus", "4x4"), &Policy::default(), None).expect("it plans");
    let difference = difference(&plan, &plan);
    assert!(difference.switches.is_empty() && difference.entries.touched() == 0, "{difference}");
    assert!(steps(&plan, &plan).expect("no change is a change too").steps.is_empty());
}

#[test]
fn differences_count_what_comes_and_goes() {
    let mesh = generated("mesh", "3x1");
    let ring = generated("mesh", "4x1");
    let [three, four] = [mesh, ring].map(|t| plan(&t, &Policy::default(), None).expect("it plans"));
    let grown = difference(&three, &four);
    let presence = |d: &Difference, p| d.switches.iter().filter(|s| s.presence == p).count();
    assert_eq!((presence(&grown, Presence::Added), presence(&grown, Presence::Removed)), (1, 0));
    assert_eq!(grown.entries.before(), three.summary.fdb_entries_total);
    let shrunk = difference(&four, &three);
    assert_eq!((presence(&shrunk, Presence::Added), presence(&shrunk, Presence::Removed)), (0, 1));
    assert_eq!(shrunk.switches_common, 3);
    assert_eq!((shrunk.entries.added, shrunk.entries.changed), (grown.entries.removed, grown.entries.changed));
}

#[test]
fn who_tags_cannot_change_live() {
    let mesh = generated("mesh", "3x3");
    let by = |tagging| plan(&mesh, &Policy { tagging, ..Policy::default() }, None).expect("it plans");
    let error = steps(&by(Tagging::Switch), &by(Tagging::Pair)).expect_err("hosts would have to begin to tag");
    assert!(matches!(error, StepError::TaggingDiffers { .. }), "{error}");
}

/// While switches change, hosts send in assigned VLANs alone, and accept the VLANs of both plans.
#[test]
fn hosts_leave_their_further_paths_before_switches_change_and_take_new_ones_afterwards() {
    let torus = generated("torus", "3x3");
    let of = |paths_max, first| {
        let vlans = VlanPool { first: VlanId::new(first).expect("in range"), ..VlanPool::default() };
        let policy = Policy { tagging: Tagging::Source, paths_max, vlans, ..Policy::default() };
        plan(&torus, &policy, None).expect("it plans")
    };
    let (one, three) = (of(1, 2), of(3, 2));
    assert_eq!(steps(&three, &three).map(|way| way.steps.len()), Ok(0));
    for (before, after) in [(&one, &three), (&three, &one), (&three, &of(3, 1000))] {
        let transition = steps(before, after).expect("room for both");
        let kinds: Vec<StepKind> = transition.steps.iter().map(|step| step.kind).collect();
        assert_eq!((kinds[0], kinds[kinds.len() - 1]), (StepKind::Ready, StepKind::Settle), "{kinds:?}");
        assert!(kinds.contains(&StepKind::Fill) || kinds.contains(&StepKind::Free), "{kinds:?}");
        let mut tally = Tally::default();
        judge_steps(&transition, &mut Rng::new(1), &mut tally, "path sets");
        assert!(tally.states > 2 * torus.hosts().len(), "{tally:?}");
        let mut state = transition.start.clone();
        for step in &transition.steps {
            step.parts.iter().for_each(|part| apply(part, &mut state));
            let spread = state.tables.iter().flatten().filter(|table| !table.paths.is_empty()).count();
            assert!(step.kind == StepKind::Settle || spread == 0, "{:?}", step.kind);
        }
    }
}

fn generated(kind: &str, size: &str) -> Topology {
    let kind = Kind::parse(kind, &[size.to_owned()]).expect("a valid size");
    generate(&kind, &Options::default()).expect("a sane size")
}

/// A plan with little search; none if it cannot be ready for failures with so few VLANs.
fn plan_or_too_few(topology: &Topology, policy: &Policy, previous: Option<&Plan>) -> Option<Plan> {
    match few_steps(topology, policy, previous) {
        Ok(plan) => Some(plan),
        Err(PlanError::TooManyVlansForResilience { .. }) => None,
        Err(error) => panic!("auto always finds a plan: {error}"),
    }
}

/// Plans with little search: these tests are about being right, not about being good.
fn few_steps(topology: &Topology, policy: &Policy, previous: Option<&Plan>) -> Result<Plan, PlanError> {
    plan_with(topology, policy, previous, &mut StepLimit::new(2))
}
