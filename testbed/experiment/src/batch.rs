//! Parallel jobs of an experiment with everything resolved.

use std::fs::File;

use dormouse_engine::jobs::JobSimulation;
use dormouse_model::CheckpointConfig;
use dormouse_policies::batch::{Algorithm, BatchSchedulerConfig, OnPromotion};
use dormouse_policies::program::ProgramConfig;
use dormouse_vm::ProcessorSharing;
use dormouse_workload::{BatchWorkload, Wanted};
use serde::{Deserialize, Serialize};

/// Parallel jobs, with their scheduler, machine, and sharing of processors.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct BatchSetup {
    /// The jobs and the size of their machine.
    pub workload: BatchWorkload,
    /// The scheduler and its parameters.
    pub scheduler: BatchSchedulerConfig,
    /// Rule for checkpoints of jobs; `None` for none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checkpoint: Option<CheckpointConfig>,
    /// How two VMs share a processor in virtual time.
    pub sharing: ProcessorSharing,
}

impl BatchSetup {
    /// Whether the scheduler migrates jobs or jobs take checkpoints: a live run then needs CRIU.
    pub fn needs_criu(&self) -> bool {
        self.checkpoint.is_some() || self.scheduler.name.promotion() == Some(OnPromotion::Migrate)
    }

    /// Name of the jobs' scheduler, or of the scheduler program.
    pub fn scheduler_name(&self) -> String {
        match self.program() {
            Some(program) => program.label().to_owned(),
            None => self.scheduler.name.name().to_owned(),
        }
    }

    /// The program that schedules the jobs; `None` if a built-in scheduler does.
    pub(crate) fn program(&self) -> Option<ProgramConfig> {
        let scheduler = Some(&self.scheduler).filter(|it| it.name == Algorithm::Program)?;
        scheduler.own.read().ok()
    }

    /// The scheduler's configuration with a model of the machine, for this seed. A live run is the
    /// same [`Run`](dormouse_engine::Run) on real processors.
    pub fn simulation(&self, seed: u64) -> JobSimulation {
        JobSimulation {
            config: self.scheduler.on(self.workload.processors),
            sharing: self.sharing,
            migration_cost: self.scheduler.migration_cost,
            information: self.scheduler.information(),
            checkpoint: self.checkpoint.clone(),
            memory: self.workload.memory_per_processor,
            burstable: self.workload.burstable,
            seed,
        }
    }

    /// Requirements of the scheduler and the machine for the jobs.
    pub fn wanted(&self, seed: u64) -> Wanted<'_> {
        Wanted {
            workload: &self.workload,
            usage: self.scheduler.name.promotion().is_some(),
            memory: self.simulation(seed).job_capacity().memory,
            seed,
            open: |log| Ok(Box::new(File::open(log)?)),
        }
    }
}
