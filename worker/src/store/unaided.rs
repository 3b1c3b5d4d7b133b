//! Checkpoints without images: of the directory of a task that saves its work into it by itself.

use std::{collections::BTreeMap, path::Path};

use super::{LocalCheckpoints, Result, SavedProgress, StoredCheckpoint};
use crate::workspace::TaskName;

/// Kind of program in the manifest of a checkpoint that has only the task's directory, and nothing of the program's memory.
pub const DIRECTORY: &str = "directory";

impl LocalCheckpoints {
    /// Saves the directory of a task as its next checkpoint. The task must be stopped. May remove older checkpoints.
    ///
    /// # Errors
    ///
    /// A file in it can't be saved, or there is no room. Nothing of the checkpoint is left then.
    pub fn save_directory(
        &self,
        task: &TaskName,
        task_directory: &Path,
        progress: SavedProgress,
    ) -> Result<StoredCheckpoint> {
        let draft = self.begin_checkpoint(task)?;
        let files = draft.save_files(task_directory)?;
        let files = (files, Vec::new());
        let (program, no_criu, nothing) = (DIRECTORY.to_owned(), String::new(), BTreeMap::new());
        let checkpoint = draft.commit_checkpoint(program, progress, files, no_criu, &nothing)?;
        // It exists, whatever becomes of older ones: the next one tries again.
        if let Err(error) = self.prune_task(task) {
            let error: &dyn std::error::Error = &error;
            tracing::warn!(error, %task, "older checkpoints can't be removed");
        }
        Ok(checkpoint)
    }
}

#[cfg(test)]
mod tests;
