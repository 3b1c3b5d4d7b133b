//! Setup of a run: everything besides the events that its outcome depends on.

use std::collections::BTreeMap;

use dormouse_cloud::{
    BurstableTerms, Catalogue, InstanceType, InterruptionModel, ProviderTerms, VmLimits,
};
use dormouse_units::{Bytes, Price, Span, TaskId, Time, TypeName};
use serde::{Deserialize, Serialize};

use crate::{Bag, CheckpointConfig, JobCapacity, Noise, UsageInformation};

/// Setup of a run. It is the first line of the event log, so that a log can be replayed by itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Setup {
    /// Seed of all random numbers of the run.
    pub seed: u64,
    /// The instance types that the provider offers, with boot and hibernation times.
    pub catalogue: Catalogue,
    /// The bag known from the beginning; empty if all work is submitted later.
    pub bag: Bag,
    /// Deviation of the tasks' real run times from those in the bag; `None`: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub noise: Option<Noise>,
    /// Properties of the parallel jobs submitted during the run; `None`: there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jobs: Option<ParallelJobs>,
    /// True if customers of the provider request VMs during the run, or call its API for them.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub requests: bool,
    /// When and where tasks of the bag are checkpointed, and the cost.
    pub checkpoint: CheckpointConfig,
    /// Models of the interruptions of spot VMs.
    pub interruptions: Vec<InterruptionModel>,
    /// Time between the notice of a preemption and the preemption.
    pub preemption_notice: Span,
    /// Placement, prices and billing of the provider.
    #[serde(default, skip_serializing_if = "ProviderTerms::is_default")]
    pub terms: ProviderTerms,
}

/// Properties of a run's parallel jobs that must be known before they are submitted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ParallelJobs {
    /// Instance type of the jobs' machine, whose vCPUs each have a slot in the foreground and one in the background.
    pub machine: TypeName,
    /// The part of the jobs' CPU usage that the scheduler sees.
    pub information: UsageInformation,
    /// When the jobs are checkpointed, and the cost, which is positive; `None`: never, so that an
    /// interrupted job starts from scratch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checkpoint: Option<CheckpointConfig>,
    /// Memory that a process of a job may use on a processor, whatever else runs; `None`: unknown,
    /// and jobs request none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<Bytes>,
}

impl Setup {
    /// Run time that a task of the bag really has on a type, at full speed; `None` if the task can't run there.
    #[must_use]
    pub fn task_runtime(&self, task: TaskId, kind: &TypeName) -> Option<Span> {
        let said = *self.bag.tasks.get(task.get() as usize)?.runtime.get(kind)?;
        Some(self.real_runtime(task, said))
    }

    /// Real run time of a task of the bag for which the bag gives the run time `said`.
    #[must_use]
    pub fn real_runtime(&self, task: TaskId, said: Span) -> Span {
        self.noise.map_or(said, |noise| noise.draw_runtime(self.seed, task, said))
    }

    /// Submission time of a task of the bag; the beginning of the run for other tasks.
    #[must_use]
    pub fn submission_time(&self, task: TaskId) -> Time {
        let task = self.bag.tasks.get(task.get() as usize);
        Time::ZERO + task.map_or(Span::ZERO, |task| task.submitted)
    }

    /// Setup of a run of parallel jobs only, on one machine with this number of processors that is
    /// free of charge and ready at once.
    #[must_use]
    pub fn of_jobs(processors: u32, information: UsageInformation, seed: u64) -> Self {
        let catalogue =
            Catalogue { types: BTreeMap::new(), boot: Span::ZERO, hibernation: Span::ZERO };
        let nothing = Self {
            seed,
            catalogue,
            bag: Bag { tasks: [].into(), deadline: Span::ZERO },
            noise: None,
            jobs: None,
            requests: false,
            checkpoint: CheckpointConfig::NONE,
            interruptions: Vec::new(),
            preemption_notice: Span::ZERO,
            terms: ProviderTerms::default(),
        };
        nothing.with_jobs(processors, information)
    }

    /// The setup with parallel jobs beside its bag, on one machine with this number of processors
    /// that is free of charge and boots as VMs do.
    #[must_use]
    pub fn with_jobs(mut self, processors: u32, information: UsageInformation) -> Self {
        let machine = TypeName::from(MACHINE);
        let kind = InstanceType {
            name: machine.clone(),
            vcpus: processors,
            memory: Bytes::ZERO,
            disk: Bytes::ZERO,
            mflops: 0,
            on_demand: Some(Price::default()),
            spot: None,
            limits: VmLimits { spot: 0, on_demand: 1 },
            burstable: None,
        };
        self.catalogue.types.insert(machine.clone(), kind);
        self.jobs = Some(ParallelJobs { machine, information, checkpoint: None, memory: None });
        self
    }

