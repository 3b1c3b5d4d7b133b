//! Checks that what an honest worker reports of an attempt agrees with what its machine did.

use std::collections::{BTreeMap, BTreeSet};

use dormouse_proto::v1::report::Report;
use dormouse_proto::v1::{CheckpointFailed, Ledger, TaskMoved, TaskRef};
use dormouse_units::{Attempt, Ppm, TaskId};
use dormouse_worker::agent::in_process::OvertakenDump;

use super::Broken;
use crate::invariant::Invariant;
use crate::witness::Deed;

/// The part of a task's work, in ppm, by which the promised work of an attempt may differ from the work that was left for it.
const TOLERANCE: u64 = 10_000;

/// An attempt at a task.
type AttemptKey = (TaskId, Attempt);

/// What the machines did to each attempt, as far as reports tell of it.
#[derive(Debug, Default)]
pub(super) struct ReportedDeeds {
    /// The names of the workers that lie, whose reports are not checked.
    liars: BTreeSet<String>,
    /// The work that each restored attempt had done when it began.
    came_with: BTreeMap<AttemptKey, Ppm>,
    /// Whether a checkpoint was made of each job that left its seats last.
    left_seats: BTreeMap<AttemptKey, bool>,
}

impl ReportedDeeds {
    /// A record of a run in which the workers of these names lie.
    pub(super) fn new(liars: BTreeSet<String>) -> Self {
        Self { liars, ..Self::default() }
    }

    /// Checks what a machine or a worker has done.
    pub(super) fn did(&mut self, deed: &Deed) -> Result<(), Broken> {
        match deed {
            Deed::Restored { task, attempt, image } => {
                let done = image.map_or(Ppm::ZERO, |image| image.done);
                self.came_with.insert((*task, *attempt), done);
            }
            Deed::LeavesSeats { task, attempt } => {
                self.left_seats.insert((*task, *attempt), false);
            }
            Deed::CheckpointMade(image) => {
                if let Some(is_kept) = self.left_seats.get_mut(&(image.task, image.attempt)) {
                    *is_kept = true;
                }
            }
            Deed::RemovalRefused { vm } => {
                let why = format!("{vm} is to be removed while processes live on it");
                return Err((Invariant::NothingLeft, why));
            }
            Deed::Said { worker, report, .. } if !self.liars.contains(worker) => {
                let why = report.report.as_ref().and_then(|report| self.why_wrong(report));
                return why.map_or(Ok(()), |why| broken(format!("{worker} reports {why}")));
            }
            _ => {}
        }
        Ok(())
    }

    /// What is wrong about a report; `None`: nothing.
    fn why_wrong(&self, report: &Report) -> Option<String> {
        match report {
            Report::CheckpointFailed(CheckpointFailed { task, why })
                if *why == OvertakenDump.to_string() =>
            {
                let (task, attempt) = key_of(task.as_ref()?);
                Some(format!("a failed dump of {task}, {attempt}, which waits for a thaw alone"))
            }
            Report::TaskMoved(TaskMoved { task, lost: None, .. }) => {
                let (task, attempt) = key_of(task.as_ref()?);
                let is_kept = self.left_seats.get(&(task, attempt)).is_none_or(|kept| *kept);
                (!is_kept).then(|| {
                    format!(
                        "that {task}, {attempt} kept its work, and no checkpoint of it was made"
                    )
                })
            }
            Report::TaskFinished(it) => {
                let key = key_of(it.task.as_ref()?);
                let came_with = *self.came_with.get(&key)?;
                let (ledger, (task, attempt)) = (it.ledger.as_ref()?, key);
                let (promised, left) = (ledger.real_promised_work_us, work_left(ledger, came_with));
                let tolerance = ledger.real_whole_work_us * TOLERANCE / 1_000_000 + 1_000;
                (promised.abs_diff(left) > tolerance).then(|| {
                    format!(
                        "that {task}, {attempt} was to work {promised} µs of its {} µs; it began with {came_with:?} done",
                        ledger.real_whole_work_us
                    )
                })
            }
            _ => None,
        }
    }
}

