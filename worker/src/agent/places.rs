//! Who uses a task's directory: it has one path, whichever attempt it is.

use std::{
    collections::BTreeMap,
    sync::{Mutex, PoisonError},
};

use dormouse_units::{Attempt, TaskId};

use crate::workspace::{self, TaskName, Workspace};

/// The newest attempt at each task on this worker. An attempt that was stopped on a frozen
/// VM may still exist while the next one runs on another VM, and must not take the directory
/// away from it.
#[derive(Debug, Default)]
pub(crate) struct Places(Mutex<BTreeMap<TaskId, Attempt>>);

impl Places {
    /// Gives the task's directory, emptied, to this attempt.
    pub(crate) fn claim(
        &self,
        workspace: &Workspace,
        name: &TaskName,
        task: TaskId,
        attempt: Attempt,
    ) -> workspace::Result<()> {
        let mut owners = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        workspace.remove_task(name)?;
        workspace.create_task(name)?;
        owners.insert(task, attempt);
        Ok(())
    }

    /// Removes the directory if it is still this attempt's. True where it was.
    pub(crate) fn release(
        &self,
        workspace: &Workspace,
        name: &TaskName,
        task: TaskId,
        attempt: Attempt,
    ) -> bool {
        let mut owners = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if owners.get(&task) != Some(&attempt) {
            return false;
        }
        owners.remove(&task);
        if let Err(error) = workspace.remove_task(name) {
            // The next start of a worker here removes it.
            tracing::warn!(%error, task = %name, "the task's directory is left behind");
        }
        true
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
        let (places, task) = (Places::default(), TaskId::new(1));
        places.claim(&workspace, &name, task, Attempt::new(1)).unwrap();
        std::fs::write(workspace.task(&name).join("old"), "").unwrap();
        places.claim(&workspace, &name, task, Attempt::new(2)).unwrap();
        assert!(!workspace.task(&name).join("old").exists());
        assert!(!places.release(&workspace, &name, task, Attempt::new(1)));
        assert!(workspace.task(&name).exists());
        assert!(places.release(&workspace, &name, task, Attempt::new(2)));
        assert!(!workspace.task(&name).exists());
    }
}
