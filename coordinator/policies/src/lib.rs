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
mod burst_allocation;
mod checkpointing;
mod config;
mod dynamic;
mod error;
mod feasibility;
mod given;
mod hads;
mod heard_prices;
mod ils;
mod in_order;
mod job;
mod name;
mod packing;
mod parameters;
mod plan;
mod planner;
mod policy;
mod problem;
pub mod requests;
mod schedulers;
pub mod service;
pub mod spot;
#[cfg(test)]
mod testing;

pub use bag::{Bag, Task};
pub use checkpointing::{
    Begun, CheckpointConfig, CheckpointOn, CheckpointPlan, CheckpointPlanner, Checkpointing, Due,
    LifetimePlans, Moment, OfType, Period, Quote, Scheme, TaskView, When, dp, young_daly,
};
pub use config::{
    BagSchedulerConfig, BurstOn, CostScale, Fleet, KeepIdle, LocalSearchRule, MigrateMoment,
    OnNotice, RelaxRule, SpotLimitRule, StealIf, StealMoment,
};
pub use error::PlanError;
pub use parameters::{Own, Parameters};
pub use plan::{Plan, PlannedTask, PlannedVm};
pub use planner::{build, plan};
pub use policy::{Decision, EndReason, GivenUp, Hearing, Notice, Policy, Promotion, StartReason};
pub use schedulers::BagSchedulerName;
