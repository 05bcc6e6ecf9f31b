//! Carries bytes between a program's end and plain TCP, where the broker has connected to a peer without RI2N on behalf of a
//! program: two threads for each such connection.
//!
//! All of them can be parked, each between two system calls, so that the bytes that they have read and not yet written can be handed over.

use std::{
    io,
    net::{Shutdown, TcpStream},
    os::fd::{AsFd, AsRawFd, BorrowedFd},
    sync::{
        Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError, Weak,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::Duration,
};

use nix::{
    errno::Errno,
    poll::{PollFd, PollFlags, PollTimeout, poll},
    sys::{
        eventfd::{EfdFlags, EventFd},
        socket::{MsgFlags, recv, send},
    },
};
use ri2n_io::{CloseReason, Descriptors};

use crate::{
    near::Near,
    saved::{Kept, SavedPlain, SavedWay},
};

/// Bytes carried at once.
const BUFFER_BYTES: usize = 64 << 10;
/// Stack of a thread, bytes, apart from the buffer.
const STACK_BYTES: usize = 128 << 10;

/// Starts to carry; `kept` lives as long as it goes on.
///
/// # Errors
/// If no thread can be had.
pub(crate) fn start(near: Near, far: TcpStream, kept: impl Kept) -> io::Result<()> {
    resume(near, far, kept, [SavedWay::default(), SavedWay::default()])
}

/// Goes on with what the earlier program of this process carried, up and down.
///
/// # Errors
/// If no thread can be had.
pub(crate) fn resume(near: Near, far: TcpStream, kept: impl Kept, ways: [SavedWay; 2]) -> io::Result<()> {
    let [up, down] = ways.map(Mutex::new);
    let relay = Arc::new(Relay { near, far, kept: Box::new(kept), up, down });
    {
        let mut relays = lock(&RELAYS);
        relays.retain(|known| known.strong_count() > 0);
        relays.push(Arc::downgrade(&relay));
    }
    for toward in [Toward::Peer, Toward::Program] {
        if lock(relay.way(toward)).is_through {
            continue;
        }
        let carrying = Arc::clone(&relay);
        FREEZE.change(|threads| threads.running += 1);
        let thread = thread::Builder::new().name("ri2n-plain".into()).stack_size(STACK_BYTES);
        if let Err(error) = thread.spawn(move || carrying.run(toward)) {
            FREEZE.change(|threads| threads.running -= 1);
            reset(&relay.far);
            relay.near.close();
            return Err(error);
        }
    }
    Ok(())
}

struct Relay {
    near: Near,
    far: TcpStream,
    kept: Box<dyn Kept>,
    up: Mutex<SavedWay>,
    down: Mutex<SavedWay>,
}

/// Where bytes go.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Toward {
    Peer,
    Program,
}

/// How one direction ended.
enum Ended {
    Finished,
    SourceFailed(Errno),
    SinkFailed(Errno),
}

impl Relay {
    fn way(&self, toward: Toward) -> &Mutex<SavedWay> {
        match toward {
            Toward::Peer => &self.up,
            Toward::Program => &self.down,
        }
    }

    fn run(&self, toward: Toward) {
        let mut buffer = vec![0; BUFFER_BYTES];
        let ended = loop {
            let mut way = lock(self.way(toward));
            if let Some(ended) = self.carry(toward, &mut way, &mut buffer) {
                way.is_through = true;
                break ended;
            }
            drop(way);
            FREEZE.park();
        };
        match (toward, ended) {
            (Toward::Peer, Ended::Finished) if self.near.resets_when_closed() => reset(&self.far),
            (Toward::Peer, Ended::Finished) => {
                // It may have ended by itself.
                let _ = self.far.shutdown(Shutdown::Write);
            }
            (Toward::Program, Ended::Finished) => self.near.finish(),
            // The program closed with data unread.
            (Toward::Peer, Ended::SourceFailed(_)) | (Toward::Program, Ended::SinkFailed(_)) => reset(&self.far),
            (Toward::Peer, Ended::SinkFailed(error)) | (Toward::Program, Ended::SourceFailed(error)) => {
                self.near.fail(reason(error));
            }
        }
        FREEZE.change(|threads| threads.running -= 1);
    }

