//! The library that `ri2n run` puts before the C library of an unmodified program.
//!
//! When the program connects to a peer that speaks RI2N, or accepts one, the descriptor becomes one end of an ordinary
//! `AF_UNIX` socket pair, whose other end the session's broker holds. From then on the kernel does nearly everything:
//! reading, writing, polling, `dup`, `fork`, `exec`, `splice`, half-closing. This library sees only the calls in which such a
//! descriptor would differ from a TCP socket:
//!
//! ```text
//!  connect                       ask the broker; swap the descriptor, or go on with plain TCP
//!  listen                        listen for plain TCP, and tell the broker
//!  accept, accept4               a knock of the broker becomes the stream that it announces
//!  getsockname, getpeername      the addresses, read from the descriptor's bound name
//!  getsockopt, setsockopt        options of TCP and IP; SO_ERROR, SO_DOMAIN, SO_PROTOCOL
//!  sendto, sendmsg               an address, which TCP does not look at, is left out
//!  send, write, recv, read, …    small messages of a conversation go by early copies (`express.rs`, `slot.rs`)
//!  poll, select, epoll_wait, …   copies end the wait as well (`wait.rs`, `poll.rs`, `select.rs`, `watch.rs`)
//!  ioctl                         FIONREAD counts what came by a copy
//!  close                         what belongs to them goes as well
//!  epoll_ctl                     remembered, because a swap silently ends a registration
//!  prctl                         a program that filters its system calls is left to its own
//! ```
//!
//! It never allocates, starts a thread, holds a lock or keeps back a signal, so it is as safe in a signal handler, or between
//! `fork` and `exec`, as the calls that it stands for; and without a broker it does nothing.

mod ask;
mod clock;
pub mod data;
mod descriptor;
mod epoll;
mod errno;
mod express;
mod line;
mod options;
mod parts;
mod poll;
mod process;
mod real;
pub mod sandbox;
mod select;
mod signals;
mod slot;
mod swap;
mod table;
pub mod wait;
mod watch;

use std::net::SocketAddr;

use libc::{c_int, c_ulong, c_void, epoll_event, sockaddr, socklen_t};
use ri2n_session::{Operation, Verdict, Waiting, is_knock};

use crate::{
    ask::{Question, ask},
    descriptor::Bound,
    errno::{errno, set_errno},
};

/// Tries RI2N first when the socket is one of TCP and the broker knows the peer; else this is the C library's.
///
/// # Safety
/// As `connect(2)`.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn connect(fd: c_int, address: *const sockaddr, length: socklen_t) -> c_int {
    // SAFETY: the arguments are the caller's, unchanged.
    let plain = || unsafe { real::connect(fd, address, length) };
    if !ask::has_broker() || address.is_null() {
        return plain();
    }
    // SAFETY: the caller vouches for `length` bytes.
    if unsafe { descriptor::is_no_address(address, length) } {
        return descriptor::name(fd).map_or_else(plain, |name| swap::disconnect(fd, &name));
    }
    // SAFETY: the caller vouches for `length` bytes.
    let Some(remote) = (unsafe { descriptor::read_address(address, length) }) else { return plain() };
    let local = match descriptor::bound(fd) {
        Bound::Stream(name) => return connect_again(fd, name.id),
        Bound::Internet(local) => local,
        Bound::Other => return plain(),
    };
    if remote.port() == 0 || descriptor::is_loopback(&remote) || !descriptor::is_fresh_tcp(fd) {
        return plain();
    }
    let flags = descriptor::flags(fd);
    let waiting = if flags & libc::O_NONBLOCK != 0 { Waiting::NonBlocking } else { Waiting::Blocking };
    let question = Question {
        operation: Operation::Connect,
        waiting,
        local: Some(local),
        remote: Some(remote),
        socket: Some(fd),
        ..Question::default()
    };
    match ask(&question) {
        Ok(reply) => match (reply.answer.verdict, reply.descriptor) {
            (Verdict::Ready, Some(stream)) => swap::swap(fd, stream, flags),
            (Verdict::Pending, Some(stream)) => match swap::swap(fd, stream, flags) {
                0 => fail(libc::EINPROGRESS),
                failed => failed,
            },
            (Verdict::Failed(error), _) => fail(error),
            _ => plain(),
        },
        Err(ask::Silent::Interrupted) => fail(libc::EINTR),
        Err(ask::Silent::TimedOut) => fail(libc::EINPROGRESS),
        // What may not be plain TCP fails when nobody can be asked.
        Err(ask::Silent::Gone) if ask::is_required() => fail(libc::EACCES),
        Err(ask::Silent::Gone) => plain(),
    }
}

