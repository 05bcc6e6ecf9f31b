//! Carries bytes between a program's end and a far end until both directions are through.
//!
//! ```text
//!  program ══ near (socket pair, or TCP on this machine) ══ relay ══ far (RI2N, or TCP to a peer without) ══ peer
//!             end of file ───────────────────────────────────▶ half close
//!             half close  ◀─────────────────────────────────── end of stream
//!             broken pipe: what was written is delivered, then the peer is reset, as TCP does
//! ```
//!
//! Two threads a stream: each blocks in the call that its next bytes come from, so that they pass without a hand-off to
//! another thread. That costs two small stacks a stream and saves a wake-up a message.

use std::{
    io::{self, Read, Write},
    net::{Shutdown, TcpStream},
    os::{
        fd::{AsFd, AsRawFd},
        unix::net::UnixStream,
    },
    sync::{Arc, OnceLock, mpsc},
    thread,
    time::{Duration, Instant},
};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use ri2n_io::Stream;

use crate::express::{Downward, Express, Upward};

/// Bytes carried at once; two buffers a stream.
const BUFFER_BYTES: usize = 64 << 10;
/// Stack of a relay's thread, bytes, apart from the buffer.
const STACK_BYTES: usize = 128 << 10;
/// How long the end of a stream may take to be acknowledged.
const LINGER_MAX: Duration = Duration::from_secs(60);
/// How long a stream that has ended at both sides is kept to acknowledge the peer's end again, should that get lost.
const TIME_WAIT: Duration = Duration::from_millis(500);
/// How long data of a program that has closed may take to reach the peer before the peer is reset.
const LAST_WORDS: Duration = Duration::from_secs(5);

/// The end toward the program.
pub(crate) enum Near {
    /// A socket pair: the preload library is in the program.
    Pair(Program),
    /// A TCP connection on this machine: the program knows nothing.
    Tcp(TcpStream),
}

/// A program with the preload library.
pub(crate) struct Program {
    /// Our end of its socket pair.
    pub(crate) pair: UnixStream,
    /// Early copies may go beside the pair.
    pub(crate) express: Option<Arc<Express>>,
    /// What the program wants of its connection.
    pub(crate) owner: Box<dyn Owner>,
}

/// What a program wants of its connection, and is told of it.
pub(crate) trait Owner: Send + Sync {
    /// The stream ended with an error, of which a socket pair tells no more than that it has ended.
    fn failed(&self, errno: i32);
    /// Whether closing is to reset the peer instead of delivering what was written.
    fn resets_when_closed(&self) -> bool;
}

/// The end toward the peer.
pub(crate) enum Far {
    /// RI2N.
    Ri2n(Stream),
    /// Plain TCP, to a peer without RI2N.
    Tcp(TcpStream),
}

/// Relays until both directions have ended; blocks.
pub(crate) fn relay(near: &Near, far: &Far) {
    thread::scope(|scope| {
        let down = thread::Builder::new().name("ri2n-down".into()).stack_size(STACK_BYTES);
        if down.spawn_scoped(scope, || carry_down(far, near)).is_err() {
            far.reset();
            near.close();
            return;
        }
        carry_up(near, far);
    });
}

/// Starts a relay on a thread of its own; `kept` lives as long as it does.
///
/// # Errors
/// If no thread can be had.
pub(crate) fn start<K: Send + 'static>(near: Near, far: Far, kept: K) -> io::Result<()> {
    thread::Builder::new().name("ri2n-up".into()).stack_size(STACK_BYTES).spawn(move || {
        relay(&near, &far);
        drop(near);
        far.linger();
        keep_a_while((far, kept));
    })?;
    Ok(())
}

/// Drops something after [`TIME_WAIT`], on one thread for all of them.
fn keep_a_while(kept: impl Send + 'static) {
    type Kept = (Instant, Box<dyn Send>);
    static KEEPER: OnceLock<mpsc::Sender<Kept>> = OnceLock::new();
    let keeper = KEEPER.get_or_init(|| {
        let (send, receive) = mpsc::channel::<Kept>();
        // Without the thread the channel is closed, and things go at once.
        let _ = thread::Builder::new().name("ri2n-keep".into()).stack_size(STACK_BYTES).spawn(move || {
            for (until, kept) in receive {
                thread::sleep(until.saturating_duration_since(Instant::now()));
                drop(kept);
            }
        });
        send
    });
    let _ = keeper.send((Instant::now() + TIME_WAIT, Box::new(kept)));
}

