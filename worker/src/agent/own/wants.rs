//! The time for which a program wanted to compute: what its threads computed, and waited for a processor.

use std::{
    collections::BTreeMap,
    fs,
    time::{Duration, Instant},
};

/// Follows the threads of a program. Of each the kernel counts how long it has computed and how long it has
/// waited for a processor, by its quota or for others (`/proc/PID/schedstat`).
#[derive(Debug, Default)]
pub(crate) struct Wants {
    /// Both together, of each thread, when it was looked at last.
    threads: BTreeMap<i32, Duration>,
    looked: Option<Instant>,
}

impl Wants {
    /// From now on nothing is counted until it is looked at again.
    pub(crate) fn pause(&mut self) {
        self.looked = None;
    }

    /// The time for which no thread wanted to compute since the last look, from what the threads that there are have
    /// come to by now. Several that want to at different times count as one that wants to for as long as
    /// the one that wants to most: the rest is taken for waiting.
    pub(crate) fn waited(
        &mut self,
        now: Instant,
        threads: impl IntoIterator<Item = (i32, Duration)>,
    ) -> Duration {
        let threads: BTreeMap<_, _> = threads.into_iter().collect();
        let since = |(id, came_to): (&i32, &Duration)| {
            came_to.saturating_sub(self.threads.get(id).copied().unwrap_or_default())
        };
        let wanted = threads.iter().map(since).max().unwrap_or_default();
        self.threads = threads;
        match self.looked.replace(now) {
            Some(then) => now.saturating_duration_since(then).saturating_sub(wanted),
            None => Duration::ZERO,
        }
    }
}

/// What a thread has come to: how long it has computed or waited for a processor; `None`: it is gone.
pub(crate) fn wanted_by(thread: i32) -> Option<(i32, Duration)> {
    let text = fs::read_to_string(format!("/proc/{thread}/schedstat")).ok()?;
    let mut numbers = text.split_whitespace().map(str::parse::<u64>);
    let (ran, waited) = (numbers.next()?.ok()?, numbers.next()?.ok()?);
    Some((thread, Duration::from_nanos(ran.saturating_add(waited))))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn what_no_thread_wants_is_waited() {
        let (mut wants, begin) = (Wants::default(), Instant::now());
        assert_eq!(wants.waited(begin, [(1, 50 * MS)]), Duration::ZERO);
        // Of 100 ms thread 1 wants 30, and thread 2, which is new, 60.
        let at = begin + 100 * MS;
        assert_eq!(wants.waited(at, [(1, 80 * MS), (2, 60 * MS)]), 40 * MS);
        // All of it, and a little more than passed.
        assert_eq!(wants.waited(at + 10 * MS, [(2, 71 * MS)]), Duration::ZERO);
        wants.pause();
        assert_eq!(wants.waited(at + 999 * MS, [(2, 71 * MS)]), Duration::ZERO);
        assert_eq!(wants.waited(at + 1009 * MS, []), 10 * MS);
    }

    #[test]
    fn this_thread_has_computed() {
        let me = nix::unistd::gettid().as_raw();
        let before = wanted_by(me).map(|(_, came_to)| came_to);
        let mut sum = 0_u64;
        while wanted_by(me).map(|(_, came_to)| came_to) <= before {
            sum = std::hint::black_box(sum + 1);
        }
        assert_eq!(wanted_by(i32::MAX), None);
    }
}
