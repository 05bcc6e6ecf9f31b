//! The same work on many items, by as many threads as there are.

use std::sync::Mutex;

/// Does the same with every item, at the same time if there are threads.
pub(crate) fn with_each<T: Send>(threads: usize, items: &mut [T], act: impl Fn(&mut T) + Sync) {
    let threads = threads.min(items.len());
    if threads <= 1 {
        return items.iter_mut().for_each(act);
    }
    let queue = Mutex::new(items.iter_mut());
    let take = || queue.lock().expect("nobody panics while taking an item").next();
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let Some(item) = take() {
                    act(item);
                }
            });
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_item_is_met_once() {
        for threads in 0..5 {
            let mut items = [0; 17];
            with_each(threads, &mut items, |item| *item += 1);
            assert_eq!(items, [1; 17]);
        }
    }
}
