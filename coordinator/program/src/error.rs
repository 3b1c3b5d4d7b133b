//! Errors of a scheduler that is a program.

use dormouse_policies::PlanError;

/// Why a scheduler could not be started.
#[derive(Debug, thiserror::Error)]
pub enum ProgramError {
    /// The scheduler's configuration can't be used.
    #[error(transparent)]
    Config(#[from] PlanError),
    /// The system does not start the program.
    #[error("the scheduler {command} can't be started: {refused}{remedy}")]
    Start {
        /// The program as it was written.
        command: String,
        /// The system's own error.
        refused: std::io::Error,
        /// The remedy, as the end of the sentence.
        remedy: &'static str,
    },
    /// No scheduler of this name is part of this program.
    #[error(
        "scheduler.linked: no scheduler '{name}' is part of this program (there are {known}); build \
         it in, or give scheduler.command"
    )]
    NotLinked {
        /// The name that was asked for.
        name: String,
        /// The names that there are, in words.
        known: String,
    },
    /// The program did not say hello as it has to.
    #[error("{0}")]
    Hello(String),
}
