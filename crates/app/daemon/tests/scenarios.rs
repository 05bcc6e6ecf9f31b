//! Scenarios: what people and switches do, line by line, and what the daemon says to it.
//!
//! ```text
//!   > plan plan.json --resilience 1     a plan of the ring of four switches
//!   > start                                 the daemon, over switches that answer SNMP on loopback
//!   > propose plan.json --reason first      a command of espalierd; what it prints follows
//!   > wait 4 of 4 switches hold the plan    until the status has a line with these words
//!   > s0 cuts                               the cable at s0:p1 loses its carrier
//! ```
//! `heartbeats 4 's0:p1 -- s1:p2'` has all hosts report for 4 s that the cable loses all frames. `config: ` begins a line of the configuration. `needs: small-disk` gives the daemon's state a disk of its own (root), `needs: clock` a
//! wall clock of its own (a C compiler), `needs: etcd` a store in three members of etcd. `BLESS=1` writes what is printed into the files.

#[path = "../../records/tests/common/mod.rs"]
mod cluster;
#[path = "../../cli/tests/closet/switches.rs"]
mod switches;

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Child, Command, Output, Stdio},
    sync::atomic::Ordering,
    thread,
    time::{Duration, Instant},
};

use api_client::{
    Ask, Endpoint,
    documents::{FailingPath, Heartbeat, PathLoss},
};
use cluster::Cluster;
use fabric::{
    FlowControl, HostId, Plan, Policy, Resilience, VlanId, VlanPool, VlanSet,
    format::{
        native::parse_native,
        plan::{ReadMode, read_plan, write_plan},
    },
};
use nix::sched::{CloneFlags, unshare};
use switches::{Closet, Folder, ROOMY, learning_ring, ring};

/// How long something may take to show.
const WAIT_MAX: Duration = Duration::from_secs(60);

struct Stage {
    daemon: Option<Child>,
    /// Gone before the folder.
    _disk: Option<Disk>,
    folder: Folder,
    closet: Closet,
    cluster: Option<Cluster>,
    has_clock: bool,
    writes: usize,
}

/// A small disk, of which only this thread and what it starts know.
struct Disk(PathBuf);

impl Disk {
    /// None, aloud, where it cannot be.
    fn new(path: &Path) -> Option<Self> {
        if !rustix::process::geteuid().is_root() || unshare(CloneFlags::CLONE_NEWNS).is_err() {
            println!("skipped: needs root");
            return None;
        }
        fs::create_dir(path).expect("a fresh folder");
        let run = |words: &[&str]| Command::new("mount").args(words).arg(path).status().expect("mount runs").success();
        let is_private = Command::new("mount").args(["--make-rprivate", "/"]).status().expect("mount runs").success();
        assert!(is_private && run(&["-t", "tmpfs", "-o", "size=4m,mode=700", "espalier"]), "a small disk");
        Some(Self(path.to_owned()))
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        // It is gone with the thread in any case.
        let _ = Command::new("umount").arg("--lazy").arg(&self.0).status();
    }
}

impl Stage {
    /// None, aloud, if this machine has not what the scenario needs.
    fn new(word: &str, config: &str, needs: &[&str]) -> Option<Self> {
        let folder = Folder::new(&format!("daemon-{word}"));
        let has = |what: &str| needs.contains(&what);
        let disk = if has("small-disk") { Some(Disk::new(&folder.0.join("state"))?) } else { None };
        let has_clock = has("clock");
        if has_clock && !compile_clock(&folder.0) {
            return None;
        }
        let cluster = if has("etcd") { Some(Cluster::start(3)?) } else { None };
        let mut store = String::new();
        if let Some(cluster) = &cluster {
            drop(cluster.open(&cluster.config()));
            store = format!("[store]\netcd = {:?}\nname = \"d\"\n", cluster.endpoints());
        }
        let closet = Closet::open(ROOMY);
        folder.prepare(&ring());
        let path = folder.0.display();
        folder.write(
            "espalierd.toml",
            &format!(
                "state = \"{path}/state\"\ncredentials = \"{path}/credentials.toml\"\nlisten = [\"{path}/socket\"]\n\n\
                 {store}[snmp]\nport = {}\ntimeout = 0.3\nattempts = 3\n\n\
                 [watch]\ncounters = 1\ntables = 1\nstandby = 0.05\nhold = 0.5\n{config}",
                closet.port
            ),
        );
        Some(Self { daemon: None, _disk: disk, folder, closet, cluster, has_clock, writes: 0 })
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.0.join(name)
    }

