//! Work on many things by few threads.

use std::{sync::Mutex, thread};

/// Does something with each item, at most so many at a time; results in the items' order. One that takes long holds only
/// its own place.
pub fn at_once<T: Send, R: Send>(items: Vec<T>, parallel: usize, work: impl Fn(T) -> R + Sync) -> Vec<R> {
    let workers = items.len().min(parallel.max(1));
    let queue = Mutex::new(items.into_iter().enumerate());
    let worker = || {
        let mut done = Vec::new();
        loop {
            // Nobody holds the queue while something is done.
            let next = queue.lock().expect("taking the next does not panic").next();
            let Some((at, item)) = next else { return done };
            done.push((at, work(item)));
        }
    };
    let mut done: Vec<(usize, R)> = thread::scope(|scope| {
        let threads: Vec<_> = (0..workers).map(|_| scope.spawn(worker)).collect();
        threads.into_iter().flat_map(|thread| thread.join().expect("the work does not panic")).collect()
    });
    done.sort_unstable_by_key(|(at, _)| *at);
    done.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    /// The first waits until all the others are done: with a place for it and one for them it is in nobody's way.
    #[test]
    fn one_that_takes_long_holds_only_its_own_place() {
        let (busy, busiest, done) = (AtomicUsize::new(0), AtomicUsize::new(0), AtomicUsize::new(0));
        let work = |item: usize| {
            busiest.fetch_max(busy.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            while item == 0 && done.load(Ordering::SeqCst) < 99 {
                thread::yield_now();
            }
            done.fetch_add(1, Ordering::SeqCst);
            busy.fetch_sub(1, Ordering::SeqCst);
            10 * item
        };
        assert_eq!(at_once((0..100).collect(), 2, work), (0..100).map(|item| 10 * item).collect::<Vec<_>>());
        assert_eq!(busiest.load(Ordering::SeqCst), 2);
        assert_eq!(at_once(vec![7, 8], 0, |item| item), [7, 8], "at least one at a time");
        assert!(at_once(Vec::<u8>::new(), 5, |item| item).is_empty());
    }
}
