//! What callers and a worker share of a connection.
//!
//! The worker receives, and does what timers ask for. A caller that has something to say says it itself, under the
//! lock; one that must wait sleeps until the worker says that something changed.
//!
//! ```text
//!  caller   lock · write · sendmsg · unlock                lock · read · unlock
//!  worker                              recvmmsg · lock · handle · duty · sendmsg · notify · unlock
//! ```

use crate::{
    descriptors::Descriptors,
    dispatch::Kind,
    duty::{Duty, End, SavedDuty, Seen, Then},
    entropy,
    interfaces::{LocalAddress, local_addresses},
    links::Reach,
    member::{Look, Member},
    paths::Paths,
    status::{ConnectionStatus, Role},
    sys::{self, EventFd, Segment, Socket},
    worker::Worker,
};
use ri2n::{Arrival, Batch, Carrier, Connection, Health, StreamState, Time};
use serde::{Deserialize, Serialize};
use serde_bytes::ByteBuf;
use std::{
    cell::RefCell,
    collections::BTreeSet,
    fmt, io,
    net::{IpAddr, SocketAddr},
    sync::{
        Arc, Condvar, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    time::Duration,
};

/// Batches sent between two looks at the clock.
const BATCHES_A_LOOK: u32 = 16;
/// How late timers may be that a caller's own doing set: the worker is awake soon in most cases, without being woken.
const CALLER_SLACK: Duration = Duration::from_millis(2);
/// How long a connection that nobody refers to any more stays, once all is said, to answer stragglers: at least. What
/// is over by then ends together every [`LINGER_STEP`], in one turn of the worker.
const LINGER: Duration = Duration::from_millis(500);
const LINGER_STEP: Duration = Duration::from_millis(50);
/// How long it may go on trying to say all.
const LINGER_MAX: Duration = Duration::from_secs(60);

thread_local! {
    static BATCH: RefCell<Batch> = RefCell::default();
}

/// What is called once, on the worker's thread.
pub(crate) type OnceDone = Box<dyn FnOnce() + Send>;

/// A connection.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) worker: Arc<Worker>,
    pub(crate) socket: Arc<Socket>,
    pub(crate) role: Role,
    pub(crate) local: SocketAddr,
    pub(crate) peer: SocketAddr,
    /// Where else a client reaches its server.
    pub(crate) peer_addresses: Vec<IpAddr>,
    /// Its identifier at the worker.
    id: u32,
    state: Mutex<Guarded>,
    changed: Condvar,
    /// When the worker looks next, in nanoseconds.
    due: AtomicU64,
    /// Streams that refer to this connection.
    pub(crate) handles: AtomicUsize,
}

/// A connection saved for a handover.
#[derive(Serialize, Deserialize)]
pub(crate) struct Record<C, R> {
    /// The number of its socket.
    pub(crate) socket: usize,
    role: Role,
    local: SocketAddr,
    peer: SocketAddr,
    peer_addresses: Vec<IpAddr>,
    connection: C,
    reach: R,
    segment: Segment,
    /// Whether it had a handle, and its saved duty.
    is_referred_to: bool,
    duty: Option<ByteBuf>,
    orphaned_at: Option<Time>,
    drained_at: Option<Time>,
}

/// Who is connected.
pub(crate) struct Ends {
    pub(crate) local: SocketAddr,
    pub(crate) peer: SocketAddr,
    /// Where else a client reaches its server.
    pub(crate) others: Vec<IpAddr>,
    /// Which links there may be.
    pub(crate) reach: Reach,
}

/// Whether a connection may send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sending {
    AtOnce,
    /// Its peer does not know yet that it is accepted, and would drop what comes first.
    Held,
}

/// What the lock guards.
pub(crate) struct Guarded {
    pub(crate) connection: Connection,
    reach: Reach,
    segment: Segment,
    sending: Sending,
    waiters: u32,
    readable: Option<ReadyFd>,
    writable: Option<ReadyFd>,
    pub(crate) read_timeout: Option<Duration>,
    pub(crate) write_timeout: Option<Duration>,
    /// What the worker does besides,
    duty: Option<Box<dyn Duty>>,
    /// whether it is told when its descriptor has room,
    watches_room: bool,
    /// and what it does once.
    awaited: Option<Awaited>,
    /// When it became nobody's, and when all had been said, whoever referred to it then.
    orphaned_at: Option<Time>,
    drained_at: Option<Time>,
}

