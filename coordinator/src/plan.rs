//! Parameters of a live run that the conductor and the server need.

use std::time::Duration;

use dormouse_model::{HostFault, MetadataSettings};
use dormouse_proto::{
    CELLS, CRIU, FAULTS, JOB_CHECKPOINTS, JOB_CREDITS, JOB_MEMORY, METADATA, SUPPLY, TIERS, TRAILS,
    v1,
};
use dormouse_tasks::own::TaskProgram;
use dormouse_units::{Ppm, Speedup, Time};

use crate::admission::RunDemand;
use crate::messages::api_calls::RunDesk;
use crate::protocol::parallel::ParallelPrograms;
use crate::storage::image_key::ImageSecret;
use crate::system::world::CoordinatorWorld;

/// The parts of a [`LiveRunPlan`](crate::LiveRunPlan) that the conductor needs.
#[derive(Clone, Debug)]
pub(crate) struct ConductorPlan {
    /// Name of the run, which keeps the checkpoints and workers of different runs apart.
    pub(crate) run: String,
    /// Secret from which workers' keys for sealing checkpoints are derived.
    pub(crate) image_key: ImageSecret,
    pub(crate) workers: u32,
    pub(crate) speedup: Speedup,
    pub(crate) demand: RunDemand,
    pub(crate) reserve: Ppm,
    pub(crate) share: Option<Ppm>,
    pub(crate) programs: Vec<TaskProgram>,
    /// Time that a parallel job's processes compute between two barriers; `None`: there are no jobs.
    pub(crate) phase: Option<Duration>,
    /// True if jobs may come from outside.
    pub(crate) is_open: bool,
    /// The desk of the provider's API, whose instances run in cells; `None`: the run has none.
    pub(crate) api: Option<RunDesk>,
    /// Settings of the VMs' metadata endpoints; `None`: they have none.
    pub(crate) metadata: Option<MetadataSettings>,
    /// Fraction of all CPU time that may be computed again on other hosts.
    pub(crate) spot_checks: Ppm,
    pub(crate) needs_criu: bool,
    /// True if parallel jobs are checkpointed.
    pub(crate) checkpoints_jobs: bool,
    /// True if parallel jobs are given memory, which their processes allocate.
    pub(crate) jobs_have_memory: bool,
    /// True if the machine for parallel jobs is burstable.
    pub(crate) jobs_have_credits: bool,
    /// True if spot VMs run in the background of other VMs.
    pub(crate) supplies: bool,
    pub(crate) hold_checkpoints: bool,
    /// Secret number from which the nonce of each task is derived; drawn, or read from the log.
    pub(crate) answer_seed: u64,
    pub(crate) noop: bool,
    pub(crate) lost_after: Duration,
    /// Time for which a worker keeps its VMs without a coordinator.
    pub(crate) hold: Duration,
    /// True if workers stay when the run is stopped, so that it can be resumed.
    pub(crate) workers_stay: bool,
    pub(crate) answer_within: Duration,
    pub(crate) limit: Time,
    /// Faults to be injected, in order of time.
    pub(crate) faults: Vec<HostFault>,
    /// The different programs to be measured, and the index of each task's program; `None`: a user's own program,
    /// which isn't measured.
    pub(crate) distinct: Vec<Vec<String>>,
    pub(crate) program_of: Vec<Option<usize>>,
    /// Disk, clocks and threads of the coordinator.
    pub(crate) world: CoordinatorWorld,
}

impl ConductorPlan {
    /// Returns how parallel jobs run at this share of a core per processor; `None`: there are no jobs.
    pub(crate) fn parallel_programs(&self, core: Ppm) -> Option<ParallelPrograms> {
        let speedup = self.speedup;
        self.phase.map(|phase| ParallelPrograms { speedup, core, phase })
    }

    /// Returns the names of the capabilities that every worker must have.
    pub(crate) fn worker_needs(&self) -> Vec<&'static str> {
        let criu = self.needs_criu.then_some(CRIU);
        let checkpoints = self.checkpoints_jobs.then_some(JOB_CHECKPOINTS);
        let memory = self.jobs_have_memory.then_some(JOB_MEMORY);
        let credits = self.jobs_have_credits.then_some(JOB_CREDITS);
        let supply = self.supplies.then_some(SUPPLY);
        let tiers = self.phase.map(|_| TIERS);
        let faults = (!self.faults.is_empty()).then_some(FAULTS);
        let metadata = self.metadata.as_ref().map(|_| METADATA);
        let cells = self.api.as_ref().map(|_| CELLS);
        // No worker chooses that nobody checks its answers.
        let is_checked = !self.noop && self.spot_checks > Ppm::ZERO;
        let leaves_trails = self.phase.is_some() || !self.distinct.is_empty();
        let trails = (is_checked && leaves_trails).then_some(TRAILS);
        let all =
            [criu, tiers, checkpoints, memory, credits, supply, faults, metadata, cells, trails];
        all.into_iter().flatten().collect()
    }

    /// Returns the programs that every worker measures.
    pub(crate) fn to_measure(&self) -> Vec<v1::Program> {
        self.distinct.iter().map(|args| v1::Program { args: args.clone() }).collect()
    }

    /// Returns the measured CPU time of one repetition of each task's program, in microseconds; zero for a user's own
    /// program.
    pub(crate) fn per_task(&self, measured: &[u64]) -> Vec<u64> {
        let of = |program: &Option<usize>| {
            program.and_then(|program| measured.get(program).copied()).unwrap_or_default()
        };
        self.program_of.iter().map(of).collect()
    }
}
