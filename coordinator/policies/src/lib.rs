//! Schedulers as pure state machines: the algorithms of the papers.
//!
//! A scheduler is told what happened ([`Notice`]) and answers with decisions ([`Decision`]). It
//! never reads a clock, draws from an unseeded generator, sleeps, spawns, opens a file or sends a
//! message.
//!
//! The bag-of-tasks schedulers are those of Burst-HADS: [`plan`] makes the primary
//! schedule ([`Plan`]), [`build`] a scheduler that carries it out.

mod assignment;
pub mod batch;
mod burst_allocation;
mod checkpointing;
mod config;
mod dynamic;
mod error;
mod feasibility;
mod gang;
mod hads;
mod heard_prices;
mod ils;
mod in_order;
mod lazy;
mod name;
mod packing;
mod parameters;
mod plan;
mod planned_bill;
mod planner;
mod policy;
mod problem;
pub mod program;
mod provision;
pub mod requests;
mod scheduler_input;
mod schedulers;
pub mod service;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;

pub use checkpointing::{
    Begun, CheckpointPlan, CheckpointPlanner, CheckpointPlanning, CheckpointPoints, Checkpointing,
    Moment, Quote, TaskView, When, check_lifetime_plans, dp, finest_step, young_daly,
};
pub use config::{
    BagSchedulerConfig, BurstOn, CostScale, Fleet, KeepIdle, LocalSearchRule, MigrateMoment,
    OnDemandPlan, OnNotice, RelaxRule, SpareTime, SpotLimitRule, StealIf, StealMoment,
};
pub use error::PlanError;
pub use parameters::{Own, ParameterSchema};
pub use plan::Plan;
pub use planned_bill::planned_bill;
pub use planner::{build, plan};
pub use policy::{Delivery, GivenUp, Policy};
pub use schedulers::BagSchedulerName;
