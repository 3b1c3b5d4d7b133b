//! From an experiment to the log of its live run.

use std::borrow::Cow;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use dormouse_analysis::fidelity::{
    self, Consolidation, Fidelity, Kept, PHASE, Pace, Submitted, expected, jobs_in, notes,
    promises, troubles, utilisations,
};
use dormouse_analysis::jobs::SeenByJobs;
use dormouse_analysis::{JobFacts, LiveFacts, Record};
use dormouse_coordinator::{
    ANSWER_WITHIN, Conducted, CoordinatorError, LiveRun, Observer, Progress,
};
use dormouse_engine::drive::credit_spec;
use dormouse_model::{Request, Step, Submission};
use dormouse_policies::Policy;
use dormouse_program::ProgramError;
use dormouse_units::{Bytes, Span, TaskId, Time};
use dormouse_vm::ideal::Machine;
use dormouse_watch::server::ServeError;
use dormouse_workload::{RequestsRead, Skipped};
use nix::time::{ClockId, clock_gettime};
use tokio_util::sync::CancellationToken;

use super::page::Page;
use super::rehearsal::Rehearsal;
use super::supervise::to_the_end;
use dormouse_experiment::{Experiment, Start};
use dormouse_report::jobs::{JobsError, JobsOutcome, JobsRecording};
use dormouse_report::output::{Header, RunLog};
use dormouse_report::results::{own, requests_outcome};
use dormouse_report::run_view::RequestsOutcome;

/// How a live run is to be conducted.
#[derive(Debug)]
pub struct Conduct<'a> {
    /// The first line of its log.
    pub header: &'a Header,
    /// The scheduler of its bag, if it has one.
    pub scheduler: Option<Box<dyn Policy>>,
    /// What its schedulers want.
    pub rehearsal: Rehearsal,
    /// The run's parallel jobs, in order of submission.
    pub submissions: Vec<Submission>,
    /// The VMs that are requested, in order of time.
    pub requests: Vec<(Time, Request)>,
    /// What was left out of the log that these are of.
    pub skipped: Option<Skipped>,
    /// What was read of the file that the requests are of, and what was left out.
    pub requests_read: Option<RequestsRead>,
    /// Where to listen.
    pub listen: SocketAddr,
    /// Workers to start on this host; the others dial from elsewhere.
    pub local_workers: u32,
    /// The folder for the log and the checkpoints.
    pub out: PathBuf,
    /// Go on with the run whose log is in that folder.
    pub resume: bool,
    /// The page that is served of it.
    pub page: Option<Page>,
}

