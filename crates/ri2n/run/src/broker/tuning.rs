//! What a program has set of a connection as of a socket of TCP, and what that means for its stream.
//!
//! The values live here, not in the program: descriptors are duplicated, inherited and passed on. What a program set before
//! the connection stood is read from its own socket of TCP; of what it never set, the preload library asks the kernel.

use std::{
    io,
    os::fd::{AsRawFd, OwnedFd},
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use ri2n_io::{Patience, Stream};
use ri2n_session::{Answer, NODELAY_KEEPER, SocketOption, Verdict};

use super::Broker;
use crate::{line::Question, near::Owner, saved::SavedOwner};

/// Options that are carried over from a socket of TCP, all of them numbers: what a program may have set before it connects,
/// or on its listener.
const CARRIED: [(i32, i32); 11] = [
    (libc::SOL_SOCKET, libc::SO_KEEPALIVE),
    (libc::IPPROTO_TCP, libc::TCP_NODELAY),
    (libc::IPPROTO_TCP, libc::TCP_KEEPIDLE),
    (libc::IPPROTO_TCP, libc::TCP_KEEPINTVL),
    (libc::IPPROTO_TCP, libc::TCP_KEEPCNT),
    (libc::IPPROTO_TCP, libc::TCP_SYNCNT),
    (libc::IPPROTO_TCP, libc::TCP_LINGER2),
    (libc::IPPROTO_TCP, libc::TCP_USER_TIMEOUT),
    (libc::IPPROTO_TCP, libc::TCP_NOTSENT_LOWAT),
    (libc::IPPROTO_IP, libc::IP_TOS),
    (libc::IPPROTO_IP, libc::IP_TTL),
];
/// How often it is looked whether everything has left.
const DRAIN_LOOK: Duration = Duration::from_millis(1);
/// Looks at which nothing may be on its way between the program's socket pair and the stream.
const DRAIN_LOOKS: u32 = 3;

/// The options of one connection, by level and name: few enough to be looked through.
#[derive(Debug, Default)]
pub(super) struct Options(Vec<((i32, i32), i32)>);

impl Options {
    /// Those of a program's socket of TCP.
    pub(super) fn of(socket: &OwnedFd) -> Self {
        let number = |(level, name): (i32, i32)| {
            let (mut value, mut length) = (0_i32, size_of::<i32>() as libc::socklen_t);
            let (at, room) = (std::ptr::from_mut(&mut value).cast(), &raw mut length);
            // SAFETY: the value has the length that is told.
            let result = unsafe { libc::getsockopt(socket.as_raw_fd(), level, name, at, room) };
            (result == 0).then_some(((level, name), value))
        };
        let mut options = Vec::with_capacity(CARRIED.len() + 1);
        options.extend(CARRIED.into_iter().filter_map(number));
        if let Ok(linger) = socket2::SockRef::from(socket).linger() {
            let seconds = linger.map_or(-1, |linger| i32::try_from(linger.as_secs()).unwrap_or(i32::MAX));
            options.push(((libc::SOL_SOCKET, libc::SO_LINGER), seconds));
        }
        Self(options)
    }

    /// Has the program's end of a stream keep what the kernel can keep there.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub(super) fn keep_in(&self, theirs: &OwnedFd) -> io::Result<()> {
        if self.get(libc::IPPROTO_TCP, libc::TCP_NODELAY).is_none_or(|value| value == 0) {
            return Ok(());
        }
        let (value, length) = (1_i32, size_of::<i32>() as libc::socklen_t);
        let at = std::ptr::from_ref(&value).cast();
        // SAFETY: the value has the length that is told.
        let result = unsafe { libc::setsockopt(theirs.as_raw_fd(), libc::SOL_SOCKET, NODELAY_KEEPER, at, length) };
        if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }

    fn get(&self, level: i32, name: i32) -> Option<i32> {
        self.0.iter().find(|(known, _)| *known == (level, name)).map(|(_, value)| *value)
    }

    fn set(&mut self, option: SocketOption) {
        let name = (option.level, option.name);
        match self.0.iter_mut().find(|(known, _)| *known == name) {
            Some((_, value)) => *value = option.value,
            None => self.0.push((name, option.value)),
        }
    }

    fn seconds(&self, name: i32) -> Duration {
        let value = self.get(libc::IPPROTO_TCP, name).unwrap_or(0);
        Duration::from_secs(u64::try_from(value).unwrap_or(0))
    }

    /// What tcp(7) says of `TCP_USER_TIMEOUT` and of keepalive, for a stream that asks after its peer all the time.
    pub(super) fn patience(&self) -> Patience {
        let timeout = self.get(libc::IPPROTO_TCP, libc::TCP_USER_TIMEOUT).unwrap_or(0);
        let timeout = u64::try_from(timeout).ok().filter(|timeout| *timeout > 0).map(Duration::from_millis);
        let is_kept_alive = self.get(libc::SOL_SOCKET, libc::SO_KEEPALIVE).is_some_and(|value| value != 0);
        let (idle, interval) = (self.seconds(libc::TCP_KEEPIDLE), self.seconds(libc::TCP_KEEPINTVL));
        let count = self.get(libc::IPPROTO_TCP, libc::TCP_KEEPCNT).unwrap_or(0);
        // With a timeout, the number of probes does not count.
        let silent = match timeout {
            Some(timeout) => (idle + interval).max(timeout),
            None => idle + interval * u32::try_from(count).unwrap_or(0),
        };
        Patience { unacknowledged: timeout, silent: is_kept_alive.then_some(silent) }
    }

    fn resets_when_closed(&self) -> bool {
        self.get(libc::SOL_SOCKET, libc::SO_LINGER) == Some(0)
    }
}

