//! Tasks that were under way in a live run when it was stopped together with the workers on its host.

use std::fmt;
use std::path::Path;

use dormouse_analysis::TaskHistory;
use dormouse_report::output::RunLog;

/// Counts of the tasks that were under way when a run was stopped; the tasks' VMs are gone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StoppedTasks {
    /// Number of tasks that have, according to the log, a stored checkpoint that was not given up since. Whether this
    /// checkpoint can be restored is known only in the resumed run: if not, an older checkpoint is tried, and then the
    /// task starts from scratch.
    pub kept: usize,
    /// Number of tasks without a stored checkpoint, which start from scratch.
    pub lost: usize,
}

impl StoppedTasks {
    /// The tasks that were under way when the run in this folder was stopped; `None`: the run has no tasks, or the
    /// run's log can't be read.
    #[must_use]
    pub fn read(folder: &Path) -> Option<Self> {
        let RunLog { header, steps, .. } = RunLog::read(folder).ok()?;
        let mut record = header.record();
        steps?.iter().for_each(|step| record.see(step));
        let has_tasks = !record.tasks.is_empty();
        has_tasks.then(|| record.tasks.iter().fold(Self::default(), Self::with))
    }

    fn with(self, task: &TaskHistory) -> Self {
        let Some(attempt) = task.attempts.last().filter(|last| last.ended.is_none()) else {
            return self;
        };
        // What the attempt began with, or was sent with, is the newest of all before it that was not given up.
        match !attempt.checkpoints.is_empty() || attempt.from.is_some() {
            true => Self { kept: self.kept + 1, ..self },
            false => Self { lost: self.lost + 1, ..self },
        }
    }
}