/// Listens for plain TCP as ever, and has the broker listen for RI2N at the same port. Where plain TCP is not allowed, only
/// connections of this machine reach the listener, the broker's knocks among them.
///
/// # Safety
/// As `listen(2)`.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn listen(fd: c_int, backlog: c_int) -> c_int {
    if ask::is_required() && descriptor::is_tcp(fd) && !descriptor::keep_to_this_machine(fd) {
        return -1;
    }
    // SAFETY: no memory is involved.
    let result = unsafe { real::listen(fd, backlog) };
    if result == 0 && ask::has_broker() && descriptor::is_tcp(fd) {
        let before = errno();
        if let Some(local) = descriptor::local_address(fd).filter(|local| !descriptor::is_loopback(local)) {
            // A broker that cannot listen says so itself; the program is served by plain TCP.
            let _ = ask(&Question { operation: Operation::Listen, local: Some(local), ..Question::default() });
        }
        set_errno(before);
    }
    result
}

/// As [`accept4`] without flags.
///
/// # Safety
/// As `accept(2)`.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn accept(fd: c_int, address: *mut sockaddr, length: *mut socklen_t) -> c_int {
    // SAFETY: the arguments are the caller's, unchanged.
    unsafe { accept_any(fd, address, length, 0, real::Accept::Plain) }
}

/// Accepts a connection of TCP or of RI2N, whichever is first in the queue.
///
/// # Safety
/// As `accept4(2)`.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn accept4(
    fd: c_int,
    address: *mut sockaddr,
    length: *mut socklen_t,
    flags: c_int,
) -> c_int {
    // SAFETY: the arguments are the caller's, unchanged.
    unsafe { accept_any(fd, address, length, flags, real::Accept::WithFlags) }
}

/// The near address, as a socket of TCP would give it.
///
/// # Safety
/// As `getsockname(2)`.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn getsockname(fd: c_int, address: *mut sockaddr, length: *mut socklen_t) -> c_int {
    match descriptor::name(fd) {
        // SAFETY: the caller vouches for the buffer.
        Some(name) => unsafe { descriptor::write_address(&name.local, address, length) },
        // SAFETY: the arguments are the caller's, unchanged.
        None => unsafe { real::getsockname(fd, address, length) },
    }
}

/// The far address, as a socket of TCP would give it.
///
/// # Safety
/// As `getpeername(2)`.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn getpeername(fd: c_int, address: *mut sockaddr, length: *mut socklen_t) -> c_int {
    match descriptor::name(fd) {
        // SAFETY: the caller vouches for the buffer.
        Some(name) => unsafe { descriptor::write_address(&name.remote, address, length) },
        // SAFETY: the arguments are the caller's, unchanged.
        None => unsafe { real::getpeername(fd, address, length) },
    }
}

/// Options of TCP and IP are answered for a stream of RI2N; all others are the kernel's.
///
/// # Safety
/// As `getsockopt(2)`.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn getsockopt(
    fd: c_int,
    level: c_int,
    option: c_int,
    value: *mut c_void,
    length: *mut socklen_t,
) -> c_int {
    if options::concern_us(level, option) {
        if let Some(name) = descriptor::name(fd) {
            // SAFETY: the caller vouches for the buffer.
            return unsafe { options::get(fd, &name, level, option, value, length) };
        }
    }
    // SAFETY: the arguments are the caller's, unchanged.
    unsafe { real::getsockopt(fd, level, option, value, length) }
}

/// Options of TCP and IP on a stream of RI2N are the broker's; all others are the kernel's.
///
/// # Safety
/// As `setsockopt(2)`.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn setsockopt(
    fd: c_int,
    level: c_int,
    option: c_int,
    value: *const c_void,
    length: socklen_t,
) -> c_int {
    let defers = level == libc::IPPROTO_TCP && option == libc::TCP_DEFER_ACCEPT;
    if defers && ask::has_broker() && descriptor::is_tcp(fd) {
        // A knock brings no data, so a listener that waits for some would never see it.
        return 0;
    }
    if options::concern_us(level, option) {
        if let Some(name) = descriptor::name(fd) {
            // SAFETY: the caller vouches for the value.
            return unsafe { options::set(fd, &name, level, option, value, length) };
        }
    }
    // SAFETY: the arguments are the caller's, unchanged.
    let result = unsafe { real::setsockopt(fd, level, option, value, length) };
    if result == 0 && level == libc::SOL_SOCKET && ask::has_broker() {
        match option {
            libc::SO_RCVTIMEO => slot::note_time_limit(fd),
            libc::SO_KEEPALIVE | libc::SO_LINGER => options::note(fd, option),
            _ => {}
        }
    }
    result
}

/// The C library's; what is registered is remembered, for the day when the descriptor is swapped, and the socket of a stream's
/// copies is registered as the stream is.
///
/// # Safety
/// As `epoll_ctl(2)`.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn epoll_ctl(epoll: c_int, operation: c_int, fd: c_int, event: *mut epoll_event) -> c_int {
    let has_copies = slot::is_any_active() && slot::enter(fd).is_some();
    // SAFETY: the caller vouches for the event.
    let prepared = has_copies.then(|| watch::prepare(epoll, operation, fd, unsafe { event.as_ref() }));
    // SAFETY: the arguments are the caller's, unchanged.
    let result = unsafe { real::epoll_ctl(epoll, operation, fd, event) };
    if result == 0 && ask::has_broker() {
        // SAFETY: the kernel has read the event already.
        epoll::remember(epoll, operation, fd, unsafe { event.as_ref() });
    }
    if let Some(prepared) = prepared {
        // SAFETY: as above.
        watch::follow(&prepared, result, operation, unsafe { event.as_ref() });
    }
    result
}

