//! Daemons and members in network namespaces of their own, on two networks: that of the store and that of the switches.
//!
//! ```text
//!   bridge store     ── member 0 ── member 1 ── member 2 ── daemon 0 ── daemon 1 ── daemon 2
//!   bridge switches  ── (model switches, addresses of the bridge)     ── daemon 0 ── daemon 1 ── daemon 2
//! ```
//! The test's thread has a network namespace with the bridges and a mount namespace. All of it is gone once the last process in it
//! has ended, however the test ends.

use std::{
    fs,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use nix::sched::{CloneFlags, unshare};

/// The network of the switches, whose addresses end with 1 to 4.
pub(crate) const SWITCHES: [u8; 3] = [10, 91, 2];
const STORE: [u8; 3] = [10, 91, 1];
/// What a full disk has room for; a member's log takes 64 MB at once, and once more when it is full.
const DISK_MB: u32 = 160;

/// A process of its own namespace, and its ports on the bridges.
pub(crate) struct Place {
    holder: Child,
    /// Ports of the bridges, first that of the store.
    ports: Vec<String>,
    pub(crate) address: String,
}

/// How a port of a bridge is cut off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cut {
    /// It is down, so that its other end has no carrier.
    Down,
    /// It drops everything.
    Drop,
}

/// A small disk.
pub(crate) struct Disk(pub(crate) PathBuf);

/// Moves this thread into namespaces with the two bridges; why it cannot.
pub(crate) fn enter() -> Result<(), String> {
    if !rustix::process::geteuid().is_root() {
        return Err("needs root".to_owned());
    }
    unshare(CloneFlags::CLONE_NEWNET | CloneFlags::CLONE_NEWNS).map_err(|error| format!("no namespaces: {error}"))?;
    run("mount --make-rprivate /")?;
    run("ip link set lo up")?;
    for bridge in ["store", "switches"] {
        run(&format!("ip link add {bridge} type bridge"))?;
        run(&format!("ip link set {bridge} up"))?;
    }
    run(&format!("ip addr add {}/24 dev store", address(STORE, 254)))?;
    for switch in 1..=4 {
        run(&format!("ip addr add {}/24 dev switches", address(SWITCHES, switch)))?;
    }
    Ok(())
}

fn address([a, b, c]: [u8; 3], host: u8) -> String {
    format!("{a}.{b}.{c}.{host}")
}

fn run(line: &str) -> Result<(), String> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let output = Command::new(words[0]).args(&words[1..]).output().map_err(|error| format!("{line}: {error}"))?;
    match output.status.success() {
        true => Ok(()),
        false => Err(format!("{line}: {}", String::from_utf8_lossy(&output.stderr).trim())),
    }
}

fn must(line: &str) {
    run(line).expect("this machine has namespaces");
}

impl Place {
    /// A namespace with a port on the bridge of the store, and on that of the switches as well.
    pub(crate) fn new(name: &str, host: u8, is_daemon: bool) -> Self {
        let holder = Command::new("setpriv")
            .args(["--pdeathsig", "KILL", "unshare", "--net", "sleep", "infinity"])
            .stdin(Stdio::null())
            .spawn()
            .expect("setpriv and unshare run");
        let pid = holder.id();
        let namespace = |pid: &str| fs::metadata(format!("/proc/{pid}/ns/net")).map(|file| file.ino()).ok();
        let own = namespace("thread-self");
        let since = Instant::now();
        while namespace(&pid.to_string()) == own {
            assert!(since.elapsed() < Duration::from_secs(30), "a namespace");
            thread::sleep(Duration::from_millis(5));
        }
        let networks: &[_] = if is_daemon { &[("store", STORE), ("switches", SWITCHES)] } else { &[("store", STORE)] };
        let inside = |line: &str| must(&format!("nsenter --target {pid} --net {line}"));
        inside("ip link set lo up");
        let port = |(bridge, network): &(&str, [u8; 3])| {
            let port = format!("{name}-{}", &bridge[..2]);
            must(&format!("ip link add {port} type veth peer name {bridge} netns {pid}"));
            must(&format!("ip link set {port} master {bridge} up"));
            inside(&format!("ip addr add {}/24 dev {bridge}", address(*network, host)));
            inside(&format!("ip link set {bridge} up"));
            port
        };
        let ports = networks.iter().map(port).collect();
        Self { holder, ports, address: address(STORE, host) }
    }

    /// What runs a program in it, before its own words.
    pub(crate) fn within(&self) -> Vec<String> {
        ["nsenter", "--target", &self.holder.id().to_string(), "--net"].map(str::to_owned).to_vec()
    }

    pub(crate) fn cut_from_store(&self, how: Cut) {
        cut(&self.ports[0], how);
    }

    pub(crate) fn cut_from_switches(&self, how: Cut) {
        cut(&self.ports[1], how);
    }

    pub(crate) fn mend(&self) {
        for port in &self.ports {
            must(&format!("ip link set {port} up"));
            // The bridge refuses it until the kernel has noticed the carrier.
            let since = Instant::now();
            while let Err(error) = run(&format!("bridge link set dev {port} state 3")) {
                assert!(since.elapsed() < Duration::from_secs(5), "{error}");
                thread::sleep(Duration::from_millis(5));
            }
        }
    }
}

fn cut(port: &str, how: Cut) {
    match how {
        Cut::Down => must(&format!("ip link set {port} down")),
        Cut::Drop => must(&format!("bridge link set dev {port} state 0")),
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = self.holder.kill();
        let _ = self.holder.wait();
    }
}

impl Disk {
    pub(crate) fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("espalier-partitions-{}-{name}", std::process::id()));
        fs::create_dir(&path).expect("a fresh folder");
        must(&format!("mount -t tmpfs -o size={DISK_MB}m,mode=700 espalier {}", path.display()));
        Self(path)
    }

    fn filling(&self) -> PathBuf {
        self.0.join("filling")
    }

    /// Leaves no room on it.
    pub(crate) fn fill(&self) {
        let mut file = fs::File::create(self.filling()).expect("a file");
        let full = std::io::copy(&mut std::io::repeat(0), &mut file).expect_err("it is small");
        assert_eq!(full.kind(), std::io::ErrorKind::StorageFull);
    }

    pub(crate) fn make_room(&self) {
        fs::remove_file(self.filling()).expect("it is there");
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        // Whoever runs in it may not have ended yet; the mount is gone with the namespace.
        let _ = run(&format!("umount --lazy {}", self.0.display()));
        let _ = fs::remove_dir(&self.0);
    }
}
