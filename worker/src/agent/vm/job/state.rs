//! State that only parallel jobs have, and the control groups in which they run.

use std::time::Duration;

use dormouse_units::{Ppm, Time};

use tokio::time::Instant;

use super::{
    ledger::JobCpuLedger,
    meter::JobMeter,
    moving::OngoingMove,
    pace::{DueTime, PERIOD_US},
    ranks::JobRank,
};
use crate::cgroup;

/// State of a parallel job, beside the state that every attempt has.
#[derive(Debug, Default)]
pub(crate) struct JobState {
    pub(crate) ranks: Vec<JobRank>,
    pub(crate) meter: JobMeter,
    pub(crate) ledger: JobCpuLedger,
    pub(crate) moving: Option<OngoingMove>,
    /// Time at which the job's last move to other seats was decided, by the clock of the model that the VM's jobs are compared
    /// with.
    pub(crate) left_at: Duration,
    /// Instant at which a move of the job was requested that isn't possible yet; `None`: no move waits.
    pub(crate) asked_to_leave: Option<Instant>,
    /// Time at which the job should have ended by the model of the VM; `None` before the job has ended.
    pub(crate) due: Option<DueTime>,
    /// Fractions of the job's work at which checkpoints are still to be taken, the last one first.
    pub(crate) points: Vec<Ppm>,
    /// Time since which the job is stopped for a checkpoint in the VM's model, on the run's clock; `None`: it isn't stopped in the
    /// model.
    pub(crate) held_at: Option<Time>,
    /// Time at which the job, stopped for a checkpoint, continues; `None`: it isn't stopped, or the time isn't known.
    pub(crate) goes_on_at: Option<Instant>,
    /// Time at which the job was last compared with the VM's model, and the CPU time that it should have got by then, in
    /// nanoseconds; `None` before the first comparison.
    pub(crate) seen: Option<(Instant, u64)>,
}

/// Creates the control groups of a VM for parallel jobs; each of the VM's vCPUs gets the share `core_ppm` of a host core.
pub(crate) fn create_groups(
    tree: &cgroup::GroupTree,
    vm: u32,
    vcpus: u32,
    memory: Option<u64>,
    core_ppm: u32,
) -> cgroup::Result<cgroup::VmGroups> {
    // One more for the jobs' parents, without a quota: they only wait.
    let groups = tree.create_vm(u64::from(vm), vcpus + 1, memory)?.with_period(PERIOD_US);
    (0..vcpus).try_for_each(|vcpu| groups.set_quota(vcpu, Some(core_ppm)))?;
    Ok(groups)
}
