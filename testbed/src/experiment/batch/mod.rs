//! Experiments of parallel jobs: what stands in their files.

mod described;
mod read;

pub use described::{
    BatchExperiment, BatchScheduler, BatchWorkload, Estimates, Information, JobSource, JobSpec,
    UsageKind,
};

pub(in crate::experiment) use read::{KINDS, read};
