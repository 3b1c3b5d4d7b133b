//! Errors of operations on processes.

use std::{io, path::PathBuf, time::Duration};

/// The result of an operation on processes.
pub type Result<T, E = ProcessError> = std::result::Result<T, E>;

/// An operation on a process that failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProcessError {
    /// A program did not start.
    #[error("can't start {}: {step} failed", program.display())]
    Spawn {
        /// The path of the program.
        program: PathBuf,
        /// What the new process was doing when it failed.
        step: String,
        /// The error of the kernel.
        source: io::Error,
    },
    /// A new process did not start its program in time.
    #[error(
        "{} did not start within {} ms (its VM may be frozen, or its quota too small)",
        program.display(), after.as_millis()
    )]
    SpawnLate {
        /// The path of the program.
        program: PathBuf,
        /// The time after which the wait was given up.
        after: Duration,
    },
    /// A string for the program contains a NUL byte.
    #[error("can't start {}: {what} holds a NUL byte", program.display())]
    Nul {
        /// The path of the program.
        program: PathBuf,
        /// The use of the string with the NUL byte, such as an argument.
        what: &'static str,
    },
    /// A file for the program could not be opened.
    #[error("can't open {} for a task", path.display())]
    Open {
        /// The path of the file.
        path: PathBuf,
        /// The error of the kernel.
        source: io::Error,
    },
    /// A request to a process failed.
    #[error("can't {action} process {pid}")]
    Process {
        /// The operation that failed.
        action: &'static str,
        /// The PID of the process.
        pid: i32,
        /// The error of the kernel.
        source: io::Error,
    },
    /// A file in `/proc` is missing, unreadable or malformed.
    #[error("can't read {}", path.display())]
    Proc {
        /// The path of the file.
        path: PathBuf,
        /// The error of the kernel.
        source: io::Error,
    },
    /// The process that cleans up when the worker ends (its guardian) could not be started.
    #[error("can't start the worker's guardian process: {step} failed")]
    Guardian {
        /// The step that failed while the worker's clean-up process (guardian) was started.
        step: &'static str,
        /// The error of the kernel.
        source: io::Error,
    },
    /// The worker had threads already when its clean-up process (guardian) was to be started.
    #[error(
        "the worker's guardian must be started before its threads; there are {threads} already"
    )]
    TooLate {
        /// Number of threads of the process.
        threads: usize,
    },
}
