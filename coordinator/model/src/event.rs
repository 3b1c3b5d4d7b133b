//! Events that reach a run from outside.

use std::sync::Arc;

use dormouse_cloud::{Action, Host, Target};
use dormouse_units::{FaultId, HostId, RequestId, Span, TaskId, Time};
use serde::{Deserialize, Serialize};

use crate::{ApiCall, CheckFinding, FaultKind, Felt, HostLoad, Report, Request, Submission};

/// One event; events happen in the order of the stream.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum Event {
    /// A host joins the run, without VMs, and offers its room.
    HostJoined {
        /// The host's id, never used before in this run.
        host: HostId,
        /// Name of the host, for people.
        name: String,
        /// The vCPUs and the memory that it has for VMs.
        offer: Host,
    },
    /// A host is gone, and all VMs on it.
    HostLost {
        /// The host that is gone.
        host: HostId,
        /// How the host was lost, as one line for the log.
        why: String,
        /// It was lost while the run was without a coordinator: its VMs ended then, and who had them
        /// hears of it when the run goes on.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        unheard: bool,
    },
    /// A user submits a parallel job.
    Submitted {
        /// The job's id: the number of jobs and tasks there were before (`next_task` of the
        /// engine's run).
        task: TaskId,
        /// The user's name for a submission from outside during the run: it is taken once, however
        /// often it is sent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        key: Option<Arc<str>>,
        /// The job as submitted.
        #[serde(flatten)]
        job: Arc<Submission>,
    },
    /// A customer of the provider requests a VM.
    Requested {
        /// The request's id: the number of requests there were before (`next_request` of the
        /// engine's run).
        request: RequestId,
        /// The VM that is asked for.
        #[serde(flatten)]
        asks: Request,
    },
    /// Somebody calls the provider's API. The policy that answers for the provider hears of the call in this step.
    Called {
        /// The caller's name for the call, if it gives one: the same call with it is carried out once.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        token: Option<Arc<str>>,
        /// The call.
        call: Arc<ApiCall>,
    },
    /// No more VMs will be requested: a run of requests alone is over once their VMs are gone, and one that an API's
    /// callers keep open at once.
    AllRequested,
    /// No more jobs come from outside: those that the run's workload has yet to submit are the
    /// last.
    Closed,
    /// No more jobs will be submitted: the run is over once all submitted jobs have ended.
    AllSubmitted,
    /// All that happens at this instant has happened: policies that hear whole instants decide now
    /// (`instant` of the engine's run).
    InstantOver,
    /// The experiment begins.
    Begin,
    /// The time has come that the run asked for (`next_wakeup` of the engine's run).
    Tick,
    /// A machine reports.
    Machine {
        /// The host that reports.
        host: HostId,
        /// The number of the report among its host's reports, from 1; zero for a modelled host.
        #[serde(default, skip_serializing_if = "is_zero")]
        number: u64,
        /// The report as it came.
        #[serde(flatten)]
        report: Report,
    },
    /// Somebody who looks on has the provider act on spot VMs now, as an interruption that the
    /// experiment does not foresee.
    Interrupt {
        /// The VM or VMs that the act is done to.
        target: Target,
        /// The action that is done to them.
        action: Action,
        /// Who asked for it or why, as one line for the log.
        why: String,
    },
    /// A fault of the experiment is due: its hosts are told to have it.
    Fault {
        /// The number of the fault among the experiment's.
        fault: FaultId,
        /// The hosts that it is for, those that are there and that it is meant for.
        hosts: Vec<HostId>,
        /// Emulated time that the fault lasts.
        lasts: Span,
        /// What goes wrong.
        #[serde(flatten)]
        kind: FaultKind,
    },
    /// A host says how a fault stands with it.
    FaultFelt {
        /// The number of the fault.
        fault: FaultId,
        /// The host that has it.
        host: HostId,
        /// The number of the report among its host's reports.
        number: u64,
        /// From the command, or from its end as it was foreseen, until it was so, real microseconds.
        real_took_us: u64,
        /// How it stands.
        #[serde(flatten)]
        felt: Felt,
    },
    /// A host says what it did since its worker was welcomed.
    HostLoad {
        /// The host that says it.
        host: HostId,
        /// The number of the report among its host's reports.
        number: u64,
        /// What it did.
        #[serde(flatten)]
        load: HostLoad,
    },
    /// A host reported a measurement that can't be, or a checkpoint that it never stored: nothing that it measures is
    /// evidence any more.
    Disbelieved {
        /// The host that reported it.
        host: HostId,
        /// The measurement and what it can be at most, or the checkpoint, as one line for the log.
        why: String,
    },
    /// A worker says that its tasks are not in a whole jail.
    JailLacking {
        /// The host of the worker.
        host: HostId,
        /// The part of the jail that is lacking, as the object of a sentence.
        lacks: String,
    },
    /// A task, or a part of it, was to be computed again on another host, once all tasks had ended.
    SpotCheck {
        /// The task whose answer was looked at.
        task: TaskId,
        /// The host that had reported the task's answer.
        of: HostId,
        /// The host that was to compute it again.
        by: HostId,
        /// Whether it was all of the task, from its beginning to its end.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        whole: bool,
        /// CPU time that this took, real microseconds.
        real_cpu_us: u64,
        /// The outcome of the check.
        #[serde(flatten)]
        finding: CheckFinding,
    },
    /// What the coordinator measured of itself, from its start to the end of a live run.
    CoordinatorLoad {
        /// The most that its clock's alarm rang late, real microseconds.
        clock_late_us: u64,
        /// The longest that its journal took to make a step durable, real microseconds.
        journal_late_us: u64,
        /// CPU time that its process used, real microseconds.
        cpu_us: u64,
        /// Names the kernel it runs on, as hosts name theirs.
        machine: String,
    },
    /// The user ends the run before its time.
    Cancel {
        /// Who or what ended the run, as one line for the log.
        why: String,
    },
    /// A live run's clock beside the wall clock, logged every few seconds: it tells a coordinator
    /// that goes on with the run for how long the run was without one.
    Clock {
        /// Emulated time on the run's clock.
        shows: Time,
        /// The wall clock, real microseconds since 1970.
        unix_us: u64,
        /// How long workers keep their VMs without a coordinator, real microseconds.
        hold_real_us: u64,
        /// The clock of the coordinator's machine that nobody sets; absent in logs of older versions, and where it has none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        since_boot: Option<BootClock>,
    },
    /// A live run goes on after its coordinator was away. VMs that their workers kept in the
    /// meantime, as these have confirmed, are charged for that time and earned credits in it; where
    /// there are none, no time has passed.
    Resumed {
        /// The emulated time that passed since the last step.
        outage: Span,
        /// Time since the clock was last logged, real microseconds.
        away_real_us: u64,
    },
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "as serde calls it")]
pub(crate) const fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// A time of the clock that runs since a machine was booted, whatever is done to its wall clock.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BootClock {
    /// The kernel's name for the machine since that boot.
    pub boot: String,
    /// Real microseconds since then, those in which it was suspended included.
    pub us: u64,
}
