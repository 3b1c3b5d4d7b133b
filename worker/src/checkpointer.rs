//! Checkpoints of running tasks: CRIU, the store and the task's files put together.

use std::{
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    thread,
    time::Duration,
};

use crate::{
    cgroup::VmGroups,
    criu::{CriuProgram, CriuRelease, RestoreMoment, Step},
    store::LocalCheckpoints,
    workspace::{TaskName, UserLeases, Workspace},
};

mod error;
mod followed;
mod restore;
mod seen;
mod take;

pub use error::{CheckpointerError, Result};
pub use restore::RestoredTask;
pub use take::{DumpedTask, SnappedTask};

/// Called before a restored task's first instruction; an error says why it must not run. See
/// [`CriuProgram::restore_process`].
pub type BeforeRunning<'a> = dyn FnMut(RestoreMoment) -> Step + Send + 'a;

/// Called just before a task is stopped for its checkpoint; an error says why the task must not be stopped.
pub type Begin<'a> = dyn FnMut() -> Step + 'a;

/// Called with a task's CPU time once it is stopped for its checkpoint.
pub type OnceStopped<'a> = dyn FnMut(u64) -> Step + 'a;

/// Smallest rate at which CRIU copies, in bytes per second: even a slow and shared disk is faster.
const SLOWEST: u64 = 16 << 20;

/// Returns the time that CRIU may take to copy `bytes` of memory, during which the task must not count as lost.
fn copying_time(bytes: u64) -> Duration {
    Duration::from_micros(bytes.saturating_mul(1_000_000) / SLOWEST)
}

/// Takes and restores checkpoints. Calls for different tasks may run at the same time.
///
/// Deadlines are given for tasks without memory: CRIU gets more time the more there is to copy.
#[derive(Debug)]
pub struct Checkpointer {
    criu: CriuProgram,
    version: CriuRelease,
    store: LocalCheckpoints,
    tasks: PathBuf,
    /// Lends users to tasks; `None`: tasks have no users of their own.
    users: Option<Arc<UserLeases>>,
    /// Microseconds by which each operation of CRIU is slowed down, as a fault of the experiment.
    slower_us: Arc<AtomicU64>,
}

/// Guard for a fault of the experiment: CRIU is slowed down until the guard is dropped.
#[derive(Debug)]
#[must_use]
pub struct SlowedDown {
    slower_us: Arc<AtomicU64>,
    by_us: u64,
}

impl Drop for SlowedDown {
    fn drop(&mut self) {
        self.slower_us.fetch_sub(self.by_us, Ordering::Relaxed);
    }
}

impl Checkpointer {
    /// Makes the checkpointer of the workspace's tasks, with the given CRIU, whose version is known from its probe.
    #[must_use]
    pub fn new(
        criu: CriuProgram,
        version: CriuRelease,
        store: LocalCheckpoints,
        workspace: &Workspace,
    ) -> Self {
        let slower_us = Arc::default();
        let (tasks, users) = (workspace.tasks_directory(), workspace.user_leases().cloned());
        Self { criu, version, store, tasks, users, slower_us }
    }

    /// Makes each dump and restore, in which the task is stopped, take longer by `by`, until the returned value is dropped.
    pub fn slow_down(&self, by: Duration) -> SlowedDown {
        // Ten minutes: all that waits for CRIU has given up long before.
        let by_us = u64::try_from(by.as_micros()).unwrap_or(u64::MAX).min(600_000_000);
        self.slower_us.fetch_add(by_us, Ordering::Relaxed);
        SlowedDown { slower_us: Arc::clone(&self.slower_us), by_us }
    }

    /// Waits for as long as the experiment's fault slows CRIU down.
    fn take_longer(&self) {
        let slower_us = self.slower_us.load(Ordering::Relaxed);
        if slower_us > 0 {
            thread::sleep(Duration::from_micros(slower_us));
        }
    }

    /// Returns the store of the checkpoints.
    #[must_use]
    pub fn store(&self) -> &LocalCheckpoints {
        &self.store
    }

    /// Returns the user of a task, which is the owner of its directory; `None`: tasks of the VM have no users of
    /// their own.
    fn task_user(&self, name: &TaskName, vm: &VmGroups) -> Result<Option<u32>> {
        let directory = self.tasks.join(name.relative_path());
        let Some(cell) = vm.cell() else { return Ok(None) };
        cell.directory_user(&directory)
            .map_err(|source| CheckpointerError::User { task: name.clone(), source })
    }
}