    /// Carries until the direction ends; `None` if its thread is to park.
    fn carry(&self, toward: Toward, way: &mut SavedWay, buffer: &mut [u8]) -> Option<Ended> {
        let (from, to) = match toward {
            Toward::Peer => (self.near.descriptor(), self.far.as_fd()),
            Toward::Program => (self.far.as_fd(), self.near.descriptor()),
        };
        loop {
            while !way.rest.is_empty() {
                match send(to.as_raw_fd(), &way.rest, MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_NOSIGNAL) {
                    Ok(count) => drop(way.rest.drain(..count)),
                    Err(Errno::EAGAIN) => FREEZE.wait(to, PollFlags::POLLOUT)?,
                    Err(Errno::EINTR) => {}
                    Err(error) => return Some(Ended::SinkFailed(error)),
                }
            }
            FREEZE.wait(from, PollFlags::POLLIN)?;
            match recv(from.as_raw_fd(), buffer, MsgFlags::MSG_DONTWAIT) {
                Ok(0) => return Some(Ended::Finished),
                Ok(count) => way.rest.extend_from_slice(&buffer[..count]),
                Err(Errno::EAGAIN | Errno::EINTR) => {}
                Err(error) => return Some(Ended::SourceFailed(error)),
            }
        }
    }

    fn save(&self, descriptors: &mut Descriptors) -> Option<SavedPlain> {
        let program = self.near.save(&*self.kept, descriptors)?;
        let far = descriptors.keep(self.far.as_fd()).ok()?;
        let way = |way: &Mutex<SavedWay>| {
            let way = lock(way);
            SavedWay { rest: way.rest.clone(), is_through: way.is_through }
        };
        Some(SavedPlain { program, far, up: way(&self.up), down: way(&self.down) })
    }
}

/// Those that are being carried.
static RELAYS: Mutex<Vec<Weak<Relay>>> = Mutex::new(Vec::new());
static FREEZE: Freeze = Freeze {
    threads: Mutex::new(Threads { running: 0, parked: 0 }),
    changed: Condvar::new(),
    is_wanted: AtomicBool::new(false),
    wake: OnceLock::new(),
};

/// The threads that carry are parked until this is dropped.
pub(crate) struct Frozen(());

/// Parks all threads that carry.
///
/// # Errors
/// If the process has no descriptor left.
pub(crate) fn freeze() -> io::Result<Frozen> {
    FREEZE.begin()?;
    Ok(Frozen(()))
}

impl Frozen {
    /// Saves what was being carried. Connections that cannot be saved are left out.
    pub(crate) fn save(&self, descriptors: &mut Descriptors) -> Vec<SavedPlain> {
        let relays: Vec<Arc<Relay>> = lock(&RELAYS).iter().filter_map(Weak::upgrade).collect();
        relays.iter().filter_map(|relay| relay.save(descriptors)).collect()
    }
}

impl Drop for Frozen {
    fn drop(&mut self) {
        FREEZE.end();
    }
}

#[derive(Default)]
struct Threads {
    running: usize,
    parked: usize,
}

struct Freeze {
    threads: Mutex<Threads>,
    changed: Condvar,
    is_wanted: AtomicBool,
    /// Readable while it is wanted.
    wake: OnceLock<EventFd>,
}

impl Freeze {
    fn change(&self, change: impl FnOnce(&mut Threads)) {
        change(&mut lock(&self.threads));
        self.changed.notify_all();
    }

    fn wake(&self) -> io::Result<&EventFd> {
        match self.wake.get() {
            Some(wake) => Ok(wake),
            None => {
                let made = EventFd::from_flags(EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK)?;
                Ok(self.wake.get_or_init(|| made))
            }
        }
    }

    fn begin(&self) -> io::Result<()> {
        let wake = self.wake()?;
        self.is_wanted.store(true, Ordering::SeqCst);
        wake.write(1)?;
        let stand = |threads: &mut Threads| threads.parked < threads.running;
        drop(self.changed.wait_while(lock(&self.threads), stand).unwrap_or_else(PoisonError::into_inner));
        Ok(())
    }

    fn end(&self) {
        let _threads = lock(&self.threads);
        self.is_wanted.store(false, Ordering::SeqCst);
        if let Some(wake) = self.wake.get() {
            // It is readable, so this does not wait.
            let _ = wake.read();
        }
        self.changed.notify_all();
    }

    /// Waits until a descriptor is ready; `None` if its thread is to park.
    fn wait(&self, descriptor: BorrowedFd<'_>, events: PollFlags) -> Option<()> {
        // Without its eventfd nothing can be frozen.
        let Ok(wake) = self.wake() else { return Some(()) };
        let mut polled = [PollFd::new(descriptor, events), PollFd::new(wake.as_fd(), PollFlags::POLLIN)];
        let _ = poll(&mut polled, PollTimeout::NONE);
        (!self.is_wanted.load(Ordering::SeqCst)).then_some(())
    }

