//! Which attempt owns a task's directory: the directory has the same path for every attempt.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
};

use dormouse_units::{Attempt, TaskId};

use crate::workspace::{self, TaskName, Workspace};

/// The newest attempt at each task on this worker, which owns the task's directory. An attempt that was stopped on a
/// frozen VM may still exist while the next one runs on another VM, and must not remove the next attempt's directory.
///
/// Deleting files may take long. An attempt that claims a directory waits until its last owner's files are gone;
/// nothing else does.
#[derive(Debug, Default)]
pub(crate) struct AttemptPlaces(Mutex<BTreeMap<TaskId, Place>>);

/// Attempt that owns the directory of one task, if any does.
type Place = Arc<Mutex<Option<Attempt>>>;

impl AttemptPlaces {
    fn place_of(&self, task: TaskId) -> Place {
        let mut places = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(places.entry(task).or_default())
    }

    /// Gives a task's directory, emptied, to this attempt.
    pub(crate) fn claim_directory(
        &self,
        workspace: &Workspace,
        name: &TaskName,
        task: TaskId,
        attempt: Attempt,
    ) -> workspace::Result<()> {
        let place = self.place_of(task);
        let mut owner = place.lock().unwrap_or_else(PoisonError::into_inner);
        workspace.remove_task(name)?;
        workspace.create_task(name)?;
        *owner = Some(attempt);
        Ok(())
    }

    /// Removes a task's directory if it still belongs to this attempt, and calls `too` before another attempt can
    /// claim it.
    pub(crate) fn release_directory(
        &self,
        workspace: &Workspace,
        name: &TaskName,
        (task, attempt): (TaskId, Attempt),
        too: impl FnOnce(),
    ) {
        let place = self.place_of(task);
        let mut owner = place.lock().unwrap_or_else(PoisonError::into_inner);
        if *owner != Some(attempt) {
            return;
        }
        *owner = None;
        if let Err(error) = workspace.remove_task(name) {
            // The next start of a worker here removes it.
            tracing::warn!(%error, task = %name, "the task's directory can't be removed");
        }
        too();
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn an_old_attempt_does_not_take_the_directory_of_the_new_one() {
        let dir = tempfile::tempdir().unwrap();
        let workspace = Workspace::in_place(dir.path()).unwrap();
        let name = TaskName::new("run", "t").unwrap();
        let (places, task) = (AttemptPlaces::default(), TaskId::new(1));
        places.claim_directory(&workspace, &name, task, Attempt::new(1)).unwrap();
        std::fs::write(workspace.task_directory(&name).join("old"), "").unwrap();
        places.claim_directory(&workspace, &name, task, Attempt::new(2)).unwrap();
        assert!(!workspace.task_directory(&name).join("old").exists());
        let release = |attempt| {
            let mut done = false;
            let key = (task, Attempt::new(attempt));
            places.release_directory(&workspace, &name, key, || done = true);
            done
        };
        assert!(!release(1) && workspace.task_directory(&name).exists());
        assert!(release(2) && !workspace.task_directory(&name).exists());
        assert!(!release(2), "twice");
    }

    #[test]
    fn who_claims_a_place_waits_for_the_last_owners_things_and_nobody_else_does() {
        let dir = tempfile::tempdir().unwrap();
        let workspace = Workspace::in_place(dir.path()).unwrap();
        let places = AttemptPlaces::default();
        let key = |task, attempt| (TaskId::new(task), Attempt::new(attempt));
        let name = |task: u32| TaskName::new("run", task.to_string()).unwrap();
        let claim = |(task, attempt), name: &TaskName| {
            places.claim_directory(&workspace, name, task, attempt).unwrap();
        };
        claim(key(1, 1), &name(1));
        let (deleting, begun) = std::sync::mpsc::channel();
        let (finish, finished) = std::sync::mpsc::channel::<()>();
        std::thread::scope(|scope| {
            let (places, workspace, name) = (&places, &workspace, &name);
            scope.spawn(move || {
                places.release_directory(workspace, &name(1), key(1, 1), || {
                    deleting.send(()).unwrap();
                    finished.recv().unwrap();
                });
            });
            begun.recv().unwrap();
            claim(key(2, 1), &name(2));
            let next = scope.spawn(move || claim(key(1, 2), &name(1)));
            assert!(!next.is_finished());
            finish.send(()).unwrap();
            next.join().unwrap();
        });
        assert!(workspace.task_directory(&name(1)).exists());
    }
}
