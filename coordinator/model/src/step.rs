//! One line of the event log.

use dormouse_cloud::{EndedBy, InterruptionAction, InterruptionTarget, Market};
use dormouse_units::{
    Attempt, CheckpointSeq, Credits, HostId, Money, Ppm, Price, TaskId, Tier, Time, TypeName, VmId,
};
use serde::{Deserialize, Serialize};

use crate::{Decision, Event, Notice, StartReason};

/// One event with all its consequences: a line of `events.jsonl`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    /// The step's number, from 0.
    pub seq: u64,
    /// Time of the step, in emulated microseconds.
    pub at: Time,
    /// The event that the engine handled.
    #[serde(flatten)]
    pub event: Event,
    /// Notices of the event that the scheduler got.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notices: Vec<Notice>,
    /// Decisions that the scheduler made.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub decisions: Vec<Decision>,
    /// Number of decisions in each answer of schedulers that are programs, in the order of the
    /// questions; trailing zeros are left out. With it a run can be repeated without its program.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub answers: Vec<u32>,
    /// Effects of the event and the decisions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub effects: Vec<Effect>,
}

impl Step {
    /// An empty step, to be filled by `begin_step` and after it.
    #[must_use]
    pub fn blank() -> Self {
        Self {
            seq: 0,
            at: Time::ZERO,
            event: Event::Begin,
            notices: Vec::new(),
            decisions: Vec::new(),
            answers: Vec::new(),
            effects: Vec::new(),
        }
    }

    /// Resets this to a step with only its number, time and event.
    #[inline]
    pub fn begin_step(&mut self, seq: u64, at: Time, event: Event) {
        (self.seq, self.at, self.event) = (seq, at, event);
        self.notices.clear();
        self.decisions.clear();
        self.answers.clear();
        self.effects.clear();
    }
}

