//! Skewed traffic over model switches: measured by their counters, planned for, approved, deployed; and no proposal where nothing is
//! to be gained.

use std::{
    fs,
    io::Write as _,
    os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _},
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use api_client::{Ask, Endpoint};
use espalierd::core::traffic::GAIN_MIN;
use fabric::{
    Demand, HostId, Plan, Policy, Traffic, TrafficMatrix,
    format::plan::{ReadMode, read_plan, write_plan},
    generate::{Kind, Options, generate},
};
use rack::{COMMUNITY, Rack, on_loopback};
use serde_json::Value;

const RATE_BPS: f64 = 1e9;
/// How long something may take to show.
const WAIT_MAX: Duration = Duration::from_secs(60);

fn torus() -> Plan {
    let kind = Kind::parse("torus", &["4x4".to_owned()]).expect("a size");
    let options = Options { rate_bps: RATE_BPS as u64, ..Options::default() };
    let topology = on_loopback(&generate(&kind, &options).expect("a torus"));
    planner::plan(&topology, &Policy::default(), None).expect("a plan")
}

/// Some hosts exchange `rate_bps` each among themselves, the others nothing; what that puts on channels and at hosts.
fn skewed(plan: &Plan, heavy: &[HostId], rate_bps: f64) -> (Vec<f64>, Vec<[f64; 2]>) {
    let hosts = plan.topology.hosts().len();
    let amount = rate_bps / (heavy.len() - 1) as f64;
    let pairs = heavy.iter().flat_map(|source| heavy.iter().map(move |destination| (*source, *destination)));
    let demands = pairs.filter(|(source, destination)| source != destination);
    let demands = demands.map(|(source, destination)| Demand { source, destination, amount });
    let matrix = TrafficMatrix::new(hosts, demands.collect::<Vec<_>>()).expect("a matrix");
    let loaded = Plan { policy: Policy { traffic: Traffic::Matrix(matrix), ..plan.policy.clone() }, ..plan.clone() };
    let at_hosts = plan.topology.host_ids().map(|host| if heavy.contains(&host) { [rate_bps; 2] } else { [0.0; 2] });
    (planner::channel_times(&loaded), at_hosts.collect())
}

/// The daemon over model switches, gone with its folder.
struct Stage {
    folder: std::path::PathBuf,
    daemon: Child,
    rack: Rack,
}

impl Stage {
    /// The daemon, whose switches hold the plan.
    fn new(word: &str, plan: &Plan) -> Self {
        let folder = std::env::temp_dir().join(format!("espalierd-replanning-{word}-{}", std::process::id()));
        fs::DirBuilder::new().mode(0o700).create(&folder).expect("a fresh folder");
        let rack = Rack::open(&plan.topology).expect("loopback addresses");
        let mut text = Vec::new();
        write_plan(plan, &mut text).expect("text");
        let path = folder.display();
        let config = format!(
            "state = \"{path}/state\"\ncredentials = \"{path}/credentials.toml\"\nlisten = [\"{path}/socket\"]\n\
             [snmp]\nport = {}\n[watch]\ncounters = 1\ntraffic = 5\n[ladder]\ntraffic = \"propose\"\n",
            rack.port()
        );
        let write = |name: &str, text: &[u8]| {
            let mut file = fs::File::options().write(true).create_new(true).mode(0o600).open(folder.join(name))?;
            file.write_all(text)
        };
        write("plan.json", &text).expect("a file");
        write("credentials.toml", format!("[default]\ncommunity = \"{COMMUNITY}\"\n").as_bytes()).expect("a file");
        write("espalierd.toml", config.as_bytes()).expect("a file");
        let mut program = Command::new(env!("CARGO_BIN_EXE_espalierd"));
        let log = fs::File::create(folder.join("log")).expect("a file");
        program.args(["run", "--config", "espalierd.toml"]).current_dir(&folder).stdout(Stdio::null()).stderr(log);
        let daemon = program.spawn().expect("the program runs");
        let stage = Self { folder, daemon, rack };
        stage.await_answer(&["targets"], |_| stage.folder.join("socket").exists().then_some(()));
        stage.await_answer(&["propose", "plan.json"], |answer| answer.contains("proposal 1").then_some(()));
        stage.ask(&["approve", "1"]);
        stage.await_deployed(1);
        stage
    }

    /// What it answers; empty if it does not.
    fn ask(&self, words: &[&str]) -> String {
        let mut program = Command::new(env!("CARGO_BIN_EXE_espalierd"));
        let output = program.args(words).args(["--socket", "socket"]).current_dir(&self.folder).output();
        String::from_utf8(output.expect("the program runs").stdout).expect("text")
    }

    fn await_answer<T>(&self, words: &[&str], is_it: impl Fn(&str) -> Option<T>) -> T {
        let since = Instant::now();
        loop {
            let answer = self.ask(words);
            if let Some(found) = is_it(&answer) {
                return found;
            }
            let log = || fs::read_to_string(self.folder.join("log")).unwrap_or_default();
            assert!(since.elapsed() < WAIT_MAX, "{words:?}: {answer}\n{}", log());
            thread::sleep(Duration::from_millis(100));
        }
    }

