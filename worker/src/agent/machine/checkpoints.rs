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
    /// The attempt at the task that is checkpointed.
    pub key: Key,
    /// Name that the task's folder and checkpoints have.
    pub name: TaskName,
    /// The vCPU on which the task runs.
    pub cpu: u32,
    /// The slot of the vCPU in which the task runs.
    pub slot: TierSlot,
    /// The task's process, or the parent of its processes.
    pub process: Arc<dyn TaskProcess>,
    /// Page on which the task reports its progress; `None` for programs that report none.
    pub page: Option<Arc<dyn ProgressPage>>,
    /// True if CRIU dumps the task's memory; otherwise only its directory is saved.
    pub by_criu: bool,
    /// Part of the task's work that was due; the checkpoint counts no more.
    pub due: Option<Ppm>,
    /// Part of the work that a user's own program has done by the worker's measure, as such a program reports no
    /// progress.
    pub own_done: Option<Ppm>,
    /// Whether the task continues or is killed after the dump.
    pub after: AfterDump,
    /// The task's turn at CRIU.
    pub permit: Option<OwnedSemaphorePermit>,
}

/// Order to checkpoint a parallel job with all its processes, which then runs on in its seats.
#[derive(Debug)]
pub struct JobDump {
    /// The attempt at the job that is checkpointed.
    pub key: Key,
    /// Name that the job's folder and checkpoints have.
    pub name: TaskName,
    /// Seats of the job's processes, by rank.
    pub seats: Vec<AttemptSeat>,
    /// The parent of the job's processes.
    pub process: Arc<dyn TaskProcess>,
    /// The job's processes, by rank.
    pub ranks: Vec<JobRank>,
    /// Page on which the job reports its progress; `None` for programs that report none.
    pub page: Option<Arc<dyn ProgressPage>>,
    /// Part of the job's work that was due; the checkpoint counts no more.
    pub due: Option<Ppm>,
    /// Whether the job continues or is killed after the dump.
    pub after: AfterDump,
    /// The job's turn at CRIU.
    pub permit: Option<OwnedSemaphorePermit>,
}

/// Order to dump a parallel job, which then leaves its seats.
#[derive(Debug)]
pub struct JobLeave {
    /// Name that the job's folder and checkpoints have.
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
    /// Instant at which the task was stopped for the checkpoint.
    pub stopped_at: Instant,
    /// Time from the stop of the task until CRIU released it.
    pub dump: Duration,
    /// CPU time of CRIU's code in the task, in nanoseconds.
    pub foreign_ns: u64,
    /// Upload that sends the checkpoint to the coordinator.
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
