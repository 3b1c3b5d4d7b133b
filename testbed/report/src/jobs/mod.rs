//! Parallel jobs of a run: reading them ahead, and their results.

mod error;
mod outcome;
mod read_ahead;

pub use error::JobsError;
pub(crate) use error::refused_io;
pub use outcome::JobsOutcome;
pub(crate) use read_ahead::ReadAhead;
