//! Configuration of the bag-of-tasks schedulers.

use dormouse_model::OfType;
use dormouse_units::{Price, Span, TypeName};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::problem::TimeAllowances;
use crate::{BagSchedulerName, Own, Plan, PlanError};
use dormouse_cloud::{Lifetimes, Market};

/// The tasks that one VM may have to take over after `D_spot`, the time by which spot VMs should be done: `D_spot` = D
/// − boot − the time of these tasks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SpotLimitRule {
    /// Those that run last, one per vCPU: the time of the longest task on the slowest regular
    /// on-demand type. A hibernated VM's work then fits a fresh VM of its type whenever it
    /// hibernates. (Puts the J jobs' HADS at 2167 s plus boot; Table IV has 2290 to 2332 s.)
    #[default]
    LastRound,
    /// The ceil(|B| / on-demand limit) longest tasks, packed on one VM of the regular on-demand
    /// type with the longest runtimes.
    Longest,
    /// The ceil(|B| / on-demand limit) shortest tasks, packed on one VM of the cheapest of all
    /// on-demand types, burstable ones too; the limit is counted from the end of the boot. What the
    /// authors' code does (`schedulers.py`, `compute_dspot`): 1750 s for ED200, by which the spot
    /// VMs of its stored plan are done.
    Artifact,
}

/// How the limit of the ILS's second perturbation behaves (Algorithm 1, lines 14 to 17).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RelaxRule {
    /// It grows while more than `max-failed` iterations brought nothing, up to D, and returns to
    /// `D_spot` at the next improvement.
    #[default]
    UntilImproved,
    /// It grows likewise, and never returns (the authors' code: `IPDPS.py`, `__pertubation`).
    Always,
}

/// Unit in which the ILS weighs a cost against the makespan over `D_spot` (Eq. 1: "have to be first normalized").
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CostScale {
    /// In costs of the initial solution.
    #[default]
    Initial,
    /// In dollars: where a bag costs some cents the makespan decides nearly alone (the authors'
    /// code: `IPDPS.py`, `__compute_fitness`).
    Dollars,
}

/// Treatment of moves that did not improve in the local search (Algorithm 3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LocalSearchRule {
    /// Each attempt begins at the best solution so far and draws its own destination.
    #[default]
    Restart,
    /// One destination for all attempts and moves are never taken back, as printed.
    Printed,
}

/// When an idle VM looks for work to steal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum StealMoment {
    /// As soon as it is idle (III-F), and when its allocation cycle ends.
    #[default]
    WhenIdle,
    /// When its allocation cycle ends (III-D).
    CycleEnd,
}

/// The tasks that an idle VM of Burst-HADS steals (Algorithm 5).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum StealIf {
    /// Those that end sooner there: stealing balances.
    #[default]
    Sooner,
    /// All that it is done with by D, as printed (line 6, `check_migration`); so does the authors'
    /// code (`schedule_manager.py`, `__work_stealing`).
    InTime,
}

/// How long an idle VM is kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum KeepIdle {
    /// To the end of its allocation cycle; a burstable VM as long as there are tasks (III-D).
    #[default]
    Cycle,
    /// Likewise, but no idle VM, burstable or not, once no spot VM has tasks and runs (the authors'
    /// code: `schedule_manager.py`, `__check_idle_dispatchers`).
    WhileSpotWorks,
}

/// The burstable VMs on which a migration may burst (Algorithm 4, attempt 1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum BurstOn {
    /// Idle ones, as Algorithm 4 is printed. One that runs a stolen task in baseline mode, as they
    /// nearly always do, keeps its credits.
    Idle,
    /// Those with a vCPU free: III-C calls a VM with its one task in baseline mode "the best
    /// candidate to receive tasks in case of hibernations".
    #[default]
    FreeVcpu,
    /// Those that were idle when the migration began, with a task on each vCPU (the authors' code:
    /// `IPDPS.py`, `migrate`).
    IdleVcpus,
}

/// When HADS migrates the tasks of a hibernated VM.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum MigrateMoment {
    /// As late as the deadline allows: the VM may resume before (the text, section IV).
    #[default]
    Late,
    /// As late as one new on-demand VM can still do the work of the hibernated one by the deadline:
    /// each hibernated VM is replaced by one VM.
    LateOneForOne,
    /// As soon as it hibernates (the authors' code).
    AtOnce,
}

/// Plan that `ils-on-demand` carries out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum OnDemandPlan {
    /// The ILS over on-demand VMs, at their prices.
    #[default]
    Own,
    /// The ILS over spot VMs at spot prices, whose VMs are then bought on demand (the authors' stored
    /// plans: `map_ondemand.json` is made so).
    Spot,
}

