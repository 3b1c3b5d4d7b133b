//! Batches of parallel jobs on two-tier processors: experiments, runs, and what they leave.

mod check;
mod error;
mod experiment;
mod explain;
mod figures;
mod gantt;
mod history;
mod jobs;
mod log;
mod outcome;
mod play;
mod read;
mod recorder;
mod replay;
mod report;
mod run;
mod schedule;
mod series;
mod shared;

pub use check::{Checked, Violation, check};
pub use error::BatchError;
pub use experiment::{
    BatchExperiment, BatchScheduler, BatchWorkload, Estimates, Information, JobSource, JobSpec,
    UsageKind,
};
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
pub use shared::{JobsOutcome, SharedJobs, jobs_log};

pub(crate) use read::{KINDS, read};