impl fmt::Debug for Guarded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("State").field("connection", &self.connection).finish_non_exhaustive()
    }
}

/// What the worker does once enough can be read, or the time has come.
struct Awaited {
    least: usize,
    until: Time,
    then: OnceDone,
}

impl Awaited {
    fn is_over(&self, connection: &Connection, now: Time) -> bool {
        let (head, tail) = connection.peek();
        let is_ended = connection.has_received_all() || matches!(connection.state(), StreamState::Closed(_));
        head.len() + tail.len() >= self.least || is_ended || now >= self.until
    }
}

/// An eventfd that is readable while something holds.
#[derive(Debug)]
struct ReadyFd {
    fd: Arc<EventFd>,
    is_set: bool,
}

impl ReadyFd {
    fn show(&mut self, ready: bool) {
        if ready != self.is_set {
            self.is_set = ready;
            if ready { self.fd.set() } else { self.fd.clear() }
        }
    }
}

/// Which readiness to watch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Readiness {
    Read,
    Write,
}

impl Shared {
    pub(crate) fn new(
        worker: &Arc<Worker>,
        socket: &Arc<Socket>,
        role: Role,
        ends: Ends,
        connection: Connection,
        sending: Sending,
    ) -> Arc<Self> {
        let (id, peer_id) = (connection.local_id(), connection.peer_id());
        let next = connection.poll_timeout().unwrap_or(Time::ZERO);
        let state = Guarded {
            connection,
            reach: ends.reach,
            segment: Segment::BySystem,
            sending,
            waiters: 0,
            readable: None,
            writable: None,
            read_timeout: None,
            write_timeout: None,
            duty: None,
            watches_room: false,
            awaited: None,
            orphaned_at: None,
            drained_at: None,
        };
        let shared = Arc::new(Self {
            worker: worker.clone(),
            socket: socket.clone(),
            role,
            local: ends.local,
            peer: ends.peer,
            peer_addresses: ends.others,
            id,
            state: Mutex::new(state),
            changed: Condvar::new(),
            due: AtomicU64::new(next.as_nanos()),
            handles: AtomicUsize::new(1),
        });
        worker.add(id, peer_id, shared.clone(), next);
        shared
    }

    /// Resumes a saved connection. Returns it with its saved duty if it had a handle.
    pub(crate) fn resume(
        worker: &Arc<Worker>,
        socket: &Arc<Socket>,
        record: Record<Connection, Reach>,
    ) -> Option<(Arc<Self>, Option<Vec<u8>>)> {
        let ends = Ends { local: record.local, peer: record.peer, others: record.peer_addresses, reach: record.reach };
        // Its worker may look as soon as it has it: it is held by this handle until all is as it was.
        let shared = Self::new(worker, socket, record.role, ends, record.connection, Sending::AtOnce);
        let mut state = shared.lock();
        state.segment = record.segment;
        (state.orphaned_at, state.drained_at) = (record.orphaned_at, record.drained_at);
        drop(state);
        if !record.is_referred_to {
            shared.handles.store(0, Ordering::Release);
            shared.call_worker();
            return None;
        }
        Some((shared, record.duty.map(ByteBuf::into_vec)))
    }

