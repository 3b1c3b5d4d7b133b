//! Checks that each attempt begins from the newest whole checkpoint that the log has for its task.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use dormouse_model::{Effect, Event, Notice, Report, Step};
use dormouse_units::{Attempt, CheckpointSeq, Ppm, TaskId};

use super::Broken;
use super::hosts::LyingHosts;
use crate::invariant::Invariant;
use crate::witness::{Deed, Image};

/// Number of older checkpoints that a worker tries if it can't have the one that the log names.
const OLDER: u32 = 2;

/// The checkpoint from which an attempt is to begin by the log.
#[derive(Clone, Copy, Debug)]
struct From {
    number: CheckpointSeq,
    done: Ppm,
    /// The attempt that took the checkpoint; `None` if it is not known.
    by: Option<Attempt>,
}

/// The checkpoints of each task in the durable log, and from which of them each attempt begins.
#[derive(Debug, Default)]
pub(super) struct Checkpoints {
    /// The newest checkpoint of each task; the next field has the attempt that last took each checkpoint number.
    newest: BTreeMap<TaskId, (CheckpointSeq, Ppm)>,
    taken_by: BTreeMap<(TaskId, CheckpointSeq), Attempt>,
    /// The checkpoint from which each attempt begins; `None`: from scratch.
    from: BTreeMap<(TaskId, Attempt), Option<From>>,
    /// Checkpoints of which a power cut damaged or removed the coordinator's copy.
    torn: BTreeSet<(TaskId, CheckpointSeq, Attempt)>,
    /// Attempts on workers that lie: the log may name checkpoints of these that do not exist, and the store may hold
    /// garbage for them.
    of_liars: BTreeSet<(TaskId, Attempt)>,
    /// Checkpoints of which a coordinator has answered that they are stored.
    stored: BTreeSet<(TaskId, CheckpointSeq, Attempt)>,
    restored: u64,
}

impl Checkpoints {
    /// Notes a coordinator's answer that a checkpoint is stored.
    pub(super) fn has_stored(&mut self, task: TaskId, number: CheckpointSeq, attempt: Attempt) {
        self.stored.insert((task, number, attempt));
    }

    pub(super) const fn restored(&self) -> u64 {
        self.restored
    }

    /// Checks that the folder holds, for each unfinished task, its newest checkpoint or a later one: later ones may
    /// not be reported yet, and older ones are removed.
    pub(super) fn are_stored(&self, folder: &Path) -> Result<(), Broken> {
        for (task, (number, _)) in &self.newest {
            if self.may_be_missing(*task, *number) {
                continue;
            }
            let files = std::fs::read_dir(folder.join(task.get().to_string()));
            let is_as_new = |file: std::io::Result<std::fs::DirEntry>| {
                let name = file.ok()?.file_name();
                let (stored, _) = name.to_str()?.split_once('.')?;
                (stored.parse::<u32>().ok()? >= number.get()).then_some(())
            };
            if files.into_iter().flatten().find_map(is_as_new).is_none() {
                let why = format!(
                    "{task} is not finished, and neither {number} nor a later one is stored"
                );
                return Err((Invariant::NewestCheckpoint, why));
            }
        }
        Ok(())
    }

    /// Whether the store may lack the newest checkpoint of a task: a power cut damaged it or a later one, or a lying
    /// worker invented it.
    fn may_be_missing(&self, task: TaskId, number: CheckpointSeq) -> bool {
        let is_torn =
            |(of, torn, _): &(TaskId, CheckpointSeq, Attempt)| *of == task && *torn >= number;
        let by = self.taken_by.get(&(task, number));
        by.is_some_and(|by| self.of_liars.contains(&(task, *by))) || self.torn.iter().any(is_torn)
    }

    /// Whether the coordinator's copy of a checkpoint may be damaged: by a power cut, or because a lying worker sent
    /// it.
    pub(super) fn may_be_damaged(&self, task: TaskId, number: CheckpointSeq, by: Attempt) -> bool {
        self.torn.contains(&(task, number, by)) || self.of_liars.contains(&(task, by))
    }

