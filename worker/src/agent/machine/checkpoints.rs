//! Checkpoints of attempts: the orders that a machine gets, and their results.

use std::{
    fmt::Debug,
    sync::{Arc, atomic::AtomicU64},
    time::Duration,
};

use dormouse_proto::v1::CheckpointRef;
use dormouse_vm::life::AttemptSeat;
use tokio::{sync::OwnedSemaphorePermit, time::Instant};

use super::{
    backend::BoxedFuture,
    launches::first_slot,
    process::{ProgressPage, TaskProcess},
};
use crate::{
    agent::{gate::LaunchPass, vm::JobRank},
    cgroup::TierSlot,
    criu::AfterDump,
    workspace::TaskName,
};

/// How an attempt is dumped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DumpWay {
    /// CRIU dumps a task of one process, which a signal stops.
    Task,
    /// CRIU dumps all processes of a parallel job, which signals stop.
    Job,
    /// CRIU dumps a user's own program, which is held in its slot.
    Own,
    /// Only the directory of a user's own program is saved; the program is held in its slot.
    OwnDirectory,
}

/// Order to dump an attempt: a parallel job, or a task, which is a job of one process.
#[derive(Debug)]
pub struct AttemptDump {
    /// Name of the task's folder and checkpoints.
    pub name: TaskName,
    /// How the attempt is dumped.
    pub way: DumpWay,
    /// Seats of the attempt's processes.
    pub seats: Vec<AttemptSeat>,
    /// The attempt's only process, or the parent of its processes.
    pub process: Arc<dyn TaskProcess>,
    /// The processes of a parallel job, by rank; empty for other tasks.
    pub ranks: Vec<JobRank>,
    /// Memory page on which the attempt reports its progress; `None` for programs that don't report it.
    pub page: Option<Arc<dyn ProgressPage>>,
    /// What happens to the attempt after the dump.
    pub after: AfterDump,
    /// The attempt's permit to use CRIU, which may be used while the permit exists; `None` if CRIU isn't needed.
    pub permit: Option<OwnedSemaphorePermit>,
}

impl AttemptDump {
    /// Returns the vCPU and the slot of a task's only process.
    pub(crate) fn task_slot(&self) -> (u32, TierSlot) {
        first_slot(&self.seats)
    }
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
    /// Time of the whole dump, until the checkpoint was complete in the store.
    pub took: Duration,
    /// CPU time of CRIU's code in the task, in nanoseconds.
    pub foreign_ns: u64,
    /// Sends the checkpoint to the coordinator.
    pub upload: Box<dyn CheckpointUpload>,
}

/// A checkpoint to be sent to the coordinator.
pub trait CheckpointUpload: Debug + Send + Sync {
    /// Sends the checkpoint as `reference`, as long as `pass` allows it, and counts the bytes in transit in `sent`; returns
    /// the number of bytes that the coordinator has stored.
    ///
    /// # Errors
    ///
    /// In words, why the coordinator doesn't have it.
    fn send(
        self: Box<Self>,
        pass: LaunchPass,
        reference: CheckpointRef,
        sent: Arc<AtomicU64>,
    ) -> BoxedFuture<Result<u64, String>>;
}
