//! Errors of running a job on an engine.

use std::path::PathBuf;

use super::JobEngine;

/// Reason for which an engine does not run a job, or did not finish it.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// The engine's own command is not in `$PATH`.
    #[error(
        "--engine {engine}: there is no {command} in $PATH; {remedy}, or --dry-run prints the job"
    )]
    NotInstalled {
        /// Engine that was requested.
        engine: JobEngine,
        /// Name of the command.
        command: &'static str,
        /// Advice on where to get the command.
        remedy: &'static str,
    },
    /// The folder of results at this path is outside the volume that the containers of Kubernetes see.
    #[error(
        "--out {}: containers can't see files of this host; give a path within the folder of the \
         claim, without a leading /", .0.display()
    )]
    NotInClaim(PathBuf),
    /// The engine's command refused the job.
    #[error("--engine {engine}: `{line}` failed: {said}")]
    Refused {
        /// Engine that was requested.
        engine: JobEngine,
        /// Command that was run.
        line: String,
        /// Output of the command.
        said: String,
    },
    /// The system refused an action on a file or folder.
    #[error("can't {doing} {}; check the path and the disk, or give another --out", .path.display())]
    Io {
        /// The action that failed, worded to follow "cannot".
        doing: &'static str,
        /// File or folder that the failed action concerns.
        path: PathBuf,
        /// Error of the system.
        source: std::io::Error,
    },
    /// Shards on this host, or their merge, failed.
    #[error("{said}; run the same command again: it makes only what is missing")]
    Unfinished {
        /// Text that says what ended, how, and where its output is.
        said: String,
        /// Whether the shard or the merge ended with the status for bad input.
        is_bad_input: bool,
    },
}

impl EngineError {
    pub(super) fn io(
        doing: &'static str,
        path: impl Into<PathBuf>,
    ) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io { doing, path, source }
    }

    /// Whether the user has to change the input.
    pub const fn is_bad_input(&self) -> bool {
        match self {
            Self::NotInstalled { .. } | Self::NotInClaim(_) => true,
            Self::Unfinished { is_bad_input, .. } => *is_bad_input,
            Self::Refused { .. } | Self::Io { .. } => false,
        }
    }
}
