//! Checkpoints of attempts: the orders that a machine gets, and their results.

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

/// Order to take a checkpoint of a task of one process, while `permit` holds a place at CRIU.
#[derive(Debug)]
pub struct TaskDump {
    /// The attempt at the task.
    pub key: Key,
    /// Name of the task's folder and checkpoints.
    pub name: TaskName,
    /// The vCPU that the task runs on.
    pub cpu: u32,
    /// The slot of the vCPU that the task runs in.
    pub slot: TierSlot,
    /// The task's process, or the parent of its processes.
    pub process: Arc<dyn TaskProcess>,
    /// Memory page on which the task reports its progress; `None` for programs that don't report it.
    pub page: Option<Arc<dyn ProgressPage>>,
    /// True if CRIU dumps the task's memory; otherwise only the task's directory is saved.
    pub by_criu: bool,
    /// Part of the task's work that was due; the checkpoint holds no more.
    pub due: Option<Ppm>,
    /// Part of the task's work that a user's own program has done, as the worker computes it; the program doesn't
    /// report it.
    pub own_done: Option<Ppm>,
    /// What happens to the task after the dump.
    pub after: AfterDump,
    /// The task's place at CRIU; `None` if CRIU isn't needed.
    pub permit: Option<OwnedSemaphorePermit>,
}

/// Order to take a checkpoint of a parallel job with all its processes; the job continues in its seats.
#[derive(Debug)]
pub struct JobDump {
    /// The attempt at the job.
    pub key: Key,
    /// Name of the job's folder and checkpoints.
    pub name: TaskName,
    /// Seats of the job's processes, by rank.
    pub seats: Vec<AttemptSeat>,
    /// The job's process, or the parent of its processes.
    pub process: Arc<dyn TaskProcess>,
    /// The job's processes, by rank.
    pub ranks: Vec<JobRank>,
    /// Memory page on which the job reports its progress; `None` for programs that don't report it.
    pub page: Option<Arc<dyn ProgressPage>>,
    /// Part of the job's work that was due; the checkpoint holds no more.
    pub due: Option<Ppm>,
    /// What happens to the job after the dump.
    pub after: AfterDump,
    /// The job's place at CRIU; `None` if CRIU isn't needed.
    pub permit: Option<OwnedSemaphorePermit>,
}

/// Order to dump a parallel job, which then frees its seats.
#[derive(Debug)]
pub struct JobLeave {
    /// Name of the job's folder and checkpoints.
    pub name: TaskName,
    /// Seats of the job's processes, by rank.
    pub seats: Vec<AttemptSeat>,
    /// The job's process, or the parent of its processes.
    pub process: Arc<dyn TaskProcess>,
    /// The job's processes, by rank.
    pub ranks: Vec<JobRank>,
    /// The job's progress, to be recorded in the checkpoint.
    pub progress: SavedProgress,
}

/// A checkpoint in the worker's own store, of a task that is stopped or was killed.
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
    /// Time from `stopped_at` until CRIU released the task.
    pub dump: Duration,
    /// CPU time of CRIU's code in the task, in nanoseconds.
    pub foreign_ns: u64,
    /// Sends the checkpoint to the coordinator.
    pub upload: Box<dyn CheckpointUpload>,
}

/// A checkpoint to be sent to the coordinator.
pub trait CheckpointUpload: Debug + Send + Sync {
    /// Sends the checkpoint as long as `pass` allows it, and counts the bytes in transit in `sent`; returns the number
    /// of bytes that the coordinator has stored.
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
