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
    /// Images that a machine found damaged: it goes on from an earlier one.
    damaged: BTreeSet<(TaskId, CheckpointSeq)>,
    restored: u64,
}

impl Checkpoints {
    pub(super) const fn restored(&self) -> u64 {
        self.restored
    }

    /// Looks for the newest checkpoint of each task that is not finished, or a later one, in the folder where they
    /// are stored: reports of later ones may be under way, and only so many are kept.
    pub(super) fn are_stored(&self, folder: &Path) -> Result<(), Broken> {
        for (task, (number, _)) in &self.newest {
            let files = std::fs::read_dir(folder.join(task.get().to_string()));
            let is_as_new = |file: std::io::Result<std::fs::DirEntry>| {
                let name = file.ok()?.file_name();
                let (stored, _) = name.to_str()?.split_once('.')?;
                (stored.parse::<u32>().ok()? >= number.get()).then_some(())
            };
            // One that fell back goes on from an earlier one, and drops those after it.
            if !self.fell_back.contains(task)
                && files.into_iter().flatten().find_map(is_as_new).is_none()
            {
                let why = format!(
                    "{task} is not finished, and neither {number} nor a later one is stored"
                );
                return Err((Invariant::NewestCheckpoint, why));
            }
        }
        Ok(())
    }

    /// A machine restored an image.
    pub(super) fn did(&mut self, deed: &Deed) -> Result<(), Broken> {
        if let Deed::Damaged { task, number } = deed {
            self.damaged.insert((*task, *number));
        }
        let Deed::Restored { task, attempt, image } = deed else { return Ok(()) };
        self.restored += 1;
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
                if image.task == *task
                    && image.number < *number
                    && self.damaged.contains(&(*task, *number))
                {
                    return Ok(());
                }
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
