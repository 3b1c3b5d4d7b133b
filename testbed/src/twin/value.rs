//! A run and its twin, side by side.

use dormouse_cloud::Market;
use dormouse_engine::Work;
use dormouse_units::{Money, Span, Time, TypeName, VmId};
use serde::Serialize;

use super::{Divergence, Spread};
use crate::output::Mode;

/// The same of a run and of its twin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Both<T> {
    /// Of the run that is compared; live, unless it was made in virtual time itself.
    pub live: T,
    /// Of its twin in virtual time.
    pub twin: T,
}

/// A run compared with its twin.
#[derive(Clone, Debug, PartialEq)]
pub struct Twin {
    /// Tasks on VMs or parallel jobs on processors.
    pub work: Work,
    /// The experiment's name.
    pub experiment: String,
    /// The scheduler's.
    pub scheduler: String,
    /// The seed of the run; the twin's interruptions do not come from it.
    pub seed: u64,
    /// How the run was made.
    pub mode: Mode,
    /// Emulated seconds per real second; `None` in virtual time.
    pub speedup: Option<f64>,
    /// How often the provider acted on spot VMs in the run, and so in the twin.
    pub interruptions: usize,
    /// What moving a job took in the run on average, in emulated time; `None` if nothing was moved
    /// live. In the twin each move takes as long as it did in the run.
    pub migration: Option<Span>,
    /// Until the last task or job was done, by the log, which has an end when it was due; `None` if
    /// some were left.
    pub makespan: Both<Option<Span>>,
    /// What the VMs cost, by the log; `None` of parallel jobs.
    pub cost: Option<Both<Money>>,
    /// Why one of them ended with tasks left, if it did.
    pub ended_early: Both<Option<String>>,
    /// Every task or job, in order.
    pub tasks: Vec<TaskRow>,
    /// Every VM of either.
    pub vms: Vec<VmRow>,
    /// How often what happened.
    pub counts: Vec<Count>,
    /// Over the tasks that nothing disturbed; `None` if there are none.
    pub undisturbed: Option<Spread>,
    /// Over the jobs that were in the background from their start to their end in both; `None`
    /// if there are none.
    pub background: Option<Spread>,
    /// Where the two diverge first; `None` if they decided the same.
    pub divergence: Option<Divergence>,
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

    /// The makespan relative to the twin's: -0.01 is 1 % less; `None` if tasks were left.
    #[must_use]
    pub fn makespan_difference(&self) -> Option<f64> {
        let Both { live: Some(live), twin: Some(twin) } = self.makespan else { return None };
        relative(live.as_secs_f64(), twin.as_secs_f64())
    }

    /// The cost relative to the twin's; `None` of parallel jobs.
    #[must_use]
    pub fn cost_difference(&self) -> Option<f64> {
        self.cost.and_then(|cost| relative(cost.live.as_usd(), cost.twin.as_usd()))
    }
}

/// How much `live` differs from `twin`, as a part of it; `None` if that is nothing.
pub(super) fn relative(live: f64, twin: f64) -> Option<f64> {
    (twin > 0.0).then(|| live / twin - 1.0)
}

/// A task or job in both.
#[derive(Clone, Debug, PartialEq)]
pub struct TaskRow {
    /// Its number: of a task its index, of a job that of the trace.
    pub number: u64,
    /// What people call it.
    pub name: String,
    /// What became of it in each.
    pub sides: Both<Side>,
    /// How much longer it took live than in the twin, as a part of that; `None` if it was not
    /// finished in both.
    pub difference: Option<f64>,
    /// Whether the difference says something of the emulation.
    pub standing: Standing,
}

/// What became of a task or job in one of the two.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Side {
    /// Where it was last, such as `vm3 c3.large` or `foreground`; empty if it never started.
    pub place: String,
    /// How often it was started.
    pub attempts: usize,
    /// When it ran first.
    pub started: Option<Time>,
    /// When it was done.
    pub finished: Option<Time>,
    /// How long it took by its worker's clock, where it is a task that had one attempt.
    pub measured: Option<Span>,
}

impl Side {
    /// From its first start until it was done, as it was measured, or else as the log has it.
    #[must_use]
    pub fn took(&self) -> Option<Span> {
        self.measured.or_else(|| Some(self.finished?.since(self.started?)))
    }
}

/// Whether a task's difference says something of the emulation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    /// One attempt on the same type of VM in both, without restore, migration or loss; of a job,
    /// in the foreground from its start to its end in both.
    Undisturbed,
    /// A job that was in the background from its start to its end in both.
    Background,
    /// What disturbed it, in words: its durations are of different things.
    Disturbed(String),
}

/// A VM in both; its number is the same where the scheduler asked for it in the same order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VmRow {
    /// Its id.
    pub vm: VmId,
    /// What became of it; `None` if there was no such VM.
    pub sides: Both<Option<VmSide>>,
}

/// What became of a VM in one of the two.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VmSide {
    /// Its type.
    pub kind: TypeName,
    /// How it was bought.
    pub market: Market,
    /// When it was asked for.
    pub launched: Time,
    /// When it was gone.
    pub ended: Option<Time>,
    /// How often it was hibernated.
    pub hibernations: usize,
    /// All that was charged for it.
    pub cost: Money,
}

/// How often something happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Count {
    /// What, as `summary.json` calls it.
    pub name: String,
    /// How often in each.
    pub sides: Both<u64>,
}
