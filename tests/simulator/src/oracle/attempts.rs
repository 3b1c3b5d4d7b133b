//! Checks that a task has one attempt at a time, each with a number of its own, and one end that counts.

use std::collections::{BTreeMap, BTreeSet};

use dormouse_cloud::InterruptionAction;
use dormouse_model::{Decision, Effect, Event, Notice, PromotionMethod, Report, Step};
use dormouse_units::{Attempt, TaskId, VmId};

use super::Broken;
use crate::invariant::Invariant;
use crate::witness::Deed;

/// The attempts at each task in the durable log, and the processes of each, as machines report them.
#[derive(Debug, Default)]
pub(super) struct Attempts {
    /// The number of tasks, or of parallel jobs, that the run has to finish.
    tasks: u32,
    newest: BTreeMap<TaskId, Attempt>,
    /// The attempt at each task that has begun and not ended by the log, and its VM.
    open: BTreeMap<TaskId, (Attempt, VmId)>,
    /// VMs that run: on any other VM, a stop with a checkpoint has nothing to wait for.
    running: BTreeSet<VmId>,
    /// For each task, the number of the step in which it finished.
    finished: BTreeMap<TaskId, u64>,
    /// For each task, the number of the step in which the scheduler was notified of the finish.
    heard: BTreeMap<TaskId, u64>,
    /// The number of the step that ends the run, and whether it calls the run complete.
    over: Option<(u64, bool)>,
    /// Attempts of which a process exists.
    alive: BTreeSet<(TaskId, Attempt)>,
    /// Attempts of which a process has ever existed, each with the number of its starts.
    born: BTreeMap<(TaskId, Attempt), u32>,
    /// Number of moves of each attempt in the log: each move starts a job's processes again.
    moves: BTreeMap<(TaskId, Attempt), u32>,
}

impl Attempts {
    /// An empty record for a run of this number of tasks or parallel jobs.
    pub(super) fn new(tasks: u32) -> Self {
        Self { tasks, ..Self::default() }
    }

    /// The newest attempt at a task in the durable log.
    pub(super) fn newest(&self, task: TaskId) -> Option<Attempt> {
        self.newest.get(&task).copied()
    }

    /// Forgets the content of the log, which begins again from nothing.
    pub(super) fn log_begins_anew(&mut self) {
        *self = Self::new(self.tasks);
    }

    /// Checks the start or the end of a process.
    pub(super) fn did(&mut self, deed: &Deed) -> Result<(), Broken> {
        match deed {
            Deed::Began { task, attempt, vm, .. } => {
                let key = (*task, *attempt);
                if self.newest.get(task).is_none_or(|newest| newest < attempt) {
                    return one_attempt(format!("{task} begins as {attempt}, which no step sends"));
                }
                if !self.alive.insert(key) {
                    return one_attempt(format!("two processes of {task} are of {attempt}"));
                }
                let births = self.born.entry(key).or_default();
                *births += 1;
                let most = 1 + self.moves.get(&key).copied().unwrap_or(0);
                if *births > most {
                    return one_attempt(format!("{task} begins again as {attempt} on {vm}"));
                }
            }
            Deed::Gone { task, attempt } => {
                self.alive.remove(&(*task, *attempt));
            }
            _ => {}
        }
        Ok(())
    }

    /// Checks a durable step.
    pub(super) fn see(&mut self, step: &Step) -> Result<(), Broken> {
        self.hear(step)?;
        self.change_vms(step);
        self.decide(step)?;
        for notice in &step.notices {
            let Notice::TaskFinished { task, .. } = notice else { continue };
            if let Some(before) = self.heard.insert(*task, step.seq) {
                let why = format!("{task} finishes at step {} and did at step {before}", step.seq);
                return finished_once(why);
            }
            if !self.finished.contains_key(task) {
                let why = format!("{task} has no end and is told to have one at step {}", step.seq);
                return finished_once(why);
            }
        }
        Ok(())
    }

    /// Checks a machine's report about an attempt: the attempt must be the task's only one.
    fn hear(&mut self, step: &Step) -> Result<(), Broken> {
        let Event::Machine { report, .. } = &step.event else { return Ok(()) };
        if step.effects.contains(&Effect::Stale) {
            return Ok(());
        }
        let (vm, task, attempt, ends) = match *report {
            Report::TaskStarted { vm, task, attempt, .. }
            | Report::TaskPromoted { vm, task, attempt, .. }
            | Report::TaskMoved { vm, task, attempt, .. }
            | Report::CheckpointTaken { vm, task, attempt, .. }
            | Report::CheckpointFailed { vm, task, attempt, .. }
            | Report::TaskIdle { vm, task, attempt, .. }
            | Report::TaskCompared { vm, task, attempt, .. } => (vm, task, attempt, false),
            Report::TaskFinished { vm, task, attempt, .. }
            | Report::TaskFailed { vm, task, attempt, .. }
            | Report::TaskStopped { vm, task, attempt, .. } => (vm, task, attempt, true),
            _ => return Ok(()),
        };
        let open = self.open.get(&task).copied();
        if open != Some((attempt, vm)) {
            let seq = step.seq;
            let why = format!("{task}, {attempt} on {vm} is heard at step {seq}; it is {open:?}");
            return one_attempt(why);
        }
        if ends {
            self.open.remove(&task);
        }
        if let Report::TaskFinished { verified, program_failed, .. } = report
            && (*verified || *program_failed)
            && let Some(before) = self.finished.insert(task, step.seq)
        {
            let why = format!("{task} ends at step {} and did at step {before}", step.seq);
            return finished_once(why);
        }
        Ok(())
    }