    /// Notes that a power cut damaged the coordinator's copy of a checkpoint.
    pub(super) fn torn(&mut self, task: TaskId, number: CheckpointSeq, attempt: Attempt) {
        self.torn.insert((task, number, attempt));
    }

    /// Checks that a machine restored the right checkpoint, or was right to find none.
    pub(super) fn did(&mut self, deed: &Deed) -> Result<(), Broken> {
        let Deed::Restored { task, attempt, image } = deed else { return Ok(()) };
        self.restored += u64::from(image.is_some());
        let why = match (self.from.get(&(*task, *attempt)), image) {
            (None, _) => Some("no durable step starts it".to_owned()),
            (Some(None), None) => None,
            (Some(None), Some(_)) => Some("the log has it begin from scratch".to_owned()),
            (Some(Some(from)), Some(image)) if image.task != *task => {
                Some(format!("another task's, where the log has it begin from {from:?}"))
            }
            (Some(Some(from)), Some(image)) if Self::is_it(from, image) => {
                let is_claimed = from.by.is_some_and(|by| self.of_liars.contains(&(*task, by)));
                let holds_less = image.done < from.done && !is_claimed;
                holds_less.then(|| format!("it should hold {:?} of the work", from.done))
            }
            (Some(Some(_)), Some(image)) if self.is_a_liars_own(*task, *attempt, image) => None,
            (Some(Some(from)), image) => self.why_not(*task, from, image.as_ref()),
        };
        match why {
            None => Ok(()),
            Some(why) => Err((
                Invariant::NewestCheckpoint,
                format!("{task}, {attempt} restored {image:?}: {why}"),
            )),
        }
    }

    fn is_it(from: &From, image: &Image) -> bool {
        image.number == from.number && from.by.is_none_or(|by| by == image.attempt)
    }

    /// Whether an attempt on a lying worker restores a checkpoint of another attempt on such a worker. A worker that
    /// reports an end too early has both attempts at once, and one store for their checkpoints.
    fn is_a_liars_own(&self, task: TaskId, attempt: Attempt, image: &Image) -> bool {
        [attempt, image.attempt].iter().all(|it| self.of_liars.contains(&(task, *it)))
    }

    /// Why it was wrong to restore this checkpoint in place of the one in the log; `None` if it was right.
    fn why_not(&self, task: TaskId, from: &From, image: Option<&Image>) -> Option<String> {
        let number = image.map_or(0, |image| image.number.get());
        let wanted = from.number.get();
        if number >= wanted {
            return Some(format!("the log has it begin from {from:?}"));
        }
        let tried = (wanted.saturating_sub(OLDER).max(1)..=wanted).filter(|tried| *tried > number);
        let mut whole = tried.filter_map(|tried| {
            let tried = CheckpointSeq::new(tried);
            let by = *self.taken_by.get(&(task, tried))?;
            let may_be_garbage = self.of_liars.contains(&(task, by));
            (!may_be_garbage && !self.torn.contains(&(task, tried, by))).then_some((tried, by))
        });
        let (newer, by) = whole.next_back()?;
        Some(format!("the log has it begin from {from:?}, and {newer} of {by} is whole"))
    }

