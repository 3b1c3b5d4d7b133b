//! Ends of tasks and jobs that were reported before their work can have been done.
//!
//! No measurement of a worker is used here. An attempt had the time between the command that sent
//! it and the end, both by the coordinator's own log, less the time for which its VM was frozen.
//! Its work takes at least its run time on that type of VM at full speed, which no share, baseline
//! or background tier exceeds. Time for checkpoints and moves is left out, so this is a lower
//! bound.

use std::time::Duration;

use dormouse_model::{MAX_REPORT_DELAY, Setup};
use dormouse_units::{Ppm, Span, Speedup, TaskId, VmId};

use crate::{AttemptEnd, AttemptHistory, RunRecord};

/// Fraction of its run time by which an attempt may end early: twice the default limit of a task's error in a faithful
/// run (`live.worst-error`).
const MAY_LACK: f64 = 0.1;
/// Real time by which an attempt may end early in addition to `MAY_LACK`: the report of the
/// attempt's start may have come late, so that the attempt seems to have started later than it did.
const SLACK: Duration = MAX_REPORT_DELAY;

/// An attempt that ended before its work can have been done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EarlyEnd {
    /// Task or job that was attempted.
    pub task: TaskId,
    /// VM of the attempt.
    pub vm: VmId,
    /// Emulated time for which the attempt could run.
    pub had: Span,
    /// Least emulated time that the attempt's work takes.
    pub needs: Span,
}

impl std::fmt::Display for EarlyEnd {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { task, vm, had, needs } = self;
        let (had, needs) = (had.as_secs_f64(), needs.as_secs_f64());
        write!(
            f,
            "{task} ended on {vm} after {had:.1} s, before its work of {needs:.1} s can have been done"
        )
    }
}

/// Returns the facts of an attempt that ended, according to `record`, before its work can have been done; `None` if it ended in
/// time. A user's own program is not checked: it may take less time than its user said.
pub(super) fn early_end(
    setup: &Setup,
    record: &RunRecord,
    speedup: Speedup,
    (task, attempt): (TaskId, &AttemptHistory),
) -> Option<EarlyEnd> {
    let (ended, AttemptEnd::Finished) = attempt.ended.as_ref()? else { return None };
    let vm = record.vm(attempt.vm).filter(|_| attempt.own.is_none())?;
    let of_bag = || setup.task_runtime(task, &vm.kind);
    let runtime = record.jobs.get(task).map(|job| job.job.runtime).or_else(of_bag)?;
    let sent_with = attempt.sent_with.map_or(Ppm::ZERO, |(_, done)| done);
    // If the attempt began with an older checkpoint than it was sent with, its work starts from
    // that one.
    let done = attempt.said_to_have.map_or(sent_with, |said| said.min(sent_with));
    let (had, needs) = (vm.awake(attempt.sent, *ended), runtime.part(done.rest_of_whole()));
    let slack = speedup.to_emulated(SLACK).as_secs_f64();
    let is_early = had.as_secs_f64() + slack < needs.as_secs_f64() * (1.0 - MAY_LACK);
    is_early.then_some(EarlyEnd { task, vm: attempt.vm, had, needs })
}
