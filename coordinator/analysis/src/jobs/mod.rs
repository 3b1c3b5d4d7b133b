//! The parallel jobs of a run: what is written of them while it goes, and what they come to.

mod csv;
mod figures;
mod history;
mod recorder;
mod schedule;
mod seen;
mod series;

pub use csv::{AllocationsCsv, JobsCsv};
pub use figures::{Figures, Waited};
pub use history::{History, JobHistory, MOST_DRAWN, Spell, SpellEnd};
pub use recorder::{Recorded, Recorder, Refused, is_of_jobs};
pub use schedule::Schedule;
pub use seen::SeenByJobs;
pub use series::{Quantity, Series};