    /// Updates which VMs run. A step's event changes VMs before anything is decided in that step.
    fn change_vms(&mut self, step: &Step) {
        for effect in &step.effects {
            match effect {
                Effect::VmReady { vm } | Effect::VmResumed { vm, .. } => {
                    self.running.insert(*vm);
                }
                Effect::Interrupted { action: InterruptionAction::Hibernate, vms, .. } => {
                    self.running.retain(|vm| !vms.contains(vm));
                }
                Effect::Displaced { vm, action: InterruptionAction::Hibernate, .. }
                | Effect::VmHibernated { vm, .. } => {
                    self.running.remove(vm);
                }
                _ => {}
            }
        }
    }

    /// Takes in the decisions of a step in order, with the effects of each.
    fn decide(&mut self, step: &Step) -> Result<(), Broken> {
        let mut effects = step.effects.iter();
        for (place, decision) in step.decisions.iter().enumerate() {
            if step.effects.iter().any(|effect| effect.refuses_decision(place)) {
                continue;
            }
            match decision {
                Decision::Stop { task, vm, keep } => {
                    // Without a checkpoint it is over with that.
                    let is_at_once = !keep || !self.running.contains(vm);
                    self.leave(is_at_once.then_some(*task), *vm);
                }
                Decision::Promote { task, vm, by, .. } => {
                    let killed = matches!(by, PromotionMethod::Kill { .. }).then_some(*task);
                    self.leave(killed, *vm);
                    if killed.is_some() {
                        self.take_until_sent(&mut effects, step)?;
                    }
                    if matches!(by, PromotionMethod::Migrate { .. }) {
                        self.note_move(*task);
                    }
                }
                Decision::Start { .. } => self.take_until_sent(&mut effects, step)?,
                Decision::Terminate { vm, .. } => {
                    for effect in effects.by_ref() {
                        self.take(effect, step)?;
                        if matches!(effect, Effect::VmEnded { vm: ended, .. } if ended == vm) {
                            break;
                        }
                    }
                }
                _ => {}
            }
        }
        effects.try_for_each(|effect| self.take(effect, step))
    }

    fn take_until_sent<'a>(
        &mut self,
        effects: &mut impl Iterator<Item = &'a Effect>,
        step: &Step,
    ) -> Result<(), Broken> {
        for effect in effects {
            self.take(effect, step)?;
            if matches!(effect, Effect::TaskSent { .. }) {
                break;
            }
        }
        Ok(())
    }

    fn leave(&mut self, task: Option<TaskId>, vm: VmId) {
        if let Some(task) = task
            && self.open.get(&task).is_some_and(|(_, on)| *on == vm)
        {
            self.open.remove(&task);
        }
    }

    fn note_move(&mut self, task: TaskId) {
        if let Some((attempt, _)) = self.open.get(&task) {
            *self.moves.entry((task, *attempt)).or_default() += 1;
        }
    }

    fn take(&mut self, effect: &Effect, step: &Step) -> Result<(), Broken> {
        let seq = step.seq;
        match effect {
            Effect::VmEnded { vm, .. } => {
                self.open.retain(|_, (_, on)| on != vm);
                self.running.remove(vm);
            }
            Effect::TaskSent { task, attempt, vm, .. } => {
                if self.finished.contains_key(task) {
                    return finished_once(format!("{task} is sent at step {seq} and is finished"));
                }
                if let Some((open, on)) = self.open.insert(*task, (*attempt, *vm)) {
                    let why =
                        format!("{task} is sent as {attempt} at step {seq}; {open} is on {on}");
                    return one_attempt(why);
                }
                let newest = self.newest.insert(*task, *attempt);
                if newest.is_some_and(|newest| newest >= *attempt) {
                    return one_attempt(format!("{task} is sent again as {attempt} at step {seq}"));
                }
                if let Some((end, _)) = self.over {
                    return one_attempt(format!(
                        "{task} is sent at step {seq}; step {end} ends it"
                    ));
                }
            }
            Effect::Over { complete } => {
                if let Some((before, _)) = self.over.replace((seq, *complete)) {
                    return finished_once(format!("step {seq} ends the run, as {before} did"));
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Checks the end of a run: it is complete if and only if all its tasks have finished and no more may come.
    pub(super) fn finish(&self, is_open: bool) -> Result<(), Broken> {
        let Some((_, complete)) = self.over else { return Ok(()) };
        let mut all = (0..self.tasks).map(TaskId::new);
        if !complete {
            let is_all = !is_open && all.all(|task| self.finished.contains_key(&task));
            let why = "all tasks have finished, and the run is not complete".to_owned();
            return if is_all { finished_once(why) } else { Ok(()) };
        }
        if is_open {
            return finished_once("the run is complete, and is open to more jobs".to_owned());
        }
        if let Some(task) = all.find(|task| !self.finished.contains_key(task)) {
            return finished_once(format!("the run is complete, and {task} has no end"));
        }
        let unheard = self.finished.keys().find(|task| !self.heard.contains_key(task));
        unheard.map_or(Ok(()), |task| {
            finished_once(format!("{task} has finished, and its scheduler never heard of it"))
        })
    }
}

fn one_attempt(why: String) -> Result<(), Broken> {
    Err((Invariant::OneAttempt, why))
}

fn finished_once(why: String) -> Result<(), Broken> {
    Err((Invariant::FinishedOnce, why))
}

#[cfg(test)]
mod tests;
