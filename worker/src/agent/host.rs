//! State that all VMs of one session of a worker share.

use std::{path::PathBuf, sync::Arc, time::Duration};

use dormouse_proto::{
    PACKED_CHUNKS,
    v1::{Report, StartTask, Welcome},
};
use dormouse_units::{Attempt, Speedup, TaskId};
use nix::time::{ClockId, clock_getres};
use tokio::sync::{Semaphore, mpsc};
use tonic::transport::Channel;

use super::{
    PreparedWorker, available_millicores, bounds,
    cores::HostCores,
    machine::{HostBackend, LifeContext},
    own,
    places::AttemptPlaces,
    report::explain_error,
    threads::DeletionQueue,
    transfer::WorkerTransfers,
};
use crate::{
    checkpointer::Checkpointer,
    contents::ContentCache,
    store::{ImageKey, LocalCheckpoints},
    workspace::{self, TaskName, Workspace},
};

/// Time limits after which steps count as failed.
pub(crate) mod limit {
    use std::time::Duration;

    /// Time limit for starting a program, up to its first own instruction.
    pub(crate) const BIRTH: Duration = Duration::from_secs(10);
    /// Time limit for CRIU's dump of a task without memory; for the time that memory adds see
    /// [`Checkpointer`](crate::checkpointer::Checkpointer).
    pub(crate) const DUMP: Duration = Duration::from_secs(30);
    /// Time limit for CRIU's restore of a task without memory.
    pub(crate) const RESTORE: Duration = Duration::from_secs(30);
    pub(crate) const FREEZE: Duration = Duration::from_secs(10);
    pub(crate) const KILL: Duration = Duration::from_secs(10);
    /// Time limit for one repetition of a measured program.
    pub(crate) const MEASURE: Duration = Duration::from_secs(600);
}

/// State that all VMs of one session of a worker share.
#[derive(Debug)]
pub(crate) struct LifeHost {
    pub(crate) prepared: Arc<PreparedWorker>,
    /// Store of checkpoints, sealed with the run's key.
    store: LocalCheckpoints,
    pub(crate) checkpointer: Option<Checkpointer>,
    pub(crate) run: String,
    /// Cores that the worker offers, in thousandths.
    pub(crate) millicores: u32,
    pub(crate) speedup: Speedup,
    /// True if a task is stopped for a checkpoint for as long as modelled.
    pub(crate) hold_checkpoints: bool,
    pub(crate) places: Arc<AttemptPlaces>,
    pub(crate) deletions: DeletionQueue,
    pub(crate) cores: Arc<HostCores>,
    /// Permits for dumps and restores: one for each core, as CRIU uses a core fully.
    pub(crate) criu: Arc<Semaphore>,
    /// Transfers of checkpoints between this worker and the coordinator.
    pub(crate) transfers: WorkerTransfers,
    /// Time between two ticks of the kernel's clock, within which an exhausted quota is noticed.
    pub(crate) tick: Duration,
    reports: mpsc::UnboundedSender<Report>,
}

/// Returns the time between two ticks of the kernel's clock, which is the resolution of its coarse clock.
pub(crate) fn clock_tick() -> Duration {
    const SLOWEST: Duration = Duration::from_millis(10);
    clock_getres(ClockId::CLOCK_MONOTONIC_COARSE).map_or(SLOWEST, Duration::from)
}

/// Returns the number of cores that this worker may use; a part of a core counts as one.
fn usable_cores() -> usize {
    usize::try_from(available_millicores().div_ceil(1000)).unwrap_or(1).max(1)
}

impl LifeHost {
    pub(crate) fn new(
        prepared: &Arc<PreparedWorker>,
        (welcome, speedup): (&Welcome, Speedup),
        coordinator: Channel,
        reports: mpsc::UnboundedSender<Report>,
    ) -> Self {
        // A coordinator that says none has workers of its own version: each has a key of its own.
        let store = match ImageKey::new(&welcome.image_key) {
            Some(key) => prepared.store.with_key(key),
            None => {
                tracing::warn!(
                    "the run has no key for checkpoints: no task can be restored on another worker"
                );
                prepared.store.clone()
            }
        };
        Self {
            prepared: Arc::clone(prepared),
            checkpointer: prepared.make_checkpointer(&store),
            store,
            run: welcome.run.clone(),
            millicores: prepared.millicores,
            speedup,
            hold_checkpoints: welcome.hold_checkpoints,
            places: Arc::default(),
            deletions: DeletionQueue::new(),
            cores: Arc::new(HostCores::of_this_process()),
            criu: Arc::new(Semaphore::new(usable_cores())),
            transfers: WorkerTransfers::new(coordinator, welcome.protocol >= PACKED_CHUNKS),
            tick: clock_tick(),
            reports,
        }
    }

    pub(crate) fn workspace(&self) -> &Workspace {
        &self.prepared.workspace
    }

    pub(crate) fn store(&self) -> &LocalCheckpoints {
        &self.store
    }

    /// Returns whether this host can restore checkpoints of the command's task; checkpoints of memory need CRIU.
    pub(crate) fn keeps_checkpoints(&self, order: &StartTask) -> bool {
        self.checkpointer.is_some() || !own::is_saved_by_criu(order)
    }

    /// Returns the cache of the contents of tasks' input files.
    pub(crate) fn contents(&self) -> &ContentCache {
        &self.prepared.contents
    }

    pub(crate) fn task_program(&self) -> PathBuf {
        self.prepared.program.clone()
    }

    pub(crate) fn task_name(&self, task: TaskId) -> workspace::Result<TaskName> {
        TaskName::new(self.run.clone(), task.get().to_string())
    }

    /// Removes the files of an attempt that has ended: its directory and, unless the next attempt needs them, its
    /// checkpoints.
    pub(crate) fn release_attempt(&self, name: &TaskName, key: (TaskId, Attempt), keeps: bool) {
        let (places, prepared) = (Arc::clone(&self.places), Arc::clone(&self.prepared));
        let name = name.clone();
        self.deletions.add_deletion(move || {
            places.release_directory(&prepared.workspace, &name, key, || {
                if !keeps && let Err(error) = prepared.store.remove_task(&name) {
                    // Removed at the end of the run at the latest.
                    tracing::warn!(
                        why = explain_error(&error),
                        "checkpoints of {name} can't be removed"
                    );
                }
            });
        });
    }

    /// Sends a report to the coordinator through the session.
    pub(crate) fn send_report(&self, report: Report) {
        // The session ends before the VMs only when nobody wants reports any more.
        let _ = self.reports.send(bounds::shorten_report(report));
    }

    /// Makes the context that the asynchronous tasks of all VMs of this session share.
    pub(crate) fn owner_context(self: &Arc<Self>) -> LifeContext {
        LifeContext {
            run: self.run.clone(),
            millicores: self.millicores,
            speedup: self.speedup,
            hold_checkpoints: self.hold_checkpoints,
            has_criu: self.checkpointer.is_some(),
            criu: Arc::clone(&self.criu),
            cores: Arc::clone(&self.cores),
            tick: self.tick,
            machine: Arc::new(HostBackend(Arc::clone(self))),
        }
    }
}