    /// The setup with checkpointing of its parallel jobs, if it has any.
    #[must_use]
    pub fn checkpointing_jobs(mut self, checkpoint: Option<CheckpointConfig>) -> Self {
        if let Some(jobs) = &mut self.jobs {
            jobs.checkpoint = checkpoint;
        }
        self
    }

    /// Returns the setup with this memory for each processor of the machine for parallel jobs; a process may use 1/`processes` of
    /// it. `None`: the memory is unknown.
    #[must_use]
    pub fn with_memory_of_jobs(mut self, processor: Option<Bytes>, processes: u64) -> Self {
        if let (Some(jobs), Some(memory)) = (&mut self.jobs, processor) {
            jobs.memory = Some(Bytes::new(memory.get() / processes.max(1)));
            if let Some(kind) = self.catalogue.types.get_mut(&jobs.machine) {
                kind.memory = Bytes::new(memory.get().saturating_mul(kind.vcpus.into()));
            }
        }
        self
    }

    /// The setup with a burstable machine for its parallel jobs; `None`: it always has full speed.
    ///
    /// A burstable machine has credits like other burstable VMs. A processor uses them while a process on it computes or is
    /// checkpointed. Jobs burst: only when all credits are used up do all processors, in both tiers, slow down to the baseline
    /// until a whole credit is earned. Time in which all processes of a job wait for the network is the same at either speed.
    #[must_use]
    pub fn with_credits_of_jobs(mut self, burstable: Option<BurstableTerms>) -> Self {
        if let (Some(jobs), Some(burstable)) = (&self.jobs, burstable)
            && let Some(kind) = self.catalogue.types.get_mut(&jobs.machine)
        {
            kind.burstable = Some(burstable);
        }
        self
    }

    /// Rates at which the machine for parallel jobs earns credits, if it is burstable.
    #[must_use]
    pub fn credits_of_jobs(&self) -> Option<BurstableTerms> {
        self.catalogue.get(&self.jobs.as_ref()?.machine)?.burstable
    }

    /// Checkpoint configuration of parallel jobs, if they are checkpointed.
    #[must_use]
    pub fn checkpoint_of_jobs(&self) -> Option<&CheckpointConfig> {
        self.jobs.as_ref()?.checkpoint.as_ref()
    }

    /// Capacity of the machine for parallel jobs for one job; none without parallel jobs.
    #[must_use]
    pub fn space_of_jobs(&self) -> JobCapacity {
        let Some(jobs) = &self.jobs else { return JobCapacity { processors: 0, memory: None } };
        let processors = self.catalogue.get(&jobs.machine).map_or(0, |kind| kind.vcpus);
        JobCapacity { processors, memory: jobs.memory }
    }

    /// Memory of the machine for parallel jobs; zero if unknown.
    #[must_use]
    pub fn memory_of_machine(&self) -> Bytes {
        let machine = self.jobs.as_ref().and_then(|jobs| self.catalogue.get(&jobs.machine));
        machine.map_or(Bytes::ZERO, |kind| kind.memory)
    }

    /// Memory that processes on VMs of each type may fill together: all of it on the machine for
    /// parallel jobs, and on other VMs as much as the largest task on every vCPU. Empty if the
    /// memory of the machine is unknown.
    #[must_use]
    pub fn memory_filled(&self) -> BTreeMap<TypeName, Bytes> {
        let machine = self.memory_of_machine();
        if machine == Bytes::ZERO {
            return BTreeMap::new();
        }
        let tasks = &self.bag.tasks;
        let largest = tasks.iter().map(|task| task.memory).max().unwrap_or_default();
        let most = |vcpus: u32| u64::from(vcpus).min(tasks.len() as u64);
        let of = |kind: &InstanceType| match self.is_two_tier(&kind.name) {
            true => machine,
            false => Bytes::new(largest.get().saturating_mul(most(kind.vcpus))),
        };
        self.catalogue.types.values().map(|kind| (kind.name.clone(), of(kind))).collect()
    }

    /// True if every vCPU of this type's VMs has a slot in the foreground and one in the background.
    #[must_use]
    pub fn is_two_tier(&self, kind: &TypeName) -> bool {
        self.jobs.as_ref().is_some_and(|jobs| jobs.machine == *kind)
    }
}

/// Name of the instance type for parallel jobs.
pub const MACHINE: &str = "processors";
