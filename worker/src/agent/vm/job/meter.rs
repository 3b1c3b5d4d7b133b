//! CPU time that each process of a job got, counted separately for each vCPU and tier, and with or without a neighbour.

use std::{collections::BTreeMap, time::Duration};

use dormouse_proto::v1;
use dormouse_units::Tier;
use dormouse_vm::life::AttemptSeat;

use tokio::time::Instant;

use super::ranks::{JobRank, RankTime};
use crate::{
    agent::{machine::VmMachine, report::whole_micros},
    cgroup::CpuQuota,
};

/// A rank, its vCPU, its tier, true if the vCPU's other slot was occupied, and the vCPU's speed, in ppm of full speed.
type Situation = (u32, u32, Tier, bool, u32);

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct SituationUse {
    wall: Duration,
    ran_ns: u64,
    delayed_ns: u64,
    wakes: u64,
    /// Number of times that the rank came into the situation (its vCPU, tier, neighbour and speed) from a different one.
    begins: u64,
}

/// Meter of the times of a job's processes while it runs, but not while it is started, dumped or restored.
#[derive(Debug, Default)]
pub(crate) struct JobMeter {
    uses: BTreeMap<Situation, SituationUse>,
    open: Vec<(Situation, Instant, RankTime)>,
}

impl JobMeter {
    /// Counts the ranks' times up to now under their current seats and speed, and later times under new ones.
    pub(crate) fn change_situation(
        &mut self,
        time_of: impl Fn(JobRank) -> Option<RankTime>,
        ranks: &[JobRank],
        seats: &[AttemptSeat],
        speed_ppm: u32,
    ) {
        let before: Vec<_> = self.open.iter().map(|(situation, _, _)| *situation).collect();
        self.stop_count(&time_of, ranks);
        let now = Instant::now();
        for ((rank, seat), number) in ranks.iter().zip(seats).zip(0..) {
            let shared = seat.neighbour.is_some();
            let situation = (number, seat.vcpu, seat.tier, shared, speed_ppm);
            if let Some(ran) = time_of(*rank) {
                let begins = u64::from(!before.contains(&situation));
                self.uses.entry(situation).or_default().begins += begins;
                self.open.push((situation, now, ran));
            }
        }
    }

    /// Counts times up to now, and stops counting. The last activity of a process that is gone isn't counted.
    pub(crate) fn stop_count(
        &mut self,
        time_of: impl Fn(JobRank) -> Option<RankTime>,
        ranks: &[JobRank],
    ) {
        let now = Instant::now();
        for (situation, since, before) in self.open.drain(..) {
            let Some(ran) = ranks.get(situation.0 as usize).and_then(|rank| time_of(*rank)) else {
                continue;
            };
            let sum = self.uses.entry(situation).or_default();
            sum.wall += now.saturating_duration_since(since);
            sum.ran_ns += ran.ran_ns.saturating_sub(before.ran_ns);
            sum.delayed_ns += ran.delayed_ns.saturating_sub(before.delayed_ns);
            sum.wakes += ran.wakes.saturating_sub(before.wakes);
        }
    }

    /// Returns all counts for a report. `quota` gives the vCPUs' CPU quota for each speed; the kernel's clock ticks at the interval
    /// `tick`.
    ///
    /// A process is promised the quota's part of the time in which it wanted to compute, and once more the quota of a period
    /// whenever it wakes: that is available at once, unless a neighbour has just used it up. In that case the process waits for the
    /// next period, and longer if the neighbour had more than the quota, which the kernel notices only at its clock's ticks: until
    /// the quota has made up for the excess.
    pub(crate) fn process_uses(
        &self,
        quota: impl Fn(u32) -> CpuQuota,
        tick: Duration,
    ) -> Vec<v1::ProcessUse> {
        let of = |(&(process, vcpu, tier, shared, speed_ppm), sum): (&Situation, &SituationUse)| {
            let CpuQuota { quota_us, period_us } = quota(speed_ppm);
            let wait_us = period_us + whole_micros(tick) * period_us / quota_us.max(1);
            let wanted_us = (sum.ran_ns + sum.delayed_ns) / 1000;
            v1::ProcessUse {
                process,
                vcpu,
                tier: match tier {
                    Tier::Foreground => v1::Tier::Foreground.into(),
                    Tier::Background => v1::Tier::Background.into(),
                },
                shared,
                real_wall_us: whole_micros(sum.wall),
                real_wanted_us: wanted_us,
                real_promised_us: wanted_us * quota_us / period_us.max(1) + sum.wakes * quota_us,
                real_cpu_us: sum.ran_ns / 1000,
                real_may_wait_us: if shared { (sum.wakes + sum.begins) * wait_us } else { 0 },
            }
        };
        self.uses.iter().map(of).collect()
    }
}

