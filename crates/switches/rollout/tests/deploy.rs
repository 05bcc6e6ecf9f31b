//! Deployments under seeded faults: whatever happens, no loop at any moment, and a clear state in the end.
//!
//! The fabric here is a simulation with its own idea of what frames do: switches take a write as a series of single
//! changes between which anything may happen, keep what they restart with apart from what they run, and answer through a
//! network that may lose the question or the answer. After every single change every cycle that a broadcast could take
//! is looked for. `SCHEDULES=N` runs more schedules; the seed of a failure is printed, and `SEED=N` runs it alone.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    env,
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use fabric::{
    Admin, Attachment, FlowControlMode, LinkId, Mac, PortId, SpanningTree, SwitchId, SwitchSpec, Topology,
    TopologyBuilder, VlanId, rng::Rng,
};
use rollout::deploy::{
    Cables, Deployment, DeploymentSpec, Journal, LiveStage, Management, ManagementForm, Outcome, Precedence, Reason,
    Reply, SwitchRequest, Watch, Way,
};
use switch_model::{
    PortConfig, PortLearning, Slot, SwitchConfig, align,
    driver::{Addresses, Fault, Fence, Reading},
    edit::{Edit, edits},
    mark::Mark,
    observe::Count,
    sight::{Learned, Sight},
    station::{Capabilities, LldpId, LldpNeighbour, Station, StationPort},
};

const SCHEDULES: u64 = 400;

#[test]
fn drained_deployments_survive_any_fault() {
    for_each_seed(|seed| {
        let mut rng = Rng::new(seed);
        let mut world = World::random(&mut rng);
        let goals = world.plan(&mut rng, 10);
        world.faults = faults(&mut rng, &world.topology);
        let order = order(&world, goals.clone(), Way::Drained, 1);
        let backup = world.running();
        let mut deployment = Deployment::new(&world.topology, order);
        world.run(&mut [&mut deployment], &mut rng);
        world.judge_end(&deployment, &goals, &backup);
    });
}

#[test]
fn in_band_deployments_keep_the_way_to_every_switch() {
    for_each_seed(|seed| {
        let mut rng = Rng::new(seed);
        let mut world = World::random(&mut rng);
        world.manage_in_band(&mut rng);
        let goals = world.plan(&mut rng, 10);
        world.faults = faults(&mut rng, &world.topology);
        let order = order(&world, goals.clone(), Way::Drained, 1);
        let backup = world.running();
        let mut deployment = Deployment::new(&world.topology, order);
        world.run(&mut [&mut deployment], &mut rng);
        world.judge_end(&deployment, &world.overlaid(&goals), &backup);
    });
}

/// A plan that names fewer cables than are plugged in, some of its VLANs being those that the plan before had there: the
/// ports that it leaves out go out of service with the others, or get back what they held.
#[test]
fn ports_that_a_plan_names_no_more_close_no_loop() {
    for_each_seed(|seed| {
        let mut rng = Rng::new(seed);
        let mut world = World::random(&mut rng);
        let old = world.plan(&mut rng, 10);
        world.hold(&old);
        let (known, parked) = world.fewer(&mut rng);
        let first = [10, 12, 20][rng.below(3)];
        let goals = World::of(known).plan(&mut rng, first);
        world.faults = faults(&mut rng, &world.topology);
        let mut order = order(&world, goals.clone(), Way::Drained, 1);
        order.park(&parked);
        // What the plan's ports hear is compared with the plan's cabling alone.
        order.watch = None;
        let known = world.known_by(&parked);
        world.views = known.iter().zip(&parked).map(|(known, parked)| [&known[..], parked].concat()).collect();
        let topology = world.topology_of(&parked);
        let mut deployment = Deployment::new(&topology, order);
        world.run(&mut [&mut deployment], &mut rng);
        let ends: Vec<SwitchConfig> = (goals.iter().zip(&parked).zip(&old))
            .map(|((goal, parked), old)| {
                let names: Vec<String> = old.ports.iter().map(|port| port.name.clone()).collect();
                let mut end = align(&goal.with_parked(parked), &names);
                end.ports.iter_mut().for_each(|port| port.learning = PortLearning::Always);
                end
            })
            .collect();
        world.judge_end(&deployment, &ends, &old);
    });
}

/// A port on the way to the controller goes down with the change, whichever it is: the switch finds that it is cut off, and
/// takes the change back, so that everybody gets back what they held.
#[test]
fn a_switch_that_a_change_cuts_off_takes_it_back() {
    for_each_seed(|seed| {
        let mut rng = Rng::new(seed);
        let mut world = World::random(&mut rng);
        world.manage_in_band(&mut rng);
        world.switches.iter_mut().for_each(|switch| switch.guards = true);
        let goals = world.plan(&mut rng, 10);
        let switch = SwitchId::new(1 + rng.below(world.switches.len() - 1));
        world.faults = vec![Trouble { switch, at: rng.below(4), kind: Kind::Severs }];
        let order = order(&world, goals.clone(), Way::Drained, 1);
        let backup = world.running();
        let mut deployment = Deployment::new(&world.topology, order);
        world.run(&mut [&mut deployment], &mut rng);
        match deployment.outcome() {
            Some(Outcome::RolledBack { .. } | Outcome::Refused(_)) => assert_eq!(world.running(), backup),
            // The change that would have cut it off was none, or a configuration that was saved.
            Some(Outcome::Deployed { .. }) if world.severed == 0 => {}
            other => panic!("{other:?}"),
        }
    });
}

#[test]
fn two_deployers_in_band_never_mix() {
    for_each_seed(|seed| {
        let mut rng = Rng::new(seed);
        let mut world = World::random(&mut rng);
        world.manage_in_band(&mut rng);
        let (one, two) = (world.plan(&mut rng, 10), world.plan(&mut rng, 10));
        if rng.below(2) == 0 {
            world.faults = faults(&mut rng, &world.topology);
        }
        let mut first = Deployment::new(&world.topology, order(&world, one.clone(), Way::Drained, 1));
        let mut second = Deployment::new(&world.topology, order(&world, two.clone(), Way::Drained, 2));
        let quiet = world.faults.is_empty();
        world.run(&mut [&mut first, &mut second], &mut rng);
        let sound = |d: &Deployment| matches!(d.outcome(), Some(Outcome::Deployed { doubts, .. }) if doubts.is_empty());
        if quiet {
            assert!(sound(&first) || sound(&second), "{:?} {:?}", first.outcome(), second.outcome());
            let is = |goals: &[SwitchConfig]| world.running() == world.overlaid(goals);
            assert!(is(&one) || is(&two), "the fabric is of one plan");
        }
    });
}

#[test]
fn an_interrupted_in_band_deployment_resumes_or_is_undone() {
    for_each_seed(|seed| {
        let mut rng = Rng::new(seed);
        let mut world = World::random(&mut rng);
        world.manage_in_band(&mut rng);
        let goals = world.plan(&mut rng, 10);
        let backup = world.running();
        let mut deployment = Deployment::new(&world.topology, order(&world, goals.clone(), Way::Drained, 1));
        world.patience = Some(rng.below(12 * world.switches.len()));
        world.run(&mut [&mut deployment], &mut rng);
        world.patience = None;
        let Some(journal) = world.journal.clone() else {
            assert_eq!(world.running(), backup, "nothing is written before the journal");
            return;
        };
        let undo = rng.below(2) == 0;
        let mut resumed = order(&world, goals.clone(), if undo { Way::Undo } else { Way::Drained }, 1);
        resumed.resume = Some(journal);
        let mut deployment = Deployment::new(&world.topology, resumed);
        world.run(&mut [&mut deployment], &mut rng);
        match deployment.outcome() {
            Some(Outcome::Deployed { doubts, .. }) if !undo && doubts.is_empty() => {
                assert_eq!(world.running(), world.overlaid(&goals));
            }
            Some(Outcome::RolledBack { .. }) if undo => assert_eq!(world.running(), backup),
            other => panic!("{other:?}"),
        }
    });
}

#[test]
fn a_way_that_is_not_there_yet_is_refused_before_anything_is_written() {
    let mut rng = Rng::new(13);
    let mut world = World::ring(5, &[]);
    world.manage_in_band(&mut rng);
    let goals = world.plan(&mut rng, 10);
    let (at, slot) = (3, *world.carriers(3).first().expect("a port of the tree"));
    world.switches[at].running.ports[slot.index()].untagged.remove(VlanId::MIN);
    let before = world.running();
    let mut deployment = Deployment::new(&world.topology, order(&world, goals, Way::Drained, 1));
    world.management = Management::OutOfBand;
    world.run(&mut [&mut deployment], &mut rng);
    let name = &before[at].ports[slot.index()].name;
    let named = |outcome: &Outcome| matches!(outcome, Outcome::Refused(Reason::NoWay(switch, port)) if switch.index() == at && port == name);
    assert!(deployment.outcome().is_some_and(named), "{:?}", deployment.outcome());
    assert_eq!((world.writes, world.running()), (0, before));
}

#[test]
fn live_changes_survive_any_fault() {
    let turned = AtomicUsize::new(0);
    for_each_seed(|seed| {
        let mut rng = Rng::new(seed);
        let mut world = World::random(&mut rng);
        let old = world.plan(&mut rng, 10);
        world.hold(&old);
        let goals = world.plan(&mut rng, 20);
        let (mut start, mut stages) = (known(&old), live_stages(&old, &goals));
        // A switch that joins holds something else at first, and is brought to what the others begin with.
        if rng.below(3) == 0 {
            let joins = rng.below(old.len());
            start[joins] = None;
            stages.insert(0, LiveStage::Switches(BTreeMap::from([(SwitchId::new(joins), old[joins].clone())])));
            let held = &mut world.switches[joins].running;
            held.entries.insert((VlanId::MIN, Mac::local(9)), Slot::new(0));
            held.ports[0].pvid = VlanId::new(77).ok();
        }
        let before = world.running();
        match rng.below(3) {
            0 => world.tagging.fail = Some(rng.below(4)),
            _ => world.faults = faults(&mut rng, &world.topology),
        }
        world.tagging.between = between(&old, &goals).to_vec();
        let order = order(&world, goals.clone(), Way::Live { start, stages }, 1);
        let mut deployment = Deployment::new(&world.topology, order);
        world.run(&mut [&mut deployment], &mut rng);
        world.judge_end(&deployment, &goals, &before);
        match deployment.outcome() {
            Some(Outcome::Deployed { .. }) => assert_eq!(world.tagging.state, 2),
            Some(Outcome::RolledBack { reason, .. }) => {
                assert_eq!(world.tagging.state, 0);
                turned.fetch_add(usize::from(matches!(reason, Reason::Hosts(_))), Ordering::Relaxed);
            }
            Some(Outcome::Refused(_)) => assert_eq!(world.tagging.asked, 0),
            _ => {}
        }
    });
    assert!(env::var_os("SEED").is_some() || turned.into_inner() > 5, "hosts fail too seldom");
}

