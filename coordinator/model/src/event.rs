//! Events that reach a run from outside.

use std::sync::Arc;

use dormouse_cloud::{InterruptionAction, InterruptionTarget, ResourceVector};
use dormouse_units::{FaultId, HostId, RequestId, Span, TaskId, Time};
use serde::{Deserialize, Serialize};

use crate::{
    ApiCall, CheckFinding, FaultKind, FaultState, LoadReport, Report, Submission, VmRequest,
};

/// One event from outside; events happen in the order of the stream.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum Event {
    /// A host joins the run with its capacity and without VMs.
    HostJoined {
        /// The host's id, never used before in this run.
        host: HostId,
        /// Name of the host, for people.
        name: String,
        /// Number of vCPUs and memory of the host.
        offer: ResourceVector,
    },
    /// A host is lost with all its VMs.
    HostLost {
        /// The host that is gone.
        host: HostId,
        /// Reason of the loss, as one line for the log.
        why: String,
        /// True if the host was lost while the run had no coordinator: its VMs ended then, and
        /// their owners learn of it when the run continues.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        unheard: bool,
    },
    /// A user submits a parallel job.
    Submitted {
        /// The job's id: the number of jobs and tasks before it (`next_task` of the engine's run).
        task: TaskId,
        /// The user's key for a submission from outside during the run: repeated submissions with one key count once. `None`: a job
        /// of the workload.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        key: Option<Arc<str>>,
        /// The job as submitted.
        #[serde(flatten)]
        job: Arc<Submission>,
    },
    /// A customer of the provider requests a VM.
    Requested {
        /// The request's id: the number of requests before it (`next_request` of the engine's run).
        request: RequestId,
        /// The requested VM.
        #[serde(flatten)]
        asks: VmRequest,
    },
    /// Somebody calls the provider's API. The policy that answers for the provider learns of the call in this step.
    Called {
        /// The caller's token for the call, if there is one: repeated calls with the same token are carried
        /// out once.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        token: Option<Arc<str>>,
        /// The call of the provider's API.
        call: Arc<ApiCall>,
    },
    /// No more VMs will be requested. A run that has only requests ends once the requested VMs are gone; a
    /// run that callers of the provider's API keep open ends at once.
    AllRequested,
    /// No more jobs are accepted from outside; jobs of the workload still come.
    Closed,
    /// No more jobs will be submitted; the run ends once all submitted jobs have ended.
    AllSubmitted,
    /// All events of this instant have happened: policies that decide once per instant decide now
    /// (`instant` of the engine's run).
    InstantOver,
    /// The experiment begins.
    Begin,
    /// The time has come for which the run requested to be woken (`next_wakeup` of the engine's run).
    Tick,
    /// A host reports on one of its VMs.
    Machine {
        /// The host that reports.
        host: HostId,
        /// Index of the report among its host's reports, from 1; zero for a modelled host.
        #[serde(default, skip_serializing_if = "is_zero")]
        number: u64,
        /// The report itself.
        #[serde(flatten)]
        report: Report,
    },
    /// An operator interrupts spot VMs, beyond the interruptions of the experiment.
    Interrupt {
        /// The VM or VMs to act on.
        target: InterruptionTarget,
        /// What the interruption does to its targets.
        action: InterruptionAction,
        /// The requester or the reason, as one line for the log.
        why: String,
    },
    /// A fault of the experiment is due, and its hosts get the command.
    Fault {
        /// Index of the fault in the experiment.
        fault: FaultId,
        /// The present hosts that the fault applies to.
        hosts: Vec<HostId>,
        /// Emulated time that the fault lasts.
        lasts: Span,
        /// Kind of the fault.
        #[serde(flatten)]
        kind: FaultKind,
    },
    /// A host reports the state of a fault.
    FaultFelt {
        /// Index of the fault in the experiment.
        fault: FaultId,
        /// The host that gets the fault.
        host: HostId,
        /// Index of the report among its host's reports.
        number: u64,
        /// Delay until the fault took effect, from the command or from its expected end, in real
        /// microseconds.
        real_took_us: u64,
        /// State of the fault.
        #[serde(flatten)]
        felt: FaultState,
    },
    /// A host reports its load since its worker was welcomed.
    HostLoad {
        /// The host whose load is reported.
        host: HostId,
        /// Index of the report among its host's reports.
        number: u64,
        /// The load of the host.
        #[serde(flatten)]
        load: LoadReport,
    },
    /// A host reported an impossible measurement, or a checkpoint that it never stored: its
    /// measurements no longer count as evidence.
    Disbelieved {
        /// The host that reported the impossible measurement or checkpoint.
        host: HostId,
        /// What the host reported and is not believed, as one line for the log: a measurement with the limit that it exceeds, or a
        /// checkpoint.
        why: String,
    },
    /// A worker reports that its jail for tasks is incomplete.
    JailLacking {
        /// The host of the worker.
        host: HostId,
        /// The missing part of the jail, as the object of a sentence.
        lacks: String,
    },
    /// A task or a part of it was to be computed again on another host, after all tasks had ended.
    SpotCheck {
        /// The task that is checked.
        task: TaskId,
        /// The host that had computed the answer.
        of: HostId,
        /// The host that computes the answer again.
        by: HostId,
        /// True if the whole task is repeated.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        whole: bool,
        /// CPU time of the check in real microseconds.
        real_cpu_us: u64,
        /// The outcome of the check.
        #[serde(flatten)]
        finding: CheckFinding,
    },
    /// Measurements of the coordinator itself over a live run.
    CoordinatorLoad {
        /// Greatest delay of the coordinator's clock alarm, in real microseconds.
        clock_late_us: u64,
        /// Longest time that the coordinator's journal took to make a step durable, in real microseconds.
        journal_late_us: u64,
        /// CPU time of the coordinator's process, in real microseconds.
        cpu_us: u64,
        /// Kernel that the coordinator runs on, identified as hosts identify theirs.
        machine: String,
    },
    /// The user ends the run before its work is done.
    Cancel {
        /// The user or cause that ended the run, as one line for the log.
        why: String,
    },
    /// A live run's clock beside the wall clock, logged every few seconds. A restarted coordinator learns
    /// from it for how long the run had no coordinator.
    Clock {
        /// Emulated time on the run's clock at the moment of the wall clock's reading.
        shows: Time,
        /// The wall clock, real microseconds since 1970.
        unix_us: u64,
        /// Time for which workers keep their VMs without a coordinator, in real microseconds.
        hold_real_us: u64,
        /// The machine's boot clock, which nobody sets; `None` in logs of older versions, and on
        /// machines without one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        since_boot: Option<BootClock>,
    },
    /// A live run continues after its coordinator was away. VMs that their workers kept meanwhile
    /// are charged for that time and earned credits in it; without such VMs, no time has passed.
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

/// Time on the clock that runs since a machine's boot, independent of its wall clock.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BootClock {
    /// The kernel's id of the machine's boot from which the time is counted.
    pub boot: String,
    /// Real microseconds since the boot, suspended time included.
    pub us: u64,
}
