//! CPU time that a user's own program got, and the part of its promise that it didn't want.

use std::time::Duration;

use tokio::time::Instant;

use super::{
    idle::IdleWatch,
    wants::{ProcessorWants, wanted_by},
};

/// CPU time of a user's own program, and the part of its promised CPU time during which the program didn't want to compute. Times
/// are in nanoseconds.
#[derive(Debug, Default)]
pub(crate) struct OwnMeter {
    /// CPU time of the program's work, including the work that its checkpoint held, in nanoseconds.
    pub(crate) worked: u64,
    /// CPU time that the program was promised while it didn't want to compute, in nanoseconds.
    pub(crate) unwanted: u64,
    /// Time for which the program didn't want to compute.
    pub(crate) waited: Duration,
    /// CPU time, in nanoseconds, charged to the program's slot until the program ended, without that of its check; `None` before
    /// the end.
    pub(crate) charged: Option<u64>,
    /// Run time of the program without time in which its VM was frozen; `None` before the end.
    pub(crate) took: Option<Duration>,
    /// Largest memory that the program was seen to use, in bytes.
    pub(crate) memory: u64,
    /// Watches whether the program does anything after a restore.
    pub(crate) idle: IdleWatch,
    wants: ProcessorWants,
}

impl OwnMeter {
    /// Records the program's CPU time and what its threads wanted. `share` is the share of a host core that the program
    /// is promised now, in ppm; `stands` says whether it was stopped since the last look.
    pub(crate) fn note_use(
        &mut self,
        worked: u64,
        (threads, memory): (&[i32], u64),
        share: u32,
        stands: bool,
    ) {
        self.worked = self.worked.max(worked);
        self.memory = self.memory.max(memory);
        if stands {
            self.pause_count();
        }
        let threads = threads.iter().filter_map(|thread| wanted_by(*thread));
        let waited = self.wants.idle_since_look(Instant::now(), threads);
        let span = Duration::from_nanos(waited.unsigned_abs());
        let unwanted = u128::from(share) * span.as_nanos() / 1_000_000;
        let unwanted = u64::try_from(unwanted).unwrap_or(u64::MAX);
        match waited < 0 {
            false => (self.waited, self.unwanted) = (self.waited + span, self.unwanted + unwanted),
            true => {
                self.waited = self.waited.saturating_sub(span);
                self.unwanted = self.unwanted.saturating_sub(unwanted);
            }
        }
    }

    /// Leaves the time until the next look out of the counts: the program's VM is frozen, or the program is being dumped.
    pub(crate) fn pause_count(&mut self) {
        self.idle.pause_watch();
        self.wants.pause_count();
    }

    /// Returns the part of the program's work that is done, in ppm, if the whole takes `whole` CPU time; all of it only
    /// at the program's end. While the program waited, it counts as doing what it was promised.
    pub(crate) fn done_ppm(&self, whole: u64) -> u32 {
        const ALMOST_DONE: u32 = 999_999;
        let done = u128::from(self.worked) + u128::from(self.unwanted);
        let ppm = done * 1_000_000 / u128::from(whole.max(1));
        u32::try_from(ppm).unwrap_or(ALMOST_DONE).min(ALMOST_DONE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_counts_as_time_that_passed_and_never_as_the_end() {
        let mut meter = OwnMeter { worked: 300, unwanted: 200, ..OwnMeter::default() };
        assert_eq!(meter.done_ppm(1000), 500_000);
        meter.note_use(200, (&[], 7), 500_000, false);
        assert_eq!((meter.worked, meter.memory, meter.waited), (300, 7, Duration::ZERO));
        meter.worked = 5000;
        assert_eq!((meter.done_ppm(1000), meter.done_ppm(0)), (999_999, 999_999));
    }
}
