//! Rounds over many things by few threads: each thing comes up every so often, and at once when it is given an order.
//!
//! ```text
//!   due: s3 now, s1 in 0.2 s, s2 in 0.4 s ─▶ a free thread takes s3 ─▶ s3 in 0.5 s, or at once if there is a new order
//! ```
//! One that takes long holds one thread; the others go on.

use std::{
    collections::BTreeSet,
    sync::{Condvar, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

/// What comes up when.
pub(crate) struct Rounds<T> {
    inner: Mutex<Inner<T>>,
    changed: Condvar,
    interval: Duration,
}

struct Inner<T> {
    due: BTreeSet<(Instant, usize)>,
    orders: Vec<Option<T>>,
    /// Those that were hastened while they were in somebody's hands.
    again: BTreeSet<usize>,
    state: RoundState,
}

#[derive(PartialEq, Eq)]
enum RoundState {
    Running,
    Ended,
}

impl<T> Inner<T> {
    /// Whether it waited, and so comes up now.
    fn bring_forward(&mut self, at: usize, now: Instant) -> bool {
        let Some(waiting) = self.due.iter().copied().find(|(_, waiting)| *waiting == at) else { return false };
        self.due.remove(&waiting);
        self.due.insert((now.min(waiting.0), at));
        true
    }
}

impl<T: Clone> Rounds<T> {
    /// So many things, all due now and then each `interval` after it was done.
    pub(crate) fn new(count: usize, interval: Duration, now: Instant) -> Self {
        let due = (0..count).map(|at| (now + interval, at)).collect();
        let orders = (0..count).map(|_| None).collect();
        let inner = Inner { due, orders, again: BTreeSet::new(), state: RoundState::Running };
        Self { inner: Mutex::new(inner), changed: Condvar::new(), interval }
    }

    fn lock(&self) -> MutexGuard<'_, Inner<T>> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for the next that is due; it and its last order. None once it is over.
    pub(crate) fn next(&self) -> Option<(usize, Option<T>)> {
        let mut inner = self.lock();
        loop {
            if inner.state == RoundState::Ended {
                return None;
            }
            let now = Instant::now();
            let wait = match inner.due.first() {
                Some((when, _)) if *when <= now => {
                    let (_, at) = inner.due.pop_first()?;
                    let order = inner.orders[at].clone();
                    return Some((at, order));
                }
                Some((when, _)) => *when - now,
                None => self.interval,
            };
            inner = self.changed.wait_timeout(inner, wait).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Puts one back that was done by its order of this turn; at once, if it has been given another since.
    pub(crate) fn done(&self, at: usize, turn: u64, turn_of: impl Fn(&T) -> u64) {
        let mut inner = self.lock();
        let newer = inner.orders[at].as_ref().is_some_and(|order| turn_of(order) != turn) || inner.again.remove(&at);
        let now = Instant::now();
        inner.due.insert((if newer { now } else { now + self.interval }, at));
        self.changed.notify_one();
    }

    /// Gives one an order, for which it comes up at once.
    pub(crate) fn order(&self, at: usize, order: T, now: Instant) {
        let mut inner = self.lock();
        inner.orders[at] = Some(order);
        inner.bring_forward(at, now);
        self.changed.notify_one();
    }

    /// Has one come up at once, with the order that it has; one that is in somebody's hands comes up again as soon as it is done.
    pub(crate) fn hasten(&self, at: usize, now: Instant) {
        let mut inner = self.lock();
        if at < inner.orders.len() && !inner.bring_forward(at, now) {
            inner.again.insert(at);
        }
        drop(inner);
        self.changed.notify_one();
    }

    /// Ends all rounds.
    pub(crate) fn end(&self) {
        self.lock().state = RoundState::Ended;
        self.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::{
        sync::atomic::{AtomicUsize, Ordering},
        thread,
    };

    use super::*;

    /// The interval is an hour: whatever comes up was hastened, also what was in somebody's hands then.
    #[test]
    fn what_is_hastened_comes_up_at_once() {
        let rounds = Rounds::<u64>::new(2, Duration::from_secs(3600), Instant::now());
        rounds.hasten(1, Instant::now());
        assert_eq!(rounds.next(), Some((1, None)));
        rounds.hasten(1, Instant::now());
        rounds.done(1, 0, |order| *order);
        assert_eq!(rounds.next(), Some((1, None)));
        rounds.done(1, 0, |order| *order);
        rounds.hasten(0, Instant::now());
        assert_eq!(rounds.next(), Some((0, None)));
    }

    #[test]
    fn orders_come_first_and_nothing_is_in_two_hands() {
        let (things, hands) = (20, 3);
        let rounds = Rounds::<u64>::new(things, Duration::from_millis(2), Instant::now());
        let held: Vec<AtomicUsize> = (0..things).map(|_| AtomicUsize::new(0)).collect();
        let (done, busy) = (AtomicUsize::new(0), AtomicUsize::new(0));
        thread::scope(|scope| {
            for _ in 0..hands {
                scope.spawn(|| {
                    while let Some((at, order)) = rounds.next() {
                        assert_eq!(held[at].fetch_add(1, Ordering::SeqCst), 0, "in two hands");
                        assert!(busy.fetch_add(1, Ordering::SeqCst) < hands);
                        if order == Some(7) {
                            done.fetch_add(1, Ordering::SeqCst);
                        }
                        thread::yield_now();
                        busy.fetch_sub(1, Ordering::SeqCst);
                        held[at].fetch_sub(1, Ordering::SeqCst);
                        rounds.done(at, order.unwrap_or(0), |order| *order);
                    }
                });
            }
            for at in 0..things {
                rounds.order(at, 7, Instant::now());
                rounds.hasten(at, Instant::now());
                rounds.hasten(things, Instant::now());
            }
            while done.load(Ordering::SeqCst) < 3 * things {
                thread::yield_now();
            }
            rounds.end();
        });
    }
}
