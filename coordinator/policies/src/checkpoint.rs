//! When a task is checkpointed.

use dormouse_cloud::Market;
use dormouse_units::{Bytes, Ppm, Span};
use serde::{Deserialize, Serialize};

/// On which VMs tasks are checkpointed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CheckpointOn {
    /// On those that the provider can take away.
    #[default]
    Spot,
    /// On all. In a live run on-demand VMs can be lost, too: with their worker.
    All,
}

/// Checkpoints within an overhead budget (Burst-HADS, III-B; cost model of its artifact).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckpointBudget {
    /// Most that checkpoints may add to a task's run time; zero: no checkpoints.
    pub overhead: Ppm,
    /// What any checkpoint costs.
    pub fixed: Span,
    /// What it costs more per 10^6 bytes of the task's memory.
    pub per_megabyte: Span,
    /// On which VMs. A log that doesn't say was written when it was all.
    #[serde(default = "everywhere")]
    pub on: CheckpointOn,
}

/// The checkpoints of one task: `count` of them, evenly spaced over its work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckpointPlan {
    /// The number of checkpoints.
    pub count: u32,
    /// How long the task stands still for each.
    pub cost: Span,
}

const fn everywhere() -> CheckpointOn {
    CheckpointOn::All
}

impl CheckpointBudget {
    /// No checkpoints at all.
    pub const NONE: Self = Self {
        overhead: Ppm::ZERO,
        fixed: Span::ZERO,
        per_megabyte: Span::ZERO,
        on: CheckpointOn::Spot,
    };

    /// The checkpoints of a task on a VM that is bought so.
    #[must_use]
    pub fn plan_on(&self, market: Market, memory: Bytes, runtime: Span) -> CheckpointPlan {
        let plan = self.plan(memory, runtime);
        match (self.on, market) {
            (CheckpointOn::Spot, Market::OnDemand) => CheckpointPlan { count: 0, ..plan },
            _ => plan,
        }
    }

    /// The checkpoints of a task that takes `runtime` at full speed: as many as fit the budget.
    #[must_use]
    pub fn plan(&self, memory: Bytes, runtime: Span) -> CheckpointPlan {
        let per_memory =
            u128::from(self.per_megabyte.as_micros()) * u128::from(memory.get()) / 1_000_000;
        let cost = self.fixed + Span::from_micros(u64::try_from(per_memory).unwrap_or(u64::MAX));
        let budget = runtime.part(self.overhead);
        let count = budget.as_micros().checked_div(cost.as_micros()).unwrap_or(0);
        CheckpointPlan { count: u32::try_from(count).unwrap_or(u32::MAX), cost }
    }
}

impl CheckpointPlan {
    /// At which parts of the work they are due, ascending.
    #[must_use]
    pub fn points(&self) -> Vec<Ppm> {
        (1..=self.count).filter_map(|k| self.due(k)).collect()
    }

    /// At what part of the work the `k`-th checkpoint (from 1) is due: k / (count + 1).
    #[must_use]
    pub fn due(&self, k: u32) -> Option<Ppm> {
        let parts = u64::from(self.count) + 1;
        (1..=self.count).contains(&k).then(|| {
            let ppm = u64::from(k) * 1_000_000 / parts;
            Ppm::new(u32::try_from(ppm).unwrap_or(1_000_000))
        })
    }

    /// The first checkpoint due after `done` of the work.
    #[must_use]
    pub fn next_after(&self, done: Ppm) -> Option<Ppm> {
        let passed = u64::from(done.get()) * (u64::from(self.count) + 1) / 1_000_000;
        let from = u32::try_from(passed).unwrap_or(u32::MAX).max(1);
        (from..=self.count.min(from.saturating_add(1)))
            .filter_map(|k| self.due(k))
            .find(|&due| due > done)
    }

    /// How many checkpoints are still due after `done` of the work.
    #[must_use]
    pub fn left_after(&self, done: Ppm) -> u32 {
        // due(k) > done from the k on with k * 10^6 >= (done + 1) * (count + 1).
        let parts = u64::from(self.count) + 1;
        let first = ((u64::from(done.get()) + 1) * parts).div_ceil(1_000_000).max(1);
        u32::try_from(parts.saturating_sub(first)).unwrap_or(self.count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_artifacts_numbers() {
        let budget = CheckpointBudget {
            overhead: Ppm::new(100_000),
            fixed: Span::from_micros(12_995_000),
            per_megabyte: Span::from_micros(40_000),
            on: CheckpointOn::Spot,
        };
        let plan = |mb: u64, s| budget.plan(Bytes::new(mb * 1_000_000), Span::from_secs(s)).count;
        assert_eq!([plan(10, 119), plan(10, 167), plan(13, 349), plan(168, 210)], [0, 1, 2, 1]);
        assert_eq!(
            CheckpointBudget { overhead: Ppm::ZERO, ..budget }
                .plan(Bytes::ZERO, Span::from_secs(1))
                .count,
            0
        );
    }

    #[test]
    fn checkpoints_come_one_after_the_other() {
        let plan = CheckpointPlan { count: 2, cost: Span::from_secs(13) };
        assert_eq!(plan.next_after(Ppm::ZERO), Some(Ppm::new(333_333)));
        assert_eq!(plan.next_after(Ppm::new(333_332)), Some(Ppm::new(333_333)));
        assert_eq!(plan.next_after(Ppm::new(333_333)), Some(Ppm::new(666_666)));
        assert_eq!(plan.next_after(Ppm::new(666_666)), None);
        assert_eq!([plan.left_after(Ppm::ZERO), plan.left_after(Ppm::new(333_333))], [2, 1]);
        assert_eq!(CheckpointPlan::default().next_after(Ppm::ZERO), None);
    }
}
