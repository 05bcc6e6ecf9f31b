//! Threads for work that waits: kept for the next piece once they are there, since making a thread costs more than most of
//! what a broker has to do for a connection.
//!
//! ```text
//!  run(job) ─▶ a thread is idle ─▶ wakes it
//!           └ none is           ─▶ makes one ─▶ job ─▶ idle for KEPT_FOR ─▶ ends
//! ```
//!
//! There are as many threads as jobs that wait at the same time; whoever hands out jobs bounds them.

use std::{
    collections::VecDeque,
    io,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread,
    time::Duration,
};

/// How long a thread without work is kept.
const KEPT_FOR: Duration = Duration::from_secs(5);
const STACK_BYTES: usize = 256 << 10;

type Job = Box<dyn FnOnce() + Send>;

/// A pool of threads, which end by themselves some time after it was dropped.
#[derive(Default)]
pub(crate) struct ThreadPool(Arc<Shared>);

#[derive(Default)]
struct Shared {
    state: Mutex<JobQueue>,
    arrived: Condvar,
}

#[derive(Default)]
struct JobQueue {
    /// No more than there are idle threads.
    jobs: VecDeque<Job>,
    idle: usize,
}

impl ThreadPool {
    /// Has a thread do this, at once.
    ///
    /// # Errors
    /// If another thread is needed and cannot be had; the job is dropped then.
    pub(crate) fn run(&self, job: impl FnOnce() + Send + 'static) -> io::Result<()> {
        let mut state = self.0.lock();
        if state.jobs.len() < state.idle {
            state.jobs.push_back(Box::new(job));
            drop(state);
            self.0.arrived.notify_one();
            return Ok(());
        }
        drop(state);
        let shared = Arc::clone(&self.0);
        thread::Builder::new().name("ri2n-job".into()).stack_size(STACK_BYTES).spawn(move || {
            job();
            while let Some(job) = shared.next() {
                job();
            }
        })?;
        Ok(())
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, JobQueue> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next job, if one comes in time.
    fn next(&self) -> Option<Job> {
        let mut state = self.lock();
        state.idle += 1;
        let waited = self.arrived.wait_timeout_while(state, KEPT_FOR, |state| state.jobs.is_empty());
        state = waited.unwrap_or_else(PoisonError::into_inner).0;
        state.idle -= 1;
        state.jobs.pop_front()
    }
}

#[cfg(test)]
mod tests {
    use std::{
        collections::BTreeSet,
        sync::{Barrier, mpsc},
    };

    use super::*;

    #[test]
    fn jobs_that_wait_for_each_other_all_run() {
        let pool = ThreadPool::default();
        let meeting = Arc::new(Barrier::new(50));
        let (send, receive) = mpsc::channel();
        for _ in 0..50 {
            let (meeting, send) = (Arc::clone(&meeting), send.clone());
            let job = move || {
                meeting.wait();
                send.send(()).expect("somebody counts");
            };
            pool.run(job).expect("a thread");
        }
        drop(send);
        assert_eq!(receive.iter().count(), 50);
    }

    #[test]
    fn a_thread_does_one_job_after_another() {
        let pool = ThreadPool::default();
        let (send, receive) = mpsc::channel();
        let mut threads = BTreeSet::new();
        for _ in 0..100 {
            let send = send.clone();
            pool.run(move || send.send(format!("{:?}", thread::current().id())).expect("somebody counts"))
                .expect("a thread");
            threads.insert(receive.recv().expect("it ran"));
            // It is idle a moment after it has told.
            while pool.0.lock().idle == 0 {
                thread::yield_now();
            }
        }
        assert_eq!(threads.len(), 1, "{threads:?}");
    }
}
