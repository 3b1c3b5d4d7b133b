//! Which of a task's checkpoints on a host are kept, which one the task continues from, and which belong to a history
//! that was given up.

use crate::workspace::TaskName;

/// Number of complete checkpoints that are kept of each task.
const KEPT: usize = 3;

/// Checkpoints of tasks as they lie on one host: directories on a real one, bytes in memory in the simulator. The
/// functions of this module decide about them.
pub trait CheckpointShelf {
    /// A complete checkpoint. Its files needn't have been read.
    type Checkpoint;
    /// Why a checkpoint can't be read or removed.
    type Error;

    /// Returns the numbers of a task's checkpoints, the oldest first; incomplete ones are among them.
    ///
    /// # Errors
    ///
    /// The checkpoints can't be listed.
    fn all_numbers(&self, task: &TaskName) -> Result<Vec<u64>, Self::Error>;

    /// Returns the numbers of a task's complete checkpoints, the oldest first.
    ///
    /// # Errors
    ///
    /// The checkpoints can't be listed.
    fn complete_numbers(&self, task: &TaskName) -> Result<Vec<u64>, Self::Error>;

    /// Returns one complete checkpoint, without reading its files.
    ///
    /// # Errors
    ///
    /// No checkpoint has that number, or its manifest is damaged.
    fn load_checkpoint(
        &self,
        task: &TaskName,
        number: u64,
    ) -> Result<Self::Checkpoint, Self::Error>;

    /// Returns the attempt at the task that took a checkpoint.
    fn attempt_of(checkpoint: &Self::Checkpoint) -> u32;

    /// Reads all files of a checkpoint, and compares them with their checksums.
    ///
    /// # Errors
    ///
    /// The first file that differs.
    fn verify_checkpoint(&self, checkpoint: &Self::Checkpoint) -> Result<(), Self::Error>;

    /// Removes a checkpoint, complete or not.
    ///
    /// # Errors
    ///
    /// A file can't be removed.
    fn remove_checkpoint(&self, task: &TaskName, number: u64) -> Result<(), Self::Error>;
}

/// A task's newest usable checkpoint, and the numbers of newer ones that aren't usable with the reason.
pub type NewestCheckpoint<S> =
    (Option<<S as CheckpointShelf>::Checkpoint>, Vec<(u64, <S as CheckpointShelf>::Error)>);

/// Returns the number that a task's next checkpoint gets: an incomplete one counts too.
///
/// # Errors
///
/// The checkpoints can't be listed.
pub fn next_number<S: CheckpointShelf>(shelf: &S, task: &TaskName) -> Result<u64, S::Error> {
    Ok(shelf.all_numbers(task)?.last().map_or(1, |last| last + 1))
}

/// Returns the numbers of a task's complete checkpoints that needn't be kept: all except the three newest.
///
/// # Errors
///
/// The checkpoints can't be listed.
pub(super) fn surplus_numbers<S: CheckpointShelf>(
    shelf: &S,
    task: &TaskName,
) -> Result<Vec<u64>, S::Error> {
    let mut numbers = shelf.complete_numbers(task)?;
    numbers.truncate(numbers.len().saturating_sub(KEPT));
    Ok(numbers)
}

/// Removes all complete checkpoints of a task except the three newest.
///
/// # Errors
///
/// A checkpoint can't be removed.
pub fn prune_task<S: CheckpointShelf>(shelf: &S, task: &TaskName) -> Result<(), S::Error> {
    let surplus = surplus_numbers(shelf, task)?;
    surplus.into_iter().try_for_each(|number| shelf.remove_checkpoint(task, number))
}

/// Removes the checkpoints of a task whose number is above `newest`.
///
/// # Errors
///
/// A checkpoint can't be removed.
fn remove_newer<S: CheckpointShelf>(
    shelf: &S,
    task: &TaskName,
    newest: u64,
) -> Result<(), S::Error> {
    let newer = shelf.all_numbers(task)?.into_iter().filter(|number| *number > newest);
    newer.into_iter().try_for_each(|number| shelf.remove_checkpoint(task, number))
}

/// Returns a task's newest checkpoint that `accept` accepts.
///
/// # Errors
///
/// The checkpoints can't be listed. Damage is not an error.
pub fn newest_accepted<S: CheckpointShelf>(
    shelf: &S,
    task: &TaskName,
    mut accept: impl FnMut(&S::Checkpoint) -> Result<(), S::Error>,
) -> Result<NewestCheckpoint<S>, S::Error> {
    let mut refused = Vec::new();
    for number in shelf.complete_numbers(task)?.into_iter().rev() {
        let found = shelf.load_checkpoint(task, number).and_then(|checkpoint| {
            accept(&checkpoint)?;
            Ok(checkpoint)
        });
        match found {
            Ok(checkpoint) => return Ok((Some(checkpoint), refused)),
            Err(error) => refused.push((number, error)),
        }
    }
    Ok((None, refused))
}

