//! Errors in reading or playing a page.

use std::{io, path::PathBuf};

/// An error in reading or playing a page.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The system refused to read, write or start a file or program.
    #[error("cannot {action} {}: {source}", path.display())]
    #[expect(missing_docs, reason = "the message says what each is")]
    File { action: &'static str, path: PathBuf, source: io::Error },
    /// A block of a page that is not as the book's blocks are.
    #[error("{}:{line}: {problem}", path.display())]
    #[expect(missing_docs, reason = "the message says what each is")]
    Page { path: PathBuf, line: usize, problem: String },
    /// A command that failed.
    #[error("cannot run {command}: {problem}")]
    #[expect(missing_docs, reason = "the message says what each is")]
    Command { command: String, problem: String },
}

impl Error {
    /// A function that turns a system error into an error about this file.
    pub(super) fn file(
        action: &'static str,
        path: impl Into<PathBuf>,
    ) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::File { action, path, source }
    }
}
