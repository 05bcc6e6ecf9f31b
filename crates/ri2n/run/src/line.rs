//! The broker's side of its control socket: packets of the session's programs, and descriptors along with them.

use std::{
    io::{self, IoSlice, IoSliceMut},
    os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use nix::sys::socket::{
    AddressFamily, Backlog, ControlMessage, ControlMessageOwned, MsgFlags, Shutdown, SockFlag, SockType, UnixAddr,
    accept4, bind, listen, recvmsg, sendmsg, shutdown, socket,
};
use ri2n_session::{Answer, BrokerRequest, REQUEST_BYTES};

/// The control socket.
pub(crate) struct ControlSocket(OwnedFd);

/// A connection of a program, which asks one question after another on it.
#[derive(Clone)]
pub(crate) struct Line(Arc<OwnedFd>);

/// A question that waits for its answer. Dropping it unanswered ends the line, which tells the program that there is none.
pub(crate) struct Question {
    line: Line,
    is_answered: AtomicBool,
}

/// What a program asks, and the socket that came along.
pub(crate) type Asked = (Question, BrokerRequest, Option<OwnedFd>);

impl ControlSocket {
    /// Listens at an abstract name.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub(crate) fn bind(name: &str) -> io::Result<Self> {
        let control = socket(AddressFamily::Unix, SockType::SeqPacket, SockFlag::SOCK_CLOEXEC, None)?;
        bind(control.as_raw_fd(), &UnixAddr::new_abstract(name.as_bytes())?)?;
        listen(&control, Backlog::MAXALLOWABLE)?;
        Ok(Self(control))
    }

    /// One that the earlier program of this process bound.
    pub(crate) fn resumed(control: OwnedFd) -> Self {
        Self(control)
    }

    pub(crate) fn accept(&self) -> io::Result<Line> {
        let line = accept4(self.0.as_raw_fd(), SockFlag::SOCK_CLOEXEC)?;
        // SAFETY: the kernel has just given this descriptor to us.
        Ok(Line::from(unsafe { OwnedFd::from_raw_fd(line) }))
    }

    pub(crate) fn descriptor(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl From<OwnedFd> for Line {
    fn from(socket: OwnedFd) -> Self {
        Self(Arc::new(socket))
    }
}

impl Line {
    pub(crate) fn descriptor(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }

    /// Reads a question without waiting; `None` if the program has closed the line, or sent anything else.
    ///
    /// # Errors
    /// `WouldBlock` if nothing is there yet.
    pub(crate) fn question_now(&self) -> io::Result<Option<Asked>> {
        let mut bytes = [0; REQUEST_BYTES + 1];
        let mut space = nix::cmsg_space!([RawFd; 1]);
        let mut parts = [IoSliceMut::new(&mut bytes)];
        let flags = MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_CMSG_CLOEXEC;
        let message = recvmsg::<UnixAddr>(self.0.as_raw_fd(), &mut parts, Some(&mut space), flags)?;
        let mut sockets: Vec<OwnedFd> = Vec::new();
        for control in message.cmsgs()? {
            if let ControlMessageOwned::ScmRights(descriptors) = control {
                // SAFETY: the kernel has just given these descriptors to us.
                sockets.extend(descriptors.into_iter().map(|fd| unsafe { OwnedFd::from_raw_fd(fd) }));
            }
        }
        let length = message.bytes;
        let request = bytes.get(..length).and_then(BrokerRequest::decode);
        let question = || Question { line: self.clone(), is_answered: AtomicBool::new(false) };
        Ok(request.map(|request| (question(), request, sockets.pop())))
    }
}

impl Question {
    /// Answers, with the given descriptors along.
    ///
    /// # Errors
    /// If the program is gone.
    pub(crate) fn answer(&self, answer: &Answer, descriptors: &[BorrowedFd<'_>]) -> io::Result<()> {
        let bytes = answer.encode();
        let raw: Vec<RawFd> = descriptors.iter().map(AsRawFd::as_raw_fd).collect();
        let control: Vec<ControlMessage<'_>> =
            if raw.is_empty() { Vec::new() } else { vec![ControlMessage::ScmRights(&raw)] };
        let parts = [IoSlice::new(&bytes)];
        let line = self.line.0.as_raw_fd();
        sendmsg::<UnixAddr>(line, &parts, &control, MsgFlags::MSG_NOSIGNAL | MsgFlags::MSG_DONTWAIT, None)?;
        self.is_answered.store(true, Ordering::Relaxed);
        Ok(())
    }
}

impl Drop for Question {
    fn drop(&mut self) {
        if !*self.is_answered.get_mut() {
            // The program may be gone.
            let _ = shutdown(self.line.0.as_raw_fd(), Shutdown::Both);
        }
    }
}