/// A connection's options, and its stream once that stands.
#[derive(Default)]
pub(super) struct Tuned {
    options: Options,
    stream: Option<Stream>,
}

/// Keeps a connection's options as long as it lives.
pub(super) struct Tuning {
    broker: Arc<Broker>,
    id: u64,
}

impl Tuning {
    pub(super) fn new(broker: &Arc<Broker>, id: u64, options: Options) -> Self {
        broker.table().tuned.insert(id, Tuned { options, stream: None });
        Self { broker: Arc::clone(broker), id }
    }

    /// Goes on with what the earlier program of this process kept.
    pub(super) fn resume(broker: &Arc<Broker>, saved: SavedOwner) -> Self {
        Self::new(broker, saved.id, Options(saved.options))
    }

    /// The stream stands: what was set so far is in force for it from now on.
    pub(super) fn attach(&self, stream: &Stream) {
        // A stream is never used with the table locked: its worker may be about to ask the table, with the stream locked.
        let patience = self.broker.table().tuned.get_mut(&self.id).map(|tuned| {
            tuned.stream = Some(stream.clone());
            tuned.options.patience()
        });
        if let Some(patience) = patience.filter(|patience| *patience != Patience::default()) {
            stream.set_patience(patience);
        }
    }

    /// Has the program's end keep what the kernel can keep there.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub(super) fn keep_in(&self, theirs: &OwnedFd) -> io::Result<()> {
        self.broker.table().tuned.get(&self.id).map_or(Ok(()), |tuned| tuned.options.keep_in(theirs))
    }
}

impl Drop for Tuning {
    fn drop(&mut self) {
        // What is dropped with the entry may look into the table.
        let tuned = self.broker.table().tuned.remove(&self.id);
        drop(tuned);
    }
}

impl Owner for Tuning {
    fn failed(&self, errno: i32) {
        self.broker.table().note_failure(self.id, errno);
    }

    fn save(&self) -> Option<SavedOwner> {
        let options = self.broker.table().tuned.get(&self.id)?.options.0.clone();
        Some(SavedOwner { id: self.id, options })
    }

    fn resets_when_closed(&self) -> bool {
        self.broker.table().tuned.get(&self.id).is_some_and(|tuned| tuned.options.resets_when_closed())
    }
}

/// A program has set an option.
pub(super) fn set(broker: &Broker, id: u64, option: SocketOption) -> Answer {
    let mut table = broker.table();
    let Some(tuned) = table.tuned.get_mut(&id) else { return Answer::of(Verdict::Plain) };
    tuned.options.set(option);
    let (patience, stream) = (tuned.options.patience(), tuned.stream.clone());
    drop(table);
    if let Some(stream) = stream {
        stream.set_patience(patience);
    }
    Answer::of(Verdict::Ready)
}

