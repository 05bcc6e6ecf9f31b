//! Three daemons over three members of etcd and four switches, each daemon and each member in a network namespace of its own: whatever
//! is killed, stopped or cut off, and whichever disk is full, in the middle of approvals, deployments and switch-overs, another
//! daemon goes on, what was approved is deployed, no broadcast can go round and no two deployments are mixed.
//!
//! `ESPALIERD_FAULTS` is the number of faults (one of each kind), `SEED` chooses them. Needs root; skips aloud without.

mod nets;
#[path = "../common/trio.rs"]
mod trio;
mod watch;

use std::{
    collections::BTreeMap,
    process::Stdio,
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use fabric::{Failure, LinkId, Plan, rng::Rng};
use nets::{Cut, Disk, Place, SWITCHES};
use rustix::process::Signal;
use trio::{
    DAEMONS, Seat, Stage, WAIT_MAX,
    cluster::{self, Cluster, number},
    plans,
    switches::{Closet, Folder, ROOMY, ring_in},
};
use watch::Watcher;

/// How long the controller is cut off from all switches, longer than a request to a switch is repeated, and how long a disk is full,
/// longer than etcd writes to its journal alone.
const LASTING: Duration = Duration::from_secs(4);
/// How long a controller is paused, in ms: about as long as its lease lasts.
const PAUSED_MS: std::ops::Range<usize> = 2000..4000;
/// Another daemon is the controller by then, at the latest.
const TAKEOVER_MAX: Duration = Duration::from_secs(20);

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Fault {
    KillController,
    StopController,
    /// It is stopped for about as long as its lease lasts, so that another one may or may not take over meanwhile.
    PauseController,
    /// The controller reaches no member.
    ControllerWithoutStore,
    /// It reaches no switch.
    ControllerWithoutSwitches,
    /// Neither.
    ControllerAlone,
    /// The disk of its own files is full.
    ControllerDiskFull,
    /// It is full, and the daemon has to start on it.
    KillControllerDiskFull,
    KillMember,
    StopMember,
    /// The member reaches nobody.
    MemberAlone,
    MemberDiskFull,
}

const FAULTS: [Fault; 12] = [
    Fault::KillController,
    Fault::StopController,
    Fault::PauseController,
    Fault::ControllerWithoutStore,
    Fault::ControllerWithoutSwitches,
    Fault::ControllerAlone,
    Fault::ControllerDiskFull,
    Fault::KillControllerDiskFull,
    Fault::KillMember,
    Fault::StopMember,
    Fault::MemberAlone,
    Fault::MemberDiskFull,
];

impl Fault {
    /// Whether another daemon is to take over, however long the fault lasts.
    fn ends_controller(self) -> bool {
        use Fault::{ControllerAlone, ControllerWithoutStore, KillController, KillControllerDiskFull, StopController};
        matches!(
            self,
            KillController | StopController | ControllerWithoutStore | ControllerAlone | KillControllerDiskFull
        )
    }
}

struct Fabric {
    stage: Stage,
    daemons: Vec<Place>,
    members: Vec<Place>,
    disks: Vec<Disk>,
    member_disks: Vec<Disk>,
    watcher: Arc<Watcher>,
    plans: [Plan; 2],
    approved: Vec<String>,
    /// Which of the plans the target is.
    held: usize,
    retries: usize,
    /// Members that ended by themselves on a full disk.
    members_ended: usize,
}

/// A fault that lasts.
struct Lasting {
    fault: Fault,
    controller: usize,
    /// The controller's process when it began.
    process: Option<u32>,
    member: usize,
}

impl Fabric {
    /// None, aloud, where it cannot be.
    fn new() -> Option<Self> {
        if let Err(why) = nets::enter() {
            println!("skipped: {why}");
            return None;
        }
        let place = |kind: &str, number: usize, host: usize| {
            Place::new(&format!("{kind}{number}"), (host + number) as u8, kind == "d")
        };
        let members: Vec<Place> = (0..3).map(|number| place("m", number, 11)).collect();
        let daemons: Vec<Place> = (0..DAEMONS).map(|number| place("d", number, 21)).collect();
        let member_disks: Vec<Disk> = (0..3).map(|number| Disk::new(&format!("m{number}"))).collect();
        let disks: Vec<Disk> = (0..DAEMONS).map(|number| Disk::new(&format!("d{number}"))).collect();
        let member = |(place, disk): (&Place, &Disk)| cluster::Place {
            address: place.address.clone(),
            within: place.within(),
            data: Some(disk.path().join("data")),
        };
        let cluster = Cluster::start_at(members.iter().zip(&member_disks).map(member).collect())?;
        drop(cluster.open(&cluster.config()));
        let watcher = Arc::new(Watcher::default());
        let closet = Closet::open_in(SWITCHES, ROOMY, ["p"; 4], Some(&watcher.watch()));
        let ring = ring_in(SWITCHES);
        let seat = |(place, disk): (&Place, &Disk)| Seat { within: place.within(), state: disk.path().join("state") };
        let seats = daemons.iter().zip(&disks).map(seat).collect();
        let stage = Stage::new(Folder::new("partitions"), cluster, closet, &ring, seats);
        let plans = plans(&ring);
        Some(Self {
            stage,
            daemons,
            members,
            disks,
            member_disks,
            watcher,
            plans,
            approved: Vec::new(),
            held: 0,
            retries: 0,
            members_ended: 0,
        })
    }

    fn fail(&mut self, fault: Fault, controller: usize, rng: &mut Rng) -> Lasting {
        let how = if rng.below(2) == 0 { Cut::Down } else { Cut::Drop };
        // Mostly the one that leads.
        let leader = self.stage.cluster.leader().unwrap_or(0);
        let member = if rng.below(4) == 0 { rng.below(3) } else { leader };
        let process = self.stage.process(controller);
        match fault {
            Fault::KillController => self.stage.kill(controller),
            Fault::StopController => self.stage.signal(controller, Signal::STOP),
            Fault::PauseController => {
                self.stage.signal(controller, Signal::STOP);
                let pause_ms = PAUSED_MS.start + rng.below(PAUSED_MS.len());
                thread::sleep(Duration::from_millis(pause_ms as u64));
                self.stage.signal(controller, Signal::CONT);
            }
            Fault::ControllerWithoutStore => self.daemons[controller].cut_from_store(how),
            Fault::ControllerWithoutSwitches => self.daemons[controller].cut_from_switches(how),
            Fault::ControllerAlone => {
                self.daemons[controller].cut_from_store(how);
                self.daemons[controller].cut_from_switches(how);
            }
            Fault::ControllerDiskFull => self.disks[controller].fill(),
            Fault::KillControllerDiskFull => {
                self.disks[controller].fill();
                self.stage.kill(controller);
            }
            Fault::KillMember => self.stage.cluster.kill(member),
            Fault::StopMember => self.stage.cluster.signal(member, Signal::STOP),
            Fault::MemberAlone => self.members[member].cut_from_store(how),
            Fault::MemberDiskFull => self.member_disks[member].fill(),
        }
        Lasting { fault, controller, process, member }
    }

    fn mend(&mut self, lasting: &Lasting) {
        let Lasting { fault, controller, process, member } = *lasting;
        match fault {
            Fault::KillController => self.stage.daemons[controller] = Some(self.stage.run(controller)),
            // It may have lost the lease a moment before it was to be stopped.
            Fault::StopController if self.stage.process(controller) != process => {}
            Fault::StopController => self.stage.wake(controller),
            Fault::ControllerWithoutStore | Fault::ControllerWithoutSwitches | Fault::ControllerAlone => {
                self.daemons[controller].mend();
            }
            Fault::PauseController => {}
            Fault::ControllerDiskFull => self.disks[controller].make_room(),
            Fault::KillControllerDiskFull => {
                self.stage.daemons[controller] = Some(self.stage.run(controller));
                thread::sleep(LASTING);
                self.stage.start_again();
                self.disks[controller].make_room();
            }
            Fault::KillMember => self.stage.cluster.run(member),
            Fault::StopMember => self.stage.cluster.signal(member, Signal::CONT),
            Fault::MemberAlone => self.members[member].mend(),
            Fault::MemberDiskFull => {
                self.member_disks[member].make_room();
                // Without room it may end by itself; whoever makes room starts it again.
                if self.stage.cluster.has_ended(member) {
                    self.members_ended += 1;
                    self.stage.cluster.run(member);
                }
            }
        }
    }

    /// Waits until something is so. A person does meanwhile what the status says about a deployment that has failed.
    fn await_that(&mut self, what: &str, is_so: &dyn Fn(&Self) -> bool) {
        let since = Instant::now();
        while !is_so(self) {
            self.stage.start_again();
            self.watcher.check();
            let status = self.stage.status();
            if status.contains("espalierd retry") && status.lines().next().is_some_and(|line| line.contains("failed")) {
                if let Some(controller) = self.stage.controller(None) {
                    self.retries += usize::from(self.stage.ask(controller, &["retry"]).is_some());
                }
            }
            assert!(since.elapsed() < WAIT_MAX, "{what}: {status}\n{}", self.stage.logs());
            thread::sleep(Duration::from_millis(100));
        }
    }

    fn await_deployed(&mut self) {
        let target = self.approved.len() as u64;
        self.await_that("what was approved is not deployed", &move |fabric| fabric.stage.is_deployed(target));
        self.stage.check_targets(&self.approved);
        self.watcher.check_held(self.approved.last().expect("something was approved"));
        self.watcher.check();
    }

    /// Has the other plan approved, and lets something fail from then on until after its deployment. Returns how long there was no
    /// controller.
    fn deploy(&mut self, fault: Fault, rng: &mut Rng) -> Duration {
        let plan = 1 - self.held;
        let (controller, proposal) = self.stage.propose(plan, &self.approved).expect("nothing else is approved");
        let mut approval = self.stage.command(controller, &["approve", &proposal, "--json"]);
        let approval = approval.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("the program runs");
        thread::sleep(Duration::from_millis(rng.below(2000) as u64));
        let (lasting, took) = self.fail_and_recover(fault, controller, rng);
        let answer = approval.wait_with_output().expect("it ends");
        let is_acknowledged = String::from_utf8_lossy(&answer.stdout).contains("\"approved\"");
        self.mend(&lasting);
        match is_acknowledged {
            true => self.approved.push(self.stage.digest(plan)),
            // It is not known whether it was approved.
            false => drop(self.stage.approve(plan, &mut self.approved)),
        }
        self.held = plan;
        self.await_deployed();
        took
    }

    /// Cuts a cable for which the plan stores an answer, and lets something fail while hosts switch over.
    fn switch_over(&mut self, fault: Fault, rng: &mut Rng) -> Duration {
        let link = rng.below(4);
        let over = self.plans[self.held].switched_over(Failure::Link(LinkId::new(link))).expect("an answer is stored");
        let controller = self.stage.await_controller(None);
        self.stage.closet.do_it(&format!("s{link} cuts"));
        thread::sleep(Duration::from_millis(rng.below(600) as u64));
        let (lasting, took) = self.fail_and_recover(fault, controller, rng);
        self.mend(&lasting);
        self.await_that("hosts have not switched over", &move |fabric| fabric.watcher.hosts_are_as_in(&over));
        self.stage.closet.do_it(&format!("s{link} mends"));
        let home = self.plans[self.held].clone();
        self.await_that("hosts have not returned", &move |fabric| fabric.watcher.hosts_are_as_in(&home));
        self.await_deployed();
        took
    }

    /// Lets something fail, and waits until a daemon is the controller: how long that took.
    fn fail_and_recover(&mut self, fault: Fault, controller: usize, rng: &mut Rng) -> (Lasting, Duration) {
        let since = Instant::now();
        let lasting = self.fail(fault, controller, rng);
        let next = self.stage.await_controller(fault.ends_controller().then_some(controller));
        let took = since.elapsed();
        assert!(!fault.ends_controller() || next != controller);
        if matches!(fault, Fault::ControllerWithoutSwitches | Fault::ControllerDiskFull | Fault::MemberDiskFull) {
            thread::sleep(LASTING);
        }
        (lasting, took)
    }
}

#[test]
fn whatever_is_cut_off_another_daemon_goes_on_and_what_was_approved_is_deployed() {
    let faults = number("ESPALIERD_FAULTS", FAULTS.len() as u64);
    let seed = number("SEED", 1);
    println!("{faults} faults, seed {seed}");
    let mut rng = Rng::new(seed);
    let Some(mut fabric) = Fabric::new() else { return };
    fabric.held = 1;
    fabric.stage.approve(fabric.held, &mut fabric.approved);
    fabric.await_deployed();
    let mut times: BTreeMap<Fault, Vec<Duration>> = BTreeMap::new();
    let mut switch_overs = 0;
    for round in 0..faults as usize {
        let fault = FAULTS[if round < FAULTS.len() { round } else { rng.below(FAULTS.len()) }];
        let is_over = fabric.held == 1 && rng.below(2) == 0;
        let took = if is_over { fabric.switch_over(fault, &mut rng) } else { fabric.deploy(fault, &mut rng) };
        switch_overs += usize::from(is_over);
        let what = if is_over { "switch-over" } else { "deployment" };
        let words = if fault.ends_controller() { "taken over" } else { "a controller answers" };
        println!("{}: {fault:?} during a {what}: {words} after {} ms", round + 1, took.as_millis());
        times.entry(fault).or_default().push(took);
    }
    for (fault, times) in &mut times {
        println!("{fault:?}: {}", figures(times));
    }
    let ends = |fault: &Fault| fault.ends_controller();
    let mut takeovers: Vec<Duration> =
        times.iter().filter(|(fault, _)| ends(fault)).flat_map(|(_, times)| times.clone()).collect();
    println!("takeovers: {}", figures(&mut takeovers));
    println!(
        "{faults} faults, {switch_overs} during switch-overs; {} plans approved, none lost; {} changes of switches, after none of them a \
         loop or a mixed generation; {} deployments repeated by espalierd retry, {} members of etcd ended on a full disk",
        fabric.approved.len(),
        fabric.watcher.changes(),
        fabric.retries,
        fabric.members_ended
    );
    assert!(takeovers.iter().all(|took| *took < TAKEOVER_MAX), "{takeovers:?}");
}

fn figures(times: &mut [Duration]) -> String {
    times.sort();
    let ms = |time: Option<&Duration>| time.map_or(0, Duration::as_millis);
    format!("{} times, median {} ms, worst {} ms", times.len(), ms(times.get(times.len() / 2)), ms(times.last()))
}
