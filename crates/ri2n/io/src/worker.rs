//! The threads that hold all connections of a process: as many as processors, each with its share of the connections.
//!
//! A worker has one UDP socket an address family, and waits for it, for the descriptors that its connections' duties are about,
//! and for the next timer. A connection stays with its worker, whose port its peer sends to, so packets need no passing on.
//!
//! ```text
//!             ┌ UDP socket ─ dispatch ─▶ connections ┐
//!  epoll ─────┤ descriptors of duties ───────────────┼─▶ queue ─▶ look: timers, duty, sendmsg
//!             │ listeners ─ handshakes               │
//!             └ timers, calls of other threads ──────┘
//! ```

use crate::{
    dispatch::{Kind, stretches},
    duty::Seen,
    freeze,
    ids::{IdMap, IdSet},
    interfaces::{forget_local_addresses, local_addresses},
    member::{Look, Member},
    netlink::Carriers,
    paths::Paths,
    ports::Ports,
    scheduling::request_short_slices,
    status::ConnectionStatus,
    sys::{self, Epoll, EventFd, Inbox, MESSAGES_FEW, Socket, Watch},
    timers::Timers,
};
use ri2n::{Arrival, Time, handshake, wire};
use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet, VecDeque},
    fmt, io,
    os::fd::{AsRawFd, BorrowedFd},
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    thread,
    time::Duration,
};

/// Most workers of a process.
const WORKERS_MAX: usize = 8;
/// Members from which on a message that comes alone is no sign that no other waits.
const CROWD: usize = 4;
/// How late timers may be while there is more to receive.
const TIMERS_LATE_MAX: Duration = Duration::from_millis(20);
/// How long a thread sleeps at most while other threads call it, and how long after the last call that lasts: what they want at a
/// later time need not wake it.
const SLEEP_BETWEEN_CALLS_MAX: Duration = Duration::from_millis(25);
const CALLS_LAST: Duration = Duration::from_secs(1);
/// Looks at members before more is received: what waits in the system's buffer is to be seen soon, however many have work.
const LOOKS_MAX: usize = 32;
/// Receive calls for one socket before others have their turn.
const RECEIVES_MAX: usize = 4;

/// Numbers in the set of descriptors: what it is in the upper half, which one in the lower.
const WAKE: u64 = 0;
const CARRIERS: u64 = 1 << 32;
const SOCKET: u64 = 2 << 32;
const LISTENER: u64 = 3 << 32;
const NEAR: u64 = 4 << 32;
const WHAT: u64 = !0 << 32;

/// One of the threads, as the others see it.
#[derive(Debug)]
pub(crate) struct Worker {
    epoll: Epoll,
    wake: EventFd,
    table: Mutex<Table>,
    /// When the thread looks next by itself, in nanoseconds.
    next: AtomicU64,
}

#[derive(Default)]
struct Table {
    members: IdMap<Entry>,
    /// Identifiers of which members are being made.
    reserved: IdSet,
    /// Identifiers at the peer and here, for what the network quotes.
    by_peer: BTreeSet<(u32, u32)>,
    sockets: Vec<(Ports, Arc<Socket>)>,
    listeners: BTreeMap<u32, Serve>,
    /// Whom other threads want looked at, and when.
    calls: Vec<(u32, Time)>,
}

/// What has an identifier.
struct Entry {
    member: Arc<dyn Member>,
    /// A connection's identifier at its peer; an attempt to connect has none.
    peer_id: Option<u32>,
}

/// Answers what arrived at a listener's socket.
type Serve = Arc<dyn Fn() + Send + Sync>;

impl fmt::Debug for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Table").field("members", &self.members.keys()).finish_non_exhaustive()
    }
}

/// Every connection of this process, oldest first.
#[must_use]
pub fn connections() -> Vec<ConnectionStatus> {
    let members: Vec<Arc<dyn Member>> = started().flat_map(|worker| worker.members()).collect();
    let now = sys::now();
    let mut all: Vec<ConnectionStatus> = members.iter().filter_map(|member| member.status(now)).collect();
    all.sort_by_key(|status| Reverse(status.age));
    all
}

