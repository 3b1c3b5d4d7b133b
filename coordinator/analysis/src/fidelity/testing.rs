//! Steps of runs of parallel jobs, for tests.

use std::sync::Arc;

use dormouse_model::{Decision, Event, Notice, StartReason, Step, Submission};
use dormouse_units::{Mode, Seats, TaskId, Tier, Time, VmId};

/// The end of an instant at second `at`, with these notices and decisions.
pub(super) fn instant(at: u64, notices: Vec<Notice>, decisions: Vec<Decision>) -> Step {
    let (at, event) = (Time::from_secs(at), Event::InstantOver);
    Step { at, event, notices, decisions, ..Step::blank() }
}

/// The submission of a job at time zero.
pub(super) fn submitted(job: u32, submission: &Submission) -> Step {
    let (task, job) = (TaskId::new(job), Arc::new(submission.clone()));
    Step { event: Event::Submitted { task, key: None, job }, ..Step::blank() }
}

/// The start of a job on these processors.
pub(super) fn start(job: u32, tier: Tier, on: &[u32]) -> Decision {
    let on = Seats { vm: VmId::new(0), tier, cpus: on.into() };
    let (task, mode, reason) = (TaskId::new(job), Mode::Burst, StartReason::FirstInLine);
    Decision::Start { task, on, mode, reason }
}
