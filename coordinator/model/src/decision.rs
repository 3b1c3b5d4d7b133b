//! Decisions of policies, and the reasons for them.

use dormouse_cloud::Market;
use dormouse_units::{Cpus, Mode, Ppm, Price, Seats, Span, TaskId, Time, TypeName, VmId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Why a task is started on its VM.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum StartReason {
    /// The scheduler is a program of its own and gave no reason.
    #[default]
    Chosen,
    /// The primary plan puts the task on this VM.
    Planned,
    /// The task's earlier VM was hibernated or preempted (Burst-HADS, Algorithm 4).
    Migrated,
    /// An idle VM took the task over (Burst-HADS, Algorithm 5).
    Stolen,
    /// The task's previous attempt failed.
    Retried,
    /// All tasks that the task follows are done now.
    Due,
    /// All parallel jobs before the job in the queue have the foreground.
    FirstInLine,
    /// The job is expected to end before the reservation of the head of the queue begins (EASY).
    EndsBeforeShadow {
        /// The job at the head of the queue, which has the reservation.
        head: TaskId,
        /// When the reservation of the queue's head begins.
        shadow: Time,
    },
    /// The job gets processors that the head of the queue does not need when its reservation begins (EASY).
    OnExtra {
        /// The job that has the reservation.
        head: TaskId,
        /// When the reservation of the queue's head begins.
        shadow: Time,
        /// Number of extra processors that were left before the job got some of them.
        extra: u32,
    },
    /// The job is the shortest waiting one for which the background has room (MEASY, 2.2.1).
    ShortestWaiting,
    /// The job gets an idle VM that has run other jobs and that is, by its age, at least as good as a new one (bathtub paper, 4.2).
    Reused {
        /// The job, counted from 0 in the order of the bag.
        job: u32,
        /// How long the VM had been usable when it was chosen.
        age: Span,
        /// How long the rest of the job was expected to take; left out: no job had ended yet.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        expected: Option<Span>,
    },
    /// The job gets a VM that no other job has used (bathtub paper, 4.2).
    NewVm {
        /// The job, counted from 0 in the order of the bag.
        job: u32,
        /// Number of idle VMs that were given back as no better than a new one when this was
        /// decided.
        declined: u32,
        /// How long the rest of the job was expected to take; left out: no job had ended yet.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        expected: Option<Span>,
    },
}

/// Why a VM is given back though tasks are left for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum EndReason {
    /// The VM's hour ends, and it costs more than its scheduler bids (ACC).
    AboveBid {
        /// Price of the VM.
        price: Price,
        /// Bid of the VM's scheduler.
        bid: Price,
        /// Number of tasks on the VM that lose work, as no checkpoint of them was taken when the hour ended.
        unkept: u32,
    },
}

/// How a job gets from the background to the foreground (MEASY, sections 2.2 and 2.3).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(rename = "Promotion")]
pub enum PromotionMethod {
    /// The tiers of the job's vCPUs swap their priorities; nothing restarts.
    Swap,
    /// The job is killed and starts again in the foreground of the vCPUs `on`.
    Kill {
        /// The new vCPU of each process, the processes in order of falling CPU usage.
        on: Cpus,
    },
    /// The job continues in the foreground of the vCPUs `on`.
    Migrate {
        /// The new vCPU of each process, the processes in order of falling CPU usage.
        on: Cpus,
    },
}

