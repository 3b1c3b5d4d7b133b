//! Descriptions of the parallel jobs of a run: the source of the jobs, and settings for properties that the source
//! lacks.

use std::path::PathBuf;

use dormouse_cloud::BurstableTerms;
use dormouse_model::Submission;
use dormouse_units::{Bytes, Ppm, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{LogRules, Model, ModelTargets};

/// Parallel jobs and the machine that they are for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct BatchWorkload {
    /// Source of the jobs.
    #[serde(flatten)]
    pub source: JobSource,
    /// Number of processors of the machine.
    pub processors: u32,
    /// Memory of each processor, for the processes that are on it; `None`: it is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_per_processor: Option<Bytes>,
    /// Rates at which the machine earns CPU credits; `None`: its processors always have full speed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub burstable: Option<BurstableTerms>,
    /// The offered load, reached by scaling the times between submissions; `None`: they stay as
    /// they are.
    pub load: Option<f64>,
    /// CPU usage of jobs whose source does not say it.
    pub usage: UsageKind,
}

/// Source of parallel jobs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", rename_all_fields = "kebab-case")]
pub enum JobSource {
    /// A log of jobs: in the Standard Workload Format, of Batsim or of `sacct`, packed or not.
    Swf {
        /// Path of the log.
        log: PathBuf,
        /// Rules for the log's oddities.
        #[serde(flatten)]
        rules: LogRules,
        /// Estimates of run times by the log's users.
        #[serde(default = "given_estimates", skip_serializing_if = "is_given")]
        estimates: Estimates,
        /// Number of the log's first jobs that are used; `None`: all.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        first: Option<usize>,
    },
    /// Jobs that a model generates.
    Model {
        /// The model's name.
        model: Model,
        /// The number of jobs.
        jobs: usize,
        /// Estimates of run times by the jobs' users.
        estimates: Estimates,
        /// Shape of a calibrated model.
        #[serde(default, skip_serializing_if = "is_standard")]
        shape: Shape,
    },
    /// Jobs that are listed in the description of the workload itself.
    Jobs {
        /// The jobs, in order of submission.
        job: Vec<JobSpec>,
    },
}

/// A parallel job.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct JobSpec {
    /// When the job is submitted, from the beginning.
    #[serde(default)]
    pub submitted: Span,
    /// The job's processes, each of which wants a processor.
    #[serde(default = "one_job")]
    #[schemars(range(min = 1))]
    pub processes: u32,
    /// How long the job runs on processors of its own.
    #[schemars(example = "120s")]
    pub runtime: Span,
    /// How long the job's user says that it runs; as long as it does where it is not given.
    pub estimate: Option<Span>,
    /// CPU usage of each process; as `usage` of the workload says where it is not given.
    #[schemars(range(min = 0.01, max = 1.0))]
    pub usage: Option<Ppm>,
    /// Memory that each process needs.
    #[serde(default, skip_serializing_if = "Bytes::is_zero")]
    #[schemars(extend("default" = "0 B"))]
    pub memory: Bytes,
}

const fn one_job() -> u32 {
    1
}

/// How CPU usage is assigned.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum UsageKind {
    /// Drawn from 40 to 100 % for each process of a larger job; 100 % for a single one
    /// (section 3.1 of the MEASY paper).
    #[default]
    Drawn,
    /// Usage is drawn once for all processes of a job: the paper's text can be read so, too.
    DrawnEachJob,
    /// 100 %.
    Full,
}

/// How users estimate the run time of their jobs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Estimates {
    /// Drawn by the model of Tsafrir 2005; only for generated jobs.
    #[default]
    Tsafrir,
    /// Estimates as the log has them.
    Given,
    /// The run time.
    Exact,
    /// Twice the run time.
    Double,
}

impl Estimates {
    /// Returns `job` with its estimate of the run time replaced by one of this kind; `job` comes with the estimate of
    /// the log or of Tsafrir's model.
    #[must_use]
    pub fn apply(self, job: Submission) -> Submission {
        match self {
            Self::Tsafrir | Self::Given => job,
            Self::Exact => Submission { estimate: job.runtime, is_cut: false, ..job },
            Self::Double => {
                Submission { estimate: job.runtime + job.runtime, is_cut: false, ..job }
            }
        }
    }
}

const fn given_estimates() -> Estimates {
    Estimates::Given
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde gives references")]
fn is_given(estimates: &Estimates) -> bool {
    *estimates == Estimates::Given
}

/// The shape of a calibrated model, whose means are those of the MEASY paper in any case: what a
/// generated workload can't know of the one it stands for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Shape {
    /// The shape of the model itself.
    #[default]
    Standard,
    /// A long run is 150 times as long as a short one, not 15, and both are exponential: so more
    /// jobs are short.
    ManyShort,
    /// No job runs for more than 6 h, not 18.
    SixHours,
    /// Poisson arrivals.
    Steady,
    /// The larger a job, the less likely it is a long one: so more jobs make the same load.
    SmallRunLong,
}

impl Shape {
    /// The targets with the changes that this shape makes.
    #[must_use]
    pub fn apply(self, targets: ModelTargets) -> ModelTargets {
        match self {
            Self::Standard => targets,
            Self::ManyShort => ModelTargets { long_over_short: 150.0, stages: 1, ..targets },
            Self::SixHours => ModelTargets { longest: Span::from_secs(21_600), ..targets },
            Self::Steady => ModelTargets { bursts: None, ..targets },
            Self::SmallRunLong => ModelTargets { long: (0.6, -0.6), ..targets },
        }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde gives references")]
fn is_standard(shape: &Shape) -> bool {
    *shape == Shape::Standard
}
