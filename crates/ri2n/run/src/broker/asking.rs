//! The lines of programs: what is waited for on each, and for how long.
//!
//! A program connects, asks, and may ask again on the same line for as long as it lives.

use std::{
    collections::BTreeMap,
    io,
    os::fd::BorrowedFd,
    time::{Duration, Instant},
};

use nix::sys::{
    epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout},
    resource::{Resource, getrlimit},
};

use crate::line::{Asked, Line};

/// How long a program that has connected may take to ask its first question.
const SILENT_MAX: Duration = Duration::from_secs(2);
/// Lines that are kept, at most, and the share of the broker's descriptors that they may take. Beyond, the one that has been silent
/// for the longest is closed, and its program connects again.
const LINES_MAX: usize = 1024;
const SHARE_OF_DESCRIPTORS: usize = 4;
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
    most: usize,
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
        let (descriptors, _) = getrlimit(Resource::RLIMIT_NOFILE)?;
        let most = usize::try_from(descriptors).map_or(LINES_MAX, |all| (all / SHARE_OF_DESCRIPTORS).min(LINES_MAX));
        Ok(Self { epoll, lines: BTreeMap::new(), most, next: FIRST_LINE })
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
        if self.lines.len() >= self.most {
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

    /// The lines of all programs.
    pub(super) fn lines(&self) -> impl Iterator<Item = &Line> {
        self.lines.values().map(|known| &known.line)
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

#[cfg(test)]
mod tests {
    use std::{
        io::{Read, Write},
        os::unix::net::UnixStream,
    };

    use super::*;

    /// A line, and the program's end of it.
    fn line() -> (Line, UnixStream) {
        use nix::sys::socket::{AddressFamily, SockFlag, SockType, socketpair};
        let (ours, theirs) =
            socketpair(AddressFamily::Unix, SockType::SeqPacket, None, SockFlag::SOCK_CLOEXEC).unwrap();
        (Line::from(ours), UnixStream::from(theirs))
    }

    fn question() -> Vec<u8> {
        let request = ri2n_session::BrokerRequest {
            token: ri2n_session::Token([0; 16]),
            operation: ri2n_session::Operation::State,
            waiting: ri2n_session::Waiting::Blocking,
            id: 7,
            option: ri2n_session::SocketOption::default(),
            local: None,
            remote: None,
        };
        request.encode().to_vec()
    }

    fn asked(asking: &mut Asking) -> Vec<Asked> {
        asking.wait(Duration::from_millis(20)).unwrap().questions
    }

    #[test]
    fn a_line_asks_again_until_a_question_is_not_answered() {
        let mut asking = Asking::new().unwrap();
        let (line, mut program) = line();
        asking.add(line).unwrap();
        assert!(asked(&mut asking).is_empty());
        let answer = ri2n_session::Answer::of(ri2n_session::Verdict::Ready);
        for _ in 0..3 {
            program.write_all(&question()).unwrap();
            let mut questions = asked(&mut asking);
            assert_eq!(questions.len(), 1);
            questions.pop().unwrap().0.answer(&answer, &[]).unwrap();
            assert_eq!(program.read(&mut [0; 100]).unwrap(), answer.encode().len());
            assert!(asked(&mut asking).is_empty());
        }
        program.write_all(&question()).unwrap();
        drop(asked(&mut asking));
        assert_eq!(program.read(&mut [0; 100]).unwrap(), 0, "it is told that there is no answer");
        assert!(asked(&mut asking).is_empty() && asking.lines.is_empty());
    }

    #[test]
    fn a_program_that_asks_and_ends_is_forgotten() {
        let mut asking = Asking::new().unwrap();
        let (line, mut program) = line();
        asking.add(line).unwrap();
        program.write_all(&question()).unwrap();
        drop(program);
        assert_eq!(asked(&mut asking).len(), 1);
        assert!(asking.lines.is_empty());
    }

    #[test]
    fn those_who_say_nothing_are_given_up_and_those_silent_for_longest_make_room() {
        let mut asking = Asking::new().unwrap();
        asking.most = 3;
        let mut programs = Vec::new();
        for _ in 0..5 {
            let (line, mut program) = line();
            asking.add(line).unwrap();
            program.write_all(&question()).unwrap();
            let answered = asked(&mut asking).pop().unwrap().0;
            answered.answer(&ri2n_session::Answer::of(ri2n_session::Verdict::Plain), &[]).unwrap();
            programs.push(program);
        }
        assert_eq!(asking.lines.len(), 3);
        assert!(programs[0].write_all(&question()).is_err() && programs[4].write_all(&question()).is_ok());
        let (silent, _program) = line();
        asking.add(silent).unwrap();
        let later = Instant::now() + SILENT_MAX;
        asking.forget_silent(later);
        assert_eq!(asking.lines.len(), 2, "one made room, one was silent");
    }
}
