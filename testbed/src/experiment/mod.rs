//! Experiment files: TOML in, a resolved [`Experiment`] or one clear error out.

mod batch;
mod builtin;
mod catalogue;
mod checkpoint;
mod cloud;
pub(crate) mod document;
mod error;
pub(crate) mod import;
mod interruption;
mod jobs;
pub(crate) mod live;
mod load;
mod overrides;
mod plan;
mod prices;
pub(crate) mod reader;
mod scheduler;
mod sharing;
mod suggest;
mod tenants;
mod workload;

pub use batch::{
    Batch, BatchScheduler, BatchWorkload, Estimates, Information, JobSource, JobSpec, UsageKind,
};
pub use builtin::Builtin;
pub use error::{InputError, Place};
pub use live::{Class, Hibernate, Kernel, Live, Program, SpeedupSaid};
pub use load::{Experiment, Loaded, Planned, Source, load, open};
pub use overrides::Override;
pub use sharing::{SharingError, SharingFile, read_sharing};

pub(crate) use load::read_bag;
