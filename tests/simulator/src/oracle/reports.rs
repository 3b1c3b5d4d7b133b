//! Checks that what an honest worker reports of an attempt agrees with what its machine did.

use std::collections::{BTreeMap, BTreeSet};

use dormouse_proto::v1::command::Command;
use dormouse_proto::v1::report::Report;
use dormouse_proto::v1::task_finished::Due;
use dormouse_proto::v1::{
    CheckpointFailed, TaskFailed, TaskFinished, TaskMoved, TaskRef, TaskStopped,
};
use dormouse_units::{Attempt, Ppm, TaskId};
use dormouse_worker::agent::in_process::OvertakenDump;

use super::Broken;
use crate::invariant::Invariant;
use crate::witness::Deed;

/// The time that a task's end may be due too early, in emulated microseconds: times of work are rounded.
const ROUNDING_US: u64 = 1_000;
/// Time for which a process may exist before the worker knows that its launch succeeded, in microseconds.
const UNKNOWN_US: u64 = 1_000_000;
/// The beginning of a report that a program did no work though it could.
const HANGS: &str = "it hangs";
/// The words of a report that an attempt was not dumped before its VM was gone, as others used CRIU.
const NO_TURN: &str = "its turn at CRIU had not come";
/// Real time for which an attempt may wait for CRIU that nobody uses, in microseconds.
const IDLE_CRIU_US: u64 = 100_000;

/// An attempt at a task.
type AttemptKey = (TaskId, Attempt);

/// What the machines did to each attempt, as far as reports tell of it.
#[derive(Debug, Default)]
pub(super) struct ReportedDeeds {
    /// The names of the workers that lie, whose reports are not checked.
    liars: BTreeSet<String>,
    /// For each attempt, when it was to start, and the time that the whole task takes at the full speed of its VM; both
    /// in emulated microseconds.
    orders: BTreeMap<AttemptKey, (u64, u64)>,
    /// The work that each restored attempt had done when it began.
    came_with: BTreeMap<AttemptKey, Ppm>,
    /// Attempts of which a process was to hang.
    hanging: BTreeSet<AttemptKey>,
    /// Attempts whose end was reported.
    ended: BTreeSet<AttemptKey>,
    /// For each attempt that was to be stopped and kept, when that was decided, in emulated microseconds.
    to_keep: BTreeMap<AttemptKey, u64>,
    /// When each VM was to be destroyed, in emulated microseconds.
    destroyed: BTreeMap<u32, u64>,
    /// Emulated time that passes in a real one.
    speedup: u32,
    /// Sessions on whose host CRIU was used since an attempt was last to be kept.
    criu_used: BTreeSet<(String, u64)>,
    /// Whether a checkpoint was made of each job that left its seats last.
    left_seats: BTreeMap<AttemptKey, bool>,
}

impl ReportedDeeds {
    /// A record of a run at this speed-up, in which the workers of these names lie.
    pub(super) fn new(liars: BTreeSet<String>, speedup: u32) -> Self {
        Self { liars, speedup, ..Self::default() }
    }

    /// Checks what a machine or a worker has done.
    pub(super) fn did(&mut self, deed: &Deed) -> Result<(), Broken> {
        match deed {
            Deed::Restored { task, attempt, image } => {
                let done = image.map_or(Ppm::ZERO, |image| image.done);
                self.came_with.insert((*task, *attempt), done);
            }
            Deed::Hangs { task, attempt } => drop(self.hanging.insert((*task, *attempt))),
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
            Deed::CriuUsed { worker, incarnation, .. } => {
                self.criu_used.insert((worker.clone(), *incarnation));
            }
            Deed::DiedWithVm { task, attempt, lived_us }
                if *lived_us > UNKNOWN_US && self.ended.contains(&(*task, *attempt)) =>
            {
                let why =
                    format!("{task}, {attempt} had ended, and a process of it died with its VM");
                return Err((Invariant::NothingLeft, why));
            }
            Deed::Obeyed { worker, incarnation, command, .. } => {
                if let (Some(ask), Some(at)) = (&command.command, command.emulated_at_us) {
                    self.note_command((worker, *incarnation), ask, at);
                }
            }
            Deed::Said { worker, incarnation, report } if !self.liars.contains(worker) => {
                let host = (worker.clone(), *incarnation);
                let why = report.report.as_ref().and_then(|report| self.why_wrong(&host, report));
                return why.map_or(Ok(()), |why| broken(format!("{worker} reports {why}")));
            }
            _ => {}
        }
        Ok(())
    }

