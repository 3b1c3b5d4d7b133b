//! What each process of a job got, apart by where it sat and whether it had a neighbour.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use dormouse_proto::v1;

use super::{
    job::Tier,
    ranks::{Ran, Rank},
    seats::Seat,
};
use crate::{agent::report::micros, cgroup::CpuQuota};

/// A rank, its processor, its tier, and whether the other slot was taken.
type Situation = (u32, u32, Tier, bool);

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Use {
    wall: Duration,
    ran_ns: u64,
    delayed_ns: u64,
    wakes: u64,
}

/// Counts while a job runs: not while it is made, dumped or restored.
#[derive(Debug, Default)]
pub(crate) struct Meter {
    uses: BTreeMap<Situation, Use>,
    open: Vec<(Situation, Instant, Ran)>,
}

impl Meter {
    /// Counts up to now under the situation so far, and from now on under this one.
    pub(crate) fn turn(&mut self, ranks: &[Rank], seats: &[Seat]) {
        self.stop(ranks);
        let now = Instant::now();
        for ((rank, seat), number) in ranks.iter().zip(seats).zip(0..) {
            let situation = (number, seat.processor, seat.tier, seat.neighbour.is_some());
            if let Some(ran) = rank.ran() {
                self.open.push((situation, now, ran));
            }
        }
    }

    /// Counts up to now and no further. What a process that is gone did last is not counted.
    pub(crate) fn stop(&mut self, ranks: &[Rank]) {
        let now = Instant::now();
        for (situation, since, before) in self.open.drain(..) {
            let Some(ran) = ranks.get(situation.0 as usize).and_then(|rank| rank.ran()) else {
                continue;
            };
            let sum = self.uses.entry(situation).or_default();
            sum.wall += now.saturating_duration_since(since);
            sum.ran_ns += ran.ran_ns.saturating_sub(before.ran_ns);
            sum.delayed_ns += ran.delayed_ns.saturating_sub(before.delayed_ns);
            sum.wakes += ran.wakes.saturating_sub(before.wakes);
        }
    }

    /// All that was counted, for a report, on processors with this quota.
    ///
    /// What is promised is the quota's part of the time in which a process wanted to compute,
    /// and once more the quota of a period whenever it wakes: that is there at once.
    pub(crate) fn uses(&self, quota: CpuQuota) -> Vec<v1::ProcessUse> {
        let promised = |wanted_us: u64, wakes: u64| {
            let spread = wanted_us * quota.quota_us / quota.period_us.max(1);
            spread + wakes * quota.quota_us
        };
        let of = |(&(process, processor, tier, shared), sum): (&Situation, &Use)| v1::ProcessUse {
            process,
            processor,
            tier: match tier {
                Tier::Foreground => v1::Tier::Foreground.into(),
                Tier::Background => v1::Tier::Background.into(),
            },
            shared,
            wall_us: micros(sum.wall),
            wanted_us: (sum.ran_ns + sum.delayed_ns) / 1000,
            promised_us: promised((sum.ran_ns + sum.delayed_ns) / 1000, sum.wakes),
            cpu_us: sum.ran_ns / 1000,
        };
        self.uses.iter().map(of).collect()
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use crate::cgroup::Slot;

    #[test]
    fn situations_are_counted_apart_and_the_dead_not_at_all() {
        let me = Rank { pid: i32::try_from(std::process::id()).unwrap() };
        let dead = Rank { pid: i32::MAX };
        let seat = Seat { processor: 3, slot: Slot::A, tier: Tier::Background, neighbour: None };
        let mut meter = Meter::default();
        meter.turn(&[me, dead], &[seat, seat]);
        meter.turn(&[me, dead], &[Seat { tier: Tier::Foreground, ..seat }, seat]);
        meter.stop(&[me, dead]);
        let uses = meter.uses(CpuQuota::from_ppm(100_000, 20_000));
        let tiers: Vec<_> = uses.iter().map(|u| (u.process, u.processor, u.tier())).collect();
        assert_eq!(tiers, [(0, 3, v1::Tier::Foreground), (0, 3, v1::Tier::Background)]);
        assert!(uses.iter().all(|u| u.cpu_us <= u.wanted_us && !u.shared));
        assert!(uses.iter().all(|u| u.promised_us >= u.wanted_us / 10), "{uses:?}");
    }
}
