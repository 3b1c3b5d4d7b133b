//! CPU time that each process of a job was due and received.

use std::time::Duration;

use dormouse_proto::v1::JobLedger;

use crate::agent::report::whole_micros;

/// CPU time of one start of a job: the time that the job's processes report as computed. Other time that the kernel charged to
/// their slots is reported separately.
#[derive(Debug, Default)]
pub(crate) struct JobCpuLedger {
    /// CPU time that each process has computed, which for a restored job includes that of earlier starts.
    received: Vec<Duration>,
    /// CPU time that the processes should have computed, in nanoseconds, with the same inclusion.
    due_ns: u64,
    /// CPU time that the processes had computed when this start began, in nanoseconds: a checkpoint held it.
    came_with_ns: u64,
    /// CPU time, in nanoseconds, that was charged to slots from when the job entered them to when it left them; time in its current
    /// slots isn't included.
    charged_ns: u64,
    counters_ns: u64,
    pub(crate) lifted: Duration,
    ahead: Duration,
    behind: Duration,
}

impl JobCpuLedger {
    /// Records what each process had computed when the job's start began.
    pub(crate) fn come_with(&mut self, computed: &[Duration]) {
        let all = computed.iter().sum::<Duration>().as_nanos();
        self.came_with_ns = u64::try_from(all).unwrap_or(u64::MAX);
    }

    /// Records what each process has computed in total.
    pub(crate) fn note_received(&mut self, received: Vec<Duration>) {
        self.received = received;
    }

    /// Returns the CPU time in nanoseconds by which each process is behind (positive) or ahead of the model that the job is
    /// compared with. `done` is the time that each process should have computed with a share of `core_ppm` of a core.
    pub(crate) fn owed_time(&mut self, done: &[Duration], core_ppm: u32) -> Vec<i64> {
        let due = |done: &Duration| {
            u64::try_from(done.as_nanos() * u128::from(core_ppm) / 1_000_000).unwrap_or(u64::MAX)
        };
        self.due_ns = done.iter().map(due).sum();
        let owed = done.iter().zip(&self.received).map(|(done, received)| {
            i64::try_from(due(done)).unwrap_or(i64::MAX)
                - i64::try_from(received.as_nanos()).unwrap_or(i64::MAX)
        });
        let owed: Vec<_> = owed.collect();
        let time = |ns: i64| {
            Duration::from_nanos(ns.unsigned_abs()).mul_f64(1e6 / f64::from(core_ppm.max(1)))
        };
        for ns in &owed {
            match *ns > 0 {
                true => self.behind = self.behind.max(time(*ns)),
                false => self.ahead = self.ahead.max(time(*ns)),
            }
        }
        owed
    }

    /// Returns the CPU time that the job's processes should have computed by now, in nanoseconds.
    pub(crate) const fn due_ns(&self) -> u64 {
        self.due_ns
    }

    /// Records that the job enters slots whose CPU-time counters sum to `counters_ns`.
    pub(crate) fn enter_slots(&mut self, counters_ns: u64) {
        self.counters_ns = counters_ns;
    }

    /// Records that the job leaves its slots, whose CPU-time counters sum to `counters_ns`, or dies in them.
    pub(crate) fn leave_slots(&mut self, counters_ns: u64) {
        self.charged_ns += counters_ns.saturating_sub(self.counters_ns);
    }

    /// Returns the ledger of this start for a report: without what was computed before it, perhaps on another host.
    pub(crate) fn wire_ledger(&self) -> JobLedger {
        let came_with_us = self.came_with_ns / 1000;
        let received_us = whole_micros(self.received.iter().sum()).saturating_sub(came_with_us);
        JobLedger {
            real_due_us: (self.due_ns / 1000).saturating_sub(came_with_us),
            real_received_us: received_us,
            real_beside_us: (self.charged_ns / 1000).saturating_sub(received_us),
            real_lifted_us: whole_micros(self.lifted),
            real_ahead_us: whole_micros(self.ahead),
            real_behind_us: whole_micros(self.behind),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn what_is_due_and_received_is_told_and_what_was_charged_beside_it() {
        let mut ledger = JobCpuLedger::default();
        ledger.enter_slots(100 * MS);
        ledger.leave_slots(145 * MS);
        ledger.enter_slots(7 * MS);
        let ms = |ms: [u64; 2]| ms.map(Duration::from_millis).to_vec();
        ledger.note_received(ms([21, 12]));
        // A tenth of a core: 20 and 15 ms of it are due.
        assert_eq!(ledger.owed_time(&ms([200, 150]), 100_000), [-1_000_000, 3_000_000]);
        ledger.leave_slots(20 * MS);
        let told = ledger.wire_ledger();
        assert_eq!((told.real_due_us, told.real_received_us), (35_000, 33_000));
        assert_eq!(told.real_beside_us, 45_000 + 13_000 - 33_000);
        assert_eq!((told.real_ahead_us, told.real_behind_us), (10_000, 30_000));
        // What it had done when it was restored is of an earlier start.
        ledger.come_with(&ms([20, 10]));
        let told = ledger.wire_ledger();
        assert_eq!((told.real_due_us, told.real_received_us), (5_000, 3_000));
        assert_eq!(told.real_beside_us, 45_000 + 13_000 - 3_000);
        // It is neither when nobody knows what its processes did.
        assert_eq!(JobCpuLedger::default().owed_time(&ms([200, 150]), 100_000), Vec::<i64>::new());
    }
}
