//! Configuration of the bag-of-tasks schedulers.

use dormouse_model::OfType;
use dormouse_units::{Price, Span, TypeName};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::problem::TimeAllowances;
use crate::{BagSchedulerName, Own, Plan, PlanError};
use dormouse_cloud::{Lifetimes, Market};

/// Rule for `D_spot`, the time by which the tasks on spot VMs should be done, so that those of a hibernated VM can still
/// run elsewhere before the deadline D: `D_spot` = D − boot − the time of the tasks that each variant names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SpotLimitRule {
    /// `D_spot` leaves time for the tasks that run last, one on each vCPU: the longest task on the slowest on-demand type
    /// that is not burstable. A hibernated VM's work then fits a new VM of its type whenever it hibernates. (HADS then
    /// finishes the paper's J jobs 2167 s plus boot after the start; its Table IV has 2290 to 2332 s.)
    #[default]
    LastRound,
    /// `D_spot` leaves time for the ceil(|B| / on-demand limit) longest tasks of the bag B, packed on one VM of the
    /// on-demand type with the longest run times that is not burstable.
    Longest,
    /// `D_spot` leaves time for the ceil(|B| / on-demand limit) shortest tasks of the bag B, packed on one VM of the
    /// cheapest of all on-demand types, burstable ones too; the limit is counted from the end of the boot. The authors'
    /// code does so (`schedulers.py`, `compute_dspot`): 1750 s for ED200, by which the spot VMs of its stored plan are
    /// done.
    Artifact,
}

/// Rule for the time limit of spot VMs, which begins at `D_spot` and which the ILS's second perturbation relaxes (Algorithm 1,
/// lines 14 to 17).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RelaxRule {
    /// The limit of spot VMs grows, up to D, while more than `max-failed` iterations brought no improvement, and returns to
    /// `D_spot` at the next improvement.
    #[default]
    UntilImproved,
    /// The limit of spot VMs grows, up to D, while more than `max-failed` iterations brought no improvement, and never returns to
    /// `D_spot` (the authors' code: `IPDPS.py`, `__pertubation`).
    Always,
}

/// Unit in which the ILS weighs a cost against the makespan over `D_spot` (Eq. 1: "have to be first normalized").
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CostScale {
    /// A plan's cost is divided by that of the search's initial plan.
    #[default]
    Initial,
    /// A plan's cost is counted in dollars: if a bag costs some cents, the makespan decides nearly alone (the authors'
    /// code: `IPDPS.py`, `__compute_fitness`).
    Dollars,
}

/// Treatment of moves that did not improve in the local search (Algorithm 3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LocalSearchRule {
    /// Each attempt of the local search begins at the best solution so far and draws its own destination.
    #[default]
    Restart,
    /// All attempts have one destination, and moves are never taken back, as the algorithm is printed.
    Printed,
}

/// When an idle VM looks for work to steal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum StealMoment {
    /// A VM looks for work as soon as it is idle (III-F), and when its allocation cycle ends.
    #[default]
    WhenIdle,
    /// A VM looks for work only when its allocation cycle ends (III-D).
    CycleEnd,
}

/// The tasks that an idle VM of Burst-HADS steals (Algorithm 5).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum StealIf {
    /// An idle VM takes over the tasks that end sooner on it than where they are, so that stealing balances the load.
    #[default]
    Sooner,
    /// An idle VM takes over all tasks that it can finish by the deadline D, as printed (line 6, `check_migration`) and as
    /// in the authors' code (`schedule_manager.py`, `__work_stealing`).
    InTime,
}

/// How long an idle VM is kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum KeepIdle {
    /// An idle VM is kept to the end of its allocation cycle, a burstable VM as long as there are tasks (III-D).
    #[default]
    Cycle,
    /// As with `cycle`, but no idle VM, burstable or not, is kept once there is no running spot VM with tasks (the authors' code:
    /// `schedule_manager.py`, `__check_idle_dispatchers`).
    WhileSpotWorks,
}

