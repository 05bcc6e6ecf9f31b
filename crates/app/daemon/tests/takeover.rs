//! Three daemons over three members of etcd and four switches: whatever is killed or stopped while plans are approved and deployed,
//! another daemon goes on, what was approved is deployed, and no two plans are mixed. `partitions` does the same in namespaces, with
//! more kinds of faults.
//!
//! `ESPALIERD_FAULTS` is the number of faults (4), `SEED` chooses them.

#[path = "common/trio.rs"]
mod trio;

use std::{
    thread,
    time::{Duration, Instant},
};

use fabric::rng::Rng;
use rustix::process::Signal;
use trio::{
    DAEMONS, Seat, Stage, WAIT_MAX,
    cluster::{Cluster, number},
    switches::{Closet, Folder, ROOMY, ring},
};

#[derive(Clone, Copy, Debug, PartialEq)]
enum Fault {
    KillController,
    StopController,
    KillMember,
    StopMember,
}

#[test]
fn whatever_fails_another_daemon_goes_on_and_what_was_approved_is_deployed() {
    let faults = number("ESPALIERD_FAULTS", 4);
    let seed = number("SEED", 1);
    println!("{faults} faults, seed {seed}");
    let mut rng = Rng::new(seed);
    let Some(cluster) = Cluster::start(3) else { return };
    drop(cluster.open(&cluster.config()));
    let folder = Folder::new("takeover");
    let seat = |daemon| Seat { within: Vec::new(), state: folder.0.join(format!("state{daemon}")) };
    let seats = (0..DAEMONS).map(seat).collect();
    let mut stage = Stage::new(folder, cluster, Closet::open(ROOMY), &ring(), seats);
    let first = stage.await_controller(None);
    let refused = stage.ask((first + 1) % DAEMONS, &["status"]);
    assert_eq!(refused, None, "one daemon alone is the controller");
    let (mut approved, mut takeovers): (Vec<String>, Vec<Duration>) = (Vec::new(), Vec::new());
    for round in 0..faults {
        let controller = stage.approve(round as usize % 2, &mut approved);

        // The deployment is under way, or just over.
        thread::sleep(Duration::from_millis(rng.below(1200) as u64));
        let fault = [Fault::KillController, Fault::StopController, Fault::KillMember, Fault::StopMember]
            [if round < 4 { round as usize } else { rng.below(4) }];
        let since = Instant::now();
        let member = stage.cluster.leader().unwrap_or(0);
        let process = stage.process(controller);
        match fault {
            Fault::KillController => stage.kill(controller),
            Fault::StopController => stage.signal(controller, Signal::STOP),
            Fault::KillMember => stage.cluster.kill(member),
            Fault::StopMember => stage.cluster.signal(member, Signal::STOP),
        }
        let stopped = (fault == Fault::StopController).then_some(controller);
        let next = stage.await_controller(stopped);
        if matches!(fault, Fault::KillController | Fault::StopController) {
            assert_ne!(next, controller);
            takeovers.push(since.elapsed());
            println!("{fault:?}: taken over after {} ms", since.elapsed().as_millis());
        } else {
            println!("{fault:?}: a controller answers after {} ms", since.elapsed().as_millis());
        }
        match fault {
            Fault::KillController => stage.daemons[controller] = Some(stage.run(controller)),
            // It may have lost the lease a moment before it was to be stopped.
            Fault::StopController if stage.process(controller) != process => {}
            Fault::StopController => stage.wake(controller),
            Fault::KillMember => stage.cluster.run(member),
            Fault::StopMember => stage.cluster.signal(member, Signal::CONT),
        }
        let since = Instant::now();
        while !stage.is_deployed(approved.len() as u64) {
            stage.start_again();
            assert!(since.elapsed() < WAIT_MAX, "what was approved is not deployed: {}", stage.logs());
            thread::sleep(Duration::from_millis(100));
        }
        stage.check_targets(&approved);
    }
    takeovers.sort();
    println!(
        "{} takeovers: median {} ms, worst {} ms",
        takeovers.len(),
        takeovers[takeovers.len() / 2].as_millis(),
        takeovers.last().expect("some").as_millis()
    );
    assert!(*takeovers.last().expect("some") < Duration::from_secs(20), "{takeovers:?}");
}
