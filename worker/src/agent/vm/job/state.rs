//! What is particular to a parallel job, and the groups that it runs in.

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

/// What is particular to a parallel job.
#[derive(Debug, Default)]
pub(crate) struct JobState {
    pub(crate) ranks: Vec<JobRank>,
    pub(crate) meter: JobMeter,
    pub(crate) ledger: JobCpuLedger,
    pub(crate) moving: Option<OngoingMove>,
    /// The time at which its last move was decided, in the reference's time.
    pub(crate) left_at: Duration,
    /// The time at which it was asked to go where it is to go once it can.
    pub(crate) asked_to_leave: Option<Instant>,
    /// The time at which it should be over, once it is.
    pub(crate) due: Option<DueTime>,
    /// At which parts of its work it is yet to be checkpointed, the last first.
    pub(crate) points: Vec<Ppm>,
    /// Since when it stands still for one in the reference, on the run's clock.
    pub(crate) held_at: Option<Time>,
    /// The time at which it goes on, while it stands still for a checkpoint.
    pub(crate) goes_on_at: Option<Instant>,
    /// The time at which it was looked at last, and what it was due by then, in nanoseconds of CPU time.
    pub(crate) seen: Option<(Instant, u64)>,
}

/// Makes the groups of a VM on whose vCPUs, each this share of a core, jobs may run.
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
