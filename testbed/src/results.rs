//! What came of a run, whatever work it has.

use std::path::{Path, PathBuf};

use dormouse_engine::Step;
use dormouse_engine::drive::PlayError;
use dormouse_policies::Plan;
use serde_json::Value;

use crate::experiment::Planned;
use crate::jobs::{Jobs, JobsError, JobsOutcome, JobsRecording};
use crate::output::{
    Fidelity, Header, JobsPart, Outcome, OutputError, RunLogWriter, Staging, Style,
};
use crate::record::Record;
use crate::virtual_run::{model, play_out};

/// What came of a run.
#[derive(Debug)]
pub enum Results<'a> {
    /// Of one with a bag.
    Bag(Box<BagResults<'a>>),
    /// Of one of parallel jobs alone.
    Jobs(Box<JobsOutcome<'a>>),
}

/// What came of a run with a bag.
#[derive(Debug)]
pub struct BagResults<'a> {
    /// The first line of the log.
    pub header: &'a Header,
    /// Its tasks, VMs and hosts.
    pub record: Record,
    /// What the scheduler had planned, if it plans.
    pub plan: Option<Plan>,
    /// How faithful the emulation was; `None` in virtual time.
    pub fidelity: Option<Fidelity>,
    /// What came of the parallel jobs that share the run, if there are any.
    pub jobs: Option<JobsPart>,
    /// Real seconds it took.
    pub wall_s: f64,
}

impl BagResults<'_> {
    fn outcome(&self) -> Outcome<'_> {
        let Self { header, record, plan, fidelity, jobs, wall_s } = self;
        let (plan, fidelity, jobs) = (plan.as_ref(), fidelity.as_ref(), jobs.as_ref());
        Outcome { header, record, plan, fidelity, jobs, wall_s: *wall_s }
    }
}

impl<'a> Results<'a> {
    /// From the record of its bag, if it has one, how true it was, and what came of its parallel
    /// jobs, if it has any.
    #[must_use]
    pub fn of(
        header: &'a Header,
        record: Option<Record>,
        plan: Option<Plan>,
        fidelity: Option<Fidelity>,
        jobs: Option<JobsOutcome<'a>>,
    ) -> Self {
        match (record, jobs) {
            (None, Some(jobs)) => Self::Jobs(Box::new(jobs)),
            (record, jobs) => {
                let record = record.unwrap_or_else(|| header.record());
                let jobs = jobs.as_ref().map(JobsOutcome::part);
                let wall_s = 0.0;
                Self::Bag(Box::new(BagResults { header, record, plan, fidelity, jobs, wall_s }))
            }
        }
    }

    /// The same after so many real seconds.
    #[must_use]
    pub fn after(mut self, seconds: f64) -> Self {
        match &mut self {
            Self::Bag(bag) => bag.wall_s = seconds,
            Self::Jobs(jobs) => jobs.wall_s = seconds,
        }
        self
    }

    /// Why the run was ended with work left, if it was.
    #[must_use]
    pub fn broke(&self) -> Option<&str> {
        match self {
            Self::Bag(bag) => bag.record.cancelled.as_deref(),
            Self::Jobs(jobs) => jobs.cancelled.as_deref(),
        }
    }

    /// Writes everything that was not written on the way, and puts the folder in place.
    ///
    /// # Errors
    ///
    /// The system refuses; nothing is left then.
    pub fn write(&self, staging: Staging) -> Result<PathBuf, OutputError> {
        match self {
            Self::Bag(bag) => bag.outcome().write(staging),
            Self::Jobs(jobs) => jobs.write(staging),
        }
    }

    /// The content of `summary.json`.
    #[must_use]
    pub fn summary(&self) -> Value {
        match self {
            Self::Bag(bag) => bag.outcome().summary(),
            Self::Jobs(jobs) => jobs.summary(),
        }
    }

    /// The table for people.
    #[must_use]
    pub fn table(&self, style: Style) -> String {
        match self {
            Self::Bag(bag) => bag.outcome().table(style),
            Self::Jobs(jobs) => jobs.table(style),
        }
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
    let mut jobs = Jobs::of(experiment)?;
    let mut log = RunLogWriter::begin(folder, header)?;
    log.expect(jobs.as_ref().and_then(Jobs::expected).unwrap_or(0))?;
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
    let of_jobs = recording.map(|outcome| JobsOutcome {
        skipped: jobs.as_ref().and_then(Jobs::skipped),
        cancelled: run.cancelled().map(str::to_owned),
        ..outcome
    });
    Ok(Results::of(header, record, plan, None, of_jobs))
}
