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
    /// Jobs from a log: in the Standard Workload Format, a workload of Batsim or output of `sacct`, packed or not.
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
    /// Submission time of the job, counted from the beginning of the workload.
    #[serde(default)]
    pub submitted: Span,
    /// The job's processes, each of which wants a processor.
    #[serde(default = "one_job")]
    #[schemars(range(min = 1))]
    pub processes: u32,
    /// Run time of the job when each of its processes has a whole processor.
    #[schemars(example = "120s")]
    pub runtime: Span,
    /// Run time that the job's user estimates; if it is not given, the estimate is exactly the run time.
    pub estimate: Option<Span>,
    /// CPU usage of each process, as a share of one processor; if it is not given, assigned by the workload's
    /// `usage`.
    #[schemars(range(min = 0.01, max = 1.0))]
    pub usage: Option<Ppm>,
    /// Memory that each process needs.
    #[serde(default, skip_serializing_if = "Bytes::is_zero")]
    #[schemars(extend("default" = "0 B"))]
    pub memory: Bytes,
    /// Priority of the job: the scheduler `priority` takes the greatest first.
    #[serde(default, skip_serializing_if = "is_zero")]
    #[schemars(extend("default" = 0))]
    pub priority: i64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "as serde calls it")]
const fn is_zero(priority: &i64) -> bool {
    *priority == 0
}

const fn one_job() -> u32 {
    1
}

/// How CPU usage is assigned.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum UsageKind {
    /// CPU usage is drawn from 40 to 100 % for each process of a job with several processes, and is 100 % for a
    /// single process (section 3.1 of the MEASY paper).
    #[default]
    Drawn,
    /// CPU usage is drawn from 40 to 100 %, but once for all processes of a job: the MEASY paper's text allows this
    /// reading, too.
    DrawnEachJob,
    /// Every process uses 100 % of its processor.
    Full,
}

/// How users estimate the run time of their jobs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Estimates {
    /// Users' estimates are drawn by the model of Tsafrir 2005; only for generated jobs.
    #[default]
    Tsafrir,
    /// Estimates of the users as the log gives them.
    Given,
    /// Every user estimates the run time of the job exactly.
    Exact,
    /// Every user estimates twice the run time of the job.
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

/// Variant of the workload model that is calibrated to the MEASY paper. All variants have the paper's mean run time
/// and mean job size, but differ in what the paper does not print.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Shape {
    /// The calibrated workload model without any change.
    #[default]
    Standard,
    /// The mean of long runs is 150 times the mean of short ones, not 15, and both are exponentially distributed: so
    /// more jobs are short.
    ManyShort,
    /// No job runs for more than 6 h, instead of 18 h.
    SixHours,
    /// Jobs arrive as a Poisson process, without bursts.
    Steady,
    /// The larger a job, the smaller its chance of a long run, so that more jobs are needed for an equal load.
    SmallRunLong,
}

impl Shape {
    /// The model's targets with the changes that this variant makes to them.
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
