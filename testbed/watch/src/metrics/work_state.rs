//! Tasks and parallel jobs of a run: which wait, which are on a VM, which are done. Memory grows with
//! those that are not done.

use std::collections::{BTreeMap, BTreeSet};

use dormouse_analysis::carried_out;
use dormouse_model::{
    Decision, Effect, Event, Notice, Promotion, Report, Setup, StartReason, Step,
};
use dormouse_units::{TaskId, VmId};

/// Whether it is a task of the bag or a parallel job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    Task,
    Job,
}

impl Kind {
    pub(super) const fn word(self) -> &'static str {
        match self {
            Self::Task => "task",
            Self::Job => "job",
        }
    }
}

/// Numbers of tasks, or of jobs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Tally {
    pub(super) waiting: u64,
    pub(super) running: u64,
    pub(super) done: u64,
    pub(super) started: u64,
    pub(super) failed: u64,
}

#[derive(Clone, Debug, Default)]
struct Entry {
    vm: Option<VmId>,
    /// The attempt was sent with a checkpoint.
    from_checkpoint: bool,
    has_started: bool,
}

/// An attempt began.
#[derive(Clone, Copy, Debug)]
pub(super) struct Began {
    pub(super) from_checkpoint: bool,
}

#[derive(Debug)]
pub(super) struct WorkState {
    /// Tasks of the bag are numbered below this.
    bag: u32,
    has_jobs: bool,
    /// The work that is not done.
    left: BTreeMap<TaskId, Entry>,
    on_vm: BTreeMap<VmId, BTreeSet<TaskId>>,
    tasks: Tally,
    jobs: Tally,
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
            left: (0..bag).map(|task| (TaskId::new(task), Entry::default())).collect(),
            on_vm: BTreeMap::new(),
            tasks: Tally { waiting: bag.into(), ..Tally::default() },
            jobs: Tally::default(),
            migrations: 0,
            steals: 0,
            swaps: 0,
            kills: 0,
            restores: 0,
        }
    }

    /// The tally of each kind of work that the run has.
    pub(super) fn tallies(&self) -> impl Iterator<Item = (Kind, Tally)> {
        let tasks = (self.bag > 0).then_some((Kind::Task, self.tasks));
        tasks.into_iter().chain(self.has_jobs.then_some((Kind::Job, self.jobs)))
    }

    /// Takes in a step; `is_stale` says that its report is of no concern any more. Says whether an
    /// attempt began with it.
    pub(super) fn see(&mut self, step: &Step, is_stale: bool) -> Option<Began> {
        let mut began = None;
        match &step.event {
            Event::Submitted { task, .. } if !is_stale => {
                self.left.insert(*task, Entry::default());
                self.tally(*task).waiting += 1;
            }
            Event::Machine { report, .. } if !is_stale => began = self.report(report),
            _ => {}
        }
        let done = carried_out(step);
        let (before, after) = self.split_stops(&done, &step.notices);
        before.into_iter().for_each(|(task, vm)| self.waits(task, vm));
        for effect in &step.effects {
            self.effect(effect);
        }
        after.into_iter().for_each(|(task, vm)| self.waits(task, vm));
        for decision in done {
            match decision {
                Decision::Promote { by: Promotion::Swap, .. } => self.swaps += 1,
                Decision::Promote { by: Promotion::Migrate { .. }, .. } => self.migrations += 1,
                Decision::Promote { by: Promotion::Kill { .. }, .. } => self.kills += 1,
                _ => {}
            }
        }
        began
    }

    /// The stops of one step: attempts that were there before this step, and its own.
    fn split_stops(&self, done: &[&Decision], heard: &[Notice]) -> (Vec<Stop>, Vec<Stop>) {
        let stops = done.iter().filter_map(|decision| match **decision {
            Decision::Stop { task, vm, keep: false } => Some((task, vm)),
            _ => None,
        });
        // A frozen one that is to be kept was kept before: it is stopped at once, too.
        let kept = heard.iter().filter_map(|notice| match *notice {
            Notice::TaskStopped { task, vm, .. } => Some((task, vm)),
            _ => None,
        });
        let is_there =
            |&(task, vm): &Stop| self.left.get(&task).is_some_and(|of| of.vm == Some(vm));
        stops.chain(kept).partition(is_there)
    }

    fn report(&mut self, report: &Report) -> Option<Began> {
        match *report {
            Report::TaskStarted { task, .. } => {
                let entry = self.left.get_mut(&task)?;
                let is_first = !std::mem::replace(&mut entry.has_started, true);
                let began = Began { from_checkpoint: entry.from_checkpoint };
                self.restores += u64::from(is_first && began.from_checkpoint);
                return is_first.then_some(began);
            }
            Report::TaskFinished { task, vm, verified: true, .. } => self.finishes(task, vm),
            Report::TaskFinished { task, vm, program_failed: true, .. } => {
                self.tally(task).failed += 1;
                self.finishes(task, vm);
            }
            Report::TaskFinished { task, vm, verified: false, .. }
            | Report::TaskFailed { task, vm, .. } => {
                self.tally(task).failed += 1;
                self.waits(task, vm);
            }
            Report::TaskStopped { task, vm, .. } => self.waits(task, vm),
            _ => {}
        }
        None
    }

    fn effect(&mut self, effect: &Effect) {
        match *effect {
            Effect::TaskSent { task, vm, reason, from, .. } => {
                match reason {
                    StartReason::Migrated => self.migrations += 1,
                    StartReason::Stolen => self.steals += 1,
                    _ => {}
                }
                let Some(entry) = self.left.get_mut(&task) else { return };
                let former = entry.vm.replace(vm);
                (entry.from_checkpoint, entry.has_started) = (from.is_some(), false);
                match former {
                    Some(former) => self.leaves(task, former),
                    None => {
                        let tally = self.tally(task);
                        tally.waiting -= 1;
                        tally.running += 1;
                    }
                }
                self.on_vm.entry(vm).or_default().insert(task);
                self.tally(task).started += 1;
            }
            Effect::RestoreFellBack { task, to, .. } => {
                if let Some(entry) = self.left.get_mut(&task) {
                    // What it was to begin with decides, not what it began with.
                    entry.from_checkpoint |= to.is_some();
                }
            }
            Effect::VmEnded { vm, .. } => {
                for task in self.on_vm.remove(&vm).into_iter().flatten() {
                    self.waits(task, vm);
                }
            }
            _ => {}
        }
    }

    fn finishes(&mut self, task: TaskId, vm: VmId) {
        if self.left.remove(&task).is_some_and(|entry| entry.vm.is_some()) {
            self.leaves(task, vm);
            let tally = self.tally(task);
            tally.running -= 1;
            tally.done += 1;
        }
    }

    /// A task is on this VM no more, and not done.
    fn waits(&mut self, task: TaskId, vm: VmId) {
        let Some(entry) = self.left.get_mut(&task).filter(|entry| entry.vm == Some(vm)) else {
            return;
        };
        entry.vm = None;
        self.leaves(task, vm);
        let tally = self.tally(task);
        tally.running -= 1;
        tally.waiting += 1;
    }

    fn leaves(&mut self, task: TaskId, vm: VmId) {
        if let Some(tasks) = self.on_vm.get_mut(&vm) {
            tasks.remove(&task);
            if tasks.is_empty() {
                self.on_vm.remove(&vm);
            }
        }
    }

    fn tally(&mut self, task: TaskId) -> &mut Tally {
        if task.get() < self.bag { &mut self.tasks } else { &mut self.jobs }
    }
}

/// A task, and the VM that it was on.
type Stop = (TaskId, VmId);
