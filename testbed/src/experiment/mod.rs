//! Experiment files: TOML in, a resolved [`Experiment`] or one clear error out.

mod builtin;
mod catalogue;
mod checkpoint;
mod cloud;
mod document;
mod error;
mod import;
mod interruption;
mod jobs;
mod live;
mod load;
mod overrides;
mod plan;
mod reader;
mod scheduler;
mod suggest;
mod workload;

pub use builtin::Builtin;
pub use error::{InputError, Place};
pub use live::{Class, Hibernate, Kernel, Live, Program};
pub use load::{Experiment, Loaded, Source, load};
pub use overrides::Override;
