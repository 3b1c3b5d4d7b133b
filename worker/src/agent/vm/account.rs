//! CPU time that attempts and their VM were promised and received.

use dormouse_proto::v1::{JobAccount, Ledger};

/// The time that an attempt was promised and received, in the wire format.
#[derive(Clone, Debug, Default)]
pub(crate) struct AttemptAccount {
    pub(crate) cpu_us: u64,
    /// Promised and received CPU time of a task of one process; `None` for a parallel job.
    pub(crate) ledger: Option<Ledger>,
    /// Promised and received CPU time of a parallel job; `None` for a task of one process.
    pub(crate) job: Option<JobAccount>,
}

/// Promised and received CPU time, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct CpuAccount {
    pub(crate) promised: u64,
    pub(crate) received: u64,
}
