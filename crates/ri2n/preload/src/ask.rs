//! Asks the session's broker: a packet there, a packet and perhaps a descriptor back, on a line that is kept (`line.rs`) or on one
//! for this question alone.
//!
//! The broker's name is abstract, so it belongs to the network namespace: a program that moved to another namespace, or
//! outlived its session, finds nobody there and is served by plain TCP.

use std::{
    mem,
    net::SocketAddr,
    ptr,
    sync::{
        OnceLock,
        atomic::{AtomicBool, Ordering},
    },
};

use libc::c_int;
use ri2n_session::{
    ANSWER_BYTES, Answer, BROKER_VARIABLE, BrokerRequest, Operation, Policy, SocketOption, Token, Waiting, parse_broker,
};

use crate::{descriptor, errno::errno, line, real, sandbox};

/// What is asked; the token is added here.
pub(crate) struct Question {
    pub(crate) operation: Operation,
    pub(crate) waiting: Waiting,
    pub(crate) id: u64,
    pub(crate) option: SocketOption,
    pub(crate) local: Option<SocketAddr>,
    pub(crate) remote: Option<SocketAddr>,
    pub(crate) socket: Option<c_int>,
}

impl Default for Question {
    fn default() -> Self {
        Self {
            operation: Operation::State,
            waiting: Waiting::Blocking,
            id: 0,
            option: SocketOption::default(),
            local: None,
            remote: None,
            socket: None,
        }
    }
}

/// What came back.
pub(crate) struct Reply {
    pub(crate) answer: Answer,
    pub(crate) descriptor: Option<c_int>,
    /// Where two were asked for.
    pub(crate) second: Option<c_int>,
}

/// Why nothing came back.
pub(crate) enum Silent {
    /// A signal's handler ran.
    Interrupted,
    /// The program's own time limit on the socket passed.
    TimedOut,
    /// There is no broker here.
    Gone,
}

struct Broker {
    address: libc::sockaddr_un,
    length: libc::socklen_t,
    token: Token,
    policy: Policy,
}

static BROKER: OnceLock<Broker> = OnceLock::new();
static FOUND: AtomicBool = AtomicBool::new(false);

/// Whether this program belongs to a session.
pub(crate) fn has_broker() -> bool {
    FOUND.load(Ordering::Acquire)
}

/// Whether connections with other machines must not be plain TCP.
pub(crate) fn is_required() -> bool {
    has_broker() && BROKER.get().is_some_and(|broker| broker.policy == Policy::Required)
}

/// Reads the environment; called once, while the program is loaded.
pub(crate) fn find_broker() {
    let mut variable = [0_u8; 32];
    variable[..BROKER_VARIABLE.len()].copy_from_slice(BROKER_VARIABLE.as_bytes());
    // SAFETY: the name ends with a zero, and no other thread runs yet.
    let value = unsafe {
        let value = libc::getenv(variable.as_ptr().cast());
        if value.is_null() {
            return;
        }
        std::ffi::CStr::from_ptr(value).to_bytes()
    };
    let Some((name, token, policy)) = parse_broker(value) else { return };
    // SAFETY: all zeros is a valid address.
    let mut address: libc::sockaddr_un = unsafe { mem::zeroed() };
    address.sun_family = libc::AF_UNIX as libc::sa_family_t;
    // The first byte stays zero: the name is abstract.
    for (to, from) in address.sun_path[1..].iter_mut().zip(name) {
        *to = *from as libc::c_char;
    }
    let length = (mem::offset_of!(libc::sockaddr_un, sun_path) + 1 + name.len()) as libc::socklen_t;
    let _ = BROKER.set(Broker { address, length, token, policy });
    FOUND.store(true, Ordering::Release);
}

/// Asks, and waits for the answer.
///
/// # Errors
/// If there is none.
pub(crate) fn ask(question: &Question) -> Result<Reply, Silent> {
    let broker = BROKER.get().ok_or(Silent::Gone)?;
    let may_keep = !sandbox::is_on() && !matches!(question.operation, Operation::Listen | Operation::Drain);
    if let Some(kept) = may_keep.then(|| line::take(question.socket)).flatten() {
        let limit = pass_time_limit(question, kept.fd);
        match converse(kept.fd, broker, question) {
            Ok(reply) if limit == Limit::None => {
                kept.keep();
                return Ok(reply);
            }
            // The broker has given up the line, and has not read the question.
            Err(Lost::Line) => kept.close(),
            result => {
                kept.close();
                return result.map_err(Lost::silent);
            }
        }
    }
    // SAFETY: no memory is involved.
    let line = unsafe { libc::socket(libc::AF_UNIX, libc::SOCK_SEQPACKET | libc::SOCK_CLOEXEC, 0) };
    if line < 0 {
        return Err(Silent::Gone);
    }
    // SAFETY: the address is as long as it says.
    if unsafe { real::connect(line, ptr::from_ref(&broker.address).cast(), broker.length) } != 0 {
        let silent = Lost::now().silent();
        descriptor::close(line);
        return Err(silent);
    }
    let limit = pass_time_limit(question, line);
    let reply = converse(line, broker, question).map_err(Lost::silent);
    if may_keep && reply.is_ok() && limit == Limit::None {
        line::keep(line)
    } else {
        descriptor::close(line)
    }
    reply
}

