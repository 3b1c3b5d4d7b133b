//! What a checkpoint from elsewhere must be.

use std::ops::RangeInclusive;

use super::{Error, Manifest, Result};
use crate::workspace::TaskName;

/// What a checkpoint from elsewhere must be, whatever its manifest says that it is.
#[derive(Clone, Debug)]
pub struct Expected {
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

impl Expected {
    /// Whether a manifest is that of this checkpoint.
    ///
    /// # Errors
    /// [`Error::Another`] with what it is instead.
    pub fn check(&self, manifest: &Manifest) -> Result<()> {
        let Self { task, sequence, attempts, program, bytes } = self;
        let found = manifest.bytes();
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
        Err(Error::Another { what })
    }
}
