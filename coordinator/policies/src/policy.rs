//! What a scheduler hears and what it can ask for.

use dormouse_cloud::Market;
use dormouse_units::{
    Cpus, Credits, Mode, Ppm, Price, RequestId, Seats, Span, TaskId, Time, TypeName, VmId,
};
use serde::{Deserialize, Serialize};

use crate::job::Job;
use crate::requests::Request;

/// Why a task is started where it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StartReason {
    /// The primary plan has it there.
    Planned,
    /// The task's VM was taken away (Burst-HADS, Algorithm 4).
    Migrated,
    /// An idle VM took it over (Burst-HADS, Algorithm 5).
    Stolen,
    /// The attempt before failed.
    Retried,
    /// All parallel jobs submitted before it have the foreground.
    FirstInLine,
    /// It is expected to end before the reservation of the head of the queue begins (EASY).
    EndsBeforeShadow {
        /// The job that has the reservation.
        head: TaskId,
        /// When the reservation begins.
        shadow: Time,
    },
    /// The head of the queue does not need these processors when its reservation begins (EASY).
    OnExtra {
        /// The job that has the reservation.
        head: TaskId,
        /// When the reservation begins.
        shadow: Time,
        /// Extra processors left before this job took its own.
        extra: u32,
    },
    /// The shortest waiting job for which the background has room (MEASY, 2.2.1).
    ShortestWaiting,
    /// The job has a VM that has run others: by its age at least as good as a new one (bathtub
    /// paper, 4.2).
    Reused {
        /// The job, counted from 0 in the order of the bag.
        job: u32,
        /// How long the VM had been usable when it was chosen.
        age: Span,
        /// How long the rest of the job was expected to take; `None`: no job had ended yet.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        expected: Option<Span>,
    },
    /// The job has a VM that has run no other (bathtub paper, 4.2).
    NewVm {
        /// The job, counted from 0 in the order of the bag.
        job: u32,
        /// How many idle VMs were given back, to decide on it, as no better than a new one.
        declined: u32,
        /// How long the rest of the job was expected to take; `None`: no job had ended yet.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        expected: Option<Span>,
    },
}

/// Why a VM is given back though tasks are left for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EndReason {
    /// The VM's hour ends, and it costs more than its scheduler bids (ACC).
    AboveBid {
        /// What it costs.
        price: Price,
        /// What its scheduler bids.
        bid: Price,
        /// Tasks on the VM that lose work: no checkpoint was taken of them as the hour ended.
        unkept: u32,
    },
}

/// How a job comes from the background to the foreground (MEASY, sections 2.2 and 2.3).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Promotion {
    /// The tiers of its vCPUs swap their priorities; nothing restarts.
    Swap,
    /// It is killed and starts again in the foreground of these vCPUs.
    Kill {
        /// One vCPU a process, in order of falling CPU usage.
        on: Cpus,
    },
    /// It goes on in the foreground of these vCPUs.
    Migrate {
        /// One vCPU a process, in order of falling CPU usage.
        on: Cpus,
    },
}

