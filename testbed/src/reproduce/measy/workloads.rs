//! The three workloads, at the load they have until a cell scales them: those of the built-in
//! experiments of the same names.

use std::path::Path;
use std::sync::Arc;

use dormouse_policies::batch::Submission;
use dormouse_workload::{Trace, offered_load};

use super::evaluate::ReproduceError;
use super::setting::Shape;
use crate::experiment::{Batch, JobSource, Override, Source as File, open};
use crate::jobs::{JobsError, generated};
use crate::sweep::{digest_of, digest_of_log};

/// Where a workload comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Source {
    /// Like FWload: 200,000 jobs.
    FwLike,
    /// Like JWload: 100,000 jobs.
    JwLike,
    /// The log of the KTH's SP2, its users' own estimates: 28,475 jobs.
    Kth,
}

impl Source {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::FwLike, Self::JwLike, Self::Kth];

    /// Its name in tables, which is that of its built-in experiment.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::FwLike => "fw-like",
            Self::JwLike => "jw-like",
            Self::Kth => "kth-sp2",
        }
    }

    /// What its built-in experiment is told for all its jobs, or the first `most`: the arguments of
    /// `--set`. An experiment of a log has no word for the first jobs of it.
    pub(super) fn sets(self, kth: Option<&Path>, most: Option<usize>) -> Vec<String> {
        match (self, kth, most) {
            (Self::Kth, Some(log), _) => {
                let log = log.to_string_lossy().into_owned();
                vec![Override::text("--kth", "workload.log", &log).to_string()]
            }
            (Self::FwLike | Self::JwLike, _, Some(most)) => {
                vec![format!("workload.jobs={}", most.max(2))]
            }
            _ => Vec::new(),
        }
    }
}

/// Jobs for cells to run.
#[derive(Clone, Debug)]
pub struct Workload {
    /// Where they come from.
    pub source: Source,
    /// In order of submission.
    pub jobs: Arc<[Submission]>,
    /// Processors of its machine.
    pub machine: u32,
    /// Its load as it is.
    pub load: f64,
    /// The built-in experiment.
    pub(super) batch: Arc<Batch>,
    /// Of all that its jobs depend on, the program aside.
    pub(super) digest: String,
}

impl Workload {
    /// Makes or reads it: all its jobs, or the first `most`.
    pub(super) fn make(
        (source, shape): (Source, Shape),
        kth: Option<&Path>,
        most: Option<usize>,
        seed: u64,
    ) -> Result<Self, ReproduceError> {
        if source == Source::Kth && kth.is_none() {
            return Err(ReproduceError::NoKth);
        }
        let batch = built_in(source, &source.sets(kth, most))?;
        let machine = batch.workload.processors;
        let jobs = match &batch.workload.source {
            JobSource::Model { model, jobs, estimates } => {
                generated(*model, |targets| shape.of(targets), (*jobs, machine), *estimates, seed)?
            }
            JobSource::Swf { log, on_malformed } => {
                let trace = Trace::open(log, Some(machine), *on_malformed)?;
                trace.take(most.unwrap_or(usize::MAX)).collect::<Result<Vec<_>, _>>()?
            }
            JobSource::Jobs { .. } => return Err(no_jobs(source)),
        };
        let load = offered_load(&jobs, machine);
        let log = digest_of_log(&batch);
        let digest = digest_of(&(source.name(), format!("{shape:?}"), most, seed, log));
        Ok(Self { source, jobs: jobs.into(), machine, load, batch: Arc::new(batch), digest })
    }
}

fn built_in(source: Source, sets: &[String]) -> Result<Batch, ReproduceError> {
    let overrides = sets.iter().map(|text| Override::set(text)).collect::<Result<_, _>>()?;
    let file = File { experiment: Some(source.name()), overrides, ..File::default() };
    open(&file)?.experiment.jobs.map(|batch| *batch).ok_or_else(|| no_jobs(source))
}

fn no_jobs(source: Source) -> ReproduceError {
    let what = format!("the built-in experiment {} has no log and no model", source.name());
    JobsError::Schedule(what).into()
}
