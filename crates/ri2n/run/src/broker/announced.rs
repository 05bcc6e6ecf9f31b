//! Streams whose knock is in a program's queue, and the order of claim and welcome.

use std::{
    io,
    net::{Shutdown, SocketAddr},
    os::fd::AsFd,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use ri2n_io::{Descriptors, SavedDescriptor, Stream};
use serde::{Deserialize, Serialize};
use socket2::Socket;

use super::{greet::answer, held::Held};
use crate::{
    express::Express,
    greeting::{Greeting, Offer},
    saved::SavedExpress,
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

/// The same, written down.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct SavedAnnounced {
    greeting: Greeting,
    listener: SocketAddr,
    socket: SavedDescriptor,
    from: SocketAddr,
    /// Which stream it is ([`Stream::id`]).
    pub(super) stream: u32,
    offer: Option<Offer>,
    step: Step,
    express: Option<SavedExpress>,
}

/// The lock of a knock's progress.
pub(super) struct Stopped<'a>(MutexGuard<'a, Progress>);

impl Announced {
    /// Saves it. `stopped` is the lock of its knock.
    ///
    /// # Errors
    /// If a descriptor is not open.
    pub(super) fn save(&self, stopped: &Stopped<'_>, descriptors: &mut Descriptors) -> io::Result<SavedAnnounced> {
        Ok(SavedAnnounced {
            greeting: self.greeting,
            listener: self.listener,
            socket: descriptors.keep(self.knock.socket.as_fd())?,
            from: self.knock.from,
            stream: self.knock.stream.id(),
            offer: self.knock.offer,
            step: stopped.0.step,
            express: self.express.as_ref().map(|express| express.save(descriptors)).transpose()?,
        })
    }

    /// Resumes a saved knock.
    ///
    /// # Errors
    /// If a descriptor is not open.
    pub(super) fn resume(saved: SavedAnnounced, stream: Stream, held: Held) -> io::Result<Self> {
        let express = saved.express.map(Express::resume).transpose()?.map(Arc::new);
        let knock = Knock::at_step(saved.socket.take()?.into(), saved.from, stream, saved.offer, saved.step);
        let (greeting, listener, since) = (saved.greeting, saved.listener, Instant::now());
        Ok(Self { greeting, listener, knock: Arc::new(knock), express, since, held })
    }
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
pub(super) struct Progress {
    step: Step,
    /// A thread waits for what becomes of it.
    is_watched: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
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
        Self::at_step(socket, from, stream, offer, Step::Knocked)
    }

    fn at_step(socket: Socket, from: SocketAddr, stream: Stream, offer: Option<Offer>, step: Step) -> Self {
        let progress = Progress { step, is_watched: false };
        Self { socket, from, stream, offer, progress: Mutex::new(progress) }
    }

    /// Locks its progress.
    pub(super) fn stop(&self) -> Stopped<'_> {
        Stopped(self.lock())
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
