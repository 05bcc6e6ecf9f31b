//! A demonstration: model switches on loopback addresses or managed switches of the lab, the daemon over them, and somebody who pulls cables.
//!
//! ```text
//!   topology ─ plan ─▶ model switches, or a lab ◀─ SNMP ─ espalierd, a process of its own ◀─ its page, espalierd status
//!                           ▲ cut, lose, mend, off, on: lines that a person types                  └▶ events, printed as they happen
//! ```

mod network;

use std::{
    fs,
    io::{self, BufRead as _, Write as _},
    net::SocketAddr,
    os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
    process::{Child, Stdio},
    sync::mpsc,
    thread,
    time::{Duration, Instant},
};

use api_client::{Ask, Endpoint};
use fabric::{
    LinkId, Plan, Policy, Resilience, SwitchId, Topology,
    format::{
        native::parse_native,
        plan::{ReadMode, read_plan, write_plan},
    },
    generate::{Kind, Options, generate},
};
use rustix::process::{Pid, Signal, kill_process};
use signal_hook::{
    consts::{SIGINT, SIGTERM},
    iterator::Signals,
};

use crate::{
    documents::{Event, Proposal, Status, TargetState},
    show,
};

use self::network::Network;
pub use self::network::Switches;

/// How long the daemon may take until it answers.
const START_MAX: Duration = Duration::from_secs(20);
/// How long the first plan may take until all switches hold it.
const DEPLOY_MAX: Duration = Duration::from_secs(600);
/// How soon it is looked whether something is done.
const MOMENT: Duration = Duration::from_millis(100);
/// The network of a demonstration for which none is named.
const TORUS: &str = "4x4";

/// What is demonstrated.
pub struct DemoRequest<'a> {
    /// The topology's file; a torus of sixteen switches unless it or a plan is given.
    pub topology: Option<&'a Path>,
    /// The plan's file; the topology is planned unless given.
    pub plan: Option<&'a Path>,
    /// Which switches.
    pub switches: Switches,
    /// Where the page is, which the lab has not.
    pub page: SocketAddr,
    /// Seconds between two polls.
    pub counters: f64,
}

/// What a person types.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Action {
    Cut(LinkId),
    Lose(LinkId),
    Mend(LinkId),
    Off(SwitchId),
    On(SwitchId),
    Quit,
}

impl Action {
    fn parse(topology: &Topology, line: &str) -> Result<Self, String> {
        let (verb, rest) = line.trim().split_once(' ').unwrap_or((line.trim(), ""));
        let link = || {
            let plain = |text: &str| text.split_whitespace().collect::<String>();
            let found = topology.link_ids().find(|link| plain(&topology.link_label(*link)) == plain(rest));
            let example = || topology.link_ids().next().map(|link| topology.link_label(link)).unwrap_or_default();
            found.ok_or_else(|| format!("{rest:?} is no link between switches; write one as {verb} {}", example()))
        };
        let switch = || {
            let example = topology.switches().first().map_or("", |switch| &switch.name);
            let found = topology.find_switch(rest.trim());
            found.ok_or_else(|| format!("{rest:?} is no switch; write one as {verb} {example}"))
        };
        match verb {
            "cut" => link().map(Self::Cut),
            "lose" => link().map(Self::Lose),
            "mend" => link().map(Self::Mend),
            "off" => switch().map(Self::Off),
            "on" => switch().map(Self::On),
            "quit" => Ok(Self::Quit),
            _ => Err("write cut LINK, lose LINK, mend LINK, off SWITCH, on SWITCH, or quit".to_owned()),
        }
    }
}

/// Runs the demonstration until `quit` or an interrupt, and removes everything that it made.
///
/// # Errors
/// A message, with the way out.
pub fn demo(request: &DemoRequest<'_>) -> Result<(), String> {
    // From now on an interrupt ends it in order.
    let signals = Signals::new([SIGINT, SIGTERM]).map_err(|error| format!("signals: {error}"))?;
    let plan = match request.plan {
        Some(path) => read_plan_file(path)?,
        None => first_plan(&read_topology(request.topology)?)?,
    };
    let (network, plan) = Network::open(request.switches, plan)?;
    let topology = plan.topology.clone();
    let folder = Folder::new(&plan, network.access(), request)?;
    let mut daemon = Daemon::start(&folder, &network)?;
    let page = match request.switches {
        Switches::Models => format!("; its page: http://{}/", request.page),
        Switches::Lab => String::new(),
    };
    say(&format!(
        "{}\nespalierd (process {}) watches them{page}\n  espalierd status --socket {}",
        network.words(topology.switches().len()),
        daemon.process.id(),
        folder.socket().display()
    ));
    let (sender, actions) = mpsc::channel();
    listen(sender.clone(), signals);
    if !bring_up(&folder, &mut daemon, &actions)? {
        return Ok(());
    }
    let example = topology.link_ids().next().map(|link| topology.link_label(link)).unwrap_or_default();
    let last = topology.switches().last().map_or("", |switch| &switch.name);
    let lose = if request.switches == Switches::Lab { format!(" · lose {example}") } else { String::new() };
    say(&format!("Now break something: cut {example}{lose} · mend {example} · off {last} · on {last} · quit"));
    follow(&folder);
    read_lines(sender);
    for line in actions {
        let done = Action::parse(&topology, &line).and_then(|action| match action {
            Action::Quit => Ok(false),
            Action::Cut(link) => network.cut(&topology, link).map(|()| true),
            Action::Lose(link) => network.lose(&topology, link).map(|()| true),
            Action::Mend(link) => network.mend(&topology, link).map(|()| true),
            Action::Off(switch) => network.turn_off(&topology, switch).map(|()| true),
            Action::On(switch) => network.turn_on(&topology, switch).map(|()| true),
        });
        match done {
            Ok(true) => {}
            Ok(false) => break,
            Err(why) => say(&why),
        }
        daemon.check(&folder)?;
    }
    Ok(())
}

