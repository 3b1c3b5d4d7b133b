//! CPU time that attempts and their VM were promised and received.

use dormouse_proto::v1::{JobAccount, Ledger};

/// The time that an attempt was promised and received, in the wire format.
#[derive(Clone, Debug, Default)]
pub(crate) struct AttemptAccount {
    pub(crate) cpu_us: u64,
    /// Ledger of a task of one process.
    pub(crate) ledger: Option<Ledger>,
    /// Account of a parallel job.
    pub(crate) job: Option<JobAccount>,
}

/// Promised and received CPU time, in nanoseconds.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct CpuAccount {
    pub(crate) promised: u64,
    pub(crate) received: u64,
}
