//! A run and its twin, side by side.

use dormouse_cloud::Market;
use dormouse_model::TenantWork;
use dormouse_units::{Money, Span, Time, TypeName, VmId};
use serde::{Serialize, Serializer};

use super::{DurationSpread, TwinDivergence};
use crate::fidelity::TwinDistance;
use crate::{RunMode, in_seconds};

/// A value of a run, and the same value of its twin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct LiveAndTwin<T> {
    /// Value in the compared run; live, unless the run itself was made in virtual time.
    pub live: T,
    /// Value in the run's twin in virtual time.
    pub twin: T,
}

impl LiveAndTwin<Option<f64>> {
    /// The difference as a part of the twin's value: -0.01 is 1 % less. `None` if one value is
    /// unknown or the twin's is zero.
    #[must_use]
    pub fn difference(self) -> Option<f64> {
        let Self { live: Some(live), twin: Some(twin) } = self else { return None };
        (twin > 0.0).then(|| live / twin - 1.0)
    }
}

/// Description of the run that is compared.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ComparedRun {
    /// The experiment's name.
    pub experiment: String,
    /// The scheduler's name.
    pub scheduler: String,
    /// Mode of the run.
    pub mode: RunMode,
    /// Seed of the run. The twin's interruptions do not come from it.
    pub seed: u64,
    /// Emulated seconds per real second; `None` in virtual time.
    pub speedup: Option<f64>,
}

/// Comparison of a run with its twin. In JSON its times are seconds, its money dollars, and its
/// differences parts of the twin's value.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TwinComparison {
    /// Tasks on VMs, or parallel jobs on processors.
    #[serde(rename = "kind", serialize_with = "kind")]
    pub work: TenantWork,
    /// The run that is compared with its twin.
    #[serde(flatten)]
    pub about: ComparedRun,
    /// Number of acts of the provider on spot VMs in the run, and so in the twin.
    pub interruptions: usize,
    /// Mean duration of a migration in the run, in emulated time; `None` if nothing migrated live.
    /// In the twin each migration takes as long as it did in the run.
    #[serde(rename = "migration_s", serialize_with = "in_seconds::maybe_span")]
    pub migration: Option<Span>,
    /// Whether tasks are users' own programs; the twin then uses the run times that the user stated.
    #[serde(skip)]
    pub has_own_programs: bool,
    /// Time until the last task or job was done, by the log, which gives the times at which ends
    /// were due; `None` if some tasks or jobs were left.
    #[serde(rename = "makespan_s", serialize_with = "makespan")]
    pub makespan: LiveAndTwin<Option<Span>>,
    /// Cost of the VMs by the log; `None` for parallel jobs.
    #[serde(rename = "cost_usd", serialize_with = "cost")]
    pub cost: Option<LiveAndTwin<Money>>,
    /// Reason for which the run, or its twin, ended with tasks left; `None` if all tasks were finished.
    pub ended_early: LiveAndTwin<Option<String>>,
    /// Differences of the undisturbed tasks; `None` if there are none.
    pub undisturbed: Option<DurationSpread>,
    /// Differences of the jobs that were in the background from start to end in both runs; `None` if there are none.
    pub background: Option<DurationSpread>,
    /// Number of times that each kind of event happened.
    #[serde(serialize_with = "counts")]
    pub counts: Vec<EventCount>,
    /// The first difference between the decisions of the run and those of its twin; `None` if all agree.
    pub divergence: Option<TwinDivergence>,
    /// Every task or job of the two runs, in order.
    pub tasks: Vec<TwinTask>,
    /// Every VM of either run.
    pub vms: Vec<TwinVm>,
}

impl TwinComparison {
    /// Undisturbed tasks, the one with the largest difference first.
    #[must_use]
    pub fn worst(&self) -> Vec<&TwinTask> {
        let compared = |row: &&TwinTask| !matches!(row.standing, TaskStanding::Disturbed(_));
        let size = |row: &TwinTask| row.difference.unwrap_or_default().abs();
        let mut rows: Vec<_> = self.tasks.iter().filter(compared).collect();
        rows.sort_by(|a, b| size(b).total_cmp(&size(a)));
        rows
    }