/// Returns the summed CPU time that was charged to the slots of `seats`, in nanoseconds. A counter that can't be read counts as
/// zero: what processes are charged beside their work is reported and not judged.
pub(crate) fn charged_ns(machine: &dyn VmMachine, seats: &[AttemptSeat]) -> u64 {
    seats.iter().filter_map(|seat| machine.slot_cpu_ns(seat.vcpu, seat.slot).ok()).sum()
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use dormouse_units::{Attempt, TaskId};

    use crate::cgroup::TierSlot;

    #[test]
    fn situations_are_counted_apart_and_the_dead_not_at_all() {
        let me = JobRank { pid: i32::try_from(std::process::id()).unwrap() };
        let dead = JobRank { pid: i32::MAX };
        let seat =
            AttemptSeat { vcpu: 3, slot: TierSlot::A, tier: Tier::Background, neighbour: None };
        let mut meter = JobMeter::default();
        meter.change_situation(JobRank::scheduler_time, &[me, dead], &[seat, seat], 1_000_000);
        meter.change_situation(JobRank::scheduler_time, &[me, dead], &[seat, seat], 1_000_000);
        assert_eq!(meter.uses.values().map(|sum| sum.begins).collect::<Vec<_>>(), [1]);
        meter.change_situation(
            JobRank::scheduler_time,
            &[me, dead],
            &[AttemptSeat { tier: Tier::Foreground, ..seat }, seat],
            1_000_000,
        );
        meter.stop_count(JobRank::scheduler_time, &[me, dead]);
        let shared = AttemptSeat { neighbour: Some((TaskId::new(9), Attempt::new(1))), ..seat };
        meter.change_situation(JobRank::scheduler_time, &[me, dead], &[shared, seat], 1_000_000);
        meter.stop_count(JobRank::scheduler_time, &[me, dead]);
        let tick = Duration::from_millis(4);
        let mut uses = meter.process_uses(|_| CpuQuota::from_ppm(100_000, 20_000), tick);
        let with: Vec<_> = uses.extract_if(.., |u| u.shared).map(|u| u.real_may_wait_us).collect();
        // A period, and a tenth of a core for a tick; and as much again if it slept meanwhile.
        assert!(matches!(with[..], [wait] if wait >= 60_000 && wait % 60_000 == 0), "{with:?}");
        let tiers: Vec<_> = uses.iter().map(|u| (u.process, u.vcpu, u.tier())).collect();
        assert_eq!(tiers, [(0, 3, v1::Tier::Foreground), (0, 3, v1::Tier::Background)]);
        assert!(uses.iter().all(|u| u.real_may_wait_us == 0), "{uses:?}");
    }

    /// On a tenth of a core, in periods of 20 ms, a process gets 2 ms of each period.
    #[test]
    fn what_is_promised_is_the_quotas_part_and_a_period_at_every_wake() {
        let quota = |speed_ppm: u32| CpuQuota::from_ppm(speed_ppm / 10, 20_000);
        let of = |ran_ms: u64, delayed_ms: u64, wakes: u64, begins: u64, shared: bool| {
            let sum = SituationUse {
                wall: Duration::from_secs(1),
                ran_ns: ran_ms * 1_000_000,
                delayed_ns: delayed_ms * 1_000_000,
                wakes,
                begins,
            };
            let uses = BTreeMap::from([((0, 3, Tier::Background, shared, 1_000_000), sum)]);
            let meter = JobMeter { uses, ..JobMeter::default() };
            let uses = meter.process_uses(quota, Duration::from_millis(4));
            let [it] = &uses[..] else { panic!("{uses:?}") };
            (
                it.real_wall_us,
                it.real_wanted_us,
                it.real_promised_us,
                it.real_cpu_us,
                it.real_may_wait_us,
            )
        };
        assert_eq!(of(80, 720, 0, 1, false), (1_000_000, 800_000, 80_000, 80_000, 0));
        assert_eq!(of(80, 720, 3, 1, false), (1_000_000, 800_000, 86_000, 80_000, 0));
        // A period, and what a tick at a whole core takes to be made up for.
        assert_eq!(of(80, 720, 3, 1, true), (1_000_000, 800_000, 86_000, 80_000, 240_000));
    }
}
