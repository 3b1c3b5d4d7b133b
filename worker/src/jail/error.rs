//! Errors of making a jail.

use std::io;

use super::JailPart;

/// The result of an operation on a jail.
pub type Result<T, E = JailError> = std::result::Result<T, E>;

/// Reason why a part of a jail is not available.
#[derive(Debug, thiserror::Error)]
#[error("tasks can't have {}: {step} failed", part.part_words())]
pub struct JailError {
    /// The part of the jail that is not available.
    pub part: JailPart,
    /// The step of building the jail that failed.
    pub step: String,
    /// The error of the kernel.
    pub source: io::Error,
}

impl JailError {
    pub(super) fn at_step(part: JailPart, step: &str) -> impl FnOnce(io::Error) -> Self + use<> {
        let step = step.to_owned();
        move |source| Self { part, step, source }
    }
}
