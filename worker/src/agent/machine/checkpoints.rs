//! Checkpoints of attempts: what is asked of a machine, and what it gives.

use std::{
    fmt::Debug,
    sync::{Arc, atomic::AtomicU64},
    time::Duration,
};

use dormouse_units::Ppm;
use dormouse_vm::life::AttemptSeat;
use tokio::{sync::OwnedSemaphorePermit, time::Instant};

use super::{
    backend::BoxedFuture,
    process::{ProgressPage, TaskProcess},
};
use crate::{
    agent::{gate::LaunchPass, report::Key, vm::JobRank},
    cgroup::TierSlot,
    criu::AfterDump,
    store::SavedProgress,
    workspace::TaskName,
};

/// Order to checkpoint a task of one process, in the turn at CRIU that `permit` holds.
#[derive(Debug)]
pub struct TaskDump {
    /// The attempt.
    pub key: Key,
    /// Name under which the attempt's folder and its checkpoints are kept.
    pub name: TaskName,
    /// The task's vCPU.
    pub cpu: u32,
    /// The task's slot on the vCPU.
    pub slot: TierSlot,
    /// The task's only process, or the parent of its processes.
    pub process: Arc<dyn TaskProcess>,
    /// Page on which the program reports its progress; `None` for programs that don't.
    pub page: Option<Arc<dyn ProgressPage>>,
    /// True if CRIU dumps the task's memory; otherwise only the task's directory is saved.
    pub by_criu: bool,
    /// Part of the task's work that was due; the checkpoint holds no more than this.
    pub due: Option<Ppm>,
    /// Part of the task's work that is done, for a user's own program, which doesn't report that itself.
    pub own_done: Option<Ppm>,
    /// What happens to the task after the dump.
    pub after: AfterDump,
    /// Permit to use CRIU, while it is the attempt's turn.
    pub permit: Option<OwnedSemaphorePermit>,
}

/// Order to checkpoint a parallel job with all its processes, which then runs on in its seats.
#[derive(Debug)]
pub struct JobDump {
    /// The attempt.
    pub key: Key,
    /// Name under which the attempt's folder and its checkpoints are kept.
    pub name: TaskName,
    /// Seats of the job's processes, by rank.
    pub seats: Vec<AttemptSeat>,
    /// The parent of the job's processes.
    pub process: Arc<dyn TaskProcess>,
    /// The job's processes, by rank.
    pub ranks: Vec<JobRank>,
    /// Page on which the program reports its progress; `None` for programs that don't.
    pub page: Option<Arc<dyn ProgressPage>>,
    /// Part of the job's work that was due; the checkpoint holds no more than this.
    pub due: Option<Ppm>,
    /// What happens to the job after the dump.
    pub after: AfterDump,
    /// Permit to use CRIU, while it is the attempt's turn.
    pub permit: Option<OwnedSemaphorePermit>,
}

/// Order to dump a parallel job, which then leaves its seats.
#[derive(Debug)]
pub struct JobLeave {
    /// Name under which the attempt's folder and its checkpoints are kept.
    pub name: TaskName,
    /// Seats of the job's processes, by rank.
    pub seats: Vec<AttemptSeat>,
    /// The parent of the job's processes.
    pub process: Arc<dyn TaskProcess>,
    /// The job's processes, by rank.
    pub ranks: Vec<JobRank>,
    /// Progress to be recorded in the checkpoint.
    pub progress: SavedProgress,
}

/// A checkpoint in the worker's own store, of a task that stands still or was killed.
#[derive(Debug)]
pub struct TakenCheckpoint {
    /// Number of the checkpoint, counted for each task from 1.
    pub number: u32,
    /// Part of the task's work that the checkpoint holds, in ppm.
    pub ppm: u32,
    /// Size of the checkpoint in bytes.
    pub bytes: u64,
    /// Time at which the task was stopped.
    pub stopped_at: Instant,
    /// Time from `stopped_at` until CRIU released the task.
    pub dump: Duration,
    /// CPU time of CRIU's code in the task, in nanoseconds.
    pub foreign_ns: u64,
    /// Sends the checkpoint to the coordinator.
    pub upload: Box<dyn CheckpointUpload>,
}

/// A checkpoint to be sent to the coordinator.
pub trait CheckpointUpload: Debug + Send + Sync {
    /// Sends the checkpoint for as long as `pass` allows, and counts the bytes in transit in `sent`; returns the
    /// bytes that the coordinator has in the end.
    ///
    /// # Errors
    ///
    /// In words, why the coordinator doesn't have it.
    fn send(
        self: Box<Self>,
        pass: LaunchPass,
        sent: Arc<AtomicU64>,
    ) -> BoxedFuture<Result<u64, String>>;
}
