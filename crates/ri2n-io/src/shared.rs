//! What callers and the helper thread share of a connection, and how they take turns.
//!
//! Whoever has something to do locks the state. A caller that must wait becomes the *receiver*, if nobody is: it sleeps in
//! the receive call itself, without the lock. Further callers wait on a condition, and one of them takes over when the
//! receiver leaves. The helper receives only when no caller does.
//!
//! ```text
//!  caller A   lock · send · unlock · recvmmsg ········· lock · handle · send · unlock · return
//!  caller B              lock · wait on `changed` ·································· notified
//! ```

use crate::{
    helper,
    status::Role,
    sys::{self, Block, EventFd, Inbox, MESSAGES_FEW, RECEIVE_WAIT, Segment, Socket},
};
use ri2n::{Arrival, Batch, Carrier, Connection, Health, Target, Time};
use std::{
    io,
    net::{IpAddr, SocketAddr},
    sync::{
        Arc, Condvar, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    time::Duration,
};

/// Batches sent between two looks at the clock.
const BATCHES_A_LOOK: u32 = 16;
/// Receive calls between two sends, while there is more.
const RECEIVES_MAX: usize = 4;
/// How long to wait for a full socket before the batch counts as lost.
const SEND_PATIENCE: Duration = Duration::from_millis(5);
/// How late the helper may be for a connection whose callers come and go.
pub(crate) const HELPER_TICK: Duration = Duration::from_millis(2);
/// The same while callers are at it all the time: they see to timers themselves.
pub(crate) const HELPER_TICK_BUSY: Duration = Duration::from_millis(8);
/// The same in a conversation, where nothing waits for an acknowledgement to be sent, and a look would be among the slowest of a
/// hundred round trips. Half of what a peer takes for silence.
const HELPER_TICK_TALK: Duration = Duration::from_millis(24);
/// How often timers are looked at while messages arrive.
const TIMERS_EVERY: Duration = Duration::from_micros(250);

/// A connection with its socket.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) socket: Socket,
    pub(crate) role: Role,
    pub(crate) local: SocketAddr,
    pub(crate) peer: SocketAddr,
    /// Where else a client reaches its server.
    pub(crate) peer_addresses: Vec<IpAddr>,
    state: Mutex<State>,
    changed: Condvar,
    /// Wakes a receiver that watches timers.
    wake: EventFd,
    /// Number at the helper.
    pub(crate) id: u64,
    /// When the helper looks next, in nanoseconds.
    pub(crate) helper_due: AtomicU64,
    /// Calls that began so far: whether callers come and go.
    pub(crate) calls: AtomicU64,
    /// Streams that refer to this connection.
    pub(crate) handles: AtomicUsize,
}

/// Who is connected.
pub(crate) struct Ends {
    pub(crate) local: SocketAddr,
    pub(crate) peer: SocketAddr,
    /// Where else a client reaches its server.
    pub(crate) others: Vec<IpAddr>,
}

/// What the lock guards.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) connection: Connection,
    batch: Batch,
    segment: Segment,
    /// The time at the last look at the clock.
    clock: Time,
    /// When timers were looked at.
    timers_at: Time,
    /// Whether messages tell when they arrived, which nobody needs to know of a conversation in single datagrams.
    is_stamped: bool,
    /// Messages to ask for at once: one, unless they come in bursts.
    most: usize,
    /// Whether a caller receives, and how.
    pub(crate) receiver: Receiver,
    waiters: u32,
    readable: Option<ReadyFd>,
    writable: Option<ReadyFd>,
    pub(crate) read_timeout: Option<Duration>,
    pub(crate) write_timeout: Option<Duration>,
}

/// Who receives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Receiver {
    /// Nobody.
    None,
    /// A caller, in the receive call.
    Receiving,
    /// A caller that watches timers as well.
    Watching,
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

impl State {
    /// The time now, kept for who needs no better.
    pub(crate) fn look_at_clock(&mut self) -> Time {
        self.clock = sys::now();
        self.clock
    }

