//! Configuration of checkpoints: when tasks take them, where, and at what cost.

use std::collections::BTreeSet;
use std::sync::Arc;

use dormouse_cloud::Lifetimes;
use dormouse_units::{Bytes, Ppm, Price, Span, TaskId, TypeName};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// On which VMs tasks are checkpointed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CheckpointOn {
    /// Tasks on VMs that the provider can preempt.
    #[default]
    Spot,
    /// On all. In a live run on-demand VMs can be lost, too: with their worker.
    All,
}

/// Unit in which a checkpoint period is counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(rename = "Period")]
pub enum PeriodUnit {
    /// Emulated time.
    #[default]
    Time,
    /// Work, in time at full speed.
    Work,
}

/// Schemes that say when tasks are checkpointed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Scheme")]
pub enum CheckpointScheme {
    /// As many checkpoints as add at most this part to a task's run time, evenly spaced over its work; zero: none.
    #[serde(rename = "overhead")]
    Budget(Ppm),
    /// One checkpoint fewer than an overhead of this part allows, evenly spaced: an interval is the run time over their
    /// number, so that the last would come when the task ends (the authors of Burst-HADS).
    #[serde(rename = "overhead-intervals")]
    BudgetIntervals(Ppm),
    /// Checkpoints after each period of time or work.
    #[serde(rename = "every")]
    Every {
        /// Period from one checkpoint to the next: emulated time or work at full speed, at least a
        /// microsecond.
        period: Span,
        /// Whether the period is time or work.
        of: PeriodUnit,
    },
    /// Checkpoints at these parts of the task's work, ascending.
    #[serde(rename = "points")]
    Points(Arc<[Ppm]>),
    /// Just before each hour of the VM ends (HOUR of the ACC paper, as are the next four).
    #[serde(rename = "hour")]
    Hour {},
    /// Whenever the price of the VM rises.
    #[serde(rename = "edge")]
    Edge {},
    /// Checkpoints at those of regular times at which one is expected to save more time than it takes.
    #[serde(rename = "adapt")]
    Adapt {
        /// Period between the times at which a checkpoint is considered.
        every: Span,
        /// What ADAPT knows of the prices.
        // Logs without this field are older: ADAPT then knew all prices.
        #[serde(default = "all_of_it")]
        knows: AdaptKnowledge,
    },
    /// Just so early that a checkpoint is kept when the price exceeds the VM's bid; a yardstick, as the future price is
    /// not known.
    #[serde(rename = "opt")]
    Opt {
        /// How long before that instant the checkpoint is kept: a VM is taken away before a
        /// checkpoint of the same instant counts.
        look: Span,
    },
    /// Checkpoints before each hour of the VM ends, if the price is then above a bid.
    #[serde(rename = "acc")]
    Acc {
        /// Bid that the price is compared with; null: the VM's own bid.
        bid: Option<Price>,
        /// How long before the end of the hour the checkpoint is kept.
        look: Span,
    },
    /// Evenly spaced over the work, as suits VMs with these mean lifetimes that don't age; none on
    /// VMs of other types.
    #[serde(rename = "young-daly")]
    YoungDaly {
        /// Mean lifetimes of VMs, by instance type.
        mttf: Vec<OfType<Span>>,
    },
    /// Where the dynamic program puts checkpoints, by the age of the VM.
    #[serde(rename = "dp")]
    Dp(LifetimePlans),
    /// No checkpoints are taken.
    #[serde(rename = "none")]
    None {},
}

/// When and where tasks are checkpointed, and what that costs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CheckpointConfig {
    /// Scheme that decides when a task is checkpointed.
    #[serde(flatten)]
    pub scheme: CheckpointScheme,
    /// Time that every checkpoint takes, whatever the task's memory.
    pub fixed: Span,
    /// Time that a checkpoint takes in addition per 10^6 bytes of the task's memory.
    pub per_megabyte: Span,
    /// VMs on which tasks are checkpointed.
    // Logs without this field are older: then it was all VMs.
    #[serde(default = "on_everything")]
    pub on: CheckpointOn,
    /// Whether a VM that is told to hibernate first takes a checkpoint of every task of a bag that
    /// runs there (the authors of Burst-HADS, whose code plays the hibernation: `dispatcher.py`,
    /// `__execution_loop`). The VM freezes once the checkpoints are there.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub at_hibernation: bool,
    /// Whether a VM that is given notice that it will be taken away takes a checkpoint of every task of a
    /// bag that runs there: what programs do that save their work then.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub at_notice: bool,
    /// Whether nothing of a task's work can be kept, whoever asks for it: a task that a
    /// scheduler moves begins anew.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub never: bool,
    /// Tasks whose programs save their work at a notice, by themselves, where others of the bag are kept as `scheme`
    /// says: of these no checkpoint is taken at any other time.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub savers: BTreeSet<TaskId>,
    /// Tasks of whose work nothing can be kept, where others of the bag are kept.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub unsaved: BTreeSet<TaskId>,
}

impl CheckpointConfig {
    /// No checkpoints at all.
    pub const NONE: Self = Self {
        scheme: CheckpointScheme::None {},
        fixed: Span::ZERO,
        per_megabyte: Span::ZERO,
        on: CheckpointOn::Spot,
        at_hibernation: false,
        at_notice: false,
        never: false,
        savers: BTreeSet::new(),
        unsaved: BTreeSet::new(),
    };

    /// True if the task's program saves its own work when its VM is given notice of preemption, and goes on
    /// computing until it has had the time to save.
    #[must_use]
    pub fn is_saved_by_program(&self, task: TaskId) -> bool {
        // Without a scheme nothing else of the bag is kept, unless the bag says who saves.
        let is_one = match self.savers.is_empty() {
            true => matches!(self.scheme, CheckpointScheme::None {}),
            false => self.savers.contains(&task),
        };
        self.at_notice && is_one && !self.keeps_nothing_of(task)
    }

