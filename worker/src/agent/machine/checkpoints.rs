//! Checkpoints of attempts: what is asked of a machine, and what it gives.

use std::{
    fmt::Debug,
    sync::{Arc, atomic::AtomicU64},
    time::Duration,
};

use dormouse_units::Ppm;
use dormouse_vm::life::Seat;
use tokio::{sync::OwnedSemaphorePermit, time::Instant};

use super::{
    backend::BoxedFuture,
    process::{ProgressPage, TaskProcess},
};
use crate::{
    agent::{gate::Pass, report::Key, vm::JobRank},
    cgroup::Slot,
    criu::AfterDump,
    store::Progress,
    workspace::TaskName,
};

/// A checkpoint of a task of one process, which is to be taken at the place at CRIU that `permit` holds.
#[derive(Debug)]
pub(crate) struct TaskDump {
    pub(crate) key: Key,
    pub(crate) name: TaskName,
    pub(crate) cpu: u32,
    pub(crate) slot: Slot,
    pub(crate) process: Arc<dyn TaskProcess>,
    /// `None` for programs that say nothing.
    pub(crate) page: Option<Arc<dyn ProgressPage>>,
    /// The memory is dumped by CRIU; else the directory alone is kept.
    pub(crate) by_criu: bool,
    /// The part of its work that it was due to hold: it holds no more.
    pub(crate) due: Option<Ppm>,
    /// The part of its work that a program of the user's own has done, which does not say so itself.
    pub(crate) own_done: Option<Ppm>,
    pub(crate) after: AfterDump,
    pub(crate) permit: Option<OwnedSemaphorePermit>,
}

/// A checkpoint of a parallel job, of all its processes together, after which it goes on in its places.
#[derive(Debug)]
pub(crate) struct JobDump {
    pub(crate) key: Key,
    pub(crate) name: TaskName,
    pub(crate) seats: Vec<Seat>,
    pub(crate) process: Arc<dyn TaskProcess>,
    pub(crate) ranks: Vec<JobRank>,
    pub(crate) page: Option<Arc<dyn ProgressPage>>,
    /// The part of its work that it was due to hold: it holds no more.
    pub(crate) due: Option<Ppm>,
    pub(crate) after: AfterDump,
    pub(crate) permit: Option<OwnedSemaphorePermit>,
}

/// A parallel job that is to be dumped and to leave its places.
#[derive(Debug)]
pub(crate) struct JobLeave {
    pub(crate) name: TaskName,
    pub(crate) seats: Vec<Seat>,
    pub(crate) process: Arc<dyn TaskProcess>,
    pub(crate) ranks: Vec<JobRank>,
    pub(crate) progress: Progress,
}

/// A checkpoint in the worker's own store, of a task that stands still or has been killed.
#[derive(Debug)]
pub(crate) struct TakenCheckpoint {
    pub(crate) number: u32,
    /// The part of the task's work that it holds, in ppm.
    pub(crate) ppm: u32,
    /// The size of all that is in it.
    pub(crate) bytes: u64,
    /// The time at which the task began to stand still.
    pub(crate) stopped_at: Instant,
    /// The time from then until CRIU let the task go.
    pub(crate) dump: Duration,
    /// CPU time that CRIU's code in the task used, in nanoseconds.
    pub(crate) foreign_ns: u64,
    /// Its way to the coordinator.
    pub(crate) upload: Box<dyn CheckpointUpload>,
}

/// A checkpoint that is to be sent to the coordinator.
pub(crate) trait CheckpointUpload: Debug + Send + Sync {
    /// Sends it, for as long as `pass` allows, and counts in `sent` the bytes that are on their way; the bytes that the
    /// coordinator has in the end.
    ///
    /// # Errors
    /// In words, why the coordinator does not have it.
    fn send(self: Box<Self>, pass: Pass, sent: Arc<AtomicU64>) -> BoxedFuture<Result<u64, String>>;
}
