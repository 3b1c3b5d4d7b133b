//! The batch scheduler FCFS.

use super::Scheduling;

/// First come, first served.
pub(super) struct Fcfs;

impl Scheduling for Fcfs {
    fn name(&self) -> &'static str {
        "fcfs"
    }

    fn about(&self) -> &'static str {
        "first come, first served"
    }
}