/// What happened, as the scheduler hears it: one at a time, in one order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "notice", rename_all = "kebab-case")]
pub enum Notice {
    /// The experiment begins: the time to plan and launch.
    Begin,
    /// What a spot VM of a type costs from now on. Schedulers of bags hear it of each type whose price is
    /// recorded: before the experiment begins, and whenever it changes.
    Price {
        /// Instance type that the price is for.
        kind: TypeName,
        /// What it costs.
        price: Price,
    },
    /// A parallel job was submitted.
    Submitted {
        /// What its user says of it.
        #[serde(flatten)]
        job: Job,
    },
    /// A customer of the provider requests a VM.
    Requested {
        /// The request's place in their stream.
        request: RequestId,
        /// What is asked for.
        #[serde(flatten)]
        asks: Request,
    },
    /// A launched VM has booted.
    VmReady {
        /// The VM that has booted.
        vm: VmId,
    },
    /// A launch was refused.
    LaunchRefused {
        /// The VM whose launch was refused.
        vm: VmId,
        /// The provider's reason, in words.
        why: String,
    },
    /// A host has joined after a launch was refused: what was refused may be had now.
    HostJoined,
    /// A spot VM is told to hibernate and takes no more work. All that are hit at one instant are
    /// heard of before the first of them is frozen.
    VmHibernating {
        /// The VM that is about to be frozen.
        vm: VmId,
    },
    /// A spot VM is frozen, its running tasks with it.
    VmHibernated {
        /// The VM that is frozen.
        vm: VmId,
    },
    /// A hibernated VM runs again, and so do the tasks frozen on it that weren't stopped.
    VmResumed {
        /// The VM that runs again.
        vm: VmId,
    },
    /// A spot VM will be killed.
    VmPreempting {
        /// The VM that will be killed.
        vm: VmId,
        /// The emulated time at which it will be killed.
        at: Time,
    },
    /// A VM is gone for good though nobody asked: preempted, or its host lost.
    VmLost {
        /// The VM that is gone.
        vm: VmId,
    },
    /// A started task runs, from `done` of its work.
    TaskStarted {
        /// The task that runs.
        task: TaskId,
        /// The VM it is on.
        vm: VmId,
        /// How much of its work a checkpoint had kept.
        done: Ppm,
        /// When it was sent there: its time is counted from then.
        since: Time,
    },
    /// A task has done all its work, verified.
    TaskFinished {
        /// The task that is done.
        task: TaskId,
        /// The VM it is on.
        vm: VmId,
    },
    /// An attempt came to nothing; what its last checkpoint kept is kept.
    TaskFailed {
        /// The task whose attempt failed.
        task: TaskId,
        /// The VM it is on.
        vm: VmId,
        /// What went wrong, in words.
        why: String,
    },
    /// A task was stopped as asked; `done` of its work is kept.
    TaskStopped {
        /// The task that was stopped.
        task: TaskId,
        /// The VM it is on.
        vm: VmId,
        /// How much of its work a checkpoint keeps.
        done: Ppm,
    },
    /// A checkpoint of a running task is complete: `done` of its work is kept from now on.
    Checkpointed {
        /// The task that was checkpointed.
        task: TaskId,
        /// The VM it is on.
        vm: VmId,
        /// How much of its work it keeps.
        done: Ppm,
    },
    /// A burstable VM's balance, whenever its use changed.
    Credits {
        /// The burstable VM whose balance this is.
        vm: VmId,
        /// The VM's credit balance now.
        balance: Credits,
    },
    /// A wake-up that was asked for.
    Wake {
        /// What it was asked for with.
        token: u64,
    },
}

impl Notice {
    /// The VM it is about, if it is about one: for whoever gives it another number.
    pub const fn vm_mut(&mut self) -> Option<&mut VmId> {
        match self {
            Self::VmReady { vm }
            | Self::LaunchRefused { vm, .. }
            | Self::VmHibernating { vm }
            | Self::VmHibernated { vm }
            | Self::VmResumed { vm }
            | Self::VmPreempting { vm, .. }
            | Self::VmLost { vm }
            | Self::TaskStarted { vm, .. }
            | Self::TaskFinished { vm, .. }
            | Self::TaskFailed { vm, .. }
            | Self::TaskStopped { vm, .. }
            | Self::Checkpointed { vm, .. }
            | Self::Credits { vm, .. } => Some(vm),
            Self::Begin
            | Self::Price { .. }
            | Self::HostJoined
            | Self::Submitted { .. }
            | Self::Requested { .. }
            | Self::Wake { .. } => None,
        }
    }
}

