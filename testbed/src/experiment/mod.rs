//! Experiment files: TOML in, a resolved [`Experiment`] or one clear error out.

mod batch;
mod builtin;
mod catalogue;
mod checkpoint;
mod cloud;
mod conform;
mod document;
mod error;
mod import;
mod interruption;
mod jobs;
mod live;
mod load;
#[cfg(test)]
mod mutations;
mod overrides;
mod plan;
mod prices;
mod reference;
mod scheduler;
mod schema;
mod sections;
mod sharing;
mod suggest;
mod tenants;
mod workload;

pub use batch::{
    Batch, BatchScheduler, BatchWorkload, Estimates, Information, JobSource, JobSpec, Shape,
    UsageKind,
};
pub use builtin::Builtin;
pub use error::{InputError, Mistake, Place};
pub use live::{Class, Hibernate, Kernel, Live, Program};
pub use load::{Experiment, Loaded, Planned, Source, load, open};
pub use overrides::Override;
pub use sharing::{SharingError, SharingFile, read_sharing};

pub(crate) use load::of_text;
pub use reference::reference;
pub use schema::schema;
