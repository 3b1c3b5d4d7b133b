//! Batches of parallel jobs on two-tier processors: their runs, and what these leave.

mod check;
mod error;
mod explain;
mod figures;
mod gantt;
mod history;
mod jobs;
mod log;
mod outcome;
mod play;
mod recorder;
mod replay;
mod report;
mod run;
mod schedule;
mod series;
mod shared;

pub use check::{Checked, Violation, check};
pub use error::BatchError;
pub use explain::explain;
pub use figures::{Figures, Waited};
pub use history::{History, JobHistory, MOST_DRAWN, Spell, SpellEnd};
pub use jobs::Jobs;
pub use log::{BatchHeader, BatchLog, BatchLogWriter, MOST_LOGGED};
pub use outcome::BatchOutcome;
pub use recorder::Recorder;
pub use replay::{recorded_digest, replay};
pub use run::virtual_run;
pub use schedule::Schedule;
pub use series::{Quantity, Series};
pub use shared::{SharedJobs, jobs_log};