/// Tasks that a migration or a theft may put on a spot VM (`check_migration`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SpareTime {
    /// Those after whose end there is time to save the work that another hibernation would hit.
    #[default]
    Kept,
    /// Those after whose end there is no such time, if they end by D: the authors' code has the
    /// comparison reversed.
    Reversed,
}

/// Treatment of the tasks on a VM that is given notice of its end and won't be done by then.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum OnNotice {
    /// They leave at once, with a checkpoint if that loses less than it saves.
    #[default]
    Leave,
    /// They run on, and are checkpointed shortly before the end: the time of the notice is used.
    /// They go on elsewhere once the VM is gone.
    Checkpoint,
}

/// True if the value is the default, so that serialisation leaves it out.
fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// VMs for `fifo` or `acc` to launch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Fleet {
    /// Their type.
    #[serde(rename = "type")]
    pub kind: TypeName,
    /// How they are bought.
    pub market: Market,
    /// The number of VMs.
    #[serde(default = "one_vm")]
    #[schemars(range(min = 1, max = 100_000))]
    pub count: u32,
    /// Most to be paid for one; `None`: whatever it costs. The provider ends one that costs more at once;
    /// `acc` tells it nothing of that, and ends one itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bid: Option<Price>,
}

const fn one_vm() -> u32 {
    1
}

/// Everything that can be set about a bag-of-tasks scheduler. Lengths of time are microseconds
/// of emulated time when serialised.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", default, deny_unknown_fields)]
pub struct BagSchedulerConfig {
    /// The scheduler's name.
    pub name: BagSchedulerName,
    /// Weight of the cost against the makespan in the ILS, 0 to 1 (α, Eq. 1 and 8).
    #[schemars(range(min = 0.0, max = 1.0))]
    pub alpha: f64,
    /// Perturbations of the ILS (Algorithm 1).
    #[schemars(range(min = 0, max = 10_000_000))]
    pub max_iteration: u32,
    /// Attempts of one local search (Algorithm 3).
    #[schemars(range(min = 0, max = 10_000_000))]
    pub max_attempt: u32,
    /// Share of the tasks that an attempt moves, above 0 to 1 (Algorithm 3).
    #[schemars(range(min = 0.0001, max = 1.0))]
    pub swap_rate: f64,
    /// Iterations without improvement before the limit is relaxed.
    #[schemars(range(min = 0, max = 10_000_000))]
    pub max_failed: u32,
    /// By how much it is relaxed, above 0 to 1.
    #[schemars(range(min = 0.0001, max = 1.0))]
    pub relax_rate: f64,
    /// Burstable VMs per spot VM used, 0 to 1.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub burst_rate: f64,
    /// How long an idle VM is kept: until the end of the cycle it is in, counted from when it was
    /// ready or resumed (AC).
    #[schemars(extend("least" = "1us"))]
    pub allocation_cycle: Span,
    /// In what the ILS weighs costs.
    #[serde(skip_serializing_if = "is_default")]
    pub cost_scale: CostScale,
    /// How `D_spot` is found.
    pub spot_limit: SpotLimitRule,
    /// How the ILS relaxes it.
    pub relax: RelaxRule,
    /// How the local search moves.
    pub local_search: LocalSearchRule,
    /// When idle VMs steal.
    pub steal: StealMoment,
    /// Which tasks they steal.
    #[serde(skip_serializing_if = "is_default")]
    pub steal_if: StealIf,
    /// How long they are kept.
    #[serde(skip_serializing_if = "is_default")]
    pub keep_idle: KeepIdle,
    /// Which burstable VMs migrations burst on.
    pub burst_on: BurstOn,
    /// When HADS migrates.
    pub migrate: MigrateMoment,
    /// What tasks do whose VM is given notice.
    #[serde(skip_serializing_if = "is_default")]
    pub on_notice: OnNotice,
    /// Time kept free for the boot of a VM that is launched to take tasks over: in `D_spot`, and when
    /// tasks migrate (ω); where it is not given, `cloud.boot`. A plan's own VMs are ready after
    /// `cloud.boot`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub boot_allowance: Option<Span>,
    /// Most VMs of a type that the ILS may use; where it is not given, as many as may be had.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 100_000))]
    pub search_limit: Option<u32>,
    /// Plan that `ils-on-demand` carries out.
    #[serde(skip_serializing_if = "is_default")]
    pub on_demand_plan: OnDemandPlan,
    /// Tasks that may go to a spot VM.
    #[serde(skip_serializing_if = "is_default")]
    pub spare_time: SpareTime,
    /// Time a restart from a checkpoint is expected to take.
    pub restore: Span,
    /// Time to keep free before the deadline.
    pub margin: Span,
    /// Failed attempts after which a task is given up.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub max_failures: u32,
    /// First wait before refused launches are tried again; each next is twice as long.
    #[schemars(extend("least" = "1us"))]
    pub retry_after: Span,
    /// Such waits in a row before the tasks without a VM are given up.
    #[schemars(range(min = 0, max = 1_000_000))]
    pub max_retries: u32,
    /// What `fifo` and `acc` launch.
    pub fleet: Vec<Fleet>,
    /// A plan to run, in place of one that the scheduler would make.
    #[schemars(skip)]
    pub plan: Option<Plan>,
    /// Lifetimes that the scheduler assumes for VMs of each type, if it asks for them.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(skip)]
    pub laws: Vec<OfType<Lifetimes>>,
    /// Parameters that only this scheduler has.
    #[serde(skip_serializing_if = "Own::is_empty")]
    #[schemars(skip)]
    pub own: Own,
}

