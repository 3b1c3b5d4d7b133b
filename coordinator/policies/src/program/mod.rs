//! Schedulers that are separate programs: their configuration, and placeholders that repeat recorded
//! answers. The crate `dormouse-program` starts the programs and talks to them.

mod answered;
mod config;
mod following;

pub use answered::UnstartedProgram;
pub use config::{ProgramConfig, ProgramProcessors};
pub use following::Following;

/// Name, in experiment files, of a scheduler that is a separate program.
pub(crate) const NAME: &str = "program";

/// One-line description of a scheduler that is a separate program.
pub(crate) const ABOUT: &str =
    "a program of your own that reads notices and writes decisions, as JSON lines: command";