    /// How late the helper may be while callers are at it all the time.
    pub(crate) fn helper_tick_busy(&self) -> Duration {
        if self.is_stamped { HELPER_TICK_BUSY } else { HELPER_TICK_TALK }
    }

    /// The time at the last look.
    pub(crate) fn clock(&self) -> Time {
        self.clock
    }
}

impl Shared {
    pub(crate) fn new(socket: Socket, role: Role, ends: Ends, connection: Connection) -> io::Result<Arc<Self>> {
        let state = State {
            connection,
            batch: Batch::default(),
            segment: Segment::BySystem,
            clock: sys::now(),
            timers_at: Time::ZERO,
            is_stamped: false,
            most: 1,
            receiver: Receiver::None,
            waiters: 0,
            readable: None,
            writable: None,
            read_timeout: None,
            write_timeout: None,
        };
        let shared = Arc::new(Self {
            socket,
            role,
            local: ends.local,
            peer: ends.peer,
            peer_addresses: ends.others,
            state: Mutex::new(state),
            changed: Condvar::new(),
            wake: EventFd::new()?,
            id: helper::next_id(),
            helper_due: AtomicU64::new(0),
            calls: AtomicU64::new(0),
            handles: AtomicUsize::new(1),
        });
        helper::get()?.add(&shared)?;
        Ok(shared)
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn try_lock(&self) -> Option<MutexGuard<'_, State>> {
        self.state.try_lock().ok()
    }

