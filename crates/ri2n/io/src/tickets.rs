//! Cookies of servers that were asked a moment ago: the next connection to one of them begins with OPEN, which saves a round trip.

use ri2n::{Time, handshake::Ticket};
use std::{
    collections::HashMap,
    net::{IpAddr, SocketAddr},
    sync::{Mutex, MutexGuard, OnceLock, PoisonError},
    time::Duration,
};

/// How long a server that ignored a cookie is asked for one by each connection: it may be of an older version.
const IGNORED_FOR: Duration = Duration::from_secs(60);
/// Pairs of addresses that are remembered.
const KEPT_MAX: usize = 1024;

/// Whose cookie for whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Between {
    pub(crate) server: SocketAddr,
    /// Our address,
    pub(crate) local: Option<IpAddr>,
    /// and our port.
    pub(crate) port: u16,
}

#[derive(Clone, Copy)]
enum Kept {
    Ticket(Ticket),
    /// None is presented before this.
    Ignored(Time),
}

/// The cookie to begin with, if there is one.
pub(crate) fn find(between: &Between, now: Time) -> Option<Ticket> {
    match lock().get(between) {
        Some(Kept::Ticket(ticket)) if ticket.is_good(now) => Some(*ticket),
        _ => None,
    }
}

/// Remembers a cookie, unless the server ignored one lately.
pub(crate) fn keep(between: &Between, ticket: Ticket, now: Time) {
    let mut kept = lock();
    if matches!(kept.get(between), Some(Kept::Ignored(until)) if now < *until) {
        return;
    }
    insert(&mut kept, between, Kept::Ticket(ticket));
}

/// Notes that a server said nothing to an OPEN with a cookie of another connection.
pub(crate) fn note_ignored(between: &Between, now: Time) {
    insert(&mut lock(), between, Kept::Ignored(now + IGNORED_FOR));
}

fn insert(kept: &mut HashMap<Between, Kept>, between: &Between, what: Kept) {
    if kept.len() >= KEPT_MAX && !kept.contains_key(between) {
        kept.clear();
    }
    kept.insert(*between, what);
}

fn lock() -> MutexGuard<'static, HashMap<Between, Kept>> {
    static KEPT: OnceLock<Mutex<HashMap<Between, Kept>>> = OnceLock::new();
    KEPT.get_or_init(Mutex::default).lock().unwrap_or_else(PoisonError::into_inner)
}