#[test]
fn two_deployers_at_once_never_mix() {
    for_each_seed(|seed| {
        let mut rng = Rng::new(seed);
        let mut world = World::random(&mut rng);
        let (one, two) = (world.plan(&mut rng, 10), world.plan(&mut rng, 10));
        if rng.below(2) == 0 {
            world.faults = faults(&mut rng, &world.topology);
        }
        let mut first = Deployment::new(&world.topology, order(&world, one.clone(), Way::Drained, 1));
        let mut second = Deployment::new(&world.topology, order(&world, two.clone(), Way::Drained, 2));
        let quiet = world.faults.is_empty();
        world.run(&mut [&mut first, &mut second], &mut rng);
        let deployed = |deployment: &Deployment| matches!(deployment.outcome(), Some(Outcome::Deployed { .. }));
        if quiet {
            assert!(deployed(&first) || deployed(&second), "{:?} {:?}", first.outcome(), second.outcome());
        }
        let sound = |d: &Deployment| matches!(d.outcome(), Some(Outcome::Deployed { doubts, .. }) if doubts.is_empty());
        if quiet && (sound(&first) || sound(&second)) {
            let is = |goals: &[SwitchConfig]| world.running() == goals;
            assert!(is(&one) || is(&two), "the fabric is of one plan");
        }
    });
}

#[test]
fn an_interrupted_deployment_resumes_or_is_undone() {
    for_each_seed(|seed| {
        let mut rng = Rng::new(seed);
        let mut world = World::random(&mut rng);
        let goals = world.plan(&mut rng, 10);
        let backup = world.running();
        let mut deployment = Deployment::new(&world.topology, order(&world, goals.clone(), Way::Drained, 1));
        // The controller dies after some number of answers, and with it what it knew, but for the journal.
        world.patience = Some(rng.below(12 * world.switches.len()));
        world.run(&mut [&mut deployment], &mut rng);
        world.patience = None;
        let Some(journal) = world.journal.clone() else {
            assert_eq!(world.running(), backup, "nothing is written before the journal");
            return;
        };
        let undo = rng.below(2) == 0;
        let way = if undo { Way::Undo } else { Way::Drained };
        let mut resumed = order(&world, goals.clone(), way, 1);
        resumed.resume = Some(journal);
        let mut deployment = Deployment::new(&world.topology, resumed);
        world.run(&mut [&mut deployment], &mut rng);
        match deployment.outcome() {
            Some(Outcome::Deployed { doubts, .. }) if !undo && doubts.is_empty() => assert_eq!(world.running(), goals),
            Some(Outcome::RolledBack { .. }) if undo => assert_eq!(world.running(), backup),
            other => panic!("{other:?}"),
        }
    });
}

/// The controller dies after each answer in turn. As long as there is no journal the same command goes on, as often as it
/// takes, and from then on the journal does; a mark of the same generation that is not its own still stops it.
#[test]
fn whoever_dies_at_any_step_goes_on_without_taking_over() {
    let (mut before, mut after) = (0, 0);
    for seed in 0..12 {
        for step in 0.. {
            let mut rng = Rng::new(seed);
            let mut world = World::random(&mut rng);
            let goals = world.plan(&mut rng, 10);
            // An earlier deployment of its own, so that the folder knows a generation.
            let earlier = world.plan(&mut rng, 20);
            let mut first = Deployment::new(&world.topology, order(&world, earlier, Way::Drained, 1));
            world.run(&mut [&mut first], &mut rng);
            let known = first.mark_left().map(|mark| mark.generation);
            (world.journal, world.patience) = (None, Some(step));
            world.claims.clear();
            let next = |world: &World, nonce| DeploymentSpec {
                digest: 7,
                generation: known,
                claims: world.claims.clone(),
                resume: world.journal.clone(),
                ..order(world, goals.clone(), Way::Drained, nonce)
            };
            let mut dies = Deployment::new(&world.topology, next(&world, 2));
            world.run(&mut [&mut dies], &mut rng);
            if dies.outcome().is_some() {
                break;
            }
            if world.journal.is_none() {
                // And once more, a little later.
                world.patience = Some(step + 1);
                let mut again = Deployment::new(&world.topology, next(&world, 3));
                world.run(&mut [&mut again], &mut rng);
                before += 1;
            } else {
                after += 1;
            }
            world.patience = None;
            let nonce = if world.journal.is_some() { 2 } else { 4 };
            let mut last = Deployment::new(&world.topology, next(&world, nonce));
            world.run(&mut [&mut last], &mut rng);
            let sound = matches!(last.outcome(), Some(Outcome::Deployed { doubts, .. }) if doubts.is_empty());
            assert!(sound, "seed {seed}, step {step}: {:?}", last.outcome());
            assert_eq!(world.running(), goals, "seed {seed}, step {step}");
            // Of the generation that a claim had, but somebody else's.
            if let Some(claim) = world.claims.first().copied() {
                let mark = Mark { nonce: claim.nonce ^ 8, ..claim };
                world.switches.iter_mut().for_each(|switch| switch.mark = Some(mark));
                let other = world.plan(&mut rng, 30);
                let late = DeploymentSpec {
                    generation: known,
                    claims: world.claims.clone(),
                    ..order(&world, other, Way::Drained, 5)
                };
                let mut late = Deployment::new(&world.topology, late);
                world.run(&mut [&mut late], &mut rng);
                assert!(matches!(late.outcome(), Some(Outcome::Stale { .. })), "{:?}", late.outcome());
            }
        }
    }
    assert!(before > 100 && after > 300, "{before} before the journal, {after} after");
}

#[test]
fn deploying_the_same_again_writes_nothing() {
    let mut rng = Rng::new(7);
    let mut world = World::random(&mut rng);
    let goals = world.plan(&mut rng, 10);
    let mut deployment = Deployment::new(&world.topology, order(&world, goals.clone(), Way::Drained, 1));
    world.run(&mut [&mut deployment], &mut rng);
    assert!(matches!(deployment.outcome(), Some(Outcome::Deployed { .. })));
    let writes = world.writes;
    let mut again = Deployment::new(&world.topology, order(&world, goals, Way::Drained, 2));
    world.run(&mut [&mut again], &mut rng);
    assert_eq!(again.outcome(), Some(&Outcome::Unchanged));
    assert_eq!(world.writes, writes);
}

#[test]
fn a_stale_deployer_is_refused_before_it_writes() {
    let mut rng = Rng::new(9);
    let mut world = World::random(&mut rng);
    let goals = world.plan(&mut rng, 10);
    let mut deployment = Deployment::new(&world.topology, order(&world, goals.clone(), Way::Drained, 1));
    world.run(&mut [&mut deployment], &mut rng);
    let (writes, running) = (world.writes, world.running());
    let other = world.plan(&mut rng, 10);
    let mut stale = order(&world, other, Way::Drained, 2);
    stale.generation = Some(0);
    let mut stale = Deployment::new(&world.topology, stale);
    world.run(&mut [&mut stale], &mut rng);
    assert!(matches!(stale.outcome(), Some(Outcome::Stale { .. })), "{:?}", stale.outcome());
    assert_eq!((world.writes, world.running()), (writes, running));
}

/// Whatever became of a deployment, the next from the same folder need not take over, and is no more patient with others.
#[test]
fn whoever_was_refused_or_turned_back_deploys_again() {
    let (refused, turned) = (AtomicUsize::new(0), AtomicUsize::new(0));
    for_each_seed(|seed| {
        let mut rng = Rng::new(seed);
        let mut world = World::random(&mut rng);
        let goals = world.plan(&mut rng, 20);
        world.faults = faults(&mut rng, &world.topology);
        let mut first = order(&world, goals.clone(), Way::Drained, 1);
        first.generation = Some(0);
        let mut first = Deployment::new(&world.topology, first);
        world.run(&mut [&mut first], &mut rng);
        world.faults.clear();
        let kind = match first.outcome() {
            Some(Outcome::Refused(_)) => &refused,
            Some(Outcome::RolledBack { .. }) => &turned,
            _ => return,
        };
        let known = first.mark_left().map_or(0, |mark| mark.generation);
        let mut next = order(&world, goals.clone(), Way::Drained, 2);
        next.generation = Some(known);
        let mut next = Deployment::new(&world.topology, next);
        world.run(&mut [&mut next], &mut rng);
        match next.outcome() {
            // A switch that nobody can manage any more is asked in vain.
            Some(Outcome::Refused(Reason::Faults(..))) => return,
            Some(Outcome::Deployed { .. }) => kind.fetch_add(1, Ordering::Relaxed),
            other => panic!("{other:?}"),
        };
        assert_eq!(world.running(), goals);
        // Somebody else's folder, which knows of neither, is refused as before.
        let mut stale = order(&world, world.plan(&mut rng, 30), Way::Drained, 3);
        stale.generation = Some(known);
        let mut stale = Deployment::new(&world.topology, stale);
        world.run(&mut [&mut stale], &mut rng);
        assert!(matches!(stale.outcome(), Some(Outcome::Stale { .. })), "{:?}", stale.outcome());
    });
    let one = env::var_os("SEED").is_some();
    assert!(one || (refused.into_inner() > 5 && turned.into_inner() > 5), "neither case came up often enough");
}

#[test]
fn a_live_change_begins_nowhere_else_than_at_the_old_plan() {
    for_each_seed(|seed| {
        let mut rng = Rng::new(seed);
        let mut world = World::random(&mut rng);
        let old = world.plan(&mut rng, 10);
        world.hold(&old);
        let goals = world.plan(&mut rng, 20);
        let way = Way::Live { start: known(&old), stages: live_stages(&old, &goals) };
        // Somebody has changed one thing since: an entry, a PVID, a port.
        let at = rng.below(world.switches.len());
        let changed = &mut world.switches[at].running;
        match rng.below(3) {
            0 => drop(changed.entries.insert((VlanId::MIN, Mac::local(9)), Slot::new(0))),
            1 => changed.ports[0].pvid = VlanId::new(77).ok(),
            _ => changed.ports[0].admin = Admin::Down,
        }
        let before = world.running();
        let mut deployment = Deployment::new(&world.topology, order(&world, goals, way, 1));
        world.run(&mut [&mut deployment], &mut rng);
        let named = |outcome: &Outcome| matches!(outcome, Outcome::Refused(Reason::Elsewhere(switch, _)) if switch.index() == at);
        assert!(deployment.outcome().is_some_and(named), "{:?}", deployment.outcome());
        assert_eq!(world.running(), before);
    });
}

#[test]
fn a_live_change_that_the_judge_finds_unfit_goes_back_live() {
    let mut rng = Rng::new(12);
    let mut world = World::random(&mut rng);
    let old = world.plan(&mut rng, 10);
    world.hold(&old);
    let goals = world.plan(&mut rng, 20);
    let way = Way::Live { start: known(&old), stages: live_stages(&old, &goals) };
    world.verdict = Err(vec!["a flood".to_owned()]);
    let mut deployment = Deployment::new(&world.topology, order(&world, goals, way, 1));
    world.run(&mut [&mut deployment], &mut rng);
    assert!(matches!(deployment.outcome(), Some(Outcome::RolledBack { .. })), "{:?}", deployment.outcome());
    assert_eq!(world.running(), old);
}

/// A change under traffic whose deployer is gone after a while, what switches held before, and what they were to hold.
fn interrupted_live_change(rng: &mut Rng) -> (World, Vec<SwitchConfig>, Vec<SwitchConfig>) {
    let mut world = World::random(rng);
    let old = world.plan(rng, 10);
    world.hold(&old);
    let goals = world.plan(rng, 20);
    let way = Way::Live { start: known(&old), stages: live_stages(&old, &goals) };
    world.tagging.between = between(&old, &goals).to_vec();
    let mut deployment = Deployment::new(&world.topology, order(&world, goals.clone(), way, 1));
    world.patience = Some(rng.below(14 * world.switches.len()));
    world.run(&mut [&mut deployment], rng);
    world.patience = None;
    (world, old, goals)
}

