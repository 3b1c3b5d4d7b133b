//! Schedulers that are programs of their own, as far as this crate knows them: how they are
//! configured, and what stands for one where only its recorded answers are needed. Who starts a
//! program and talks to it is the crate `dormouse-program`.

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
