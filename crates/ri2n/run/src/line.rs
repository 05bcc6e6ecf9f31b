//! The broker's side of its control socket: packets of the session's programs, and descriptors along with them.

use std::{
    io::{self, IoSlice, IoSliceMut},
    os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd},
};

use nix::sys::socket::{
    AddressFamily, Backlog, ControlMessage, ControlMessageOwned, MsgFlags, SockFlag, SockType, UnixAddr, accept4, bind,
    listen, recvmsg, sendmsg, socket,
};
use ri2n_session::{Answer, BrokerRequest, REQUEST_BYTES};

/// The control socket.
pub(crate) struct ControlSocket(OwnedFd);

/// One program's question; dropping it unanswered tells the program to use plain TCP.
pub(crate) struct Line(OwnedFd);

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

    pub(crate) fn accept(&self) -> io::Result<Line> {
        let line = accept4(self.0.as_raw_fd(), SockFlag::SOCK_CLOEXEC)?;
        // SAFETY: the kernel has just given this descriptor to us.
        Ok(Line(unsafe { OwnedFd::from_raw_fd(line) }))
    }

    pub(crate) fn descriptor(&self) -> BorrowedFd<'_> {
        std::os::fd::AsFd::as_fd(&self.0)
    }
}

impl Line {
    /// Reads the question, and the socket that came along, without waiting; `None` for anything else.
    ///
    /// # Errors
    /// `WouldBlock` if nothing is there yet.
    pub(crate) fn question_now(&self) -> io::Result<Option<(BrokerRequest, Option<OwnedFd>)>> {
        self.read(MsgFlags::MSG_DONTWAIT)
    }

    pub(crate) fn descriptor(&self) -> BorrowedFd<'_> {
        std::os::fd::AsFd::as_fd(&self.0)
    }

    fn read(&self, flags: MsgFlags) -> io::Result<Option<(BrokerRequest, Option<OwnedFd>)>> {
        let mut bytes = [0; REQUEST_BYTES + 1];
        let mut space = nix::cmsg_space!([RawFd; 1]);
        let mut parts = [IoSliceMut::new(&mut bytes)];
        let flags = flags | MsgFlags::MSG_CMSG_CLOEXEC;
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
        Ok(request.map(|request| (request, sockets.pop())))
    }

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
        sendmsg::<UnixAddr>(self.0.as_raw_fd(), &parts, &control, MsgFlags::MSG_NOSIGNAL, None)?;
        Ok(())
    }
}
