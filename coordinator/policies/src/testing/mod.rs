//! A model of provider and machines that drives a scheduler and checks what it asks for.
#![allow(clippy::unwrap_used, reason = "a panic is how these fail")]
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_macros,
    reason = "tests read the authors' plans and print figures; the schedulers do neither"
)]

mod algorithms;
mod growth;
mod jobs;
mod properties;
mod stored;
mod tables;
mod world;

pub(crate) use jobs::{J60, J80, J100, budget, ec2, ed200, job, no_budget};
