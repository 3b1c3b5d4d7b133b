//! Many runs in virtual time, each kept as it is made.
//!
//! - [`sweep`]: independent, seeded runs on all cores, resumable, in parts;
//! - [`compare`]: schedulers beside one another on them;
//! - [`measures`]: the figures of them that people are told;
//! - [`engine`]: the same in shards, by Slurm, HyperQueue, Kubernetes or processes of this host;
//! - [`papers`]: the papers' evaluations, by one framework.

pub mod compare;
pub mod engine;
pub mod measures;
pub mod papers;
mod runs;
pub mod sweep;
