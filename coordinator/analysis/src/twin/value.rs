//! A run and its twin, side by side.

use dormouse_cloud::Market;
use dormouse_model::Work;
use dormouse_units::{Money, Span, Time, TypeName, VmId};
use serde::{Serialize, Serializer};

use super::{Divergence, Spread};
use crate::fidelity::TwinDistance;
use crate::{Mode, in_seconds};

/// The same of a run and of its twin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Both<T> {
    /// Value in the run that is compared; live, unless it was made in virtual time itself.
    pub live: T,
    /// Value in its twin in virtual time.
    pub twin: T,
}

impl Both<Option<f64>> {
    /// How much `live` differs from `twin`, as a part of it: -0.01 is 1 % less; `None` if one of them is
    /// not known or the twin's is nothing.
    #[must_use]
    pub fn difference(self) -> Option<f64> {
        let Self { live: Some(live), twin: Some(twin) } = self else { return None };
        (twin > 0.0).then(|| live / twin - 1.0)
    }
}

/// Description of the run that is compared.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct About {
    /// The experiment's name.
    pub experiment: String,
    /// The scheduler's name.
    pub scheduler: String,
    /// How the run was made.
    pub mode: Mode,
    /// The seed of the run; the twin's interruptions do not come from it.
    pub seed: u64,
    /// Emulated seconds per real second; `None` in virtual time.
    pub speedup: Option<f64>,
}

/// A run compared with its twin. As JSON its times are seconds, its money dollars, and its
/// differences parts of the twin's.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Twin {
    /// Tasks on VMs or parallel jobs on processors.
    #[serde(rename = "kind", serialize_with = "kind")]
    pub work: Work,
    /// The run that is compared with its twin.
    #[serde(flatten)]
    pub about: About,
    /// The number of times that the provider acted on spot VMs in the run, and so in the twin.
    pub interruptions: usize,
    /// What moving a job took in the run on average, in emulated time; `None` if nothing was moved
    /// live. In the twin each move takes as long as it did in the run.
    #[serde(rename = "migration_s", serialize_with = "in_seconds::maybe_span")]
    pub migration: Option<Span>,
    /// Whether tasks are programs of the user's own: the twin knows of their times what the user said.
    #[serde(skip)]
    pub has_own_programs: bool,
    /// Until the last task or job was done, by the log, which has an end when it was due; `None` if
    /// some were left.
    #[serde(rename = "makespan_s", serialize_with = "makespan")]
    pub makespan: Both<Option<Span>>,
    /// What the VMs cost, by the log; `None` of parallel jobs.
    #[serde(rename = "cost_usd", serialize_with = "cost")]
    pub cost: Option<Both<Money>>,
    /// Why one of them ended with tasks left, if it did.
    pub ended_early: Both<Option<String>>,
    /// Over the tasks that nothing disturbed; `None` if there are none.
    pub undisturbed: Option<Spread>,
    /// Over the jobs that were in the background from their start to their end in both; `None`
    /// if there are none.
    pub background: Option<Spread>,
    /// The number of times that each thing happened.
    #[serde(serialize_with = "counts")]
    pub counts: Vec<Count>,
    /// The place where the two diverge first; `None` if they decided the same.
    pub divergence: Option<Divergence>,
    /// Every task or job, in order.
    pub tasks: Vec<TaskRow>,
    /// Every VM of either.
    pub vms: Vec<VmRow>,
}

impl Twin {
    /// The tasks that differ most among those of a standing that is compared: the worst first.
    #[must_use]
    pub fn worst(&self) -> Vec<&TaskRow> {
        let compared = |row: &&TaskRow| !matches!(row.standing, Standing::Disturbed(_));
        let size = |row: &TaskRow| row.difference.unwrap_or_default().abs();
        let mut rows: Vec<_> = self.tasks.iter().filter(compared).collect();
        rows.sort_by(|a, b| size(b).total_cmp(&size(a)));
        rows
    }

    /// How far the run is from its twin, in a few figures.
    #[must_use]
    pub fn distance(&self) -> TwinDistance {
        let furthest = |of: &Spread| {
            let (short, long) = (of.shortest(), of.longest());
            if -short > long { short } else { long }
        };
        TwinDistance {
            diverged: self.divergence.is_some(),
            makespan: self.makespan_difference().filter(|_| !self.has_own_programs),
            cost: self.cost_difference().filter(|_| !self.has_own_programs),
            undisturbed_mean: self.undisturbed.as_ref().map(Spread::mean),
            undisturbed_worst: self.undisturbed.as_ref().map(furthest),
        }
    }

    /// The makespan relative to the twin's; `None` if tasks were left.
    #[must_use]
    pub fn makespan_difference(&self) -> Option<f64> {
        in_both(self.makespan).difference()
    }

    /// The cost relative to the twin's; `None` of parallel jobs.
    #[must_use]
    pub fn cost_difference(&self) -> Option<f64> {
        self.cost.and_then(|cost| dollars(cost).difference())
    }
}

fn in_both(Both { live, twin }: Both<Option<Span>>) -> Both<Option<f64>> {
    Both { live: live.map(Span::as_secs_f64), twin: twin.map(Span::as_secs_f64) }
}

fn dollars(Both { live, twin }: Both<Money>) -> Both<Option<f64>> {
    Both { live: Some(live.as_usd()), twin: Some(twin.as_usd()) }
}

/// A figure of both in JSON.
#[derive(Serialize)]
struct Compared {
    #[serde(flatten)]
    both: Both<Option<f64>>,
    difference: Option<f64>,
}

