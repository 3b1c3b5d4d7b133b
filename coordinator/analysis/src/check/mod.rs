//! Invariants that hold in every run, checked on its steps.

mod balance;
mod bounds;
mod capacity;
mod checker;
mod declared_use;
mod jobs;
mod requests;
mod rooms;
mod vm;

pub use capacity::CapacityChecker;
pub use checker::RuleViolation;
pub use checker::{Checker, check_bag};
pub use jobs::JobsChecker;
pub use requests::RequestsChecker;
