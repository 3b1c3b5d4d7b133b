//! A task goes on from the newest whole checkpoint of the history that the log has.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use dormouse_model::{Effect, Event, Notice, Report, Step};
use dormouse_units::{Attempt, CheckpointSeq, Ppm, TaskId};

use super::Broken;
use crate::invariant::Invariant;
use crate::witness::{Deed, Image};

/// The checkpoints of each task, as the durable log has them, and from which each attempt goes on.
#[derive(Debug, Default)]
pub(super) struct Checkpoints {
    /// The newest of each task, and the attempt that took each number last.
    newest: BTreeMap<TaskId, (CheckpointSeq, Ppm)>,
    taken_by: BTreeMap<(TaskId, CheckpointSeq), Attempt>,
    /// Where each attempt begins.
    from: BTreeMap<(TaskId, Attempt), Option<(CheckpointSeq, Ppm)>>,
    /// Tasks with a checkpoint that could not be restored: what is the newest then is for the engine to say.
    fell_back: BTreeSet<TaskId>,
    /// The image that each attempt was dumped to last.
    made: BTreeMap<(TaskId, Attempt), CheckpointSeq>,
    restored: u64,
}

impl Checkpoints {
    pub(super) const fn restored(&self) -> u64 {
        self.restored
    }

    /// Looks for the newest checkpoint of each task that is not finished in the folder where they are stored.
    pub(super) fn are_stored(&self, folder: &Path) -> Result<(), Broken> {
        for (task, (number, _)) in &self.newest {
            // One that fell back goes on from an earlier one, and drops those after it.
            let Some(attempt) = self.taken_by.get(&(*task, *number)) else { continue };
            let file = format!("{}/{}.{}", task.get(), number.get(), attempt.get());
            if !self.fell_back.contains(task) && !folder.join(&file).exists() {
                let why = format!("{task} is not finished, and its newest, {file}, is not stored");
                return Err((Invariant::NewestCheckpoint, why));
            }
        }
        Ok(())
    }

    /// A machine restored an image.
    pub(super) fn did(&mut self, deed: &Deed) -> Result<(), Broken> {
        if let Deed::CheckpointMade(image) = deed {
            self.made.insert((image.task, image.attempt), image.number);
        }
        let Deed::Restored { task, attempt, image } = deed else { return Ok(()) };
        self.restored += 1;
        // A process that moves to another processor goes on from what it was just dumped to.
        let own = self.made.get(&(*task, *attempt));
        if image.task == *task && image.attempt == *attempt && own == Some(&image.number) {
            return Ok(());
        }
        let broken = |why: String| {
            Err((
                Invariant::NewestCheckpoint,
                format!("{task}, {attempt} restored {image:?}: {why}"),
            ))
        };
        match self.from.get(&(*task, *attempt)) {
            None => broken("no durable step starts it".to_owned()),
            Some(None) => broken("the log has it begin from scratch".to_owned()),
            Some(Some((number, done))) => {
                let by = self.taken_by.get(&(*task, *number));
                let Image { task: of, attempt: taken_by, number: is, done: holds } = image;
                if (of, is) != (task, number) || by.is_some_and(|by| by != taken_by) {
                    return broken(format!("the log has it begin from {number} of {by:?}"));
                }
                if holds < done {
                    return broken(format!("it should hold {done:?} of the work"));
                }
                Ok(())
            }
        }
    }

    /// Takes in a durable step.
    pub(super) fn see(&mut self, step: &Step) -> Result<(), Broken> {
        let is_stale = step.effects.contains(&Effect::Stale);
        if let (Event::Machine { report, .. }, false) = (&step.event, is_stale) {
            match *report {
                Report::CheckpointTaken { task, attempt, checkpoint, done, .. } => {
                    self.taken(task, attempt, (checkpoint, done));
                }
                Report::TaskStopped { task, attempt, kept: Some(kept), .. } => {
                    self.taken(task, attempt, kept);
                }
                // What a wrong answer came of is nothing to go on from.
                Report::TaskFinished { task, verified: false, .. } => {
                    self.newest.remove(&task);
                }
                _ => {}
            }
        }
        for notice in &step.notices {
            if let Notice::TaskFinished { task, .. } = notice {
                self.newest.remove(task);
            }
        }
        for effect in &step.effects {
            match effect {
                Effect::RestoreFellBack { task, .. } => {
                    self.fell_back.insert(*task);
                }
                Effect::TaskSent { task, attempt, from, .. } => {
                    self.from.insert((*task, *attempt), *from);
                    let newest = self.newest.get(task).copied();
                    if *from != newest && !self.fell_back.contains(task) {
                        let why = format!(
                            "{task}, {attempt} is sent from {from:?} at step {}; the newest is {newest:?}",
                            step.seq
                        );
                        return Err((Invariant::NewestCheckpoint, why));
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn taken(&mut self, task: TaskId, attempt: Attempt, newest: (CheckpointSeq, Ppm)) {
        self.newest.insert(task, newest);
        self.taken_by.insert((task, newest.0), attempt);
    }
}