    fn espalierd(&self, words: &[String]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_espalierd"));
        command.args(words).current_dir(&self.folder.0);
        match words[0].as_str() {
            "check-config" | "restore" => command.args(["--config", "espalierd.toml"]),
            _ => command.args(["--socket", "socket"]),
        };
        command.output().expect("the program runs")
    }

    fn start(&mut self) -> String {
        let log = fs::File::options().create(true).append(true).open(self.file("log")).expect("a file");
        let mut daemon = Command::new(env!("CARGO_BIN_EXE_espalierd"));
        daemon.args(["run", "--config", "espalierd.toml"]).current_dir(&self.folder.0);
        if self.has_clock {
            daemon.env("LD_PRELOAD", self.file("clock.so")).env("WALL_CLOCK_SHIFT", self.file("shift"));
        }
        let mut daemon = daemon.stdout(Stdio::null()).stderr(log).spawn().expect("the program runs");
        let since = Instant::now();
        while !self.espalierd(&["targets".to_owned()]).status.success() {
            if daemon.try_wait().expect("a process").is_some() {
                // What it says last is why.
                let log = fs::read_to_string(self.file("log")).expect("a file");
                return format!("{}\n", log.lines().last().unwrap_or_default());
            }
            assert!(since.elapsed() < WAIT_MAX, "the daemon does not answer: {}", self.log());
            thread::sleep(Duration::from_millis(20));
        }
        self.daemon = Some(daemon);
        String::new()
    }

    fn log(&self) -> String {
        fs::read_to_string(self.file("log")).unwrap_or_default()
    }

    fn end(&mut self, signal: rustix::process::Signal) {
        let mut daemon = self.daemon.take().expect("it was started");
        let pid = rustix::process::Pid::from_child(&daemon);
        rustix::process::kill_process(pid, signal).expect("it runs");
        daemon.wait().expect("it ends");
    }

