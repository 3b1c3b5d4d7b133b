//! What can be set about checkpoints.

use std::collections::BTreeMap;
use std::sync::Arc;

use dormouse_cloud::{Market, PriceTrace};
use dormouse_units::{Bytes, Ppm, Price, Span, TypeName};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::acc::Acc;
use super::budget::Budget;
use super::every::{EveryTime, EveryWork, multiples};
use super::lifetimes::{ByLifetime, LifetimeTables};
use super::never::Never;
use super::points::Points;
use super::priced::Priced;
use super::spot_only::SpotOnly;
use super::young_daly::YoungDaly;
use super::{CheckpointPlan, Checkpointing, Due, LifetimePlans, OfType, young_daly};
use crate::spot::{HOUR, Knows, SpotScheme};

/// On which VMs tasks are checkpointed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CheckpointOn {
    /// On those that the provider can take away.
    #[default]
    Spot,
    /// On all. In a live run on-demand VMs can be lost, too: with their worker.
    All,
}

/// What a period is counted in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Period {
    /// Emulated time.
    #[default]
    Time,
    /// Work, in time at full speed.
    Work,
}

/// When tasks are checkpointed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Scheme {
    /// As often as adds at most this part to a task's run time, evenly spaced over its work; zero:
    /// not at all.
    #[serde(rename = "overhead")]
    Budget(Ppm),
    /// Every so often.
    #[serde(rename = "every")]
    Every {
        /// From one to the next: emulated time or work at full speed, at least a microsecond.
        period: Span,
        /// Whether that is time or work.
        of: Period,
    },
    /// At these parts of their work, ascending.
    #[serde(rename = "points")]
    Points(Arc<[Ppm]>),
    /// Just before each hour of the VM ends (HOUR of the ACC paper, as are the next four).
    #[serde(rename = "hour")]
    Hour {},
    /// Whenever the price of the VM rises.
    #[serde(rename = "edge")]
    Edge {},
    /// At regular times, where it is expected to save more than it takes.
    #[serde(rename = "adapt")]
    Adapt {
        /// From one of these times to the next.
        every: Span,
        /// What it knows of the prices. A log that doesn't say was written when it was all.
        #[serde(default = "all_of_it")]
        knows: Knows,
    },
    /// So that it is kept when the price passes the VM's bid, which nobody can know.
    #[serde(rename = "opt")]
    Opt {
        /// How long before. The provider takes a VM before it hears of what is kept at that instant.
        look: Span,
    },
    /// Before each hour of the VM ends, if the price is then above a bid.
    #[serde(rename = "acc")]
    Acc {
        /// Bid that the price is compared with; `None`: the VM's own bid.
        bid: Option<Price>,
        /// How long before the end of the hour it is kept.
        look: Span,
    },
    /// Evenly spaced over the work, as VMs ask for that live so long on average and don't age; not on VMs of
    /// other types.
    #[serde(rename = "young-daly")]
    YoungDaly {
        /// Their mean lifetimes.
        mttf: Vec<OfType<Span>>,
    },
    /// Where the dynamic program puts them, by the age of the VM.
    #[serde(rename = "dp")]
    Dp(LifetimePlans),
    /// No checkpoints are taken.
    #[serde(rename = "none")]
    None {},
}

/// How an attempt at a task began.
#[derive(Clone, Copy, Debug)]
pub struct Begun<'a> {
    /// The type of its VM.
    pub kind: &'a TypeName,
    /// How that was bought.
    pub market: Market,
    /// How long that could be used by then.
    pub age: Span,
    /// What of the work was kept.
    pub kept: Ppm,
}

