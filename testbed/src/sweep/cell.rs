//! One experiment, to be run under many seeds.

use std::sync::OnceLock;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::jobs::digest_of_log;
use super::sample::{Sample, Tally};
use super::{Plans, SweepError};
use crate::experiment::{Experiment, InputError, Loaded, Override, Source, load};
use crate::output::Outcome;
use crate::record::Record;
use crate::virtual_run::virtual_run;

/// An experiment, seed aside, that is run under many seeds.
pub trait Seeded: Sync {
    /// What is kept of a run.
    type Sample: Clone + Send + Serialize + DeserializeOwned;

    /// The name it has in tables.
    fn case(&self) -> &str;

    /// A digest of all that its runs depend on, besides the seed: the experiment and the program.
    fn digest(&self) -> &str;

    /// The one seed that it is run under; `None`: as many as are wanted.
    fn seed(&self) -> Option<u64> {
        None
    }

    /// Runs it under one seed.
    ///
    /// # Errors
    ///
    /// It can't be scheduled, or the run got stuck.
    fn run(&self, seed: u64, plans: &Plans) -> Result<Self::Sample, SweepError>;

    /// The seeds that it is run under where 1 to `n` are wanted.
    fn seeds(&self, n: u64) -> std::ops::RangeInclusive<u64> {
        self.seed().map_or(1..=n, |seed| seed..=seed)
    }
}

/// A bag of tasks under the name it has in tables.
#[derive(Clone, Debug)]
pub struct Cell {
    /// Its name, such as `j60-sc2/burst-hads`.
    pub case: String,
    /// What is run; its seed is replaced.
    pub experiment: Experiment,
    seed: Option<u64>,
    digest: OnceLock<String>,
}

impl Cell {
    /// The built-in experiment or file `name` with these settings (`key=value`).
    ///
    /// # Errors
    ///
    /// The experiment is wrong.
    pub fn load(case: &str, name: &str, set: &[String]) -> Result<Self, InputError> {
        let overrides = set.iter().map(|text| Override::set(text)).collect::<Result<_, _>>()?;
        let source = Source { experiment: Some(name), overrides, ..Source::default() };
        Self::of(case, load(&source)?)
    }

    /// A cell of a loaded experiment.
    ///
    /// # Errors
    ///
    /// It can't be scheduled.
    pub(super) fn of(case: &str, loaded: Loaded) -> Result<Self, InputError> {
        // What can't be scheduled is known before anything runs: a plan without a search says so.
        let mut probe = loaded.clone();
        if let Some(config) = &mut probe.experiment.scheduler {
            (config.max_iteration, config.max_attempt) = (0, 0);
        }
        probe.plan()?;
        Ok(Self::new(case, loaded.experiment))
    }

    /// A cell of this experiment.
    #[must_use]
    pub fn new(case: &str, experiment: Experiment) -> Self {
        Self { case: case.to_owned(), experiment, seed: None, digest: OnceLock::new() }
    }

    /// The same, run under the experiment's own seed only.
    #[must_use]
    pub(super) fn under_its_seed(self) -> Self {
        Self { seed: Some(self.experiment.setup.seed), ..self }
    }

    fn seeded(&self, seed: u64, plans: &Plans) -> Result<Experiment, SweepError> {
        let mut experiment = self.experiment.clone();
        experiment.setup.seed = seed;
        let plan = plans.of(&experiment).map_err(|source| self.unschedulable(seed, source))?;
        if let Some(config) = &mut experiment.scheduler {
            config.plan = plan;
        }
        Ok(experiment)
    }

    fn unschedulable(&self, seed: u64, source: dormouse_policies::PlanError) -> SweepError {
        SweepError::Unschedulable { case: self.case.clone(), seed, source }
    }

    /// The Gantt chart of its run under one seed, an SVG document.
    ///
    /// # Errors
    ///
    /// As [`Seeded::run`].
    pub fn gantt(&self, seed: u64, plans: &Plans) -> Result<String, SweepError> {
        let experiment = self.seeded(seed, plans)?;
        let scheduler =
            experiment.scheduler().map_err(|source| self.unschedulable(seed, source))?;
        let mut record = Record::new(&experiment.setup);
        virtual_run(&experiment, scheduler, |step| record.see(step))
            .map_err(|source| SweepError::Stuck { case: self.case.clone(), seed, source })?;
        let plan = experiment.scheduler.as_ref().and_then(|config| config.plan.clone());
        let header =
            crate::output::Header::new(crate::output::Mode::Virtual, String::new(), experiment);
        let outcome = Outcome {
            header: &header,
            record: &record,
            plan: plan.as_ref(),
            fidelity: None,
            jobs: None,
            wall_s: 0.0,
        };
        Ok(outcome.gantt())
    }
}

impl Seeded for Cell {
    type Sample = Sample;

    fn case(&self) -> &str {
        &self.case
    }

    fn digest(&self) -> &str {
        self.digest.get_or_init(|| {
            let mut experiment = self.experiment.clone();
            experiment.setup.seed = 0;
            match experiment.jobs.as_deref().and_then(digest_of_log) {
                None => digest_of(&experiment),
                Some(log) => digest_of(&(experiment, log)),
            }
        })
    }

    fn seed(&self) -> Option<u64> {
        self.seed
    }

    fn run(&self, seed: u64, plans: &Plans) -> Result<Sample, SweepError> {
        let experiment = self.seeded(seed, plans)?;
        let scheduler =
            experiment.scheduler().map_err(|source| self.unschedulable(seed, source))?;
        let mut tally = Tally::default();
        let run = virtual_run(&experiment, scheduler, |step| tally.see(step))
            .map_err(|source| SweepError::Stuck { case: self.case.clone(), seed, source })?;
        Ok(tally.sample(&run))
    }
}

/// A digest of an experiment and this program.
pub(crate) fn digest_of(experiment: &impl Serialize) -> String {
    let mut hasher = blake3::Hasher::new();
    hasher.update(program().as_bytes());
    hasher.update(serde_json::json!(experiment).to_string().as_bytes());
    hasher.finalize().to_hex()[..24].to_owned()
}

/// What tells this build from others: results of another program are not reused.
fn program() -> &'static str {
    static PROGRAM: OnceLock<String> = OnceLock::new();
    PROGRAM.get_or_init(|| {
        let image = std::env::current_exe().and_then(std::fs::read);
        image.map_or_else(
            |_| env!("CARGO_PKG_VERSION").to_owned(),
            |image| blake3::hash(&image).to_hex().to_string(),
        )
    })
}
