//! The section `[checkpoint]` of experiment files.

use dormouse_model::{AdaptKnowledge, CheckpointOn, DpMode, PeriodUnit};
use dormouse_units::{Ppm, Price, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::LifetimeSection;

/// Rule for the checkpoints of tasks or parallel jobs, and the cost of a checkpoint.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", default, deny_unknown_fields)]
pub(crate) struct CheckpointSection {
    /// The policy that decides when checkpoints are taken.
    pub(crate) policy: Policy,
    /// For `budget` and `budget-intervals`: greatest overhead of all checkpoints of a task, as a share of its run
    /// time; 0.1 if not given.
    #[schemars(range(min = 0.0, max = 10.0))]
    pub(crate) overhead: Option<Ppm>,
    /// For `every`: distance between two checkpoints, in time or work (`of`).
    #[schemars(example = "10m")]
    pub(crate) period: Option<Span>,
    /// For `every`: what `period` counts, time or work; `time` if not given.
    pub(crate) of: Option<PeriodUnit>,
    /// For `points`: shares of the work at which checkpoints are taken, ascending, each above 0 and below 1.
    #[schemars(example = [0.25, 0.5, 0.75])]
    pub(crate) points: Option<Vec<Ppm>>,
    /// For `acc`: a checkpoint is taken if the price is above this value; the VM's own bid if not given.
    pub(crate) bid: Option<Price>,
    /// For `acc`: time before the end of an hour at which the checkpoint is complete; 1m if not given. For `opt`:
    /// time before the price passes the bid; 1us if not given, which is too short for a live run.
    #[schemars(example = "1m")]
    pub(crate) look: Option<Span>,
    /// For `adapt`: time between two decisions; 10m if it is not given.
    #[schemars(extend("least" = "1s"), example = "10m")]
    pub(crate) every: Option<Span>,
    /// For `adapt`: source of its probabilities; `past` if not given.
    pub(crate) knows: Option<AdaptKnowledge>,
    /// For `young-daly`: mean time until a VM is interrupted; the mean of `lifetimes` if not given.
    #[schemars(extend("least" = "1s"), example = "1h")]
    pub(crate) mttf: Option<Span>,
    /// For `dp` and `young-daly`: assumed lifetimes of VMs, whatever the real ones are; those of the experiment's
    /// `[[interruption]]` if not given.
    pub(crate) lifetimes: Option<LifetimeSection>,
    /// For `dp`: time step, to which times are rounded up. If not given: a quarter of the bag's shortest checkpoint,
    /// at least 1/2000 of the longest task, at most 1m, and not so fine that old and young VMs look alike.
    #[schemars(extend("least" = "1ms"), example = "1m")]
    pub(crate) step: Option<Span>,
    /// For `dp`: time to continue from a checkpoint on another VM. If not given: the sum of `scheduler.restore` and
    /// `cloud.boot`, or one step if both are zero.
    pub(crate) restart: Option<Span>,
    /// For `dp`: how the recursion of the bathtub paper is understood; `conditional` if not given.
    pub(crate) mode: Option<DpMode>,
    /// How long a task or job is stopped for a checkpoint.
    #[schemars(extend("least" = "1ms"), example = "13s")]
    pub(crate) fixed: Span,
    /// Additional time for each 10^6 bytes of a task's memory; not for parallel jobs.
    pub(crate) per_megabyte: Span,
    /// VMs on which checkpoints are taken; `spot` if not given. Not for parallel jobs, whose machine is on-demand.
    pub(crate) on: Option<CheckpointOn>,
    /// True if a VM that has to hibernate first takes a checkpoint of every task on it, and freezes once all are
    /// complete, as the authors of Burst-HADS do. Not for parallel jobs.
    pub(crate) at_hibernation: bool,
    /// True if a VM that gets a preemption notice takes a checkpoint of every task on it, as programs do that save
    /// their work at the notice. Not for parallel jobs.
    pub(crate) at_notice: bool,
    /// True if a task's work can never be saved: a task that a scheduler moves begins from scratch. Only with policy
    /// `none`, and not for parallel jobs.
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

/// Policy that decides when checkpoints are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Policy {
    /// The greatest number of checkpoints, evenly spaced over the work, whose total cost is at most `overhead`.
    Budget,
    /// One checkpoint fewer than under `budget`, evenly spaced. The interval is the run time divided by the number of
    /// checkpoints under `budget`, so that the last of them would come at the end of the task and is left out. The
    /// authors of Burst-HADS do so.
    BudgetIntervals,
    /// A checkpoint after every `period` of time or work.
    Every,
    /// Checkpoints at the given `points` of the work.
    Points,
    /// A checkpoint just before the end of each hour of the VM, counted from when the VM is first charged for.
    Hour,
    /// A checkpoint whenever the VM's price rises.
    Edge,
    /// A decision at regular times of the VM: a checkpoint is taken if the work that is expected to be lost until the
    /// next decision exceeds its cost. The expectation follows from how long earlier VMs of the type ran at this bid,
    /// as far back as the price record goes. Without a VM that ran as long, no checkpoint is taken.
    Adapt,
    /// A checkpoint that is complete `look` before the VM's price passes its bid. No real scheduler can know that
    /// time: the policy is a yardstick.
    Opt,
    /// A checkpoint before the end of each hour of the VM, early enough by `look` and its own duration, if the price
    /// is then above `bid`.
    Acc,
    /// Checkpoints evenly spaced over the work, at intervals of √(2 · cost · `mttf`).
    YoungDaly,
    /// Checkpoints where a dynamic program places them, so that the expected end of the work is the earliest. It
    /// considers the remaining work, the age of the VM and the law of its lifetime.
    Dp,
    /// No checkpoints are taken.
    None,
}
