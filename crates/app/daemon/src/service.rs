//! The daemon as a process: its store and its lock, standing by, signals, systemd, sockets.

use std::{
    fs,
    io::Write as _,
    net::{SocketAddr, UdpSocket},
    os::unix::fs::DirBuilderExt as _,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, PoisonError, RwLock,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use fabric::rng::Rng;
use records::{EtcdConfig, EtcdRecords, FencedRecords, Records, RecordsError, SqliteRecords};
use rustix::{
    fs::{FlockOperation, flock},
    io::Errno,
    process::geteuid,
};
use rustls::ServerConfig;
use sd_notify::NotifyState;
use signal_hook::{
    consts::{SIGHUP, SIGINT, SIGTERM},
    iterator::Signals,
};
use tokio::sync::Semaphore;

use crate::{
    api::{
        callers::Tokens,
        routes::router,
        serve::Serving,
        shared::{ASKING_MAX, Shared},
        standby,
        tls::ServerCertificate,
    },
    archive::Archive,
    config::{Config, Listen},
    history::History,
    leader::{Leadership, await_lease},
    manager::Manager,
    notify::{Receiver, deliver},
    progress::Progress,
    work::{Reach, work},
};

/// The store's file in the state's folder.
pub const STORE: &str = "espalierd.sqlite";

/// The file of past loads in the state's folder.
const HISTORY: &str = "history.sqlite";

/// The exit code of a controller that has lost its lease: systemd starts it again, and it stands by.
const LEASE_LOST: i32 = 75;

/// Everything that a configuration names, read and checked.
pub struct Checked {
    /// The configuration.
    pub config: Config,
    reach: Reach,
    tokens: Tokens,
    receivers: Vec<Receiver>,
    tls: Option<Arc<ServerConfig>>,
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
        let tls = config.tls.as_ref().map(|files| tls::server_config(&files.certificate, &files.key)).transpose();
        let tls = tls.map_err(|error| error.to_string())?;
        Ok(Self { config, reach, tokens, receivers, tls })
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
        // The lock is held all the same on a full disk, and stored answers need no file.
        if let Err(error) = lock.set_len(0).and_then(|()| write!(lock, "{}", std::process::id())) {
            tracing::warn!("{}: {error}; make room on its disk", path.display());
        }
        Ok(Self { folder: folder.to_owned(), _lock: lock })
    }

    /// The file of the store.
    pub fn store(&self) -> PathBuf {
        self.folder.join(STORE)
    }
}

/// Where the daemon remembers.
struct Store {
    records: Arc<dyn Records>,
    /// The same, if it is a file of the daemon's own.
    file: Option<Arc<SqliteRecords>>,
}

/// Runs the daemon until it is asked to end.
///
/// # Errors
/// A message; nothing has been written to any switch.
pub fn run(path: &Path) -> Result<(), String> {
    let checked = Checked::read(path)?;
    let state = State::take(&checked.config.state)?;
    let mut signals = Signals::new([SIGHUP, SIGINT, SIGTERM]).map_err(|error| format!("signals: {error}"))?;
    let Some(cluster) = checked.config.store.cluster()? else {
        let store = Arc::new(SqliteRecords::open(&state.store()).map_err(|error| error.to_string())?);
        let store = Store { records: Arc::clone(&store) as Arc<dyn Records>, file: Some(store) };
        return control(path, checked, (&state, store), None, signals);
    };
    let Some((records, leadership)) = stand_by(path, &checked, &cluster, &mut signals)? else { return Ok(()) };
    tracing::info!("holds the lease and is the controller");
    // Meanwhile the configuration may have changed.
    let checked = Checked::read(path)?;
    let fenced = Arc::new(FencedRecords::new(records, &leadership.proof()));
    control(path, checked, (&state, Store { records: fenced, file: None }), Some(leadership), signals)
}

/// The records of a cluster, and the lease that this daemon holds there.
type Led = (Arc<dyn Records>, Leadership);

/// Waits until this daemon is to be the controller; none if it is to end.
fn stand_by(
    path: &Path,
    Checked { config, tls, .. }: &Checked,
    cluster: &EtcdConfig,
    signals: &mut Signals,
) -> Result<Option<Led>, String> {
    let host = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let name = config.store.name.clone().unwrap_or_else(|| host.trim().to_owned());
    let why = standby::Why::default();
    let certificate = Arc::new(ServerCertificate::default());
    certificate.replace(tls.clone());
    let serving = Serving::open(&places(config)?, &certificate, &standby::router(Arc::clone(&why)))?;
    // Without systemd there is nobody to tell.
    let _ = sd_notify::notify(&[NotifyState::Ready]);
    let timeout = sd_notify::watchdog_enabled();
    let mut is_over = || {
        if timeout.is_some() {
            let _ = sd_notify::notify(&[NotifyState::Watchdog]);
        }
        signals.pending().any(|signal| {
            if signal == SIGHUP {
                read_again(path, |checked| certificate.replace(checked.tls));
            }
            signal != SIGHUP
        })
    };
    let mut tell = |found: Result<&str, &str>| {
        let text = match found {
            Ok(holder) => format!("{name} stands by; {holder} is the controller, send requests there"),
            Err(error) => format!("{name} stands by; the controller is not known: {error}"),
        };
        tracing::info!("{text}");
        *why.write().unwrap_or_else(PoisonError::into_inner) = text;
    };
    let lease = (name.as_str(), Duration::from_secs_f64(config.store.lease));
    let Some(records) = open_cluster(cluster, &mut is_over, &mut tell)? else { return Ok(None) };
    let leadership = await_lease(&records, lease, &mut is_over, &mut tell);
    drop(serving);
    Ok(leadership.map(|leadership| (records, leadership)))
}

