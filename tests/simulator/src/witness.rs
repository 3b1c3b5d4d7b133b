//! What really happened on the simulated machines, as they report it themselves.
//!
//! A coordinator knows only what its workers report. The oracle compares these reports, and the log, with what the
//! machines did.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use dormouse_proto::v1;
use dormouse_units::{Attempt, CheckpointSeq, Ppm, TaskId, VmId};

/// The head of a simulated checkpoint: which attempt it is of, and how much of the work it holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Image {
    /// The task that was checkpointed.
    pub task: TaskId,
    /// The attempt that was dumped.
    pub attempt: Attempt,
    /// The checkpoint's number.
    pub number: CheckpointSeq,
    /// The part of the work that was done at the checkpoint.
    pub done: Ppm,
}

/// An action of a simulated machine.
#[derive(Clone, Debug, PartialEq)]
pub enum Deed {
    /// A process of a task was started.
    Began {
        /// The name of the worker.
        worker: String,
        /// The number of the worker's session.
        incarnation: u64,
        /// The VM that the process is on.
        vm: VmId,
        /// The task of the process.
        task: TaskId,
        /// The attempt that the process belongs to.
        attempt: Attempt,
        /// The checkpoint that the process is to start from; `None`: it starts from scratch.
        from: Option<CheckpointSeq>,
    },
    /// A checkpoint of a process was taken.
    CheckpointMade(Image),
    /// A process has computed its task's answer.
    WorkDone {
        /// The task whose answer it is.
        task: TaskId,
        /// The attempt that computed the answer.
        attempt: Attempt,
    },
    /// A process that was to start from a checkpoint is running.
    Restored {
        /// The task of the process.
        task: TaskId,
        /// The attempt that the process belongs to.
        attempt: Attempt,
        /// The checkpoint that was restored; `None`: none was found, and the process starts from scratch.
        image: Option<Image>,
    },
    /// A report was handed to the session client.
    Said {
        /// The name of the worker.
        worker: String,
        /// The number of the worker's session.
        incarnation: u64,
        /// The report that the worker sends.
        report: Box<v1::Report>,
    },
    /// A command reached a worker's session.
    Obeyed {
        /// The name of the worker.
        worker: String,
        /// The number of the worker's session.
        incarnation: u64,
        /// The command's number in the session.
        number: u64,
        /// The command that was received.
        command: Box<v1::Command>,
    },
    /// The machine of a VM was frozen, or runs again.
    VmFreezeChanged {
        /// The name of the worker.
        worker: String,
        /// The number of the worker's session.
        incarnation: u64,
        /// The VM whose machine it is.
        vm: VmId,
        /// Whether the machine is frozen from now on.
        is_frozen: bool,
        /// The time, in real microseconds since the session began.
        at_us: u64,
    },
    /// A VM has a balance of CPU credits, as its worker reports.
    BalanceSaid {
        /// The name of the worker.
        worker: String,
        /// The number of the worker's session.
        incarnation: u64,
        /// The VM whose balance it is.
        vm: u32,
        /// The balance, as emulated microseconds of one vCPU.
        balance_us: u64,
        /// The time of the balance on the run's clock, in emulated microseconds, if it is known.
        emulated_at_us: Option<u64>,
        /// The time of the report, in real microseconds since the session began.
        at_us: u64,
    },
    /// The processes of a parallel job are to leave their seats: they are dumped and killed.
    LeavesSeats {
        /// The number of the job.
        task: TaskId,
        /// The attempt whose processes leave.
        attempt: Attempt,
    },
    /// A process is about to start that hangs before its work is done.
    Hangs {
        /// The task of the process.
        task: TaskId,
        /// The attempt that the process belongs to.
        attempt: Attempt,
    },
    /// A dump or restore by CRIU begins on a worker's host, or is over.
    CriuUsed {
        /// The name of the worker.
        worker: String,
        /// The number of the worker's session.
        incarnation: u64,
        /// Whether it begins.
        begins: bool,
    },
    /// A process was killed with its VM that nobody had killed before.
    DiedWithVm {
        /// The task of the process.
        task: TaskId,
        /// The attempt that the process belonged to.
        attempt: Attempt,
        /// Time for which the process had existed, in microseconds.
        lived_us: u64,
    },
    /// The groups of a VM were to be removed while processes lived in them, which the kernel refuses.
    RemovalRefused {
        /// The VM whose groups they are.
        vm: VmId,
    },
    /// A process of an attempt is gone: it ended, was stopped, or was killed with its VM or worker.
    Gone {
        /// The task of the process.
        task: TaskId,
        /// The attempt that the process belonged to.
        attempt: Attempt,
    },
}

/// A list of the actions that simulated machines report, for the oracle.
#[derive(Clone, Debug, Default)]
pub struct Witness(Arc<Mutex<Vec<Deed>>>);

