//! Checkpoints that were due in finished attempts (planned at the start or asked for) beside those
//! that were taken, failed, or reported as missed.

use std::collections::BTreeMap;
use std::time::Duration;

use dormouse_model::{Event, Report, Setup, Step};
use dormouse_policies::{Begun, CheckpointPlanning};
use dormouse_units::{Attempt, Ppm, Span, Speedup, TaskId, Time};

use crate::{AttemptEnd, AttemptHistory, RunRecord};

/// A checkpoint that was due less than this real time before its task's end may be missing: it may still wait for CRIU or for its
/// transfer to the coordinator. Workers do not use this margin: a worker reports every requested checkpoint that is not stored at
/// the task's end, by its own clock, as missed.
const TOO_LATE: Duration = Duration::from_secs(1);

/// A finished attempt with fewer checkpoints than were due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CheckpointShortfall {
    /// Task or job that was attempted.
    pub task: TaskId,
    /// Number of checkpoints that were due well before the attempt's end.
    pub due: u32,
    /// Number of checkpoints that were taken, failed, or were reported as missed.
    pub answered: u32,
}

/// Finished attempts with the checkpoints that were due in them.
#[derive(Clone, Debug, Default)]
pub(super) struct DueCheckpoints {
    ended: BTreeMap<(TaskId, Attempt), CheckpointShortfall>,
}

impl DueCheckpoints {
    /// Counts a checkpoint that is reported after the end of its attempt.
    pub(super) fn see(&mut self, step: &Step) {
        if let Event::Machine { report, .. } = &step.event
            && let Report::CheckpointTaken { task, attempt, .. }
            | Report::CheckpointFailed { task, attempt, .. } = report
            && let Some(known) = self.ended.get_mut(&(*task, *attempt))
        {
            known.answered = known.answered.saturating_add(1);
        }
    }

    /// Counts the checkpoints of an attempt that has ended according to `record`.
    pub(super) fn over(
        &mut self,
        setup: &Setup,
        record: &RunRecord,
        speedup: Speedup,
        (task, attempt): (TaskId, &AttemptHistory),
    ) {
        let Some((end, AttemptEnd::Finished)) = &attempt.ended else { return };
        let too_late = speedup.to_emulated(TOO_LATE);
        let due = due_checkpoints(setup, record, (task, attempt), (*end, too_late));
        let missed = attempt.ledger.map_or(0, |ledger| ledger.missed_checkpoints);
        // The checkpoint times of a user's own program come from the user's estimate of its run
        // time: the program may end earlier.
        let missed = if attempt.own.is_some() { 0 } else { missed };
        let answered = attempt.checkpoint_reports.saturating_add(missed);
        self.ended.insert((task, attempt.attempt), CheckpointShortfall { task, due, answered });
    }

    /// The attempts that are short of checkpoints, and the number of checkpoints due and answered
    /// over all attempts.
    pub(super) fn short(&self) -> (Vec<CheckpointShortfall>, u32, u32) {
        let each = self.ended.values();
        let each = each.map(|it| CheckpointShortfall { answered: it.answered.min(it.due), ..*it });
        let (due, answered) =
            each.clone().fold((0, 0), |(due, answered), it| (due + it.due, answered + it.answered));
        (each.filter(|it| it.answered < it.due).collect(), due, answered)
    }
}

/// Number of checkpoints that were due well before the end of an attempt. If checkpoints are planned, only the planned
/// ones count: an additional request may be met by a checkpoint that is being taken already.
fn due_checkpoints(
    setup: &Setup,
    record: &RunRecord,
    (task, attempt): (TaskId, &AttemptHistory),
    (end, too_late): (Time, Span),
) -> u32 {
    let planned = match attempt.own {
        Some(_) => 0,
        None => planned_checkpoints(setup, record, (task, attempt), too_late).unwrap_or(0),
    };
    if planned > 0 {
        return planned;
    }
    let in_time = attempt.asked.iter().filter(|(asked, _)| end.since(*asked) >= too_late);
    u32::try_from(in_time.count()).unwrap_or(u32::MAX)
}

/// Number of planned checkpoints of an attempt, without those near its end.
fn planned_checkpoints(
    setup: &Setup,
    record: &RunRecord,
    (task, attempt): (TaskId, &AttemptHistory),
    too_late: Span,
) -> Option<u32> {
    let vm = record.vm(attempt.vm)?;
    let from = attempt.sent_with.map_or(Ppm::ZERO, |(_, done)| done);
    let age = vm.ready.map_or(Span::ZERO, |ready| attempt.sent.since(ready));
    let begun = Begun { kind: &vm.kind, market: vm.market, age, kept: from };
    let (scheme, memory, said, real) = match record.jobs.get(task).map(|job| &job.job) {
        Some(job) => (setup.checkpoint_of_jobs()?, job.memory_of_all(), job.runtime, job.runtime),
        None => {
            let spec = setup.bag.tasks.get(task.get() as usize)?;
            let said = *spec.runtime.get(&vm.kind)?;
            (&setup.checkpoint, spec.memory, said, setup.task_runtime(task, &vm.kind)?)
        }
    };
    let points = scheme.known_on(&begun, memory, said).points();
    let is_due = |point: &&Ppm| **point > from && real.part(point.rest_of_whole()) >= too_late;
    u32::try_from(points.iter().filter(is_due).count()).ok()
}
