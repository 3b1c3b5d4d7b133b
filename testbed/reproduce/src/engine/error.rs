//! What can go wrong between a command and the engine that is to run it.

use std::path::PathBuf;

use super::Engine;

/// Why an engine does not run a job, or did not run it to its end.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// The engine's own command is nowhere in `$PATH`: its name, and where it is to be had.
    #[error(
        "--engine {engine}: there is no {command} in $PATH; {remedy}, or --dry-run prints the job"
    )]
    NotInstalled {
        /// The engine that was asked for.
        engine: Engine,
        /// Name of the command.
        command: &'static str,
        /// The source of that command.
        remedy: &'static str,
    },
    /// The containers of Kubernetes see the volume of their claim and nothing of this host.
    #[error(
        "--out {}: containers see nothing of this host; give a path in the folder of the claim, \
         without a / at its beginning", .0.display()
    )]
    NotInClaim(PathBuf),
    /// The engine's command refused the job: the line, and what it said.
    #[error("--engine {engine}: `{line}` failed: {said}")]
    Refused {
        /// The engine that was asked for.
        engine: Engine,
        /// The command that was run.
        line: String,
        /// What it printed.
        said: String,
    },
    /// The system refused.
    #[error("cannot {doing} {}; check the path and the disk, or give another --out", .path.display())]
    Io {
        /// What was tried, as it stands after "cannot".
        doing: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The system's own error.
        source: std::io::Error,
    },
    /// Shards on this host did not come to a good end, or their merge did not: the whole message.
    #[error("{said}; typed again, the same command makes only what is missing")]
    Unfinished {
        /// What ended, how, and where its words are.
        said: String,
        /// Whether it was refused for its input.
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

    /// Whether it is the user's input that has to change.
    pub const fn is_bad_input(&self) -> bool {
        match self {
            Self::NotInstalled { .. } | Self::NotInClaim(_) => true,
            Self::Unfinished { is_bad_input, .. } => *is_bad_input,
            Self::Refused { .. } | Self::Io { .. } => false,
        }
    }
}