    /// True if no work of a task can be kept, by the scheme or on request.
    #[must_use]
    pub fn keeps_nothing_of(&self, task: TaskId) -> bool {
        self.never || self.unsaved.contains(&task)
    }

    /// True if a task is checkpointed by the scheme and, if configured, when its VM hibernates.
    #[must_use]
    pub fn has_scheme_for(&self, task: TaskId) -> bool {
        !self.savers.contains(&task) && !self.unsaved.contains(&task)
    }

    /// Time for which a task with this memory is stopped for a checkpoint.
    #[must_use]
    pub fn checkpoint_cost(&self, memory: Bytes) -> Span {
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
}

/// A value that holds for VMs of one instance type, or for all VMs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "{T}OfType")]
pub struct OfType<T> {
    /// Instance type that `of` holds for; left out: all types.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<TypeName>,
    /// The value for the VMs of this type.
    pub of: T,
}

impl<T> OfType<T> {
    /// Index of the first entry that applies to VMs of this type; without a type, the first entry.
    #[must_use]
    pub fn find_place(all: &[Self], kind: Option<&TypeName>) -> Option<usize> {
        let holds = |it: &Self| match (&it.kind, kind) {
            (Some(only), Some(kind)) => only == kind,
            _ => true,
        };
        all.iter().position(holds)
    }
}

/// Assumptions and parameters of the dynamic program that places checkpoints.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LifetimePlans {
    /// Laws of VM lifetimes: the first that holds for a type counts; VMs of types without one are
    /// never taken away.
    pub laws: Vec<OfType<Lifetimes>>,
    /// Time for which a VM is still there after its lifetime: its notice begins when its lifetime ends.
    pub notice: Span,
    /// Step of the program's grid: times are rounded up to whole steps.
    pub step: Span,
    /// Time that a task takes to continue from a checkpoint on another VM.
    pub restart: Span,
    /// How the paper's recursion is read.
    pub mode: DpMode,
}

/// The readings there are, by name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum DpMode {
    /// Probabilities given the age that the VM has reached, the exact expected loss, a fresh VM after a
    /// failure, no checkpoint after the last step.
    #[default]
    Conditional,
    /// As the paper's authors computed: unconditional probabilities, half of a chunk lost, a VM of the
    /// same age after a failure, a checkpoint after the last step as well.
    Artifact,
}

/// From which uptimes ADAPT takes its probabilities.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(rename = "Knows")]
pub enum AdaptKnowledge {
    /// From the uptimes that ended before the decision.
    #[default]
    Past,
    /// From the whole record, future uptimes too: a yardstick.
    WholeRecord,
}

const fn on_everything() -> CheckpointOn {
    CheckpointOn::All
}

const fn all_of_it() -> AdaptKnowledge {
    AdaptKnowledge::WholeRecord
}

#[cfg(test)]
mod tests {
    use dormouse_cloud::{Exponential, Lifetimes};

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
    fn a_budget_is_written_as_it_always_was_and_every_scheme_reads_back() {
        let of = |scheme| serde_json::to_string(&artifact(scheme)).expect("it is plain");
        assert_eq!(
            of(CheckpointScheme::Budget(Ppm::new(100_000))),
            r#"{"overhead":100000,"fixed":12995000,"per_megabyte":40000,"on":"spot"}"#
        );
        let mean = Span::from_secs(3_600);
        let lifetimes = Lifetimes::Exponential(Exponential { mean });
        for scheme in [
            CheckpointScheme::Budget(Ppm::new(7)),
            CheckpointScheme::BudgetIntervals(Ppm::new(7)),
            CheckpointScheme::Every { period: Span::from_secs(60), of: PeriodUnit::Work },
            CheckpointScheme::Points([1, 2].map(Ppm::new).into()),
            CheckpointScheme::Hour {},
            CheckpointScheme::Edge {},
            CheckpointScheme::Adapt { every: Span::from_secs(600), knows: AdaptKnowledge::Past },
            CheckpointScheme::Opt { look: Span::from_micros(1) },
            CheckpointScheme::Acc {
                bid: Some(Price::from_nanos_per_hour(7)),
                look: Span::from_secs(60),
            },
            CheckpointScheme::YoungDaly {
                mttf: vec![OfType { kind: None, of: Span::from_secs(3_600) }],
            },
            CheckpointScheme::Dp(LifetimePlans {
                laws: vec![OfType { kind: Some("c3.large".into()), of: lifetimes }],
                notice: Span::from_secs(120),
                step: Span::from_secs(60),
                restart: Span::from_secs(60),
                mode: DpMode::Conditional,
            }),
            CheckpointScheme::None {},
        ] {
            let written = of(scheme.clone());
            let read: CheckpointConfig = serde_json::from_str(&written).expect("as written");
            assert_eq!(read, artifact(scheme), "{written}");
        }
        let old = r#"{"overhead":5,"fixed":1,"per_megabyte":0}"#;
        let old: CheckpointConfig = serde_json::from_str(old).expect("an old log's");
        assert_eq!(
            (old.scheme, old.on),
            (CheckpointScheme::Budget(Ppm::new(5)), CheckpointOn::All)
        );
        let old = r#"{"adapt":{"every":600000000},"fixed":1,"per_megabyte":0}"#;
        let old: CheckpointConfig = serde_json::from_str(old).expect("an old log's");
        let (every, knows) = (Span::from_secs(600), AdaptKnowledge::WholeRecord);
        assert_eq!(old.scheme, CheckpointScheme::Adapt { every, knows });
    }
}
