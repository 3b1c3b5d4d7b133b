//! One processor for a run in virtual time and its program.
//!
//! The two never compute at the same time: one writes a line and waits for the other's. On two
//! processors each line wakes a processor that had gone to sleep, which takes longer than all else
//! that is done for it; on one the processor just changes hands.

use std::sync::atomic::{AtomicUsize, Ordering};

use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::{Pid, gettid};

/// Pins a thread to one processor until it is dropped.
#[derive(Debug)]
pub(crate) struct OneProcessor {
    thread: Pid,
    before: CpuSet,
}

impl OneProcessor {
    /// Pins this thread, and the processes that it starts from now on, to one of its allowed
    /// processors: a thread always to the same, other threads and processes to the next ones.
    /// `None` if there is only one.
    pub(crate) fn pin_thread() -> Option<Self> {
        static THREADS: AtomicUsize = AtomicUsize::new(0);
        thread_local! {
            static OWN: usize = THREADS.fetch_add(1, Ordering::Relaxed);
        }
        let thread = gettid();
        let before = sched_getaffinity(thread).ok()?;
        let usable = (0..CpuSet::count()).filter(|cpu| before.is_set(*cpu).unwrap_or(false));
        let usable: Vec<usize> = usable.collect();
        if usable.len() < 2 {
            return None;
        }
        let own = OWN.with(|own| *own).wrapping_add(std::process::id() as usize);
        let chosen = usable[own % usable.len()];
        let mut one = CpuSet::new();
        one.set(chosen).ok()?;
        sched_setaffinity(thread, &one).ok()?;
        Some(Self { thread, before })
    }
}

impl Drop for OneProcessor {
    fn drop(&mut self) {
        // The thread may have ended before.
        let _ = sched_setaffinity(self.thread, &self.before);
    }
}
