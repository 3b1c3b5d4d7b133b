//! Errors of a scheduler that is a program.

use dormouse_policies::PlanError;

/// Errors of starting a scheduler.
#[derive(Debug, thiserror::Error)]
pub enum ProgramError {
    /// The scheduler's configuration can't be used.
    #[error(transparent)]
    Config(#[from] PlanError),
    /// The system can't start the program.
    #[error("the scheduler {command} can't be started: {refused}{remedy}")]
    Start {
        /// The command as the user wrote it.
        command: String,
        /// The error of the system.
        refused: std::io::Error,
        /// The remedy, which ends the sentence.
        remedy: &'static str,
    },
    /// No scheduler of this name is part of this program.
    #[error(
        "scheduler.linked: no scheduler '{name}' is part of this program (there are {known}); build \
         it in, or give scheduler.command"
    )]
    NotLinked {
        /// Name of the requested scheduler, which is not part of this program.
        name: String,
        /// Names of the linked schedulers, as text.
        known: String,
    },
    /// The program's answer to the first line (the hello) is invalid, for this reason.
    #[error("{0}")]
    Hello(String),
}
