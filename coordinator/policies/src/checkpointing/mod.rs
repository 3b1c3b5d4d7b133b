//! Checkpointing schemes, behind one trait: when running tasks are checkpointed.

mod acc;
mod budget;
pub mod dp;
mod every;
mod lifetimes;
mod plan;
mod planning;
mod priced;
mod scheme;
mod simple;
mod young_daly;

pub use lifetimes::{check_lifetime_plans, finest_step};
pub use plan::{CheckpointPlan, CheckpointPoints};
pub use planning::{Begun, CheckpointPlanner, CheckpointPlanning};
pub use scheme::{Checkpointing, Moment, Quote, TaskView, When};
pub use young_daly::young_daly;
