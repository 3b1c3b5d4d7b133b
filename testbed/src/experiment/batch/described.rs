//! The parallel jobs of an experiment with everything resolved.

use std::path::PathBuf;

use dormouse_cloud::Burstable;
use dormouse_engine::jobs::Simulation;
use dormouse_policies::CheckpointConfig;
use dormouse_policies::batch::{Algorithm, Config, OnPromotion, UsageInformation};
use dormouse_units::{Bytes, Ppm, Span};
use dormouse_vm::Sharing;
use dormouse_workload::{Model, OnMalformed};
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
        /// What to do with lines that can't be used.
        on_malformed: OnMalformed,
    },
    /// A model.
    Model {
        /// The model's name.
        model: Model,
        /// The number of jobs.
        jobs: usize,
        /// What their users say.
        estimates: Estimates,
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
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum UsageKind {
    /// Drawn from 40 to 100 % for each process of a larger job; 100 % for a single one
    /// (section 3.1 of the MEASY paper).
    #[default]
    Drawn,
    /// 100 %.
    Full,
}

/// How users of a model estimate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Estimates {
    /// As Tsafrir 2005 has it.
    #[default]
    Tsafrir,
    /// The run time.
    Exact,
}

/// `[scheduler]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct BatchScheduler {
    /// The scheduler's algorithm.
    pub name: Algorithm,
    /// What a migration costs the job that is moved, in virtual time.
    pub migration_cost: Span,
    /// What it knows of CPU usage.
    pub usage_information: Information,
}

/// What the scheduler knows of CPU usage.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
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
        Simulation {
            config: Config::new(self.scheduler.name, self.workload.processors),
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
