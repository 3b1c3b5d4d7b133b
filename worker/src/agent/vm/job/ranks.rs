//! Finding the processes of a parallel job, and placing them in slots.

use std::{fs, time::Duration};

use dormouse_tasks::progress::{ProgressError, ProgressReader};
use dormouse_vm::life::AttemptSeat;
use nix::{
    errno::Errno,
    sched::{CpuSet, sched_setaffinity},
    unistd::Pid,
};

use crate::{
    agent::gate::{LaunchPass, RevokedLaunch},
    cgroup, process,
};

/// Reasons why the ranks of a job can't be found or placed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RankError {
    #[error("only {found} of its {wanted} processes had started after {} ms", after.as_millis())]
    Missing { wanted: usize, found: usize, after: Duration },
    #[error("its VM is ending")]
    Revoked(#[from] RevokedLaunch),
    #[error("its progress page does not name them")]
    Page(#[from] ProgressError),
    #[error("its processes can't be listed")]
    Process(#[from] process::ProcessError),
    #[error("process {pid} can't be put into its slot")]
    Group { pid: i32, source: cgroup::CgroupError },
    #[error("process {pid} can't be bound to a core of the host")]
    Bind { pid: i32, source: Errno },
}

/// One process of a parallel job.
#[derive(Clone, Copy, Debug)]
pub struct JobRank {
    /// PID of the process in the worker's namespace.
    pub pid: i32,
}

/// Kernel's counts of a process since its start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RankTime {
    /// Nanoseconds for which the process ran on a core.
    pub ran_ns: u64,
    /// Nanoseconds for which the process was runnable and had no core.
    pub delayed_ns: u64,
    /// Number of times that the process was woken after it had waited for something other than a core.
    pub wakes: u64,
}

impl JobRank {
    /// Returns the counts of the kernel's scheduler; `None` once the process is gone.
    pub(crate) fn scheduler_time(self) -> Option<RankTime> {
        let read = |what| fs::read_to_string(format!("/proc/{}/{what}", self.pid)).ok();
        parse(&read("schedstat")?, &read("status")?)
    }
}

fn parse(schedstat: &str, status: &str) -> Option<RankTime> {
    let mut words = schedstat.split_whitespace().map(str::parse);
    let mut next = || words.next()?.ok();
    let (ran_ns, delayed_ns) = (next()?, next()?);
    let slept = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"))?;
    Some(RankTime { ran_ns, delayed_ns, wakes: slept.trim().parse().ok()? })
}

/// Returns the existing ranks of the job whose processes have the parent `parent`; for a job dumped at its end, only the ranks that
/// hadn't ended.
pub(crate) fn present_ranks(parent: i32, page: &ProgressReader) -> Result<Vec<JobRank>, RankError> {
    let ranks = process::rank_pids(parent, &page.ranks()?)?;
    Ok(ranks.into_iter().map(|pid| JobRank { pid }).collect())
}

/// Returns the ranks of the job whose processes have the parent `parent`, once all of them exist.
pub(crate) fn find_ranks(
    parent: i32,
    pass: &LaunchPass,
    page: &ProgressReader,
    wanted: usize,
    limit: Duration,
) -> Result<Vec<JobRank>, RankError> {
    let begun = pass.start_stopwatch();
    loop {
        pass.check_wanted()?;
        let ranks = present_ranks(parent, page)?;
        if ranks.len() == wanted {
            return Ok(ranks);
        }
        let after = begun.elapsed();
        if after > limit {
            return Err(RankError::Missing { wanted, found: ranks.len(), after });
        }
        // Nobody says when a process forks; this takes some milliseconds.
        std::thread::sleep(Duration::from_micros(500));
    }
}

/// Puts each rank into its slot and on its vCPU's core: the priorities of two slots only matter on the same core.
pub(crate) fn place_ranks(
    groups: &cgroup::VmGroups,
    cores: &CpuSet,
    ranks: &[JobRank],
    seats: &[AttemptSeat],
) -> Result<(), RankError> {
    let cores = (0..CpuSet::count()).filter(|core| cores.is_set(*core) == Ok(true));
    let cores: Vec<usize> = cores.collect();
    for (JobRank { pid }, seat) in ranks.iter().zip(seats) {
        let (pid, vcpu) = (*pid, seat.vcpu);
        if let Some(core) = cores.get(vcpu as usize % cores.len().max(1)) {
            let mut only = CpuSet::new();
            only.set(*core)
                .and_then(|()| sched_setaffinity(Pid::from_raw(pid), &only))
                .map_err(|source| RankError::Bind { pid, source })?;
        }
        groups
            .attach_process(vcpu, seat.slot, pid)
            .map_err(|source| RankError::Group { pid, source })?;
    }
    Ok(())
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn what_the_kernel_counts_of_this_process_is_read() {
        let me = JobRank { pid: i32::try_from(std::process::id()).unwrap() };
        let ran = me.scheduler_time().unwrap();
        assert!(ran.ran_ns > 0, "{ran:?}");
        let status = "State:\tS\nvoluntary_ctxt_switches:\t150\nnonvoluntary_ctxt_switches:\t545\n";
        let expected = RankTime { ran_ns: 1, delayed_ns: 2, wakes: 150 };
        assert_eq!(parse("1 2 3", status), Some(expected));
        assert_eq!(parse("1", status), None);
        assert_eq!(parse("1 x 3", status), None);
        assert_eq!(parse("1 2 3", ""), None);
    }
}