/// Something that a scheduler wants done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "decision", rename_all = "kebab-case")]
pub enum Decision {
    /// Ask the provider for a VM, under an id never used before.
    Launch {
        /// Id of the new VM.
        vm: VmId,
        /// Instance type of the new VM.
        kind: TypeName,
        /// Market in which the VM is bought.
        market: Market,
        /// Most to be paid for the VM; left out: whatever it costs. A spot VM that costs more is
        /// ended.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        bid: Option<Price>,
    },
    /// Give a VM back. Tasks still on it are lost.
    Terminate {
        /// The VM to give back.
        vm: VmId,
        /// The reason for giving the VM back, which goes into the log; left out where nothing is left to
        /// do on it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<EndReason>,
    },
    /// Run a task on free seats of a ready VM now, from its last complete checkpoint if it
    /// has one. A former attempt still running or frozen elsewhere must be stopped before.
    Start {
        /// The task to run.
        task: TaskId,
        /// Seats of the task: one for each of its processes.
        #[serde(flatten)]
        on: Seats,
        /// Mode of the task on a burstable VM.
        #[serde(default)]
        mode: Mode,
        /// The reason for starting the task on these seats, which goes into the log.
        #[serde(default)]
        reason: StartReason,
    },
    /// Stop a running or frozen attempt.
    Stop {
        /// The task to stop.
        task: TaskId,
        /// The VM on which the task runs.
        vm: VmId,
        /// True to checkpoint the attempt first, so that the task can continue on another VM (running VMs only).
        keep: bool,
    },
    /// Checkpoint a task now; the task keeps running.
    Checkpoint {
        /// The task to checkpoint.
        task: TaskId,
        /// The VM on which the task runs.
        vm: VmId,
    },
    /// Have a waiting task begin from an older checkpoint than its newest: newer ones that hold more are given up.
    FallBack {
        /// The waiting task.
        task: TaskId,
        /// Part of the task's work, in millionths, that the checkpoint holds at most; 0: the task begins from scratch.
        done: Ppm,
    },
    /// Bring a parallel job from the background to the foreground of its VM.
    Promote {
        /// The job to promote.
        task: TaskId,
        /// The VM on which the job runs.
        vm: VmId,
        /// How the job gets to the foreground.
        by: PromotionMethod,
        /// The reason for promoting the task now; goes into the log.
        #[serde(default)]
        reason: StartReason,
    },
    /// Run a running task in another mode from now on.
    SetMode {
        /// The task whose mode changes.
        task: TaskId,
        /// The VM on which the task runs.
        vm: VmId,
        /// The mode from now on.
        mode: Mode,
    },
    /// Has the provider always interrupt this spot VM in one way, by hibernation or by an end after notice, whatever the cause.
    /// Without this decision, the cause of an interruption decides whether the VM hibernates or ends.
    // Of the policy that answers an API's calls.
    #[schemars(skip)]
    SetInterruption {
        /// The spot VM whose interruptions are set.
        vm: VmId,
        /// True: an interruption hibernates the VM at once; false: the VM is given notice and ends.
        hibernates: bool,
    },
    /// Sets what programs of which a burstable VM's machine knows nothing use of its vCPUs while it runs, and whether credits
    /// that they spend beyond those earned are charged.
    // Of the policy that answers an API's calls.
    #[schemars(skip)]
    SetVcpuUse {
        /// The burstable VM, which has no tasks.
        vm: VmId,
        /// Part of each vCPU that the programs use, as far as the VM's credits allow it.
        used: Ppm,
        /// Price of a surplus vCPU-hour in unlimited mode; left out: the VM is in standard mode.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        surplus: Option<Price>,
    },
    /// Resume a hibernated VM, if its type can be had and its host has room.
    // Of the policy that answers an API's calls.
    #[schemars(skip)]
    Resume {
        /// The VM to resume.
        vm: VmId,
    },
    /// Wake the scheduler at a time.
    Wake {
        /// Time of the wake-up; a wake-up that is not later than now is refused.
        at: Time,
        /// Token that the wake-up's notice carries.
        #[serde(default)]
        token: u64,
    },
}

impl Decision {
    /// The task of the decision, if it has one.
    #[must_use]
    pub const fn task(&self) -> Option<TaskId> {
        match self {
            Self::Start { task, .. }
            | Self::Stop { task, .. }
            | Self::Checkpoint { task, .. }
            | Self::FallBack { task, .. }
            | Self::Promote { task, .. }
            | Self::SetMode { task, .. } => Some(*task),
            Self::Launch { .. }
            | Self::Terminate { .. }
            | Self::SetInterruption { .. }
            | Self::SetVcpuUse { .. }
            | Self::Resume { .. }
            | Self::Wake { .. } => None,
        }
    }

    /// The VM of the decision, if it has one, for renumbering.
    pub const fn vm_mut(&mut self) -> Option<&mut VmId> {
        match self {
            Self::Launch { vm, .. }
            | Self::Terminate { vm, .. }
            | Self::Stop { vm, .. }
            | Self::Checkpoint { vm, .. }
            | Self::Promote { vm, .. }
            | Self::SetMode { vm, .. }
            | Self::SetInterruption { vm, .. }
            | Self::SetVcpuUse { vm, .. }
            | Self::Resume { vm }
            | Self::Start { on: Seats { vm, .. }, .. } => Some(vm),
            Self::FallBack { .. } | Self::Wake { .. } => None,
        }
    }
}