#[test]
fn an_interrupted_live_change_resumes_or_goes_back() {
    for_each_seed(|seed| {
        let mut rng = Rng::new(seed);
        let (mut world, old, goals) = interrupted_live_change(&mut rng);
        let way = || Way::Live { start: known(&old), stages: live_stages(&old, &goals) };
        let Some(journal) = world.journal.clone() else {
            assert_eq!(world.running(), old, "nothing is written before the journal");
            return;
        };
        let undo = rng.below(2) == 0;
        let mut resumed = order(&world, goals.clone(), if undo { Way::Undo } else { way() }, 1);
        resumed.resume = Some(journal);
        let mut deployment = Deployment::new(&world.topology, resumed);
        world.run(&mut [&mut deployment], &mut rng);
        match deployment.outcome() {
            Some(Outcome::Deployed { doubts, .. }) if !undo && doubts.is_empty() => {
                assert_eq!((world.running(), world.tagging.state), (goals, 2));
            }
            Some(Outcome::RolledBack { .. }) if undo => assert_eq!(world.running(), old),
            other => panic!("{other:?}"),
        }
    });
}

/// Hosts change only while every switch holds the stage before, though one has lost it since the change was interrupted.
#[test]
fn a_switch_that_has_lost_a_stage_gets_it_again_before_hosts_change() {
    let lost = AtomicUsize::new(0);
    for_each_seed(|seed| {
        let mut rng = Rng::new(seed);
        let (mut world, old, goals) = interrupted_live_change(&mut rng);
        let way = || Way::Live { start: known(&old), stages: live_stages(&old, &goals) };
        let Some(journal) = world.journal.clone().filter(|journal| matches!(journal.stages_done, Some(1 | 3))) else {
            return;
        };
        world.restart(SwitchId::new(rng.below(world.switches.len())), None, &mut rng);
        let mut resumed = order(&world, goals.clone(), way(), 1);
        resumed.resume = Some(journal);
        let mut deployment = Deployment::new(&world.topology, resumed);
        world.run(&mut [&mut deployment], &mut rng);
        assert!(matches!(deployment.outcome(), Some(Outcome::Deployed { .. })), "{:?}", deployment.outcome());
        assert_eq!((world.running(), world.tagging.state), (goals, 2));
        lost.fetch_add(1, Ordering::Relaxed);
    });
    assert!(env::var_os("SEED").is_some() || lost.into_inner() > 5, "the case came up too seldom");
}

/// Its own stages would begin anywhere.
#[test]
fn the_journal_of_another_change_is_no_place_to_go_on_live() {
    let refused = AtomicUsize::new(0);
    for_each_seed(|seed| {
        let mut rng = Rng::new(seed);
        let mut world = World::random(&mut rng);
        let old = world.plan(&mut rng, 10);
        world.hold(&old);
        let (goals, others) = (world.plan(&mut rng, 20), world.plan(&mut rng, 30));
        let live = |to: &[SwitchConfig]| Way::Live { start: known(&old), stages: live_stages(&old, to) };
        let is_drained = rng.below(2) == 0;
        let way = if is_drained { Way::Drained } else { live(&goals) };
        let mut deployment = Deployment::new(&world.topology, order(&world, goals.clone(), way, 1));
        world.patience = Some(rng.below(14 * world.switches.len()));
        world.run(&mut [&mut deployment], &mut rng);
        world.patience = None;
        let Some(journal) = world.journal.clone() else { return };
        let (found, writes) = (world.running(), world.writes);
        let mut other = order(&world, others.clone(), live(&others), 1);
        (other.resume, other.digest) = (Some(journal.clone()), 8);
        let mut other = Deployment::new(&world.topology, other);
        world.run(&mut [&mut other], &mut rng);
        assert_eq!(other.outcome(), Some(&Outcome::Refused(Reason::OtherChange)));
        assert_eq!((world.running(), world.writes), (found, writes));
        // With all ports down first, any plan can be gone on to.
        let mut drained = order(&world, others.clone(), Way::Drained, 1);
        (drained.resume, drained.digest) = (Some(journal), 8);
        let mut drained = Deployment::new(&world.topology, drained);
        world.run(&mut [&mut drained], &mut rng);
        assert!(matches!(drained.outcome(), Some(Outcome::Deployed { .. })), "{:?}", drained.outcome());
        assert_eq!(world.running(), others);
        refused.fetch_add(1, Ordering::Relaxed);
    });
    assert!(env::var_os("SEED").is_some() || refused.into_inner() > 50, "the case came up too seldom");
}

#[test]
fn an_unfit_reading_is_never_opened() {
    let mut rng = Rng::new(11);
    let mut world = World::random(&mut rng);
    let goals = world.plan(&mut rng, 10);
    let backup = world.running();
    world.verdict = Err(vec!["a loop".to_owned()]);
    let mut deployment = Deployment::new(&world.topology, order(&world, goals, Way::Drained, 1));
    world.run(&mut [&mut deployment], &mut rng);
    assert!(matches!(deployment.outcome(), Some(Outcome::RolledBack { .. })), "{:?}", deployment.outcome());
    assert_eq!(world.running(), backup);
}

/// Two neighbours open their cables in the new state and are never heard of again. Their cables to the others close a ring with the old
/// tree, unless the others keep those ports shut.
#[test]
fn nobody_opens_a_port_to_a_switch_that_could_not_be_brought_back() {
    let mut world = World::ring(4, &[]);
    let vlan = VlanId::new(10).expect("small");
    let tree_without = |cut: usize| {
        let mut configs = world.plan(&mut Rng::new(1), 20);
        let links: Vec<LinkId> = world.topology.link_ids().filter(|link| link.index() != cut).collect();
        world.join(&mut configs, vlan, &links);
        configs.iter_mut().for_each(|config| {
            config.vlans.insert(vlan);
        });
        configs
    };
    let (old, new) = (tree_without(0), tree_without(2));
    world.hold(&old);
    world.faults = [0, 1].map(|switch| Trouble { switch: SwitchId::new(switch), at: 4, kind: Kind::Gone(99) }).to_vec();
    let mut deployment = Deployment::new(&world.topology, order(&world, new.clone(), Way::Drained, 1));
    world.run(&mut [&mut deployment], &mut Rng::new(2));
    assert!(matches!(deployment.outcome(), Some(Outcome::Stranded { lost, .. }) if lost.len() == 2));
    for (running, new) in world.running()[..2].iter().zip(&new) {
        let host = running.ports.len() - 1;
        assert_eq!(running.ports[..host], new.ports[..host]);
        assert_eq!(running.ports[host].admin, Admin::Down);
    }
    world.judge_end(&deployment, &new, &old);
}

/// Somebody moves plugs while ports are shut, opening or open: onto other cables' ports, hosts' ports, the floor. No port for
/// hosts opens onto a loop that the look before could see: one over cables that have an end at a port between switches, and were
/// moved before that look began. A cable between two ports for hosts is heard once both are open, and then shut; nothing storms
/// in the end but what was moved after the last look.
#[test]
fn plugs_that_are_moved_at_any_moment_feed_no_storm() {
    let (caught, late) = (AtomicUsize::new(0), AtomicUsize::new(0));
    for_each_seed(|seed| {
        let mut rng = Rng::new(seed);
        let mut world = World::random(&mut rng);
        world.lldp = [Lldp::Speaks, Lldp::Late][rng.below(2)];
        let goals = world.plan(&mut rng, 10);
        let order = order(&world, goals.clone(), Way::Drained, 1);
        let ports: Vec<PortId> = world.wires.keys().copied().collect();
        for _ in 0..1 + rng.below(2) {
            let one = |rng: &mut Rng| ports[rng.below(ports.len())];
            let how = match rng.below(5) {
                0..3 => Move::Swap(one(&mut rng), one(&mut rng)),
                3 => {
                    let hosts: Vec<PortId> = world.hosts.iter().copied().collect();
                    Move::To(one(&mut rng), hosts[rng.below(hosts.len())])
                }
                _ => Move::Out(one(&mut rng)),
            };
            world.moves.push((rng.below(24 * world.switches.len()), how));
        }
        let mut deployment = Deployment::new(&world.topology, order);
        world.run(&mut [&mut deployment], &mut rng);
        let moved = world.moved_at.unwrap_or(usize::MAX);
        if world.is_storm() {
            assert!(moved >= world.looked, "it ends in a storm that was seen: {:?}", deployment.outcome());
            late.fetch_add(1, Ordering::Relaxed);
        }
        match deployment.outcome() {
            Some(Outcome::RolledBack { reason: Reason::Miscabled(_) | Reason::Unseen(..), .. }) => {
                caught.fetch_add(1, Ordering::Relaxed);
            }
            // Whatever was moved was seen by nobody yet, or leaves no loop.
            Some(Outcome::Deployed { doubts, .. }) if doubts.is_empty() => {}
            other => panic!("{other:?}"),
        }
    });
    let one = env::var_os("SEED").is_some();
    assert!(one || caught.into_inner() > 20, "few moves are caught");
}

/// Exchanges two plugs that no LLDP shows and deploys: no storm is left, and where there was one the deployment turned back for
/// a reason that `is_storm` accepts.
fn exchange_plugs_unseen(counting: &[Counting], is_storm: fn(&Reason) -> bool) {
    let storms = AtomicUsize::new(0);
    for_each_seed(|seed| {
        let mut rng = Rng::new(seed);
        let mut world = World::random(&mut rng);
        (world.lldp, world.counting) = (Lldp::Mute, counting[rng.below(counting.len())]);
        let goals = world.plan(&mut rng, 10);
        let ports: Vec<PortId> = world.wires.keys().copied().collect();
        world.move_plugs(Move::Swap(ports[rng.below(ports.len())], ports[rng.below(ports.len())]));
        if world.is_storm() {
            return;
        }
        let mut deployment = Deployment::new(&world.topology, order(&world, goals.clone(), Way::Drained, 1));
        world.run(&mut [&mut deployment], &mut rng);
        assert!(!world.is_storm(), "{:?}", deployment.outcome());
        match deployment.outcome() {
            Some(Outcome::RolledBack { reason, .. }) if is_storm(reason) => {
                storms.fetch_add(1, Ordering::Relaxed);
            }
            Some(Outcome::Deployed { .. }) => {}
            other => panic!("{other:?}"),
        }
    });
    let one = env::var_os("SEED").is_some();
    assert!(one || storms.into_inner() > 10, "few storms");
}

/// A storm that LLDP does not predict is seen by its counters, and ends.
#[test]
fn a_storm_that_no_lldp_foretells_is_shut_and_taken_back() {
    exchange_plugs_unseen(&[Counting::Counts], |reason| matches!(reason, Reason::Storm(most) if !most.is_empty()));
}

/// Where switches count no broadcasts, or their counters stand still, learned addresses that move between ports show the storm.
#[test]
fn a_storm_that_nothing_counts_shows_in_learned_addresses() {
    let between_ports =
        |reason: &Reason| matches!(reason, Reason::Flapping(flaps) if flaps.iter().all(|flap| flap.ports.len() > 1));
    exchange_plugs_unseen(&[Counting::Absent, Counting::StandsStill], between_ports);
}