/// When tasks are checkpointed, where, and what that costs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckpointConfig {
    /// What decides when a task is checkpointed.
    #[serde(flatten)]
    pub scheme: Scheme,
    /// What any checkpoint costs.
    pub fixed: Span,
    /// What it costs more per 10^6 bytes of the task's memory.
    pub per_megabyte: Span,
    /// On which VMs. A log that doesn't say was written when it was all.
    #[serde(default = "everywhere")]
    pub on: CheckpointOn,
    /// Whether a VM that is told to hibernate first takes one of every task of a bag that runs there
    /// (the authors of Burst-HADS, whose code plays the hibernation: `dispatcher.py`,
    /// `__execution_loop`). It freezes once they are there.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub at_hibernation: bool,
}

const fn everywhere() -> CheckpointOn {
    CheckpointOn::All
}

const fn all_of_it() -> Knows {
    Knows::WholeRecord
}

impl CheckpointConfig {
    /// No checkpoints at all.
    pub const NONE: Self = Self {
        scheme: Scheme::None {},
        fixed: Span::ZERO,
        per_megabyte: Span::ZERO,
        on: CheckpointOn::Spot,
        at_hibernation: false,
    };

    /// How long a task stands still for a checkpoint.
    #[must_use]
    pub fn cost(&self, memory: Bytes) -> Span {
        let (each, memory) = (self.per_megabyte.as_micros(), memory.get());
        // A division of 128 bits takes ten times as long.
        let per_memory = match each.checked_mul(memory) {
            Some(product) => product / 1_000_000,
            None => {
                u64::try_from(u128::from(each) * u128::from(memory) / 1_000_000).unwrap_or(u64::MAX)
            }
        };
        self.fixed + Span::from_micros(per_memory)
    }

    /// The scheme itself, where spot prices that change are these.
    #[must_use]
    pub fn build(&self, prices: &BTreeMap<TypeName, PriceTrace>) -> Box<dyn Checkpointing> {
        let never = (Span::ZERO, Knows::Past);
        let priced = |scheme, decides, look| Box::new(Priced::new(scheme, decides, look, prices));
        let scheme: Box<dyn Checkpointing> = match &self.scheme {
            Scheme::Budget(overhead) => Box::new(Budget(*overhead)),
            &Scheme::Every { period, of: Period::Time } => Box::new(EveryTime(period)),
            &Scheme::Every { period, of: Period::Work } => Box::new(EveryWork(period)),
            Scheme::Points(points) => Box::new(Points(Arc::clone(points))),
            Scheme::Hour {} => priced(SpotScheme::Hour, never, Span::ZERO),
            Scheme::Edge {} => priced(SpotScheme::Edge, never, Span::ZERO),
            &Scheme::Adapt { every, knows } => {
                priced(SpotScheme::Adapt, (every, knows), Span::ZERO)
            }
            &Scheme::Opt { look } => priced(SpotScheme::Opt, never, look),
            &Scheme::Acc { bid, look } => Box::new(Acc { bid, look }),
            Scheme::YoungDaly { mttf } => Box::new(YoungDaly(mttf.clone())),
            Scheme::Dp(plans) => Box::new(ByLifetime(LifetimeTables::new(plans.clone()))),
            Scheme::None {} => Box::new(Never),
        };
        match self.on {
            CheckpointOn::Spot => Box::new(SpotOnly(scheme)),
            CheckpointOn::All => scheme,
        }
    }

    /// The checkpoints that a task which takes `runtime` at full speed is expected to take where it
    /// takes any: what schedulers reckon with. None where prices alone say whether any is taken; where
    /// lifetimes do, those on a new VM of the first law.
    #[must_use]
    pub fn plan(&self, memory: Bytes, runtime: Span) -> CheckpointPlan {
        self.planner().plan(memory, runtime)
    }

