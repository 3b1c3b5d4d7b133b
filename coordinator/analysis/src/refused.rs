//! Error for a table of a run that can't be written.

use std::io;

/// Error: a table can't be written.
#[derive(Debug)]
pub struct TableError {
    /// Name of the table's file.
    pub file: &'static str,
    /// The operating system's error.
    pub source: io::Error,
}

impl TableError {
    pub(crate) fn in_file(file: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |source| Self { file, source }
    }
}
