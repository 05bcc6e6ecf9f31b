//! Three daemons over three members of etcd and four switches.
#![allow(dead_code, reason = "each test program uses its part")]

#[path = "../../../records/tests/common/mod.rs"]
pub(crate) mod cluster;
#[path = "../../../cli/tests/closet/switches.rs"]
pub(crate) mod switches;

use std::{
    fs,
    path::PathBuf,
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use cluster::Cluster;
use fabric::{
    FlowControl, Plan, Policy, Resilience,
    format::{native::parse_native, plan::write_plan},
};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use switches::{Closet, Folder};

/// How long something may take to show.
pub(crate) const WAIT_MAX: Duration = Duration::from_secs(90);
pub(crate) const DAEMONS: usize = 3;
/// Seconds that the lease lasts.
const LEASE: f64 = 3.0;
/// The exit code of a controller that has lost its lease.
pub(crate) const LEASE_LOST: i32 = 75;

/// Where a daemon runs and keeps its state.
pub(crate) struct Seat {
    /// What runs it elsewhere, before its own words: `nsenter --target PID --net`.
    pub(crate) within: Vec<String>,
    pub(crate) state: PathBuf,
}

pub(crate) struct Stage {
    pub(crate) folder: Folder,
    pub(crate) daemons: Vec<Option<Child>>,
    pub(crate) cluster: Cluster,
    pub(crate) closet: Closet,
    seats: Vec<Seat>,
}

/// The plans that are deployed in turn, without and with answers to the failure of a cable.
pub(crate) fn plans(ring: &str) -> [Plan; 2] {
    let topology = parse_native("ring.yaml", ring).expect("a topology");
    [Resilience::None, Resilience::OneLink].map(|resilience| {
        let policy = Policy { flow_control: FlowControl::None, resilience, ..Policy::default() };
        planner::plan(&topology, &policy, None).expect("a plan")
    })
}

impl Stage {
    /// Starts the daemons.
    pub(crate) fn new(folder: Folder, cluster: Cluster, closet: Closet, ring: &str, seats: Vec<Seat>) -> Self {
        folder.prepare(ring);
        let path = folder.0.display();
        for (daemon, seat) in seats.iter().enumerate() {
            let config = format!(
                "state = {:?}\ncredentials = \"{path}/credentials.toml\"\nlisten = [\"{path}/socket{daemon}\"]\n\
                 [store]\netcd = {:?}\nname = \"d{daemon}\"\nlease = {LEASE:?}\n\
                 [snmp]\nport = {}\ntimeout = 0.3\nattempts = 3\n[watch]\ncounters = 1\ntables = 1\nstandby = 0.05\nhold = 0.5\n",
                seat.state,
                cluster.endpoints(),
                closet.port
            );
            folder.write(&format!("d{daemon}.toml"), &config);
        }
        for (number, plan) in plans(ring).iter().enumerate() {
            let mut text = Vec::new();
            write_plan(plan, &mut text).expect("text");
            folder.write(&format!("plan{number}.json"), &String::from_utf8(text).expect("text"));
        }
        let mut stage = Self { folder, daemons: Vec::new(), cluster, closet, seats };
        for daemon in 0..DAEMONS {
            stage.daemons.push(Some(stage.run(daemon)));
        }
        stage
    }

    pub(crate) fn run(&self, daemon: usize) -> Child {
        let log = fs::File::options().create(true).append(true).open(self.folder.0.join(format!("log{daemon}")));
        let program = env!("CARGO_BIN_EXE_espalierd").to_owned();
        let words: Vec<String> = self.seats[daemon].within.iter().cloned().chain([program]).collect();
        let mut program = Command::new(&words[0]);
        program.args(&words[1..]).args(["run", "--config", &format!("d{daemon}.toml")]).current_dir(&self.folder.0);
        program.stdout(Stdio::null()).stderr(log.expect("a file")).spawn().expect("the program runs")
    }

    /// Starts those again that have lost the lease, as systemd does.
    pub(crate) fn start_again(&mut self) {
        for daemon in 0..DAEMONS {
            let ended = self.daemons[daemon].as_mut().and_then(|child| child.try_wait().expect("a process"));
            if let Some(ended) = ended {
                assert_eq!(ended.code(), Some(LEASE_LOST), "d{daemon}: {}", self.logs());
                self.daemons[daemon] = Some(self.run(daemon));
            }
        }
    }

    /// The process of a daemon.
    pub(crate) fn process(&self, daemon: usize) -> Option<u32> {
        self.daemons[daemon].as_ref().map(Child::id)
    }

    /// As `kill -9`.
    pub(crate) fn kill(&mut self, daemon: usize) {
        self.signal(daemon, Signal::KILL);
        self.daemons[daemon].take().expect("it runs").wait().expect("it ends");
    }

    /// Lets a controller that was stopped while another took over go on. It finds out by itself that it is not the controller any
    /// more.
    pub(crate) fn wake(&mut self, daemon: usize) {
        self.signal(daemon, Signal::CONT);
        let mut woken = self.daemons[daemon].take().expect("it runs");
        let since = Instant::now();
        let ended = loop {
            if let Some(ended) = woken.try_wait().expect("a process") {
                break ended;
            }
            assert!(since.elapsed() < WAIT_MAX, "a controller that lost the lease goes on: {}", self.logs());
            thread::sleep(Duration::from_millis(20));
        };
        assert_eq!(ended.code(), Some(LEASE_LOST));
        self.daemons[daemon] = Some(self.run(daemon));
    }

    /// The first line of what the controller's status says.
    pub(crate) fn status(&self) -> String {
        self.controller(None).and_then(|controller| self.ask(controller, &["status"])).unwrap_or_default()
    }

    /// Whether all switches hold this target.
    pub(crate) fn is_deployed(&self, target: u64) -> bool {
        let status = self.status();
        let first = status.lines().next().unwrap_or_default();
        let is_deployed = first.starts_with(&format!("target {target}: ")) && first.ends_with("; deployed");
        is_deployed && status.contains("4 of 4 switches hold the plan")
    }

    pub(crate) fn signal(&self, daemon: usize, signal: Signal) {
        let pid = Pid::from_child(self.daemons[daemon].as_ref().expect("it runs"));
        kill_process(pid, signal).expect("it runs");
    }

    /// A command of espalierd, asked of a daemon; given up after a moment.
    pub(crate) fn command(&self, daemon: usize, words: &[&str]) -> Command {
        let mut program = Command::new("timeout");
        program.args(["5", env!("CARGO_BIN_EXE_espalierd")]).args(words).args(["--socket", &format!("socket{daemon}")]);
        program.current_dir(&self.folder.0);
        program
    }

    /// What a daemon answers; none if it does not within a moment, or stands by.
    pub(crate) fn ask(&self, daemon: usize, words: &[&str]) -> Option<String> {
        let output = self.command(daemon, words).output().expect("the program runs");
        // A status with something to do has exit code 1 and an answer all the same.
        let text = String::from_utf8(output.stdout).expect("text");
        (!text.is_empty() || output.status.success()).then_some(text)
    }

    /// The daemon that is the controller, but for one that cannot be.
    pub(crate) fn controller(&self, except: Option<usize>) -> Option<usize> {
        (0..DAEMONS).filter(|daemon| Some(*daemon) != except).find(|daemon| self.ask(*daemon, &["status"]).is_some())
    }

    /// The daemon that is the controller, as soon as one is. Those that have lost the lease are started again meanwhile.
    pub(crate) fn await_controller(&mut self, except: Option<usize>) -> usize {
        let since = Instant::now();
        loop {
            if let Some(found) = self.controller(except) {
                return found;
            }
            self.start_again();
            assert!(since.elapsed() < WAIT_MAX, "there is no controller: {}", self.logs());
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// What daemons said last.
    pub(crate) fn logs(&self) -> String {
        let last = |daemon: usize| {
            let log = fs::read_to_string(self.folder.0.join(format!("log{daemon}"))).unwrap_or_default();
            let lines: Vec<&str> = log.lines().collect();
            format!("d{daemon}:\n{}\n", lines[lines.len().saturating_sub(12)..].join("\n"))
        };
        (0..DAEMONS).map(last).collect()
    }

    /// The digest of a plan.
    pub(crate) fn digest(&self, plan: usize) -> String {
        let text = fs::read_to_string(self.folder.0.join(format!("plan{plan}.json"))).expect("a file");
        let file: Value = serde_json::from_str(&text).expect("JSON");
        file["digest"].as_str().expect("a digest").to_owned()
    }

    /// Has a plan proposed by whoever is the controller: that, and the number of the proposal. None if it is the target already,
    /// as the one after the last that is known to be approved.
    pub(crate) fn propose(&mut self, plan: usize, approved: &[String]) -> Option<(usize, String)> {
        let since = Instant::now();
        loop {
            assert!(since.elapsed() < WAIT_MAX, "nobody takes a proposal: {}", self.logs());
            let controller = self.await_controller(None);
            let Some(targets) = self.targets(controller) else { continue };
            if targets.len() > approved.len() {
                return None;
            }
            let name = format!("plan{plan}.json");
            let Some(proposal) = self.ask(controller, &["propose", &name, "--reason", "x", "--json"]) else { continue };
            let proposal: Value = serde_json::from_str(&proposal).expect("JSON");
            return Some((controller, proposal["id"].to_string()));
        }
    }

    /// Has a plan approved by whoever is the controller, and adds its digest to what is approved; who that was. Whoever asks does not
    /// know what became of a request that was not answered, and looks before it asks again.
    pub(crate) fn approve(&mut self, plan: usize, approved: &mut Vec<String>) -> usize {
        let digest = self.digest(plan);
        let since = Instant::now();
        loop {
            assert!(since.elapsed() < WAIT_MAX, "nobody has a plan approved: {}", self.logs());
            let Some((controller, proposal)) = self.propose(plan, approved) else {
                approved.push(digest);
                return self.await_controller(None);
            };
            if let Some(answer) = self.ask(controller, &["approve", &proposal, "--json"]) {
                assert!(answer.contains("\"approved\""), "{answer}");
                approved.push(digest);
                return controller;
            }
        }
    }

    /// Fails unless the targets are what was approved, in its order.
    pub(crate) fn check_targets(&mut self, approved: &[String]) {
        let targets = self.await_targets();
        for (at, target) in targets.iter().enumerate() {
            assert_eq!(target["number"], at + 1, "targets count on");
            assert_eq!(Some(&target["plan"]), approved.get(at).map(|digest| Value::from(digest.as_str())).as_ref());
        }
        assert_eq!(targets.len(), approved.len(), "what was approved is a target");
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
