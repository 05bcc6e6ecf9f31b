//! `poll` with the sockets of early copies beside their streams.
//!
//! ```text
//!  kernel   [ stream, file, stream | socket, socket ]
//!  program  [ stream, file, stream ]                      readable if bytes are kept that come next
//! ```

use std::slice;

use libc::{c_int, c_short, nfds_t, pollfd};

use crate::{
    clock::Limit,
    express::{self, Extent},
    slot,
};

/// Descriptors of one call; with more, streams are woken by the pair alone.
const FDS_MAX: usize = 128;

const READ: c_short = libc::POLLIN | libc::POLLRDNORM;
const EMPTY: pollfd = pollfd { fd: -1, events: 0, revents: 0 };

/// Waits, and returns what `poll` does; `None` if no stream among the descriptors has copies. `call` waits as the program asked,
/// or for at most so many nanoseconds.
///
/// # Safety
/// There are `count` descriptors at `fds`.
pub(crate) unsafe fn wait(
    fds: *mut pollfd,
    count: nfds_t,
    limit: Limit,
    call: impl Fn(*mut pollfd, nfds_t, Option<u64>) -> c_int,
) -> Option<c_int> {
    let count = usize::try_from(count).ok().filter(|count| (1..=FDS_MAX).contains(count) && !fds.is_null())?;
    // SAFETY: the caller vouches for so many.
    let fds = unsafe { slice::from_raw_parts_mut(fds, count) };
    let mut polled = [EMPTY; 2 * FDS_MAX];
    // Of each socket, which of the descriptors it belongs to.
    let mut streams = [0_u8; FDS_MAX];
    let mut sockets = 0;
    for (at, polling) in fds.iter().enumerate().filter(|(_, polling)| polling.events & READ != 0) {
        if let Some(used) = slot::enter(polling.fd) {
            used.listen();
            polled[count + sockets] = pollfd { fd: used.socket, events: libc::POLLIN, revents: 0 };
            streams[sockets] = at as u8;
            sockets += 1;
        }
    }
    if sockets == 0 {
        return None;
    }
    let mut left = None;
    loop {
        let has_kept = streams[..sockets].iter().any(|at| has_kept(fds[usize::from(*at)].fd));
        for (to, from) in polled.iter_mut().zip(fds.iter()) {
            *to = pollfd { revents: 0, ..*from };
        }
        let result = call(polled.as_mut_ptr(), (count + sockets) as nfds_t, if has_kept { Some(0) } else { left });
        if result < 0 {
            return Some(result);
        }
        let (streams_polled, sockets_polled) = polled.split_at_mut(count);
        for (at, socket) in streams[..sockets].iter().zip(sockets_polled) {
            let polling = &mut streams_polled[usize::from(*at)];
            if (has_kept || socket.revents != 0) && can_read(polling.fd) {
                polling.revents |= polling.events & READ;
            }
        }
        let ready = streams_polled.iter().filter(|polling| polling.revents != 0).count();
        let is_over = ready > 0 || (result == 0 && !has_kept) || matches!(limit, Limit::AtOnce);
        if is_over {
            for (to, from) in fds.iter_mut().zip(streams_polled.iter()) {
                to.revents = from.revents;
            }
            return Some(ready as c_int);
        }
        left = limit.left_ns();
    }
}

/// Whether bytes of copies are kept that come next.
pub(crate) fn has_kept(fd: c_int) -> bool {
    slot::is_any_kept() && slot::enter(fd).is_some_and(|used| used.kept_next() > 0)
}

/// Takes copies off a stream's socket. Returns whether bytes are there to be read.
pub(crate) fn can_read(fd: c_int) -> bool {
    slot::enter(fd).is_some_and(|used| express::take(fd, &used, Extent::One))
}