/// A deployment over a plan turns back, and a plug that was moved meanwhile, which no LLDP shows, makes what opens again storm:
/// then everything is shut and stays so, also if a switch is deaf for a while. Once the plug is where it was, what the message
/// advises opens everything again as it was.
#[test]
fn a_storm_on_the_way_back_is_shut_and_stays_so_until_the_cable_is_right() {
    let (quenched, returned) = (AtomicUsize::new(0), AtomicUsize::new(0));
    for_each_seed(|seed| {
        let mut rng = Rng::new(seed);
        let mut world = World::random(&mut rng);
        world.lldp = Lldp::Mute;
        world.counting = [Counting::Counts, Counting::Absent, Counting::StandsStill][rng.below(3)];
        let old = world.plan(&mut rng, 10);
        world.hold(&old);
        let goals = world.plan(&mut rng, 20);
        let wires = world.wires.clone();
        let ports: Vec<PortId> = world.wires.keys().copied().collect();
        let swap = Move::Swap(ports[rng.below(ports.len())], ports[rng.below(ports.len())]);
        // While everything is shut, and before the judge speaks.
        let drained = 8 * world.switches.len();
        world.moves.push((drained, swap));
        world.verdict = Err(vec!["a loop".to_owned()]);
        if rng.below(3) == 0 {
            let kind = Kind::Deaf(1 + rng.below(2));
            world.faults =
                vec![Trouble { switch: SwitchId::new(rng.below(world.switches.len())), at: 4 + rng.below(6), kind }];
        }
        let mut folder = Folder::default();
        let (advice, end) = command(&mut world, &mut folder, &goals, (Verb::Plain, 1), &mut rng);
        assert!(!world.is_storm(), "{end:?}");
        let shut = match end {
            Some(Outcome::Quenched { storm, shut, reason, lost }) => {
                assert!(matches!(storm, Reason::Storm(_) | Reason::Flapping(_)), "{storm:?}");
                assert!(matches!(reason, Reason::Unfit(_) | Reason::Faults(..)), "{reason:?}");
                assert!(lost.is_empty() && !shut.is_empty(), "{lost:?} {shut:?}");
                shut
            }
            Some(Outcome::RolledBack { .. }) => {
                assert_eq!(world.running(), old);
                returned.fetch_add(1, Ordering::Relaxed);
                return;
            }
            Some(Outcome::Stranded { .. }) => return,
            other => panic!("{other:?}"),
        };
        assert_eq!(advice, Some(Verb::Undo));
        for (state, (switch, old)) in world.running().iter().zip(world.topology.switch_ids().zip(&old)) {
            assert_eq!(*state, world.management.shut(switch, old));
            let named = shut.iter().filter(|at| at.0 == switch).count();
            assert_eq!(named, old.ports.iter().filter(|port| port.admin == Admin::Up).count(), "every port is named");
        }
        // As long as the cable is where it is, undoing does no harm.
        let (advice, _) = command(&mut world, &mut folder, &goals, (Verb::Undo, 2), &mut rng);
        assert!(!world.is_storm() && folder.journal.is_some(), "{advice:?}");
        (world.wires, world.verdict, world.faults) = (wires, Ok(()), Vec::new());
        world.switches.iter_mut().for_each(|switch| switch.deaf = 0);
        let verb = [Verb::Undo, Verb::Resume][rng.below(2)];
        let (_, end) = command(&mut world, &mut folder, &goals, (verb, 3), &mut rng);
        match (verb, &end) {
            (Verb::Undo, Some(Outcome::RolledBack { .. })) => assert_eq!(world.running(), old),
            (Verb::Resume, Some(Outcome::Deployed { .. })) => assert_eq!(world.running(), goals),
            other => panic!("{other:?}"),
        }
        quenched.fetch_add(1, Ordering::Relaxed);
    });
    let one = env::var_os("SEED").is_some();
    assert!(one || (quenched.into_inner() > 10 && returned.into_inner() > 10), "few storms");
}

/// What a folder remembers from one command to the next.
#[derive(Clone, Default)]
struct Folder {
    journal: Option<Journal>,
    generation: Option<u32>,
    claims: Vec<Mark>,
}

/// A command as a person gives it, or as a message advises it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verb {
    Plain,
    Resume,
    Undo,
    TakeOver,
    UndoTakingOver,
}

/// Carries a command out as the program does; what its message advises, if it did not end well, and how it ended.
fn command(
    world: &mut World,
    folder: &mut Folder,
    goals: &[SwitchConfig],
    (verb, nonce): (Verb, u32),
    rng: &mut Rng,
) -> (Option<Verb>, Option<Outcome>) {
    let taking_over = matches!(verb, Verb::TakeOver | Verb::UndoTakingOver);
    match (&folder.journal, verb) {
        (None, Verb::Resume | Verb::Undo | Verb::UndoTakingOver) => return (Some(Verb::Plain), None),
        (Some(journal), Verb::Plain) => {
            let newer = world.switches.iter().filter_map(|switch| switch.mark).any(|mark| mark > journal.mark);
            return (Some(if newer { Verb::TakeOver } else { Verb::Resume }), None);
        }
        _ => {}
    }
    let way = if matches!(verb, Verb::Undo | Verb::UndoTakingOver) { Way::Undo } else { Way::Drained };
    let order = DeploymentSpec {
        generation: folder.generation,
        precedence: if taking_over { Precedence::TakeOver } else { Precedence::GiveWay },
        claims: folder.claims.clone(),
        resume: folder.journal.clone(),
        ..order(world, goals.to_vec(), way, nonce)
    };
    (world.journal, world.claims) = (folder.journal.clone(), folder.claims.clone());
    let mut deployment = Deployment::new(&world.topology, order);
    world.run(&mut [&mut deployment], rng);
    (folder.journal, folder.claims) = (world.journal.take(), world.claims.clone());
    let know = |folder: &mut Folder| {
        if let Some(mark) = deployment.mark_left() {
            folder.generation = Some(mark.generation);
            folder.claims.clear();
        }
    };
    let advice = match deployment.outcome() {
        None => return (None, None),
        Some(Outcome::Deployed { doubts, .. }) => {
            know(folder);
            folder.journal = None;
            (!doubts.is_empty()).then_some(Verb::Plain)
        }
        Some(Outcome::RolledBack { .. }) => {
            know(folder);
            folder.journal = None;
            None
        }
        Some(Outcome::Unchanged) => None,
        Some(Outcome::Refused(_)) => {
            know(folder);
            Some(Verb::Plain)
        }
        Some(Outcome::Stranded { .. }) => {
            know(folder);
            Some(Verb::Resume)
        }
        Some(Outcome::Quenched { .. }) => {
            know(folder);
            Some(Verb::Undo)
        }
        Some(Outcome::Stale { .. } | Outcome::Superseded { .. }) => Some(Verb::TakeOver),
    };
    (advice, deployment.outcome().cloned())
}

/// Two people deploy from folders of their own, with faults, deaths in the middle and one taking over from the other. Whatever
/// comes of it, each command either ends well once all switches answer, or its message names one that leads on to that; and what
/// was there before anybody came is got back by whoever knows it.
#[test]
fn every_message_s_advice_leads_on() {
    for_each_seed(|seed| {
        let mut rng = Rng::new(seed);
        let mut world = World::random(&mut rng);
        let original = world.running();
        let plans = [world.plan(&mut rng, 10), world.plan(&mut rng, 20)];
        let mut folders = [Folder::default(), Folder::default()];
        for turn in 0..1 + rng.below(3) {
            let who = rng.below(2);
            let verbs = [Verb::Plain, Verb::Plain, Verb::TakeOver, Verb::Resume, Verb::Undo];
            world.faults = if rng.below(2) == 0 { faults(&mut rng, &world.topology) } else { Vec::new() };
            world.switches.iter_mut().for_each(|switch| switch.requests = 0);
            world.patience = (rng.below(2) == 0).then(|| rng.below(14 * world.switches.len()));
            world.verdict = if rng.below(4) == 0 { Err(vec!["a loop".to_owned()]) } else { Ok(()) };
            let verb = (verbs[rng.below(verbs.len())], 1 + turn as u32);
            command(&mut world, &mut folders[who], &plans[who], verb, &mut rng);
        }
        // Everything answers again, and everybody follows what they are told.
        (world.faults, world.patience, world.verdict) = (Vec::new(), None, Ok(()));
        for switch in &mut world.switches {
            (switch.dead, switch.deaf) = (false, 0);
        }
        world.wires = (world.topology.links().iter()).flat_map(|link| [(link.a, link.b), (link.b, link.a)]).collect();
        let who = rng.below(2);
        let first = [Verb::Plain, Verb::Resume, Verb::Undo, Verb::TakeOver][rng.below(4)];
        // Whoever knows what was there before anybody came, and nobody else finished since.
        let knows = folders[0].journal.is_some() != folders[1].journal.is_some();
        let untouched = folders.iter().all(|folder| folder.generation.is_none());
        if knows && untouched && rng.below(2) == 0 {
            let holder = usize::from(folders[1].journal.is_some());
            if folders[holder].journal.as_ref().is_some_and(|journal| journal.under_way.is_empty()) {
                let undo = (Verb::UndoTakingOver, 90);
                let (_, end) = command(&mut world, &mut folders[holder], &plans[holder], undo, &mut rng);
                assert!(matches!(end, Some(Outcome::RolledBack { .. })), "{end:?}");
                assert_eq!(world.running(), original, "what was there before");
                return;
            }
        }
        let (mut verb, mut said) = (first, Vec::new());
        for step in 0..6 {
            let (advice, end) = command(&mut world, &mut folders[who], &plans[who], (verb, 91 + step), &mut rng);
            said.push((verb, end.clone()));
            match (advice, end) {
                (Some(next), _) => verb = next,
                (None, Some(Outcome::Deployed { .. } | Outcome::Unchanged)) => {
                    assert_eq!(world.running(), plans[who]);
                    return;
                }
                (None, Some(Outcome::RolledBack { .. })) if matches!(verb, Verb::Undo) => return,
                _ => break,
            }
        }
        panic!("a dead end: {said:?}");
    });
}

fn for_each_seed(check: impl Fn(u64) + std::panic::RefUnwindSafe) {
    let number = |name: &str| env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let seeds = match number("SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("SCHEDULES").unwrap_or(SCHEDULES),
    };
    for seed in seeds {
        if let Err(panic) = std::panic::catch_unwind(|| check(seed)) {
            eprintln!("schedule of SEED={seed} failed");
            std::panic::resume_unwind(panic);
        }
    }
}

fn order(world: &World, goals: Vec<SwitchConfig>, way: Way, nonce: u32) -> DeploymentSpec {
    DeploymentSpec {
        goals,
        way,
        digest: nonce,
        nonce,
        generation: None,
        precedence: Precedence::GiveWay,
        claims: Vec::new(),
        resume: None,
        management: world.management.clone(),
        guard: Some(Duration::from_secs(60)),
        sequence: world.sequence.clone(),
        parallel_max: 4,
        watch: Some(Watch {
            cables: if world.views.is_empty() { world.cables() } else { Cables::default() },
            cables_max: Duration::from_secs(40),
            floods_min: Duration::from_millis(60),
        }),
    }
}

/// The start of a change under traffic that knows what every switch holds.
fn known(configs: &[SwitchConfig]) -> Vec<Option<SwitchConfig>> {
    configs.iter().cloned().map(Some).collect()
}

