//! What a run is made of: all that its outcome depends on, besides its events.

use std::collections::BTreeMap;

use dormouse_cloud::{Catalogue, InstanceType, InterruptionModel, Limits, Terms};
use dormouse_policies::batch::UsageInformation;
use dormouse_policies::{Bag, CheckpointConfig};
use dormouse_units::{Bytes, Price, Span, TypeName};
use serde::{Deserialize, Serialize};

/// The particulars of a run. It is the first line of the event log, so a log
/// can be replayed by itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Setup {
    /// The seed of all chance in the run.
    pub seed: u64,
    /// What the provider offers.
    pub catalogue: Catalogue,
    /// What is to be run from the beginning; no tasks where all work is submitted later.
    pub bag: Bag,
    /// Parallel jobs that are submitted while it runs, if any are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jobs: Option<ParallelJobs>,
    /// When tasks are checkpointed.
    pub checkpoint: CheckpointConfig,
    /// When spot VMs are taken away and given back.
    pub interruptions: Vec<InterruptionModel>,
    /// How long before a preemption its VM is warned.
    pub preemption_notice: Span,
    /// How the provider places VMs, what their prices are and how it charges them.
    #[serde(default, skip_serializing_if = "Terms::is_default")]
    pub terms: Terms,
}

/// What a run with parallel jobs must know of them before they are submitted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ParallelJobs {
    /// The instance type that they are run on: its vCPUs have a seat in both tiers.
    pub machine: TypeName,
    /// What their scheduler is told of their CPU usage.
    pub information: UsageInformation,
}

impl Setup {
    /// A run of parallel jobs and nothing else, on one machine of so many processors that costs
    /// nothing and is there at once.
    #[must_use]
    pub fn of_jobs(processors: u32, information: UsageInformation, seed: u64) -> Self {
        let catalogue =
            Catalogue { types: BTreeMap::new(), boot: Span::ZERO, hibernation: Span::ZERO };
        let nothing = Self {
            seed,
            catalogue,
            bag: Bag { tasks: Vec::new(), deadline: Span::ZERO },
            jobs: None,
            checkpoint: CheckpointConfig::NONE,
            interruptions: Vec::new(),
            preemption_notice: Span::ZERO,
            terms: Terms::default(),
        };
        nothing.with_jobs(processors, information)
    }

    /// The same with parallel jobs beside its bag, on one machine of so many processors that costs
    /// nothing and boots as VMs do.
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
        self.jobs = Some(ParallelJobs { machine, information });
        self
    }

    /// Processors of the machine for parallel jobs; none where there are no such jobs.
    #[must_use]
    pub fn machine_vcpus(&self) -> u32 {
        let machine = self.jobs.as_ref().and_then(|jobs| self.catalogue.get(&jobs.machine));
        machine.map_or(0, |kind| kind.vcpus)
    }

    /// Whether VMs of this type have a seat in both tiers of every vCPU.
    #[must_use]
    pub fn is_two_tier(&self, kind: &TypeName) -> bool {
        self.jobs.as_ref().is_some_and(|jobs| jobs.machine == *kind)
    }
}

/// The instance type of a machine for parallel jobs.
pub const MACHINE: &str = "processors";
