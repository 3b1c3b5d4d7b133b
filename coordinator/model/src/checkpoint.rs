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
    /// Tasks on all VMs, on-demand ones too: in a live run these can be lost with their worker.
    All,
}

/// Unit in which a checkpoint period is counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(rename = "Period")]
pub enum PeriodUnit {
    /// The period is emulated time.
    #[default]
    Time,
    /// The period is work, counted as its time at full speed.
    Work,
}

/// Schemes that say when tasks are checkpointed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Scheme")]
pub enum CheckpointScheme {
    /// The greatest number of checkpoints that add at most this share to a task's run time, evenly spaced over its work; zero: no
    /// checkpoints.
    #[serde(rename = "overhead")]
    Budget(Ppm),
    /// One checkpoint fewer than `Budget` takes at this overhead, evenly spaced: the task's run time is divided by `Budget`'s
    /// number, so that the last checkpoint would come at the task's end and is left out (the authors of Burst-HADS).
    #[serde(rename = "overhead-intervals")]
    BudgetIntervals(Ppm),
    /// Checkpoints after each period of time or work.
    #[serde(rename = "every")]
    Every {
        /// Period from one checkpoint to the next: emulated time or work at full speed, at least a
        /// microsecond.
        period: Span,
        /// Unit of the period: emulated time or work.
        of: PeriodUnit,
    },
    /// Checkpoints at these parts of the task's work, ascending.
    #[serde(rename = "points")]
    Points(Arc<[Ppm]>),
    /// Checkpoints just before the end of each hour of the VM (HOUR of the ACC paper, which also has EDGE, ADAPT, OPT and ACC).
    #[serde(rename = "hour")]
    Hour {},
    /// Checkpoints whenever the VM's price rises (EDGE of the ACC paper).
    #[serde(rename = "edge")]
    Edge {},
    /// Checkpoints considered at regular times, and taken where a checkpoint is expected to save more time than it takes (ADAPT of
    /// the ACC paper).
    #[serde(rename = "adapt")]
    Adapt {
        /// Period between the times at which a checkpoint is considered.
        every: Span,
        /// Part of the price record from which ADAPT may take its probabilities: the past, or the whole record.
        // Logs without this field are older: ADAPT then knew all prices.
        #[serde(default = "all_of_it")]
        knows: AdaptKnowledge,
    },
    /// Checkpoints taken just in time to be complete when the price exceeds the VM's bid (OPT of the ACC paper); a yardstick, as
    /// nobody knows future prices.
    #[serde(rename = "opt")]
    Opt {
        /// How long before the price exceeds the bid the checkpoint is complete: one that is complete only at the instant of the
        /// preemption does not count.
        look: Span,
    },
    /// Checkpoints before each hour of the VM ends, if the price is then above a bid.
    #[serde(rename = "acc")]
    Acc {
        /// Bid that the price is compared with; null: the VM's own bid.
        bid: Option<Price>,
        /// How long before the end of the hour the checkpoint is complete.
        look: Span,
    },
    /// Checkpoints evenly spaced over the work (Young, Daly), for VMs that don't age and have these mean lifetimes; no checkpoints
    /// on VMs of other types.
    #[serde(rename = "young-daly")]
    YoungDaly {
        /// Mean lifetimes of VMs, by instance type.
        mttf: Vec<OfType<Span>>,
    },
    /// Checkpoints where the dynamic program of the bathtub paper puts them, by the age of the VM.
    #[serde(rename = "dp")]
    Dp(LifetimePlans),
    /// No task is ever checkpointed.
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
    /// Whether a VM that is told to hibernate first takes a checkpoint of every bag task that runs on it, and freezes once the
    /// checkpoints are stored. The code of the authors of Burst-HADS does so (`dispatcher.py`, `__execution_loop`).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub at_hibernation: bool,
    /// Whether a VM that is given notice of its preemption takes a checkpoint of every bag task that runs on it, as programs do
    /// that save their work at a notice.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub at_notice: bool,
    /// Whether no checkpoint of any task is taken, by the scheme or on request: a task that a scheduler moves starts from scratch.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub never: bool,
    /// Tasks whose programs save their work by themselves at a notice, in a bag whose other tasks are checkpointed as `scheme`
    /// says. No checkpoint of them is taken at any other time.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub savers: BTreeSet<TaskId>,
    /// Tasks of which no checkpoint is ever taken, in a bag whose other tasks are checkpointed.
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

    /// True if the task's program saves its own work when its VM is given notice of preemption, and continues to compute until it
    /// has had the time to save.
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
    /// Distributions of VM lifetimes: for a VM, the first entry that holds for its type counts; VMs of types without an entry are
    /// never preempted.
    pub laws: Vec<OfType<Lifetimes>>,
    /// Time from the end of a VM's lifetime, when its notice begins, to its preemption.
    pub notice: Span,
    /// Time step of the dynamic program: times are rounded up to whole steps.
    pub step: Span,
    /// Time that a task takes to continue from a checkpoint on another VM.
    pub restart: Span,
    /// Reading of the bathtub paper's recursion: as printed, or as its authors computed it.
    pub mode: DpMode,
}

/// Readings of the recursion by which the bathtub paper's dynamic program places checkpoints.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum DpMode {
    /// The recursion with probabilities given the age that the VM has reached, and with the exact expected loss. A failure leads to
    /// a new VM, and no checkpoint follows the last step.
    #[default]
    Conditional,
    /// The recursion as the paper's authors computed it, with unconditional probabilities. A failure loses half of a chunk and
    /// leads to a VM of the same age, and a checkpoint follows the last step as well.
    Artifact,
}

/// From which uptimes ADAPT takes its probabilities.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(rename = "Knows")]
pub enum AdaptKnowledge {
    /// ADAPT uses the uptimes that ended before the decision.
    #[default]
    Past,
    /// ADAPT uses the whole record, future uptimes too: a yardstick.
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
