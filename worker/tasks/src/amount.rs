//! How much work is asked for.

use std::time::Duration;

/// How long to go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Amount {
    Repetitions(u64),
    CpuTime(Duration),
}
