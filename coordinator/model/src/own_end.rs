//! Ends of users' own programs with their outputs, and of the attempts at them as the steps of a run tell.

use std::sync::Arc;

use dormouse_units::{Attempt, Bytes, TaskId};
use serde::{Deserialize, Serialize};

use crate::{Event, Notice, Report, Step};

/// End of a user's own program, with its outputs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProgramEnd {
    /// Exit of the program; `None` if it was killed before its end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit: Option<ProgramExit>,
    /// Exit status of the program that checked the answer; `None`: there was no such program, or it did not
    /// run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verify_status: Option<i32>,
    /// Kept files: standard output and error as `stdout` and `stderr`, and outputs as `outputs/` and their path.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<KeptFile>,
    /// Reasons why some outputs were not kept, a sentence each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_kept: Vec<String>,
    /// Time in which the program did not want to compute, because it slept or waited, in real
    /// microseconds.
    pub real_waited_us: u64,
    /// Greatest memory use of the program.
    pub memory: Bytes,
    /// Size of the program's directory at the end.
    pub directory: Bytes,
}

impl ProgramEnd {
    /// Folder of the outputs among the kept files.
    pub const OUTPUTS: &'static str = "outputs";

    /// True if the program returned status 0.
    #[must_use]
    pub fn is_success(&self) -> bool {
        self.exit == Some(ProgramExit::Status(0))
    }

    /// Digest of the output with this path, in hexadecimal; `None`: no such output was kept.
    #[must_use]
    pub fn find_output(&self, path: &str) -> Option<&str> {
        let is_it = |file: &&KeptFile| {
            let output = file.path.strip_prefix(Self::OUTPUTS).and_then(|it| it.strip_prefix('/'));
            output == Some(path)
        };
        self.files.iter().find(is_it).map(|file| file.digest.as_str())
    }
}

/// Exit of a program: its status, or the signal that killed it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ProgramExit {
    /// The program exited with this status.
    Status(i32),
    /// The program was killed by this signal.
    Signal(i32),
}

/// A file of a task that is kept in the run's folder.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptFile {
    /// Path of the file relative to the task's folder of kept files.
    pub path: String,
    /// BLAKE3 of the file's content, in hexadecimal.
    pub digest: String,
    /// Length of the file's content.
    pub bytes: Bytes,
    /// True if the file is executable.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub executable: bool,
}

/// End of an attempt at a user's own program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProgramAttemptEnd {
    /// The task that was attempted.
    pub task: TaskId,
    /// The attempt that is over.
    pub attempt: Attempt,
    /// True if the task is done with this attempt.
    pub finished: bool,
    /// End of the program, with its outputs.
    pub end: Arc<ProgramEnd>,
}

/// Collects the ends of attempts at users' own programs from a run's steps. Each end comes in two steps:
/// first the attempt's account with the program's end, then the report that the task finished or failed.
#[derive(Debug, Default)]
pub struct AttemptEnds {
    known: Option<(TaskId, Attempt, Arc<ProgramEnd>)>,
}

impl AttemptEnds {
    /// Takes a step of the run; returns the end of an attempt that this step completes, if there is one.
    pub fn take_step(&mut self, step: &Step) -> Option<ProgramAttemptEnd> {
        let Event::Machine { report, .. } = &step.event else { return None };
        let of = match *report {
            Report::Ledger { task, attempt, ref own, .. } => {
                self.known = own.clone().map(|end| (task, attempt, end));
                return None;
            }
            Report::TaskFinished { task, attempt, .. }
            | Report::TaskFailed { task, attempt, .. } => (task, attempt),
            _ => return None,
        };
        let (task, attempt, end) = self.known.take_if(|known| (known.0, known.1) == of)?;
        let is_finish = |notice: &Notice| matches!(notice, Notice::TaskFinished { task: done, .. } if *done == task);
        let finished = step.notices.iter().any(is_finish);
        Some(ProgramAttemptEnd { task, attempt, finished, end })
    }
}
