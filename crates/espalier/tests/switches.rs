//! Golden sessions with switches: agents answer SNMP on loopback addresses, and every line that the program prints is that of
//! `tests/switches/*.session`. `TRYCMD=overwrite cargo test -p espalier --test switches` rewrites them.
//!
//! ```text
//! $ espalier deploy plan.json       a command; below it what it prints, standard output first, then standard error
//! ? 1                               its exit code, where that is not 0
//! ! s1 dot1qPvid.3 = 1              somebody else writes to a switch
//! ! s1 silent                       it does not answer from here on
//! % words                           a remark
//! ```

use std::{
    collections::BTreeMap,
    fs,
    net::UdpSocket,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use device::{
    agent::{
        Access, Change, Config, DataPlane, Engine, Facts, HybridPorts, Learning, Limits, NeighbourInfo, PortFacts,
        Refused, Rights, Sensors, Server, Switch, User,
    },
    mib::{BridgePort, IfStatus, LldpChassisSubtype, LldpPortSubtype, Value, index::Neighbour, objects::q_bridge},
    snmp::{Credentials, Patience, Session, UdpLink},
    wire::{AuthProtocol, Keys},
};
use fabric::Mac;

const PORTS: u32 = 4;

#[test]
fn deploy_status_and_watch() {
    play("deploy", Limits { vlans_max: 64, statics_max: 512, ..LIMITS });
}

#[test]
fn enrol() {
    play("enrol", LIMITS);
}

/// Three switches have been read and the fourth is awaited when somebody presses Ctrl-C: what was observed before is still
/// there, all of it and nothing else.
#[test]
fn an_interrupted_observation_changes_nothing() {
    let folder = Folder::new("interrupted");
    let closet = Closet::open(LIMITS);
    folder.write("credentials.toml", "[default]\ncommunity = \"private\"\nsave = \"by-hand\"\n");
    folder.write("ring.yaml", &ring());
    let told = run(&folder, &closet, "espalier plan ring.yaml --flow-control none -o plan.json");
    assert!(told.contains("fit to deploy"), "{told}");
    let told = run(&folder, &closet, "espalier observe plan.json -o seen");
    assert_eq!(told, "4 of 4 switches observed into seen\n");
    let seen = || -> BTreeMap<PathBuf, String> {
        let paths = fs::read_dir(folder.0.join("seen")).expect("a folder").map(|entry| entry.expect("an entry").path());
        paths.map(|path| (path.clone(), fs::read_to_string(&path).unwrap_or_default())).collect()
    };
    let before = seen();
    assert_eq!(before.len(), 4);
    closet.do_it("s1 dot1qPvid.3 = 1");
    closet.do_it("s3 silent");
    let port = closet.port.to_string();
    let mut observing = Command::new(env!("CARGO_BIN_EXE_espalier"))
        .args(["observe", "plan.json", "-o", "seen", "--port", &port, "--timeout", "0.5", "--attempts", "20"])
        .current_dir(&folder.0)
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program runs");
    while seen().len() < 7 {
        assert!(observing.try_wait().expect("a process").is_none(), "it ended before it was interrupted");
        thread::sleep(Duration::from_millis(5));
    }
    let pressed = Command::new("kill").args(["-INT", &observing.id().to_string()]).status().expect("kill runs");
    assert!(pressed.success());
    closet.do_it("s3 speaks");
    let output = observing.wait_with_output().expect("it ends");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(130));
    for line in ["espalier: stopping; Ctrl-C again to abort\n", "espalier: interrupted; seen is as it was\n"] {
        assert!(said.contains(line), "{said}");
    }
    assert_eq!(seen(), before);
}

const LIMITS: Limits = Limits {
    vlans_max: 6,
    statics_max: 9,
    hybrid: HybridPorts::Allowed,
    learning: Learning::Independent,
    pfc_classes: 0,
};