    /// Carries a line out, and returns what it prints.
    fn play(&mut self, line: &str) -> String {
        let words = words_of(line);
        let rest = || line.split_once(' ').map_or("", |(_, rest)| rest);
        match words[0].as_str() {
            "plan" => {
                plan(&self.file(&words[1]), &words[2..]);
                String::new()
            }
            "start" => self.start(),
            "stop" => {
                self.end(rustix::process::Signal::TERM);
                String::new()
            }
            "kill" => {
                self.end(rustix::process::Signal::KILL);
                String::new()
            }
            "hang-up" => {
                let daemon = self.daemon.as_ref().expect("it was started");
                let pid = rustix::process::Pid::from_child(daemon);
                rustix::process::kill_process(pid, rustix::process::Signal::HUP).expect("it runs");
                String::new()
            }
            "wait" => {
                self.wait(&["status".to_owned()], rest());
                String::new()
            }
            // Until a target is deployed and all switches have been polled since.
            "wait-deployed" => {
                self.wait(&["targets".to_owned()], &format!("target {}: ", words[1]));
                self.wait_for(&["status".to_owned()], &|text| {
                    let mut lines = text.lines();
                    let is_deployed = lines.next().is_some_and(|line| {
                        line.starts_with(&format!("target {}: ", words[1])) && line.ends_with("; deployed")
                    });
                    is_deployed && lines.next().is_some_and(|line| line.contains(" switches hold the plan, at "))
                });
                String::new()
            }
            "wait-proposals" => {
                self.wait(&["proposals".to_owned(), "--all".to_owned()], rest());
                String::new()
            }
            "wait-events" => {
                self.wait(&["events".to_owned()], rest());
                String::new()
            }
            "wait-log" => {
                let since = Instant::now();
                while !self.log().contains(rest()) {
                    assert!(since.elapsed() < WAIT_MAX, "{line}: {}", self.log());
                    thread::sleep(Duration::from_millis(20));
                }
                String::new()
            }
            "wait-unanswered" => {
                let number: usize = words[1][1..].parse().expect("a switch");
                let since = Instant::now();
                while self.closet.unanswered[number].load(Ordering::SeqCst) == 0 {
                    assert!(since.elapsed() < WAIT_MAX, "nobody asks {}: {}", words[1], self.log());
                    thread::sleep(Duration::from_millis(5));
                }
                String::new()
            }
            // The daemon ends by itself.
            "wait-end" => {
                let mut daemon = self.daemon.take().expect("it was started");
                let since = Instant::now();
                loop {
                    if let Some(ended) = daemon.try_wait().expect("a process") {
                        let last = self.log().lines().last().unwrap_or_default().to_owned();
                        return format!("{}\n? {}\n", without_head(&last), ended.code().expect("it ends by itself"));
                    }
                    assert!(since.elapsed() < WAIT_MAX, "the daemon goes on: {}", self.log());
                    thread::sleep(Duration::from_millis(20));
                }
            }
            "fill-disk" => {
                let mut file = fs::File::create(self.file("state/filling")).expect("a file");
                let full = std::io::copy(&mut std::io::repeat(0), &mut file).expect_err("it is small");
                assert_eq!(full.kind(), std::io::ErrorKind::StorageFull);
                String::new()
            }
            "make-room" => {
                fs::remove_file(self.file("state/filling")).expect("it is there");
                String::new()
            }
            // Sets the daemon's wall clock on, or back.
            "clock" => {
                let hours: i64 = words[1].parse().expect("hours");
                fs::write(self.file("shift"), (3600 * hours).to_string()).expect("it can be written");
                String::new()
            }
            "etcd" => {
                let cluster = self.cluster.as_mut().expect("needs: etcd");
                let member = words[2].parse().expect("a number");
                match words[1].as_str() {
                    "kill" => cluster.kill(member),
                    "run" => cluster.run(member),
                    word => panic!("nobody knows {word:?}"),
                }
                String::new()
            }
            "second" => {
                let mut second = Command::new(env!("CARGO_BIN_EXE_espalierd"));
                let output = second.args(["run", "--config", "espalierd.toml"]).current_dir(&self.folder.0).output();
                let output = output.expect("the program runs");
                let told = String::from_utf8(output.stderr).expect("text");
                // One that stands alone has no process beside it.
                let pid = self.daemon.as_ref().map_or_else(|| "PID".to_owned(), |daemon| daemon.id().to_string());
                told.replace(&pid, "PID") + &format!("? {}\n", output.status.code().expect("it ends by itself"))
            }
            "rest" => {
                thread::sleep(Duration::from_secs_f64(words[1].parse().expect("seconds")));
                String::new()
            }
            // Every host sends heartbeats for some seconds, while a cable loses all frames, the hosts of a switch are gone, or nothing is lost.
            "heartbeats" => {
                let text = fs::read(self.file("plan.json")).expect("a plan");
                let plan = read_plan(&text, ReadMode::Strict).expect("a plan");
                let seconds: u64 = words[1].parse().expect("seconds");
                for turn in 0..=2 * seconds {
                    plan.topology.host_ids().for_each(|host| self.beat(&plan, host, &words[2]));
                    if turn < 2 * seconds {
                        thread::sleep(Duration::from_millis(500));
                    }
                }
                String::new()
            }
            "writes" => {
                let writes = self.closet.writes.load(Ordering::SeqCst);
                let since = writes - self.writes;
                self.writes = writes;
                match since {
                    0 => "nothing was written to a switch\n".to_owned(),
                    _ => "switches were written to\n".to_owned(),
                }
            }
            "write" => {
                self.folder.write(&words[1], &words[2..].join(" ").replace("\\n", "\n"));
                String::new()
            }
            "append" => {
                let before = fs::read_to_string(self.file(&words[1])).expect("a file");
                self.folder.write(&words[1], &(before + &words[2..].join(" ").replace("\\n", "\n")));
                String::new()
            }
            "newer-store" => {
                let store = rusqlite::Connection::open(self.file("state/espalierd.sqlite")).expect("a store");
                store.pragma_update(None, "user_version", 99).expect("it is written");
                String::new()
            }
            "lose-store" => {
                for name in ["espalierd.sqlite", "espalierd.sqlite-wal", "espalierd.sqlite-shm"] {
                    // A log may be folded in already.
                    let _ = fs::remove_file(self.file("state").join(name));
                }
                String::new()
            }
            word if word.len() == 2 && word.starts_with('s') => {
                self.closet.do_it(line);
                String::new()
            }
            _ => {
                let output = self.espalierd(&words);
                let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("text");
                let mut told = text(&output.stdout) + &text(&output.stderr);
                match output.status.code() {
                    Some(0) => {}
                    code => told.push_str(&format!("? {}\n", code.expect("it ends by itself"))),
                }
                told
            }
        }
    }

