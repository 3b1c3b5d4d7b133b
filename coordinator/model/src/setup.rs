//! The setup of a run: all that its outcome depends on, besides its events.

use std::collections::BTreeMap;

use dormouse_cloud::{Burstable, Catalogue, InstanceType, InterruptionModel, Limits, Terms};
use dormouse_units::{Bytes, Price, Span, TaskId, Time, TypeName};
use serde::{Deserialize, Serialize};

use crate::{Bag, CheckpointConfig, Noise, Space, UsageInformation};

/// The particulars of a run. It is the first line of the event log, so a log
/// can be replayed by itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Setup {
    /// The seed of all random numbers in the run.
    pub seed: u64,
    /// The instance types that the provider offers, with boot and hibernation times.
    pub catalogue: Catalogue,
    /// The bag that is known from the beginning; without tasks where all work is submitted later.
    pub bag: Bag,
    /// By how much the tasks' real run times differ from those in the bag; `None`: not at all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub noise: Option<Noise>,
    /// Parallel jobs that are submitted during the run, if any are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jobs: Option<ParallelJobs>,
    /// Whether customers of the provider request VMs during the run, or call its API for them.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub requests: bool,
    /// When and where tasks of the bag are checkpointed, and what that costs.
    pub checkpoint: CheckpointConfig,
    /// When spot VMs are taken away and given back.
    pub interruptions: Vec<InterruptionModel>,
    /// How long before a preemption the VM gets notice of it.
    pub preemption_notice: Span,
    /// How the provider places VMs, what their prices are and how it charges them.
    #[serde(default, skip_serializing_if = "Terms::is_default")]
    pub terms: Terms,
}

/// What a run must know of its parallel jobs before they are submitted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ParallelJobs {
    /// The instance type that the jobs run on: its vCPUs have a seat in both tiers.
    pub machine: TypeName,
    /// What the scheduler is told of the jobs' CPU usage.
    pub information: UsageInformation,
    /// When the jobs are checkpointed, and what that costs, which is more than nothing; `None`:
    /// never, so that a job that is interrupted begins anew.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checkpoint: Option<CheckpointConfig>,
    /// Memory that a process of a job may have on a processor, whoever else is there; `None`:
    /// nobody says, and no job asks for any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<Bytes>,
}

impl Setup {
    /// Real run time of a task of the bag at full speed on a type; `None` if it can't run there.
    #[must_use]
    pub fn runtime(&self, task: TaskId, kind: &TypeName) -> Option<Span> {
        let said = *self.bag.tasks.get(task.get() as usize)?.runtime.get(kind)?;
        Some(self.real_runtime(task, said))
    }

    /// Real run time of a task of the bag that takes so long as its bag says.
    #[must_use]
    pub fn real_runtime(&self, task: TaskId, said: Span) -> Span {
        self.noise.map_or(said, |noise| noise.real(self.seed, task, said))
    }

    /// When a task of the bag is submitted; the beginning of the run for a task of no bag.
    #[must_use]
    pub fn submitted(&self, task: TaskId) -> Time {
        let task = self.bag.tasks.get(task.get() as usize);
        Time::ZERO + task.map_or(Span::ZERO, |task| task.submitted)
    }

    /// The setup of a run of parallel jobs and nothing else, on one machine with this number of
    /// processors that costs nothing and is there at once.
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
            terms: Terms::default(),
        };
        nothing.with_jobs(processors, information)
    }

    /// This setup with parallel jobs beside its bag, on one machine with this number of processors
    /// that costs nothing and boots as VMs do.
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
            limits: Limits { spot: 0, on_demand: 1 },
            burstable: None,
        };
        self.catalogue.types.insert(machine.clone(), kind);
        self.jobs = Some(ParallelJobs { machine, information, checkpoint: None, memory: None });
        self
    }

    /// This setup with its parallel jobs, if there are any, checkpointed as given.
    #[must_use]
    pub fn checkpointing_jobs(mut self, checkpoint: Option<CheckpointConfig>) -> Self {
        if let Some(jobs) = &mut self.jobs {
            jobs.checkpoint = checkpoint;
        }
        self
    }

    /// This setup with this memory for each processor of the machine for parallel jobs, of which a
    /// process can have one of `processes` equal parts; `None`: nobody says.
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

    /// This setup with a burstable machine for its parallel jobs; `None`: it always has full speed.
    ///
    /// A burstable machine has credits as other burstable VMs have. A processor drains them while a
    /// process on it computes or is checkpointed. Jobs burst: only where all credits are spent does
    /// every processor slow down to the baseline, for both tiers, until a whole credit is earned.
    /// Only the time in which no process of a job computes, as all wait for the network, takes no
    /// longer then.
    #[must_use]
    pub fn with_credits_of_jobs(mut self, burstable: Option<Burstable>) -> Self {
        if let (Some(jobs), Some(burstable)) = (&self.jobs, burstable)
            && let Some(kind) = self.catalogue.types.get_mut(&jobs.machine)
        {
            kind.burstable = Some(burstable);
        }
        self
    }

    /// How the machine for parallel jobs earns credits, if it is burstable.
    #[must_use]
    pub fn credits_of_jobs(&self) -> Option<Burstable> {
        self.catalogue.get(&self.jobs.as_ref()?.machine)?.burstable
    }

    /// How parallel jobs are checkpointed, if they are.
    #[must_use]
    pub fn checkpoint_of_jobs(&self) -> Option<&CheckpointConfig> {
        self.jobs.as_ref()?.checkpoint.as_ref()
    }

    /// Room that the machine for parallel jobs has for one job; none where there are no parallel
    /// jobs.
    #[must_use]
    pub fn space_of_jobs(&self) -> Space {
        let Some(jobs) = &self.jobs else { return Space { processors: 0, memory: None } };
        let processors = self.catalogue.get(&jobs.machine).map_or(0, |kind| kind.vcpus);
        Space { processors, memory: jobs.memory }
    }

    /// Memory of the machine for parallel jobs; zero where nobody says.
    #[must_use]
    pub fn memory_of_machine(&self) -> Bytes {
        let machine = self.jobs.as_ref().and_then(|jobs| self.catalogue.get(&jobs.machine));
        machine.map_or(Bytes::ZERO, |kind| kind.memory)
    }

    /// Memory that the processes on VMs of each type may fill together: all of the machine for
    /// parallel jobs, and on other VMs as much as the largest task on every vCPU. Empty where the
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

    /// Whether VMs of this type have a seat in both tiers of every vCPU.
    #[must_use]
    pub fn is_two_tier(&self, kind: &TypeName) -> bool {
        self.jobs.as_ref().is_some_and(|jobs| jobs.machine == *kind)
    }
}

/// The instance type of a machine for parallel jobs.
pub const MACHINE: &str = "processors";
