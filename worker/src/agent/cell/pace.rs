//! The CPU time that a cell may use and has used: its quota, its CPU credits, and the account of both.

use std::{collections::BTreeMap, time::Duration};

use dormouse_units::{Credits, Speedup};
use dormouse_vm::{CreditAllowance, CreditSpec};
use tokio::time::Instant;

use crate::{agent::vm::CpuAccount, cgroup::CpuQuota};

/// Longest time that a thread waits for its quota, which the kernel counts only once the thread runs again.
const ONE_WAIT: Duration = Duration::from_micros(CpuQuota::DEFAULT_PERIOD_US);

/// vCPUs of a cell, and the share of a host's core that each of them gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CellQuota {
    pub(crate) vcpus: u32,
    /// Share of a host's core for each vCPU, in ppm.
    pub(crate) core_ppm: u32,
}

impl CellQuota {
    /// Returns the share of a host's core that all vCPUs get together, in ppm; more than a million if they get more
    /// than one core.
    const fn whole_ppm(self) -> u64 {
        self.vcpus as u64 * self.core_ppm as u64
    }
}

/// Changes that a measurement of a cell's CPU time has caused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct CellChange {
    /// The quota that is to be set from now on, in ppm of a host's core; `None`: the quota stays.
    pub(crate) quota_ppm: Option<u32>,
}

/// CPU time of a cell: what it may use, has used and was promised.
///
/// A cell is promised CPU time only while it wants to compute. What the kernel reports allows two bounds: the promise is at
/// least a core's share for as long as the busiest thread wanted to compute, and at most the whole quota for all of the time.
/// Between these bounds the cell was promised what it received.
#[derive(Debug)]
pub(crate) struct CellPace {
    speedup: Speedup,
    quota: CellQuota,
    credits: Option<CreditAllowance>,
    /// Time of the last measurement; `None` while the cell is frozen.
    measured: Option<Instant>,
    /// CPU time of the cell at the last measurement, in nanoseconds.
    used_ns: u64,
    /// CPU time and waiting time of each thread at the last measurement; `None`: there was none since the cell began or thawed.
    threads: Option<BTreeMap<i32, Duration>>,
    account: CpuAccount,
}

impl CellPace {
    /// Makes the pace of a cell without processes; `credits` is set for burstable types.
    pub(crate) fn new(speedup: Speedup, quota: CellQuota, credits: Option<CreditSpec>) -> Self {
        Self {
            speedup,
            quota,
            credits: credits.map(CreditAllowance::new),
            measured: None,
            used_ns: 0,
            threads: None,
            account: CpuAccount::default(),
        }
    }

    /// Returns the quota of the cell now, in ppm of a host's core.
    pub(crate) fn quota_ppm(&self) -> u32 {
        let whole = self.quota.whole_ppm();
        let allowed =
            self.credits.as_ref().map_or(whole, |it| it.speed_ceiling().scale_number(whole));
        u32::try_from(allowed.max(1)).unwrap_or(u32::MAX)
    }

    /// Returns the CPU credits left; `None`: the cell has no credits.
    pub(crate) fn credits_left(&self) -> Option<Credits> {
        self.credits.as_ref().map(CreditAllowance::balance_left)
    }

    /// Returns the CPU time that the cell was promised and has received, in nanoseconds.
    pub(crate) const fn cpu_account(&self) -> CpuAccount {
        self.account
    }

    /// Begins or continues the measurement of a cell with this CPU time, in nanoseconds: a cell that begins or was thawed.
    pub(crate) fn begin_measure(&mut self, now: Instant, used_ns: u64) {
        (self.measured, self.used_ns) = (Some(now), used_ns);
        self.threads = None;
    }

    /// Stops the measurement, as the cell is frozen.
    pub(crate) fn stop_measure(&mut self) {
        self.measured = None;
    }

    /// Takes a measurement: the CPU time of the cell so far, in nanoseconds, and the CPU time and waiting time of each of its
    /// threads.
    pub(crate) fn note_use(
        &mut self,
        now: Instant,
        used_ns: u64,
        threads: impl IntoIterator<Item = (i32, Duration)>,
    ) -> CellChange {
        let Some(then) = self.measured else { return CellChange::default() };
        let passed = now.saturating_duration_since(then);
        if passed.is_zero() {
            return CellChange::default();
        }
        let received = used_ns.saturating_sub(self.used_ns);
        let threads: BTreeMap<_, _> = threads.into_iter().collect();
        let wanted = self.longest_want(&threads).min(passed).saturating_sub(ONE_WAIT);
        let quota = u64::from(self.quota_ppm());
        let most = part_of(passed, quota);
        let least = part_of(wanted, quota.min(1_000_000)).min(most);
        self.account.received += received;
        let promised = self.account.promised;
        self.account.promised = self.account.received.clamp(promised + least, promised + most);
        (self.measured, self.used_ns, self.threads) = (Some(now), used_ns, Some(threads));
        let turned = self.pay_credits(passed, received);
        CellChange { quota_ppm: turned.then(|| self.quota_ppm()) }
    }

    /// Returns for how long the busiest thread has computed or waited for a processor since the last measurement; zero if that is
    /// not known.
    fn longest_want(&self, threads: &BTreeMap<i32, Duration>) -> Duration {
        let Some(before) = &self.threads else { return Duration::ZERO };
        let since = |(id, came_to): (&i32, &Duration)| {
            came_to.saturating_sub(before.get(id).copied().unwrap_or_default())
        };
        threads.iter().map(since).max().unwrap_or_default()
    }

