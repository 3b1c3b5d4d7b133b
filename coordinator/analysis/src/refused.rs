//! A table of a run that can't be written.

use std::io;

/// A table that can't be written.
#[derive(Debug)]
pub struct Refused {
    /// Name of the file.
    pub file: &'static str,
    /// The words of the system.
    pub source: io::Error,
}

impl Refused {
    pub(crate) fn in_file(file: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |source| Self { file, source }
    }
}
