//! Checkpoints that were due in attempts that came to their end, counted from what the coordinator gave
//! along with the start or asked for, against those that were taken, failed, or were said to be missed.

use std::collections::BTreeMap;
use std::time::Duration;

use dormouse_model::{Event, Report, Setup, Step};
use dormouse_policies::{Begun, CheckpointPlanning};
use dormouse_units::{Attempt, Ppm, Span, Speedup, TaskId, Time};

use crate::{AttemptEnd, AttemptHistory, Record};

/// A checkpoint that was due less than this before its task's end, in real time, may have come too late
/// unsaid: it waits for its turn at CRIU, and for the way to the coordinator. No worker reckons with this time: it says
/// that a checkpoint was missed whenever one that was wanted is not stored at its task's end, by its own clock.
const TOO_LATE: Duration = Duration::from_secs(1);

/// An attempt that came to its end with fewer checkpoints than were due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShortOfCheckpoints {
    /// The task or job.
    pub task: TaskId,
    /// How many were due in time.
    pub due: u32,
    /// How many were taken, failed, or were said to be missed.
    pub answered: u32,
}

/// The attempts that came to their end, with the checkpoints that were due in them.
#[derive(Clone, Debug, Default)]
pub(super) struct DueCheckpoints {
    ended: BTreeMap<(TaskId, Attempt), ShortOfCheckpoints>,
}

impl DueCheckpoints {
    /// Takes in a step's report of a checkpoint after the end of its attempt, which counts as well.
    pub(super) fn see(&mut self, step: &Step) {
        if let Event::Machine { report, .. } = &step.event
            && let Report::CheckpointTaken { task, attempt, .. }
            | Report::CheckpointFailed { task, attempt, .. } = report
            && let Some(known) = self.ended.get_mut(&(*task, *attempt))
        {
            known.answered = known.answered.saturating_add(1);
        }
    }

    /// Takes in an attempt that is over in this record, of a run of this setup.
    pub(super) fn over(
        &mut self,
        setup: &Setup,
        record: &Record,
        speedup: Speedup,
        (task, attempt): (TaskId, &AttemptHistory),
    ) {
        let Some((end, AttemptEnd::Finished)) = &attempt.ended else { return };
        let too_late = speedup.emulated(TOO_LATE);
        let due = due(setup, record, (task, attempt), (*end, too_late));
        let missed = attempt.ledger.map_or(0, |ledger| ledger.missed_checkpoints);
        // The points of a program of the user's own are where its user's word puts them: it may end before.
        let missed = if attempt.own.is_some() { 0 } else { missed };
        let answered = attempt.checkpoint_reports.saturating_add(missed);
        self.ended.insert((task, attempt.attempt), ShortOfCheckpoints { task, due, answered });
    }

    /// The attempts that were short of checkpoints; how many were due and answered for in all.
    pub(super) fn short(&self) -> (Vec<ShortOfCheckpoints>, u32, u32) {
        let each = self.ended.values();
        let each = each.map(|it| ShortOfCheckpoints { answered: it.answered.min(it.due), ..*it });
        let (due, answered) =
            each.clone().fold((0, 0), |(due, answered), it| (due + it.due, answered + it.answered));
        (each.filter(|it| it.answered < it.due).collect(), due, answered)
    }
}

/// The number of checkpoints that were due well before the end; of those that were asked for beside planned ones it is not
/// known whether one that was being taken stood for them.
fn due(
    setup: &Setup,
    record: &Record,
    (task, attempt): (TaskId, &AttemptHistory),
    (end, too_late): (Time, Span),
) -> u32 {
    let planned = match attempt.own {
        Some(_) => 0,
        None => planned(setup, record, (task, attempt), too_late).unwrap_or(0),
    };
    if planned > 0 {
        return planned;
    }
    let in_time = attempt.asked.iter().filter(|(asked, _)| end.since(*asked) >= too_late);
    u32::try_from(in_time.count()).unwrap_or(u32::MAX)
}

/// The number of points of its work at which an attempt is told to be checkpointed, without those near its end.
fn planned(
    setup: &Setup,
    record: &Record,
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
            (&setup.checkpoint, spec.memory, said, setup.runtime(task, &vm.kind)?)
        }
    };
    let points = scheme.known_on(&begun, memory, said).points();
    let is_due = |point: &&Ppm| **point > from && real.part(point.rest()) >= too_late;
    u32::try_from(points.iter().filter(is_due).count()).ok()
}
