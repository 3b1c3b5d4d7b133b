//! The parallel jobs of a run: how they come, where what is written of them goes, and what came of
//! them.

mod error;
mod generated;
mod outcome;
mod recording;
mod stream;

pub use error::JobsError;
pub use outcome::JobsOutcome;
pub use recording::JobsRecording;
pub use stream::Jobs;

pub(crate) use stream::Listed;
