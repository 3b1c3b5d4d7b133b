//! Schemes and plans of checkpoints, made from their configuration.

use std::collections::BTreeMap;
use std::sync::Arc;

use dormouse_cloud::{Market, PriceTrace};
use dormouse_model::{
    AdaptKnowledge, CheckpointConfig, CheckpointOn, CheckpointScheme, OfType, PeriodUnit,
};
use dormouse_units::{Bytes, Ppm, Span, TypeName};

use super::acc::AccCheckpoints;
use super::budget::{LastCheckpoint, OverheadBudget};
use super::every::{EveryTime, EveryWork, period_multiples};
use super::lifetimes::{ByLifetime, LifetimeTables};
use super::priced::PricedCheckpoints;
use super::simple::{ListedPoints, NoCheckpoints, SpotOnly};
use super::young_daly::YoungDaly;
use super::{CheckpointPlan, CheckpointPoints, Checkpointing, young_daly};
use dormouse_spot::{HOUR, SpotScheme};

/// Circumstances in which an attempt at a task began.
#[derive(Clone, Copy, Debug)]
pub struct Begun<'a> {
    /// Instance type of the VM.
    pub kind: &'a TypeName,
    /// Market in which the VM was bought.
    pub market: Market,
    /// Time for which the VM had been usable when the attempt began.
    pub age: Span,
    /// Part of the work that a checkpoint held when the attempt began.
    pub kept: Ppm,
}

/// Schemes and plans that a run and its schedulers derive from the configuration of checkpoints.
pub trait CheckpointPlanning {
    /// Makes the scheme of the configuration; `prices` holds the spot prices of the types whose price
    /// changes.
    #[must_use]
    fn build(&self, prices: &BTreeMap<TypeName, PriceTrace>) -> Box<dyn Checkpointing>;

    /// The checkpoints that schedulers expect for a task that takes `runtime` at full speed, on VMs where
    /// the task is checkpointed. The plan is empty if the scheme decides by prices alone. If the scheme
    /// decides by VM lifetimes, the plan is that for a new VM of the first law.
    #[must_use]
    fn plan(&self, memory: Bytes, runtime: Span) -> CheckpointPlan;

    /// Makes a planner that computes the plans of `plan` for many tasks.
    #[must_use]
    fn planner(&self) -> CheckpointPlanner<'_>;

    /// The plan of a task's checkpoints on a VM that is bought in this market.
    #[must_use]
    fn plan_on(&self, market: Market, memory: Bytes, runtime: Span) -> CheckpointPlan;

    /// True if schedulers plan for checkpoints of tasks on VMs that are bought in this market.
    #[must_use]
    fn is_planned_on(&self, market: Market) -> bool;

    /// True if a task on a VM that is bought in this market can ever be checkpointed.
    #[must_use]
    fn takes_any_on(&self, market: Market, memory: Bytes, runtime: Span) -> bool;

    /// The checkpoints of an attempt that are known, as parts of the work, when the attempt begins. Some of
    /// them may lie in the part of the work that is kept already.
    #[must_use]
    fn known_on(&self, begun: &Begun<'_>, memory: Bytes, runtime: Span) -> CheckpointPlan;
}

impl CheckpointPlanning for CheckpointConfig {
    fn build(&self, prices: &BTreeMap<TypeName, PriceTrace>) -> Box<dyn Checkpointing> {
        let never = (Span::ZERO, AdaptKnowledge::Past);
        let priced =
            |scheme, decides, look| Box::new(PricedCheckpoints::new(scheme, decides, look, prices));
        let scheme: Box<dyn Checkpointing> = match &self.scheme {
            CheckpointScheme::Budget(overhead) => {
                Box::new(OverheadBudget(*overhead, LastCheckpoint::Kept))
            }
            CheckpointScheme::BudgetIntervals(overhead) => {
                Box::new(OverheadBudget(*overhead, LastCheckpoint::AtTheEnd))
            }
            &CheckpointScheme::Every { period, of: PeriodUnit::Time } => {
                Box::new(EveryTime(period))
            }
            &CheckpointScheme::Every { period, of: PeriodUnit::Work } => {
                Box::new(EveryWork(period))
            }
            CheckpointScheme::Points(points) => Box::new(ListedPoints(Arc::clone(points))),
            CheckpointScheme::Hour {} => priced(SpotScheme::Hour, never, Span::ZERO),
            CheckpointScheme::Edge {} => priced(SpotScheme::Edge, never, Span::ZERO),
            &CheckpointScheme::Adapt { every, knows } => {
                priced(SpotScheme::Adapt, (every, knows), Span::ZERO)
            }
            &CheckpointScheme::Opt { look } => priced(SpotScheme::Opt, never, look),
            &CheckpointScheme::Acc { bid, look } => Box::new(AccCheckpoints { bid, look }),
            CheckpointScheme::YoungDaly { mttf } => Box::new(YoungDaly(mttf.clone())),
            CheckpointScheme::Dp(plans) => Box::new(ByLifetime(LifetimeTables::new(plans.clone()))),
            CheckpointScheme::None {} => Box::new(NoCheckpoints),
        };
        match self.on {
            CheckpointOn::Spot => Box::new(SpotOnly(scheme)),
            CheckpointOn::All => scheme,
        }
    }