/// The burstable VMs on which a migration may burst (Algorithm 4, attempt 1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum BurstOn {
    /// Idle burstable VMs, as Algorithm 4 is printed. A burstable VM that runs a stolen task in baseline mode, as nearly all do,
    /// keeps its credits.
    Idle,
    /// Burstable VMs with a free vCPU: III-C calls a VM with its one task in baseline mode "the best candidate to receive tasks in
    /// case of hibernations".
    #[default]
    FreeVcpu,
    /// Burstable VMs that were idle when the migration began: they may get a task on each vCPU (the authors' code: `IPDPS.py`,
    /// `migrate`).
    IdleVcpus,
}

/// When HADS migrates the tasks of a hibernated VM.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum MigrateMoment {
    /// HADS migrates as late as the deadline allows, since the VM may resume before (the text, section IV).
    #[default]
    Late,
    /// HADS migrates as late as one new on-demand VM can still do the work of the hibernated VM by the deadline: each hibernated VM
    /// is replaced by one VM.
    LateOneForOne,
    /// HADS migrates as soon as the VM hibernates (the authors' code).
    AtOnce,
}

/// Plan that `ils-on-demand` carries out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum OnDemandPlan {
    /// The ILS's plan over on-demand VMs, at on-demand prices.
    #[default]
    Own,
    /// The ILS's plan over spot VMs at spot prices, whose VMs are then bought on demand (the authors' stored plans:
    /// `map_ondemand.json` is made so).
    Spot,
}

/// Tasks that a migration or a theft may put on a spot VM (`check_migration`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SpareTime {
    /// Tasks that end so early that, before their deadline, there is time to redo the work that another hibernation would lose.
    #[default]
    Kept,
    /// Tasks that end by D, but without time to redo the work that another hibernation would lose: the authors' code has the
    /// comparison reversed.
    Reversed,
}

/// Treatment of the tasks on a VM that is given notice of its preemption and can't finish them before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum OnNotice {
    /// The tasks leave the VM at once. A checkpoint is taken first if it costs less time than it saves.
    #[default]
    Leave,
    /// The tasks run on, so that the time of the notice is used, and are checkpointed shortly before the VM's end. They continue
    /// elsewhere once the VM is gone.
    Checkpoint,
}

