//! What has to hold in every run, checked on its steps.

mod balance;
mod bounds;
mod checker;
mod jobs;
mod violation;
mod vm;

pub use checker::{Checker, check_bag};
pub use jobs::JobsChecker;
pub use violation::Violation;
