//! Checkpoint schedules for a job on VMs whose lifetimes have a known distribution: the dynamic
//! program of the bathtub paper (section 4.3, Eq. 9 to 13), the expected makespans of its
//! schedules, and simulations of them.

mod envelope;
mod expected;
mod plain;
mod plan;
mod problem;
mod rules;
mod simulate;
mod survival;

#[cfg(test)]
mod tests;

pub use expected::expected;
pub use plan::{Plan, WorkChunk};
pub use problem::{Problem, ProblemError};
pub use rules::{AfterFailure, FailureLoss, FailureProbability, Rules};
pub use simulate::simulate;
pub use survival::Survival;
