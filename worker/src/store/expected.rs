//! What a checkpoint from elsewhere must be.

use std::ops::RangeInclusive;

use super::{CheckpointManifest, Result, StoreError};
use crate::workspace::TaskName;

/// What a checkpoint from elsewhere must be, whatever its manifest says that it is.
#[derive(Clone, Debug)]
pub struct ExpectedCheckpoint {
    /// The task, and the run.
    pub task: TaskName,
    /// The number of the checkpoint.
    pub sequence: u64,
    /// The attempts of which one took it.
    pub attempts: RangeInclusive<u32>,
    /// The kind of program that the task is.
    pub program: String,
    /// How many bytes it may have.
    pub bytes: u64,
}

impl ExpectedCheckpoint {
    /// Whether a manifest is that of this checkpoint.
    ///
    /// # Errors
    /// [`StoreError::Another`] with what it is instead.
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