fn play(name: &str, limits: Limits) {
    let folder = Folder::new(name);
    let closet = Closet::open(limits);
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/switches/{name}.session"));
    let golden = fs::read_to_string(&path).expect("a session");
    folder.write("credentials.toml", "[default]\ncommunity = \"private\"\nsave = \"by-hand\"\n");
    folder.write("ring.yaml", &ring());
    let mut told = String::new();
    for line in golden.lines() {
        if let Some(command) = line.strip_prefix("$ ") {
            told.push_str(&format!("$ {command}\n{}", run(&folder, &closet, command)));
        } else if let Some(deed) = line.strip_prefix("! ") {
            closet.do_it(deed);
            told.push_str(&format!("! {deed}\n"));
        } else if line.starts_with("% ") {
            let gap = if told.is_empty() { "" } else { "\n" };
            told.push_str(&format!("{gap}{line}\n"));
        }
    }
    // Where agents happen to listen is nobody's business, nor when they were asked.
    let told = told.replace(&closet.port.to_string(), "PORT");
    let timeless = |line: &str| match line.strip_prefix("observed         ") {
        Some(when) if when.contains(" ago (20") => "observed         SECONDS ago (MOMENT)\n".to_owned(),
        _ => format!("{line}\n"),
    };
    let told: String = told.lines().map(timeless).collect();
    if std::env::var("TRYCMD").is_ok_and(|mode| mode == "overwrite") {
        fs::write(&path, told).expect("the session can be written");
    } else {
        assert!(told == golden, "{} is not what is said now:\n{told}", path.display());
    }
}

/// Runs a command as a shell would, as far as sessions need one.
fn run(folder: &Folder, closet: &Closet, command: &str) -> String {
    let mut words = command.split_whitespace();
    let mut process = match words.next() {
        Some("espalier") => Command::new(env!("CARGO_BIN_EXE_espalier")),
        Some(program) => Command::new(program),
        None => panic!("an empty command"),
    };
    let port = closet.port.to_string();
    let asks = ["deploy", "status", "watch", "enrol", "observe"]
        .iter()
        .any(|verb| command.starts_with(&format!("espalier {verb}")));
    process.args(words).current_dir(&folder.0);
    if asks {
        process.args(["--port", &port, "--timeout", "0.3", "--attempts", "2"]);
    }
    let output = process.output().expect("the program runs");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text");
    let (stdout, stderr) = (text(output.stdout), text(output.stderr));
    // Switches are probed at once: whose step is told first is chance.
    let mut lines: Vec<&str> = stderr.lines().collect();
    if command.starts_with("espalier enrol") {
        lines.sort_by_key(|line| line.split(": ").next());
    }
    let mut told = lines.into_iter().fold(stdout, |told, line| told + line + "\n");
    let code = output.status.code().expect("it ends by itself");
    if code != 0 {
        told.push_str(&format!("? {code}\n"));
    }
    told
}

/// A ring of four switches with a host each.
fn ring() -> String {
    let mut text = String::from("switches:\n");
    for n in 0..4 {
        text.push_str(&format!("  s{n}: {{mgmt: 127.0.7.{}}}\n", n + 1));
    }
    text.push_str("links:\n");
    for n in 0..4 {
        text.push_str(&format!("  - s{n}:p1 -- s{}:p2\n", (n + 1) % 4));
    }
    text.push_str("hosts:\n");
    for n in 0..4 {
        text.push_str(&format!("  h{n}: {{mac: \"02:00:00:00:00:0{}\", port: \"s{n}:p3\"}}\n", n + 1));
    }
    text
}

/// Four switches, each with an address of its own.
struct Closet {
    port: u16,
    silent: Vec<Arc<AtomicBool>>,
    stop: Arc<AtomicBool>,
    agents: Vec<JoinHandle<()>>,
}

impl Closet {
    fn open(limits: Limits) -> Self {
        let bind = |address: String| UdpSocket::bind(&address);
        // A port that is free on all four.
        let (port, sockets) = (0..100)
            .find_map(|_| {
                let first = bind("127.0.7.1:0".to_owned()).ok()?;
                let port = first.local_addr().ok()?.port();
                let others =
                    (2..=4).map(|n| bind(format!("127.0.7.{n}:{port}"))).collect::<Result<Vec<_>, _>>().ok()?;
                Some((port, [first].into_iter().chain(others).collect::<Vec<_>>()))
            })
            .expect("a port is free on four loopback addresses");
        let stop = Arc::new(AtomicBool::new(false));
        let silent: Vec<Arc<AtomicBool>> = sockets.iter().map(|_| Arc::default()).collect();
        let agents = sockets.into_iter().zip(&silent).zip(0_u8..).map(|((socket, silent), number)| {
            let (stop, silent) = (Arc::clone(&stop), Arc::clone(silent));
            thread::spawn(move || serve(socket, number, limits, &stop, &silent))
        });
        let agents = agents.collect();
        Self { port, silent, stop, agents }
    }

