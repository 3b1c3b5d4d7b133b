//! Many virtual runs, each stored as soon as it is made.
//!
//! - [`sweep`]: independent, seeded runs on all cores, resumable, in shards;
//!
//! - [`compare`]: schedulers compared on the same runs;
//!
//! - [`measures`]: the figures of runs that people see;
//!
//! - [`engine`]: shards on Slurm, HyperQueue, Kubernetes or this host;
//!
//! - [`papers`]: the papers' evaluations, in one framework.

pub mod compare;
pub mod engine;
pub mod measures;
pub mod papers;
mod ranked;
mod runs;
pub mod sweep;
