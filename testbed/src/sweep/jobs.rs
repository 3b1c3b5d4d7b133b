//! Parallel jobs to be run under many seeds, and what is kept of a run.

use std::fs::File;
use std::sync::OnceLock;

use dormouse_engine::Step;
use dormouse_engine::drive::PlayError;
use dormouse_engine::jobs::{Observer, Record, Told};
use serde::{Deserialize, Serialize};

use super::cell::{Seeded, digest_of};
use super::{Plans, SweepError};
use crate::experiment::{Batch, Experiment, JobSource};
use crate::jobs::{Figures, Jobs, JobsError};
use crate::virtual_run::{model, play_out};

/// Parallel jobs under the name they have in tables.
#[derive(Clone, Debug)]
pub struct JobsCell {
    case: String,
    experiment: Experiment,
    seed: Option<u64>,
    digest: OnceLock<String>,
}

/// The figures of one run of parallel jobs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct JobsSample {
    /// Jobs that ended.
    pub jobs: u64,
    /// The mean time from a job's submission to its end, in seconds.
    pub mean_response_s: f64,
    /// The mean bounded slowdown.
    pub mean_bounded_slowdown: f64,
    /// The work of all jobs as a part of what the machine's processors can do with one job each.
    pub utilisation: f64,
    /// From the first submission to the last end, in seconds.
    pub makespan_s: f64,
    /// Promotions in place.
    pub swaps: u64,
    /// Promotions by kill and restart.
    pub kills: u64,
    /// Promotions by migration.
    pub migrations: u64,
    /// Steps of the event log.
    pub steps: u64,
    /// The digest of the decisions.
    pub decisions: String,
}

impl JobsCell {
    /// A cell of an experiment whose jobs are there.
    ///
    /// # Errors
    ///
    /// They can't be read or made.
    pub(super) fn of(case: &str, experiment: Experiment) -> Result<Self, JobsError> {
        Jobs::of(&experiment)?;
        Ok(Self { case: case.to_owned(), experiment, seed: None, digest: OnceLock::new() })
    }

    /// The same, run under the experiment's own seed only.
    #[must_use]
    pub(super) fn under_its_seed(self) -> Self {
        Self { seed: Some(self.experiment.setup.seed), ..self }
    }
}

impl Seeded for JobsCell {
    type Sample = JobsSample;

    fn case(&self) -> &str {
        &self.case
    }

    fn digest(&self) -> &str {
        self.digest.get_or_init(|| {
            let log = self.experiment.jobs.as_deref().and_then(digest_of_log);
            digest_of(&(under(&self.experiment, 0), log))
        })
    }

    fn seed(&self) -> Option<u64> {
        self.seed
    }

    fn run(&self, seed: u64, _: &Plans) -> Result<JobsSample, SweepError> {
        let wrong =
            |source| SweepError::Jobs { case: self.case.clone(), seed, source: Box::new(source) };
        let experiment = under(&self.experiment, seed);
        let jobs = Jobs::of(&experiment).map_err(wrong)?;
        let machine = experiment.jobs.as_ref().map_or(0, |jobs| jobs.workload.processors);
        let mut run = experiment.run(None);
        let (mut told, mut ended, mut steps) = (Told::default(), Ended::default(), 0);
        let see = |step: &Step| {
            steps += 1;
            told.see(step, &mut ended)
        };
        let played = play_out(&experiment, &mut run, &mut model(&experiment), jobs, see);
        played.map_err(|error| match error {
            PlayError::Outside(error) => wrong(error),
            stuck => wrong(JobsError::Schedule(stuck.to_string())),
        })?;
        let Ended(figures) = ended;
        Ok(JobsSample {
            jobs: figures.jobs(),
            mean_response_s: figures.response.mean(),
            mean_bounded_slowdown: figures.slowdown.mean(),
            utilisation: figures.utilisation(machine),
            makespan_s: figures.makespan().as_secs_f64(),
            swaps: figures.swaps,
            kills: figures.kills,
            migrations: figures.migrations,
            steps,
            decisions: run.digest(),
        })
    }
}

/// An experiment under another seed.
fn under(experiment: &Experiment, seed: u64) -> Experiment {
    let mut experiment = experiment.clone();
    experiment.setup.seed = seed;
    experiment
}

/// A digest of the log that a batch's jobs are of, if they are of one. What can't be read is said
/// when it is run.
pub(crate) fn digest_of_log(batch: &Batch) -> Option<String> {
    let JobSource::Swf { log, .. } = &batch.workload.source else { return None };
    let hash = |file| blake3::Hasher::new().update_reader(file).map(|h| h.finalize());
    File::open(log).and_then(hash).ok().map(|hash| hash.to_hex().to_string())
}

/// The figures of the jobs that have ended.
#[derive(Debug, Default)]
struct Ended(Figures);

impl Observer for Ended {
    type Error = JobsError;

    fn ended(&mut self, record: Record) -> Result<(), JobsError> {
        self.0.add(&record);
        Ok(())
    }
}
