//! Several daemons over one store: one has the lease and is the controller, the others stand by.
//!
//! ```text
//!   stand by ─ lease free, or its holder silent ─▶ controller ─ renewed in time ─┐
//!      ▲                                               ▲└───────────────────────┘
//!      └─ started again by systemd ─ ends at once ◀────┘ not renewed in time, or taken by another
//! ```
//! A controller that may have lost the lease ends as a process, so that nothing which is under way goes on: it does so before the
//! lease ends by its own clock. One that was stopped and wakes up later finds that out first; what it sends in between is refused,
//! by the store for want of the lease, and in a deployment by the switches, whose tags have changed.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    thread,
    time::Duration,
};

use records::{Acquired, Clock as _, Held, Lease, Records, SystemClock};

/// The lease's name.
const WRITER: &str = "writer";
/// Tries within the time that a lease lasts.
const TRIES: u32 = 6;
/// So long before the lease ends the controller ends: what is sent until then has arrived.
const MARGIN: Duration = Duration::from_millis(400);
/// How often it is looked whether the lease still lasts.
const MOMENT: Duration = Duration::from_millis(25);

/// The lease, held.
pub struct Leadership {
    lease: Mutex<Lease>,
    held: Mutex<Held>,
    every: Duration,
}

/// Waits for the lease. `is_over` says whether that is to end, and `tell` hears who has the lease meanwhile, when that changes, and
/// why the store cannot be asked.
pub fn await_lease(
    records: &Arc<dyn Records>,
    (name, ttl): (&str, Duration),
    is_over: &mut dyn FnMut() -> bool,
    tell: &mut dyn FnMut(Result<&str, &str>),
) -> Option<Leadership> {
    let mut lease = Lease::new(Arc::clone(records), Arc::new(SystemClock), WRITER, name, ttl);
    let every = ttl / TRIES;
    let mut told: Option<Result<String, String>> = None;
    while !is_over() {
        let found = match lease.acquire() {
            Ok(Acquired::Held(held)) => {
                return Some(Leadership { lease: Mutex::new(lease), held: Mutex::new(held), every });
            }
            Ok(Acquired::Taken { holder, .. }) => Ok(holder),
            Err(error) => Err(error.to_string()),
        };
        if told.as_ref() != Some(&found) {
            tell(found.as_ref().map(String::as_str).map_err(String::as_str));
            told = Some(found);
        }
        thread::sleep(every.min(MOMENT * 8));
    }
    None
}

impl Leadership {
    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Proof that the lease is held.
    pub fn proof(&self) -> Held {
        self.held().clone()
    }

    /// Renews the lease, over and over, until `is_over`.
    pub fn renew(&self, is_over: &dyn Fn() -> bool, lost: &dyn Fn(&str)) {
        while !is_over() {
            let held = self.proof();
            let mut lease = self.lease.lock().unwrap_or_else(PoisonError::into_inner);
            match lease.renew(&held) {
                Ok(Some(renewed)) => *self.held() = renewed,
                Ok(None) => lost("another espalierd has taken the lease"),
                // Whether that is too long is seen by the clock.
                Err(error) => tracing::warn!("the lease was not renewed: {error}"),
            }
            drop(lease);
            let mut waited = Duration::ZERO;
            while waited < self.every && !is_over() {
                thread::sleep(MOMENT);
                waited += MOMENT;
            }
        }
    }

    /// Watches the clock until `is_over`, and says in time that the lease may be lost.
    pub fn watch(&self, is_over: &dyn Fn() -> bool, lost: &dyn Fn(&str)) {
        while !is_over() {
            if !self.held().outlasts(SystemClock.now(), MARGIN) {
                lost("the lease was not renewed in time");
            }
            thread::sleep(MOMENT);
        }
    }

    /// Gives the lease up, so that another takes over at once.
    pub fn release(self) {
        let Self { lease, held, .. } = self;
        let mut lease = lease.into_inner().unwrap_or_else(PoisonError::into_inner);
        let held = held.into_inner().unwrap_or_else(PoisonError::into_inner);
        if let Err(error) = lease.release(held) {
            tracing::warn!("the lease was not given up, and lasts for its time: {error}");
        }
    }
}
