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

/// A checkpoint of a task of one process, which is to be taken at the place at CRIU that `permit` holds.
#[derive(Debug)]
pub struct TaskDump {
    /// Names the attempt.
    pub key: Key,
    /// Names its folder and its checkpoints.
    pub name: TaskName,
    /// The vCPU that it is on.
    pub cpu: u32,
    /// The slot of the vCPU.
    pub slot: TierSlot,
    /// Its process, or the parent of all its processes.
    pub process: Arc<dyn TaskProcess>,
    /// The page on which it says how far it is; `None` for programs that say nothing.
    pub page: Option<Arc<dyn ProgressPage>>,
    /// The memory is dumped by CRIU; else the directory alone is kept.
    pub by_criu: bool,
    /// The part of its work that it was due to hold: it holds no more.
    pub due: Option<Ppm>,
    /// The part of its work that a program of the user's own has done, which does not say so itself.
    pub own_done: Option<Ppm>,
    /// What becomes of it after the dump.
    pub after: AfterDump,
    /// Its place at CRIU.
    pub permit: Option<OwnedSemaphorePermit>,
}

/// A checkpoint of a parallel job, of all its processes together, after which it goes on in its places.
#[derive(Debug)]
pub struct JobDump {
    /// Names the attempt.
    pub key: Key,
    /// Names its folder and its checkpoints.
    pub name: TaskName,
    /// The seats of its processes, by their number.
    pub seats: Vec<AttemptSeat>,
    /// Its process, or the parent of all its processes.
    pub process: Arc<dyn TaskProcess>,
    /// Its processes, by their number.
    pub ranks: Vec<JobRank>,
    /// The page on which it says how far it is; `None` for programs that say nothing.
    pub page: Option<Arc<dyn ProgressPage>>,
    /// The part of its work that it was due to hold: it holds no more.
    pub due: Option<Ppm>,
    /// What becomes of it after the dump.
    pub after: AfterDump,
    /// Its place at CRIU.
    pub permit: Option<OwnedSemaphorePermit>,
}

/// A parallel job that is to be dumped and to leave its places.
#[derive(Debug)]
pub struct JobLeave {
    /// Names its folder and its checkpoints.
    pub name: TaskName,
    /// The seats of its processes, by their number.
    pub seats: Vec<AttemptSeat>,
    /// Its process, or the parent of all its processes.
    pub process: Arc<dyn TaskProcess>,
    /// Its processes, by their number.
    pub ranks: Vec<JobRank>,
    /// What the checkpoint is to say of its work.
    pub progress: SavedProgress,
}

/// A checkpoint in the worker's own store, of a task that stands still or has been killed.
#[derive(Debug)]
pub struct TakenCheckpoint {
    /// The checkpoint's number, counted for each task from 1.
    pub number: u32,
    /// The part of the task's work that it holds, in ppm.
    pub ppm: u32,
    /// The size of all that is in it.
    pub bytes: u64,
    /// The time at which the task began to stand still.
    pub stopped_at: Instant,
    /// The time from then until CRIU let the task go.
    pub dump: Duration,
    /// CPU time that CRIU's code in the task used, in nanoseconds.
    pub foreign_ns: u64,
    /// Its way to the coordinator.
    pub upload: Box<dyn CheckpointUpload>,
}

/// A checkpoint that is to be sent to the coordinator.
pub trait CheckpointUpload: Debug + Send + Sync {
    /// Sends it, for as long as `pass` allows, and counts in `sent` the bytes that are on their way; the bytes that the
    /// coordinator has in the end.
    ///
    /// # Errors
    /// In words, why the coordinator does not have it.
    fn send(
        self: Box<Self>,
        pass: LaunchPass,
        sent: Arc<AtomicU64>,
    ) -> BoxedFuture<Result<u64, String>>;
}