/// CPU time of the work that is left of an attempt that began with this part done, in real microseconds.
fn work_left(ledger: &Ledger, done: Ppm) -> u64 {
    let whole = ledger.real_whole_work_us;
    whole - done.scale_number(whole).min(whole)
}

fn key_of(task: &TaskRef) -> AttemptKey {
    (TaskId::new(task.task), Attempt::new(task.attempt))
}

fn broken(why: String) -> Result<(), Broken> {
    Err((Invariant::Reported, why))
}

#[cfg(test)]
mod tests {
    use dormouse_proto::v1::{self, TaskFinished};
    use dormouse_units::{CheckpointSeq, VmId};

    use super::*;
    use crate::witness::Image;

    const TASK: TaskId = TaskId::new(7);
    const ATTEMPT: Attempt = Attempt::new(2);

    fn says(worker: &str, report: Report) -> Deed {
        let report = Box::new(v1::Report { report: Some(report) });
        Deed::Said { worker: worker.to_owned(), incarnation: 1, report }
    }

    fn of_task() -> Option<TaskRef> {
        Some(TaskRef { vm: 1, task: TASK.get(), attempt: ATTEMPT.get() })
    }

    fn deeds() -> ReportedDeeds {
        ReportedDeeds::new(["liar".to_owned()].into())
    }

    fn image(done: u32) -> Image {
        let number = CheckpointSeq::new(1);
        Image { task: TASK, attempt: ATTEMPT, number, done: Ppm::new(done) }
    }

    #[test]
    fn a_dump_that_a_freeze_overtook_has_not_failed() {
        let failed = |worker, why: &str| {
            let failed = CheckpointFailed { task: of_task(), why: why.to_owned() };
            deeds().did(&says(worker, Report::CheckpointFailed(failed))).is_err()
        };
        assert!(!failed("w0", "CRIU failed"));
        assert!(failed("w0", "its VM freezes"));
        assert!(!failed("liar", "its VM freezes"));
    }

    #[test]
    fn a_moved_job_keeps_its_work_in_a_checkpoint() {
        let moved = |deeds: &mut ReportedDeeds, lost: Option<&str>| {
            let lost = lost.map(str::to_owned);
            let moved = TaskMoved { task: of_task(), lost, ..TaskMoved::default() };
            deeds.did(&says("w0", Report::TaskMoved(moved))).is_err()
        };
        let mut all = deeds();
        assert!(!moved(&mut all, None), "its processes had not begun");
        assert_eq!(all.did(&Deed::CheckpointMade(image(100_000))), Ok(()));
        assert_eq!(all.did(&Deed::LeavesSeats { task: TASK, attempt: ATTEMPT }), Ok(()));
        assert!(moved(&mut all, None), "the checkpoint is of an earlier time");
        assert!(!moved(&mut all, Some("CRIU failed")));
        assert_eq!(all.did(&Deed::CheckpointMade(image(200_000))), Ok(()));
        assert!(!moved(&mut all, None));
    }

    #[test]
    fn a_restored_task_is_promised_the_work_that_was_left() {
        let finished = |image: Option<Image>, promised: u64| {
            let mut all = deeds();
            let restored = Deed::Restored { task: TASK, attempt: ATTEMPT, image };
            assert_eq!(all.did(&restored), Ok(()));
            let ledger = Some(Ledger {
                real_promised_work_us: promised,
                real_whole_work_us: 1_000_000,
                ..Ledger::default()
            });
            let it = TaskFinished { task: of_task(), ledger, ..TaskFinished::default() };
            all.did(&says("w0", Report::TaskFinished(it))).is_err()
        };
        assert!(!finished(Some(image(300_000)), 700_000));
        assert!(finished(Some(image(300_000)), 500_000));
        assert!(!finished(None, 1_000_000));
        assert!(finished(None, 700_000));
    }

    #[test]
    fn groups_are_removed_once_nothing_lives_in_them() {
        let refused = Deed::RemovalRefused { vm: VmId::new(1) };
        assert!(deeds().did(&refused).is_err());
    }
}
