//! What a run leaves: tables, plots, a report, the event log.

mod directory;
mod end;
mod error;
mod inputs;
mod log;

pub use directory::{FILES, Replaces, Staging};
pub(crate) use directory::{is_unfinished, write_in};
pub(crate) use end::end_word;
pub use error::OutputError;
pub use inputs::Input;
pub(crate) use log::has_steps;
pub use log::{Header, MOST_LOGGED, RunLog, RunLogWriter, open_log, read_header};
