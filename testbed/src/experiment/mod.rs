//! Experiment files: TOML in, a resolved [`Experiment`] or one clear error out.

mod batch;
mod builtin;
mod checkpoint;
mod cloud;
mod files;
mod interruption;
mod jobs;
mod live;
mod load;
#[cfg(test)]
mod mutations;
mod overrides;
mod plan;
mod scheduler;
mod schema;
mod sections;
mod sharing;
mod shown;
mod tenants;
mod workload;

pub use dormouse_documents::{InputError, Mistake, Place};

pub use batch::Batch;
pub use builtin::Builtin;
pub use live::{Hibernate, Live};
pub use load::{Experiment, Loaded, Planned, Source, load, open};
pub use overrides::Override;
pub use schema::{reference, schema};
pub use sharing::{SharingFile, read_sharing};

pub(crate) use load::of_text;
