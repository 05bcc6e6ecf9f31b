//! How one descriptor takes another's place.

use libc::c_int;
use ri2n_session::Name;

use crate::{
    descriptor::{self, close, pass_options, tcp_socket},
    epoll,
    errno::{errno, set_errno},
    slot,
};

/// Puts `stream` where the unconnected TCP socket `fd` is, whose file has these flags: flags, options of sockets and epoll
/// registrations stay.
///
/// Returns 0, or -1 with the error set; `stream` is closed in any case.
pub(crate) fn swap(fd: c_int, stream: c_int, flags: c_int) -> c_int {
    let has_time_limit = pass_options(fd, stream);
    let swapped = exchange(fd, stream, flags);
    if swapped == 0 {
        let before = errno();
        slot::note(fd, has_time_limit);
        set_errno(before);
    }
    swapped
}

/// Puts an unconnected socket of TCP where the stream `fd` is, as `connect` to no address does. Returns 0, or -1 with the
/// error set.
pub(crate) fn disconnect(fd: c_int, name: &Name) -> c_int {
    let socket = tcp_socket(name);
    if socket < 0 {
        return -1;
    }
    slot::close(fd);
    pass_options(fd, socket);
    exchange(fd, socket, descriptor::flags(fd))
}

/// Puts a new socket where another is, whose file has these flags; the new one's own number is closed in any case.
fn exchange(fd: c_int, new: c_int, flags: c_int) -> c_int {
    // SAFETY: no memory is involved.
    let on_exec = unsafe { libc::fcntl(fd, libc::F_GETFD) };
    let registrations = epoll::leave(fd);
    // SAFETY: both descriptors are open.
    let placed = unsafe {
        // A new socket has no flag that can be set.
        if flags & !libc::O_ACCMODE != 0 {
            libc::fcntl(new, libc::F_SETFL, flags);
        }
        libc::dup3(new, fd, if on_exec & libc::FD_CLOEXEC != 0 { libc::O_CLOEXEC } else { 0 })
    };
    epoll::enter(fd, &registrations);
    let error = errno();
    close(new);
    set_errno(error);
    if placed < 0 { -1 } else { 0 }
}

/// Puts `stream` where an accepted connection is, with the flags of `accept4` and the options that it has from its
/// listener. Returns whether that went well; if not, the error is set. `stream` is closed in any case.
pub(crate) fn take_place(accepted: c_int, stream: c_int, flags: c_int) -> bool {
    let has_time_limit = pass_options(accepted, stream);
    // SAFETY: both descriptors are open.
    let placed = unsafe {
        if flags & libc::SOCK_NONBLOCK != 0 {
            // A new socket has no other flag that can be set.
            libc::fcntl(stream, libc::F_SETFL, libc::O_NONBLOCK);
        }
        libc::dup3(stream, accepted, if flags & libc::SOCK_CLOEXEC != 0 { libc::O_CLOEXEC } else { 0 })
    };
    let error = errno();
    close(stream);
    if placed >= 0 {
        slot::note(accepted, has_time_limit);
    }
    set_errno(error);
    placed >= 0
}