    /// A host's heartbeat while something, named as links and switches are, loses all frames.
    fn beat(&self, plan: &Plan, host: HostId, lost: &str) {
        let topology = &plan.topology;
        let (home, gone) = (topology.switch_of(host), topology.find_switch(lost));
        if gone == Some(home) {
            return;
        }
        let mut failing = Vec::new();
        for tree in &plan.trees {
            let rooted = tree.tree.rooted_at(topology, home);
            for toward in topology.host_ids().filter(|toward| *toward != host) {
                let site = topology.switch_of(toward);
                let mut path =
                    rooted.path_to(topology, site).into_iter().map(|channel| topology.link_label(channel.link()));
                if gone == Some(site) || path.any(|link| link == lost) {
                    let toward = topology.host(toward).mac.to_string();
                    failing.push(FailingPath { vlan: tree.vlan.get(), toward, loss: PathLoss::Silent });
                }
            }
        }
        let vlans: VlanSet = plan.trees.iter().map(|tree| tree.vlan).collect();
        let mac = topology.host(host).mac.to_string();
        let heartbeat = Heartbeat { host: mac, every_s: 1, vlans: vlans.to_string(), failing, ..Heartbeat::default() };
        let body = serde_json::to_vec(&heartbeat).expect("JSON");
        let endpoint = Endpoint::Socket(self.file("socket"));
        endpoint.send(Ask::post("/v1/heartbeats", body), WAIT_MAX).expect("the daemon takes it");
    }

    fn wait(&self, command: &[String], words: &str) {
        self.wait_for(command, &|text| text.contains(words));
    }

    fn wait_for(&self, command: &[String], is_said: &dyn Fn(&str) -> bool) {
        let since = Instant::now();
        loop {
            let output = self.espalierd(command);
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            if is_said(&text) {
                return;
            }
            if since.elapsed() > WAIT_MAX {
                let errors = String::from_utf8_lossy(&output.stderr).into_owned();
                panic!("nobody says what is waited for: {text}{errors}\n{}", self.log());
            }
            thread::sleep(Duration::from_millis(50));
        }
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        if let Some(mut daemon) = self.daemon.take() {
            // It may have ended.
            let _ = daemon.kill();
            let _ = daemon.wait();
        }
    }
}

/// Words of a line; those in single quotes are one.
fn words_of(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    for (at, part) in line.split('\'').enumerate() {
        match at % 2 {
            0 => words.extend(part.split_whitespace().map(str::to_owned)),
            _ => words.push(part.to_owned()),
        }
    }
    words
}

/// Writes a plan of the ring.
fn plan(path: &Path, options: &[String]) {
    let is_learning = options.contains(&"--learned".to_owned());
    let mut text = if is_learning { learning_ring() } else { ring() };
    for group in options.chunks(2).filter(|pair| pair[0] == "--group") {
        text.push_str(&format!("groups:\n  {}\n", group[1]));
    }
    let topology = parse_native("ring.yaml", &text).expect("a topology");
    let mut policy = Policy { flow_control: FlowControl::None, ..Policy::default() };
    for pair in options.chunks(2) {
        match (pair[0].as_str(), pair[1].as_str()) {
            // Of the hosts h1 and h3.
            ("--learned", "addresses") | ("--group", _) => {}
            ("--resilience", "1") => policy.resilience = Resilience::OneLink,
            ("--resilience", "switch") => policy.resilience = Resilience::OneSwitch,
            ("--resilience", "group") => policy.resilience = Resilience::OneGroup,
            ("--vlans", from) => {
                let first = VlanId::new(from.parse().expect("a number")).expect("a VLAN");
                policy.vlans = VlanPool { first, ..policy.vlans.clone() };
            }
            other => panic!("nobody knows {other:?}"),
        }
    }
    let plan: Plan = planner::plan(&topology, &policy, None).expect("a plan");
    let mut text = Vec::new();
    write_plan(&plan, &mut text).expect("a plan");
    fs::write(path, text).expect("it can be written");
}

/// Compiles what shifts the daemon's wall clock; false, aloud, without a compiler.
fn compile_clock(folder: &Path) -> bool {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/common/clock.c");
    let mut compiler = Command::new("cc");
    compiler.args(["-shared", "-fPIC", "-o", "clock.so"]).arg(source).arg("-ldl").current_dir(folder);
    match compiler.status() {
        Ok(status) => assert!(status.success(), "clock.c does not compile"),
        Err(_) => println!("skipped: needs a C compiler (tools/setup build)"),
    }
    folder.join("clock.so").exists()
}

/// A line of the log without its moment.
fn without_head(line: &str) -> &str {
    line.split_once(' ').map_or(line, |(_, rest)| rest.trim_start())
}