    /// Distance of the run from its twin, in a few figures.
    #[must_use]
    pub fn distance(&self) -> TwinDistance {
        let furthest = |of: &DurationSpread| {
            let (short, long) = (of.shortest(), of.longest());
            if -short > long { short } else { long }
        };
        TwinDistance {
            diverged: self.divergence.is_some(),
            makespan: self.makespan_difference().filter(|_| !self.has_own_programs),
            cost: self.cost_difference().filter(|_| !self.has_own_programs),
            undisturbed_mean: self.undisturbed.as_ref().map(DurationSpread::mean),
            undisturbed_worst: self.undisturbed.as_ref().map(furthest),
        }
    }

    /// Difference of the run's makespan from its twin's, as a fraction of the twin's; `None` if tasks were left.
    #[must_use]
    pub fn makespan_difference(&self) -> Option<f64> {
        in_both(self.makespan).difference()
    }

    /// Difference of the run's cost from its twin's, as a fraction of the twin's; `None` for parallel jobs.
    #[must_use]
    pub fn cost_difference(&self) -> Option<f64> {
        self.cost.and_then(|cost| dollars(cost).difference())
    }
}

fn in_both(LiveAndTwin { live, twin }: LiveAndTwin<Option<Span>>) -> LiveAndTwin<Option<f64>> {
    LiveAndTwin { live: live.map(Span::as_secs_f64), twin: twin.map(Span::as_secs_f64) }
}

fn dollars(LiveAndTwin { live, twin }: LiveAndTwin<Money>) -> LiveAndTwin<Option<f64>> {
    LiveAndTwin { live: Some(live.as_usd()), twin: Some(twin.as_usd()) }
}

/// A figure of both runs with its difference, as JSON.
#[derive(Serialize)]
struct ComparedFigure {
    #[serde(flatten)]
    both: LiveAndTwin<Option<f64>>,
    difference: Option<f64>,
}

impl From<LiveAndTwin<Option<f64>>> for ComparedFigure {
    fn from(both: LiveAndTwin<Option<f64>>) -> Self {
        Self { both, difference: both.difference() }
    }
}

fn kind<S: Serializer>(work: &TenantWork, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(if *work == TenantWork::Jobs { "batch" } else { "bag" })
}

fn makespan<S: Serializer>(of: &LiveAndTwin<Option<Span>>, to: S) -> Result<S::Ok, S::Error> {
    ComparedFigure::from(in_both(*of)).serialize(to)
}

fn cost<S: Serializer>(of: &Option<LiveAndTwin<Money>>, to: S) -> Result<S::Ok, S::Error> {
    of.map(|cost| ComparedFigure::from(dollars(cost))).serialize(to)
}

fn counts<S: Serializer>(of: &[EventCount], to: S) -> Result<S::Ok, S::Error> {
    to.collect_map(of.iter().map(|count| (&count.name, count.sides)))
}

/// A task or job with its times in the live run and in the twin.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TwinTask {
    /// Index of the task, or number of the job in the trace.
    #[serde(rename = "task")]
    pub number: u64,
    /// Name of the task for people.
    pub name: String,
    /// Course of the task in the live run and in the twin: place, attempts and times.
    #[serde(flatten)]
    pub sides: LiveAndTwin<TaskFate>,
    /// Time that the task took longer in the run than in the twin, as a fraction of the twin's time; `None` if it was not finished
    /// in both.
    pub difference: Option<f64>,
    /// Whether the two times can be compared.
    #[serde(flatten)]
    pub standing: TaskStanding,
}

impl TwinTask {
    pub(super) fn new(
        number: u64,
        name: String,
        sides: LiveAndTwin<TaskFate>,
        standing: TaskStanding,
    ) -> Self {
        let both = in_both(LiveAndTwin { live: sides.live.took(), twin: sides.twin.took() });
        Self { number, name, sides, difference: both.difference(), standing }
    }
}

/// What happened to a task or job in the live run, or in its simulated twin: place, attempts and times.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(into = "TaskFateInJson")]
pub struct TaskFate {
    /// Last place of the task, such as `vm3 c3.large` or `foreground`; empty if the task never started.
    pub place: String,
    /// Number of times that the task was started.
    pub attempts: usize,
    /// Time of the task's first start; `None` if it never started.
    pub started: Option<Time>,
    /// Time at which the task was done; `None` if the task was not finished.
    pub finished: Option<Time>,
    /// Duration that the task's worker measured; `None` unless the task had exactly one attempt and finished.
    pub measured: Option<Span>,
}

impl TaskFate {
    /// Duration from the task's first start until it was done, as measured by its worker, or else by the log; `None` if it was not
    /// finished.
    #[must_use]
    pub fn took(&self) -> Option<Span> {
        self.measured.or_else(|| Some(self.finished?.since(self.started?)))
    }
}

