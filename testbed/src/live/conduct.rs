//! From an experiment to the log of its live run.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use dormouse_coordinator::admission::Demand;
use dormouse_coordinator::{
    ANSWER_WITHIN, Conducted, CoordinatorError, JobFacts, LiveFacts, LiveRun, Observer, Progress,
    Speedup,
};
use dormouse_engine::{Setup, Step, Work};
use dormouse_policies::Policy;
use dormouse_policies::batch::Submission;
use dormouse_units::{Span, TaskId, Time};
use dormouse_workload::Skipped;
use serde::Serialize;
use tokio_util::sync::CancellationToken;

use super::attend::to_the_end;
use super::batch::limit;
use super::rehearsal::Rehearsal;
use crate::batch::{BatchError, SharedJobs};
use crate::experiment::Live;
use crate::fidelity::{
    Consolidation, Kept, PHASE, Pace, Submitted, expected, jobs_in, notes, other_load, promises,
    utilisations,
};
use crate::output::{Fidelity, Header, JobsOutcome, RunLog};
use crate::record::Record;

/// How a live run is to be conducted.
#[derive(Debug)]
pub struct Conduct<'a> {
    /// The first line of its log.
    pub header: &'a Header,
    /// The policy.
    pub scheduler: Box<dyn Policy>,
    /// What the policy wanted in virtual time.
    pub rehearsal: Rehearsal,
    /// Parallel jobs that share the run, in order of submission.
    pub submissions: Vec<Submission>,
    /// What was left out of the log that these are of.
    pub skipped: Option<Skipped>,
    /// Where to listen.
    pub listen: SocketAddr,
    /// Workers to start on this host; the others dial from elsewhere.
    pub local_workers: u32,
    /// The folder for the log and the checkpoints.
    pub out: PathBuf,
    /// Go on with the run whose log is in that folder.
    pub resume: bool,
}