    /// Notes a command that a worker's session received, which was decided at `at`.
    fn note_command(&mut self, (worker, incarnation): (&str, u64), ask: &Command, at: u64) {
        match ask {
            Command::StartTask(start) if start.plan.is_none() => {
                if let Some(task) = &start.task {
                    self.orders.insert(key_of(task), (at, start.emulated_runtime_us));
                }
            }
            Command::StopTask(stop) if stop.keep => {
                if let Some(task) = &stop.task {
                    self.to_keep.insert(key_of(task), at);
                    self.criu_used.remove(&(worker.to_owned(), incarnation));
                }
            }
            Command::DestroyVm(destroyed) => drop(self.destroyed.insert(destroyed.vm, at)),
            _ => {}
        }
    }

    /// What is wrong about a report of this worker's session; `None`: nothing.
    fn why_wrong(&mut self, host: &(String, u64), report: &Report) -> Option<String> {
        let (Report::TaskFinished(TaskFinished { task: ended, .. })
        | Report::TaskStopped(TaskStopped { task: ended, .. })
        | Report::TaskFailed(TaskFailed { task: ended, .. })) = report
        else {
            return self.why_wrong_meanwhile(host, report);
        };
        let key = key_of(ended.as_ref()?);
        self.ended.insert(key);
        match report {
            Report::TaskFinished(finished) => self.why_not_due(key, finished),
            Report::TaskFailed(failed) => {
                let is_wrong = failed.why.starts_with(HANGS) && !self.hanging.contains(&key);
                is_wrong.then(|| format!("that {}, {} hangs, which does not", key.0, key.1))
            }
            _ => None,
        }
    }

    /// What is wrong about a report of an attempt that has not ended by it; `None`: nothing.
    fn why_wrong_meanwhile(&self, host: &(String, u64), report: &Report) -> Option<String> {
        match report {
            Report::CheckpointFailed(CheckpointFailed { task, why }) => {
                let task_vm = task.as_ref()?.vm;
                let (task, attempt) = key_of(task.as_ref()?);
                if *why == OvertakenDump.to_string() {
                    let why = "a failed dump of";
                    return Some(format!("{why} {task}, {attempt}, which waits for a thaw alone"));
                }
                let asked = *self.to_keep.get(&(task, attempt))?;
                let waited = self.destroyed.get(&task_vm)?.saturating_sub(asked);
                let is_long = waited > IDLE_CRIU_US * u64::from(self.speedup);
                (why.contains(NO_TURN) && is_long && !self.criu_used.contains(host))
                    .then(|| format!("that {task}, {attempt} waited for CRIU, which nobody used"))
            }
            Report::TaskMoved(TaskMoved { task, lost: None, .. }) => {
                let (task, attempt) = key_of(task.as_ref()?);
                let is_kept = self.left_seats.get(&(task, attempt)).is_none_or(|kept| *kept);
                (!is_kept).then(|| {
                    format!("that {task}, {attempt} kept its work, of which no checkpoint was made")
                })
            }
            _ => None,
        }
    }

    /// Why an attempt can't have been due when its worker says that it was: no VM is faster than its full speed.
    fn why_not_due(&self, key: AttemptKey, finished: &TaskFinished) -> Option<String> {
        let (began, runtime) = *self.orders.get(&key)?;
        let done = self.came_with.get(&key).copied().unwrap_or(Ppm::ZERO);
        let after = match finished.due? {
            Due::EmulatedAfterUs(after) => after,
            Due::EmulatedAtUs(at) => at.saturating_sub(began),
        };
        let least = runtime - done.scale_number(runtime).min(runtime);
        let (task, attempt) = key;
        (after + ROUNDING_US + runtime / 100_000 < least).then(|| {
            format!("that {task}, {attempt} was due after {after} µs; {least} µs of work were left")
        })
    }
}

fn key_of(task: &TaskRef) -> AttemptKey {
    (TaskId::new(task.task), Attempt::new(task.attempt))
}

fn broken(why: String) -> Result<(), Broken> {
    Err((Invariant::Reported, why))
}