/// Why there is no live run, or no end of it.
#[derive(Debug, thiserror::Error)]
pub enum LiveError {
    /// The coordinator refused or broke.
    #[error("{}", dormouse_experiment::chain(.0))]
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
    /// The log of the run can't be read back.
    #[error(transparent)]
    Log(#[from] dormouse_report::output::OutputError),
    /// What became of the jobs can't be written.
    #[error(transparent)]
    Jobs(Box<JobsError>),
    /// A scheduler that is a program can't be started.
    #[error(transparent)]
    Program(#[from] ProgramError),
    /// The page of the run can't be served.
    #[error(transparent)]
    Page(#[from] ServeError),
}

impl LiveError {
    /// Whether the input must change, not the system be mended.
    pub fn is_bad_input(&self) -> bool {
        use CoordinatorError::{Admission, GivenSecret, Invalid, Listen, Secret};
        match self {
            Self::Coordinator(error) => {
                matches!(
                    error,
                    Listen { .. }
                        | Invalid { .. }
                        | Secret { .. }
                        | GivenSecret { .. }
                        | Admission(_)
                )
            }
            Self::Program(_) | Self::Page(_) => true,
            _ => false,
        }
    }
}

/// What came of a live run.
#[derive(Debug)]
pub struct Outcome<'a> {
    /// What happened, read back from its log.
    pub record: Record,
    /// How true it was: its bag, its jobs, or both.
    pub fidelity: Fidelity,
    /// What came of its parallel jobs, if it has any.
    pub jobs: Option<JobsOutcome<'a>>,
    /// What came of the VMs that were requested, if any were.
    pub requests: Option<RequestsOutcome>,
    /// What was measured.
    pub facts: LiveFacts,
}

/// Conducts a run to its end; `show` is called with how it goes, several times a second.
///
/// # Errors
///
/// The hosts can't hold it, or it broke. A run that was cancelled is no error: its record says so.
pub fn conduct<'a>(
    conduct: Conduct<'a>,
    show: impl FnMut(&Progress),
) -> Result<Outcome<'a>, LiveError> {
    let (header, skipped, local_workers) = (conduct.header, conduct.skipped, conduct.local_workers);
    let page = conduct.page;
    let (experiment, submissions) = (&header.experiment, conduct.submissions.clone());
    let read = conduct.requests_read.clone();
    let run = live_run(conduct)?;
    let conducted = to_the_end(run, local_workers, page, show)?;
    let folder = conducted.log.parent().unwrap_or(Path::new("."));
    let steps = RunLog::read(folder)?.steps.unwrap_or_default();
    let mut record = header.record();
    steps.iter().for_each(|step| record.see(step));
    // Requests alone are judged as a bag without tasks.
    let has_bag = experiment.scheduler.is_some() || experiment.jobs.is_none();
    let of_bag = has_bag.then(|| judge(header, &record, &conducted.facts));
    let jobs = JobsRecording::begin(folder, header).map_err(of_jobs)?;
    let jobs = jobs.map(|jobs| judge_jobs(header, jobs, &steps, &submissions, &conducted));
    let jobs = jobs.transpose()?.map(|outcome| JobsOutcome { skipped, ..outcome });
    let theirs = jobs.as_ref().and_then(|jobs| jobs.fidelity.clone());
    let fidelity = match (of_bag, theirs) {
        (Some(of_bag), Some(theirs)) => of_bag.and(theirs),
        (one, other) => one.or(other).unwrap_or_default(),
    };
    let requests = requests_outcome(folder, header, &record, |see| steps.iter().try_for_each(see));
    let requests = requests.map_err(of_jobs)?.map(|of| RequestsOutcome { read, ..of });
    Ok(Outcome {
        record: own(record, experiment),
        fidelity,
        jobs,
        requests,
        facts: conducted.facts,
    })
}

/// Ten times what the jobs take one after the other: by then something is wrong.
fn limit(submissions: &[Submission]) -> Time {
    let work = submissions.iter().fold(Span::ZERO, |sum, job| sum + job.runtime);
    let last = submissions.iter().map(|job| job.submitted).max().unwrap_or(Time::ZERO);
    let think = submissions.iter().filter_map(|job| job.after.as_ref());
    let think = think.fold(Span::ZERO, |sum, after| sum + after.think);
    last + think + work.times(10) + Span::from_secs(3_600)
}

/// How true a run was to its bag.
fn judge(header: &Header, record: &Record, facts: &LiveFacts) -> Fidelity {
    let experiment = &header.experiment;
    let (setup, allowed) = (&experiment.setup, experiment.live.allowed());
    let noticed = notes(setup, &allowed, record, &beyond_the_hosts(experiment, facts));
    Fidelity::of(setup, &allowed, record, noticed, other_load(facts))
}

/// What was measured, less the last launch that was refused where the experiment says what hosts the
/// provider has: there is no room on them in virtual time, either.
fn beyond_the_hosts<'a>(experiment: &Experiment, facts: &'a LiveFacts) -> Cow<'a, LiveFacts> {
    match experiment.hosts.is_empty() || facts.last_refusal.is_none() {
        true => Cow::Borrowed(facts),
        false => Cow::Owned(LiveFacts { last_refusal: None, ..facts.clone() }),
    }
}

/// What others than the run used of its hosts' cores: the coordinator is this process.
fn other_load(facts: &LiveFacts) -> Option<f64> {
    let here = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let own = clock_gettime(ClockId::CLOCK_PROCESS_CPUTIME_ID).map(Duration::from);
    fidelity::other_load(facts.loads.values(), (here.trim(), own.unwrap_or_default()))
}

