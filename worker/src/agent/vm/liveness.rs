//! Noticing a task that hangs: its process exists, but does no work.
//!
//! A task's heartbeat comes with every unit of its work, which is some milliseconds of CPU time
//! (`dormouse_tasks::progress`). A program that reports nothing has no heartbeat, and ends within such a time. Only
//! time in which a task may run counts: not while its VM is frozen, while the task is stopped for its checkpoint or
//! because it is ahead, or while CRIU works on it.
//!
//! What is too long follows from what the task is promised: a low quota or the baseline of a
//! burstable VM makes it longer, and so does a background that has a foreground before it.

use std::time::Duration;
use tokio::time::Instant;

/// CPU time without a heartbeat after which a task counts as hanging: more than a thousand times the time that programs
/// take between two heartbeats.
const TOO_LONG: Duration = Duration::from_secs(5);
/// Least time without a heartbeat after which a task counts as hanging, whatever its quota: the host may be stopped for a while, as
/// with a slow disk.
const AT_LEAST: Duration = Duration::from_secs(30);
/// Multiple of [`TOO_LONG`] for a task that got some of the CPU time of its share but too little, as its host may be busy: the task
/// counts as hanging if its share gave it this CPU time without a heartbeat.
const BUSY: u32 = 10;
/// CPU time that counts as nothing: a process needs as much for going to sleep.
const NOTHING: Duration = Duration::from_millis(10);
/// Longest interval between two looks that counts: in a longer one this process didn't run, and so perhaps neither did
/// the tasks.
const LATE: Duration = Duration::from_secs(1);

/// Progress of a task when it was last checked, to find out whether it hangs.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct TaskLiveness {
    beat: Option<u64>,
    /// Time of the last check, and the CPU time charged to the task's slot by then, in nanoseconds, if known.
    looked: Option<(Instant, Option<u64>)>,
    /// Times since the last heartbeat.
    without: SilentTime,
}

/// Times of a task since its last heartbeat, in which it could run, should have computed, and did compute.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct SilentTime {
    /// Time since the last heartbeat in which the task could have run.
    free: Duration,
    /// CPU time that the task's share of the host gave it since the last heartbeat.
    due: Duration,
    had: Duration,
}

/// The task hangs: it does no work though it could.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "it hangs: it did no work for {} ms in which it could run; {} ms of CPU time were due to it, \
     and it had {} ms",
    .0.free.as_millis(), .0.due.as_millis(), .0.had.as_millis()
)]
pub(crate) struct HangWatch(SilentTime);

impl TaskLiveness {
    /// Pauses the watch until the task is next checked: the time until then doesn't count.
    pub(crate) fn pause_watch(&mut self) {
        self.looked = None;
    }

    /// Records a look at a task that may run: its count of heartbeats, if that can be read; its share of a host core,
    /// in ppm; and the CPU time charged to its slot, if the kernel tells it.
    ///
    /// # Errors
    ///
    /// The task hangs.
    pub(crate) fn note_beat(
        &mut self,
        now: Instant,
        beat: Option<u64>,
        ppm: u32,
        charged_ns: impl FnOnce() -> Option<u64>,
    ) -> Result<(), HangWatch> {
        if beat.is_some() && beat != self.beat {
            *self = Self { beat, looked: Some((now, None)), without: SilentTime::default() };
            return Ok(());
        }
        let charged = charged_ns();
        if let Some((then, before)) = self.looked.replace((now, charged)) {
            let span = now.saturating_duration_since(then).min(LATE);
            self.without.free += span;
            self.without.due += span.saturating_mul(ppm) / 1_000_000;
            let had = before.zip(charged).map(|(before, charged)| charged.saturating_sub(before));
            self.without.had += Duration::from_nanos(had.unwrap_or_default());
        }
        if self.without.is_too_long() { Err(HangWatch(self.without)) } else { Ok(()) }
    }
}

