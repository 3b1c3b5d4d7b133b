//! One line of the event log.

use dormouse_cloud::{Action, EndedBy, Market, Target};
use dormouse_units::{
    Attempt, CheckpointSeq, HostId, Money, Ppm, Price, TaskId, Tier, Time, TypeName, VmId,
};
use serde::{Deserialize, Serialize};

use crate::{Decision, Event, Notice, StartReason};

/// One event and all that came of it: a line of `events.jsonl`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    /// The step's number, from 0.
    pub seq: u64,
    /// When, in emulated microseconds.
    pub at: Time,
    /// The event that the engine was told of.
    #[serde(flatten)]
    pub event: Event,
    /// What the scheduler heard of it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notices: Vec<Notice>,
    /// What the scheduler decided.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub decisions: Vec<Decision>,
    /// What came of it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub effects: Vec<Effect>,
}

impl Step {
    /// Memory for a step.
    #[must_use]
    pub fn blank() -> Self {
        let (notices, decisions, effects) = (Vec::new(), Vec::new(), Vec::new());
        Self { seq: 0, at: Time::ZERO, event: Event::Begin, notices, decisions, effects }
    }

    /// Makes it one of which nothing but the event is known.
    #[inline]
    pub fn begin(&mut self, seq: u64, at: Time, event: Event) {
        (self.seq, self.at, self.event) = (seq, at, event);
        self.notices.clear();
        self.decisions.clear();
        self.effects.clear();
    }
}

/// What a step did to the world, for whoever reads the log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "effect", rename_all = "kebab-case")]
pub enum Effect {
    /// A VM was granted and boots.
    VmLaunched {
        /// The VM that was granted.
        vm: VmId,
        /// The VM's instance type.
        kind: TypeName,
        /// How it was bought.
        market: Market,
        /// At what price.
        price: Price,
        /// Most that is paid for it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        bid: Option<Price>,
        /// Number of the VM's vCPUs.
        vcpus: u32,
        /// On which host.
        host: HostId,
    },
    /// A VM has booted; charging begins.
    VmReady {
        /// The VM that has booted.
        vm: VmId,
    },
    /// The provider acts, as asked for at `asked`.
    Interrupted {
        /// When it was asked for.
        asked: Time,
        /// What the provider does.
        action: Action,
        /// The VM or VMs that it does it to.
        target: Target,
        /// The VMs it hit.
        vms: Vec<VmId>,
        /// Those it was meant for, too, and left as they are: they boot or change their state, or
        /// can't resume yet.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        left: Vec<VmId>,
    },
    /// The spot price of a type is another from now on, for those who have VMs of it. Said of types of which
    /// there are VMs, and of all whose price is recorded where there is a bag.
    PriceChanged {
        /// The instance type with the new price.
        kind: TypeName,
        /// What it costs now.
        price: Price,
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
        /// The one that waits for its room.
        by: VmId,
        /// What is done to it.
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
        /// When it was asked for.
        asked: Time,
    },
    /// A resume took effect; charging begins.
    VmResumed {
        /// The VM that resumed.
        vm: VmId,
        /// When it was asked for.
        asked: Time,
    },
    /// A VM is gone for good.
    VmEnded {
        /// The VM that ended.
        vm: VmId,
        /// Who or what ended it.
        why: VmEnd,
        /// All that was charged for it.
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
        /// From which checkpoint, holding what of the work.
        from: Option<(CheckpointSeq, Ppm)>,
        /// The vCPU of its first process; said where vCPUs of one VM may not be alike, as spot VMs
        /// are in the background.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        vcpu: Option<u32>,
    },
    /// A VM has processors of its host, until it ends or hibernates. Said where spot VMs are in the
    /// background.
    Placed {
        /// The VM that has the processors.
        vm: VmId,
        /// Whether its vCPUs have all that they use of them, or what others leave.
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
        /// What the VM in the foreground leaves.
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
    /// A task could not begin with its newest checkpoint: it begins with an older one, with this one
    /// on another host, or from scratch.
    RestoreFellBack {
        /// The task that begins.
        task: TaskId,
        /// What could not be restored.
        from: (CheckpointSeq, Ppm),
        /// What it begins with instead; `None`: from scratch.
        to: Option<(CheckpointSeq, Ppm)>,
        /// Not on this host, which could not restore it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        not_on: Option<HostId>,
        /// What the host said of its failure, as one line.
        why: String,
    },
    /// A report of a former life of a task or host was dropped.
    Stale,
    /// What the scheduler asked for had been overtaken by what it had yet to hear. It was not done.
    Moot {
        /// The decision, by its place in this step.
        index: usize,
        /// What overtook the decision.
        why: String,
    },
    /// The scheduler asked for what cannot be: a bug of the policy. It was not done.
    Rejected {
        /// The decision, by its place in this step.
        index: usize,
        /// Why it cannot be.
        why: String,
    },
    /// The run is over.
    Over {
        /// All tasks finished verified.
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
    /// Whether it says that the decision at this place of its step was not carried out.
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
    /// The host could not make or keep it.
    Failed,
    /// All work of the tenant that launched it is done, while other tenants go on.
    WorkDone,
    /// The run is over.
    RunOver,
}

impl VmEnd {
    /// In a word, as tables and logs have it.
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

    /// Who ended it.
    #[must_use]
    pub const fn by(self) -> EndedBy {
        match self {
            Self::Terminated | Self::RunOver | Self::WorkDone => EndedBy::User,
            Self::Preempted | Self::HostLost | Self::Failed => EndedBy::Provider,
        }
    }
}
