//! What can happen to a run from outside.

use std::sync::Arc;

use dormouse_cloud::Host;
use dormouse_units::{HostId, RequestId, Span, TaskId, Time};
use serde::{Deserialize, Serialize};

use crate::{Report, Request, Submission};

/// One event. Its order in the stream is the order of the world.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum Event {
    /// A host offers its room, empty.
    HostJoined {
        /// The host's id, never used before in this run.
        host: HostId,
        /// What people call it.
        name: String,
        /// The vCPUs and the memory that it has for VMs.
        offer: Host,
    },
    /// A host is gone, and all it carried.
    HostLost {
        /// The host that is gone.
        host: HostId,
        /// How it was lost, as one line for the log.
        why: String,
    },
    /// A user submits a parallel job.
    Submitted {
        /// The job's id: the number of jobs and tasks there were before
        /// ([`crate::Run::next_task`]).
        task: TaskId,
        /// The user's name for a submission from outside during the run, so that it is taken once
        /// however often it is sent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        key: Option<Arc<str>>,
        /// The job as submitted.
        #[serde(flatten)]
        job: Arc<Submission>,
    },
    /// A customer of the provider requests a VM.
    Requested {
        /// The request's id: the number of requests there were before
        /// ([`crate::Run::next_request`]).
        request: RequestId,
        /// What is asked for.
        #[serde(flatten)]
        asks: Request,
    },
    /// No more VMs will be requested: a run of requests alone is over once their VMs are gone.
    AllRequested,
    /// No more jobs come from outside: those that its workload has yet to submit are the last.
    Closed,
    /// No more jobs will be submitted: the run is over once those that were have ended.
    AllSubmitted,
    /// All that happens at this instant has happened: policies that hear whole instants decide now
    /// ([`crate::Run::instant`]).
    InstantOver,
    /// The experiment begins.
    Begin,
    /// The time has come that was asked for with [`crate::Run::next_wakeup`].
    Tick,
    /// A machine reports.
    Machine {
        /// The host it runs on.
        host: HostId,
        /// The number of the report among those of its host, from 1; zero for a modelled host.
        #[serde(default, skip_serializing_if = "is_zero")]
        number: u64,
        /// The report as it came.
        #[serde(flatten)]
        report: Report,
    },
    /// The user ends the run before its time.
    Cancel {
        /// Who or what ended it, as one line for the log.
        why: String,
    },
    /// A live run's clock beside the wall clock, said every few seconds: whoever goes on with the
    /// run knows from it for how long it was away.
    Clock {
        /// What the run's clock shows.
        shows: Time,
        /// The wall clock, real microseconds since 1970.
        unix_us: u64,
        /// For how long workers keep their VMs without a coordinator, real microseconds.
        hold_real_us: u64,
    },
    /// A live run goes on after its coordinator was away. Its VMs were there meanwhile, as far as
    /// their workers kept them: they are charged for it, and earned credits.
    Resumed {
        /// The emulated time that passed since the last step.
        outage: Span,
        /// Since the clock was last said, real microseconds.
        away_real_us: u64,
    },
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "as serde calls it")]
const fn is_zero(number: &u64) -> bool {
    *number == 0
}