/// The state of the checkpoint that a task is to continue from, on a host that may have a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LocalCopy<E> {
    /// The copy is whole, and the task can continue from it.
    Whole,
    /// The host has no copy.
    Absent,
    /// The copy can't be used.
    Damaged(E),
}

/// Looks for the local copy of the task's checkpoint number `newest`, which the attempt `by` took. Newer copies, which
/// the coordinator doesn't know, belong to a history that was given up, and so does a copy of this number that a
/// different attempt took: all of these are removed.
///
/// # Errors
///
/// The checkpoints can't be listed, or one can't be removed.
pub fn find_copy<S: CheckpointShelf>(
    shelf: &S,
    task: &TaskName,
    (newest, by): (u64, u32),
) -> Result<LocalCopy<S::Error>, S::Error> {
    remove_newer(shelf, task, newest)?;
    if !shelf.complete_numbers(task)?.contains(&newest) {
        return Ok(LocalCopy::Absent);
    }
    let loaded = shelf.load_checkpoint(task, newest);
    if loaded.as_ref().is_ok_and(|checkpoint| S::attempt_of(checkpoint) != by) {
        remove_newer(shelf, task, newest.saturating_sub(1))?;
        return Ok(LocalCopy::Absent);
    }
    match loaded.and_then(|checkpoint| shelf.verify_checkpoint(&checkpoint)) {
        Ok(()) => Ok(LocalCopy::Whole),
        Err(error) => Ok(LocalCopy::Damaged(error)),
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use std::{cell::RefCell, collections::BTreeMap};

    use super::*;

    /// Attempt of each checkpoint by its number; `None`: the checkpoint is damaged.
    struct Shelf(RefCell<BTreeMap<u64, Option<u32>>>);

    impl CheckpointShelf for Shelf {
        type Checkpoint = u32;
        type Error = &'static str;

        fn all_numbers(&self, _: &TaskName) -> Result<Vec<u64>, &'static str> {
            Ok(self.0.borrow().keys().copied().collect())
        }

        fn complete_numbers(&self, task: &TaskName) -> Result<Vec<u64>, &'static str> {
            self.all_numbers(task)
        }

        fn load_checkpoint(&self, _: &TaskName, number: u64) -> Result<u32, &'static str> {
            self.0.borrow()[&number].ok_or("damaged")
        }

        fn attempt_of(checkpoint: &u32) -> u32 {
            *checkpoint
        }

        fn verify_checkpoint(&self, _: &u32) -> Result<(), &'static str> {
            Ok(())
        }

        fn remove_checkpoint(&self, _: &TaskName, number: u64) -> Result<(), &'static str> {
            self.0.borrow_mut().remove(&number);
            Ok(())
        }
    }

    fn shelf(attempts: &[(u64, Option<u32>)]) -> (Shelf, TaskName) {
        let shelf = Shelf(RefCell::new(attempts.iter().copied().collect()));
        (shelf, TaskName::new("run", "t1").unwrap())
    }

    #[test]
    fn copies_of_another_history_are_removed() {
        let (shelf, task) = shelf(&[(1, Some(1)), (2, Some(1)), (3, Some(2))]);
        assert_eq!(find_copy(&shelf, &task, (2, 1)), Ok(LocalCopy::Whole));
        assert_eq!(shelf.all_numbers(&task), Ok(vec![1, 2]));
        // The number is right, and somebody else's.
        assert_eq!(find_copy(&shelf, &task, (2, 2)), Ok(LocalCopy::Absent));
        assert_eq!(shelf.all_numbers(&task), Ok(vec![1]));
        assert_eq!(find_copy(&shelf, &task, (7, 2)), Ok(LocalCopy::Absent));
    }

    #[test]
    fn a_damaged_copy_is_not_used_and_an_earlier_checkpoint_is() {
        let (shelf, task) = shelf(&[(4, Some(1)), (5, Some(1)), (6, None)]);
        assert_eq!(find_copy(&shelf, &task, (6, 1)), Ok(LocalCopy::Damaged("damaged")));
        let newest = newest_accepted(&shelf, &task, |_| Ok(())).unwrap();
        assert_eq!(newest, (Some(1), vec![(6, "damaged")]));
        assert_eq!(next_number(&shelf, &task), Ok(7));
    }

    #[test]
    fn the_three_newest_are_kept() {
        let (shelf, task) = shelf(&[(2, Some(1)), (4, Some(1)), (5, None), (6, Some(1))]);
        assert_eq!(surplus_numbers(&shelf, &task), Ok(vec![2]));
        remove_newer(&shelf, &task, 2).unwrap();
        assert_eq!(surplus_numbers(&shelf, &task), Ok(vec![]));
    }
}
