//! What came of a run: made in virtual time, or read back.

use std::path::Path;

use dormouse_engine::drive::PlayError;
use dormouse_engine::{Counts, Run};
use dormouse_model::{Effect, Notice, Step, Work};
use dormouse_units::Time;

use crate::jobs::{JobsError, JobsOutcome, ReadAhead, refused_io};
use crate::output::{Header, OutputError, RunLog, RunLogWriter};
use crate::recorder::{Behind, RunRecorded, RunRecorder};
use crate::replay::{ReplayError, play};
use crate::run_view::{RequestsOutcome, Results};
use crate::tables::{Tables, WrittenTables};
use crate::virtual_run::{model, play_requests};
use dormouse_analysis::RunRecord;
use dormouse_analysis::jobs::JobsOfWindow;
use dormouse_experiment::{Experiment, Planned, Start};
use dormouse_workload::{Jobs, RequestStream};

/// Runs the experiment of `header` in virtual time, its bag under this scheduler with this plan,
/// and leaves what is written while it goes in `folder`; `show` is called with the number of tasks
/// that are finished, or of jobs or requests that have ended where it has no bag. A run that ends with work left has results, too.
///
/// # Errors
///
/// Its parallel jobs can't be had, or the system refuses.
pub fn virtual_results<'a>(
    header: &'a Header,
    planned: Planned,
    folder: &Path,
    mut show: impl FnMut(usize),
) -> Result<Results<'a>, JobsError> {
    let log = RunLogWriter::begin(folder, header)?;
    results_of(header, planned, folder, (log, Vec::new()), Origin::New, &mut show)
}

/// Makes a run again that came to its end, with what its programs decided then: none is started. Its log is
/// made anew in `folder`.
///
/// # Errors
///
/// As [`virtual_results`], or what its log has comes out otherwise.
pub fn remade_results<'a>(
    header: &'a Header,
    planned: Planned,
    folder: &Path,
    steps: Option<Vec<Step>>,
) -> Result<Results<'a>, JobsError> {
    let known = steps.filter(|_| header.experiment.has_programs()).unwrap_or_default();
    // Whether its steps are kept it finds out as it did.
    let begun = RunLogWriter::begin(folder, &Header { left_out: None, ..header.clone() })?;
    results_of(header, planned, folder, (begun, known), Origin::Kept, &mut |_| {})
}

/// Where the decisions of a scheduler that is a program come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Origin {
    /// From the program, which is started.
    New,
    /// From the steps that are known.
    Kept,
}

/// Goes on with the run whose log is in `folder`, which was broken off: what the log has is made
/// again, and its programs are told of it.
///
/// # Errors
///
/// As [`virtual_results`], or what the log has comes out otherwise.
pub fn resumed_results<'a>(
    header: &'a Header,
    planned: Planned,
    folder: &Path,
    mut show: impl FnMut(usize),
) -> Result<Results<'a>, JobsError> {
    let log = RunLogWriter::go_on(folder, header)?;
    results_of(header, planned, folder, log, Origin::New, &mut show)
}

fn results_of<'a>(
    header: &'a Header,
    (bag, plan): Planned,
    folder: &Path,
    (mut log, known): (RunLogWriter, Vec<Step>),
    origin: Origin,
    show: &mut dyn FnMut(usize),
) -> Result<Results<'a>, JobsError> {
    let experiment = &header.experiment;
    let mut jobs = experiment.submissions()?;
    let mut customers = experiment.requests()?;
    log.expect(least_logged(experiment, jobs.as_ref(), customers.as_ref()))?;
    let recorder = RunRecorder::begin(folder, header, log)?;
    let mut record = bag.as_ref().map(|_| header.record());
    let start = Start { folder: Some(folder), ..Start::VIRTUAL };
    let run = match origin {
        Origin::New => experiment.start(bag, start)?,
        Origin::Kept => experiment.run(bag),
    };
    // The recorder has a digest, and the record of a bag has one, too.
    let mut run = run.undigested();
    run.follow(known);
    let mut ended = 0;
    let mut see = |step: &Step| match &mut record {
        Some(record) => {
            record.see(step);
            show(record.finished());
        }
        None => {
            let more = ended_in(step, experiment.jobs.is_some());
            ended += more;
            if more > 0 {
                show(ended);
            }
        }
    };
    let outside = (&mut jobs, &mut customers);
    let recorded = record_all(experiment, &mut run, outside, recorder, &mut see)?;
    let RunRecorded { head, digest, tables } = recorded;
    let WrittenTables { jobs: outcome, requests, hashes } = tables;
    let jobs = outcome.map(|outcome| JobsOutcome {
        skipped: jobs.as_ref().and_then(Jobs::skipped),
        cancelled: run.cancelled().map(str::to_owned),
        ..outcome
    });
    let (counts, decisions_sha256) = (*run.counts(), digest);
    let read = customers.as_ref().and_then(RequestStream::read).cloned();
    let requests =
        requests.map(|figures| RequestsOutcome { figures, counts, decisions_sha256, read });
    let record = record.map(|record| own(record, experiment));
    let log = Some(head);
    Ok(Results { record, plan, jobs, requests, log, hashes, ..Results::new(header) })
}

