//! One experiment of any kind, to be run with one seed or many.

use std::fs::File;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use dormouse_analysis::{RunMode, RunRecord, RunSample, RunTally};
use dormouse_engine::drive::PlayError;
use dormouse_model::Step;
use dormouse_workload::Jobs;
use serde::Serialize;

use super::{OwnProgram, RunError, SampleSource, SharedInputs, SweepError};
use dormouse_experiment::command_line;
use dormouse_experiment::{
    BatchSetup, Experiment, ExperimentSource, InputError, Override, Place, ProgramStart, open,
};
use dormouse_report::jobs::JobsError;
use dormouse_report::output::LogHeader;
use dormouse_report::run_view::RunResults;
use dormouse_report::virtual_run::{model, play_out, virtual_run};

/// An experiment with settings but without a seed, and its name in tables.
#[derive(Clone, Debug)]
pub struct SweepCell {
    /// Name of the cell, such as `j60-sc2/burst-hads`.
    pub case: String,
    /// The experiment's file, or the name of a built-in experiment.
    pub name: String,
    /// The cell's settings: the arguments of `--set`.
    pub set: Vec<String>,
    /// The experiment; each run replaces its seed.
    pub experiment: Experiment,
    /// The user's own program that the cell's tasks run, if any.
    own: OwnProgram,
    seed: Option<u64>,
    digest: OnceLock<String>,
}

impl SweepCell {
    /// Loads the built-in experiment or file `name` with these settings (`key=value`).
    ///
    /// # Errors
    ///
    /// The experiment is wrong.
    pub fn load(case: &str, name: &str, set: &[String]) -> Result<Self, InputError> {
        Self::load_as_said(case, (name, &OwnProgram::default()), set, &|_| "--set")
    }

    /// Loads a built-in experiment or file as [`Self::load`] does, with a user's own program; `said_with` names the option that
    /// each setting came from, for error messages.
    ///
    /// # Errors
    ///
    /// The experiment is wrong.
    pub(crate) fn load_as_said(
        case: &str,
        (name, own): (&str, &OwnProgram),
        set: &[String],
        said_with: &dyn Fn(&str) -> &'static str,
    ) -> Result<Self, InputError> {
        let said = |text: &String| Ok(Override { option: said_with(text), ..Override::set(text)? });
        let mut overrides = set.iter().map(said).collect::<Result<Vec<_>, InputError>>()?;
        overrides.extend(own.settings());
        let (experiment, own_said) = (Some(name), own.said());
        let loaded = open(&ExperimentSource {
            experiment,
            overrides,
            own: own_said,
            ..ExperimentSource::default()
        })?;
        if let Some(why) = loaded.experiment.unknown_runtime() {
            return Err(InputError::new(
                &Place::whole(name),
                why,
                "give it a runtime: compare and sweep run in virtual time, where nothing can be measured",
            ));
        }
        // A plan without a search finds out before any run whether the bag can be scheduled.
        let mut probe = loaded.clone();
        if let Some(config) = &mut probe.experiment.scheduler {
            (config.max_iteration, config.max_attempt) = (0, 0);
        }
        probe.planned()?;
        Ok(Self {
            case: case.to_owned(),
            name: name.to_owned(),
            set: set.to_vec(),
            experiment: loaded.experiment,
            own: own.clone(),
            seed: None,
            digest: OnceLock::new(),
        })
    }

    /// Makes the cell run with the experiment's own seed only.
    pub(super) fn under_its_seed(self) -> Self {
        Self { seed: Some(self.experiment.setup.seed), ..self }
    }

    /// Reads or generates the cell's parallel jobs, if it has any, so that errors appear before any run.
    pub(crate) fn check(&self, seed: u64, shared: &SharedInputs) -> Result<(), SweepError> {
        let Some(batch) = &self.experiment.jobs else { return Ok(()) };
        let jobs = self.jobs(batch, seed, shared);
        jobs.map(|_| ()).map_err(SweepError::of_run(&self.case, seed))
    }

    fn jobs(
        &self,
        batch: &BatchSetup,
        seed: u64,
        shared: &SharedInputs,
    ) -> Result<Jobs, JobsError> {
        Ok(Jobs::listed(&batch.wanted(seed), &self.case, &shared.jobs(batch, seed)?)?)
    }

    /// Words of the command that makes a single run of the cell, with all files, under the experiment's own seed.
    #[must_use]
    pub fn run_words(&self) -> Vec<String> {
        let run = ["dormouse", "run"].into_iter().chain(self.own.on(&self.name));
        let set = self.set.iter().flat_map(|set| ["--set", set]);
        let words = run.chain(set).map(str::to_owned);
        words.chain(self.own.words().iter().cloned()).collect()
    }

    /// Command that makes the cell's figures alone, to the last digit, in its `table.csv`.
    pub fn command(&self, seeds: &RangeInclusive<u64>) -> String {
        let mut words = vec!["dormouse".to_owned(), "sweep".to_owned(), self.name.clone()];
        words.extend(self.set.iter().flat_map(|set| ["--set".to_owned(), set.clone()]));
        let seeds = self.seeds(seeds);
        if seeds.start() == seeds.end() {
            words.extend(["--set".to_owned(), format!("seed={}", seeds.start())]);
        } else {
            words.extend(["--seeds".to_owned(), seeds.end().to_string()]);
        }
        command_line(words)
    }

