//! A batch experiment in virtual time, and what it leaves behind.

use std::fmt;
use std::fs::File;
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};

use dormouse_batch::{Decision, Move, Observer, Record, SimulationError, Tier, Totals, simulate};
use dormouse_units::{Span, Time};
use dormouse_workload::{EstimatesError, Header, ModelError, Moments, SwfError, SwfJob, SwfWriter};
use sha2::{Digest, Sha256};

use crate::experiment::BatchExperiment;
use crate::jobs_csv::JobsCsv;

/// Why a run stopped.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The log.
    #[error(transparent)]
    Swf(#[from] SwfError),
    /// The model.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// The estimates.
    #[error(transparent)]
    Estimates(#[from] EstimatesError),
    /// The schedule.
    #[error("{0}")]
    Simulation(String),
    /// A log without a load.
    #[error("{} has no load to scale: it needs two jobs submitted at different times", path.display())]
    NoLoad {
        /// Which log.
        path: PathBuf,
    },
    /// A job that is not there.
    #[error("there is no job {0} in the workload")]
    NoJob(u64),
    /// A result can't be written.
    #[error("can't write {}", path.display())]
    Write {
        /// Where.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

impl RunError {
    /// Exit status: 2 if the input is at fault, 1 otherwise.
    #[must_use]
    pub const fn exit_status(&self) -> u8 {
        match self {
            Self::Write { .. } => 1,
            _ => 2,
        }
    }
}

impl From<SimulationError<Self>> for RunError {
    fn from(error: SimulationError<Self>) -> Self {
        match error {
            SimulationError::Outside(error) => error,
            other => Self::Simulation(other.to_string()),
        }
    }
}

/// What a run came to.
#[derive(Clone, Debug)]
pub struct Summary {
    experiment: String,
    scheduler: &'static str,
    seed: u64,
    totals: Totals,
    response: Moments,
    slowdown: Moments,
    wait: Moments,
    makespan: Span,
    decisions_sha256: String,
}

impl Summary {
    /// As `summary.json` has it.
    #[must_use]
    pub fn json(&self) -> String {
        let value = serde_json::json!({
            "experiment": self.experiment,
            "scheduler": self.scheduler,
            "mode": "virtual",
            "seed": self.seed,
            "makespan_s": self.makespan.as_secs_f64(),
            "tasks": { "total": self.totals.jobs, "completed": self.totals.jobs, "failed": 0 },
            "mean_response_s": self.response.mean(),
            "mean_bounded_slowdown": self.slowdown.mean(),
            "mean_wait_s": self.wait.mean(),
            "counts": {
                "migrations": self.totals.migrations,
                "kills": self.totals.kills,
                "swaps": self.totals.swaps,
                "background_only": self.totals.background_only,
            },
            "most_jobs_in_system": self.totals.most_in_system,
            "easy_variant": "extra nodes; estimates as given; no kill at the estimate; \
                             ties by order of submission",
            "decisions_sha256": self.decisions_sha256,
        });
        format!("{value:#}")
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} under {}, seed {}", self.experiment, self.scheduler, self.seed)?;
        writeln!(f, "jobs               {:>14}", self.totals.jobs)?;
        writeln!(f, "makespan           {:>14.0} s", self.makespan.as_secs_f64())?;
        writeln!(f, "mean response      {:>14.1} s", self.response.mean())?;
        writeln!(f, "mean wait          {:>14.1} s", self.wait.mean())?;
        writeln!(f, "bounded slowdown   {:>14.2}", self.slowdown.mean())?;
        let Totals { swaps, kills, migrations, background_only, .. } = self.totals;
        writeln!(
            f,
            "promotions: {swaps} swaps, {kills} kills, {migrations} migrations; {background_only} \
             jobs ended in the background"
        )
    }
}

/// Writes every job as it ends, and digests every decision.
struct Results {
    csv: JobsCsv<BufWriter<File>>,
    swf: SwfWriter<BufWriter<File>>,
    csv_path: PathBuf,
    swf_path: PathBuf,
    digest: Sha256,
    response: Moments,
    slowdown: Moments,
    wait: Moments,
    first: Option<Time>,
}

impl Observer for Results {
    type Error = RunError;

    fn decided(&mut self, now: Time, _: u64, decision: &Decision) -> Result<(), RunError> {
        let (what, attempt, on) = match decision {
            Decision::Start { attempt, tier, on, .. } => {
                (if *tier == Tier::Foreground { 0 } else { 1 }, attempt, &on[..])
            }
            Decision::Promote { attempt, by, .. } => match by {
                Move::Swap => (2, attempt, &[][..]),
                Move::Kill { on } => (3, attempt, &on[..]),
                Move::Migrate { on } => (4, attempt, &on[..]),
            },
        };
        self.digest.update(now.as_micros().to_le_bytes());
        self.digest.update(decision.job().get().to_le_bytes());
        self.digest.update([what]);
        self.digest.update(attempt.get().to_le_bytes());
        for p in on {
            self.digest.update(p.to_le_bytes());
        }
        Ok(())
    }

    fn ended(&mut self, record: Record) -> Result<(), RunError> {
        self.first = self.first.min(Some(record.submitted)).or(Some(record.submitted));
        self.response.add(record.response().as_secs_f64());
        self.slowdown.add(record.bounded_slowdown());
        self.wait.add(record.started.since(record.submitted).as_secs_f64());
        self.csv.write(&record).map_err(write_error(&self.csv_path))?;
        self.swf.write(&swf_job(&record)).map_err(write_error(&self.swf_path))
    }
}

/// A scheduled job as a line of an SWF log, in whole seconds.
fn swf_job(record: &Record) -> SwfJob {
    let seconds = |span: Span| i64::try_from(span.as_micros() / 1_000_000).unwrap_or(i64::MAX);
    let size = i64::from(record.processes);
    SwfJob {
        number: i64::try_from(record.number).unwrap_or(-1),
        submitted: seconds(record.submitted.since(Time::ZERO)),
        wait: seconds(record.started.since(record.submitted)),
        run_time: seconds(record.ended.since(record.started)),
        allocated: size,
        requested: size,
        requested_time: seconds(record.estimate),
        status: 1,
        ..SwfJob::UNKNOWN
    }
}

/// Runs `experiment` and leaves `jobs.csv`, `schedule.swf` and `summary.json` in `out`.
///
/// # Errors
///
/// See [`RunError`].
pub fn run_experiment(experiment: &BatchExperiment, out: &Path) -> Result<Summary, RunError> {
    std::fs::create_dir_all(out).map_err(write_error(out))?;
    let jobs = experiment.jobs()?;
    let (csv_path, swf_path) = (out.join("jobs.csv"), out.join("schedule.swf"));
    let create = |path: &Path| File::create(path).map(BufWriter::new).map_err(write_error(path));
    let mut header = Header::default();
    header.set("Version", "2.2");
    header.set("MaxProcs", jobs.machine);
    header.set("Note", format!("schedule of {}, jobs as they ended", experiment.name));
    let csv = JobsCsv::new(create(&csv_path)?, &experiment.name).map_err(write_error(&csv_path))?;
    let swf = SwfWriter::new(create(&swf_path)?, &header).map_err(write_error(&swf_path))?;
    let mut results = Results {
        csv,
        swf,
        csv_path,
        swf_path,
        digest: Sha256::new(),
        response: Moments::default(),
        slowdown: Moments::default(),
        wait: Moments::default(),
        first: None,
    };
    let totals = simulate(jobs.stream, &experiment.setup(jobs.machine), &mut results)?;
    let Results { csv, swf, csv_path, swf_path, digest, response, slowdown, wait, first } = results;
    csv.finish().map_err(write_error(&csv_path))?;
    swf.finish().map_err(write_error(&swf_path))?;
    let decisions_sha256 = digest.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
    let summary = Summary {
        experiment: experiment.name.clone(),
        scheduler: experiment.scheduler.name.0.name(),
        seed: experiment.seed,
        totals,
        response,
        slowdown,
        wait,
        makespan: totals.end.since(first.unwrap_or_default()),
        decisions_sha256,
    };
    let path = out.join("summary.json");
    std::fs::write(&path, summary.json()).map_err(write_error(&path))?;
    Ok(summary)
}

fn write_error(path: &Path) -> impl Fn(io::Error) -> RunError + '_ {
    |source| RunError::Write { path: path.to_owned(), source }
}
