//! What a live run's hosts do beside its VMs.

use serde::{Deserialize, Serialize};

/// What a host did since its worker was welcomed, real microseconds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostLoad {
    /// How long ago it was welcomed.
    pub elapsed_us: u64,
    /// The cores that the host's worker may run on, in thousandths; a quota may leave it less.
    pub millicores: u32,
    /// For how much of that time they were busy, summed over the cores.
    pub busy_us: u64,
    /// The worker's part of `busy_us`: its VMs, itself, CRIU.
    pub ours_us: u64,
    /// Names the running kernel: workers that share a machine say the same.
    pub machine: String,
}
