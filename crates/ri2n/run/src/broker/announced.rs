//! Streams whose knock is in a program's queue, and the order of claim and welcome.

use std::{
    io,
    net::{Shutdown, SocketAddr},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use ri2n_io::Stream;
use socket2::Socket;

use super::{greet::answer, held::Held};
use crate::{
    express::Express,
    greeting::{Greeting, Offer},
};

/// A stream whose knock is in a program's queue.
pub(super) struct Announced {
    pub(super) greeting: Greeting,
    /// Where the program listens.
    pub(super) listener: SocketAddr,
    pub(super) knock: Arc<Knock>,
    pub(super) express: Option<Arc<Express>>,
    pub(super) since: Instant,
    pub(super) held: Held,
}

/// A knock and its stream, which the program claims on one thread while another tells the peer.
pub(super) struct Knock {
    pub(super) socket: Socket,
    /// Where it comes from.
    pub(super) from: SocketAddr,
    pub(super) stream: Stream,
    /// Our offer of early copies.
    offer: Option<Offer>,
    progress: Mutex<Progress>,
}

#[derive(Clone, Copy)]
struct Progress {
    step: Step,
    /// A thread waits for what becomes of it.
    is_watched: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    Knocked,
    /// The peer has been told that it is welcome,
    Welcomed,
    /// or that it is not.
    Refused,
    /// The program has claimed the stream, and its peer is welcome.
    Claimed,
}

impl Knock {
    pub(super) fn new(socket: Socket, from: SocketAddr, stream: Stream, offer: Option<Offer>) -> Self {
        let progress = Progress { step: Step::Knocked, is_watched: false };
        Self { socket, from, stream, offer, progress: Mutex::new(progress) }
    }

    fn lock(&self) -> MutexGuard<'_, Progress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn step(&self) -> Step {
        self.lock().step
    }

    /// Tells the peer that it is welcome, unless it has been told something.
    ///
    /// # Errors
    /// If the peer cannot be told.
    pub(super) fn welcome(&self) -> io::Result<()> {
        let mut progress = self.lock();
        if progress.step != Step::Knocked {
            return Ok(());
        }
        progress.step = Step::Welcomed;
        answer(&self.stream, Ok(self.offer))
    }

    /// Tells the peer that it is not, unless it has been told something.
    ///
    /// # Errors
    /// If the peer cannot be told.
    pub(super) fn refuse(&self, errno: i32) -> io::Result<()> {
        let mut progress = self.lock();
        if progress.step != Step::Knocked {
            return Ok(());
        }
        progress.step = Step::Refused;
        answer(&self.stream, Err(errno))
    }

    /// The program has claimed the stream. The peer is welcome before anything else is written: the program's first bytes must not
    /// overtake that. Returns whether the stream is the program's: not if its peer was refused.
    ///
    /// # Errors
    /// If the peer cannot be told.
    pub(super) fn claim(&self) -> io::Result<bool> {
        let mut progress = self.lock();
        match progress.step {
            Step::Refused | Step::Claimed => return Ok(false),
            Step::Knocked => answer(&self.stream, Ok(self.offer))?,
            Step::Welcomed => {}
        }
        progress.step = Step::Claimed;
        // Closed by a reset, which leaves no state behind: thousands a second would use up the ports for a minute each.
        let _ = self.socket.set_linger(Some(Duration::ZERO));
        if progress.is_watched {
            // Whoever watches is woken.
            let _ = self.socket.shutdown(Shutdown::Both);
        }
        Ok(true)
    }

    /// Notes that a thread waits for what becomes of it; whether none does yet, and something may still become of it.
    pub(super) fn begin_watch(&self) -> bool {
        let mut progress = self.lock();
        let begins = !progress.is_watched && progress.step != Step::Claimed;
        progress.is_watched |= begins;
        begins
    }
}
