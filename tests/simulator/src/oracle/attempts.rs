//! One attempt at a task at a time, each with a number of its own, and one end of each task that counts.

use std::collections::BTreeMap;

use dormouse_model::{Effect, Notice, Step};
use dormouse_units::{Attempt, TaskId};

use super::Broken;
use crate::invariant::Invariant;

/// The attempts at each task, as the durable log has them.
#[derive(Debug, Default)]
pub(super) struct Attempts {
    newest: BTreeMap<TaskId, Attempt>,
    finished: BTreeMap<TaskId, u64>,
}

impl Attempts {
    pub(super) fn see(&mut self, step: &Step) -> Result<(), Broken> {
        for notice in &step.notices {
            let Notice::TaskFinished { task, .. } = notice else { continue };
            if let Some(before) = self.finished.insert(*task, step.seq) {
                let why = format!("{task} finishes at step {} and did at step {before}", step.seq);
                return Err((Invariant::FinishedOnce, why));
            }
        }
        for effect in &step.effects {
            let Effect::TaskSent { task, attempt, .. } = effect else { continue };
            let newest = self.newest.insert(*task, *attempt);
            if newest.is_some_and(|newest| newest >= *attempt) {
                let why = format!("{task} is sent again as {attempt} at step {}", step.seq);
                return Err((Invariant::OneAttempt, why));
            }
            if self.finished.contains_key(task) {
                let why = format!("{task} is sent at step {} and is finished", step.seq);
                return Err((Invariant::FinishedOnce, why));
            }
        }
        Ok(())
    }

    /// A run that says that it is complete has finished every task that it ever sent.
    pub(super) fn finish(&self, steps: &[Step]) -> Result<(), Broken> {
        let is_complete = |effect: &Effect| matches!(effect, Effect::Over { complete: true });
        if !steps.iter().any(|step| step.effects.iter().any(is_complete)) {
            return Ok(());
        }
        let missing = self.newest.keys().find(|task| !self.finished.contains_key(task));
        missing.map_or(Ok(()), |task| {
            Err((Invariant::FinishedOnce, format!("the run is complete, and {task} has no end")))
        })
    }
}
