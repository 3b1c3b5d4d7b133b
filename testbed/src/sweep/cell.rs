//! One experiment, to be run under many seeds.

use std::sync::OnceLock;

use super::sample::{Sample, Tally};
use super::{Plans, SweepError};
use crate::experiment::{Experiment, InputError, Override, Source, load};
use crate::output::Outcome;
use crate::record::Record;
use crate::virtual_run::virtual_run;

/// An experiment, seed aside, under the name it has in tables.
#[derive(Clone, Debug)]
pub struct Cell {
    /// Its name, such as `j60-sc2/burst-hads`.
    pub case: String,
    /// What is run; its seed is replaced.
    pub experiment: Experiment,
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
        let loaded = load(&source)?;
        // What can't be scheduled is known before anything runs: a plan without a search says so.
        let mut probe = loaded.clone();
        (probe.experiment.scheduler.max_iteration, probe.experiment.scheduler.max_attempt) = (0, 0);
        probe.plan()?;
        Ok(Self::new(case, loaded.experiment))
    }

    /// A cell of this experiment.
    #[must_use]
    pub fn new(case: &str, experiment: Experiment) -> Self {
        Self { case: case.to_owned(), experiment, digest: OnceLock::new() }
    }

    /// A digest of all that its runs depend on, besides the seed: the experiment and the program.
    #[must_use]
    pub fn digest(&self) -> &str {
        self.digest.get_or_init(|| {
            let mut hasher = blake3::Hasher::new();
            hasher.update(program().as_bytes());
            let mut experiment = self.experiment.clone();
            experiment.setup.seed = 0;
            hasher.update(serde_json::json!(experiment).to_string().as_bytes());
            hasher.finalize().to_hex()[..24].to_owned()
        })
    }

    fn seeded(&self, seed: u64, plans: &Plans) -> Result<Experiment, SweepError> {
        let mut experiment = self.experiment.clone();
        experiment.setup.seed = seed;
        experiment.scheduler.plan =
            plans.of(&experiment).map_err(|source| self.unschedulable(seed, source))?;
        Ok(experiment)
    }

    fn unschedulable(&self, seed: u64, source: dormouse_policies::PlanError) -> SweepError {
        SweepError::Unschedulable { case: self.case.clone(), seed, source }
    }

    /// Runs it under one seed.
    ///
    /// # Errors
    ///
    /// There is no plan, or the run got stuck.
    pub fn run(&self, seed: u64, plans: &Plans) -> Result<Sample, SweepError> {
        let experiment = self.seeded(seed, plans)?;
        let scheduler =
            experiment.scheduler().map_err(|source| self.unschedulable(seed, source))?;
        let mut tally = Tally::default();
        let run = virtual_run(&experiment, scheduler, |step| tally.see(step))
            .map_err(|source| SweepError::Stuck { case: self.case.clone(), seed, source })?;
        Ok(tally.sample(&run))
    }

    /// The Gantt chart of its run under one seed, an SVG document.
    ///
    /// # Errors
    ///
    /// As [`Cell::run`].
    pub fn gantt(&self, seed: u64, plans: &Plans) -> Result<String, SweepError> {
        let experiment = self.seeded(seed, plans)?;
        let scheduler =
            experiment.scheduler().map_err(|source| self.unschedulable(seed, source))?;
        let mut record = Record::new(&experiment.setup);
        virtual_run(&experiment, scheduler, |step| record.see(step))
            .map_err(|source| SweepError::Stuck { case: self.case.clone(), seed, source })?;
        let plan = experiment.scheduler.plan.clone();
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