    fn sample(&self, seed: u64, shared: &SharedInputs) -> Result<RunSample, RunError> {
        let experiment = self.with_seed(seed, shared)?;
        if experiment.scheduler.is_none()
            && let Some(batch) = &experiment.jobs
        {
            return self.run_jobs(&experiment, batch, shared);
        }
        let mut tally = RunTally::new(&experiment.whole_setup(), experiment.tenants(), None);
        let run = virtual_run(&experiment, experiment.scheduler()?, |step| tally.see(step))?;
        Ok(tally.sample(&run, 0))
    }

    fn run_jobs(
        &self,
        experiment: &Experiment,
        batch: &BatchSetup,
        shared: &SharedInputs,
    ) -> Result<RunSample, RunError> {
        let jobs = self.jobs(batch, experiment.setup.seed, shared)?;
        let mut run = experiment.start(None, ProgramStart::VIRTUAL).map_err(JobsError::from)?;
        let setup = experiment.whole_setup();
        let mut tally = RunTally::new(&setup, experiment.tenants(), jobs.known());
        let see = |step: &Step| {
            tally.see(step);
            Ok(())
        };
        let played = play_out(experiment, &mut run, &mut model(experiment), Some(jobs), see);
        played.map_err(|error| match error {
            PlayError::Outside(error) => error,
            PlayError::Scheduler(why) => JobsError::Scheduler(why),
            stuck => JobsError::Schedule(stuck.to_string()),
        })?;
        Ok(tally.sample(&run, batch.workload.processors))
    }

    /// Gantt chart of a bag's run with one seed, an SVG document.
    ///
    /// # Errors
    ///
    /// The run can't be made.
    pub fn gantt(&self, seed: u64, shared: &SharedInputs) -> Result<String, SweepError> {
        let wrong = SweepError::of_run(&self.case, seed);
        let experiment = self.with_seed(seed, shared).map_err(&wrong)?;
        let mut record = RunRecord::new(&experiment.setup);
        let scheduler = experiment.scheduler().map_err(|error| wrong(error.into()))?;
        virtual_run(&experiment, scheduler, |step| record.see(step))
            .map_err(|error| wrong(error.into()))?;
        let plan = experiment.scheduler.as_ref().and_then(|config| config.plan.clone());
        let header = LogHeader::new(RunMode::Virtual, String::new(), experiment);
        let results = RunResults { record: Some(record), plan, ..RunResults::new(&header) };
        Ok(results.view().gantt.to_svg())
    }

    fn with_seed(&self, seed: u64, shared: &SharedInputs) -> Result<Experiment, RunError> {
        let mut experiment = self.experiment.clone();
        experiment.seed(seed);
        let plan = shared.plan(&experiment)?;
        if let Some(config) = &mut experiment.scheduler {
            config.plan = plan;
        }
        Ok(experiment)
    }
}

impl SampleSource for SweepCell {
    fn case(&self) -> &str {
        &self.case
    }

    fn digest(&self) -> &str {
        self.digest.get_or_init(|| {
            let mut experiment = self.experiment.clone();
            experiment.seed(0);
            let programs = experiment.program_files();
            let files = experiment.streamed().chain(programs.iter().map(PathBuf::as_path));
            let files: Vec<_> = files.map(digest_of_file).collect();
            digest_of(&(experiment, files))
        })
    }

    fn seeds(&self, wanted: &RangeInclusive<u64>) -> RangeInclusive<u64> {
        self.seed.map_or_else(|| wanted.clone(), |seed| seed..=seed)
    }

    fn run(&self, seed: u64, shared: &SharedInputs) -> Result<RunSample, SweepError> {
        self.sample(seed, shared).map_err(SweepError::of_run(&self.case, seed))
    }
}

/// Digest of a value and of this program.
pub(crate) fn digest_of(what: &impl Serialize) -> String {
    let mut hasher = blake3::Hasher::new();
    hasher.update(program_digest().as_bytes());
    hasher.update(serde_json::json!(what).to_string().as_bytes());
    hasher.finalize().to_hex()[..24].to_owned()
}

/// Digest of a file's content; `None` if it can't be read, which the run will report.
pub(crate) fn digest_of_file(file: &Path) -> Option<String> {
    let hash = |file| blake3::Hasher::new().update_reader(file).map(|h| h.finalize());
    File::open(file).and_then(hash).ok().map(|hash| hash.to_hex().to_string())
}

/// Identifier of this build: results of another program are not reused.
fn program_digest() -> &'static str {
    static PROGRAM: OnceLock<String> = OnceLock::new();
    PROGRAM.get_or_init(|| {
        let image = std::env::current_exe().and_then(std::fs::read);
        image.map_or_else(
            |_| env!("CARGO_PKG_VERSION").to_owned(),
            |image| blake3::hash(&image).to_hex().to_string(),
        )
    })
}
