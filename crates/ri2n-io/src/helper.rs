//! The one thread of a process that looks after connections whose callers are elsewhere.
//!
//! For each connection it is in one of three moods. While callers come and go, it only looks every two milliseconds
//! (eight, if they call all the time; 24, if they only exchange messages) whether a timer is due: to be handed the connection
//! and to hand it back would cost more than a packet, and a look while they are at it costs a round trip. When a caller sleeps
//! in a call, that caller receives. When nobody called for a tick, the helper watches the socket itself.
//!
//! Handshakes of listeners and carrier events are its work too.

use crate::{
    listener::Acceptor,
    netlink::Carriers,
    shared::{HELPER_TICK, HELPER_TICK_BUSY, Receiver, Shared},
    sys::{self, Epoll, EventFd, Watch},
};
use ri2n::Time;
use std::{
    collections::BTreeMap,
    io,
    os::fd::AsRawFd,
    sync::{
        Arc, Mutex, OnceLock, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    thread,
    time::Duration,
};

/// How long a connection that nobody refers to any more stays, once all is said, to answer stragglers.
const LINGER: Duration = Duration::from_millis(500);
/// How long it may go on trying to say all.
const LINGER_MAX: Duration = Duration::from_secs(60);
/// Calls between two looks that show a caller who is at it all the time.
const CALLS_BUSY: u64 = 64;
/// Number of the wake-up descriptor in the set.
const WAKE: u64 = 0;
/// Number of the carriers' socket.
const CARRIERS: u64 = 1;

static HELPER: OnceLock<Result<Arc<Helper>, i32>> = OnceLock::new();
static NEXT_ID: AtomicU64 = AtomicU64::new(CARRIERS + 1);

/// What the thread and others share.
#[derive(Debug)]
pub(crate) struct Helper {
    epoll: Epoll,
    wake: EventFd,
    connections: Mutex<BTreeMap<u64, Arc<Shared>>>,
    acceptors: Mutex<BTreeMap<u64, Arc<Acceptor>>>,
}

/// The thread's own notes on a connection.
#[derive(Debug, Default)]
struct Notes {
    calls: u64,
    is_watching: bool,
    drained_at: Option<Time>,
    orphaned_at: Option<Time>,
}

/// A number for a socket in the helper's set.
pub(crate) fn next_id() -> u64 {
    NEXT_ID.fetch_add(1, Ordering::Relaxed)
}

/// The helper of this process, started at the first call.
pub(crate) fn get() -> io::Result<&'static Arc<Helper>> {
    let helper = HELPER.get_or_init(|| start().map_err(|error| error.raw_os_error().unwrap_or(libc::EIO)));
    helper.as_ref().map_err(|code| io::Error::from_raw_os_error(*code))
}

/// Every connection of this process.
pub(crate) fn connections() -> Vec<Arc<Shared>> {
    match HELPER.get() {
        Some(Ok(helper)) => helper.connections().values().cloned().collect(),
        _ => Vec::new(),
    }
}

fn start() -> io::Result<Arc<Helper>> {
    let helper = Arc::new(Helper {
        epoll: Epoll::new()?,
        wake: EventFd::new()?,
        connections: Mutex::default(),
        acceptors: Mutex::default(),
    });
    helper.epoll.add(helper.wake.fd().as_raw_fd(), WAKE, Watch::Always)?;
    // Without carrier events dead links are found by their silence.
    let carriers = Carriers::new().ok();
    if let Some(carriers) = &carriers {
        helper.epoll.add(carriers.fd().as_raw_fd(), CARRIERS, Watch::Always)?;
    }
    let thread = helper.clone();
    thread::Builder::new().name("ri2n".to_owned()).spawn(move || thread.run(carriers.as_ref()))?;
    Ok(helper)
}

impl Helper {
    fn connections(&self) -> std::sync::MutexGuard<'_, BTreeMap<u64, Arc<Shared>>> {
        self.connections.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn add(&self, shared: &Arc<Shared>) -> io::Result<()> {
        self.epoll.add(shared.socket.fd().as_raw_fd(), shared.id, Watch::Not)?;
        self.connections().insert(shared.id, shared.clone());
        self.wake();
        Ok(())
    }

    pub(crate) fn add_acceptor(&self, acceptor: &Arc<Acceptor>) -> io::Result<()> {
        self.acceptors.lock().unwrap_or_else(PoisonError::into_inner).insert(acceptor.id, acceptor.clone());
        self.epoll.add(acceptor.socket.fd().as_raw_fd(), acceptor.id, Watch::Always)
    }

    pub(crate) fn remove_acceptor(&self, acceptor: &Acceptor) {
        let _ = self.epoll.remove(acceptor.socket.fd().as_raw_fd());
        self.acceptors.lock().unwrap_or_else(PoisonError::into_inner).remove(&acceptor.id);
    }

    pub(crate) fn wake(&self) {
        self.wake.set();
    }