/// The worker whose turn it is to have another connection.
pub(crate) fn any() -> io::Result<&'static Arc<Worker>> {
    static TURN: AtomicUsize = AtomicUsize::new(0);
    numbered(TURN.fetch_add(1, Ordering::Relaxed))
}

/// The worker of this number, modulo the number of workers.
pub(crate) fn numbered(number: usize) -> io::Result<&'static Arc<Worker>> {
    let slots = slots();
    let slot = &slots[number % slots.len()];
    let worker = slot.get_or_init(|| Worker::start().map_err(|error| error.raw_os_error().unwrap_or(libc::EIO)));
    worker.as_ref().map_err(|code| io::Error::from_raw_os_error(*code))
}

type Slot = OnceLock<Result<Arc<Worker>, i32>>;

fn slots() -> &'static [Slot] {
    static SLOTS: OnceLock<Box<[Slot]>> = OnceLock::new();
    SLOTS.get_or_init(|| {
        let count = thread::available_parallelism().map_or(1, usize::from).min(WORKERS_MAX);
        (0..count).map(|_| Slot::new()).collect()
    })
}

/// The workers that run.
pub(crate) fn started() -> impl Iterator<Item = &'static Arc<Worker>> {
    slots().iter().filter_map(|slot| slot.get()?.as_ref().ok())
}

/// Wakes all workers. Returns how many there are.
pub(crate) fn wake_all() -> usize {
    started().inspect(|worker| worker.wake.set()).count()
}

impl Worker {
    fn start() -> io::Result<Arc<Self>> {
        let worker = Arc::new(Self {
            epoll: Epoll::new()?,
            wake: EventFd::new()?,
            table: Mutex::default(),
            next: AtomicU64::new(0),
        });
        worker.epoll.add(worker.wake.fd().as_raw_fd(), WAKE, Watch::Readable)?;
        // Without carrier events dead links are found by their silence.
        let carriers = Carriers::new().ok();
        if let Some(carriers) = &carriers {
            worker.epoll.add(carriers.fd().as_raw_fd(), CARRIERS, Watch::Readable)?;
        }
        let thread = worker.clone();
        let turns = Turns { carriers, ..Turns::default() };
        thread::Builder::new().name("ri2n".to_owned()).spawn(move || thread.run(turns))?;
        Ok(worker)
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The worker's socket of these ports.
    pub(crate) fn socket(&self, ports: &Ports) -> io::Result<Arc<Socket>> {
        let mut table = self.table();
        if let Some((_, socket)) = table.sockets.iter().find(|(known, _)| known == ports) {
            return Ok(socket.clone());
        }
        let socket = Arc::new(ports.bind()?);
        self.watch_socket(&socket, table.sockets.len())?;
        table.sockets.push((ports.clone(), socket.clone()));
        Ok(socket)
    }

    /// Its sockets, in their order.
    pub(crate) fn sockets(&self) -> Vec<(Ports, Arc<Socket>)> {
        self.table().sockets.clone()
    }

    /// Adds a socket of the earlier program of this process without receiving from it. Returns its number.
    pub(crate) fn adopt(&self, ports: Ports, socket: Socket) -> (usize, Arc<Socket>) {
        let socket = Arc::new(socket);
        let mut table = self.table();
        table.sockets.push((ports, socket.clone()));
        (table.sockets.len() - 1, socket)
    }

    /// Starts receiving from an adopted socket.
    pub(crate) fn receive_from(&self, number: usize) -> io::Result<()> {
        let socket = self.table().sockets.get(number).map(|(_, socket)| socket.clone());
        socket.map_or(Ok(()), |socket| self.watch_socket(&socket, number))
    }

    fn watch_socket(&self, socket: &Socket, number: usize) -> io::Result<()> {
        self.epoll.add(socket.fd().as_raw_fd(), SOCKET | number as u64, Watch::Readable)
    }

    /// Random bytes whose identifier nothing here has; it is kept until something is added that has it, or it is given back.
    pub(crate) fn seed(&self) -> io::Result<[u8; 32]> {
        loop {
            let mut seed = [0; 32];
            getrandom::fill(&mut seed).map_err(io::Error::other)?;
            let id = handshake::identifier(&seed);
            let mut table = self.table();
            if !table.members.contains_key(&id) && table.reserved.insert(id) {
                return Ok(seed);
            }
        }
    }

    /// Takes a connection in, to be looked at no later than this.
    pub(crate) fn add(&self, id: u32, peer_id: u32, member: Arc<dyn Member>, next: Time) {
        let mut table = self.table();
        table.reserved.remove(&id);
        table.by_peer.insert((peer_id, id));
        table.members.insert(id, Entry { member, peer_id: Some(peer_id) });
        drop(table);
        self.look_at(id, next);
    }

    /// Has answers to these identifiers come to an attempt to connect.
    pub(crate) fn add_attempt<M: Member + 'static>(&self, ids: &[u32], attempt: &Arc<M>) {
        let mut table = self.table();
        for id in ids {
            table.reserved.remove(id);
            table.members.insert(*id, Entry { member: attempt.clone(), peer_id: None });
        }
    }

