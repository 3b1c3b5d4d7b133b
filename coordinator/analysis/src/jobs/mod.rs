//! The parallel jobs of a run: what is written of them while it goes, and what they come to.

mod chart;
mod csv;
mod figures;
mod schedule;
mod seen;
mod series;
mod simulate;
mod tables;

pub use chart::{JobsOfWindow, MOST_DRAWN};
pub use csv::{AllocationsCsv, JobsCsv};
pub use figures::{Figures, Waited};
pub use schedule::Schedule;
pub use seen::SeenByJobs;
pub use series::{Quantity, Series};
pub use simulate::simulate;
pub use tables::{JobsTables, RecordedJobs, is_of_jobs};
