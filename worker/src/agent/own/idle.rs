//! Noticing a program that has done nothing since it was restored: it may wait for something that was lost with its old
//! VM.
//!
//! A program that computes, or writes to its standard output or error, isn't idle; one that sleeps for long counts as
//! idle until it wakes. Idle programs are only reported, and run on.

use std::time::Duration;
use tokio::time::Instant;

/// CPU time below which a program counts as idle: processes use that much when they are woken in vain.
const NOTHING_NS: u64 = 10_000_000;
/// Longest interval between two looks that counts: in a longer one this process didn't run, and so perhaps neither did
/// the program.
const LATE: Duration = Duration::from_secs(1);

/// Activity of a restored program: CPU time of its processes without their supervisor, in nanoseconds, and bytes that
/// it has written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ProgramActivity {
    pub(crate) cpu_ns: u64,
    pub(crate) written: u64,
}

/// Watches a restored program until it has done something, or nothing for a long time.
#[derive(Debug, Default)]
pub(crate) struct IdleWatch {
    /// The program's activity at the first look after the restore; `None` before that look.
    first: Option<ProgramActivity>,
    looked: Option<Instant>,
    /// Time for which the program could have run since the first look.
    free: Duration,
    /// True once the watch is over: the program has done something, or was reported as idle.
    is_over: bool,
}

impl IdleWatch {
    /// Pauses the watch for an idle program until its activity is recorded next.
    pub(crate) fn pause_watch(&mut self) {
        self.looked = None;
    }

    /// Returns whether the watch goes on, so that the program may still be reported as idle.
    pub(crate) const fn is_on(&self) -> bool {
        !self.is_over
    }

    /// Records the activity of a program that may run; returns for how long it has done nothing, once that is at
    /// least `long`.
    pub(crate) fn note_activity(
        &mut self,
        now: Instant,
        deeds: ProgramActivity,
        long: Duration,
    ) -> Option<Duration> {
        let first = *self.first.get_or_insert(deeds);
        if self.is_over {
            return None;
        }
        let computed = deeds.cpu_ns.saturating_sub(first.cpu_ns) >= NOTHING_NS;
        if computed || deeds.written != first.written {
            self.is_over = true;
            return None;
        }
        if let Some(then) = self.looked.replace(now) {
            self.free += now.saturating_duration_since(then).min(LATE);
        }
        self.is_over = self.free >= long;
        self.is_over.then_some(self.free)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(10);

    /// Returns the number of the look, of ten a second for a minute, at which a program with this activity is reported
    /// as idle, and for how long it was idle then.
    fn said(deeds: impl Fn(u64) -> ProgramActivity) -> Option<(u64, Duration)> {
        let (mut watch, begun) = (IdleWatch::default(), Instant::now());
        let said = (0..600).filter_map(|look| {
            let now = begun + Duration::from_millis(look * 100);
            watch.note_activity(now, deeds(look), LONG).map(|free| (look, free))
        });
        let said: Vec<_> = said.collect();
        assert!(said.len() < 2, "{said:?}");
        said.first().copied()
    }

    #[test]
    fn only_who_does_nothing_is_told_and_once() {
        let still = ProgramActivity { cpu_ns: 7, written: 3 };
        assert_eq!(said(|_| still), Some((100, LONG)));
        // What waking in vain takes is nothing; a line or some work is something.
        assert!(said(|look| ProgramActivity { cpu_ns: 7 + look * 1000, ..still }).is_some());
        assert_eq!(said(|look| ProgramActivity { cpu_ns: 7 + look * 200_000, ..still }), None);
        assert_eq!(said(|look| ProgramActivity { written: 3 + look / 90, ..still }), None);
    }

    #[test]
    fn what_passes_while_it_may_not_run_does_not_count() {
        let (mut watch, mut now) = (IdleWatch::default(), Instant::now());
        let still = ProgramActivity { cpu_ns: 0, written: 0 };
        for _ in 0..50 {
            assert_eq!(watch.note_activity(now, still, LONG), None);
            watch.pause_watch();
            now += Duration::from_secs(3600);
            assert_eq!(watch.note_activity(now, still, LONG), None);
            now += Duration::from_millis(100);
        }
        assert!(watch.is_on());
        // Between fifty looks in a row there are as many tenths of a second, but one.
        assert_eq!(watch.free, Duration::from_millis(4_900));
    }
}