    /// Ends an attempt to connect. A connection that has one of its identifiers stays.
    pub(crate) fn remove_attempt(&self, ids: &[u32]) {
        let mut table = self.table();
        for id in ids {
            if table.members.get(id).is_some_and(|entry| entry.peer_id.is_none()) {
                table.members.remove(id);
            }
        }
    }

    /// Has the thread call `serve` whenever a listener's socket is readable. `id` is no other listener's.
    pub(crate) fn add_listener(&self, id: u32, socket: BorrowedFd<'_>, serve: Serve) -> io::Result<()> {
        self.table().listeners.insert(id, serve);
        self.go_on_listening(id, socket)
    }

    /// Stops watching a listener's socket.
    pub(crate) fn pause_listener(&self, socket: BorrowedFd<'_>) {
        // One that is not watched is what is wanted.
        let _ = self.epoll.remove(socket.as_raw_fd());
    }

    /// Watches it again, unless the listener has been removed.
    pub(crate) fn go_on_listening(&self, id: u32, socket: BorrowedFd<'_>) -> io::Result<()> {
        if !self.table().listeners.contains_key(&id) {
            return Ok(());
        }
        self.epoll.add(socket.as_raw_fd(), LISTENER | u64::from(id), Watch::Readable)
    }

    /// Forgets a listener.
    pub(crate) fn remove_listener(&self, id: u32, socket: BorrowedFd<'_>) {
        let removed = self.table().listeners.remove(&id);
        if removed.is_some() {
            let _ = self.epoll.remove(socket.as_raw_fd());
        }
    }

    /// Watches a descriptor for the duty of a connection, until it is closed.
    pub(crate) fn watch(&self, near: BorrowedFd<'_>, id: u32) -> io::Result<()> {
        self.epoll.add(near.as_raw_fd(), NEAR | u64::from(id), Watch::Arrivals)
    }

    /// Has a watched descriptor reported as well when it becomes writable, from now on.
    pub(crate) fn watch_room(&self, near: BorrowedFd<'_>, id: u32) -> io::Result<()> {
        self.epoll.change(near.as_raw_fd(), NEAR | u64::from(id), Watch::ArrivalsAndRoom)
    }

    /// Has the thread look at a member no later than this.
    pub(crate) fn look_at(&self, id: u32, at: Time) {
        let mut table = self.table();
        table.calls.push((id, at));
        let next = self.next.load(Ordering::Relaxed);
        if at.as_nanos() < next {
            // It is awake soon: nobody else needs to say so.
            self.next.store(0, Ordering::Relaxed);
        }
        drop(table);
        if next > 0 && at.as_nanos() < next {
            self.wake.set();
        }
    }