/// What a scheduler wants done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "decision", rename_all = "kebab-case")]
pub enum Decision {
    /// Ask the provider for a VM, under an id never used before.
    Launch {
        /// Id of the new VM.
        vm: VmId,
        /// Instance type of the new VM.
        kind: TypeName,
        /// How it is bought.
        market: Market,
        /// Most to be paid for it; `None`: whatever it costs. A spot VM that costs more is ended.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        bid: Option<Price>,
    },
    /// Give a VM back. Tasks still on it are lost.
    Terminate {
        /// The VM to give back.
        vm: VmId,
        /// The reason, where it is not that nothing is left to do on it; goes into the log.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<EndReason>,
    },
    /// Run a task on free seats of a ready VM now, from its last complete checkpoint if it
    /// has one. A former attempt still running or frozen elsewhere must be stopped before.
    Start {
        /// The task to run.
        task: TaskId,
        /// Where: a seat for each of its processes.
        #[serde(flatten)]
        on: Seats,
        /// How, on a burstable VM.
        mode: Mode,
        /// The reason for these seats; goes into the log.
        reason: StartReason,
    },
    /// Stop a running or frozen attempt.
    Stop {
        /// The task to stop.
        task: TaskId,
        /// The VM it is on.
        vm: VmId,
        /// Checkpoint it first, so that it can go on elsewhere (running VMs only).
        keep: bool,
    },
    /// Checkpoint a task now; it keeps running.
    Checkpoint {
        /// The task to checkpoint.
        task: TaskId,
        /// The VM it is on.
        vm: VmId,
    },
    /// Bring a parallel job from the background to the foreground of its VM.
    Promote {
        /// The job to promote.
        task: TaskId,
        /// The VM that it is on.
        vm: VmId,
        /// How it gets there.
        by: Promotion,
        /// The reason for promoting it now; goes into the log.
        reason: StartReason,
    },
    /// Run a running task in another mode from now on.
    SetMode {
        /// The task whose mode changes.
        task: TaskId,
        /// The VM it is on.
        vm: VmId,
        /// The mode from now on.
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

impl Decision {
    /// The task it is about, if it is about one.
    #[must_use]
    pub const fn task(&self) -> Option<TaskId> {
        match self {
            Self::Start { task, .. }
            | Self::Stop { task, .. }
            | Self::Checkpoint { task, .. }
            | Self::Promote { task, .. }
            | Self::SetMode { task, .. } => Some(*task),
            Self::Launch { .. } | Self::Terminate { .. } | Self::Wake { .. } => None,
        }
    }

    /// The VM it is about, if it is about one: for whoever gives it another number.
    pub const fn vm_mut(&mut self) -> Option<&mut VmId> {
        match self {
            Self::Launch { vm, .. }
            | Self::Terminate { vm, .. }
            | Self::Stop { vm, .. }
            | Self::Checkpoint { vm, .. }
            | Self::Promote { vm, .. }
            | Self::SetMode { vm, .. }
            | Self::Start { on: Seats { vm, .. }, .. } => Some(vm),
            Self::Wake { .. } => None,
        }
    }
}

/// How much of an instant a policy hears of at once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Hearing {
    /// One thing after the other: what it decides is carried out before it hears of the next.
    #[default]
    Each,
    /// All that happens at an instant, once nothing more of it is to come. It hears only of
    /// submissions, VMs that come and go, and tasks that end: of what it can decide anything on.
    Instants,
}

/// What a policy has given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GivenUp {
    /// Some of its work, as that lost its VMs or failed too often.
    Work,
    /// To launch VMs, as they were refused too often.
    Launches,
}

/// A scheduling policy. Same notices at the same times, same decisions: always.
pub trait Policy: std::fmt::Debug + Send {
    /// How much it hears of at once.
    fn hearing(&self) -> Hearing {
        Hearing::Each
    }

    /// Whether it has work for VMs that cost more than it bids, and waits for another price.
    fn waits_for_price(&self) -> bool {
        false
    }

    /// What it has given up.
    fn given_up(&self) -> Option<GivenUp> {
        None
    }

    /// Something happened; what is wanted is pushed to `out` and carried out in that order.
    fn handle(&mut self, now: Time, heard: &[Notice], out: &mut Vec<Decision>);
}