    fn plan(&self, memory: Bytes, runtime: Span) -> CheckpointPlan {
        self.planner().plan(memory, runtime)
    }

    fn planner(&self) -> CheckpointPlanner<'_> {
        let tables = match &self.scheme {
            CheckpointScheme::Dp(plans) => Some(LifetimeTables::new(plans.clone())),
            _ => None,
        };
        CheckpointPlanner { config: self, tables }
    }

    fn plan_on(&self, market: Market, memory: Bytes, runtime: Span) -> CheckpointPlan {
        let plan = self.plan(memory, runtime);
        match self.is_planned_on(market) {
            true => plan,
            false => CheckpointPlan { due: CheckpointPoints::Even(0), ..plan },
        }
    }

    fn is_planned_on(&self, market: Market) -> bool {
        let is_of_spot =
            self.on == CheckpointOn::Spot || matches!(self.scheme, CheckpointScheme::Dp(_));
        market == Market::Spot || !is_of_spot
    }

    fn takes_any_on(&self, market: Market, memory: Bytes, runtime: Span) -> bool {
        match (self.on, market, &self.scheme) {
            (CheckpointOn::Spot, Market::OnDemand, _) | (_, _, CheckpointScheme::None {}) => false,
            // A VM's hour may end, its price change and its age have come soon after a task began.
            (_, _, CheckpointScheme::Hour {}) => true,
            (
                _,
                _,
                CheckpointScheme::Edge {}
                | CheckpointScheme::Adapt { .. }
                | CheckpointScheme::Opt { .. }
                | CheckpointScheme::Acc { .. }
                | CheckpointScheme::Dp(_),
            ) => market == Market::Spot,
            _ => self.plan(memory, runtime).count() > 0,
        }
    }

    fn known_on(&self, begun: &Begun<'_>, memory: Bytes, runtime: Span) -> CheckpointPlan {
        let Begun { kind, market, age, kept } = *begun;
        let plan = self.plan_on(market, memory, runtime);
        if plan.due == CheckpointPoints::Even(0) {
            return plan;
        }
        let due = match &self.scheme {
            CheckpointScheme::YoungDaly { mttf } => {
                let mttf = OfType::find_place(mttf, Some(kind)).map(|place| mttf[place].of);
                let period = mttf.map(|mttf| young_daly(plan.cost, mttf));
                CheckpointPoints::Listed(
                    period_multiples(period.unwrap_or_default(), runtime).into(),
                )
            }
            CheckpointScheme::Dp(plans) => {
                let left = runtime.saturating_sub(runtime.part(kept));
                let mut tables = LifetimeTables::new(plans.clone());
                CheckpointPoints::Listed(
                    tables.checkpoint_points(Some(kind), age, (runtime, left), plan.cost).into(),
                )
            }
            CheckpointScheme::Every { of: PeriodUnit::Time, .. } | CheckpointScheme::Hour {} => {
                CheckpointPoints::Even(0)
            }
            _ => return plan,
        };
        CheckpointPlan { due, ..plan }
    }
}

