//! Share received against share promised.

use std::time::{Duration, Instant};

/// Counts what one vCPU was promised and got while its tasks were allowed to run: not while
/// they are held, frozen, dumped, restored or started, when the quota is lifted or nothing runs.
#[derive(Debug, Default)]
pub(crate) struct Meter {
    on: Option<On>,
    promised: Duration,
    received: Duration,
}

#[derive(Clone, Copy, Debug)]
struct On {
    since: Instant,
    /// The vCPU's CPU time then, in nanoseconds.
    cpu_ns: u64,
    /// The quota in force since, in ppm of a host core.
    ppm: u32,
}

impl Meter {
    /// Whether it counts now.
    pub(crate) fn is_on(&self) -> bool {
        self.on.is_some()
    }

    /// CPU time promised so far, up to the last [`Meter::settle`].
    pub(crate) fn promised(&self) -> Duration {
        self.promised
    }

    /// CPU time received so far, up to the last [`Meter::settle`].
    pub(crate) fn received(&self) -> Duration {
        self.received
    }

    /// Counts up to now; the CPU time received since the last time, in nanoseconds.
    pub(crate) fn settle(&mut self, now: Instant, cpu_ns: u64) -> u64 {
        let Some(on) = &mut self.on else { return 0 };
        let elapsed = now.saturating_duration_since(on.since).as_nanos();
        let promised = elapsed * u128::from(on.ppm) / 1_000_000;
        let received = cpu_ns.saturating_sub(on.cpu_ns);
        self.promised += Duration::from_nanos(u64::try_from(promised).unwrap_or(u64::MAX));
        self.received += Duration::from_nanos(received);
        (on.since, on.cpu_ns) = (now, cpu_ns);
        received
    }

    /// From now on this quota is promised, of which the kernel gives out `slice` at the beginning
    /// of each period; to be settled before.
    ///
    /// The first slice is there at once, and the end comes anywhere in a period: over time T that
    /// is, on average, what T and half a period are worth.
    pub(crate) fn start(&mut self, now: Instant, cpu_ns: u64, ppm: u32, slice: Duration) {
        self.promised += slice / 2;
        self.on = Some(On { since: now, cpu_ns, ppm });
    }

    /// Nothing is promised any more; to be settled before.
    pub(crate) fn stop(&mut self) {
        self.on = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn what_is_not_promised_does_not_count_as_received() {
        let start = Instant::now();
        let mut meter = Meter::default();
        // Born with a lifted quota: 30 ms of CPU time that nobody promised.
        meter.start(start, 30_000_000, 60_000, 2 * MS);
        assert_eq!(meter.settle(start + 1000 * MS, 90_000_000), 60_000_000);
        // Dumped: CRIU's code used 5 ms inside.
        meter.stop();
        assert_eq!(meter.settle(start + 1100 * MS, 95_000_000), 0);
        meter.start(start + 1100 * MS, 95_000_000, 60_000, 2 * MS);
        meter.settle(start + 1600 * MS, 119_000_000);
        // And half a slice each time.
        assert_eq!(meter.promised(), (90 + 2) * MS);
        assert_eq!(meter.received(), 84 * MS);
    }

    #[test]
    fn a_changed_quota_counts_from_its_change() {
        let start = Instant::now();
        let mut meter = Meter::default();
        meter.start(start, 0, 500_000, Duration::ZERO);
        meter.settle(start + 100 * MS, 50_000_000);
        meter.start(start + 100 * MS, 50_000_000, 100_000, Duration::ZERO);
        meter.settle(start + 200 * MS, 60_000_000);
        assert_eq!((meter.promised(), meter.received()), (60 * MS, 60 * MS));
    }
}
