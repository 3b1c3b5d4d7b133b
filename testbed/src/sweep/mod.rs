//! Many independent, seeded runs in virtual time: on all cores, resumable, in parts.

mod cell;
mod chart;
mod error;
mod fan_out;
mod folder;
mod jobs;
mod metrics;
mod plans;
mod sample;
mod shard;
mod spec;
mod values;

pub use cell::{Cell, Seeded};
pub use error::SweepError;
pub use fan_out::{Samples, Work};
pub use folder::Folder;
pub use jobs::{JobsCell, JobsSample};
pub use metrics::{Column, Metric, Plot, Reported};
pub use plans::Plans;
pub use sample::Sample;
pub use shard::Shard;
pub use spec::Spec;
pub use values::{AnySweep, Sweep, Swept, sweep_cells};

pub(crate) use cell::digest_of;
pub(crate) use jobs::digest_of_log;

pub(crate) use chart::{Dots, Frame, Mark, Strip, Tie, dots, strips};
