//! Amounts of work.

use std::time::Duration;

/// The amount of work after which a task ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WorkAmount {
    Repetitions(u64),
    CpuTime(Duration),
}