    /// Begins a call.
    pub(crate) fn enter(&self) -> MutexGuard<'_, State> {
        self.calls.fetch_add(1, Ordering::Relaxed);
        self.lock()
    }

    /// Ends a call: sends what is due, wakes whom it concerns, and sees that the helper looks soon.
    pub(crate) fn leave(&self, mut state: MutexGuard<'_, State>) {
        self.transmit_if_wanted(&mut state);
        self.leave_quietly(state);
    }

    /// The same for a call that looked at the clock just now.
    pub(crate) fn leave_at_once(&self, mut state: MutexGuard<'_, State>) {
        if state.connection.wants_transmit() {
            let now = state.clock;
            self.transmit(&mut state, now);
        }
        self.leave_quietly(state);
    }

    fn leave_quietly(&self, mut state: MutexGuard<'_, State>) {
        self.announce(&mut state);
        let (clock, tick) = (state.clock, state.helper_tick_busy());
        drop(state);
        self.call_helper(clock, tick);
    }

    /// Has the helper look within a tick, unless it looks soon anyway.
    fn call_helper(&self, now: Time, tick_busy: Duration) {
        if self.helper_due.load(Ordering::Relaxed) > (now + tick_busy + HELPER_TICK).as_nanos() {
            let soon = sys::now() + HELPER_TICK;
            self.helper_due.store(soon.as_nanos(), Ordering::Relaxed);
            if let Ok(helper) = helper::get() {
                helper.wake();
            }
        }
    }

    /// Tells waiters and pollers how things are.
    pub(crate) fn announce(&self, state: &mut State) {
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

    /// Looks at the clock and sends, if there may be something to send.
    fn transmit_if_wanted(&self, state: &mut State) {
        if state.connection.wants_transmit() {
            let now = state.look_at_clock();
            self.transmit(state, now);
        }
    }

    /// Sends all that the connection wants to send now.
    pub(crate) fn transmit(&self, state: &mut State, mut now: Time) {
        let mut count = 0;
        while state.connection.poll_transmit(now, &mut state.batch) {
            if state.batch.ends.len() > 1 {
                self.stamp_arrivals(state);
            }
            self.send(state, now);
            count += 1;
            if count % BATCHES_A_LOOK == 0 {
                now = sys::now();
            }
        }
    }

    fn send(&self, state: &mut State, now: Time) {
        for _ in 0..3 {
            let Err(error) = self.socket.send_batch(&state.connection, &state.batch, state.segment) else { return };
            match error.raw_os_error() {
                Some(libc::EAGAIN | libc::ENOBUFS) => self.socket.wait_writable(SEND_PATIENCE),
                // What the network said about an earlier datagram; this one was not sent yet.
                Some(libc::ECONNREFUSED) => self.take_errors(state),
                Some(libc::EIO | libc::EINVAL | libc::EOPNOTSUPP)
                    if state.segment == Segment::BySystem && state.batch.ends.len() > 1 =>
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
                    state.connection.handle_carrier(now, state.batch.link, Carrier::Down);
                    return;
                }
                _ => return,
            }
        }
    }

    /// Takes in what the last receive call brought. Returns the time.
    fn take_in(state: &mut State, inbox: &Inbox, target: &mut Target<'_>) -> Time {
        // The clock of the day first: what passes between the looks makes arrivals later, and never a round trip shorter.
        let day_ns = if state.is_stamped { sys::day_ns() } else { 0 };
        let now = state.look_at_clock();
        for message in inbox.messages() {
            let arrival = Arrival { at: now - message.age(day_ns), from: message.from };
            state.connection.handle_datagrams(now, arrival, message.bytes, message.segment, target);
        }
        now
    }

    /// Has messages tell from now on when they arrived: a long transfer is steered by it.
    fn stamp_arrivals(&self, state: &mut State) {
        if !state.is_stamped {
            // Without stamps a late turn looks like a slow link, which is only slower.
            let _ = self.socket.stamp_arrivals();
            state.is_stamped = true;
        }
    }

    fn take_errors(&self, state: &mut State) {
        sys::with_inbox(|inbox| {
            while let Some(quoted) = self.socket.take_unreachable(inbox) {
                state.connection.handle_unreachable(&quoted);
            }
        });
    }

    /// Does what is due, after something arrived or time passed.
    fn settle(&self, state: &mut State, now: Time) {
        (state.clock, state.timers_at) = (now, now);
        if state.connection.poll_timeout().is_some_and(|at| now >= at) {
            state.connection.handle_timeout(now);
        }
        self.transmit(state, now);
        self.announce(state);
    }

    /// Receives what there is without waiting. For the helper.
    pub(crate) fn serve(&self, state: &mut State) {
        sys::with_inbox(|inbox| {
            let (mut nothing, mut refused) = (true, false);
            for _ in 0..RECEIVES_MAX {
                match self.socket.receive(inbox, Block::Never, state.most.max(MESSAGES_FEW)) {
                    Ok(count) if count > 0 => {
                        nothing = false;
                        state.most = inbox.most_expected();
                        Self::take_in(state, inbox, &mut Target::default());
                        self.transmit(state, sys::now());
                    }
                    // The error comes before packets that arrived earlier, which may be the peer's last word.
                    Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => refused = true,
                    Ok(_) | Err(_) => break,
                }
            }
            // Woken without a packet: what the network said of an earlier one keeps the socket ready until it is read.
            if nothing || refused {
                while let Some(quoted) = self.socket.take_unreachable(inbox) {
                    state.connection.handle_unreachable(&quoted);
                }
            }
        });
        self.settle(state, sys::now());
    }

    /// Waits until something happened, at most until `until`. Returns early now and then; the caller looks again.
    pub(crate) fn wait<'a>(&'a self, state: MutexGuard<'a, State>, until: Option<Time>) -> MutexGuard<'a, State> {
        self.wait_into(state, until, &mut Target::default())
    }

    /// The same for a reader, in whose memory bytes may be that count as read.
    pub(crate) fn wait_into<'a>(
        &'a self,
        mut state: MutexGuard<'a, State>,
        until: Option<Time>,
        target: &mut Target<'_>,
    ) -> MutexGuard<'a, State> {
        self.transmit_if_wanted(&mut state);
        if state.receiver != Receiver::None {
            state.waiters += 1;
            let timeout = until.map_or(Duration::from_secs(3600), |until| until.since(sys::now()));
            let (mut state, _) = self.changed.wait_timeout(state, timeout).unwrap_or_else(PoisonError::into_inner);
            state.waiters -= 1;
            return state;
        }
        let is_short = until.is_some_and(|until| until.since(sys::now()) < RECEIVE_WAIT);
        let (mut state, received) = if is_short { (state, false) } else { self.receive_blocking(state, target) };
        if !received {
            state = self.watch(state, until);
        }
        if state.waiters > 0 {
            self.changed.notify_one();
        }
        state
    }

    /// Sleeps in the receive call, for no longer than timers may be late. Returns whether something arrived.
    fn receive_blocking<'a>(
        &'a self,
        mut state: MutexGuard<'a, State>,
        target: &mut Target<'_>,
    ) -> (MutexGuard<'a, State>, bool) {
        state.receiver = Receiver::Receiving;
        let (most, clock, tick) = (state.most, state.clock, state.helper_tick_busy());
        drop(state);
        self.call_helper(clock, tick);
        let (mut state, error) = sys::with_inbox(|inbox| {
            let result = self.socket.receive(inbox, Block::Wait, most);
            let mut state = self.lock();
            state.receiver = Receiver::None;
            let now = if result.is_ok() {
                state.most = inbox.most_expected();
                if !state.is_stamped && inbox.is_burst() {
                    self.stamp_arrivals(&mut state);
                }
                Self::take_in(&mut state, inbox, target)
            } else {
                state.look_at_clock()
            };
            if now.since(state.timers_at) >= TIMERS_EVERY {
                self.settle(&mut state, now);
            } else {
                self.transmit(&mut state, now);
                self.announce(&mut state);
            }
            (state, result.err())
        });
        if error.as_ref().is_some_and(|error| error.kind() == io::ErrorKind::ConnectionRefused) {
            self.serve(&mut state);
        }
        (state, error.is_none())
    }

    /// Sleeps until a message, a timer, or a wake-up.
    fn watch<'a>(&'a self, mut state: MutexGuard<'a, State>, until: Option<Time>) -> MutexGuard<'a, State> {
        if state.connection.is_readable() {
            return state;
        }
        state.receiver = Receiver::Watching;
        let now = sys::now();
        let due = state.connection.poll_timeout().unwrap_or(Time::NEVER).min(until.unwrap_or(Time::NEVER));
        drop(state);
        let [_, woken] = sys::wait_readable([self.socket.fd(), self.wake.fd()], Some(due.since(now)));
        if woken {
            self.wake.clear();
        }
        let mut state = self.lock();
        state.receiver = Receiver::None;
        self.serve(&mut state);
        state
    }

    /// Has whoever sleeps look again.
    pub(crate) fn wake_callers(&self, state: &State) {
        self.changed.notify_all();
        if state.receiver == Receiver::Watching {
            self.wake.set();
        }
    }

    /// An eventfd that is readable while the stream is. From now on the helper receives at once.
    pub(crate) fn ready_fd(&self, which: Readiness) -> io::Result<Arc<EventFd>> {
        let mut state = self.lock();
        let state = &mut *state;
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
        self.announce(state);
        self.helper_due.store(0, Ordering::Relaxed);
        helper::get()?.wake();
        Ok(fd)
    }

    /// Whether someone polls instead of calling.
    pub(crate) fn is_polled(state: &State) -> bool {
        state.readable.is_some() || state.writable.is_some()
    }

    /// Passes on what a port's carrier did to the links on it.
    pub(crate) fn handle_carrier(&self, state: &mut State, interface: u32, carrier: Carrier) {
        let now = sys::now();
        for link in state.connection.links() {
            let is_news = (carrier == Carrier::Down) != (link.health == Health::Down);
            if link.path.interface == interface && is_news {
                state.connection.handle_carrier(now, link.id, carrier);
            }
        }
        self.settle(state, now);
    }

    /// Does what timers ask for. For the helper. Returns whether it was done: not if a timer may only be due since a caller
    /// that something arrived for has not had its turn yet.
    pub(crate) fn tick(&self, state: &mut State, now: Time) -> bool {
        if state.connection.poll_timeout().is_none_or(|at| now < at) || !self.socket.has_unread() {
            self.settle(state, now);
            return true;
        }
        if state.receiver == Receiver::None {
            self.serve(state);
        }
        state.receiver == Receiver::None
    }
}
