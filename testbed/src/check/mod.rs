//! What has to hold in every run, checked on its event log.

mod bounds;
mod checker;
mod vm;

pub use checker::{Checker, Violation, check};
