//! What goes wrong with a jail.

use std::io;

use super::Part;

/// The result of an operation on a jail.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// A part of a jail that can't be had.
#[derive(Debug, thiserror::Error)]
#[error("tasks can't have {}: {step} failed", part.words())]
pub struct Error {
    /// The part of the jail.
    pub part: Part,
    /// What was being done.
    pub step: String,
    /// What the kernel said.
    pub source: io::Error,
}

impl Error {
    pub(super) fn at(part: Part, step: &str) -> impl FnOnce(io::Error) -> Self + use<> {
        let step = step.to_owned();
        move |source| Self { part, step, source }
    }
}
