//! The amount of work that is asked for.

use std::time::Duration;

/// The amount of work after which a task ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Amount {
    Repetitions(u64),
    CpuTime(Duration),
}