    fn run(&self, mut turns: Turns) {
        request_short_slices();
        let mut events = Vec::new();
        loop {
            let timeout = self.prepare_to_sleep(&mut turns);
            events.clear();
            self.epoll.wait(timeout, &mut events);
            self.next.store(0, Ordering::Relaxed);
            freeze::park_if_frozen();
            let mut has_more = false;
            for (number, seen) in &events {
                let which = *number as u32;
                match number & WHAT {
                    WAKE => self.wake.clear(),
                    CARRIERS => self.take_carriers(&mut turns),
                    SOCKET => has_more |= self.receive(which as usize, &mut turns),
                    NEAR => turns.queue(which, *seen),
                    _ => {
                        let serve = self.table().listeners.get(&which).cloned();
                        if let Some(serve) = serve {
                            serve();
                        }
                    }
                }
            }
            self.take_calls(&mut turns);
            let now = sys::now();
            // A timer may be due only since the answer that it waits for is still to be received.
            if !has_more || now.since(turns.timers_at) >= TIMERS_LATE_MAX {
                turns.timers_at = now;
                while let Some(id) = turns.timers.take_due(now) {
                    turns.queue(id, Seen::default());
                }
            }
            turns.paths.set_count(self.table().members.len());
            for _ in 0..turns.queue.len().min(LOOKS_MAX) {
                self.look(&mut turns);
            }
            if turns.paths.take_news() {
                let all: Vec<u32> = self.table().members.keys().copied().collect();
                all.into_iter().for_each(|id| turns.queue(id, Seen::default()));
            }
        }
    }

    /// How long the thread may sleep; from now on calls wake it.
    fn prepare_to_sleep(&self, turns: &mut Turns) -> Option<Duration> {
        self.take_calls(turns);
        if !turns.queue.is_empty() {
            return Some(Duration::ZERO);
        }
        let now = sys::now();
        let mut next = turns.timers.next();
        if now < turns.calls_until {
            let soon = now + SLEEP_BETWEEN_CALLS_MAX;
            next = Some(next.map_or(soon, |next| next.min(soon)));
        }
        let table = self.table();
        if !table.calls.is_empty() {
            return Some(Duration::ZERO);
        }
        self.next.store(next.unwrap_or(Time::NEVER).as_nanos().max(1), Ordering::Relaxed);
        drop(table);
        next.map(|next| next.since(now))
    }

    fn take_calls(&self, turns: &mut Turns) {
        let calls = std::mem::take(&mut self.table().calls);
        if !calls.is_empty() {
            turns.calls_until = sys::now() + CALLS_LAST;
        }
        for (id, at) in calls {
            if at == Time::ZERO { turns.queue(id, Seen::default()) } else { turns.timers.bring_forward(id, at) }
        }
    }

    fn member(&self, id: u32) -> Option<Arc<dyn Member>> {
        self.table().members.get(&id).map(|entry| entry.member.clone())
    }

    pub(crate) fn members(&self) -> Vec<Arc<dyn Member>> {
        self.table().members.values().map(|entry| entry.member.clone()).collect()
    }

    /// Looks at the first of those that something happened to.
    fn look(&self, turns: &mut Turns) {
        let Some(id) = turns.queue.pop_front() else { return };
        let seen = turns.queued.remove(&id).unwrap_or_default();
        let Some(member) = self.member(id) else { return };
        match member.look(sys::now(), seen, &mut turns.paths) {
            Look::At(at) => turns.timers.put(id, at),
            Look::Again => turns.queue(id, Seen::default()),
            Look::Wait => {}
            Look::Over => {
                turns.timers.remove(id);
                turns.paths.note_backlog(id, false);
                let mut table = self.table();
                if let Some(peer_id) = table.members.remove(&id).and_then(|entry| entry.peer_id) {
                    table.by_peer.remove(&(peer_id, id));
                }
            }
        }
    }