/// Fill, flip, free between plans whose VLANs have different ids. Hosts change after the first two, as if they tagged.
fn live_stages(old: &[SwitchConfig], new: &[SwitchConfig]) -> Vec<LiveStage> {
    let [filled, flipped] = between(old, new);
    let stage = |configs: Vec<SwitchConfig>| {
        LiveStage::Switches(configs.into_iter().enumerate().map(|(at, config)| (SwitchId::new(at), config)).collect())
    };
    vec![stage(filled), LiveStage::Hosts(1), stage(flipped), LiveStage::Hosts(2), stage(new.to_vec())]
}

/// What switches hold while hosts change for the first time, and for the second.
fn between(old: &[SwitchConfig], new: &[SwitchConfig]) -> [Vec<SwitchConfig>; 2] {
    let fill = |(old, new): (&SwitchConfig, &SwitchConfig)| {
        let mut filled = old.clone();
        filled.vlans.extend(new.vlans.iter());
        filled.entries.extend(&new.entries);
        for (port, new) in filled.ports.iter_mut().zip(&new.ports) {
            port.tagged.extend(new.tagged.iter());
            port.untagged.extend(new.untagged.iter());
        }
        filled
    };
    let filled: Vec<SwitchConfig> = old.iter().zip(new).map(fill).collect();
    let mut flipped = filled.clone();
    for (flipped, new) in flipped.iter_mut().zip(new) {
        for (port, new) in flipped.ports.iter_mut().zip(&new.ports) {
            port.pvid = new.pvid;
        }
    }
    [filled, flipped]
}

/// What goes wrong, and at which of the requests to a switch.
#[derive(Clone, Copy, Debug)]
struct Trouble {
    switch: SwitchId,
    /// Counts writes and saves to this switch.
    at: usize,
    kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// The question gets lost, and so do so many after it.
    Deaf(usize),
    /// It does as asked, but the answer gets lost.
    Mute,
    /// It does part of it, and refuses the rest.
    Refuses(usize),
    /// It does part of it, and then does not answer.
    Stops(usize),
    /// It says yes, but one change is not made.
    Ignores(usize),
    /// It says yes, but makes none of the changes.
    Pretends,
    /// It does part of it and goes on with that, but nobody can manage it any more.
    Gone(usize),
    /// It restarts in the middle.
    Restarts(usize),
    /// It restarts in the middle and stays away for so many requests.
    Away(usize, usize),
    /// A cable goes dead, which no switch says.
    Unplugged(usize),
    /// It cannot save.
    Unsaved,
    /// It does as asked, and the ports that management comes in by go down.
    Severs,
    /// What is asked of it makes the program fail.
    Panics(usize),
    /// Its address leads to another switch for so many requests, which the driver notices.
    Impostor(usize),
}

fn faults(rng: &mut Rng, topology: &Topology) -> Vec<Trouble> {
    let switches = topology.switches().len();
    let one = |rng: &mut Rng| {
        let step = rng.below(20);
        let kind = match rng.below(14) {
            0 => Kind::Deaf([1, 2, 1000][rng.below(3)]),
            1 => Kind::Mute,
            2 => Kind::Refuses(step),
            3 => Kind::Stops(step),
            4 => Kind::Ignores(step),
            5 => Kind::Restarts(step),
            6 => Kind::Away(step, [2, 1000][rng.below(2)]),
            7 => Kind::Unplugged(rng.below(topology.links().len())),
            8 => Kind::Pretends,
            9 => Kind::Gone(step),
            10 => Kind::Severs,
            11 => Kind::Panics(step),
            12 => Kind::Impostor([1, 3, 1000][rng.below(3)]),
            _ => Kind::Unsaved,
        };
        Trouble { switch: SwitchId::new(rng.below(switches)), at: rng.below(8), kind }
    };
    (0..rng.below(5)).map(|_| one(rng)).collect()
}

struct Switch {
    running: SwitchConfig,
    startup: SwitchConfig,
    mark: Option<Mark>,
    startup_mark: Option<Mark>,
    fence: u64,
    requests: usize,
    /// Requests to come that it does not hear.
    deaf: usize,
    /// It never does again.
    dead: bool,
    /// It can take a change back by itself.
    guards: bool,
    /// What it goes back to unless it is told to stay.
    pending: Option<Pending>,
}

#[derive(Clone)]
struct Pending {
    config: SwitchConfig,
    mark: Option<Mark>,
    /// The write that it belongs to.
    job: u64,
}

/// A request on its way through a switch.
struct Job {
    id: u64,
    deployer: usize,
    request: SwitchRequest,
    edits: VecDeque<Edit>,
    trouble: Option<Kind>,
    step: usize,
    begun: bool,
    expected: u64,
    /// When the last look began that was over when this was asked for.
    looked: usize,
    /// The way back of a switch that is cut off.
    returning: Option<VecDeque<Edit>>,
}

/// How a frame came to a switch: by which port, in which VLAN.
type Place = (PortId, VlanId);

/// What somebody does to plugs while a deployment is under way.
#[derive(Clone, Copy, Debug)]
enum Move {
    /// The plugs in two ports.
    Swap(PortId, PortId),
    /// The plug in a port to another port, in which there is none or a host's.
    To(PortId, PortId),
    /// Out of a port, and left on the floor.
    Out(PortId),
}

/// Whether switches announce themselves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lldp {
    Speaks,
    /// Some announcements come later than the look.
    Late,
    Mute,
}

/// Whether switches count broadcasts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Counting {
    Counts,
    /// There are no such counters.
    Absent,
    /// They are there, and never move.
    StandsStill,
}

fn chassis(switch: SwitchId) -> LldpId {
    LldpId { subtype: 7, octets: format!("c{}", switch.index()).into_bytes() }
}

fn lldp_id(name: &str) -> LldpId {
    LldpId { subtype: 5, octets: name.as_bytes().to_vec() }
}

/// Hosts that tag: they go from one state to another when they are told.
#[derive(Default)]
struct TaggingHosts {
    state: usize,
    asked: usize,
    /// What switches hold while they go from state 0 to 1, and from 1 to 2; not known if it is empty.
    between: Vec<Vec<SwitchConfig>>,
    /// After how many times of being told some fail.
    fail: Option<usize>,
}

struct World {
    topology: Topology,
    switches: Vec<Switch>,
    management: Management,
    controller: SwitchId,
    sequence: Vec<SwitchId>,
    /// Where the cable in a port leads: as the topology has it, until somebody moves plugs.
    wires: BTreeMap<PortId, PortId>,
    /// Ports that hosts are plugged into.
    hosts: BTreeSet<PortId>,
    /// Hosts that tag their own frames.
    tagging: TaggingHosts,
    /// Plugs that are moved, and after how many answers.
    moves: Vec<(usize, Move)>,
    moved_at: Option<usize>,
    /// Whether switches say whom they hear.
    lldp: Lldp,
    counting: Counting,
    clock: usize,
    /// When the look that is under way began, and the last one that is over.
    round: usize,
    looked: usize,
    flooded: BTreeMap<PortId, u64>,
    faults: Vec<Trouble>,
    jobs: Vec<Job>,
    jobs_begun: u64,
    severed: usize,
    writes: usize,
    claims: Vec<Mark>,
    journal: Option<Journal>,
    verdict: Result<(), Vec<String>>,
    patience: Option<usize>,
    /// `views[switch]`: its ports in the order in which the deployment knows them; in their own if there is none.
    views: Vec<Vec<String>>,
}

impl World {
    /// A ring of three to seven switches with some chords, as it comes out of its box or with a plan on it.
    fn random(rng: &mut Rng) -> Self {
        let count = 3 + rng.below(5);
        let chords: Vec<(usize, usize)> = (0..rng.below(4)).map(|_| (rng.below(count), rng.below(count))).collect();
        let mut world = Self::ring(count, &chords);
        if rng.below(2) == 0 {
            let configs = world.plan(rng, 10);
            world.hold(&configs);
        }
        world
    }

    /// A ring of switches with some chords and a host each, as it comes out of its box.
    fn ring(count: usize, chords: &[(usize, usize)]) -> Self {
        let mut builder = TopologyBuilder::new();
        let switches: Vec<SwitchId> = (0..count)
            .map(|index| builder.add_switch(&format!("s{index}"), SwitchSpec::default()).expect("a new name"))
            .collect();
        let mut used = vec![0; count];
        let mut port = |builder: &mut TopologyBuilder, at: usize| {
            used[at] += 1;
            builder.add_port(switches[at], &format!("p{}", used[at])).expect("a new port")
        };
        let ring = (0..count).map(|at| (at, (at + 1) % count));
        for (a, b) in ring.chain(chords.iter().copied().filter(|(a, b)| a != b)) {
            let (a, b) = (port(&mut builder, a), port(&mut builder, b));
            builder.add_link(a, b, 1_000_000_000).expect("free ports");
        }
        for at in 0..count {
            let port = port(&mut builder, at);
            let mac = Mac::new([2, 0, 0, 0, 0, at as u8]);
            builder.add_host(&format!("h{at}"), mac, port, 1_000_000_000, None).expect("a free port");
        }
        Self::of(builder.finish().expect("a sound topology"))
    }

    /// Switches as they come out of their boxes.
    fn of(topology: Topology) -> Self {
        let switch = |switch| {
            let config = SwitchConfig::out_of_the_box(port_names(&topology, switch));
            Switch {
                running: config.clone(),
                startup: config,
                mark: None,
                startup_mark: None,
                fence: 0,
                requests: 0,
                deaf: 0,
                dead: false,
                guards: false,
                pending: None,
            }
        };
        Self {
            switches: topology.switch_ids().map(switch).collect(),
            management: Management::OutOfBand,
            controller: SwitchId::new(0),
            sequence: topology.switch_ids().rev().collect(),
            wires: (topology.links().iter()).flat_map(|link| [(link.a, link.b), (link.b, link.a)]).collect(),
            hosts: topology.hosts().iter().map(|host| host.port).collect(),
            tagging: TaggingHosts::default(),
            moves: Vec::new(),
            moved_at: None,
            lldp: Lldp::Speaks,
            counting: Counting::Counts,
            clock: 0,
            round: 0,
            looked: 0,
            flooded: BTreeMap::new(),
            faults: Vec::new(),
            jobs: Vec::new(),
            jobs_begun: 0,
            severed: 0,
            writes: 0,
            claims: Vec::new(),
            journal: None,
            verdict: Ok(()),
            patience: None,
            views: Vec::new(),
            topology,
        }
    }

    /// Cables that the next plan knows nothing of: the ports of each switch that it does not name.
    fn fewer(&self, rng: &mut Rng) -> (Topology, Vec<Vec<String>>) {
        let mut parked = vec![Vec::new(); self.switches.len()];
        let spared = spanning_tree(&self.topology, rng);
        for id in self.topology.link_ids().filter(|id| !spared.contains(id)) {
            if rng.below(3) > 0 {
                let link = self.topology.link(id);
                for port in [link.a, link.b].map(|port| self.topology.port(port)) {
                    parked[port.switch.index()].push(port.name.clone());
                }
            }
        }
        (self.topology_of(&parked), parked)
    }

    /// The ports of each switch that a plan still names.
    fn known_by(&self, parked: &[Vec<String>]) -> Vec<Vec<String>> {
        let known = |switch: SwitchId| -> Vec<String> {
            let names = port_names(&self.topology, switch);
            names.into_iter().filter(|name| !parked[switch.index()].contains(name)).collect()
        };
        self.topology.switch_ids().map(known).collect()
    }