fn say(text: &str) {
    // Whoever reads may go away.
    let _ = writeln!(io::stdout(), "{text}");
}

fn read_topology(path: Option<&Path>) -> Result<Topology, String> {
    let Some(path) = path else {
        let kind = Kind::parse("torus", &[TORUS.to_owned()]).map_err(|error| error.to_string())?;
        return generate(&kind, &Options::default()).map_err(|error| error.to_string());
    };
    let text = fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
    parse_native(&path.display().to_string(), &text).map_err(|errors| errors.to_string())
}

fn read_plan_file(path: &Path) -> Result<Plan, String> {
    let in_file = |why: &dyn std::fmt::Display| format!("{}: {why}", path.display());
    let text = fs::read(path).map_err(|error| in_file(&error))?;
    read_plan(&text, ReadMode::Strict).map_err(|error| in_file(&error))
}

/// A plan that is protected against any link failure, or an unprotected one where the topology allows no other.
fn first_plan(topology: &Topology) -> Result<Plan, String> {
    let policy = Policy { resilience: Resilience::OneLink, ..Policy::default() };
    planner::plan(topology, &policy, None)
        .or_else(|_| planner::plan(topology, &Policy::default(), None))
        .map_err(|error| format!("no plan: {error}"))
}

/// Takes an interrupt as if somebody had typed `quit`.
fn listen(sender: mpsc::Sender<String>, mut signals: Signals) {
    thread::spawn(move || {
        if signals.forever().next().is_some() {
            // Nobody may be listening any more.
            let _ = sender.send("quit".to_owned());
        }
    });
}

/// Hands on what is typed.
fn read_lines(sender: mpsc::Sender<String>) {
    thread::spawn(move || {
        for line in io::stdin().lock().lines().map_while(Result::ok).filter(|line| !line.trim().is_empty()) {
            if sender.send(line).is_err() {
                return;
            }
        }
    });
}

/// Proposes and approves the first plan, and waits until all switches hold it. False if it was asked to quit meanwhile.
fn bring_up(folder: &Folder, daemon: &mut Daemon, actions: &mpsc::Receiver<String>) -> Result<bool, String> {
    let endpoint = Endpoint::Socket(folder.socket());
    let since = Instant::now();
    while endpoint.document::<Status>(Ask::get("/v1/status")).is_err() {
        daemon.check(folder)?;
        if since.elapsed() > START_MAX {
            return Err(format!("espalierd does not answer; it says:\n{}", folder.log()));
        }
        thread::sleep(MOMENT);
    }
    let text = fs::read(folder.path.join("plan.json")).map_err(|error| folder.in_it(&error))?;
    let first: Proposal = endpoint.document(Ask::post("/v1/proposals?reason=first%20plan", text))?;
    let path = format!("/v1/proposals/{}/approve", first.id);
    endpoint.document::<Proposal>(Ask::post(&path, Vec::new()))?;
    let since = Instant::now();
    loop {
        let status: Status = endpoint.document(Ask::get("/v1/status"))?;
        match status.target.map(|target| (target.state, target.note)) {
            Some((TargetState::Deployed, _)) if status.polled_s.is_some() => {
                say(&format!("{} of {} switches hold the plan", status.as_planned, status.switches));
                return Ok(true);
            }
            Some((TargetState::Failed, note)) => {
                return Err(format!("the plan was not deployed: {}", note.unwrap_or_default()));
            }
            _ if since.elapsed() > DEPLOY_MAX => return Err("the switches do not hold the plan yet".to_owned()),
            _ => {}
        }
        if actions.recv_timeout(MOMENT).is_ok() {
            return Ok(false);
        }
        daemon.check(folder)?;
    }
}