#[derive(Serialize)]
struct TaskFateInJson {
    place: String,
    attempts: usize,
    started_s: Option<f64>,
    finished_s: Option<f64>,
    took_s: Option<f64>,
}

impl From<TaskFate> for TaskFateInJson {
    fn from(side: TaskFate) -> Self {
        Self {
            attempts: side.attempts,
            started_s: side.started.map(Time::as_secs_f64),
            finished_s: side.finished.map(Time::as_secs_f64),
            took_s: side.took().map(Span::as_secs_f64),
            place: side.place,
        }
    }
}

/// Whether a task's times in the live run and in the twin can be compared.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(into = "TaskStandingInJson")]
pub enum TaskStanding {
    /// Undisturbed in both runs: one attempt on the same type of VM, without restore, migration or loss; for a job, in
    /// the foreground from start to end.
    Undisturbed,
    /// A job that was in the background from start to end in both runs.
    Background,
    /// Disturbed, for this reason: its two times do not measure the same thing.
    Disturbed(String),
}

impl TaskStanding {
    /// Decides whether the times of a task or job in the live run and in the twin can be compared. Each run gives the VM type or
    /// tier, or the reason for which the task or job was disturbed. If the values agree, `same` makes the result from the value; if
    /// they differ, the reason is `another`.
    pub(super) fn compare<T: PartialEq>(
        both: LiveAndTwin<Result<T, String>>,
        same: impl FnOnce(T) -> Self,
        another: &str,
    ) -> Self {
        Self::Disturbed(match (both.live, both.twin) {
            (Ok(live), Ok(twin)) if live == twin => return same(live),
            (Ok(_), Ok(_)) => another.to_owned(),
            (Err(one), Err(other)) if one == other => format!("{one} in both"),
            (Err(what), Ok(_)) => format!("{what} live"),
            (Ok(_), Err(what)) => format!("{what} in the twin"),
            (Err(one), Err(other)) => format!("{one} live, {other} in the twin"),
        })
    }

    /// The word for the variant in outputs, such as `undisturbed`.
    #[must_use]
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Undisturbed => "undisturbed",
            Self::Background => "background",
            Self::Disturbed(_) => "disturbed",
        }
    }

    /// The reason for which the task was disturbed; `None` if it was not.
    #[must_use]
    pub fn disturbed_by(&self) -> Option<&str> {
        match self {
            Self::Undisturbed | Self::Background => None,
            Self::Disturbed(by) => Some(by),
        }
    }
}

#[derive(Serialize)]
struct TaskStandingInJson {
    standing: &'static str,
    disturbed_by: Option<String>,
}

impl From<TaskStanding> for TaskStandingInJson {
    fn from(of: TaskStanding) -> Self {
        Self { standing: of.word(), disturbed_by: of.disturbed_by().map(str::to_owned) }
    }
}

/// A VM of the live run and of its twin; the ids agree if the scheduler launched VMs in the same order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TwinVm {
    /// Id of the VM.
    #[serde(rename = "id")]
    pub vm: VmId,
    /// Course of the VM in the live run and in the twin: type, times, hibernations and cost; `None` for a run without this
    /// VM.
    #[serde(flatten)]
    pub sides: LiveAndTwin<Option<VmFate>>,
}

/// Course of a VM in one of the two runs: type, times, hibernations and cost.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct VmFate {
    /// Instance type of the VM.
    #[serde(rename = "type")]
    pub kind: TypeName,
    /// Market on which the VM was bought.
    pub market: Market,
    /// Time at which the VM was requested.
    #[serde(rename = "launched_s", serialize_with = "in_seconds::time")]
    pub launched: Time,
    /// Time at which the VM was gone; `None` if it was not.
    #[serde(rename = "ended_s", serialize_with = "in_seconds::maybe_time")]
    pub ended: Option<Time>,
    /// Number of hibernations of the VM.
    pub hibernations: usize,
    /// All charges for the VM.
    #[serde(rename = "cost_usd", serialize_with = "in_seconds::dollars")]
    pub cost: Money,
}

/// Number of times that a kind of event happened, in both runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventCount {
    /// Name of the count in `summary.json`.
    pub name: String,
    /// Number of times that events of this kind happened, in the run and in its twin.
    pub sides: LiveAndTwin<u64>,
}
