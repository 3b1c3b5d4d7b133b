//! The parallel jobs of a run: the tables of jobs that are written during the run, and the jobs' figures.

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
pub use figures::{JobFigures, LongWait};
pub use schedule::ScheduleWriter;
pub use seen::SeenByJobs;
pub use series::{JobQuantity, JobSeries};
pub use simulate::simulate;
pub use tables::{JobsTables, RecordedJobs, is_of_jobs};