#[cfg(test)]
mod tests {
    use dormouse_proto::v1;
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
        ReportedDeeds::new(["liar".to_owned()].into(), 100)
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
    fn a_restored_task_is_due_once_what_was_left_can_be_done() {
        let finished = |image: Option<Image>, due: Due| {
            let mut all = deeds();
            let start = v1::StartTask {
                task: of_task(),
                emulated_runtime_us: 1_000_000_000,
                ..v1::StartTask::default()
            };
            let command = v1::Command {
                emulated_at_us: Some(50_000_000),
                command: Some(Command::StartTask(start)),
                ..v1::Command::default()
            };
            let (worker, command) = ("w0".to_owned(), Box::new(command));
            let obeyed = Deed::Obeyed { worker, incarnation: 1, number: 1, command };
            assert_eq!(all.did(&obeyed), Ok(()));
            let restored = Deed::Restored { task: TASK, attempt: ATTEMPT, image };
            assert_eq!(all.did(&restored), Ok(()));
            let due = Some(due);
            let it = TaskFinished { task: of_task(), due, ..TaskFinished::default() };
            all.did(&says("w0", Report::TaskFinished(it))).is_err()
        };
        assert!(!finished(Some(image(300_000)), Due::EmulatedAfterUs(700_000_000)));
        assert!(finished(Some(image(300_000)), Due::EmulatedAfterUs(690_000_000)));
        assert!(!finished(Some(image(300_000)), Due::EmulatedAtUs(750_000_000)));
        assert!(finished(Some(image(300_000)), Due::EmulatedAtUs(740_000_000)));
        assert!(finished(None, Due::EmulatedAfterUs(700_000_000)));
    }

    #[test]
    fn who_waits_for_criu_waits_for_somebody_who_uses_it() {
        let obeyed = |at, command| {
            let (emulated_at_us, command) = (Some(at), Some(command));
            let command = v1::Command { emulated_at_us, command, ..v1::Command::default() };
            let (worker, command) = ("w0".to_owned(), Box::new(command));
            Deed::Obeyed { worker, incarnation: 1, number: 1, command }
        };
        let keeps =
            |at| obeyed(at, Command::StopTask(v1::StopTask { task: of_task(), keep: true }));
        let destroyed = |at| obeyed(at, Command::DestroyVm(v1::VmRef { vm: 1 }));
        let failed = || {
            let why = format!("its VM was gone before its work was kept: {NO_TURN}");
            says("w0", Report::CheckpointFailed(CheckpointFailed { task: of_task(), why }))
        };
        let is_wrong = |deeds_before: &[Deed]| {
            let mut all = deeds();
            deeds_before.iter().for_each(|deed| assert_eq!(all.did(deed), Ok(())));
            all.did(&failed()).is_err()
        };
        let uses = Deed::CriuUsed { worker: "w0".to_owned(), incarnation: 1, begins: true };
        assert!(is_wrong(&[uses.clone(), keeps(0), destroyed(20_000_000)]));
        assert!(!is_wrong(&[keeps(0), uses, destroyed(20_000_000)]));
        assert!(!is_wrong(&[keeps(0), destroyed(1_000_000)]), "it was short");
        assert!(!is_wrong(&[destroyed(20_000_000)]), "nobody wanted it kept");
    }

    #[test]
    fn a_program_hangs_that_was_to_hang() {
        let failed = || {
            let why = "it hangs: it did no work for 900 ms in which it could run".to_owned();
            let failed = TaskFailed { task: of_task(), why, ..TaskFailed::default() };
            says("w0", Report::TaskFailed(failed))
        };
        assert!(deeds().did(&failed()).is_err());
        let mut all = deeds();
        assert_eq!(all.did(&Deed::Hangs { task: TASK, attempt: ATTEMPT }), Ok(()));
        assert_eq!(all.did(&failed()), Ok(()));
    }

    #[test]
    fn no_process_of_an_ended_attempt_lives_on() {
        let died = |lived_us| Deed::DiedWithVm { task: TASK, attempt: ATTEMPT, lived_us };
        let mut all = deeds();
        assert_eq!(all.did(&died(9_000_000)), Ok(()));
        let stopped = v1::TaskStopped { task: of_task(), ..v1::TaskStopped::default() };
        assert_eq!(all.did(&says("w0", Report::TaskStopped(stopped))), Ok(()));
        assert_eq!(all.did(&died(2_000)), Ok(()), "its launch was not heard of yet");
        assert!(all.did(&died(9_000_000)).is_err());
    }

    #[test]
    fn groups_are_removed_once_nothing_lives_in_them() {
        let refused = Deed::RemovalRefused { vm: VmId::new(1) };
        assert!(deeds().did(&refused).is_err());
    }
}
