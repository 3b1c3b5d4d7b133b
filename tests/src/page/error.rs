//! Errors in reading or playing a page.

use std::{io, path::PathBuf};

/// An error in reading or playing a page.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file, or a program, that the system refuses.
    #[error("cannot {action} {}: {source}", path.display())]
    #[expect(missing_docs, reason = "the message says what each is")]
    File { action: &'static str, path: PathBuf, source: io::Error },
    /// A block that is none of the book's.
    #[error("{}:{line}: {problem}", path.display())]
    #[expect(missing_docs, reason = "the message says what each is")]
    Page { path: PathBuf, line: usize, problem: String },
    /// A command that failed.
    #[error("cannot run {command}: {problem}")]
    #[expect(missing_docs, reason = "the message says what each is")]
    Command { command: String, problem: String },
}

impl Error {
    /// A function that turns an error of the system into one about this file.
    pub(super) fn file(
        action: &'static str,
        path: impl Into<PathBuf>,
    ) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::File { action, path, source }
    }
}
