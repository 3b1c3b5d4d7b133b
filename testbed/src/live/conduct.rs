//! Conducts a live run, from its experiment to its log.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use dormouse_analysis::LiveFacts;
use dormouse_analysis::fidelity::PHASE;
use dormouse_coordinator::{
    ANSWER_WITHIN, CoordinatorError, CoordinatorWorld, LiveOutcome, LiveRunPlan, RunObserver,
    RunProgress,
};
use dormouse_ec2_server::EndpointError;
use dormouse_log::{Chain, HeaderText, LogError};
use dormouse_model::{Event, Submission, VmRequest};
use dormouse_policies::Policy;
use dormouse_program::ProgramError;
use dormouse_units::{Span, Time};
use dormouse_watch::server::ServeError;
use tokio_util::sync::CancellationToken;

use super::checkpoint_store;
use super::page::Page;
use super::rehearsal::Rehearsal;
use super::supervise::to_the_end;
use dormouse_experiment::{ProgramStart, Sources};
use dormouse_report::jobs::JobsError;
use dormouse_report::output::{LogHeader, OutputError, RunLog, live_header};
use dormouse_report::run_view::RunResults;
use dormouse_report::verdict::live_results;

/// Everything that conducting a live run needs.
#[derive(Debug)]
pub struct Conduct<'a> {
    /// Header of the run's log: its first line.
    pub header: &'a LogHeader,
    /// The scheduler of the run's bag, if it has one.
    pub scheduler: Option<Box<dyn Policy>>,
    /// Results of a virtual run of the experiment, made before the live run, that the live run's schedulers need.
    pub rehearsal: Rehearsal,
    /// The run's parallel jobs, in order of submission.
    pub submissions: Vec<Submission>,
    /// The VMs that customers request, in order of time.
    pub requests: Vec<(Time, VmRequest)>,
    /// The address on which the coordinator listens.
    pub listen: SocketAddr,
    /// Number of workers to start on this host; other workers connect from other hosts.
    pub local_workers: u32,
    /// The folder for the log and the checkpoints.
    pub out: PathBuf,
    /// True if the run whose log is in `out` is to be resumed.
    pub resume: bool,
    /// The live page of the run, if it is served.
    pub page: Option<Page>,
    /// Source of the contents of the tasks' input files, by digest; empty for a resumed run, whose folder has them.
    pub sources: Sources,
}

