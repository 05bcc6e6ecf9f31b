//! A failover bond over model switches that moves while both of its ports stay up: the daemon sees by counters from which port it sends.

use std::{
    fs,
    io::Write as _,
    os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _},
    path::PathBuf,
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use fabric::{
    HostId, Plan, Policy,
    format::{native::parse_native, plan::write_plan},
};
use rack::{COMMUNITY, Rack, on_loopback};
use rollout::bonds::SILENCE_MAX;

/// How long something may take to show.
const WAIT_MAX: Duration = Duration::from_secs(60);
/// For how long nothing is to happen: many polls, and, of a bond that is silent, longer than a port need be silent to count as such.
const REST: Duration = Duration::from_secs(4);
const SILENT_REST: Duration = SILENCE_MAX.saturating_add(Duration::from_secs(2));
/// What a host sends.
const RATE_BPS: f64 = 1e8;

const FABRIC: &str = "switches: {s0: , s1: , s2: }
links:
  - s0:p1 -- s1:p1
  - s1:p2 -- s2:p1
  - s2:p2 -- s0:p2
hosts:
  h0: {mac: \"02:00:00:00:00:01\", port: \"s0:p3\"}
  h2: {mac: \"02:00:00:00:00:02\", port: \"s2:p3\"}
machines:
  login1:
    bond: failover
    mac: \"02:00:00:00:00:11\"
    nics: {eth0: {port: \"s0:p4\"}, eth1: {port: \"s1:p4\"}, eth2: {port: \"s2:p4\"}}
";

/// The daemon over model switches, gone with its folder.
struct Stage {
    plan: Plan,
    folder: PathBuf,
    daemon: Child,
    rack: Rack,
}

impl Stage {
    /// The daemon, whose switches hold the plan.
    fn new() -> Self {
        let topology = on_loopback(&parse_native("bond.yaml", FABRIC).expect("a topology"));
        let plan = planner::plan(&topology, &Policy::default(), None).expect("a plan");
        let folder = std::env::temp_dir().join(format!("espalierd-bond-{}", std::process::id()));
        fs::DirBuilder::new().mode(0o700).create(&folder).expect("a fresh folder");
        let rack = Rack::open(&plan.topology).expect("loopback addresses");
        let mut text = Vec::new();
        write_plan(&plan, &mut text).expect("text");
        let (path, port) = (folder.display(), rack.port());
        let config = format!(
            "state = \"{path}/state\"\ncredentials = \"{path}/credentials.toml\"\nlisten = [\"{path}/socket\"]\n\
             [snmp]\nport = {port}\n[watch]\nstandby = 0.1\n"
        );
        let write = |name: &str, text: &[u8]| {
            let mut file = fs::File::options().write(true).create_new(true).mode(0o600).open(folder.join(name))?;
            file.write_all(text)
        };
        write("plan.json", &text).expect("a file");
        write("credentials.toml", format!("[default]\ncommunity = \"{COMMUNITY}\"\n").as_bytes()).expect("a file");
        write("espalierd.toml", config.as_bytes()).expect("a file");
        let daemon = run(&folder);
        let stage = Self { plan, folder, daemon, rack };
        stage.wait("a first answer", || stage.folder.join("socket").exists());
        stage.wait("a proposal", || stage.ask(&["propose", "plan.json"]).contains("proposal 1"));
        stage.ask(&["approve", "1"]);
        stage.wait("every switch as planned", || stage.is_as_planned());
        stage.wait("standby", || stage.log().contains("standing by"));
        stage
    }

    fn is_as_planned(&self) -> bool {
        let answer = self.ask(&["status"]);
        answer.contains("; deployed") && answer.contains("3 of 3 switches hold the plan")
    }

    /// What it answers; empty if it does not.
    fn ask(&self, words: &[&str]) -> String {
        let mut program = Command::new(env!("CARGO_BIN_EXE_espalierd"));
        let output = program.args(words).args(["--socket", "socket"]).current_dir(&self.folder).output();
        String::from_utf8(output.expect("the program runs").stdout).expect("text")
    }

    fn log(&self) -> String {
        fs::read_to_string(self.folder.join("log")).unwrap_or_default()
    }

    fn wait(&self, for_what: &str, is_there: impl Fn() -> bool) {
        let since = Instant::now();
        while !is_there() {
            assert!(since.elapsed() < WAIT_MAX, "no {for_what}: {}\n{}", self.ask(&["status"]), self.log());
            thread::sleep(Duration::from_millis(100));
        }
    }

    /// The bond sends from a port, or from none.
    fn sends_from(&self, port: Option<&str>) {
        let topology = &self.plan.topology;
        let sends = |host: HostId| port == Some(topology.host(host).name.as_str());
        let hosts: Vec<[f64; 2]> =
            topology.host_ids().map(|host| [if sends(host) { RATE_BPS } else { 0.0 }, 0.0]).collect();
        self.rack.carry(&vec![0.0; topology.channel_count()], &hosts);
    }

    fn wait_for_turn(&self, from: &str, to: &str) {
        let said = format!("{to} at {} sends instead of {from}", {
            let topology = &self.plan.topology;
            topology.port_label(topology.host(topology.find_host(to).expect("a port")).port)
        });
        self.wait(&said, || self.log().contains(&said));
    }

    /// Nothing is written for a while, and nothing is amiss.
    fn rests(&self, how_long: Duration) {
        // What was ordered last is carried out.
        thread::sleep(Duration::from_secs(2));
        let writes = self.rack.writes();
        thread::sleep(how_long);
        assert_eq!(self.rack.writes(), writes, "{}", self.log());
        assert!(self.is_as_planned(), "{}", self.ask(&["status"]));
    }

    fn restart(&mut self) {
        // It may have ended.
        let _ = self.daemon.kill();
        let _ = self.daemon.wait();
        self.daemon = run(&self.folder);
        self.wait("standby", || self.log().contains("standing by"));
    }
}

/// Starts the daemon; its log begins anew.
fn run(folder: &PathBuf) -> Child {
    let log = fs::File::create(folder.join("log")).expect("a file");
    let mut program = Command::new(env!("CARGO_BIN_EXE_espalierd"));
    program.args(["run", "--config", "espalierd.toml"]).current_dir(folder).stdout(Stdio::null()).stderr(log);
    program.spawn().expect("the program runs")
}

impl Drop for Stage {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.daemon.kill();
        let _ = self.daemon.wait();
        let _ = fs::remove_dir_all(&self.folder);
    }
}

#[test]
fn entries_follow_a_bond_whose_ports_stay_up_and_rest_while_it_does() {
    let mut stage = Stage::new();
    let [eth0, eth1, eth2] = ["login1/eth0", "login1/eth1", "login1/eth2"];
    stage.sends_from(Some(eth0));
    stage.rests(REST);
    stage.sends_from(Some(eth1));
    stage.wait_for_turn(eth0, eth1);
    stage.rests(REST);
    stage.sends_from(Some(eth2));
    stage.wait_for_turn(eth1, eth2);
    // An idle bond stays where it is, also for a daemon that starts; so does one that sends.
    stage.sends_from(None);
    stage.rests(REST);
    let writes = stage.rack.writes();
    stage.restart();
    stage.rests(SILENT_REST);
    stage.sends_from(Some(eth2));
    stage.restart();
    stage.rests(REST);
    assert_eq!(stage.rack.writes(), writes, "a start writes nothing: {}", stage.log());
    stage.sends_from(Some(eth0));
    stage.wait_for_turn(eth2, eth0);
    stage.rests(REST);
}
