//! What a scheduler hears and what it can ask for.

use dormouse_cloud::Market;
use dormouse_units::{Credits, Ppm, TaskId, Time, TypeName, VmId};
use serde::{Deserialize, Serialize};

/// How a task runs on a burstable VM; elsewhere always `Burst`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// A whole vCPU, at the cost of credits.
    #[default]
    Burst,
    /// The baseline share of a vCPU, while credits are earned.
    Baseline,
}

/// Why a task is started where it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StartReason {
    /// The primary plan has it there.
    Planned,
    /// Its VM was taken away (Burst-HADS, Algorithm 4).
    Migrated,
    /// An idle VM took it over (Burst-HADS, Algorithm 5).
    Stolen,
    /// The attempt before failed.
    Retried,
}

/// What happened, as the scheduler hears it: one at a time, in one order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "notice", rename_all = "kebab-case")]
pub enum Notice {
    /// The experiment begins: the time to plan and launch.
    Begin,
    /// A launched VM has booted.
    VmReady {
        /// Which.
        vm: VmId,
    },
    /// A launch was refused.
    LaunchRefused {
        /// Which.
        vm: VmId,
        /// Why.
        why: String,
    },
    /// A spot VM is told to hibernate and takes no more work. All that are hit at one instant are
    /// heard of before the first of them is frozen.
    VmHibernating {
        /// The VM that is about to be frozen.
        vm: VmId,
    },
    /// A spot VM is frozen, its running tasks with it.
    VmHibernated {
        /// Which.
        vm: VmId,
    },
    /// A hibernated VM runs again, and so do the tasks frozen on it that weren't stopped.
    VmResumed {
        /// Which.
        vm: VmId,
    },
    /// A spot VM will be killed.
    VmPreempting {
        /// Which.
        vm: VmId,
        /// When.
        at: Time,
    },
    /// A VM is gone for good though nobody asked: preempted, or its host lost.
    VmLost {
        /// Which.
        vm: VmId,
    },
    /// A started task runs, from `done` of its work.
    TaskStarted {
        /// Which.
        task: TaskId,
        /// Where.
        vm: VmId,
        /// How much of its work a checkpoint had kept.
        done: Ppm,
        /// When it was sent there: its time is counted from then.
        since: Time,
    },
    /// A task has done all its work, verified.
    TaskFinished {
        /// Which.
        task: TaskId,
        /// Where.
        vm: VmId,
    },
    /// An attempt came to nothing; what its last checkpoint kept is kept.
    TaskFailed {
        /// Which.
        task: TaskId,
        /// Where.
        vm: VmId,
        /// Why.
        why: String,
    },
    /// A task was stopped as asked; `done` of its work is kept.
    TaskStopped {
        /// Which.
        task: TaskId,
        /// Where.
        vm: VmId,
        /// How much of its work a checkpoint keeps.
        done: Ppm,
    },
    /// A checkpoint of a running task is complete: `done` of its work is kept from now on.
    Checkpointed {
        /// Which.
        task: TaskId,
        /// Where.
        vm: VmId,
        /// How much of its work it keeps.
        done: Ppm,
    },
    /// A burstable VM's balance, whenever its use changed.
    Credits {
        /// Which.
        vm: VmId,
        /// Its balance now.
        balance: Credits,
    },
    /// A wake-up that was asked for.
    Wake {
        /// What it was asked for with.
        token: u64,
    },
}

/// What a scheduler wants done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "decision", rename_all = "kebab-case")]
pub enum Decision {
    /// Ask the provider for a VM, under an id never used before.
    Launch {
        /// Its id.
        vm: VmId,
        /// Its type.
        kind: TypeName,
        /// How it is bought.
        market: Market,
    },
    /// Give a VM back. Tasks still on it are lost.
    Terminate {
        /// Which.
        vm: VmId,
    },
    /// Run a task on a free vCPU of a ready VM now, from its last complete checkpoint if it
    /// has one. A former attempt still running or frozen elsewhere must be stopped before.
    Start {
        /// Which.
        task: TaskId,
        /// Where.
        vm: VmId,
        /// How, on a burstable VM.
        mode: Mode,
        /// Why there.
        reason: StartReason,
    },
    /// Stop a running or frozen attempt.
    Stop {
        /// Which.
        task: TaskId,
        /// Where it is.
        vm: VmId,
        /// Checkpoint it first, so that it can go on elsewhere (running VMs only).
        keep: bool,
    },
    /// Run a running task in another mode from now on.
    SetMode {
        /// Which.
        task: TaskId,
        /// Where.
        vm: VmId,
        /// How.
        mode: Mode,
    },
    /// Be told at this time.
    Wake {
        /// When: after now, or it is refused.
        at: Time,
        /// What to be told with it.
        token: u64,
    },
}

/// A scheduling policy. Same notices at the same times, same decisions: always.
pub trait Scheduler: std::fmt::Debug + Send {
    /// Something happened; what is wanted is pushed to `out` and carried out in that order.
    fn handle(&mut self, now: Time, notice: &Notice, out: &mut Vec<Decision>);
}
