//! The section `[checkpoint]` of experiment files.

use dormouse_model::{AdaptKnowledge, CheckpointOn, DpMode, PeriodUnit};
use dormouse_units::{Ppm, Price, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::LifetimeSection;

/// When tasks or parallel jobs are checkpointed, and what that costs them.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", default, deny_unknown_fields)]
pub(crate) struct CheckpointSection {
    /// What decides when.
    pub(crate) policy: Policy,
    /// Most that checkpoints add to a run time under `budget` and `budget-intervals`, as a part of it; 0.1
    /// where it is not given.
    #[schemars(range(min = 0.0, max = 10.0))]
    pub(crate) overhead: Option<Ppm>,
    /// For `every`: distance between two checkpoints.
    #[schemars(example = "10m")]
    pub(crate) period: Option<Span>,
    /// For `every`: what the distance is counted in; `time` where it is not given.
    pub(crate) of: Option<PeriodUnit>,
    /// For `points`: parts of the work, ascending, each above 0 and below 1.
    #[schemars(example = [0.25, 0.5, 0.75])]
    pub(crate) points: Option<Vec<Ppm>>,
    /// For `acc`: checkpoint where the price is above this; the VM's own bid where it is not given.
    pub(crate) bid: Option<Price>,
    /// For `acc`: how long before the end of an hour the checkpoint is kept; 1m where it is not given. Of
    /// `opt`: how long before the price passes the bid; 1us where it is not given, which live is too late.
    #[schemars(example = "1m")]
    pub(crate) look: Option<Span>,
    /// For `adapt`: time between two decisions; 10m where it is not given.
    #[schemars(extend("least" = "1s"), example = "10m")]
    pub(crate) every: Option<Span>,
    /// For `adapt`: where its probabilities come from; `past` where it is not given.
    pub(crate) knows: Option<AdaptKnowledge>,
    /// For `young-daly`: how long VMs live on average; the mean of `lifetimes` where it is not given.
    #[schemars(extend("least" = "1s"), example = "1h")]
    pub(crate) mttf: Option<Span>,
    /// For `dp` and `young-daly`: assumed lifetimes of VMs, whatever they really are; by the experiment's
    /// `[[interruption]]` where it is not given.
    pub(crate) lifetimes: Option<LifetimeSection>,
    /// For `dp`: unit in which times are counted, rounded up; where it is not given, a quarter of the bag's shortest
    /// checkpoint, but no less than one of 2,000 parts of its longest task, nor so fine that old VMs can't be told from
    /// young ones; and no more than 1m.
    #[schemars(extend("least" = "1ms"), example = "1m")]
    pub(crate) step: Option<Span>,
    /// For `dp`: how long it takes to continue from a checkpoint on another VM; `scheduler.restore` and
    /// `cloud.boot` where it is not given, or a step if these are nothing.
    pub(crate) restart: Option<Span>,
    /// For `dp`: how its recursion is read; `conditional` where it is not given.
    pub(crate) mode: Option<DpMode>,
    /// How long a task or job is stopped for a checkpoint.
    #[schemars(extend("least" = "1ms"), example = "13s")]
    pub(crate) fixed: Span,
    /// How much longer for each 10^6 bytes of a task's memory; not of parallel jobs.
    pub(crate) per_megabyte: Span,
    /// On which VMs; `spot` where it is not given. Not of parallel jobs: their machine is on demand.
    pub(crate) on: Option<CheckpointOn>,
    /// Whether a VM that is told to hibernate first takes one of every task that runs there, and freezes
    /// once they are there: so do the authors of Burst-HADS. Not of parallel jobs.
    pub(crate) at_hibernation: bool,
    /// Whether a VM that is given notice takes one of every task that runs there: so do programs that save
    /// their work then. Not of parallel jobs.
    pub(crate) at_notice: bool,
    /// Whether nothing of a task's work can be kept, whoever asks for it: a scheduler that moves a task has it
    /// begin anew. Only of policy `none`, and not of parallel jobs.
    pub(crate) never: bool,
}

impl Default for CheckpointSection {
    /// Default costs: those of the Burst-HADS artifact, 12.995 s + 0.04 s per megabyte.
    fn default() -> Self {
        Self {
            policy: Policy::Budget,
            overhead: None,
            period: None,
            of: None,
            points: None,
            bid: None,
            look: None,
            every: None,
            knows: None,
            mttf: None,
            lifetimes: None,
            step: None,
            restart: None,
            mode: None,
            fixed: Span::from_micros(12_995_000),
            per_megabyte: Span::from_micros(40_000),
            on: None,
            at_hibernation: false,
            at_notice: false,
            never: false,
        }
    }
}

/// When checkpoints are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Policy {
    /// As many, evenly spaced over the work, as add at most `overhead`.
    Budget,
    /// One fewer than `budget`, evenly spaced: an interval is the run time over their number, so that the last
    /// would come when the task ends. So do the authors of Burst-HADS.
    BudgetIntervals,
    /// Every `period` of time or work.
    Every,
    /// At `points` of the work.
    Points,
    /// Just before each hour of the VM ends, counted from when it is first charged for.
    Hour,
    /// Whenever the VM's price rises.
    Edge,
    /// At regular times of the VM, where what may be lost by the next one is more than a checkpoint costs, by how
    /// long VMs of its type were left to its bid until then, as far back as their record goes; without such a VM that
    /// was left for as long, never.
    Adapt,
    /// Kept `look` before the VM's price passes its bid, which nobody can know: a yardstick.
    Opt,
    /// `look` and the time of a checkpoint before each hour of the VM ends, if its price is then above `bid`.
    Acc,
    /// Evenly over the work, every √(2 · cost · `mttf`).
    YoungDaly,
    /// Where the dynamic program has them for what is left, by the age of the VM and the law of its
    /// lifetime: the work is then expected to end the soonest.
    Dp,
    /// Never.
    None,
}
