//! The parallel jobs of a run: how they come, what is written of them while it goes, and what came
//! of them.

mod csv;
mod error;
mod figures;
mod history;
mod outcome;
mod recorder;
mod recording;
mod schedule;
mod seen;
mod series;

pub use csv::{AllocationsCsv, JobsCsv};
pub use error::JobsError;
pub use figures::{Figures, Waited};
pub use history::{History, JobHistory, MOST_DRAWN, Spell, SpellEnd};
pub use outcome::JobsOutcome;
pub use recording::JobsRecording;
pub use schedule::Schedule;
pub use seen::SeenByJobs;
pub use series::{Quantity, Series};

pub(crate) use csv::columns;
