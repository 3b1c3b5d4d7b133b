//! This host prepared for two-tier measurements.

use std::path::{Path, PathBuf};
use std::time::Duration;

use dormouse_folders::HeldFolder;
use dormouse_tasks::result::TaskResult;
use dormouse_worker::cgroup::{
    CgroupHierarchy, CpuQuota, GroupTree, InstanceName, TierSlot, VmGroups, sweep_stale,
};
use dormouse_worker::guardian::GroupGuardian;
use dormouse_worker::process::{ProcessIdentity, pid_namespace};
use dormouse_worker::workspace::make_kernel_files_writable;
use nix::sched::{CpuSet, sched_getaffinity};
use nix::unistd::Pid;

use super::TwoTierError;
use super::job::{MeasuredJob, MeasuredJobSpec};
use crate::ticks::ClockTicks;

/// Time limit for operations that usually take almost no time.
pub(super) const SOON: Duration = Duration::from_secs(10);

/// Id of the VM that all jobs share, with as many vCPUs as the largest job has processes.
const VM: u64 = 1;
const VCPUS: u32 = 2;

/// Control groups, a folder for jobs, and the usable cores of this process. Dropping it removes the groups and the folder. If the
/// process is killed, a separate process, the guardian, removes the groups, and the next live run removes the folder.
#[derive(Debug)]
pub struct TwoTierHost {
    tree: GroupTree,
    vm: VmGroups,
    folder: HeldFolder,
    program: PathBuf,
    cores: Vec<usize>,
    _guardian: GroupGuardian,
}

impl TwoTierHost {
    /// Prepares this process to measure with the `dormouse-task` at `program`. Must be called
    /// before any thread is started.
    ///
    /// # Errors
    ///
    /// The process is not root, or control groups are missing or fail.
    pub fn prepare(program: &Path) -> Result<Self, TwoTierError> {
        let user = nix::unistd::geteuid();
        if !user.is_root() {
            return Err(TwoTierError::NoRoot(user.as_raw()));
        }
        let hierarchy = CgroupHierarchy::detect_version()?;
        let name = InstanceName {
            pid_namespace: pid_namespace()?,
            owner: ProcessIdentity::current_process()?,
        };
        make_kernel_files_writable(&hierarchy)?;
        let guardian = GroupGuardian::start_guardian(&hierarchy, name)?;
        sweep_stale(&hierarchy, SOON)?;
        let tree = GroupTree::create_tree(hierarchy, name, CpuQuota::DEFAULT_PERIOD_US)?;
        let vm = tree.create_vm(VM, VCPUS, None)?;
        let folder = crate::workers::make_folder()
            .map_err(TwoTierError::io("make a folder in", std::env::temp_dir()))?;
        Ok(Self {
            tree,
            vm,
            folder,
            program: program.to_owned(),
            cores: usable_cores(),
            _guardian: guardian,
        })
    }

    /// Number of processors that jobs can use.
    #[must_use]
    pub fn cores(&self) -> u32 {
        u32::try_from(self.cores.len()).unwrap_or(u32::MAX)
    }

    /// The core that serves as processor `n`, less than [`Self::cores`].
    pub(super) fn core(&self, n: usize) -> CpuSet {
        let mut set = CpuSet::new();
        // Every core was read from such a set, so setting it can't fail.
        let _ = self.cores.get(n).map(|core| set.set(*core));
        set
    }

    pub(super) fn vm(&self) -> &VmGroups {
        &self.vm
    }

    pub(super) fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub(super) fn program(&self) -> &Path {
        &self.program
    }

    /// Measures the CPU time that one block of work takes on an otherwise idle core.
    pub(super) fn time_of_a_block(&self) -> Result<Duration, TwoTierError> {
        let spec = MeasuredJobSpec { processes: 1, usage: 1.0, phases: 20, blocks: 500, seed: 0 };
        let job = MeasuredJob::start(self, "calibration", TierSlot::A, &spec)?;
        job.let_go()?;
        let TaskResult { units, cpu_seconds, .. } = job.wait_for_result()?;
        Ok(Duration::from_secs_f64(cpu_seconds / units.max(1) as f64))
    }
}

impl Drop for TwoTierHost {
    fn drop(&mut self) {
        // The guardian removes leftovers when this process ends.
        let _ = self.tree.remove(SOON);
    }
}

/// Cores this process may run on, ascending.
fn usable_cores() -> Vec<usize> {
    let all = sched_getaffinity(Pid::from_raw(0)).unwrap_or_default();
    (0..CpuSet::count()).filter(|core| all.is_set(*core).unwrap_or(false)).collect()
}

/// Processor time used by work other than the measured jobs.
pub(super) struct OtherWork {
    before: ClockTicks,
    ours_ns: u64,
}

impl OtherWork {
    pub(super) fn begin(host: &TwoTierHost) -> Result<Self, TwoTierError> {
        Ok(Self { before: read_ticks()?, ours_ns: host.vm.cpu_ns()? })
    }

    /// Fraction of all processors' time since the beginning that other programs used, including the time that a
    /// hypervisor took away.
    pub(super) fn share_elsewhere(&self, host: &TwoTierHost) -> Result<f64, TwoTierError> {
        let now = read_ticks()?;
        let ours_ns = host.vm.cpu_ns()?.saturating_sub(self.ours_ns);
        let ours = ours_ns as f64 / tick_ns() as f64;
        let busy = now.busy.saturating_sub(self.before.busy) as f64;
        let all = now.all.saturating_sub(self.before.all).max(1) as f64;
        Ok((busy - ours).max(0.0) / all)
    }
}

fn read_ticks() -> Result<ClockTicks, TwoTierError> {
    ClockTicks::read_ticks().map_err(TwoTierError::io("read", "/proc/stat"))
}

fn tick_ns() -> u64 {
    let ticks = nix::unistd::sysconf(nix::unistd::SysconfVar::CLK_TCK).ok().flatten();
    1_000_000_000 / u64::try_from(ticks.unwrap_or(100)).unwrap_or(100).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_may_run_somewhere() {
        assert!(!usable_cores().is_empty());
    }
}
