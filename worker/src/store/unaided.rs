//! Checkpoints without images: of the directory of a task that saves its work into it by itself.

use std::{collections::BTreeMap, path::Path};

use super::{Checkpoint, Progress, Result, Store};
use crate::workspace::TaskName;

/// The kind of program that a checkpoint without images names, since nothing of its memory is in it.
pub const DIRECTORY: &str = "directory";

impl Store {
    /// Saves the directory of a task, which must stand still, as its next checkpoint. Older ones may go.
    ///
    /// # Errors
    /// Where it has something that cannot be saved, or there is no room. Nothing of the checkpoint is left then.
    pub fn save_directory(
        &self,
        task: &TaskName,
        task_directory: &Path,
        progress: Progress,
    ) -> Result<Checkpoint> {
        let draft = self.begin(task)?;
        let files = draft.save_files(task_directory)?;
        let files = (files, Vec::new());
        let (program, no_criu, nothing) = (DIRECTORY.to_owned(), String::new(), BTreeMap::new());
        let checkpoint = draft.commit(program, progress, files, no_criu, &nothing)?;
        // It exists, whatever becomes of older ones: the next one tries again.
        if let Err(error) = self.prune(task) {
            let error: &dyn std::error::Error = &error;
            tracing::warn!(error, %task, "older checkpoints can't be removed");
        }
        Ok(checkpoint)
    }
}

#[cfg(test)]
mod tests;
