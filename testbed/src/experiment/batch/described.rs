//! The parallel jobs of an experiment with everything resolved.

use std::path::PathBuf;

use dormouse_cloud::Burstable;
use dormouse_engine::jobs::Simulation;
use dormouse_policies::CheckpointConfig;
use dormouse_policies::batch::{
    Algorithm, Config, Fill, OnPromotion, Submission, UsageInformation,
};
use dormouse_units::{Bytes, Ppm, Span};
use dormouse_vm::Sharing;
use dormouse_workload::{LogRules, Model, Targets};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A batch: parallel jobs, who schedules them on which machine, and how its processors are shared.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Batch {
    /// The jobs.
    pub workload: BatchWorkload,
    /// The scheduler and its parameters.
    pub scheduler: BatchScheduler,
    /// When its jobs are checkpointed; `None`: never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checkpoint: Option<CheckpointConfig>,
    /// How the two VMs of a processor share it, in virtual time.
    pub sharing: Sharing,
}

/// `[workload]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct BatchWorkload {
    /// Where the jobs come from.
    #[serde(flatten)]
    pub source: JobSource,
    /// Processors of the machine.
    pub processors: u32,
    /// Memory of each processor, for the processes that are on it; `None`: nobody says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_per_processor: Option<Bytes>,
    /// How the machine earns credits; `None`: its processors always have full speed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub burstable: Option<Burstable>,
    /// The offered load, by scaling the times between submissions; `None`: as it is.
    pub load: Option<f64>,
    /// CPU usage where a job does not say.
    pub usage: UsageKind,
}

/// Where jobs come from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", rename_all_fields = "kebab-case")]
pub enum JobSource {
    /// A log in the Standard Workload Format, plain or gzipped.
    Swf {
        /// The file.
        log: PathBuf,
        /// What is made of what is odd in it.
        #[serde(flatten)]
        rules: LogRules,
        /// What its users say of their jobs.
        #[serde(default = "given", skip_serializing_if = "is_given")]
        estimates: Estimates,
        /// Only its first jobs, so many; `None`: all.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        first: Option<usize>,
    },
    /// A model.
    Model {
        /// The model's name.
        model: Model,
        /// The number of jobs.
        jobs: usize,
        /// What their users say.
        estimates: Estimates,
        /// What a calibrated model aims at.
        #[serde(default, skip_serializing_if = "is_standard")]
        shape: Shape,
    },
    /// The experiment itself.
    Jobs {
        /// In order of submission.
        job: Vec<JobSpec>,
    },
}

/// A job that stands in the experiment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct JobSpec {
    /// When it is submitted.
    pub submitted: Span,
    /// Its processes.
    pub processes: u32,
    /// How long it runs on processors of its own.
    pub runtime: Span,
    /// What its user says.
    pub estimate: Span,
    /// CPU usage of each process; `None`: as `workload.usage` says.
    pub usage: Option<Ppm>,
    /// Memory that each process needs; none where nobody says.
    #[serde(default, skip_serializing_if = "Bytes::is_zero")]
    pub memory: Bytes,
}

/// How CPU usage is assigned.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum UsageKind {
    /// Drawn from 40 to 100 % for each process of a larger job; 100 % for a single one
    /// (section 3.1 of the MEASY paper).
    #[default]
    Drawn,
    /// The same with one draw for all processes of a job: the text can be read so, too.
    DrawnEachJob,
    /// 100 %.
    Full,
}

/// How users estimate the run time of their jobs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Estimates {
    /// As Tsafrir 2005 has it: of models.
    #[default]
    Tsafrir,
    /// As the log has them.
    Given,
    /// The run time.
    Exact,
    /// Twice the run time.
    Double,
}

impl Estimates {
    /// `job` as its user estimates it, who said so far what the log or Tsafrir's model has.
    #[must_use]
    pub fn of(self, job: Submission) -> Submission {
        match self {
            Self::Tsafrir | Self::Given => job,
            Self::Exact => Submission { estimate: job.runtime, ..job },
            Self::Double => Submission { estimate: job.runtime + job.runtime, ..job },
        }
    }
}

const fn given() -> Estimates {
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
    /// As the model has it.
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
    /// `targets` in this shape.
    #[must_use]
    pub fn of(self, targets: Targets) -> Targets {
        match self {
            Self::Standard => targets,
            Self::ManyShort => Targets { long_over_short: 150.0, stages: 1, ..targets },
            Self::SixHours => Targets { longest: Span::from_secs(21_600), ..targets },
            Self::Steady => Targets { bursts: None, ..targets },
            Self::SmallRunLong => Targets { long: (0.6, -0.6), ..targets },
        }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde gives references")]
fn is_standard(shape: &Shape) -> bool {
    *shape == Shape::Standard
}

/// `[scheduler]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct BatchScheduler {
    /// The scheduler's algorithm.
    pub name: Algorithm,
    /// What a migration costs the job that is moved, in virtual time.
    #[serde(default = "paper_migration")]
    pub migration_cost: Span,
    /// What it knows of CPU usage.
    #[serde(default)]
    pub usage_information: Information,
    /// A background VM is of use below a foreground that uses less than this; `None`: than the
    /// paper's 96 %.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usable_below: Option<Ppm>,
    /// Whether a background VM is of use where no foreground runs; `None`: it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usable_idle: Option<bool>,
    /// When the background is filled; `None`: in every pass.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fill: Option<Fill>,
}

/// A migration of the MEASY paper: 20 s.
const fn paper_migration() -> Span {
    Span::from_secs(20)
}

/// What the scheduler knows of CPU usage.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Information {
    /// The truth.
    #[default]
    Exact,
    /// Nothing of jobs of several processes (section 3.5.1).
    Absent,
}

/// What an unknown process is taken for: the mean of the range.
const TAKEN_FOR: Ppm = Ppm::new(700_000);

impl Batch {
    /// Whether its scheduler migrates jobs, or they are checkpointed: CRIU does that in a live run.
    #[must_use]
    pub fn needs_criu(&self) -> bool {
        self.checkpoint.is_some() || self.scheduler.name.promotion() == Some(OnPromotion::Migrate)
    }

    /// Its scheduler's configuration, and the model of its machine under this seed. A live run of
    /// it is the same [`Run`](dormouse_engine::Run) on real processors.
    #[must_use]
    pub fn simulation(&self, seed: u64) -> Simulation {
        let scheduler = &self.scheduler;
        let standard = Config::new(scheduler.name, self.workload.processors);
        Simulation {
            config: Config {
                usable_below: scheduler.usable_below.unwrap_or(standard.usable_below),
                usable_idle: scheduler.usable_idle.unwrap_or(standard.usable_idle),
                fill: scheduler.fill.unwrap_or(standard.fill),
                ..standard
            },
            sharing: self.sharing,
            migration_cost: self.scheduler.migration_cost,
            information: match self.scheduler.usage_information {
                Information::Exact => UsageInformation::Exact,
                Information::Absent => UsageInformation::Absent(TAKEN_FOR),
            },
            checkpoint: self.checkpoint.clone(),
            memory: self.workload.memory_per_processor,
            burstable: self.workload.burstable,
            seed,
        }
    }
}
