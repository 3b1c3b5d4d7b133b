//! Tasks and parallel jobs of a run: how many wait, are on a VM, and are done.

use dormouse_analysis::{AttemptEnd, RecordChange, RunRecord, carried_out};
use dormouse_model::{Decision, Effect, Event, PromotionMethod, Setup, StartReason, Step};
use dormouse_units::{Attempt, TaskId};

/// Kind of work: a task of the bag, or a parallel job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum WorkKind {
    Task,
    Job,
}

impl WorkKind {
    pub(super) const fn word(self) -> &'static str {
        match self {
            Self::Task => "task",
            Self::Job => "job",
        }
    }
}

/// Number of tasks, or of jobs, by state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct WorkTally {
    pub(super) waiting: u64,
    pub(super) running: u64,
    pub(super) done: u64,
    pub(super) started: u64,
    pub(super) failed: u64,
}

/// An attempt that began.
#[derive(Clone, Copy, Debug)]
pub(super) struct BegunAttempt {
    pub(super) from_checkpoint: bool,
}

#[derive(Debug)]
pub(super) struct WorkState {
    /// Number of tasks in the bag: the ids of the bag's tasks are below this number.
    bag: u32,
    has_jobs: bool,
    tasks: WorkTally,
    jobs: WorkTally,
    pub(super) migrations: u64,
    pub(super) steals: u64,
    pub(super) swaps: u64,
    pub(super) kills: u64,
    pub(super) restores: u64,
}

impl WorkState {
    pub(super) fn new(setup: &Setup) -> Self {
        let bag = u32::try_from(setup.bag.tasks.len()).unwrap_or(u32::MAX);
        Self {
            bag,
            has_jobs: setup.jobs.is_some(),
            tasks: WorkTally { waiting: bag.into(), ..WorkTally::default() },
            jobs: WorkTally::default(),
            migrations: 0,
            steals: 0,
            swaps: 0,
            kills: 0,
            restores: 0,
        }
    }

    /// The tally of each kind of work that the run has.
    pub(super) fn tallies(&self) -> impl Iterator<Item = (WorkKind, WorkTally)> {
        let tasks = (self.bag > 0).then_some((WorkKind::Task, self.tasks));
        tasks.into_iter().chain(self.has_jobs.then_some((WorkKind::Job, self.jobs)))
    }

    /// Adds a step that the record has handled; returns the attempt that began with it, if one
    /// did.
    pub(super) fn see(&mut self, record: &RunRecord, step: &Step) -> Option<BegunAttempt> {
        if let Event::Submitted { task, .. } = &step.event
            && !step.effects.contains(&Effect::Stale)
        {
            self.tally_of(*task).waiting += 1;
        }
        let mut began = None;
        for change in record.changes() {
            match *change {
                RecordChange::Sent(task, number, _) => self.on_sent(record, task, number),
                RecordChange::Left(task, number, _) => self.on_left(record, task, number),
                RecordChange::Began(task, number) => began = self.on_began(record, task, number),
                _ => {}
            }
        }
        for decision in carried_out(step) {
            match decision {
                Decision::Promote { by: PromotionMethod::Swap, .. } => self.swaps += 1,
                Decision::Promote { by: PromotionMethod::Migrate { .. }, .. } => {
                    self.migrations += 1;
                }
                Decision::Promote { by: PromotionMethod::Kill { .. }, .. } => self.kills += 1,
                _ => {}
            }
        }
        began
    }

    fn on_sent(&mut self, record: &RunRecord, task: TaskId, number: Attempt) {
        let history = record.task(task);
        let place = history.and_then(|it| it.attempts.iter().rposition(|a| a.attempt == number));
        if let (Some(history), Some(n)) = (history, place) {
            let is_of_bag = task.get() < self.bag;
            self.migrations += u64::from(is_of_bag && history.migrated_from(n).is_some());
            self.steals += u64::from(history.attempts[n].reason == StartReason::Stolen);
        }
        let tally = self.tally_of(task);
        tally.waiting = tally.waiting.saturating_sub(1);
        tally.running += 1;
        tally.started += 1;
    }

    fn on_left(&mut self, record: &RunRecord, task: TaskId, number: Attempt) {
        let history = record.task(task);
        let end = history.and_then(|task| task.attempt(number)?.ended.as_ref());
        let has_failed = matches!(end, Some((_, AttemptEnd::Failed(_))));
        let is_done = match end {
            Some((_, AttemptEnd::Finished)) => true,
            Some((_, AttemptEnd::Failed(_))) => history.is_some_and(|task| task.program_failed),
            _ => false,
        };
        let tally = self.tally_of(task);
        tally.failed += u64::from(has_failed);
        tally.running = tally.running.saturating_sub(1);
        *(if is_done { &mut tally.done } else { &mut tally.waiting }) += 1;
    }

    fn on_began(
        &mut self,
        record: &RunRecord,
        task: TaskId,
        number: Attempt,
    ) -> Option<BegunAttempt> {
        let attempt = record.task(task)?.attempt(number)?;
        // The checkpoint that it was sent with counts, even if it began with another one.
        let fell_back = attempt.fell_back.iter().any(|it| it.to.is_some());
        let from_checkpoint = attempt.sent_with.is_some() || fell_back;
        self.restores += u64::from(from_checkpoint);
        Some(BegunAttempt { from_checkpoint })
    }

    fn tally_of(&mut self, task: TaskId) -> &mut WorkTally {
        if task.get() < self.bag { &mut self.tasks } else { &mut self.jobs }
    }
}
