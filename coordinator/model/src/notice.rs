//! Notices that policies hear.

use dormouse_units::{Credits, Ppm, Price, RequestId, TaskId, Time, TypeName, VmId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Decision, Job, VmRequest};

/// Something that happened, as the scheduler hears it: one notice at a time, in order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "notice", rename_all = "kebab-case")]
pub enum Notice {
    /// The experiment begins: the time to plan and launch.
    Begin,
    /// The spot price of an instance type from now on. Schedulers of bags get this notice for each type whose price is
    /// recorded: before the experiment begins, and whenever the price changes.
    Price {
        /// Instance type that the price is for.
        kind: TypeName,
        /// Price of a spot VM of this type.
        price: Price,
    },
    /// A parallel job was submitted.
    Submitted {
        /// The job, as its scheduler may know it.
        #[serde(flatten)]
        job: Job,
    },
    /// A customer of the provider requests a VM.
    // No program hears it.
    #[schemars(skip)]
    Requested {
        /// The request's place in the stream of requests.
        request: RequestId,
        /// The VM that is requested.
        #[serde(flatten)]
        asks: VmRequest,
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
        /// Whether the provider has no more spot VMs of the type to give now: `available` says
        /// when it has again.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        unavailable: bool,
    },
    /// After a launch was refused, more spot VMs of a type can be had than before.
    Available {
        /// The instance type of which more VMs can be had.
        kind: TypeName,
    },
    /// A host has joined after a launch was refused: there may be room for the VM now.
    HostJoined,
    /// A spot VM is told to hibernate and takes no more work. The notices of all VMs that are hit at one instant
    /// precede the first notice that a VM is frozen.
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
        /// The emulated time at which the VM will be killed.
        at: Time,
    },
    /// The provider recommends to replace a spot VM: the VM is more likely than before to be preempted. Nothing else happens to the
    /// VM.
    VmRebalance {
        /// The VM that should be replaced.
        vm: VmId,
    },
    /// A VM is gone for good without a decision of its scheduler: it was preempted, or its host was lost.
    VmLost {
        /// The VM that is gone.
        vm: VmId,
    },
    /// A task of the bag can start from now on, since all tasks that it follows are done. The scheduler gets this notice before the
    /// notice that the last of these tasks has ended, so that a scheduler that gives idle VMs back knows that there is more to do.
    /// In a bag in which any task follows others, tasks that are submitted later have this notice, too.
    TaskDue {
        /// The task that can start.
        task: TaskId,
    },
    /// A started task runs, from `done` of its work.
    TaskStarted {
        /// The task that runs.
        task: TaskId,
        /// The VM on which the task runs.
        vm: VmId,
        /// Part of the task's work that a checkpoint had kept.
        done: Ppm,
        /// Time at which the task was sent to the VM: its run time is counted from then.
        since: Time,
    },
    /// A task has done all its work, verified.
    TaskFinished {
        /// The task that is done.
        task: TaskId,
        /// The VM on which the task ran.
        vm: VmId,
    },
    /// An attempt at a task failed; work that the task's last checkpoint holds is not lost.
    TaskFailed {
        /// The task whose attempt failed.
        task: TaskId,
        /// The VM on which the attempt ran.
        vm: VmId,
        /// The failure, in words.
        why: String,
    },
    /// A task was stopped as its scheduler decided; the part `done` of its work is held by a checkpoint.
    TaskStopped {
        /// The task that was stopped.
        task: TaskId,
        /// The VM on which the task ran.
        vm: VmId,
        /// Part of the task's work that a checkpoint keeps.
        done: Ppm,
    },
    /// A checkpoint of a running task is complete: from now on it holds the part `done` of the task's work.
    Checkpointed {
        /// The task that was checkpointed.
        task: TaskId,
        /// The VM on which the task runs.
        vm: VmId,
        /// Part of the task's work that the checkpoint keeps.
        done: Ppm,
    },
    /// A burstable VM's credit balance; sent whenever the CPU use of the VM changed.
    Credits {
        /// The burstable VM.
        vm: VmId,
        /// The credit balance of the VM now.
        balance: Credits,
    },
    /// A wake-up that the scheduler requested is due.
    Wake {
        /// The token that the scheduler gave when it asked for the wake-up.
        token: u64,
    },
    /// A decision can't be carried out, and no part of it was. Only schedulers that are programs of their own get this
    /// notice.
    Rejected {
        /// The decision that was refused.
        decision: Box<Decision>,
        /// The reason for the refusal, in words.
        why: String,
    },
}

impl Notice {
    /// Names of all kinds of notices, as written under `notice` in lines of the protocol.
    pub const NAMES: [&str; 23] = [
        "begin",
        "price",
        "submitted",
        "requested",
        "vm-ready",
        "launch-refused",
        "available",
        "host-joined",
        "vm-hibernating",
        "vm-hibernated",
        "vm-resumed",
        "vm-preempting",
        "vm-rebalance",
        "vm-lost",
        "task-due",
        "task-started",
        "task-finished",
        "task-failed",
        "task-stopped",
        "checkpointed",
        "credits",
        "wake",
        "rejected",
    ];

    /// The name of the notice's kind.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        let index = match self {
            Self::Begin => 0,
            Self::Price { .. } => 1,
            Self::Submitted { .. } => 2,
            Self::Requested { .. } => 3,
            Self::VmReady { .. } => 4,
            Self::LaunchRefused { .. } => 5,
            Self::Available { .. } => 6,
            Self::HostJoined => 7,
            Self::VmHibernating { .. } => 8,
            Self::VmHibernated { .. } => 9,
            Self::VmResumed { .. } => 10,
            Self::VmPreempting { .. } => 11,
            Self::VmRebalance { .. } => 12,
            Self::VmLost { .. } => 13,
            Self::TaskDue { .. } => 14,
            Self::TaskStarted { .. } => 15,
            Self::TaskFinished { .. } => 16,
            Self::TaskFailed { .. } => 17,
            Self::TaskStopped { .. } => 18,
            Self::Checkpointed { .. } => 19,
            Self::Credits { .. } => 20,
            Self::Wake { .. } => 21,
            Self::Rejected { .. } => 22,
        };
        Self::NAMES[index]
    }

    /// The VM of the notice, if it has one, for renumbering.
    pub fn vm_mut(&mut self) -> Option<&mut VmId> {
        match self {
            Self::VmReady { vm }
            | Self::LaunchRefused { vm, .. }
            | Self::VmHibernating { vm }
            | Self::VmHibernated { vm }
            | Self::VmResumed { vm }
            | Self::VmPreempting { vm, .. }
            | Self::VmRebalance { vm }
            | Self::VmLost { vm }
            | Self::TaskStarted { vm, .. }
            | Self::TaskFinished { vm, .. }
            | Self::TaskFailed { vm, .. }
            | Self::TaskStopped { vm, .. }
            | Self::Checkpointed { vm, .. }
            | Self::Credits { vm, .. } => Some(vm),
            Self::Rejected { decision, .. } => decision.vm_mut(),
            Self::Begin
            | Self::Price { .. }
            | Self::HostJoined
            | Self::Available { .. }
            | Self::Submitted { .. }
            | Self::Requested { .. }
            | Self::TaskDue { .. }
            | Self::Wake { .. } => None,
        }
    }

    /// The wake-up token of the notice, if it has one, for renumbering.
    pub fn token_mut(&mut self) -> Option<&mut u64> {
        match self {
            Self::Wake { token } => Some(token),
            Self::Rejected { decision, .. } => match &mut **decision {
                Decision::Wake { token, .. } => Some(token),
                _ => None,
            },
            _ => None,
        }
    }
}