    /// Takes in a durable step; `lying` has the VMs on workers that lie.
    pub(super) fn see(&mut self, step: &Step, lying: &LyingHosts) -> Result<(), Broken> {
        let is_stale = step.effects.contains(&Effect::Stale);
        if let (Event::Machine { report, .. }, false) = (&step.event, is_stale) {
            match *report {
                Report::CheckpointTaken { task, attempt, checkpoint, done, .. } => {
                    if !lying.says(step) && !self.stored.contains(&(task, checkpoint, attempt)) {
                        let why = format!(
                            "step {}: {checkpoint} of {task}, {attempt} counts as taken, and nobody has stored it",
                            step.seq
                        );
                        return Err((Invariant::NewestCheckpoint, why));
                    }
                    self.taken(task, attempt, (checkpoint, done));
                }
                Report::TaskStopped { task, attempt, kept: Some(kept), .. } => {
                    if !lying.says(step) && !self.stored.contains(&(task, kept.0, attempt)) {
                        let why = format!(
                            "step {}: {task}, {attempt} is stopped and kept in {}, which nobody has stored",
                            step.seq, kept.0
                        );
                        return Err((Invariant::NewestCheckpoint, why));
                    }
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
                Effect::RestoreFellBack { task, to: None, .. } => {
                    self.newest.remove(task);
                }
                Effect::RestoreFellBack { task, to: Some(to), .. } => {
                    self.newest.insert(*task, *to);
                }
                Effect::TaskSent { task, attempt, from, vm, .. } => {
                    if lying.has(*vm) {
                        self.of_liars.insert((*task, *attempt));
                    }
                    let newest = self.newest.get(task).copied();
                    if *from != newest {
                        let why = format!(
                            "{task}, {attempt} is sent from {from:?} at step {}; the newest is {newest:?}",
                            step.seq
                        );
                        return Err((Invariant::NewestCheckpoint, why));
                    }
                    let from = from.map(|(number, done)| {
                        let by = self.taken_by.get(&(*task, number)).copied();
                        From { number, done, by }
                    });
                    self.from.insert((*task, *attempt), from);
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

/// Checks that the stored checkpoints of a task belong to one history: those of an attempt are removed once a later
/// attempt has stored the same number or a lower one.
pub(super) fn are_of_one_history(folder: &Path, task: TaskId) -> Result<(), Broken> {
    let files = std::fs::read_dir(folder.join(task.get().to_string())).into_iter().flatten();
    let numbers = |file: std::io::Result<std::fs::DirEntry>| {
        let name = file.ok()?.file_name();
        let (number, attempt) = name.to_str()?.split_once('.')?;
        Some((number.parse::<u32>().ok()?, attempt.parse::<u32>().ok()?))
    };
    let mut all: Vec<_> = files.filter_map(numbers).collect();
    all.sort_unstable();
    let later =
        |&(number, by): &(u32, u32)| all.iter().find(|(n, other)| *other > by && *n <= number);
    match all.iter().find_map(|stored| Some((stored, later(stored)?))) {
        None => Ok(()),
        Some(((number, by), (n, other))) => {
            let why = format!(
                "{task}: checkpoint {number} of attempt {by} is stored beside {n} of attempt {other}"
            );
            Err((Invariant::OneHistory, why))
        }
    }
}

#[cfg(test)]
mod tests {
    use dormouse_units::{Bytes, HostId, Time, VmId};

    use super::*;

    #[test]
    fn what_is_stored_beside_a_later_attempts_checkpoint_is_earlier_than_that() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let of_task = folder.path().join(TASK.get().to_string());
        std::fs::create_dir(&of_task).expect("room");
        let looked = |name: &str| {
            std::fs::write(of_task.join(name), name).expect("room");
            are_of_one_history(folder.path(), TASK).map_err(|(invariant, _)| invariant)
        };
        assert_eq!(looked("2.1"), Ok(()));
        assert_eq!(looked("3.4"), Ok(()));
        assert_eq!(looked("10.4"), Ok(()));
        assert_eq!(looked("11.2.7.part"), Ok(()), "one that is under way is not stored");
        assert_eq!(looked("3.1"), Err(Invariant::OneHistory), "it has the same number");
        std::fs::remove_file(of_task.join("3.1")).expect("it is there");
        assert_eq!(looked("11.3"), Err(Invariant::OneHistory), "it has a later one");
    }

    const TASK: TaskId = TaskId::new(7);

    fn image(number: u32, attempt: u32) -> Image {
        let (number, done) = (CheckpointSeq::new(number), Ppm::new(100_000 * number));
        Image { task: TASK, attempt: Attempt::new(attempt), number, done }
    }

    /// A history in which attempt 1 took checkpoints 1 to 3, and attempt 2 begins from the last.
    fn history() -> Checkpoints {
        let mut all = Checkpoints::default();
        for number in 1..=3 {
            let Image { attempt, number, done, .. } = image(number, 1);
            all.taken(TASK, attempt, (number, done));
        }
        let Image { attempt, number, done, .. } = image(3, 1);
        all.from.insert((TASK, Attempt::new(2)), Some(From { number, done, by: Some(attempt) }));
        all
    }

    fn restores(all: &mut Checkpoints, image: Option<Image>) -> bool {
        all.did(&Deed::Restored { task: TASK, attempt: Attempt::new(2), image }).is_ok()
    }

    #[test]
    fn what_an_honest_worker_says_is_taken_has_been_stored() {
        let report = Report::CheckpointTaken {
            vm: VmId::new(0),
            task: TASK,
            attempt: Attempt::new(1),
            checkpoint: CheckpointSeq::new(1),
            done: Ppm::new(100_000),
            bytes: Bytes::new(1),
            real_held_us: 0,
            real_dump_us: 0,
            real_owed_us: 0,
            real_criu_us: 0,
            held_at: None,
        };
        let mut step = Step::blank();
        step.begin_step(0, Time::ZERO, Event::Machine { host: HostId::new(1), number: 1, report });
        let (mut all, lying) = (Checkpoints::default(), LyingHosts::default());
        assert!(all.see(&step, &lying).is_err());
        all.has_stored(TASK, CheckpointSeq::new(1), Attempt::new(1));
        assert_eq!(all.see(&step, &lying), Ok(()));
    }

    #[test]
    fn an_older_one_may_be_restored_where_all_newer_ones_are_torn() {
        let mut all = history();
        assert!(restores(&mut all, Some(image(3, 1))));
        let others = [Some(image(2, 1)), Some(image(3, 2)), Some(image(4, 1)), None];
        assert!(others.iter().all(|other| !restores(&mut all, *other)));
        let tear = |all: &mut Checkpoints, number| {
            all.torn(TASK, CheckpointSeq::new(number), Attempt::new(1));
        };
        tear(&mut all, 3);
        assert!(restores(&mut all, Some(image(2, 1))));
        assert!(!restores(&mut all, Some(image(1, 1))) && !restores(&mut all, None));
        tear(&mut all, 2);
        assert!(restores(&mut all, Some(image(1, 1))) && !restores(&mut all, None));
        tear(&mut all, 1);
        assert!(restores(&mut all, None));
    }

    #[test]
    fn an_older_one_of_an_honest_worker_is_not_passed_over_for_a_liars() {
        // Attempt 2 is a liar's, and took 4 as it says; attempt 3 goes on from that.
        let mut all = history();
        let Image { attempt: liars, number, done, .. } = image(4, 2);
        all.of_liars.insert((TASK, liars));
        all.taken(TASK, liars, (number, done));
        let from = From { number, done, by: Some(liars) };
        all.from.insert((TASK, Attempt::new(3)), Some(from));
        let mut restores = |image| {
            all.did(&Deed::Restored { task: TASK, attempt: Attempt::new(3), image }).is_ok()
        };
        let holds_less = Image { done: Ppm::ZERO, ..image(4, 2) };
        assert!(restores(Some(image(4, 2))) && restores(Some(holds_less)));
        // Attempt 2 went on when it was said to be over, and took 5.
        assert!(!restores(Some(image(5, 2))), "attempt 3 is on an honest worker");
        // Garbage: the next older is an honest worker's, and whole.
        assert!(restores(Some(image(3, 1))));
        assert!(!restores(Some(image(2, 1))) && !restores(None));
        all.of_liars.insert((TASK, Attempt::new(3)));
        let mut restores = |image| {
            all.did(&Deed::Restored { task: TASK, attempt: Attempt::new(3), image }).is_ok()
        };
        assert!(restores(Some(image(5, 2))), "attempt 3 is on the same worker's store");
        assert!(!restores(Some(image(2, 1))) && !restores(None), "no honest one is passed over");
    }
}
