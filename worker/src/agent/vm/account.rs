//! What attempts and the VM were promised and got.

use dormouse_proto::v1::{JobAccount, Ledger};

/// What an attempt was promised and got, in the words of the wire.
#[derive(Clone, Debug, Default)]
pub(crate) struct AttemptAccount {
    pub(crate) cpu_us: u64,
    /// The ledger of a task of one process.
    pub(crate) ledger: Option<Ledger>,
    /// The account of a parallel job.
    pub(crate) job: Option<JobAccount>,
}

/// CPU time, in nanoseconds.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct CpuAccount {
    pub(crate) promised: u64,
    pub(crate) received: u64,
}