impl Witness {
    /// Adds an action.
    pub fn tell(&self, deed: Deed) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(deed);
    }

    /// Takes all actions since the last call, in order.
    #[must_use]
    pub fn take(&self) -> Vec<Deed> {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Reports that a process of a task began on a VM.
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

    /// Reports that a checkpoint of a process was taken.
    pub fn checkpoint_made(&self, image: Image) {
        self.tell(Deed::CheckpointMade(image));
    }

    /// Reports that a process has computed its task's answer.
    pub fn work_done(&self, task: TaskId, attempt: Attempt) {
        self.tell(Deed::WorkDone { task, attempt });
    }

    /// Reports that an attempt which was to start from a checkpoint starts from this one, or from scratch.
    pub fn restored(&self, task: TaskId, attempt: Attempt, image: Option<Image>) {
        self.tell(Deed::Restored { task, attempt, image });
    }

    /// Reports that the machine of a VM is frozen from now on, or runs again.
    pub fn vm_freeze_changed(
        &self,
        (worker, incarnation): (&str, u64),
        vm: VmId,
        is_frozen: bool,
        at_us: u64,
    ) {
        let worker = worker.to_owned();
        self.tell(Deed::VmFreezeChanged { worker, incarnation, vm, is_frozen, at_us });
    }

    /// Reports that a worker reports this balance of CPU credits of a VM.
    pub fn balance_said(
        &self,
        (worker, incarnation): (&str, u64),
        said: &v1::CreditBalance,
        at_us: u64,
    ) {
        let (worker, v1::CreditBalance { vm, emulated_us, emulated_at_us }) =
            (worker.to_owned(), *said);
        let balance_us = emulated_us;
        self.tell(Deed::BalanceSaid { worker, incarnation, vm, balance_us, emulated_at_us, at_us });
    }

    /// Reports that the process of an attempt is gone, for whatever reason.
    pub fn gone(&self, task: TaskId, attempt: Attempt) {
        self.tell(Deed::Gone { task, attempt });
    }

    /// Reports that the processes of a parallel job are to leave their seats.
    pub fn leaves_seats(&self, task: TaskId, attempt: Attempt) {
        self.tell(Deed::LeavesSeats { task, attempt });
    }

    /// Reports that a process is about to start that hangs before its work is done.
    pub fn hangs(&self, task: TaskId, attempt: Attempt) {
        self.tell(Deed::Hangs { task, attempt });
    }

    /// Reports that a dump or restore by CRIU begins on a worker's host, or is over.
    pub fn criu_used(&self, (worker, incarnation): (&str, u64), begins: bool) {
        self.tell(Deed::CriuUsed { worker: worker.to_owned(), incarnation, begins });
    }

    /// Reports that a process was killed with its VM that nobody had killed before.
    pub fn died_with_vm(&self, (task, attempt): (TaskId, Attempt), lived: Duration) {
        let lived_us = u64::try_from(lived.as_micros()).unwrap_or(u64::MAX);
        self.tell(Deed::DiedWithVm { task, attempt, lived_us });
    }

    /// Reports that the groups of a VM were to be removed while processes lived in them.
    pub fn removal_refused(&self, vm: VmId) {
        self.tell(Deed::RemovalRefused { vm });
    }

    /// Reports that a worker handed a report to its session client.
    pub fn said(&self, (worker, incarnation): (&str, u64), report: &v1::Report) {
        let (worker, report) = (worker.to_owned(), report.clone());
        self.tell(Deed::Said { worker, incarnation, report: Box::new(report) });
    }

    /// Reports that a command reached a worker's session.
    pub fn obeyed(&self, (worker, incarnation): (&str, u64), number: u64, command: &v1::Command) {
        let (worker, command) = (worker.to_owned(), command.clone());
        self.tell(Deed::Obeyed { worker, incarnation, number, command: Box::new(command) });
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
            Self::VmFreezeChanged { worker, incarnation, vm, is_frozen, .. } => {
                let stands = if *is_frozen { "is frozen" } else { "runs" };
                write!(f, "{worker}@{incarnation:x}: {vm} {stands}")
            }
            Self::LeavesSeats { task, attempt } => write!(f, "{task}, {attempt} leaves its seats"),
            Self::Hangs { task, attempt } => write!(f, "{task}, {attempt} will hang"),
            Self::CriuUsed { worker, incarnation, begins } => {
                let does = if *begins { "uses" } else { "has used" };
                write!(f, "{worker}@{incarnation:x} {does} CRIU")
            }
            Self::DiedWithVm { task, attempt, lived_us } => {
                write!(f, "{task}, {attempt} dies with its VM after {lived_us} µs")
            }
            Self::RemovalRefused { vm } => write!(f, "processes live in the groups of {vm}"),
            Self::BalanceSaid { worker, incarnation, vm, balance_us, at_us, .. } => {
                write!(f, "{worker}@{incarnation:x}: vm{vm} has {balance_us} vCPU-µs at {at_us} µs")
            }
            Self::Gone { task, attempt } => write!(f, "gone: {task}, {attempt}"),
        }
    }
}
