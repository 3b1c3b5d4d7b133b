//! Load of a live run's hosts, including work outside its VMs.

use serde::{Deserialize, Serialize};

/// Load of a host since its worker was welcomed, in real microseconds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoadReport {
    /// Time since the worker was welcomed.
    pub elapsed_us: u64,
    /// Cores that the worker may use, in thousandths; a quota may allow less.
    pub millicores: u32,
    /// Busy time in that period, summed over the cores.
    pub busy_us: u64,
    /// Part of `busy_us` that the worker used, with its VMs and CRIU.
    pub ours_us: u64,
    /// Identity of the running kernel, which workers on the same machine share.
    pub machine: String,
}
