//! What the tests share: folders of their own, and members of etcd of their own.

#![allow(dead_code, reason = "each test program uses its part")]

use std::{
    fs,
    net::TcpListener,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::atomic::{AtomicUsize, Ordering},
    thread,
    time::{Duration, Instant},
};

use records::{EtcdConfig, EtcdRecords};
use rustix::process::{Pid, Signal, kill_process};

/// How long etcd may take to start or to elect a leader before a test fails.
const READY_MAX: Duration = Duration::from_secs(60);

/// A folder of the test's own, gone with it.
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new() -> Self {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let number = COUNT.fetch_add(1, Ordering::SeqCst);
        let path = std::env::temp_dir().join(format!("espalier-records-{}-{number}", std::process::id()));
        fs::create_dir(&path).expect("a fresh folder");
        Self(path)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    pub(crate) fn file(&self) -> PathBuf {
        self.0.join("records.sqlite")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // What stays behind is in the folder for temporary files.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A number from the environment.
pub(crate) fn number(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).ok().map_or(otherwise, |text| text.parse().unwrap_or_else(|_| panic!("{name} is no number")))
}

/// Where a member runs.
pub(crate) struct Place {
    /// Its address, for clients and for other members.
    pub(crate) address: String,
    /// What runs it elsewhere, before its own words: `nsenter --target PID --net`.
    pub(crate) within: Vec<String>,
    /// Its data, if they are not in the cluster's folder.
    pub(crate) data: Option<PathBuf>,
}

/// Members of etcd, ended with the test.
pub(crate) struct Cluster {
    pub(crate) members: Vec<Member>,
    folder: Folder,
    extra: Vec<String>,
    scheme: &'static str,
}

pub(crate) struct Member {
    number: usize,
    place: Place,
    client: u16,
    peer: u16,
    child: Option<Child>,
}

impl Cluster {
    /// A cluster of so many members that elects leaders as etcd does by default; none, aloud, if etcd is not installed.
    pub(crate) fn start(count: usize) -> Option<Self> {
        Self::start_with("http", Folder::new(), &[], count)
    }

    /// One member.
    pub(crate) fn single() -> Option<Self> {
        Self::start_with("http", Folder::new(), &["--heartbeat-interval=10", "--election-timeout=100"], 1)
    }

    pub(crate) fn start_with(scheme: &'static str, folder: Folder, extra: &[&str], count: usize) -> Option<Self> {
        if !is_installed() {
            return None;
        }
        // Ports are free for all at once, and then until the members take them.
        let listeners: Vec<TcpListener> =
            (0..2 * count).map(|_| TcpListener::bind("127.0.0.1:0").expect("a port")).collect();
        let ports: Vec<u16> =
            listeners.iter().map(|listener| listener.local_addr().expect("an address").port()).collect();
        drop(listeners);
        let member = |number: usize| {
            let place = Place { address: "127.0.0.1".to_owned(), within: Vec::new(), data: None };
            Member { number, place, client: ports[2 * number], peer: ports[2 * number + 1], child: None }
        };
        Some(Self::run_all(scheme, folder, extra, (0..count).map(member).collect()))
    }

    /// A cluster whose members run at these places; none, aloud, if etcd is not installed.
    pub(crate) fn start_at(places: Vec<Place>) -> Option<Self> {
        let member = |(number, place)| Member { number, place, client: 2379, peer: 2380, child: None };
        let members = places.into_iter().enumerate().map(member).collect();
        is_installed().then(|| Self::run_all("http", Folder::new(), &[], members))
    }

    fn run_all(scheme: &'static str, folder: Folder, extra: &[&str], members: Vec<Member>) -> Self {
        let extra = extra.iter().map(|&option| option.to_owned()).collect();
        let mut cluster = Self { members, folder, extra, scheme };
        for number in 0..cluster.members.len() {
            cluster.run(number);
        }
        cluster
    }

    pub(crate) fn endpoints(&self) -> Vec<String> {
        let url = |member: &Member| format!("{}://{}:{}", self.scheme, member.place.address, member.client);
        self.members.iter().map(url).collect()
    }

    /// A configuration whose prefix no other one has.
    pub(crate) fn config(&self) -> EtcdConfig {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let prefix = format!("/test-{}/", COUNT.fetch_add(1, Ordering::SeqCst));
        EtcdConfig { endpoints: self.endpoints(), prefix, ..EtcdConfig::default() }
    }

    /// Opens the records, as soon as there is a leader.
    pub(crate) fn open(&self, config: &EtcdConfig) -> EtcdRecords {
        let start = Instant::now();
        loop {
            match EtcdRecords::open(config) {
                Ok(records) => return records,
                Err(error) if start.elapsed() > READY_MAX => {
                    let log = fs::read_to_string(self.folder.0.join("0.log")).unwrap_or_default();
                    panic!("etcd does not start: {error}\n{log}");
                }
                Err(_) => thread::sleep(Duration::from_millis(100)),
            }
        }
    }

    /// Starts a member, with what it has in its folder.
    pub(crate) fn run(&mut self, number: usize) {
        let name = |number: usize| format!("m{number}");
        let peer = |member: &Member| format!("http://{}:{}", member.place.address, member.peer);
        let peers = self.members.iter().map(|member| format!("{}={}", name(member.number), peer(member)));
        let peers = peers.collect::<Vec<_>>().join(",");
        let client = &self.endpoints()[number];
        let member = &self.members[number];
        let peer = peer(member);
        let data = member.place.data.clone().unwrap_or_else(|| self.folder.0.join(name(number)));
        let log = fs::File::options().create(true).append(true).open(self.folder.0.join(format!("{number}.log")));
        let log = log.expect("a log");
        // Should this thread be killed, its members are killed as well.
        let child = Command::new("setpriv")
            .args(["--pdeathsig", "KILL"])
            .args(&member.place.within)
            .args(["etcd", "--name", &name(number), "--data-dir"])
            .arg(data)
            .args(["--listen-client-urls", client, "--advertise-client-urls", client])
            .args(["--listen-peer-urls", &peer, "--initial-advertise-peer-urls", &peer])
            .args(["--initial-cluster", &peers, "--initial-cluster-token", "espalier"])
            .args(&self.extra)
            .stdout(log.try_clone().expect("a log"))
            .stderr(log)
            .spawn()
            .expect("etcd runs");
        self.members[number].child = Some(child);
    }

    /// Whether a member has ended by itself.
    pub(crate) fn has_ended(&mut self, number: usize) -> bool {
        let child = self.members[number].child.as_mut();
        child.is_none_or(|child| child.try_wait().expect("a process").is_some())
    }

    pub(crate) fn signal(&self, number: usize, signal: Signal) {
        let child = self.members[number].child.as_ref().expect("it runs");
        let pid = Pid::from_raw(i32::try_from(child.id()).expect("a number")).expect("a process");
        kill_process(pid, signal).expect("it runs");
    }

    /// As `kill -9`.
    pub(crate) fn kill(&mut self, number: usize) {
        if let Some(mut child) = self.members[number].child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    /// The member that leads, by what any member says.
    pub(crate) fn leader(&self) -> Option<usize> {
        let agent: ureq::Agent =
            ureq::Agent::config_builder().timeout_global(Some(Duration::from_millis(500))).proxy(None).build().into();
        let status = |endpoint: &String| -> Option<(String, String)> {
            let mut answer = agent.post(format!("{endpoint}/v3/maintenance/status")).send("{}").ok()?;
            let answer: serde_json::Value = serde_json::from_str(&answer.body_mut().read_to_string().ok()?).ok()?;
            let text = |value: &serde_json::Value| value.as_str().map(str::to_owned);
            Some((text(&answer["header"]["member_id"])?, text(&answer["leader"])?))
        };
        let found: Vec<_> = self.endpoints().iter().map(status).collect();
        found.iter().position(|status| status.as_ref().is_some_and(|(member, leader)| member == leader))
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder.0
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        for number in 0..self.members.len() {
            self.kill(number);
        }
    }
}

fn is_installed() -> bool {
    let is_there = Command::new("etcd").arg("--version").stdout(Stdio::null()).status().is_ok();
    if !is_there {
        println!("skipped: needs etcd (tools/setup test)");
    }
    is_there
}
