//! Any Linux bridge as a managed switch.
//!
//! ```text
//!   sockets, secrets, state ─▶ fewer rights ─▶ ┌ SNMP request ─▶ Switch ─▶ Plane ─▶ netlink ─▶ kernel ┐
//!        (as root)                             └ LLDP, device events, the guard's time ───────────────┘ until a signal
//! ```
//! What is saved is applied after the machine has started, and only then: a marker in `/run` tells that from a restart of
//! this program, which takes over whatever the bridge holds. What others change on the bridge in the meantime is taken
//! over as well, before the next question is answered.

mod error;
mod events;
mod folder;
mod intent;
mod kernel;
mod links;
mod pause;
mod plane;
mod secrets;

use std::{
    fs,
    io::{self, Read, Write as _},
    net::UdpSocket,
    os::{fd::AsRawFd, unix::fs::OpenOptionsExt as _},
    path::{Path, PathBuf},
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use linux_net::privileges::{self, Capability, Kept};

use self::{
    error::Context as _,
    folder::{Folder, next_boots},
    kernel::Kernel,
    plane::Plane,
};
use crate::{
    agent::{Config, Engine, Facts, Responder as _, Server, Switch},
    saved::{parse_saved, write_saved},
    settings::SwitchdConfig,
};

pub use self::{error::SwitchdError, secrets::Secrets};

/// Longest wait for something to happen.
const TICK: Duration = Duration::from_millis(200);
/// How long after what was saved could not be written it is tried again.
const SAVE_AGAIN: Duration = Duration::from_secs(10);
/// Something worth telling a person while it happens.
#[derive(Debug)]
pub enum ServeEvent {
    /// It answers from now on.
    Ready,
    /// What was saved could not be written; it is tried again after this time.
    NotSaved(SwitchdError, Duration),
    /// The count of starts in this file is lost, and why; starts are counted by the clock.
    StartsLost(String, String),
}

/// Serves a kernel's bridge until `stop` is set. The bridge goes on as it is afterwards.
///
/// # Errors
/// [`SwitchdError`], naming the bridge, file or socket that is in the way.
pub fn serve(
    config: &SwitchdConfig,
    bridge: &str,
    stop: &AtomicBool,
    events: &mut dyn FnMut(ServeEvent),
) -> Result<(), SwitchdError> {
    let secrets = Secrets::read(config)?;
    let state = StateFolder::open(&config.state, bridge, config.user.as_deref())?;
    let mut kernel = Kernel::open(bridge)?;
    let facts = plane::facts(bridge, &mut kernel)?;
    let mut saved = match state.read(&facts)? {
        Some(saved) => saved,
        None => Config::factory(facts.ports.len()),
    };
    if saved.name.is_empty() {
        saved.name = config.name.clone().unwrap_or_else(host_name).into_bytes();
    }
    let running = state.is_running();
    let first =
        if running || !state.has_saved()? { intent::adopt(&kernel.read()?, &facts, &saved) } else { saved.clone() };
    let plane = Plane::new(bridge, kernel, &facts, &first, config.lldp_interval_s)?;
    let socket = UdpSocket::bind(config.listen).context("serve", &config.listen.to_string(), "open the UDP port")?;
    // The net-snmp project's number lets agents without one of their own name themselves by the station address.
    let engine_id = [&[0x80, 0, 0x1f, 0x88, 3][..], &facts.address.octets()].concat();
    let access = secrets.access(&engine_id);
    // From here on files are written with the rights of the user whose they are.
    give_up_rights(config.user.as_deref()).context("serve", bridge, "give up rights")?;
    let unix_s = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let boots = state.count_start(unix_s, events);
    let mut switch = Switch::new(facts, first, plane, &engine_id, boots, 0);
    if !running {
        switch.apply_all().map_err(|refused| SwitchdError::Unsupported(format!("{bridge}: {refused}")))?;
    }
    state.mark_running();
    let engine = Engine::new(switch, access, &engine_id, unix_s << 32);
    let mut server = Server::new(engine, socket, Instant::now());
    events(ServeEvent::Ready);
    let (mut kept, mut unsaved_since) = (0, None);
    while !stop.load(Ordering::Relaxed) {
        let udp = server.socket().as_raw_fd();
        let readable = server.engine().responder().plane().wait(udp, TICK).context("serve", bridge, "wait")?;
        if readable {
            server.step(Duration::ZERO).context("serve", bridge, "answer")?;
        }
        let now_ms = server.now_ms();
        let switch = server.engine().responder();
        switch.handle_tick(now_ms);
        let up_cs = switch.up_cs(now_ms);
        switch.plane().poll(now_ms, up_cs).context("serve", bridge, "speak LLDP")?;
        if kept != switch.saves() && unsaved_since.is_none_or(|since: Instant| since.elapsed() > SAVE_AGAIN) {
            match state.write(&write_saved(switch.facts(), switch.saved())) {
                Ok(()) => (kept, unsaved_since) = (switch.saves(), None),
                // The switch goes on: a disk that is full now may have room later.
                Err(error) => {
                    events(ServeEvent::NotSaved(error, SAVE_AGAIN));
                    unsaved_since = Some(Instant::now());
                }
            }
        }
    }
    // Nobody is left to take back what a manager has not confirmed.
    server.engine().responder().handle_tick(u64::MAX);
    Ok(())
}

fn give_up_rights(user: Option<&str>) -> io::Result<()> {
    user.map_or(Ok(()), privileges::become_user)?;
    match privileges::keep_only(Capability::NetAdmin)? {
        Kept::Yes => Ok(()),
        Kept::Nothing => Err(io::Error::other("changing network devices takes root or CAP_NET_ADMIN")),
    }
}

fn host_name() -> String {
    fs::read_to_string("/proc/sys/kernel/hostname").map(|name| name.trim().to_owned()).unwrap_or_default()
}

/// What outlives the program, and the marker that does not outlive the machine's run.
struct StateFolder {
    folder: Folder,
    saved: String,
    boots: String,
    /// Opened before rights are given up: its folder is root's.
    marker: fs::File,
    running: bool,
}

/// What the marker says while the first configuration has not been applied yet.
const STARTING: &str = "starting";

impl StateFolder {
    /// Opens the folder, and gives it to `user`, who is to write there.
    fn open(folder: &Path, bridge: &str, user: Option<&str>) -> Result<Self, SwitchdError> {
        let shown = folder.display().to_string();
        let opened = Folder::open(folder).context("serve", &shown, "make the folder of the state")?;
        if let Some(user) = user.filter(|_| nix::unistd::Uid::effective().is_root()) {
            opened.give(user).context("serve", user, "hand the state over")?;
        }
        let run = PathBuf::from(std::env::var_os("RUNTIME_DIRECTORY").unwrap_or_else(|| "/run/espalier".into()));
        fs::create_dir_all(&run).context("serve", &run.display().to_string(), "make the folder of the run")?;
        let path = run.join(format!("switchd-{bridge}"));
        let (marker, running) =
            marker(&path).context("serve", &path.display().to_string(), "mark that it is running")?;
        let (saved, boots) = (format!("{bridge}.json"), format!("{bridge}.boots"));
        Ok(Self { folder: opened, saved, boots, marker, running })
    }

    fn has_saved(&self) -> Result<bool, SwitchdError> {
        self.text().map(|text| text.is_some())
    }

    fn text(&self) -> Result<Option<String>, SwitchdError> {
        self.folder.read(&self.saved).context("serve", &self.folder.shown(&self.saved), "read what was saved")
    }

    fn read(&self, facts: &Facts) -> Result<Option<Config>, SwitchdError> {
        let shown = self.folder.shown(&self.saved);
        let parsed = self.text()?.map(|text| parse_saved(facts, &text)).transpose();
        parsed.map_err(|error| {
            SwitchdError::Unsupported(format!(
                "{shown}: {error}; mend it, or remove it to begin with what the bridge holds"
            ))
        })
    }

    fn write(&self, text: &str) -> Result<(), SwitchdError> {
        self.folder.replace(&self.saved, text).context("serve", &self.folder.shown(&self.saved), "save")
    }

    /// How often it has started, this time included: managers tell old messages by it (RFC 3414, 2.2.2). A count that is lost
    /// keeps nobody from starting, as [`next_boots`] never goes back.
    fn count_start(&self, unix_s: u64, events: &mut dyn FnMut(ServeEvent)) -> i32 {
        let mut lost = |why: String| events(ServeEvent::StartsLost(self.folder.shown(&self.boots), why));
        let stored = match self.folder.read(&self.boots) {
            Ok(None) => None,
            Ok(Some(text)) => {
                let count = text.trim().parse::<i32>().ok();
                if count.is_none() {
                    lost("is no number of starts".to_owned());
                }
                count
            }
            Err(error) => {
                lost(error.to_string());
                None
            }
        };
        let boots = next_boots(stored, unix_s);
        if let Err(error) = self.folder.replace(&self.boots, &format!("{boots}\n")) {
            lost(error.to_string());
        }
        boots
    }

    fn is_running(&self) -> bool {
        self.running
    }

    /// Where that fails, the next start applies what was saved.
    fn mark_running(&self) {
        let _ = self.marker.set_len(0);
    }
}

/// The marker's file, and whether an earlier start in this run of the machine has got beyond its first configuration.
fn marker(path: &Path) -> io::Result<(fs::File, bool)> {
    let mut options = fs::File::options();
    options.read(true).write(true).custom_flags(libc::O_NOFOLLOW).mode(0o644);
    let mut file = match options.clone().create_new(true).open(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => options.open(path)?,
        made => {
            let mut file = made?;
            file.write_all(STARTING.as_bytes())?;
            return Ok((file, false));
        }
    };
    let mut said = String::new();
    Read::by_ref(&mut file).take(STARTING.len() as u64).read_to_string(&mut said)?;
    let running = said != STARTING;
    Ok((file, running))
}