    /// The same cabling without these ports.
    fn topology_of(&self, parked: &[Vec<String>]) -> Topology {
        let mut builder = TopologyBuilder::new();
        let mut ports = BTreeMap::new();
        for (switch, known) in self.topology.switch_ids().zip(self.known_by(parked)) {
            let new = builder.add_switch(&format!("s{}", switch.index()), SwitchSpec::default()).expect("a new name");
            for (port, name) in self.topology.port_ids(switch).zip(port_names(&self.topology, switch)) {
                if known.contains(&name) {
                    ports.insert(port, builder.add_port(new, &name).expect("a new port"));
                }
            }
        }
        for id in self.topology.link_ids() {
            let link = self.topology.link(id);
            if let (Some(a), Some(b)) = (ports.get(&link.a), ports.get(&link.b)) {
                builder.add_link(*a, *b, 1_000_000_000).expect("free ports");
            }
        }
        for host in self.topology.hosts() {
            builder.add_host(&host.name, host.mac, ports[&host.port], 1_000_000_000, None).expect("a free port");
        }
        builder.finish().expect("a sound topology")
    }

    /// A state as the deployment sees it.
    fn seen(&self, switch: SwitchId, config: &SwitchConfig) -> SwitchConfig {
        self.views.get(switch.index()).map_or_else(|| config.clone(), |names| align(config, names))
    }

    /// Puts states on the switches, for now and for when they restart.
    fn hold(&mut self, configs: &[SwitchConfig]) {
        for (switch, config) in self.switches.iter_mut().zip(configs) {
            (switch.running, switch.startup) = (config.clone(), config.clone());
        }
    }

    /// Two to four random trees, each a VLAN; every host sends by one of them.
    fn plan(&self, rng: &mut Rng, first: u16) -> Vec<SwitchConfig> {
        let topology = &self.topology;
        let mut configs: Vec<SwitchConfig> =
            topology.switch_ids().map(|switch| SwitchConfig::blank(port_names(topology, switch))).collect();
        // As ports do that nobody can tell not to.
        let ports = configs.iter_mut().flat_map(|config| &mut config.ports);
        ports.for_each(|port| port.learning = PortLearning::Always);
        let vlans: Vec<VlanId> = (0..2 + rng.below(3) as u16).map(|n| VlanId::new(first + n).expect("small")).collect();
        for &vlan in &vlans {
            self.join(&mut configs, vlan, &spanning_tree(topology, rng));
        }
        for host in topology.hosts() {
            let pvid = vlans[rng.below(vlans.len())];
            let port = self.port_of(&mut configs, host.port);
            (port.untagged, port.pvid) = (vlans.iter().copied().collect(), Some(pvid));
        }
        for config in &mut configs {
            config.vlans = vlans.iter().copied().collect();
            for port in &mut config.ports {
                port.admin = Admin::Up;
                port.flow_control = FlowControlMode::Pause;
            }
            for host in topology.hosts() {
                config.entries.insert((vlans[0], host.mac), Slot::new(rng.below(config.ports.len())));
            }
        }
        configs
    }

    fn join(&self, configs: &mut [SwitchConfig], vlan: VlanId, links: &[LinkId]) {
        for link in links.iter().map(|link| self.topology.link(*link)) {
            for port in [link.a, link.b] {
                self.port_of(configs, port).tagged.insert(vlan);
            }
        }
    }