fn carry_up(near: &Near, far: &Far) {
    ri2n_io::prefer_short_turns();
    let mut buffer = vec![0; BUFFER_BYTES];
    let mut source = near.source();
    loop {
        match source.read(&mut buffer) {
            Ok(0) if near.resets_when_closed() => return far.reset(),
            Ok(0) => {
                let _ = far.finish();
                return;
            }
            Ok(count) => {
                if let Err(error) = far.write_all(&buffer[..count]) {
                    // The peer is gone: the program's next call must fail.
                    near.fail(&error);
                    return;
                }
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            // The program closed with data unread.
            Err(_) => {
                far.reset();
                return;
            }
        }
    }
}

fn carry_down(far: &Far, near: &Near) {
    ri2n_io::prefer_short_turns();
    let mut buffer = vec![0; BUFFER_BYTES];
    let mut sink = near.sink();
    loop {
        match far.read(&mut buffer) {
            Ok(0) => {
                near.finish();
                return;
            }
            Ok(count) => {
                if sink.write_all(&buffer[..count]).is_err() {
                    far.last_words();
                    far.reset();
                    return;
                }
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => {
                near.fail(&error);
                return;
            }
        }
    }
}

impl Near {
    fn socket(&self) -> i32 {
        match self {
            Self::Pair(program) => program.pair.as_raw_fd(),
            Self::Tcp(tcp) => tcp.as_raw_fd(),
        }
    }

    fn source(&self) -> Source<'_> {
        match self {
            Self::Pair(program) => Source::Pair(Upward::new(&program.pair, program.express.as_deref())),
            Self::Tcp(tcp) => Source::Tcp(tcp),
        }
    }

    fn sink(&self) -> Sink<'_> {
        match self {
            Self::Pair(program) => Sink::Pair(Downward::new(&program.pair, program.express.as_deref())),
            Self::Tcp(tcp) => Sink::Tcp(tcp),
        }
    }

    fn finish(&self) {
        // SAFETY: the descriptor is open as long as `self` is.
        unsafe { libc::shutdown(self.socket(), libc::SHUT_WR) };
    }

    /// Whether the program has closed its end, not only one direction, and wants that to be a reset.
    fn resets_when_closed(&self) -> bool {
        let Self::Pair(program) = self else { return false };
        if !program.owner.resets_when_closed() {
            return false;
        }
        let mut polled = [PollFd::new(program.pair.as_fd(), PollFlags::empty())];
        poll(&mut polled, PollTimeout::ZERO).is_ok() && polled[0].any() == Some(true)
    }

    /// Ends both directions at once, for a reason that the program is to be told.
    fn fail(&self, error: &io::Error) {
        if let Self::Pair(program) = self {
            let timed_out = error.kind() == io::ErrorKind::TimedOut;
            program.owner.failed(if timed_out { libc::ETIMEDOUT } else { libc::ECONNRESET });
        }
        self.close();
    }

    /// Ends both directions at once. A TCP connection is reset when the descriptor goes.
    fn close(&self) {
        if let Self::Tcp(tcp) = self {
            let _ = socket2::SockRef::from(tcp).set_linger(Some(Duration::ZERO));
        }
        if let Self::Pair(Program { express: Some(express), .. }) = self {
            express.close();
        }
        // SAFETY: the descriptor is open as long as `self` is.
        unsafe { libc::shutdown(self.socket(), libc::SHUT_RDWR) };
    }
}

/// What the program writes.
enum Source<'a> {
    Pair(Upward<'a>),
    Tcp(&'a TcpStream),
}

impl Source<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Pair(pair) => pair.read(buffer),
            Self::Tcp(tcp) => tcp.read(buffer),
        }
    }
}

/// What the program reads.
enum Sink<'a> {
    Pair(Downward<'a>),
    Tcp(&'a TcpStream),
}

impl Sink<'_> {
    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Self::Pair(pair) => pair.write_all(bytes),
            Self::Tcp(tcp) => tcp.write_all(bytes),
        }
    }
}

impl Far {
    fn read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Ri2n(stream) => stream.read(buffer),
            Self::Tcp(tcp) => (&mut &*tcp).read(buffer),
        }
    }

    fn write_all(&self, mut bytes: &[u8]) -> io::Result<()> {
        match self {
            Self::Ri2n(stream) => {
                while !bytes.is_empty() {
                    let written = stream.write(bytes)?;
                    bytes = &bytes[written..];
                }
                Ok(())
            }
            Self::Tcp(tcp) => (&mut &*tcp).write_all(bytes),
        }
    }

    /// No more bytes follow.
    fn finish(&self) -> io::Result<()> {
        match self {
            Self::Ri2n(stream) => stream.shutdown(Shutdown::Write),
            Self::Tcp(tcp) => tcp.shutdown(Shutdown::Write),
        }
    }

    /// Waits until everything, the end included, has arrived: the broker must not end before.
    fn linger(&self) {
        if let Self::Ri2n(stream) = self {
            let _ = stream.flush_wait(Some(LINGER_MAX));
        }
    }

    /// Waits, for a while, until what was written has arrived.
    fn last_words(&self) {
        if let Self::Ri2n(stream) = self {
            let _ = stream.flush_wait(Some(LAST_WORDS));
        }
    }

    fn reset(&self) {
        match self {
            Self::Ri2n(stream) => stream.reset(),
            Self::Tcp(tcp) => {
                let _ = socket2::SockRef::from(tcp).set_linger(Some(Duration::ZERO));
                let _ = tcp.shutdown(Shutdown::Both);
            }
        }
    }
}
