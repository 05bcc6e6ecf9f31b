//! A program's end of a socket pair, as far as the kernel tells of it.
//!
//! Who writes to a pair cannot know what else is in it: another thread's or process's bytes may have come first. But the
//! kernel says how much memory holds what the other end has not read (`TIOCOUTQ`), and a message takes as much of it each
//! time. So, with the pair empty before and nobody reading meanwhile, a message is alone if the pair holds just so much as one
//! of its length in a pair of our own.

use std::{
    os::fd::RawFd,
    ptr,
    sync::atomic::{AtomicI32, Ordering::Relaxed},
};

use crate::{datagram::MESSAGE_MAX, up::Wrote};

/// Memory that a message of each length takes in a pair; zero if nobody asked yet.
static TAKES: [AtomicI32; MESSAGE_MAX + 1] = [const { AtomicI32::new(0) }; MESSAGE_MAX + 1];

/// One end, which somebody else owns. System calls only: as safe in a signal's handler as they are.
#[derive(Clone, Copy, Debug)]
pub struct Pair(pub RawFd);

impl Pair {
    /// Whether nothing waits to be read at this end.
    #[must_use]
    pub fn is_read_empty(self) -> bool {
        self.waiting(libc::FIONREAD) == Some(0)
    }

    /// Whether the other end has read all that was written.
    #[must_use]
    pub fn is_written_empty(self) -> bool {
        self.waiting(libc::TIOCOUTQ) == Some(0)
    }

    /// Whether the kernel would still take bytes: not once an end has been shut down or closed for them, by whomever and by
    /// whichever of its numbers.
    #[must_use]
    pub fn is_open(self) -> bool {
        self.put(&[])
    }

    /// Writes all or nothing, without waiting, and looks whether the message is alone. The pair was empty just now; if the
    /// other end reads meanwhile, the answer means nothing.
    #[must_use]
    pub fn write(self, bytes: &[u8]) -> Wrote {
        if !self.put(bytes) {
            return Wrote::Nothing;
        }
        let takes = takes(bytes.len());
        if takes.is_some() && takes == self.waiting(libc::TIOCOUTQ) { Wrote::Alone } else { Wrote::AmongOthers }
    }

    fn put(self, bytes: &[u8]) -> bool {
        let flags = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;
        // A raw call, as in a program's process the C library's name is that of a function which calls this one.
        // SAFETY: the bytes are live.
        let sent = unsafe { libc::syscall(libc::SYS_sendto, self.0, bytes.as_ptr(), bytes.len(), flags, 0, 0) };
        usize::try_from(sent) == Ok(bytes.len())
    }

    fn waiting(self, which: libc::Ioctl) -> Option<libc::c_int> {
        let mut count: libc::c_int = 0;
        // SAFETY: the call fills one integer.
        let result = unsafe { libc::syscall(libc::SYS_ioctl, self.0, which, ptr::from_mut(&mut count)) };
        (result == 0).then_some(count)
    }
}

/// Memory that a message of this length takes.
fn takes(length: usize) -> Option<libc::c_int> {
    let known = TAKES.get(length)?;
    if known.load(Relaxed) == 0 {
        known.store(try_out(length)?, Relaxed);
    }
    Some(known.load(Relaxed)).filter(|takes| *takes > 0)
}

fn try_out(length: usize) -> Option<libc::c_int> {
    let mut fds: [RawFd; 2] = [0; 2];
    let kind = libc::SOCK_STREAM | libc::SOCK_CLOEXEC;
    // SAFETY: the call fills two integers.
    if unsafe { libc::syscall(libc::SYS_socketpair, libc::AF_UNIX, kind, 0, fds.as_mut_ptr()) } != 0 {
        return None;
    }
    let pair = Pair(fds[0]);
    let takes = if pair.put(&[0; MESSAGE_MAX][..length]) { pair.waiting(libc::TIOCOUTQ) } else { None };
    for fd in fds {
        // SAFETY: the descriptor is ours.
        unsafe { libc::syscall(libc::SYS_close, fd) };
    }
    takes
}

#[cfg(test)]
mod tests {
    use std::{
        io::{Read, Write},
        net::Shutdown,
        os::{fd::AsRawFd, unix::net::UnixStream},
    };

    use super::*;

    #[test]
    fn a_message_of_any_length_is_known_to_be_alone() {
        let (near, mut far) = UnixStream::pair().unwrap();
        let pair = Pair(near.as_raw_fd());
        for length in 1..=MESSAGE_MAX {
            assert!(pair.is_written_empty());
            assert_eq!(pair.write(&vec![7; length]), Wrote::Alone, "{length} bytes");
            assert!(!pair.is_written_empty());
            far.read_exact(&mut vec![0; length]).unwrap();
        }
    }

    #[test]
    fn a_message_among_others_is_known_to_be() {
        let (near, mut far) = UnixStream::pair().unwrap();
        let pair = Pair(near.as_raw_fd());
        for (theirs, ours) in [(1, 1), (1, 1024), (1024, 1), (5000, 64), (100_000, 700)] {
            assert!(pair.put(&vec![1; theirs]));
            assert_eq!(pair.write(&vec![2; ours]), Wrote::AmongOthers, "{theirs} and {ours} bytes");
            far.read_exact(&mut vec![0; theirs + ours]).unwrap();
        }
    }

    #[test]
    fn a_full_or_closed_pair_takes_nothing() {
        let (near, far) = UnixStream::pair().unwrap();
        while Pair(near.as_raw_fd()).put(&[0; 1000]) {}
        assert_eq!(Pair(near.as_raw_fd()).write(&[0; 1000]), Wrote::Nothing);
        assert!(Pair(near.as_raw_fd()).is_open() && Pair(far.as_raw_fd()).is_open());
        drop(far);
        assert_eq!(Pair(near.as_raw_fd()).write(&[0]), Wrote::Nothing);
        assert!(!Pair(near.as_raw_fd()).is_open());
        assert!(!Pair(-1).is_read_empty() && !Pair(-1).is_written_empty());
    }

    #[test]
    fn an_end_that_was_shut_down_is_not_open() {
        let (near, mut far) = UnixStream::pair().unwrap();
        let copy = near.try_clone().unwrap();
        (&near).write_all(b"x").unwrap();
        copy.shutdown(Shutdown::Write).unwrap();
        assert!(!Pair(near.as_raw_fd()).is_open() && Pair(far.as_raw_fd()).is_open());
        // The question itself has left nothing.
        assert_eq!(far.read(&mut [0; 9]).unwrap(), 1);
        assert_eq!(far.read(&mut [0; 9]).unwrap(), 0);
    }
}
