//! What has to hold in every run, checked on its event log.

mod balance;
mod bounds;
mod checker;
mod jobs;
mod violation;
mod vm;
mod whole;

pub use checker::Checker;
pub use jobs::JobsChecker;
pub use violation::Violation;
pub use whole::{Checked, check, check_bag};
