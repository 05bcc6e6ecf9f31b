//! The daemon as a process: its store and its lock, signals, systemd, sockets.

use std::{
    fs,
    io::Write as _,
    net::{SocketAddr, UdpSocket},
    os::unix::fs::DirBuilderExt as _,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError, RwLock},
    thread,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use fabric::rng::Rng;
use records::SqliteRecords;
use rustix::{
    fs::{FlockOperation, flock},
    io::Errno,
    process::geteuid,
};
use sd_notify::NotifyState;
use signal_hook::{
    consts::{SIGHUP, SIGINT, SIGTERM},
    iterator::Signals,
};

use crate::{
    api::{callers::Tokens, routes::Shared, serve::Serving},
    archive::Archive,
    config::{Config, Listen},
    manager::Manager,
    notify::{Receiver, deliver},
    work::{Reach, work},
};

/// The store's file in the state's folder.
pub const STORE: &str = "espalierd.sqlite";

/// Everything that a configuration names, read and checked.
pub struct Checked {
    /// The configuration.
    pub config: Config,
    reach: Reach,
    tokens: Tokens,
    receivers: Vec<Receiver>,
}

fn env(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

impl Checked {
    /// Reads a configuration and all files that it names.
    ///
    /// # Errors
    /// A message that names the file, the line where there is one, and the way out.
    pub fn read(path: &Path) -> Result<Self, String> {
        let config = Config::read(path)?;
        let credentials = config.credentials(&env).map_err(|why| format!("{}: {why}", path.display()))?;
        let reach = Reach::read(&credentials, config.connect(), &env)?;
        let tokens = config.tokens.as_deref().map_or_else(|| Ok(Tokens::default()), Tokens::read)?;
        let receivers = config.notify.iter().map(Receiver::new).collect::<Result<_, _>>();
        let receivers = receivers.map_err(|why| format!("{}: {why}", path.display()))?;
        Ok(Self { config, reach, tokens, receivers })
    }
}

/// The state's folder, which one daemon at a time has.
pub struct State {
    folder: PathBuf,
    _lock: fs::File,
}

impl State {
    /// Takes a folder, and makes it if it is missing; only its owner can read it.
    ///
    /// # Errors
    /// A message that names the folder, and who has it.
    pub fn take(folder: &Path) -> Result<Self, String> {
        let in_folder = |error: &dyn std::fmt::Display| format!("{}: {error}", folder.display());
        if !folder.is_dir() {
            fs::DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(|error| in_folder(&error))?;
        }
        let path = folder.join("lock");
        let opened = fs::File::options().read(true).write(true).create(true).truncate(false).open(&path);
        let mut lock = opened.map_err(|error| in_folder(&error))?;
        match flock(&lock, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(Errno::WOULDBLOCK) => {
                let owner = fs::read_to_string(&path).unwrap_or_default();
                return Err(in_folder(&format!(
                    "another espalierd has it (process {}); end that one first",
                    owner.trim()
                )));
            }
            Err(error) => return Err(in_folder(&error)),
        }
        let written = lock.set_len(0).and_then(|()| write!(lock, "{}", std::process::id()));
        written.map_err(|error| in_folder(&error))?;
        Ok(Self { folder: folder.to_owned(), _lock: lock })
    }

    /// The file of the store.
    pub fn store(&self) -> PathBuf {
        self.folder.join(STORE)
    }
}

/// Runs the daemon until it is asked to end.
///
/// # Errors
/// A message; nothing has been written to any switch.
pub fn run(path: &Path) -> Result<(), String> {
    let Checked { config, reach, tokens, receivers } = Checked::read(path)?;
    let state = State::take(&config.state)?;
    let store = Arc::new(SqliteRecords::open(&state.store()).map_err(|error| error.to_string())?);
    let now_s = || SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs());
    let places: Vec<Listen> = config.listen.iter().map(|place| Listen::parse(place)).collect::<Result<_, _>>()?;
    let manager = Manager::open(Archive::new(Arc::clone(&store) as Arc<_>), config, Box::new(now_s));
    let manager = Arc::new(manager.map_err(|error| error.to_string())?);
    let shared = Arc::new(Shared {
        manager: Arc::clone(&manager),
        store,
        scratch: state.folder.clone(),
        tokens,
        own_uid: geteuid().as_raw(),
    });
    let traps = manager.config().watch.traps.map(trap_socket).transpose()?;
    let mut signals = Signals::new([SIGHUP, SIGINT, SIGTERM]).map_err(|error| format!("signals: {error}"))?;
    let serving = Serving::open(&places, &shared)?;
    let means = Means { reach: RwLock::new(Arc::new(reach)), receivers: RwLock::new(Arc::new(receivers)) };
    let luck = Mutex::new(Rng::new(now_s() ^ u64::from(std::process::id())));
    let luck = || luck.lock().unwrap_or_else(PoisonError::into_inner).below(LUCK) as f64 / LUCK as f64;
    tracing::info!(listen = ?manager.config().listen, "espalierd {} is ready", env!("CARGO_PKG_VERSION"));
    // Without systemd there is nobody to tell.
    let _ = sd_notify::notify(&[NotifyState::Ready]);
    let handle = signals.handle();
    thread::scope(|scope| {
        scope.spawn(|| beat(&manager));
        scope.spawn(|| deliver(&manager, &|| means.receivers(), &luck));
        if let Some(traps) = &traps {
            scope.spawn(|| hear(traps, &manager));
        }
        scope.spawn(|| {
            for signal in signals.forever() {
                if signal != SIGHUP {
                    tracing::info!("ending");
                    let _ = sd_notify::notify(&[NotifyState::Stopping]);
                    manager.stop();
                    return;
                }
                reload(path, &manager, &means);
            }
        });
        work(&manager, &|| means.reach());
        handle.close();
    });
    drop(serving);
    Ok(())
}

