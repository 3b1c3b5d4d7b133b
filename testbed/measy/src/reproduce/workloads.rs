//! The three workloads, at load 1 until a cell scales them.

use std::path::Path;
use std::sync::Arc;

use dormouse_policies::batch::Submission;
use dormouse_units::Span;
use dormouse_workload::{Model, OnMalformed, Trace, offered_load, tsafrir_estimates};

use super::evaluate::ReproduceError;
use super::setting::Shape;

/// Longest estimate of the generated workloads: 18 h, as their longest run time.
const LONGEST: Span = Span::from_secs(64_800);
/// Processors in the paper's simulated system.
const PROCESSORS: u32 = 320;

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

    /// Its name in tables.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::FwLike => "fw-like",
            Self::JwLike => "jw-like",
            Self::Kth => "kth-sp2",
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
}

impl Workload {
    /// Makes or reads it: all its jobs, or the first `most`.
    pub(super) fn make(
        (source, shape): (Source, Shape),
        kth: Option<&Path>,
        most: Option<usize>,
        seed: u64,
    ) -> Result<Self, ReproduceError> {
        let generated = |model: Model, jobs: usize| -> Result<_, ReproduceError> {
            let jobs = most.map_or(jobs, |most| most.min(jobs)).max(2);
            let mut jobs = match model.targets() {
                Some(targets) => shape.of(targets).generate(jobs, PROCESSORS, seed)?,
                None => model.generate(jobs, PROCESSORS, seed)?,
            };
            tsafrir_estimates(&mut jobs, LONGEST, seed)?;
            Ok((jobs, PROCESSORS))
        };
        let (jobs, machine) = match (source, kth) {
            (Source::FwLike, _) => generated(Model::FwLike, 200_000)?,
            (Source::JwLike, _) => generated(Model::JwLike, 100_000)?,
            (Source::Kth, None) => return Err(ReproduceError::NoKth),
            (Source::Kth, Some(path)) => {
                let trace = Trace::open(path, None, OnMalformed::Fail)?;
                let machine = trace.machine();
                let most = most.unwrap_or(usize::MAX);
                (trace.take(most).collect::<Result<Vec<_>, _>>()?, machine)
            }
        };
        let load = offered_load(&jobs, machine);
        Ok(Self { source, jobs: jobs.into(), machine, load })
    }
}
