//! The tasks of a bag, as the checker tracks them, and the checks of their starts, reports and checkpoints.

use std::collections::BTreeSet;

use dormouse_model::{Report, Task};
use dormouse_units::{Attempt, Ppm, Span, TaskId, Time, VmId};

use super::{Checker, VmStage};

/// An attempt at a task that is under way, as the checker tracks it.
#[derive(Clone, Debug)]
struct OpenAttempt {
    attempt: Attempt,
    vm: VmId,
    /// Time at which the attempt started, and total time for which its VM had been frozen before that; `None` if it has not
    /// started.
    started: Option<(Time, Span)>,
    from: Ppm,
    checkpoints: u64,
}

/// State of a task, as the checker tracks it.
#[derive(Clone, Debug, Default)]
pub(super) struct CheckedTask {
    open: Option<OpenAttempt>,
    attempts: Attempt,
    kept: Ppm,
    /// Parts of the task's work that its stored checkpoints hold.
    stored: BTreeSet<Ppm>,
    pub(super) finished: bool,
}

impl Checker<'_> {
    /// Checks a worker's report about a task, or about a VM's credits.
    pub(super) fn check_report(&mut self, report: &Report) {
        match *report {
            Report::TaskStarted { vm, task, attempt, done, .. } => {
                let frozen = self.frozen_for(vm);
                let (now, may_be_older) = (self.now, self.may_begin_at(task, done));
                self.check_attempt(vm, task, attempt, "starts", |open| {
                    open.started = Some((now, frozen));
                    let from = std::mem::replace(&mut open.from, done);
                    (done != from && !(done < from && may_be_older))
                        .then(|| format!("it starts at {done}, not at {from}"))
                });
            }
            Report::TaskFinished { vm, task, attempt, verified, program_failed, .. } => {
                self.require_awake(vm, "finishes a task");
                let too_soon = self.too_soon(vm, task);
                self.check_attempt(vm, task, attempt, "finishes", |open| {
                    if open.started.is_none() {
                        return Some("it finishes before it starts".to_owned());
                    }
                    too_soon
                });
                self.remove_task(task, vm);
                if let Some(state) = self.tasks.get_mut(task.get() as usize) {
                    state.finished = verified || program_failed;
                    if !state.finished {
                        state.stored.clear();
                    }
                }
            }
            Report::TaskFailed { vm, task, attempt, .. } => {
                self.check_attempt(vm, task, attempt, "fails", |_| None);
                self.remove_task(task, vm);
            }
            Report::TaskStopped { vm, task, attempt, kept, .. } => {
                self.check_attempt(vm, task, attempt, "is stopped", |_| None);
                self.remove_task(task, vm);
                self.keep_checkpoint(task, kept.map(|(_, done)| done));
            }
            Report::CheckpointTaken { vm, task, attempt, done, .. } => {
                self.require_awake(vm, "takes a checkpoint");
                self.check_attempt(vm, task, attempt, "is checkpointed", |open| {
                    open.checkpoints += 1;
                    open.started.is_none().then(|| "it is checkpointed before it starts".to_owned())
                });
                self.keep_checkpoint(task, Some(done));
            }
            Report::Credits { vm, balance, as_of } => self.check_credits(vm, (balance, as_of)),
            _ => {}
        }
    }

    pub(super) fn check_task_start(
        &mut self,
        task: TaskId,
        attempt: Attempt,
        vm: VmId,
        from: Option<Ppm>,
    ) {
        let Some(spec) = self.setup.bag.tasks.get(task.get() as usize) else {
            return self
                .report_violation(format!("{task} is started, but the workload has no such task"));
        };
        let memory = spec.memory;
        let state = self.tasks[task.get() as usize].clone();
        self.require(!state.finished, || format!("{task} is started though it is finished"));
        self.check_due(task, spec);
        if let Some(open) = &state.open {
            self.report_violation(format!("{task} is started on {vm} while on {}", open.vm));
        }
        self.require(attempt > state.attempts, || format!("{task}: {attempt} is not new"));
        let from = from.unwrap_or(Ppm::ZERO);
        self.require(from <= state.kept, || {
            format!("{task} starts from {from}, its checkpoints keep {}", state.kept)
        });
        // The scheduler has not yet heard that the VM freezes: the task waits there for the resume.
        self.check_vm(vm, &[VmStage::Running, VmStage::Freezing], "is given a task", |vm| {
            vm.tasks.insert(task, memory);
            let used: dormouse_units::Bytes = vm.tasks.values().copied().sum();
            if vm.tasks.len() > vm.kind.vcpus as usize {
                return Some(format!("{} tasks on {} vCPUs", vm.tasks.len(), vm.kind.vcpus));
            }
            (used > vm.kind.memory).then(|| format!("tasks of {used} in {}", vm.kind.memory))
        });
        let open = OpenAttempt { attempt, vm, started: None, from, checkpoints: 0 };
        let state = &mut self.tasks[task.get() as usize];
        state.attempts = attempt;
        state.open = Some(open);
    }

    /// Requires that a task that starts now is submitted and that all tasks it follows have
    /// finished.
    fn check_due(&mut self, task: TaskId, spec: &Task) {
        let submitted = self.setup.submission_time(task);
        self.require(submitted <= self.now, || {
            format!("{task} is started before it is submitted, at {submitted}")
        });
        let is_open = |before: &&TaskId| {
            self.tasks.get(before.get() as usize).is_none_or(|before| !before.finished)
        };
        if let Some(before) = spec.after.iter().find(is_open) {
            self.report_violation(format!(
                "{task} is started before {before} is finished, which it follows"
            ));
        }
    }

    /// Checks that after a failed restore, or if its scheduler gave up the newer checkpoints, the task continues from an older
    /// checkpoint of its own, or begins from scratch.
    pub(super) fn fell_back(&mut self, task: TaskId, from: Ppm, to: Ppm, given_up: bool) {
        let may_be_older = self.holds(task, to) && (given_up || !self.is_exact());
        self.require(may_be_older && to <= from, || {
            format!("{task} falls back from {from} to {to}, which no checkpoint of it holds")
        });
        if let Some(state) = self.tasks.get_mut(task.get() as usize) {
            state.kept = to;
        }
    }

    /// Requires that an attempt of which a checkpoint is requested has started.
    pub(super) fn check_checkpoint_request(&mut self, vm: VmId, task: TaskId, attempt: Attempt) {
        self.check_attempt(vm, task, attempt, "is to be checkpointed", |open| {
            open.started.is_none().then(|| "it has not started".to_owned())
        });
    }

    fn check_attempt(
        &mut self,
        vm: VmId,
        task: TaskId,
        attempt: Attempt,
        what: &str,
        change: impl FnOnce(&mut OpenAttempt) -> Option<String>,
    ) {
        let open = self.tasks.get_mut(task.get() as usize).and_then(|t| t.open.as_mut());
        let Some(open) = open.filter(|o| o.vm == vm && o.attempt == attempt) else {
            return self
                .report_violation(format!("{task} {what} on {vm}, where it is not ({attempt})"));
        };
        if let Some(wrong) = change(open) {
            self.report_violation(format!("{task} on {vm}: {wrong}"));
        }
    }

    /// An error text if a task that finishes now had less time than its work takes at full speed; else `None`.
    fn too_soon(&self, vm: VmId, task: TaskId) -> Option<String> {
        let n = task.get() as usize;
        let (followed, open) = (self.vms.get(&vm)?, self.tasks.get(n)?.open.as_ref()?);
        let spec = self.setup.bag.tasks.get(n).filter(|_| self.is_exact())?;
        let runtime = self.setup.task_runtime(task, &followed.kind.name)?;
        let (started, frozen) = open.started?;
        let cost = self.setup.checkpoint.checkpoint_cost(spec.memory).times(open.checkpoints);
        let need = runtime.part(open.from.rest_of_whole()) + cost;
        let frozen = followed.frozen_until(self.now).saturating_sub(frozen);
        let had = self.now.since(started).saturating_sub(frozen);
        // Parts of the work are kept in whole millionths.
        let rounding = runtime.part(Ppm::new(2)) + Span::from_micros(2);
        (had + rounding < need).then(|| format!("it had {had} for work of {need}"))
    }

    fn keep_checkpoint(&mut self, task: TaskId, done: Option<Ppm>) {
        if let (Some(state), Some(done)) = (self.tasks.get_mut(task.get() as usize), done) {
            state.kept = done;
            state.stored.insert(done);
        }
    }

    /// Whether a task may start with `done` of its work although its newest checkpoint holds more:
    /// an older checkpoint holds `done`, or the task starts from scratch. In virtual time every
    /// checkpoint can be restored.
    fn may_begin_at(&self, task: TaskId, done: Ppm) -> bool {
        !self.is_exact() && self.holds(task, done)
    }

    /// Whether a checkpoint of a task holds `done` of its work; a task without checkpoints holds nothing.
    fn holds(&self, task: TaskId, done: Ppm) -> bool {
        let stored = self.tasks.get(task.get() as usize).map(|task| &task.stored);
        done == Ppm::ZERO || stored.is_some_and(|all| all.contains(&done))
    }

    pub(super) fn remove_task(&mut self, task: TaskId, vm: VmId) {
        if let Some(vm) = self.vms.get_mut(&vm) {
            vm.tasks.remove(&task);
        }
        if let Some(state) = self.tasks.get_mut(task.get() as usize)
            && state.open.as_ref().is_some_and(|open| open.vm == vm)
        {
            state.open = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use dormouse_model::{Bag, Setup, UsageInformation};
    use dormouse_units::Span;

    use super::*;

    #[test]
    fn a_task_that_is_started_before_what_it_follows_is_found() {
        let mut setup = Setup::of_jobs(1, UsageInformation::Exact, 1);
        let second = Task { after: vec![TaskId::new(0)], ..Task::default() };
        let deadline = Span::from_secs(1);
        setup.bag = Bag { tasks: [Task::default(), second].into(), deadline };
        for is_finished in [false, true] {
            let mut checker = Checker::new(&setup, Span::ZERO);
            checker.tasks[0].finished = is_finished;
            checker.check_due(TaskId::new(1), &setup.bag.tasks[1]);
            let found: Vec<String> =
                checker.finish(false).into_iter().map(|found| found.what).collect();
            let wrong = "task1 is started before task0 is finished, which it follows".to_owned();
            assert_eq!(found, if is_finished { vec![] } else { vec![wrong] });
        }
    }
}