    /// Receives what there is. Returns whether there may be more.
    fn receive(&self, number: usize, turns: &mut Turns) -> bool {
        let (socket, is_crowded) = {
            let table = self.table();
            let Some((_, socket)) = table.sockets.get(number) else { return false };
            (socket.clone(), table.members.len() >= CROWD)
        };
        sys::with_inbox(|inbox| {
            let (mut nothing, mut refused, mut has_more) = (true, false, true);
            for _ in 0..RECEIVES_MAX {
                let most = if is_crowded { socket.expected().max(MESSAGES_FEW) } else { socket.expected() };
                match socket.receive(inbox, most) {
                    Ok(count) => {
                        nothing = false;
                        socket.expect(inbox);
                        self.dispatch(inbox, &socket, turns);
                        if count < most || most == 1 {
                            has_more = false;
                            break;
                        }
                    }
                    // The error comes before packets that arrived earlier, which may be the peer's last word.
                    Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => refused = true,
                    Err(_) => {
                        has_more = false;
                        break;
                    }
                }
            }
            // Woken without a packet: what the network said of an earlier one keeps the socket ready until it is read.
            if nothing || refused {
                while let Some(quoted) = socket.take_unreachable(inbox) {
                    self.take_unreachable(&quoted, turns);
                }
            }
            has_more
        })
    }

    fn dispatch(&self, inbox: &Inbox, socket: &Socket, turns: &mut Turns) {
        // The clock of the day first: what passes between the looks makes arrivals later, and never a round trip shorter.
        let day_ns = if socket.is_stamped() { sys::day_ns() } else { 0 };
        let now = sys::now();
        for message in inbox.messages() {
            let arrival = Arrival { at: now - message.age(day_ns), from: message.from };
            for stretch in stretches(message.bytes, message.segment) {
                let Some(member) = self.member(stretch.id) else { continue };
                if member.take_in(now, arrival, stretch.kind, stretch.bytes, message.segment) {
                    turns.queue(stretch.id, Seen::default());
                }
            }
        }
    }

    /// Nobody is where a datagram of ours went, says the network, and quotes it.
    fn take_unreachable(&self, quoted: &[u8], turns: &mut Turns) {
        if let Some(token) = wire::handshake::client_token(quoted) {
            if let Some(member) = self.member(token as u32) {
                member.take_unreachable(Kind::Handshake, quoted);
                turns.queue(token as u32, Seen::default());
            }
            return;
        }
        let Some(peer_id) = wire::packet::connection_id(quoted) else { return };
        let ids: Vec<u32> = self.table().by_peer.range((peer_id, 0)..=(peer_id, u32::MAX)).map(|(_, id)| *id).collect();
        for id in ids {
            if let Some(member) = self.member(id) {
                member.take_unreachable(Kind::Packets, quoted);
                turns.queue(id, Seen::default());
            }
        }
    }

    fn take_carriers(&self, turns: &mut Turns) {
        let events = turns.carriers.as_ref().map(Carriers::poll_events).unwrap_or_default();
        let addresses = events.has_new_addresses.then(|| {
            forget_local_addresses();
            // Without them nothing is known to have changed.
            local_addresses().ok()
        });
        let addresses = addresses.flatten();
        let all: Vec<(u32, Arc<dyn Member>)> =
            self.table().members.iter().map(|(id, entry)| (*id, entry.member.clone())).collect();
        for (id, member) in all {
            member.take_network(sys::now(), &events.carriers, addresses.as_deref());
            turns.queue(id, Seen::default());
        }
    }
}

/// The thread's own notes.
#[derive(Default)]
struct Turns {
    carriers: Option<Carriers>,
    timers: Timers,
    /// When timers were looked at.
    timers_at: Time,
    /// Until when other threads are expected to call.
    calls_until: Time,
    paths: Paths,
    /// Members that something happened to, each once,
    queue: VecDeque<u32>,
    /// and what their descriptors have become ready for.
    queued: IdMap<Seen>,
}

impl Turns {
    fn queue(&mut self, id: u32, seen: Seen) {
        let known = self.queued.entry(id).or_insert_with(|| {
            self.queue.push_back(id);
            Seen::default()
        });
        known.readable |= seen.readable;
        known.writable |= seen.writable;
        known.ended |= seen.ended;
    }
}
