//! Ends of tasks and jobs that came before their work can have been done.
//!
//! Nothing that a worker measured is believed here. An attempt had the time from the command that sent it,
//! by the coordinator's own log, to the end that the log has, without the time for which its VM was frozen;
//! its work takes at least its run time on that type of VM, at the full speed that no share, no baseline and
//! no background exceeds. Holds for checkpoints and moves come on top and are left out: the bound is from
//! below.

use std::time::Duration;

use dormouse_model::{MAX_REPORT_DELAY, Setup};
use dormouse_units::{Ppm, Span, Speedup, TaskId, VmId};

use crate::{AttemptEnd, AttemptHistory, Record};

/// By this part of its work's time an attempt may end before it: twice what a task of a faithful run may
/// miss its promise by unless its experiment says otherwise (`live.worst-error`) …
const MAY_LACK: f64 = 0.1;
/// … and by this much real time, by which a report may come late and so move the beginning.
const SLACK: Duration = MAX_REPORT_DELAY;

/// An attempt that ended before its work can have been done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EarlyEnd {
    /// The task or job.
    pub task: TaskId,
    /// The VM that it was on.
    pub vm: VmId,
    /// Emulated time that the attempt had.
    pub had: Span,
    /// Emulated time that its work takes at least.
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

/// Whether an attempt that is over in this record, of a run of this setup, came to its end too early. A program of the
/// user's own ends when it ends, whatever was said of it.
pub(super) fn early_end(
    setup: &Setup,
    record: &Record,
    speedup: Speedup,
    (task, attempt): (TaskId, &AttemptHistory),
) -> Option<EarlyEnd> {
    let (ended, AttemptEnd::Finished) = attempt.ended.as_ref()? else { return None };
    let vm = record.vm(attempt.vm).filter(|_| attempt.own.is_none())?;
    let of_bag = || setup.runtime(task, &vm.kind);
    let runtime = record.jobs.get(task).map(|job| job.job.runtime).or_else(of_bag)?;
    let sent_with = attempt.sent_with.map_or(Ppm::ZERO, |(_, done)| done);
    // An older checkpoint than it was sent with: what it says to have beyond that it has not.
    let done = attempt.said_to_have.map_or(sent_with, |said| said.min(sent_with));
    let (had, needs) = (vm.awake(attempt.sent, *ended), runtime.part(done.rest()));
    let slack = speedup.emulated(SLACK).as_secs_f64();
    let is_early = had.as_secs_f64() + slack < needs.as_secs_f64() * (1.0 - MAY_LACK);
    is_early.then_some(EarlyEnd { task, vm: attempt.vm, had, needs })
}
