//! Three daemons over three members of etcd and four switches: whatever is killed or stopped while plans are approved and deployed,
//! another daemon goes on, what was approved is deployed, and no two plans are mixed.
//!
//! `ESPALIERD_FAULTS` is the number of faults (4), `SEED` chooses them.

#[path = "../../records/tests/common/mod.rs"]
mod cluster;
#[path = "../../cli/tests/closet/switches.rs"]
mod switches;

use std::{
    fs,
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use cluster::{Cluster, number};
use fabric::{
    FlowControl, Policy, Resilience,
    format::{native::parse_native, plan::write_plan},
    rng::Rng,
};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use switches::{Closet, Folder, ROOMY, ring};

/// How long something may take to show.
const WAIT_MAX: Duration = Duration::from_secs(90);
const DAEMONS: usize = 3;
/// Seconds that the lease lasts.
const LEASE: f64 = 3.0;
/// The exit code of a controller that has lost its lease.
const LEASE_LOST: i32 = 75;

struct Stage {
    folder: Folder,
    daemons: Vec<Option<Child>>,
    cluster: Cluster,
    _closet: Closet,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Fault {
    KillController,
    StopController,
    KillMember,
    StopMember,
}

impl Stage {
    fn new(cluster: Cluster) -> Self {
        let folder = Folder::new("takeover");
        let closet = Closet::open(ROOMY);
        folder.prepare(&ring());
        let path = folder.0.display();
        for daemon in 0..DAEMONS {
            let config = format!(
                "state = \"{path}/state{daemon}\"\ncredentials = \"{path}/credentials.toml\"\nlisten = [\"{path}/socket{daemon}\"]\n\
                 [store]\netcd = {:?}\nname = \"d{daemon}\"\nlease = {LEASE:?}\n\
                 [snmp]\nport = {}\ntimeout = 0.3\nattempts = 3\n[watch]\ncounters = 1\ntables = 1\nstandby = 0.05\nhold = 0.5\n",
                cluster.endpoints(),
                closet.port
            );
            folder.write(&format!("d{daemon}.toml"), &config);
        }
        let topology = parse_native("ring.yaml", &ring()).expect("a topology");
        for (name, resilience) in [("plan0", Resilience::None), ("plan1", Resilience::OneLink)] {
            let policy = Policy { flow_control: FlowControl::None, resilience, ..Policy::default() };
            let mut text = Vec::new();
            write_plan(&planner::plan(&topology, &policy, None).expect("a plan"), &mut text).expect("text");
            folder.write(&format!("{name}.json"), &String::from_utf8(text).expect("text"));
        }
        let mut stage = Self { folder, daemons: Vec::new(), cluster, _closet: closet };
        for daemon in 0..DAEMONS {
            stage.daemons.push(Some(stage.run(daemon)));
        }
        stage
    }

    fn run(&self, daemon: usize) -> Child {
        let log = fs::File::options().create(true).append(true).open(self.folder.0.join(format!("log{daemon}")));
        let mut program = Command::new(env!("CARGO_BIN_EXE_espalierd"));
        program.args(["run", "--config", &format!("d{daemon}.toml")]).current_dir(&self.folder.0);
        program.stdout(Stdio::null()).stderr(log.expect("a file")).spawn().expect("the program runs")
    }

    /// Starts those again that have lost the lease, as systemd does.
    fn start_again(&mut self) {
        for daemon in 0..DAEMONS {
            let ended = self.daemons[daemon].as_mut().and_then(|child| child.try_wait().expect("a process"));
            if let Some(ended) = ended {
                assert_eq!(ended.code(), Some(LEASE_LOST), "d{daemon}");
                self.daemons[daemon] = Some(self.run(daemon));
            }
        }
    }

    /// Whether all switches hold this target.
    fn is_deployed(&self, target: u64) -> bool {
        let status = self.controller(None).and_then(|controller| self.ask(controller, &["status"])).unwrap_or_default();
        let first = status.lines().next().unwrap_or_default();
        let is_deployed = first.starts_with(&format!("target {target}: ")) && first.ends_with("; deployed");
        is_deployed && status.contains("4 of 4 switches hold the plan")
    }

    fn signal(&self, daemon: usize, signal: Signal) {
        let pid = Pid::from_child(self.daemons[daemon].as_ref().expect("it runs"));
        kill_process(pid, signal).expect("it runs");
    }

    /// What a daemon answers; none if it does not within a moment, or stands by.
    fn ask(&self, daemon: usize, words: &[&str]) -> Option<String> {
        let mut program = Command::new("timeout");
        program.args(["5", env!("CARGO_BIN_EXE_espalierd")]).args(words).args(["--socket", &format!("socket{daemon}")]);
        let output = program.current_dir(&self.folder.0).output().expect("the program runs");
        // A status with something to do has exit code 1 and an answer all the same.
        let text = String::from_utf8(output.stdout).expect("text");
        (!text.is_empty() || output.status.success()).then_some(text)
    }

    /// The daemon that is the controller, but for one that is stopped.
    fn controller(&self, stopped: Option<usize>) -> Option<usize> {
        (0..DAEMONS).filter(|daemon| Some(*daemon) != stopped).find(|daemon| self.ask(*daemon, &["status"]).is_some())
    }

    /// The daemon that is the controller, as soon as one is. Those that have lost the lease are started again meanwhile.
    fn await_controller(&mut self, stopped: Option<usize>) -> usize {
        let since = Instant::now();
        loop {
            if let Some(found) = self.controller(stopped) {
                return found;
            }
            self.start_again();
            assert!(since.elapsed() < WAIT_MAX, "there is no controller: {}", self.logs());
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// What daemons said last.
    fn logs(&self) -> String {
        let last = |daemon: usize| {
            let log = fs::read_to_string(self.folder.0.join(format!("log{daemon}"))).unwrap_or_default();
            let lines: Vec<&str> = log.lines().collect();
            format!("d{daemon}:\n{}\n", lines[lines.len().saturating_sub(12)..].join("\n"))
        };
        (0..DAEMONS).map(last).collect()
    }

    /// Has a plan approved by whoever is the controller, and adds its digest to what is approved; who that was. Whoever asks does not
    /// know what became of a request that was not answered, and looks before it asks again.
    fn approve(&mut self, plan: u64, approved: &mut Vec<String>) -> usize {
        let name = format!("plan{plan}.json");
        let text = fs::read_to_string(self.folder.0.join(&name)).expect("a file");
        let file: Value = serde_json::from_str(&text).expect("JSON");
        let digest = file["digest"].as_str().expect("a digest").to_owned();
        let since = Instant::now();
        loop {
            assert!(since.elapsed() < WAIT_MAX, "nobody has a plan approved: {}", self.logs());
            let controller = self.await_controller(None);
            let Some(targets) = self.targets(controller) else { continue };
            if targets.len() > approved.len() {
                approved.push(digest);
                return controller;
            }
            let Some(proposal) = self.ask(controller, &["propose", &name, "--reason", "x", "--json"]) else { continue };
            let proposal: Value = serde_json::from_str(&proposal).expect("JSON");
            if let Some(answer) = self.ask(controller, &["approve", &proposal["id"].to_string(), "--json"]) {
                assert!(answer.contains("\"approved\""), "{answer}");
                approved.push(digest);
                return controller;
            }
        }
    }

    fn await_targets(&mut self) -> Vec<Value> {
        loop {
            let controller = self.await_controller(None);
            if let Some(targets) = self.targets(controller) {
                return targets;
            }
        }
    }

    fn targets(&self, daemon: usize) -> Option<Vec<Value>> {
        serde_json::from_str(&self.ask(daemon, &["targets", "--json"])?).ok()
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        for daemon in self.daemons.iter_mut().flatten() {
            // It may have ended; one that is stopped ends as well.
            let _ = daemon.kill();
            let _ = daemon.wait();
        }
    }
}

#[test]
fn whatever_fails_another_daemon_goes_on_and_what_was_approved_is_deployed() {
    let faults = number("ESPALIERD_FAULTS", 4);
    let seed = number("SEED", 1);
    println!("{faults} faults, seed {seed}");
    let mut rng = Rng::new(seed);
    let Some(cluster) = Cluster::start(3) else { return };
    drop(cluster.open(&cluster.config()));
    let mut stage = Stage::new(cluster);
    let first = stage.await_controller(None);
    let refused = stage.ask((first + 1) % DAEMONS, &["status"]);
    assert_eq!(refused, None, "one daemon alone is the controller");
    let (mut approved, mut takeovers): (Vec<String>, Vec<Duration>) = (Vec::new(), Vec::new());
    for round in 0..faults {
        let controller = stage.approve(round % 2, &mut approved);

        // The deployment is under way, or just over.
        thread::sleep(Duration::from_millis(rng.below(1200) as u64));
        let fault = [Fault::KillController, Fault::StopController, Fault::KillMember, Fault::StopMember]
            [if round < 4 { round as usize } else { rng.below(4) }];
        let since = Instant::now();
        let member = stage.cluster.leader().unwrap_or(0);
        let process = stage.daemons[controller].as_ref().expect("it runs").id();
        match fault {
            Fault::KillController => {
                stage.signal(controller, Signal::KILL);
                let mut killed = stage.daemons[controller].take().expect("it runs");
                killed.wait().expect("it ends");
            }
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
            Fault::StopController if stage.daemons[controller].as_ref().is_none_or(|child| child.id() != process) => {}
            Fault::StopController => {
                stage.signal(controller, Signal::CONT);
                // It finds out by itself that it is not the controller any more.
                let mut woken = stage.daemons[controller].take().expect("it runs");
                let woken_at = Instant::now();
                let ended = loop {
                    if let Some(ended) = woken.try_wait().expect("a process") {
                        break ended;
                    }
                    assert!(
                        woken_at.elapsed() < WAIT_MAX,
                        "a controller that lost the lease goes on: {}",
                        stage.logs()
                    );
                    thread::sleep(Duration::from_millis(20));
                };
                assert_eq!(ended.code(), Some(LEASE_LOST));
                stage.daemons[controller] = Some(stage.run(controller));
            }
            Fault::KillMember => stage.cluster.run(member),
            Fault::StopMember => stage.cluster.signal(member, Signal::CONT),
        }
        let since = Instant::now();
        while !stage.is_deployed(approved.len() as u64) {
            stage.start_again();
            assert!(since.elapsed() < WAIT_MAX, "what was approved is not deployed: {}", stage.logs());
            thread::sleep(Duration::from_millis(100));
        }
        let targets = stage.await_targets();
        for (at, target) in targets.iter().enumerate() {
            assert_eq!(target["number"], at + 1, "targets count on");
            assert_eq!(target["plan"], approved[at].as_str(), "what was approved is the target");
        }
        assert_eq!(targets.len(), approved.len());
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
