//! How one descriptor takes another's place.

use libc::c_int;
use ri2n_session::Name;

use crate::{
    descriptor::{close, pass_options, tcp_socket},
    epoll,
    errno::{errno, set_errno},
    slot,
};

/// Puts `stream` where the unconnected TCP socket `fd` is: flags, options of sockets and epoll registrations stay.
///
/// Returns 0, or -1 with the error set; `stream` is closed in any case.
pub(crate) fn swap(fd: c_int, stream: c_int) -> c_int {
    let swapped = exchange(fd, stream);
    if swapped == 0 {
        let before = errno();
        slot::note(fd);
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
    exchange(fd, socket)
}

/// Puts a new socket where another is; the new one's own number is closed in any case.
fn exchange(fd: c_int, new: c_int) -> c_int {
    // SAFETY: no memory is involved.
    let (status, on_exec) = unsafe { (libc::fcntl(fd, libc::F_GETFL), libc::fcntl(fd, libc::F_GETFD)) };
    pass_options(fd, new);
    let registrations = epoll::leave(fd);
    // SAFETY: both descriptors are open.
    let placed = unsafe {
        libc::fcntl(new, libc::F_SETFL, status);
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
    pass_options(accepted, stream);
    // SAFETY: both descriptors are open.
    let placed = unsafe {
        if flags & libc::SOCK_NONBLOCK != 0 {
            libc::fcntl(stream, libc::F_SETFL, libc::fcntl(stream, libc::F_GETFL) | libc::O_NONBLOCK);
        }
        libc::dup3(stream, accepted, if flags & libc::SOCK_CLOEXEC != 0 { libc::O_CLOEXEC } else { 0 })
    };
    let error = errno();
    close(stream);
    if placed >= 0 {
        slot::note(accepted);
    }
    set_errno(error);
    placed >= 0
}