    fn run(&self, carriers: Option<&Carriers>) {
        sys::prefer_short_turns();
        let mut notes: BTreeMap<u64, Notes> = BTreeMap::new();
        let mut ready = Vec::new();
        loop {
            let due = self.connections().values().map(|shared| shared.helper_due.load(Ordering::Relaxed)).min();
            let timeout = due.map(|due| Time::from_nanos(due).since(sys::now()));
            ready.clear();
            self.epoll.wait(timeout, |id| ready.push(id));
            for id in &ready {
                match *id {
                    WAKE => self.wake.clear(),
                    CARRIERS => self.pass_on_carriers(carriers),
                    id => self.serve(id, notes.entry(id).or_default()),
                }
            }
            let now = sys::now();
            let all: Vec<Arc<Shared>> = self.connections().values().cloned().collect();
            for shared in all {
                if shared.helper_due.load(Ordering::Relaxed) <= now.as_nanos() {
                    self.look(&shared, notes.entry(shared.id).or_default(), now);
                    if self.is_over(&shared, notes.entry(shared.id).or_default(), now) {
                        let _ = self.epoll.remove(shared.socket.fd().as_raw_fd());
                        self.connections().remove(&shared.id);
                        notes.remove(&shared.id);
                    }
                }
            }
        }
    }

    fn pass_on_carriers(&self, carriers: Option<&Carriers>) {
        let events = carriers.map(Carriers::poll_events).unwrap_or_default();
        let all: Vec<Arc<Shared>> = self.connections().values().cloned().collect();
        for (interface, carrier) in events {
            for shared in &all {
                shared.handle_carrier(&mut shared.lock(), interface, carrier);
            }
        }
    }

    /// A socket that the helper watches is readable.
    fn serve(&self, id: u64, notes: &mut Notes) {
        let acceptor = self.acceptors.lock().unwrap_or_else(PoisonError::into_inner).get(&id).cloned();
        if let Some(acceptor) = acceptor {
            acceptor.serve();
            return;
        }
        let Some(shared) = self.connections().get(&id).cloned() else { return };
        let mut state = shared.lock();
        notes.is_watching = false;
        if state.receiver == Receiver::None {
            shared.serve(&mut state);
            self.watch(&shared, notes);
            let due = state.connection.poll_timeout().unwrap_or(Time::NEVER);
            shared.helper_due.store(due.as_nanos(), Ordering::Relaxed);
        } else {
            // A caller came back: its packets are its own.
            shared.helper_due.store((sys::now() + HELPER_TICK).as_nanos(), Ordering::Relaxed);
        }
    }

    fn watch(&self, shared: &Shared, notes: &mut Notes) {
        if !notes.is_watching {
            notes.is_watching = self.epoll.change(shared.socket.fd().as_raw_fd(), shared.id, Watch::Once).is_ok();
        }
    }

    /// The time set for a look has come.
    fn look(&self, shared: &Shared, notes: &mut Notes, now: Time) {
        let soon = now + HELPER_TICK;
        let Some(mut state) = shared.try_lock() else {
            // A caller is at it this moment.
            shared.helper_due.store((now + HELPER_TICK_BUSY).as_nanos(), Ordering::Relaxed);
            return;
        };
        if !shared.tick(&mut state, now) {
            shared.helper_due.store(soon.as_nanos(), Ordering::Relaxed);
            return;
        }
        let due = state.connection.poll_timeout().unwrap_or(Time::NEVER);
        let calls = shared.calls.load(Ordering::Relaxed);
        let came_and_went = calls - std::mem::replace(&mut notes.calls, calls);
        let next = match state.receiver {
            Receiver::Watching => Time::NEVER,
            // They are back within milliseconds, and see to timers then.
            Receiver::Receiving => now + state.helper_tick_busy(),
            Receiver::None if came_and_went >= CALLS_BUSY && !Shared::is_polled(&state) => {
                now + state.helper_tick_busy()
            }
            Receiver::None if came_and_went > 0 && !Shared::is_polled(&state) => soon,
            Receiver::None => {
                self.watch(shared, notes);
                due
            }
        };
        let next = if shared.handles.load(Ordering::Relaxed) == 0 { next.min(now + LINGER / 4) } else { next };
        shared.helper_due.store(next.as_nanos(), Ordering::Relaxed);
        if !matches!(state.receiver, Receiver::None) && state.connection.is_readable() {
            shared.wake_callers(&state);
        }
    }

    /// Whether nobody needs the connection any more.
    fn is_over(&self, shared: &Shared, notes: &mut Notes, now: Time) -> bool {
        if shared.handles.load(Ordering::Relaxed) > 0 {
            return false;
        }
        let mut state = shared.lock();
        let orphaned_at = *notes.orphaned_at.get_or_insert(now);
        if now.since(orphaned_at) > LINGER_MAX {
            state.connection.abort();
            shared.transmit(&mut state, now);
            return true;
        }
        if !state.connection.is_drained() {
            return false;
        }
        now.since(*notes.drained_at.get_or_insert(now)) > LINGER
    }
}