/// True if the value is the default, so that serialisation leaves it out.
fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// One or several equal VMs that the scheduler `fifo`, `gang` or `acc` launches.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Fleet {
    /// Instance type of the VMs.
    #[serde(rename = "type")]
    pub kind: TypeName,
    /// Market in which the VMs are bought.
    pub market: Market,
    /// Number of these VMs.
    #[serde(default = "one_vm")]
    #[schemars(range(min = 1, max = 100_000))]
    pub count: u32,
    /// Greatest price that is paid for one of these VMs, dollars an hour; any price if not given. The provider ends a VM
    /// that costs more at once. The scheduler `acc` does not tell the provider its bid, and ends such a VM itself at the
    /// end of an hour.
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
    /// Weight of a plan's cost in the ILS (iterated local search, which makes the plan), from 0 (only the makespan counts)
    /// to 1 (only the cost counts): α in Eq. 1 and 8 of the Burst-HADS paper, to which all numbers of equations, algorithms
    /// and sections here refer.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub alpha: f64,
    /// Number of rounds of the ILS, each of which perturbs the plan and searches around it (Algorithm 1).
    #[schemars(range(min = 0, max = 10_000_000))]
    pub max_iteration: u32,
    /// Number of attempts of each local search of the ILS (Algorithm 3).
    #[schemars(range(min = 0, max = 10_000_000))]
    pub max_attempt: u32,
    /// Share of the tasks that an attempt of the ILS's local search moves to another VM, above 0 to 1 (Algorithm 3).
    #[schemars(range(min = 0.0001, max = 1.0))]
    pub swap_rate: f64,
    /// Number of rounds of the ILS in a row without improvement, after which the time limit of spot VMs is relaxed (see
    /// `relax`).
    #[schemars(range(min = 0, max = 10_000_000))]
    pub max_failed: u32,
    /// Share by which the time limit of spot VMs grows in each round that relaxes it, above 0 to 1.
    #[schemars(range(min = 0.0001, max = 1.0))]
    pub relax_rate: f64,
    /// Number of burstable VMs that a plan adds for each spot VM in it, 0 to 1; the total is rounded up.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub burst_rate: f64,
    /// Length of an allocation cycle (AC), counted from when a VM was ready or resumed: an idle VM is kept until the end of its
    /// present cycle.
    #[schemars(extend("least" = "1us"))]
    pub allocation_cycle: Span,
    /// Unit in which the ILS weighs a plan's cost against its makespan; if not given, that of `preset`: `initial` for
    /// `paper`, `dollars` for `artifact`.
    #[serde(skip_serializing_if = "is_default")]
    pub cost_scale: CostScale,
    /// Rule for `D_spot`, the time by which the tasks on spot VMs should be done, so that those of a hibernated VM can
    /// still run elsewhere before the deadline D.
    pub spot_limit: SpotLimitRule,
    /// Rule by which the ILS relaxes the time limit of spot VMs.
    pub relax: RelaxRule,
    /// What an attempt of the ILS's local search does after moves that did not improve the plan.
    pub local_search: LocalSearchRule,
    /// When an idle VM looks for tasks of other VMs to take over (work stealing).
    pub steal: StealMoment,
    /// Tasks of other VMs that an idle VM takes over; if not given, those of `preset`: `sooner` for `paper`, `in-time` for
    /// `artifact`.
    #[serde(skip_serializing_if = "is_default")]
    pub steal_if: StealIf,
    /// How long an idle VM is kept; if not given, as `preset` says: `cycle` for `paper`, `while-spot-works` for `artifact`.
    #[serde(skip_serializing_if = "is_default")]
    pub keep_idle: KeepIdle,
    /// Burstable VMs to which the tasks of a hibernated VM may migrate to run at full speed, which spends CPU credits.
    pub burst_on: BurstOn,
    /// When the scheduler `hads` moves the tasks of a hibernated VM to other VMs.
    pub migrate: MigrateMoment,
    /// What happens to the tasks on a VM that is given notice of its preemption; `leave` if not given.
    #[serde(skip_serializing_if = "is_default")]
    pub on_notice: OnNotice,
    /// Time that is kept free for the boot of a VM that takes over tasks: in `D_spot`, and when tasks migrate (ω in the
    /// paper); `cloud.boot` if not given. A plan's own VMs are ready after `cloud.boot`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub boot_allowance: Option<Span>,
    /// Greatest number of VMs of a type that the ILS may use; as many as the type's limits allow if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 100_000))]
    pub search_limit: Option<u32>,
    /// Plan that the scheduler `ils-on-demand` carries out; `own` if not given.
    #[serde(skip_serializing_if = "is_default")]
    pub on_demand_plan: OnDemandPlan,
    /// Tasks that may migrate to a spot VM or be stolen by one, judged by the time that is left there before their
    /// deadline; `kept` if not given.
    #[serde(skip_serializing_if = "is_default")]
    pub spare_time: SpareTime,
    /// Time that a restart from a checkpoint is expected to take.
    pub restore: Span,
    /// Time that plans keep free before the deadline.
    pub margin: Span,
    /// Number of failed attempts after which a task is given up.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub max_failures: u32,
    /// Time after which refused launches of VMs are first tried again; each further wait is twice as long.
    #[schemars(extend("least" = "1us"))]
    pub retry_after: Span,
    /// Number of waits in a row after refused launches, after which the tasks without a VM are given up.
    #[schemars(range(min = 0, max = 1_000_000))]
    pub max_retries: u32,
    /// VMs that the schedulers `fifo`, `gang` and `acc` launch; they need at least one, and the other schedulers ignore
    /// them.
    pub fleet: Vec<Fleet>,
    /// A plan to run, in place of one that the scheduler would make; `None`: the scheduler makes its own.
    #[schemars(skip)]
    pub plan: Option<Plan>,
    /// Lifetimes that the scheduler assumes for VMs of each type, if it uses VM lifetimes.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(skip)]
    pub laws: Vec<OfType<Lifetimes>>,
    /// Parameters that only the scheduler of this name has.
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

    /// The rules of the authors' published code (`luanteylo/hads_`, aac5f65) where they differ from the paper's text, each of them
    /// a setting of its own. The code's slips are not reproduced. Here a migrated task is started on one VM only, and the test of
    /// spare time on a spot VM is not reversed. Idle VMs are kept to the end of their cycle, although the code's clock for cycles
    /// never advances.
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

    /// Time allowances that the scheduler adds to the times of the tasks and of the cloud.
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
