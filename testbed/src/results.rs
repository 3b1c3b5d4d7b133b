//! What came of a run, whatever work it has.

use std::path::Path;

use dormouse_engine::Step;
use dormouse_engine::drive::PlayError;
use dormouse_policies::Plan;
use dormouse_units::Time;

use crate::experiment::Planned;
use crate::jobs::{JobsError, JobsOutcome, JobsRecording};
use crate::output::{Header, OutputError, RunLog, RunLogWriter};
use crate::replay::{ReplayError, play};
use crate::run_view::{Outcome, RunView};
use crate::virtual_run::{model, play_out};
use dormouse_tell::Record;
use dormouse_tell::fidelity::Fidelity;
use dormouse_tell::jobs::History;
use dormouse_workload::Jobs;

/// What came of a run.
#[derive(Debug)]
pub struct Results<'a> {
    /// The first line of the log.
    pub header: &'a Header,
    /// Its tasks, VMs and hosts, if it has a bag.
    pub record: Option<Record>,
    /// What the scheduler of the bag had planned, if it plans.
    pub plan: Option<Plan>,
    /// How faithful the emulation was; `None` in virtual time.
    pub fidelity: Option<Fidelity>,
    /// What came of its parallel jobs, if it has any.
    pub jobs: Option<JobsOutcome<'a>>,
    /// Real seconds it took.
    pub wall_s: f64,
}

impl<'a> Results<'a> {
    /// Of a run in virtual time.
    #[must_use]
    pub const fn of(header: &'a Header) -> Self {
        let (record, plan, fidelity, jobs) = (None, None, None, None);
        Self { header, record, plan, fidelity, jobs, wall_s: 0.0 }
    }

    /// Why the run was ended with work left, if it was.
    #[must_use]
    pub fn broke(&self) -> Option<&str> {
        let of_bag = self.record.as_ref().and_then(|record| record.cancelled.as_deref());
        of_bag.or_else(|| self.jobs.as_ref().and_then(|jobs| jobs.cancelled.as_deref()))
    }

    /// The view of the run.
    #[must_use]
    pub fn view(&self) -> RunView {
        let Self { header, record, plan, fidelity, jobs, wall_s } = self;
        let (record, plan) = (record.as_ref(), plan.as_ref());
        let (fidelity, jobs) = (fidelity.as_ref(), jobs.as_ref());
        Outcome { header, record, plan, fidelity, jobs, wall_s: *wall_s }.view()
    }
}

/// Runs the experiment of `header` in virtual time, its bag under this scheduler with this plan,
/// and leaves what is written while it goes in `folder`; `show` is called with the number of tasks
/// that are finished. A run that ends with work left has results, too.
///
/// # Errors
///
/// Its parallel jobs can't be had, or the system refuses.
pub fn virtual_results<'a>(
    header: &'a Header,
    (bag, plan): Planned,
    folder: &Path,
    mut show: impl FnMut(usize),
) -> Result<Results<'a>, JobsError> {
    let experiment = &header.experiment;
    let mut jobs = experiment.submissions()?;
    let mut log = RunLogWriter::begin(folder, header)?;
    log.expect(jobs.as_ref().and_then(Jobs::known).unwrap_or(0))?;
    let mut recording = JobsRecording::begin(folder, header)?;
    let mut record = bag.as_ref().map(|_| header.record());
    let run = experiment.run(bag);
    // The record of a bag has a digest of its own.
    let mut run = if recording.is_some() { run } else { run.undigested() };
    let see = |step: &Step| {
        log.step(step)?;
        if let Some(jobs) = &mut recording {
            jobs.see(step)?;
        }
        if let Some(record) = &mut record {
            record.see(step);
            show(record.finished());
        }
        Ok::<_, JobsError>(())
    };
    let submissions = jobs.as_mut();
    match play_out(experiment, &mut run, &mut model(experiment), submissions, see) {
        // Its jobs can't be had, or it can't be written: there is nothing to show.
        Err(PlayError::Outside(error)) => return Err(error),
        // Its log has why it ended.
        Ok(()) | Err(PlayError::Stuck { .. } | PlayError::Limit { .. }) => {}
    }
    log.finish()?;
    let recording = recording.map(|jobs| jobs.finish(run.digest())).transpose()?;
    let jobs = recording.map(|outcome| JobsOutcome {
        skipped: jobs.as_ref().and_then(Jobs::skipped),
        cancelled: run.cancelled().map(str::to_owned),
        ..outcome
    });
    Ok(Results { record, plan, jobs, ..Results::of(header) })
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
    let history = History::within(window);
    let mut recording = JobsRecording::begin_within(scratch.path(), header, history)?;
    let mut record = header.experiment.scheduler.as_ref().map(|_| header.record());
    let mut failed = Ok(());
    play(log, |step| {
        if let Some(record) = &mut record {
            record.see(step);
        }
        if let (Some(jobs), Ok(())) = (&mut recording, &failed) {
            failed = jobs.see(step);
        }
    })?;
    failed?;
    let (_, plan) = header.experiment.planned()?;
    let digest = record.as_ref().map(Record::digest).unwrap_or_default();
    let jobs = recording.map(|jobs| jobs.finish(digest)).transpose()?;
    Ok(Results { record, plan, jobs, ..Results::of(header) })
}
