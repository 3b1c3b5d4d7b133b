//! Many independent, seeded virtual runs: on all cores, resumable, in shards.

mod cell;
mod error;
mod folder;
mod grid;
mod own_program;
mod page;
mod part_files;
mod plots;
mod shard;
mod shared;
mod spec;
mod tables;
mod work;

pub use cell::SweepCell;
pub(crate) use cell::{digest_of, digest_of_file};
pub use error::{RunError, SweepError};
pub use folder::SweepFolder;
pub use grid::ParameterSweep;
pub use own_program::OwnProgram;
pub use shard::SweepShard;
pub use shared::SharedInputs;
pub use spec::{FolderSpec, ReproductionSpec};
pub use work::{SampleSource, Samples, SweepWork};