/// A second `connect` on a descriptor that was swapped: what the first one came to.
fn connect_again(fd: c_int, id: u64) -> c_int {
    let state = ask(&Question { operation: Operation::State, id, ..Question::default() });
    match state.map(|reply| reply.answer.verdict) {
        Ok(Verdict::Pending) => fail(libc::EALREADY),
        Ok(Verdict::Failed(error)) => {
            descriptor::clear_error(fd);
            fail(error)
        }
        _ => fail(libc::EISCONN),
    }
}

/// # Safety
/// As `accept4(2)`.
unsafe fn accept_any(
    fd: c_int,
    address: *mut sockaddr,
    length: *mut socklen_t,
    flags: c_int,
    which: real::Accept,
) -> c_int {
    if !ask::has_broker() {
        // SAFETY: the arguments are the caller's, unchanged.
        return unsafe { real::accept(fd, address, length, flags, which) };
    }
    loop {
        let mut storage = descriptor::Storage::new();
        // SAFETY: the storage holds any address.
        let accepted = unsafe { real::accept(fd, storage.address(), &mut storage.length, flags, which) };
        if accepted < 0 {
            return accepted;
        }
        let stream = match storage.decode() {
            Some(knock) if is_knock(&knock) => claim(accepted, &knock),
            _ => Claim::Ordinary,
        };
        match stream {
            // A listener from before the session has no filter.
            Claim::Ordinary if ask::is_required() && descriptor::is_of_other_machine(&storage) => {
                descriptor::close_by_reset(accepted);
            }
            Claim::Ordinary => {
                // SAFETY: the caller vouches for the buffer.
                unsafe { storage.copy_to(address, length) };
                return accepted;
            }
            Claim::Stream(stream, remote) => {
                if !swap::take_place(accepted, stream, flags) {
                    return fail_closed(accepted);
                }
                if !address.is_null() {
                    // SAFETY: the caller vouches for the buffer.
                    unsafe { descriptor::write_address(&remote, address, length) };
                }
                return accepted;
            }
            // The peer is gone again before we opened: to a program, it never knocked.
            Claim::Gone => descriptor::close(accepted),
        }
    }
}

enum Claim {
    Ordinary,
    Stream(c_int, SocketAddr),
    Gone,
}

fn claim(accepted: c_int, knock: &SocketAddr) -> Claim {
    let before = errno();
    let question = Question {
        operation: Operation::Claim,
        local: descriptor::local_address(accepted),
        remote: Some(*knock),
        socket: Some(accepted),
        ..Question::default()
    };
    let claim = loop {
        match ask(&question) {
            Err(ask::Silent::Interrupted) => {}
            Ok(reply) => {
                break match (reply.answer.verdict, reply.descriptor, reply.answer.remote) {
                    (Verdict::Ready, Some(stream), Some(remote)) => Claim::Stream(stream, remote),
                    (Verdict::Plain, ..) => Claim::Ordinary,
                    _ => Claim::Gone,
                };
            }
            Err(_) => break Claim::Gone,
        }
    };
    set_errno(before);
    claim
}

/// The descriptor cannot be had; the error is set.
fn fail_closed(accepted: c_int) -> c_int {
    let error = errno();
    descriptor::close(accepted);
    fail(error)
}

fn fail(error: c_int) -> c_int {
    set_errno(error);
    -1
}

/// The C library's; a program that is about to put itself under a filter is left to its own calls from now on.
///
/// # Safety
/// As `prctl(2)`, which takes four arguments after the option, whatever their number in the call.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn prctl(option: c_int, a: c_ulong, b: c_ulong, c: c_ulong, d: c_ulong) -> c_int {
    if matches!(option, libc::PR_SET_SECCOMP | libc::PR_SET_NO_NEW_PRIVS) {
        watch::end_all();
        sandbox::begin();
    }
    // SAFETY: the arguments are the caller's, unchanged.
    unsafe { real::prctl(option, a, b, c, d) }
}

/// Finds the C library's functions, and reads the broker's address before the program can change its environment.
#[used]
#[unsafe(link_section = ".init_array")]
static AT_LOAD: extern "C" fn() = at_load;

extern "C" fn at_load() {
    real::find_all();
    ask::find_broker();
    slot::tell_of_copies(&watch::COPIES);
    if ask::has_broker() {
        sandbox::look();
        if !sandbox::is_on() {
            line::prepare();
        }
    }
}