/// What came of the parallel jobs of a run, and how true it was to them.
fn judge_jobs<'a>(
    header: &Header,
    mut recording: JobsRecording<'a>,
    steps: &[Step],
    submissions: &[Submission],
    Conducted { run, facts, .. }: &Conducted,
) -> Result<JobsOutcome<'a>, LiveError> {
    let experiment = &header.experiment;
    let live = &experiment.live;
    let by_jobs = SeenByJobs::new(experiment.tenants());
    let own: Vec<Step> = steps.iter().map(|step| by_jobs.see(step).into_owned()).collect();
    // The facts of a run count tasks of its bag with its jobs.
    let mut of_jobs_alone = JobFacts::default();
    own.iter().for_each(|step| of_jobs_alone.see(step));
    let facts = &LiveFacts { jobs: of_jobs_alone, ..facts.clone() };
    let pace = Pace::at(live.speedup);
    let first = experiment.setup.bag.tasks.len();
    let first = TaskId::new(u32::try_from(first).unwrap_or(u32::MAX));
    let all = jobs_in(&own);
    let submitted = Submitted::after(first, &all);
    let setup = experiment.whole_setup();
    let credits = setup.credits_of_jobs().map(credit_spec);
    let hold = setup.checkpoint_of_jobs().map_or(Span::ZERO, |of| of.cost(Bytes::ZERO));
    let machine = Machine::with_credits(credits, live.speedup);
    let promises = promises(&own, submitted, &facts.jobs, pace, machine);
    recording.promise(promises.iter().map(|promise| (promise.job, promise.promised)));
    for step in steps {
        recording.see(step).map_err(of_jobs)?;
    }
    let utilisations = utilisations(&own, submitted, facts, live.speedup);
    let kept = Kept::of(&promises, facts, &live.allowed(), hold);
    let consolidation = Consolidation::of(facts, utilisations, kept);
    let noticed = match experiment.scheduler {
        None => troubles(run.cancelled(), run.counts(), facts),
        // It is said of the whole run.
        Some(_) => Vec::new(),
    };
    let outcome = recording.finish(run.digest()).map_err(of_jobs)?;
    Ok(JobsOutcome {
        verified: facts.jobs.verified,
        failed: expected(&own, submissions).saturating_sub(outcome.figures.jobs()),
        cancelled: run.cancelled().map(str::to_owned),
        fidelity: Some(consolidation.fidelity(facts, noticed, other_load(facts))),
        consolidation: Some(consolidation),
        ..outcome
    })
}

fn of_jobs(error: JobsError) -> LiveError {
    LiveError::Jobs(Box::new(error))
}

/// What the coordinator is told of a run.
fn live_run(conduct: Conduct<'_>) -> Result<LiveRun, LiveError> {
    let Conduct {
        header,
        scheduler,
        rehearsal,
        submissions,
        requests,
        listen,
        local_workers,
        out,
        resume,
        ..
    } = conduct;
    let experiment = &header.experiment;
    let (live, setup) = (&experiment.live, &experiment.setup);
    let real = |span: Span| Duration::from_micros(span.as_micros());
    // Those of this host go with the coordinator.
    let workers_stay = local_workers == 0;
    Ok(LiveRun {
        setup: experiment.whole_setup(),
        policies: experiment.started(scheduler, Start { mode: "live", folder: Some(&out) })?,
        limit: limit(&submissions)
            .max(Time::ZERO + setup.bag.deadline.times(10) + Span::from_secs(3_600))
            .max(Time::ZERO + rehearsal.takes.times(10)),
        faults: experiment.faults.clone(),
        submissions,
        requests,
        open: live.open,
        phase: PHASE,
        experiment: experiment.name.clone(),
        // A header holds only text and numbers: this can't fail.
        header: serde_json::to_value(header).unwrap_or_default(),
        listen,
        workers: live.workers,
        speedup: live.speedup,
        demand: rehearsal.demand,
        reserve: live.reserve,
        share: live.share,
        programs: live.programs(&setup.bag),
        needs_criu: experiment.needs_criu(),
        hold_checkpoints: true,
        noop: false,
        out,
        lost_after: real(live.lost_after),
        hold: real(if workers_stay { live.patience.max(live.lost_after) } else { live.lost_after }),
        workers_stay,
        answer_within: ANSWER_WITHIN,
        observer: Observer::default(),
        cancel: CancellationToken::new(),
        pause: CancellationToken::new(),
        resume,
    })
}
