//! The lines of programs: what is waited for on each, and for how long.
//!
//! A program connects, asks, and may ask again on the same line for as long as it lives.

use std::{
    collections::BTreeMap,
    io,
    os::fd::BorrowedFd,
    time::{Duration, Instant},
};

use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};

use crate::line::{Asked, Line};

/// How long a program that has connected may take to ask its first question.
const SILENT_MAX: Duration = Duration::from_secs(2);
/// Lines that are kept; beyond, the one that has been silent for the longest is closed, and its program connects again.
const LINES_MAX: usize = 1024;
/// Numbers of lines begin here; those below are the caller's.
const FIRST_LINE: u64 = 16;
/// Events that are taken at once.
const EVENTS: usize = 64;

/// What one wait brought.
#[derive(Default)]
pub(super) struct Ready {
    /// The caller's descriptors that are ready.
    pub(super) others: Vec<u64>,
    pub(super) questions: Vec<Asked>,
}

/// Waits for the questions of all lines, and for a few descriptors of the caller's.
pub(super) struct Asking {
    epoll: Epoll,
    lines: BTreeMap<u64, Known>,
    next: u64,
}

struct Known {
    line: Line,
    /// When it last asked, or connected.
    since: Instant,
    has_asked: bool,
}

impl Asking {
    /// # Errors
    /// If the kernel refuses.
    pub(super) fn new() -> io::Result<Self> {
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?;
        Ok(Self { epoll, lines: BTreeMap::new(), next: FIRST_LINE })
    }

    /// Has a descriptor of the caller's reported by a number less than [`FIRST_LINE`], as long as it is readable.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub(super) fn watch(&self, descriptor: BorrowedFd<'_>, number: u64) -> io::Result<()> {
        Ok(self.epoll.add(descriptor, EpollEvent::new(EpollFlags::EPOLLIN, number))?)
    }

    /// Reports a descriptor of the caller's no more.
    pub(super) fn leave(&self, descriptor: BorrowedFd<'_>) {
        // One that is not watched is what is wanted.
        let _ = self.epoll.delete(descriptor);
    }

    /// Takes in a program that has connected.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub(super) fn add(&mut self, line: Line) -> io::Result<()> {
        if self.lines.len() >= LINES_MAX {
            let longest = self.lines.iter().min_by_key(|(_, known)| known.since).map(|(number, _)| *number);
            longest.into_iter().for_each(|number| self.remove(number));
        }
        // Edges: the program asks again when it has its answer, which makes another.
        let events = EpollFlags::EPOLLIN | EpollFlags::EPOLLRDHUP | EpollFlags::EPOLLET;
        self.epoll.add(line.descriptor(), EpollEvent::new(events, self.next))?;
        self.lines.insert(self.next, Known { line, since: Instant::now(), has_asked: false });
        self.next += 1;
        Ok(())
    }

    /// Waits until something is ready, for this long at most.
    ///
    /// # Errors
    /// If the kernel refuses to wait.
    pub(super) fn wait(&mut self, longest: Duration) -> io::Result<Ready> {
        let mut events = [EpollEvent::empty(); EVENTS];
        let timeout = EpollTimeout::try_from(longest).unwrap_or(EpollTimeout::MAX);
        let count = match self.epoll.wait(&mut events, timeout) {
            Ok(count) => count,
            Err(nix::errno::Errno::EINTR) => 0,
            Err(error) => return Err(error.into()),
        };
        let mut ready = Ready::default();
        for event in &events[..count] {
            let number = event.data();
            if number < FIRST_LINE {
                ready.others.push(number);
                continue;
            }
            let Some(known) = self.lines.get_mut(&number) else { continue };
            let question = known.line.question_now();
            let ended = EpollFlags::EPOLLRDHUP | EpollFlags::EPOLLHUP | EpollFlags::EPOLLERR;
            let goes_on = match &question {
                Ok(question) => question.is_some(),
                Err(error) => error.kind() == io::ErrorKind::WouldBlock,
            };
            (known.since, known.has_asked) = (Instant::now(), known.has_asked || matches!(question, Ok(Some(_))));
            ready.questions.extend(question.ok().flatten());
            if !goes_on || event.events().intersects(ended) {
                self.remove(number);
            }
        }
        Ok(ready)
    }

    /// Gives up those who have asked nothing.
    pub(super) fn forget_silent(&mut self, now: Instant) {
        let is_silent = |known: &Known| !known.has_asked && now.duration_since(known.since) >= SILENT_MAX;
        let silent: Vec<u64> =
            self.lines.iter().filter(|(_, known)| is_silent(known)).map(|(number, _)| *number).collect();
        silent.into_iter().for_each(|number| self.remove(number));
    }

    /// Closes a line; a question that is being answered still is.
    fn remove(&mut self, number: u64) {
        if let Some(known) = self.lines.remove(&number) {
            self.leave(known.line.descriptor());
        }
    }
}
