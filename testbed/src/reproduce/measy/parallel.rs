//! Independent cells on all cores, results in the order of the cells.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// `work` on each of `items`, by `threads` threads; what comes out does not depend on how
/// many there are. `done` is told how many are done after each.
pub(super) fn each<T: Sync, R: Send>(
    items: &[T],
    threads: usize,
    work: impl Fn(&T) -> R + Sync,
    done: impl Fn(usize) + Sync,
) -> Vec<R> {
    let (next, finished) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let results: Vec<Mutex<Option<R>>> = items.iter().map(|_| Mutex::new(None)).collect();
    std::thread::scope(|scope| {
        for _ in 0..threads.clamp(1, items.len().max(1)) {
            scope.spawn(|| {
                loop {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    let Some(item) = items.get(at) else { break };
                    let result = work(item);
                    // Each slot is written once, so a lock is never poisoned by another.
                    if let Ok(mut slot) = results[at].lock() {
                        *slot = Some(result);
                    }
                    done(finished.fetch_add(1, Ordering::Relaxed) + 1);
                }
            });
        }
    });
    // A thread that panicked has ended the scope with its panic: all slots are full.
    results.into_iter().filter_map(|slot| slot.into_inner().ok().flatten()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_is_that_of_the_items_whatever_the_threads() {
        let items: Vec<u64> = (0..100).collect();
        for threads in [1, 2, 7, 200] {
            let out = each(&items, threads, |n| n * n, |_| {});
            assert_eq!(out, items.iter().map(|n| n * n).collect::<Vec<_>>());
        }
    }
}