/// Text without what differs from run to run: moments, digests, folders, generations, durations.
fn masked(text: &str, folder: &Path) -> String {
    let text = text.replace(&folder.display().to_string(), "FOLDER");
    let mut lines = String::new();
    for line in text.lines() {
        let mut words: Vec<String> = line.split(' ').map(str::to_owned).collect();
        for at in 0..words.len() {
            let bare = words[at].trim_matches(|c: char| !c.is_ascii_alphanumeric()).to_owned();
            let is_hex = |c: char| c.is_ascii_digit() || ('a'..='f').contains(&c);
            let is_digest = bare.len() == 12 && bare.chars().all(is_hex) && bare.chars().any(|c| c.is_ascii_digit());
            if is_digest {
                words[at] = words[at].replace(&bare, "DIGEST");
            }
            // How long something has lasted: "for 3 s".
            let is_span =
                at > 0 && words[at - 1] == "for" && bare.chars().all(|c| c.is_ascii_digit()) && !bare.is_empty();
            if is_span && words.get(at + 1).is_some_and(|unit| unit.starts_with('s')) {
                words[at] = "N".to_owned();
            }
            let is_date = bare.len() == 10 && bare.split('-').count() == 3 && bare.starts_with("20");
            if is_date && words.get(at + 2).is_some_and(|zone| zone.starts_with("UTC")) {
                let tail = words[at + 2]["UTC".len()..].to_owned();
                words[at] = words[at].replace(&bare, "MOMENT") + &tail;
                words[at + 1].clear();
                words[at + 2].clear();
            }
        }
        words.retain(|word| !word.is_empty());
        let indent = line.len() - line.trim_start().len();
        lines.push_str(&" ".repeat(indent));
        lines.push_str(&words.join(" "));
        lines.push('\n');
    }
    lines
}

fn scenario(word: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scenarios").join(format!("{word}.txt"));
    let text = fs::read_to_string(&path).expect("a scenario");
    let config: String =
        text.lines().filter_map(|line| line.strip_prefix("config: ")).map(|line| format!("{line}\n")).collect();
    let needs: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("needs: ")).collect();
    let Some(mut stage) = Stage::new(word, &config, &needs) else { return };
    let members = stage.cluster.as_ref().map_or_else(Vec::new, Cluster::endpoints);
    let mut played = String::new();
    for line in text.lines() {
        if let Some(command) = line.strip_prefix("> ") {
            played.push_str(&format!("{line}\n"));
            let told = (0..).zip(&members).fold(stage.play(command), |told, (number, endpoint)| {
                told.replace(endpoint, &format!("http://member-{number}"))
            });
            played.push_str(&masked(&told, &stage.folder.0));
        } else if line.starts_with('#')
            || line.starts_with("config: ")
            || line.starts_with("needs: ")
            || line.is_empty()
        {
            played.push_str(&format!("{line}\n"));
        }
    }
    if std::env::var_os("BLESS").is_some() {
        fs::write(&path, played).expect("it can be written");
    } else {
        assert_eq!(played, text, "{}: BLESS=1 takes what is printed\n{}", path.display(), stage.log());
    }
}

macro_rules! scenarios {
    ($($name:ident),* $(,)?) => {
        $(
            #[test]
            fn $name() {
                scenario(&stringify!($name).replace('_', "-"));
            }
        )*

        #[test]
        fn every_scenario_is_played() {
            let known: Vec<String> = [$(stringify!($name)),*].iter().map(|name| name.replace('_', "-")).collect();
            let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scenarios");
            for entry in fs::read_dir(folder).expect("a folder") {
                let path = entry.expect("an entry").path();
                let stem = path.file_stem().expect("a name").to_string_lossy().into_owned();
                assert!(known.contains(&stem), "{} is played by no test", path.display());
            }
        }
    };
}

scenarios!(
    approval_race,
    author_forbidden,
    backup,
    bad_configuration,
    clock_jump,
    dead_group,
    dead_switch,
    dead_switch_answered,
    dead_switch_returns,
    dead_switch_stored,
    disk_full,
    drift_reported,
    drift_twice,
    drift_while_a_cable_is_down,
    etcd_minority,
    failed_deployment,
    failing_receiver,
    failures_remembered,
    first_plan,
    flapping_cable,
    heartbeats,
    kept_out,
    killed_deployment,
    learned_addresses,
    learned_kept,
    lost_store,
    maintenance,
    moved_vm,
    newer_store,
    old_plans,
    report_only,
    rollback,
    second_daemon,
    silent_switch,
    stale_proposal,
    stored_answer,
    switch_replaced,
    two_must_approve,
    unchanged_restart,
    unprotected_cable,
    what_is_not_there,
    whole_fabric_rests,
    withdrawn,
    wrong_plug,
);
