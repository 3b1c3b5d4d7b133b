//! What the `dormouse` command offers of batch experiments. Each argument type has a `run`
//! that does the work, prints to `out`, and gives back an error with its exit status.

use std::io::Write;
use std::path::PathBuf;

use crate::experiment::{BatchExperiment, ExperimentError};
use crate::explain::explain;
use crate::reproduce::{Figure, Options, ReproduceError, reproduce};
use crate::run::{RunError, run_experiment};

/// Why a command stopped.
#[derive(Debug, thiserror::Error)]
pub enum CliError {
    /// The experiment file.
    #[error(transparent)]
    Experiment(#[from] ExperimentError),
    /// The run.
    #[error(transparent)]
    Run(#[from] RunError),
    /// The evaluation.
    #[error(transparent)]
    Reproduce(#[from] ReproduceError),
    /// A figure that the paper does not have.
    #[error("there is no figure '{name}'; there are {}", known.join(", "))]
    NoFigure {
        /// What was asked for.
        name: String,
        /// What there is.
        known: Vec<&'static str>,
    },
}

impl CliError {
    /// Exit status: 2 if the input is at fault, 1 if the run broke.
    #[must_use]
    pub const fn exit_status(&self) -> u8 {
        match self {
            Self::Experiment(_) | Self::NoFigure { .. } => 2,
            Self::Run(error) => error.exit_status(),
            Self::Reproduce(error) => error.exit_status(),
        }
    }
}

/// `dormouse run EXPERIMENT --virtual`, of a batch experiment.
#[derive(Clone, Debug, clap::Args)]
pub struct RunArgs {
    /// The experiment file.
    pub experiment: PathBuf,
    /// Instead of the experiment's seed.
    #[arg(long)]
    pub seed: Option<u64>,
    /// Instead of the experiment's scheduler: fcfs, easy, keasy, reasy or measy.
    #[arg(long)]
    pub scheduler: Option<dormouse_batch::Algorithm>,
    /// Where the results go.
    #[arg(long)]
    pub out: PathBuf,
    /// Print the summary as JSON.
    #[arg(long)]
    pub json: bool,
}

impl RunArgs {
    /// Runs it: `jobs.csv`, `schedule.swf` and `summary.json` in the folder, a table on `out`.
    ///
    /// # Errors
    ///
    /// See [`CliError`].
    pub fn run(&self, out: &mut dyn Write) -> Result<(), CliError> {
        let mut experiment = BatchExperiment::load(&self.experiment)?;
        experiment.seed = self.seed.unwrap_or(experiment.seed);
        experiment.scheduler.name = self.scheduler.map_or(experiment.scheduler.name, Into::into);
        let summary = run_experiment(&experiment, &self.out)?;
        let _ =
            if self.json { writeln!(out, "{}", summary.json()) } else { write!(out, "{summary}") };
        Ok(())
    }
}

/// `dormouse explain EXPERIMENT JOB`, of a batch experiment.
#[derive(Clone, Debug, clap::Args)]
pub struct ExplainArgs {
    /// The experiment file.
    pub experiment: PathBuf,
    /// The job's number in the workload.
    pub job: u64,
}

impl ExplainArgs {
    /// Says when the job could have run, what it waited for and why it was moved.
    ///
    /// # Errors
    ///
    /// See [`CliError`].
    pub fn run(&self, out: &mut dyn Write) -> Result<(), CliError> {
        let experiment = BatchExperiment::load(&self.experiment)?;
        let _ = write!(out, "{}", explain(&experiment, self.job)?);
        Ok(())
    }
}

/// `dormouse reproduce measy[/FIGURE]`.
#[derive(Clone, Debug, clap::Args)]
pub struct ReproduceArgs {
    /// One figure only, such as figure-6 or kth-cost.
    pub figure: Option<String>,
    /// The log of KTH-SP2; without it what needs it is left out.
    #[arg(long)]
    pub kth: Option<PathBuf>,
    /// Only this many jobs of each workload, for a quick look.
    #[arg(long)]
    pub jobs: Option<usize>,
    /// For all chance.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Threads; all cores if not given. The results do not depend on it.
    #[arg(long)]
    pub threads: Option<usize>,
    /// Where `table.csv`, `report.md` and the plots go.
    #[arg(long, default_value = "runs/measy")]
    pub out: PathBuf,
}

impl ReproduceArgs {
    /// Runs all simulations and prints the report; `progress` is told how many of how many
    /// are done.
    ///
    /// # Errors
    ///
    /// See [`CliError`].
    pub fn run(
        &self,
        out: &mut dyn Write,
        progress: impl Fn(usize, usize) + Sync,
    ) -> Result<(), CliError> {
        let figures = match &self.figure {
            None => Figure::all(),
            Some(name) => vec![Figure::named(name).ok_or_else(|| CliError::NoFigure {
                name: name.clone(),
                known: Figure::all().into_iter().map(Figure::name).collect(),
            })?],
        };
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let options = Options {
            figures,
            kth: self.kth.clone(),
            most_jobs: self.jobs,
            seed: self.seed,
            threads: self.threads.unwrap_or(cores),
            out: self.out.clone(),
        };
        let report = reproduce(&options, progress)?;
        let _ = write!(out, "{report}");
        Ok(())
    }
}
