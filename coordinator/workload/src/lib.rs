//! Workloads of rigid parallel jobs: logs in the Standard Workload Format, models that
//! make more of them, and what can be said of either.
//!
//! A workload is a stream of [`Submission`](dormouse_policies::batch::Submission)s in order of
//! submission. [`Trace`] streams them from an SWF log, plain or gzipped, so that memory
//! does not grow with the log; the models make a list. Whoever uses it opens the files.

mod arrivals;
mod batch_means;
pub mod decimal;
mod estimate;
mod lines;
mod models;
mod sampling;
mod statistics;
mod swf;
mod usage;

pub use arrivals::{offered_load, scale_arrivals};
pub use batch_means::{BATCHES, BatchMeans, rises};
pub use estimate::{Estimate, jackknife, normal};
pub use lines::Lines;
pub use models::{EstimatesError, Model, ModelError, Targets, tsafrir_estimates};
pub use statistics::{Histogram, Moments, Statistics};
pub use swf::{
    Fractions, Header, JobSize, LogRules, NoEstimate, Odd, OnMalformed, Problem, RanOver, Repeated,
    Skipped, SwfError, SwfJob, SwfReader, SwfWriter, Trace,
};
pub use usage::UsageRule;
