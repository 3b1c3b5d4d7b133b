//! The parallel jobs of a run: where what is written of them goes, and what came of them.

mod error;
mod outcome;
mod read_ahead;

pub use error::JobsError;
pub(crate) use error::refused_io;
pub use outcome::JobsOutcome;
pub(crate) use read_ahead::ReadAhead;
