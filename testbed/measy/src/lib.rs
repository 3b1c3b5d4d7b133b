//! Batch experiments in virtual time, and the evaluation of the MEASY paper.
//!
//! [`cli`] is what `dormouse run --virtual`, `dormouse explain` and `dormouse reproduce
//! measy` call for a batch experiment.

mod batch_means;
pub mod cli;
mod decimal;
mod experiment;
mod explain;
mod jobs_csv;
pub mod reproduce;
mod run;

pub use batch_means::{BATCHES, BatchMeans, Estimate};
pub use experiment::{
    BatchExperiment, EstimatesKind, ExperimentError, InformationKind, MalformedKind,
    SchedulerSection, Text, UsageKind, WorkloadKind, WorkloadSection,
};
pub use explain::explain;
pub use jobs_csv::JobsCsv;
pub use run::{RunError, Summary, run_experiment};