    /// Parks this thread while the process is frozen.
    fn park(&self) {
        let mut threads = lock(&self.threads);
        threads.parked += 1;
        self.changed.notify_all();
        let wanted = |_: &mut Threads| self.is_wanted.load(Ordering::SeqCst);
        threads = self.changed.wait_while(threads, wanted).unwrap_or_else(PoisonError::into_inner);
        threads.parked -= 1;
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn reason(error: Errno) -> CloseReason {
    if error == Errno::ETIMEDOUT { CloseReason::Outage } else { CloseReason::Reset }
}

fn reset(far: &TcpStream) {
    let _ = socket2::SockRef::from(far).set_linger(Some(Duration::ZERO));
    let _ = far.shutdown(Shutdown::Both);
}

#[cfg(test)]
mod tests {
    use std::{
        collections::VecDeque,
        io::{Read, Write},
        net::TcpListener,
        os::unix::net::UnixStream,
    };

    use serde_bytes::ByteBuf;

    use super::*;
    use crate::{
        near::{Owner, Program},
        saved::{SavedKept, SavedOwner},
    };

    struct Nobody;

    impl Owner for Nobody {
        fn failed(&self, _errno: i32) {}

        fn resets_when_closed(&self) -> bool {
            false
        }

        fn save(&self) -> Option<SavedOwner> {
            Some(SavedOwner { id: 7, options: Vec::new() })
        }
    }

    impl Kept for () {
        fn save(&self, _descriptors: &mut Descriptors) -> Option<SavedKept> {
            Some(SavedKept { port: None })
        }
    }

    /// A program's end, and the broker's of the same pair; a peer, and the broker's connection to it.
    fn ends() -> (UnixStream, Near, TcpStream, TcpStream) {
        let (program, ours) = UnixStream::pair().unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let far = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let near = Near::Pair(Program { pair: Some(ours), express: None, owner: Box::new(Nobody) });
        (program, near, listener.accept().unwrap().0, far)
    }

    fn bytes(count: usize, seed: usize) -> Vec<u8> {
        (0..count).map(|at| (at * 31 + at / 251 + seed) as u8).collect()
    }

    /// One test, as all threads of a process are parked together.
    #[test]
    fn carrying_goes_on_after_a_freeze_here_or_where_it_is_resumed() {
        let (mut program, near, peer, far) = ends();
        start(near, far, ()).unwrap();
        let mut echoing = peer.try_clone().unwrap();
        let echo =
            thread::spawn(move || io::copy(&mut &peer, &mut echoing).and_then(|_| echoing.shutdown(Shutdown::Both)));
        let sent = bytes(5_000_000, 1);
        let (mut writing, to_send) = (program.try_clone().unwrap(), sent.clone());
        let writer =
            thread::spawn(move || writing.write_all(&to_send).and_then(|()| writing.shutdown(Shutdown::Write)));
        let mut back = Vec::new();
        let mut piece = [0; 100_000];
        loop {
            let frozen = freeze().unwrap();
            let waiting: usize = frozen
                .save(&mut Descriptors::default())
                .iter()
                .map(|saved| saved.up.rest.len() + saved.down.rest.len())
                .sum();
            assert!(waiting <= 2 * BUFFER_BYTES);
            drop(frozen);
            match program.read(&mut piece).unwrap() {
                0 => break,
                count => back.extend_from_slice(&piece[..count]),
            }
        }
        assert!(back == sent, "{} bytes of {}, or others", back.len(), sent.len());
        writer.join().unwrap().unwrap();
        // The other end may have been through already.
        let _ = echo.join().unwrap();

        let (mut program, near, mut peer, far) = ends();
        let rest =
            [bytes(70_000, 2), bytes(3, 3)].map(|rest| SavedWay { rest: ByteBuf::from(rest), is_through: false });
        resume(near, far, (), rest).unwrap();
        program.write_all(b"later").unwrap();
        program.shutdown(Shutdown::Write).unwrap();
        let mut heard = Vec::new();
        peer.read_to_end(&mut heard).unwrap();
        assert!(heard == [bytes(70_000, 2), b"later".to_vec()].concat());
        // A direction that was through when it was saved stays so.
        peer.write_all(b"too").unwrap();
        drop(peer);
        let mut heard = VecDeque::new();
        io::copy(&mut program, &mut heard).unwrap();
        assert_eq!(heard, [bytes(3, 3), b"too".to_vec()].concat());
    }
}