/// A program asks for an option. Of `TCP_INFO` the answer is the round-trip time, in microseconds.
pub(super) fn get(broker: &Broker, id: u64, option: SocketOption) -> Answer {
    let table = broker.table();
    let Some(tuned) = table.tuned.get(&id) else { return Answer::of(Verdict::Plain) };
    if (option.level, option.name) == (libc::IPPROTO_TCP, libc::TCP_INFO) {
        let stream = tuned.stream.clone();
        drop(table);
        let rtt = stream.and_then(|stream| stream.status().links.iter().map(|link| link.rtt).min());
        let micros = rtt.map_or(0, |rtt| i32::try_from(rtt.as_micros()).unwrap_or(i32::MAX));
        return Answer { value: micros, ..Answer::of(Verdict::Ready) };
    }
    match tuned.options.get(option.level, option.name) {
        Some(value) => Answer { value, ..Answer::of(Verdict::Ready) },
        None => Answer::of(Verdict::Plain),
    }
}

/// A program waits in `close` until what it wrote has reached the peer.
pub(super) fn drain(broker: &Broker, id: u64, milliseconds: i32, question: &Question) -> io::Result<()> {
    let stream = broker.table().tuned.get(&id).and_then(|tuned| tuned.stream.clone());
    let until = Instant::now() + Duration::from_millis(u64::try_from(milliseconds).unwrap_or(0));
    let mut looks = 0;
    while let Some(stream) = &stream {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() || looks == DRAIN_LOOKS {
            break;
        }
        match stream.flush_wait(Some(left)) {
            Ok(()) => looks += 1,
            Err(_) => break,
        }
        // What the relay has just taken out of the pair is not in the stream yet.
        thread::sleep(DRAIN_LOOK);
    }
    question.answer(&Answer::of(Verdict::Ready), &[])
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use super::*;

    fn options(set: &[(i32, i32, i32)]) -> Options {
        Options(set.iter().map(|(level, name, value)| ((*level, *name), *value)).collect())
    }

    #[test]
    fn patience_is_that_of_tcp() {
        const TCP: i32 = libc::IPPROTO_TCP;
        let seconds = |seconds| Some(Duration::from_secs(seconds));
        let probes = [(TCP, libc::TCP_KEEPIDLE, 60), (TCP, libc::TCP_KEEPINTVL, 10), (TCP, libc::TCP_KEEPCNT, 3)];
        let alive = (libc::SOL_SOCKET, libc::SO_KEEPALIVE, 1);
        let timeout = |milliseconds| (TCP, libc::TCP_USER_TIMEOUT, milliseconds);
        assert_eq!(options(&probes).patience(), Patience::default());
        let kept = [&probes[..], &[alive]].concat();
        assert_eq!(options(&kept).patience(), Patience { unacknowledged: None, silent: seconds(90) });
        let both = [&kept[..], &[timeout(30_000)]].concat();
        assert_eq!(options(&both).patience(), Patience { unacknowledged: seconds(30), silent: seconds(70) });
        let longer = [&kept[..], &[timeout(300_000)]].concat();
        assert_eq!(options(&longer).patience(), Patience { unacknowledged: seconds(300), silent: seconds(300) });
        assert_eq!(options(&[timeout(-1)]).patience(), Patience::default());
    }

    #[test]
    fn what_was_set_before_is_carried_over() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let socket = socket2::SockRef::from(&client);
        socket.set_linger(Some(Duration::from_secs(3))).unwrap();
        socket.set_keepalive(true).unwrap();
        socket.set_tcp_user_timeout(Some(Duration::from_millis(1234))).unwrap();
        let options = Options::of(&client.into());
        assert_eq!(options.patience().unacknowledged, Some(Duration::from_millis(1234)));
        assert!(options.patience().silent.is_some() && !options.resets_when_closed());
        assert_eq!(options.get(libc::SOL_SOCKET, libc::SO_LINGER), Some(3));
        assert_eq!(options.get(libc::IPPROTO_IP, libc::IP_TTL), Some(64));
    }

    #[test]
    fn the_program_s_end_keeps_nodelay() {
        for value in [0, 1] {
            let (_, theirs) = std::os::unix::net::UnixStream::pair().unwrap();
            let theirs = OwnedFd::from(theirs);
            options(&[(libc::IPPROTO_TCP, libc::TCP_NODELAY, value)]).keep_in(&theirs).unwrap();
            let (mut kept, mut length) = (7_i32, 4);
            let (at, room) = (std::ptr::from_mut(&mut kept).cast(), &raw mut length);
            // SAFETY: the value has the length that is told.
            let result = unsafe { libc::getsockopt(theirs.as_raw_fd(), libc::SOL_SOCKET, NODELAY_KEEPER, at, room) };
            assert_eq!((result, kept), (0, value));
        }
    }
}