    /// The same for many tasks.
    #[must_use]
    pub fn planner(&self) -> CheckpointPlanner<'_> {
        let tables = match &self.scheme {
            Scheme::Dp(plans) => Some(LifetimeTables::new(plans.clone())),
            _ => None,
        };
        CheckpointPlanner { config: self, tables }
    }

    fn plan_by(
        &self,
        tables: Option<&mut LifetimeTables>,
        memory: Bytes,
        runtime: Span,
    ) -> CheckpointPlan {
        let cost = self.cost(memory);
        let due = match &self.scheme {
            Scheme::Budget(overhead) => return Budget(*overhead).plan(runtime, cost),
            Scheme::YoungDaly { mttf } => {
                let period = mttf.first().map(|mttf| young_daly(cost, mttf.of));
                Due::Listed(multiples(period.unwrap_or_default(), runtime).into())
            }
            Scheme::Dp(_) => {
                let whole = (runtime, runtime);
                let points = tables.map(|of| of.points(None, Span::ZERO, whole, cost));
                Due::Listed(points.unwrap_or_default().into())
            }
            Scheme::Every { period, .. } => Due::Listed(multiples(*period, runtime).into()),
            Scheme::Points(points) => Due::Listed(Arc::clone(points)),
            Scheme::Hour {} => Due::Listed(multiples(HOUR, runtime).into()),
            Scheme::Edge {}
            | Scheme::Adapt { .. }
            | Scheme::Opt { .. }
            | Scheme::Acc { .. }
            | Scheme::None {} => Due::Even(0),
        };
        CheckpointPlan { due, cost }
    }

    /// The same on a VM that is bought so.
    #[must_use]
    pub fn plan_on(&self, market: Market, memory: Bytes, runtime: Span) -> CheckpointPlan {
        let plan = self.plan(memory, runtime);
        match (self.on, market, &self.scheme) {
            (CheckpointOn::Spot, Market::OnDemand, _) | (_, Market::OnDemand, Scheme::Dp(_)) => {
                CheckpointPlan { due: Due::Even(0), ..plan }
            }
            _ => plan,
        }
    }

    /// Whether a task on a VM that is bought so can ever be checkpointed.
    #[must_use]
    pub fn takes_any_on(&self, market: Market, memory: Bytes, runtime: Span) -> bool {
        match (self.on, market, &self.scheme) {
            (CheckpointOn::Spot, Market::OnDemand, _) | (_, _, Scheme::None {}) => false,
            // A VM's hour may end, its price change and its age have come soon after a task began.
            (_, _, Scheme::Hour {}) => true,
            (
                _,
                _,
                Scheme::Edge {}
                | Scheme::Adapt { .. }
                | Scheme::Opt { .. }
                | Scheme::Acc { .. }
                | Scheme::Dp(_),
            ) => market == Market::Spot,
            _ => self.plan(memory, runtime).count() > 0,
        }
    }

    /// Those whose points of the work are known when an attempt begins. Some may lie before what is kept.
    #[must_use]
    pub fn known_on(&self, begun: &Begun<'_>, memory: Bytes, runtime: Span) -> CheckpointPlan {
        let Begun { kind, market, age, kept } = *begun;
        let plan = self.plan_on(market, memory, runtime);
        if plan.due == Due::Even(0) {
            return plan;
        }
        let due = match &self.scheme {
            Scheme::YoungDaly { mttf } => {
                let mttf = OfType::place(mttf, Some(kind)).map(|place| mttf[place].of);
                let period = mttf.map(|mttf| young_daly(plan.cost, mttf));
                Due::Listed(multiples(period.unwrap_or_default(), runtime).into())
            }
            Scheme::Dp(plans) => {
                let left = runtime.saturating_sub(runtime.part(kept));
                let mut tables = LifetimeTables::new(plans.clone());
                Due::Listed(tables.points(Some(kind), age, (runtime, left), plan.cost).into())
            }
            Scheme::Every { of: Period::Time, .. } | Scheme::Hour {} => Due::Even(0),
            _ => return plan,
        };
        CheckpointPlan { due, ..plan }
    }
}

/// What schedulers reckon with, made for one task after the other.
#[derive(Debug)]
pub struct CheckpointPlanner<'a> {
    config: &'a CheckpointConfig,
    tables: Option<LifetimeTables>,
}