impl Default for BagSchedulerConfig {
    fn default() -> Self {
        Self {
            name: BagSchedulerName::BurstHads,
            alpha: 0.5,
            max_iteration: 200,
            max_attempt: 50,
            swap_rate: 0.1,
            max_failed: 20,
            relax_rate: 0.25,
            burst_rate: 0.2,
            allocation_cycle: Span::from_secs(900),
            cost_scale: CostScale::Initial,
            spot_limit: SpotLimitRule::LastRound,
            relax: RelaxRule::UntilImproved,
            local_search: LocalSearchRule::Restart,
            steal: StealMoment::WhenIdle,
            steal_if: StealIf::Sooner,
            keep_idle: KeepIdle::Cycle,
            burst_on: BurstOn::FreeVcpu,
            migrate: MigrateMoment::Late,
            on_notice: OnNotice::Leave,
            boot_allowance: None,
            search_limit: None,
            on_demand_plan: OnDemandPlan::Own,
            spare_time: SpareTime::Kept,
            restore: Span::ZERO,
            margin: Span::ZERO,
            max_failures: 5,
            retry_after: Span::from_secs(60),
            max_retries: 12,
            fleet: Vec::new(),
            plan: None,
            laws: Vec::new(),
            own: Own::default(),
        }
    }
}

impl BagSchedulerConfig {
    /// The default parameters: those of the Burst-HADS paper, with our own choices where the paper gives no
    /// value.
    #[must_use]
    pub fn paper(name: BagSchedulerName) -> Self {
        Self { name, ..Self::default() }
    }

    /// The rules of the authors' published code (`luanteylo/hads_`, aac5f65) where they differ from the
    /// paper's text, each of them a setting of its own. The code's slips are not reproduced: here a
    /// migrated task is started on one VM only, the test of spare time on a spot VM is not reversed, and
    /// idle VMs are kept to the end of their cycle, although the code's clock for that never advances.
    #[must_use]
    pub fn artifact(name: BagSchedulerName) -> Self {
        Self {
            name,
            cost_scale: CostScale::Dollars,
            spot_limit: SpotLimitRule::Artifact,
            relax: RelaxRule::Always,
            steal_if: StealIf::InTime,
            keep_idle: KeepIdle::WhileSpotWorks,
            burst_on: BurstOn::IdleVcpus,
            migrate: MigrateMoment::AtOnce,
            ..Self::default()
        }
    }

    /// Times that the scheduler adds to those of the tasks and the cloud.
    pub(crate) const fn time_allowances(&self) -> TimeAllowances {
        TimeAllowances { restore: self.restore, margin: self.margin, boot: self.boot_allowance }
    }

    /// Checks every parameter's range.
    ///
    /// # Errors
    ///
    /// [`PlanError::Parameter`] for the first parameter outside its range.
    pub(crate) fn check_ranges(&self) -> Result<(), PlanError> {
        let rates = [
            ("alpha", self.alpha, true),
            ("swap-rate", self.swap_rate, false),
            ("relax-rate", self.relax_rate, false),
            ("burst-rate", self.burst_rate, true),
        ];
        for (key, value, zero) in rates {
            if !(0.0..=1.0).contains(&value) || (value == 0.0 && !zero) {
                let want = if zero {
                    "it has to be between 0 and 1"
                } else {
                    "it has to be above 0, at most 1"
                };
                return Err(PlanError::Parameter { key, value: value.to_string(), want });
            }
        }
        for (key, span) in
            [("allocation-cycle", self.allocation_cycle), ("retry-after", self.retry_after)]
        {
            if span == Span::ZERO {
                let want = "it has to be longer than nothing";
                return Err(PlanError::Parameter { key, value: span.to_string(), want });
            }
        }
        Ok(())
    }
}
