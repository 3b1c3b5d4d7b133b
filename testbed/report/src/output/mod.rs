//! Files of a run: the event log, tables and their folder.

mod directory;
mod error;
mod log;
mod ownership;
mod tables;

pub use directory::{ReplacedContent, StagedFolder, is_unfinished, write_in};
pub use error::OutputError;
pub use log::RunBeginning;
pub use log::{
    LiveHeader, LogHeader, RunLog, RunLogWriter, has_steps, live_header, open_log, read_header,
};
pub use ownership::make_folder;
pub(crate) use tables::TableFiles;