/// Opens the records in a cluster, as soon as it can be reached; none if the daemon is to end before.
fn open_cluster(
    cluster: &EtcdConfig,
    is_over: &mut dyn FnMut() -> bool,
    tell: &mut dyn FnMut(Result<&str, &str>),
) -> Result<Option<Arc<dyn Records>>, String> {
    let mut is_told = false;
    while !is_over() {
        match EtcdRecords::open(cluster) {
            Ok(records) => return Ok(Some(Arc::new(records))),
            Err(error @ (RecordsError::EtcdUnreachable { .. } | RecordsError::Unknown { .. })) => {
                if !is_told {
                    tell(Err(&error.to_string()));
                }
                is_told = true;
            }
            Err(error) => return Err(error.to_string()),
        }
    }
    Ok(None)
}

fn places(config: &Config) -> Result<Vec<Listen>, String> {
    config.listen.iter().map(|place| Listen::parse(place)).collect()
}

/// The lease may be lost: nothing that is under way may go on.
fn lease_lost(why: &str) {
    tracing::error!("{why}; exiting, to stand by after the next start");
    std::process::exit(LEASE_LOST);
}

/// Is the controller until it is asked to end.
fn control(
    path: &Path,
    Checked { config, reach, tokens, receivers, tls }: Checked,
    (state, store): (&State, Store),
    leadership: Option<Leadership>,
    mut signals: Signals,
) -> Result<(), String> {
    let now_s = || SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs());
    let places = places(&config)?;
    // From now on the lease is kept, however long it takes until everything is read.
    let is_over = AtomicBool::new(false);
    let done = thread::scope(|scope| {
        if let Some(leadership) = &leadership {
            scope.spawn(|| leadership.renew(&|| is_over.load(Ordering::SeqCst), &lease_lost));
            scope.spawn(|| leadership.watch(&|| is_over.load(Ordering::SeqCst), &lease_lost));
        }
        let done: Result<(), String> = (|| {
            let manager = Manager::open(Archive::new(store.records), config, Box::new(now_s));
            let manager = manager.map_err(|error| error.to_string())?.with_history(history(state));
            let manager = Arc::new(manager);
            let traps = manager.config().watch.traps.map(trap_socket).transpose()?;
            let configured = Arc::new(Configured {
                reach: RwLock::new(Arc::new(reach)),
                receivers: RwLock::new(Arc::new(receivers)),
                tokens: Arc::new(RwLock::new(tokens)),
                certificate: Arc::default(),
            });
            configured.certificate.replace(tls);
            let progress = Arc::new(Progress::default());
            let shared = Arc::new(Shared {
                manager: Arc::clone(&manager),
                progress: Arc::clone(&progress),
                store: store.file,
                scratch: state.folder.clone(),
                tokens: Arc::clone(&configured.tokens),
                own_uid: geteuid().as_raw(),
                reach: {
                    let configured = Arc::clone(&configured);
                    Box::new(move || configured.reach())
                },
                asking: Arc::new(Semaphore::new(ASKING_MAX)),
            });
            let serving = Serving::open(&places, &configured.certificate, &router(shared))?;
            let rng = Mutex::new(Rng::new(now_s() ^ u64::from(std::process::id())));
            let jitter = || rng.lock().unwrap_or_else(PoisonError::into_inner).unit_f64();
            tracing::info!(listen = ?manager.config().listen, "espalierd {} is ready", env!("CARGO_PKG_VERSION"));
            // Without systemd there is nobody to tell.
            let _ = sd_notify::notify(&[NotifyState::Ready]);
            let handle = signals.handle();
            thread::scope(|scope| {
                scope.spawn(|| beat(&manager));
                scope.spawn(|| deliver(&manager, &|| configured.receivers(), &jitter));
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
                        read_again(path, |checked| configured.replace(checked, &manager));
                    }
                });
                work(&manager, &progress, &|| configured.reach());
                handle.close();
            });
            drop(serving);
            Ok(())
        })();
        is_over.store(true, Ordering::SeqCst);
        done
    });
    if let Some(leadership) = leadership {
        leadership.release();
    }
    done
}

/// The history beside the store; the daemon runs without it as well.
fn history(state: &State) -> Option<History> {
    let opened = History::open(&state.folder.join(HISTORY));
    opened.inspect_err(|error| tracing::warn!("{error}")).ok()
}

/// What the configuration in force names: how switches are reached, the receivers of notifications, and the API's callers and
/// certificate.
struct Configured {
    reach: RwLock<Arc<Reach>>,
    receivers: RwLock<Arc<Vec<Receiver>>>,
    tokens: Arc<RwLock<Tokens>>,
    certificate: Arc<ServerCertificate>,
}

impl Configured {
    fn reach(&self) -> Arc<Reach> {
        Arc::clone(&self.reach.read().unwrap_or_else(PoisonError::into_inner))
    }

    fn receivers(&self) -> Arc<Vec<Receiver>> {
        Arc::clone(&self.receivers.read().unwrap_or_else(PoisonError::into_inner))
    }

    fn replace(&self, checked: Checked, manager: &Manager) {
        *self.reach.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(checked.reach);
        *self.receivers.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(checked.receivers);
        *self.tokens.write().unwrap_or_else(PoisonError::into_inner) = checked.tokens;
        self.certificate.replace(checked.tls);
        manager.configure(checked.config);
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

/// Reads the configuration again and hands it on; a bad one is refused, and the old one stays.
fn read_again(path: &Path, take: impl FnOnce(Checked)) {
    match Checked::read(path) {
        Ok(checked) => {
            take(checked);
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
