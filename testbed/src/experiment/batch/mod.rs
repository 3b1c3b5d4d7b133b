//! The parallel jobs of an experiment: what stands in its file of them.

mod described;
mod read;

pub use described::{
    Batch, BatchScheduler, BatchWorkload, Estimates, Information, JobSource, JobSpec, Shape,
    UsageKind,
};

pub(in crate::experiment) use read::check;