    pub(crate) fn id(&self) -> u32 {
        self.id
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Guarded> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends a call: sends what is due, wakes whom it concerns, and sees that the worker looks in time.
    pub(crate) fn leave(&self, mut state: MutexGuard<'_, Guarded>, now: Time) {
        if state.connection.wants_transmit() {
            self.transmit(&mut state, now);
        }
        self.announce(&mut state);
        let next = state.connection.poll_timeout().unwrap_or(now);
        drop(state);
        let due = Time::from_nanos(self.due.load(Ordering::Relaxed));
        if next + CALLER_SLACK < due {
            self.due.store(next.as_nanos(), Ordering::Relaxed);
            self.worker.look_at(self.id, next);
        }
    }

    /// Sends what is written already, if anything is.
    pub(crate) fn send_waiting(&self, now: Time) {
        let state = self.lock();
        if !state.connection.is_flushed() {
            self.leave(state, now);
        }
    }

    /// Sends what was held back.
    pub(crate) fn release(&self) {
        let mut state = self.lock();
        state.sending = Sending::AtOnce;
        self.leave(state, sys::now());
    }

    /// Has the worker look at once.
    pub(crate) fn call_worker(&self) {
        self.worker.look_at(self.id, Time::ZERO);
    }

    /// Tells waiters and pollers how things are.
    fn announce(&self, state: &mut Guarded) {
        if state.waiters > 0 {
            self.changed.notify_all();
        }
        if let Some(ready) = &mut state.readable {
            ready.show(state.connection.is_readable());
        }
        if let Some(ready) = &mut state.writable {
            ready.show(state.connection.is_writable());
        }
    }

    /// Sends all that the connection wants to send now.
    fn transmit(&self, state: &mut Guarded, mut now: Time) {
        if state.sending == Sending::Held {
            return;
        }
        BATCH.with_borrow_mut(|batch| {
            let mut count = 0;
            while state.connection.poll_transmit(now, batch) {
                if batch.ends.len() > 1 {
                    self.socket.stamp_arrivals();
                }
                self.send(state, batch, now);
                count += 1;
                if count % BATCHES_A_LOOK == 0 {
                    now = sys::now();
                }
            }
        });
    }

    fn send(&self, state: &mut Guarded, batch: &Batch, now: Time) {
        let socket = entropy::socket(batch.path.entropy, batch.path.remote.ip()).unwrap_or(&self.socket);
        for _ in 0..3 {
            let Err(error) = socket.send_batch(&state.connection, batch, state.segment) else { return };
            match error.raw_os_error() {
                Some(libc::EAGAIN | libc::ENOBUFS) => {
                    state.connection.handle_refused(now, batch);
                    return;
                }
                // What the network said about an earlier datagram; this one was not sent yet. The worker reads what it said.
                Some(libc::ECONNREFUSED) => {}
                Some(libc::EIO | libc::EINVAL | libc::EOPNOTSUPP)
                    if state.segment == Segment::BySystem && batch.ends.len() > 1 =>
                {
                    state.segment = Segment::ByUs;
                }
                Some(libc::EHOSTUNREACH) => {
                    // A neighbour that does not answer: silence, which the protocol notices by itself.
                    return;
                }
                Some(
                    libc::ENETUNREACH
                    | libc::ENETDOWN
                    | libc::ENODEV
                    | libc::ENXIO
                    | libc::EADDRNOTAVAIL
                    | libc::EINVAL,
                ) => {
                    state.connection.handle_carrier(now, batch.link, Carrier::Refused);
                    return;
                }
                _ => return,
            }
        }
    }

    /// How the connection and its links are.
    pub(crate) fn status_at(&self, now: Time) -> ConnectionStatus {
        ConnectionStatus::of(&self.lock().connection, self.role, self.local, self.peer, now)
    }

    /// Has links follow the addresses that the peer offers, if it offers any.
    fn take_offers(state: &mut Guarded, now: Time) {
        if state.connection.has_offers() {
            let Guarded { connection, reach, .. } = state;
            // Without our addresses there is no link to add.
            let all = local_addresses().unwrap_or_default();
            reach.follow(now, connection, &all);
        }
    }

    fn run_duty(&self, state: &mut Guarded, now: Time, seen: Seen) -> (Then, Option<Box<dyn Duty>>) {
        let Some(duty) = &mut state.duty else { return (Then::Wait, None) };
        let then = duty.run(&mut End::new(&mut state.connection, now), seen);
        if !state.watches_room && then != Then::Done && duty.waits_for_room() {
            // A descriptor that is not watched any more has ended, of which the duty was told.
            state.watches_room = self.worker.watch_room(duty.near(), self.id).is_ok();
        }
        let done = if then == Then::Done { state.duty.take() } else { None };
        (then, done)
    }

    /// What becomes of a connection that nobody refers to any more.
    fn orphan_look(&self, state: &mut Guarded, now: Time) -> Option<Look> {
        if self.handles.load(Ordering::Acquire) > 0 {
            return None;
        }
        let orphaned_at = *state.orphaned_at.get_or_insert(now);
        if state.connection.is_drained() {
            let until = (*state.drained_at.get_or_insert(now) + LINGER).rounded_up(LINGER_STEP);
            return Some(if now >= until { Look::Over } else { Look::At(until) });
        }
        let until = orphaned_at + LINGER_MAX;
        if now >= until {
            state.connection.abort();
            self.transmit(state, now);
            return Some(Look::Over);
        }
        Some(Look::At(state.connection.poll_timeout().unwrap_or(until).min(until)))
    }

    /// The last handle is gone: what was written is delivered, what arrives is dropped.
    pub(crate) fn abandon(&self) {
        let now = sys::now();
        let mut state = self.lock();
        state.connection.shutdown_write();
        state.connection.shutdown_read(now);
        self.leave(state, now);
        self.call_worker();
    }

    /// Leaves the stream to its worker: from now on `duty` is all that uses it, beside whoever holds a clone. It first runs once
    /// something happens, at once if something has happened already.
    pub(crate) fn give(&self, duty: Box<dyn Duty>) -> io::Result<()> {
        let mut state = self.lock();
        self.worker.watch(duty.near(), self.id)?;
        state.duty = Some(duty);
        self.handles.fetch_add(1, Ordering::Relaxed);
        let has_happened = state.connection.is_readable() || state.connection.state() != StreamState::Open;
        drop(state);
        if has_happened {
            self.call_worker();
        }
        Ok(())
    }

    /// Has the worker call `then` once `least` bytes can be read, the stream has ended, or at `until`. If that is so now, it is
    /// called here.
    pub(crate) fn when_readable(&self, least: usize, until: Time, then: OnceDone) {
        let mut state = self.lock();
        let awaited = Awaited { least, until, then };
        if awaited.is_over(&state.connection, sys::now()) {
            let before = state.awaited.take();
            drop(state);
            drop(before);
            return (awaited.then)();
        }
        let before = state.awaited.replace(awaited);
        drop(state);
        drop(before);
        self.worker.look_at(self.id, until);
    }

    /// Waits until something happened, at most until `until`. Returns early now and then; the caller looks again.
    pub(crate) fn wait<'a>(
        &'a self,
        mut state: MutexGuard<'a, Guarded>,
        until: Option<Time>,
    ) -> MutexGuard<'a, Guarded> {
        state.waiters += 1;
        let mut state = match until {
            None => self.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
            Some(until) => {
                let timeout = until.since(sys::now());
                self.changed.wait_timeout(state, timeout).unwrap_or_else(PoisonError::into_inner).0
            }
        };
        state.waiters -= 1;
        state
    }

    /// An eventfd that is readable while the stream is.
    pub(crate) fn ready_fd(&self, which: Readiness) -> io::Result<Arc<EventFd>> {
        let mut state = self.lock();
        let slot = match which {
            Readiness::Read => &mut state.readable,
            Readiness::Write => &mut state.writable,
        };
        let fd = match slot {
            Some(ready) => ready.fd.clone(),
            None => {
                let fd = Arc::new(EventFd::new()?);
                *slot = Some(ReadyFd { fd: fd.clone(), is_set: false });
                fd
            }
        };
        self.announce(&mut state);
        Ok(fd)
    }
}