/// How many jobs, or where a run has none requests for VMs, ended in a step of a run without a bag.
fn ended_in(step: &Step, has_jobs: bool) -> usize {
    let is_end = |notice: &&Notice| match notice {
        Notice::TaskFinished { .. } => has_jobs,
        Notice::LaunchRefused { .. } => !has_jobs,
        _ => false,
    };
    let is_vm = |effect: &&Effect| !has_jobs && matches!(effect, Effect::VmEnded { .. });
    step.notices.iter().filter(is_end).count() + step.effects.iter().filter(is_vm).count()
}

/// The number of jobs and requests that a run's log is known to have at least. A run ends with its jobs, and
/// with its requests where it has nothing else to do.
fn least_logged(
    experiment: &Experiment,
    jobs: Option<&Jobs>,
    customers: Option<&RequestStream>,
) -> usize {
    let are_alone = experiment.tenants().work() == [Work::Requests];
    let requests = customers.filter(|_| are_alone).map_or(0, RequestStream::at_least);
    requests + jobs.map_or(0, Jobs::at_least)
}

/// Plays a run to its end, shows its steps to `see`, and has them recorded: by a thread of its own where
/// tables are written, so that none waits for a disk. What a program decided is to be in its log before it is
/// asked again.
fn record_all<'a>(
    experiment: &Experiment,
    run: &mut Run,
    (jobs, customers): (&mut Option<Jobs>, &mut Option<RequestStream>),
    mut recorder: RunRecorder<'a>,
    see: &mut dyn FnMut(&Step),
) -> Result<RunRecorded<'a>, JobsError> {
    let mut model = model(experiment);
    if experiment.has_programs() || !recorder.has_tables() {
        let outside = (jobs.as_mut(), customers.as_mut());
        let played = play_requests(experiment, run, &mut model, outside, |step| {
            see(step);
            recorder.see(step)
        });
        return match ended(played) {
            Err(JobsError::Scheduler(why)) => {
                recorder.break_off()?;
                Err(JobsError::Scheduler(why))
            }
            Err(error) => Err(error),
            Ok(()) => recorder.finish(),
        };
    }
    let (folder, read) = (recorder.folder().to_owned(), jobs.as_mut());
    std::thread::scope(|scope| {
        let ahead = read.map(|jobs| ReadAhead::start(scope, jobs)).transpose();
        let ahead = ahead.map_err(refused_io("start a thread that reads jobs for", &folder))?;
        let mut behind = Behind::start(scope, recorder)?;
        let outside = (ahead, customers.as_mut());
        let played = play_requests(experiment, run, &mut model, outside, |step| {
            see(step);
            behind.take(step)
        });
        // Where it has failed the run was broken off for that.
        let recorder = behind.finish()?;
        ended(played)?;
        recorder.finish()
    })
}

/// What a run's end leaves to be told: one that ends with work left has results, and its log has why.
fn ended(played: Result<(), PlayError<JobsError>>) -> Result<(), JobsError> {
    match played {
        // Its jobs can't be had, or it can't be written: there is nothing to show.
        Err(PlayError::Outside(error)) => Err(error),
        // What its log has can be gone on with.
        Err(PlayError::Scheduler(why)) => Err(JobsError::Scheduler(why)),
        Ok(()) | Err(PlayError::Stuck { .. } | PlayError::Limit { .. }) => Ok(()),
    }
}

/// What a record says of VMs that nobody of the provider's customers requested: of those there may be
/// millions, and `requests.csv` has them.
pub fn own(mut record: RunRecord, experiment: &Experiment) -> RunRecord {
    let of = experiment.tenants();
    if experiment.requests.is_some() {
        record.leave_out(|vm| of.owns(Work::Requests, vm));
    }
    record
}

/// What came of a recorded run, as far as its log says, with the jobs in a window of time; where
/// the log was too long to be kept, the run is made again. How true a live one was, its summary says.
///
/// # Errors
///
/// It can't be made again, or the system refuses.
pub fn stored_results(log: &RunLog, window: (Time, Time)) -> Result<Results<'_>, ReplayError> {
    let header = &log.header;
    // Its files are there already.
    let scratch = tempfile::tempdir();
    let scratch = scratch.map_err(|error| {
        let folder = std::env::temp_dir();
        ReplayError::Jobs(OutputError::io("make a folder in", &folder, error).into())
    })?;
    let mut tables = Tables::begin(scratch.path(), header, JobsOfWindow::within(window))?;
    let mut record = header.experiment.scheduler.as_ref().map(|_| header.record());
    let mut failed = Ok(());
    play(log, |step| {
        if let Some(record) = &mut record {
            record.see(step);
        }
        if failed.is_ok() {
            failed = tables.see(step);
        }
    })?;
    failed?;
    let (_, plan) = header.experiment.planned()?;
    let digest = record.as_ref().map(RunRecord::digest).unwrap_or_default();
    let WrittenTables { jobs, requests, .. } = tables.finish(digest.clone())?;
    let requests = requests.map(|figures| {
        let (counts, decisions_sha256) = (Counts::default(), digest);
        RequestsOutcome { figures, counts, decisions_sha256, read: None }
    });
    let record = record.map(|record| own(record, &header.experiment));
    Ok(Results { record, plan, jobs, requests, ..Results::new(header) })
}