impl SilentTime {
    fn is_too_long(self) -> bool {
        let Self { free, due, had } = self;
        let computes = had >= TOO_LONG;
        let sleeps = due >= TOO_LONG && had < NOTHING;
        free >= AT_LEAST && (computes || sleeps || due >= BUSY * TOO_LONG)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOOK: Duration = Duration::from_millis(100);

    /// One task that is checked at the interval [`LOOK`].
    struct Watched {
        liveness: TaskLiveness,
        now: Instant,
        ppm: u32,
        charged: Duration,
    }

    impl Watched {
        fn at(ppm: u32) -> Self {
            let mut liveness = TaskLiveness::default();
            let now = Instant::now();
            assert_eq!(liveness.note_beat(now, Some(1), ppm, || None), Ok(()));
            Self { liveness, now, ppm, charged: Duration::ZERO }
        }

        fn look(&mut self, beat: Option<u64>, had: Duration) -> Result<(), HangWatch> {
            self.now += LOOK;
            self.charged += had;
            let charged = self.charged.as_nanos() as u64;
            self.liveness.note_beat(self.now, beat, self.ppm, || Some(charged))
        }

        /// Returns the number of seconds after which the task is found to hang; `None`: not within `limit`.
        fn hangs_after(&mut self, had: Duration, limit: u64) -> Option<u64> {
            let begun = self.now;
            while self.now - begun < Duration::from_secs(limit) {
                if self.look(Some(1), had).is_err() {
                    return Some((self.now - begun).as_secs());
                }
            }
            None
        }
    }

    #[test]
    fn who_neither_beats_nor_computes_hangs_and_so_does_who_only_computes() {
        for (ppm, had, after) in [
            // With half a core, whether it takes it or not.
            (500_000, Duration::ZERO, 30),
            (500_000, LOOK / 2, 30),
            // With a twentieth.
            (50_000, Duration::ZERO, 100),
            (50_000, LOOK / 20, 100),
        ] {
            assert_eq!(Watched::at(ppm).hangs_after(had, 1_000), Some(after), "{ppm} {had:?}");
        }
    }

    #[test]
    fn a_busy_host_is_no_hang_for_long() {
        // A fiftieth of what it is due.
        let starved = Watched::at(500_000).hangs_after(LOOK / 100, 1_000);
        assert_eq!(starved, Some(100));
        let background = Watched::at(0).hangs_after(LOOK / 1_000, 1_000);
        assert_eq!(background, None, "it is due nothing");
    }

    #[test]
    fn a_beat_begins_anew() {
        let mut task = Watched::at(1_000_000);
        for beat in 0..20 {
            for _ in 0..290 {
                assert_eq!(task.look(Some(beat), LOOK), Ok(()));
            }
        }
        // A page that can't be read is no beat.
        for _ in 0..150 {
            assert_eq!(task.look(Some(20), Duration::ZERO), Ok(()));
        }
        let hung = (0..200).find_map(|_| task.look(None, Duration::ZERO).err());
        let why = hung.map(|hang| hang.to_string()).unwrap_or_default();
        assert!(why.starts_with("it hangs: it did no work for 30"), "{why}");
    }

    #[test]
    fn what_passes_while_it_may_not_run_does_not_count() {
        let mut task = Watched::at(1_000_000);
        for _ in 0..100 {
            assert_eq!(task.look(Some(1), Duration::ZERO), Ok(()));
            task.liveness.pause_watch();
            // Frozen for an hour, and dumped.
            task.now += Duration::from_secs(3600);
            task.charged += Duration::from_secs(60);
            assert_eq!(task.look(Some(1), Duration::ZERO), Ok(()));
        }
        assert_eq!(
            task.liveness.without,
            SilentTime { free: 100 * LOOK, due: 100 * LOOK, had: Duration::ZERO }
        );
    }

    #[test]
    fn this_process_may_stand_still_itself() {
        let mut task = Watched::at(1_000_000);
        for _ in 0..20 {
            task.now += Duration::from_secs(3600);
            assert_eq!(task.look(Some(1), Duration::ZERO), Ok(()));
        }
    }
}
