//! State that all VMs of one session of a worker share.

use std::{path::PathBuf, sync::Arc, time::Duration};

use dormouse_proto::{
    PACKED_CHUNKS,
    v1::{self, Report, StartTask, VmConsole, Welcome},
};
use dormouse_units::{Speedup, TaskId};
use nix::time::{ClockId, clock_getres};
use tokio::sync::{Semaphore, mpsc};
use tonic::transport::Channel;

use super::{
    PreparedWorker, available_millicores, bounds,
    cell::{FilesAbsence, InstanceFolders, NetworkSwitch, NetworkUplink},
    cores::HostCores,
    machine::{HostBackend, LifeContext},
    memory::available_memory,
    own,
    places::AttemptPlaces,
    report::{Key, explain_error, make_report},
    threads::DeletionQueue,
    transfer::WorkerTransfers,
};
use crate::{
    checkpointer::Checkpointer,
    contents::ContentCache,
    store::{ImageKey, LocalCheckpoints},
    workspace::{self, TaskName, Workspace},
};

/// Time limits after which a worker's operation, such as a dump or a restore, counts as failed.
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

/// Part of this host's free memory that files of stopped instances may take: one in so many bytes.
const KEPT_SHARE: u64 = 4;
/// Most bytes of the files of stopped instances, if the kernel does not say how much memory is free.
const KEPT_BYTES: u64 = 1 << 30;

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
    /// Folders of the files of instances.
    pub(crate) folders: Arc<InstanceFolders>,
    /// Private networks of instances.
    pub(crate) switch: Arc<NetworkSwitch>,
    /// Way of packets to instances on other hosts.
    pub(crate) uplink: NetworkUplink,
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
            folders: Arc::new(InstanceFolders::new(
                available_memory().map_or(KEPT_BYTES, |bytes| bytes / KEPT_SHARE),
            )),
            switch: Arc::default(),
            uplink: NetworkUplink::new(coordinator.clone()),
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

    /// Gives a task's directory, emptied, to an attempt.
    ///
    /// # Errors
    ///
    /// In words, why the directory can't be emptied.
    pub(crate) fn claim_directory(&self, name: &TaskName, key: Key) -> Result<(), String> {
        let workspace = self.workspace();
        let emptied = self.places.claim_directory(key, || {
            workspace.remove_task(name)?;
            workspace.create_task(name).map(drop)
        });
        emptied.map_err(|e: workspace::WorkspaceError| explain_error(&e))
    }

    /// Removes the files of an attempt that has ended: its directory and, unless the next attempt needs them, its
    /// checkpoints.
    pub(crate) fn release_attempt(&self, name: &TaskName, key: Key, keeps: bool) {
        let (places, prepared) = (Arc::clone(&self.places), Arc::clone(&self.prepared));
        let name = name.clone();
        self.deletions.add_deletion(move || {
            places.release_directory(key, || {
                if let Err(error) = prepared.workspace.remove_task(&name) {
                    // The next start of a worker here removes it.
                    tracing::warn!(%error, task = %name, "the task's directory can't be removed");
                }
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

    /// Handles that the VM of an instance has ended: the instance's files are kept, or removed.
    pub(crate) fn release_folder(&self, name: &TaskName, vm: u32, keeps: bool) {
        let (folders, prepared) = (Arc::clone(&self.folders), Arc::clone(&self.prepared));
        let name = name.clone();
        let reports = self.reports.clone();
        self.deletions.add_deletion(move || {
            let bytes = prepared.workspace.used_bytes(&name).unwrap_or_default();
            let remove = || remove_folder(&prepared, &name);
            match folders.release(&name, vm, keeps, bytes, remove) {
                None | Some(FilesAbsence::NeverBegun) => {}
                Some(absence) => {
                    tracing::warn!(vm, folder = %name, %absence, "the files of an instance are not kept");
                    let text = format!("[dormouse: the instance's files are not kept: {absence}]\n");
                    let console = VmConsole { vm, text };
                    // The session ends before the VMs only when nobody wants reports any more.
                    let _ = reports.send(make_report(v1::report::Report::VmConsole(console)));
                }
            }
        });
    }

    /// Removes the files that are kept in the folder of an instance, as they are not needed any more.
    pub(crate) fn forget_folder(&self, name: &TaskName) {
        let (folders, prepared) = (Arc::clone(&self.folders), Arc::clone(&self.prepared));
        let name = name.clone();
        self.deletions.add_deletion(move || {
            folders.forget(&name, || remove_folder(&prepared, &name));
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

/// Removes the folder of an instance's files.
fn remove_folder(prepared: &PreparedWorker, name: &TaskName) {
    if let Err(error) = prepared.workspace.remove_task(name) {
        // The run's end removes it.
        tracing::warn!(%error, folder = %name, "the files of an instance can't be removed");
    }
}