impl Member for Shared {
    fn look(&self, now: Time, seen: Seen, paths: &mut Paths) -> Look {
        let mut state = self.lock();
        state.connection.meet_neighbours(now, paths.neighbours(), |path, report| paths.meet(path, report));
        Self::take_offers(&mut state, now);
        if state.connection.poll_timeout().is_some_and(|at| now >= at) {
            state.connection.handle_timeout(now);
        }
        let (then, done) = self.run_duty(&mut state, now, seen);
        let is_over = state.awaited.as_ref().is_some_and(|awaited| awaited.is_over(&state.connection, now));
        let awaited = if is_over { state.awaited.take() } else { None };
        if state.connection.wants_transmit() {
            self.transmit(&mut state, now);
        }
        paths.note_backlog(self.id, state.connection.is_backlogged());
        self.announce(&mut state);
        if state.drained_at.is_none() && state.connection.is_drained() {
            state.drained_at = Some(now);
        }
        let over = self.orphan_look(&mut state, now);
        let next = match (then, over) {
            (_, Some(look)) => look,
            (Then::Again, None) => Look::Again,
            (then, None) => {
                let due = state.connection.poll_timeout().unwrap_or(Time::NEVER);
                let due = state.awaited.as_ref().map_or(due, |awaited| due.min(awaited.until));
                Look::At(if let Then::At(at) = then { due.min(at) } else { due })
            }
        };
        if let Look::At(at) = next {
            self.due.store(at.as_nanos(), Ordering::Relaxed);
        }
        drop(state);
        if let Some(awaited) = awaited {
            // It may use the stream.
            (awaited.then)();
        }
        if let Some(duty) = done {
            // Others' locks may be taken by what is dropped here.
            drop(duty);
            if self.handles.fetch_sub(1, Ordering::AcqRel) == 1 {
                self.abandon();
            }
            return Look::Again;
        }
        next
    }