/// Why there is no live run, or no end of it.
#[derive(Debug, thiserror::Error)]
pub enum LiveError {
    /// The coordinator refused or broke.
    #[error("{}", crate::chain::chain(.0))]
    Coordinator(#[from] CoordinatorError),
    /// A worker can't be started.
    #[error("cannot start a worker on this host: {0}")]
    Start(std::io::Error),
    /// No worker is left to run anything.
    #[error("no worker is left: {0}")]
    NoWorkers(String),
    /// The runtime could not be made.
    #[error("cannot start the coordinator: {0}")]
    Runtime(std::io::Error),
    /// The speed-up is none.
    #[error("a speed-up of {0} can't be run: it must be between 0.001 and 1,000,000")]
    Speedup(f64),
    /// The log of the run can't be read back.
    #[error(transparent)]
    Log(#[from] crate::output::OutputError),
    /// What became of the jobs can't be written.
    #[error(transparent)]
    Batch(Box<crate::batch::BatchError>),
}

impl LiveError {
    /// Whether the input must change, not the system be mended.
    #[must_use]
    pub fn is_bad_input(&self) -> bool {
        use CoordinatorError::{Admission, Invalid, Listen, Secret};
        let Self::Coordinator(error) = self else { return false };
        matches!(error, Listen { .. } | Invalid { .. } | Secret { .. } | Admission(_))
    }
}

/// What came of a live run.
#[derive(Debug)]
pub struct Outcome {
    /// What happened, read back from its log.
    pub record: Record,
    /// How true it was.
    pub fidelity: Fidelity,
    /// What came of the parallel jobs that share it, if any do.
    pub jobs: Option<JobsOutcome>,
    /// What was measured.
    pub facts: LiveFacts,
}

/// Conducts a run to its end; `show` is called with how it goes, several times a second.
///
/// # Errors
///
/// The hosts can't hold it, or it broke. A run that was cancelled is no error: its record says so.
pub fn conduct(conduct: Conduct<'_>, show: impl FnMut(&Progress)) -> Result<Outcome, LiveError> {
    let Conduct {
        header,
        scheduler,
        rehearsal,
        submissions,
        skipped,
        listen,
        local_workers,
        out,
        resume,
    } = conduct;
    let experiment = &header.experiment;
    let (live, setup) = (&experiment.live, &experiment.setup);
    let named = (experiment.name.as_str(), header);
    let of_any = live_run(
        named,
        live,
        experiment.whole_setup(),
        experiment.policies(scheduler),
        Place { listen, out, resume },
    )?;
    let run = LiveRun {
        demand: rehearsal.demand,
        needs_criu: experiment.needs_criu(),
        submissions: submissions.clone(),
        programs: live.tasks.all(&setup.bag),
        hold_checkpoints: true,
        limit: limit(&submissions)
            .max(Time::ZERO + setup.bag.deadline.times(10) + Span::from_secs(3_600)),
        ..of_any
    };
    let conducted = to_the_end(run, local_workers, show)?;
    let folder = conducted.log.parent().unwrap_or(Path::new("."));
    let steps = RunLog::read(folder)?.steps;
    let (record, fidelity) = judge(header, &steps, &conducted);
    let (fidelity, jobs) = match SharedJobs::begin(folder, header).map_err(of_jobs)? {
        None => (fidelity, None),
        Some(mut shared) => {
            shared.left_out(skipped);
            let (jobs, theirs) = judge_jobs(header, shared, &steps, &submissions, &conducted)?;
            (fidelity.and(theirs), Some(jobs))
        }
    };
    Ok(Outcome { record, fidelity, jobs, facts: conducted.facts })
}

fn judge(header: &Header, steps: &[Step], conducted: &Conducted) -> (Record, Fidelity) {
    let mut record = header.record();
    for step in steps {
        record.see(step);
    }
    let (experiment, facts) = (&header.experiment, &conducted.facts);
    let noticed = notes(experiment, &record, facts);
    let fidelity = Fidelity::of(experiment, &record, noticed, other_load(facts.loads.values()));
    (record, fidelity)
}

/// What came of the jobs of a shared run, and how true it was.
fn judge_jobs(
    header: &Header,
    mut shared: SharedJobs,
    steps: &[Step],
    submissions: &[Submission],
    conducted: &Conducted,
) -> Result<(JobsOutcome, Fidelity), LiveError> {
    let live = &header.experiment.live;
    let own = shared.seen(steps);
    // The facts of the run count its tasks with its jobs.
    let mut of_jobs_alone = JobFacts::default();
    own.iter().for_each(|step| of_jobs_alone.see(step));
    let facts = &LiveFacts { jobs: of_jobs_alone, ..conducted.facts.clone() };
    let pace = Pace::at(live.speedup).ok_or(LiveError::Speedup(live.speedup))?;
    let first = header.experiment.setup.bag.tasks.len();
    let first = TaskId::new(u32::try_from(first).unwrap_or(u32::MAX));
    let all = jobs_in(&own);
    let submitted = Submitted::after(first, &all);
    let promises = promises(&own, submitted, &facts.jobs, pace);
    shared.promise(promises.iter().map(|promise| (promise.job, promise.promised)));
    for step in steps {
        shared.see(step).map_err(of_jobs)?;
    }
    let utilisations = utilisations(&own, submitted, facts, live.speedup);
    let kept = Kept::of(&promises, facts, live);
    let consolidation = Consolidation::of(facts, utilisations, kept);
    // What else went wrong is said of the whole run.
    let fidelity = consolidation.fidelity(facts, Vec::new());
    let left = expected(&own, submissions).saturating_sub(facts.jobs.verified);
    let jobs = shared.finish_live(&consolidation, left).map_err(of_jobs)?;
    Ok((jobs, fidelity))
}

fn of_jobs(error: BatchError) -> LiveError {
    LiveError::Batch(Box::new(error))
}

/// Where a run is made.
#[derive(Debug)]
pub(super) struct Place {
    /// Where to listen.
    pub(super) listen: SocketAddr,
    /// The folder for the log and the checkpoints.
    pub(super) out: PathBuf,
    /// Go on with the run whose log is in that folder.
    pub(super) resume: bool,
}

/// What the live runs of all kinds have in common; the rest is that of a run without any work.
///
/// # Errors
///
/// Its speed-up is none.
pub(super) fn live_run(
    (name, header): (&str, &impl Serialize),
    live: &Live,
    setup: Setup,
    policies: Vec<(Work, Box<dyn Policy>)>,
    Place { listen, out, resume }: Place,
) -> Result<LiveRun, LiveError> {
    Ok(LiveRun {
        setup,
        policies,
        submissions: Vec::new(),
        open: live.open,
        phase: PHASE,
        experiment: name.to_owned(),
        // A header holds only text and numbers: this can't fail.
        header: serde_json::to_value(header).unwrap_or_default(),
        listen,
        workers: live.workers,
        speedup: Speedup::from_f64(live.speedup).ok_or(LiveError::Speedup(live.speedup))?,
        demand: Demand::default(),
        reserve: live.reserve,
        share: live.share,
        programs: Vec::new(),
        needs_criu: false,
        hold_checkpoints: false,
        noop: false,
        out,
        lost_after: Duration::from_micros(live.lost_after.as_micros()),
        answer_within: ANSWER_WITHIN,
        limit: Time::ZERO,
        observer: Observer::default(),
        cancel: CancellationToken::new(),
        pause: CancellationToken::new(),
        resume,
    })
}
