//! The end of a relayed connection toward the program.

use std::{
    net::TcpStream,
    os::{
        fd::{AsFd, AsRawFd, BorrowedFd},
        unix::net::UnixStream,
    },
    sync::Arc,
    time::Duration,
};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use ri2n_io::{CloseReason, Descriptors};

use crate::{
    express::Express,
    saved::{Kept, SavedOwner, SavedProgram},
};

/// The end toward the program.
pub(crate) enum Near {
    /// A socket pair: the preload library is in the program.
    Pair(Program),
    /// A TCP connection on this machine: the program knows nothing.
    Tcp(TcpStream),
}

/// A program with the preload library.
pub(crate) struct Program {
    /// Our end of its socket pair, until both directions have ended.
    pub(crate) pair: Option<UnixStream>,
    /// Early copies may go beside the pair.
    pub(crate) express: Option<Arc<Express>>,
    /// What the program wants of its connection.
    pub(crate) owner: Box<dyn Owner>,
}

/// What a program wants of its connection, and is told of it. It is asked while the stream is in use.
pub(crate) trait Owner: Send + Sync {
    /// The stream ended with an error, of which a socket pair tells no more than that it has ended.
    fn failed(&self, errno: i32);
    /// Whether closing is to reset the peer instead of delivering what was written.
    fn resets_when_closed(&self) -> bool;
    /// The options that the program has set.
    fn save(&self) -> Option<SavedOwner>;
}

impl Program {
    /// # Panics
    /// After [`Near::hang_up`].
    pub(crate) fn pair(&self) -> &UnixStream {
        self.pair.as_ref().expect("nothing is carried after both directions have ended")
    }
}

impl Near {
    /// # Panics
    /// After [`Self::hang_up`].
    pub(crate) fn descriptor(&self) -> BorrowedFd<'_> {
        match self {
            Self::Pair(program) => program.pair().as_fd(),
            Self::Tcp(tcp) => tcp.as_fd(),
        }
    }

    pub(crate) fn express(&self) -> Option<&Express> {
        match self {
            Self::Pair(program) => program.express.as_deref(),
            Self::Tcp(_) => None,
        }
    }

    pub(crate) fn has_ring(&self) -> bool {
        self.express().is_some_and(Express::is_open)
    }

    fn shut(&self, how: i32) {
        // SAFETY: the descriptor is open as long as `self` is.
        unsafe { libc::shutdown(self.descriptor().as_raw_fd(), how) };
    }

    pub(crate) fn finish(&self) {
        self.shut(libc::SHUT_WR);
    }

    /// Whether the program has closed its end, not only one direction, and wants that to be a reset.
    pub(crate) fn resets_when_closed(&self) -> bool {
        let Self::Pair(program) = self else { return false };
        if !program.owner.resets_when_closed() {
            return false;
        }
        let mut polled = [PollFd::new(program.pair().as_fd(), PollFlags::empty())];
        poll(&mut polled, PollTimeout::ZERO).is_ok() && polled[0].any() == Some(true)
    }

    /// Saves the program's end and `kept`; `None` if both directions have ended or it cannot be saved.
    pub(crate) fn save(&self, kept: &dyn Kept, descriptors: &mut Descriptors) -> Option<SavedProgram> {
        let Self::Pair(program) = self else { return None };
        Some(SavedProgram {
            pair: descriptors.keep(program.pair.as_ref()?.as_fd()).ok()?,
            express: match &program.express {
                Some(express) => Some(express.save(descriptors).ok()?),
                None => None,
            },
            owner: program.owner.save()?,
            kept: kept.save(descriptors)?,
        })
    }

    /// Ends both directions at once, for a reason that the program is to be told.
    pub(crate) fn fail(&self, reason: CloseReason) {
        match self {
            Self::Pair(program) => {
                let timed_out = reason == CloseReason::Outage;
                program.owner.failed(if timed_out { libc::ETIMEDOUT } else { libc::ECONNRESET });
            }
            Self::Tcp(tcp) => {
                // Reset when the descriptor goes.
                let _ = socket2::SockRef::from(tcp).set_linger(Some(Duration::ZERO));
            }
        }
        self.close();
    }

    /// Gives up the program's end, both directions of which have ended.
    pub(crate) fn hang_up(&mut self) {
        match self {
            Self::Pair(program) => {
                if let Some(express) = &program.express {
                    express.close();
                }
                program.pair = None;
            }
            Self::Tcp(_) => self.close(),
        }
    }

    /// Ends both directions at once.
    pub(crate) fn close(&self) {
        if let Some(express) = self.express() {
            express.close();
        }
        self.shut(libc::SHUT_RDWR);
    }
}
