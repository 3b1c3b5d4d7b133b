//! One line of the event log.

use dormouse_cloud::{Action, EndedBy, Market, Target};
use dormouse_units::{
    Attempt, CheckpointSeq, Credits, HostId, Money, Ppm, Price, TaskId, Tier, Time, TypeName, VmId,
};
use serde::{Deserialize, Serialize};

use crate::{Decision, Event, Notice, StartReason};

/// One event and all that came of it: a line of `events.jsonl`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    /// The step's number, from 0.
    pub seq: u64,
    /// Time of the step, in emulated microseconds.
    pub at: Time,
    /// The event that the engine was told of.
    #[serde(flatten)]
    pub event: Event,
    /// Notices of the event that the scheduler heard.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notices: Vec<Notice>,
    /// Decisions that the scheduler made.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub decisions: Vec<Decision>,
    /// Number of decisions in each answer of schedulers that are programs of their own, in the
    /// order in which these were asked. Answers without a decision after the last with one are
    /// left out. With it a run can be made again without its program.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub answers: Vec<u32>,
    /// Effects of the event and the decisions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub effects: Vec<Effect>,
}

impl Step {
    /// A blank step, to be filled in from its `begin` on.
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

    /// Makes this a step of which only the number, the time and the event are known.
    #[inline]
    pub fn begin(&mut self, seq: u64, at: Time, event: Event) {
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
        /// Most to be paid for the VM.
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
    /// The provider takes VMs away or gives them back, as asked for at `asked`.
    Interrupted {
        /// When the action was asked for.
        asked: Time,
        /// The provider's action.
        action: Action,
        /// The VM or VMs that the action is meant for.
        target: Target,
        /// The VMs that the action hit.
        vms: Vec<VmId>,
        /// The VMs that the action was meant for, too, and that stay as they are: they change their
        /// state, or can't resume yet, or boot. One that boots hibernates once it has booted, by an
        /// action of its own.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        left: Vec<VmId>,
    },
    /// The spot price of a type changes, for those who have VMs of it. Logged for types of which
    /// there are VMs, and, where there is a bag, for all types whose price is recorded.
    PriceChanged {
        /// The instance type with the new price.
        kind: TypeName,
        /// Price of a spot VM of the type from now on.
        price: Price,
    },
    /// Another number of spot VMs of a type can be had from now on.
    AvailabilityChanged {
        /// The instance type.
        kind: TypeName,
        /// The most spot VMs of the type that there can be.
        vms: u32,
    },
    /// A spot VM is taken back, as fewer of its type can be had than there are: it is given notice
    /// and ends.
    Reclaimed {
        /// The VM that is taken back.
        vm: VmId,
    },
    /// A VM costs more than was bid for it: the provider gives notice and ends it.
    Outbid {
        /// The VM that was outbid.
        vm: VmId,
    },
    /// A VM is given notice and ends, or hibernates, so that another has its room.
    Displaced {
        /// The VM that is displaced.
        vm: VmId,
        /// The VM that waits for its room.
        by: VmId,
        /// The action that is done to the displaced VM.
        #[serde(default = "preempt", skip_serializing_if = "is_preempt")]
        action: Action,
    },
    /// A VM that hibernated so that another had its room has it again: it is told to resume.
    GivenBack {
        /// The VM that is to resume.
        vm: VmId,
    },
    /// A hibernation took effect; charging stops.
    VmHibernated {
        /// The VM that hibernated.
        vm: VmId,
        /// When the action was asked for.
        asked: Time,
    },
    /// A resume took effect; charging begins.
    VmResumed {
        /// The VM that resumed.
        vm: VmId,
        /// When the action was asked for.
        asked: Time,
    },
    /// A burstable VM in unlimited mode owes for credits that it spent beyond what it had earned.
    SurplusCharged {
        /// The VM, which ends or hibernates.
        vm: VmId,
        /// All that it has spent so, since its launch.
        credits: Credits,
        /// All that is charged for that.
        cost: Money,
    },
    /// A VM is gone for good.
    VmEnded {
        /// The VM that ended.
        vm: VmId,
        /// Who or what ended the VM.
        why: VmEnd,
        /// All that was charged for the VM.
        cost: Money,
    },
    /// A task was sent to a VM.
    TaskSent {
        /// The task that was sent.
        task: TaskId,
        /// The number of this start of the task.
        attempt: Attempt,
        /// The VM that it is to run on.
        vm: VmId,
        /// The scheduler's reason for this VM.
        reason: StartReason,
        /// The checkpoint it starts from and the part of the work that this holds; `None`: from
        /// scratch.
        from: Option<(CheckpointSeq, Ppm)>,
        /// The vCPU of the task's first process; logged where vCPUs of one VM may not be alike, as
        /// spot VMs are in the background.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        vcpu: Option<u32>,
    },
    /// A VM has processors of its host, until it ends or hibernates. Logged where spot VMs are in
    /// the background.
    Placed {
        /// The VM that has the processors.
        vm: VmId,
        /// Foreground: the VM's vCPUs have all that they use of the processors. Background: they
        /// have what others leave.
        tier: Tier,
        /// The host's processor under each of the VM's vCPUs.
        processors: Vec<u32>,
    },
    /// A vCPU of a VM in the background has this share of its processor from now on; at first, all
    /// of it.
    Supplied {
        /// The VM in the background.
        vm: VmId,
        /// The number of the vCPU on it.
        vcpu: u32,
        /// Share of the processor that the VM in its foreground leaves.
        share: Ppm,
    },
    /// A task is to be checkpointed now, while it runs on: its scheduler or its checkpointing scheme
    /// wants it.
    CheckpointAsked {
        /// The task to checkpoint.
        task: TaskId,
        /// The attempt at it that runs.
        attempt: Attempt,
        /// The VM it is on.
        vm: VmId,
    },
    /// A task could not begin from its newest checkpoint: it begins from an older one, from the
    /// same one on another host, or from scratch.
    RestoreFellBack {
        /// The task that begins.
        task: TaskId,
        /// The checkpoint that could not be restored, and the part of the work that it holds.
        from: (CheckpointSeq, Ppm),
        /// The checkpoint that the task begins from instead, likewise; `None`: from scratch.
        to: Option<(CheckpointSeq, Ppm)>,
        /// The host that could not restore the checkpoint, where the task must not begin from it
        /// again.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        not_on: Option<HostId>,
        /// The host's words on the failure, as one line.
        why: String,
    },
    /// An event was dropped as out of date: a report on a former attempt or on a VM that its host
    /// no longer has, or a submission or request under a number that is not the next one.
    Stale,
    /// A decision was overtaken by what the scheduler had yet to hear, and was not carried out.
    Moot {
        /// The decision, by its place in this step.
        index: usize,
        /// What overtook the decision.
        why: String,
    },
    /// A decision asked for something impossible, a bug of the policy, and was not carried out.
    Rejected {
        /// The decision, by its place in this step.
        index: usize,
        /// Why the decision is impossible.
        why: String,
    },
    /// A call of the provider's API was answered.
    Answered {
        /// SHA-256 of the answer, in hexadecimal.
        digest: String,
    },
    /// The run is over.
    Over {
        /// Whether all tasks finished and were verified.
        complete: bool,
    },
}

const fn preempt() -> Action {
    Action::Preempt
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "as serde calls it")]
fn is_preempt(action: &Action) -> bool {
    *action == Action::Preempt
}

impl Effect {
    /// Whether this effect says that the decision at this place of its step was not carried out.
    #[must_use]
    pub fn refuses(&self, place: usize) -> bool {
        matches!(self, Self::Moot { index, .. } | Self::Rejected { index, .. } if *index == place)
    }
}

/// Why a VM ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum VmEnd {
    /// The scheduler gave it back.
    Terminated,
    /// The provider took it back.
    Preempted,
    /// The VM's host is gone.
    HostLost,
    /// The host could not make or keep the VM.
    Failed,
    /// All work of the tenant that launched it is done, while other tenants go on.
    WorkDone,
    /// The run is over.
    RunOver,
}

impl VmEnd {
    /// The reason as one word, as tables and logs have it.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Terminated => "terminated",
            Self::Preempted => "preempted",
            Self::HostLost => "host-lost",
            Self::Failed => "failed",
            Self::WorkDone => "work-done",
            Self::RunOver => "run-over",
        }
    }

    /// Who ended the VM: the user or the provider.
    #[must_use]
    pub const fn by(self) -> EndedBy {
        match self {
            Self::Terminated | Self::RunOver | Self::WorkDone => EndedBy::User,
            Self::Preempted | Self::HostLost | Self::Failed => EndedBy::Provider,
        }
    }
}
