//! What a job was due and what it got, process by process.

use std::time::Duration;

use dormouse_proto::v1::JobLedger;

use crate::agent::report::micros;

/// What one process got.
#[derive(Clone, Copy, Debug, Default)]
struct Count {
    /// In former lives, before it was moved.
    before_ns: u64,
    /// The kernel's counter when it might begin in this life.
    base_ns: u64,
    /// In all, as last seen.
    received_ns: u64,
}

/// One start of a job. Its CPU time is counted from the moment at which it may work, and not while
/// CRIU computes in its processes; that is counted beside it.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    counts: Vec<Count>,
    due_ns: u64,
    /// What its slots were charged in places it has left, and what the counters of those it has
    /// showed when it came.
    charged_ns: u64,
    counters_ns: u64,
    pub(crate) lifted: Duration,
    ahead: Duration,
    behind: Duration,
}

impl Ledger {
    /// The processes may work from now on; the kernel's counters of them.
    pub(crate) fn go(&mut self, counters: &[Option<u64>]) {
        self.counts.resize(counters.len(), Count::default());
        for (count, counter) in self.counts.iter_mut().zip(counters) {
            count.base_ns = counter.unwrap_or(0);
        }
    }

    /// Takes in the kernel's counters.
    pub(crate) fn see(&mut self, counters: &[Option<u64>]) {
        for (count, counter) in self.counts.iter_mut().zip(counters) {
            if let Some(counter) = counter {
                count.received_ns = count.before_ns + counter.saturating_sub(count.base_ns);
            }
        }
    }

    /// The processes are gone, to go on elsewhere; the counters when they were stopped.
    pub(crate) fn stop(&mut self, counters: &[Option<u64>]) {
        self.see(counters);
        for count in &mut self.counts {
            count.before_ns = count.received_ns;
        }
    }

    /// All their work is lost.
    pub(crate) fn forget(&mut self) {
        self.counts.clear();
    }

    /// Nothing was received in former lives.
    pub(crate) fn has_nothing(&self) -> bool {
        self.counts.iter().all(|count| count.before_ns == 0)
    }

    /// By how much CPU time each process is behind (above zero) or ahead of what it is due, in
    /// nanoseconds; of a process that is a millionth of `core_ppm` of a core.
    pub(crate) fn owed(&mut self, done: &[Duration], core_ppm: u32) -> Vec<i64> {
        let due = |done: &Duration| {
            u64::try_from(done.as_nanos() * u128::from(core_ppm) / 1_000_000).unwrap_or(u64::MAX)
        };
        self.due_ns = done.iter().map(due).sum();
        let owed = done.iter().zip(&self.counts).map(|(done, count)| {
            i64::try_from(due(done)).unwrap_or(i64::MAX)
                - i64::try_from(count.received_ns).unwrap_or(i64::MAX)
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

    /// It comes to slots whose counters stand there, in all.
    pub(crate) fn come(&mut self, counters_ns: u64) {
        self.counters_ns = counters_ns;
    }

    /// It leaves them, or dies in them.
    pub(crate) fn leave(&mut self, counters_ns: u64) {
        self.charged_ns += counters_ns.saturating_sub(self.counters_ns);
    }

    /// For a report.
    pub(crate) fn told(&self) -> JobLedger {
        let received_ns = self.counts.iter().map(|count| count.received_ns).sum::<u64>();
        JobLedger {
            due_us: self.due_ns / 1000,
            received_us: received_ns / 1000,
            beside_us: self.charged_ns.saturating_sub(received_ns) / 1000,
            lifted_us: micros(self.lifted),
            ahead_us: micros(self.ahead),
            behind_us: micros(self.behind),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn what_is_received_in_several_lives_adds_up_and_births_do_not_count() {
        let mut ledger = Ledger::default();
        ledger.come(100 * MS);
        ledger.go(&[Some(3 * MS), Some(MS)]);
        ledger.see(&[Some(13 * MS), None]);
        ledger.stop(&[Some(23 * MS), Some(11 * MS)]);
        ledger.leave(145 * MS);
        ledger.come(7 * MS);
        ledger.go(&[Some(5 * MS), Some(5 * MS)]);
        ledger.see(&[Some(6 * MS), Some(7 * MS)]);
        ledger.leave(20 * MS);
        let done = [200, 150].map(Duration::from_millis);
        // A tenth of a core: 20 and 15 ms of it are due, 21 and 12 were received.
        assert_eq!(ledger.owed(&done, 100_000), [-1_000_000, 3_000_000]);
        let told = ledger.told();
        assert_eq!((told.due_us, told.received_us), (35_000, 33_000));
        assert_eq!(told.beside_us, 45_000 + 13_000 - 33_000);
        assert_eq!((told.ahead_us, told.behind_us), (10_000, 30_000));
        ledger.forget();
        ledger.go(&[Some(MS), Some(MS)]);
        assert_eq!(ledger.owed(&[Duration::ZERO; 2], 100_000), [0, 0]);
    }
}