    /// Spends credits for CPU time, in nanoseconds, and earns those of the time that has passed; returns whether the allowed speed
    /// has changed.
    fn pay_credits(&mut self, passed: Duration, received: u64) -> bool {
        let Some(credits) = &mut self.credits else { return false };
        // CPU time of a vCPU for a second of real time is its share of a core.
        let whole = u128::from(self.quota.core_ppm.max(1)) * passed.as_nanos().max(1) / 1_000_000;
        let used = u128::from(received) * 1_000_000 / whole.max(1);
        let used = u64::try_from(used).unwrap_or(u64::MAX);
        credits.pass_time(self.speedup.to_emulated(passed), used)
    }
}

/// Returns the CPU time of a share of a core, in ppm, for a span of real time, in nanoseconds.
fn part_of(span: Duration, ppm: u64) -> u64 {
    let ns = span.as_nanos() * u128::from(ppm) / 1_000_000;
    u64::try_from(ns).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use dormouse_units::Ppm;

    use super::*;

    const MS: Duration = Duration::from_millis(1);
    const MS_NS: u64 = 1_000_000;

    fn pace(vcpus: u32, core_ppm: u32, credits: Option<CreditSpec>) -> (CellPace, Instant) {
        let mut pace = CellPace::new(Speedup::ONE, CellQuota { vcpus, core_ppm }, credits);
        let begin = Instant::now();
        pace.begin_measure(begin, 7 * MS_NS);
        (pace, begin)
    }

    #[test]
    fn a_cell_that_sleeps_is_promised_nothing_and_one_that_computes_its_quota() {
        let (mut pace, begin) = pace(2, 250_000, None);
        assert_eq!(pace.quota_ppm(), 500_000);
        pace.note_use(begin + 100 * MS, 7 * MS_NS, []);
        assert_eq!(pace.cpu_account(), CpuAccount { promised: 0, received: 0 });
        // It wanted all of the next 100 ms, and got half of a core for them.
        pace.note_use(begin + 200 * MS, 57 * MS_NS, [(1, 100 * MS)]);
        assert_eq!(pace.cpu_account(), CpuAccount { promised: 50 * MS_NS, received: 50 * MS_NS });
    }

    #[test]
    fn what_a_cell_lacks_and_what_it_has_too_much_is_in_its_account() {
        let (mut short, begin) = pace(1, 500_000, None);
        // How long it wanted to compute is known from the second look on.
        short.note_use(begin + 100 * MS, 7 * MS_NS, [(1, 900 * MS)]);
        assert_eq!(short.cpu_account(), CpuAccount::default());
        short.note_use(begin + 200 * MS, 17 * MS_NS, [(1, 1_000 * MS)]);
        // Of 100 ms one wait of 20 ms may belong to the time before.
        assert_eq!(short.cpu_account(), CpuAccount { promised: 40 * MS_NS, received: 10 * MS_NS });
        let (mut much, begin) = pace(1, 500_000, None);
        much.note_use(begin + 100 * MS, 97 * MS_NS, [(1, 90 * MS)]);
        assert_eq!(much.cpu_account(), CpuAccount { promised: 50 * MS_NS, received: 90 * MS_NS });
    }

    #[test]
    fn a_slice_more_now_and_less_later_is_no_difference() {
        let (mut pace, begin) = pace(1, 500_000, None);
        let (mut used, mut wants) = (7, Duration::ZERO);
        for turn in 1..=10_u32 {
            used += if turn % 2 == 1 { 130 } else { 120 };
            wants += 250 * MS;
            pace.note_use(begin + 250 * MS * turn, used * MS_NS, [(1, wants)]);
        }
        let CpuAccount { promised, received } = pace.cpu_account();
        assert_eq!(received, 1_250 * MS_NS);
        assert!(received.abs_diff(promised) <= 5 * MS_NS, "{promised}");
    }

    #[test]
    fn a_frozen_cell_is_promised_nothing() {
        let (mut pace, begin) = pace(1, 1_000_000, None);
        pace.stop_measure();
        assert_eq!(
            pace.note_use(begin + 100 * MS, 107 * MS_NS, [(1, 100 * MS)]),
            CellChange::default()
        );
        assert_eq!(pace.cpu_account(), CpuAccount::default());
        pace.begin_measure(begin + 200 * MS, 107 * MS_NS);
        pace.note_use(begin + 300 * MS, 207 * MS_NS, [(1, 200 * MS)]);
        assert_eq!(pace.cpu_account().promised, 100 * MS_NS);
    }

    #[test]
    fn without_credits_a_burstable_cell_falls_to_its_baseline_until_it_has_earned_one() {
        // A credit is a minute of a vCPU: 2 vCPUs that compute spend 2 a minute, and earn .4.
        let spec = CreditSpec {
            baseline: Ppm::new(200_000),
            earned_per_hour: Credits::whole_credits(24),
            initial: Credits::whole_credits(1),
            cap: Credits::whole_credits(100),
        };
        let (mut pace, begin) = pace(2, 500_000, Some(spec));
        let second = Duration::from_secs(1);
        let (mut used, mut at, mut turned) = (7 * MS_NS, begin, None);
        for s in 1..=60_u64 {
            (at, used) = (at + second, used + 1_000 * MS_NS);
            if let Some(quota) = pace.note_use(at, used, [(1, second)]).quota_ppm {
                turned = Some((s, quota));
                break;
            }
        }
        assert_eq!(turned, Some((38, 200_000)), "1 / 1.6 of a minute");
        assert_eq!(pace.credits_left(), Some(Credits::ZERO));
        // It sleeps and earns .4 a minute.
        let mut back = None;
        for s in 1..=300_u64 {
            at += second;
            if let Some(quota) = pace.note_use(at, used, []).quota_ppm {
                back = Some((s, quota));
                break;
            }
        }
        assert_eq!(back, Some((150, 1_000_000)));
    }
}