    fn do_it(&self, deed: &str) {
        let words: Vec<&str> = deed.split_whitespace().collect();
        let number: usize = words[0].strip_prefix('s').and_then(|n| n.parse().ok()).expect("a switch");
        match &words[1..] {
            ["silent"] => self.silent[number].store(true, Ordering::SeqCst),
            ["speaks"] => self.silent[number].store(false, Ordering::SeqCst),
            [object, "=", value] => {
                let port = object.strip_prefix("dot1qPvid.").and_then(|port| port.parse().ok()).expect("a PVID");
                let link = UdpLink::open(([127, 0, 7, number as u8 + 1], self.port).into()).expect("a socket");
                let word = Credentials::Community("private".to_owned());
                let mut session = Session::new(link, word, Patience::default(), 7 << 40);
                let value = Value::Gauge32(value.parse().expect("a number"));
                session.set(vec![(q_bridge::PVID.row(&BridgePort(port)), value)]).expect("it is written");
            }
            other => panic!("nobody can do {other:?}"),
        }
    }
}

impl Drop for Closet {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        for agent in self.agents.drain(..) {
            // One that panicked has said so.
            let _ = agent.join();
        }
    }
}

fn serve(socket: UdpSocket, number: u8, limits: Limits, stop: &AtomicBool, silent: &AtomicBool) {
    let engine_id = [0x80, 0, 0x1f, 0x88, 4, b's', number];
    let port = |port: u32| PortFacts {
        name: format!("p{port}"),
        if_index: 100 + port,
        mac: Mac::new([2, 0, 0, 1, number, port as u8]),
    };
    let facts = Facts {
        description: "Wiredrawer 4, version 3".to_owned(),
        address: Mac::new([2, 0, 0, 1, number, 0]),
        ports: (1..=PORTS).map(port).collect(),
        limits,
    };
    let mut config = Config::factory(PORTS as usize);
    config.name = format!("s{number}").into_bytes();
    // The last port has no link.
    config.ports[PORTS as usize - 1].admin = IfStatus::Down;
    let switch = Switch::new(facts, config, Ring(number), &engine_id, 1, 0);
    let keys = Keys::new(AuthProtocol::Sha256, "authentication", Some("privacy-too"), &engine_id);
    let access = Access {
        communities: vec![(b"private".to_vec(), Rights::Write)],
        users: vec![User { name: b"admin".to_vec(), keys, rights: Rights::Write }],
    };
    // Links have been up for a while: neighbours that are not heard are not there.
    let since = Instant::now().checked_sub(Duration::from_secs(60)).unwrap_or_else(Instant::now);
    let mut server = Server::new(Engine::new(switch, access, &engine_id, 1), socket, since);
    while !stop.load(Ordering::SeqCst) {
        if silent.load(Ordering::SeqCst) {
            let mut lost = [0; 2048];
            let _ = server.socket().recv(&mut lost);
            thread::sleep(Duration::from_millis(5));
        } else {
            server.step(Duration::from_millis(50)).expect("a socket");
        }
    }
}

/// A plane that forwards nothing, and hears the switches before and behind it in the ring.
struct Ring(u8);

impl DataPlane for Ring {
    fn observe(&mut self, _: u32, sensors: &mut Sensors) {
        let speaker = |number: u8, port: u8| NeighbourInfo {
            chassis_subtype: LldpChassisSubtype::Mac,
            chassis_id: vec![2, 0, 0, 1, number, 0],
            port_subtype: LldpPortSubtype::Name,
            port_id: format!("p{port}").into_bytes(),
            port_description: Vec::new(),
            system_name: format!("s{number}").into_bytes(),
            system_description: Vec::new(),
            capabilities: 4,
            capabilities_enabled: 4,
        };
        let row = |local_port: u32| Neighbour { time_mark: 0, local_port, index: 1 };
        sensors.neighbours.rows =
            [(row(1), speaker((self.0 + 1) % 4, 2)), (row(2), speaker((self.0 + 3) % 4, 1))].into();
    }

    fn apply(&mut self, _: &Config, _: &[Change]) -> Result<(), Refused> {
        Ok(())
    }
}

/// A folder of the test's own, gone with it.
struct Folder(PathBuf);

impl Folder {
    fn new(word: &str) -> Self {
        let path = std::env::temp_dir().join(format!("espalier-switches-{}-{word}", std::process::id()));
        fs::create_dir(&path).expect("a fresh folder");
        Self(path)
    }

    fn write(&self, name: &str, text: &str) {
        use std::os::unix::fs::PermissionsExt as _;
        let path = self.0.join(name);
        fs::write(&path, text).expect("it can be written");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).expect("it is ours");
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.0) {
            eprintln!("{} stays behind: {error}", self.0.display());
        }
    }
}
