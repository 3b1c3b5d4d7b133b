//! Error for a table of a run that can't be written.

use std::io;

/// A table that can't be written.
#[derive(Debug)]
pub struct TableError {
    /// Name of the file.
    pub file: &'static str,
    /// Error of the system.
    pub source: io::Error,
}

impl TableError {
    pub(crate) fn in_file(file: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |source| Self { file, source }
    }
}
