//! This host made ready for measuring.

use std::path::{Path, PathBuf};
use std::time::Duration;

use dormouse_folders::HeldFolder;
use dormouse_tasks::result::TaskResult;
use dormouse_worker::cgroup::{CpuQuota, Hierarchy, InstanceName, Slot, Tree, Vm, sweep_stale};
use dormouse_worker::guardian::Guardian;
use dormouse_worker::process::{Identity, pid_namespace};
use dormouse_worker::workspace::make_kernel_files_writable;
use nix::sched::{CpuSet, sched_getaffinity};
use nix::unistd::Pid;

use super::TwoTierError;
use super::job::{Job, Spec};
use crate::ticks::Ticks;

/// The most time for what takes next to none.
pub(super) const SOON: Duration = Duration::from_secs(10);

/// The VM that all jobs share, with as many vCPUs as a job has processes at most.
const VM: u64 = 1;
const VCPUS: u32 = 2;

/// Control groups of this process's own, a folder for its jobs, and the cores it may use.
/// Dropping it takes all that away; whatever kills this process, its guardian does, and the
/// folder goes with the next live run.
#[derive(Debug)]
pub struct Host {
    tree: Tree,
    vm: Vm,
    folder: HeldFolder,
    program: PathBuf,
    cores: Vec<usize>,
    _guardian: Guardian,
}

impl Host {
    /// Makes this process one that measures with the `dormouse-task` at `program`. To be called
    /// before any thread is started.
    ///
    /// # Errors
    ///
    /// Without root or control groups; each says which.
    pub fn prepare(program: &Path) -> Result<Self, TwoTierError> {
        let user = nix::unistd::geteuid();
        if !user.is_root() {
            return Err(TwoTierError::NoRoot(user.as_raw()));
        }
        let hierarchy = Hierarchy::detect()?;
        let name = InstanceName { pid_namespace: pid_namespace()?, owner: Identity::current()? };
        make_kernel_files_writable(&hierarchy)?;
        let guardian = Guardian::start(&hierarchy, name)?;
        sweep_stale(&hierarchy, SOON)?;
        let tree = Tree::create(hierarchy, name, CpuQuota::DEFAULT_PERIOD_US)?;
        let vm = tree.create_vm(VM, VCPUS, None)?;
        let folder = crate::workers::folder()
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

    /// The number of processors that jobs can have.
    #[must_use]
    pub fn cores(&self) -> u32 {
        u32::try_from(self.cores.len()).unwrap_or(u32::MAX)
    }

    /// The core that is processor `n`, of which there are as many as [`Self::cores`] says.
    pub(super) fn core(&self, n: usize) -> CpuSet {
        let mut set = CpuSet::new();
        // Of a set that was read as one, every member can be set.
        let _ = self.cores.get(n).map(|core| set.set(*core));
        set
    }

    pub(super) fn vm(&self) -> &Vm {
        &self.vm
    }

    pub(super) fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub(super) fn program(&self) -> &Path {
        &self.program
    }

    /// CPU time that a block of work takes alone.
    pub(super) fn time_of_a_block(&self) -> Result<Duration, TwoTierError> {
        let spec = Spec { processes: 1, usage: 1.0, phases: 20, blocks: 500, seed: 0 };
        let job = Job::start(self, "calibration", Slot::A, &spec)?;
        job.let_go()?;
        let TaskResult { units, cpu_seconds, .. } = job.finish()?;
        Ok(Duration::from_secs_f64(cpu_seconds / units.max(1) as f64))
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        // What is left the guardian takes away when this process ends.
        let _ = self.tree.remove(SOON);
    }
}

/// The cores this process may run on, in their order.
fn usable_cores() -> Vec<usize> {
    let all = sched_getaffinity(Pid::from_raw(0)).unwrap_or_default();
    (0..CpuSet::count()).filter(|core| all.is_set(*core).unwrap_or(false)).collect()
}

/// The work of the processors besides what is measured.
pub(super) struct Busy {
    before: Ticks,
    ours_ns: u64,
}

impl Busy {
    pub(super) fn begin(host: &Host) -> Result<Self, TwoTierError> {
        Ok(Self { before: ticks()?, ours_ns: host.vm.cpu_ns()? })
    }

    /// The part of all processors' time that went to others since then, the time that a
    /// hypervisor took away included.
    pub(super) fn elsewhere(&self, host: &Host) -> Result<f64, TwoTierError> {
        let now = ticks()?;
        let ours_ns = host.vm.cpu_ns()?.saturating_sub(self.ours_ns);
        let ours = ours_ns as f64 / tick_ns() as f64;
        let busy = now.busy.saturating_sub(self.before.busy) as f64;
        let all = now.all.saturating_sub(self.before.all).max(1) as f64;
        Ok((busy - ours).max(0.0) / all)
    }
}

fn ticks() -> Result<Ticks, TwoTierError> {
    Ticks::now().map_err(TwoTierError::io("read", "/proc/stat"))
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
