//! What really happened on the simulated machines, told by these themselves.
//!
//! A coordinator hears of its workers only what they say. The oracle compares that, and what is in
//! the log, with what the machines did.

use std::sync::{Arc, Mutex, PoisonError};

use dormouse_proto::v1;
use dormouse_units::{Attempt, CheckpointSeq, Ppm, TaskId, VmId};

/// The head of a simulated checkpoint: whose work it holds, and how much of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Image {
    /// The task whose work it is.
    pub task: TaskId,
    /// The attempt that was dumped.
    pub attempt: Attempt,
    /// The checkpoint's number.
    pub number: CheckpointSeq,
    /// The part of the work that was done by then.
    pub done: Ppm,
}

/// One thing that a simulated machine did.
#[derive(Clone, Debug, PartialEq)]
pub enum Deed {
    /// A process of a task began.
    Began {
        /// The name of the worker.
        worker: String,
        /// The life of the worker.
        incarnation: u64,
        /// The VM that the process is on.
        vm: VmId,
        /// The task that is run.
        task: TaskId,
        /// The number of this start.
        attempt: Attempt,
        /// The checkpoint that it is to go on from.
        from: Option<CheckpointSeq>,
    },
    /// A process was dumped.
    CheckpointMade(Image),
    /// A process computed the task's answer.
    WorkDone {
        /// The task whose answer it is.
        task: TaskId,
        /// The attempt that computed it.
        attempt: Attempt,
    },
    /// A process that was to go on from a checkpoint came to life.
    Restored {
        /// The task that goes on.
        task: TaskId,
        /// The attempt that goes on.
        attempt: Attempt,
        /// The image as it was found; `None`: none was, and it begins from scratch.
        image: Option<Image>,
    },
    /// A report was handed to the session client.
    Said {
        /// The name of the worker.
        worker: String,
        /// The life of the worker.
        incarnation: u64,
        /// The worker's words.
        report: v1::Report,
    },
    /// A command reached the worker's life.
    Obeyed {
        /// The name of the worker.
        worker: String,
        /// The life of the worker.
        incarnation: u64,
        /// The command's number in the session.
        number: u64,
        /// What is to be done.
        command: v1::Command,
    },
    /// A process of an attempt is gone: it ended, was stopped, or was killed with its VM or worker.
    Gone {
        /// The task that was run.
        task: TaskId,
        /// The number of the start.
        attempt: Attempt,
    },
}

/// The ear of the oracle: simulated machines tell it what they do.
#[derive(Clone, Debug, Default)]
pub struct Witness(Arc<Mutex<Vec<Deed>>>);

impl Witness {
    /// Says one thing.
    pub fn tell(&self, deed: Deed) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(deed);
    }

    /// All that was said since the last call, in order.
    #[must_use]
    pub fn take(&self) -> Vec<Deed> {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// A process of a task began on a VM.
    pub fn began(
        &self,
        (worker, incarnation): (&str, u64),
        vm: VmId,
        task: TaskId,
        attempt: Attempt,
        from: Option<CheckpointSeq>,
    ) {
        let worker = worker.to_owned();
        self.tell(Deed::Began { worker, incarnation, vm, task, attempt, from });
    }

    /// A process was dumped to this image.
    pub fn checkpoint_made(&self, image: Image) {
        self.tell(Deed::CheckpointMade(image));
    }

    /// A process has computed its task's answer.
    pub fn work_done(&self, task: TaskId, attempt: Attempt) {
        self.tell(Deed::WorkDone { task, attempt });
    }

    /// An attempt that was to go on from a checkpoint goes on from this image, or begins from scratch.
    pub fn restored(&self, task: TaskId, attempt: Attempt, image: Option<Image>) {
        self.tell(Deed::Restored { task, attempt, image });
    }

    /// The process of an attempt is gone, for whatever reason.
    pub fn gone(&self, task: TaskId, attempt: Attempt) {
        self.tell(Deed::Gone { task, attempt });
    }

    /// A report was handed to the session client.
    pub fn said(&self, (worker, incarnation): (&str, u64), report: &v1::Report) {
        let (worker, report) = (worker.to_owned(), report.clone());
        self.tell(Deed::Said { worker, incarnation, report });
    }

    /// A command reached the worker's life.
    pub fn obeyed(&self, (worker, incarnation): (&str, u64), number: u64, command: &v1::Command) {
        let (worker, command) = (worker.to_owned(), command.clone());
        self.tell(Deed::Obeyed { worker, incarnation, number, command });
    }
}

impl std::fmt::Display for Deed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Began { worker, incarnation, vm, task, attempt, from } => {
                write!(f, "{worker}@{incarnation:x} began {task}, {attempt} on {vm} from {from:?}")
            }
            Self::CheckpointMade(image) => write!(f, "checkpoint made: {image:?}"),
            Self::WorkDone { task, attempt } => write!(f, "work done: {task}, {attempt}"),
            Self::Restored { task, attempt, image } => {
                write!(f, "restored {task}, {attempt} from {image:?}")
            }
            Self::Said { worker, incarnation, report } => {
                write!(f, "{worker}@{incarnation:x} says {report:?}")
            }
            Self::Obeyed { worker, incarnation, number, command } => {
                write!(f, "{worker}@{incarnation:x} hears {number}: {command:?}")
            }
            Self::Gone { task, attempt } => write!(f, "gone: {task}, {attempt}"),
        }
    }
}