/// Steps of chance by which letters that failed together are spread.
const LUCK: usize = 1000;

/// What the configuration in force names: how switches are reached, and who is told of events.
struct Means {
    reach: RwLock<Arc<Reach>>,
    receivers: RwLock<Arc<Vec<Receiver>>>,
}

impl Means {
    fn reach(&self) -> Arc<Reach> {
        Arc::clone(&self.reach.read().unwrap_or_else(PoisonError::into_inner))
    }

    fn receivers(&self) -> Arc<Vec<Receiver>> {
        Arc::clone(&self.receivers.read().unwrap_or_else(PoisonError::into_inner))
    }
}

/// How soon whoever waits for traps notices that the daemon is to end.
const TRAP_WAIT: Duration = Duration::from_millis(100);

fn trap_socket(address: SocketAddr) -> Result<UdpSocket, String> {
    let opened = UdpSocket::bind(address);
    let opened = opened.and_then(|socket| socket.set_read_timeout(Some(TRAP_WAIT)).map(|()| socket));
    opened.map_err(|error| format!("watch.traps = \"{address}\": {error}"))
}

/// Takes traps as hints: whoever sends one is asked, whatever it says. A forged one costs a poll.
fn hear(traps: &UdpSocket, manager: &Manager) {
    let mut datagram = [0; 1];
    while !manager.is_stopping() {
        // An error is that nothing came, or of a datagram that is gone.
        if let Ok((_, from)) = traps.recv_from(&mut datagram) {
            manager.hint(from.ip());
        }
    }
}

/// Reads the configuration again; a bad one is refused, and the old one stays.
fn reload(path: &Path, manager: &Manager, means: &Means) {
    match Checked::read(path) {
        Ok(checked) => {
            *means.reach.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(checked.reach);
            *means.receivers.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(checked.receivers);
            manager.configure(checked.config);
            tracing::info!("{}: read again", path.display());
        }
        Err(why) => tracing::error!("{why}; the configuration stays as it was"),
    }
}

/// Tells systemd's watchdog that the daemon is alive, as long as its manager answers.
fn beat(manager: &Manager) {
    let Some(timeout) = sd_notify::watchdog_enabled() else { return };
    let every = (timeout / 2).max(Duration::from_millis(10));
    let mut waited = every;
    while !manager.is_stopping() {
        if waited >= every {
            let _ = sd_notify::notify(&[NotifyState::Watchdog]);
            waited = Duration::ZERO;
        }
        let part = (every - waited).min(Duration::from_millis(100));
        thread::sleep(part);
        waited += part;
    }
}

/// Puts a backup in place of the store; the old one stays beside it.
///
/// # Errors
/// A message that names the file.
pub fn restore(config: &Config, backup: &Path) -> Result<PathBuf, String> {
    let state = State::take(&config.state)?;
    let (store, old, new) =
        (state.store(), state.folder.join("before-restore.sqlite"), state.folder.join("restore.partial"));
    // What cannot be opened is no backup.
    let source = SqliteRecords::open(backup).map_err(|error| error.to_string())?;
    let _ = fs::remove_file(&new);
    source.back_up(&new).map_err(|error| error.to_string())?;
    drop(source);
    let renamed = (|| {
        if store.exists() {
            // Opening and closing it folds its log into it.
            drop(SqliteRecords::open(&store).map_err(|error| error.to_string())?);
            fs::rename(&store, &old).map_err(|error| format!("{}: {error}", old.display()))?;
        }
        fs::rename(&new, &store).map_err(|error| format!("{}: {error}", store.display()))
    })();
    renamed.map(|()| old)
}