/// Prints what happens, until the daemon ends.
fn follow(folder: &Folder) {
    let endpoint = Endpoint::Socket(folder.socket());
    thread::spawn(move || {
        // It ends with the daemon.
        let _ = endpoint.follow("/v1/events/stream", &mut |change, event| {
            if let Ok(event) = serde_json::from_str::<Event>(event) {
                show::change(change, &event).iter().for_each(|line| say(line));
            }
        });
    });
}

/// The demonstration's files, gone with it.
struct Folder {
    path: PathBuf,
}

impl Folder {
    fn new(plan: &Plan, (port, community): (u16, &str), request: &DemoRequest<'_>) -> Result<Self, String> {
        let path = std::env::temp_dir().join(format!("espalierd-demo-{}", std::process::id()));
        let made = fs::DirBuilder::new().mode(0o700).create(&path);
        made.map_err(|error| format!("{}: {error}", path.display()))?;
        let folder = Self { path };
        let at = folder.path.display();
        let mut text = Vec::new();
        write_plan(plan, &mut text).map_err(|error| error.to_string())?;
        folder.write("plan.json", &text)?;
        folder.write("credentials.toml", format!("[default]\ncommunity = \"{community}\"\n").as_bytes())?;
        let DemoRequest { page, counters, .. } = request;
        let page = match request.switches {
            Switches::Models => format!(", \"http://{page}\""),
            Switches::Lab => String::new(),
        };
        folder.write(
            "espalierd.toml",
            format!(
                "state = \"{at}/state\"\ncredentials = \"{at}/credentials.toml\"\nlisten = [\"{at}/socket\"{page}]\n\n\
                 [snmp]\nport = {port}\n\n[watch]\ncounters = {counters:?}\nhold = 2\n"
            )
            .as_bytes(),
        )?;
        Ok(folder)
    }

    fn write(&self, name: &str, text: &[u8]) -> Result<(), String> {
        let opened = fs::File::options().write(true).create_new(true).mode(0o600).open(self.path.join(name));
        opened.and_then(|mut file| file.write_all(text)).map_err(|error| self.in_it(&error))
    }

    fn in_it(&self, error: &io::Error) -> String {
        format!("{}: {error}", self.path.display())
    }

    fn socket(&self) -> PathBuf {
        self.path.join("socket")
    }

    /// The last lines of what the daemon said.
    fn log(&self) -> String {
        const LINES: usize = 10;
        let text = fs::read_to_string(self.path.join("log")).unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(LINES)..].join("\n")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.path) {
            eprintln!("espalierd: {}: cannot be removed: {error}", self.path.display());
        }
    }
}

/// The daemon's process, ended with the demonstration.
struct Daemon {
    process: Child,
}

impl Daemon {
    fn start(folder: &Folder, network: &Network) -> Result<Self, String> {
        let own = std::env::current_exe().map_err(|error| format!("this program's file: {error}"))?;
        let log = fs::File::create(folder.path.join("log")).map_err(|error| folder.in_it(&error))?;
        let process = network
            .command(&own)
            .args(["run", "--config"])
            .arg(folder.path.join("espalierd.toml"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .map_err(|error| format!("espalierd does not start: {error}"))?;
        Ok(Self { process })
    }

    /// Says why, if it has ended.
    fn check(&mut self, folder: &Folder) -> Result<(), String> {
        match self.process.try_wait() {
            Ok(None) => Ok(()),
            _ => Err(format!("espalierd has ended; it said:\n{}", folder.log())),
        }
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        // It may have ended, with the same interrupt.
        let _ = kill_process(Pid::from_child(&self.process), Signal::TERM);
        let _ = self.process.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_person_types_names_links_and_switches() {
        let topology = read_topology(None).expect("a torus");
        let first = topology.link_ids().next().expect("a link");
        let label = topology.link_label(first);
        let deed = |line: &str| Action::parse(&topology, line);
        assert_eq!(deed(&format!("cut {label}")), Ok(Action::Cut(first)));
        assert_eq!(deed(&format!(" mend {}", label.replace(' ', ""))), Ok(Action::Mend(first)));
        assert_eq!(deed("off s1-2"), Ok(Action::Off(topology.find_switch("s1-2").expect("a switch"))));
        assert_eq!(deed("quit"), Ok(Action::Quit));
        for (line, expected) in [
            ("cut s0-0:p1", "\"s0-0:p1\" is no link between switches; write one as cut s0-0:p2 -- "),
            ("on", "\"\" is no switch; write one as on s0-0"),
            ("burn s0-0", "write cut LINK"),
        ] {
            let why = deed(line).expect_err("it is wrong");
            assert!(why.starts_with(expected), "{why}");
        }
    }
}
