//! Schedulers as pure state machines: what the papers contribute.
//!
//! A scheduler is told what happened ([`Notice`]) and answers with what it wants
//! ([`Decision`]). It never reads a clock, draws from an unseeded generator,
//! sleeps, spawns, opens a file or sends a message.
//!
//! The bag-of-tasks schedulers are those of Burst-HADS: [`plan`] makes the primary
//! schedule ([`Plan`]), [`build`] a scheduler that carries it out.

mod assignment;
mod bag;
pub mod batch;
mod build;
mod burst_allocation;
mod checkpointing;
mod config;
mod dynamic;
mod error;
mod feasibility;
mod fifo;
mod hads;
mod ils;
mod job;
mod packing;
mod plan;
mod planner;
mod policy;
mod problem;
#[cfg(test)]
mod testing;

pub use bag::{Bag, Task};
pub use build::build;
pub use checkpointing::{
    CheckpointConfig, CheckpointOn, CheckpointPlan, Checkpointing, Due, Moment, Period, Quote,
    Scheme, TaskView, When,
};
pub use config::{
    BagSchedulerConfig, BagSchedulerName, BurstOn, Fleet, LocalSearchRule, MigrateMoment, OnNotice,
    RelaxRule, SpotLimitRule, StealMoment,
};
pub use error::PlanError;
pub use plan::{Plan, PlannedTask, PlannedVm};
pub use planner::plan;
pub use policy::{Decision, Hearing, Notice, Policy, Promotion, StartReason};