    fn take_in(&self, now: Time, arrival: Arrival, kind: Kind, bytes: &[u8], segment: usize) -> bool {
        if kind != Kind::Packets {
            return false;
        }
        self.lock().connection.handle_datagrams(now, arrival, bytes, segment, &mut ri2n::Target::default());
        true
    }

    fn take_unreachable(&self, kind: Kind, quoted: &[u8]) {
        if kind == Kind::Packets {
            self.lock().connection.handle_unreachable(quoted);
        }
    }

    fn take_network(&self, now: Time, carriers: &[(u32, Carrier)], addresses: Option<&[LocalAddress]>) {
        let Guarded { connection, reach, .. } = &mut *self.lock();
        for (interface, carrier) in carriers {
            for link in connection.links() {
                // A port that refused what was sent may turn out to have no carrier.
                let is_news = *carrier == Carrier::Down || link.health == Health::Down;
                if link.path.interface == *interface && is_news {
                    connection.handle_carrier(now, link.id, *carrier);
                }
            }
        }
        if let Some(all) = addresses {
            reach.follow(now, connection, all);
        }
    }

    fn status(&self, now: Time) -> Option<ConnectionStatus> {
        Some(self.status_at(now))
    }

    fn is_held(&self) -> bool {
        self.handles.load(Ordering::Acquire) > 0 && self.lock().duty.is_none()
    }

    fn save(
        &self,
        place: &dyn Fn(&Arc<Socket>) -> Option<usize>,
        descriptors: &mut Descriptors,
        also: &BTreeSet<u32>,
    ) -> Option<Vec<u8>> {
        let mut state = self.lock();
        let (goes_on, is_referred_to, duty) = match state.duty.as_ref().map(|duty| duty.save(descriptors)) {
            Some(SavedDuty::Bytes(bytes)) => (true, true, Some(ByteBuf::from(bytes))),
            Some(SavedDuty::Over) => (true, false, None),
            Some(SavedDuty::Impossible) => (false, true, None),
            None if self.handles.load(Ordering::Acquire) == 0 => (true, false, None),
            None => (also.contains(&self.id), true, None),
        };
        let (true, Some(socket)) = (goes_on, place(&self.socket)) else {
            state.connection.abort();
            self.transmit(&mut state, sys::now());
            return None;
        };
        let record = Record {
            socket,
            role: self.role,
            local: self.local,
            peer: self.peer,
            peer_addresses: self.peer_addresses.clone(),
            connection: &state.connection,
            reach: &state.reach,
            segment: state.segment,
            is_referred_to,
            duty,
            orphaned_at: state.orphaned_at,
            drained_at: state.drained_at,
        };
        // Nothing in it can fail to be written to memory.
        rmp_serde::to_vec_named(&record).ok()
    }
}