/// An effect of a step, for readers of the log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "effect", rename_all = "kebab-case")]
pub enum Effect {
    /// A VM was granted and boots.
    VmLaunched {
        /// The VM that was granted.
        vm: VmId,
        /// The VM's instance type.
        kind: TypeName,
        /// Market in which the VM was bought.
        market: Market,
        /// Price of the VM at its launch.
        price: Price,
        /// Highest price that is paid for the VM; `None`: there is no limit.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        bid: Option<Price>,
        /// Number of the VM's vCPUs.
        vcpus: u32,
        /// The host that the VM is on.
        host: HostId,
    },
    /// A VM has booted; charging begins.
    VmReady {
        /// The VM that has booted.
        vm: VmId,
    },
    /// The provider interrupted VMs or ended an interruption, as requested at `asked`.
    Interrupted {
        /// Time at which the action was requested.
        asked: Time,
        /// The provider's action.
        action: InterruptionAction,
        /// The VM or VMs that the action was for.
        target: InterruptionTarget,
        /// The VMs that the action affected.
        vms: Vec<VmId>,
        /// VMs that the action was for but did not affect: they are changing state, can't resume
        /// yet, or boot. A booting VM hibernates once it has booted, by an action of its own.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        left: Vec<VmId>,
    },
    /// The spot price of a type changes for owners of its VMs. Logged for types with VMs and, if
    /// there is a bag, for all types with recorded prices.
    PriceChanged {
        /// The instance type with the new price.
        kind: TypeName,
        /// Price of a spot VM of the type from now on.
        price: Price,
    },
    /// The number of available spot VMs of a type changes.
    AvailabilityChanged {
        /// The instance type whose availability changes.
        kind: TypeName,
        /// Greatest number of spot VMs of the type that can exist.
        vms: u32,
    },
    /// A spot VM is reclaimed because the limit of its type has fallen below the number of existing VMs: it is given
    /// notice and ends.
    Reclaimed {
        /// The VM that is reclaimed.
        vm: VmId,
    },
    /// A VM's price exceeds its bid: the provider gives notice and ends it.
    Outbid {
        /// The VM that was outbid.
        vm: VmId,
    },
    /// A VM is given notice and ends, or hibernates, to make room for another.
    Displaced {
        /// The VM that is displaced.
        vm: VmId,
        /// The VM that gets the room.
        by: VmId,
        /// The action on the displaced VM.
        #[serde(default = "default_preempt", skip_serializing_if = "is_preempt")]
        action: InterruptionAction,
    },
    /// A VM that hibernated to make room has its room again and is commanded to resume.
    GivenBack {
        /// The VM that is to resume.
        vm: VmId,
    },
    /// A hibernation took effect; charging stops.
    VmHibernated {
        /// The VM that hibernated.
        vm: VmId,
        /// Time at which the action was requested.
        asked: Time,
    },
    /// A resume took effect; charging begins.
    VmResumed {
        /// The VM that resumed.
        vm: VmId,
        /// Time at which the action was requested.
        asked: Time,
    },
    /// A burstable VM in unlimited mode is charged for credits spent beyond those earned.
    SurplusCharged {
        /// The burstable VM, which ends or hibernates.
        vm: VmId,
        /// All credits that the VM spent beyond those that it earned, since its launch.
        credits: Credits,
        /// Total charge for the VM's surplus credits.
        cost: Money,
    },
    /// A VM is gone for good.
    VmEnded {
        /// The VM that ended.
        vm: VmId,
        /// Reason why the VM ended.
        why: VmEnd,
        /// Total that was charged for the VM.
        cost: Money,
    },
    /// A task was sent to a VM.
    TaskSent {
        /// The task that was sent.
        task: TaskId,
        /// The number of this start of the task.
        attempt: Attempt,
        /// The VM that the task is to run on.
        vm: VmId,
        /// The scheduler's reason for this VM.
        reason: StartReason,
        /// The checkpoint to start from, and the part of the work that it holds; `None`: from
        /// scratch.
        from: Option<(CheckpointSeq, Ppm)>,
        /// The vCPU of the task's first process. It is logged only if spot VMs run in the
        /// background, where the vCPUs of a VM may differ in speed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        vcpu: Option<u32>,
    },
    /// A VM is assigned processors of its host until it ends or hibernates. Logged if spot VMs are
    /// in the background.
    Placed {
        /// The VM that the processors are assigned to.
        vm: VmId,
        /// Foreground: the VM's vCPUs can use the processors whenever they want. Background: the vCPUs get what the
        /// foreground VMs of the processors leave.
        tier: Tier,
        /// The host's processor for each of the VM's vCPUs.
        processors: Vec<u32>,
    },
    /// The share of a processor that a vCPU of a background VM can use changes. When the VM is launched, each vCPU can
    /// use all of its processor.
    Supplied {
        /// The VM in the background.
        vm: VmId,
        /// The number of the vCPU on the background VM.
        vcpu: u32,
        /// Share of the processor that is left by the VM in the processor's foreground.
        share: Ppm,
    },
    /// The coordinator commands a task to take a checkpoint while the task continues to run; the task's scheduler or
    /// checkpointing scheme decided that.
    CheckpointAsked {
        /// The task to checkpoint.
        task: TaskId,
        /// The attempt at the task that runs.
        attempt: Attempt,
        /// The VM that the task is on.
        vm: VmId,
    },
    /// A task does not start from its newest checkpoint: it starts from an older one, from the same one on a different
    /// host, or from scratch.
    RestoreFellBack {
        /// The task that starts.
        task: TaskId,
        /// The checkpoint that could not be restored or was given up, and the part of the work that it holds.
        from: (CheckpointSeq, Ppm),
        /// The checkpoint that the task starts from instead, and the part of the work that it holds; `None`: the task
        /// starts from scratch.
        to: Option<(CheckpointSeq, Ppm)>,
        /// The host that could not restore the checkpoint, if the task must not start from that checkpoint on that host
        /// again.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        not_on: Option<HostId>,
        /// Why the newest checkpoint is not used, as one line: the host's error text, or that the scheduler gave it up.
        why: String,
        /// True if the scheduler gave up the checkpoint; false if it could not be restored.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        given_up: bool,
    },
    /// An outdated event was dropped: a report on an earlier attempt or on a VM that its host no longer has, or a
    /// submission or request with a wrong number.
    Stale,
    /// A decision was not carried out because an event that the scheduler did not know yet had made it pointless.
    Moot {
        /// Index of the decision in this step.
        index: usize,
        /// The event that made the decision pointless.
        why: String,
    },
    /// A decision was not carried out because it was impossible, which is a bug of the policy.
    Rejected {
        /// Index of the decision in this step.
        index: usize,
        /// Reason why the decision is impossible.
        why: String,
    },
    /// A call of the provider's API was answered.
    Answered {
        /// SHA-256 of the answer, in hexadecimal.
        digest: String,
    },
    /// The run is over.
    Over {
        /// True if all tasks finished and were verified.
        complete: bool,
    },
}

const fn default_preempt() -> InterruptionAction {
    InterruptionAction::Preempt
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "as serde calls it")]
fn is_preempt(action: &InterruptionAction) -> bool {
    *action == InterruptionAction::Preempt
}

impl Effect {
    /// True if this effect means that the decision with this index was not carried out.
    #[must_use]
    pub fn refuses_decision(&self, place: usize) -> bool {
        matches!(self, Self::Moot { index, .. } | Self::Rejected { index, .. } if *index == place)
    }
}

/// Reason why a VM ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum VmEnd {
    /// The scheduler terminated the VM.
    Terminated,
    /// The provider preempted the VM.
    Preempted,
    /// The VM's host was lost.
    HostLost,
    /// The host could not create or keep the VM.
    Failed,
    /// All work of the VM's tenant is done, while other tenants continue.
    WorkDone,
    /// The run is over.
    RunOver,
}

impl VmEnd {
    /// The reason why the VM ended, in one word for tables and logs.
    #[must_use]
    pub const fn one_word(self) -> &'static str {
        match self {
            Self::Terminated => "terminated",
            Self::Preempted => "preempted",
            Self::HostLost => "host-lost",
            Self::Failed => "failed",
            Self::WorkDone => "work-done",
            Self::RunOver => "run-over",
        }
    }

    /// The side that ended the VM: user or provider.
    #[must_use]
    pub const fn ended_by(self) -> EndedBy {
        match self {
            Self::Terminated | Self::RunOver | Self::WorkDone => EndedBy::User,
            Self::Preempted | Self::HostLost | Self::Failed => EndedBy::Provider,
        }
    }
}