impl fmt::Display for StoppedTasks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all = self.kept + self.lost;
        let [has, goes] = match self.kept {
            1 => ["has a stored checkpoint", "continues from it, if it can be restored"],
            _ => ["have a stored checkpoint", "continue from it, if it can be restored"],
        };
        match (self.kept, self.lost) {
            (0, 0) => f.write_str("no task was under way"),
            (0, 1) => {
                f.write_str("the one task under way has no stored checkpoint and begins again")
            }
            (1, 0) => write!(f, "the one task under way {has} and {goes}"),
            (0, _) => write!(
                f,
                "none of the {all} tasks under way has a stored checkpoint: they begin again"
            ),
            (_, 0) => write!(f, "all {all} tasks under way {has} and {goes}"),
            (kept, 1) => write!(
                f,
                "{kept} of {all} tasks under way {has} and {goes}; the other begins again"
            ),
            (kept, _) => write!(
                f,
                "{kept} of {all} tasks under way {has} and {goes}; the others begin again"
            ),
        }
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use dormouse_analysis::RunMode;
    use dormouse_experiment::{ExperimentSource, open};
    use dormouse_model::{Effect, Event, Report, StartReason, Step};
    use dormouse_report::output::{LogHeader, RunLogWriter};
    use dormouse_units::{Attempt, Bytes, CheckpointSeq, HostId, Ppm, TaskId, Time, VmId};

    use super::*;

    const VM: VmId = VmId::new(0);
    /// The checkpoint of each task in these tests: its number, and the part of the work that it saves.
    const KEPT: (CheckpointSeq, Ppm) = (CheckpointSeq::new(1), Ppm::new(400_000));

    /// The steps of a run, which tests add one by one.
    struct Steps(Vec<Step>);

    impl Steps {
        fn push(&mut self, event: Event, effects: Vec<Effect>) {
            let mut step = Step::blank();
            let seq = self.0.len() as u64;
            step.begin_step(seq, Time::from_secs(seq), event);
            step.effects = effects;
            self.0.push(step);
        }

        fn sends(&mut self, task: u32, attempt: u32, from: Option<(CheckpointSeq, Ppm)>) {
            let (task, attempt) = (TaskId::new(task), Attempt::new(attempt));
            let (reason, vcpu) = (StartReason::Planned, None);
            let sent = Effect::TaskSent { task, attempt, vm: VM, reason, from, vcpu };
            self.push(Event::Tick, vec![sent]);
        }

        fn reports(&mut self, report: Report, effects: Vec<Effect>) {
            let (host, number) = (HostId::new(0), self.0.len() as u64);
            self.push(Event::Machine { host, number, report }, effects);
        }

        fn starts(&mut self, (task, attempt): (u32, u32), done: Ppm, effects: Vec<Effect>) {
            let (task, attempt) = (TaskId::new(task), Attempt::new(attempt));
            let vm = VM;
            self.reports(
                Report::TaskStarted { vm, task, attempt, done, real_took_us: 1, real_inputs_us: 0 },
                effects,
            );
        }

        /// Adds the first attempt at a task, which starts without a checkpoint.
        fn runs(&mut self, task: u32) {
            self.sends(task, 1, None);
            self.starts((task, 1), Ppm::ZERO, Vec::new());
        }

        /// Adds a stored checkpoint of the first attempt at a task.
        fn keeps(&mut self, task: u32, effects: Vec<Effect>) {
            let (task, attempt, (checkpoint, done)) = (TaskId::new(task), Attempt::new(1), KEPT);
            let taken = Report::CheckpointTaken {
                vm: VM,
                task,
                attempt,
                checkpoint,
                done,
                bytes: Bytes::new(1),
                real_held_us: 1,
                real_dump_us: 1,
                real_owed_us: 1,
                real_criu_us: 1,
                held_at: None,
            };
            self.reports(taken, effects);
        }

        fn fails(&mut self, task: u32, attempt: u32, effects: Vec<Effect>) {
            let (task, attempt) = (TaskId::new(task), Attempt::new(attempt));
            let (vm, why, could_not_restore) = (VM, "it fails".to_owned(), !effects.is_empty());
            let failed =
                Report::TaskFailed { vm, task, attempt, why, real_cpu_us: 1, could_not_restore };
            self.reports(failed, effects);
        }

        /// The tasks under way, as read from a log with these steps.
        fn stopped(&self) -> StoppedTasks {
            let folder = tempfile::tempdir().unwrap();
            let source =
                ExperimentSource { experiment: Some("j60-sc2"), ..ExperimentSource::default() };
            let experiment = open(&source).unwrap().experiment;
            let header =
                LogHeader::new(RunMode::Live, "dormouse run j60-sc2 --live".to_owned(), experiment);
            let mut log = RunLogWriter::begin(folder.path(), &header).unwrap();
            self.0.iter().try_for_each(|step| log.step(step)).unwrap();
            log.finish().unwrap();
            StoppedTasks::read(folder.path()).unwrap()
        }

        fn said(&self) -> String {
            self.stopped().to_string()
        }
    }

    /// Effects after which a task starts from scratch, because its only checkpoint is damaged.
    fn begins_again(task: u32) -> Vec<Effect> {
        let (task, from, why) = (TaskId::new(task), KEPT, "it is damaged".to_owned());
        let given_up = false;
        vec![Effect::RestoreFellBack { task, from, to: None, not_on: None, why, given_up }]
    }

    #[test]
    fn what_is_lost_is_counted_and_said() {
        let mut run = Steps(Vec::new());
        run.push(Event::Begin, Vec::new());
        assert_eq!(run.said(), "no task was under way");
        // Task 0 has no checkpoint; that of task 1 is on its way.
        run.runs(0);
        assert_eq!(run.said(), "the one task under way has no stored checkpoint and begins again");
        run.runs(1);
        let (task, attempt) = (TaskId::new(1), Attempt::new(1));
        run.push(Event::Tick, vec![Effect::CheckpointAsked { task, attempt, vm: VM }]);
        assert_eq!(
            run.said(),
            "none of the 2 tasks under way has a stored checkpoint: they begin again"
        );
        // That of task 2 is stored.
        run.runs(2);
        run.keeps(2, Vec::new());
        assert_eq!(
            run.said(),
            "1 of 3 tasks under way has a stored checkpoint and continues from it, if it can be restored; the \
             others begin again"
        );
        // That of task 3 was found damaged, and it was sent to begin again.
        run.runs(3);
        run.keeps(3, Vec::new());
        run.fails(3, 1, begins_again(3));
        assert_eq!(run.stopped(), StoppedTasks { kept: 1, lost: 2 }, "it waits");
        run.sends(3, 2, None);
        assert_eq!(run.stopped(), StoppedTasks { kept: 1, lost: 3 });
        // Task 4 was sent with its checkpoint, whose worker could not have that.
        run.runs(4);
        run.keeps(4, Vec::new());
        run.fails(4, 1, Vec::new());
        run.sends(4, 2, Some(KEPT));
        assert_eq!(run.stopped(), StoppedTasks { kept: 2, lost: 3 });
        run.starts((4, 2), Ppm::ZERO, begins_again(4));
        // What its former life stored late is none of this one's.
        run.keeps(4, vec![Effect::Stale]);
        assert_eq!(run.stopped(), StoppedTasks { kept: 1, lost: 4 });
        // Tasks 5 and 6 went on from theirs; task 5 has ended.
        for task in [5, 6] {
            run.sends(task, 1, Some(KEPT));
            run.starts((task, 1), KEPT.1, Vec::new());
        }
        let finished = Report::TaskFinished {
            vm: VM,
            task: TaskId::new(5),
            attempt: Attempt::new(1),
            verified: true,
            reported: false,
            program_failed: false,
            result: None,
            real_cpu_us: 1,
        };
        run.reports(finished, Vec::new());
        assert_eq!(
            run.said(),
            "2 of 6 tasks under way have a stored checkpoint and continue from it, if it can be restored; the others \
             begin again"
        );
        let said = |kept, lost| StoppedTasks { kept, lost }.to_string();
        assert!(
            said(1, 0).starts_with("the one task under way has a stored checkpoint and continues")
        );
        assert!(
            said(3, 0).starts_with("all 3 tasks under way have a stored checkpoint and continue")
        );
        assert!(said(1, 1).ends_with("; the other begins again"), "{}", said(1, 1));
    }
}