/// Plans the checkpoints of one task; the dynamic program uses the tables made so far.
fn plan_by(
    config: &CheckpointConfig,
    tables: Option<&mut LifetimeTables>,
    memory: Bytes,
    runtime: Span,
) -> CheckpointPlan {
    let cost = config.checkpoint_cost(memory);
    let due = match &config.scheme {
        CheckpointScheme::Budget(overhead) => {
            return OverheadBudget(*overhead, LastCheckpoint::Kept).plan(runtime, cost);
        }
        CheckpointScheme::BudgetIntervals(overhead) => {
            return OverheadBudget(*overhead, LastCheckpoint::AtTheEnd).plan(runtime, cost);
        }
        CheckpointScheme::YoungDaly { mttf } => {
            let period = mttf.first().map(|mttf| young_daly(cost, mttf.of));
            CheckpointPoints::Listed(period_multiples(period.unwrap_or_default(), runtime).into())
        }
        CheckpointScheme::Dp(_) => {
            let whole = (runtime, runtime);
            let points = tables.map(|of| of.checkpoint_points(None, Span::ZERO, whole, cost));
            CheckpointPoints::Listed(points.unwrap_or_default().into())
        }
        CheckpointScheme::Every { period, .. } => {
            CheckpointPoints::Listed(period_multiples(*period, runtime).into())
        }
        CheckpointScheme::Points(points) => CheckpointPoints::Listed(Arc::clone(points)),
        CheckpointScheme::Hour {} => {
            CheckpointPoints::Listed(period_multiples(HOUR, runtime).into())
        }
        CheckpointScheme::Edge {}
        | CheckpointScheme::Adapt { .. }
        | CheckpointScheme::Opt { .. }
        | CheckpointScheme::Acc { .. }
        | CheckpointScheme::None {} => CheckpointPoints::Even(0),
    };
    CheckpointPlan { due, cost }
}

/// Plans the checkpoints of many tasks and keeps the tables that the plans share.
#[derive(Debug)]
pub struct CheckpointPlanner<'a> {
    config: &'a CheckpointConfig,
    tables: Option<LifetimeTables>,
}

impl CheckpointPlanner<'_> {
    /// The checkpoints of one task, as [`CheckpointPlanning::plan`] returns them.
    pub fn plan(&mut self, memory: Bytes, runtime: Span) -> CheckpointPlan {
        plan_by(self.config, self.tables.as_mut(), memory, runtime)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn artifact(scheme: CheckpointScheme) -> CheckpointConfig {
        CheckpointConfig {
            scheme,
            fixed: Span::from_micros(12_995_000),
            per_megabyte: Span::from_micros(40_000),
            on: CheckpointOn::Spot,
            ..CheckpointConfig::NONE
        }
    }

    #[test]
    fn the_artifacts_numbers() {
        let budget = artifact(CheckpointScheme::Budget(Ppm::new(100_000)));
        let plan = |mb: u64, s| budget.plan(Bytes::new(mb * 1_000_000), Span::from_secs(s)).count();
        assert_eq!([plan(10, 119), plan(10, 167), plan(13, 349), plan(168, 210)], [0, 1, 2, 1]);
        let intervals = artifact(CheckpointScheme::BudgetIntervals(Ppm::new(100_000)));
        let plan = |mb: u64, s| intervals.plan(Bytes::new(mb * 1_000_000), Span::from_secs(s));
        let counts = [plan(10, 119), plan(10, 167), plan(13, 349)].map(|plan| plan.count());
        assert_eq!(counts, [0, 0, 1]);
        assert_eq!(plan(13, 349).points(), [Ppm::new(500_000)]);
        let nothing = artifact(CheckpointScheme::Budget(Ppm::ZERO));
        assert_eq!(nothing.plan(Bytes::ZERO, Span::from_secs(1)).count(), 0);
    }

    #[test]
    fn what_is_not_known_beforehand_is_reckoned_with_all_the_same() {
        let (memory, runtime) = (Bytes::ZERO, Span::from_secs(100));
        let every = |of| artifact(CheckpointScheme::Every { period: Span::from_secs(30), of });
        let (time, work) = (every(PeriodUnit::Time), every(PeriodUnit::Work));
        for config in [&time, &work] {
            assert_eq!(config.plan_on(Market::Spot, memory, runtime).count(), 3);
            assert_eq!(config.plan_on(Market::OnDemand, memory, runtime).count(), 0);
        }
        let (kind, market) = (&"any".into(), Market::Spot);
        let begun = Begun { kind, market, age: Span::ZERO, kept: Ppm::ZERO };
        assert_eq!(time.known_on(&begun, memory, runtime).count(), 0);
        assert_eq!(work.known_on(&begun, memory, runtime).count(), 3);
    }
}
