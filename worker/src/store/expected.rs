//! Properties that a checkpoint from elsewhere must have.

use std::ops::RangeInclusive;

use super::{CheckpointManifest, Result, StoreError};
use crate::workspace::TaskName;

/// Properties that a checkpoint from another worker must have, whatever its manifest says.
#[derive(Clone, Debug)]
pub struct ExpectedCheckpoint {
    /// Name of the task and its run.
    pub task: TaskName,
    /// Number of the checkpoint.
    pub sequence: u64,
    /// Range of attempts, one of which took the checkpoint.
    pub attempts: RangeInclusive<u32>,
    /// Kind of program that the task runs.
    pub program: String,
    /// Largest permitted size of the checkpoint in bytes.
    pub bytes: u64,
}

impl ExpectedCheckpoint {
    /// Checks that a manifest describes the expected checkpoint.
    ///
    /// # Errors
    ///
    /// [`StoreError::Another`], which says what the checkpoint is instead.
    pub fn check_manifest(&self, manifest: &CheckpointManifest) -> Result<()> {
        let Self { task, sequence, attempts, program, bytes } = self;
        let found = manifest.total_bytes();
        let what = if manifest.task != *task {
            format!("of {} and not of {task}", manifest.task)
        } else if manifest.sequence != *sequence {
            format!("number {} and not {sequence}", manifest.sequence)
        } else if !attempts.contains(&manifest.progress.attempt) {
            let (first, last) = (attempts.start(), attempts.end());
            format!("of attempt {} and of none from {first} to {last}", manifest.progress.attempt)
        } else if manifest.program != *program {
            format!("of the program {:?} and not {program:?}", manifest.program)
        } else if found > *bytes {
            format!("of {found} bytes, and such a task's has {bytes} at most")
        } else {
            return Ok(());
        };
        Err(StoreError::Another { what })
    }
}