/// Reason why a live run could not begin or did not end regularly.
#[derive(Debug, thiserror::Error)]
pub enum LiveError {
    /// The coordinator refused the run or failed.
    #[error("{}", dormouse_experiment::chain(.0))]
    Coordinator(#[from] CoordinatorError),
    /// The run was stopped before its workers had joined, and has no results.
    #[error(
        "the run was stopped before it began, and nothing is kept; run the same command to begin it"
    )]
    NotBegun,
    /// A worker can't be started.
    #[error("can't start a worker on this host: {0}")]
    Start(std::io::Error),
    /// No worker is left to run any task.
    #[error("no worker is left: {0}")]
    NoWorkers(String),
    /// The asynchronous runtime could not be created.
    #[error("can't start the coordinator: {0}")]
    Runtime(std::io::Error),
    /// The log of the run can't be read back.
    #[error(transparent)]
    Log(#[from] dormouse_report::output::OutputError),
    /// The table of the jobs can't be written.
    #[error(transparent)]
    Jobs(Box<JobsError>),
    /// A scheduler that is a program can't be started.
    #[error(transparent)]
    Program(#[from] ProgramError),
    /// The page of the run can't be served.
    #[error(transparent)]
    Page(#[from] ServeError),
    /// The endpoint of EC2's API can't be served.
    #[error(transparent)]
    Endpoint(#[from] EndpointError),
}

impl LiveError {
    /// Whether the user must change the input, rather than repair the system.
    pub fn is_bad_input(&self) -> bool {
        use CoordinatorError::{Admission, GivenIdentity, Invalid, Listen, Secret};
        match self {
            Self::Coordinator(error) => {
                matches!(
                    error,
                    Listen { .. }
                        | Invalid { .. }
                        | Secret { .. }
                        | GivenIdentity { .. }
                        | CoordinatorError::Objects(_)
                        | CoordinatorError::LogWentBack { .. }
                        | CoordinatorError::Log(LogError::NotAsSealed { .. })
                        | Admission(_)
                        // What is damaged in a log no second try makes whole.
                        | CoordinatorError::Log(LogError::Damaged { .. } | LogError::Format { .. })
                )
            }
            Self::Program(_) | Self::Page(_) | Self::Endpoint(_) => true,
            _ => false,
        }
    }
}

/// Conducts a run to its end; calls `show` with the run's status several times a second.
///
/// # Errors
///
/// The hosts can't hold the run, or the run failed. A run that was cancelled is not an error: the run's record says so.
pub fn conduct<'a>(
    conduct: Conduct<'a>,
    show: impl FnMut(&RunProgress),
) -> Result<(RunResults<'a>, LiveFacts), LiveError> {
    let (header, local_workers) = (conduct.header, conduct.local_workers);
    let page = conduct.page;
    let run = live_run(conduct)?;
    let LiveOutcome { log, .. } = to_the_end(run, local_workers, page, show)?;
    results_of(header, &log)
}

/// The results of a live run that has ended, from its log.
pub(super) fn results_of<'a>(
    header: &'a LogHeader,
    log: &Path,
) -> Result<(RunResults<'a>, LiveFacts), LiveError> {
    let folder = log.parent().unwrap_or(Path::new("."));
    let steps = RunLog::read(folder)?.steps.unwrap_or_default();
    if !steps.iter().any(|step| step.event == Event::Begin) {
        return Err(LiveError::NotBegun);
    }
    let chain = Chain::of_file(log, u64::MAX);
    let chain = chain.map_err(|source| LogError::Read { path: log.to_owned(), source });
    let head = chain.map_err(OutputError::from)?.head();
    let ended = live_results(header, &live_header(folder)?, &steps, folder);
    let (results, facts) = ended.map_err(of_jobs)?;
    Ok((RunResults { log: Some(head), ..results }, facts))
}

fn of_jobs(error: JobsError) -> LiveError {
    LiveError::Jobs(Box::new(error))
}

/// Time limit of a run of jobs: ten times what the jobs take one after the other; a run beyond that has gone wrong.
fn limit(submissions: &[Submission]) -> Time {
    let work = submissions.iter().fold(Span::ZERO, |sum, job| sum + job.runtime);
    let last = submissions.iter().map(|job| job.submitted).max().unwrap_or(Time::ZERO);
    let think = submissions.iter().filter_map(|job| job.after.as_ref());
    let think = think.fold(Span::ZERO, |sum, after| sum + after.think);
    last + think + work.times(10) + Span::from_secs(3_600)
}

/// Makes the plan of a live run for the coordinator.
pub(super) fn live_run(conduct: Conduct<'_>) -> Result<LiveRunPlan, LiveError> {
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
        sources,
        ..
    } = conduct;
    let experiment = &header.experiment;
    let (live, setup) = (&experiment.live, &experiment.setup);
    let real = |span: Span| Duration::from_micros(span.as_micros());
    let objects = live.checkpoint_store.as_ref().map(checkpoint_store::open).transpose();
    let objects = objects.map_err(CoordinatorError::Objects)?;
    // Those of this host go with the coordinator.
    let workers_stay = local_workers == 0;
    Ok(LiveRunPlan {
        setup: experiment.whole_setup(),
        policies: experiment
            .started(scheduler, ProgramStart { mode: "live", folder: Some(&out) })?,
        limit: limit(&submissions)
            .max(Time::ZERO + setup.bag.deadline.times(10) + Span::from_secs(3_600))
            .max(Time::ZERO + rehearsal.takes.times(10)),
        faults: experiment.faults.clone(),
        submissions,
        requests,
        open: live.open,
        phase: PHASE,
        experiment: experiment.name.clone(),
        header: HeaderText::new(header)
            .map_err(|error| CoordinatorError::Invalid { why: error.to_string() })?,
        listen,
        workers: live.workers,
        speedup: live.speedup,
        demand: rehearsal.demand,
        reserve: live.reserve,
        share: live.share,
        programs: experiment.programs(),
        inputs: sources,
        metadata: live.metadata.clone(),
        spot_checks: live.spot_checks,
        certificates_valid: real(live.certificates_valid.span()),
        needs_criu: experiment.needs_criu(),
        hold_checkpoints: true,
        noop: false,
        api: None,
        out,
        lost_after: real(live.lost_after),
        hold: real(if workers_stay { live.patience.max(live.lost_after) } else { live.lost_after }),
        workers_stay,
        answer_within: ANSWER_WITHIN,
        observer: RunObserver::default(),
        cancel: CancellationToken::new(),
        pause: CancellationToken::new(),
        resume,
        world: CoordinatorWorld { objects, ..CoordinatorWorld::default() },
    })
}