impl CheckpointPlanner<'_> {
    /// Checkpoint plan of a task, as by [`CheckpointConfig::plan`].
    pub fn plan(&mut self, memory: Bytes, runtime: Span) -> CheckpointPlan {
        self.config.plan_by(self.tables.as_mut(), memory, runtime)
    }
}

#[cfg(test)]
mod tests {
    use dormouse_cloud::{Exponential, Lifetimes};

    use super::*;
    use crate::dp::DpMode;

    fn artifact(scheme: Scheme) -> CheckpointConfig {
        CheckpointConfig {
            scheme,
            fixed: Span::from_micros(12_995_000),
            per_megabyte: Span::from_micros(40_000),
            on: CheckpointOn::Spot,
            at_hibernation: false,
        }
    }

    #[test]
    fn the_artifacts_numbers() {
        let budget = artifact(Scheme::Budget(Ppm::new(100_000)));
        let plan = |mb: u64, s| budget.plan(Bytes::new(mb * 1_000_000), Span::from_secs(s)).count();
        assert_eq!([plan(10, 119), plan(10, 167), plan(13, 349), plan(168, 210)], [0, 1, 2, 1]);
        let nothing = artifact(Scheme::Budget(Ppm::ZERO));
        assert_eq!(nothing.plan(Bytes::ZERO, Span::from_secs(1)).count(), 0);
    }

    #[test]
    fn a_budget_is_written_as_it_always_was_and_every_scheme_reads_back() {
        let of = |scheme| serde_json::to_string(&artifact(scheme)).expect("it is plain");
        assert_eq!(
            of(Scheme::Budget(Ppm::new(100_000))),
            r#"{"overhead":100000,"fixed":12995000,"per_megabyte":40000,"on":"spot"}"#
        );
        let mean = Span::from_secs(3_600);
        let lifetimes = Lifetimes::Exponential(Exponential { mean });
        for scheme in [
            Scheme::Budget(Ppm::new(7)),
            Scheme::Every { period: Span::from_secs(60), of: Period::Work },
            Scheme::Points([1, 2].map(Ppm::new).into()),
            Scheme::Hour {},
            Scheme::Edge {},
            Scheme::Adapt { every: Span::from_secs(600), knows: Knows::Past },
            Scheme::Opt { look: Span::from_micros(1) },
            Scheme::Acc { bid: Some(Price::from_nanos_per_hour(7)), look: Span::from_secs(60) },
            Scheme::YoungDaly { mttf: vec![OfType { kind: None, of: Span::from_secs(3_600) }] },
            Scheme::Dp(LifetimePlans {
                laws: vec![OfType { kind: Some("c3.large".into()), of: lifetimes }],
                notice: Span::from_secs(120),
                step: Span::from_secs(60),
                restart: Span::from_secs(60),
                mode: DpMode::Conditional,
            }),
            Scheme::None {},
        ] {
            let written = of(scheme.clone());
            let read: CheckpointConfig = serde_json::from_str(&written).expect("as written");
            assert_eq!(read, artifact(scheme), "{written}");
        }
        let old = r#"{"overhead":5,"fixed":1,"per_megabyte":0}"#;
        let old: CheckpointConfig = serde_json::from_str(old).expect("an old log's");
        assert_eq!((old.scheme, old.on), (Scheme::Budget(Ppm::new(5)), CheckpointOn::All));
        let old = r#"{"adapt":{"every":600000000},"fixed":1,"per_megabyte":0}"#;
        let old: CheckpointConfig = serde_json::from_str(old).expect("an old log's");
        let (every, knows) = (Span::from_secs(600), Knows::WholeRecord);
        assert_eq!(old.scheme, Scheme::Adapt { every, knows });
    }

    #[test]
    fn what_is_not_known_beforehand_is_reckoned_with_all_the_same() {
        let (memory, runtime) = (Bytes::ZERO, Span::from_secs(100));
        let every = |of| artifact(Scheme::Every { period: Span::from_secs(30), of });
        let (time, work) = (every(Period::Time), every(Period::Work));
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
