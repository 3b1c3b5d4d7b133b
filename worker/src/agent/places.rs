//! Which attempt owns a task's directory: the directory has the same path for every attempt.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
};

use dormouse_units::{Attempt, TaskId};

use super::report::Key;

/// The newest attempt at each task on this worker, which owns the task's directory. An attempt that was stopped on a
/// frozen VM may still exist while the next one runs on another VM, and must not remove the next attempt's directory.
///
/// Deleting files may take long. An attempt that claims a directory waits until its last owner's files are gone;
/// nothing else does.
#[derive(Debug, Default)]
pub struct AttemptPlaces(Mutex<BTreeMap<TaskId, Place>>);

/// Attempt that owns the directory of one task, if any does.
type Place = Arc<Mutex<Option<Attempt>>>;

impl AttemptPlaces {
    fn place_of(&self, task: TaskId) -> Place {
        let mut places = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(places.entry(task).or_default())
    }

    /// Gives a task's directory to this attempt, once `empty` has emptied it.
    ///
    /// # Errors
    ///
    /// That of `empty`; the directory's owner stays the same then.
    pub fn claim_directory<E>(
        &self,
        (task, attempt): Key,
        empty: impl FnOnce() -> Result<(), E>,
    ) -> Result<(), E> {
        let place = self.place_of(task);
        let mut owner = place.lock().unwrap_or_else(PoisonError::into_inner);
        empty()?;
        *owner = Some(attempt);
        Ok(())
    }

    /// Calls `remove`, which removes a task's files, if the task's directory still belongs to this attempt. No other
    /// attempt can claim the directory meanwhile.
    pub fn release_directory(&self, (task, attempt): Key, remove: impl FnOnce()) {
        let place = self.place_of(task);
        let mut owner = place.lock().unwrap_or_else(PoisonError::into_inner);
        if *owner == Some(attempt) {
            *owner = None;
            remove();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    fn key(task: u32, attempt: u32) -> Key {
        (TaskId::new(task), Attempt::new(attempt))
    }

    fn claim(places: &AttemptPlaces, key: Key) {
        let claimed: Result<(), ()> = places.claim_directory(key, || Ok(()));
        assert_eq!(claimed, Ok(()));
    }

    #[test]
    fn an_old_attempt_does_not_take_the_directory_of_the_new_one() {
        let places = AttemptPlaces::default();
        claim(&places, key(1, 1));
        claim(&places, key(1, 2));
        assert_eq!(
            places.claim_directory(key(1, 3), || Err("the disk is full")),
            Err("the disk is full")
        );
        let release = |attempt| {
            let mut done = false;
            places.release_directory(key(1, attempt), || done = true);
            done
        };
        assert!(!release(1) && !release(3) && release(2));
        assert!(!release(2), "twice");
    }

    #[test]
    fn who_claims_a_place_waits_for_the_last_owners_things_and_nobody_else_does() {
        let places = AttemptPlaces::default();
        claim(&places, key(1, 1));
        let (deleting, begun) = mpsc::channel();
        let (finish, finished) = mpsc::channel::<()>();
        std::thread::scope(|scope| {
            let places = &places;
            scope.spawn(move || {
                places.release_directory(key(1, 1), || {
                    assert_eq!(deleting.send(()), Ok(()));
                    assert_eq!(finished.recv(), Ok(()));
                });
            });
            assert_eq!(begun.recv(), Ok(()));
            claim(places, key(2, 1));
            let next = scope.spawn(move || claim(places, key(1, 2)));
            assert!(!next.is_finished());
            assert_eq!(finish.send(()), Ok(()));
            assert!(next.join().is_ok());
        });
        let mut is_owner = false;
        places.release_directory(key(1, 2), || is_owner = true);
        assert!(is_owner);
    }
}
