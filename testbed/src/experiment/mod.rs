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
mod kind;
pub(crate) mod live;
mod load;
mod overrides;
mod plan;
mod prices;
pub(crate) mod reader;
mod scheduler;
mod suggest;
mod tenants;
mod workload;

pub use batch::{
    BatchExperiment, BatchScheduler, BatchWorkload, Estimates, Information, JobSource, JobSpec,
    UsageKind,
};
pub use builtin::Builtin;
pub use error::{InputError, Place};
pub use kind::{Kind, Opened, open};
pub use live::{Class, Hibernate, Kernel, Live, Program, SpeedupSaid};
pub use load::{Experiment, Loaded, Source, load};
pub use overrides::Override;

pub(crate) use load::{preamble, read_bag};
