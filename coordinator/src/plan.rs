//! The particulars of a live run that the service goes by.

use std::time::Duration;

use dormouse_model::{HostFault, MetadataSettings};
use dormouse_proto::{
    CRIU, FAULTS, JOB_CHECKPOINTS, JOB_CREDITS, JOB_MEMORY, METADATA, SUPPLY, TIERS, TRAILS, v1,
};
use dormouse_tasks::own::TaskProgram;
use dormouse_units::{Ppm, Speedup, Time};

use crate::admission::RunDemand;
use crate::protocol::parallel::ParallelPrograms;
use crate::storage::image_key::ImageSecret;
use crate::system::world::CoordinatorWorld;

/// What the conductor must know of a [`LiveRun`](crate::LiveRun).
#[derive(Clone, Debug)]
pub(crate) struct ConductorPlan {
    /// Keeps checkpoints and workers of different runs apart.
    pub(crate) run: String,
    /// By which its workers seal checkpoints.
    pub(crate) image_key: ImageSecret,
    pub(crate) workers: u32,
    pub(crate) speedup: Speedup,
    pub(crate) demand: RunDemand,
    pub(crate) reserve: Ppm,
    pub(crate) share: Option<Ppm>,
    pub(crate) programs: Vec<TaskProgram>,
    /// How long a parallel job's processes compute between two barriers; `None`: there are none.
    pub(crate) phase: Option<Duration>,
    /// Jobs may come from outside.
    pub(crate) is_open: bool,
    /// How the VMs' metadata endpoints answer; `None`: they have none.
    pub(crate) metadata: Option<MetadataSettings>,
    /// The part of all CPU time that may be computed again on other hosts.
    pub(crate) spot_checks: Ppm,
    pub(crate) needs_criu: bool,
    /// Parallel jobs are checkpointed.
    pub(crate) checkpoints_jobs: bool,
    /// The processes of parallel jobs have memory.
    pub(crate) jobs_have_memory: bool,
    /// Their machine is burstable.
    pub(crate) jobs_have_credits: bool,
    /// Spot VMs are in the background of others.
    pub(crate) supplies: bool,
    pub(crate) hold_checkpoints: bool,
    /// The secret number from which each task has its nonce; drawn, or read from the log.
    pub(crate) answer_seed: u64,
    pub(crate) noop: bool,
    pub(crate) lost_after: Duration,
    /// For how long a worker keeps its VMs without a coordinator.
    pub(crate) hold: Duration,
    /// They stay when the run is stopped, to be gone on with.
    pub(crate) workers_stay: bool,
    pub(crate) answer_within: Duration,
    pub(crate) limit: Time,
    /// What is to go wrong, in order of time.
    pub(crate) faults: Vec<HostFault>,
    /// The different programs that are measured, and which of them each task is; `None`: one of the user's
    /// own, which is not measured.
    pub(crate) distinct: Vec<Vec<String>>,
    pub(crate) program_of: Vec<Option<usize>>,
    /// The world that its coordinator is in.
    pub(crate) world: CoordinatorWorld,
}

impl ConductorPlan {
    /// What makes parallel jobs, if there are any, at this share of a core per processor.
    pub(crate) fn parallel_programs(&self, core: Ppm) -> Option<ParallelPrograms> {
        let speedup = self.speedup;
        self.phase.map(|phase| ParallelPrograms { speedup, core, phase })
    }

    /// What every worker must be able to do, by name.
    pub(crate) fn worker_needs(&self) -> Vec<&'static str> {
        let criu = self.needs_criu.then_some(CRIU);
        let checkpoints = self.checkpoints_jobs.then_some(JOB_CHECKPOINTS);
        let memory = self.jobs_have_memory.then_some(JOB_MEMORY);
        let credits = self.jobs_have_credits.then_some(JOB_CREDITS);
        let supply = self.supplies.then_some(SUPPLY);
        let tiers = self.phase.map(|_| TIERS);
        let faults = (!self.faults.is_empty()).then_some(FAULTS);
        let metadata = self.metadata.as_ref().map(|_| METADATA);
        // No worker chooses that nobody checks its answers.
        let is_checked = !self.noop && self.spot_checks > Ppm::ZERO;
        let leaves_trails = self.phase.is_some() || !self.distinct.is_empty();
        let trails = (is_checked && leaves_trails).then_some(TRAILS);
        let all = [criu, tiers, checkpoints, memory, credits, supply, faults, metadata, trails];
        all.into_iter().flatten().collect()
    }

    /// The programs every worker measures.
    pub(crate) fn to_measure(&self) -> Vec<v1::Program> {
        self.distinct.iter().map(|args| v1::Program { args: args.clone() }).collect()
    }

    /// What was measured of the programs, per task.
    pub(crate) fn per_task(&self, measured: &[u64]) -> Vec<u64> {
        let of = |program: &Option<usize>| {
            program.and_then(|program| measured.get(program).copied()).unwrap_or_default()
        };
        self.program_of.iter().map(of).collect()
    }
}
