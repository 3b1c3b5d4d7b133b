//! Makes the results of a run in virtual time, or reads them back.

use std::path::Path;

use dormouse_engine::drive::PlayError;
use dormouse_engine::{Run, RunCounts};
use dormouse_model::{Effect, Notice, Step, TenantWork};
use dormouse_units::Time;

use crate::jobs::{JobsError, JobsOutcome, ReadAhead, refused_io};
use crate::output::{LogHeader, OutputError, RunLog, RunLogWriter};
use crate::recorder::{RecorderThread, RunRecorded, RunRecorder};
use crate::replay::{ReplayError, play};
use crate::run_view::{RequestsOutcome, RunResults};
use crate::tables::{RunTables, WrittenTables};
use crate::virtual_run::{model, play_requests};
use dormouse_analysis::RunRecord;
use dormouse_analysis::jobs::JobsOfWindow;
use dormouse_experiment::{Experiment, Planned, ProgramStart};
use dormouse_workload::{Jobs, RequestStream};

/// Runs the experiment of `header` in virtual time, its bag under the scheduler and plan of
/// `planned`, and writes the files that grow during the run into `folder`. `show` gets the number
/// of finished tasks, or, in a run without a bag, of ended jobs or requests. A run that ends with
/// work left has results as well.
///
/// # Errors
///
/// The run's parallel jobs can't be read, or the system refuses.
pub fn virtual_results<'a>(
    header: &'a LogHeader,
    planned: Planned,
    folder: &Path,
    mut show: impl FnMut(usize),
) -> Result<RunResults<'a>, JobsError> {
    let log = RunLogWriter::begin(folder, header)?;
    results_of(header, planned, folder, (log, Vec::new()), DecisionSource::New, &mut show)
}

/// Repeats a finished run with the recorded decisions of its scheduler programs; no program is
/// started. The log is written anew into `folder`.
///
/// # Errors
///
/// The same errors as [`virtual_results`], or a step differs from the log.
pub fn remade_results<'a>(
    header: &'a LogHeader,
    planned: Planned,
    folder: &Path,
    steps: Option<Vec<Step>>,
) -> Result<RunResults<'a>, JobsError> {
    if header.experiment.ec2.is_some() {
        return called_results(header, folder, &steps.unwrap_or_default());
    }
    let known = steps.filter(|_| header.experiment.has_programs()).unwrap_or_default();
    // Whether its log keeps steps is decided again in the same way.
    let begun = RunLogWriter::begin(folder, &LogHeader { left_out: None, ..header.clone() })?;
    results_of(header, planned, folder, (begun, known), DecisionSource::Kept, &mut |_| {})
}

/// Results of a run whose VMs callers of the EC2 API request, from its steps: the calls are
/// recorded only in the run's log.
fn called_results<'a>(
    header: &'a LogHeader,
    folder: &Path,
    steps: &[Step],
) -> Result<RunResults<'a>, JobsError> {
    let (mut log, mut record) = (RunLogWriter::begin(folder, header)?, header.record());
    for step in steps {
        record.see(step);
        log.step(step)?;
    }
    let log = Some(log.finish()?);
    Ok(RunResults { record: Some(record), log, ..RunResults::new(header) })
}

/// Source of the decisions of scheduler programs in a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DecisionSource {
    /// Decisions come from the scheduler program, which is started.
    New,
    /// Decisions come from the steps in the log of an earlier run; the program is not started.
    Kept,
}

/// Resumes the run whose log is in `folder` after it was interrupted: recomputes the steps of the
/// log, and tells the scheduler programs about them.
///
/// # Errors
///
/// The same errors as [`virtual_results`], or a step differs from the log.
pub fn resumed_results<'a>(
    header: &'a LogHeader,
    planned: Planned,
    folder: &Path,
    mut show: impl FnMut(usize),
) -> Result<RunResults<'a>, JobsError> {
    let log = RunLogWriter::go_on(folder, header)?;
    results_of(header, planned, folder, log, DecisionSource::New, &mut show)
}

