//! The socket pair between a program and its broker, and how it passes for a connection that is being made.
//!
//! A program that connects without waiting polls its descriptor until it is writable, then asks for the error. So, until
//! the connection stands, the program's end has a tiny send buffer that is full of filler. Once it stands, the broker
//! takes the filler out and the buffer grows: writable. If it fails, the broker closes its end with the filler unread, which
//! the kernel reports as an error: `POLLERR`, and `ECONNRESET`, for which the broker knows the true number.

use std::{
    io::{self, Read},
    os::{fd::OwnedFd, unix::net::UnixStream},
};

use nix::sys::socket::{
    AddressFamily, MsgFlags, SockFlag, SockType, UnixAddr, bind, send, setsockopt, socketpair, sockopt::SndBuf,
};
use ri2n_session::{FILLER_BYTES, Name};
use std::os::fd::AsRawFd;

/// Send buffer of an end that stands, bytes; the kernel may cut it.
const SEND_BUFFER_BYTES: usize = 512 << 10;
/// Send buffer that [`FILLER_BYTES`] fill: the least that the kernel gives.
const PENDING_BUFFER_BYTES: usize = 1;

/// A connected pair.
pub(crate) struct Pair {
    /// The broker's end.
    pub(crate) ours: UnixStream,
    /// The end that becomes the program's descriptor.
    pub(crate) theirs: OwnedFd,
}

/// Makes a pair that is ready for data.
///
/// # Errors
/// If the kernel refuses.
pub(crate) fn ready(name: &Name) -> io::Result<Pair> {
    let pair = named(name)?;
    setsockopt(&pair.theirs, SndBuf, &SEND_BUFFER_BYTES)?;
    Ok(pair)
}

/// Makes a pair whose program's end is not writable until [`stands`].
///
/// # Errors
/// If the kernel refuses.
pub(crate) fn pending(name: &Name) -> io::Result<Pair> {
    let pair = named(name)?;
    setsockopt(&pair.theirs, SndBuf, &PENDING_BUFFER_BYTES)?;
    for _ in 0..FILLER_BYTES {
        send(pair.theirs.as_raw_fd(), &[0], MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_NOSIGNAL)?;
    }
    Ok(pair)
}

/// Makes the program's end of a pending pair writable. `theirs` is the broker's copy of it, which is given up.
///
/// # Errors
/// If the kernel refuses.
pub(crate) fn stands(ours: &mut UnixStream, theirs: OwnedFd) -> io::Result<()> {
    // The buffer grows first: the moment that the filler is gone, the program may write.
    setsockopt(&theirs, SndBuf, &SEND_BUFFER_BYTES)?;
    drop(theirs);
    ours.read_exact(&mut [0; FILLER_BYTES])
}

fn named(name: &Name) -> io::Result<Pair> {
    let (ours, theirs) = socketpair(AddressFamily::Unix, SockType::Stream, None, SockFlag::SOCK_CLOEXEC)?;
    setsockopt(&ours, SndBuf, &SEND_BUFFER_BYTES)?;
    // The leading zero of the name is what `new_abstract` adds.
    bind(theirs.as_raw_fd(), &UnixAddr::new_abstract(&name.encode()[1..])?)?;
    Ok(Pair { ours: ours.into(), theirs })
}

#[cfg(test)]
mod tests {
    use std::{
        io::Write,
        os::fd::{AsFd, BorrowedFd},
    };

    use nix::{
        poll::{PollFd, PollFlags, poll},
        sys::socket::{getsockname, getsockopt, sockopt::SocketError},
    };

    use super::*;

    fn name(id: u64) -> Name {
        let session = u64::from(std::process::id()) << 32 | 0x7e57;
        Name { session, id, local: "10.0.0.1:1".parse().unwrap(), remote: "10.0.0.2:2".parse().unwrap() }
    }

    fn events(fd: BorrowedFd<'_>) -> PollFlags {
        let mut fds = [PollFd::new(fd, PollFlags::POLLIN | PollFlags::POLLOUT)];
        poll(&mut fds, 0_u16).unwrap();
        fds[0].revents().unwrap()
    }

    #[test]
    fn a_pending_end_becomes_writable_when_it_stands_and_no_filler_is_seen() {
        let Pair { mut ours, theirs } = pending(&name(1)).unwrap();
        assert_eq!(events(theirs.as_fd()), PollFlags::empty());
        let mut program = UnixStream::from(theirs.try_clone().unwrap());
        stands(&mut ours, theirs).unwrap();
        assert_eq!(events(program.as_fd()), PollFlags::POLLOUT);
        program.write_all(b"data").unwrap();
        let mut read = [0; 10];
        assert_eq!(ours.read(&mut read).unwrap(), 4);
    }

    #[test]
    fn a_pending_end_that_fails_has_an_error() {
        let Pair { ours, theirs } = pending(&name(2)).unwrap();
        drop(ours);
        assert!(events(theirs.as_fd()).contains(PollFlags::POLLERR | PollFlags::POLLOUT));
        assert_eq!(getsockopt(&theirs, SocketError).unwrap(), libc::ECONNRESET);
    }

    #[test]
    fn an_end_tells_its_name_after_dup() {
        let pair = ready(&name(3)).unwrap();
        assert_eq!(events(pair.theirs.as_fd()), PollFlags::POLLOUT);
        let copy = pair.theirs.try_clone().unwrap();
        drop(pair.theirs);
        let address: UnixAddr = getsockname(copy.as_raw_fd()).unwrap();
        let path: Vec<u8> = [&[0], address.as_abstract().unwrap()].concat();
        assert_eq!(Name::decode(&path), Some(name(3)));
    }
}
