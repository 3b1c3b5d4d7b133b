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

/// What is done with a restored task before its first instruction, or why it must not run: see [`CriuProgram::restore_process`].
pub type BeforeRunning<'a> = dyn FnMut(RestoreMoment) -> Step + Send + 'a;

/// What is done just before a task is stopped for its checkpoint, or why it must not be.
pub type Begin<'a> = dyn FnMut() -> Step + 'a;

/// What is done once a task stands still for its checkpoint, and how much CPU time it has had.
pub type OnceStopped<'a> = dyn FnMut(u64) -> Step + 'a;

/// What CRIU copies at least, in bytes per second: a disk that is slow and shared does more.
const SLOWEST: u64 = 16 << 20;

/// How long CRIU may take for so much memory, whose task must not be taken for lost meanwhile.
fn copying_time(bytes: u64) -> Duration {
    Duration::from_micros(bytes.saturating_mul(1_000_000) / SLOWEST)
}

/// Takes and restores checkpoints. Calls for different tasks may run at the same time.
///
/// Their deadlines are those of tasks without memory: CRIU has longer the more there is to copy.
#[derive(Debug)]
pub struct Checkpointer {
    criu: CriuProgram,
    version: CriuRelease,
    store: LocalCheckpoints,
    tasks: PathBuf,
    /// Who lends users to tasks, where tasks have users of their own.
    users: Option<Arc<UserLeases>>,
    /// How much longer CRIU takes than it does, as an experiment asks for: microseconds.
    slower_us: Arc<AtomicU64>,
}

/// Has CRIU take longer, until it is dropped.
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
    /// With this CRIU, whose version is known from its probe, for the tasks of this workspace.
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

    /// Has CRIU take this much longer for each dump and restore, while the task stands still, until what
    /// this returns is dropped.
    pub fn slow_down(&self, by: Duration) -> SlowedDown {
        // Ten minutes: all that waits for CRIU has given up long before.
        let by_us = u64::try_from(by.as_micros()).unwrap_or(u64::MAX).min(600_000_000);
        self.slower_us.fetch_add(by_us, Ordering::Relaxed);
        SlowedDown { slower_us: Arc::clone(&self.slower_us), by_us }
    }

    /// Takes as much longer as an experiment has asked for.
    fn take_longer(&self) {
        let slower_us = self.slower_us.load(Ordering::Relaxed);
        if slower_us > 0 {
            thread::sleep(Duration::from_micros(slower_us));
        }
    }

    /// The store of the checkpoints.
    #[must_use]
    pub fn store(&self) -> &LocalCheckpoints {
        &self.store
    }

    /// The user of a task in a VM whose tasks have users of their own: the owner of its directory.
    fn task_user(&self, name: &TaskName, vm: &VmGroups) -> Result<Option<u32>> {
        let directory = self.tasks.join(name.relative_path());
        let Some(cell) = vm.cell() else { return Ok(None) };
        cell.directory_user(&directory)
            .map_err(|source| CheckpointerError::User { task: name.clone(), source })
    }
}