fn results_of<'a>(
    header: &'a LogHeader,
    (bag, plan): Planned,
    folder: &Path,
    (mut log, known): (RunLogWriter, Vec<Step>),
    origin: DecisionSource,
    show: &mut dyn FnMut(usize),
) -> Result<RunResults<'a>, JobsError> {
    let experiment = &header.experiment;
    let mut jobs = experiment.submissions()?;
    let mut customers = experiment.requests()?;
    log.expect(least_logged(experiment, jobs.as_ref(), customers.as_ref()))?;
    let recorder = RunRecorder::begin(folder, header, log)?;
    let mut record = bag.as_ref().map(|_| header.record());
    let start = ProgramStart { folder: Some(folder), ..ProgramStart::VIRTUAL };
    let run = match origin {
        DecisionSource::New => experiment.start(bag, start)?,
        DecisionSource::Kept => experiment.run(bag),
    };
    // The recorder has a digest, and so has the record of a bag.
    let mut run = run.without_digest();
    run.follow_steps(known);
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
        cancelled: run.cancel_reason().map(str::to_owned),
        ..outcome
    });
    let (counts, decisions_sha256) = (*run.counts(), digest);
    let read = customers.as_ref().and_then(RequestStream::read).cloned();
    let requests =
        requests.map(|figures| RequestsOutcome { figures, counts, decisions_sha256, read });
    let record = record.map(|record| own(record, experiment));
    let log = Some(head);
    Ok(RunResults { record, plan, jobs, requests, log, hashes, ..RunResults::new(header) })
}

/// Number of jobs that ended in a step of a run without a bag; number of requests that ended if the run has no jobs.
fn ended_in(step: &Step, has_jobs: bool) -> usize {
    let is_end = |notice: &&Notice| match notice {
        Notice::TaskFinished { .. } => has_jobs,
        Notice::LaunchRefused { .. } => !has_jobs,
        _ => false,
    };
    let is_vm = |effect: &&Effect| !has_jobs && matches!(effect, Effect::VmEnded { .. });
    step.notices.iter().filter(is_end).count() + step.effects.iter().filter(is_vm).count()
}

/// Lower bound of the number of jobs and requests in a run's log. A run ends with its jobs, or with its requests if it
/// has no other work.
fn least_logged(
    experiment: &Experiment,
    jobs: Option<&Jobs>,
    customers: Option<&RequestStream>,
) -> usize {
    let are_alone = experiment.tenants().all_work() == [TenantWork::Requests];
    let requests = customers.filter(|_| are_alone).map_or(0, RequestStream::at_least);
    requests + jobs.map_or(0, Jobs::at_least)
}

/// Runs `run` to its end, passes its steps to `see` and records them: on a separate thread if tables are written, so
/// that nothing waits for a disk. The decisions of a scheduler program are in the log before the program is asked
/// again.
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
        return match end_of_run(played) {
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
        let mut behind = RecorderThread::start(scope, recorder)?;
        let outside = (ahead, customers.as_mut());
        let played = play_requests(experiment, run, &mut model, outside, |step| {
            see(step);
            behind.take(step)
        });
        // If it failed, the run was broken off for that reason.
        let recorder = behind.finish()?;
        end_of_run(played)?;
        recorder.finish()
    })
}

/// The error with which a run ended. Work that is left is not an error: such a run has results, and its log has the
/// reason.
fn end_of_run(played: Result<(), PlayError<JobsError>>) -> Result<(), JobsError> {
    match played {
        // The jobs can't be read, or the run can't be recorded: there is nothing to show.
        Err(PlayError::Outside(error)) => Err(error),
        // The run can be resumed from its log.
        Err(PlayError::Scheduler(why)) => Err(JobsError::Scheduler(why)),
        Ok(()) | Err(PlayError::Stuck { .. } | PlayError::Limit { .. }) => Ok(()),
    }
}

/// Removes the VMs of the provider's customers from a record: there may be millions of them, and they are in
/// `requests.csv`.
pub fn own(mut record: RunRecord, experiment: &Experiment) -> RunRecord {
    let of = experiment.tenants();
    if experiment.requests.is_some() {
        record.leave_out(|vm| of.owns_vm(TenantWork::Requests, vm));
    }
    record
}

/// Results of a recorded run from its log, with the jobs in a window of time. If the log has no
/// steps, the run is repeated. The fidelity of a live run comes from its summary.
///
/// # Errors
///
/// The run can't be repeated, or the system refuses.
pub fn stored_results(log: &RunLog, window: (Time, Time)) -> Result<RunResults<'_>, ReplayError> {
    let header = &log.header;
    // Its files exist already.
    let scratch = tempfile::tempdir();
    let scratch = scratch.map_err(|error| {
        let folder = std::env::temp_dir();
        ReplayError::Jobs(OutputError::io("make a folder in", &folder, error).into())
    })?;
    let mut tables = RunTables::begin(scratch.path(), header, JobsOfWindow::within(window))?;
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
        let (counts, decisions_sha256) = (RunCounts::default(), digest);
        RequestsOutcome { figures, counts, decisions_sha256, read: None }
    });
    let record = record.map(|record| own(record, &header.experiment));
    Ok(RunResults { record, plan, jobs, requests, ..RunResults::new(header) })
}