    fn port_of<'a>(&self, configs: &'a mut [SwitchConfig], port: fabric::PortId) -> &'a mut PortConfig {
        let switch = self.topology.port(port).switch;
        let at = port.index() - self.topology.switch_ports(switch).start;
        &mut configs[switch.index()].ports[at]
    }

    /// Management comes in at the first switch, and goes on along a tree in VLAN 1.
    fn manage_in_band(&mut self, rng: &mut Rng) {
        let mut ports = vec![BTreeMap::new(); self.switches.len()];
        let tree = spanning_tree(&self.topology, rng);
        for &link in &tree {
            for port in [self.topology.link(link).a, self.topology.link(link).b] {
                let switch = self.topology.port(port).switch;
                let slot = Slot::new(port.index() - self.topology.switch_ports(switch).start);
                ports[switch.index()].insert(slot, ManagementForm::Untagged);
            }
        }
        self.management =
            Management::InBand { vlan: VlanId::MIN, return_ports: vec![BTreeSet::new(); ports.len()], ports };
        self.switches.iter_mut().for_each(|switch| switch.guards = rng.below(2) == 0);
        for index in 0..self.switches.len() {
            let mut config = self.switches[index].running.clone();
            if config.spanning_tree == SpanningTree::Off {
                self.management.overlay(SwitchId::new(index), &mut config);
            }
            (self.switches[index].running, self.switches[index].startup) = (config.clone(), config);
        }
        // Farthest from the controller first.
        let mut near = vec![self.controller];
        while near.len() < self.switches.len() {
            for &link in &tree {
                let ends =
                    [self.topology.link(link).a, self.topology.link(link).b].map(|p| self.topology.port(p).switch);
                for (one, other) in [(ends[0], ends[1]), (ends[1], ends[0])] {
                    if near.contains(&one) && !near.contains(&other) {
                        near.push(other);
                    }
                }
            }
        }
        near.reverse();
        self.sequence = near;
    }

    /// What switches are to hold, with the management VLAN.
    fn overlaid(&self, goals: &[SwitchConfig]) -> Vec<SwitchConfig> {
        let mut goals = goals.to_vec();
        for (switch, goal) in self.topology.switch_ids().zip(&mut goals) {
            self.management.overlay(switch, goal);
        }
        goals
    }

    /// The ports of a switch that carry management.
    fn carriers(&self, switch: usize) -> Vec<Slot> {
        match &self.management {
            Management::OutOfBand => Vec::new(),
            Management::InBand { ports, .. } => ports[switch].keys().copied().collect(),
        }
    }

    /// A switch whose controller is gone goes back on its own.
    fn fire(&mut self, at: usize) {
        let Some(pending) = self.switches[at].pending.take() else { return };
        for edit in edits(&self.switches[at].running.clone(), &pending.config) {
            edit.apply(&mut self.switches[at].running);
            self.judge("while a switch goes back alone");
        }
        self.switches[at].mark = pending.mark;
        self.switches[at].fence += 1 << 40;
    }

    /// Switches that wait for a controller which has died.
    fn orphans(&self) -> Vec<usize> {
        let owned = |job: u64| self.jobs.iter().any(|other| other.id == job);
        let waits = |at: &usize| self.switches[*at].pending.as_ref().is_some_and(|pending| !owned(pending.job));
        (0..self.switches.len()).filter(waits).collect()
    }

    fn running(&self) -> Vec<SwitchConfig> {
        self.switches.iter().map(|switch| switch.running.clone()).collect()
    }

    /// Carries requests out, a change at a time, in a random order.
    fn run(&mut self, deployments: &mut [&mut Deployment], rng: &mut Rng) {
        let mut answers = 0;
        self.judge("at the start");
        for _ in 0..200_000 {
            self.clock += 1;
            let due = self.moves.iter().position(|(at, _)| answers >= *at);
            if let Some((_, how)) = due.map(|at| self.moves.swap_remove(at)) {
                self.move_plugs(how);
            }
            for (number, deployment) in deployments.iter_mut().enumerate() {
                deployment.handle_time(Duration::from_millis(self.clock as u64));
                while let Some(request) = deployment.poll_request() {
                    self.jobs_begun += 1;
                    let looks = |job: &Job| matches!(job.request, SwitchRequest::Look { .. });
                    if matches!(request, SwitchRequest::Look { .. }) && !self.jobs.iter().any(looks) {
                        self.round = self.clock;
                    }
                    let looked = self.looked;
                    let job = Job {
                        looked,
                        id: self.jobs_begun,
                        deployer: number,
                        request,
                        edits: VecDeque::new(),
                        trouble: None,
                        step: 0,
                        begun: false,
                        expected: 0,
                        returning: None,
                    };
                    self.jobs.push(job);
                }
                while let Some(event) = deployment.poll_event() {
                    if env::var_os("SEED").is_some() {
                        eprintln!("{number}: {event:?}");
                    }
                }
            }
            if self.jobs.is_empty() {
                break;
            }
            if let Some(at) = self.orphans().first().filter(|_| rng.below(16) == 0) {
                self.fire(*at);
            }
            let at = rng.below(self.jobs.len());
            let mut job = self.jobs.swap_remove(at);
            match self.step(&mut job, rng) {
                None => self.jobs.push(job),
                Some(reply) => {
                    answers += 1;
                    if self.patience.is_some_and(|patience| answers > patience) {
                        self.jobs.clear();
                        return;
                    }
                    let looks = |job: &Job| matches!(job.request, SwitchRequest::Look { .. });
                    if looks(&job) && !self.jobs.iter().any(looks) {
                        self.looked = self.round;
                    }
                    deployments[job.deployer].handle_time(Duration::from_millis(self.clock as u64));
                    deployments[job.deployer].handle_reply(reply);
                }
            }
            self.judge("after a change");
        }
        self.orphans().into_iter().for_each(|at| self.fire(at));
        for deployment in deployments {
            assert!(
                deployment.outcome().is_some(),
                "every deployment ends; awaited: {:?}",
                deployment.awaited().count()
            );
        }
    }

    fn step(&mut self, job: &mut Job, rng: &mut Rng) -> Option<Reply> {
        match job.request.clone() {
            SwitchRequest::Hosts(state) => Some(Reply::Hosts(self.tell_hosts(state, rng))),
            SwitchRequest::Judge { .. } => Some(Reply::Judged(self.verdict.clone())),
            SwitchRequest::Note(mark) => {
                self.claims.push(mark);
                Some(Reply::Recorded(Ok(())))
            }
            SwitchRequest::Record(journal) => {
                self.journal = Some(journal);
                Some(Reply::Recorded(Ok(())))
            }
            SwitchRequest::Pause(time) => {
                self.clock += time.as_millis() as usize;
                Some(Reply::Paused)
            }
            SwitchRequest::Look { switch, addresses } => {
                if !self.hears(switch) {
                    return Some(Reply::Looked(switch, Err(Fault::Silent)));
                }
                Some(Reply::Looked(switch, Ok(self.sight(switch, addresses, rng))))
            }
            SwitchRequest::Shut { switch, ports } => {
                if !self.hears(switch) {
                    return Some(Reply::Shut(switch, Err(Fault::Silent)));
                }
                let state = &mut self.switches[switch.index()];
                ports.iter().for_each(|slot| state.running.ports[slot.index()].admin = Admin::Down);
                state.fence += 1;
                Some(Reply::Shut(switch, Ok(())))
            }
            SwitchRequest::Read { switch } => {
                if !self.hears(switch) {
                    return Some(Reply::Read(switch, Err(Fault::Silent)));
                }
                let state = &self.switches[switch.index()];
                let (config, mark, fence) = (self.seen(switch, &state.running), state.mark, Fence(state.fence));
                Some(Reply::Read(switch, Ok(Reading { config, mark, fence })))
            }
            SwitchRequest::Write { switch, before, after, mark, fence, guard } => {
                let answer = |result| Some(Reply::Written(switch, result));
                if job.returning.is_some() {
                    return self.go_back(job, switch).map(|fault| Reply::Written(switch, Err(fault)));
                }
                if !job.begun {
                    if let Err(fault) = self.begin(job, switch, fence) {
                        return answer(Err(fault));
                    }
                    let names = port_names(&self.topology, switch);
                    job.edits = edits(&align(&before, &names), &align(&after, &names)).into();
                    self.writes += 1;
                    let state = &mut self.switches[switch.index()];
                    if guard.is_some() && state.guards {
                        state.pending = Some(Pending { config: state.running.clone(), mark: state.mark, job: job.id });
                    }
                }
                let done = self.advance(job, switch, mark, rng)?;
                self.part(job, switch, done).map(|done| Reply::Written(switch, done))
            }
            SwitchRequest::Save { switch, fence } => {
                let answer = |result| Some(Reply::Saved(switch, result));
                if let Err(fault) = self.begin(job, switch, fence) {
                    return answer(Err(fault));
                }
                self.writes += 1;
                match job.trouble {
                    Some(Kind::Unsaved | Kind::Refuses(_) | Kind::Panics(_)) => {
                        return answer(Err(Fault::Refused("no room".to_owned())));
                    }
                    Some(Kind::Restarts(_) | Kind::Away(..)) => {
                        self.restart(switch, job.trouble, rng);
                        return answer(Err(Fault::Silent));
                    }
                    _ => {}
                }
                let state = &mut self.switches[switch.index()];
                (state.startup, state.startup_mark) = (state.running.clone(), state.mark);
                state.fence += 1;
                match job.trouble {
                    Some(Kind::Mute | Kind::Stops(_)) => answer(Err(Fault::Silent)),
                    Some(Kind::Gone(_)) => {
                        state.dead = true;
                        answer(Err(Fault::Silent))
                    }
                    _ => answer(Ok(Fence(state.fence))),
                }
            }
        }
    }

    /// Hosts change while no switch does, and all of them are at the same stage, if all of them answer.
    fn tell_hosts(&mut self, state: usize, rng: &mut Rng) -> Result<(), Reason> {
        let (before, hosts) = (self.tagging.state, &mut self.tagging);
        assert!(state.abs_diff(before) <= 1, "from {before} to {state}");
        assert!(self.jobs.is_empty(), "{:?}", self.jobs.len());
        if self.faults.is_empty() && !hosts.between.is_empty() {
            // Whoever resumes tells hosts again what they may hold already.
            let near = state.max(before).max(1) - 1..=state.max(before);
            let held: Vec<&SwitchConfig> = self.switches.iter().map(|switch| &switch.running).collect();
            let is_between =
                |at: usize| hosts.between.get(at).is_some_and(|configs| configs.iter().eq(held.iter().copied()));
            assert!(near.clone().any(is_between), "switches are elsewhere than between two stages");
        }
        hosts.asked += 1;
        match hosts.fail {
            Some(0) => {
                hosts.fail = None;
                hosts.state = [before, state][rng.below(2)];
                Err(Reason::Hosts("one does not answer".to_owned()))
            }
            fail => {
                (hosts.fail, hosts.state) = (fail.map(|left| left - 1), state);
                Ok(())
            }
        }
    }

    /// Whether a switch can be reached and listens.
    fn hears(&mut self, switch: SwitchId) -> bool {
        let reachable = self.reaches(switch);
        let state = &mut self.switches[switch.index()];
        if state.dead || !reachable {
            return false;
        }
        if state.deaf > 0 {
            state.deaf -= 1;
            return false;
        }
        true
    }

    fn begin(&mut self, job: &mut Job, switch: SwitchId, fence: Fence) -> Result<(), Fault> {
        let at = self.switches[switch.index()].requests;
        self.switches[switch.index()].requests += 1;
        let trouble = self.faults.iter().find(|trouble| trouble.switch == switch && trouble.at == at).map(|t| t.kind);
        match trouble {
            Some(Kind::Deaf(1000)) => self.switches[switch.index()].dead = true,
            Some(Kind::Deaf(times)) => self.switches[switch.index()].deaf = times,
            // Of a switch that is another one nothing is believed, and nothing is written to it.
            Some(Kind::Impostor(1000)) => self.switches[switch.index()].dead = true,
            Some(Kind::Impostor(times)) => self.switches[switch.index()].deaf = times,
            Some(Kind::Unplugged(link)) => {
                let link = *self.topology.link(LinkId::new(link));
                self.pull(link.a);
            }
            _ => {}
        }
        if !self.hears(switch) {
            return Err(Fault::Silent);
        }
        if self.switches[switch.index()].fence != fence.0 {
            return Err(Fault::Fenced);
        }
        (job.begun, job.trouble, job.expected) = (true, trouble, fence.0);
        Ok(())
    }

    /// Makes the next change of a write; the answer, once there is one.
    fn advance(&mut self, job: &mut Job, switch: SwitchId, mark: Mark, rng: &mut Rng) -> Option<Result<Fence, Fault>> {
        let at = switch.index();
        if self.switches[at].fence != job.expected {
            return Some(Err(Fault::Fenced));
        }
        let last = (job.step + job.edits.len()).saturating_sub(1);
        match job.trouble {
            Some(Kind::Refuses(step)) if job.step >= step.min(last) => {
                return Some(Err(Fault::Refused("table full".to_owned())));
            }
            Some(Kind::Stops(step)) if job.step >= step.min(last) => return Some(Err(Fault::Silent)),
            Some(Kind::Panics(step)) if job.step >= step.min(last) => {
                return Some(Err(Fault::Panicked("a defect".to_owned())));
            }
            Some(Kind::Gone(step)) if job.step > step.min(last) => {
                self.switches[at].dead = true;
                return Some(Err(Fault::Silent));
            }
            Some(Kind::Restarts(step) | Kind::Away(step, _)) if job.step >= step.min(last) => {
                self.restart(switch, job.trouble, rng);
                return Some(Err(Fault::Silent));
            }
            _ => {}
        }
        let state = &mut self.switches[at];
        state.mark = Some(mark);
        state.fence += 1;
        job.expected += 1;
        if let Some(edit) = job.edits.pop_front() {
            let ignored = matches!(job.trouble, Some(Kind::Ignores(step)) if job.step == step.min(last))
                || job.trouble == Some(Kind::Pretends);
            if !ignored {
                edit.apply(&mut state.running);
            }
            job.step += 1;
            // A port for hosts opens only after every cable has been seen to be where it belongs, but for cables between two
            // ports for hosts, which nobody hears before both are open.
            if let Edit::Open(slot) = edit {
                let port = PortId::new(self.topology.switch_ports(switch).start + slot.index());
                if self.hosts.contains(&port) && self.lldp != Lldp::Mute && self.is_storm_between_switches() {
                    assert!(
                        self.moved_at.is_some_and(|moved| moved >= job.looked),
                        "hosts come to a loop that was seen"
                    );
                }
            }
        }
        if !job.edits.is_empty() {
            return None;
        }
        // A mark alone cuts nobody off.
        if job.trouble == Some(Kind::Severs) && job.step > 0 {
            for slot in self.carriers(at) {
                self.switches[at].running.ports[slot.index()].admin = Admin::Down;
            }
            self.severed += 1;
        }
        let state = &mut self.switches[at];
        match job.trouble {
            Some(Kind::Gone(_)) => state.dead = true,
            Some(Kind::Mute) => {}
            _ => return Some(Ok(Fence(state.fence))),
        }
        Some(Err(Fault::Silent))
    }

    /// Tells a switch to stay as it is; one that does not hear of it goes back.
    fn part(&mut self, job: &mut Job, switch: SwitchId, done: Result<Fence, Fault>) -> Option<Result<Fence, Fault>> {
        let reachable = self.reaches(switch);
        let state = &mut self.switches[switch.index()];
        let Some(pending) = state.pending.clone().filter(|pending| pending.job == job.id) else { return Some(done) };
        match done {
            Err(Fault::Fenced) => return Some(done),
            Ok(_) | Err(Fault::Refused(_)) if reachable && !state.dead => {
                state.pending = None;
                return Some(done);
            }
            _ => {}
        }
        job.returning = Some(edits(&state.running, &pending.config).into());
        None
    }

    /// The next change of a switch on its way back; what its controller sees of it, once it is there.
    fn go_back(&mut self, job: &mut Job, switch: SwitchId) -> Option<Fault> {
        let state = &mut self.switches[switch.index()];
        // Another controller has taken over, or it has restarted.
        let Some(pending) = state.pending.clone().filter(|pending| pending.job == job.id) else {
            return Some(Fault::Silent);
        };
        if let Some(edit) = job.returning.as_mut().and_then(VecDeque::pop_front) {
            edit.apply(&mut state.running);
            state.fence += 1 << 40;
            return None;
        }
        (state.running, state.mark, state.pending) = (pending.config, pending.mark, None);
        state.fence += 1 << 40;
        Some(if self.hears(switch) { Fault::Reverted } else { Fault::Silent })
    }

    fn restart(&mut self, switch: SwitchId, trouble: Option<Kind>, rng: &mut Rng) {
        let state = &mut self.switches[switch.index()];
        state.running = state.startup.clone();
        state.pending = None;
        state.mark = state.startup_mark;
        state.fence = (rng.next_u64() >> 8) | 1 << 55;
        if let Some(Kind::Away(_, times)) = trouble {
            if times == 1000 {
                state.dead = true;
            } else {
                state.deaf = times;
            }
        }
    }

    /// Where a frame of a VLAN that is at a switch goes next, by which port it gets in there.
    fn next(&self, switch: SwitchId, entered: Option<PortId>, vlan: VlanId) -> Vec<Place> {
        let mut next = Vec::new();
        for (slot, port) in self.topology.port_ids(switch).enumerate() {
            let Some(&far) = self.wires.get(&port).filter(|_| entered != Some(port)) else { continue };
            let own = &self.switches[switch.index()].running.ports[slot];
            let other = self.port_state(far);
            if own.admin == Admin::Down || other.admin == Admin::Down {
                continue;
            }
            let arrives = if own.tagged.contains(vlan) {
                Some(vlan)
            } else if own.untagged.contains(vlan) {
                other.pvid
            } else {
                None
            };
            if let Some(vlan) = arrives.filter(|vlan| other.is_member(*vlan)) {
                next.push((far, vlan));
            }
        }
        next
    }

    fn port_state(&self, port: PortId) -> &PortConfig {
        let switch = self.topology.port(port).switch;
        &self.switches[switch.index()].running.ports[port.index() - self.topology.switch_ports(switch).start]
    }

    /// Takes both plugs of a cable out.
    fn pull(&mut self, port: PortId) {
        if let Some(far) = self.wires.remove(&port) {
            self.wires.remove(&far);
        }
        self.hosts.remove(&port);
    }

    fn plug(&mut self, a: PortId, b: PortId) {
        self.wires.insert(a, b);
        self.wires.insert(b, a);
    }

    /// Moves plugs.
    fn move_plugs(&mut self, how: Move) {
        self.moved_at = Some(self.clock);
        if env::var_os("SEED").is_some() {
            eprintln!("{how:?} at {}, looked {}", self.clock, self.looked);
        }
        match how {
            Move::Swap(a, b) if a != b && self.wires.contains_key(&a) && self.wires.contains_key(&b) => {
                let (far_a, far_b) = (self.wires[&a], self.wires[&b]);
                if far_a != b {
                    self.pull(a);
                    self.pull(b);
                    self.plug(a, far_b);
                    self.plug(b, far_a);
                }
            }
            Move::To(from, to) if self.wires.contains_key(&from) && !self.wires.contains_key(&to) => {
                let far = self.wires[&from];
                if far != to {
                    self.pull(from);
                    self.pull(to);
                    self.plug(far, to);
                }
            }
            Move::Out(port) => self.pull(port),
            Move::Swap(..) | Move::To(..) => {}
        }
    }

    /// Whether a broadcast of some host's would come to a switch twice, where spanning tree does not see to that.
    fn is_storm(&self) -> bool {
        self.hosts.iter().any(|port| {
            let state = self.port_state(*port);
            let Some(vlan) = state.pvid.filter(|vlan| state.admin == Admin::Up && state.is_member(*vlan)) else {
                return false;
            };
            let of = |port: PortId| self.topology.port(port).switch;
            // By which switch a frame came to each.
            let mut from = BTreeMap::from([(of(*port), None)]);
            let mut queue = VecDeque::from([(*port, vlan)]);
            while let Some((port, vlan)) = queue.pop_front() {
                for (far, next_vlan) in self.next(of(port), Some(port), vlan) {
                    if from.contains_key(&of(far)) {
                        let chain = |start: SwitchId| {
                            std::iter::successors(Some(start), |at| from[at]).collect::<BTreeSet<SwitchId>>()
                        };
                        let mut cycle = &chain(of(port)) ^ &chain(of(far));
                        cycle.extend([of(port), of(far)]);
                        // Where all take part in spanning tree, it has blocked a port.
                        let stp = |at: &SwitchId| self.switches[at.index()].running.spanning_tree == SpanningTree::On;
                        if !cycle.iter().all(stp) {
                            return true;
                        }
                        continue;
                    }
                    from.insert(of(far), Some(of(port)));
                    queue.push_back((far, next_vlan));
                }
            }
            false
        })
    }

    /// The same without cables that lead from one port for hosts to another.
    fn is_storm_between_switches(&mut self) -> bool {
        let between = |port: &PortId| matches!(self.topology.port(*port).attachment, Attachment::Link(_));
        let wires = self.wires.clone();
        let heard = wires.iter().filter(|(a, b)| between(a) || between(b)).map(|(a, b)| (*a, *b)).collect();
        self.wires = heard;
        let storm = self.is_storm();
        self.wires = wires;
        storm
    }

    /// The addresses of hosts that a switch has learned: each at the port by which a broadcast of the host's comes in, and in a
    /// storm at any by which it does.
    fn learned(&self, switch: SwitchId, rng: &mut Rng) -> Vec<Learned> {
        let storm = self.is_storm();
        let of = |port: PortId| self.topology.port(port).switch;
        let mut learned = Vec::new();
        for host in &self.hosts {
            let state = self.port_state(*host);
            let Some(vlan) = state.pvid.filter(|vlan| state.admin == Admin::Up && state.is_member(*vlan)) else {
                continue;
            };
            let mut entered = vec![*host];
            let mut seen = BTreeSet::from([*host]);
            let mut queue = VecDeque::from([(*host, vlan)]);
            let mut reached = BTreeSet::from([of(*host)]);
            while let Some((port, vlan)) = queue.pop_front() {
                for (far, vlan) in self.next(of(port), Some(port), vlan) {
                    if (storm || reached.insert(of(far))) && seen.insert(far) {
                        entered.push(far);
                        queue.push_back((far, vlan));
                    }
                }
            }
            let here: Vec<PortId> = entered.into_iter().filter(|port| of(*port) == switch).collect();
            if !here.is_empty() && rng.below(8) > 0 {
                let slot = here[rng.below(here.len())].index() - self.topology.switch_ports(switch).start;
                let mac = Mac::new([2, 0, 0, 0, 9, host.index() as u8]);
                learned.push(Learned { database: u32::from(vlan.get()), mac, at: Slot::new(slot) });
            }
        }
        learned
    }

    /// What a switch hears and counts.
    fn sight(&mut self, switch: SwitchId, addresses: Addresses, rng: &mut Rng) -> Sight {
        let storm = self.is_storm();
        let learned = (addresses == Addresses::Read).then(|| self.learned(switch, rng));
        let mut sight = Sight { learned, ..Sight::default() };
        for (slot, port) in self.topology.port_ids(switch).enumerate() {
            let far = self.wires.get(&port).copied();
            let running = self.port_state(port).admin == Admin::Up
                && (self.hosts.contains(&port) || far.is_some_and(|far| self.port_state(far).admin == Admin::Up));
            sight.running.push(running);
            let between = matches!(self.topology.port(port).attachment, Attachment::Link(_));
            let frames = match (running, storm, between) {
                (true, true, true) => 1_000_000,
                (true, _, false) => 20,
                (true, false, true) => rng.below(20) as u64,
                (false, ..) => 0,
            };
            let count = self.flooded.entry(port).or_default();
            match self.counting {
                Counting::Absent => {}
                Counting::StandsStill => sight.flooded.push(Count::Wide(*count)),
                Counting::Counts => {
                    *count += frames;
                    sight.flooded.push(Count::Wide(*count));
                }
            }
            let told = self.lldp == Lldp::Speaks || (self.lldp == Lldp::Late && rng.below(3) > 0);
            if let Some(far) = far.filter(|_| running && told) {
                let (chassis, id) = (chassis(self.topology.port(far).switch), lldp_id(&self.topology.port(far).name));
                sight.heard.push(LldpNeighbour {
                    port: slot,
                    chassis,
                    id,
                    description: String::new(),
                    system: String::new(),
                    capabilities: Capabilities::default(),
                });
            }
        }
        sight
    }

    /// What the switches say of themselves, and the cables that all of them see.
    fn cables(&self) -> Cables {
        let station = |switch: SwitchId| {
            let port = |port| {
                let name = self.topology.port(port).name.clone();
                StationPort { id: Some(lldp_id(&name)), name, ..StationPort::default() }
            };
            let ports = self.topology.port_ids(switch).map(port).collect();
            Station { chassis: Some(chassis(switch)), ports, ..Station::default() }
        };
        let there = |id: &LinkId| {
            let link = self.topology.link(*id);
            self.lldp != Lldp::Mute && self.wires.get(&link.a) == Some(&link.b)
        };
        let links: Vec<LinkId> = self.topology.link_ids().filter(there).collect();
        Cables::new(&self.topology, self.topology.switch_ids().map(station).collect(), links)
    }

    /// Whether the controller's frames get to a switch.
    fn reaches(&self, switch: SwitchId) -> bool {
        let Management::InBand { vlan, .. } = self.management else { return true };
        let mut seen = BTreeSet::from([(self.controller, vlan)]);
        let mut queue = VecDeque::from([(self.controller, vlan)]);
        while let Some((at, vlan)) = queue.pop_front() {
            if at == switch {
                return true;
            }
            for (port, vlan) in self.next(at, None, vlan) {
                let there = self.topology.port(port).switch;
                if seen.insert((there, vlan)) {
                    queue.push_back((there, vlan));
                }
            }
        }
        false
    }

    /// Looks for a way on which a broadcast would go round. Switches that all run spanning tree break it; one that does
    /// not is not trusted to pass its frames on.
    fn judge(&self, when: &str) {
        if self.moved_at.is_some() {
            return;
        }
        let at = |place: &Place| self.topology.port(place.0).switch;
        let mut state: BTreeMap<Place, bool> = BTreeMap::new();
        let stp = |switch: SwitchId| self.switches[switch.index()].running.spanning_tree == SpanningTree::On;
        let vlans: BTreeSet<VlanId> =
            self.switches.iter().flat_map(|s| s.running.memberships().iter().collect::<Vec<_>>()).collect();
        for switch in self.topology.switch_ids() {
            for &vlan in &vlans {
                for start in self.next(switch, None, vlan) {
                    let mut stack: Vec<(Place, Vec<Place>)> = Vec::new();
                    if state.contains_key(&start) {
                        continue;
                    }
                    state.insert(start, false);
                    stack.push((start, self.next(at(&start), Some(start.0), start.1)));
                    while let Some((place, rest)) = stack.last_mut() {
                        let Some(next) = rest.pop() else {
                            state.insert(*place, true);
                            stack.pop();
                            continue;
                        };
                        match state.get(&next) {
                            Some(true) => {}
                            Some(false) => {
                                let from = stack.iter().position(|(place, _)| *place == next).expect("on the stack");
                                let cycle: Vec<Place> = stack[from..].iter().map(|(place, _)| *place).collect();
                                assert!(cycle.iter().all(|place| stp(at(place))), "{when}: a loop: {cycle:?}");
                            }
                            None => {
                                state.insert(next, false);
                                let onward = self.next(at(&next), Some(next.0), next.1);
                                stack.push((next, onward));
                            }
                        }
                    }
                }
            }
        }
    }

    fn judge_end(&self, deployment: &Deployment, goals: &[SwitchConfig], backup: &[SwitchConfig]) {
        let outcome = deployment.outcome().expect("an end");
        let but = |faulty: &[(SwitchId, Fault)], wanted: &[SwitchConfig]| {
            for (switch, wanted) in self.topology.switch_ids().zip(wanted) {
                if faulty.iter().all(|(other, _)| *other != switch) {
                    assert_eq!(self.switches[switch.index()].running, *wanted, "{switch:?} after {outcome:?}");
                }
            }
        };
        match outcome {
            Outcome::Deployed { unsaved, doubts, .. } => but(&[&unsaved[..], &doubts[..]].concat(), goals),
            Outcome::RolledBack { unsaved, kept_shut, .. } => {
                let mut backup = backup.to_vec();
                for (switch, slot) in kept_shut.iter().map(|kept| kept.at) {
                    backup[switch.index()].ports[slot.index()].admin = Admin::Down;
                }
                but(unsaved, &backup);
            }
            Outcome::Refused(_) => but(&[], backup),
            Outcome::Stranded { lost, .. } => {
                assert!(!lost.is_empty());
                for switch in self.topology.switch_ids().filter(|switch| lost.iter().all(|(other, _)| other != switch))
                {
                    let (now, old) = (&self.switches[switch.index()].running, &backup[switch.index()]);
                    assert_eq!(
                        self.management.shut(switch, now),
                        self.management.shut(switch, old),
                        "{switch:?} {outcome:?}"
                    );
                }
            }
            Outcome::Unchanged => assert_eq!(goals, backup),
            Outcome::Quenched { .. } => panic!("nothing floods: {outcome:?}"),
            Outcome::Stale { .. } | Outcome::Superseded { .. } => panic!("nobody else deploys: {outcome:?}"),
        }
    }
}

fn port_names(topology: &Topology, switch: SwitchId) -> Vec<String> {
    topology.port_ids(switch).map(|port| topology.port(port).name.clone()).collect()
}

fn spanning_tree(topology: &Topology, rng: &mut Rng) -> Vec<LinkId> {
    let mut links: Vec<LinkId> = topology.link_ids().collect();
    rng.shuffle(&mut links);
    let mut part: Vec<usize> = (0..topology.switches().len()).collect();
    let mut tree = Vec::new();
    for id in links {
        let link = topology.link(id);
        let [a, b] = [link.a, link.b].map(|port| part[topology.port(port).switch.index()]);
        if a != b {
            part.iter_mut().filter(|part| **part == a).for_each(|part| *part = b);
            tree.push(id);
        }
    }
    tree
}