/// Whether a line has a time limit of one question.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Limit {
    None,
    Set,
}

/// Gives a line the time limit that the program has set for connecting.
fn pass_time_limit(question: &Question, line: c_int) -> Limit {
    let socket = question.socket.filter(|_| question.operation == Operation::Connect);
    let is_set = socket.is_some_and(|socket| descriptor::pass_time_limit(socket, line));
    if is_set { Limit::Set } else { Limit::None }
}

/// Why an answer did not come on a line.
enum Lost {
    /// The broker has closed it before it read the question.
    Line,
    Answer(Silent),
}

impl Lost {
    /// What the last call's error means.
    fn now() -> Self {
        match errno() {
            libc::EINTR => Self::Answer(Silent::Interrupted),
            libc::EAGAIN => Self::Answer(Silent::TimedOut),
            libc::EPIPE | libc::ECONNRESET => Self::Line,
            _ => Self::Answer(Silent::Gone),
        }
    }

    fn silent(self) -> Silent {
        match self {
            Self::Line => Silent::Gone,
            Self::Answer(silent) => silent,
        }
    }
}

fn converse(line: c_int, broker: &Broker, question: &Question) -> Result<Reply, Lost> {
    let request = BrokerRequest {
        token: broker.token,
        operation: question.operation,
        waiting: question.waiting,
        id: question.id,
        option: question.option,
        local: question.local,
        remote: question.remote,
    };
    send(line, &request.encode(), question.socket)?;
    receive(line, question.operation)
}

/// Room for one descriptor, aligned as `cmsghdr` wants it.
#[repr(C, align(8))]
struct Control([u8; 32]);

fn send(line: c_int, bytes: &[u8], socket: Option<c_int>) -> Result<(), Lost> {
    let mut control = Control([0; 32]);
    let mut part = libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
    // SAFETY: all zeros is an empty header.
    let mut message: libc::msghdr = unsafe { mem::zeroed() };
    message.msg_iov = &mut part;
    message.msg_iovlen = 1;
    if let Some(socket) = socket {
        message.msg_control = control.0.as_mut_ptr().cast();
        // SAFETY: the control buffer has room for one descriptor, and these macros stay inside it.
        unsafe {
            message.msg_controllen = libc::CMSG_SPACE(4) as _;
            let header = libc::CMSG_FIRSTHDR(&message);
            (*header).cmsg_level = libc::SOL_SOCKET;
            (*header).cmsg_type = libc::SCM_RIGHTS;
            (*header).cmsg_len = libc::CMSG_LEN(4) as _;
            ptr::write_unaligned(libc::CMSG_DATA(header).cast(), socket);
        }
    }
    // SAFETY: the message points to live buffers.
    if unsafe { real::sendmsg(line, &raw const message, libc::MSG_NOSIGNAL) } < 0 { Err(Lost::now()) } else { Ok(()) }
}

fn receive(line: c_int, operation: Operation) -> Result<Reply, Lost> {
    let mut control = Control([0; 32]);
    let mut bytes = [0_u8; ANSWER_BYTES];
    let mut part = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: bytes.len() };
    // SAFETY: all zeros is an empty header.
    let mut message: libc::msghdr = unsafe { mem::zeroed() };
    message.msg_iov = &mut part;
    message.msg_iovlen = 1;
    message.msg_control = control.0.as_mut_ptr().cast();
    message.msg_controllen = control.0.len() as _;
    let received = loop {
        // SAFETY: the message points to live buffers.
        let received = unsafe { real::recvmsg(line, &raw mut message, libc::MSG_CMSG_CLOEXEC) };
        // A stream is handed over once: what is claimed must not be lost for a signal.
        if received >= 0 || errno() != libc::EINTR || operation != Operation::Claim {
            break received;
        }
    };
    if received < 0 {
        return Err(Lost::now());
    }
    let mut descriptors = [None; 2];
    // SAFETY: the kernel has filled the control buffer; the macros stay inside it.
    unsafe {
        let header = libc::CMSG_FIRSTHDR(&message);
        if !header.is_null() && (*header).cmsg_level == libc::SOL_SOCKET && (*header).cmsg_type == libc::SCM_RIGHTS {
            let count = ((*header).cmsg_len as usize - libc::CMSG_LEN(0) as usize) / mem::size_of::<c_int>();
            for (at, descriptor) in descriptors.iter_mut().enumerate().take(count) {
                *descriptor = Some(ptr::read_unaligned(libc::CMSG_DATA(header).cast::<c_int>().add(at)));
            }
        }
    };
    let [descriptor, second] = descriptors;
    match Answer::decode(&bytes[..received as usize]) {
        Some(answer) => Ok(Reply { answer, descriptor, second }),
        None => {
            for descriptor in descriptors.into_iter().flatten() {
                descriptor::close(descriptor);
            }
            Err(Lost::Answer(Silent::Gone))
        }
    }
}