impl From<Both<Option<f64>>> for Compared {
    fn from(both: Both<Option<f64>>) -> Self {
        Self { both, difference: both.difference() }
    }
}

fn kind<S: Serializer>(work: &Work, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(if *work == Work::Jobs { "batch" } else { "bag" })
}

fn makespan<S: Serializer>(of: &Both<Option<Span>>, to: S) -> Result<S::Ok, S::Error> {
    Compared::from(in_both(*of)).serialize(to)
}

fn cost<S: Serializer>(of: &Option<Both<Money>>, to: S) -> Result<S::Ok, S::Error> {
    of.map(|cost| Compared::from(dollars(cost))).serialize(to)
}

fn counts<S: Serializer>(of: &[Count], to: S) -> Result<S::Ok, S::Error> {
    to.collect_map(of.iter().map(|count| (&count.name, count.sides)))
}

/// A task or job in both.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TaskRow {
    /// Number of the task or job: a task's index, or a job's number in the trace.
    #[serde(rename = "task")]
    pub number: u64,
    /// What people call it.
    pub name: String,
    /// What became of it in each.
    #[serde(flatten)]
    pub sides: Both<Side>,
    /// How much longer it took live than in the twin, as a part of that; `None` if it was not
    /// finished in both.
    pub difference: Option<f64>,
    /// Whether the difference says something of the emulation.
    #[serde(flatten)]
    pub standing: Standing,
}

impl TaskRow {
    pub(super) fn new(number: u64, name: String, sides: Both<Side>, standing: Standing) -> Self {
        let both = in_both(Both { live: sides.live.took(), twin: sides.twin.took() });
        Self { number, name, sides, difference: both.difference(), standing }
    }
}

/// The fate of a task or job in one of the two.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(into = "SideInJson")]
pub struct Side {
    /// The place where it was last, such as `vm3 c3.large` or `foreground`; empty if it never started.
    pub place: String,
    /// The number of times that it was started.
    pub attempts: usize,
    /// The time at which it ran first.
    pub started: Option<Time>,
    /// The time at which it was done.
    pub finished: Option<Time>,
    /// The time that it took by its worker's clock, where it is a task that had one attempt.
    pub measured: Option<Span>,
}

impl Side {
    /// From its first start until it was done, as it was measured, or else as the log has it.
    #[must_use]
    pub fn took(&self) -> Option<Span> {
        self.measured.or_else(|| Some(self.finished?.since(self.started?)))
    }
}

#[derive(Serialize)]
struct SideInJson {
    place: String,
    attempts: usize,
    started_s: Option<f64>,
    finished_s: Option<f64>,
    took_s: Option<f64>,
}

impl From<Side> for SideInJson {
    fn from(side: Side) -> Self {
        Self {
            attempts: side.attempts,
            started_s: side.started.map(Time::as_secs_f64),
            finished_s: side.finished.map(Time::as_secs_f64),
            took_s: side.took().map(Span::as_secs_f64),
            place: side.place,
        }
    }
}

/// Whether a task's difference says something of the emulation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(into = "StandingInJson")]
pub enum Standing {
    /// One attempt on the same type of VM in both, without restore, migration or loss; of a job,
    /// in the foreground from its start to its end in both.
    Undisturbed,
    /// A job that was in the background from its start to its end in both.
    Background,
    /// What disturbed it, in words: its durations are of different things.
    Disturbed(String),
}

impl Standing {
    /// Standing of a task or job, of which each run says what it was by itself, or what disturbed
    /// it: `same` makes it from what it was in both, and `another` says what differs.
    pub(super) fn compare<T: PartialEq>(
        both: Both<Result<T, String>>,
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

    /// In a word.
    #[must_use]
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Undisturbed => "undisturbed",
            Self::Background => "background",
            Self::Disturbed(_) => "disturbed",
        }
    }

    /// What disturbed it.
    #[must_use]
    pub fn disturbed_by(&self) -> Option<&str> {
        match self {
            Self::Undisturbed | Self::Background => None,
            Self::Disturbed(by) => Some(by),
        }
    }
}

#[derive(Serialize)]
struct StandingInJson {
    standing: &'static str,
    disturbed_by: Option<String>,
}

impl From<Standing> for StandingInJson {
    fn from(of: Standing) -> Self {
        Self { standing: of.word(), disturbed_by: of.disturbed_by().map(str::to_owned) }
    }
}

/// A VM in both; its number is the same where the scheduler asked for it in the same order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct VmRow {
    /// Id of the VM.
    #[serde(rename = "id")]
    pub vm: VmId,
    /// What became of it; `None` if there was no such VM.
    #[serde(flatten)]
    pub sides: Both<Option<VmSide>>,
}

/// The fate of a VM in one of the two.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct VmSide {
    /// Instance type of the VM.
    #[serde(rename = "type")]
    pub kind: TypeName,
    /// How it was bought.
    pub market: Market,
    /// The time at which it was asked for.
    #[serde(rename = "launched_s", serialize_with = "in_seconds::time")]
    pub launched: Time,
    /// The time at which it was gone.
    #[serde(rename = "ended_s", serialize_with = "in_seconds::maybe_time")]
    pub ended: Option<Time>,
    /// The number of times that it was hibernated.
    pub hibernations: usize,
    /// All that was charged for it.
    #[serde(rename = "cost_usd", serialize_with = "in_seconds::dollars")]
    pub cost: Money,
}

/// The number of times that something happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Count {
    /// What, as `summary.json` calls it.
    pub name: String,
    /// The number of times in each.
    pub sides: Both<u64>,
}