    fn await_deployed(&self, target: u64) {
        let is_it = |answer: &str| {
            let mut lines = answer.lines();
            let is_deployed = lines.next()?.starts_with(&format!("target {target}: ")) && answer.contains("; deployed");
            (is_deployed && answer.contains("16 of 16 switches hold the plan")).then_some(())
        };
        self.await_answer(&["status"], is_it);
    }

    /// The load of the most loaded link between switches, as polled last.
    fn max_load(&self) -> f64 {
        let status: Value = serde_json::from_str(&self.ask(&["status", "--json"])).expect("JSON");
        let links = status["links"].as_array().expect("links").iter().take(32);
        links.flat_map(|link| [link["load"][0].as_f64(), link["load"][1].as_f64()]).flatten().fold(0.0, f64::max)
    }
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
fn a_plan_for_skewed_traffic_is_proposed_deployed_under_traffic_and_lowers_the_load() {
    let plan = torus();
    let stage = Stage::new("skewed", &plan);
    // Little traffic, however skewed, is nothing to act on.
    let heavy: Vec<HostId> = [3, 7, 14, 15].map(HostId::new).to_vec();
    let (channels, hosts) = skewed(&plan, &heavy, 0.1 * RATE_BPS);
    stage.rack.carry(&channels, &hosts);
    thread::sleep(Duration::from_secs(12));
    assert_eq!(stage.ask(&["proposals", "--all"]).lines().count(), 1);

    let (channels, hosts) = skewed(&plan, &heavy, 0.9 * RATE_BPS);
    stage.rack.carry(&channels, &hosts);
    let said = stage.await_answer(&["proposals"], |answer| {
        answer.lines().find(|line| line.contains("for the traffic of the last 1 min")).map(str::to_owned)
    });
    assert!(said.starts_with("proposal 2 by espalierd: ") && said.contains(" hitless, "), "{said}");
    let before = stage.max_load();
    assert!((0.8..1.0).contains(&before), "{before}");

    // The load is remembered.
    let past: Value = serde_json::from_str(&stage.ask(&["history", "--hours", "1", "--json"])).expect("JSON");
    let most = &past[0];
    let max = [&most["max"][0], &most["max"][1]].into_iter().filter_map(Value::as_f64).fold(0.0, f64::max);
    assert!((0.8..1.0).contains(&max), "{most}");
    let link = most["link"].as_str().expect("a name");
    let course = stage.ask(&["history", link, "--hours", "1"]);
    assert!(course.lines().count() > 3 && course.contains(" UTC"), "{course}");

    stage.ask(&["approve", "2"]);
    stage.await_deployed(2);
    let targets: Value = serde_json::from_str(&stage.ask(&["targets", "--json"])).expect("JSON");
    let digest = targets[1]["plan"].as_str().expect("a digest").to_owned();
    let mut text = Vec::new();
    let path = format!("/v1/plans/{digest}");
    let endpoint = Endpoint::Socket(stage.folder.join("socket"));
    endpoint.ask(Ask::get(&path), &mut |part| text.extend_from_slice(part)).expect("a plan");
    let next = read_plan(&text, ReadMode::Strict).expect("a plan");
    // The same hosts over the new routes.
    let (channels, hosts) = skewed(&next, &heavy, 0.9 * RATE_BPS);
    stage.rack.carry(&channels, &hosts);
    thread::sleep(Duration::from_secs(12));
    let after = stage.max_load();
    assert!(after < (1.0 - GAIN_MIN) * before && after < 0.5, "{before} {after}");
    // What has been won is not proposed again.
    let proposals = stage.ask(&["proposals", "--all"]);
    assert_eq!(proposals.lines().count(), 2, "{proposals}");
}

#[test]
fn while_a_plan_does_without_parts_nothing_is_proposed_for_traffic() {
    let plan = torus();
    let stage = Stage::new("drained", &plan);
    let link = plan.topology.link_label(fabric::LinkId::new(0));
    stage.ask(&["maintain", &link, "--reason", "bad cable", "--drain"]);
    stage.await_answer(&["proposals"], |answer| answer.contains(&format!("without {link}")).then_some(()));
    stage.ask(&["approve", "2"]);
    stage.await_deployed(2);
    let heavy: Vec<HostId> = [3, 7, 14, 15].map(HostId::new).to_vec();
    let (channels, hosts) = skewed(&plan, &heavy, 0.9 * RATE_BPS);
    stage.rack.carry(&channels, &hosts);
    thread::sleep(Duration::from_secs(12));
    assert!(stage.max_load() > 0.5);
    assert_eq!(stage.ask(&["proposals", "--all"]).lines().count(), 2);
    // The plan with the link is known all the same.
    stage.ask(&["maintain", "--end", "1"]);
    stage.await_answer(&["proposals"], |answer| answer.contains(&format!("{link} is back")).then_some(()));
}
