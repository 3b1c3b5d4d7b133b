//! When running tasks are checkpointed: schemes behind one trait.

mod acc;
mod budget;
mod config;
pub mod dp;
mod every;
mod lifetimes;
mod never;
mod plan;
mod points;
mod priced;
mod scheme;
mod spot_only;
mod young_daly;

pub use config::{Begun, CheckpointConfig, CheckpointOn, CheckpointPlanner, Period, Scheme};
pub use lifetimes::{LifetimePlans, OfType};
pub use plan::{CheckpointPlan, Due};
pub use scheme::{Checkpointing, Moment, Quote, TaskView, When};
pub use young_daly::young_daly;
