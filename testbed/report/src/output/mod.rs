//! What a run leaves: tables, plots, a report, the event log.

mod directory;
mod error;
mod log;

pub use directory::{Replaces, Staging, is_unfinished, write_in};
pub use error::OutputError;
pub use log::{Header, RunLog, RunLogWriter, has_steps, open_log, read_header};
