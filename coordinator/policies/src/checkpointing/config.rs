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
use super::never::Never;
use super::points::Points;
use super::priced::Priced;
use super::spot_only::SpotOnly;
use super::{CheckpointPlan, Checkpointing, Due};
use crate::spot::{HOUR, SpotScheme};

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
    },
    /// So that it is kept exactly when the price passes the VM's bid, which nobody can know.
    #[serde(rename = "opt")]
    Opt {},
    /// Before each hour of the VM ends, if the price is then above a bid.
    #[serde(rename = "acc")]
    Acc {
        /// That bid; `None`: the VM's.
        bid: Option<Price>,
        /// How long before the end of the hour it is kept.
        look: Span,
    },
    /// Never.
    #[serde(rename = "none")]
    None {},
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
        let priced = |scheme, every| Box::new(Priced::new(scheme, every, prices));
        let scheme: Box<dyn Checkpointing> = match &self.scheme {
            Scheme::Budget(overhead) => Box::new(Budget(*overhead)),
            &Scheme::Every { period, of: Period::Time } => Box::new(EveryTime(period)),
            &Scheme::Every { period, of: Period::Work } => Box::new(EveryWork(period)),
            Scheme::Points(points) => Box::new(Points(Arc::clone(points))),
            Scheme::Hour {} => priced(SpotScheme::Hour, Span::ZERO),
            Scheme::Edge {} => priced(SpotScheme::Edge, Span::ZERO),
            Scheme::Adapt { every } => priced(SpotScheme::Adapt, *every),
            Scheme::Opt {} => priced(SpotScheme::Opt, Span::ZERO),
            &Scheme::Acc { bid, look } => Box::new(Acc { bid, look }),
            Scheme::None {} => Box::new(Never),
        };
        match self.on {
            CheckpointOn::Spot => Box::new(SpotOnly(scheme)),
            CheckpointOn::All => scheme,
        }
    }

    /// The checkpoints that a task which takes `runtime` at full speed is expected to take where it
    /// takes any: what schedulers reckon with. None where prices alone say whether any is taken.
    #[must_use]
    pub fn plan(&self, memory: Bytes, runtime: Span) -> CheckpointPlan {
        let cost = self.cost(memory);
        let due = match &self.scheme {
            Scheme::Budget(overhead) => return Budget(*overhead).plan(runtime, cost),
            Scheme::Every { period, .. } => Due::Listed(multiples(*period, runtime).into()),
            Scheme::Points(points) => Due::Listed(Arc::clone(points)),
            Scheme::Hour {} => Due::Listed(multiples(HOUR, runtime).into()),
            Scheme::Edge {}
            | Scheme::Adapt { .. }
            | Scheme::Opt {}
            | Scheme::Acc { .. }
            | Scheme::None {} => Due::Even(0),
        };
        CheckpointPlan { due, cost }
    }

    /// The same on a VM that is bought so.
    #[must_use]
    pub fn plan_on(&self, market: Market, memory: Bytes, runtime: Span) -> CheckpointPlan {
        let plan = self.plan(memory, runtime);
        match (self.on, market) {
            (CheckpointOn::Spot, Market::OnDemand) => CheckpointPlan { due: Due::Even(0), ..plan },
            _ => plan,
        }
    }

    /// Whether a task on a VM that is bought so can ever be checkpointed.
    #[must_use]
    pub fn takes_any_on(&self, market: Market, memory: Bytes, runtime: Span) -> bool {
        match (self.on, market, &self.scheme) {
            (CheckpointOn::Spot, Market::OnDemand, _) | (_, _, Scheme::None {}) => false,
            // A VM's hour, and its price, may be another's soon after its task began.
            (_, _, Scheme::Hour {}) => true,
            (
                _,
                _,
                Scheme::Edge {} | Scheme::Adapt { .. } | Scheme::Opt {} | Scheme::Acc { .. },
            ) => market == Market::Spot,
            _ => self.plan(memory, runtime).count() > 0,
        }
    }

    /// Of these, those whose points of the work are known before the task begins.
    #[must_use]
    pub fn known_on(&self, market: Market, memory: Bytes, runtime: Span) -> CheckpointPlan {
        let plan = self.plan_on(market, memory, runtime);
        match self.scheme {
            Scheme::Every { of: Period::Time, .. } | Scheme::Hour {} => {
                CheckpointPlan { due: Due::Even(0), ..plan }
            }
            _ => plan,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        for scheme in [
            Scheme::Budget(Ppm::new(7)),
            Scheme::Every { period: Span::from_secs(60), of: Period::Work },
            Scheme::Points([1, 2].map(Ppm::new).into()),
            Scheme::Hour {},
            Scheme::Edge {},
            Scheme::Adapt { every: Span::from_secs(600) },
            Scheme::Opt {},
            Scheme::Acc { bid: Some(Price::from_nanos_per_hour(7)), look: Span::from_secs(60) },
            Scheme::None {},
        ] {
            let written = of(scheme.clone());
            let read: CheckpointConfig = serde_json::from_str(&written).expect("as written");
            assert_eq!(read, artifact(scheme), "{written}");
        }
        let old = r#"{"overhead":5,"fixed":1,"per_megabyte":0}"#;
        let old: CheckpointConfig = serde_json::from_str(old).expect("an old log's");
        assert_eq!((old.scheme, old.on), (Scheme::Budget(Ppm::new(5)), CheckpointOn::All));
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
        assert_eq!(time.known_on(Market::Spot, memory, runtime).count(), 0);
        assert_eq!(work.known_on(Market::Spot, memory, runtime).count(), 3);
    }
}
